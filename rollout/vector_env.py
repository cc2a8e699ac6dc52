"""A pool of games as a ``gymnasium.vector.VectorEnv``, for other people's code.

Autoreset is NEXT_STEP: when a slot's episode ends, the observation returned is the true final one;
the next call ignores the slot's action, resets it, and returns its first observation with reward
0. A game that hangs or dies ends its slots' episodes as ``truncated`` with ``infos["lost"]``; it is
replaced, and no call raises because of it. With ``autoreset="same_step"`` (what
Stable-Baselines3 expects) the reset happens within the call that ended the episode, and the true
final observation is in ``infos["final_obs"]``.

A call waits for the slowest game, which is what this interface means. Our own collection and
training do not go through here; see ``rollout.host.Player``.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
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
    leaf_dtype,
)
from rollout.errors import BudgetExhausted, ConfigError, OutOfTurnError
from rollout.host.pool import Event, HandleFactory, Pool, PoolOptions
from rollout.host.referee import Referee


def bare(space: spaces.Dict) -> spaces.Space[Any]:
    """Returns the only column of a flat ``Dict`` by itself, or the ``Dict`` if it has several."""
    leaves = list(space.spaces.values())
    return leaves[0] if len(leaves) == 1 else space


class RemoteVectorEnv(VectorEnv[Any, Any, Array]):
    """``num_envs`` slots of a game that runs in processes of its own.

    Spaces are those of the bridge, flat; a single column stands bare, so ``CartPole-v1`` has
    ``Box(4,)`` observations and ``Discrete(2)`` actions as everywhere.

    ``infos`` follows Gymnasium: an array per key and a mask under ``_key``. Keys: ``lost`` and
    ``reason`` where a game failed, ``dead`` where it could not be replaced, ``state`` (index) and
    ``seed`` where an episode began, ``details`` where the game shows what has no fixed shape.

    Args:
        bridge: recipe of the game.
        task: what is judged.
        num_envs: number of slots in all, a multiple of ``width``.
        states: states that episodes start from; every state of the task when None.
        order: ``random`` draws from ``states``; ``in_turn`` goes round them.
        autoreset: when an ended slot is reset; see the module.
        seed: of the draws, until ``reset`` is given another.
        width: slots of one instance.
        options: how the instances are hosted.
        make_handle: another way to run an instance; see ``rollout.host.remote.RayHandle``.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012 - Gymnasium's

    def __init__(
        self,
        bridge: Bridge,
        task: Task,
        *,
        num_envs: int,
        states: StateSet | None = None,
        order: Literal["random", "in_turn"] = "random",
        autoreset: Literal["next_step", "same_step"] = "next_step",
        seed: int = 0,
        width: int = 1,
        options: PoolOptions | None = None,
        make_handle: HandleFactory | None = None,
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
        self._states = states or Splits(task.state_space, validation=0, test=0).take("train")
        self._order = order
        self._seed_slots(seed)
        self._width = width
        self._workdir = Path(tempfile.mkdtemp(prefix="gamut-vector-"))
        count = num_envs // width
        self._pool = Pool(
            bridge, self._workdir, count, width, options or PoolOptions(), make_handle
        )
        self._referees = [Referee(task, width, i) for i in range(count)]
        self._observations = allocate(spec.observation_space, num_envs)
        self._rewards: Array = np.zeros(num_envs, np.float64)
        self._terminated: Array = np.zeros(num_envs, bool)
        self._truncated: Array = np.zeros(num_envs, bool)
        self._reset_next: Array = np.ones(num_envs, bool)  # slots whose next call is a reset
        self._resetting: dict[int, tuple[list[int], list[Start]]] = {}
        self._infos: dict[str, Any] = {}
        self._pending: set[int] = set()
        self._dead: set[int] = set()
        self._last_reason = ""
        self._begun = False
        self._pool.launch()
        self._launching = set(range(count))
        self.closed = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every slot.

        Args:
            seed: of the draws of states and seeds from now on; a list counts by its first entry.
            options: none are known.

        Raises:
            BudgetExhausted: no game came up.
        """
        if isinstance(seed, Sequence):
            seed = seed[0]
        if seed is not None:
            self._seed_slots(seed)
        self._reset_next[:] = True
        self._begun = True
        self._drive(None)
        return self._shown(), self._infos

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Plays one action in every slot; see the module for what a reset and a loss look like.

        Raises:
            OutOfTurnError: there was no ``reset`` yet.
            BudgetExhausted: every game is dead and none may be replaced.
        """
        if not self._begun:
            raise OutOfTurnError("step was called before reset; call reset first")
        columns = self._columns(actions)
        check_columns(self._pool.spec.action_space, columns, (self.num_envs,))
        self._drive(columns)
        return (
            self._shown(),
            self._rewards.copy(),
            self._terminated.copy(),
            self._truncated.copy(),
            self._infos,
        )

    def _columns(self, actions: Any) -> Columns:
        """The actions as named columns; other widths of the same kind of number are taken over."""
        space = self._pool.spec.action_space.spaces
        if len(space) == 1 and not isinstance(actions, dict):
            actions = {next(iter(space)): actions}
        out: Columns = {}
        for key, column in actions.items():
            array = np.asarray(column)
            dtype = leaf_dtype(space[key]) if key in space else array.dtype
            same = np.can_cast(array.dtype, dtype, "same_kind")
            out[key] = array.astype(dtype, copy=False) if same else array
        return out

    def _shown(self) -> Any:
        copies = {key: array.copy() for key, array in self._observations.items()}
        return next(iter(copies.values())) if len(copies) == 1 else copies

    def _rows(self, instance: int) -> slice:
        return slice(instance * self._width, (instance + 1) * self._width)

    def _drive(self, actions: Columns | None) -> None:
        """Brings every instance one step further, whatever that is for each of its slots."""
        self._rewards[:], self._terminated[:], self._truncated[:] = 0.0, False, False
        self._infos = {}
        for instance in range(self._pool.instances):
            if instance in self._dead:
                self._bury(instance, "no replacement is left")
                continue
            self._pending.add(instance)
            if instance in self._launching:
                continue
            if actions is None or self._reset_next[self._rows(instance)].all():
                self._ask_reset(instance)
            else:
                rows = self._rows(instance)
                self._pool.send(instance, {k: v[rows] for k, v in actions.items()})
        while self._pending:
            for event in self._pool.recv():
                self._handle(event, actions)
        if len(self._dead) == self._pool.instances:
            raise BudgetExhausted(
                f"all {self._pool.instances} games failed more than "
                f"{self._pool.options.restarts} times; the last one: {self._last_reason}"
            )

    def _ask_reset(self, instance: int) -> None:
        rows = self._rows(instance)
        slots = np.flatnonzero(self._reset_next[rows]).tolist()
        starts = [self._next_start(rows.start + slot) for slot in slots]
        self._resetting[instance] = (slots, starts)
        self._pool.reset(instance, slots, starts)

    def _seed_slots(self, seed: int) -> None:
        """Gives every slot a stream of its own: which game answers first must not show."""
        streams = np.random.SeedSequence(seed).spawn(self.num_envs)
        self._rngs = [np.random.default_rng(stream) for stream in streams]
        self._episodes = list(range(self.num_envs))  # number of each slot's next episode

    def _next_start(self, row: int) -> Start:
        rng, number = self._rngs[row], self._episodes[row]
        self._episodes[row] += self.num_envs
        state = (
            self._states.draw(rng)
            if self._order == "random"
            else self._states[number % self._states.size]
        )
        return Start(state, int(rng.integers(0, 2**63)), number, 0, self._states.name)

    def _handle(self, event: Event, actions: Columns | None) -> None:
        instance = event.instance
        if event.kind == "launched":
            self._launching.discard(instance)
            if instance in self._pending:
                self._ask_reset(instance)
        elif event.kind == "step":
            self._on_step(instance, event.frame, actions)
        elif event.kind == "reset":
            self._on_reset(instance, event.frame)
        else:
            self._on_failure(event)

    def _on_step(self, instance: int, frame: Frame | None, actions: Columns | None) -> None:
        assert frame is not None
        assert actions is not None
        rows = self._rows(instance)
        ruling = self._referees[instance].judge({k: v[rows] for k, v in actions.items()}, frame)
        for key, array in self._observations.items():
            array[rows] = frame.observations[key]
        due = self._reset_next[rows].copy()
        self._rewards[rows] = np.where(due, 0.0, ruling.verdict.reward)
        self._terminated[rows] = ruling.terminated & ~due
        self._truncated[rows] = ruling.truncated & ~due
        self._inform("details", rows.start, list(range(self._width)), frame.details)
        for slot in ruling.ended:
            end = "terminated" if ruling.terminated[slot] else "truncated"
            self._referees[instance].finish(slot, end, int(ruling.verdict.outcome[slot]))  # type: ignore[arg-type] # a literal, by the line above
        ended = ruling.terminated | ruling.truncated
        if self._same_step and ruling.ended:
            self._keep_final(rows.start, ruling.ended)
            self._reset_next[rows] = ended
            self._ask_reset(instance)
        elif due.any():
            self._ask_reset(instance)
            self._reset_next[rows] = due | ended
        else:
            self._pending.discard(instance)
            self._reset_next[rows] = ended

    def _on_reset(self, instance: int, frame: Frame | None) -> None:
        assert frame is not None
        slots, starts = self._resetting.pop(instance)
        self._referees[instance].reset(slots, starts, frame)
        first = instance * self._width
        rows = [first + slot for slot in slots]
        for key, array in self._observations.items():
            array[rows] = frame.observations[key]
        self._reset_next[rows] = False
        if not self._same_step:
            # A slot whose episode ended in this very call is reset in the next one.
            everyone = self._rows(instance)
            self._reset_next[everyone] |= (self._terminated | self._truncated)[everyone]
        self._inform("state", first, slots, [str(s.state.index) for s in starts])
        self._inform("seed", first, slots, [s.seed for s in starts])
        self._inform("details", first, slots, frame.details)
        self._pending.discard(instance)

    def _on_failure(self, event: Event) -> None:
        instance, rows = event.instance, self._rows(event.instance)
        self._last_reason = event.reason
        self._resetting.pop(instance, None)
        playing = [s for s, start in enumerate(self._referees[instance].starts) if start]
        for slot in playing:
            self._referees[instance].finish(slot, "lost", 0)
        if not event.replaced:
            self._bury(instance, event.reason)
            return
        self._launching.add(instance)
        if instance in self._pending and playing and not self._reset_next[rows].all():
            lost = [s for s in playing if not self._reset_next[rows.start + s]]
            self._lose(rows.start, lost, event.reason)
            if self._same_step:
                self._reset_next[[rows.start + s for s in lost]] = True
            elif not self._reset_next[rows].any():
                self._reset_next[rows] = True
                self._pending.discard(instance)

    def _lose(self, first: int, slots: list[int], reason: str) -> None:
        rows = [first + s for s in slots]
        self._truncated[rows] = True
        if self._same_step:
            self._keep_final(first, slots)
        self._inform("lost", first, slots, [True] * len(slots))
        self._inform("reason", first, slots, [reason] * len(slots))

    def _keep_final(self, first: int, slots: list[int]) -> None:
        rows = [first + s for s in slots]
        finals = [{k: v[row].copy() for k, v in self._observations.items()} for row in rows]
        values = [next(iter(f.values())) if len(f) == 1 else f for f in finals]
        self._inform("final_obs", first, slots, values)

    def _bury(self, instance: int, reason: str) -> None:
        """A game that cannot be replaced: its slots are truncated at every call from now on."""
        self._dead.add(instance)
        self._last_reason = reason
        everyone = list(range(self._width))
        first = instance * self._width
        self._lose(first, everyone, reason)
        self._inform("dead", first, everyone, [True] * self._width)
        self._reset_next[self._rows(instance)] = True
        self._pending.discard(instance)

    def _inform(self, key: str, first: int, slots: Sequence[int], values: Any) -> None:
        """Adds to ``infos``: an array per key, and a mask of the rows that have it."""
        if values is None:
            return
        if key not in self._infos:
            dtype = {"lost": bool, "dead": bool, "seed": np.int64}.get(key, object)
            self._infos[key] = np.zeros(self.num_envs, dtype)
            self._infos["_" + key] = np.zeros(self.num_envs, bool)
        for slot, value in zip(slots, values, strict=True):
            self._infos[key][first + slot] = value
            self._infos["_" + key][first + slot] = True

    def close_extras(self, **kwargs: Any) -> None:
        """Ends every game and removes their folders."""
        del kwargs
        self._pool.close()
        shutil.rmtree(self._workdir, ignore_errors=True)
