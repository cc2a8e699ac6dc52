"""Validation during training: which states, which checkpoint is the best, when the run ends."""

import json
import os
import pkgutil
import signal
import subprocess

import numpy as np
import pytest
import ray
import yaml

from rollout.cli import Session, main
from rollout.errors import BudgetExhausted
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.observe.metrics import read_metrics
from rollout.signals import Stop
from rollout.train import validation as module
from rollout.train.checkpoint import find_checkpoint
from rollout.train.history import FILE, best_checkpoint
from rollout.train.plan import TrainPlan
from rollout.train.search import run_trial
from rollout.train.search_config import SearchConfig
from rollout.train.train import train
from tests.ray.training import (
    ROOT,
    command,
    config_of_file,
    merged,
    same_weights,
    summary,
    wait_for,
    whole_episodes,
    write_config,
)

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray", "joined_ray")]

UPDATES, EVERY, STATES = 8, 128, 24  # an update has 64 steps
MANY = {"states": 256}  # few of them can be reached: among so many, scores differ
SETTINGS = merged(
    whole_episodes(),
    {
        "env_steps": 64 * UPDATES,
        "checkpoint": {"every": 100, "keep": 1},
        "validation": {"every": EVERY, "states": STATES},
        "wandb": {"mode": "disabled"},
    },
)


def call(folder, *, on_update=(), resume=False, **more):
    write_config(folder, SETTINGS, **more)
    config = config_of_file(folder / "config.yaml")
    return train(config, Session(resume, Stop()), on_update)


def lines_of(folder, name):
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if name in line]


def history(folder):
    return json.loads((folder / "run" / "checkpoints" / FILE).read_text())


def checkpoints(folder):
    return sorted(int(p.name) for p in (folder / "run" / "checkpoints").glob("0*"))


@pytest.fixture
def scores(monkeypatch):
    """Scores of the validations, by update, in place of those that were played."""
    by_update = {}
    played = module._entry

    def entry(update, env_steps, found):
        score = by_update.get(update, 0.0)
        return {**played(update, env_steps, found), "score": score}

    monkeypatch.setattr(module, "_entry", entry)
    return by_update


def test_it_changes_nothing_in_the_training_and_never_plays_other_states(tmp_path, monkeypatch):
    played = []
    board = module.play_board

    def play(its_board, fleet, **more):
        played.append(its_board)
        board(its_board, fleet, **more)

    monkeypatch.setattr(module, "play_board", play)
    assert call(tmp_path / "one", validation=MANY) is None
    assert call(tmp_path / "two", validation={"every": None}) is None
    one, two = (find_checkpoint(tmp_path / name / "run") for name in ("one", "two"))
    assert same_weights(one.weights(), two.weights())
    assert one.about["positions"] == two.about["positions"]

    splits = TrainPlan.make(config_of_file(tmp_path / "one" / "config.yaml")).states.splits
    starts = [[b.legs.start(e) for e in range(b.legs.episodes)] for b in played]
    assert len(starts) == UPDATES // 2
    assert {splits.part_of(start.state.index) for run in starts for start in run} == {"validation"}
    paired = [[(start.state.index, start.seed) for start in run] for run in starts]
    assert len(set(paired[0])) == 256
    assert all(pairs == paired[0] for pairs in paired)

    lines = lines_of(tmp_path / "one", "validation/score")
    assert [line["env_steps"] for line in lines] == [128, 256, 384, 512]
    for line in lines:
        assert line["validation/episodes"] == 256
        assert line["validation/low"] < line["validation/score"] < line["validation/high"]
        assert line["validation/seconds"] > 0
    best = max(lines, key=lambda line: line["validation/score"])
    assert lines[-1]["validation/best"] == best["validation/score"]
    told = summary(tmp_path / "one")
    assert told["results"]["validation"]["validations"] == 4
    assert told["protocol"]["validation"]["state_set"]["part"] == "validation"
    assert not lines_of(tmp_path / "two", "validation/score")


def test_an_evaluation_of_the_checkpoint_gives_the_same_score(tmp_path):
    call(tmp_path, validation=MANY)
    (tmp_path / "evaluate.yaml").write_text(
        yaml.safe_dump(
            {
                "output": str(tmp_path / "evaluation"),
                "bridge": SETTINGS["bridge"],
                "players": {
                    name: {"name": "checkpoint", "path": str(tmp_path / "run"), "checkpoint": name}
                    for name in ("best", "newest")
                },
                "sets": {"validation": {"split": "validation", "size": 256}},
                "actors": 0,
                "wandb": {"mode": "disabled"},
            }
        )
    )
    argv = ["--config", str(tmp_path / "evaluate.yaml")]
    assert main(evaluate, EvaluateConfig, "Evaluates.", argv) == 0
    found = json.loads((tmp_path / "evaluation" / "summary.json").read_text())["findings"]["legs"]
    score = {leg["player"]: leg["score"]["point"] for leg in found}
    last = history(tmp_path)[-1]
    assert score["newest"] == pytest.approx(last["score"], abs=1e-12)
    best = summary(tmp_path)["results"]["validation"]["best"]
    assert score["best"] == pytest.approx(best["score"], abs=1e-12)


