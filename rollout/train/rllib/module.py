"""A network as an RLModule, for our algorithm and for RLlib's stock PPO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.catalog import Catalog
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor

from rollout.api import OBSERVATION
from rollout.configuration.plugins import build_plugin
from rollout.errors import ConfigError


class NetworkModule(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc] # RLlib is untyped
    """Wraps the network of a ``TrainableRecipe``.

    ``model_config`` names it: ``{"policy": name, "options": {...}, "seed": int}``. With RLlib's
    stock PPO it plays only games whose action is one ``Discrete`` or ``MultiDiscrete``, and must
    not be recurrent; our own runner and learner have no such limits.
    """

    network: Any

    def setup(self) -> None:
        """Builds the network for the module's spaces.

        Raises:
            ConfigError: the network does not fit the spaces.
        """
        recipe = build_plugin("policies", self.model_config["policy"], self.model_config["options"])
        observed = _columns(self.observation_space, OBSERVATION)
        acted = _columns(self.action_space, "action")
        self.network = recipe.network(observed, acted, seed=self.model_config["seed"])
        if not isinstance(self.action_space, spaces.Dict):
            self.action_dist_cls = Catalog._get_dist_cls_from_action_space(
                self.action_space, framework="torch"
            )

    def _forward(self, batch: Mapping[str, Any], **kwargs: Any) -> dict[str, Any]:
        logits, values = self._read(batch)
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.VF_PREDS: values}

    def compute_values(self, batch: Mapping[str, Any], embeddings: Any = None) -> Tensor:
        """Returns the values of a batch of observations, ``(B,)``."""
        return self._read(batch)[1]

    def _read(self, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        if self.network.memory_keys:
            raise ConfigError(
                "a network that remembers cannot be trained by RLlib's stock PPO; use "
                "gamut train, or memory=none"
            )
        seen = batch[Columns.OBS]
        seen = seen if isinstance(seen, Mapping) else {OBSERVATION: seen}
        logits, values, _ = self.network(seen, {})
        return logits, values


def _columns(space: spaces.Space[Any], key: str) -> spaces.Dict:
    return space if isinstance(space, spaces.Dict) else spaces.Dict({key: space})
