"""Fakes of everything a game, a policy or a recorder can be."""

from rollout.testing.bridge_checks import check_bridge
from rollout.testing.fakes import FakeBridge, FakeInstance
from rollout.testing.memory import FakeClock, MemoryRecorder, check_continues
from rollout.testing.players import FakeEvaluator, FakePolicy
from rollout.testing.report import Check, Report

__all__ = [
    "Check",
    "FakeBridge",
    "FakeClock",
    "FakeEvaluator",
    "FakeInstance",
    "FakePolicy",
    "MemoryRecorder",
    "Report",
    "check_bridge",
    "check_continues",
]