def test_the_best_checkpoint_is_kept_and_the_first_of_equal_ones(tmp_path, scores):
    scores.update({2: 1.0, 4: 5.0, 6: 5.0, 8: 2.0})
    call(tmp_path)
    assert checkpoints(tmp_path) == [4, 8]
    best = best_checkpoint(tmp_path / "run")
    assert best.update == 4
    assert best_checkpoint(tmp_path / "run" / "checkpoints").path == best.path
    assert summary(tmp_path)["results"]["validation"]["best"]["update"] == 4
    newest = lines_of(tmp_path, "validation/score")[-1]
    assert (newest["validation/best"], newest["validation/best_update"]) == (5.0, 4)


def test_the_last_weights_are_validated_wherever_the_budget_ends(tmp_path):
    call(tmp_path, env_steps=64 * 3, validation={"every": 10**6})
    assert [entry["update"] for entry in history(tmp_path)] == [3]
    call(tmp_path / "stopped", on_update=[lambda record: record.update == 3])
    assert [entry["update"] for entry in history(tmp_path / "stopped")] == [2, 3]


def test_callbacks_are_given_the_values_of_a_validation(tmp_path):
    seen = []
    call(tmp_path, on_update=[lambda record: seen.append("validation/score" in record.metrics)])
    assert seen == [False, True] * (UPDATES // 2)


def test_patience_ends_the_run_and_resume_continues_only_with_more(tmp_path, scores):
    scores.update({2: 3.0, 4: 2.0, 6: 1.0, 8: 2.0})
    assert call(tmp_path, validation={"patience": 2}) is None
    told = summary(tmp_path)
    assert (told["status"], told["results"]["ended_by"]) == ("done", "validation.patience")
    assert told["results"]["updates"] == 6
    assert checkpoints(tmp_path) == [2, 6]
    assert "ended by validation.patience" in (tmp_path / "run" / "run.log").read_text()
    before = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert call(tmp_path, resume=True, validation={"patience": 2}) is None
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == before
    assert call(tmp_path, resume=True, validation={"patience": 3}) is None
    told = summary(tmp_path)
    assert (told["results"]["updates"], told["results"]["ended_by"]) == (8, "env_steps")
    assert checkpoints(tmp_path) == [2, 8], "the best checkpoint survives --resume"


@pytest.mark.long
@pytest.mark.slow
def test_killed_in_a_validation_it_is_repeated_and_the_run_is_the_same(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    slow = {"bridge": {"step_s": 0.02}}
    for folder in (whole, broken):
        write_config(folder, SETTINGS, **slow)
    assert call(whole, **slow) is None
    said = (tmp_path / "said").open("w")
    process = subprocess.Popen(command(broken), cwd=ROOT, stderr=said)
    # The checkpoint of the update is written right before its validation, which takes 1 s.
    assert wait_for(lambda: 4 in checkpoints(broken))
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=60) == -9
    said.close()
    assert [entry["update"] for entry in history(broken)] == [2], "it was not killed in it"
    assert call(broken, resume=True, **slow) is None
    assert history(broken) == history(whole)
    assert checkpoints(broken) == checkpoints(whole)
    one, other = find_checkpoint(whole / "run"), find_checkpoint(broken / "run")
    assert same_weights(one.weights(), other.weights())
    one, other = best_checkpoint(whole / "run"), best_checkpoint(broken / "run")
    assert one.update == other.update
    assert same_weights(one.weights(), other.weights())
    results = [summary(folder)["results"] for folder in (whole, broken)]
    assert results[0]["validation"] == results[1]["validation"]


@pytest.mark.long
def test_runners_validate_beside_their_training_and_nothing_is_left(tmp_path):
    """Where episodes are played makes no difference, and the runners are not replaced."""
    alone = {"algorithm": {"max_staleness": 0}, "validation": MANY}
    call(tmp_path / "here", **alone)
    call(tmp_path / "there", runners=1, **alone)
    assert history(tmp_path / "here") == history(tmp_path / "there")
    one, two = (find_checkpoint(tmp_path / name / "run") for name in ("here", "there"))
    assert same_weights(one.weights(), two.weights())
    assert lines_of(tmp_path / "there", "done")[-1]["restarts/host"] == 0


def trial(folder, metric):
    """Runs the trial of a search, or continues it; returns what Tune is told."""
    train_ = dict(SETTINGS)
    del train_["wandb"]
    config = SearchConfig.model_validate(
        {
            "output": folder,
            "train": merged(train_, {"checkpoint": {"every": 3}}),
            "space": {"algorithm.lr": [1e-3]},
            "metric": metric,
            "wandb": {"mode": "disabled"},
        }
    )
    told = []
    run_trial(config, {"algorithm.lr": 1e-3}, "trial", told.append)
    return told


def test_a_trial_of_a_search_reports_every_validation(tmp_path):
    told = trial(tmp_path, "validation/score")
    assert [each["env_steps"] for each in told] == [128, 256, 384, 512]
    found = json.loads((tmp_path / "trials" / "trial" / "checkpoints" / FILE).read_text())
    assert [each["score"] for each in told] == [entry["score"] for entry in found]


class Killed(BaseException):
    """Nothing handles it, as nothing handles SIGKILL."""


@pytest.mark.parametrize(
    ("metric", "killed_in", "number", "steps"),
    [
        ("train/staleness", "rollout.train.rounds.Rounds._call", 5, 64),
        ("validation/score", "rollout.train.validation.Validation.run", 4, 128),
    ],
)
def test_a_killed_trial_reports_each_step_once(
    tmp_path, monkeypatch, metric, killed_in, number, steps
):
    """Killed after the line of an update without a checkpoint, or in the last validation."""
    owner, method = killed_in.rsplit(".", 1)
    own, calls = pkgutil.resolve_name(killed_in), []

    def killed(*arguments, **more):
        calls.append(arguments)
        if len(calls) == number:
            raise Killed
        return own(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(pkgutil.resolve_name(owner), method, killed)
        with pytest.raises(Killed):
            trial(tmp_path, metric)
    expected = list(range(steps, 64 * UPDATES + 1, steps))
    for _ in range(2):  # a trial that is done reports the same to a later search
        assert [each["env_steps"] for each in trial(tmp_path, metric)] == expected
    lines = read_metrics(tmp_path / "trials" / "trial" / "metrics.jsonl")
    assert [line["env_steps"] for line in lines if metric in line] == expected


@pytest.fixture
def build():
    """Builds algorithms, and stops them at the end of the test."""
    from rollout.train.rllib.algorithm import build as make

    made = []

    def build_one(folder, **more):
        write_config(folder, SETTINGS, **more)
        plan = TrainPlan.make(config_of_file(folder / "config.yaml"))
        made.append(make(plan))
        return plan, made[-1]

    yield build_one
    for algorithm in made:
        algorithm.stop()


def validate(plan, algorithm, folder, watch=lambda _: None):
    validation = module.Validation(plan, plan.validation, folder, 0)
    more = {"watch": watch, "stopping": lambda: False}
    return validation.run(1, 64, algorithm.weights(), algorithm.open_fleet, **more)


@pytest.mark.long
def test_a_runner_that_is_killed_in_a_validation_costs_attempts_not_episodes(build, tmp_path):
    plan, algorithm = build(tmp_path, runners=2, bridge={"step_s": 0.01})
    algorithm.train()
    first = validate(plan, algorithm, tmp_path / "first")
    actor = algorithm._runners.supervisor.actors[0]
    pid = ray.get(actor.handle.__ray_call__.remote(lambda _: os.getpid()), timeout=60)

    def kill(_):
        if actor.incarnation == 0:
            os.kill(pid, signal.SIGKILL)

    again = validate(plan, algorithm, tmp_path / "again", kill)
    assert actor.incarnation == 1
    assert again["validation/episodes"] == STATES
    assert again["validation/score"] == first["validation/score"]
    algorithm.train()
    assert algorithm.last.update == 2


@pytest.mark.long
def test_fragments_in_flight_are_part_of_the_next_batch(build, tmp_path):
    plan, algorithm = build(tmp_path, runners=2, algorithm={"max_staleness": 2})
    iterations = []
    for number in range(4):
        algorithm.train()
        iterations.append(algorithm.last)
        validate(plan, algorithm, tmp_path / str(number))
        assert not any(a.requests for a in algorithm._runners.supervisor.actors)
    episodes = [r.start.episode for i in iterations for r in i.results]
    assert len(episodes) == len(set(episodes))
    assert 8 * len(episodes) == iterations[-1].env_steps, "steps of a fragment were lost"
    for k in (0, 1):
        assert sorted(e for e in episodes if e % 2 == k) == list(
            range(k, k + 2 * sum(e % 2 == k for e in episodes), 2)
        )


def test_games_that_never_come_up_in_a_validation_end_the_run_short(tmp_path, monkeypatch):
    def none_left(*_args, **_more):
        raise BudgetExhausted("no game is left")

    monkeypatch.setattr(module, "play_board", none_left)
    assert "no game is left" in call(tmp_path)
    told = summary(tmp_path)
    assert (told["status"], told["results"]["updates"]) == ("ended short", 2)
    monkeypatch.undo()
    assert call(tmp_path, resume=True) is None
    assert [entry["update"] for entry in history(tmp_path)] == [2, 4, 6, 8]
    assert np.isfinite([entry["score"] for entry in history(tmp_path)]).all()
