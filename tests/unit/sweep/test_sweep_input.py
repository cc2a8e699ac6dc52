"""Wrong input of ``gamut sweep``: status 2 before anything is launched, both sides named."""

from functools import partial

import pytest
import yaml

from rollout.api import Splits
from rollout.cli import main
from rollout.config import load_config, make_config, resolved
from rollout.sweep.config import SweepConfig
from rollout.sweep.plan import SweepPlan
from rollout.sweep.sweep import _suggest_seeds, sweep
from rollout.testing.fakes import FakeBridge
from tests.unit.sweep.sweep_trainer import TRAINER

pytestmark = pytest.mark.heavy

TEST_STATE = Splits(FakeBridge().spec.state_space, test=30, validation=0).take("test", 10)[3].index
TRAIN_STATE = Splits(FakeBridge().spec.state_space, test=30, validation=0).take("train", 1)[0].index


@pytest.fixture
def config(tmp_path):
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 20}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    return {
        "output": str(tmp_path / "run"),
        "train": {
            "bridge": {"name": "fake"},
            "task": str(tmp_path / "task.yaml"),
            "env_steps": 1000,
            "state_set": {"test": 30, "validation": 0},
        },
        "sizes": [2, 6],
        "evaluate": {"test_states": 10, "metric": "progress"},
        "parallel": 0,
        "wandb": {"mode": "disabled"},
    }


ONE_OF_TEST = [TRAIN_STATE, TEST_STATE]

