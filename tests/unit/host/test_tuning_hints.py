"""The line in the log that names the setting which limits a run."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from rollout.api import Limits, Task
from rollout.config import HostConfig
from rollout.host import fleets
from rollout.host.fleets import TuningHints
from rollout.host.hosting import HostPlan
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy


def hints_of(monkeypatch, *, width=1, instances=1, usual=1, isolation="auto", actors=0, cpus=2):
    bridge = FakeBridge()
    bridge.__dict__["spec"] = replace(bridge.spec, default_width=usual)
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=6))
    host = HostConfig(isolation=isolation)
    plan = HostPlan(bridge, task, FakePolicy(), instances=instances, width=width, host=host)
    monkeypatch.setattr(fleets.os, "cpu_count", lambda: cpus)
    now = [0.0]
    return TuningHints(plan, actors, "runners", clock=lambda: now[0]), now


@pytest.mark.parametrize(
    ("setting", "games", "learning", "named"),
    [
        ({"width": 8, "usual": 32}, 0.2, 0.1, "set width=32 instead of 8"),
        ({"width": 8, "instances": 4, "usual": 32}, 0.2, 0.1, "set runners=2"),
        ({"isolation": "subprocess", "actors": 2}, 0.9, 0.0, "set instances=2"),
        ({"isolation": "subprocess", "actors": 2, "instances": 4}, 0.9, 0.0, ""),
        ({"width": 32, "usual": 32}, 0.2, 0.1, "set runners=2"),
        ({"width": 32, "usual": 32, "cpus": 1}, 0.2, 0.1, ""),
        ({"width": 32, "usual": 32, "actors": 2}, 0.2, 0.1, ""),
        ({"width": 1, "usual": 32}, 0.2, 0.8, "learners"),
    ],
)
def test_it_names_the_setting_that_limits_the_run(monkeypatch, setting, games, learning, named):
    said = hints_of(monkeypatch, **setting)[0].hint(games, learning)
    assert (named in said) if named else said == ""


def test_it_speaks_once_and_only_after_a_while(monkeypatch, caplog):
    given, now = hints_of(monkeypatch, width=8, usual=32)
    caplog.set_level(logging.INFO)
    for now[0] in (0.0, 10.0, 10.0 + fleets.HINT_AFTER_S - 1):
        given.update({} if now[0] < 10 else {"players/games": 0.2})
    assert not caplog.records
    for _ in range(3):
        now[0] += 1
        given.update({"players/games": 0.2})
    assert [r.levelname for r in caplog.records] == ["INFO"]
    assert "docs/throughput.md" in caplog.text
