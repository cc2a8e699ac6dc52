"""``RemoteVectorEnv``: Gymnasium's rules, and slots that fail without disturbing the others."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from rollout.api import Limits, Splits, Task
from rollout.config import HostConfig
from rollout.errors import BudgetExhausted, ConfigError, OutOfTurnError, SpaceError
from rollout.sb3 import _per_slot
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator
from rollout.vector_env import RemoteVectorEnv

ROOT = Path(__file__).parents[2]


def make(bridge=None, *, num_envs=4, limit=12, restarts=50, isolation="auto", **options):
    bridge = bridge or FakeBridge()
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=limit))
    host = HostConfig(isolation=isolation, restarts=restarts, backoff_s=0)
    return RemoteVectorEnv(bridge, task, num_envs=num_envs, host=host, **options)


def play(env, steps, seed=0):
    """Plays at random; returns what every call gave."""
    env.action_space.seed(seed)
    calls = [env.reset(seed=seed)]
    calls += [env.step(env.action_space.sample()) for _ in range(steps)]
    env.close()
    return calls


def assert_equal(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key])
    else:
        assert np.array_equal(a, b)


def test_spaces_are_gymnasiums():
    env = make(num_envs=3)
    assert isinstance(env.single_observation_space, spaces.Dict)
    assert env.single_action_space == spaces.Discrete(5)  # a single column stands bare
    observations, infos = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    assert infos["_state"].all()
    step = env.step(env.action_space.sample())
    assert env.observation_space.contains(step[0])
    assert [x.dtype for x in step[1:4]] == [np.float64, bool, bool]
    env.close()


@pytest.mark.process
@pytest.mark.parametrize(("width", "isolation"), [(2, "in_process"), (1, "subprocess")])
def test_hosting_does_not_show(width, isolation):
    """The same seed and actions give the same rewards however the slots are hosted."""
    plain = play(make(num_envs=4, width=1, isolation="in_process"), 40)
    other = play(make(num_envs=4, width=width, isolation=isolation), 40)
    rewards = [np.sum([c[1].sum() for c in calls[1:]]) for calls in (plain, other)]
    ends = [np.sum([(c[2] | c[3]).sum() for c in calls[1:]]) for calls in (plain, other)]
    assert_equal(plain[0][0], other[0][0])
    assert ends[0] > 0
    if width == 1:  # ends come in the same order, so every episode is the same one
        for a, b in zip(plain[1:], other[1:], strict=True):
            assert_equal(a[0], b[0])
        assert rewards[0] == rewards[1]


def test_next_step_autoreset():
    env = make(num_envs=3)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    calls = play(env, 60)
    ended = np.zeros(3, bool)
    resets = 0
    for _, rewards, terminated, truncated, infos in calls[1:]:
        assert not (terminated & truncated).any()
        assert (rewards[ended] == 0).all()
        assert not (terminated | truncated)[ended].any()
        if ended.any():
            assert_equal(infos["_state"], ended)
            resets += ended.sum()
        ended = terminated | truncated
    assert resets > 5


def test_final_observations_are_true():
    """NEXT_STEP shows at the end what SAME_STEP keeps in ``final_obs``."""
    late = play(make(num_envs=1, order="in_turn"), 30)
    early = play(make(num_envs=1, order="in_turn", autoreset="same_step"), 30)
    first_late = next(c for c in late[1:] if (c[2] | c[3])[0])
    first_early = next(c for c in early[1:] if (c[2] | c[3])[0])
    final = first_early[4]["final_obs"][0]
    for key, value in final.items():
        assert np.array_equal(value, first_late[0][key][0])
    # And the observation beside it is already the first of the next episode.
    after = late[next(i for i, c in enumerate(late) if c is first_late) + 1]
    assert_equal(first_early[0], after[0])


def test_final_infos_are_those_of_the_last_step():
    """As Gymnasium's own vector envs have them; beside them are those of the next reset."""
    bridge = FakeBridge(with_details=True)
    late = play(make(bridge, num_envs=1, order="in_turn"), 30)
    early = play(make(bridge, num_envs=1, order="in_turn", autoreset="same_step"), 30)
    last = next(c for c in late[1:] if (c[2] | c[3])[0])[4]["details"][0]
    infos = next(c for c in early[1:] if (c[2] | c[3])[0])[4]
    assert infos["_final_info"].tolist() == infos["final_info"]["_details"].tolist() == [True]
    assert infos["final_info"]["details"][0] == last != infos["details"][0]
    assert all("final_info" not in c[4] for c in early[1:] if not (c[2] | c[3])[0])
    assert _per_slot(infos, 1)[0]["final_info"] == {"details": last}


