"""Fakes of every interface, and conformance suites for implementations.

``FakeBridge`` is a small but complete game. ``FakePolicy`` and ``FakeEvaluator`` work with any game
and are deterministic. ``MemoryRecorder`` keeps fragments and refuses invalid ones.
``make_fragments`` makes valid ones without a host.

The suites return a ``Report`` and need no test framework::

    check_bridge(MyBridge()).raise_if_failed()
"""

from rollout.testing.algorithm_checks import (
    check_algorithm,
    check_group_algorithm,
    check_step_algorithm,
)
from rollout.testing.bridge_checks import check_bridge
from rollout.testing.evaluator_checks import check_evaluator
from rollout.testing.exporter_checks import FakeExporter, check_exporter
from rollout.testing.fakes import FakeBridge, FakeInstance
from rollout.testing.fragments import make_fragments
from rollout.testing.importer_checks import FakeImporter, check_importer
from rollout.testing.players import FakeEvaluator, FakePolicy
from rollout.testing.policy_checks import check_policy
from rollout.testing.recorder_checks import MemoryRecorder, check_continues, check_recorder, rows_of
from rollout.testing.report import Check, Report
from rollout.testing.state_checks import check_splits, check_state_space

__all__ = [
    "Check",
    "FakeBridge",
    "FakeEvaluator",
    "FakeExporter",
    "FakeImporter",
    "FakeInstance",
    "FakePolicy",
    "MemoryRecorder",
    "Report",
    "check_algorithm",
    "check_bridge",
    "check_continues",
    "check_evaluator",
    "check_exporter",
    "check_group_algorithm",
    "check_importer",
    "check_policy",
    "check_recorder",
    "check_splits",
    "check_state_space",
    "check_step_algorithm",
    "make_fragments",
    "rows_of",
]
