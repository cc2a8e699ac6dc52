"""The configurations of the experiment at the paper's scale: they fit one another."""

import pytest

from rollout.config import CollectConfig, load_config
from rollout.sweep.config import SweepConfig
from rollout.sweep.plan import SweepPlan
from rollout.tasks import bridge_and_task
from rollout.train.offline_config import OfflineConfig
from tests.unit.sweep.sweep_trainer import TRAINER

pytestmark = pytest.mark.heavy


@pytest.fixture
def configs(pytestconfig, tmp_path, monkeypatch):
    monkeypatch.setenv("GAMUT_RUNS_DIR", str(tmp_path))
    folder = pytestconfig.rootpath / "configs"
    return (
        load_config(CollectConfig, folder / "collect_hunt_sheep_rays.yaml"),
        load_config(OfflineConfig, folder / "clone_hunt_sheep.yaml"),
        load_config(SweepConfig, folder / "sweeps" / "appendix_d.yaml"),
    )


def test_it_is_the_experiment_of_the_paper(configs):
    *_, sweep = configs
    train = sweep.train
    _, bridge, task = bridge_and_task(train.bridge, train.task)
    assert sweep.sizes == tuple(10**n for n in range(2, 8))
    assert (train.task, train.env_steps, task.limits.steps) == ("hunt_sheep", 25_000_000, 600)
    assert task.evaluator.reward == 5
    assert not task.evaluator.shaping
    assert set(bridge.spec.action_space.spaces) == {"keys", "camera"}
    algorithm = train.algorithm.options
    assert (algorithm["reference_coef"], algorithm["reference_decay"]) == (0.3, 0.995)


def test_no_demonstration_begins_in_a_held_out_state(configs):
    collect, _, sweep = configs
    space = bridge_and_task(collect.bridge, collect.task)[2].state_space
    ours, theirs = collect.state_set, sweep.train.state_set
    assert ours.splits(space).describe() == theirs.splits(space).describe()
    ours.take(space).require_trainable()


def test_the_runs_begin_with_the_clone_and_stay_close_to_it(configs):
    collect, clone, sweep = configs
    train = sweep.train
    assert clone.dataset.endswith(collect.output.name)
    for path in (train.initialize_from, train.algorithm.options["reference"]):
        assert path.endswith(clone.output.name)
    assert clone.policy.options == train.policy.options
    shown = collect.bridge.options
    changed = {key for key, value in train.bridge.options.items() if shown[key] != value}
    assert changed == {"oracle"}


def test_the_runs(configs):
    *_, sweep = configs
    # The clone is no file of the repository; what else needs it is checked when runs begin.
    plan = SweepPlan.make(sweep.model_copy(update={"baselines": {}}), TRAINER.check)
    assert len([run for run in plan.runs if run.arm == "random"]) == 60
    assert {run.sets["test"].digest for run in plan.runs} == {plan.base.held_out["test"].digest}
    assert len({run.states.digest for run in plan.runs}) == len(plan.runs)
