"""The recipe of the policy ``callable``: any Python function, and the model that it may ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policies.callable.agent import AgentPolicy
from policies.callable.columns import FunctionPolicy
from policies.callable.options import CallableOptions
from rollout.api import BridgeSpec, Columns, Details, Policy, Task
from rollout.errors import ConfigError
from rollout.models.examples import TrainingExample
from rollout.models.observations import is_shown_picture, picture_digest, picture_file


@dataclass(frozen=True)
class CallablePolicy(CallableOptions):
    """Asks a function of yours for actions: an agent of one game, or a function over columns.

    ``play(observation, context)``, plain or ``async``, plays one game and may ask the model of the
    run; see docs/agents.md. ``f(observations)`` and ``f(observations, details, explore)`` map
    columns to columns; see docs/policy.md.
    """

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Policy:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the function cannot be imported, or takes other arguments; the game, the
                model or the options do not fit.
        """
        function, kind = self.load()
        if kind == "game":
            model = self.make_model() if self.has_model else None
            return AgentPolicy(self, function, spec, task, model=model)
        if self.has_model:
            raise ConfigError(
                f"{self.function} is a function over columns, which asks no model; leave "
                f"endpoint, model and local out, or write play(observation, context)"
            )
        return FunctionPolicy(self.function, function, kind == "all columns", spec.action_space)

    def example_builder(self, spec: BridgeSpec, task: Task) -> AgentExamples:
        """Returns the builder of training examples; see ``LanguageRecipe``."""
        del task
        return AgentExamples(spec)


class AgentExamples:
    """Training examples from recorded calls of agents; see ``ExampleBuilder``."""

    def __init__(self, spec: BridgeSpec) -> None:
        leaves = spec.observation_space.spaces
        self._leaves = {key: leaf for key, leaf in leaves.items() if is_shown_picture(leaf)}

    def from_actions(
        self, observations: Columns, details: Sequence[Details] | None, actions: Columns
    ) -> Iterator[TrainingExample]:
        """Raises ConfigError: an agent writes its prompts itself."""
        del observations, details, actions
        raise ConfigError(
            "policy callable: the dataset has no calls of a model to learn from, and an agent "
            "writes its prompts itself; record it with an agent that asks the model of its run, "
            "or train with policy.name=vlm"
        )

    def pictures(self, observations: Columns) -> dict[str, bytes]:
        """Returns the files of the pictures of an episode, by digest."""
        files = [
            picture_file(leaf, image)
            for key, leaf in self._leaves.items()
            for image in observations[key]
        ]
        return {picture_digest(file): file for file in files}
