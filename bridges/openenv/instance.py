"""A game behind a server, as an instance of one slot."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from bridges.openenv.columns import Shape
from rollout.api import Columns, ColumnSpec, Details, Frame, Start, check_slots
from rollout.errors import GameCrashed, OutOfTurnError

SIGNALS = {"reward": ColumnSpec("float32", doc="the server's reward of the step; 0 at the reset")}
_LARGEST_REWARD = float(np.finfo(np.float32).max)
TEXT, MISSION = "text", "mission"  # entries of details that policies of language models show


@dataclass(frozen=True)
class Reply:
    """What a server answered to a reset or a step.

    Attributes:
        observation: by field.
        reward: of the step.
        done: whether the episode has ended.
        truncated: whether it was cut at a limit of the server.
        error: why the server did not take the action; the game is as before then.
        details: further data.
    """

    observation: Mapping[str, Any]
    reward: float = 0.0
    done: bool = False
    truncated: bool = False
    error: str = ""
    details: Details = field(default_factory=dict)


class Session(Protocol):
    """One game on a server."""

    def reset(self, start: Start, *, timeout_s: float) -> Reply:
        """Begins an episode."""
        ...

    def step(self, action: Mapping[str, Any], *, timeout_s: float) -> Reply:
        """Plays an action."""
        ...

    def close(self) -> None:
        """Ends the game and what was started for it. Idempotent; never raises."""
        ...


class ServedInstance:
    """One slot that a session plays.

    Args:
        name: of the game, for messages.
        session: the game.
        shape: how its data becomes columns.
        mission: goal that is told to policies; empty for none.
    """

    def __init__(self, name: str, session: Session, shape: Shape, mission: str = "") -> None:
        self._name, self._session, self._shape = name, session, shape
        self._always = {MISSION: mission} if mission else {}
        self._frame: Frame | None = None

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode; see ``rollout.api.Instance``."""
        if not check_slots(self._name, 1, slots, len(starts)):
            return self._last().take([])
        reply = self._session.reset(starts[0], timeout_s=timeout_s)
        self._frame = self._framed(reply, self._shape.write(reply.observation), 0.0, 0)
        return self._frame

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action unless the episode is over; see ``rollout.api.Instance``."""
        last = self._last()
        if last.game_over[0] or last.game_truncated[0]:
            return last
        try:
            action = self._shape.action(actions)
        except ValueError as error:
            reply = Reply({}, error=str(error))
        else:
            reply = self._session.step(action, timeout_s=timeout_s)
        seen = last.observations if reply.error else self._shape.write(reply.observation)
        self._frame = self._framed(reply, seen, reply.reward, int(last.tick[0]) + 1)
        return self._frame

    def _framed(self, reply: Reply, seen: Columns, reward: float, tick: int) -> Frame:
        told = {}
        if reply.error:
            again = [str(text) for text in seen.get(TEXT, ())]  # hidden by the text of the details
            told = {"error": reply.error, TEXT: "\n".join([reply.error, *again])}
        return Frame(
            seen,
            {"reward": np.array([reward], np.float32)},
            np.array([reply.done and not reply.truncated]),
            np.array([reply.truncated]),
            np.array([tick], np.int64),
            [{**self._always, **reply.details, **told}],
        )

    def _last(self) -> Frame:
        if self._frame is None:
            raise OutOfTurnError(f"{self._name}: no slot was reset; reset it before a step")
        return self._frame

    def close(self) -> None:
        """Ends the game; see ``rollout.api.Instance``."""
        self._frame = None
        self._session.close()


def reward_of(value: Any, where: str) -> float:
    """Returns the reward that a server gave; null is the protocol's word for no reward, 0.

    Args:
        value: what it gave.
        where: what gave it, for the message.

    Raises:
        GameCrashed: it is no finite number.
    """
    if value is None:
        return 0.0
    if isinstance(value, int | float) and abs(value) <= _LARGEST_REWARD:
        return float(value)
    raise GameCrashed(f"{where}: expected a finite number as the reward, got {str(value)[:200]}")


def flag_of(value: Any, where: str) -> bool:
    """Returns a yes or no that a server gave, false for null.

    Args:
        value: what it gave.
        where: what gave it, and which field, for the message.

    Raises:
        GameCrashed: it is neither a boolean, nor 0 or 1.
    """
    if value is None or value in (0, 1):
        return bool(value)
    raise GameCrashed(f"{where}: expected true or false, got {str(value)[:200]}")


def left(deadline: float) -> float:
    """Returns the seconds until a deadline on the monotonic clock, at least 0."""
    return max(0.0, deadline - time.monotonic())
