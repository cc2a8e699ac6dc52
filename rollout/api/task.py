"""Tasks and evaluators: the goal of the agent, its reward and its progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rollout.api.bridge import BridgeSpec, Frame, Start
from rollout.api.state import StateSpace
from rollout.api.types import Columns, Floats
from rollout.errors import ConfigError, UnknownNameError


class Outcome(IntEnum):
    """The result of a task so far. Any value other than ``RUNNING`` terminates the episode.

    ``INVALID`` is a run that broke a rule of its task: no success, and counted apart from failures.
    """

    RUNNING = 0
    SUCCESS = 1
    FAILURE = 2
    INVALID = 3


@dataclass(slots=True)
class Verdict:
    """Rewards, progress and outcomes of one frame.

    Attributes:
        reward: reward of the step just made, ``(n,)`` float32.
        progress: share of the task that is done, 0 to 1, ``(n,)`` float32; NaN if undefined.
        outcome: ``Outcome`` values, ``(n,)`` int8.
    """

    reward: Floats
    progress: Floats
    outcome: NDArray[np.int8]


class Evaluator(Protocol):
    """Computes reward, progress and outcome for the slots of one instance.

    It may also have a method ``notes(slot)``, see ``notes_of``.
    """

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Resets some slots. ``frame`` has one row per slot, in their order."""
        ...

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Judges the step that led to ``frame``; everything has ``width`` rows.

        Rows of slots that are over repeat their last verdict with reward 0.
        """
        ...


def notes_of(evaluator: Evaluator, slot: int) -> dict[str, Any]:
    """Returns what an evaluator notes on an episode that ends, for reports: plain values of JSON.

    ``rollout.evaluate.notes`` has the keys that reports show.
    """
    notes = getattr(evaluator, "notes", None)
    return {} if notes is None else dict(notes(slot))


class EvaluatorRecipe(Protocol):
    """A frozen dataclass of options; the entry point in ``gamut.evaluators`` names its class.

    It may also have a property ``factors``: names of the factors of the state that it reads.
    """

    @property
    def requires(self) -> frozenset[str]:
        """Signals the evaluator reads; checked against the bridge before anything is launched."""
        ...

    def build(self, width: int) -> Evaluator:
        """Returns an evaluator for an instance of that width."""
        ...


@dataclass(frozen=True)
class Limits:
    """Limits of an episode.

    Attributes:
        steps: maximum number of actions; None for the limits of the game only.
    """

    steps: int | None = None

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"limits.steps must be at least 1, got {self.steps}")


@dataclass(frozen=True)
class Task:
    """A goal for an agent, the states it can start from, and how it is evaluated.

    Attributes:
        name: unique within its bridge.
        goal: instruction text for the agent, and for the reader.
        state_space: states an episode of this task can start from.
        evaluator: recipe of its evaluator.
        limits: limits of an episode.
        difficulty: e.g. ``"simple"`` or ``"hard"`` in the sense of MCU, section 3.
    """

    name: str
    goal: str
    state_space: StateSpace
    evaluator: EvaluatorRecipe
    limits: Limits = Limits()
    difficulty: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def check(self, spec: BridgeSpec) -> None:
        """Checks that the bridge can serve the task.

        Raises:
            UnknownNameError: the task needs a signal or a factor that the bridge does not have.
            StateError: a factor value the bridge does not have.
        """
        for signal in sorted(self.evaluator.requires):
            if signal not in spec.signals:
                raise UnknownNameError(f"signal of {spec.name}", signal, spec.signals)
        for name in sorted(getattr(self.evaluator, "factors", ())):
            self.state_space.factor(name)
        for factor in self.state_space:
            spec.state_space.restrict({factor.name: factor.values})
