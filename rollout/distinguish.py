"""Distinguishable states of a task: a factor that changes nothing makes no states.

The size of a state space is the product of its factors. Where no observation shows a factor and
nothing depends on it, states that differ in this factor alone are one state to every policy. Such
a factor is *inert* for that task and those options of the bridge.

**Test.** From random states, episodes are played with one sequence of actions each. The same
episode, with the same random numbers and actions, is then played from states in which one factor
has another value. The factor is inert if all observations, rewards, progress and ends stay equal
for every other value that was tried, in every state. (Then changing several inert factors changes
nothing either: one is changed after the other.) Columns whose names begin with ``privileged`` and
the details of frames are not compared.

**What it shows.** No difference in n states means, with 95 % confidence, that the factor acts in
less than a share 3 / n of the states (the rule of three; Hanley and Lippman-Hand 1983), *with these
actions*. A factor that acts only late or only where something rare happens needs a better policy
than random actions. Values of factors that are not inert may coincide as well, so the number of
states is an upper bound.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from rollout.api import (
    Array,
    Bridge,
    Columns,
    CommonNoise,
    Deadlines,
    Frame,
    Policy,
    PolicyRecipe,
    Start,
    StateSpace,
    Task,
    sample,
)
from rollout.api.state import Value, length
from rollout.configuration.sections import HostConfig
from rollout.errors import ContractError, InputError
from rollout.host.handle import Handle, InProcessHandle, SubprocessHandle, await_result
from rollout.host.instances import free_ports
from rollout.host.policy_calls import POLICY_CODE, PolicyInput, call_policy, read_only
from rollout.host.processes import owned_workdir, remove_workdir
from rollout.host.referee import Referee

_T = TypeVar("_T")

_PRIVILEGED = "privileged"
_STEPS = 200  # of tasks without a limit
_VALUES = 12  # other values of a factor to try in each state
_FIRST = 4  # states that find the factors that obviously act
_HELD = 0.75  # share of the random actions that repeat the last one: a walk gets somewhere

_Choose = Callable[[int, Frame], Columns]
"""Returns the actions of a step, from its number and the frame before it; a row per episode."""


@dataclass(frozen=True)
class _Episode:
    """An episode that was played.

    Attributes:
        start: its start.
        actions: actions of each step, by key.
        trace: digest of each frame: of everything that a policy and a score can depend on.
    """

    start: Start
    actions: list[Columns]
    trace: list[bytes]


_Changed = tuple[_Episode, Mapping[str, Value]]
"""An episode, and other values for factors of its start."""


@dataclass(frozen=True)
class Distinguishable:
    """Number of distinguishable states; see the module.

    Attributes:
        all_states: number of combinations of values.
        states: upper bound of the number of distinguishable ones: without the inert factors.
        inert: names of the factors that change nothing.
        tried: number of states in which every inert factor was tried.
        steps: most steps of an episode.
    """

    all_states: int
    states: int
    inert: tuple[str, ...]
    tried: int
    steps: int

    @property
    def acts_at_most(self) -> float:
        """Share of the states in which an inert factor may act, with 95 % confidence."""
        return min(1.0, 3 / self.tried)

    def describe(self) -> dict[str, Any]:
        """Returns it as JSON-able data."""
        return {
            "all_states": str(self.all_states),
            "states": str(self.states),
            "inert": list(self.inert),
            "tried": self.tried,
            "steps": self.steps,
            "acts_at_most": self.acts_at_most,
        }


def distinguishable(
    bridge: Bridge,
    task: Task,
    policy: PolicyRecipe | None = None,
    *,
    only: Mapping[str, Sequence[Value]] | None = None,
    tried: int = 60,
    steps: int | None = None,
    seed: int = 0,
    host: HostConfig | None = None,
) -> Distinguishable:
    """Returns the number of distinguishable states of a task, found by playing.

    Plays in this process or, if the game needs it, in a process of its own; without Ray. The same
    arguments give the same result.

    Args:
        bridge: the game with its observations.
        task: the task.
        policy: chooses the actions; random ones, held for four steps on average, if None.
        only: the only values of factors, as in ``state_set.only``.
        tried: number of random states from which episodes are played.
        steps: most steps of an episode; that of the task, or 200 if it has none, if None.
        seed: of the states, the actions and the policy.
        host: options of hosting.

    Raises:
        InputError: the game is not reproducible, its slots share worlds, or an argument is wrong.
        ContractError: the same episode was not the same twice.
        GameError: the game failed.
    """
    bridge = bridge.with_common_noise() if isinstance(bridge, CommonNoise) else bridge
    spec = bridge.spec
    if not spec.reproducible or spec.width_step > 1:
        why = "is not reproducible" if not spec.reproducible else "has several slots in a world"
        raise InputError(
            f"{spec.name} {why}; which states can be told apart is only found for games that "
            f"repeat an episode exactly in any slot"
        )
    if tried < 1 or (steps is not None and steps < 1):
        raise InputError(f"expected at least 1 state and 1 step, got {tried} and {steps}")
    space = task.state_space.restrict(dict(only or {}))
    steps = steps or task.limits.steps or _STEPS
    rng = np.random.default_rng(seed)
    with _launched(bridge, host or HostConfig()) as game:
        inert = _inert(_Player(game, task, policy, steps, seed), space, tried, rng)
    left = math.prod(factor.size for factor in space if factor.name not in inert)
    return Distinguishable(space.size, left, tuple(inert), tried, steps)


def _inert(player: _Player, space: StateSpace, tried: int, rng: np.random.Generator) -> list[str]:
    """Returns the names of the inert factors, in order; few states find those that clearly act."""
    inert = [factor.name for factor in space if factor.size > 1]
    episodes: list[_Episode] = []
    for count in (min(_FIRST, tried), tried):
        new = player.play([_random_start(space, rng) for _ in range(count - len(episodes))])
        episodes += new
        if not all(player.same(space, [(episode, {}) for episode in new])):
            raise ContractError(
                "the same state, seed and actions gave another episode; gamut check-bridge says "
                "what is not reproducible"
            )
        changed = [(e, {n: v}) for e in new for n in inert for v in _others(space, e, n, rng)]
        acts = set()
        for (_, values), same in zip(changed, player.same(space, changed), strict=True):
            acts |= set() if same else set(values)
        inert = [name for name in inert if name not in acts]
    return inert


def _random_start(space: StateSpace, rng: np.random.Generator) -> Start:
    values = {factor.name: _draw(space, factor.name, rng) for factor in space}
    return Start(space.state(space.index(values)), int(rng.integers(2**63)))


def _draw(space: StateSpace, name: str, rng: np.random.Generator) -> Value:
    values = space.factor(name).values
    return values[int.from_bytes(rng.bytes(32), "little") % length(values)]


def _others(space: StateSpace, of: _Episode, name: str, rng: np.random.Generator) -> list[Value]:
    """Returns values of a factor other than an episode's: all, or a few random ones of many."""
    own, values = of.start.state.values[name], space.factor(name).values
    if length(values) > _VALUES + 1:
        return [v for v in (_draw(space, name, rng) for _ in range(_VALUES)) if v != own]
    return [value for value in values if value != own]


