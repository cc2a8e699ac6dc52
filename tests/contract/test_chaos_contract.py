"""The chaos game keeps the contract of bridges while its options ask for no fault."""

import pytest

from bridges.chaos import ChaosBridge
from rollout.testing import FakeBridge, check_bridge
from rollout.testing.isolated import IsolatedBridge

UNEVEN = {
    "start_latency": 0.02,
    "reset_latency": "exponential(0.003, 0.02)",
    "step_latency": "lognormal(0.001, 1, 0.01)",
    "close_latency": 0.01,
}


@pytest.mark.process
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"slip": 0.0, "grandchild": "none"},
        {**UNEVEN, "grandchild": "setsid"},
        {"ignore_sigterm": True, "ignore_eof": True, "leak_bytes": 1000},
        {"show_memory": True},
    ],
    ids=str,
)
def test_a_game_without_faults_passes(options):
    bridge = ChaosBridge(mean_steps=12, **options)
    report = check_bridge(bridge, steps=40, width=3)
    report.raise_if_failed()
    if bridge.spec.reproducible:
        assert report.names("skipped") == ["snapshots are exact"]


def test_it_passes_without_a_process():
    report = check_bridge(ChaosBridge(mean_steps=12, zero_cost=True), steps=40)
    report.raise_if_failed()
    assert report.names("skipped") == ["snapshots are exact"]


@pytest.mark.process
@pytest.mark.parametrize(
    "bridge",
    [ChaosBridge(mean_steps=12, **UNEVEN), FakeBridge(with_details=True, children=1)],
    ids=["chaos", "fake"],
)
def test_what_crosses_the_border_of_a_process_keeps_the_contract(bridge):
    check_bridge(IsolatedBridge(bridge), steps=30, width=2).raise_if_failed()


@pytest.mark.process
@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ({"start_crash": 1.0}, "launch"),
        ({"reset_garbage": 1.0}, "reset frame"),
        ({"step_crash": 1.0}, "step frame"),
    ],
    ids=str,
)
def test_a_game_with_a_fault_fails(fault, check):
    report = check_bridge(ChaosBridge(mean_steps=12, **fault), steps=10, width=1, only=[check])
    assert report[check].result == "failed"
