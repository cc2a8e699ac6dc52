"""Reads lessons from datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollout.api import ACTION, OBSERVATION, Call, PlayedEpisode, read_calls
from rollout.data import Dataset, EpisodeRef
from rollout.data.calls import COLUMN
from rollout.models.examples import named, part_of
from rollout.models.lessons import Lesson, Teacher
from rollout.train.language.advantages import Reals

_DETAILS, _REWARD = "details", "reward"


@dataclass(frozen=True)
class Answered:
    """An episode in which a model answered.

    Attributes:
        rewards: of each step, ``(T,)``.
        states: for each step, what identifies what was observed before it.
        lessons: the calls of each step, with their token ids and without advantages.
    """

    rewards: Reals
    states: Sequence[str]
    lessons: Sequence[Sequence[Lesson]]

    @property
    def played(self) -> PlayedEpisode:
        """What an algorithm compares."""
        return PlayedEpisode(self.rewards, self.states, [len(calls) for calls in self.lessons])


def demonstrated(dataset: Dataset, ref: EpisodeRef, teacher: Teacher) -> list[Lesson]:
    """Returns the lessons of an episode: the usable answers of a model, or an expert's actions."""
    columns = _columns(dataset, ref)
    observations = part_of(dataset, columns, OBSERVATION)
    if COLUMN not in columns:
        actions = part_of(dataset, columns, ACTION)
        return list(teacher.demonstrated(observations, columns.get(_DETAILS), actions))
    files = teacher.pictures(observations)
    return [
        Lesson(call.messages or (), _of(call, files), answer=call.answer)
        for calls in columns[COLUMN]
        for call in read_calls(calls)
        if call.usable
    ]


def answered(dataset: Dataset, ref: EpisodeRef, teacher: Teacher, version: int) -> Answered | None:
    """Returns an episode of a local model; None if other weights answered in it.

    All calls are lessons, those whose answer could not be used as well: they were sampled, too.
    """
    columns = _columns(dataset, ref)
    files = teacher.pictures(part_of(dataset, columns, OBSERVATION))
    states, lessons = [], []
    for recorded in columns[COLUMN]:
        calls = read_calls(recorded)
        if any(call.version != version for call in calls):
            return None
        states.append(calls[0].seen or "" if calls else "")
        lessons.append(
            [
                Lesson(
                    call.messages or (),
                    _of(call, files),
                    prompt_ids=call.prompt_ids or (),
                    output_ids=call.output_ids or (),
                    logprobs=call.output_logprobs or (),
                    temperature=1.0 if call.temperature is None else call.temperature,
                )
                for call in calls
            ]
        )
    return Answered(np.asarray(columns[_REWARD], np.float64), states, lessons)


def _columns(dataset: Dataset, ref: EpisodeRef) -> dict[str, Any]:
    known = set(dataset.columns)
    wanted = [*named(dataset, OBSERVATION), *named(dataset, ACTION)]
    wanted += [name for name in (COLUMN, _DETAILS, _REWARD) if name in known]
    return dict(dataset.read(ref, wanted).columns)


def _of(call: Call, files: dict[str, bytes]) -> dict[str, bytes]:
    """The pictures of a call."""
    parts = [p for m in call.messages or () if isinstance(m["content"], list) for p in m["content"]]
    return {p["digest"]: files[p["digest"]] for p in parts if p["type"] == "image"}
