"""Wrong searches, told before anything is launched."""

import pytest

from rollout.config import make_config
from rollout.errors import ConfigError
from rollout.train.search_config import SearchConfig

pytestmark = pytest.mark.heavy

BASE = {
    "output": "runs/search",
    "train": {"bridge": {"name": "gymnasium"}, "env_steps": 1000},
    "space": {"ppo.lr": [1e-3, 1e-4]},
}


def made(**changes):
    return make_config(SearchConfig, {**BASE, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"space": {}}, "is empty"),
        ({"space": {"ppo.lrr": [1e-3]}}, r"ppo\.lrr.*lr"),
        ({"space": {"ppo.lr": [1e-3, -1.0]}}, r"ppo\.lr"),
        ({"space": {"ppo.lr": []}}, "expected a list of values"),
        ({"space": {"ppo.lr": 1e-3}}, "expected a list of values"),
        ({"space": {"ppo.lr": {"loguniforn": [1e-4, 1e-3]}}}, "loguniform"),
        ({"space": {"ppo.lr": {"uniform": [1e-3, 1e-4]}}}, "low below high"),
        ({"space": {"ppo.lr": {"loguniform": [0.0, 1e-3]}}}, "above 0"),
        ({"space": {"ppo.epochs": {"randint": [1.5, 3]}}}, "integers"),
        ({"space": {"ppo.epochs": {"randint": [0, 3]}}}, r"ppo\.epochs"),
        ({"asha": {"grace_steps": 1000}}, r"asha.grace_steps=1000 is not below"),
        ({"asha": {"grace_steps": 0}}, "grace_steps"),
        ({"train": {**BASE["train"], "output": "runs/x"}}, "output: set by the search"),
        ({"mode": "most"}, "mode"),
        ({"samples": 0}, "samples"),
    ],
)
def test_wrong_searches_are_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        made(**changes)


def test_a_trial_is_a_training_run_of_its_own(tmp_path):
    config = made(space={"ppo.lr": [1e-3], "policy.hidden": [[8, 8]]})
    trial = config.trial({"ppo.lr": 1e-4, "policy.hidden": [8, 8]}, tmp_path / "t")
    assert trial.ppo.lr == 1e-4
    assert trial.policy.options["hidden"] == (8, 8) or trial.policy.options["hidden"] == [8, 8]
    assert str(trial.output) == str(tmp_path / "t")
    assert trial.wandb.group == "search"
    assert trial.env_steps == 1000
