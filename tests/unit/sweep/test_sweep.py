"""``gamut sweep`` without Ray and without learning: what is run, kept and told."""

import json
import math
import os
import pickle
import re
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import yaml

from rollout.cli import main
from rollout.config import load_config, parse_set
from rollout.data.tables import read_table
from rollout.distinguish import distinguishable
from rollout.evaluate.statistics import Intervals
from rollout.files import locked
from rollout.host.schedule import Schedule
from rollout.observe.metrics import read_metrics
from rollout.sweep.config import SweepConfig
from rollout.sweep.curves import curves, of_other_run, set_of_run
from rollout.sweep.plan import SweepPlan, first_of
from rollout.sweep.sweep import _progress_of, sweep
from tests.unit.sweep import sweep_trainer
from tests.unit.sweep.sweep_trainer import TRAINER

AGENTS = """
import numpy as np

def by_place(observations, details, explore):
    x, y = (observations["position"] * 7).round().astype(int).T
    return np.where((x + y + explore) % 3 == 0, 4, (3 * x + 5 * y) % 5)
"""


@pytest.fixture
def picture(request, monkeypatch):
    """Draws nothing, which is what takes longest here, but where a test asks for the picture."""

    def draw(points, stem, **_):
        paths = stem.with_suffix(".png"), stem.with_suffix(".svg")
        for path in paths:
            path.write_text(f"{len(points)} points")
        return paths

    if not getattr(request, "param", False):
        monkeypatch.setattr("rollout.sweep.figure.draw", draw)


@pytest.fixture
def told_apart(monkeypatch):
    """Finds once what can be told apart, for all tests with the same game."""
    monkeypatch.setattr("rollout.sweep.summary.distinguishable", _once)


