"""Free cameras, with the names of MineLand's bridge."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridges.mineflayer.instance import MineflayerInstance
from bridges.mineflayer.mineland.data import as_base64
from rollout.api import Frame
from rollout.errors import ConfigError, OutOfTurnError, UnknownNameError


@dataclass
class _Camera:
    height: int
    width: int
    place: NDArray[np.float64]
    yaw: float = 0.0
    pitch: float = 0.0


class Cameras:
    """Free cameras in the surroundings of agent 0: about 35 blocks around it are drawn.

    Angles are radians, as of agents: yaw 0 is north and grows to the west, pitch grows upwards.

    Args:
        instance: the game.
        frame: returns the last frame; None before the first.
    """

    def __init__(self, instance: MineflayerInstance, frame: Callable[[], Frame | None]) -> None:
        self._instance, self._frame = instance, frame
        self._cameras: dict[str, _Camera] = {}

    def addCamera(  # noqa: N802 # the name is MineLand's
        self, camera_id: str, image_width: int = 320, image_height: int = 180
    ) -> None:
        """Adds a camera at the eye of agent 0; one of that name is replaced.

        Raises:
            OutOfTurnError: no episode has begun.
            ConfigError: the world is headless.
        """
        frame, pictures = self._frame(), self._instance.pictures
        if frame is None or frame.details is None:
            raise OutOfTurnError("addCamera was called before reset; call reset first")
        if pictures is None:
            raise ConfigError(
                "there are no cameras in a headless world; make it with headless=False"
            )
        place = np.array(frame.details[0]["location_stats"]["pos"], np.float64)
        place[1] += 1.6
        self._cameras[camera_id] = _Camera(image_height, image_width, place)

    def getCameraView(self, camera_id: str) -> str:  # noqa: N802
        """Returns what a camera sees: a JPEG file in base64."""
        return as_base64(self.picture(camera_id))

    def picture(self, camera_id: str) -> NDArray[np.uint8]:
        """Returns what a camera sees, ``(height, width, 3)``."""
        camera, pictures = self._of(camera_id), self._instance.pictures
        assert pictures is not None
        out = np.empty((camera.height, camera.width, 3), np.uint8)
        pictures.view(0, camera.place.tolist(), camera.yaw, camera.pitch, out)
        return out

    def updateCameraLocation(  # noqa: N802
        self, camera_id: str, pos: ArrayLike, yaw: float, pitch: float
    ) -> None:
        """Moves a camera to a place and turns it."""
        camera = self._of(camera_id)
        camera.place, camera.yaw, camera.pitch = np.array(pos, np.float64), yaw, pitch

    def addCameraLocation(  # noqa: N802
        self, camera_id: str, d_pos: ArrayLike, d_yaw: float, d_pitch: float
    ) -> None:
        """Moves a camera along the axes of the world, and turns it further."""
        camera = self._of(camera_id)
        place = camera.place + np.array(d_pos, np.float64)
        self.updateCameraLocation(camera_id, place, camera.yaw + d_yaw, camera.pitch + d_pitch)

    def moveCamera(  # noqa: N802
        self, camera_id: str, d_pos: ArrayLike, d_yaw: float = 0.0, d_pitch: float = 0.0
    ) -> None:
        """Moves a camera along its own axes, forward, up and right, and turns it further."""
        camera = self._of(camera_id)
        ahead, up, right = np.array(d_pos, np.float64)
        sine, cosine = math.sin(camera.yaw), math.cos(camera.yaw)
        rise, level = math.sin(camera.pitch), math.cos(camera.pitch)
        moved = (
            ahead * np.array((-sine * level, rise, -cosine * level))
            + up * np.array((sine * rise, level, cosine * rise))
            + right * np.array((cosine, 0.0, -sine))
        )
        self.addCameraLocation(camera_id, moved, d_yaw, d_pitch)

    moveCameraLocation = moveCamera  # noqa: N815

    def _of(self, camera_id: str) -> _Camera:
        if camera_id not in self._cameras:
            raise UnknownNameError("camera", camera_id, self._cameras)
        return self._cameras[camera_id]
