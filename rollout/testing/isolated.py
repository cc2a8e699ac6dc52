"""A bridge whose instances run in their own processes, behind the plain ``Instance`` interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rollout.api import Bridge, BridgeSpec, Columns, Frame, Start
from rollout.errors import GameCrashed, OutOfTurnError
from rollout.host.handle import SubprocessHandle, await_result
from rollout.host.interpreter import interpreter_of

_CLOSE_S = 5.0


@dataclass(frozen=True)
class IsolatedBridge:
    """Another bridge with its games in their own processes.

    Attributes:
        bridge: the bridge.
        python: interpreter of the games; None for its own, or ours.
    """

    bridge: Bridge
    python: str | None = None

    @property
    def spec(self) -> BridgeSpec:
        """That of the bridge."""
        return self.bridge.spec

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> IsolatedInstance:
        """Starts a game; see ``rollout.api.Bridge``."""
        self.spec.require_width(width)
        python = interpreter_of(self.python, self.bridge)
        handle = SubprocessHandle(self.bridge, workdir, ports, width, python=python)
        try:
            handle.launch(timeout_s)
            await_result(handle, timeout_s)
        except BaseException:
            handle.close(0.0)
            raise
        return IsolatedInstance(handle)


class IsolatedInstance:
    """A game in its own process; see ``rollout.api.Instance``."""

    def __init__(self, handle: SubprocessHandle) -> None:
        self._handle, self._begun = handle, False

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots; see ``rollout.api.Instance``."""
        self._handle.reset(slots, starts, timeout_s)
        frame = self._frame(timeout_s)
        self._begun = True
        return frame

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action in every slot; see ``rollout.api.Instance``."""
        if not self._begun:
            raise OutOfTurnError("no slot was ever reset; reset one before the first step")
        self._handle.step(actions, timeout_s)
        return self._frame(timeout_s)

    def _frame(self, timeout_s: float) -> Frame:
        frame = await_result(self._handle, timeout_s)
        if frame is None:
            raise GameCrashed("the game replied without a frame")
        return frame

    def close(self) -> None:
        """Ends the game and every process it started. Idempotent; never raises."""
        self._handle.close(_CLOSE_S)
