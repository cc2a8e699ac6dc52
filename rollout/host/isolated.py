"""Any bridge with its games in their own processes, behind the plain ``Instance`` interface.

For code that wants one game and waits for it; the conformance suite of bridges runs over it, so
that what crosses the process boundary is shown to keep the contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from rollout.api import Bridge, BridgeSpec, Columns, Frame, Instance, Start
from rollout.errors import (
    GameCrashed,
    GameError,
    GameStartError,
    GameTimeout,
    OutOfTurnError,
)
from rollout.host.handle import SubprocessHandle

_GRACE_S = 0.5  # time for a game with its own timeout to report it


@dataclass(frozen=True)
class IsolatedBridge:
    """The same game, one process per instance.

    Attributes:
        bridge: recipe of the game.
    """

    bridge: Bridge

    @property
    def spec(self) -> BridgeSpec:
        """That of the game."""
        return self.bridge.spec

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Starts a process and the game in it; see ``rollout.api.Bridge``.

        Raises:
            ConfigError: the game cannot have that width.
            GameStartError: the process or the game did not come up.
        """
        self.spec.require_width(width)
        return _IsolatedInstance(SubprocessHandle(self.bridge, workdir, ports, width), timeout_s)


class _IsolatedInstance:
    def __init__(self, handle: SubprocessHandle, timeout_s: float) -> None:
        self._handle: SubprocessHandle | None = handle
        self._begun = False
        handle.launch(timeout_s)
        try:
            self._result("start", timeout_s)
        except GameStartError:
            raise
        except GameError as error:
            raise GameStartError(str(error)) from error

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """See ``rollout.api.Instance``."""
        self._running().reset(slots, starts, timeout_s)
        frame = self._frame("reset", timeout_s)
        self._begun = True
        return frame

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """See ``rollout.api.Instance``."""
        handle = self._running()
        if not self._begun:
            raise OutOfTurnError("no slot was ever reset; reset at least one before a step")
        handle.step(actions, timeout_s)
        return self._frame("step", timeout_s)

    def _running(self) -> SubprocessHandle:
        if self._handle is None:
            raise OutOfTurnError("the game was closed or has died; launch another")
        return self._handle

    def _frame(self, phase: str, timeout_s: float) -> Frame:
        frame = self._result(phase, timeout_s)
        if frame is None:
            raise GameCrashed(f"the game answered a {phase} without a frame")
        return frame

    def _result(self, phase: str, timeout_s: float) -> Frame | None:
        handle = self._running()
        try:
            if not wait([handle.waitable], timeout_s + _GRACE_S):
                raise GameTimeout(f"no answer to {phase} within {timeout_s:g} s")
            return handle.result()
        except GameError as error:
            notice = handle.death_notice()
            handle.close(0.0)
            self._handle = None
            raise type(error)(f"{error} [{notice}]") from error

    def close(self) -> None:
        """Ends the game and all that it started."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close(5.0)
