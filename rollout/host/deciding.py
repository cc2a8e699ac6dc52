"""Asks a policy for the actions of the instances that wait for them, in one call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rollout.api import BridgeSpec, Columns, Decision, Details, Policy, Start, check_columns
from rollout.host.joining import filled, join_columns, join_details, part_of


@dataclass(slots=True)
class Question:
    """What the policy observes of one instance, one row per slot."""

    observations: Columns
    memory: Columns
    details: Sequence[Details | None] | None


class Decider:
    """A policy that decides for whole instances.

    Attributes:
        since: when the policy was asked, monotonic seconds; None once it has answered.
    """

    def __init__(self, policy: Policy, spec: BridgeSpec, width: int, *, explore: bool) -> None:
        self.since: float | None = None
        self._policy, self._spec, self._width, self._explore = policy, spec, width, explore
        self._checked = False

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the initial memory of episodes."""
        self.since = time.monotonic()
        try:
            return self._policy.initial_memory(starts)
        finally:
            self.since = None

    def decide(self, questions: Sequence[Question]) -> list[Decision]:
        """Returns a decision for each instance."""
        self.since = time.monotonic()
        try:
            if len(questions) > 1:
                return self._decide_together(questions)
            [one] = questions
            decision = self._policy.act(
                one.observations, one.memory, details=filled(one.details), explore=self._explore
            )
            if not self._checked:
                self._check(decision)
            return [decision]
        finally:
            self.since = None

    def _check(self, decision: Decision) -> None:
        """Checks the first decision, to distinguish a wrong policy from a crashing game."""
        check_columns(self._spec.action_space, decision.actions, (self._width,))
        missing = sorted(set(self._policy.extras) - set(decision.extras))
        if missing:
            raise KeyError(f"the policy declares the extras {missing} and does not return them")
        self._checked = True

    def _decide_together(self, questions: Sequence[Question]) -> list[Decision]:
        width = self._width
        joint = self._policy.act(
            join_columns([q.observations for q in questions]),
            join_columns([q.memory for q in questions]),
            details=join_details([filled(q.details) for q in questions], width),
            explore=self._explore,
        )
        parts = [slice(i * width, (i + 1) * width) for i in range(len(questions))]
        return [
            Decision(part_of(joint.actions, p), part_of(joint.memory, p), part_of(joint.extras, p))
            for p in parts
        ]
