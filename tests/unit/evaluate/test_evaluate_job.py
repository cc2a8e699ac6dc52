"""``scripts/evaluate.py`` without Ray: what it leaves, what it says to wrong input, its videos."""

import json
import re
import shutil
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from gymnasium import spaces

from rollout.api import Limits, Splits, Task
from rollout.cli import main
from rollout.config import HostConfig
from rollout.data.tables import read_table
from rollout.errors import ConfigError, UnknownNameError
from rollout.evaluate.config import EvaluateConfig, VideoConfig
from rollout.evaluate.evaluate import evaluate
from rollout.evaluate.findings import Findings
from rollout.evaluate.legs import Leg, Legs
from rollout.evaluate.pairs import ALL_SETS
from rollout.evaluate.playing import play_legs
from rollout.evaluate.statistics import Intervals, comparison, gap, hierarchical, one_player, wilson
from rollout.evaluate.videos import best_and_worst, check_pictures, record
from rollout.host import PlayOptions
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

pytestmark = pytest.mark.heavy

AGENTS = """
import numpy as np

def east(observations):
    return np.full(len(observations["position"]), 4)

def by_place(observations, details, explore):
    x, y = (observations["position"] * 7).round().astype(int).T
    return (3 * x + 5 * y + explore) % 5

def wrong(observations):
    return np.zeros((len(observations["position"]), 2))
"""


@pytest.fixture
def call(tmp_path, capsys, monkeypatch):
    """Calls the script with a small configuration and more arguments."""
    (tmp_path / "small_agents.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    task = {
        "goal": "Go there.",
        "evaluator": {"name": "signal_goal", "signal": "reached"},
        "limits": {"steps": 20},
    }
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    config = {
        "output": str(tmp_path / "run"),
        "bridge": {"name": "fake"},
        "task": str(tmp_path / "task.yaml"),
        "players": {
            "east": {"name": "callable", "function": "small_agents:east"},
            "place": {"name": "callable", "function": "small_agents:by_place"},
        },
        "sets": {"train": {"size": 6}, "test": {"split": "test", "size": 5}},
        "episodes_per_state": 2,
        "actions": ["sampled", "deterministic"],
        "metric": "progress",
        "actors": 0,
        "width": 4,
        "fragment": {"steps": 8},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))

    def run(*arguments):
        arguments = ["--config", str(tmp_path / "config.yaml"), *arguments]
        status = main(evaluate, EvaluateConfig, "Evaluates.", arguments)
        return status, *capsys.readouterr()

    return run


def test_a_job_and_what_it_leaves(call, tmp_path):
    status, _, said = call(
        "--set", "videos=1", "groups={both: [east, place]}", "episodes_per_state=1"
    )
    assert status == 0, said
    run = tmp_path / "run"
    table = read_table(run / "episodes.parquet")
    assert len(table["score"]) == 2 * 2 * (6 + 5)
    about = json.loads(pq.read_schema(run / "episodes.parquet").metadata[b"gamut.table"])
    assert about["sets"]["test"]["size"] == "5"
    assert about["players"]["east"]["function"] == "small_agents:east"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["status"] == "done"
    assert summary["results"]["episodes"] == 44
    assert summary["results"]["missing"] == 0
    assert summary["results"]["env_steps"] == table["length"].sum()
    assert summary["session"]["episodes"] == 44
    assert len(summary["findings"]["legs"]) == 8
    report = (run / "report.md").read_text()
    assert "Actions: sampled actions are drawn from a player's probabilities" in report
    for leg in summary["findings"]["legs"]:
        assert f"| {leg['player']} | {leg['set']} | {leg['actions']} |" in report
        assert leg["score"]["text"] in report
        assert leg["set_digest"] == about["sets"][leg["set"]]["digest"]
    assert len(summary["films"]) == 16
    assert all(f["same"] for f in summary["films"])
    assert all((run / "videos" / f["file"]).stat().st_size > 500 for f in summary["films"])
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["episodes"] == 44
    first = summary["findings"]["legs"][0]
    assert lines[-1]["evaluate/east/train/sampled/score"] == first["score"]["point"]
    assert lines[-1]["media"]["tables/episodes"]["path"] == "episodes.parquet"
    assert len(lines[-1]["media"]) == 17


