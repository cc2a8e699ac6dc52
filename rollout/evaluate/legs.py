"""Legs of an evaluation, which one fleet of hosts plays together.

Legs and their episodes are numbered: leg by leg, state by state, repeat by repeat. The seed of an
episode depends only on the seed of the evaluation, its state and its repeat. So every player meets
the same states with the same random numbers, and scores can be compared pair by pair.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollout.api import (
    CALLS,
    CALLS_SPEC,
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Policy,
    PolicyRecipe,
    Start,
    StateSet,
    StateSpace,
    Task,
    Trial,
    calls_of,
    figures_of,
    keeps_files,
    trials_of,
)
from rollout.errors import ConfigError, ContractError, named
from rollout.host.schedule import derived_seed
from rollout.observe.hosts import sum_figures

Actions: TypeAlias = Literal["sampled", "deterministic"]
ACTIONS: tuple[Actions, ...] = ("sampled", "deterministic")

TRAIN, TEST = "train", "test"
"""Sets of these names are compared: the generalization gap is train minus test."""

_GROUP = "group"  # column of the joint memory: the row's group, from 1; 0 for none
NO_TRIALS: Mapping[int, Trial] = MappingProxyType({})
_EPISODES_AND_PLAYERS = 1  # ends the spawn key of an episode; those of players end with 0


@dataclass(frozen=True)
class Leg:
    """A player, a set of states, and whether the player samples its actions.

    Attributes:
        player: name of the player.
        recipe: the recipe of the player's policy; equal in all legs of one player.
        set_name: name of the set in results: ``train``, ``test``, ``full``, ...
        states: the states.
        actions: ``sampled``, or ``deterministic`` for the player's most probable action.
        repeats: episodes per state.
    """

    player: str
    recipe: PolicyRecipe
    set_name: str
    states: StateSet
    actions: Actions = "sampled"
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.repeats < 1 or self.actions not in ACTIONS:
            raise ConfigError(
                f"leg {self.name}: expected 1 repeat or more and actions {' or '.join(ACTIONS)}, "
                f"got {self.repeats} and {self.actions!r}"
            )

    @property
    def name(self) -> str:
        """The name of the leg, ``PLAYER/SET/ACTIONS``."""
        return f"{self.player}/{self.set_name}/{self.actions}"

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return self.states.size * self.repeats


class Place(NamedTuple):
    """Position of an episode within a job.

    Attributes:
        leg: number of the leg.
        position: number of the state in its set.
        repeat: number of the episode among those of the state.
    """

    leg: int
    position: int
    repeat: int


@dataclass(frozen=True)
class Legs:
    """The legs of a job and the numbering of their episodes.

    Attributes:
        legs: the legs, in the order in which they are played.
        space: the task's state space, in which states are numbered.
        seed: seed of the evaluation.

    Raises:
        ConfigError: there is no leg, or a leg is listed twice.
    """

    legs: tuple[Leg, ...]
    space: StateSpace
    seed: int = 0

    def __post_init__(self) -> None:
        names = [leg.name for leg in self.legs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not names:
            got = f"{', '.join(twice)} twice" if twice else "none"
            raise ConfigError(f"expected at least one leg, each of them once, got {got}")

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Number of the first episode of each leg."""
        return tuple(accumulate((leg.episodes for leg in self.legs), initial=0))[:-1]

    @cached_property
    def episodes(self) -> int:
        """Number of episodes of all legs."""
        return sum(leg.episodes for leg in self.legs)

    def leg_of(self, episode: int) -> int:
        """Returns the number of the leg that an episode belongs to."""
        return bisect_right(self.offsets, episode) - 1

    def place(self, episode: int) -> Place:
        """Returns the place of an episode; the inverse of ``number``."""
        leg = self.leg_of(episode)
        position, repeat = divmod(episode - self.offsets[leg], self.legs[leg].repeats)
        return Place(leg, position, repeat)

    def number(self, place: Place) -> int:
        """Returns the number of an episode."""
        leg, position, repeat = place
        return self.offsets[leg] + position * self.legs[leg].repeats + repeat

    def earlier(self, episode: int) -> range:
        """Returns the episodes that must end before one begins: none for most players."""
        leg, _, repeat = self.place(episode)
        count = repeat if trials_of(self.legs[leg].recipe) else 0
        return range(episode - count, episode)

    def start(self, episode: int, trials: Mapping[int, Trial] = NO_TRIALS) -> Start:
        """Returns the state and seed with which an episode begins.

        Args:
            episode: its number.
            trials: results of earlier episodes, which the player may see.
        """
        leg, position, repeat = self.place(episode)
        states = self.legs[leg].states
        state = states[position]
        seed = paired_seed(self.seed, self.space.index(state.values), repeat)
        most = trials_of(self.legs[leg].recipe)
        known = [trials[number] for number in self.earlier(episode) if number in trials]
        earlier = tuple(known[-most:]) if most else ()
        return Start(state, seed, episode, state_set=states.name, earlier=earlier)


