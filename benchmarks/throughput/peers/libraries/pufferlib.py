"""PufferLib's trainer; a size is the number of games, and of its workers."""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import torch
from pufferlib import EpisodeStats, vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.pufferl import PuffeRL

from benchmarks.throughput.peers.libraries.games import make
from benchmarks.throughput.peers.libraries.nets import ActorCritic
from benchmarks.throughput.peers.libraries.turns import Turn, serve


class Policy(ActorCritic):
    """The network with the calls that it expects."""

    def forward(self, seen: Any, state: Any = None) -> Any:
        return super().forward(seen)

    forward_eval = forward


class Trainer(PuffeRL):  # type: ignore[misc] # not followed
    """Without a dashboard."""

    def print_dashboard(self, *_: Any, **__: Any) -> None:
        """Prints nothing."""


def _make(game: str, buf: Any = None, seed: int = 0) -> Any:
    return GymnasiumPufferEnv(EpisodeStats(make(game)), buf=buf, seed=seed)


def train(turn: Turn) -> None:
    """Trains for a turn; minibatches are rounded to whole fragments."""
    ppo, (count, workers) = turn.ppo, turn.size
    torch.manual_seed(turn.seed)
    kind: Any = {"backend": vector.Serial}
    if workers:
        kind = {"backend": vector.Multiprocessing, "num_workers": workers, "overwork": True}
    creator = functools.partial(_make, turn.game)
    games = vector.make(creator, num_envs=count, seed=turn.seed, **kind)
    shape = games.single_observation_space.shape
    policy = Policy(shape, int(games.single_action_space.n), ppo.hidden)
    steps = ppo.batch // count
    minibatch = max(1, round(ppo.minibatch / steps)) * steps
    config = {
        "device": "cpu",
        "seed": turn.seed,
        "batch_size": steps * count,
        "bptt_horizon": steps,
        "minibatch_size": minibatch,
        "max_minibatch_size": minibatch,
        "update_epochs": ppo.epochs,
        "optimizer": "adam",
        "learning_rate": ppo.lr,
        "gamma": ppo.gamma,
        "gae_lambda": ppo.gae_lambda,
        "clip_coef": ppo.clip,
        "vf_coef": ppo.value_coef,
        "vf_clip_coef": 1e6,
        "ent_coef": ppo.entropy,
        "max_grad_norm": ppo.max_grad_norm,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_eps": 1e-5,
        "prio_alpha": 0.0,  # minibatches are drawn evenly
        "prio_beta0": 1.0,
        "vtrace_rho_clip": 1.0,
        "vtrace_c_clip": 1.0,
        "anneal_lr": False,
        "total_timesteps": 10**9,
        "checkpoint_interval": 10**9,
        "compile": False,
        "cpu_offload": False,
        "use_rnn": False,
        "precision": "float32",
        "torch_deterministic": False,
        "data_dir": tempfile.gettempdir(),
    }
    trainer = Trainer(config, games, policy)
    played, over = 0, False
    turn.begin()
    while not over:
        returns = list(trainer.evaluate().pop("episode_return", []))
        trainer.train()
        fresh, played = trainer.global_step - played, trainer.global_step
        over = turn.add(fresh, returns)
    trainer.utilization.stop()
    games.close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(train)