def test_every_session_that_opens_test_states_is_recorded(call, tmp_path):
    run = tmp_path / "run"
    some = ("--set", "sets={train: {size: 6}, validation: {split: validation, size: 5}}")
    assert call(*some)[0] == 0
    assert not (run / "test_openings.jsonl").exists()
    assert "- test states opened, UTC: `[]`" in (run / "report.md").read_text()
    shutil.rmtree(run)
    status, _, said = call()
    assert status == 0
    assert "opens test states (session 1 of this run that does)" in said
    assert call("--resume", "--set", "metric=success")[0] == 0  # plays nothing
    (line,) = (run / "test_openings.jsonl").read_text().splitlines()
    assert json.loads(line)["played"].startswith("east/test/sampled, ")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["results"]["test_states_opened"] == [json.loads(line)["time"]]
    assert json.loads(line)["time"] in (run / "report.md").read_text()


def test_a_job_that_is_done_is_reported_again_by_another_metric(call, tmp_path):
    assert call()[0] == 0
    before = (tmp_path / "run" / "episodes.jsonl").read_text()
    table = read_table(tmp_path / "run" / "episodes.parquet")
    assert call()[0] == 2  # it exists already
    status, _, said = call("--resume", "--set", "metric=success", "confidence=0.5")
    assert status == 0, said
    assert (tmp_path / "run" / "episodes.jsonl").read_text() == before
    again = read_table(tmp_path / "run" / "episodes.parquet")
    np.testing.assert_array_equal(again["score"], table["success"])
    assert call("--resume", "--set", "seed=1")[0] == 2
    # Results of a changed checkpoint are not mixed with old ones.
    (tmp_path / "run" / "players.json").write_text('{"east": 100, "place": 0}')
    status, _, said = call("--resume")
    assert status == 2
    assert "east: 100 -> 0" in said
    assert "name the checkpoint exactly" in said


def test_abandoned_episodes_end_it_early_and_a_resume_finishes_it(call, tmp_path):
    crash = ("bridge.crash_on_step=12", f"bridge.once_file={tmp_path / 'once'}")
    status, _, said = call("--set", *crash, "host.retries=0")
    assert status == 3, said
    assert re.search(r"ended short: [1-4] episodes were lost 1 times each and given up", said)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    lost = summary["results"]["given_up"]
    assert 1 <= len(lost) <= 4
    assert {"state", "episode_seed", "player", "set"} <= lost[0].keys()
    assert summary["results"]["lost_by_phase"] == {"step": len(lost)}
    report = (tmp_path / "run" / "report.md").read_text()
    assert "Not complete" in report
    assert "## Episodes that were given up" in report
    status, _, said = call("--resume", "--set", *crash, "host.retries=0")
    assert status == 0, said
    table = read_table(tmp_path / "run" / "episodes.parquet")
    assert not np.isnan(table["score"]).any()
    assert (table["attempts"] == 2).sum() == len(lost)
    assert "Not complete" not in (tmp_path / "run" / "report.md").read_text()


def test_sets_that_may_overlap_are_warned_of(call, tmp_path):
    few = ("sets.test.size=1", "sets.train.size=1", "actions=[sampled]")
    status, _, said = call("--set", *few, "sets.full={split: all, size: 1}")
    assert status == 0, said
    assert "divide the states in different ways" not in said
    far = "sets.far={split: extrapolation, size: 1, hold_out: {colour: [red]}}"
    status, _, said = call("--set", *few, far, f"output={tmp_path / 'other'}")
    assert status == 0, said
    assert "divide the states in different ways" in said
    assert "test, train | far" in said


