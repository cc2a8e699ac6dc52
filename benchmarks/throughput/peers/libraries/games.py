"""The games, the same for all libraries; with Gymnasium 0.29 and 1."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class OneHot(gym.ObservationWrapper[Any, Any, Any]):
    """MiniGrid's codes as one vector of zeros and ones; see ``one_hot``."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0.0, 1.0, (7 * 7 * 20 + 4,), np.float32)

    def observation(self, observation: Any) -> Any:
        return one_hot(observation["image"][None], np.array([observation["direction"]]))[0]


def one_hot(image: Any, direction: Any) -> Any:
    """Returns rows of zeros and ones, of MiniGrid's codes and directions of several games."""
    parts = [np.eye(n, dtype=np.float32)[image[..., i]] for i, n in enumerate((11, 6, 3))]
    codes = np.concatenate(parts, -1).reshape(len(image), -1)
    return np.concatenate([codes, np.eye(4, dtype=np.float32)[direction]], 1)


class Crafter(gym.Env[Any, Any]):
    """Crafter's pixels, 64 x 64."""

    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = spaces.Discrete(17)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        import crafter

        super().reset(seed=seed)
        if not hasattr(self, "_game"):
            self._game = crafter.Env(seed=int(self.np_random.integers(2**31)))
        return self._game.reset(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, over, info = self._game.step(int(action))
        dead = info["discount"] == 0
        return seen, float(reward), bool(over and dead), bool(over and not dead), {}


def make(game: str) -> Any:
    """Returns a game."""
    if game == "DoorKey":
        import minigrid  # noqa: F401 - registers its games

        return OneHot(gym.make("MiniGrid-DoorKey-5x5-v0"))
    if game == "Crafter":
        return Crafter()
    if game == "Pong":
        import ale_py

        gym.register_envs(ale_py) if hasattr(gym, "register_envs") else None
        pong = gym.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0)
        pong = gym.wrappers.AtariPreprocessing(pong, noop_max=30)
        stack = getattr(gym.wrappers, "FrameStackObservation", None) or gym.wrappers.FrameStack
        return gym.wrappers.TransformObservation(
            stack(pong, 4),
            np.asarray,
            *([spaces.Box(0, 255, (4, 84, 84), np.uint8)] * (stack.__name__ != "FrameStack")),
        )
    return gym.make("CartPole-v1")


def vector(game: str, count: int, seed: int = 0, *, pool: bool = False) -> Any:
    """Returns games as a vector environment of Gymnasium, or of EnvPool, with the fastest way."""
    if game == "blockworld":
        return blockworld(count, seed)
    if pool:
        return Pool(game, count, seed)
    if game == "CartPole":
        return gym.make_vec("CartPole-v1", count, vectorization_mode="vector_entry_point")
    makers = [functools.partial(make, game)] * count
    if game == "DoorKey":
        return gym.vector.SyncVectorEnv(makers)
    return gym.vector.AsyncVectorEnv(makers)


class Pool:
    """EnvPool's games, with the observations of ours."""

    def __init__(self, game: str, count: int, seed: int) -> None:
        import envpool

        ids = {"CartPole": "CartPole-v1", "DoorKey": "MiniGrid-DoorKey-5x5-v0", "Pong": "Pong-v5"}
        if game not in ids:
            raise ValueError(f"EnvPool has no {game}")
        self._game, self.num_envs = game, count
        self._pool = envpool.make_gymnasium(ids[game], num_envs=count, seed=seed)
        self.single_observation_space = make(game).observation_space
        self.single_action_space = self._pool.action_space

    def _see(self, seen: Any) -> Any:
        return one_hot(seen["image"], seen["direction"]) if self._game == "DoorKey" else seen

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]:
        """Begins all episodes; the seed was given to the pool."""
        seen, info = self._pool.reset()
        return self._see(seen), info

    def step(self, actions: Any) -> tuple[Any, ...]:
        seen, *rest = self._pool.step(actions.astype(np.int32))
        return self._see(seen), *rest

    def close(self) -> None:
        self._pool.close()


def blockworld(count: int, seed: int, autoreset: str = "next_step") -> Any:
    """Returns hunts of sheep seen by rays, through ``RemoteVectorEnv``, in Gamut's interpreter."""
    from rollout.config import build_plugin
    from rollout.tasks import load_task
    from rollout.vector_env import RemoteVectorEnv

    options = {"observe": ["semantic_rays"], "actions": "compact"}
    bridge = build_plugin("bridges", "blockworld", options)
    task = load_task(bridge.spec, "blockworld", "hunt_sheep")
    width = max(1, count // 2)  # an instance for each of two processors

    class Rays(RemoteVectorEnv):
        """With the kinds of what rays hit as zeros and ones."""

        def _shown(self) -> Any:
            seen = super()._shown()
            kinds = np.eye(33, dtype=np.float32)[seen["rays/id"]].reshape(count, -1)
            return np.concatenate([kinds, seen["rays/near"].reshape(count, -1)], 1)

    games = Rays(bridge, task, num_envs=count, width=width, seed=seed, autoreset=autoreset)
    rows = spaces.Box(0.0, 1.0, (32 * 34,), np.float32)
    games.single_observation_space = rows
    games.observation_space = spaces.Box(0.0, 1.0, (count, 32 * 34), np.float32)
    return games
