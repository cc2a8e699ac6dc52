"""The chaos game as an ``Instance``: its frames are views of the rows that the game sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bridges.chaos.game import BEGIN, DIFFICULTIES, RESET, ROW, STEP, Layout, Walk, memory_mb
from bridges.chaos.plan import EpisodeKey, FaultPlan, Phase, Strike, worst
from bridges.chaos.process import GameProcess
from rollout.api import Array, Columns, Frame, Start, StateSpace, check_slots
from rollout.errors import GameError, OutOfTurnError, SpaceError

ACTION, WALKER, STEPS = "action", "walker", "steps"
SEED, DIFFICULTY = "seed", "difficulty"
RSS = "rss_mb"

# The same layout as ``ROW``, which the game writes without numpy.
_ROW = np.dtype(
    {
        "names": ["tick", WALKER, "reward", "position", "distance", RSS, "over"],
        "formats": ["<i8", ("<f4", 4), "<f4", "<f4", "<f4", "<f4", "?"],
        "offsets": [0, 8, 24, 28, 32, 36, 40],
        "itemsize": ROW.size,
    }
)
_LEVELS = {name: number for number, name in enumerate(DIFFICULTIES)}

ACTIONS = 3  # stay, up, down
_NOTHING = Strike()

Begin = tuple[int, int, int, int]
"""Slot, seed of the episode, seed of the layout, number of the difficulty."""


class Engine(Protocol):
    """The interface to what plays the walk."""

    @property
    def rows(self) -> bytearray:
        """State of every slot, ``width`` times ``bridges.chaos.game.ROW``, always this buffer."""
        ...

    def reset(self, begins: Sequence[Begin], strike: Strike, timeout_s: float) -> None:
        """Begins episodes; raises ``GameError``."""
        ...

    def step(self, actions: bytes, strike: Strike, timeout_s: float) -> None:
        """Plays an action in each slot; raises ``GameError``."""
        ...

    def close(self, strike: Strike) -> None:
        """Ends it; never raises."""
        ...


class LocalEngine:
    """The walk in this process: takes no time and has no faults."""

    def __init__(self, walk: Walk, *, show_memory: bool) -> None:
        self._walk, self._show_memory = walk, show_memory

    @property
    def rows(self) -> bytearray:
        """See ``Engine``."""
        return self._walk.rows

    def reset(self, begins: Sequence[Begin], strike: Strike, timeout_s: float) -> None:
        """See ``Engine``."""
        del strike, timeout_s
        mb = self._memory()
        for begin in begins:
            self._walk.reset(*begin, mb)

    def step(self, actions: bytes, strike: Strike, timeout_s: float) -> None:
        """See ``Engine``."""
        del strike, timeout_s
        self._walk.step(actions, self._memory())

    def _memory(self) -> float:
        return memory_mb() if self._show_memory else 0.0

    def close(self, strike: Strike) -> None:
        """See ``Engine``."""


class ProcessEngine:
    """The walk in the game's process."""

    def __init__(self, process: GameProcess, width: int) -> None:
        self.process = process
        self.rows = bytearray(width * ROW.size)
        self._shown = np.frombuffer(self.rows, _ROW)

    def reset(self, begins: Sequence[Begin], strike: Strike, timeout_s: float) -> None:
        """See ``Engine``."""
        body = b"".join(BEGIN.pack(*begin) for begin in begins)
        self._ask("reset", RESET, body, strike, timeout_s)

    def step(self, actions: bytes, strike: Strike, timeout_s: float) -> None:
        """See ``Engine``."""
        self._ask("step", STEP, actions, strike, timeout_s)

    def _ask(
        self, phase: Phase, what: bytes, body: bytes, strike: Strike, timeout_s: float
    ) -> None:
        size = len(self.rows)
        self.rows[:] = self.process.ask(phase, what, body, strike, size=size, timeout_s=timeout_s)
        if not np.isfinite(self._shown[WALKER]).all():
            raise self.process.garbage(phase, f"observation {WALKER!r} is not finite")

    def close(self, strike: Strike) -> None:
        """See ``Engine``."""
        self.process.close_with(strike)


