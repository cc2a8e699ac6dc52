import numpy as np
import pytest

from rollout.api import Factor, Frame, Outcome, Start, StateSpace
from rollout.config import build_plugin
from rollout.errors import ConfigError, StateError, UnknownNameError

SPACE = StateSpace((Factor("number", (1, 2, 3)),))
WOOD, SHEEP = ({"name": "signal_goal", "signal": s, "reward": 5.0} for s in ("wood", "sheep"))


def frame(over=False, **signals):
    columns = {k: np.atleast_1d(np.asarray(v, np.float32)) for k, v in signals.items()}
    n = len(next(iter(columns.values())))
    return Frame({}, columns, np.full(n, over), np.zeros(n, bool), np.zeros(n, np.int64))


def play(name, steps, options=None, number=0, over_at=None):
    """Verdicts of (wood, sheep) after a reset at (0, 0)."""
    recipe = build_plugin("evaluators", name, options or {"parts": [WOOD, SHEEP]})
    evaluator = recipe.build(1)
    evaluator.reset([0], [Start(SPACE.state(number), 1)], frame(wood=0, sheep=0))
    verdicts = [
        evaluator.judge({}, frame(over=i == over_at, wood=w, sheep=s))
        for i, (w, s) in enumerate(steps)
    ]
    return [(float(v.reward[0]), float(v.progress[0]), Outcome(v.outcome[0])) for v in verdicts]


RUNNING, SUCCESS, FAILURE = tuple(Outcome)[:3]


def test_and_wants_every_part_in_any_order():
    assert play("and", [(0, 1), (0, 0), (1, 0)]) == [
        (5, 0.5, RUNNING),
        (0, 0.5, RUNNING),  # what was done stays done
        (5, 1.0, SUCCESS),
    ]


def test_or_wants_one_part():
    assert play("or", [(0, 0), (0, 1), (1, 1)]) == [
        (0, 0.0, RUNNING),
        (5, 1.0, SUCCESS),
        (0, 1.0, SUCCESS),
    ]


def test_then_wants_the_parts_in_order():
    assert play("then", [(0, 0), (1, 0), (1, 1)])[-1] == (5, 1.0, SUCCESS)
    relative = {"parts": [WOOD, {**SHEEP, "relative": True}]}
    assert play("then", [(0, 1), (1, 1), (1, 1), (1, 2)], relative) == [
        (0, 0.0, RUNNING),  # too early: pays nothing, counts for nothing
        (5, 0.5, RUNNING),
        (0, 0.5, RUNNING),
        (5, 1.0, SUCCESS),
    ]


def test_a_game_that_is_over_fails_what_is_left():
    assert play("and", [(1, 0), (1, 0)], over_at=1)[-1] == (0, 0.5, FAILURE)
    assert play("or", [(0, 0)], over_at=0)[-1] == (0, 0, FAILURE)
    assert play("then", [(1, 0)], over_at=0)[-1] == (5, 0.5, FAILURE)
    assert play("then", [(0, 0)], over_at=0)[-1] == (0, 0, FAILURE)


def test_a_and_b_or_c_is_scored_as_the_paper_does():
    nested = {"parts": [{"name": "and", "parts": [WOOD, SHEEP]}, {**WOOD, "target": 4.0}]}
    assert play("or", [(1, 0), (3, 0), (3, 1)], nested) == [
        (10, 0.5, RUNNING),  # mean(1, 0) against 1 of 4
        (10, 0.75, RUNNING),
        (5, 1.0, SUCCESS),
    ]


def test_the_target_may_be_a_factor_of_the_state():
    options = {"signal": "sheep", "target_factor": "number", "reward": 5.0}
    assert play("signal_goal", [(0, 1), (0, 3)], options, number=2) == [
        (5, pytest.approx(1 / 3), RUNNING),
        (10, 1.0, SUCCESS),
    ]
    assert play("signal_goal", [(0, 1)], options, number=0) == [(5, 1.0, SUCCESS)]
    recipe = build_plugin("evaluators", "signal_goal", {**options, "target_factor": "size"})
    with pytest.raises(StateError, match="target_factor 'size'"):
        recipe.build(1).reset([0], [Start(SPACE.state(0), 1)], frame(wood=0, sheep=0))


def test_slots_are_apart():
    recipe = build_plugin("evaluators", "then", {"parts": [WOOD, SHEEP]})
    evaluator = recipe.build(2)
    evaluator.reset([0, 1], [Start(SPACE.state(0), 1)] * 2, frame(wood=[0, 0], sheep=[0, 0]))
    evaluator.judge({}, frame(wood=[1, 0], sheep=[0, 0]))
    verdict = evaluator.judge({}, frame(wood=[1, 1], sheep=[1, 0]))
    assert verdict.progress.tolist() == [1.0, 0.5]
    evaluator.reset([0], [Start(SPACE.state(0), 2)], frame(wood=[0], sheep=[0]))
    verdict = evaluator.judge({}, frame(wood=[0, 1], sheep=[1, 1]))
    assert verdict.progress.tolist() == [0.0, 1.0]
    assert verdict.outcome.tolist() == [RUNNING, SUCCESS]


@pytest.mark.parametrize(
    ("parts", "error", "says"),
    [
        ([WOOD], ConfigError, "at least two"),
        ([WOOD, {"signal": "x"}], ConfigError, r"parts\[1\]: expected the `name`"),
        ([WOOD, {"task": "hunt"}], ConfigError, "task files only"),
        ([WOOD, {"name": "signal_gaol"}], UnknownNameError, "Nearest: signal_goal"),
        ([WOOD, {**SHEEP, "target": "many"}], ConfigError, r"parts\[1\]: .*target"),
    ],
)
def test_wrong_parts(parts, error, says):
    with pytest.raises(error, match=says):
        build_plugin("evaluators", "and", {"parts": parts})
