"""The script that computes a sweep's headline without our code agrees with the report."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rollout.data.tables import concatenate, write_table
from rollout.sweep.curves import curves
from rollout.sweep.decomposition import adjusted_differences, decompositions
from tests.unit.sweep.sweep_tables import BASE, cross_played, lose, sweep_table

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "reanalysis.py"


def reanalysed(folder):
    """The lines that the script prints."""
    command = [sys.executable, "-I", SCRIPT, folder]  # -I: the project cannot be imported
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("crossed", [True, False])
def test_the_headline_is_the_same_without_our_code(tmp_path, crossed):
    table = sweep_table(BASE, seeds=range(4), spread=0.05, repeats=2)
    if crossed:
        table = lose(cross_played(table, ease=0.04), [0, 7])
    write_table(tmp_path / "results.parquet", table)
    *lines, verdict = reanalysed(tmp_path)
    assert verdict == "verdict: the gap shrinks"
    for line, point, part in zip(lines, curves(table), decompositions(table), strict=True):
        named = {
            "gap": point.gap,
            "held-out": point.scores["test"],
            **{
                name: getattr(part, name) for name in ("adjusted", "ease", "gain", "loss", "change")
            },
        }
        found = dict(re.findall(r"([a-z-]+) (-?[\d.]+ \[[^]]*\])", line))
        wanted = {name: each.text(3) for name, each in named.items() if each is not None}
        for name, text in wanted.items():
            numbers = [[float(x) for x in re.findall(r"-?[\d.]+", t)] for t in (text, found[name])]
            assert numbers[0] == pytest.approx(numbers[1], abs=0.00101), name
        assert found.keys() == wanted.keys()


def test_the_adjusted_gaps_of_two_arms_are_compared(tmp_path):
    other = {("lists", n): dict(means) for (_, n), means in BASE.items()}
    other["lists", 16]["train"] -= 0.1
    both = [sweep_table(each, seeds=range(4), spread=0.05) for each in (BASE, other)]
    table = concatenate([cross_played(each, ease=0.04) for each in both])
    write_table(tmp_path / "results.parquet", table)
    *lines, line, verdict = reanalysed(tmp_path)
    assert verdict == "verdict: the gap shrinks"
    gaps = {(p.arm, p.n): p.gap.text(3) for p in curves(table)}
    assert [f"lists, N = {n:,}: gap {gap}" for (arm, n), gap in gaps.items() if arm == "lists"] == [
        shown.partition(";")[0] for shown in lines if shown.startswith("lists")
    ]
    found = re.fullmatch(r"N = 16, random - lists: adjusted (\S+) \[(\S+), (\S+)\]", line)
    assert found, line
    ours = adjusted_differences(table, base="random")["lists", 16]
    wanted = (-ours.point, -ours.high, -ours.low)
    assert [float(each) for each in found.groups()] == pytest.approx(wanted, abs=0.00051)
