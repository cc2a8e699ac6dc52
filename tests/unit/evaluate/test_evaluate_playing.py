"""Legs played to a table: the same however they were played, broken off, or lost on the way."""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from rollout.api import Limits, Splits, Task
from rollout.config import HostConfig
from rollout.data.tables import read_table, write_table
from rollout.errors import BudgetExhausted, ConfigError, DatasetError, OutOfTurnError
from rollout.evaluate.journal import Journal
from rollout.evaluate.legs import Leg, Legs
from rollout.evaluate.playing import legs_plan, play_board, play_legs
from rollout.evaluate.scoreboard import COLUMNS, Scoreboard, check_metric, decides
from rollout.evaluators import GameReward, SignalGoal
from rollout.host import PlayOptions
from rollout.host.fleets import open_fleet
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

pytestmark = pytest.mark.heavy

SPACE = FakeBridge().spec.state_space
TASK = Task("t", "", SPACE, FakeEvaluator(), Limits(steps=25))
SPLITS = Splits(SPACE)
PLAY = PlayOptions(steps=8)


@dataclass(frozen=True)
class Repeating:
    """Acts by the observation, its memory and the seed of the episode, and by nothing else."""

    number: int = 0

    def build(self, spec, task, *, seed):
        return FakePolicy(self.number).build(spec, task, seed=0)


def some_legs():
    train, test = SPLITS.take("train", 5), SPLITS.take("test", 4)
    return [
        Leg("a", Repeating(1), "train", train, "sampled", 2),
        Leg("a", Repeating(1), "test", test, "deterministic", 2),
        Leg("b", Repeating(2), "test", test, "sampled", 2),
    ]


def played(metric="progress", *, bridge=None, **options):
    options = {"play": PLAY, "seed": 3, **options}
    return play_legs(bridge or FakeBridge(), TASK, some_legs(), metric=metric, **options)


@pytest.fixture(scope="module")
def whole():
    return played()


def assert_same(a, b, *, but=()):
    assert a.keys() == b.keys()
    for name in a.keys() - set(but):
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_the_table_has_one_row_per_episode_in_order(whole):
    assert list(whole) == list(COLUMNS)
    assert len(whole["score"]) == 10 + 8 + 8
    for name, (kind, _) in COLUMNS.items():
        assert np.issubdtype(whole[name].dtype, np.str_ if kind is str else kind), name
    rows = list(zip(whole["player"], whole["set"], whole["position"], whole["repeat"], strict=True))
    assert rows == sorted(rows, key=lambda r: (r[0], r[1] != "train", r[2], r[3]))
    assert len(set(rows)) == 26
    assert set(whole["arm"]) == {""}
    assert set(whole["n"]) == {0}
    assert set(whole["training_seed"]) == {-1}
    assert set(whole["attempts"]) == {1}
    assert {"terminated", "truncated"} == set(whole["end"])
    wins = whole["end"] == "terminated"
    np.testing.assert_array_equal(whole["success"], wins.astype(float))
    np.testing.assert_array_equal(whole["score"], whole["progress"])
    assert (whole["length"] <= 25).all()


def test_players_are_paired(whole):
    a = (whole["player"] == "a") & (whole["set"] == "test")
    b = whole["player"] == "b"
    for name in ("state", "episode_seed", "position", "repeat"):
        np.testing.assert_array_equal(whole[name][a], whole[name][b])
    assert (whole["length"][a] != whole["length"][b]).any()
    states = SPLITS.take("test", 4)
    assert whole["state"][b].tolist() == [str(states[i].index) for i in range(4) for _ in range(2)]


@pytest.mark.parametrize("shape", [{"width": 7}, {"instances": 3}, {"instances": 2, "width": 20}])
def test_the_table_does_not_depend_on_how_many_games_play(whole, shape):
    assert_same(played(**shape), whole)


def test_the_caller_says_what_was_trained(whole):
    table = played("return", arm="prefix", n=16, training_seed=4)
    assert set(table["arm"]) == {"prefix"}
    assert set(table["n"]) == {16}
    assert set(table["training_seed"]) == {4}
    np.testing.assert_array_equal(table["score"], whole["total_reward"])


def test_broken_off_and_gone_on_with_it_is_the_same_table(whole, tmp_path):
    sessions = 0
    legs = Legs(tuple(some_legs()), SPACE, 3)
    while sessions < 20:
        with Journal(tmp_path) as journal:
            board = Scoreboard(legs, TASK, journal)
            before = len(board.finished)
            if before == legs.episodes:
                break
            sessions += 1
            plan = legs_plan(FakeBridge(), TASK, legs, width=2, play=PLAY, session=sessions)
            with open_fleet(plan) as (fleet, _):
                play_board(
                    board, fleet, stopping=lambda b=board, n=before: len(b.finished) >= n + 6
                )
        with (tmp_path / "episodes.jsonl").open("a") as file:
            file.write('{"player": "a", "se')  # what a crash leaves
    assert sessions >= 3
    with Journal(tmp_path) as journal:
        assert_same(Scoreboard(legs, TASK, journal).table("progress"), whole)
        assert len(journal.entries) == 26, "an episode was played twice"
        # Nothing is left, so nothing is launched: this bridge could not be.
        table = played(bridge=FakeBridge(fail_on_start=1.0), journal=journal)
    assert_same(table, whole)


def test_more_episodes_per_state_keep_what_was_played(tmp_path):
    states = SPLITS.take("test", 3)
    counts = []
    for repeats in (1, 3):
        with Journal(tmp_path) as journal:
            leg = Leg("a", Repeating(), "test", states, repeats=repeats)
            seen = []
            table = play_legs(
                FakeBridge(), TASK, [leg], seed=0, metric="return", journal=journal, play=PLAY,
                watch=lambda f, seen=seen: seen.extend(f.results),
            )  # fmt: skip
            counts.append((len(seen), len(table["score"])))
    assert counts == [(3, 3), (6, 9)]


