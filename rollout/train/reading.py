"""Reading of observations by networks: decided once for a training, kept in its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from gymnasium import spaces

from rollout.config import PolicyConfig
from rollout.configuration.plugins import build_plugin
from rollout.train.checkpoint import Checkpoint


@runtime_checkable
class Reading(Protocol):
    """A recipe that decides how its network reads the columns of an observation.

    Decisions are values of its options. Checkpoints keep them, so that no network that exists is
    read in another way by a later version with other rules.
    """

    def reading(self, observation_space: spaces.Dict, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the options that say of every column how it is read.

        Args:
            observation_space: the columns.
            kept: such options of another network, for columns of which those of the recipe say
                nothing.
        """
        ...

    def kept(self, observation_space: spaces.Dict, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns such options of a checkpoint.

        Args:
            observation_space: the columns that its network reads.
            options: the options of its policy; those of older versions say less.
        """
        ...

    def explain(self, observation_space: spaces.Dict) -> None:
        """Logs how each column is read, as a warning where that is doubtful; called once a job."""
        ...


def decided(
    policy: PolicyConfig,
    observation_space: spaces.Dict,
    *,
    begun: Checkpoint | None = None,
    first: Checkpoint | None = None,
) -> PolicyConfig:
    """Returns a policy whose options say how it reads every column; see ``Reading``.

    Args:
        policy: the policy.
        observation_space: the columns.
        begun: a checkpoint of the run itself, which has decided.
        first: a checkpoint of another run, which decides where the options of the policy do not.

    Raises:
        InputError: a column cannot be read.
    """
    recipe, found = policy.build(), begun or first
    if not isinstance(recipe, Reading):
        return policy
    kept = {} if found is None else recipe.kept(found.observation_space, found.policy[1])
    options = {**policy.options, **kept}
    as_kept: Reading = build_plugin("policies", policy.name, options)  # refuses what is damaged
    own = recipe if begun is None else as_kept
    return PolicyConfig(
        name=policy.name, **{**policy.options, **own.reading(observation_space, kept)}
    )


def explain(policy: PolicyConfig, observation_space: spaces.Dict) -> None:
    """Logs how a policy reads observations, if it can say that."""
    recipe = policy.build()
    if isinstance(recipe, Reading):
        recipe.explain(observation_space)
