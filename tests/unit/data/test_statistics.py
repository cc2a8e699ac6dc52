"""Statistics in one pass are those of all rows, whatever the parts."""

import numpy as np
import pytest

from rollout.data import statistics
from rollout.data.statistics import QUANTILES, Levels, Running


def joined(kind, parts):
    first, *others = map(kind.of, parts)
    for other in others:
        first = first.joined(other)
    return first


@pytest.mark.parametrize("cuts", [[], [1], [3, 50, 51]])
def test_parts_have_the_statistics_of_the_whole(cuts):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 3))
    rows[[4, 60], 1] = np.nan
    rows[:, 2] = np.nan
    found = joined(Running, np.split(rows, cuts))
    assert found.count == 90
    assert found.known.tolist() == [90, 88, 0]
    for got, want in ((found.low, np.nanmin), (found.high, np.nanmax), (found.mean, np.nanmean),
                      (found.std, np.nanstd)):  # fmt: skip
        np.testing.assert_allclose(got[:2], want(rows[:, :2], axis=0), rtol=1e-12)
        assert np.isnan(got[2])
    np.testing.assert_allclose(
        found.quantiles()[:, :2], np.nanquantile(rows[:, :2], QUANTILES, axis=0)
    )
    images = rng.integers(0, 256, (90, 5, 4, 3)).astype(np.uint8)
    seen = joined(Levels, np.split(images, cuts))
    pixels = images.reshape(-1, 3).astype(float)
    for got, want in ((seen.low, np.min), (seen.high, np.max), (seen.mean, np.mean),
                      (seen.std, np.std)):  # fmt: skip
        np.testing.assert_allclose(got, want(pixels, axis=0), rtol=1e-12)
    np.testing.assert_allclose(seen.quantiles(), np.quantile(pixels, QUANTILES, axis=0))


def test_many_rows_are_sampled_evenly_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(statistics, "_SAMPLE_BYTES", 8 * 4000)
    parts = np.split(np.arange(100_000.0)[:, None], 1000)
    found = joined(Running, parts)
    assert len(found.ranks) <= 8000
    wanted = np.array(QUANTILES) * 100_000
    np.testing.assert_allclose(found.quantiles()[:, 0], wanted, atol=3000)
    # Places within a part are equally likely: the first step of an episode is no better known.
    assert abs(np.mean(found.sample[:, 0] % 100) - 49.5) < 3


def test_infinities_do_not_warn():
    found = Running.of(np.array([[np.inf], [1.0]])).joined(Running.of(np.array([[2.0]])))
    assert (found.low, found.high) == (1.0, np.inf)