def test_lost_episodes_are_tried_again_counted_and_score_the_same(whole, tmp_path):
    crashing = FakeBridge(crash_on_step=0.02)
    host, play = (
        HostConfig(restarts=500, backoff_s=0),
        PlayOptions(steps=8, retries=100),
    )
    with Journal(tmp_path) as journal:
        table = played(bridge=crashing, host=host, play=play, journal=journal)
    assert_same(table, whole, but={"attempts"})
    lost = int((table["attempts"] - 1).sum())
    assert lost > 0
    losses = [json.loads(x) for x in (tmp_path / "losses.jsonl").read_text().splitlines()]
    assert len(losses) == lost
    assert {loss["phase"] for loss in losses} == {"step"}
    assert all("crashes on request" in loss["reason"] for loss in losses)
    attempts = Counter((x["player"], x["set"], x["position"], x["repeat"]) for x in losses)
    rows = zip(
        *(table[k] for k in ("player", "set", "position", "repeat", "attempts")), strict=True
    )
    assert {tuple(r[:4]): r[4] - 1 for r in rows if r[4] > 1} == attempts


def test_abandoned_episodes_are_listed_without_a_score_and_tried_again_by_a_resume(whole, tmp_path):
    crashing = FakeBridge(crash_on_step=0.05)
    host, play = (
        HostConfig(restarts=500, backoff_s=0),
        PlayOptions(steps=8, retries=1),
    )
    with Journal(tmp_path) as journal:
        table = played(bridge=crashing, host=host, play=play, journal=journal)
    lost = table["end"] == "lost"
    assert 0 < lost.sum() < 26
    assert len(lost) == 26, "an episode was dropped"
    for name in ("score", "total_reward", "progress", "success"):
        assert np.isnan(table[name][lost]).all()
        assert not np.isnan(table[name][~lost]).any()
    assert set(table["attempts"][lost]) == {2}
    assert set(table["length"][lost]) == {0}
    for name in ("state", "episode_seed", "position", "player"):
        np.testing.assert_array_equal(table[name], whole[name])
    with Journal(tmp_path) as journal:
        board = Scoreboard(Legs(tuple(some_legs()), SPACE, 3), TASK, journal)
        assert len(board.finished) == 26 - lost.sum()
        assert not board.given_up, "they are to be tried again"
        again = played(journal=journal)
    assert_same(again, whole, but={"attempts"})
    assert set(again["attempts"][lost]) == {3}


def test_games_that_never_come_up_end_it_and_what_was_played_stays(tmp_path):
    with Journal(tmp_path) as journal, pytest.raises(BudgetExhausted):
        played(
            bridge=FakeBridge(crash_on_step=30.0),
            host=HostConfig(restarts=1, failure_rate=0),  # by their number, at any rate
            play=PlayOptions(steps=8, retries=9),
            journal=journal,
        )
    with Journal(tmp_path) as journal:
        assert 0 < len(journal.entries) < 26
        assert len(journal.losses) == 2


def test_results_of_other_states_or_seeds_are_refused(tmp_path):
    with Journal(tmp_path) as journal:
        played(journal=journal)
    with Journal(tmp_path) as journal, pytest.raises(DatasetError, match="of another seed"):
        played(journal=journal, seed=4)


def test_a_damaged_journal_is_reported_with_its_line(tmp_path):
    with Journal(tmp_path) as journal:
        played(journal=journal)
    path = tmp_path / "episodes.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for bad in ("{}\n", "nonsense\n", "[1]\n", re.sub(r"truncated|terminated", "eaten", lines[2])):
        assert bad != lines[2]
        path.write_text("".join([*lines[:2], bad, *lines[3:]]))
        with pytest.raises(DatasetError, match=r"episodes\.jsonl:3: expected an episode"):
            Journal(tmp_path)
    with pytest.raises(OutOfTurnError, match="was closed"):
        journal.append()


def test_what_the_journal_keeps_comes_back_exactly(tmp_path):
    with Journal(tmp_path) as journal:
        table = play_legs(
            FakeBridge(), Task("t", "", SPACE, GameReward(), Limits(steps=9)), some_legs()[:1],
            seed=0, metric="return", journal=journal, play=PLAY,
        )  # fmt: skip
    assert np.isnan(table["progress"]).all()
    assert np.isnan(table["success"]).all()
    assert "NaN" not in (tmp_path / "episodes.jsonl").read_text()
    with Journal(tmp_path) as journal:
        assert [e.total_reward for e in sorted(journal.entries, key=lambda e: e.key)] == list(
            table["total_reward"]
        )
        assert all(math.isnan(e.progress) for e in journal.entries)
    write_table(tmp_path / "t.parquet", table)
    assert_same(read_table(tmp_path / "t.parquet"), table)


@dataclass(frozen=True)
class Says(FakeEvaluator):
    decides: bool = False


def test_a_metric_that_the_task_does_not_give_is_refused():
    reward = Task("r", "", SPACE, GameReward())
    assert not decides(reward)
    assert decides(Task("r", "", SPACE, GameReward(success_return=1.0)))
    assert decides(Task("g", "", SPACE, SignalGoal("reached")))
    assert not decides(Task("s", "", SPACE, Says()))
    check_metric("return", reward)
    for metric in ("success", "progress"):
        with pytest.raises(ConfigError, match=f"metric={metric}: task 'r' decides neither"):
            check_metric(metric, reward)
        check_metric(metric, TASK)
