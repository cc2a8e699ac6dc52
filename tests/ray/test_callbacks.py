"""Functions of the user that follow a training and may end it."""

import json
import traceback

import pytest
import torch

from rollout.cli import Session
from rollout.errors import ContractError
from rollout.signals import Stop
from rollout.train.checkpoint import find_checkpoint
from rollout.train.train import train
from tests.ray.training import SMALL, config_of_file, same_weights, summary, write_config

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray", "joined_ray")]

OWN = "tests.ray.test_callbacks"
seen = []


# Functions that the tests below name in configurations.
def note(record):
    seen.append(record)


def end_at_two(record):
    return record.update == 2


def end_at_three(record):
    return "stop" if record.update == 3 else None


def fail_at_two(record):
    if record.update == 2:
        raise ZeroDivisionError("of the user")


def answer_a_number(record):
    return 0.5


@pytest.fixture(autouse=True)
def forget():
    seen.clear()


def call(folder, *callbacks, on_update=(), resume=False, **more):
    write_config(folder, SMALL, callbacks=list(callbacks), **{"env_steps": 64 * 4, **more})
    config = config_of_file(folder / "config.yaml")
    return train(config, Session(resume, Stop()), on_update)


def lines_of(folder):
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_callback_is_given_every_update(tmp_path):
    assert call(tmp_path, f"{OWN}:note", on_update=[note]) is None
    assert [record.update for record in seen] == [1, 1, 2, 2, 3, 3, 4, 4]
    for record, line in zip(seen[::2], lines_of(tmp_path), strict=True):
        assert record.env_steps == line["env_steps"] == 64 * record.update
        assert record.metrics.items() <= {**line, "train/update": record.update}.items()
        assert record.path == tmp_path / "run"
    with pytest.raises(TypeError):
        seen[0].metrics["train/update"] = 7
    assert summary(tmp_path)["results"]["ended_by"] == "env_steps"


def test_the_weights_of_an_update_are_a_copy(tmp_path):
    kept = []

    def keep(record):
        weights = record.weights()
        kept.append({name: tensor.clone() for name, tensor in weights.items()})
        for tensor in weights.values():
            tensor.zero_()

    call(tmp_path, on_update=[keep])
    assert not same_weights(kept[0], kept[-1])
    assert same_weights(kept[-1], find_checkpoint(tmp_path / "run").weights())
    assert any(torch.count_nonzero(tensor) for tensor in kept[-1].values())


def test_a_callback_ends_the_training_until_it_is_taken_away(tmp_path):
    assert call(tmp_path, f"{OWN}:end_at_three", f"{OWN}:note", checkpoint={"every": 3}) is None
    assert [record.update for record in seen] == [1, 2, 3], "it is called in the last update too"
    said = summary(tmp_path)
    assert said["status"] == "done"
    assert said["results"]["ended_by"] == f"callback {OWN}:end_at_three"
    assert find_checkpoint(tmp_path / "run").update == 3
    for _ in range(2):
        assert call(tmp_path, f"{OWN}:end_at_three", resume=True) is None
    assert summary(tmp_path)["resume_count"] == 2
    assert find_checkpoint(tmp_path / "run").update == 3
    assert call(tmp_path, f"{OWN}:note", resume=True) is None
    assert find_checkpoint(tmp_path / "run").update == 4
    assert summary(tmp_path)["results"]["ended_by"] == "env_steps"


def test_true_ends_the_training_too(tmp_path):
    call(tmp_path, on_update=[end_at_two])
    assert summary(tmp_path)["results"]["ended_by"] == f"callback {OWN}:end_at_two"
    assert find_checkpoint(tmp_path / "run").update == 2


def test_an_error_of_a_callback_ends_the_run_with_everything_saved(tmp_path):
    with pytest.raises(ZeroDivisionError, match="of the user") as caught:
        call(tmp_path, f"{OWN}:fail_at_two")
    assert "fail_at_two" in "".join(traceback.format_tb(caught.tb))
    assert find_checkpoint(tmp_path / "run").update == 2
    assert [line["train/update"] for line in lines_of(tmp_path)] == [1, 2]
    said = summary(tmp_path)
    assert (said["status"], said["results"]["ended_by"]) == ("ended short", None)
    assert call(tmp_path, f"{OWN}:note", resume=True) is None
    assert [record.update for record in seen] == [3, 4]


def test_another_answer_is_an_error_that_names_the_callback(tmp_path):
    with pytest.raises(ContractError, match=f"callback {OWN}:answer_a_number returned 0.5"):
        call(tmp_path, f"{OWN}:answer_a_number")
