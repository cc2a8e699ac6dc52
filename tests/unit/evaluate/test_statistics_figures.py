"""Single figures: Wilson, Crafter's score, t quantiles; rows to arrays; estimates as text."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.errors import ConfigError
from rollout.evaluate.statistics import (
    Estimate,
    arrange,
    geometric_mean_score,
    hierarchical,
    wilson,
)
from rollout.evaluate.statistics.estimate import t_quantile

pytestmark = pytest.mark.heavy

# -- Wilson -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "low", "high"),
    # By hand with z = 1.959964: (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), n = 10
    [(0, 0.0, 0.277533), (5, 0.236593, 0.763407), (8, 0.490162, 0.943318), (10, 0.722467, 1.0)],
)
def test_wilson_by_hand(successes, low, high):
    estimate = wilson(successes, 10)
    assert estimate.point == successes / 10
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-6)
    assert estimate.counts == {"episodes": 10}


@given(trials=st.integers(1, 5000), share=st.floats(0, 1), confidence=st.floats(0.5, 0.999))
@settings(max_examples=60)
def test_wilson_is_that_of_statsmodels(trials, share, confidence):
    successes = round(share * trials)
    estimate = wilson(successes, trials, confidence=confidence)
    from statsmodels.stats.proportion import proportion_confint

    expected = proportion_confint(successes, trials, alpha=1 - confidence, method="wilson")
    assert (estimate.low, estimate.high) == pytest.approx(expected, abs=1e-9)
    assert 0 <= estimate.low <= estimate.point <= estimate.high <= 1
    mirror = wilson(trials - successes, trials, confidence=confidence)
    assert mirror.low == pytest.approx(1 - estimate.high, abs=1e-12)


def test_wilson_of_nothing_is_refused():
    estimate = wilson(0, 0)
    assert math.isnan(estimate.point)
    assert estimate.refused == "no episode has a result"


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3), (0, -1), (0.5, 3), (1, 2.0)])
def test_wilson_takes_whole_numbers_that_fit(successes, trials):
    with pytest.raises(ConfigError):
        wilson(successes, trials)


# -- Crafter ------------------------------------------------------------------------------------


def test_crafters_score_by_hand():
    assert geometric_mean_score([100.0] * 22) == pytest.approx(100.0)
    assert geometric_mean_score([0.0] * 22) == 0.0
    # (1+0)(1+3)(1+15) = 64, its cube root is 4
    assert geometric_mean_score([0.0, 3.0, 15.0]) == pytest.approx(3.0)


@pytest.mark.parametrize("rates", [[], [[1.0]], [101.0], [-1.0], [math.nan]])
def test_crafters_score_takes_percentages(rates):
    with pytest.raises(ConfigError):
        geometric_mean_score(rates)


# -- t ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 0.999])
def test_t_quantiles_in_closed_form(confidence):
    """Student's t with 1 and 2 degrees of freedom has a quantile function that can be written."""
    tail = (1 - confidence**2) / 4  # p (1 - p)
    assert t_quantile(confidence, 1) == pytest.approx(math.tan(math.pi / 2 * confidence))
    assert t_quantile(confidence, 2) == pytest.approx(confidence / math.sqrt(2 * tail))


def test_t_quantiles_of_the_printed_table():
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 10: 2.228, 30: 2.042, math.inf: 1.960}
    for degrees, expected in table.items():
        assert t_quantile(0.95, degrees) == pytest.approx(expected, abs=5e-4)


# -- rows ---------------------------------------------------------------------------------------


@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 3)),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_rows_in_any_order_become_the_array(shape, seed):
    generator = np.random.default_rng(seed)
    expected = generator.standard_normal(shape)
    labels = np.sort(generator.choice(1000, shape[0], replace=False))
    s, k, e = (axis.ravel() for axis in np.indices(shape))
    order = generator.permutation(expected.size)
    scores, seeds = arrange(labels[s][order], k[order], e[order], expected.ravel()[order])
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(seeds, labels)


def test_rows_that_are_not_there_are_nan():
    scores, seeds = arrange([7, 3, 3], [0, 0, 1], [0, 0, 0], [1.0, 2.0, math.nan])
    np.testing.assert_array_equal(scores[..., 0], [[2.0, math.nan], [1.0, math.nan]])
    assert seeds.tolist() == [3, 7]


def test_rows_of_two_arms_are_not_mixed():
    with pytest.raises(ConfigError, match=r"got 2 for \(5, 1, 0\)"):
        arrange([5, 5, 5], [0, 1, 1], [0, 0, 0], [1.0, 2.0, 3.0])
    with pytest.raises(ConfigError, match="one length"):
        arrange([5, 5], [0, 1], [0, 0], [1.0])


# -- text ---------------------------------------------------------------------------------------


def test_an_estimate_reads_as_figure_and_interval():
    estimate = Estimate(0.534, 0.4871, 0.5806, 0.95, "t")
    assert estimate.text() == "0.534 [0.487, 0.581]"
    assert estimate.text(2) == "0.53 [0.49, 0.58]"
    assert Estimate(1e-17, -1e-17, 0.5, 0.95, "t").text() == "0.000 [0.000, 0.500]"
    assert Estimate(2.0, None, None, 0.95, "t", {}, "why").text(0) == "2 (no interval: why)"


@pytest.mark.parametrize(("low", "shown"), [(-0.0004, "-0.000"), (0.0004, "0.000")])
def test_whether_zero_is_in_an_interval_can_be_seen(low, shown):
    assert Estimate(0.014, low, 0.029, 0.95, "t").text() == f"0.014 [{shown}, 0.029]"


def test_an_interval_of_no_width_says_that_nothing_was_measured():
    estimate = hierarchical(np.full((3, 4, 2), 0.5))
    alike = "all results alike, so their spread was not measured"
    assert estimate.text() == f"0.500 (no interval: {alike})"
