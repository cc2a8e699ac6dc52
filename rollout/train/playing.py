"""The policy plug-in ``checkpoint``: plays a trained policy."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollout.api import BridgeSpec, Factor, Policy, PolicyRecipe, StateSpace, Task, option
from rollout.configuration.plugins import build_plugin
from rollout.errors import ConfigError
from rollout.evaluators import GameReward
from rollout.models.examples import LanguageRecipe
from rollout.named_code import check_code
from rollout.train.checkpoint import Checkpoint, CheckpointError, find_checkpoint
from rollout.train.history import best_checkpoint

if TYPE_CHECKING:
    from torch import nn


def policy_of(checkpoint: Checkpoint) -> Any:
    """Returns the policy of a checkpoint, with its weights; its game is not needed.

    Raises:
        CheckpointError: it is damaged, or names a policy that cannot be trained.
    """
    states = StateSpace((Factor("episode", (0,)),))
    spaces = checkpoint.observation_space, checkpoint.action_space
    task = Task("", "", states, GameReward())
    recipe = CheckpointPolicy(str(checkpoint.path))
    return recipe.build(BridgeSpec("", "", *spaces, states), task, seed=0)


def network_of(policy: Any, checkpoint: Checkpoint) -> nn.Module:
    """Returns the network of such a policy.

    Raises:
        ConfigError: it has none.
    """
    network = getattr(policy, "network", None)
    if network is None:
        raise ConfigError(
            f"{checkpoint.path}: the policy {checkpoint.policy[0]} has no network of its own; "
            f"expected one that Gamut trains from numbers or pictures, e.g. actor_critic or "
            f"q_network"
        )
    return network  # type: ignore[no-any-return] # of a plug-in


@dataclass(frozen=True)
class CheckpointPolicy:
    """Plays a checkpoint of ``gamut train`` in any script that takes a policy."""

    path: str = option("", "folder of the checkpoint, or a run directory")
    checkpoint: str = option(
        "newest",
        "which checkpoint of a run directory: the newest, or the best by its validations",
        choices=("newest", "best"),
    )

    def __post_init__(self) -> None:
        if not self.path:
            raise ConfigError("path must name a checkpoint or a run directory, got ''")

    def weights_path(self) -> str:
        """Returns the folder of the checkpoint that it plays.

        Raises:
            CheckpointError: there is none, or it is damaged.
        """
        return str(self._found().path)

    def _found(self) -> Checkpoint:
        find = best_checkpoint if self.checkpoint == "best" else find_checkpoint
        return find(self.path)

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Policy:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            CheckpointError: there is no checkpoint, it is damaged, or it names a policy that cannot
                be trained.
            ConfigError: it was trained for other spaces.
        """
        from rollout.train.network import TrainableRecipe  # noqa: PLC0415 - imports torch
        from rollout.train.reading import Reading  # noqa: PLC0415 - only for checkpoints

        checkpoint = self._found()
        checkpoint.require_spaces(spec)
        name, options = checkpoint.policy
        recipe: PolicyRecipe = build_plugin("policies", name, options)
        # Others could run any code, open another checkpoint, or ask a model elsewhere.
        language = isinstance(recipe, LanguageRecipe) and bool(recipe.local.model)
        if not (language or isinstance(recipe, TrainableRecipe)):
            raise CheckpointError(
                f"{checkpoint.path} names the policy {name}, expected one that can be trained: "
                f"with a network, e.g. actor_critic, or a local language model; no training of "
                f"Gamut wrote this, so it was not opened"
            )
        check_code(recipe, f"the checkpoint {checkpoint.path}")
        if isinstance(recipe, Reading):  # not as new networks may be by now
            kept = recipe.kept(checkpoint.observation_space, options)
            recipe = build_plugin("policies", name, {**options, **kept})
        # Observations that were added to the game since, e.g. an image for videos, are not read.
        seen = dataclasses.replace(spec, observation_space=checkpoint.observation_space)
        policy: Any = recipe.build(seen, task, seed=seed)
        policy.load(checkpoint.weights(), checkpoint.update)
        return policy  # type: ignore[no-any-return] # load is not part of every policy