BAD = {
    "players={}": "players: is empty",
    "players.east.name=calable": "Nearest: callable",
    "players.east.function=small_agents:west": "Nearest: east",
    "players.expert=oracle": "players.expert: the oracle policy copies the observations",
    "players.a={name: callable, function: 'small_agents:east'}": "'east' and 'a' are the same",
    "players={a b: random}": "expected names of letters",
    "sets={}": "sets: is empty",
    "sets.test.split=tset": "expected train, validation, test",
    "sets.test.split=extrapolation": "sets.test: unknown split 'extrapolation'",
    "sets.test.size=60000": "sets.test: a 'test' set of 60000 states was asked for",
    "sets.more={size: 6, split: train, order: 0, seed: 0}": "'train' and 'more' are the same",
    "sets.more={states: [5]} sets.other={states: [5], seed: 1}": "sets.more and sets.other",
    "sets.all={split: all} episodes_per_state=20": "at most 10000000 are supported",
    "actions=[]": "is empty; give at least one",
    "actions=[sampled, sampled]": "sampled is given twice",
    "actions=[greedy]": "actions[0]",
    "metric=score": "metric",
    "metric=success task=''": "decides neither success nor failure",
    "groups={model: [east, wets]}": "unknown player in groups.model 'wets'",
    "groups={model: [east], other: [east]}": "east is named more than once",
    "groups={east: [place]}": "has the name of a player",
    "groups={model: []}": "is empty; name at least one player",
    "baseline=wets": "unknown baseline 'wets'. Nearest: east",
    "groups={model: [east]} baseline=east": "unknown baseline 'east'",
    "width=5000": "1 to 4096",
    "confidence=95": "confidence",
    "videos=1 video.column=rgb": "unknown picture in video.column 'rgb'",
    "videos=1 video.bridge={sid: 8}": "video.bridge:",
    "videos=1 video.bridge={side: 4}": None,  # the same spaces: it can be recorded
    "episodez=3": "episodes_per_state",
}


@pytest.mark.parametrize("setting", [key for key, said in BAD.items() if said])
def test_bad_input_is_one_clear_line_and_launches_nothing(call, tmp_path, setting):
    names = r" (?=sets|episodes_per|task|baseline|video\.)"
    status, _, said = call("--set", *re.split(names, setting))
    assert status == 2, said
    assert BAD[setting] in said
    assert len(said.strip().splitlines()) == 1, said
    assert not (tmp_path / "run" / "episodes.jsonl").exists()


def test_an_agent_that_breaks_while_it_plays_is_bad_input_too(call, tmp_path):
    status, _, said = call("--set", "players.bad={name: callable, function: 'small_agents:wrong'}")
    assert status == 2
    assert "small_agents" in said or "wrong returned" in said


def test_help_lists_every_key(call):
    status, out, _ = call("--help")
    assert status == 0
    for name in EvaluateConfig.model_fields:
        assert re.search(rf"^  {name}\b", out, re.MULTILINE), name


SPACE = FakeBridge().spec.state_space
TASK = Task("t", "", SPACE, FakeEvaluator(), Limits(steps=25))


@dataclass(frozen=True)
class Repeating:
    number: int = 0

    def build(self, spec, task, *, seed):
        return FakePolicy(self.number).build(spec, task, seed=0)


def some_legs():
    splits = Splits(SPACE)
    sets = {"train": splits.take("train", 7), "test": splits.take("test", 5)}
    return [
        Leg(f"p{i}", Repeating(i), name, states, repeats=2)
        for i in range(4)
        for name, states in sets.items()
    ]


@pytest.fixture(scope="module")
def table():
    return play_legs(
        FakeBridge(), TASK, some_legs(), seed=0, metric="progress", width=8, play=PlayOptions()
    )


def scores(table, player, name):
    mine = (table["player"] == player) & (table["set"] == name)
    return table["score"][mine].reshape(-1, 2)


