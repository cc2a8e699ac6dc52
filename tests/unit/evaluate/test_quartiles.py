"""The interquartile mean over training seeds and its bootstrap."""

import numpy as np
import pytest
from scipy.stats import trim_mean

from rollout.errors import ConfigError
from rollout.evaluate.statistics import interquartile_band, interquartile_mean


@pytest.mark.parametrize("seeds", range(1, 12))
def test_it_is_the_mean_of_the_middle_half(seeds):
    values = np.random.default_rng(seeds).normal(size=(seeds, 3))
    assert interquartile_mean(values) == pytest.approx(trim_mean(values, 0.25, axis=0))


def test_the_band_is_the_same_however_the_points_are_divided(monkeypatch):
    values = np.random.default_rng(0).normal(size=(5, 40))
    whole = interquartile_band(values)
    monkeypatch.setattr("rollout.evaluate.statistics.quartiles._CHUNK", 1)
    assert np.array_equal(interquartile_band(values), whole)
    low, high = whole
    assert (low <= interquartile_mean(values)).all()
    assert (interquartile_mean(values) <= high).all()


def test_the_band_of_equal_seeds_has_no_width_and_other_bands_do():
    values = np.ones((4, 2))
    values[0, 1] = 5
    low, high = interquartile_band(values)
    assert (low[0], high[0]) == (1, 1)
    assert high[1] > low[1] == 1


def test_one_seed_has_no_band():
    with pytest.raises(ConfigError, match="one seed has no interval"):
        interquartile_band(np.zeros((1, 5)))


def test_more_confidence_is_wider():
    values = np.random.default_rng(1).normal(size=(8, 1))
    ends = {c: interquartile_band(values, confidence=c) for c in (0.5, 0.95)}
    assert ends[0.95][0] < ends[0.5][0] < ends[0.5][1] < ends[0.95][1]
