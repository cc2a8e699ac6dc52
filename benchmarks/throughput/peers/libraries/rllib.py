"""RLlib's own PPO."""

from __future__ import annotations

import logging
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

from benchmarks.throughput.peers.libraries.games import make, vector
from benchmarks.throughput.peers.libraries.turns import Turn, serve

STEPS, MEAN = "num_env_steps_sampled_lifetime", "episode_return_mean"


class Floats(gym.ObservationWrapper[Any, Any, Any]):
    """Pictures as its convolutions take them: floats, channels last."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        shape = self.observation(np.zeros(env.observation_space.shape, np.uint8)).shape
        self.observation_space = gym.spaces.Box(0.0, 1.0, shape, np.float32)

    def observation(self, observation: Any) -> Any:
        last = observation if observation.shape[-1] == 3 else np.moveaxis(observation, 0, -1)
        return last.astype(np.float32) / 255


def _make(game: str) -> Any:
    return Floats(make(game)) if game in ("Pong", "Crafter") else make(game)


def train(turn: Turn) -> None:
    """Trains for a turn; a size is the number of games, and of its runners if it is a list."""
    ppo, game = turn.ppo, turn.game
    games, runners = turn.size if isinstance(turn.size, list) else (turn.size, 0)
    mode = "sync"
    if game in ("CartPole", "blockworld"):
        mode = "vector_entry_point"
        gym.register(
            f"Peers/{game}-v0",
            entry_point=lambda: make(game),
            vector_entry_point=lambda num_envs=1, **_: vector(game, num_envs, turn.seed),
        )
        name = f"Peers/{game}-v0"
    else:
        name = game
        register_env(game, lambda _: _make(game))
    config = PPOConfig().environment(name, disable_env_checking=True)
    config.env_runners(
        num_env_runners=runners,
        num_envs_per_env_runner=games,
        gym_env_vectorize_mode=mode,
        num_cpus_per_env_runner=0.5,
    )
    config.training(
        train_batch_size_per_learner=ppo.batch,
        minibatch_size=ppo.minibatch,
        num_epochs=ppo.epochs,
        lr=ppo.lr,
        gamma=ppo.gamma,
        lambda_=ppo.gae_lambda,
        clip_param=ppo.clip,
        grad_clip=ppo.max_grad_norm,
        use_kl_loss=False,
        entropy_coeff=ppo.entropy,
        vf_loss_coeff=ppo.value_coef / 2,  # its value loss has no factor 0.5
        vf_clip_param=float("inf"),
    )
    model: dict[str, Any] = {"fcnet_hiddens": ppo.hidden, "fcnet_activation": "tanh"}
    if game in ("Pong", "Crafter"):
        filters = [[32, 8, 4], [64, 4, 2], [64, 3, 1]]
        heads = {"head_fcnet_hiddens": ppo.hidden, "head_fcnet_activation": "relu"}
        model = {"conv_filters": filters, "conv_activation": "relu", "fcnet_hiddens": [], **heads}
    shared = game in ("Pong", "Crafter")
    config.rl_module(model_config=DefaultModelConfig(vf_share_layers=shared, **model))
    config.debugging(seed=turn.seed, log_level="ERROR")
    algorithm = config.build_algo()
    played, over = 0, False
    turn.begin()
    while not over:
        found = algorithm.train()["env_runners"]
        fresh, played = int(found[STEPS]) - played, int(found[STEPS])
        over = turn.add(fresh, mean=found.get(MEAN))
    algorithm.stop()


if __name__ == "__main__":
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    ray.init("local", num_cpus=8, include_dashboard=False, log_to_driver=False)
    serve(train)
