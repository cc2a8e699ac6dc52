"""Means, gaps and differences: against closed forms, by their symmetries, and by their coverage."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.science.coverage import EPISODES_AS_RUNS, World, coverage, table
from rollout.errors import ConfigError, UnknownNameError
from rollout.evaluate.statistics import (
    METHODS,
    STATES,
    Intervals,
    difference,
    gap,
    hierarchical,
    jackknife,
    one_player,
)
from rollout.evaluate.statistics.components import part, resampled

pytestmark = pytest.mark.heavy

SHAPES = st.tuples(st.integers(2, 5), st.integers(2, 12), st.integers(1, 3))


def crossed(shape, seed=0, *, seeds=1.0, states=1.0):
    draw = np.random.default_rng(seed).standard_normal
    s, k, _ = shape
    return seeds * draw((s, 1, 1)) + states * draw((1, k, 1)) + draw(shape)


def ends(estimate):
    return np.array([estimate.low, estimate.point, estimate.high])


def squares(cells):
    """Sums of squares of rows, of columns and of what is left, divided by the number of cells."""
    rows = cells.mean(1, keepdims=True) - cells.mean()
    columns = cells.mean(0, keepdims=True) - cells.mean()
    rest = cells - cells.mean() - rows - columns
    return (rows**2).mean(), (columns**2).mean(), (rest**2).mean()


# -- the t interval -----------------------------------------------------------------------------


@pytest.mark.parametrize("states", ["nested", "fixed"])
def test_own_or_fixed_states_give_the_t_interval_of_the_seed_means(states):
    scores = crossed((4, 30, 2))
    means = scores.mean((1, 2))
    expected = scipy.stats.t.interval(0.9, 3, means.mean(), scipy.stats.sem(means))
    estimate = hierarchical(scores, Intervals(confidence=0.9), states=states)
    assert (estimate.low, estimate.high) == pytest.approx(expected, rel=1e-6)


def test_shared_states_give_the_interval_of_the_mean_squares():
    s, k = 5, 40
    scores = crossed((s, k, 3), seeds=0.7)
    rows, columns, rest = squares(scores.mean(2))
    # Two factors at random: the variance of the mean is (MS_seeds + MS_states - MS_rest) / (s k).
    of_seeds, of_states = rows / (s - 1), columns / (k - 1)
    residual = rest / ((s - 1) * (k - 1))
    of_t = scipy.stats.t.ppf(0.975, s - 1) ** 2, scipy.stats.t.ppf(0.975, k - 1) ** 2
    half = math.sqrt(of_t[0] * of_seeds + of_t[1] * (of_states - residual))
    estimate = hierarchical(scores)
    assert estimate.high - estimate.point == pytest.approx(half, rel=1e-6)
    assert estimate.point - estimate.low == pytest.approx(half, rel=1e-6)


def test_with_many_seeds_the_width_is_that_of_the_true_error():
    s, k = 60, 60
    estimates = [hierarchical(crossed((s, k, 1), i, seeds=0.5, states=2)) for i in range(100)]
    points = [estimate.point for estimate in estimates]
    true = math.sqrt(0.5**2 / s + 2**2 / k + 1 / (s * k))
    half = np.mean([estimate.high - estimate.point for estimate in estimates])
    assert half == pytest.approx(2.0 * true, rel=0.05)
    assert np.std(points) == pytest.approx(true, rel=0.3)


def test_seeds_that_agree_by_chance_do_not_make_the_states_certain():
    scores = crossed((3, 50, 1), seeds=0)
    scores -= scores.mean(1, keepdims=True)  # every seed has the same mean
    error = scipy.stats.sem(scores.mean((0, 2)))
    estimate = hierarchical(scores)
    assert estimate.high - estimate.point == pytest.approx(scipy.stats.t.ppf(0.975, 49) * error)


def test_no_spread_at_all_is_reported():
    estimate = hierarchical(np.ones((3, 20, 1)))
    assert estimate.low == estimate.high == 1.0
    assert estimate.method.endswith("the spread was not measured, it is not 0)")
    assert one_player(np.ones((20, 1))).method.endswith("it is not 0)")


def test_with_holes_the_share_of_the_states_is_that_of_the_jackknife():
    scores = crossed((4, 300, 1), seeds=0.5, states=2)
    scores[np.random.default_rng(0).random(scores.shape) < 0.4] = np.nan
    scores -= np.nanmean(scores, axis=1, keepdims=True)  # leaves the states' share alone
    without = [scores[:, np.arange(300) != k] for k in range(300)]
    points = [np.nanmean(x, axis=1).mean() for x in without]
    jackknife = 299 * np.var(points)
    half = hierarchical(scores).high - hierarchical(scores).point
    assert half == pytest.approx(1.968 * math.sqrt(jackknife), rel=0.03)


def test_one_player_has_the_t_interval_of_its_state_means():
    scores = crossed((1, 30, 2))[0]
    scores[4] = np.nan
    means = np.delete(scores, 4, axis=0).mean(1)
    expected = scipy.stats.t.interval(0.95, 28, means.mean(), scipy.stats.sem(means))
    estimate = one_player(scores)
    assert (estimate.low, estimate.high) == pytest.approx(expected, rel=1e-6)
    assert estimate.counts == {"states": 29, "episodes": 58, "lost": 2}


# -- the bootstrap ------------------------------------------------------------------------------


@pytest.mark.parametrize("states", STATES)
@pytest.mark.parametrize("episodes", [1, 3])
def test_the_spread_of_the_resamples_is_the_closed_form(states, episodes):
    s, k = 4, 15
    scores = crossed((s, k, episodes), seed=3)
    cells = scores.mean(2)
    rows, columns, rest = squares(cells)
    of_episodes = ((scores - cells[..., None]) ** 2).mean() / (s * k * episodes)
    expected = {
        "crossed": rows / s + columns / k + rest / (s * k),  # Owen 2007, the pigeonhole bootstrap
        "nested": rows / s + (columns + rest) / (s * k),
        "fixed": rows / s,
    }[states] + of_episodes
    draws = resampled([part("scores", scores, 1, states)], 6000, seed=0)
    assert draws.var() == pytest.approx(expected, rel=0.08)
    assert draws.mean() == pytest.approx(scores.mean(), abs=4 * math.sqrt(expected / 6000))


def test_the_percentile_interval_is_that_of_its_resamples():
    scores = crossed((5, 20, 1))
    low, high = np.quantile(
        resampled([part("scores", scores, 1, "crossed")], 500, seed=7), [0.05, 0.95]
    )
    estimate = hierarchical(
        scores, Intervals(method="percentile", resamples=500, seed=7, confidence=0.9)
    )
    assert (estimate.low, estimate.high) == pytest.approx((low, high), rel=1e-9)


def test_large_arrays_are_drawn_in_chunks_and_differ_between_them():
    draws = resampled([part("scores", crossed((5, 4000, 1)), 1, "nested")], 300, seed=0)
    assert len(set(draws.tolist())) == 300


# -- how often they hold ------------------------------------------------------------------------


def test_the_default_covers_where_seeds_matter_most_and_the_alternatives_do_not():
    world = World("score", seeds=3, ratio=5.0)
    held, width = coverage(world, "t", experiments=400)
    assert 0.93 < held <= 0.99
    too_few, narrow = coverage(world, "percentile", experiments=150, resamples=200)
    assert too_few < 0.88
    wrong, narrowest = coverage(world, EPISODES_AS_RUNS, experiments=400)
    assert wrong < 0.5
    assert narrowest < narrow < width


@pytest.mark.parametrize("kind", ["gap", "success"])
def test_the_default_covers_gaps_and_success_rates(kind):
    held, _ = coverage(World(kind, seeds=4, ratio=1.0), "t", experiments=300)
    assert held > 0.91


def test_the_table_has_a_line_for_every_world():
    lines = table([World("gap", 2, 1.0, 8), World("score", 2, 0.5, 8)], experiments=3).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| gap | 2 | 1 | ")
    assert len({line.count("|") for line in lines}) == 1


# -- gaps and differences -----------------------------------------------------------------------


def test_the_gap_with_fixed_states_is_the_paired_t_interval():
    test, train = crossed((5, 20, 1)), crossed((5, 8, 1), seed=9)
    estimate = gap(train, test, train_states="fixed", test_states="fixed")
    paired = scipy.stats.ttest_rel(train.mean((1, 2)), test.mean((1, 2))).confidence_interval()
    assert (estimate.low, estimate.high) == pytest.approx(tuple(paired), rel=1e-6)


def test_what_train_and_test_share_by_seed_does_not_widen_the_gap():
    shared = 10 * np.random.default_rng(5).standard_normal((4, 1, 1))
    test, train = crossed((4, 60, 1), seeds=0), crossed((4, 60, 1), seed=1, seeds=0)
    for method in METHODS:
        plain, shifted = (
            gap(train + x, test + x, Intervals(method=method, resamples=300)) for x in (0.0, shared)
        )
        np.testing.assert_allclose(ends(shifted), ends(plain), atol=1e-9)


def test_shared_training_states_widen_the_gap_like_shared_test_states():
    train = crossed((5, 20, 1), seeds=0.1, states=3)
    test = crossed((5, 400, 1), seed=1, seeds=0.1, states=0.1)
    own, shared = gap(train, test), gap(train, test, train_states="crossed")
    assert shared.high - shared.low > 2 * (own.high - own.low)


def test_the_gap_counts_both_sides():
    train, test = crossed((3, 4, 2)), crossed((3, 10, 2))
    test[0, 0] = np.nan
    assert gap(train, test).counts == {
        "seeds": 3,
        "states": 22,
        "train_states": 12,
        "test_states": 10,
        "episodes": 82,
        "lost": 2,
    }


def test_a_difference_of_pairs_is_narrower_than_the_parts_suggest():
    a = crossed((4, 100, 1), states=5)
    b = a + 0.3 + 0.1 * np.random.default_rng(8).standard_normal(a.shape)
    estimate = difference(b, a)
    assert 0.2 < estimate.low < estimate.point < estimate.high < 0.4
    assert hierarchical(a).high - hierarchical(a).low > 10 * (estimate.high - estimate.low)


def test_an_untrained_player_is_compared_with_every_seed():
    a, fixed = crossed((4, 30, 2)), crossed((1, 30, 2), seed=2)
    assert difference(a, fixed) == hierarchical(a - fixed)
    assert difference(fixed, a) == hierarchical(fixed - a)


def test_a_difference_leaves_an_episode_lost_on_one_side_out_on_both():
    a, b = crossed((3, 5, 1)), crossed((3, 5, 1), seed=1)
    a[0, 1], b[2, 3] = np.nan, np.nan
    estimate = difference(a, b)
    cells = (a - b)[..., 0]
    assert estimate.point == pytest.approx(np.nanmean(cells, axis=1).mean())
    assert estimate.counts["lost"] == 2


# -- properties ---------------------------------------------------------------------------------


@given(shape=SHAPES, seed=st.integers(0, 99), states=st.sampled_from(STATES))
@settings(max_examples=40)
def test_the_interval_moves_and_scales_with_the_scores(shape, seed, states):
    scores = crossed(shape, seed)
    for method in METHODS:

        def of(values, method=method):
            return ends(
                hierarchical(values, Intervals(method=method, resamples=100), states=states)
            )

        low, point, high = of(scores)
        np.testing.assert_allclose(of(3 * scores + 7), 3 * np.array([low, point, high]) + 7)
        if method == "t":
            assert low <= point <= high
            np.testing.assert_allclose(of(-scores), [-high, -point, -low])


@given(shape=SHAPES, seed=st.integers(0, 99), states=st.sampled_from(STATES), data=st.data())
@settings(max_examples=40)
def test_the_order_of_seeds_states_and_episodes_is_nothing(shape, seed, states, data):
    scores = crossed(shape, seed)
    scores[np.random.default_rng(seed).random(shape) < 0.1] = np.nan
    shuffled = scores
    for axis, size in enumerate(shape):
        shuffled = shuffled.take(data.draw(st.permutations(range(size))), axis=axis)
    before, after = (hierarchical(x, states=states) for x in (scores, shuffled))
    assert before.counts == after.counts
    assert (before.low is None) == (after.low is None)
    if before.low is not None:
        np.testing.assert_allclose(ends(before), ends(after))


def test_narrower_confidence_is_within_wider():
    scores = crossed((4, 20, 1))
    for method in METHODS:
        narrow, wide = (
            hierarchical(scores, Intervals(method=method, confidence=c)) for c in (0.8, 0.99)
        )
        assert wide.low < narrow.low < narrow.high < wide.high


def test_the_bootstrap_depends_on_its_seed_alone():
    scores = crossed((4, 20, 2))
    first, again, other = (
        hierarchical(scores, Intervals(method="percentile", seed=s)) for s in (1, 1, 2)
    )
    assert first == again
    assert first.low != other.low


# -- what is missing ----------------------------------------------------------------------------


def test_seeds_weigh_equally_however_many_episodes_they_lost():
    scores = np.zeros((2, 4, 1))
    scores[1] = 1.0
    scores[1, 1:] = np.nan
    for method in METHODS:
        estimate = hierarchical(scores, Intervals(method=method), states="nested")
        assert estimate.point == 0.5
        assert estimate.counts == {"seeds": 2, "states": 5, "episodes": 5, "lost": 3}


def test_states_weigh_equally_however_many_episodes_they_lost():
    scores = np.array([[[0.0, 0.0], [1.0, np.nan]]] * 2)
    assert hierarchical(scores).point == 0.5


def test_a_seed_without_any_result_is_left_out_and_counted_as_lost():
    scores = crossed((4, 6, 2))
    scores[1] = np.nan
    for method in METHODS:
        with_it, without = (
            hierarchical(x, Intervals(method=method))
            for x in (scores, np.delete(scores, 1, axis=0))
        )
        np.testing.assert_allclose(ends(with_it), ends(without))
        assert (with_it.counts["seeds"], with_it.counts["lost"]) == (3, 12)


def test_a_seed_missing_on_one_side_of_a_gap_is_left_out_on_both():
    train, test = crossed((4, 6, 1)), crossed((4, 9, 1), seed=1)
    train[2] = np.nan
    expected = gap(np.delete(train, 2, axis=0), np.delete(test, 2, axis=0))
    np.testing.assert_allclose(ends(gap(train, test)), ends(expected))


def test_a_few_losses_hardly_change_the_interval():
    scores = crossed((5, 200, 1))
    holes = scores.copy()
    holes[np.random.default_rng(0).random(scores.shape) < 0.02] = np.nan
    for method in METHODS:
        whole, holed = (hierarchical(x, Intervals(method=method)) for x in (scores, holes))
        width = whole.high - whole.low
        np.testing.assert_allclose(ends(holed), ends(whole), atol=0.1 * width)


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_one_seed_has_a_figure_and_no_interval_and_the_reason(method):
    scores = crossed((1, 50, 3))
    estimate = hierarchical(scores, Intervals(method=method))
    assert estimate.point == pytest.approx(scores.mean())
    assert estimate.low is estimate.high is None
    assert "one training seed" in estimate.refused
    assert "at least 2" in estimate.refused
    assert "no interval: one training seed" in estimate.text()
    assert gap(scores, scores, Intervals(method=method)).refused == estimate.refused


def test_one_seed_is_also_what_is_left_of_several():
    scores = crossed((3, 5, 1))
    scores[:2] = np.nan
    assert "one training seed" in hierarchical(scores).refused


def test_nothing_at_all_is_refused():
    for estimate in (hierarchical(np.full((3, 4, 1), np.nan)), one_player([[np.nan]])):
        assert math.isnan(estimate.point)
        assert estimate.refused == "no episode has a result"


def test_one_shared_state_is_refused_unless_it_is_all_there_is():
    scores = crossed((4, 1, 10))
    assert "one state" in hierarchical(scores).refused
    assert hierarchical(scores, states="fixed").low is not None
    assert "one state" in one_player(scores[0]).refused


def test_wrong_input_is_named():
    scores = crossed((3, 4, 1))
    with pytest.raises(ConfigError, match=r"\(training seeds, states, episodes\).*\(3, 4\)"):
        hierarchical(scores[..., 0])
    with pytest.raises(ConfigError, match="none of them 0"):
        hierarchical(np.zeros((3, 0, 1)))
    with pytest.raises(ConfigError, match="infinity"):
        hierarchical(np.where(scores > 0, np.inf, scores))
    with pytest.raises(UnknownNameError, match="crossed"):
        hierarchical(scores, states="cross")
    with pytest.raises(UnknownNameError, match="percentile"):
        hierarchical(scores, Intervals(method="percentil"))
    with pytest.raises(ConfigError, match="not percent"):
        hierarchical(scores, Intervals(confidence=95))
    with pytest.raises(ConfigError, match="at least 100"):
        hierarchical(scores, Intervals(resamples=10))
    with pytest.raises(ConfigError, match="3 and 2"):
        gap(scores, scores[:2])
    with pytest.raises(ConfigError, match="same seeds, states and episodes"):
        difference(scores, scores[:, :3])
    with pytest.raises(ConfigError, match="where states are shared"):
        difference(scores, scores[:1], states="nested")
    with pytest.raises(ConfigError, match=r"\(states, episodes\)"):
        one_player(scores)


# -- bounds -------------------------------------------------------------------------------------

SHARES = st.integers(0, 2**32 - 1)


@given(shape=SHAPES, seed=SHARES, mean=st.floats(0, 1), method=st.sampled_from(METHODS))
@settings(max_examples=150)
def test_intervals_of_shares_stay_within_their_bounds(shape, seed, mean, method):
    """Whatever was measured; and what lies within them is not touched."""
    generator = np.random.default_rng(seed)
    a, b = (generator.random((2, *shape)) < mean).astype(float) * generator.choice([1.0, 0.5])
    how = {"method": method, "resamples": 100}
    pairs = [
        (hierarchical(a, Intervals(bounds=(0, 1), **how)), hierarchical(a, Intervals(**how)), 0),
        (gap(a, b, Intervals(bounds=(0, 1), **how)), gap(a, b, Intervals(**how)), -1),
        (difference(a, b, Intervals(bounds=(0, 1), **how)), difference(a, b, Intervals(**how)), -1),
        (one_player(a[0], Intervals(bounds=(0, 1))), one_player(a[0]), 0),
    ]
    for estimate, free, least in pairs:
        assert least <= estimate.low <= estimate.point <= estimate.high <= 1
        assert (estimate.low, estimate.high) == (max(free.low, least), min(free.high, 1))


def test_an_unbounded_interval_of_a_share_leaves_it():
    """What bounds are for: nine of ten episodes succeed, and the interval goes beyond 1."""
    scores = np.ones((3, 10, 1))
    scores[0, :3] = 0
    assert hierarchical(scores).high > 1
    assert hierarchical(scores, Intervals(bounds=(0, 1))).high == 1


def test_the_jackknife_has_no_interval_from_one_state_and_says_where_all_is_alike():
    scores = np.array([[[0.2]], [[0.4]], [[0.9]]])
    statistic = lambda seeds: float(scores[seeds].mean())  # noqa: E731
    alone = jackknife(statistic, 3, shared=[scores])
    assert (alone.low, alone.high) == (None, None)
    assert "one state" in alone.refused
    same = np.full((3, 4, 1), 0.5)
    alike = jackknife(lambda _: 0.5, 3, shared=[same])
    assert alike.low == alike.high == 0.5
    assert "the spread was not measured" in alike.method
