"""The table of what the oracles achieve: which states are played, and which rows count."""

import dataclasses

import numpy as np
import pytest

from benchmarks import mineflayer_oracles as table
from benchmarks.mineflayer_oracles import Case
from rollout.api import Outcome, Start

pytestmark = pytest.mark.heavy

OAK = "harvest_1_oak_log"
DARK = (("time", "midnight"), ("difficulty", "hard"))
PART = {"won": 0, "of": 3, "ticks": None, "progress": 0.0}


def part(won: int) -> dict:
    return {**PART, "won": won, "ticks": 100.0 if won else None}


def row(family: str, oracle: int, idle: int) -> dict:
    return {"family": family, "oracle": part(oracle), "idle": part(idle)}


def test_tasks_with_the_same_states_are_played_once_by_who_does_nothing():
    cases = [Case("harvest_1_chest"), Case("harvest_1_stone"), Case("harvest_1_mutton")]
    games = [table.prepare(case, 2, 11) for case in cases]
    assert table.groups(games) == [games[:2], games[2:]]


def test_what_is_given_makes_no_difference_to_who_does_nothing_unless_it_is_the_target():
    pillar, wall = (table.prepare(Case(name), 1, 11) for name in ("build_pillar", "build_wall"))
    wall = dataclasses.replace(wall, starts=[_with(start, blueprint=2) for start in pillar.starts])
    assert wall.alike == pillar.alike
    planks = table.prepare(Case("harvest_1_oak_planks"), 1, 11)
    given = dataclasses.replace(planks, case=Case("harvest_1_oak_planks_with_1_oak_planks"))
    assert given.alike != planks.alike


def _with(start: Start, **values) -> Start:
    state = dataclasses.replace(start.state, values={**start.state.values, **values})
    return dataclasses.replace(start, state=state)


def test_a_harder_case_has_its_factors_and_keeps_the_others_of_the_task():
    dark = Case("survival_0.5_days", DARK)
    game = table.prepare(dark, 3, 11)
    plain = table.prepare(Case("survival_0.5_days"), 3, 11)
    assert {start.state["time"] for start in game.starts} == {"midnight"}
    assert {start.state["difficulty"] for start in game.starts} == {"hard"}
    assert {start.state["time"] for start in plain.starts} == {"day"}
    assert {start.state["site"] for start in game.starts} == {"wild"}
    assert dark.name == "`survival_0.5_days` from time midnight, difficulty hard"
    assert game.task.limits.steps == 601


def test_actors_of_a_play_begin_in_one_world():
    game = table.prepare(Case("play_make_friends"), 2, 11)
    assert game.agents == 3
    assert [start.episode for start in game.starts] == [0, 0, 0, 1, 1, 1]
    assert game.starts[0] == game.starts[2] != game.starts[3]


def test_the_seed_decides_which_states_are_played():
    worlds = [
        {start.state["world"] for start in table.prepare(Case(OAK), 3, seed).starts}
        for seed in (table.SEED, *range(11, 20))
    ]
    assert sum(map(len, worlds)) == len(set().union(*worlds)) == 30


@pytest.mark.parametrize(("won", "of", "enough"), [(3, 3, True), (2, 3, False), (19, 20, True)])
def test_a_task_is_won_with_nearly_all_its_states(won, of, enough):
    assert table.enough({"won": won, "of": of}) is enough


def test_the_report_counts_a_task_once_and_names_what_was_not_won():
    dark = Case("survival_0.5_days", DARK).name
    rows = {
        "`survival_0.5_days`": row("survival", 3, 1),
        dark: row("survival", 3, 0),
        f"`{OAK}`": row("harvest", 1, 0),
        "`build_wall`": row("construction", 3, 0),
        "`harvest_1_stone`": {"family": "harvest", "oracle": part(3)},
    }
    text = table.report({"header": "# head\n", "rows": rows})
    assert "at least 95 % of the states of **2 tasks**, and 7 of all 9 states, 77.8 %" in text
    assert "| harvest | 1 | 0 | 1 of 3 | 33.3 % [6.1, 79.2] |" in text
    assert "Not counted, because waiting wins states of it: `survival_0.5_days`.\n" in text
    assert f"| {dark} | survival | 3/3 | 0/3 | 100 | 0.00 | 0.00 |" in text
    assert f"- `{OAK}`\n" in text
    assert "`harvest_1_stone`" in text.partition("Not played: ")[2]


def test_scores_are_of_the_episodes_that_succeeded():
    class Result:
        def __init__(self, outcome: Outcome, length: int, progress: float) -> None:
            self.outcome, self.length = outcome, length
            self.progress = np.float32(progress)

    won, lost = Result(Outcome.SUCCESS, 10, 1.0), Result(Outcome.RUNNING, 99, 0.5)
    assert table.score([won, lost, lost]) == {"won": 1, "of": 3, "ticks": 200, "progress": 0.5}
    assert table.score([lost])["ticks"] is None


def test_games_of_the_same_options_are_played_side_by_side_and_every_case_once():
    cases = [Case(OAK), Case("harvest_1_stone"), Case("build_wall"), Case("play_cook")]
    plans = table.plans(cases, {}, 1, 11)
    played = [case.task_id for plan in plans for group, player in plan
              if player != table.IDLE for case in group]  # fmt: skip
    assert played == [case.task_id for case in cases]
    assert [len(plan) for plan in plans if plan[0][1] != table.IDLE] == [2, 1, 1]
    known = {"`build_wall`": row("construction", 3, 0)}
    assert len(table.plans(cases, known, 1, 11)) == len(plans) - 2


def test_the_table_has_a_hundred_tasks_of_six_families():
    families = {case.family for case in table.CASES}
    assert families == {"combat", "construction", "harvest", "stage", "survival", "techtree"}
    assert len({case.task_id for case in table.CASES}) > 100