class _Game:
    """A running game.

    Attributes:
        spec: spec of its bridge.
        width: number of its slots.
    """

    def __init__(self, bridge: Bridge, handle: Handle, width: int, limits: Deadlines) -> None:
        self.spec, self.width = bridge.spec, width
        self._handle = handle
        self._limits = {"launch": limits.start_s, "reset": limits.reset_s, "step": limits.step_s}

    def call(self, command: str, *arguments: Any) -> Any:
        """Returns the result of a command of the handle."""
        seconds = self._limits[command]
        getattr(self._handle, command)(*arguments, seconds)
        return await_result(self._handle, seconds, f"{self.spec.name}, asked to {command},")


@contextlib.contextmanager
def _launched(bridge: Bridge, host: HostConfig) -> Iterator[_Game]:
    """Launches a game, and ends it at the end."""
    spec, folder = bridge.spec, owned_workdir("gamut-states-")
    width, limits = spec.choose_width(None), host.deadlines(spec.deadlines)
    here = host.plays_in_process(spec.process)
    handle: Handle = (InProcessHandle if here else SubprocessHandle)(
        bridge, folder / "game", free_ports(spec.ports), width
    )
    try:
        game = _Game(bridge, handle, width, limits)
        game.call("launch")
        yield game
    finally:
        handle.close(limits.close_s)
        remove_workdir(folder)


