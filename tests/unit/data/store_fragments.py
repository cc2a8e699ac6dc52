"""Random valid fragments whose every value follows from (seed, episode, attempt, step).

Whoever reads a dataset back can compute what it must hold, also in another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    BridgeSpec,
    ColumnSpec,
    EpisodeResult,
    Factor,
    Fragment,
    Limits,
    Loss,
    Outcome,
    Start,
    State,
    StateSpace,
    Task,
    allocate,
    sample,
)
from rollout.data import Dataset, EpisodeRef, Manifest, describe_dataset

ENDS = ("terminated", "truncated", "lost")
STATES = StateSpace((Factor("terrain", range(10**25)), Factor("weapon", ("sword", "bow"))))
EXTRAS = {"logp": ColumnSpec(unit="nats", doc="log-probability"), "code": ColumnSpec("int16", (3,))}
SIGNALS = {"kills": ColumnSpec("float32", unit="kills", doc="kills so far")}


@dataclass(frozen=True)
class Judge:
    goal: float = 1.0

    @property
    def requires(self) -> frozenset[str]:
        return frozenset({"kills"})

    def build(self, width: int) -> Any:
        raise NotImplementedError


TASK = Task("hunt", "Hunt a cow.", STATES, Judge(), Limits(1000), "simple")


def frames(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


def make_spec(
    observations: Mapping[str, spaces.Space[Any]] | None = None,
    actions: Mapping[str, spaces.Space[Any]] | None = None,
    **options: Any,
) -> BridgeSpec:
    default = {
        "rgb": frames(6, 8, 3),
        "compass": spaces.Box(-1, 1, (3,), np.float32),
        "health": spaces.Discrete(21),
    }
    return BridgeSpec(
        "fake",
        "1/fake 0.1",
        spaces.Dict(list((observations or default).items())),
        spaces.Dict(list((actions or {"action": spaces.Discrete(5)}).items())),
        STATES,
        SIGNALS,
        max_width=1024,
        **options,
    )


def stacked_spec() -> BridgeSpec:
    """A game that shows stacks of frames along several axes."""
    stacks = {"first": frames(4, 9, 10), "last": frames(9, 10, 3)}
    stacks["floats"] = spaces.Box(-np.inf, np.inf, (2, 40, 2), np.float32)
    axes = {"first": 0, "last": 2, "floats": 0}
    return make_spec({**stacks, "health": spaces.Discrete(21)}, stacks=axes)


def make_manifest(spec: BridgeSpec | None = None, **options: Any) -> Manifest:
    options = {"policy": "random", "extras": EXTRAS, "run": "test", **options}
    return describe_dataset(spec or make_spec(), TASK, **options)


@dataclass(frozen=True)
class Truth:
    """Everything that must be read back of an episode."""

    length: int
    end: str
    columns: dict[str, Any]
    final: dict[str, Any]


class Player:
    """Plays made-up episodes in the slots of one made-up instance."""

    def __init__(
        self,
        spec: BridgeSpec | None = None,
        *,
        width: int = 1,
        seed: int = 0,
        instance: int = 0,
        longest: int = 20,
        lost: bool = True,
        details: bool = False,
        idle: float = 0.0,
        first: int = 0,
    ) -> None:
        self.spec = spec or make_spec()
        self.width, self.seed, self.instance = width, seed, instance
        self.longest, self.lost, self.details, self.idle = longest, lost, details, idle
        self._next = instance * 1_000_000 + first
        self._now: list[tuple[Start, int] | None] = [None] * width
        self.ended: list[tuple[int, int]] = []
        self._steps: dict[tuple[int, int, int], dict[str, Any]] = {}
        self._idle_rng = np.random.default_rng([seed, instance, 77])

    def plan(self, episode: int, attempt: int) -> tuple[int, str]:
        """Length and end of an episode."""
        rng = np.random.default_rng([self.seed, episode, attempt, 1 << 20])
        return int(rng.integers(1, self.longest + 1)), ENDS[rng.integers(3 if self.lost else 2)]

    def start(self, episode: int, attempt: int = 0) -> Start:
        rng = np.random.default_rng([self.seed, episode, 1 << 21])
        index = int(rng.integers(2**62)) * 3**15
        part = "train" if episode % 4 else "test"
        return Start(
            State(index, {}), int(rng.integers(2**62)), episode, attempt, f"{part}-9-ab12cd34"
        )

    def step_of(self, episode: int, attempt: int, step: int) -> dict[str, Any]:
        """Every value of one step; step == length gives the final observation."""
        key = (episode, attempt, step)
        if key not in self._steps:
            self._steps[key] = self._make_step(episode, attempt, step)
        return self._steps[key]

    def _make_step(self, episode: int, attempt: int, step: int) -> dict[str, Any]:
        rng = np.random.default_rng([self.seed, episode, attempt, step])
        observation = {k: v[0] for k, v in sample(self.spec.observation_space, 1, rng).items()}
        for key, axis in self.spec.stacks.items():
            if step % 11 != 5:  # there, the stack is another one altogether
                observation[key] = self._stack(key, axis, episode, attempt, step)
        return {
            "observation": observation,
            "action": {k: v[0] for k, v in sample(self.spec.action_space, 1, rng).items()},
            "reward": np.float32(rng.normal()),
            "progress": np.float32(rng.random()),
            "kills": np.float32(rng.integers(9)),
            "logp": np.float32(-rng.random()),
            "code": rng.integers(-5, 5, 3).astype(np.int16),
            "tick": int(rng.integers(2**40)),
            "details": {"text": f"e{episode} s{step}", "list": [step, {"a": None}]},
        }

    def _stack(self, key: str, axis: int, episode: int, attempt: int, step: int) -> Any:
        """The last frames; the first one of an episode is repeated."""
        leaf = self.spec.observation_space[key]
        count = leaf.shape[axis]
        found = []
        for number in range(step - count + 1, step + 1):
            rng = np.random.default_rng([self.seed, episode, attempt, max(0, number), 1])
            shape = leaf.shape[:axis] + leaf.shape[axis + 1 :]
            values = rng.integers(0, 255, shape).astype(leaf.dtype)
            if values.dtype.kind == "f":
                values[values > 200] = np.nan
            found.append(values)
        return np.stack(found, axis)

    def truth(self, episode: int, attempt: int = 0) -> Truth:
        length, end = self.plan(episode, attempt)
        steps = [self.step_of(episode, attempt, t) for t in range(length + 1)]
        columns: dict[str, Any] = {}
        for role in ("observation", "action"):
            for key in steps[0][role]:
                name = role if key == role else f"{role}/{key}"
                columns[name] = np.array([s[role][key] for s in steps[:-1]])
        for name, key in (
            ("signal/kills", "kills"),
            ("extra/logp", "logp"),
            ("extra/code", "code"),
        ):
            columns[name] = np.array([s[key] for s in steps[:-1]])
        for name in ("reward", "progress", "tick"):
            columns[name] = np.array([s[name] for s in steps[:-1]])
        columns["step"] = np.arange(length)
        if self.details:
            columns["details"] = [s["details"] for s in steps[:-1]]
        return Truth(length, end, columns, steps[-1]["observation"])

    def play(self, length: int) -> Fragment:
        """Returns the next ``length`` steps of every slot."""
        shape, spec = (length, self.width), self.spec
        starts: list[Start] = []
        numbers: dict[tuple[int, int], int] = {}
        fragment = self._empty(length)
        finals: list[tuple[int, int, dict[str, Any], dict[str, Any]]] = []
        results, losses = [], []
        details: list[list[Any]] = [[None] * self.width for _ in range(length)]
        for b in range(self.width):
            for t in range(length):
                now = self._now[b]
                if now is None:
                    if self.idle and self._idle_rng.random() < self.idle:
                        continue
                    now = (self.start(self._next), 0)
                    self._next += 1
                start, step = now
                key = (start.episode, start.attempt)
                if key not in numbers:
                    numbers[key] = len(starts)
                    starts.append(start)
                values = self.step_of(*key, step)
                self._put(fragment, t, b, numbers[key], step, values)
                details[t][b] = values["details"]
                planned, end = self.plan(*key)
                self._now[b] = (start, step + 1)
                if step + 1 == planned:
                    self._now[b] = None
                    getattr(fragment, end)[t, b] = True
                    last = self.step_of(*key, planned)
                    finals.append((t, b, last["observation"], last["details"]))
                    self.ended.append(key)
                    results.append(
                        EpisodeResult(
                            start, self.instance, b, end, Outcome(0), planned, 0.0, 0.0, 1.0
                        )  # type: ignore[arg-type]
                    )
                    if end == "lost":
                        losses.append(Loss(start, self.instance, b, "step", "it hung", planned))
        finals.sort(key=lambda f: f[:2])
        fragment.final_index = np.array([f[:2] for f in finals], np.int64).reshape(-1, 2)
        fragment.final_observations = allocate(spec.observation_space, len(finals))
        for k, final in enumerate(finals):
            for name, value in final[2].items():
                fragment.final_observations[name][k] = value
        fragment.starts = tuple(starts)
        fragment.results, fragment.losses = tuple(results), tuple(losses)
        if self.details:
            fragment.details, fragment.final_details = details, [f[3] for f in finals]
        assert fragment.reward.shape == shape
        fragment.check()
        return fragment

    def _empty(self, t: int) -> Fragment:
        b = self.width
        return Fragment(
            instance=self.instance,
            incarnation=0,
            starts=(),
            start_index=np.full((t, b), -1, np.int32),
            step=np.zeros((t, b), np.int32),
            observations=allocate(self.spec.observation_space, t, b),
            actions=allocate(self.spec.action_space, t, b),
            extras={"logp": np.zeros((t, b), np.float32), "code": np.zeros((t, b, 3), np.int16)},
            reward=np.zeros((t, b), np.float32),
            progress=np.zeros((t, b), np.float32),
            outcome=np.zeros((t, b), np.int8),
            signals={"kills": np.zeros((t, b), np.float32)},
            tick=np.zeros((t, b), np.int64),
            first=np.zeros((t, b), bool),
            terminated=np.zeros((t, b), bool),
            truncated=np.zeros((t, b), bool),
            lost=np.zeros((t, b), bool),
            version=np.arange(t, dtype=np.int64),
            wall_time=1.7e9 + np.arange(t) * 0.25,
            latency=np.full(t, 0.125, np.float32),
            final_index=np.zeros((0, 2), np.int64),
            final_observations=allocate(self.spec.observation_space, 0),
            next_observations=allocate(self.spec.observation_space, b),
        )

    def _put(
        self, fragment: Fragment, t: int, b: int, number: int, step: int, values: dict[str, Any]
    ) -> None:
        fragment.start_index[t, b], fragment.step[t, b] = number, step
        fragment.first[t, b] = step == 0
        for name in ("reward", "progress", "tick"):
            getattr(fragment, name)[t, b] = values[name]
        fragment.signals["kills"][t, b] = values["kills"]
        for name in ("logp", "code"):
            fragment.extras[name][t, b] = values[name]
        for key, value in values["observation"].items():
            fragment.observations[key][t, b] = value
        for key, value in values["action"].items():
            fragment.actions[key][t, b] = value


def plain_fragment(
    spec: BridgeSpec, length: int, width: int = 1, *, begin: int = 0, seed: int = 0
) -> Fragment:
    """Steps ``begin`` on of one endless episode per slot, with noise for observations."""
    fragment = Player(spec, width=width)._empty(length)
    rng = np.random.default_rng(seed)
    for key, array in fragment.observations.items():
        noise = rng.integers(0, 2, array.shape)
        fragment.observations[key] = noise.astype(array.dtype)
    fragment.starts = tuple(
        Start(State(7, {}), 0, episode, 0, "train-9-ab12cd34") for episode in range(width)
    )
    fragment.start_index[:] = np.arange(width)
    fragment.step[:] = (begin + np.arange(length))[:, None]
    fragment.first[:] = fragment.step == 0
    fragment.check()
    return fragment


def check_episode(
    dataset: Dataset,
    ref: EpisodeRef,
    player: Player,
    *,
    tolerance: Mapping[str, float] | None = None,
) -> None:
    """Asserts that an episode is read back as it was played."""
    truth, episode = player.truth(ref.episode, ref.attempt), dataset.read(ref)
    assert (ref.length, ref.end) == (truth.length, truth.end)
    start = player.start(ref.episode, ref.attempt)
    assert (ref.state, ref.seed, ref.state_set) == (start.state.index, start.seed, start.state_set)
    assert ref.total_reward == np.float64(truth.columns["reward"].astype(np.float64).sum())
    for name, expected in truth.columns.items():
        came, slack = episode.columns[name], (tolerance or {}).get(name, 0)
        if isinstance(expected, list) or expected.dtype == object:
            assert list(came) == list(expected), name
            continue
        assert came.shape == expected.shape, name
        if slack:
            assert np.abs(came.astype(float) - expected.astype(float)).mean() <= slack, name
        else:
            np.testing.assert_array_equal(came, expected, err_msg=name)
    for key, expected in truth.final.items():
        name = "observation" if key == "observation" else f"observation/{key}"
        slack = (tolerance or {}).get(name, 0)
        came = episode.final_observations[key]
        if not slack:
            np.testing.assert_array_equal(came, expected, err_msg=key)
        assert slack == 0 or np.abs(came.astype(float) - expected.astype(float)).mean() <= slack
    for mask in ("terminated", "truncated", "lost"):
        assert episode.columns[mask].tolist() == [False] * (ref.length - 1) + [ref.end == mask]
    assert episode.columns["first"].tolist() == [True] + [False] * (ref.length - 1)
    if player.details:
        assert (
            episode.final_details == player.step_of(ref.episode, ref.attempt, ref.length)["details"]
        )
