"""Success by groups of states over runs: the arithmetic of StarDojo's table 3."""

import numpy as np
import pytest

from rollout.api import Factor, Splits, StateSpace
from rollout.evaluate.published import attempted, grouped, groups_section

NAMES = tuple("abcd")
TABLE = {
    "factor": "task",
    "rows": {"a": "Easy", "b": "Easy", "c": "Easy", "d": "Hard"},
    "columns": {"a": "Combat", "b": "Combat", "c": "Combat", "d": "Social"},
}


def found(success, undefined=None):
    states = Splits(StateSpace((Factor("task", NAMES),)), seed=0).take("all", 4)
    order = [NAMES.index(str(states[k]["task"])) for k in range(4)]
    success = np.array(success, float)[order]
    none = np.zeros(success.shape, bool) if undefined is None else np.array(undefined)[order]
    return grouped(TABLE, states, success, none)


def test_the_deviation_is_that_of_the_sample_of_runs():
    """One of three easy combat tasks in one of three runs is 11.1 ± 19.3, as the paper prints."""
    cells = found([[1, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 0]])["cells"]
    assert cells["Easy"]["Combat"]["mean"] == pytest.approx(100 / 9)
    assert cells["Easy"]["Combat"]["deviation"] == pytest.approx(19.245, abs=1e-3)
    assert cells["Hard"]["Combat"] == {"states": 0, "mean": None, "deviation": None}
    # Over states, not over cells: runs of 50, 25 and 0 percent.
    assert cells["Total"]["Total"]["mean"] == pytest.approx(25)
    assert cells["Total"]["Total"]["deviation"] == pytest.approx(25)
    text = groups_section([{"leg": "x/lite/sampled", **found([[1, 0, 0], *[[0, 0, 0]] * 3])}])
    assert "11.1 ± 19.2 (3)" in text  # 19.245: the paper rounds up
    assert "| Hard | - | 0.0 ± 0.0 (1) |" in text or "| Hard | 0.0 ± 0.0 (1) | - |" in text


def test_what_has_no_result_or_no_verdict_counts_nowhere():
    told = found(
        [[1, np.nan], [0, 0], [0, 0], [0, 0]],
        [[False, False], [True, True], [False, False], [False, False]],
    )
    assert told["cells"]["Easy"]["Combat"]["mean"] == pytest.approx((50 + 0) / 2)
    assert told["cells"]["Easy"]["Combat"]["states"] == 2
    assert told["undefined"] == ["b"]
    assert "not counted: b." in groups_section([{"leg": "x", **told}])


def test_one_run_has_no_deviation():
    assert found([[1], [0], [0], [1]])["cells"]["Total"]["Total"] == {
        "states": 4, "mean": 50.0, "deviation": None,
    }  # fmt: skip


def test_invalid_episodes_are_counted_apart_from_failures():
    states = Splits(StateSpace((Factor("task", NAMES),)), seed=0).take("all", 4)
    order = [NAMES.index(str(states[k]["task"])) for k in range(4)]
    success = np.array([[1, 1], [0, 0], [0, np.nan], [1, 0]], float)[order]
    invalid = np.array([[False, False], [True, False], [False, False], [False, True]])[order]
    counts = attempted(TABLE, states, success, invalid, 0.95)
    told = [(c["group"], c["success"], c["attempted"], c["invalid"]) for c in counts]
    assert told == [("Easy", 2, 4, 1), ("Hard", 1, 1, 1), ("Total", 3, 5, 2)]
    plain = [{**each, "share": {"text": each["share"].text()}} for each in counts]
    leg = {"leg": "x", **found([[1], [0], [0], [1]]), "attempts": plain}
    assert "| Total | 3 / 5 | 0.600 [0.231, 0.882] | 2 |" in groups_section([leg])
