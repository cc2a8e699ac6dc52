"""The conformance suite over games in processes of their own: the boundary keeps the contract."""

import numpy as np
import pytest

from rollout.api import Start
from rollout.errors import GameCrashed, GameStartError, GameTimeout, OutOfTurnError
from rollout.host.isolated import IsolatedBridge
from rollout.testing import FakeBridge, check_bridge


def test_a_game_in_its_own_process_passes():
    report = check_bridge(IsolatedBridge(FakeBridge(with_details=True, children=1)), steps=30)
    report.raise_if_failed()
    skipped = [c.name for c in report.checks if c.result == "skipped"]
    assert set(skipped) <= {"over slots are left alone", "snapshots are exact"}


def launched(tmp_path, **options):
    bridge = FakeBridge(**options)
    instance = IsolatedBridge(bridge).launch(tmp_path, [], width=1, timeout_s=30)
    start = Start(bridge.spec.state_space.state(0), 0)
    instance.reset([0], [start], timeout_s=10)
    return instance


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        ("exit_on_step", GameCrashed, "exit code 3"),
        ("crash_on_step", GameCrashed, "crash"),
        ("hang_on_step", GameTimeout, "no answer to step"),
    ],
)
def test_its_death_is_told_and_final(tmp_path, fault, error, said):
    instance = launched(tmp_path, **{fault: 1.0})
    actions = {"move": np.zeros(1, np.int64)}
    with pytest.raises(error, match=said):
        instance.step(actions, timeout_s=1.5)
    with pytest.raises(OutOfTurnError, match="launch another"):
        instance.step(actions, timeout_s=0.5)
    instance.close()
    instance.close()


def test_a_start_that_fails_says_why(tmp_path):
    with pytest.raises(GameStartError, match="fake"):
        launched(tmp_path, fail_on_start=1.0)
