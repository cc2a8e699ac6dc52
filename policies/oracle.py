"""A policy that plays what an expert of the game recommends among the observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollout.api import BridgeSpec, Columns, ColumnSpec, Decision, Details, Start, Task
from rollout.errors import ConfigError

PREFIX = "privileged_oracle/"
"""Beginning of the names of observations that hold an expert's action, one per action column."""


@dataclass(frozen=True)
class OraclePolicy:
    """Copies the expert's action, the observations ``privileged_oracle/*``, into its own.

    For upper bounds, demonstrations and tests: the expert knows what no player can see.
    """

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Oracle:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the game does not show an expert's action.
        """
        keys = list(spec.action_space.spaces)
        missing = [
            PREFIX + key for key in keys if PREFIX + key not in spec.observation_space.spaces
        ]
        if missing:
            raise ConfigError(
                f"the oracle policy copies the observations {missing}, and {spec.name} as it is "
                f"configured does not have them; set bridge.oracle to a skill, if it has experts"
            )
        return Oracle(keys)


class Oracle:
    """Copies observations into actions."""

    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(self, keys: Sequence[str]) -> None:
        self._pairs = [(key, PREFIX + key) for key in keys]

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns nothing: the expert remembers nothing."""
        return {}

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the expert's actions, copies of the observations."""
        return Decision({key: observations[column].copy() for key, column in self._pairs})
