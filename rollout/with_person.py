"""The policy ``with_person``: a policy plays the agent, a person another player of its world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from gymnasium import spaces

from rollout.api import (
    PERSON,
    BridgeSpec,
    Columns,
    Decision,
    Details,
    Policy,
    PolicyRecipe,
    Start,
    Task,
    figures_of,
    keeps_files,
    option,
    trials_of,
)
from rollout.config import PolicyConfig, make_config
from rollout.errors import ConfigError, named

_AT_ONCE_S = 0.02  # an agent that decides in this time leaves the window as it is


@dataclass(frozen=True)
class WithPersonPolicy:
    """A policy plays the agent while a person plays another player; see ``gamut play``.

    The bridge says which player that is, e.g. ``bridge.person`` of Mineflayer, and has columns for
    it whose names begin with ``person/``. The agent's policy gets none of them.
    """

    agent: Mapping[str, Any] = option(dict, "policy of the agent, like policy of gamut collect")
    person: Mapping[str, Any] = option(dict, "options of the policy human, e.g. {scale: 1}")

    def __post_init__(self) -> None:
        if not self.agent:
            raise ConfigError("agent: expected the policy of the agent, e.g. {name: companion}")
        _ = self.recipes

    @cached_property
    def recipes(self) -> tuple[PolicyRecipe, PolicyRecipe]:
        """The recipes of the agent and of the person."""
        with named("agent"):
            agent: PolicyRecipe = make_config(PolicyConfig, self.agent).build()
            if trials_of(agent):
                raise ConfigError("its key reflect is for evaluations; leave it out")
        with named("person"):
            options = {"name": "human", **self.person}
            person: PolicyRecipe = make_config(PolicyConfig, options).build()
        return agent, person

    @property
    def keeps_files(self) -> bool:
        """True if the policy of the agent has files; see ``rollout.api.KeepsFiles``."""
        return keeps_files(self.recipes[0])

    def in_run(self, folder: Path) -> WithPersonPolicy:
        """Returns the recipe that keeps its files in the folder of the run."""
        agent, person = self.recipes
        found = replace(self)
        found.__dict__["recipes"] = (
            agent.in_run(folder) if keeps_files(agent) else agent,
            person,
        )
        return found

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> WithPerson:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the game has no columns of a person, or one of the two cannot play it.
        """
        agent, person = self.recipes
        if not any(key.startswith(PERSON) for key in spec.action_space):
            raise ConfigError(
                f"with_person: {spec.name} has no player for a person here; name one, e.g. "
                f"bridge.person=Player1 with task=minenpc/R11"
            )
        parts = [_part(spec, of_person=each) for each in (False, True)]
        return WithPerson(
            agent.build(parts[0], task, seed=seed), person.build(parts[1], task, seed=seed)
        )


def _is_of(key: str, *, of_person: bool) -> bool:
    return key.startswith(PERSON) == of_person


def _part(spec: BridgeSpec, *, of_person: bool) -> BridgeSpec:
    """Returns the game as one of the two meets it."""

    def part(columns: Mapping[str, Any]) -> dict[str, Any]:
        return {k: each for k, each in columns.items() if _is_of(k, of_person=of_person)}

    return replace(
        spec,
        action_space=spaces.Dict(part(spec.action_space.spaces)),
        observation_space=spaces.Dict(part(spec.observation_space.spaces)),
        action_labels=part(spec.action_labels),
        action_defaults=part(spec.action_defaults),
    )


class WithPerson:
    """Asks the agent's policy in a thread, so that the window stays alive, and then the person."""

    waits_for_person: ClassVar[bool] = True

    def __init__(self, agent: Policy, person: Any) -> None:
        self._agent, self._person = agent, person
        self._thread = ThreadPoolExecutor(1)
        self.extras = agent.extras

    @property
    def version(self) -> int:
        """Version of the agent's weights."""
        return self._agent.version

    def figures(self) -> Mapping[str, float]:
        """Returns the figures of the agent's policy."""
        return figures_of(self._agent)

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the memory of the agent's policy; begins the episode in the window."""
        self._person.initial_memory(starts)
        return self._agent.initial_memory(starts)

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the actions of both; see ``rollout.api.Policy``.

        Raises:
            BudgetExhausted: the person has closed the window or abandoned the episode.
        """

        def part(columns: Mapping[str, Any], *, of_person: bool = False) -> dict[str, Any]:
            return {k: each for k, each in columns.items() if _is_of(k, of_person=of_person)}

        told = None if details is None else [part(each) for each in details]
        deciding = self._thread.submit(
            self._agent.act, part(observations), memory, details=told, explore=explore
        )
        wait([deciding], _AT_ONCE_S)
        self._person.wait(deciding.done)
        # First: who has closed the window waits for no model.
        acted = self._person.act(
            part(observations, of_person=True), {}, details=details, explore=explore
        )
        decided = deciding.result()
        return replace(decided, actions={**decided.actions, **acted.actions})
