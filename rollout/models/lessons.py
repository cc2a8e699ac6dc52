"""What language models learn from: recorded steps as messages and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rollout.api import BridgeSpec, Columns, Details, Task
from rollout.models.sections import Local


@dataclass(frozen=True)
class Lesson:
    """One answer of a model, or of an expert in its place.

    Attributes:
        messages: what it was told; pictures are digests.
        images: files of the pictures, by digest.
        answer: what it said; empty if ``output_ids`` are given.
        prompt_ids: tokens of the prompt as they were when it answered; empty if unknown.
        output_ids: tokens of the answer.
        logprobs: their log-probabilities when they were sampled.
        temperature: of the distribution that was sampled.
        advantage: how much better the answer was than expected.
    """

    messages: Sequence[Mapping[str, Any]]
    images: Mapping[str, bytes]
    answer: str = ""
    prompt_ids: Sequence[int] = ()
    output_ids: Sequence[int] = ()
    logprobs: Sequence[float] = ()
    temperature: float = 1.0
    advantage: float = 1.0


class Teacher(Protocol):
    """Tells a model about recorded steps as its policy would."""

    def demonstrated(
        self, observations: Columns, details: Sequence[Details] | None, actions: Columns
    ) -> Iterator[Lesson]:
        """Yields a lesson for each step of an episode in which an expert acted.

        Args:
            observations: ``{key: (T, ...)}``.
            details: one mapping per step, or None.
            actions: ``{key: (T, ...)}``.
        """
        ...

    def pictures(self, observations: Columns) -> dict[str, bytes]:
        """Returns the files of the pictures of an episode, by digest."""
        ...


@runtime_checkable
class LanguageRecipe(Protocol):
    """Recipe of a policy whose language model can be trained.

    Attributes:
        local: the model that it runs.
    """

    local: Local

    def teacher(self, spec: BridgeSpec, task: Task) -> Teacher:
        """Returns what turns recorded steps into lessons.

        Raises:
            ConfigError: the prompt, the actions or the pictures do not fit.
        """
        ...