def test_the_findings_are_the_estimates_of_the_scores(table):
    found = Findings(
        table,
        Legs(tuple(some_legs()), SPACE, 0),
        {"model": ["p1", "p2", "p3"]},
        confidence=0.9,
        metric="return",
    ).data()
    leg = found["legs"][1]
    assert (leg["player"], leg["set"]) == ("p0", "test")
    own = one_player(scores(table, "p0", "test"), Intervals(confidence=0.9))
    assert (leg["score"]["point"], leg["score"]["low"]) == (own.point, own.low)
    assert leg["score_of_other_training_runs"]["low"] is None
    assert "one training seed" in leg["score_of_other_training_runs"]["refused"]
    mine = (table["player"] == "p0") & (table["set"] == "test")
    won = wilson(int(table["success"][mine].sum()), 10, confidence=0.9)
    assert leg["success"]["high"] == won.high
    assert leg["length"] == table["length"][mine].mean()
    model = {name: np.stack([scores(table, f"p{i}", name) for i in (1, 2, 3)]) for name in
             ("train", "test")}  # fmt: skip
    expected = hierarchical(model["test"], Intervals(confidence=0.9))
    group = found["groups"][1]
    assert group["players"] == ["p1", "p2", "p3"]
    assert group["set"] == "test"
    assert (group["score"]["low"], group["score"]["high"]) == (expected.low, expected.high)
    expected = gap(model["train"], model["test"], Intervals(confidence=0.9), train_states="crossed")
    assert [g["model"] for g in found["gaps"]] == ["model", "p0"]
    assert (found["gaps"][0]["gap"]["low"]) == expected.low
    assert found["gaps"][1]["gap"]["low"] is None
    # One fixed player is compared with three training seeds, too.
    pairs = {(each["model"], each["minus"], each["set"]) for each in found["differences"]}
    assert pairs == {("p0", "model", name) for name in ("train", "test", ALL_SETS)}
    other = Findings(
        table,
        Legs(tuple(some_legs()), SPACE, 0),
        {},
        confidence=0.9,
        metric="return",
    ).data()["differences"][1]
    assert (other["model"], other["minus"], other["set"]) == ("p1", "p0", "test")
    expected = one_player(
        scores(table, "p1", "test") - scores(table, "p0", "test"), Intervals(confidence=0.9)
    )
    assert other["difference"]["low"] == expected.low


def test_groups_are_compared_pair_by_pair(table):
    legs = Legs(tuple(some_legs()), SPACE, 0)
    groups = {"a": ["p0", "p1"], "b": ["p2", "p3"]}
    found = Findings(table, legs, groups, confidence=0.95, metric="return").data()
    a, b = (np.stack([scores(table, p, "train") for p in groups[g]]) for g in groups)
    expected = comparison(b, a)
    first = found["differences"][0]
    assert (first["model"], first["minus"], first["set"]) == ("b", "a", "train")
    assert first["difference"]["low"] == expected.difference.low
    assert first["p"] == expected.p
    assert first["p_corrected"] >= first["p"]
    json.dumps(found, allow_nan=False)


def test_a_baseline_is_subtracted_and_all_pairs_are_compared(table):
    legs = Legs(tuple(some_legs()), SPACE, 0)
    options = {"confidence": 0.95, "metric": "return"}
    first, named = (
        Findings(table, legs, {}, baseline=name, **options).data()["differences"]
        for name in (None, "p2")
    )
    assert Findings(table, legs, {}, baseline="p0", **options).data()["differences"] == first
    pairs = [(each["model"], each["minus"]) for each in named if each["set"] == "test"]
    assert pairs[:3] == [("p0", "p2"), ("p1", "p2"), ("p3", "p2")]
    assert {frozenset(pair) for pair in pairs[3:]} == {
        frozenset(pair) for pair in (("p0", "p1"), ("p0", "p3"), ("p1", "p3"))
    }
    [one] = [
        each["difference"]
        for each in first
        if (each["model"], each["minus"], each["set"]) == ("p2", "p0", "test")
    ]
    [other] = [
        each["difference"]
        for each in named
        if (each["model"], each["minus"], each["set"]) == ("p0", "p2", "test")
    ]
    assert other["point"] == pytest.approx(-one["point"])
    # Training seeds are paired with one fixed player, which is not the first of the models.
    groups = {"model": ["p1", "p2", "p3"]}
    found = Findings(table, legs, groups, baseline="p0", **options).data()["differences"]
    assert {(each["model"], each["minus"]) for each in found} == {("model", "p0")}


