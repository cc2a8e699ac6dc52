"""The observation ``rgb``: one scene for each slot, rendered here from the game's updates."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.errors import ConfigError

SCENE = "scene"
"""Key of a row's details with the changes around its agent since its last frame."""

PERSON_SCENE = "person_scene"
"""Likewise, of the player that a person plays."""

MOST_SIDE = 512
"""A blueprint's longer side in pixels; larger ones are made smaller."""


@lru_cache
def read_picture(file: str) -> NDArray[np.uint8]:
    """Returns a picture file as ``(height, width, 3)``: red, green, blue; not to be written to.

    Raises:
        ConfigError: there is no such picture.
    """
    path = Path(file).expanduser()
    found = None
    with contextlib.suppress(cv2.error):  # it is larger than OpenCV reads
        found = cv2.imread(str(path), cv2.IMREAD_COLOR) if path.is_file() else None
    if found is None:
        raise ConfigError(f"blueprint_file={file}: no picture there that can be read")
    share = MOST_SIDE / max(found.shape[:2])
    if share < 1:
        found = cv2.resize(found, None, fx=share, fy=share, interpolation=cv2.INTER_AREA)
    picture = np.ascontiguousarray(found[..., ::-1]).astype(np.uint8)
    picture.flags.writeable = False
    return picture


class RayCaster:
    """Our own CPU ray-caster.

    Args:
        hello: the game's start-up message, with the table of appearances that scenes refer to.
    """

    def __init__(self, hello: Mapping[str, Any]) -> None:
        # Compiled code, imported only if pictures are observed.
        from bridges.mineflayer.pictures import rgb  # noqa: PLC0415

        self._rgb = rgb
        self._looks = rgb.Looks(hello)

    def scene(self) -> Any:
        """Returns an empty scene."""
        return self._rgb.Scene(self._looks)

    def render(self, scene: Any, out: NDArray[np.uint8]) -> None:
        """Draws a scene."""
        height, width = out.shape[:2]
        self._rgb.render(scene, height, width, out)


class Pictures:
    """The pictures of every slot.

    Args:
        renderer: makes them.
        slots: how many there are.
        height: of a picture, in pixels.
        width: likewise.
        key: of the details with the changes of a scene.

    Attributes:
        out: the pictures, ``(slots, height, width, 3)``; zeros where a slot was never reset.
    """

    def __init__(
        self, renderer: RayCaster, slots: int, height: int, width: int, key: str = SCENE
    ) -> None:
        self._renderer, self._key = renderer, key
        self.out: NDArray[np.uint8] = np.zeros((slots, height, width, 3), np.uint8)
        self._scenes: list[Any] = [None] * slots

    def begin(
        self, slots: Sequence[int], details: Sequence[Mapping[str, Any]]
    ) -> NDArray[np.uint8]:
        """Resets some slots' scenes and renders new ones; returns a copy of their pictures."""
        for slot, said in zip(slots, details, strict=True):
            self._scenes[slot] = self._renderer.scene()
            self._show(slot, said)
        return self.out[list(slots)]

    def follow(self, slots: Sequence[int], details: Sequence[Mapping[str, Any]]) -> None:
        """Renders some slots again; ``details`` are those of every slot."""
        for slot in slots:
            self._show(slot, details[slot])

    def view(
        self, slot: int, eye: Sequence[float], yaw: float, pitch: float, out: NDArray[np.uint8]
    ) -> None:
        """Draws a slot's surroundings as seen from another place.

        Args:
            slot: whose surroundings.
            eye: x, y, z of the camera.
            yaw: radians, as of agents.
            pitch: likewise.
            out: the picture to draw, ``(height, width, 3)``.
        """
        scene = self._scenes[slot]
        own = scene.eye, scene.yaw, scene.pitch, scene.display
        scene.display = None
        scene.eye, scene.yaw, scene.pitch = np.array(eye, np.float64), yaw, pitch
        try:
            self._renderer.render(scene, out)
        finally:
            scene.eye, scene.yaw, scene.pitch, scene.display = own

    def _show(self, slot: int, said: Mapping[str, Any]) -> None:
        scene = self._scenes[slot]
        scene.apply(said[self._key])
        self._renderer.render(scene, self.out[slot])
