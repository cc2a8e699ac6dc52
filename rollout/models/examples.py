"""Examples for language models: recorded steps to learn from, and recorded episodes to show."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rollout.api import (
    ACTION,
    OBSERVATION,
    BridgeSpec,
    Call,
    Columns,
    Details,
    Outcome,
    Task,
    details_for_policies,
    read_calls,
)
from rollout.data import Dataset, EpisodeRef
from rollout.data.calls import COLUMN
from rollout.data.refs import part_of_set
from rollout.data.schema import column_name
from rollout.errors import ConfigError, DatasetError
from rollout.models.sections import Examples, Local


@dataclass(frozen=True)
class TrainingExample:
    """A prompt with the answer of a model or an expert.

    Attributes:
        messages: the prompt; pictures are digests.
        images: files of the pictures, by digest.
        answer: the answer; empty if ``output_ids`` are given.
        prompt_ids: tokens of the prompt when it was answered; empty if unknown.
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


class ExampleBuilder(Protocol):
    """Builds training examples from recorded steps, as the policy prompts its model."""

    def from_actions(
        self, observations: Columns, details: Sequence[Details] | None, actions: Columns
    ) -> Iterator[TrainingExample]:
        """Yields an example for each step of an episode in which an expert acted.

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

    def example_builder(self, spec: BridgeSpec, task: Task) -> ExampleBuilder:
        """Returns the builder of training examples from recorded steps.

        Raises:
            ConfigError: the prompt, the actions or the pictures do not fit.
        """
        ...


_DETAILS = "details"
_TRAIN = "train"


@dataclass(frozen=True)
class ExampleEpisode:
    """The first steps of an episode.

    Attributes:
        observations: ``{key: (T, ...)}``.
        details: one mapping per step, or None.
        actions: ``{key: (T, ...)}``.
        fields: for each step, what a model answered beside its action.
    """

    observations: Columns
    details: Sequence[Details] | None
    actions: Columns
    fields: Sequence[Mapping[str, str]]


class ExampleLibrary:
    """Episodes of a dataset from which examples are chosen; thread-safe.

    Only episodes from training states are in it, so that no example comes from a held-out state,
    and of each state the one with the lowest number.

    Args:
        options: which dataset, and what is taken from it.
        spec: the game that is played.
        task: the task that is played.

    Raises:
        ConfigError: there is no such dataset, it is of another game or task, or has no episode
            that could be an example.
    """

    def __init__(self, options: Examples, spec: BridgeSpec, task: Task) -> None:
        self._options, self._space = options, task.state_space
        try:
            self._dataset = Dataset(options.dataset)
        except DatasetError as error:
            raise ConfigError(f"examples.dataset={options.dataset}: {error}") from error
        self._check(spec, task)
        self._lock = threading.Lock()
        first: dict[int, EpisodeRef] = {}
        for ref in sorted(self._dataset.episodes(), key=lambda ref: ref.episode):
            good = options.only == "all" or ref.outcome == Outcome.SUCCESS
            if ref.length and good and part_of_set(ref.state_set) == _TRAIN:
                first.setdefault(ref.state, ref)
        if not first:
            raise ConfigError(
                f"examples.dataset={options.dataset}: none of its "
                f"{len(self._dataset.episodes())} episodes began in a training state and fits "
                f"examples.only={options.only}; record some with state_set.split=train"
            )
        self._refs = list(first.values())
        digits = [task.state_space.digits(ref.state) for ref in self._refs]
        self._digits = np.array(digits, object)  # of any size

    def _check(self, spec: BridgeSpec, task: Task) -> None:
        about = self._dataset.manifest
        labels = {key: tuple(names) for key, names in about.action_labels.items()}
        own = {key: tuple(names) for key, names in spec.action_labels.items()}
        pairs = {
            "the task": (about.task["name"], task.name),
            "the factors of its states": (about.state_space.digest, task.state_space.digest),
            "the actions": ((about.action_space, labels), (spec.action_space, own)),
            "the observations": (about.observation_space, spec.observation_space),
        }
        for what, (theirs, ours) in pairs.items():
            if theirs != ours:
                raise ConfigError(
                    f"examples.dataset={self._options.dataset} is of another game or task: {what} "
                    f"differ: expected {_shorten(ours)}, got {_shorten(theirs)}"
                )

    def nearest(self, state: int) -> list[EpisodeRef]:
        """Returns the episodes whose states share most values with a state, never of that state.

        Among equally near ones, those with the lowest numbers.

        Args:
            state: index of the state in the space of the task.
        """
        own = np.array(self._space.digits(state), object)
        order = np.argsort((self._digits != own).sum(1), kind="stable").tolist()
        others = (self._refs[at] for at in order if self._refs[at].state != state)
        return list(itertools.islice(others, self._options.count))

    def read(self, ref: EpisodeRef) -> ExampleEpisode:
        """Returns the first steps of an episode, as many as the options say."""
        steps = min(ref.length, self._options.steps)
        known = set(self._dataset.columns)
        wanted = [
            *columns_of_role(self._dataset, OBSERVATION),
            *columns_of_role(self._dataset, ACTION),
        ]
        wanted += [name for name in (COLUMN, _DETAILS) if name in known]
        with self._lock:
            columns = next(self._dataset.stream(ref, wanted, length=steps)).columns
        calls, details = columns.get(COLUMN), columns.get(_DETAILS)
        return ExampleEpisode(
            select_role(self._dataset, columns, OBSERVATION),
            None if details is None else [details_for_policies(each or {}) for each in details],
            select_role(self._dataset, columns, ACTION),
            [_fields(() if calls is None else read_calls(calls[row])) for row in range(steps)],
        )


def columns_of_role(dataset: Dataset, role: str) -> dict[str, str]:
    """Returns the columns of observations or actions, with their keys."""
    manifest = dataset.manifest
    space = manifest.observation_space if role == OBSERVATION else manifest.action_space
    return {column_name(role, key): key for key in space.spaces}


def select_role(dataset: Dataset, columns: Columns, role: str) -> Columns:
    """Returns the observations or actions among columns, by their keys."""
    return {key: columns[name] for name, key in columns_of_role(dataset, role).items()}


def _fields(calls: Sequence[Call]) -> Mapping[str, str]:
    usable = [call for call in calls if call.usable]
    return dict(usable[-1].fields or {}) if usable else {}


def _shorten(value: object, most: int = 200) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[:most]}..."
