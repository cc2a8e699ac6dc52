"""The simulation of verdicts: each way of being shown is counted, and chance is not called one."""

import numpy as np
import pytest

from benchmarks.science.coverage import Sweep
from benchmarks.science.null_calibration import Spread, shares
from rollout.data.tables import write_table

QUIET = {"run": 0.01, "state": 0.1, "policy": 0.01, "episode": 0.1}


@pytest.mark.parametrize(("gap", "shown"), [(0.5, (4, 0)), (-0.5, (0, 4)), (0.0, (0, 0))])
def test_verdicts_are_counted_by_their_direction(gap, shown):
    assert shares(Sweep(False, 4, gap, 32, **QUIET), sweeps=4, seed=1) == shown


def test_the_spread_of_published_episodes_is_found_again(tmp_path):
    true = Spread(run=0.1, state=0.3, policy=0.2, episode=0.25)
    world = Sweep(False, 14, 0.0, 256, **vars(true))
    write_table(tmp_path / "results.parquet", world.table(np.random.default_rng(3)))
    assert vars(Spread.of(tmp_path, "random")) == pytest.approx(vars(true), rel=0.2)
