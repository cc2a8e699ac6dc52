"""The observation ``rgb``: one scene for each slot, rendered here from the game's updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

SCENE = "scene"
"""Key of a row's details with the changes around its agent since its last frame."""


class Scene(Protocol):
    """The surroundings of one agent; see ``bridges.mineflayer.rgb``."""

    def apply(self, update: Mapping[str, Any]) -> None:
        """Applies changes."""
        ...


class Renderer(Protocol):
    """Makes scenes and their pictures."""

    def scene(self) -> Scene:
        """Returns an empty scene."""
        ...

    def render(self, scene: Any, out: NDArray[np.uint8]) -> None:
        """Draws a scene into ``out``, ``(height, width, 3)``."""
        ...


class RayCaster:
    """Our own CPU ray-caster.

    Args:
        hello: the game's start-up message, with the table of appearances that scenes refer to.
    """

    def __init__(self, hello: Mapping[str, Any]) -> None:
        # Compiled code, imported only if pictures are observed.
        from bridges.mineflayer import rgb  # noqa: PLC0415

        self._rgb = rgb
        self._looks = rgb.Looks(hello)

    def scene(self) -> Scene:
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

    Attributes:
        out: the pictures, ``(slots, height, width, 3)``; zeros where a slot was never reset.
    """

    def __init__(self, renderer: Renderer, slots: int, height: int, width: int) -> None:
        self._renderer = renderer
        self.out: NDArray[np.uint8] = np.zeros((slots, height, width, 3), np.uint8)
        self._scenes: list[Scene | None] = [None] * slots

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

    def _show(self, slot: int, said: Mapping[str, Any]) -> None:
        scene = self._scenes[slot]
        assert scene is not None
        scene.apply(said[SCENE])
        self._renderer.render(scene, self.out[slot])