class ChaosInstance:
    """``width`` walkers of one game, which start and end together.

    Args:
        engine: plays the walk.
        plan: decides the course of each request; None for no chaos at all.
        space: state space of the bridge.
        mean_steps: mean length of an episode in steps, the same as in the engine.
        show_memory: whether there is a signal ``rss_mb``.
    """

    def __init__(
        self,
        engine: Engine,
        plan: FaultPlan | None,
        space: StateSpace,
        *,
        mean_steps: int,
        show_memory: bool,
    ) -> None:
        self.engine, self._plan, self._space = engine, plan, space
        self._mean_steps = mean_steps
        rows: Array = np.frombuffer(engine.rows, _ROW)
        self._width = len(rows)
        self._over, self._tick = rows["over"], rows["tick"]
        self._keys: list[EpisodeKey | None] = [None] * self._width
        signals: Columns = {name: rows[name] for name in ("reward", "position", "distance")}
        signals[STEPS] = rows["tick"]
        if show_memory:
            signals[RSS] = rows[RSS]
        self._frame = Frame(
            {WALKER: rows[WALKER], STEPS: rows["tick"][:, None]},
            signals,
            rows["over"],
            np.zeros(self._width, np.bool_),
            rows["tick"],
        )
        self._everyone = range(self._width)
        self._closed = False
        self._ended = ""  # why no more requests are accepted

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots; see ``rollout.api.Instance``."""
        self._require_running()
        rows = check_slots("chaos", self._width, slots, len(starts))
        begins = [self._begin(row, start) for row, start in zip(rows, starts, strict=True)]
        for (row, _, seed, level), start in zip(begins, starts, strict=True):
            shortest = Layout(seed, level, self._mean_steps).distance
            self._keys[row] = EpisodeKey(start.seed, start.attempt, shortest)
            self._tick[row] = 0
        strike = self._strike("reset", rows, 0)
        try:
            self.engine.reset(begins, strike, timeout_s)
        except GameError:
            self._fail()
            raise
        return self._frame if rows == list(range(self._width)) else self._frame.take(rows)

    def _begin(self, row: int, start: Start) -> Begin:
        values = self._space.state(self._space.index(start.state.values)).values
        return row, start.seed, int(values[SEED]), _LEVELS[str(values[DIFFICULTY])]

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action in every slot that is not over; see ``rollout.api.Instance``."""
        self._require_running()
        keys = self._keys
        if not any(keys):
            raise OutOfTurnError(
                "chaos: no slot was ever reset; reset at least one before the first step"
            )
        played = actions[ACTION].tolist()
        if len(played) != self._width or not all(0 <= action < ACTIONS for action in played):
            raise SpaceError(
                f"chaos: expected {self._width} actions from 0 to {ACTIONS - 1} in the column "
                f"{ACTION!r}, got {played}"
            )
        strike = _NOTHING
        if self._plan is not None:
            over = self._over.tolist()
            strike = self._strike("step", [row for row in self._everyone if not over[row]], 1)
        try:
            self.engine.step(bytes(played), strike, timeout_s)
        except GameError:
            self._fail()
            raise
        return self._frame

    def _fail(self) -> None:
        # At once: a host that abandons a game may not close it, and it would hang forever.
        self._closed, self._ended = True, "has failed"
        self.engine.close(_NOTHING)

    def _strike(self, phase: Phase, rows: Sequence[int], ahead: int) -> Strike:
        """Returns the combined request of some slots, ``ahead`` steps after the current ones."""
        if self._plan is None:
            return _NOTHING
        played = [(self._keys[row], int(self._tick[row]) + ahead) for row in rows]
        return worst([self._plan.of_episode(phase, key, tick) for key, tick in played if key])

    def close(self) -> None:
        """Ends the game and all its processes except an orphan. Idempotent; never raises."""
        if not self._closed:
            self._closed, self._ended = True, "is closed"
            self.engine.close(self._strike("close", self._everyone, 0))

    def _require_running(self) -> None:
        if self._ended:
            raise OutOfTurnError(f"chaos: the game {self._ended}; launch another")