def _once(bridge, task, *, only, _found={}):  # noqa: B006 - kept between the tests
    key = pickle.dumps((bridge, task.state_space, task.limits, only))
    if key not in _found:
        _found[key] = distinguishable(bridge, task, only=only)
    return _found[key]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small sweep in it."""
    (tmp_path / "sweep_agents.py").write_text(AGENTS)
    (tmp_path / "faults").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SWEEP_FAULTS", str(tmp_path / "faults"))
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 20}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    config = {
        "output": str(tmp_path / "run"),
        "title": "A small sweep",
        "train": {
            "bridge": {"name": "fake"},
            "task": str(tmp_path / "task.yaml"),
            "env_steps": 1000,
            "width": 8,
            "state_set": {"test": 30, "validation": 0},
            "fragment": {"steps": 8},
            "algorithm": {"name": "ppo", "bptt": 8},
        },
        "sizes": [2, 6],
        "seeds": [0, 1],
        "evaluate": {
            "test_states": 10,
            "train_states": 4,
            "metric": "progress",
            "actions": ["sampled", "deterministic"],
        },
        "parallel": 0,
        "wandb": {"mode": "disabled"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


@pytest.fixture
def call(folder, picture, told_apart, capsys):
    """Calls the script with the small sweep and more arguments."""

    def run(*arguments, changes=None):
        file = folder / "config.yaml"
        if changes:
            data = yaml.safe_load(file.read_text())
            file = folder / "changed.yaml"
            file.write_text(yaml.safe_dump(merged(data, changes), sort_keys=False))
        function = partial(sweep, trainer=TRAINER)
        status = main(function, SweepConfig, "Sweeps.", ["--config", str(file), *arguments])
        return status, capsys.readouterr().err

    return run


def merged(data, changes):
    both = {
        key: merged(data[key], value)
        if isinstance(value, dict) and isinstance(data.get(key), dict)
        else value
        for key, value in changes.items()
    }
    return {**data, **both}


def trained(folder):
    file = folder / "faults" / "trained"
    return sorted(file.read_text().split()) if file.exists() else []


def results(folder):
    return read_table(folder / "run" / "results.parquet")


def summary(folder):
    return json.loads((folder / "run" / "summary.json").read_text())


def plan_of(folder, *settings):
    given = [parse_set(text) for text in settings]
    config = load_config(SweepConfig, folder / "config.yaml", given)
    return SweepPlan.make(config, TRAINER.check)


pytestmark = pytest.mark.heavy

ALL = [f"random-n{n}-s{s}" for n in (2, 6) for s in (0, 1)]


@pytest.mark.parametrize("picture", [True], indirect=True)
def test_a_sweep_and_what_it_leaves(folder, call):
    status, said = call()
    assert status == 0, said
    assert trained(folder) == ALL
    names = {path.name for path in (folder / "run").iterdir()}
    told = {"results.parquet", "report.md", "generalization.png", "generalization.svg", "sets.json"}
    assert told | {"summary.json", "metrics.jsonl", "config.yaml", "run.log"} <= names
    table = results(folder)
    assert len(table["score"]) == 2 * 2 * 2 * 10 + 2 * 2 * (2 * 2 + 4)
    assert set(zip(table["arm"], table["n"].tolist(), strict=True)) == {
        ("random", 2),
        ("random", 6),
    }
    assert len(set(table["score"])) > 1, "every episode is like the others: this shows nothing"
    found = summary(folder)
    assert found["status"] == "done"
    assert found["results"]["missing"] == {}
    point = next(p for p in found["points"] if p["n"] == 6)
    expected = next(p for p in curves(table, intervals=Intervals(bounds=(0, 1))) if p.n == 6)
    assert point["gap"]["point"] == pytest.approx(expected.gap.point)
    assert point["gap"]["low"] == pytest.approx(expected.gap.low)
    report = (folder / "run" / "report.md").read_text()
    assert "# A small sweep" in report
    assert found["verdict"] in report
    assert expected.gap.text(3) in report


def test_what_is_played_is_what_was_planned(folder, call):
    """Training states are the run's own and nested; held-out ones are everyone's and nobody's."""
    call()
    plan, table = plan_of(folder), results(folder)
    tests, own = set(), {}
    for run in plan.runs:
        rows = (table["n"] == run.n) & (table["training_seed"] == run.training_seed)
        played = {
            name: table["state"][rows & (table["set"] == name) & (table["actions"] == "sampled")]
            for name in ("train", "test")
        }
        repeats = 2 if run.n == 2 else 1  # two states are played twice, for four episodes
        planned = [str(run.states[k].index) for k in range(min(run.n, 4)) for _ in range(repeats)]
        assert played["train"].tolist() == planned
        assert not any(int(index) in run.states for index in played["test"])
        tests.add(tuple(played["test"].tolist()))
        own[run.key] = [state.index for state in run.states]
    assert len(tests) == 1
    for seed in (0, 1):
        assert own["random", 6, seed][:2] == own["random", 2, seed]
    assert set(own["random", 6, 0]) != set(own["random", 6, 1])
    sets = json.loads((folder / "run" / "sets.json").read_text())
    for run in plan.runs:
        assert sets["runs"][run.name]["trained on"]["digest"] == run.states.digest
    assert sets["held_out"]["random"]["test"]["digest"] == plan.base.held_out["test"].digest
    seeds = {s: table["episode_seed"][table["state"] == s] for s in next(iter(tests))}
    assert all(len(set(each.tolist())) == 1 for each in seeds.values())


def test_runs_with_the_largest_n_play_the_training_states_of_other_seeds(folder, call):
    config = load_config(SweepConfig, folder / "config.yaml", [("seeds", [0, 1, 2])])
    plan = SweepPlan.make(config, TRAINER.check)
    trained = {run.key: run.sets["train"] for run in plan.runs}
    for run in plan.runs:
        others = {
            set_of_run(n, seed): states
            for (_, n, seed), states in trained.items()
            if run.n == 6 and seed != run.training_seed
        }  # two seeds would not suffice: see rollout.sweep.decomposition
        assert {k: s for k, s in run.sets.items() if of_other_run(k)} == others
    changes = {"seeds": [0, 1, 2], "sizes": [6], "train.state_set.subset": "prefix"}
    config = load_config(SweepConfig, folder / "config.yaml", [*changes.items()])
    plan = SweepPlan.make(config, TRAINER.check)
    assert not any(of_other_run(name) for run in plan.runs for name in run.sets)
    call(changes={"seeds": [0, 1, 2]})
    rows = read_table(folder / "run" / "results.parquet")
    keys = ("state", "repeat", "episode_seed")
    for _, n, seed in trained:
        own = (rows["n"] == n) & (rows["training_seed"] == seed) & (rows["set"] == "train")
        theirs = rows["set"] == set_of_run(n, seed)
        first, second = (
            set(zip(*(rows[key][each].tolist() for key in keys), strict=True))
            for each in (own, theirs)
        )
        assert first == second
    lines = read_metrics(folder / "run" / "metrics.jsonl")
    assert not any(of_other_run(key.removeprefix("sweep/")) for line in lines for key in line)