class _Player:
    """Plays episodes, and plays them again from changed starts."""

    def __init__(
        self, game: _Game, task: Task, policy: PolicyRecipe | None, steps: int, seed: int
    ) -> None:
        self._game, self._task, self._steps = game, task, steps
        self._rng = np.random.default_rng([seed, 1])
        with POLICY_CODE:
            self._policy = None if policy is None else policy.build(game.spec, task, seed=seed)

    def play(self, starts: Sequence[Start]) -> list[_Episode]:
        """Returns an episode from each start."""
        episodes = []
        for some in _parts(starts, self._game.width):
            choose = self._random() if self._policy is None else _deciding(self._policy, some)
            traces, steps = self._roll(some, choose)
            for row, (start, trace) in enumerate(zip(some, traces, strict=True)):
                actions = [{key: column[row] for key, column in each.items()} for each in steps]
                episodes.append(_Episode(start, actions[: len(trace) - 1], trace))
        return episodes

    def same(self, space: StateSpace, changed: Sequence[_Changed]) -> list[bool]:
        """Returns whether each episode is the same from its start with the other values."""
        found = []
        for some in _parts(changed, self._game.width):
            starts = []
            for episode, values in some:
                state = space.state(space.index({**episode.start.state.values, **values}))
                starts.append(replace(episode.start, state=state))
            traces, _ = self._roll(starts, _repeating([episode for episode, _ in some]))
            found += [t == each.trace for t, (each, _) in zip(traces, some, strict=True)]
        return found

    def _roll(
        self, starts: Sequence[Start], choose: _Choose
    ) -> tuple[list[list[bytes]], list[Columns]]:
        """Plays an episode from each start, in the first slots.

        Returns:
            the digests of the frames of each episode, and the actions of each step.
        """
        rows = list(range(len(starts)))
        every = np.arange(self._game.width) % len(rows)  # the actions of idle slots are ignored
        referee = Referee(self._task, self._game.width)
        frame = self._game.call("reset", rows, starts)
        referee.reset(rows, starts, frame)
        traces = [[digest] for digest in _digests(frame, [])]
        steps: list[Columns] = []
        for step in range(self._steps):
            if not referee.active.any():
                break
            chosen = {key: np.array(column) for key, column in choose(step, frame).items()}
            steps.append(chosen)
            actions = {key: column[every] for key, column in chosen.items()}
            playing = np.flatnonzero(referee.active).tolist()
            frame = self._game.call("step", actions)
            ruling = referee.judge(actions, frame)
            verdict = ruling.verdict
            judged = [verdict.reward, verdict.progress, ruling.terminated, ruling.truncated]
            frame = frame.take(rows)
            digests = _digests(frame, [column[rows] for column in judged])
            for row in playing:
                traces[row].append(digests[row])
            for row in ruling.ended:
                referee.finish(row, "terminated", int(verdict.outcome[row]))
        return traces, steps

    def _random(self) -> _Choose:
        """Returns the function that draws random actions, each held for some steps."""
        last: Columns = {}

        def choose(_: int, frame: Frame) -> Columns:
            rows = len(frame.tick)
            actions = sample(self._game.spec.action_space, rows, self._rng)
            held = self._rng.random(rows) < _HELD
            for key, column in last.items():
                actions[key][held] = column[held]
            last.update(actions)
            return actions

        return choose


def _deciding(policy: Policy, starts: Sequence[Start]) -> _Choose:
    """Returns the function that chooses the actions of a policy."""
    with POLICY_CODE:
        memory = policy.initial_memory(starts)

    def choose(_: int, frame: Frame) -> Columns:
        nonlocal memory
        seen = {key: read_only(array) for key, array in frame.observations.items()}
        decision = call_policy(policy, PolicyInput(seen, memory, frame.details, explore=True))
        memory = decision.memory
        return decision.actions

    return choose


def _repeating(episodes: Sequence[_Episode]) -> _Choose:
    """Returns the function that repeats the actions of episodes, then each last one."""

    def choose(step: int, _: Frame) -> Columns:
        rows = [each.actions[min(step, len(each.actions) - 1)] for each in episodes]
        return {key: np.stack([row[key] for row in rows]) for key in rows[0]}

    return choose


def _digests(frame: Frame, judged: Sequence[Array]) -> list[bytes]:
    """Returns a digest of each row of a frame and of its verdict."""
    hashes = [hashlib.blake2b(digest_size=8) for _ in frame.tick]
    seen = [c for key, c in sorted(frame.observations.items()) if not key.startswith(_PRIVILEGED)]
    for column in (*seen, *judged):
        plain = column + column.dtype.type(0) if column.dtype.kind == "f" else column  # no -0.0
        for one, row in zip(hashes, plain, strict=True):
            one.update(row.tobytes() if column.dtype != object else f"{row}\0".encode())
    return [one.digest() for one in hashes]


def _parts(items: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    for begin in range(0, len(items), most):
        yield items[begin : begin + most]
