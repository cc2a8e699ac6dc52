"""Trainings of language models through their scripts: on records, by play, in workers, resumed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("transformers", reason="the extra vlm is not installed")
pytest.importorskip("minigrid", reason="the extra minigrid is not installed")

from rollout.data import Dataset
from rollout.data.calls import Calls
from rollout.observe.metrics import read_metrics
from rollout.train.checkpoint import find_checkpoint
from tests.commands import called

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.ray]
VLM = {
    "name": "vlm",
    "prompt": "brief",
    "history": {"texts": 0, "images": 1},
    "sampling": {"max_tokens": 4},
    "limits": {"reparse": 0, "unusable": None},
    "fallback": "random",
}
STATES = {"validation": 20, "test": 20}
SFT = {
    "policy": {**VLM, "local": {"model": "new"}},
    "new_model": {"hidden": 32, "layers": 1, "heads": 2, "patch": 56, "vocabulary": 320},
    "algorithm": {"name": "sft", "epochs": 4, "minibatch": 8, "lr": 0.01},
    "state_set": STATES,
    "validation": {"states": 4},
    "width": 4,
}


def command(name, folder, config):
    path = folder / f"{config['output'].rpartition('/')[2]}.yaml"
    path.write_text(yaml.safe_dump(config))
    return [sys.executable, str(ROOT / "scripts" / f"{name}.py"), "--config", str(path)]


def run(name, folder, config, *more):
    status, said = called(name, *command(name, folder, config)[2:], *more)
    assert status == 0, said
    return json.loads((Path(config["output"]) / "summary.json").read_text())


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    config = {
        "output": str(folder / "run"),
        "bridge": {"name": "gymnasium"},
        "task": "babyai_goto",
        "policy": "oracle",
        "state_set": STATES,
        "episodes": 24,
        "actors": 0,
        "width": 8,
    }
    run("collect", folder, config)
    return config["output"]


@pytest.fixture(scope="module")
def tuned(records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    config = {"output": str(folder / "run"), "dataset": records, **SFT}
    return config["output"], run("train", folder, config)


def losses(output):
    lines = map(json.loads, (Path(output) / "metrics.jsonl").read_text().splitlines())
    return [line["train/loss"] for line in lines if "train/loss" in line]


@pytest.mark.long
# A process that starts learners copies Ray Data's settings, those it has deprecated too.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")
def test_two_workers_of_ray_train_learn_what_one_process_learns(
    records, tuned, tmp_path, joined_ray
):
    config = {"output": str(tmp_path / "run"), "dataset": records, **SFT}
    run("train", tmp_path, {**config, "learners": {"count": 2}})
    alone, shared = losses(tuned[0]), losses(config["output"])
    assert shared == pytest.approx(alone, rel=1e-3)
    assert alone[1] < alone[0]


def test_a_checkpoint_is_played_and_a_model_opened(tuned, tmp_path):
    output, summary = tuned
    assert summary["results"]["updates"] == 4
    assert "no line on" not in (Path(output) / "run.log").read_text(), "a new model is its own"
    assert 0.0 <= summary["results"]["last"]["validation/success"] <= 1.0
    config = {
        "output": str(tmp_path / "evaluation"),
        "bridge": {"name": "gymnasium"},
        "task": "babyai_goto",
        "players": {
            "checkpoint": {"name": "checkpoint", "path": output},
            "model": {**VLM, "local": {"model": output}},
        },
        "sets": {"validation": {**STATES, "split": "validation", "size": 3}},
        "actors": 0,
        "width": 4,
    }
    run("evaluate", tmp_path, config)
    (table,) = Path(config["output"]).glob("*.parquet")
    import pyarrow.parquet as pq

    rows = pq.read_table(table).to_pylist()
    scores = {p: [r["score"] for r in rows if r["player"] == p] for p in config["players"]}
    assert scores["checkpoint"] == scores["model"], "the same weights, the same chance"


def groups(tmp_path, model, **more):
    return {
        "output": str(tmp_path / "groups"),
        "bridge": {"name": "gymnasium"},
        "task": "babyai_goto",
        "policy": {**VLM, "local": {"model": model}},
        "algorithm": {"name": "gigpo", "groups": 2, "size": 4, "minibatch": 32},
        "updates": 3,
        "state_set": STATES,
        "width": 4,
        **more,
    }


@pytest.mark.long
def test_groups_begin_in_one_state_and_play_with_the_newest_weights(tuned, tmp_path, joined_ray):
    config = groups(tmp_path, tuned[0], actors=1, inference={"actors": 1}, instances=2)
    summary = run("train", tmp_path, config)
    assert summary["results"]["updates"] == 3
    with Dataset(config["output"]) as dataset:
        refs = sorted(dataset.episodes(), key=lambda ref: ref.episode)
        assert [ref.episode for ref in refs] == list(range(24))
        for at in range(0, 24, 4):
            group = refs[at : at + 4]
            assert len({ref.state for ref in group}) == 1
            assert len({ref.seed for ref in group}) == 4
        versions = []
        for ref in refs:
            calls = dataset.read(ref, ["extra/calls"]).columns["extra/calls"]
            versions.append({call["version"] for step in calls for call in step})
            assert all(call["output_ids"] for step in calls for call in step)
        exported = {}
        for rows in ("trl", "verl"):
            count = Calls(rows).write(dataset, dataset.episodes(), tmp_path / f"{rows}.jsonl")
            lines = (tmp_path / f"{rows}.jsonl").read_text().splitlines()
            exported[rows] = [json.loads(line) for line in lines]
            assert count == len(lines) > 0
    for trl, verl in zip(exported["trl"], exported["verl"], strict=True):
        assert trl["completion_ids"] == verl["response_ids"]
        assert len(verl["response_mask"]) == len(trl["logprobs"]) == len(trl["completion_ids"])
        assert verl["reward_score"] == trl["reward"]
    assert versions == [{update} for update in range(3) for _ in range(8)]
    first, last = find_checkpoint(tuned[0]), find_checkpoint(config["output"])
    before, after = first.weights(), last.weights()
    assert any(not before[name].equal(after[name]) for name in before)


def updates(output):
    path = Path(output) / "metrics.jsonl"
    lines = read_metrics(path) if path.exists() else ()
    return [line["train/update"] for line in lines if "train/update" in line]


def kill_after_three(folder, config):
    """Starts a training and kills it after its third line, which no checkpoint has."""
    with subprocess.Popen(
        command("train", folder, config),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            end = time.monotonic() + 300
            while 3 not in updates(config["output"]):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.02)
        finally:
            process.kill()
    assert find_checkpoint(config["output"]).update == 2
    assert updates(config["output"]) == [1, 2, 3]


@pytest.mark.long
def test_a_killed_fine_tuning_is_the_uninterrupted_one_with_a_line_for_each_epoch(
    records, tuned, tmp_path
):
    config = {"output": str(tmp_path / "run"), "dataset": records, **SFT}
    config["checkpoint"] = {"every": 2}
    kill_after_three(tmp_path, config)
    run("train", tmp_path, config, "--resume")
    assert updates(config["output"]) == [1, 2, 3, 4]
    assert losses(config["output"]) == losses(tuned[0])
    one, other = (find_checkpoint(output).weights() for output in (tuned[0], config["output"]))
    assert all(one[name].equal(other[name]) for name in one)


@pytest.mark.long
def test_a_killed_training_goes_on_without_playing_again(tuned, tmp_path):
    config = groups(tmp_path, tuned[0], updates=4, checkpoint={"every": 2})
    kill_after_three(tmp_path, config)
    with Dataset(config["output"]) as dataset:
        recorded = {ref.episode: ref.started for ref in dataset.episodes()}
    run("train", tmp_path, config, "--resume")
    assert updates(config["output"]) == [1, 2, 3, 4]
    with Dataset(config["output"]) as dataset:
        refs = dataset.episodes()
        assert sorted(ref.episode for ref in refs) == list(range(32))
        kept = {ref.episode: ref.started for ref in refs if ref.episode in recorded}
    assert kept == recorded
