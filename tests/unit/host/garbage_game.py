"""Games that answer with garbage, for tests of their hosts; importable by a game's own process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.errors import GameCrashed
from rollout.testing.fakes import FakeBridge, FakeInstance


class SilentError(Exception):
    """Carries nothing."""


class TextFails(GameCrashed):
    """Cannot be shown, nor travel."""

    def __init__(self) -> None:
        super().__init__("text_fails")
        self.held = lambda: None

    def __str__(self) -> str:
        raise RuntimeError("no text")


def cycle() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["again"] = [found]
    return found


def nest(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def laughs() -> list[Any]:
    """A value that is small in memory and huge when written."""
    found: list[Any] = ["ha"]
    for _ in range(50):
        found = [found, found]
    return found


MADE: dict[str, Callable[[], object]] = {
    "object": object,
    "set": lambda: {1, 2},
    "function": lambda: len,
    "complex": lambda: 1j,
    "cycle": cycle,
    "deep": lambda: nest(10_000),
    "laughs": laughs,
    "huge": lambda: 10**5000,
    "both": lambda: {1: "a", "1": "b"},
    "objects": lambda: np.array([object()], object),
}
"""What does not convert, by name; some of it could not travel to a game's process."""

RAISED: dict[str, type[BaseException]] = {
    "interrupt": KeyboardInterrupt,
    "exit": SystemExit,
    "end of file": EOFError,
    "silent": SilentError,
    "text_fails": TextFails,
    "no memory": MemoryError,
}


@dataclass(frozen=True)
class GarbageBridge(FakeBridge):
    """The fake with a flaw in each episode, in the frame of its first tick.

    Attributes:
        details: what stands under ``junk`` in the details of every step.
        flaws: of the episodes in turn: a key of ``MADE``, ``RAISED`` or of ``_break``; "" for none.
        chat: text of an observation in a ``Text`` space.
    """

    details: Any = None
    flaws: tuple[str, ...] = ("",)
    chat: str | None = None
    with_details: bool = True

    @cached_property
    def spec(self):
        spec = super().spec
        if self.chat is None:
            return spec
        observed = {**spec.observation_space.spaces, "chat": spaces.Text(20)}
        return dataclasses.replace(spec, observation_space=spaces.Dict(observed))

    def launch(self, workdir, ports, *, width, timeout_s):
        return GarbageInstance(self, workdir, width)


class GarbageInstance(FakeInstance):
    def reset(self, slots, starts, *, timeout_s):
        (start,) = starts
        self.flaw = self.bridge.flaws[start.episode % len(self.bridge.flaws)]
        return super().reset(slots, starts, timeout_s=timeout_s)

    def _frame(self):
        frame = super()._frame()
        bridge = self.bridge
        frame.details = [{**d, "junk": bridge.details} for d in frame.details]
        if bridge.chat is not None:
            texts = [f"{bridge.chat} {tick}" for tick in self._tick]
            frame.observations["chat"] = np.array(texts, object)
        return self._break(frame, self.flaw) if self.flaw and self._tick[0] == 1 else frame

    def _break(self, frame, flaw):
        if flaw in RAISED:
            raise RAISED[flaw]
        if flaw in MADE:
            frame.details[0] = {"deep": {"down": MADE[flaw]()}}
            return frame
        position = frame.observations["position"]
        changes = {
            "no frame": lambda: None,
            "no column": lambda: frame.observations.pop("position"),
            "list": lambda: frame.observations.update(position=position.tolist()),
            "wrong shape": lambda: frame.observations.update(position=position[:, :1]),
            "too many rows": lambda: frame.observations.update(position=position.repeat(2, 0)),
            "wrong dtype": lambda: frame.observations.update(position=position.astype("U3")),
            "nan": lambda: frame.observations.update(position=position * np.nan),
            "text reward": lambda: frame.signals.update(reward=np.array(["much"], object)),
            "nan reward": lambda: frame.signals.update(reward=self._reward * np.nan),
            "infinite reward": lambda: frame.signals.update(reward=self._reward + np.inf),
            # A number of float64, finite there.
            "large reward": lambda: frame.signals.update(reward=np.full(1, 1e39)),
            "more details": lambda: frame.details.append({}),
            "details of text": lambda: frame.details.__setitem__(0, "text"),
            "details of number": lambda: setattr(frame, "details", 7),
            "numbers for text": lambda: frame.observations.update(chat=np.zeros(1)),
            "over of text": lambda: setattr(frame, "game_over", np.array(["no"])),
        }
        changes[flaw]()
        return None if flaw == "no frame" else frame
