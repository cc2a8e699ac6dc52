"""An EnvRunner that plays fragments with our player and returns columns."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

import torch
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
"""Key of ``config.env_config`` under which the plan travels."""


class FragmentRunner(EnvRunner, Checkpointable):  # type: ignore[misc] # RLlib is untyped
    """Plays one ``Sampler``.

    The local runner of an algorithm with remote ones plays nothing: it has no games. Weights come
    with each request, so how old they are is known exactly; RLlib's own ``set_state`` works too.
    """

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        self._number = int(kwargs.get("worker_index", 0))
        self._recreated = bool(kwargs.get("recreated_worker", False))
        self.plan: TrainPlan = config.env_config[PLAN]
        self.sampler: Sampler | None = None
        super().__init__(config=config)
        if self._number or not config.num_env_runners:
            if self._number:
                torch.set_num_threads(1)  # many runners with many threads each stall one another
            self.make_env()

    def make_env(self) -> None:
        """Launches the games."""
        self.sampler = self.plan.sampler(max(0, self._number - 1))

    def make_module(self) -> None:
        """Does nothing: the network is the policy's own."""

    def assert_healthy(self) -> None:
        """Does nothing: whoever answers is healthy; games are watched by their pool."""

    def get_spaces(self) -> dict[str, Any]:
        """Returns the spaces of the game, as RLlib asks for them."""
        spec = self.plan.bridge.spec
        pair = (spec.observation_space, spec.action_space)
        return {
            INPUT_ENV_SPACES: pair,
            INPUT_ENV_SINGLE_SPACES: pair,
            DEFAULT_MODULE_ID: pair,
        }

    def sample(self, **kwargs: Any) -> list[Sample]:
        """Plays until a fragment is complete; returns it in a list."""
        assert self.sampler is not None  # this runner has games
        return [self.sampler.sample()]

    def fragment(
        self, weights: Mapping[str, Any] | None, version: int, position: Mapping[str, Any] | None
    ) -> tuple[Sample, dict[str, Any]]:
        """Plays a fragment with the given weights.

        Args:
            weights: of the network; None keeps those it has.
            version: number of them.
            position: where the schedule stood when the runner was last heard of. A runner that
                was made anew goes on from there; any other is further on, and ignores it.

        Returns:
            the fragment, and where the schedule stands after it.

        Raises:
            BudgetExhausted: no game is left, and none may be launched any more.
        """
        assert self.sampler is not None  # this runner has games
        if position is not None and self.sampler.untouched:
            self.sampler.schedule.restore(position)
        if weights is not None:
            self.sampler.load(weights, version)
        return self.sampler.sample(), self.sampler.position()

    def rewind(self) -> None:
        """Launches the games anew if anything was played, so that another position can be taken."""
        if self.sampler is not None and not self.sampler.untouched:
            self.stop()
            self.make_env()

    def get_metrics(self) -> dict[str, Any]:
        """Returns nothing: figures come with the fragments."""
        return {}

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Returns the position of the schedule; weights live in the learner."""
        if self.sampler is None or not self._check_component(
            "position", components, not_components
        ):
            return {}
        return {"position": self.sampler.position()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes a position of the schedule, if nothing was played yet, and weights."""
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
        """Returns how to make it again; see ``Checkpointable``."""
        return (), {"config": self.config, "worker_index": self._number}

    def stop(self) -> None:
        """Ends every game."""
        if self.sampler is not None:
            self.sampler.close()
            self.sampler = None
