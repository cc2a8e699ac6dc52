"""Figures over tasks, checked against rliable, which defines them."""

import numpy as np
import pytest

from rollout.errors import ConfigError
from rollout.evaluate.statistics import iqm, performance_profile, probability_of_improvement

pytestmark = pytest.mark.heavy

TASKS = ("a", "b", "c", "d", "e", "f", "g")


def runs(count, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(generator.normal(size=len(TASKS)), 0.5, size=(count, len(TASKS)))


@pytest.fixture(scope="module")
def rliable():
    """Rliable, made to import: arch 7, which it needs, predates a change in pandas 3.

    arch decorates one plotting function with a private helper of pandas that has taken another
    argument since; nothing that rliable computes comes near it.
    """
    import pandas.util._decorators as private

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(private, "deprecate_kwarg", lambda *_, **__: lambda function: function)
        from rliable import library, metrics
    np.random.seed(0)  # noqa: NPY002 - the generator that rliable draws from
    return library, metrics


def near(ours, theirs, width):
    """Within what two bootstraps of a few thousand draws differ by (about four sigmas)."""
    np.testing.assert_allclose(ours, theirs, atol=0.1 * width)


@pytest.mark.parametrize("count", [3, 10])
def test_the_interquartile_mean_is_that_of_rliable(rliable, count):
    library, metrics = rliable
    scores = runs(count)
    point, interval = library.get_interval_estimates(
        {"x": scores}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=1500
    )
    estimate = iqm(scores)
    assert estimate.point == pytest.approx(point["x"][0], rel=1e-12)
    low, high = interval["x"][:, 0]
    near([estimate.low, estimate.high], [low, high], high - low)
    assert estimate.counts == {"seeds": count, "tasks": 7}


def test_the_performance_profile_is_that_of_rliable(rliable):
    library, _ = rliable
    scores, thresholds = runs(5), np.linspace(-2, 2, 9)
    thresholds[4] = scores[0, 0]  # "above" leaves out the score itself
    shares, bands = library.create_performance_profile({"x": scores}, thresholds, reps=600)
    profile = performance_profile(scores, thresholds)
    np.testing.assert_allclose(profile.share, shares["x"])
    np.testing.assert_allclose([profile.low, profile.high], bands["x"], atol=1.1 / scores.size)


def test_the_probability_of_improvement_is_that_of_rliable(rliable):
    library, metrics = rliable
    a, b = runs(5).round(1), runs(8, seed=0).round(1) - 0.2  # rounded: there are ties
    point, interval = library.get_interval_estimates(
        {"x": (a, b)}, metrics.probability_of_improvement, reps=250
    )
    estimate = probability_of_improvement(a, b, resamples=5000)
    assert estimate.point == pytest.approx(point["x"])
    low, high = interval["x"][:, 0]
    np.testing.assert_allclose([estimate.low, estimate.high], [low, high], atol=0.16 * (high - low))


def test_the_mean_of_the_middle_half_by_hand():
    assert iqm([[0.0, 1.0, 2.0, 100.0], [0.0, 1.0, 2.0, 100.0]]).point == 1.5
    assert iqm([[5.0], [1.0], [3.0]]).point == 3.0  # fewer than four scores: nothing is cut


def test_tasks_may_be_given_by_name_and_in_any_order():
    scores = runs(4)
    by_name = {task: scores[:, i] for i, task in enumerate(TASKS)}
    assert iqm(by_name) == iqm(scores)
    other = dict(reversed(by_name.items()))
    assert probability_of_improvement(by_name, other).point == 0.5
    better = {task: column + 100 for task, column in other.items()}
    assert probability_of_improvement(better, by_name).point == 1.0


def test_a_resample_keeps_the_runs_of_a_task_together():
    scores = np.tile([0.0, 1000.0], (5, 1))  # all runs of a task alike: nothing can vary
    estimate = iqm(scores)
    assert estimate.low == estimate.point == estimate.high == 500.0


def test_one_run_per_task_has_no_interval():
    one = runs(1)
    for estimate in (iqm(one), probability_of_improvement(one, runs(5))):
        assert np.isfinite(estimate.point)
        assert estimate.low is None
        assert "one training seed" in estimate.refused
    profile = performance_profile(one, [0.0])
    assert profile.low is profile.high is None
    assert "one training seed" in profile.refused


def test_the_bootstraps_depend_on_their_seed_alone():
    scores = runs(4)
    assert iqm(scores, seed=1) == iqm(scores, seed=1)
    assert iqm(scores, seed=1).low != iqm(scores, seed=2).low


def test_wrong_input_is_named():
    with pytest.raises(ConfigError, match="as many runs for each"):
        iqm({"a": [1.0, 2.0], "b": [1.0]})
    with pytest.raises(ConfigError, match="got shapes"):
        iqm({})
    with pytest.raises(ConfigError, match=r"\(runs, tasks\), got shape \(3,\)"):
        iqm([1.0, 2.0, 3.0])
    with pytest.raises(ConfigError, match="finite scores"):
        iqm([[1.0, np.nan]])
    with pytest.raises(ConfigError, match="finite thresholds"):
        performance_profile(runs(3), [])
    with pytest.raises(ConfigError, match="same tasks"):
        probability_of_improvement({"a": [1.0, 2.0]}, {"b": [1.0, 2.0]})
    with pytest.raises(ConfigError, match="7 and 2 tasks"):
        probability_of_improvement(runs(3), runs(3)[:, :2])
