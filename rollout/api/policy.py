"""The interface to policies, which choose actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self, TypeGuard, runtime_checkable

from rollout.api.bridge import BridgeSpec, ColumnSpec, Start
from rollout.api.task import Task
from rollout.api.types import Columns, Details


@dataclass(slots=True)
class Decision:
    """The actions of a policy for a batch of slots.

    Attributes:
        actions: ``{key: (B, ...)}`` as in the action space.
        memory: state to pass back at the next step of the same slots, ``{key: (B, ...)}``.
        extras: values to record with the action, ``{key: (B, ...)}``: ``logp``, ``value``,
            ``calls`` (see ``rollout.api.calls``); the keys its ``extras`` declares.
        stops: for each row, why its episode is truncated after this step, empty to play on; None
            if all play on.
    """

    actions: Columns
    memory: Columns = field(default_factory=dict)
    extras: Columns = field(default_factory=dict)
    stops: Sequence[str] | None = None


class Policy(Protocol):
    """Chooses actions for a batch. Rows are independent; state lives in ``memory`` only.

    Which slots share a batch, and in which order, changes from call to call.
    """

    @property
    def version(self) -> int:
        """Version of the current weights; recorded with every step."""
        ...

    @property
    def extras(self) -> Mapping[str, ColumnSpec]:
        """Columns that every ``Decision.extras`` holds."""
        ...

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the memory of slots whose episodes begin now, ``{key: (len(starts), ...)}``."""
        ...

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Chooses an action for every row.

        Args:
            observations: ``{key: (B, ...)}`` as in the observation space; read-only, since they are
                what is recorded, and not to be kept.
            memory: as returned by the last call for these slots, rows in the same order; zeros
                for slots without an episode, whose actions do nothing.
            details: one mapping per row of data without a fixed shape, a copy; or None.
            explore: sample when True, take the best action when False.
        """
        ...


@runtime_checkable
class Concurrent(Protocol):
    """A policy whose decisions take long: a chat model, a person, another machine.

    ``act`` is called for the slots of one instance at a time, in several threads at once, and the
    instances play on while others wait for their decisions. So it must be thread-safe.

    Attributes:
        calls: most calls of ``act`` at once in one process.
    """

    calls: int


def calls_of(policy: Policy | PolicyRecipe) -> int:
    """Returns how many calls of ``act`` may run at once: 1 unless it is ``Concurrent``.

    Recipes may have the attribute, too.
    """
    return policy.calls if isinstance(policy, Concurrent) else 1


def waits_for_person(policy: Policy) -> bool:
    """Returns whether a policy is a person, who has no deadline: its attribute of this name."""
    return bool(getattr(policy, "waits_for_person", False))


@runtime_checkable
class Reporting(Protocol):
    """A policy with figures of its own for the metrics of its run."""

    def figures(self) -> Mapping[str, float]:
        """Returns the current figures under slash-joined names, e.g. ``models/in_flight``.

        Those of all processes in which the policy decides are added up; infinity is left out.
        Called at any time, also during ``act``, so it must be thread-safe and fast.
        """
        ...


def figures_of(policy: Policy) -> Mapping[str, float]:
    """Returns the figures of a policy: none unless it is ``Reporting``."""
    return policy.figures() if isinstance(policy, Reporting) else {}


@runtime_checkable
class Trainable(Protocol):
    """A policy whose weights change while it plays."""

    def load(self, weights: Mapping[str, object], version: int) -> None:
        """Replaces the weights."""
        ...


class PolicyRecipe(Protocol):
    """A frozen dataclass of options; the entry point in ``gamut.policies`` names its class."""

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Policy:
        """Returns a policy for that game and task; called inside the actor, next to the game.

        Raises:
            ConfigError: the policy cannot play in these spaces.
        """
        ...


@runtime_checkable
class KeepsFiles(PolicyRecipe, Protocol):
    """A recipe of a policy with limits or files of the whole run.

    It decides in one process of the run: where the games are, or in one inference actor on the
    machine of the run's folder.
    """

    @property
    def keeps_files(self) -> bool:
        """True if this recipe has limits or files; see ``keeps_files``."""
        ...

    def in_run(self, folder: Path) -> Self:
        """Returns the recipe that keeps its files in the folder of the run."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A recipe of a policy that gets the results of its earlier episodes from the same state.

    An evaluation plays the episodes of one state one after another, and passes the earlier ones in
    ``Start.earlier``: those of the same player, set and way of choosing actions only.

    Attributes:
        trials: maximum number of earlier episodes that it gets; 0 for none.
    """

    trials: int


def trials_of(recipe: object) -> int:
    """Returns the number of earlier episodes a policy gets: 0 unless it is ``Remembering``."""
    return recipe.trials if isinstance(recipe, Remembering) else 0


def keeps_files(recipe: object) -> TypeGuard[KeepsFiles]:
    """Returns whether a policy of this recipe needs to be the only one of its run."""
    return isinstance(recipe, KeepsFiles) and recipe.keeps_files
