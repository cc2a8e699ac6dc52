"""The conformance suite of evaluators: whole ones pass, and each check has one that fails it."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

from rollout.api import Verdict
from rollout.config import build_plugin
from rollout.errors import ContractError
from rollout.testing import FakeBridge, FakeEvaluator, check_evaluator
from rollout.testing.players import FakeJudge

SPEC = FakeBridge().spec
NEAR = {"name": "signal_goal", "signal": "distance", "target": 4.0, "compare": "<="}
FAR = {"name": "signal_goal", "signal": "distance", "target": 7.0}
CHECKS = [
    "requires",
    "verdicts",
    "same frames, same verdicts",
    "over slots repeat their verdict",
    "reset forgets the past",
    "rows are independent",
    "inputs are left as they are",
]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_fake_evaluator_passes(seed):
    report = check_evaluator(FakeEvaluator(), SPEC, seed=seed)
    report.raise_if_failed()
    assert report.names("passed") == CHECKS


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("game_reward", {}),
        ("game_reward", {"scale": 0.5, "clip": 1.0}),
        ("game_reward", {"success_return": 20.0}),
        ("game_reward", {"success_return": 20.0, "end_on_success": False}),
        ("signal_goal", {"signal": "distance", "target": 8.0}),
        ("signal_goal", {"signal": "distance", "target": 0.5, "compare": "<="}),
        ("signal_goal", {"signal": "reached"}),
        ("signal_goal", {"signal": "distance", "target": 3.0, "relative": True}),
        ("signal_goal", {"signal": "distance", "target_factor": "map"}),
        ("and", {"parts": [NEAR, FAR]}),
        ("or", {"parts": [FAR, NEAR, {"name": "signal_goal", "signal": "reached"}]}),
        ("then", {"parts": [NEAR, FAR]}),
        ("then", {"parts": [NEAR, {"name": "or", "parts": [FAR, {"name": "game_reward"}]}]}),
    ],
    ids=str,
)
def test_the_installed_evaluators_pass(name, options):
    check_evaluator(build_plugin("evaluators", name, options), SPEC).raise_if_failed()


@dataclass(frozen=True)
class Flawed(FakeEvaluator):
    flaw: str = ""

    @property
    def requires(self):
        return super().requires | ({"health"} if self.flaw == "requires" else set())

    def build(self, width):
        return FlawedJudge(self, width)


class FlawedJudge(FakeJudge):
    def __init__(self, recipe, width):
        super().__init__(recipe, width)
        self.flaw, self.calls = recipe.flaw, 0

    def reset(self, slots, starts, frame):
        kept = self._over.copy()
        if self.flaw == "reset touches all":
            slots = range(len(self._over))
            frame = frame.take(np.zeros(len(self._over), int))
        super().reset(slots, starts, frame)
        if self.flaw == "reset keeps the past":
            self._over |= kept

    def judge(self, actions, frame):
        self.calls += 1
        verdict = super().judge(actions, frame)
        reward, progress, outcome = verdict.reward, verdict.progress, verdict.outcome
        if self.flaw == "dtype":
            reward = reward.astype(np.float64)
        if self.flaw == "shape":
            outcome = outcome[:, None]
        if self.flaw == "NaN":
            reward = reward + np.float32(np.nan)
        if self.flaw == "progress":
            progress = progress + np.float32(1.5)
        if self.flaw == "outcome":
            outcome = outcome + np.int8(3)
        if self.flaw == "random":
            reward = reward + np.random.default_rng().random(len(reward), np.float32)
        if self.flaw == "over is rewarded":
            reward = frame.signals["reward"].astype(np.float32)
        if self.flaw == "over goes on":
            self._over[:] = False
        if self.flaw == "writes signals":
            frame.signals["reward"][:] = 0
        if self.flaw == "writes actions":
            actions["move"][:] = 9
        return Verdict(reward, progress, outcome)


FAILURES = [
    ("requires", "requires", r"does not have: \['health'\]"),
    ("verdicts", "dtype", "reward: expected float32"),
    ("verdicts", "shape", "outcome: expected int8"),
    ("verdicts", "NaN", "reward holds NaN"),
    ("verdicts", "progress", "progress outside 0 to 1"),
    ("verdicts", "outcome", "expected values of Outcome"),
    ("same frames, same verdicts", "random", "step 0: reward"),
    ("over slots repeat their verdict", "over is rewarded", "were over at step .*: reward"),
    ("over slots repeat their verdict", "over goes on", "were over at step"),
    ("reset forgets the past", "reset keeps the past", "after other episodes"),
    ("rows are independent", "reset touches all", "while slot 0 was reset"),
    ("inputs are left as they are", "writes signals", "judge changed the frame: signals/reward"),
    ("inputs are left as they are", "writes actions", "judge changed actions/move"),
]


@pytest.mark.parametrize(("name", "flaw", "seen"), FAILURES, ids=[f[1] for f in FAILURES])
def test_each_check_finds_its_flaw(name, flaw, seen):
    report = check_evaluator(Flawed(flaw=flaw), SPEC)
    assert report[name].result == "failed", report.table()
    assert re.search(seen, report[name].seen), report.table()
    with pytest.raises(ContractError):
        report.raise_if_failed()


def test_every_check_has_a_flaw_that_fails_it():
    assert {name for name, _, _ in FAILURES} == set(CHECKS)