def test_findings_of_nothing_and_of_lost_episodes(table):
    legs = Legs(tuple(some_legs()), SPACE, 0)
    empty = {name: column[:0] for name, column in table.items()}
    found = Findings(empty, legs, {}, confidence=0.95, metric="return").data()
    json.dumps(found, allow_nan=False)
    assert found["legs"][0]["finished"] == 0
    assert found["legs"][0]["score"]["point"] is None
    some = {name: column.copy() for name, column in table.items()}
    some["end"] = some["end"].astype("<U10")
    some["end"][0], some["score"][0], some["success"][0] = "lost", np.nan, np.nan
    found = Findings(some, legs, {}, confidence=0.95, metric="return").data()["legs"][0]
    assert (found["given_up"], found["finished"], found["attempts_lost"]) == (1, 13, 1)
    assert found["success"]["counts"]["episodes"] == 13


def test_a_set_that_is_the_whole_space_is_no_sample():
    space = SPACE.restrict({"map": [0], "colour": ["red"], "start": [0], "target": [5, 7, 9]})
    task = Task("t", "", space, FakeEvaluator(), Limits(steps=5))
    every = Splits(space, validation=0, test=0).take("all")
    legs = Legs(tuple(Leg(f"p{i}", Repeating(i), "full", every) for i in range(2)), space)
    table = play_legs(FakeBridge(), task, legs.legs, seed=0, metric="progress")
    easy = np.tile([0.0, 0.5, 1.0], 2) + np.repeat([0.0, 0.01], 3)  # states differ, players do not
    group = {"m": ["p0", "p1"]}
    found = Findings({**table, "score": easy}, legs, group, confidence=0.95, metric="return").data()
    expected = hierarchical(easy.reshape(2, 3, 1), states="fixed")
    assert found["groups"][0]["score"]["low"] == expected.low
    assert expected.low > hierarchical(easy.reshape(2, 3, 1), states="crossed").low


def test_the_best_and_the_worst_of_each_leg_are_chosen_ties_by_position(table):
    legs = Legs(tuple(some_legs()), SPACE, 0)
    shots = best_and_worst(legs, table, 2, 2)
    assert len(shots) == 8 * 4
    assert [s.rank for s in shots[:4]] == ["best1", "best2", "worst1", "worst2"]
    assert len({s.episode for s in shots}) == len(shots)
    rows = {
        legs.number((n, p, r)): s for n, leg in enumerate(legs.legs) for p, r, s in _of(table, leg)
    }
    for first in range(0, len(shots), 4):
        leg = legs.leg_of(shots[first].episode)
        mine = {e: s for e, s in rows.items() if legs.leg_of(e) == leg}
        ranked = sorted(mine, key=lambda e: (-mine[e], e))
        best = first_of_each_state(legs, ranked)[:2]
        assert [s.episode for s in shots[first : first + 2]] == best
        rest = sorted(ranked, key=lambda e: (mine[e], e))
        worst = first_of_each_state(legs, rest, best)[:2]
        assert [s.episode for s in shots[first + 2 : first + 4]] == worst
    few = best_and_worst(legs, table, 10, 10)  # more than there are: the worst get what is left
    assert len(few) == len(table["score"])
    gone = {**table, "score": np.full(len(table["score"]), np.nan)}
    assert best_and_worst(legs, gone, 2, 2) == []


def first_of_each_state(legs, episodes, taken=()):
    """The first episode of each state that has none among those taken."""
    first = {}
    for episode in episodes:
        first.setdefault(legs.place(episode).position, episode)
    return [e for p, e in first.items() if p not in {legs.place(t).position for t in taken}]


