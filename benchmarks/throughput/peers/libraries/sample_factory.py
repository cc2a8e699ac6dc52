"""Sample Factory's asynchronous PPO, with two workers and double buffering."""

from __future__ import annotations

import tempfile
from typing import Any

import gymnasium as gym
import numpy as np
from sample_factory.algo.runners.runner import AlgoObserver
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner

from benchmarks.throughput.peers.libraries.games import make
from benchmarks.throughput.peers.libraries.turns import Turn, serve


class ChannelsFirst(gym.ObservationWrapper[Any, Any, Any]):
    """Pictures as its convolutions take them."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (3, 64, 64), np.uint8)

    def observation(self, observation: Any) -> Any:
        return np.moveaxis(observation, -1, 0)


def _make(name: str, *_: Any, **__: Any) -> Any:
    return ChannelsFirst(make(name)) if name == "Crafter" else make(name)


class Watch(AlgoObserver):
    """Counts a turn from its first update on, and ends the training with it."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self._played = turn, -1

    def on_training_step(self, runner: Any, training_iteration_since_resume: int) -> None:
        played, before = runner.env_steps.get(0, 0), self._played
        self._played = played
        if before < 0:
            self._turn.begin()
            return
        ended = runner.policy_avg_stats.get("reward", [()])[0]
        mean = float(np.mean(ended)) if len(ended) == 100 else None
        if self._turn.add(played - before, mean=mean):
            runner.cfg.train_for_env_steps = 0


def train(turn: Turn) -> None:
    """Trains for a turn."""
    ppo, pictures = turn.ppo, turn.game in ("Pong", "Crafter")
    options = {
        "env": turn.game,
        "device": "cpu",
        "seed": turn.seed,
        "num_workers": 2,
        "num_envs_per_worker": turn.size // 2,
        "rollout": max(n for n in range(1, 33) if ppo.minibatch % n == 0),
        "batch_size": ppo.minibatch,
        "num_batches_per_epoch": ppo.batch // ppo.minibatch,
        "num_epochs": ppo.epochs,
        "learning_rate": ppo.lr,
        "adam_eps": 1e-5,
        "gamma": ppo.gamma,
        "gae_lambda": ppo.gae_lambda,
        "ppo_clip_ratio": ppo.clip,
        "ppo_clip_value": 1e6,
        "exploration_loss_coeff": ppo.entropy,
        "value_loss_coeff": ppo.value_coef / 2,  # its value loss has no factor 0.5
        "max_grad_norm": ppo.max_grad_norm,
        "normalize_input": False,
        "normalize_returns": False,
        "obs_scale": 255.0 if pictures else 1.0,
        "use_rnn": False,
        "actor_critic_share_weights": pictures,
        "nonlinearity": "relu" if pictures else "tanh",
        "encoder_conv_architecture": "convnet_atari",
        "stats_avg": 100,
        "decorrelate_experience_max_seconds": 0,
    }
    with tempfile.TemporaryDirectory() as folder:
        given = [f"--{key}={value}" for key, value in options.items()]
        layers = "conv_mlp_layers" if pictures else "mlp_layers"
        given += [f"--encoder_{layers}", *map(str, ppo.hidden)]
        given += [f"--train_dir={folder}", "--experiment=turn"]
        parser, _ = parse_sf_args(given)
        _, runner = make_runner(parse_full_cfg(parser, given))
        runner.register_observer(Watch(turn))
        runner.init()
        runner.run()


if __name__ == "__main__":
    for _name in ("CartPole", "DoorKey", "Pong", "Crafter"):
        register_env(_name, _make)
    serve(train)