def test_the_report_says_which_states_can_be_told_apart(folder, call):
    call()
    file = folder / "run" / "distinguishable.json"
    found = json.loads(file.read_text())
    assert "unknown" not in found
    report = (folder / "run" / "report.md").read_text()
    assert f"| states | {int(found['all_states']):,}; " in report
    assert not found["inert"]
    assert "every factor changes something for these observations" in report
    before = file.stat().st_mtime_ns
    call("--resume")
    assert file.stat().st_mtime_ns == before
    file.write_text(json.dumps({**found, "inert": ["x"], "states": "3"}))
    call("--resume")
    assert (
        "; 3 without x, which changed nothing that these"
        in (folder / "run" / "report.md").read_text()
    )
    file.write_text(json.dumps({**found, "key": "of another game"}))
    call("--resume")
    assert json.loads(file.read_text()) == found


def test_metrics_tell_each_run_once(folder, call):
    call()
    call("--resume")
    lines = [line for line in read_metrics(folder / "run" / "metrics.jsonl") if "sweep/arm" in line]
    assert len(lines) == 4
    for line in lines:
        assert line["sweep/gap"] == pytest.approx(line["sweep/train"] - line["sweep/test"])
    curve = [x for x in read_metrics(folder / "run" / "metrics.jsonl") if "sweep/random/gap" in x]
    assert [line["sweep/n"] for line in curve] == [2, 6]
    media = [x.media for x in read_metrics(folder / "run" / "metrics.jsonl") if x.media]
    assert [sorted(each) for each in media] == [["generalization", "tables/episodes"]]
    assert all(item.path.is_file() for item in media[0].values())


def test_what_is_done_is_never_done_again(folder, call):
    call()
    before = {name: column.tolist() for name, column in results(folder).items()}
    shutil.rmtree(folder / "run" / "runs" / ALL[1])
    (folder / "run" / "runs" / ALL[2] / "result.json").unlink()  # killed while it was evaluated
    (folder / "run" / "runs" / ALL[3] / "evaluation.parquet").write_bytes(b"PAR1")
    (folder / "faults" / "trained").unlink()
    assert call("--resume")[0] == 0
    assert trained(folder) == [ALL[1]]
    after = {name: column.tolist() for name, column in results(folder).items()}
    assert str(after) == str(before)


def test_a_sweep_can_grow(folder, call):
    call()
    (folder / "faults" / "trained").unlink()
    assert call("--resume", "--set", "seeds=[0,1,2]", "sizes=[6]")[0] == 0
    assert trained(folder) == ["random-n6-s2"]
    table = results(folder)
    assert set(table["training_seed"].tolist()) == {0, 1, 2}
    assert set(table["n"].tolist()) == {6}


def test_another_evaluation_trains_nothing(folder, call):
    call()
    (folder / "faults" / "trained").unlink()
    assert call("--resume", "--set", "evaluate.test_states=12")[0] == 0
    assert trained(folder) == []
    assert set(results(folder)["position"][results(folder)["set"] == "test"]) == set(range(12))


def test_runs_with_more_states_than_are_visited_share_a_training(folder, call, monkeypatch):
    # The trainer begins 20 episodes, and 8 more may be in progress.
    monkeypatch.setitem(globals(), "TRAINER", replace(TRAINER, in_order=True))
    changes = ("sizes=[6,27,28,40]", "evaluate.train_states=6", "videos.best=1")
    assert call("--set", *changes)[0] == 0
    sizes = {name: int(name.split("-")[1][1:]) for name in trained(folder)}
    assert sorted(sizes.values()) == [6, 6, 27, 27, 40, 40]
    table = results(folder)
    rows = {n: {k: v[table["n"] == n] for k, v in table.items()} for n in (27, 28, 40)}
    keys = ("training_seed", "set", "actions", "position", "state", "repeat", "score")
    assert all((rows[28][key] == rows[40][key]).all() for key in keys)
    assert set(rows[28]["player"]) == {"random-n28-s0", "random-n28-s1"}
    training = json.loads((folder / "run/runs/random-n28-s1/result.json").read_text())["training"]
    assert training["shared"] == "random-n40-s1"
    visits = {"states": 28, "episodes": 20, "min": 0, "median": 1.0, "max": 1, "never": 8 / 28}
    assert training["visits"] == visits
    assert summary(folder)["results"]["env_steps"] == 6 * 1000  # of eight runs
    report = (folder / "run" / "report.md").read_text()
    assert "The runs with N = 28 are those with N = 40 and the same seeds" in report
    # What it rests on: the same starts, and so the same training.
    runs = {run.name: run for run in plan_of(folder, *changes).runs}
    few, most = (runs[f"random-n{n}-s1"].states for n in (28, 40))
    starts = (Schedule(states, seed=1, episodes=28).take(28) for states in (few, most))
    assert len({str([(s.state.index, s.seed) for s in each]) for each in starts}) == 1
    # Another evaluation trains nothing.
    (folder / "faults" / "trained").unlink()
    assert call("--resume", "--set", *changes, "evaluate.test_states=12")[0] == 0
    assert trained(folder) == []