WRONG = {
    "an unknown key": (["sises=[3]"], {}, ["sises", "Nearest: sizes"]),
    "an unknown key of train": (
        ["train.algorithm.lrr=1"],
        {},
        ["train.algorithm.lrr", "train.algorithm.lr"],
    ),
    "an unknown key of the grid": (
        [],
        {"grid": {"algorithm.lrr": [1]}},
        ["grid: algorithm.lrr: unknown option", "Nearest: algorithm.lr"],
    ),
    "an unknown key of an arm": (
        [],
        {"arms": {"a": {"set": {"state_set.subsett": "prefix"}}}},
        ["arms.a.set: state_set.subsett", "Nearest: state_set.subset"],
    ),
    "an unknown option of the game": (
        [],
        {"arms": {"a": {"set": {"bridge.sidee": 4}}}},
        ["arms.a.set: bridge.sidee", "bridge.side"],
    ),
    "a wrong value of the grid": ([], {"grid": {"algorithm.lr": ["big"]}}, ["a number", "'big'"]),
    "a grid without values": (
        [],
        {"grid": {"algorithm.lr": []}},
        ["grid.algorithm.lr", "is empty"],
    ),
    "a key that the sweep sets": (["train.seed=3"], {}, ["train: seed", "set by the sweep"]),
    "a size in the template": (["train.state_set.size=3"], {}, ["state_set.size", "sizes"]),
    "no size": (["sizes=[]"], {}, ["sizes", "is empty"]),
    "a size of nothing": (["sizes=[0]"], {}, ["sizes[0]", "greater than 0", "got 0"]),
    "a size twice": (["sizes=[4,4]"], {}, ["sizes: 4 is given twice"]),
    "a seed twice": (["seeds=[1,2,1]"], {}, ["seeds: 1 is given twice"]),
    "a size beyond the part": (
        ["sizes=[600000]"],
        {},
        ["N = 600000", "a 'train' set of 600000 states", "has 524258"],
    ),
    "a test set beyond the part": (
        ["evaluate.test_states=31"],
        {},
        ["evaluate.test_states", "31 states", "the 'test' part has 30"],
    ),
    "a metric that the task does not give": (
        ["train.task=", "evaluate.metric=success"],
        {},
        ["metric=success", "decides neither"],
    ),
    "actions that are none": (["evaluate.actions=[]"], {}, ["evaluate.actions", "is empty"]),
    "a part that nobody holds out": (
        ["evaluate.extrapolation=[colour]"],
        {},
        ["evaluate.extrapolation", "'colour'", "hold_out"],
    ),
    "a width beyond the game's": (
        ["evaluate.width=9999"],
        {},
        ["evaluate.width=9999", "1 to 4096"],
    ),
    "two arms that are the same": ([], {"arms": {"a": {}, "b": {}}}, ["'a' and 'b'", "the same"]),
    "arms that a grid makes equal": (
        [],
        {"grid": {"algorithm.lr": [0.001, 0.0010]}},
        ["two are called 'lr=0.001'"],
    ),
    "an arm that says what the grid says": (
        [],
        {"arms": {"a": {"set": {"algorithm.lr": 0.1}}}, "grid": {"algorithm.lr": [0.2, 0.3]}},
        ["arms.a.set.algorithm.lr is in grid too"],
    ),
    "an arm without a usable name": ([], {"arms": {"a/b": {}}}, ["arms", "'a/b'"]),
    "no arm": ([], {"arms": {}}, ["arms", "is empty"]),
    "a test state in training": (
        ["sizes=[2]", "seeds=[0]"],
        {"arms": {"leak": {"set": {"state_set.states": ONE_OF_TEST}}}},
        ["run leak-n2-s0", f"state {TEST_STATE}", "training set chosen-2-", "'test'", "test-10-"],
    ),
    "a held-out state that is not played": (
        ["sizes=[2]", "seeds=[0]", "evaluate.test_states=3"],
        {"arms": {"leak": {"set": {"state_set.states": ONE_OF_TEST}}}},
        ["run leak-n2-s0", f"state {TEST_STATE}", "'test' part", "must not be trained on"],
    ),
    "a trainer that refuses": (
        ["train.algorithm.gamma=0.5"],
        {},
        ["arm 'random'", "algorithm.gamma=0.5"],
    ),
    "a baseline that does not exist": ([], {"baselines": {"x": "randomm"}}, ["randomm", "random"]),
    "a baseline that does not fit": (
        [],
        {"baselines": {"x": {"name": "callable", "function": "nowhere:act"}}},
        ["baselines.x", "nowhere"],
    ),
    "a video of a game without pictures": (
        ["videos.best=1", "videos.column=imagee"],
        {},
        ["videos", "imagee", "image"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused(name, config, tmp_path, capsys):
    sets, changes, words = WRONG[name]
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**config, **changes}, sort_keys=False))
    arguments = ["--config", str(file), *(["--set", *sets] if sets else [])]
    status = main(partial(sweep, trainer=TRAINER), SweepConfig, "Sweeps.", arguments)
    said = capsys.readouterr().err
    assert status == 2, said
    assert not [word for word in words if word not in said], said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_the_resolved_configuration_gives_the_same_sweep(config):
    """``config.yaml`` of a sweep runs again, with grid, arms and all."""
    config["arms"] = {"a": {}, "b": {"set": {"state_set.subset": "prefix"}, "sizes": [6]}}
    config["grid"] = {"algorithm.lr": [0.001, 0.0005]}
    config["train"]["state_set"]["hold_out"] = {"map": [0, 1]}
    first = make_config(SweepConfig, config)
    again = make_config(SweepConfig, resolved(first))
    assert resolved(again) == resolved(first)
    assert [arm.name for arm in again.expanded()] == [
        "a,lr=0.001",
        "a,lr=0.0005",
        "b,lr=0.001",
        "b,lr=0.0005",
    ]
    digests = [{run.digest for run in plan_of(c).runs} for c in (first, again)]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2 * 2 * 3 + 2 * 3


