"""The comparison of two models: how often it is wrong, and what it is in cases that are known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rollout.errors import ConfigError
from rollout.evaluate.statistics import Intervals, comparison, holm


def players(generator, kind, *, seeds, states, count, better=0.0):
    """Scores of equal players, the last of which is better by so much, (seeds, states, 1) each."""
    of_states = generator.normal(size=states)
    found = []
    for number in range(count):
        of_seeds = 0.5 * generator.normal(size=(seeds, 1)) if seeds > 1 else 0.0
        scores = of_states + of_seeds + generator.normal(size=(seeds, states))
        scores += better * (number == count - 1)
        if kind == "success":
            scores = (scores > 1.0).astype(float)
        elif kind == "skewed":
            scores = np.exp(1.2 * scores)
        found.append(scores[:, :, None])
    return found


def share_of_findings(kind, *, experiments, **design):
    """The share of experiments in which any player is found to be better than another."""
    generator = np.random.default_rng(7)
    found = 0
    for _ in range(experiments):
        scores = players(generator, kind, **design)
        pairs = [(a, b) for i, a in enumerate(scores) for b in scores[i + 1 :]]
        found += any(p < 0.05 for p in holm([comparison(a, b).p for a, b in pairs]))
    return found / experiments


DESIGNS = [(1, 3, 3), (1, 6, 3), (1, 10, 4), (1, 100, 4), (2, 64, 3), (3, 30, 3), (5, 30, 3)]


@pytest.mark.parametrize(("seeds", "states", "count"), DESIGNS)
@pytest.mark.parametrize("kind", ["normal", "success", "skewed"])
def test_of_equal_players_none_is_better_in_most_experiments(kind, seeds, states, count):
    share = share_of_findings(kind, experiments=60, seeds=seeds, states=states, count=count)
    assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 60)


@pytest.mark.long
@pytest.mark.parametrize(("seeds", "states", "count"), [*DESIGNS, (10, 100, 4), (1, 512, 8)])
@pytest.mark.parametrize("kind", ["normal", "success", "skewed"])
def test_of_equal_players_none_is_better_in_95_percent(kind, seeds, states, count):
    share = share_of_findings(kind, experiments=2000, seeds=seeds, states=states, count=count)
    assert share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize(("seeds", "states"), [(1, 100), (5, 64)])
def test_a_better_player_is_found(seeds, states):
    design = {"seeds": seeds, "states": states, "count": 2, "better": 2.0}
    assert share_of_findings("normal", experiments=20, **design) == 1.0


def test_two_players_are_compared_by_a_paired_t_test():
    a, b = players(np.random.default_rng(0), "normal", seeds=1, states=40, count=2)
    known = stats.ttest_rel(a.ravel(), b.ravel())
    found = comparison(a, b)
    assert found.p == pytest.approx(known.pvalue)
    low, high = known.confidence_interval()
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high))
    assert found.unit == "states"
    assert found.ahead == np.mean(a > b)
    pooled = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    assert found.effect == pytest.approx((a.mean() - b.mean()) / pooled)


def test_training_seeds_of_one_figure_are_compared_by_welchs_test():
    generator = np.random.default_rng(1)
    a, b = generator.normal(1, 2, (5, 1, 1)), generator.normal(0, 1, (4, 1, 1))
    known = stats.ttest_ind(a.ravel(), b.ravel(), equal_var=False)
    found = comparison(a, b)
    assert found.p == pytest.approx(known.pvalue, rel=1e-6)
    low, high = known.confidence_interval()
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high))
    assert found.unit == "training seeds"
    assert found.ahead == np.mean(a > b.reshape(1, 4))


def test_the_interval_ends_at_0_where_its_confidence_is_1_minus_p():
    a, b = players(np.random.default_rng(2), "normal", seeds=4, states=20, count=2)
    found = comparison(a, b)
    ends = comparison(a, b, Intervals(1 - found.p)).difference
    assert min(abs(ends.low), abs(ends.high)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_three_episodes_that_end_alike_have_no_interval_and_decide_nothing(apart):
    b = np.zeros((1, 3, 1))
    found = comparison(b + apart, b, Intervals(bounds=(0.0, 1.0)))
    assert found.difference.low is None
    assert found.difference.point == apart
    assert "all 3 states differ alike" in found.difference.refused
    assert found.p == (0.25 if apart else 1.0)
    assert found.effect is None


def test_many_episodes_that_differ_alike_decide():
    b = np.zeros((1, 20, 1))
    assert comparison(b + 1, b).p < 1e-5


def test_three_states_are_never_enough():
    a, b = np.array([10.0, 10.1, 9.9]), np.zeros(3)
    found = comparison(a.reshape(1, 3, 1), b.reshape(1, 3, 1))
    assert stats.ttest_rel(a, b).pvalue < 0.001
    assert found.p == 0.25


def test_seeds_that_score_alike_have_no_interval():
    a, b = np.ones((3, 8, 1)), np.zeros((3, 8, 1))
    found = comparison(a, b)
    assert found.difference.low is None
    assert found.p == pytest.approx(2 / 20)


def test_of_one_state_the_episodes_are_compared():
    generator = np.random.default_rng(3)
    a, b = generator.normal(size=(2, 1, 1, 30))
    found = comparison(a, b)
    assert found.unit == "episodes"
    assert found.p == pytest.approx(stats.ttest_rel(a.ravel(), b.ravel()).pvalue)


def test_one_episode_of_one_state_says_nothing():
    found = comparison(np.ones((1, 1, 1)), np.zeros((1, 1, 1)))
    assert math.isnan(found.p)
    assert found.difference.low is None


@pytest.mark.parametrize("seeds", [1, 3])
def test_an_episode_that_is_lost_on_one_side_is_left_out_on_both(seeds):
    a, b = players(np.random.default_rng(4), "normal", seeds=seeds, states=12, count=2)
    whole = comparison(a[:, 1:], b[:, 1:])
    a[:, 0] = np.nan
    found = comparison(a, b)
    assert found.p == pytest.approx(whole.p)
    assert found.difference.point == pytest.approx(whole.difference.point)


def test_without_results_there_is_no_verdict():
    nothing = np.full((2, 4, 1), np.nan)
    assert math.isnan(comparison(nothing, np.zeros((2, 4, 1))).p)
    assert math.isnan(comparison(nothing[:1], np.zeros((1, 4, 1))).p)


def test_other_states_are_refused():
    with pytest.raises(ConfigError, match=r"same states.*\(1, 3, 1\) and \(1, 4, 1\)"):
        comparison(np.zeros((1, 3, 1)), np.zeros((1, 4, 1)))


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(2, 8),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_the_sides_may_be_exchanged(ours, theirs, states, repeats, seed):
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 3, (ours, states, repeats)).astype(float)
    b = generator.integers(0, 3, (theirs, states, repeats)).astype(float)
    one, other = comparison(a, b), comparison(b, a)
    assert one.p == pytest.approx(other.p)
    assert one.difference.point == pytest.approx(-other.difference.point)
    assert one.ahead == pytest.approx(1 - other.ahead)
    assert (one.difference.low is None) == (other.difference.low is None)
    if one.difference.low is not None:
        assert one.difference.low < one.difference.high
        assert one.difference.low == pytest.approx(-other.difference.high)
    assert 0 < one.p <= 1


def test_holm_is_that_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    ps = [0.01, 0.04, 0.03, 0.005, 0.2, 1.0]
    assert holm(ps) == pytest.approx(multitest.multipletests(ps, method="holm")[1])


def test_what_is_not_tested_costs_nothing():
    corrected = holm([math.nan, 0.03, 0.01])
    assert math.isnan(corrected[0])
    assert corrected[1:] == pytest.approx([0.03, 0.02])


def test_the_variances_of_seeds_and_of_states_add_up():
    """Where scores are a seed's effect plus a state's, which is another for each side."""
    generator = np.random.default_rng(5)
    seeds, states = generator.normal(size=(2, 4)), generator.normal(size=(2, 9))
    a, b = (seeds[i][:, None, None] + states[i][None, :, None] for i in (0, 1))
    variances = seeds.var(axis=1, ddof=1) / 4
    degrees = variances.sum() ** 2 / (variances**2 / 3).sum()
    of_states = (states[0] - states[1]).var(ddof=1) / 9
    t_seeds, t_states = stats.t.ppf(0.975, degrees), stats.t.ppf(0.975, 8)
    half = math.sqrt(t_seeds**2 * variances.sum() + t_states**2 * of_states)
    found = comparison(a, b).difference
    assert (found.high - found.low) / 2 == pytest.approx(half)