def test_without_resume_a_sweep_is_left_alone(folder, call):
    call()
    status, said = call()
    assert status == 2
    assert "--resume" in said


def test_a_run_that_would_differ_is_refused(folder, call):
    arms = {"arms": {"random": {}, "other": {"set": {"algorithm.lr": 0.01}, "sizes": [2]}}}
    assert call(changes=arms)[0] == 0
    arms["arms"]["other"]["set"] = {"algorithm.lr": 0.02}
    status, said = call("--resume", changes=arms)
    assert status == 2
    assert "other-n2-s0 was begun with another configuration" in said
    status, said = call("--resume", "--set", "train.env_steps=2000")
    assert status == 2, "the template may not change"
    arms["arms"]["other"]["set"] = {"algorithm.lr": 0.01}
    status, _ = call("--resume", "--set", "train.learners.gpus=0.5", changes=arms)
    assert status == 0, "it may go on where there is a GPU"


def test_a_task_that_changes_under_a_sweep_is_noticed(folder, call):
    call()
    task = yaml.safe_load((folder / "task.yaml").read_text())
    (folder / "task.yaml").write_text(yaml.safe_dump({**task, "limits": {"steps": 10}}))
    status, said = call("--resume")
    assert status == 2
    assert "another configuration or task" in said


def test_what_fails_is_tried_again_and_then_reported(folder, call):
    faults = folder / "faults"
    (faults / f"{ALL[0]}.fail").write_text("2")
    (faults / f"{ALL[1]}.fail").write_text("9")
    (faults / f"{ALL[2]}.wrong").write_text("9")
    status, said = call()
    assert status == 3
    assert "2 of 4 runs are missing" in said
    assert trained(folder) == [ALL[0], ALL[3]]
    assert (faults / f"{ALL[1]}.fail").read_text() == "6", "3 attempts each"
    assert (faults / f"{ALL[2]}.wrong").read_text() == "8", "what does not fit is not tried again"
    report = (folder / "run" / "report.md").read_text()
    assert "**Unfinished:** 2 of 4 runs are missing" in report
    assert f"| failed: {ALL[1]} | BudgetExhausted: no game is left |" in report
    assert f"| failed: {ALL[2]} | ConfigError: it does not fit |" in report
    assert summary(folder)["results"]["missing"].keys() == {ALL[1], ALL[2]}
    for file in faults.glob("*.*"):
        file.unlink()
    assert call("--resume")[0] == 0
    assert "failed:" not in (folder / "run" / "report.md").read_text()


def test_a_training_that_ends_early_is_a_failure(folder, call, monkeypatch):
    monkeypatch.setattr(sweep_trainer, "RunDirectory", None)
    status, said = call("--set", "retries=0")
    assert status == 3
    assert "4 of 4 runs are missing" in said
    assert "AttributeError" in said
    assert "**No verdict:**" in (folder / "run" / "report.md").read_text()


def test_a_stop_is_orderly_and_resumed_it_is_the_same(folder, call):
    (folder / "faults" / f"{ALL[3]}.stop").write_text("1")
    status, said = call()
    assert status == 143
    assert "--resume" in said
    found = summary(folder)
    assert found["status"] == "interrupted"
    assert found["results"]["runs"] < 4
    assert call("--resume")[0] == 0
    resumed = results(folder)
    shutil.rmtree(folder / "run")
    assert call()[0] == 0
    whole = results(folder)
    for name, column in whole.items():
        np.testing.assert_array_equal(resumed[name], column, err_msg=name)


def test_two_sweeps_do_not_share_a_folder(folder, call):
    call()
    before = (folder / "run" / "run.json").read_bytes()
    with locked(folder / "run" / ".run.lock", 0.0):
        status, said = call("--resume")
    assert status == 2
    assert f"process {os.getpid()} on" in said
    assert (folder / "run" / "run.json").read_bytes() == before


