"""The snippet of docs/statistics.md that hands results of sweeps to rliable."""

import re
from pathlib import Path

import numpy as np
import pytest

from rollout.data.tables import write_table
from rollout.evaluate.statistics import interquartile_band, interquartile_mean
from tests.unit.sweep.sweep_tables import lose, sweep_table

pytestmark = pytest.mark.heavy

DOCS = Path(__file__).parents[3] / "docs" / "statistics.md"


@pytest.fixture
def rliable(monkeypatch):
    """Rliable, made to import: arch 7, which it needs, predates a change in pandas 3.

    arch decorates one plotting function with a private helper of pandas that has taken another
    argument since; nothing that rliable computes comes near it.
    """
    import pandas.util._decorators as private

    monkeypatch.setattr(private, "deprecate_kwarg", lambda *_, **__: lambda function: function)
    import rliable.library

    return rliable


def test_the_documented_interquartile_mean_over_tasks(rliable, tmp_path, monkeypatch):
    (snippet,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for task, easier in (("hunt_sheep", 0.0), ("mine_log", 0.2)):
        means = {(arm, 1024): {"train": 0.9, "test": 0.5 + easier} for arm in ("random", "prefix")}
        means["random", 64] = {"train": 0.9, "test": 0.1}
        rows = sweep_table(means, seeds=(0, 1, 2, 3), actions=("sampled", "deterministic"))
        rows["score"][rows["actions"] == "deterministic"] = 0.0
        (Path("runs") / task).mkdir(parents=True)
        write_table(Path("runs") / task / "results.parquet", lose(rows, [0]))
    found = {}
    exec(snippet, found)
    assert found["models"]["random"].shape == (4, 2)
    middle = np.sort(found["models"]["random"].ravel())[2:-2].mean()
    assert found["point"]["random"][0] == pytest.approx(middle)
    low, high = found["interval"]["random"][:, 0]
    assert low <= middle <= high
    assert 0.4 < low < high < 0.8


def test_our_interquartile_mean_and_its_interval_are_those_of_rliable(rliable):
    from rliable import metrics

    values = np.random.default_rng(0).normal(size=(9, 1))
    assert interquartile_mean(values)[0] == pytest.approx(metrics.aggregate_iqm(values))
    _, ends = rliable.library.get_interval_estimates(
        {"ours": values}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=4000
    )
    ours = np.concatenate(interquartile_band(values, resamples=4000))
    assert ours == pytest.approx(ends["ours"][:, 0], abs=0.06)
