"""``import gamut``: jobs as functions, runs and trained policies as objects."""

import gamut
import gymnasium
import numpy as np
import pytest

from rollout.config import build_plugin
from rollout.tasks import load_task
from rollout.vector_env import RemoteVectorEnv

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray", "joined_ray")]

QUIET = {"wandb.mode": "disabled"}
CARTPOLE = {"bridge": {"name": "gymnasium", "id": "CartPole-v1"}, "task": "cartpole"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gamut")


@pytest.fixture
def trained(folder):
    """A small run, trained once for all tests of this file."""
    if not (folder / "run").exists():
        more = {"algorithm.batch": 256, "algorithm.minibatch": 64, **QUIET}
        gamut.train(CARTPOLE, output=folder / "run", env_steps=512, width=8, **more)
    return gamut.Run(folder / "run")


def test_a_run_has_its_tables(trained):
    assert trained.missing is None
    assert trained.summary["status"] == "done"
    assert trained.metrics[-1]["env_steps"] >= 512
    assert len(trained.episodes) == trained.summary["results"]["episodes"]


def test_it_is_called_after_every_update_and_may_end(tmp_path):
    seen = []

    def note(record):
        seen.append((record.update, record.env_steps))
        return record.update == 2

    run = gamut.train(
        CARTPOLE, output=tmp_path, env_steps=10**6, width=8, on_update=note,
        **{"algorithm.batch": 256, "algorithm.minibatch": 64, **QUIET},
    )  # fmt: skip
    assert [update for update, _ in seen] == [1, 2]
    assert run.summary["results"]["updates"] == 2


def test_a_trained_policy_plays_a_slot_and_a_batch_alike(trained):
    player = gamut.load(trained)
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=3)
    action, memory = player.predict(observation, deterministic=True)
    assert env.action_space.contains(action)
    batch, _ = player.predict(np.stack([observation, -observation]), deterministic=True)
    assert batch.shape == (2,)
    assert batch[0] == action
    assert player.predict({"observation": observation}, memory, explore=False)[0] == action


def test_actions_are_sampled_by_default_as_everywhere(trained):
    observation = np.array([0.01, 0.02, 0.03, 0.04])

    def drawn(**how):
        player = gamut.load(trained)
        return [int(player.predict(observation, **how)[0]) for _ in range(40)]

    assert len(set(drawn())) == 2
    assert drawn() == drawn(explore=True) == drawn(deterministic=False)
    assert len(set(drawn(deterministic=True))) == len(set(drawn(seed=3))) == 1
    with pytest.raises(gamut.InputError, match="deterministic=True and explore=True"):
        drawn(deterministic=True, explore=True)


def test_it_plays_our_vector_env(trained):
    bridge = build_plugin("bridges", "gymnasium", {"id": "CartPole-v1"})
    task = load_task(bridge.spec, "gymnasium", "cartpole")
    player, memory = gamut.load(trained.path), None
    env = RemoteVectorEnv(bridge, task, num_envs=2)
    try:
        observations, _ = env.reset(seed=1)
        for _ in range(3):
            actions, memory = player.predict(observations, memory, explore=True)
            observations, *_ = env.step(actions)
    finally:
        env.close()


@pytest.mark.parametrize(
    ("observation", "said"),
    [
        (np.zeros(5), "expected shape (4,) for a slot"),
        ({"other": np.zeros(4)}, "has no observation; it has other"),
    ],
)
def test_it_refuses_other_observations(trained, observation, said):
    with pytest.raises(gamut.InputError) as error:
        gamut.load(trained).predict(observation)
    assert said in str(error.value)


def test_evaluate_takes_everything_from_the_player(trained):
    run = gamut.evaluate(player=trained, actors=0, **QUIET)
    assert run.path == trained.path / "evaluation"
    assert run.missing is None
    assert {row["set"] for row in run.episodes} == {"train", "validation"}
    assert len(run.episodes) == 200
    config = (run.path / "config.yaml").read_text()
    assert "CartPole-v1" in config


def test_collect_and_evaluate_accept_what_set_accepts(tmp_path):
    run = gamut.collect(
        {"bridge": "fake", "policy": "random"}, output=tmp_path / "a", episodes=3, actors=0, **QUIET
    )
    with run.dataset as dataset:
        assert len(dataset.episodes()) == 3
    assert [row["episode"] for row in run.episodes] == [0, 1, 2]
    with pytest.raises(gamut.InputError, match=r"algorithm\.lrr.*lr"):
        gamut.train(CARTPOLE, output=tmp_path / "b", env_steps=5, **{"algorithm.lrr": 1.0})
    assert not (tmp_path / "b").exists()


def test_check_reports(tmp_path):
    assert gamut.check("fake", steps=20).passed
    with pytest.raises(gamut.InputError, match="Nearest: fake"):
        gamut.check("fakee")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(gamut.InputError, match=r"there is no run in .*expected a run directory"):
        gamut.Run(tmp_path)
