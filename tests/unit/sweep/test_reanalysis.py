"""The script that computes a sweep's headline without our code agrees with the report."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rollout.data.tables import concatenate, write_table
from rollout.sweep.curves import contrasts, curves
from rollout.sweep.decomposition import adjusted_differences, decompositions
from tests.unit.sweep.sweep_tables import BASE, cross_played, lose, sweep_table

pytestmark = pytest.mark.heavy

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


@pytest.mark.parametrize("seeds", [4, 3])
def test_two_arms_are_compared_over_the_seeds_of_both(tmp_path, seeds):
    other = {("lists", n): dict(means) for (_, n), means in BASE.items()}
    other["lists", 16]["train"] -= 0.1
    played = ((BASE, 4), (other, seeds))
    both = [sweep_table(each, seeds=range(n), spread=0.05) for each, n in played]
    table = concatenate([cross_played(each, ease=0.04) for each in both])
    write_table(tmp_path / "results.parquet", table)
    *lines, verdict = reanalysed(tmp_path)
    assert verdict == "verdict: the gap shrinks"
    gaps = {(p.arm, p.n): p.gap.text(3) for p in curves(table)}
    assert [f"lists, N = {n:,}: gap {gap}" for (arm, n), gap in gaps.items() if arm == "lists"] == [
        shown.partition(";")[0] for shown in lines if shown.startswith("lists")
    ]
    compared = [line for line in lines if "random - lists" in line]
    adjusted = adjusted_differences(table, base="random")
    for contrast, line in zip(contrasts(table, base="random"), compared, strict=True):
        ours = {"gap": contrast.gap_difference, "held-out": contrast.test_difference}
        if seeds == 4:
            ours["adjusted"] = adjusted["lists", contrast.n]
        found = re.findall(r"(\S+) (\S+) \[(\S+), (\S+)\]", line.partition(": ")[2])
        assert [name for name, *_ in found] == [*ours]
        for (name, *figures), each in zip(found, ours.values(), strict=True):
            wanted = (-each.point, -each.high, -each.low)
            assert [float(x) for x in figures] == pytest.approx(wanted, abs=0.00051), name


def test_arms_with_other_held_out_states_are_compared_by_their_adjusted_gaps(tmp_path):
    arms = [sweep_table({(arm, n): m for (_, n), m in BASE.items()}) for arm in ("random", "fixed")]
    arms[1]["state"] = arms[1]["state"] + "0"
    write_table(tmp_path / "results.parquet", concatenate([cross_played(a, ease=0) for a in arms]))
    compared = [line for line in reanalysed(tmp_path) if "random - fixed" in line]
    assert compared
    assert all(line.partition(": ")[2].startswith("adjusted") for line in compared)
