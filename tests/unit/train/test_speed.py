"""The sizes of a training that a measurement chooses, and the parts of a profile."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rollout.cli import Session
from rollout.config import make_config, write_config
from rollout.errors import ConfigError, RunDirectoryError
from rollout.run_directory import as_begun
from rollout.signals import Stop
from rollout.train import speed, updates
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan
from rollout.train.ppo import Ppo
from rollout.train.profiling import _PARTS, parts_of
from rollout.train.search_config import SearchConfig
from rollout.train.speed import Sizes, _accepted, _in_order, _rate, choose
from rollout.train.train import train

CARTPOLE = {
    "bridge": {"name": "gymnasium", "id": "CartPole-v1"},
    "env_steps": 1000,
    "policy": {"name": "actor_critic", "hidden": [8]},
    "algorithm": {"name": "ppo", "batch": 512, "minibatch": 256, "epochs": 1},
}


def config_of(folder, **keys):
    return make_config(TrainConfig, {**CARTPOLE, "output": str(folder), **keys})


def test_a_resumed_run_keeps_the_sizes_that_were_measured(tmp_path):
    asked = config_of(tmp_path / "run", measure=0.05)
    chosen = choose(asked)
    assert chosen.measure is None
    assert 1 <= chosen.width <= 512 // 16
    assert 16 <= chosen.fragment.steps <= 128
    (tmp_path / "run").mkdir()
    write_config(chosen, tmp_path / "run" / "config.yaml")
    assert as_begun(asked, resume=True) == chosen
    assert as_begun(asked, resume=False).measure == 0.05


def test_runs_that_are_compared_are_not_measured_one_by_one():
    search = {"train": {**CARTPOLE, "measure": 1.0}, "space": {"seed": [0]}, "output": "x"}
    with pytest.raises(ConfigError, match="gamut tune speed"):
        make_config(SearchConfig, search)


def test_sizes_are_measured_where_none_is_given(tmp_path):
    assert config_of(tmp_path).measured_s == 2.0
    assert config_of(tmp_path, measure=None).measured_s is None
    for given_one in ({"width": 4}, {"runners": 0}, {"fragment": {"steps": 16}}):
        assert config_of(tmp_path, **given_one).measured_s is None
        assert config_of(tmp_path, **given_one, measure=1).measured_s == 1.0
    search = {"train": CARTPOLE, "space": {"seed": [0, 1]}, "output": str(tmp_path)}
    trial = make_config(SearchConfig, search).trial({"seed": 1}, tmp_path / "trial")
    assert trial.measured_s is None


@pytest.mark.parametrize(("most", "bptt", "accepted"), [(125, 64, 64), (40, 64, 40), (21, 8, 16)])
def test_fragments_have_a_length_that_the_algorithm_accepts(most, bptt, accepted):
    assert _accepted(Ppo(bptt=bptt), most) == accepted


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 512), st.floats(1, 1e5)), min_size=1))
def test_a_larger_size_comes_first_only_if_it_is_faster(found):
    sizes = [Sizes(runners, 1, width, 16, rate) for runners, width, rate in found]
    order = _in_order(sizes)
    assert sorted(order, key=id) == sorted(sizes, key=id)
    fastest = max(each.rate for each in sizes)
    assert 1.05 * order[0].rate >= fastest
    for each in sizes:
        if (each.runners, each.width) < (order[0].runners, order[0].width):
            assert 1.05 * each.rate < fastest


def test_runners_and_the_learner_share_the_cores():
    assert _rate(0, 1e-5, 1e-5, 2) == pytest.approx(50_000)
    assert _rate(1, 1e-5, 1e-5, 2) == pytest.approx(100_000)
    assert _rate(1, 3e-5, 1e-5, 2) == pytest.approx(1 / 3e-5)
    assert _rate(2, 3e-5, 1e-5, 2) == pytest.approx(2 / 4e-5)  # three processes on two cores


def frame(path, seconds, *children):
    return SimpleNamespace(file_path=path, time=seconds, children=list(children))


def test_time_belongs_to_the_innermost_part_that_called():
    numpy = frame("/x/site-packages/numpy/core.py", 1.0)
    policy = frame("/x/policies/actor_critic/policy.py", 3.0, numpy)
    game = frame("/x/bridges/gymnasium/instance.py", 2.0)
    host = frame("/x/rollout/host/player.py", 6.0, policy, game)
    network = frame("/x/policies/actor_critic/dense.py", 4.0)
    update = frame("/x/rollout/train/ppo/learner.py", 5.0, network)
    folders = {f"/x/{path}": part for path, part in _PARTS.items()}
    found = parts_of(frame("/x/rollout/train/profiling.py", 11.5, host, update), folders)
    assert found == {"policy": 3.0, "game": 2.0, "host": 1.0, "network": 4.0, "learning": 1.5}


def test_a_folder_with_files_is_refused_before_it_is_measured(tmp_path, monkeypatch):
    (tmp_path / "other.txt").write_text("mine")
    monkeypatch.setattr(speed, "choose", lambda config: pytest.fail("games were launched"))
    with pytest.raises(RunDirectoryError, match="not empty"):
        train(config_of(tmp_path, measure=1.0), Session(False, Stop()))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_missing_is_told_before_games_are_launched(tmp_path, monkeypatch):
    plan = TrainPlan.make(config_of(tmp_path, width=2, learners={"gpus": 1}))
    monkeypatch.setattr(updates, "LocalRunner", lambda plan: pytest.fail("games were launched"))
    with pytest.raises(ConfigError, match="torch finds no GPU"):
        updates.Trainer(plan)


def test_a_new_process_keeps_its_threads_and_loads_no_compiler():
    code = (
        "import threadpoolctl as t; from gymnasium import spaces as s; import numpy as np\n"
        "from policies.actor_critic.policy import *; from rollout.threads import set_threads\n"
        "box, act = s.Dict({'o': s.Box(-1, 1, (2,))}), s.Dict({'a': s.Discrete(2)})\n"
        "def play(): ActorCriticPlayer(ActorCriticPolicy().network(box, act, seed=0), ['o'])\n"
        "def count():\n"
        "    return {i['num_threads'] for i in t.threadpool_info() if i['user_api'] == 'blas'}\n"
        "play(); assert count() == {1}, count()\n"
        "set_threads(2); play(); assert count() == {2}, count()\n"
        "import sys, torch; from rollout.train.gradients import Optimizer\n"
        "own = Optimizer([torch.nn.Parameter(torch.zeros(1))], lr=1.0); own.restore(own.state())\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
