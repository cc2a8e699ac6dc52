"""Shared code of the evaluators of MineLand's tasks: the agents of a world are judged together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api import Columns, Details, Frame, Outcome, Start, Verdict
from rollout.api.types import Bools, Floats
from rollout.errors import ConfigError

SLOTS = 36
"""Slots of the main inventory: what harvest and tech tree tasks count."""


class WorldJudge:
    """Judges ``width`` slots, ``agents`` of each world together.

    Subclasses say what share of the task is done and when it is decided. Progress is the current
    share; reward is paid once for each new part of it, so parts that are lost and regained pay
    nothing. An agent whose own game ends before success has failed for itself. Arrays that were
    returned are never written again.

    Args:
        width: slots of the instance.
        agents: agents of a world; slots ``k * agents`` to ``(k + 1) * agents - 1`` are one.
        reward: reward for the whole task, paid in parts.
    """

    def __init__(self, width: int, agents: int, reward: float) -> None:
        if width % agents:
            raise ConfigError(
                f"evaluator: width {width} is no multiple of agents={agents}; give the evaluator "
                f"the number of agents that the bridge has"
            )
        self.width, self.agents = width, agents
        self.known: Bools = np.zeros(width, np.bool_)
        self.over: Bools = np.zeros(width, np.bool_)
        self._reward = np.float32(reward)
        self._share: Floats = np.zeros(width, np.float32)
        self._best: Floats = np.zeros(width, np.float32)
        self._outcome = np.full(width, Outcome.RUNNING, np.int8)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Resets some slots."""
        rows = list(slots)
        self.known[rows] = True
        self.over, self._outcome = self.over.copy(), self._outcome.copy()
        self._share, self._best = self._share.copy(), self._best.copy()
        self.over[rows] = frame.game_over | frame.game_truncated
        self._outcome[rows] = Outcome.RUNNING
        self.begin(rows, starts, frame)
        self._share[rows] = self._best[rows] = np.clip(self.share()[rows], 0.0, 1.0)

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the verdict on a step; see ``rollout.api.Evaluator``."""
        playing = ~self.over
        self.watch(np.flatnonzero(playing).tolist(), frame)
        share = np.clip(self.share(), 0.0, 1.0).astype(np.float32)
        share = np.where(playing, share, self._share)
        best = np.maximum(share, self._best)
        reward = (best - self._best) * self._reward + self.extra_reward(frame)
        self._share, self._best = share, best
        success, failure = self.decided(share, frame)
        failure = (failure | frame.game_over) & ~success
        decided = playing & (success | failure)
        said = np.where(success, np.int8(Outcome.SUCCESS), np.int8(Outcome.FAILURE))
        self._outcome = np.where(decided, said, self._outcome)
        self.over = self.over | decided | frame.game_over | frame.game_truncated
        reward = np.where(playing, reward, 0.0).astype(np.float32)
        return Verdict(reward, share, self._outcome)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        """Begins new episodes; ``frame`` has one row for each of ``rows``."""
        raise NotImplementedError

    def watch(self, rows: list[int], frame: Frame) -> None:
        """Processes a step; only ``rows``, which still play, have changed."""
        raise NotImplementedError

    def share(self) -> NDArray[np.float64]:
        """Returns the current share of the task that is done, ``(width,)``; above 1 counts as 1."""
        raise NotImplementedError

    def extra_reward(self, frame: Frame) -> Any:
        """Returns the reward in addition to that for progress, ``(width,)`` or a number."""
        del frame
        return 0.0

    def decided(self, share: Floats, frame: Frame) -> tuple[Bools, Bools]:
        """Returns which agents have succeeded and failed, apart from games that end."""
        del frame
        return share >= 1.0, np.zeros(self.width, np.bool_)

    def together(self, values: NDArray[Any], reduce: Any) -> NDArray[Any]:
        """Returns each row's value reduced over the agents of its world (e.g. by ``np.sum``)."""
        worlds = values.reshape(-1, self.agents)
        return np.repeat(reduce(worlds, axis=1), self.agents)

    def against(self, success: Bools) -> tuple[Bools, Bools]:
        """Returns which agents have won and lost where the first to succeed wins its world."""
        won: Bools = success & ~self.over
        lost: Bools = self.together(success, np.any).astype(np.bool_) & ~success
        return won, lost


def detail(frame: Frame, row: int) -> Details:
    """Returns the details of a row; an empty mapping if there are none."""
    return {} if frame.details is None else frame.details[row]


def count_of(details: Details, item: str) -> int:
    """Returns how many of an item are in the 36 slots of the main inventory."""
    inventory = details.get("inventory")
    if not inventory:
        return 0
    pairs = zip(inventory["name"][:SLOTS], inventory["quantity"][:SLOTS], strict=True)
    return sum(int(quantity or 0) for name, quantity in pairs if name == item)


def items_of(details: Details) -> set[str]:
    """Returns the names of the items in the main inventory."""
    inventory = details.get("inventory")
    return {name for name in inventory["name"][:SLOTS] if name} if inventory else set()
