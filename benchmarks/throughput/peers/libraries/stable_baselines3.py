"""Stable-Baselines3's PPO."""

from __future__ import annotations

import functools
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from benchmarks.throughput.peers.libraries.games import blockworld, make
from benchmarks.throughput.peers.libraries.turns import Turn, serve


def vector(game: str, count: int, seed: int) -> Any:
    """Returns games as it takes them, each in a process if steps take long."""
    if game == "blockworld":
        from stable_baselines3.common.vec_env import VecMonitor

        from rollout.sb3 import StableBaselinesVecEnv

        return VecMonitor(StableBaselinesVecEnv(blockworld(count, seed, "same_step")))
    makers: list[Any] = [functools.partial(_monitored, game)] * count
    return (SubprocVecEnv if game in ("Pong", "Crafter") else DummyVecEnv)(makers)


def _monitored(game: str) -> Any:
    return Monitor(make(game))


def train(turn: Turn) -> None:
    """Trains for a turn."""
    ppo, games = turn.ppo, vector(turn.game, turn.size, turn.seed)
    pictures = turn.game in ("Pong", "Crafter")
    kwargs: dict[str, Any] = {"net_arch": ppo.hidden}
    if pictures:
        kwargs = {"net_arch": [], "features_extractor_kwargs": {"features_dim": ppo.hidden[-1]}}
    model = PPO(
        "CnnPolicy" if pictures else "MlpPolicy",
        games,
        n_steps=ppo.batch // turn.size,
        batch_size=ppo.minibatch,
        n_epochs=ppo.epochs,
        learning_rate=ppo.lr,
        gamma=ppo.gamma,
        gae_lambda=ppo.gae_lambda,
        clip_range=ppo.clip,
        ent_coef=ppo.entropy,
        vf_coef=ppo.value_coef / 2,  # its value loss has no factor 0.5
        max_grad_norm=ppo.max_grad_norm,
        policy_kwargs=kwargs,
        seed=turn.seed,
        device="cpu",
    )
    ended: list[float] = []
    played = 0

    def note(given: dict[str, Any], _: Any) -> bool:
        ended.extend(info["episode"]["r"] for info in given["infos"] if "episode" in info)
        return True

    turn.begin()
    while True:
        ended.clear()
        model.learn(1, callback=note, reset_num_timesteps=False)  # one update
        fresh, played = model.num_timesteps - played, model.num_timesteps
        if turn.add(fresh, ended):
            break
    games.close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(train)
