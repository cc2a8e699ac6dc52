"""Evaluators on cases worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.api import EvaluatorRecipe, Frame, Outcome, Start, State
from rollout.errors import ConfigError
from rollout.evaluators import GameReward, SignalGoal

RUNNING, SUCCESS, FAILURE = Outcome.RUNNING, Outcome.SUCCESS, Outcome.FAILURE
START = Start(State(0, {"seed": 0}), 0)


def frame(signal, values, over=None, cut=None):
    none = np.zeros(len(values), np.bool_)
    return Frame(
        {},
        {signal: np.array(values, np.float32)},
        none if over is None else np.array(over, np.bool_),
        none if cut is None else np.array(cut, np.bool_),
        np.zeros(len(values), np.int64),
    )


def judge(recipe, signal, begin, *steps):
    """The verdicts of frames after a reset of every slot; a step is values, over, cut."""
    evaluator = recipe.build(len(begin))
    evaluator.reset(range(len(begin)), [START] * len(begin), frame(signal, begin))
    verdicts = [evaluator.judge({}, frame(signal, *step)) for step in steps]
    return [(v.reward.tolist(), rounded(v.progress), v.outcome.tolist()) for v in verdicts]


def rounded(progress):
    return [None if np.isnan(p) else round(float(p), 4) for p in progress]


def test_the_reward_of_the_game():
    assert judge(GameReward(), "reward", [0, 0], ([1, -2],), ([0.5, 0],)) == [
        ([1, -2], [None, None], [RUNNING, RUNNING]),
        ([0.5, 0], [None, None], [RUNNING, RUNNING]),
    ]


def test_it_is_scaled_then_clipped():
    recipe = GameReward(scale=0.1, clip=0.5)
    assert [r for r, _, _ in judge(recipe, "reward", [0, 0], ([2, -90],))] == [
        [np.float32(0.2), -0.5]
    ]


def test_rows_that_are_over_repeat_without_reward():
    steps = ([3, 4], [True, False], [False, True]), ([3, 4], [True, False], [False, True])
    assert [r for r, _, _ in judge(GameReward(), "reward", [0, 0], *steps)] == [[3, 4], [0, 0]]


def test_success_as_soon_as_the_return_is_reached():
    recipe = GameReward(scale=10, clip=1, success_return=4)  # counts before scale and clip
    steps = ([1, 1, 3],), ([2, 1, 3], [False, True, False]), ([2, 1, 3], [False, True, False])
    assert judge(recipe, "reward", [0, 0, 0], *steps) == [
        ([1, 1, 1], [0.25, 0.25, 0.75], [RUNNING, RUNNING, RUNNING]),
        ([1, 1, 1], [0.75, 0.5, 1.0], [RUNNING, FAILURE, SUCCESS]),
        ([1, 0, 0], [1.0, 0.5, 1.0], [SUCCESS, FAILURE, SUCCESS]),
    ]


def test_success_at_the_end_of_the_game():
    recipe = GameReward(success_return=2, end_on_success=False)
    over, cut = [False, True, True, False, False], [False, False, False, True, True]
    steps = ([3] * 5,), ([-2, 0, -2, 0, -2], over, cut)
    assert judge(recipe, "reward", [0] * 5, *steps) == [
        ([3] * 5, [1.0] * 5, [RUNNING] * 5),
        ([-2, 0, -2, 0, -2], [0.5, 1.0, 0.5, 1.0, 0.5], [RUNNING, SUCCESS, FAILURE, SUCCESS, 0]),
    ]


def test_a_goal_that_is_not_above_zero_has_no_share():
    recipe = GameReward(success_return=0, end_on_success=False)
    assert judge(recipe, "reward", [0, 0], ([-1, 1],), ([0, 0], [True, True])) == [
        ([-1, 1], [None, None], [RUNNING, RUNNING]),
        ([0, 0], [None, 1.0], [FAILURE, SUCCESS]),
    ]


def test_a_reset_forgets_one_slot_and_leaves_verdicts_that_were_given():
    evaluator = GameReward(success_return=2).build(2)
    evaluator.reset([0, 1], [START] * 2, frame("reward", [0, 0]))
    first = evaluator.judge({}, frame("reward", [2, 1]))
    evaluator.reset([0], [START], frame("reward", [0]))
    second = evaluator.judge({}, frame("reward", [1, 1]))
    assert first.outcome.tolist() == [SUCCESS, RUNNING]
    assert second.outcome.tolist() == [RUNNING, SUCCESS]
    assert second.progress.tolist() == [0.5, 1.0]
    assert (first.reward.dtype, first.progress.dtype) == (np.float32, np.float32)
    assert first.outcome.dtype == np.int8


def test_units_gained_on_the_way_to_a_signal():
    recipe = SignalGoal(signal="wood", target=4, reward=0.5)
    steps = ([1],), ([0],), ([1],), ([3],), ([9],), ([9],)  # lost and gained again; past the goal
    assert judge(recipe, "wood", [0], *steps) == [
        ([0.5], [0.25], [RUNNING]),
        ([0], [0.25], [RUNNING]),
        ([0], [0.25], [RUNNING]),
        ([1], [0.75], [RUNNING]),
        ([0.5], [1.0], [SUCCESS]),
        ([0], [1.0], [SUCCESS]),
    ]


def test_shaping_pays_for_rises_of_other_signals_and_changes_nothing_else():
    def both(kills, dealt, over=None):
        made = frame("kills", kills, over)
        made.signals["dealt"] = np.array(dealt, np.float32)
        return made

    recipe = SignalGoal(signal="kills", target=2, reward=5, shaping={"dealt": 0.5})
    assert recipe.requires == {"kills", "dealt"}
    evaluator = recipe.build(2)
    evaluator.reset([0, 1], [START] * 2, both([0, 0], [3, 0]))
    frames = [
        both([0, 0], [7, 0]),  # 4 dealt by the first
        both([1, 0], [7, np.nan]),
        both([1, 0], [2, 6], [True, False]),  # a fall pays nothing; over from here on
        both([1, 0], [9, 6], [True, False]),
    ]
    verdicts = [evaluator.judge({}, f) for f in frames]
    assert [v.reward.tolist() for v in verdicts] == [[2, 0], [5, 0], [0, 3], [0, 0]]
    assert [v.progress.tolist() for v in verdicts] == [[0, 0], [0.5, 0], [0.5, 0], [0.5, 0]]
    assert verdicts[-1].outcome.tolist() == [FAILURE, RUNNING]


def test_the_way_begins_at_the_reset():
    recipe = SignalGoal(signal="wood", target=4)
    assert judge(recipe, "wood", [2, 5, 0], ([3, 5, 0], [False, False, True])) == [
        ([1, 0, 0], [0.5, 1.0, 0.0], [RUNNING, SUCCESS, FAILURE])
    ]


def test_less_can_be_the_goal():
    recipe = SignalGoal(signal="distance", target=2, compare="<=")
    assert judge(recipe, "distance", [10, 10], ([6, 11],), ([2, 9],)) == [
        ([4, 0], [0.5, 0.0], [RUNNING, RUNNING]),
        ([4, 1], [1.0, 0.125], [SUCCESS, RUNNING]),
    ]


def test_a_signal_that_is_not_told_changes_nothing():
    recipe = SignalGoal(signal="x", target=4)
    nan = np.nan
    assert judge(recipe, "x", [nan, 0], ([nan, 1],), ([2, nan],), ([3, 2],)) == [
        ([0, 1], [None, 0.25], [RUNNING, RUNNING]),
        ([0, 0], [0.0, 0.25], [RUNNING, RUNNING]),
        ([1, 1], [0.5, 0.5], [RUNNING, RUNNING]),
    ]


def test_a_cut_game_decides_nothing():
    verdicts = judge(SignalGoal(signal="x", target=4), "x", [0], ([1], [False], [True]))
    assert verdicts == [([1], [0.25], [RUNNING])]


def test_recipes():
    recipe: EvaluatorRecipe = GameReward()
    assert recipe.requires == {"reward"}
    recipe = SignalGoal(signal="x")
    assert recipe.requires == {"x"}


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        (GameReward, {"clip": 0}),
        (GameReward, {"scale": np.inf}),
        (SignalGoal, {}),
        (SignalGoal, {"signal": "x", "compare": "=="}),
        (SignalGoal, {"signal": "x", "target": np.nan}),
    ],
)
def test_wrong_options_are_refused_at_once(recipe, options):
    with pytest.raises(ConfigError):
        recipe(**options)


GOALS = [number / 100 for number in range(1, 101)]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_number_of_two_digits_reaches_itself(sign):
    assert sum(float(np.float32(goal)) < goal for goal in GOALS) == 50
    for goal in GOALS:
        ((_, progress, outcome),) = judge(GameReward(success_return=goal), "reward", [0], ([goal],))
        assert (progress, outcome) == ([1], [SUCCESS])
        recipe = SignalGoal(signal="x", target=sign * goal, compare=">=" if sign > 0 else "<=")
        ((_, progress, outcome),) = judge(recipe, "x", [0], ([sign * goal],))
        assert (progress, outcome) == ([1], [SUCCESS])


@given(
    parts=st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=200),
    digits=st.integers(0, 4),
)
def test_a_sum_of_decimal_rewards_reaches_the_goal_exactly_if_it_does_on_paper(parts, digits):
    steps = [([part / 10**digits],) for part in parts]
    for short in (0, 1):  # of the last digit
        goal = (sum(parts) + short) / 10**digits
        recipe = GameReward(success_return=goal, end_on_success=False)
        evaluator = recipe.build(1)
        evaluator.reset([0], [START], frame("reward", [0]))
        for number, (values,) in enumerate(steps, 1):
            over = [number == len(steps)]
            verdict = evaluator.judge({}, frame("reward", values, over))
        assert verdict.outcome.tolist() == [FAILURE if short else SUCCESS]


@pytest.mark.parametrize("goal", [3, 2_000_001, 16_777_216])
def test_whole_numbers_are_compared_exactly(goal):
    recipe = SignalGoal(signal="x", target=goal)
    verdicts = judge(recipe, "x", [0], ([goal - 1],), ([goal],))
    assert [outcome for *_, outcome in verdicts] == [[RUNNING], [SUCCESS]]
    verdicts = judge(GameReward(success_return=goal), "reward", [0], ([goal - 1],), ([1],))
    assert [outcome for *_, outcome in verdicts] == [[RUNNING], [SUCCESS]]


@pytest.mark.parametrize("begin", [0.1, 0.3, 1e4, -0.6])
def test_a_relative_target_is_reached(begin):
    recipe = SignalGoal(signal="x", target=0.7, relative=True)
    ends = [float(np.float32(np.float32(begin) + np.float32(0.7))), begin + 0.6]
    verdicts = judge(recipe, "x", [begin], ([ends[1]],), ([ends[0]],))
    assert [outcome for *_, outcome in verdicts] == [[RUNNING], [SUCCESS]]


def test_a_goal_of_zero_or_of_almost_nothing_is_not_reached_by_nothing():
    for goal in (1e-12, 1e-7):
        assert judge(SignalGoal(signal="x", target=goal), "x", [0], ([0],))[0][2] == [RUNNING]
        assert judge(GameReward(success_return=goal), "reward", [0], ([0],))[0][2] == [RUNNING]
    recipe = SignalGoal(signal="x", target=0, compare="<=")
    assert judge(recipe, "x", [1], ([1e-9],))[0][2] == [RUNNING]
