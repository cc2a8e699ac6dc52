"""One game with several slots as a PettingZoo ``ParallelEnv``: its slots are the agents.

For games whose slots share a world (a server with several players), and for third-party
multi-agent code: RLlib uses it as ``ray.rllib.env.wrappers.pettingzoo_env.ParallelPettingZooEnv``.
Needs the package ``pettingzoo`` (``pip install -c constraints.txt -e '.[pettingzoo]'``).

All agents begin together, from one state. When the game, the task or a limit ends an agent's
episode, the agent is removed from ``agents``, and its slot plays ``idle`` while others continue.
If a game hangs or dies, the episodes of all its agents end as ``truncated``, with
``infos[agent]["lost"]`` and the reason. The next ``reset`` launches another, so only ``reset``
raises because of it. Our own collection and training do not use this class; see
``rollout.host.Player``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from rollout.api import (
    Bridge,
    Columns,
    Frame,
    Instance,
    Start,
    StateSet,
    Task,
    allocate,
    check_columns,
    details_for_policies,
)
from rollout.api.fragment import End
from rollout.api.masks import masks_of, sample_mask
from rollout.errors import ConfigError, GameError, OutOfTurnError, SpaceError, UnknownNameError
from rollout.host.processes import owned_workdir, remove_workdir
from rollout.host.referee import Referee
from rollout.vector_env import Draws, Order, bare

Stepped: TypeAlias = tuple[
    dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
]
"""Observations, rewards, terminated, truncated and infos by agent."""


class ParallelWorld(ParallelEnv):  # type: ignore[misc] # an optional dependency, not followed
    """The slots of one instance as agents that act simultaneously.

    Agents are named by the bridge's ``agent_names()``, if it has this method, otherwise ``slot_0``,
    ``slot_1`` and so on. All have the same flat spaces of the bridge; a single column is not
    wrapped in a ``Dict``, as in ``RemoteVectorEnv``. Rewards are those of the task's evaluator.

    ``infos[agent]`` contains ``outcome`` and ``progress`` of the evaluator, ``details`` if the game
    has observations without a fixed shape, ``action_mask`` if it has masks, for
    ``action_space(agent).sample``, and after a reset ``state`` and ``seed``.

    Args:
        bridge: recipe of the game.
        task: the task.
        width: slots of the instance; if None, the number of names, or the game's maximum.
        states: the states from which episodes start, see ``Draws``.
        order: how they are drawn.
        seed: seed of the draws, until ``reset`` is given another.
        idle: action of agents that are done, a row ``{column: value}``; zeros if None.
        timeout_s: longest wait for a reply, if the bridge sets no shorter timeout.

    Raises:
        ConfigError: the game does not support this width, or the names do not fit it.
        UnknownNameError: ``idle`` names a column that actions do not have.
    """

    render_mode = None

    def __init__(
        self,
        bridge: Bridge,
        task: Task,
        *,
        width: int | None = None,
        states: StateSet | None = None,
        order: Order = "random",
        seed: int = 0,
        idle: Mapping[str, Any] | None = None,
        timeout_s: float = 120.0,
    ) -> None:
        spec = bridge.spec
        task.check(spec)
        self.metadata = {"name": spec.name, "is_parallelizable": True, "render_modes": []}
        self.possible_agents = _names(bridge, width)
        self.agents: list[str] = []
        self.task, self._bridge, self._spec = task, bridge, spec
        self._masked = bool(masks_of(spec.observation_space, spec.action_space))
        self._width = len(self.possible_agents)
        self._slots = {name: slot for slot, name in enumerate(self.possible_agents)}
        # Copies: seeding or sampling a space must not affect other instances.
        self._observed: spaces.Space[Any] = copy.deepcopy(bare(spec.observation_space))
        self._acted: spaces.Space[Any] = copy.deepcopy(bare(spec.action_space))
        self._draws, self._timeout_s = Draws(task, states, order), timeout_s
        self._idle = allocate(spec.action_space, self._width)
        for key, value in (idle or {}).items():
            if key not in self._idle:
                raise UnknownNameError("action column", key, self._idle)
            self._idle[key][:] = value
        check_columns(spec.action_space, self._idle, (self._width,))
        for key in idle or {}:
            self._check_action("idle", key, self._idle[key][0])
        self._referee = Referee(task, self._width)
        self._rng, self._episode = np.random.default_rng(seed), 0
        self._instance: Instance | None = None
        self._workdir = owned_workdir("gamut-parallel-")
        self._frame: Frame | None = None

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Returns the observation space, the same object for all agents."""
        self._require(agent)
        return self._observed

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Returns the action space, the same object for all agents."""
        self._require(agent)
        return self._acted

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begins an episode of all agents; returns their observations and infos.

        Args:
            seed: seed of the draws of states and seeds from now on.
            options: no options are supported.

        Raises:
            GameError: the game failed to launch or to reset; the next reset tries again.
        """
        del options
        if seed is not None:
            self._rng, self._episode = np.random.default_rng(seed), 0
        for slot in np.flatnonzero(self._referee.active).tolist():
            self._referee.finish(slot, "truncated", 0)  # cut by the caller: not a result
        starts = self._starts()
        slots = range(self._width)
        try:
            if self._instance is None:
                self._instance = self._bridge.launch(
                    self._workdir, (), width=self._width, timeout_s=self._spec.deadlines.start_s
                )
            self._frame = self._instance.reset(
                slots, starts, timeout_s=min(self._timeout_s, self._spec.deadlines.reset_s)
            )
        except GameError:
            self._drop()
            raise
        self._referee.reset(slots, starts, self._frame)
        self.agents = list(self.possible_agents)
        infos = self._infos(self.agents)
        for name, start in zip(self.agents, starts, strict=True):
            infos[name] |= {"state": str(start.state.index), "seed": start.seed}
        return self._observations(self.agents), infos

    def step(self, actions: Mapping[str, Any]) -> Stepped:
        """Plays one action of every agent that is not done.

        Raises:
            OutOfTurnError: ``reset`` was not called.
            ConfigError: an action is missing for an agent that plays, or given for another.
            SpaceError: an action is outside its space.
        """
        if self._frame is None or self._instance is None:
            raise OutOfTurnError("step was called before reset; call reset first")
        playing = list(self.agents)
        if actions.keys() != set(playing):
            raise ConfigError(f"expected actions of {playing}, got {sorted(actions)}")
        columns = self._columns(actions)
        check_columns(self._spec.action_space, columns, (self._width,))
        if not playing:
            return {}, {}, {}, {}, {}
        try:
            self._frame = self._instance.step(
                columns, timeout_s=min(self._timeout_s, self._spec.deadlines.step_s)
            )
        except GameError as error:
            return self._lost(playing, str(error))
        return self._judged(playing, columns, self._frame)

    def _judged(self, playing: list[str], columns: Columns, frame: Frame) -> Stepped:
        ruling = self._referee.judge(columns, frame)
        slots = {name: self._slots[name] for name in playing}
        terminated = {name: bool(ruling.terminated[slot]) for name, slot in slots.items()}
        truncated = {name: bool(ruling.truncated[slot]) for name, slot in slots.items()}
        rewards = {name: float(ruling.verdict.reward[slot]) for name, slot in slots.items()}
        infos = self._infos(playing)
        for name, slot in slots.items():
            infos[name]["outcome"] = int(ruling.verdict.outcome[slot])
            infos[name]["progress"] = float(ruling.verdict.progress[slot])
        for slot in ruling.ended:
            end: End = "terminated" if ruling.terminated[slot] else "truncated"
            self._referee.finish(slot, end, int(ruling.verdict.outcome[slot]))
        self.agents = [name for name in playing if not (terminated[name] or truncated[name])]
        return self._observations(playing), rewards, terminated, truncated, infos

    def _lost(self, playing: list[str], reason: str) -> Stepped:
        """Ends the episodes of a game that failed, with its last observations."""
        shown = self._observations(playing)
        self._drop()
        for slot in np.flatnonzero(self._referee.active).tolist():
            self._referee.finish(slot, "truncated", 0)
        self.agents = []
        return (
            shown,
            dict.fromkeys(playing, 0.0),
            dict.fromkeys(playing, False),
            dict.fromkeys(playing, True),
            {name: {"lost": True, "reason": reason} for name in playing},
        )

    def close(self) -> None:
        """Ends the game. Idempotent."""
        self._drop()
        self.agents = []
        remove_workdir(self._workdir)

    def _drop(self) -> None:
        instance, self._instance, self._frame = self._instance, None, None
        if instance is not None:
            instance.close()

    def _starts(self) -> list[Start]:
        """Returns one state for all slots, and a seed for each."""
        drawn, first = self._draws.start(self._rng, self._episode), self._episode * self._width
        self._episode += 1
        streams = np.random.SeedSequence(drawn.seed).spawn(self._width)
        seeds = [int(stream.generate_state(1, np.uint64)[0] >> 1) for stream in streams]
        return [replace(drawn, seed=s, episode=first + slot) for slot, s in enumerate(seeds)]

    def _columns(self, actions: Mapping[str, Any]) -> Columns:
        columns = {key: column.copy() for key, column in self._idle.items()}
        for name, action in actions.items():
            row = action if isinstance(self._acted, spaces.Dict) else {next(iter(columns)): action}
            if row.keys() != columns.keys():
                raise ConfigError(
                    f"{name}: expected the action columns {sorted(columns)}, got {sorted(row)}"
                )
            slot = self._slots[name]
            for key, value in row.items():
                columns[key][slot] = value
                self._check_action(name, key, columns[key][slot])
        return columns

    def _check_action(self, name: str, key: str, value: Any) -> None:
        leaf = self._spec.action_space.spaces[key]
        # Texts are checked by the game: the character set of a space does not decide their
        # validity.
        if not isinstance(leaf, spaces.Text) and not leaf.contains(value):
            raise SpaceError(f"{name}: expected {key} inside {leaf}, got {value!r}")

    def _observations(self, agents: Sequence[str]) -> dict[str, Any]:
        assert self._frame is not None
        columns = self._frame.observations.items()
        slots = ((name, self._slots[name]) for name in agents)
        return {name: bare({k: v[slot].copy() for k, v in columns}) for name, slot in slots}

    def _infos(self, agents: Sequence[str]) -> dict[str, dict[str, Any]]:
        assert self._frame is not None
        infos: dict[str, dict[str, Any]] = {name: {} for name in agents}
        details = self._frame.details
        for name in agents:
            if details is not None:
                infos[name]["details"] = details_for_policies(details[self._slots[name]])
        for name in agents if self._masked else ():
            row = {key: array[self._slots[name]] for key, array in self._frame.observations.items()}
            infos[name]["action_mask"] = bare(sample_mask(self._spec.action_space, row))
        return infos

    def _require(self, agent: str) -> None:
        if agent not in self._slots:
            raise ConfigError(f"expected one of the agents {self.possible_agents}, got {agent!r}")


def _names(bridge: Bridge, width: int | None) -> list[str]:
    """Returns the names of the agents; the bridge's own if it has one per slot."""
    named = getattr(bridge, "agent_names", None)
    names = list(named()) if callable(named) else []
    if width is None:
        width = len(names) or bridge.spec.max_width
    if not 1 <= width <= bridge.spec.max_width:
        raise ConfigError(
            f"width: expected 1 to {bridge.spec.max_width} slots of {bridge.spec.name}, got {width}"
        )
    if names and len(names) != width:
        raise ConfigError(
            f"width: expected {len(names)}, one slot for each of the agents {names}, got {width}"
        )
    return names or [f"slot_{slot}" for slot in range(width)]