def test_states_are_drawn_from_the_set():
    bridge = FakeBridge()
    states = Splits(bridge.spec.state_space).take("test", 5)
    env = make(bridge, num_envs=2, states=states)
    calls = play(env, 60)
    seen = {int(s) for c in calls for s in c[-1].get("state", []) if s}
    assert len(seen) > 2
    assert all(index in states for index in seen)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize("fault", ["crash_on_step", "crash_on_reset"])
def test_a_failing_slot_is_truncated_and_lost(fault, autoreset, width):
    bridge = FakeBridge(**{fault: 0.1}, fault_seed=3)
    calls = play(make(bridge, num_envs=4, width=width, autoreset=autoreset), 80)
    lost = 0
    for _, rewards, terminated, truncated, infos in calls[1:]:
        if "lost" in infos:
            lost += infos["lost"].sum()
            assert truncated[infos["lost"]].all()
            assert not terminated[infos["lost"]].any()
            assert all("crash" in r.lower() for r in infos["reason"][infos["_reason"]])
            if autoreset == "same_step":
                assert infos["_final_obs"][infos["lost"]].all()
                assert infos["final_info"]["lost"][infos["lost"]].all()
        assert np.isfinite(rewards).all()
    if fault == "crash_on_step":
        assert lost > 0
    assert len(calls) == 81


@pytest.mark.process
def test_a_game_that_hangs_costs_one_slot(tmp_path):
    bridge = FakeBridge(hang_on_step=5.0, once_file=str(tmp_path / "once"), step_deadline_s=1.5)
    calls = play(make(bridge, num_envs=2, isolation="subprocess"), 20)
    lost = [c[4]["lost"] for c in calls[1:] if "lost" in c[4]]
    assert len(lost) == 1
    assert lost[0].sum() == 1


@pytest.mark.process
def test_a_slot_that_cannot_be_replaced_dies_alone(tmp_path):
    bridge = FakeBridge(exit_on_step=5.0, once_file=str(tmp_path / "once"))
    calls = play(make(bridge, num_envs=2, isolation="subprocess", restarts=0), 20)
    dead = [c[4]["dead"] for c in calls[1:] if "dead" in c[4]]
    assert len(dead) == 16  # at the fifth step, and at every one after it
    assert all(d.sum() == 1 for d in dead)
    alive = ~dead[0]
    assert sum(abs(c[1][alive]).sum() for c in calls[6:]) > 0


def test_when_all_are_dead_it_says_so():
    env = make(FakeBridge(crash_on_step=3.0), num_envs=2, restarts=0)
    with pytest.raises(BudgetExhausted, match="all 2 games failed"):
        play(env, 20)
    env.close()


def test_wrong_calls_are_named():
    with pytest.raises(ConfigError, match="multiple of width=2"):
        make(num_envs=3, width=2)
    env = make(num_envs=2)
    with pytest.raises(OutOfTurnError, match="call reset first"):
        env.step(np.zeros(2, np.int64))
    env.reset()
    with pytest.raises(SpaceError, match=r"column 'move': expected int64\[2\]"):
        env.step(np.zeros(3, np.int64))
    with pytest.raises(SpaceError, match="unknown: \\['jump'\\]"):
        env.step({"jump": np.zeros(2, np.int64)})
    env.close()


@pytest.mark.process
def test_a_program_ends_that_does_not_close_it(tmp_path):
    """Also if it is in a cycle, so that the interpreter deletes it among the last."""
    script = """
from rollout.config import HostConfig
from rollout.testing.fakes import FakeBridge
from rollout.tasks import load_task
from rollout.vector_env import RemoteVectorEnv

bridge = FakeBridge()
task = load_task(bridge.spec, "fake", "")
env = RemoteVectorEnv(bridge, task, num_envs=2, host=HostConfig(isolation="subprocess"))
env.reset(seed=1)
env.itself = env
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.glob("gamut-vector-*"))