def test_videos_show_different_states_while_there_are_any():
    leg = Leg("p", Repeating(2), "test", Splits(SPACE).take("test", 3), repeats=2)
    legs = Legs((leg,), SPACE, 0)
    table = play_legs(FakeBridge(), TASK, legs.legs, seed=0, metric="progress")
    for scores in ([9, 8, 1, 7, 5, 0], [3, 3, 3, 3, 3, 3]):
        ranked = {**table, "score": np.array(scores, float)}
        two = best_and_worst(legs, ranked, 1, 1)
        assert len({legs.place(s.episode).position for s in two}) == 2
        three = best_and_worst(legs, ranked, 2, 1)
        assert len({legs.place(s.episode).position for s in three}) == 3
    both = best_and_worst(legs, {**table, "score": np.array([9.0, 8, 1, 7, 5, 0])}, 4, 4)
    assert [(s.rank, s.score) for s in both] == [
        *(("best1", 9), ("best2", 8), ("best3", 7), ("best4", 5)),
        *(("worst1", 0), ("worst2", 1)),
    ]


def _of(table, leg):
    mine = (table["player"] == leg.player) & (table["set"] == leg.set_name)
    columns = (table[k][mine].tolist() for k in ("position", "repeat", "score"))
    return zip(*columns, strict=True)


BLIND = replace(
    FakeBridge().spec,
    observation_space=spaces.Dict({"position": spaces.Box(0.0, 1.0, (2,), np.float32)}),
)


@dataclass(frozen=True)
class BlindBridge(FakeBridge):
    """The fake game without its picture."""

    @property
    def spec(self):
        return BLIND

    def launch(self, workdir, ports, *, width, timeout_s):
        return super().launch(workdir, ports, width=width, timeout_s=timeout_s)


def recorded(folder, legs, table, count, *, bridge, spec, metric, column=None):
    """The chosen episodes and their videos."""
    chosen = best_and_worst(legs, table, count, count)
    video, host = VideoConfig(column=column), HostConfig()
    found = record(
        bridge, spec, TASK, legs, chosen, folder, metric=metric, video=video, host=host
    )  # fmt: skip
    return chosen, list(found)


def test_players_that_see_no_picture_are_recorded_with_one(tmp_path):
    legs = Legs((Leg("p", Repeating(1), "test/far", Splits(SPACE).take("test", 3)),), SPACE, 0)
    table = play_legs(BlindBridge(), TASK, legs.legs, seed=0, metric="progress")
    how = {"bridge": FakeBridge(), "spec": BLIND, "metric": "progress", "column": "image"}
    chosen, videos = recorded(tmp_path / "videos", legs, table, 1, **how)
    assert [video.rank for video in videos] == ["best1", "worst1"]
    for made, episode in zip(videos, chosen, strict=True):
        assert made.same
        assert made.replayed == episode.score
        assert made.frames == episode.length + 1
        assert (tmp_path / "videos" / made.file).exists()
    assert videos[0].file == f"p-test-far-sampled-best1-state{videos[0].position}-0.mp4"


def test_a_player_that_does_not_repeat_is_reported_as_another_run(tmp_path, caplog):
    """The game slips by chance of its own, so that no run is like another."""
    legs = Legs((Leg("p", Repeating(1), "test", Splits(SPACE).take("test", 4)),), SPACE, 0)
    bridge = FakeBridge(unseeded=True, slip=1.0)
    table = play_legs(bridge, TASK, legs.legs, seed=0, metric="return")
    how = {"bridge": bridge, "spec": bridge.spec, "metric": "progress"}
    _, videos = recorded(tmp_path, legs, table, 2, **how)
    assert len(videos) == 4
    assert caplog.text.count("shows another run") == sum(not made.same for made in videos) > 0


def test_a_game_that_cannot_be_recorded_is_reported_before_anything_is_launched():
    blind = BlindBridge()
    with pytest.raises(ConfigError, match="shows no picture"):
        check_pictures(BLIND, blind, TASK, None)
    with pytest.raises(ConfigError, match=r"video.bridge changes the observations \['image'\]"):
        check_pictures(FakeBridge().spec, blind, TASK, None)
    with pytest.raises(UnknownNameError, match="Nearest: image"):
        check_pictures(BLIND, FakeBridge(), TASK, "imag")
    check_pictures(BLIND, FakeBridge(), TASK, "image")
