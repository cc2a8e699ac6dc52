"""The table of what the oracles achieve: which states are played, and which rows count."""

import numpy as np
import pytest

from benchmarks import mineflayer_oracles as table
from benchmarks.mineflayer_oracles import Case
from rollout.api import Outcome

pytestmark = pytest.mark.heavy

OAK = "harvest_1_oak_log"
PART = {"won": 0, "of": 3, "ticks": None, "progress": 0.0}


def part(won: int) -> dict:
    return {**PART, "won": won, "ticks": 100.0 if won else None}


def row(family: str, oracle: int, idle: int) -> dict:
    return {"family": family, "oracle": part(oracle), "idle": part(idle)}


def test_tasks_with_the_same_states_are_played_once_by_who_does_nothing():
    cases = [
        Case("harvest_1_chest"),
        Case("harvest_1_stone"),
        Case("harvest_1_beef_with_1_iron_sword"),
    ]
    assert table.groups(cases, 2, 11) == [cases[:2], cases[2:]]


def test_a_harder_case_has_its_factors_and_keeps_the_others_of_the_task():
    dark = Case("survival_0.5_days", table.DARK)
    _, task, starts, _ = table.prepare(dark, 3, 11)
    _, _, plain, _ = table.prepare(Case("survival_0.5_days"), 3, 11)
    assert {start.state["time"] for start in starts} == {"midnight"}
    assert {start.state["difficulty"] for start in starts} == {"hard"}
    assert {start.state["time"] for start in plain} == {"day"}
    assert {start.state["site"] for start in starts} == {"wild"}
    assert dark.name == "`survival_0.5_days` from time midnight, difficulty hard"
    assert task.limits.steps == 601


def test_the_seed_decides_which_states_are_played():
    worlds = [
        {start.state["world"] for start in table.prepare(Case(OAK), 3, seed)[2]}
        for seed in (table.SEED, *range(11, 20))
    ]
    assert sum(map(len, worlds)) == len(set().union(*worlds)) == 30


@pytest.mark.parametrize(
    ("oracle", "idle", "counts"), [(3, 0, True), (2, 1, True), (1, 0, False), (3, 2, False)]
)
def test_a_row_counts_where_the_oracle_wins_most_states_and_waiting_does_not(oracle, idle, counts):
    assert table.counts(row("harvest", oracle, idle)) is counts


def test_the_report_counts_a_task_once_and_names_what_was_not_won():
    dark = Case("survival_0.5_days", table.DARK).name
    rows = {
        "`survival_0.5_days`": row("survival", 3, 3),
        dark: row("survival", 3, 0),
        f"`{OAK}`": row("harvest", 1, 0),
        "`harvest_1_stone`": {"family": "harvest", "oracle": part(3)},
    }
    text = table.report({"header": "# head\n", "rows": rows})
    assert "**1 different tasks are solved** (survival 1)" in text
    assert "in 1 of them most states are won by waiting too" in text
    assert f"| {dark} | survival | 3/3 | 0/3 | yes | 100 | 0.00 | 0.00 |" in text
    assert f"- `{OAK}`: " in text
    assert "`harvest_1_stone`" in text.partition("Not played: ")[2]


def test_scores_are_of_the_episodes_that_succeeded():
    class Result:
        def __init__(self, outcome: Outcome, length: int, progress: float) -> None:
            self.outcome, self.length = outcome, length
            self.progress = np.float32(progress)

    won, lost = Result(Outcome.SUCCESS, 10, 1.0), Result(Outcome.RUNNING, 99, 0.5)
    assert table.score([won, lost, lost]) == {"won": 1, "of": 3, "ticks": 200, "progress": 0.5}
    assert table.score([lost])["ticks"] is None


def test_the_families_are_played_in_turn_and_every_case_once():
    order = table.in_turn(table.CASES)
    families = [table.parse(case.task_id).family for case in order[:8]]
    assert families[:4] == families[4:]
    assert set(families) == {"combat", "survival", "harvest", "techtree"}
    assert sorted(case.name for case in order) == sorted(case.name for case in table.CASES)
