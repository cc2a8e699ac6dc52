"""Data of MineLand's scripts: actions, observations, information on programs and the task."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.spaces import LOW_LEVEL, NEUTRAL
from bridges.mineflayer.spaces import NEW as NEW_PROGRAM
from bridges.mineflayer.spaces import RESUME as RESUME_PROGRAM
from rollout.errors import SpaceError

Event: TypeAlias = dict[str, Any]
"""What an agent noticed: a mapping with ``type``, ``tick``, ``message`` and more by type."""


@dataclass
class Action:
    """A program to begin, or to let continue.

    Attributes:
        type: ``RESUME`` or ``NEW``.
        code: the program, JavaScript; with ``RESUME`` it is not used.
    """

    RESUME: ClassVar[int] = RESUME_PROGRAM
    NEW: ClassVar[int] = NEW_PROGRAM

    type: int = RESUME_PROGRAM
    code: str = ""

    @staticmethod
    def no_op(agents_count: int) -> list[Action]:
        """Returns an action for each agent that lets its program continue."""
        return [Action() for _ in range(agents_count)]

    @staticmethod
    def chat_op(agents_count: int) -> list[Action]:
        """Returns an action for each agent that says hello with its number."""
        return [
            Action(Action.NEW, f"bot.chat('Hello, I am agent {number}.')")
            for number in range(agents_count)
        ]

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


class LowLevelAction(list[int]):
    """Eight whole numbers: move, strafe, posture, pitch, yaw, do, craft, slot.

    A new one does nothing. In MineLand its zeros turn by half a circle; see docs/mineland.md.

    Args:
        values: the numbers; those of doing nothing if None.
    """

    def __init__(self, values: Sequence[int] | None = None) -> None:
        super().__init__(NEUTRAL if values is None else values)
        if len(self) != len(LOW_LEVEL):
            raise SpaceError(f"a LowLevelAction has {len(LOW_LEVEL)} numbers, got {len(self)}")

    @staticmethod
    def no_op(agents_count: int) -> list[LowLevelAction]:
        """Returns an action for each agent that does nothing."""
        return [LowLevelAction() for _ in range(agents_count)]

    @staticmethod
    def random_op(agents_count: int) -> list[LowLevelAction]:
        """Returns a random action for each agent."""
        drawn = np.random.default_rng().integers(0, LOW_LEVEL, (agents_count, len(LOW_LEVEL)))
        return [LowLevelAction([int(n) for n in row]) for row in drawn]


class Fields:
    """Values by name, as attributes and as ``self["name"]``, which is None where there is none."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name, None)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and hasattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def keys(self) -> list[str]:
        """Returns the names."""
        return list(self.__dict__)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns a value, or the default where there is none."""
        return getattr(self, name, default)

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.__dict__.items() if not isinstance(v, np.ndarray)}
        return f"{type(self).__name__}({shown})"


class Observation(Fields):
    """The observation of one agent, with MineLand's field names; see docs/mineland.md.

    Attributes:
        rgb: the picture, ``(3, height, width)`` uint8; empty when headless.
    """

    rgb: NDArray[np.uint8]

    @property
    def rgb_base64(self) -> str:
        """The picture as a JPEG file in base64; empty when headless."""
        return as_base64(self.rgb.transpose(1, 2, 0)) if self.rgb.size else ""


def as_base64(picture: NDArray[np.uint8]) -> str:
    """Returns a picture ``(height, width, 3)`` as a JPEG file in base64."""
    file = cv2.imencode(".jpg", np.ascontiguousarray(picture[..., ::-1]))[1]
    return base64.b64encode(file.tobytes()).decode()


_UNKNOWN = ("blocks_movement", "cos_look_vec_angle")
"""Fields of ``voxels`` that MineLand has and never fills."""


_OURS = ("built", "code_info", "chat", "statistics")
"""Details that are no fields of MineLand's observations."""


def observation(details: Mapping[str, Any], rgb: NDArray[np.uint8] | None) -> Observation:
    """Returns the observation of an agent.

    Args:
        details: of its row of a frame.
        rgb: its picture ``(height, width, 3)``; None when headless.
    """
    said = {key: value for key, value in details.items() if key not in _OURS}
    picture = np.zeros((0, 0, 3), np.uint8) if rgb is None else rgb
    said["rgb"] = picture.transpose(2, 0, 1).copy()
    said["rgb_height"], said["rgb_width"] = picture.shape[:2]
    said["control_state"] = json.dumps(said["control_state"])
    said["voxels"] = {**said["voxels"], **dict.fromkeys(_UNKNOWN)}
    said["equip"] = {**said["equip"], "foot": said["equip"]["feet"], "leg": said["equip"]["legs"]}
    said["sound"] = "placeholder"
    return Observation(said)


class CodeInfo(Fields):
    """State of a program: name, is_running, is_ready, code_error, last_code, code_tick."""


@dataclass
class TaskInfo:
    """The task, and how it goes; the fields are MineLand's.

    Attributes:
        task_id: id of the task.
        is_success: whether it is accomplished.
        is_failed: whether it has failed.
        goal: what is asked.
        guidance: advice.
        score: of a building, the share that is built, 0 to 1.
        local_score: of a play, its key actions that were played, 0 to 1.
        global_score: of a play, the share of actions that are the script's, 0 to 1.
        mode: ``cooperative`` or ``competitive``.
        target: creatures to fight that agent 0 perceives; None in other tasks.
        blueprint: picture of what is to be built, ``(height, width, 3)`` uint8; None without one.
    """

    task_id: str
    is_success: bool = False
    is_failed: bool = False
    goal: str = ""
    guidance: str = ""
    score: float = 0.0
    local_score: float = 0.0
    global_score: float = 0.0
    mode: str = "cooperative"
    target: Any = None
    blueprint: NDArray[np.uint8] | None = None

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key, None)
