"""Wrong searches, told before anything is launched."""

import json
from types import SimpleNamespace

import pytest

from rollout.config import make_config
from rollout.errors import ConfigError
from rollout.train.search import _TrialProgress, by_setting
from rollout.train.search_config import SearchConfig

pytestmark = pytest.mark.heavy

BASE = {
    "output": "runs/search",
    "train": {"bridge": {"name": "gymnasium"}, "env_steps": 1000},
    "space": {"algorithm.lr": [1e-3, 1e-4]},
}


def made(**changes):
    return make_config(SearchConfig, {**BASE, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"space": {}}, "is empty"),
        ({"space": {"algorithm.lrr": [1e-3]}}, r"algorithm\.lrr.*lr"),
        ({"space": {"algorithm.lr": [1e-3, -1.0]}}, r"algorithm\.lr"),
        ({"space": {"algorithm.lr": []}}, "expected a list of values"),
        ({"space": {"algorithm.lr": 1e-3}}, "expected a list of values"),
        ({"space": {"algorithm.lr": {"loguniforn": [1e-4, 1e-3]}}}, "loguniform"),
        ({"space": {"algorithm.lr": {"uniform": [1e-3, 1e-4]}}}, "low below high"),
        ({"space": {"algorithm.lr": {"loguniform": [0.0, 1e-3]}}}, "above 0"),
        ({"space": {"algorithm.epochs": {"randint": [1.5, 3]}}}, "integers"),
        ({"space": {"algorithm.epochs": {"randint": [0, 3]}}}, r"algorithm\.epochs"),
        ({"asha": {"grace_steps": 1000}}, r"asha.grace_steps=1000 is not below"),
        ({"asha": {"grace_steps": 0}}, "grace_steps"),
        ({"train": {**BASE["train"], "output": "runs/x"}}, "output: set by the search"),
        ({"mode": "most"}, "mode"),
        ({"samples": 0}, "samples"),
        ({"space": {"seed": [1, 2, 1]}}, "a seed is given twice"),
        ({"space": {"seed": [1, 2]}, "asha": {"grace_steps": 100}}, "asha ends trials early"),
    ],
)
def test_wrong_searches_are_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        made(**changes)


def test_settings_are_chosen_by_validation_where_there_is_one():
    assert made().optimized == "episode/return"
    validated = {**BASE["train"], "validation": {"every": 500}}
    assert made(train=validated).optimized == "validation/score"
    assert made(train=validated, metric="episode/length").optimized == "episode/length"


def test_a_trial_is_a_training_run_of_its_own(tmp_path):
    config = made(space={"algorithm.lr": [1e-3], "policy.hidden": [[8, 8]]})
    trial = config.trial({"algorithm.lr": 1e-4, "policy.hidden": [8, 8]}, tmp_path / "t")
    assert trial.algorithm.lr == 1e-4
    assert trial.policy.options["hidden"] == (8, 8) or trial.policy.options["hidden"] == [8, 8]
    assert str(trial.output) == str(tmp_path / "t")
    assert trial.wandb.group == "search"
    assert trial.env_steps == 1000


@pytest.mark.parametrize(
    ("steps", "before", "after"),
    [
        (400, None, "ended early"),
        (400, {"status": "ended short", "resume_count": 0}, "ended early"),
        (400, {"status": "done", "resume_count": 1}, "done"),  # its last line had no score
        (1000, None, None),
    ],
)
def test_a_trial_that_is_ended_early_has_a_summary(tmp_path, steps, before, after):
    config = made(output=str(tmp_path))
    folder = tmp_path / "trials" / "00003-lr=0.0001"
    folder.mkdir(parents=True)
    about = {"run_id": "x", "sessions": [{"started": "2026-11-22T00:00:00+00:00"}] * 2}
    (folder / "run.json").write_text(json.dumps(about))
    if before is not None:
        (folder / "summary.json").write_text(json.dumps(before))
    anything = SimpleNamespace(write=lambda *_: None, update=lambda *_: None)
    trial = SimpleNamespace(
        trial_id="abc_00003",
        config={"algorithm.lr": 1e-4},
        last_result={"score": 1, "env_steps": steps},
    )
    _TrialProgress(config, anything, anything).on_trial_complete(0, [trial], trial)
    found = [json.loads(p.read_text()) for p in folder.glob("summary.json")]
    assert [(s["status"], s["resume_count"]) for s in found] == [(after, 1)] * (after is not None)


def test_a_trial_that_is_ended_before_it_began_has_none(tmp_path):
    config = made(output=str(tmp_path))
    anything = SimpleNamespace(write=lambda *_: None, update=lambda *_: None)
    trial = SimpleNamespace(trial_id="abc_00003", config={"algorithm.lr": 1e-4}, last_result=None)
    _TrialProgress(config, anything, anything).on_trial_complete(0, [trial], trial)
    assert not (tmp_path / "trials").exists()


def test_settings_are_compared_by_their_means_over_seeds():
    trials = [
        {"point": {"algorithm.lr": lr, "seed": seed}, "score": score}
        for lr, seed, score in [
            (1e-3, 0, 5.0), (1e-3, 1, 1.0), (1e-4, 0, 4.0), (1e-4, 1, 3.0), (1e-5, 0, 9.0),
            (1e-5, 1, None),
        ]
    ]  # fmt: skip
    best, second, last = by_setting(trials, "max")
    assert best == {
        "point": {"algorithm.lr": 1e-4}, "score": 3.5, "low": 3.0, "high": 4.0, "seeds": [0, 1]
    }  # fmt: skip
    assert second["point"] == {"algorithm.lr": 1e-3}
    assert (last["score"], last["seeds"]) == (None, [0])  # a seed failed: there is no mean
    assert by_setting(trials, "min")[0]["point"] == {"algorithm.lr": 1e-3}
