"""The conformance suite of policies: whole ones pass, and each check has one that fails it."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from gymnasium import spaces

from rollout.api import BridgeSpec, ColumnSpec, Factor, StateSpace, Task
from rollout.config import build_plugin
from rollout.errors import ConfigError, ContractError
from rollout.testing import FakeBridge, FakeEvaluator, FakePolicy, check_policy
from rollout.testing.players import FakePlayer

SPEC = FakeBridge().spec
TASK = Task("reach", "reach the target", SPEC.state_space, FakeEvaluator())
MIXED = BridgeSpec(
    "mixed",
    "1",
    spaces.Dict({"x": spaces.Box(-np.inf, np.inf, (3,)), "n": spaces.Discrete(3, start=-1)}),
    spaces.Dict(
        {
            "camera": spaces.Box(-180.0, 180.0, (2,)),
            "throttle": spaces.Box(0.0, np.inf, (1,), np.float64),
            "keys": spaces.MultiBinary(7),
            "slots": spaces.MultiDiscrete([3, 9], start=[-1, 2]),
            "byte": spaces.Box(3, 5, (2,), np.uint8),
            "move": spaces.Discrete(5, start=2),
        }
    ),
    StateSpace((Factor("seed", range(10**20)),)),
)
CHECKS = [
    "builds",
    "actions",
    "extras",
    "memory",
    "inputs are left as they are",
    "same seed, same decisions",
    "rows are independent",
    "figures",
]


@pytest.mark.parametrize("spec", [SPEC, MIXED], ids=["fake", "mixed"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_fake_policy_passes(spec, seed):
    task = Task("any", "", spec.state_space, FakeEvaluator())
    report = check_policy(FakePolicy(), spec, task, seed=seed)
    report.raise_if_failed()
    assert report.names("passed") == CHECKS


@pytest.mark.parametrize("spec", [SPEC, MIXED], ids=["fake", "mixed"])
def test_the_random_policy_passes(spec):
    task = Task("any", "", spec.state_space, FakeEvaluator())
    report = check_policy(build_plugin("policies", "random", {}), spec, task)
    report.raise_if_failed()
    assert report.names("skipped") == ["rows are independent"]  # it has no best action


def test_the_scripted_policy_passes():
    moves = np.arange(40) % 5
    recipe = build_plugin(
        "policies", "scripted", {"actions": {"move": moves}, "after": "repeat_last"}
    )
    report = check_policy(recipe, SPEC, TASK)
    report.raise_if_failed()
    assert report.names("passed") == CHECKS


def go_east(observations):
    """A policy of one line, for the conformance test of callables."""
    return np.where(observations["position"][:, 0] < 0.5, 4, 3)


def test_a_callable_policy_passes():
    target = f"{__name__}:go_east"
    report = check_policy(build_plugin("policies", "callable", {"function": target}), SPEC, TASK)
    report.raise_if_failed()
    assert report.names("passed") == CHECKS


def test_the_fake_policy_refuses_text():
    actions = spaces.Dict({"say": spaces.Text(5)})
    spec = BridgeSpec("talk", "1", SPEC.observation_space, actions, SPEC.state_space)
    with pytest.raises(ConfigError, match="plays no text"):
        FakePolicy().build(spec, TASK, seed=0)


@dataclass(frozen=True)
class Flawed(FakePolicy):
    flaw: str = ""

    def build(self, spec, task, *, seed):
        if self.flaw == "does not build":
            raise ConfigError("no")
        if self.flaw == "ignores the seed":
            seed = int(np.random.default_rng().integers(2**31))
        return FlawedPlayer(spec.action_space, seed, -1 if self.flaw == "version" else 0, self.flaw)


class FlawedPlayer(FakePlayer):
    def __init__(self, space, seed, version, flaw):
        super().__init__(space, seed, version)
        self.flaw, self.calls = flaw, 0

    @property
    def extras(self):
        if self.flaw == "extra missing":
            return {**super().extras, "cost": ColumnSpec()}
        if self.flaw == "extra undeclared":
            return {}
        if self.flaw == "extra dtype":
            return {**super().extras, "value": ColumnSpec("float64")}
        return super().extras

    def figures(self):
        return {"time": 1.0} if self.flaw == "figure without a group" else {"fake/acts": 1}

    def act(self, observations, memory, *, details, explore):
        self.calls += 1
        if self.flaw == "writes observations":
            observations["position"] += 1
        decision = super().act(observations, memory, details=details, explore=explore)
        batch = len(memory["count"])
        move = decision.actions["move"]
        if self.flaw == "outside":
            decision.actions["move"] = np.full(batch, 5, move.dtype)
        if self.flaw == "dtype":
            decision.actions["move"] = move.astype(np.int32)
        if self.flaw == "not a batch" and batch == 1:
            decision.actions["move"] = move[0]
        if self.flaw == "key":
            decision.actions["jump"] = move
        if self.flaw == "memory grows":
            decision.memory["count"] = decision.memory["count"][:, None]
        if self.flaw == "memory lost":
            del decision.memory["seed"]
        if self.flaw == "writes memory":
            memory["count"] += 1
        if self.flaw == "rows mixed":
            decision.actions["move"] = (move + move.sum()) % 5
        if self.flaw == "position in the batch":
            decision.actions["move"] = (move + np.arange(batch)) % 5
        return decision


FAILURES = [
    ("builds", "does not build", "ConfigError: no"),
    ("builds", "version", "expected 0 or more, got -1"),
    ("actions", "outside", "action 'move' row 0 is outside"),
    ("actions", "dtype", r"expected int64\[1\].*got int32"),
    ("actions", "not a batch", r"expected int64\[1\].*got int64\[\]"),
    ("actions", "key", r"unknown: \['jump'\]"),
    ("extras", "extra missing", r"expected \['cost', 'logp', 'value'\]"),
    ("extras", "extra undeclared", r"expected \[\] as declared"),
    ("extras", "extra dtype", "extra 'value': expected float64"),
    ("memory", "memory grows", "memory 'count': expected"),
    ("memory", "memory lost", r"memorys: expected \['count', 'seed'\]|KeyError"),
    ("inputs are left as they are", "writes observations", "changed the observation 'position'"),
    ("inputs are left as they are", "writes memory", "changed the memory 'count'"),
    ("same seed, same decisions", "ignores the seed", "differ at step"),
    ("rows are independent", "rows mixed", "in a batch of 3, actions/move differs"),
    ("rows are independent", "position in the batch", "in another order, actions/move differs"),
    ("figures", "figure without a group", "expected numbers by names as a/b, got 'time': 1.0"),
]


@pytest.mark.parametrize(("name", "flaw", "seen"), FAILURES, ids=[f[1] for f in FAILURES])
def test_each_check_finds_its_flaw(name, flaw, seen):
    report = check_policy(Flawed(flaw=flaw), SPEC, TASK)
    assert report[name].result == "failed", report.table()
    assert re.search(seen, report[name].seen), report.table()
    with pytest.raises(ContractError):
        report.raise_if_failed()


def test_every_check_has_a_flaw_that_fails_it():
    assert {name for name, _, _ in FAILURES} == set(CHECKS)
