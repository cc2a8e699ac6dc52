"""A policy that plays the expert's action, which the game gives as an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollout.api import BridgeSpec, Columns, ColumnSpec, Decision, Details, Start, Task
from rollout.errors import ConfigError

PREFIX = "privileged_oracle/"
"""Prefix of the observations that contain an expert's action, one per action column."""


@dataclass(frozen=True)
class OraclePolicy:
    """Returns the expert's action, taken from the observations ``privileged_oracle/*``.

    For upper bounds, demonstrations and tests: the expert uses knowledge that no player has.
    """

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Oracle:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the game does not give an expert's action.
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
    """Copies observations to actions."""

    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(self, keys: Sequence[str]) -> None:
        self._pairs = [(key, PREFIX + key) for key in keys]

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns nothing: the expert has no memory."""
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