def test_one_seed_gets_no_interval_and_is_reported_why(folder, call):
    assert call("--set", "seeds=[3]")[0] == 0
    report = (folder / "run" / "report.md").read_text()
    assert "one training seed" in report
    assert "**No verdict:**" in report
    assert summary(folder)["points"][0]["gap"]["low"] is None


def test_arms_and_what_they_are(folder, call):
    arms = {
        "random": {"doc": "nested random subsets"},
        "prefix": {"set": {"state_set.subset": "prefix"}, "sizes": [6]},
        "red": {"set": {"state_set.only.colour": ["red"]}, "seeds": [1], "doc": "red only"},
    }
    changes = {"arms": arms, "evaluate": {"full_states": 5}}
    if "red" not in str(factor_values("colour")):
        arms["red"]["set"] = {"state_set.only.colour": [factor_values("colour")[0]]}
    assert call(changes=changes)[0] == 0
    prefixes = ["prefix-n6-s0", "prefix-n6-s1"]
    assert trained(folder) == sorted([*ALL, *prefixes, "red-n2-s1", "red-n6-s1"])
    plan = SweepPlan.make(load_config(SweepConfig, folder / "changed.yaml"), TRAINER.check)
    by_name = {run.name: run for run in plan.runs}
    prefix, red = by_name["prefix-n6-s0"], by_name["red-n6-s1"]
    assert [s.index for s in prefix.sets["train"]] == [prefix.states[k].index for k in range(4)]
    assert prefix.sets["test"].digest == by_name[ALL[0]].sets["test"].digest
    only = arms["red"]["set"]["state_set.only.colour"]
    assert {state["colour"] for state in (*red.states, *red.sets["test"])} == set(only)
    assert set(by_name[ALL[0]].sets) == {"train", "test", "full"}
    report = (folder / "run" / "report.md").read_text()
    assert "nested random subsets" in report
    assert "Which arms change the gap" in report
    assert "(other states)" in report


def test_runs_of_lists_play_held_out_states_with_their_own_entries(folder, call):
    lists = {"equipment": ["colour"], "sheep": ["start"], "other": ["map"]}
    parts = {"state_set.subset": "lists", "state_set.lists": lists, "state_set.test": 0.5}
    arms = {
        "random": {"set": {"state_set.test": 0.5}},
        "lists": {"set": parts},
        "shuffled": {"set": {**parts, "state_set.shuffled": True}},
    }
    changes = {"arms": arms, "evaluate": {"inside_states": 6}}
    status, said = call("--set", "sizes=[4]", "evaluate.test_states=4", changes=changes)
    assert status == 0, said
    plan = SweepPlan.make(load_config(SweepConfig, folder / "changed.yaml"), TRAINER.check)
    for run in plan.runs:
        assert ("inside" in run.sets) == (run.arm != "random")
        if run.arm == "random":
            continue
        states, inside = run.states, run.sets["inside"]
        assert inside.size == min(6, math.prod(states.lengths))
        assert {states.splits.part_of(state.index) for state in inside} == {"test"}
        for factor in lists["equipment"] + lists["sheep"] + lists["other"]:
            whole = {state[factor] for state in states.of_part("train", 10**6)}
            assert {state[factor] for state in inside} <= whole
    table = read_table(folder / "run" / "results.parquet")
    played = table["set"] == "inside"
    assert set(table["arm"][played].tolist()) == {"lists", "shuffled"}
    assert "held-out states with the run's entries" in (folder / "run" / "report.md").read_text()


def factor_values(name):
    from rollout.testing.fakes import FakeBridge

    return list(FakeBridge().spec.state_space.factor(name).values)


def test_held_out_values_are_played_by_the_arms_that_hold_them_out(folder, call):
    values = factor_values("colour")[:2]
    arms = {"random": {}, "held": {"set": {"state_set.hold_out": {"colour": values}}}}
    changes = {"arms": arms, "evaluate": {"extrapolation": ["colour"]}}
    assert call("--set", "sizes=[2]", changes=changes)[0] == 0
    table = results(folder)
    held = table["set"] == "extrapolation/colour"
    assert set(table["arm"][held]) == {"held"}
    assert held.sum() == 2 * 2 * 10


