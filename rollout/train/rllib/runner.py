"""An EnvRunner that plays fragments with our host and returns columns."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from ray.rllib.core import (
    COMPONENT_RL_MODULE,
    DEFAULT_MODULE_ID,
)
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils.checkpoints import Checkpointable

from rollout.train.plan import TrainPlan
from rollout.train.sampler import Sample, Sampler

log = logging.getLogger(__name__)

PLAN = "gamut_plan"
"""Key of ``config.env_config`` that contains the plan."""


class FragmentRunner(EnvRunner, Checkpointable):  # type: ignore[misc] # RLlib is untyped
    """Plays one ``Sampler`` in the algorithm's process, with the weights that RLlib sends.

    If the plan has runners in actors, those play instead, and this one launches no games.
    """

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        self.plan: TrainPlan = config.env_config[PLAN]
        self.sampler: Sampler | None = None
        super().__init__(config=config)
        if not self.plan.config.runners:
            self.make_env()

    def make_env(self) -> None:
        """Launches the games."""
        self.sampler = self.plan.sampler(0)

    def make_module(self) -> None:
        """Does nothing: the policy contains the network."""

    def assert_healthy(self) -> None:
        """Does nothing: a runner that replies is healthy; the pool supervises the games."""

    def get_spaces(self) -> dict[str, Any]:
        """Returns the spaces of the game in RLlib's format."""
        spec = self.plan.bridge.spec
        pair = (spec.observation_space, spec.action_space)
        return {
            INPUT_ENV_SPACES: pair,
            INPUT_ENV_SINGLE_SPACES: pair,
            DEFAULT_MODULE_ID: pair,
        }

    def sample(self, **kwargs: Any) -> list[Sample]:
        """Plays until a fragment is complete; returns it in a list."""
        assert self.sampler is not None  # only called on a runner with games
        return [self.sampler.sample()]

    def rewind(self) -> None:
        """Relaunches the games if anything was played, so that another position can be restored."""
        if self.sampler is not None and not self.sampler.untouched:
            self.stop()
            self.make_env()

    def get_metrics(self) -> dict[str, Any]:
        """Returns an empty mapping: figures come with the fragments."""
        return {}

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Returns the position of the schedule; the learner has the weights."""
        if self.sampler is None or not self._check_component(
            "position", components, not_components
        ):
            return {}
        return {"position": self.sampler.position()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the position of the schedule, if nothing was played yet, and the weights."""
        if self.sampler is None:
            return
        if "position" in state and self.sampler.untouched:
            self.sampler.schedule.restore(state["position"])
        modules = state.get(COMPONENT_RL_MODULE)
        if isinstance(modules, Mapping) and DEFAULT_MODULE_ID in modules:
            own = modules[DEFAULT_MODULE_ID]
            weights = {k.removeprefix("network."): v for k, v in own.items()}
            self.sampler.load(weights, int(state.get("weights_seq_no", 0)))

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the constructor's arguments; see ``Checkpointable``."""
        return (), {"config": self.config}

    def stop(self) -> None:
        """Ends every game."""
        if self.sampler is not None:
            self.sampler.close()
            self.sampler = None
