"""Games that clients play one at a time: what every server, trainer and benchmark here uses.

::

    with Games("crafter", "collect_wood", games=8) as games:
        game = games.open()
        moment = game.reset(seed=3, split="test", index=0)
        while not moment.done:
            moment = game.step(choose(moment.text(), moment.pictures()))
        print(moment.result)

Games are hosted as everywhere else (``rollout.host``): in their own processes where they may fail,
with time limits, judged by the task's evaluator, replaced when they fail. An episode with the same
state and seed is the same, step by step, as in a run of ``gamut collect``.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import cached_property
from typing import Any, Self, TypeAlias, cast

import numpy as np
from gymnasium import spaces

from rollout.api import (
    PRIVILEGED,
    Array,
    Bridge,
    BridgeSpec,
    Columns,
    Start,
    State,
    StateSet,
    Task,
    check_columns,
    leaf_dtype,
)
from rollout.config import BridgeConfig, HostConfig, Section, StateSetConfig, key, make_config
from rollout.errors import ConfigError, OutOfTurnError, SpaceError, StateError, UnknownNameError
from rollout.host.pool import Pool
from rollout.host.processes import owned_workdir, remove_workdir
from rollout.host.schedule import episode_seed
from rollout.interop.driver import Driver, Played
from rollout.interop.failures import BusyError, CapacityError
from rollout.interop.moments import Moment
from rollout.models.grammar import Grammar, columns_of
from rollout.models.legal import LegalActions
from rollout.tasks import bridge_and_task, load_task

SPLITS = ("train", "validation", "test")
Source: TypeAlias = "str | Mapping[str, Any] | BridgeConfig | Bridge"


class _GameOf(Section):
    """The game that the caller of ``Games`` names."""

    bridge: BridgeConfig = key(..., "The game.")


def bridge_of(bridge: Source, task: str | Mapping[str, Any] | Task) -> tuple[Bridge, Task]:
    """Returns a bridge with the options that its task needs, and the task.

    Args:
        bridge: name of a bridge, its name and options as ``{name: crafter, size: 64}``, its
            configuration, or a recipe.
        task: name of a task, path or contents of a task file, or a task; empty for the game's own
            reward.

    Raises:
        InputError: there is no such bridge, option or task.
    """
    if isinstance(bridge, str | Mapping):
        bridge = make_config(_GameOf, {"bridge": bridge}).bridge
    if isinstance(bridge, BridgeConfig):
        if not isinstance(task, Task):
            return bridge_and_task(bridge, task)[1:]
        bridge = cast("Bridge", bridge.build())
    if isinstance(task, Mapping):
        raise ConfigError("the contents of a task need the name of its bridge, got a recipe")
    if isinstance(task, str):
        task = load_task(bridge.spec, bridge.spec.name, task)
    task.check(bridge.spec)
    return bridge, task


class Game:
    """One game of ``Games.open``, played by one client at a time.

    ``submit_reset`` and ``submit_step`` return a future at once, ``reset_async`` and ``step_async``
    are for asyncio; a request while another one is not answered raises ``BusyError``. Input is
    checked when a request is made; a request that is refused changes nothing.

    Attributes:
        number: its number among the games.
        last: the last moment; None before the first reset, and after a loss.
    """

    def __init__(self, games: Games, number: int) -> None:
        self.number = number
        self.last: Moment | None = None
        self._games, self._lock = games, threading.Lock()
        self._pending: Future[Moment] | None = None
        self._closed = False

    def reset(
        self,
        *,
        seed: int | None = None,
        split: str | None = None,
        index: int | None = None,
        state: int | Mapping[str, Any] | State | None = None,
    ) -> Moment:
        """Begins an episode; one in progress is left without a result.

        Without arguments, or with ``split`` alone, the next episode of a run of ``gamut collect``
        with the seed and the state set of the games begins: each such reset of any game takes the
        next one.

        Args:
            seed: seed of the episode, from 0 to 2**63 - 1. None for that of the same episode in
                such a run: it follows from the seed of the games and ``index``.
            split: train, validation or test; None for the state set of the games.
            index: number of the state in that set; None draws one by ``seed``, if there is one.
            state: index in the whole state space, values by factor, or a state; instead of
                ``split`` and ``index``.

        Raises:
            InputError: there is no such split, index or state, or the seed is out of range.
            BusyError: an earlier request is not answered.
            GameLost: the game failed in every attempt; ``host.retries`` bounds them.
            OutOfTurnError: the game is closed.
        """
        return self.submit_reset(seed=seed, split=split, index=index, state=state).result()

    def step(self, action: Any) -> Moment:
        """Plays an action.

        Args:
            action: text or data in the form of ``games.grammar`` (its ``description`` and
                ``schema`` tell it); a mapping of columns to such data, also where there is only
                one column; or a mapping of columns to arrays or numbers of NumPy, which are played
                as they are, if they belong to the spaces.

        Raises:
            UnusableAnswerError: it is no action, or not legal now; the game is as before.
            SpaceError: arrays do not fit the action space; likewise.
            BusyError: an earlier request is not answered.
            OutOfTurnError: there is no episode, it has ended, or the game is closed.
            GameLost: the game failed; there is no reward, and a reset begins on another one.
        """
        return self.submit_step(action).result()

    @property
    def busy(self) -> bool:
        """True while a request is not answered."""
        return self._pending is not None

    def submit_reset(self, **where: Any) -> Future[Moment]:
        """Requests what ``reset`` does; the future has the moment or the error."""
        return self._submit(self._games.start(**where))

    def submit_step(self, action: Any) -> Future[Moment]:
        """Requests what ``step`` does; the future has the moment or the error."""
        last = self.last
        if last is None or last.done:
            self._require_open()
            ended = "there is no episode" if last is None else "the episode has ended"
            raise OutOfTurnError(f"{ended}; reset the game before the next step")
        return self._submit(self._games.actions(action, last))

    async def reset_async(self, **where: Any) -> Moment:
        """Does what ``reset`` does."""
        return await asyncio.wrap_future(self.submit_reset(**where))

    async def step_async(self, action: Any) -> Moment:
        """Does what ``step`` does."""
        return await asyncio.wrap_future(self.submit_step(action))

    def _require_open(self) -> None:
        if self._closed:
            raise OutOfTurnError("this game was closed; open another")

    def _submit(self, what: Start | Columns) -> Future[Moment]:
        shown: Future[Moment] = Future()
        shown.set_running_or_notify_cancel()
        with self._lock:
            self._require_open()
            if self._pending is not None:
                raise BusyError("the game is still working on a request; wait for its answer")
            self._pending = shown
        self.last = None if isinstance(what, Start) else self.last
        try:
            answer = self._games.ask(self.number, what)
        except OutOfTurnError:
            self._pending = None
            raise
        answer.add_done_callback(lambda done: self._show(done, shown))
        return shown

    def _show(self, done: Future[Played], shown: Future[Moment]) -> None:
        error, moment = done.exception(), None
        if error is None:
            try:
                moment = self._games.moment(done.result())
            except Exception as other:  # noqa: BLE001 - the client gets it
                error = other
        self.last = moment
        with self._lock:
            self._pending = None
            free = self._closed
        if free:
            self._games.give_back(self.number)
        if moment is not None:
            shown.set_result(moment)
        else:
            shown.set_exception(error)

    def close(self) -> None:
        """Gives the game back, for other clients, once a pending request is answered.

        Idempotent; an episode in progress has no result.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            free = self._pending is None
        if free:
            self._games.give_back(self.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Games:
    """``games`` games of one task, over one pool of instances of width 1.

    It can be used from any number of threads.

    Args:
        bridge: name of a bridge, its name and options as ``{name: crafter, size: 64}``, its
            configuration, or a recipe.
        task: name of a task, path or contents of a task file, or a task; empty for the game's own
            reward.
        games: how many there are, for as many clients at once.
        state_set: the states from which episodes start, and how they are divided into splits; by
            default the train part.
        host: options of hosting.
        seed: seed of the seeds that clients do not give.

    Attributes:
        bridge: the recipe.
        spec: the game.
        task: the task, with its goal.
        grammar: actions as text, with ``description`` and ``schema``.
        legal: the legal actions, for games that have masks.
        states: the set of ``state_set``.
        splits: the sets by their names: those of train, validation and test that have states. Where
            ``state_set`` names a part, its set is that one, otherwise the whole part.
        size: number of games.

    Raises:
        InputError: something does not exist or does not fit; nothing was launched.
    """

    def __init__(
        self,
        bridge: Source,
        task: str | Mapping[str, Any] | Task = "",
        *,
        games: int = 1,
        state_set: StateSetConfig | None = None,
        host: HostConfig | None = None,
        seed: int = 0,
    ) -> None:
        self.bridge, self.task = bridge_of(bridge, task)
        self.spec: BridgeSpec = self.bridge.spec
        self.grammar, self.legal = Grammar(self.spec), LegalActions(self.spec)
        chosen, space = state_set or StateSetConfig(), self.task.state_space
        self.states = chosen.take(space)
        parts = chosen.splits(space)
        self.splits: dict[str, StateSet] = {
            name: self.states if name == chosen.split else parts.take(name)
            for name in SPLITS
            if parts.part_size(name)
        }
        self.size, self._seed = games, seed
        self._numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)
        self._workdir = owned_workdir("gamut-games-")
        pool = Pool(self.bridge, self._workdir, games, 1, host or HostConfig())
        self._driver = Driver(pool, self.task)
        self._free, self._changed = set(range(games)), threading.Condition()
        self._closed = False
        atexit.register(self.close)
        self._driver.start()

    @property
    def observation_space(self) -> spaces.Dict:
        """The spaces of the observations that clients see, by column."""
        shown = self.spec.observation_space.spaces.items()
        return spaces.Dict({key: leaf for key, leaf in shown if not key.startswith(PRIVILEGED)})

    @property
    def free(self) -> int:
        """How many games are not in use."""
        return len(self._free)

    def open(self, timeout_s: float = 0.0) -> Game:
        """Returns a game that no client uses; it may still be launching, which a reset awaits.

        Args:
            timeout_s: longest wait for one, in seconds.

        Raises:
            CapacityError: all are in use, or none can be launched.
            OutOfTurnError: the games are closed.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._closed:
                order = {"waiting": 0, "busy": 1, "launching": 1, "resting": 2}
                free = sorted((order[self._driver.seats[n].state], n) for n in self._free)
                if free and free[0][0] < 2:
                    self._free.remove(free[0][1])
                    return Game(self, free[0][1])
                left = deadline - time.monotonic()
                if left <= 0:
                    why = f"all {self.size} games are in use; close one, or try again later"
                    if free:
                        reason = self._driver.seats[free[0][1]].reason
                        why = f"no game can be launched now; the last failure: {reason}"
                    raise CapacityError(why)
                self._changed.wait(left)
        raise OutOfTurnError("the games are closed; open others")

    def close(self) -> None:
        """Ends all games; requests that wait get an error. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        atexit.unregister(self.close)
        self._driver.stop()
        remove_workdir(self._workdir)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What follows is for ``Game``, and for clients that check input before they have a game.

    def start(
        self,
        *,
        seed: int | None = None,
        split: str | None = None,
        index: int | None = None,
        state: int | Mapping[str, Any] | State | None = None,
    ) -> Start:
        """Returns the start of an episode; the arguments and errors are those of ``Game.reset``."""
        if seed is not None and (not _whole(seed) or not 0 <= seed < 2**63):
            raise StateError(f"seed={seed!r}: expected a whole number from 0 to 2**63 - 1")
        if state is not None:
            if split is not None or index is not None:
                raise StateError("a state is given, and split or index too; give one of the two")
            found, name, number = self._state(state), "", 0
        else:
            states = self.states if split is None else self.splits.get(str(split))
            if states is None:
                raise UnknownNameError("split", str(split), self.splits)
            found, number = self._choose(states, seed, index)
            name = states.name
        seed = episode_seed(self._seed, number) if seed is None else int(seed)
        return Start(found, seed, number, 0, name)

    def _choose(self, states: StateSet, seed: int | None, index: int | None) -> tuple[State, int]:
        """Returns a state of a set, and the number of its episode."""
        if index is not None:
            if not _whole(index):
                raise StateError(f"index={index!r}: expected a whole number from 0")
            return states[index], int(index)
        if seed is not None:
            return states.draw(np.random.default_rng(seed)), 0
        number = next(self._numbers[states.name])
        return states[number % states.size], number

    def _state(self, state: int | Mapping[str, Any] | State) -> State:
        space = self.task.state_space
        if isinstance(state, State):
            state = state.values
        if isinstance(state, Mapping):
            for name, value in state.items():
                if not isinstance(value, str | int | float | bool):
                    raise StateError(f"state: {name}={value!r}: expected a text or a number")
            return space.state(space.index(state))
        if not _whole(state):
            raise StateError(f"state={state!r}: expected an index or a value for each factor")
        return space.state(state)

    def actions(self, action: Any, moment: Moment) -> Columns:
        """Returns an action as columns ``(1, ...)``; the errors are those of ``Game.step``."""
        space = self.spec.action_space
        keys = space.spaces.keys()
        columns = isinstance(action, Mapping) and action.keys() == keys
        if columns and all(isinstance(v, np.ndarray | np.generic) for v in action.values()):
            row = {name: _as_row(space[name], value) for name, value in action.items()}
            check_columns(space, row, (1,))
            for name, leaf in space.spaces.items():
                # A game checks texts itself: the characters of a space do not decide.
                if not isinstance(leaf, spaces.Text) and not leaf.contains(row[name][0]):
                    raise SpaceError(f"expected {name} inside {leaf}, got {row[name][0]!r}")
            return row
        if columns and len(keys) == 1 and not self._takes_mapping:
            action = next(iter(action.values()))
        parsed = self.grammar.parse(action)
        self.legal.require(parsed, moment.columns, 0)
        return columns_of(space, [parsed])

    @cached_property
    def _takes_mapping(self) -> bool:
        return bool(self.grammar.schema["type"] == "object")

    def moment(self, played: Played) -> Moment:
        """Returns what a client sees of what was played."""
        return Moment.of(played, self.spec, self.legal)

    def ask(self, number: int, what: Start | Columns) -> Future[Played]:
        """Requests a reset or a step of a game."""
        return self._driver.ask(number, what)

    def give_back(self, number: int) -> None:
        """Makes a game free for other clients."""
        with self._changed:
            self._free.add(number)
            self._changed.notify()


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _as_row(leaf: spaces.Space[Any], value: Any) -> Array:
    """Returns a value ``(1, ...)``; another width of the same kind of number is converted."""
    array, dtype = np.asarray(value), leaf_dtype(leaf)
    if np.can_cast(array.dtype, dtype, "same_kind"):
        array = array.astype(dtype, copy=False)
    return array[None]
