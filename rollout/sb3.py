"""``RemoteVectorEnv`` as a Stable-Baselines3 ``VecEnv``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv

from rollout.api import Array
from rollout.errors import ConfigError
from rollout.vector_env import RemoteVectorEnv

Indices = None | int | Iterable[int]


class StableBaselinesVecEnv(VecEnv):  # type: ignore[misc] # an optional dependency, not followed
    """Makes a pool of games available to Stable-Baselines3 algorithms.

    ``terminal_observation`` and ``TimeLimit.truncated`` are set as SB3 expects, so its algorithms
    bootstrap truncated and lost episodes from the true final observation.

    Args:
        env: made with ``autoreset="same_step"``, as SB3's own vector envs behave.

    Raises:
        ConfigError: the env has another autoreset mode.
    """

    def __init__(self, env: RemoteVectorEnv) -> None:
        if env.metadata["autoreset_mode"] is not AutoresetMode.SAME_STEP:
            raise ConfigError('Stable-Baselines3 needs RemoteVectorEnv(..., autoreset="same_step")')
        self._env = env
        self._actions: Any = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> Any:
        """Returns the first observations of new episodes in every slot."""
        seed = self._seeds[0]
        self._reset_seeds()
        observations, infos = self._env.reset(seed=seed)
        self.reset_infos = _per_slot(infos, self.num_envs)
        return observations

    def step_async(self, actions: Array) -> None:
        """Stores the actions for ``step_wait``."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Array, Array, list[dict[str, Any]]]:
        """Returns observations, rewards, dones and one info per slot."""
        observations, rewards, terminated, truncated, infos = self._env.step(self._actions)
        slots = _per_slot(infos, self.num_envs)
        dones = terminated | truncated
        for slot in np.flatnonzero(dones):
            slots[slot]["terminal_observation"] = slots[slot].pop("final_obs")
            slots[slot]["TimeLimit.truncated"] = bool(truncated[slot] and not terminated[slot])
        return observations, rewards.astype(np.float32), dones, slots

    def close(self) -> None:
        """Ends every game."""
        self._env.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Returns an attribute of the vector env, once per requested slot."""
        value = getattr(self._env, attr_name)
        return [value] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Not supported: slots have no attributes of their own."""
        raise AttributeError(f"slots share one env; {attr_name!r} cannot be set for {indices}")

    def env_method(
        self, method_name: str, *arguments: Any, indices: Indices = None, **keywords: Any
    ) -> list[Any]:
        """Not supported: games run in other processes and have no methods to call."""
        raise AttributeError(f"the games behind {indices} have no method {method_name!r}")

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Returns False for every slot: single slots are never wrapped."""
        del wrapper_class
        return [False] * len(list(self._get_indices(indices)))


def _per_slot(infos: dict[str, Any], count: int) -> list[dict[str, Any]]:
    slots: list[dict[str, Any]] = [{} for _ in range(count)]
    for key, values in infos.items():
        mask: Sequence[bool] | None = infos.get("_" + key)
        # ``final_info`` is a mapping like the whole.
        column = _per_slot(values, count) if isinstance(values, dict) else values
        if mask is not None:
            for slot in np.flatnonzero(mask):
                slots[slot][key] = column[slot]
    return slots