def test_a_grid_makes_arms(folder, call):
    changes = {"grid": {"algorithm.lr": [0.001, 0.0005], "policy.hidden": [[16], [32, 32]]}}
    assert call("--set", "sizes=[2]", "seeds=[0]", changes=changes)[0] == 0
    arms = ["lr=0.001,hidden=16", "lr=0.001,hidden=32+32", "lr=0.0005,hidden=16"]
    assert trained(folder) == sorted(f"{arm}-n2-s0" for arm in (*arms, "lr=0.0005,hidden=32+32"))
    config = load_config(SweepConfig, folder / "changed.yaml")
    assert [arm.template.algorithm.lr for arm in config.expanded()] == [
        0.001,
        0.001,
        0.0005,
        0.0005,
    ]
    named = config.model_copy(update={"arms": {"mlp": config.arms["random"]}})
    assert named.expanded()[0].name == "mlp,lr=0.001,hidden=16"


def test_baselines_play_the_held_out_states(folder, call):
    place = {"name": "callable", "function": "sweep_agents:by_place"}
    assert call(changes={"baselines": {"place": place}})[0] == 0
    table = read_table(folder / "run" / "baselines.parquet")
    assert set(table["set"]) == {"test"}
    assert len(table["score"]) == 20
    # All policies act alike, on the same states with the same random numbers.
    own = results(folder)
    rows = (own["set"] == "test") & (own["training_seed"] == 0) & (own["n"] == 2)
    np.testing.assert_array_equal(table["score"], own["score"][rows])
    assert "baseline place, held-out states, sampled" in (folder / "run" / "report.md").read_text()


def test_best_and_worst_are_recorded_once(folder, call):
    arguments = ("--set", "videos.best=1", "videos.worst=1")
    assert call(*arguments)[0] == 0
    videos = sorted((folder / "run" / "videos").rglob("*.mp4"))
    assert [video.parent.name for video in videos] == [ALL[0]] * 2 + [ALL[2]] * 2
    report = (folder / "run" / "report.md").read_text()
    links = re.findall(r"\((videos/[^)]*)\)", report)
    assert {folder / "run" / link for link in links} == set(videos)
    assert "another run of it" not in report
    times = [video.stat().st_mtime_ns for video in videos]
    assert call("--resume", *arguments)[0] == 0
    assert [video.stat().st_mtime_ns for video in videos] == times


def test_the_longest_runs_come_first(folder):
    runs = plan_of(folder).runs
    assert [run.n for run in runs] == [6, 6, 2, 2]
    assert [run.training_seed for run in runs] == [0, 1, 0, 1]


def test_the_first_of_a_set(folder):
    states = plan_of(folder).runs[0].states
    assert first_of(states, 9) is states
    indices = [state.index for state in states]
    assert [state.index for state in first_of(states, 3)] == indices[:3]
    assert first_of(first_of(states, 4), 3).digest == first_of(states, 3).digest


def test_settings_are_chosen_on_validation_states_and_test_is_opened_on_record(folder, call):
    some = ("train.state_set.validation=30",)
    assert call("--set", *some, "evaluate.split=validation")[0] == 0
    plan = SweepPlan.make(load_config(SweepConfig, folder / "run" / "config.yaml"), TRAINER.check)
    sets = {run.sets["test"].name for run in plan.runs}
    assert all(name.startswith("validation") for name in sets), sets
    record, report = folder / "run" / "test_openings.jsonl", folder / "run" / "report.md"
    assert not record.exists()
    assert "validation: for choosing settings" in report.read_text()
    assert call("--resume", "--set", *some, "evaluate.split=test")[0] == 0
    assert len(record.read_text().splitlines()) == 1
    assert "whether they did or not: 1 (20" in report.read_text()
    assert call("--resume", "--set", *some, "evaluate.split=test")[0] == 0  # evaluates nothing
    assert len(record.read_text().splitlines()) == 1
    record.write_bytes(b"\xff damaged\n" + record.read_bytes() + b'{"time": ')  # and killed
    more = ("evaluate.split=test", "evaluate.test_states=12")
    assert call("--resume", "--set", *some, *more)[0] == 0
    assert len(record.read_bytes().splitlines()) == 3
    assert "whether they did or not: 3 (at an unknown time, 20" in report.read_text()


def test_progress_says_when_only_evaluations_are_left():
    assert _progress_of(0, 1000, 0.0, done=False) == (0.0, "?")
    assert _progress_of(400, 1000, 10.0, done=False) == (0.4, "1m00s")
    assert _progress_of(1040, 1000, 10.0, done=False) == (0.99, "evaluation")
    assert _progress_of(1040, 1000, 10.0, done=True) == (1.0, "0s")