def plan_of(config):
    return SweepPlan.make(config, TRAINER.check)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"train": {"host": {"retries": 5}}}, True),
        ({"train": {"checkpoint": {"every": 5}}}, True),
        ({"train": {"learners": {"gpus": 0.5}}}, True),
        ({"wandb": {"project": "other"}}, True),
        ({"log": {"level": "error"}}, True),
        ({"videos": {"best": 1}}, True),
        ({"train": {"algorithm": {"name": "ppo", "lr": 0.1}}}, False),
        ({"train": {"env_steps": 999}}, False),
        ({"train": {"width": 2}}, False),
        ({"train": {"policy": {"name": "actor_critic", "hidden": [3]}}}, False),
        ({"train": {"bridge": {"name": "fake", "slip": 0.2}}}, False),
        ({"train": {"state_set": {"test": 30, "validation": 0, "seed": 1}}}, False),
    ],
    ids=str,
)
def test_what_decides_a_run_is_in_its_digest(config, change, same):
    base = plan_of(make_config(SweepConfig, config))
    for key, value in change.items():
        config[key] = {**config[key], **value} if key == "train" else value
    other = plan_of(make_config(SweepConfig, config))
    pairs = {run.name: run.trains for run in base.runs}
    changed = [run.name for run in other.runs if pairs[run.name] != run.trains]
    assert bool(changed) is not same


def test_the_evaluation_is_in_the_digest_of_results_only(config):
    base = plan_of(make_config(SweepConfig, config))
    for change in (
        {"seed": 3},
        {"test_states": 9},
        {"metric": "return"},
        {"episodes_per_state": 2},
    ):
        config["evaluate"] = {"test_states": 10, "metric": "progress", **change}
        other = plan_of(make_config(SweepConfig, config))
        for run, own in zip(base.runs, other.runs, strict=True):
            assert run.trains == own.trains
            assert run.digest != own.digest
    config["evaluate"] = {"test_states": 10, "metric": "progress", "width": 3}
    other = plan_of(make_config(SweepConfig, config))
    assert [run.digest for run in other.runs] == [run.digest for run in base.runs]


def test_runs_get_what_the_sweep_sets(config, tmp_path):
    config |= {"seeds": [4], "wandb": {"mode": "offline", "project": "p"}, "mirror_runs": True}
    (run,) = [run for run in plan_of(make_config(SweepConfig, config)).runs if run.n == 6]
    train = run.config
    assert train.output == tmp_path / "run" / "runs" / "random-n6-s4"
    assert (train.seed, train.state_set.size, train.state_set.order) == (4, 6, 4)
    assert (train.wandb.group, train.wandb.name) == ("run", "run/random-n6-s4")
    assert (train.wandb.mode, train.wandb.project) == ("offline", "p")
    assert train.learners.threads == 1
    config["mirror_runs"] = False
    run = plan_of(make_config(SweepConfig, config)).runs[0]
    assert run.config.wandb.mode == "disabled"


@pytest.mark.parametrize("name", ["hunt_sheep_demo", "minigrid_seeds"])
def test_the_configurations_that_come_with_it(name, pytestconfig, tmp_path, monkeypatch):
    monkeypatch.setenv("GAMUT_RUNS_DIR", str(tmp_path))
    file = pytestconfig.rootpath / "configs" / "sweeps" / f"{name}.yaml"
    plan = plan_of(load_config(SweepConfig, file))
    assert len(plan.runs) == 12
    assert {run.sets["test"].digest for run in plan.runs} == {plan.base.held_out["test"].digest}
    assert plan.base.held_out["test"].size == 512


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sizes": [4], "seeds": [2, 0]}, True),
        ({"sizes": [2, 4]}, False),
        ({"sizes": [4], "grid": {"algorithm.lr": [1e-3, 1e-4]}}, False),
    ],
)
def test_a_sweep_in_which_only_the_seed_varies_names_gamut_train(config, changes, said, caplog):
    plan = SweepPlan.make(make_config(SweepConfig, {**config, **changes}), TRAINER.check)
    with caplog.at_level("INFO"):
        _suggest_seeds(plan)
    assert ("gamut train with seeds=[0, 2]" in caplog.text) == said
    assert bool(caplog.text) == said
