"""``--estimate``: the first episodes are played once, and what the whole run costs is told."""

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from rollout.api import Usage
from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.estimate import Estimate
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.judge.config import JudgeConfig
from rollout.judge.judge import _Judging, judge
from rollout.testing.chat_server import ChatServer
from rollout.train.config import TrainConfig
from rollout.train.train import train

LIMIT = 3  # steps of every episode: too few to cross the grid
TASK = {"evaluator": {"name": "game_reward"}, "limits": {"steps": LIMIT}}


def used(calls, tokens, usd=None):
    return Usage(calls, 0, tokens, 0, usd or 0.0, 0 if usd is not None else calls)


def row(text, name):
    [line] = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_a_whole_run_is_the_played_part_and_the_others_at_their_mean_and_extremes():
    estimate = Estimate()
    estimate.add("one", [used(2, 100, 0.5), used(4, 300, 1.5)], 10)
    estimate.add("two", [used(1, 10, 0.1)], 3)
    text = estimate.text()
    assert row(text, "one") == [
        "one", "2 of 10", "30 (22 to 38)", "2,000 (1,200 to 2,800)", "10.00 (6.00 to 14.00)"
    ]  # fmt: skip
    assert row(text, "two") == ["two", "1 of 3", "3", "30", "0.30"]
    assert row(text, "whole run")[1:3] == ["3 of 13", "33 (25 to 41)"]


def test_what_is_unknown_is_never_zero():
    estimate = Estimate()
    estimate.add("priced", [used(2, 100, 0.5)], 10)
    estimate.add("unpriced", [used(2, 100)], 10)
    estimate.add("not played", [], 10)
    text = estimate.text()
    assert row(text, "unpriced")[-1] == "unknown"
    assert row(text, "not played")[1:] == ["0 of 10", "unknown", "unknown", "unknown"]
    assert row(text, "whole run")[1:] == ["2 of 30", ">=40", ">=2,000", ">=5.00"]
    assert "prices=FILE" in text


def test_no_calls_are_told():
    estimate = Estimate()
    estimate.add("random", [used(0, 0, 0.0)], 10)
    assert "called no model" in estimate.text()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK))
    (tmp_path / "prices.yaml").write_text(
        "date: 2026-11-28\nmodels: {m: {input: 1.0, cached: 1.0, output: 5.0}}\n"
    )
    return tmp_path


def model(server):
    return {
        "name": "vlm", "endpoint": {"url": server.url}, "model": "m", "prices": "prices.yaml",
        "prompt": "act", "fallback": "random",
    }  # fmt: skip


def run(function, config, name, keys, *arguments):
    Path(f"{name}.yaml").write_text(yaml.safe_dump(keys))
    return main(function, config, "Runs.", ["--config", f"{name}.yaml", *arguments])


def game(output):
    return {
        "output": output, "bridge": {"name": "fake", "side": 16}, "task": "./task.yaml",
        "actors": 0, "instances": 3, "wandb": {"mode": "disabled"},
    }  # fmt: skip


@pytest.mark.heavy
def test_a_collection_is_estimated_by_its_first_episode_which_is_not_paid_again(here, capsys):
    with ChatServer(lambda _: "<action>1</action>") as server:
        keys = {**game("run"), "policy": model(server), "episodes": 5}
        assert run(collect, CollectConfig, "c", keys, "--estimate") == 0
        # 100 tokens at 1 dollar and 10 at 5 dollars a million for each of its steps.
        got = row(capsys.readouterr().out, "vlm on task")
        assert got[1:4] == ["1 of 5", str(5 * LIMIT), f"{5 * LIMIT * 110:,}"]
        assert len(server.requests) == LIMIT
        assert run(collect, CollectConfig, "c", keys, "--resume") == 0
        assert len(server.requests) == 5 * LIMIT
        capsys.readouterr()
        assert run(collect, CollectConfig, "c", keys, "--resume", "--estimate") == 0
        assert "nothing is left to do" in capsys.readouterr().out
    assert json.loads((here / "run" / "summary.json").read_text())["status"] == "done"


@pytest.mark.heavy
def test_an_evaluation_is_estimated_by_an_episode_of_each_player_and_set(here, capsys):
    with ChatServer(lambda _: "<action>1</action>") as server:
        keys = {
            **game("run"),
            "players": {"model": model(server), "chance": {"name": "random"}},
            "sets": {"one": {"size": 4}, "two": {"split": "test", "size": 3}},
        }
        assert run(evaluate, EvaluateConfig, "e", keys, "--estimate") == 0
        text = capsys.readouterr().out
        assert row(text, "model/one/sampled")[1:3] == ["1 of 4", str(4 * LIMIT)]
        assert row(text, "model/two/sampled")[1:3] == ["1 of 3", str(3 * LIMIT)]
        assert row(text, "chance/one/sampled")[1:3] == ["1 of 4", "0"]
        assert row(text, "whole run")[1:3] == ["4 of 14", str(7 * LIMIT)]
        assert len(server.requests) == 2 * LIMIT
        assert run(evaluate, EvaluateConfig, "e", keys, "--resume") == 0
        assert len(server.requests) == 7 * LIMIT


