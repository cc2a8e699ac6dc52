"""The instance of the bridges in this package: a plain loop over games in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from bridges.gymnasium.columns import ActionReader, ObservationColumns
from bridges.gymnasium.masks import warn_of_info
from rollout.api import Columns, FlatSpace, Frame, Start, check_slots
from rollout.errors import GameCrashed, GameTimeout, OutOfTurnError, StateError, raise_signal

REWARD = "reward"
"""Signal of every game: the game's own reward of the step, 0 after a reset."""

SEED = "seed"
"""Factor of every state space here, and the only one of most."""


class Game(Protocol):
    """Methods of a game that the loop calls; every ``gymnasium.Env`` has them."""

    def reset(self, *, seed: int) -> tuple[Any, Any]:
        """Returns the first observation and its info."""
        ...

    def step(self, action: Any, /) -> tuple[Any, Any, Any, Any, Any]:
        """Returns observation, reward, terminated, truncated and info."""
        ...

    def close(self) -> object:
        """Releases what the game uses."""
        ...


class Facts(Protocol):
    """Reads the signals other than the reward from a game's info."""

    @property
    def columns(self) -> Columns:
        """Buffers of the signals, ``{key: (width,)}``."""
        ...

    def write(self, info: Any, row: int, /) -> None:
        """Copies the signals of one game into a row."""
        ...


class GymnasiumInstance:
    """``width`` games that step one after another in this process.

    Deadlines cannot be enforced on code that runs in the caller's own process: if a game never
    returns, neither does the call. ``reset`` checks the deadline between two slots; ``step`` does
    not.
    """

    def __init__(
        self,
        name: str,
        games: Sequence[Game],
        observation: FlatSpace,
        action: FlatSpace,
        *,
        facts: Facts | None = None,
        ticks_per_step: int = 1,
        check_bounds: bool = True,
        options: Sequence[str] = (),
        width: int | None = None,
    ) -> None:
        width = len(games) if width is None else width
        self._name, self._width = name, width
        self._games: list[Any] = list(games)  # those with ``options`` accept them in ``reset``
        self._options = options
        self._steps = [game.step for game in games]
        self._shown = shown = ObservationColumns(observation, width, check_bounds=check_bounds)
        self._write, self._check, self._details = shown.write, shown.check, shown.details
        self._reader = ActionReader(action, width)
        self._read = self._reader.read
        self._facts: Callable[[Any, int], None] | None = facts.write if facts else None
        self._reward = np.zeros(width, np.float32)
        self._tick = np.zeros(width, np.int64)
        self._ticks_per_step = ticks_per_step
        self._advance = np.zeros(width, np.int64)  # ticks that a step adds: 0 where a slot is over
        self._frame = Frame(
            shown.columns,
            {REWARD: self._reward, **(facts.columns if facts else {})},
            np.zeros(width, np.bool_),
            np.zeros(width, np.bool_),
            self._tick,
            shown.details,
        )
        self._unready = set(range(width))  # slots that have never been reset
        self._live: list[int] = []  # slots that a step moves, in order
        self._closed = False

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots; see ``rollout.api.Instance``."""
        deadline = time.monotonic() + timeout_s
        if self._closed:
            raise self._out_of_turn()
        rows = check_slots(self._name, self._width, slots, len(starts))
        begins = [self._beginning(start) for start in starts]
        self._begin(rows, begins, deadline, timeout_s)
        frame = self._frame
        frame.game_over[rows] = frame.game_truncated[rows] = False
        frame.tick[rows] = 0
        self._advance[rows] = self._ticks_per_step
        self._unready.difference_update(rows)
        self._live = sorted({*self._live, *rows})
        if self._check is not None:
            self._check(rows)
        if self._details is not None:
            frame.details = list(self._details)
        return frame if rows == list(range(self._width)) else frame.take(rows)

    def _begin(
        self,
        rows: Sequence[int],
        begins: Sequence[dict[str, Any]],
        deadline: float,
        timeout_s: float,
    ) -> None:
        """Resets the games of some slots and writes what they show."""
        for number, (row, begin) in enumerate(zip(rows, begins, strict=True)):
            if number and time.monotonic() > deadline:
                raise GameTimeout(
                    f"{self._name}: {number} of {len(rows)} slots were reset within {timeout_s} s; "
                    f"give the reset more time, or the instance fewer slots"
                )
            try:
                observation, info = self._games[row].reset(**begin)
                self._write(observation, row)
                warn_of_info(self._name, info, self._shown.columns)
                self._reward[row] = 0.0
                if self._facts is not None:
                    self._facts(info, row)
            except Exception as error:
                raise self._crash("reset", row, error) from error

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action in every slot that is not over; see ``rollout.api.Instance``."""
        if len(self._unready) == self._width:
            raise self._out_of_turn()
        live, frame = self._live, self._frame
        if not live:
            return frame
        ended = self._play(actions, live)
        np.add(self._tick, self._advance, self._tick)
        if self._check is not None:
            # Checking all rows at once is fast, but rows never written may be out of bounds.
            self._check(live if self._unready else None)
        if self._details is not None:
            frame.details = list(self._details)  # a list that was returned before is not changed
        if ended:
            over = frame.game_over | frame.game_truncated
            self._live = [row for row in live if not over[row]]
            self._advance[over] = 0
        return frame

    def _play(self, actions: Columns, live: Sequence[int]) -> bool:
        """Steps the live slots and writes what they show; returns whether an episode ended."""
        values, frame = self._read(actions, live), self._frame
        steps, write, facts, reward = self._steps, self._write, self._facts, self._reward
        ended = False
        row = live[0]
        try:
            for row, value in zip(live, values):  # noqa: B905 - one value for each, see ActionReader
                observation, gain, over, cut, info = steps[row](value)
                write(observation, row)
                reward[row] = gain
                if facts is not None:
                    facts(info, row)
                if over or cut:
                    frame.game_over[row], frame.game_truncated[row] = over, cut
                    ended = True
        except Exception as error:
            raise self._crash("step", row, error) from error
        return ended

    def close(self) -> None:
        """Closes every game. Idempotent; never raises."""
        self._closed = True
        self._unready = set(range(self._width))
        games, self._games = self._games, []
        close_games(games)

    def _beginning(self, start: Start) -> dict[str, Any]:
        """The arguments of a game's ``reset``."""
        values, seed = start.state.values, _seed(start)
        if not self._options:
            return {"seed": seed}
        return {"seed": seed, "options": {name: values[name] for name in self._options}}

    def _crash(self, phase: str, row: int, error: Exception) -> GameCrashed:
        kind = "" if isinstance(error, GameCrashed) else f"{type(error).__name__}: "
        return GameCrashed(f"{self._name}: {phase} of slot {row} failed: {kind}{error}")

    def _out_of_turn(self) -> OutOfTurnError:
        if self._closed:
            return OutOfTurnError(f"{self._name}: the instance is closed; launch another")
        return OutOfTurnError(
            f"{self._name}: no slot was ever reset; reset at least one before the first step"
        )


def _seed(start: Start) -> int:
    seed = start.state.values.get(SEED)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise StateError(
            f"expected a state with the factor {SEED!r}, an integer from 0, got "
            f"{dict(start.state.values)}; take states from the bridge's state space"
        )
    return seed


def close_games(games: Sequence[Game]) -> None:
    """Closes games; never raises, so that one broken game does not keep the others open."""
    for game in games:
        try:
            game.close()
        except BaseException as error:  # noqa: BLE001 - also an exit; the game is abandoned
            raise_signal(error)
