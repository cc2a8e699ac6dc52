"""``RemoteVectorEnv`` under code that has never heard of Gamut."""

import warnings

import numpy as np
import pytest

from rollout.api import Limits, Splits, Task
from rollout.config import HostConfig
from rollout.evaluators import GameReward
from rollout.vector_env import RemoteVectorEnv

pytestmark = pytest.mark.ray


def cart_pole(num_envs, **options):
    from bridges.gymnasium import GymnasiumBridge

    bridge = GymnasiumBridge(id="CartPole-v1")
    task = Task("balance", "", bridge.spec.state_space, GameReward(), Limits(steps=200))
    states = Splits(bridge.spec.state_space).take("train", 100)
    return RemoteVectorEnv(bridge, task, num_envs=num_envs, states=states, **options)


@pytest.mark.long
def test_stable_baselines3_learns_on_it():
    """SB3's PPO improves on CartPole hosted in subprocesses, with no change to SB3."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy

    from rollout.sb3 import StableBaselinesVecEnv

    options = HostConfig(isolation="subprocess")
    env = StableBaselinesVecEnv(cart_pole(4, autoreset="same_step", host=options))
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=128,
        batch_size=128,
        n_epochs=6,
        learning_rate=1e-3,
        seed=1,
        device="cpu",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # SB3 asks for its own Monitor
        before, _ = evaluate_policy(model, env, n_eval_episodes=8)
        model.learn(4_096)
        after, _ = evaluate_policy(model, env, n_eval_episodes=8)
    env.close()
    assert after > before + 20, (before, after)


def test_stable_baselines3_gets_terminal_observations():
    from rollout.sb3 import StableBaselinesVecEnv

    env = StableBaselinesVecEnv(cart_pole(2, autoreset="same_step"))
    env.seed(3)
    env.reset()
    ends = 0
    for _ in range(60):
        observations, _, dones, infos = env.step(np.array([1, 1]))
        for slot in np.flatnonzero(dones):
            ends += 1
            angle = abs(infos[slot]["terminal_observation"][2])
            assert angle > 0.2  # it fell over: the final observation, not the next first one
            assert abs(observations[slot][2]) < 0.06
            assert infos[slot]["TimeLimit.truncated"] is False
    assert ends >= 4
    env.close()


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # RLlib's own, of its old API stack
def test_stock_rllib_trains_on_it():
    """RLlib's own PPO, its own EnvRunner, our vector env by its vector entry point."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.tune.registry import register_env

    register_env("gamut-cart-pole", lambda context: cart_pole(context["num_envs"]))
    config = (
        PPOConfig()
        .environment(env="gamut-cart-pole")
        .env_runners(
            num_env_runners=0,
            num_envs_per_env_runner=8,
            gym_env_vectorize_mode="vector_entry_point",
        )
        .training(train_batch_size_per_learner=1024, minibatch_size=128, num_epochs=6, lr=1e-3)
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    returns = [algorithm.train()["env_runners"]["episode_return_mean"] for _ in range(6)]
    algorithm.stop()
    assert returns[-1] > returns[0] + 15, returns
