"""A pool of games as a ``gymnasium.vector.VectorEnv``, for third-party code.

Autoreset is NEXT_STEP: when a slot's episode ends, the observation returned is the true final one;
the next call ignores the slot's action, resets it, and returns its first observation with reward
0. If a game hangs or dies, the episodes of its slots end as ``truncated`` with ``infos["lost"]``;
it is replaced, and no call raises because of it. With ``autoreset="same_step"`` (as
Stable-Baselines3 expects) the reset happens within the call that ended the episode, and the true
final observation is in ``infos["final_obs"]``, and what belongs to it (``details``, ``lost``,
``reason``) in ``infos["final_info"]``, as in Gymnasium's own vector envs.

A call waits for the slowest game, as this interface requires. Our own collection and training do
not use this class; see ``rollout.host.Player``.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rollout.api import (
    Array,
    Bridge,
    Columns,
    Frame,
    Splits,
    Start,
    StateSet,
    Task,
    allocate,
    check_columns,
    details_for_policies,
    leaf_dtype,
)
from rollout.api.fragment import End
from rollout.configuration.sections import HostConfig
from rollout.errors import ConfigError, OutOfTurnError
from rollout.host.instances import Event
from rollout.host.pool import Pool
from rollout.host.processes import owned_workdir, remove_workdir
from rollout.host.referee import Referee
from rollout.host.supervision import exhausted

Order = Literal["random", "in_turn"]


def bare(columns: Any) -> Any:
    """Returns the only column of a flat space or observation, or the mapping if it has several."""
    return next(iter(columns.values())) if len(columns) == 1 else columns


def named_columns(space: spaces.Dict, actions: Any) -> Columns:
    """Returns actions as named columns; other widths of a kind of number are converted.

    Args:
        space: the flat space of actions.
        actions: the array of the only column, or a mapping of columns.
    """
    leaves = space.spaces
    if len(leaves) == 1 and not isinstance(actions, dict):
        actions = {next(iter(leaves)): actions}
    out: Columns = {}
    for key, column in actions.items():
        array = np.asarray(column)
        dtype = leaf_dtype(leaves[key]) if key in leaves else array.dtype
        same = np.can_cast(array.dtype, dtype, "same_kind")
        out[key] = array.astype(dtype, copy=False) if same else array
    return out


class Draws:
    """Decides where episodes start: ``random`` draws states, ``in_turn`` cycles through them.

    The states are those of the set, or every state of the task if it is None.
    """

    def __init__(self, task: Task, states: StateSet | None, order: Order) -> None:
        self._states = states or Splits(task.state_space, validation=0, test=0).take("train")
        self._random = order == "random"

    def start(self, rng: np.random.Generator, episode: int) -> Start:
        """Returns the start of an episode, with a seed."""
        states = self._states
        state = states.draw(rng) if self._random else states[episode % states.size]
        return Start(state, int(rng.integers(0, 2**63)), episode, 0, states.name)


class RemoteVectorEnv(VectorEnv[Any, Any, Array]):
    """``num_envs`` slots of a game whose instances run in their own processes.

    Spaces are the flat spaces of the bridge. A single column is not wrapped in a ``Dict``, so
    ``CartPole-v1`` has ``Box(4,)`` observations and ``Discrete(2)`` actions as usual.

    ``infos`` follows Gymnasium: an array per key and a mask under ``_key``. Keys: ``lost`` and
    ``reason`` where a game failed, ``dead`` where it could not be replaced, ``state`` (index) and
    ``seed`` where an episode began, ``details`` if the game has observations without a fixed shape.

    Args:
        bridge: recipe of the game.
        task: the task.
        num_envs: total number of slots, a multiple of ``width``.
        states: the states from which episodes start, see ``Draws``.
        order: how they are drawn.
        autoreset: reset of a slot whose episode has ended; see the module.
        seed: seed of the draws, until ``reset`` is given another.
        width: slots of one instance.
        host: options of hosting; a game without restarts left is not replaced.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012 - Gymnasium's

    def __init__(
        self,
        bridge: Bridge,
        task: Task,
        *,
        num_envs: int,
        states: StateSet | None = None,
        order: Order = "random",
        autoreset: Literal["next_step", "same_step"] = "next_step",
        seed: int = 0,
        width: int = 1,
        host: HostConfig | None = None,
    ) -> None:
        self.closed = True  # until there is something to close
        if num_envs < 1 or num_envs % width:
            raise ConfigError(f"num_envs={num_envs}: expected a positive multiple of {width=}")
        spec = bridge.spec
        task.check(spec)
        self._same_step = autoreset == "same_step"
        mode = AutoresetMode.SAME_STEP if self._same_step else AutoresetMode.NEXT_STEP
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self.task, self.num_envs = task, num_envs
        self.single_observation_space = bare(spec.observation_space)
        self.single_action_space = bare(spec.action_space)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._draws = Draws(task, states, order)
        self._seed_slots(seed)
        self._width = width
        self._workdir = owned_workdir("gamut-vector-")
        count = num_envs // width
        # A failed game is reported to the caller once, and does not come back.
        host = (host or HostConfig()).model_copy(update={"quarantine_s": None})
        self._pool = Pool(bridge, self._workdir, count, width, host)
        self._referee = Referee(task, num_envs)  # one for all slots, which step together here
        self._observations = allocate(spec.observation_space, num_envs)
        self._frame = Frame(
            self._observations,
            {k: np.zeros((num_envs, *c.shape), c.dtype) for k, c in spec.signals.items()},
            np.zeros(num_envs, bool),
            np.zeros(num_envs, bool),
            np.zeros(num_envs, np.int64),
        )
        self._due: Array = np.ones(num_envs, bool)  # slots that the next call resets
        self._now: Array = np.zeros(num_envs, bool)  # slots to reset within this call
        self._resetting: dict[int, tuple[list[int], list[Start]]] = {}
        self._shown_resets: list[tuple[list[int], list[Start], Frame]] = []
        self._stepping: set[int] = set()  # instances whose step is awaited
        self._dead: set[int] = set()
        self._last_reason = ""
        self._begun = False
        # A program may end without closing it. What `__del__` finds then is half of an interpreter
        # that starts no threads, so the end is earlier: before Ray's, which was imported earlier.
        self._ending = weakref.finalize(self, end_games, self._pool, self._workdir)
        self._ending.atexit = False
        atexit.register(self._ending)
        self._pool.launch()
        self._launching = set(range(count))
        self.closed = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every slot.

        Args:
            seed: seed of the draws of states and seeds from now on; of a list, the first entry is
                used.
            options: no options are supported.

        Raises:
            BudgetExhausted: no game could be launched.
        """
        if isinstance(seed, Sequence):
            seed = seed[0]
        if seed is not None:
            self._seed_slots(seed)
        self._due[:] = True
        self._begun = True
        for row in np.flatnonzero(self._referee.active).tolist():
            self._referee.finish(row, "truncated", 0)  # cut by the caller: not a result
        self._drive(None)
        return self._shown(), self._infos

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Plays one action in every slot; see the module for resets and losses.

        Raises:
            OutOfTurnError: ``reset`` was not called.
            BudgetExhausted: every game is dead and none may be replaced.
        """
        if not self._begun:
            raise OutOfTurnError("step was called before reset; call reset first")
        columns = named_columns(self._pool.spec.action_space, actions)
        check_columns(self._pool.spec.action_space, columns, (self.num_envs,))
        self._drive(columns)
        return self._shown(), self._rewards, self._terminated, self._truncated, self._infos

    def _shown(self) -> Any:
        return bare({key: array.copy() for key, array in self._observations.items()})

    def _rows(self, instance: int) -> slice:
        return slice(instance * self._width, (instance + 1) * self._width)

    def _drive(self, actions: Columns | None) -> None:
        """Steps every slot, or resets it if it is due."""
        self._rewards: Array = np.zeros(self.num_envs, np.float64)
        self._terminated: Array = np.zeros(self.num_envs, bool)
        self._truncated: Array = np.zeros(self.num_envs, bool)
        self._infos: dict[str, Any] = {}
        self._now, self._due = self._due, np.zeros(self.num_envs, bool)
        for instance in range(self._pool.instances):
            rows = self._rows(instance)
            if instance in self._dead:
                self._drop(instance, "no replacement is left")
            elif self._now[rows].all():
                self._ask_reset(instance)
            elif actions is not None:
                self._pool.send(instance, {k: v[rows] for k, v in actions.items()})
                self._stepping.add(instance)
        if actions is not None:
            while self._stepping:
                self._handle_events()
            self._judge(actions)
        self._apply_resets()
        for instance in sorted({int(r) // self._width for r in np.flatnonzero(self._now)}):
            if instance not in self._resetting:
                self._ask_reset(instance)
        while self._now.any():
            self._handle_events()
            self._apply_resets()
        if len(self._dead) == self._pool.instances:
            raise exhausted(f"{self._pool.instances} games", self._pool.host, self._last_reason)

    def _handle_events(self) -> None:
        for event in self._pool.recv():
            if event.kind == "step":
                self._on_step(event)
            elif event.kind == "reset":
                slots, starts = self._resetting.pop(event.instance)
                first = event.instance * self._width
                assert event.frame is not None
                self._shown_resets.append(([first + s for s in slots], starts, event.frame))
            elif event.kind == "launched":
                self._launching.discard(event.instance)
                self._ask_reset(event.instance)
            else:
                self._on_failure(event)

    def _ask_reset(self, instance: int) -> None:
        """Requests the resets that are due now, unless the game is still launching."""
        rows = self._rows(instance)
        slots = np.flatnonzero(self._now[rows]).tolist()
        if slots and instance not in self._launching:
            starts = [self._next_start(rows.start + slot) for slot in slots]
            self._resetting[instance] = (slots, starts)
            self._pool.reset(instance, slots, starts)

    def _seed_slots(self, seed: int) -> None:
        """Gives each slot its own random generator: the order of replies must have no effect."""
        streams = np.random.SeedSequence(seed).spawn(self.num_envs)
        self._rngs = [np.random.default_rng(stream) for stream in streams]
        self._episodes = list(range(self.num_envs))  # number of each slot's next episode

    def _next_start(self, row: int) -> Start:
        start = self._draws.start(self._rngs[row], self._episodes[row])
        self._episodes[row] += self.num_envs
        return start

    def _on_step(self, event: Event) -> None:
        frame, rows = event.frame, self._rows(event.instance)
        assert frame is not None
        for key, array in self._observations.items():
            array[rows] = frame.observations[key]
        for key, array in self._frame.signals.items():
            array[rows] = frame.signals[key]
        self._frame.game_over[rows] = frame.game_over
        self._frame.game_truncated[rows] = frame.game_truncated
        self._frame.tick[rows] = frame.tick
        if frame.details is not None:
            self._inform(
                "details", range(rows.start, rows.stop), map(details_for_policies, frame.details)
            )
        self._stepping.discard(event.instance)

    def _judge(self, actions: Columns) -> None:
        """Judges the slots that have stepped; for the referee, the others are idle."""
        ruling = self._referee.judge(actions, self._frame)
        np.copyto(self._rewards, ruling.verdict.reward, where=self._referee.active)
        self._terminated |= ruling.terminated
        self._truncated |= ruling.truncated
        for row in ruling.ended:
            end: End = "terminated" if ruling.terminated[row] else "truncated"
            self._referee.finish(row, end, int(ruling.verdict.outcome[row]))
            self._pool.played(row // self._width, 1)
        self._end(ruling.ended)

    def _end(self, rows: list[int]) -> None:
        """Schedules resets by the autoreset mode: in this call, or in the next."""
        if rows and self._same_step:
            observed = self._observations.items()
            finals = [bare({k: v[row].copy() for k, v in observed}) for row in rows]
            self._inform("final_obs", rows, finals)
            last = self._infos.setdefault("final_info", {})
            self._infos.setdefault("_final_info", np.zeros(self.num_envs, bool))[rows] = True
            for key in ("details", "lost", "reason", "dead"):
                known = self._infos.get("_" + key, np.zeros(self.num_envs, bool))
                there = [row for row in rows if known[row]]
                if there:
                    self._inform(key, there, [self._infos[key][row] for row in there], last)
            self._now[rows] = True
        else:
            self._due[rows] = True

    def _apply_resets(self) -> None:
        """Stores the first observations of the episodes that have begun."""
        for rows, starts, frame in self._shown_resets:
            self._referee.reset(rows, starts, frame)
            for key, array in self._observations.items():
                array[rows] = frame.observations[key]
            self._frame.game_over[rows] = self._frame.game_truncated[rows] = False
            self._now[rows] = False
            self._inform("state", rows, [str(s.state.index) for s in starts])
            self._inform("seed", rows, [s.seed for s in starts])
            if frame.details is not None:
                self._inform("details", rows, map(details_for_policies, frame.details))
        self._shown_resets.clear()

    def _on_failure(self, event: Event) -> None:
        """Ends the episodes of a game that failed; its slots are reset on its replacement."""
        instance, rows = event.instance, self._rows(event.instance)
        self._last_reason = event.reason
        self._stepping.discard(instance)
        self._resetting.pop(instance, None)
        if not event.replaced:
            self._drop(instance, event.reason)
            return
        self._launching.add(instance)
        active = np.flatnonzero(self._referee.active[rows]) + rows.start
        lost = [row for row in active.tolist() if not self._now[row]]
        self._lose(lost, event.reason)
        self._end(lost)

    def _lose(self, rows: list[int], reason: str) -> None:
        for row in rows:
            if self._referee.active[row]:
                self._referee.finish(row, "lost", 0)
        self._truncated[rows] = True
        if rows:
            self._inform("lost", rows, [True] * len(rows))
            self._inform("reason", rows, [reason] * len(rows))

    def _drop(self, instance: int, reason: str) -> None:
        """Marks a game that cannot be replaced; its slots are truncated in every later call."""
        self._dead.add(instance)
        self._last_reason = reason
        rows = list(range(self.num_envs)[self._rows(instance)])
        self._lose(rows, reason)
        self._inform("dead", rows, [True] * len(rows))
        if self._same_step:
            self._end(rows)
        self._now[rows], self._due[rows] = False, True

    def _inform(
        self,
        key: str,
        rows: Sequence[int],
        values: Iterable[Any],
        infos: dict[str, Any] | None = None,
    ) -> None:
        """Adds to ``infos``: an array per key, and a mask of the rows that have it."""
        infos = self._infos if infos is None else infos
        if key not in infos:
            dtype = {"lost": bool, "dead": bool, "seed": np.int64}.get(key, object)
            infos[key] = np.zeros(self.num_envs, dtype)
            infos["_" + key] = np.zeros(self.num_envs, bool)
        for row, value in zip(rows, values, strict=True):
            infos[key][row] = value
            infos["_" + key][row] = True

    def close_extras(self, **kwargs: Any) -> None:
        """Ends every game and removes their folders."""
        del kwargs
        atexit.unregister(self._ending)
        self._ending()


def end_games(pool: Pool, workdir: Path) -> None:
    """Ends the games of a pool and removes their folder."""
    pool.close()
    remove_workdir(workdir)
