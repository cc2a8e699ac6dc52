"""Asks a policy for the actions of the instances that wait for them, in one call."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rollout.api import (
    BridgeSpec,
    Columns,
    Decision,
    Details,
    Policy,
    Start,
    clean_texts,
    leaf_dtype,
)
from rollout.api.types import Bools
from rollout.errors import ContractError
from rollout.host.choices import POLICY_CODE, ActionCheck, ask, read_only


@dataclass(slots=True)
class Question:
    """The input of a decision; the arguments of ``Policy.act``.

    Attributes:
        observations: ``{key: (B, ...)}``.
        memory: memory of the same slots.
        details: one mapping per row, or None.
        explore: whether to sample.
        start: an episode that the caller has begun. A policy may learn the layout of its memory
            from its first ``initial_memory``; one that takes over in mid-episode gets this start
            first.
    """

    observations: Columns
    memory: Columns
    details: Sequence[Details] | None
    explore: bool
    start: Start | None = None

    @property
    def rows(self) -> int:
        """Number of slots."""
        columns = (*self.observations.values(), *self.memory.values())
        return len(next(iter(columns), self.details or ()))

    @property
    def kind(self) -> Hashable:
        """Questions of one kind can be decided together."""
        layout = _layout(self.observations), _layout(self.memory)
        return self.explore, self.details is None, layout


def _layout(columns: Columns) -> Hashable:
    return tuple(sorted((key, a.dtype.str, a.shape[1:]) for key, a in columns.items()))


class Decider:
    """A policy that decides for whole instances.

    Attributes:
        since: when the policy was asked, monotonic seconds; None once it has answered.
        asked: whether episodes have begun.
    """

    def __init__(self, policy: Policy, spec: BridgeSpec, width: int) -> None:
        self.since: float | None = None
        self.asked = False
        self._policy = policy
        self._check_actions = ActionCheck(spec.action_space, width, policy)
        self._checked = False
        columns = [leaf_dtype(leaf) for leaf in spec.action_space.spaces.values()]
        columns += [np.dtype(column.dtype) for column in policy.extras.values()]
        self._texts = np.dtype(object) in columns

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the initial memory of episodes."""
        self.since, self.asked = time.monotonic(), True
        try:
            with POLICY_CODE:
                return self._policy.initial_memory(starts)
        finally:
            self.since = None

    def decide(self, questions: Sequence[Question]) -> list[Decision]:
        """Returns a decision for each instance."""
        self.since = time.monotonic()
        try:
            if len(questions) > 1:
                return decide_together(self._policy, questions)
            [q] = questions
            return [ask(self._policy, q.observations, q.memory, q.details, q.explore)]
        finally:
            self.since = None

    def check(self, decision: Decision, active: Bools) -> None:
        """Checks a decision for an instance, before the game or the recording sees it.

        ``active`` says which slots play, ``(B,)``.

        Raises:
            SpaceError: a column is missing, or has another shape or dtype.
            PluginError: a value is no action of the game.
            KeyError: an extra is missing in the first decision.
        """
        self._check_actions(decision.actions, active)
        if self._checked:
            return
        missing = sorted(set(self._policy.extras) - set(decision.extras))
        if missing:
            raise KeyError(f"the policy declares the extras {missing} and does not return them")
        self._checked = True

    def cleaned(self, decision: Decision) -> Decision:
        """Returns the decision with its texts as UTF-8 can hold them; see ``clean_text``.

        Both the game and the dataset get them, and a policy may have them from anywhere.
        """
        if not self._texts and decision.stops is None:
            return decision
        return replace(
            decision,
            actions={key: clean_texts(array) for key, array in decision.actions.items()},
            extras={key: clean_texts(array) for key, array in decision.extras.items()},
            stops=clean_texts(decision.stops),
        )


def decide_together(policy: Policy, questions: Sequence[Question]) -> list[Decision]:
    """Returns the decisions for questions of one kind, by one call of the policy.

    Details may be missing in some of the questions; their rows get empty mappings.

    Raises:
        ContractError: the policy did not return one row for each row of the questions.
    """
    rows = [question.rows for question in questions]
    details: list[Details] | None = None
    if any(question.details is not None for question in questions):
        details = [entry for q in questions for entry in q.details or [{}] * q.rows]
    observations = _join([question.observations for question in questions])
    memory = writable(_join([question.memory for question in questions]))
    for key, array in observations.items():
        observations[key] = read_only(array)
    joint = ask(policy, observations, memory, details, questions[0].explore)
    columns = [
        split_rows(what, getattr(joint, what), rows) for what in ("actions", "memory", "extras")
    ]
    ends = np.cumsum(rows).tolist()
    stops = [
        None if joint.stops is None else list(joint.stops[end - count : end])
        for end, count in zip(ends, rows, strict=True)
    ]
    return [Decision(*parts) for parts in zip(*columns, stops, strict=True)]


def _join(columns: Sequence[Columns]) -> Columns:
    """Returns the rows of all."""
    if len(columns) == 1:
        return dict(columns[0])
    return {key: np.concatenate([c[key] for c in columns]) for key in columns[0]}


def split_rows(what: str, columns: Columns, rows: Sequence[int]) -> list[Columns]:
    """Returns each caller's rows, copied: the next call may come before they are sent.

    Raises:
        ContractError: a column does not have ``sum(rows)`` rows; ``what`` names it.
    """
    for key, array in columns.items():
        if array.shape[:1] != (sum(rows),):
            raise ContractError(
                f"the policy returned {what} {key!r} of shape {list(array.shape)}; expected one "
                f"row for each of {sum(rows)}"
            )
    ends = np.cumsum(rows).tolist()
    return [
        {key: array[end - count : end].copy() for key, array in columns.items()}
        for end, count in zip(ends, rows, strict=True)
    ]


def writable(columns: Columns) -> Columns:
    """Returns columns that can be written to; those that came through Ray are read-only."""
    return {key: array if array.flags.writeable else array.copy() for key, array in columns.items()}