@pytest.mark.heavy
def test_a_judgement_is_estimated_by_its_first_verdict(here, capsys):
    keys = {**game("run"), "policy": {"name": "random"}, "episodes": 4}
    assert run(collect, CollectConfig, "c", keys) == 0
    with ChatServer(lambda _: "no verdict") as server:
        keys = {
            "output": "judged", "dataset": "run", "endpoint": {"url": server.url}, "model": "m",
            "prices": "prices.yaml", "reparse": 0, "wandb": {"mode": "disabled"},
        }  # fmt: skip
        assert run(judge, JudgeConfig, "j", keys, "--estimate") == 0
        assert row(capsys.readouterr().out, "verdicts")[1:3] == ["1 of 4", "4"]
        assert len(server.requests) == 1


@pytest.mark.heavy
def test_a_verdict_that_was_not_asked_for_is_no_free_one(here, capsys, monkeypatch):
    keys = {**game("run"), "policy": {"name": "random"}, "episodes": 4}
    assert run(collect, CollectConfig, "c", keys) == 0

    def unreadable(self, item):
        self._left_out[item.first.name] = "damaged"

    monkeypatch.setattr(_Judging, "_prepare", unreadable)
    keys = {
        "output": "judged", "dataset": "run", "endpoint": {"url": "http://127.0.0.1:9/v1"},
        "model": "m", "prices": "prices.yaml", "wandb": {"mode": "disabled"},
    }  # fmt: skip
    assert run(judge, JudgeConfig, "j", keys, "--estimate") == 3
    said = capsys.readouterr()
    assert "called no model" not in said.out
    assert "damaged" in said.err


@pytest.mark.heavy
def test_in_a_terminal_the_rest_is_played_if_the_user_says_so(here, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    keys = {**game("run"), "policy": {"name": "random"}, "episodes": 5}
    for answer, done in (("n\n", 1), ("y\n", 5)):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(sys, "stdout", Terminal())
        assert run(collect, CollectConfig, "c", keys, "--estimate", "--resume") == 0
        summary = json.loads((here / "run" / "summary.json").read_text())
        assert summary["results"]["episodes"] == done


@pytest.mark.heavy
def test_a_dropped_first_episode_is_estimated_too(here, capsys):
    with ChatServer(lambda _: "<action>1</action>") as server:
        keys = {**game("run"), "policy": model(server), "episodes": 5, "quotas": {"success": 2}}
        assert run(collect, CollectConfig, "c", keys, "--estimate") == 0
        assert row(capsys.readouterr().out, "vlm on task")[1:3] == ["1 of 5", str(5 * LIMIT)]
        assert json.loads(Path("run/summary.json").read_text())["status"] == "ended short"
        assert run(collect, CollectConfig, "c", keys, "--resume", "--estimate") == 3
        assert "nothing is left" not in "".join(capsys.readouterr())


@pytest.mark.heavy
def test_without_a_recording_it_is_said_that_episodes_are_paid_again(here, capsys):
    keys = {**game("run"), "policy": {"name": "random"}, "episodes": 5}
    keys["recording"] = {"enabled": False}
    assert run(collect, CollectConfig, "c", keys, "--estimate") == 0
    said = capsys.readouterr().out
    assert "pays, these episodes again" in said
    assert "part of the run" not in said


@pytest.mark.heavy
def test_an_estimate_that_a_limit_ended_is_no_success(here, capsys):
    with ChatServer(lambda _: "<action>1</action>") as server:
        policy = {**model(server), "limits": {"calls": 2}}
        keys = {**game("run"), "policy": policy, "episodes": 5}
        assert run(collect, CollectConfig, "c", keys, "--estimate") == 3
    assert "ended short: limits.calls=2" in capsys.readouterr().err


@pytest.mark.heavy
def test_an_estimate_needs_no_stdin(here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)  # as Python does with <&-
    keys = {**game("run"), "policy": {"name": "random"}, "episodes": 5}
    assert run(collect, CollectConfig, "c", keys, "--estimate") == 0


def test_a_training_has_no_estimate(here, capsys):
    assert main(train, TrainConfig, "Trains.", ["--estimate"]) == 2
    assert "--estimate" in capsys.readouterr().err