def paired_seed(seed: int, state: int, repeat: int) -> int:
    """Returns the seed of an episode, below 2**63; the same for every player.

    Args:
        seed: seed of the evaluation.
        state: index of the state in the task's space.
        repeat: number of the episode among those of the state.
    """
    return derived_seed(seed, state, repeat, _EPISODES_AND_PLAYERS)


@dataclass(frozen=True)
class LegsPolicy:
    """Recipe of a policy in which the player of its leg plays each episode.

    Hosts see one policy. Of the extras it has ``calls`` only, since players do not share others.

    Attributes:
        players: names and recipes of the players.
        groups: for each leg, the number of its player and whether it samples.
        offsets: number of the first episode of each leg.
    """

    players: tuple[tuple[str, PolicyRecipe], ...]
    groups: tuple[tuple[int, bool], ...]
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, legs: Legs) -> LegsPolicy:
        """Returns the recipe for the given legs."""
        players: dict[str, PolicyRecipe] = {}
        for leg in legs.legs:
            known = players.setdefault(leg.player, leg.recipe)
            if known is not leg.recipe and known != leg.recipe:
                raise ConfigError(f"legs of player {leg.player!r} have different recipes")
        names = list(players)
        groups = [(names.index(leg.player), leg.actions == "sampled") for leg in legs.legs]
        return cls(tuple(players.items()), tuple(groups), legs.offsets)

    @property
    def calls(self) -> int:
        """Greatest number of concurrent calls of any player; see ``rollout.api.Concurrent``."""
        return max(calls_of(recipe) for _, recipe in self.players)

    @property
    def keeps_files(self) -> bool:
        """True if a player keeps files; see ``rollout.api.KeepsFiles``."""
        return any(keeps_files(recipe) for _, recipe in self.players)

    def in_run(self, folder: Path) -> LegsPolicy:
        """Returns the recipe whose players keep their files in the folder of the run."""
        players = [
            (name, each.in_run(folder) if keeps_files(each) else each)
            for name, each in self.players
        ]
        return replace(self, players=tuple(players))

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> LegsPlayer:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: a player does not fit these spaces; the message names it.
        """
        policies = {}
        for number, (name, recipe) in enumerate(self.players):
            with named(f"player {name!r}"):
                policies[name] = recipe.build(spec, task, seed=derived_seed(seed, number))
        return LegsPlayer(policies, self.groups, self.offsets)


class LegsPlayer:
    """Policy of ``LegsPolicy``: splits a batch by player and way of choosing actions.

    The schedule proceeds leg by leg, so nearly every batch is of one kind and is passed on
    unchanged.

    Players share memory columns of the same name, type and shape, since a row belongs to one player
    at a time. So twenty checkpoints of one network need as much memory as one.
    """

    version = 0
    calls: int  # the most of any player
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(
        self,
        players: Mapping[str, Policy],
        groups: Sequence[tuple[int, bool]],
        offsets: Sequence[int],
    ) -> None:
        self._names, self._policies = list(players), list(players.values())
        self._offsets = offsets
        self._kinds = list(dict.fromkeys(groups))
        # Counted from 1, since the memory of a slot without an episode is zero.
        self._kind_of_leg = [self._kinds.index(group) + 1 for group in groups]
        self.calls = max(map(calls_of, self._policies))
        if any(CALLS in policy.extras for policy in self._policies):
            self.extras = {CALLS: CALLS_SPEC}
        self._locks = [Lock() if calls_of(policy) == 1 else None for policy in self._policies]
        self._keys: list[dict[str, str]] = []  # for each policy, its memory keys and our columns
        self._blank: dict[str, tuple[np.dtype[np.generic], tuple[int, ...]]] = {}

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the initial memory of each episode's player, and the number of its group."""
        legs = [bisect_right(self._offsets, start.episode) - 1 for start in starts]
        kinds = np.array([self._kind_of_leg[leg] for leg in legs], np.int32)
        if not self._keys:
            self._learn_layout(starts)
        memory: Columns = {_GROUP: kinds}
        for column, (dtype, shape) in self._blank.items():
            memory[column] = np.zeros((len(starts), *shape), dtype)
        if not self._blank:
            return memory
        players = np.array([self._kinds[kind - 1][0] for kind in kinds.tolist()])
        for player in set(players.tolist()):
            rows = np.flatnonzero(players == player)
            own = self._policies[player].initial_memory([starts[row] for row in rows.tolist()])
            for key, column in self._columns(player, own).items():
                memory[column][rows] = own[key]
        return memory

    def _learn_layout(self, starts: Sequence[Start]) -> None:
        """Reads the columns of every player's memory, which are fixed, from that of an episode."""
        for policy in self._policies:
            keys = {}
            for key, array in policy.initial_memory(starts[:1]).items():
                shape = array.shape[1:]
                keys[key] = f"{key}:{array.dtype.str}:{'x'.join(map(str, shape))}"
                self._blank[keys[key]] = (array.dtype, shape)
            self._keys.append(keys)

    def _columns(self, player: int, memory: Columns) -> dict[str, str]:
        keys = self._keys[player]
        if memory.keys() != keys.keys():
            raise ContractError(
                f"player {self._names[player]!r}: its memory had the columns {sorted(keys)} "
                f"and now has {sorted(memory)}; a policy's memory has the same columns always"
            )
        return keys

    def figures(self) -> Mapping[str, float]:
        """Returns the sums of the players' figures; see ``rollout.api.Reporting``."""
        return sum_figures(map(figures_of, self._policies))

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the decision of each row's player, sampled or not as its leg says.

        Slots without an episode are passed to any player of the batch.
        """
        if len(self._kinds) == 1:
            return self._decide(1, observations, memory, details)
        kinds = memory[_GROUP]
        last = int(kinds.max())
        others = np.flatnonzero((kinds != last) & (kinds != 0))
        if not len(others):
            return self._decide(max(last, 1), observations, memory, details)
        kinds = np.where(kinds == 0, last, kinds)
        actions: Columns = {}
        extras: Columns = {}
        stops = [""] * len(kinds)
        forward = {column: array.copy() for column, array in memory.items()}
        for kind in np.unique(kinds).tolist():
            rows = np.flatnonzero(kinds == kind)
            decision = self._decide(
                kind,
                {key: column[rows] for key, column in observations.items()},
                {key: column[rows] for key, column in memory.items()},
                None if details is None else [details[row] for row in rows.tolist()],
            )
            _scatter(actions, decision.actions, rows, len(kinds))
            _scatter(forward, decision.memory, rows, len(kinds))
            _scatter(extras, decision.extras, rows, len(kinds))
            for row, stop in zip(rows.tolist(), decision.stops or (), strict=False):
                stops[row] = stop
        return Decision(actions, forward, extras, stops if any(stops) else None)

    def _decide(
        self, kind: int, observations: Columns, memory: Columns, details: Sequence[Details] | None
    ) -> Decision:
        """Returns the decision of one player for the given rows."""
        player, explore = self._kinds[kind - 1]
        keys = self._keys[player]
        with self._locks[player] or nullcontext():
            decision = self._policies[player].act(
                observations,
                {key: memory[column] for key, column in keys.items()},
                details=details,
                explore=explore,
            )
        if keys:
            self._columns(player, decision.memory)
        renewed = {column: decision.memory[key] for key, column in keys.items()}
        extras = {}
        if self.extras:  # the calls of models are the one that players share
            none = np.frompyfunc(lambda _: [], 1, 1)(np.zeros(len(memory[_GROUP])))
            extras[CALLS] = decision.extras.get(CALLS, none)
        return replace(decision, memory={**memory, **renewed}, extras=extras)


def _scatter(into: Columns, part: Columns, rows: NDArray[np.intp], batch: int) -> None:
    for key, array in part.items():
        whole: Array | None = into.get(key)
        if whole is None:
            into[key] = whole = np.zeros((batch, *array.shape[1:]), array.dtype)
        whole[rows] = array
