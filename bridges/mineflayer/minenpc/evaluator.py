"""The evaluator of MineNPC-Task: conditions on what changed in the world, and the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.evaluators import WorldJudge, detail
from bridges.mineflayer.minenpc.predicates import PREDICATES, Condition, Places, parse_all
from bridges.mineflayer.minenpc.scene import case_of, factors
from bridges.mineflayer.minenpc.trace import Cell, Trace
from rollout.api import Columns, Evaluator, Frame, Outcome, Start, Verdict, option
from rollout.api.types import Bools, Floats
from rollout.errors import ConfigError

_NEVER = -1


@dataclass(frozen=True)
class MineNpc:
    """Success once all conditions hold for some time; invalid at a violation of the policy.

    Progress is the share of the conditions that hold. Needs an embedded world.
    """

    goal: tuple[str, ...] = option(
        (), "conditions, all of which have to hold; empty for those of the state"
    )
    places: Mapping[str, tuple[int, int, int]] = option(dict, "places that the goal names")
    settle: int = option(60, "how long they have to hold", unit="ticks")
    reward: float = option(1.0, "reward for the whole task, given in parts")

    def __post_init__(self) -> None:
        if self.settle < 0:
            raise ConfigError(f"settle: expected 0 ticks or more, got {self.settle}")
        self.conditions()

    def conditions(self) -> tuple[Condition, ...]:
        """Returns the conditions of the option ``goal``, read; raises like ``parse``."""
        points: dict[str, Cell] = {name: (at[0], at[1], at[2]) for name, at in self.places.items()}
        return parse_all(self.goal, Places({"P": (0, 64, 0), **points}))

    @property
    def requires(self) -> frozenset[str]:
        """No signals: the trace is in the details."""
        return frozenset()

    @property
    def factors(self) -> frozenset[str]:
        """The factors that decide what is asked for."""
        return frozenset() if self.goal else frozenset(factor.name for factor in factors())

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return MineNpcEvaluator(self, width)


class MineNpcEvaluator(WorldJudge):
    """Judges agents that are alone in their worlds.

    Attributes:
        traces: what each agent has done.
    """

    def __init__(self, options: MineNpc, width: int) -> None:
        super().__init__(width, 1, options.reward)
        self._settle, self._given = options.settle, options.conditions()
        self._conditions: list[tuple[Condition, ...]] = [self._given] * width
        self.traces = [Trace() for _ in range(width)]
        self._unbound: list[bool | None] = [None] * width
        self._prefers = [False] * width
        self._held: list[list[bool]] = [[] for _ in range(width)]
        self._since: NDArray[np.int64] = np.full(width, _NEVER, np.int64)
        self._tick: NDArray[np.int64] = np.zeros(width, np.int64)
        self._invalid: Bools = np.zeros(width, np.bool_)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        """Begins new episodes; see ``WorldJudge``."""
        for number, (row, start) in enumerate(zip(rows, starts, strict=True)):
            case = None if self._given else case_of(start.state.values)
            self._conditions[row] = self._given if case is None else case.conditions
            self._unbound[row] = None if case is None else case.unbound
            self._prefers[row] = case is not None and case.prefers
            self.traces[row] = Trace.begin(detail(frame, number))
            self._since[row], self._invalid[row] = _NEVER, False
            self._look(row, int(detail(frame, number).get("tick", 0)))

    def watch(self, rows: list[int], frame: Frame) -> None:
        """Adds a step to the traces; see ``WorldJudge``."""
        for row in rows:
            said = detail(frame, row)
            self.traces[row].add(said)
            self._look(row, int(said.get("tick", 0)))

    def _look(self, row: int, tick: int) -> None:
        trace = self.traces[row]
        self._held[row] = [each.holds(trace) for each in self._conditions[row]]
        self._tick[row] = tick
        if not all(self._held[row]):
            self._since[row] = _NEVER
        elif self._since[row] == _NEVER:
            self._since[row] = tick
        self._invalid[row] = bool(trace.violations)

    def share(self) -> NDArray[np.float64]:
        """Returns the share of the conditions that hold."""
        return np.array([sum(held) / max(1, len(held)) for held in self._held], np.float64)

    def decided(self, share: Floats, frame: Frame) -> tuple[Bools, Bools]:
        """Returns who has succeeded, and whose run is invalid."""
        settled = (self._since != _NEVER) & (self._tick - self._since >= self._settle)
        return settled & ~self._invalid, self._invalid.copy()

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the verdict on a step; a failure with a violation is ``Outcome.INVALID``."""
        verdict = super().judge(actions, frame)
        failed = self._outcome == Outcome.FAILURE
        self._outcome = np.where(failed & self._invalid, np.int8(Outcome.INVALID), self._outcome)
        return Verdict(verdict.reward, verdict.progress, self._outcome)

    def notes(self, row: int) -> dict[str, Any]:
        """Returns what reports tell of an episode; see ``rollout.evaluate.notes``."""
        outcome = self._outcome[row]
        failed = outcome not in (Outcome.SUCCESS, Outcome.INVALID)
        return {
            "why": [] if outcome == Outcome.SUCCESS else self.why(row),
            "class": self.failure(row) if failed else "",
            "clarified": self.clarified(row),
            "preferred": self.preferred(row),
        }

    def why(self, row: int) -> list[str]:
        """Returns why a run is no success: its violation, or the conditions that do not hold."""
        trace = self.traces[row]
        if trace.violations:
            return [f"violation of {each.get('rule')}" for each in trace.violations]
        held = zip(self._conditions[row], self._held[row], strict=True)
        return [condition.text for condition, holds in held if not holds]

    def clarified(self, row: int) -> bool | None:
        """Returns whether a question was asked exactly if one was needed; None if nobody knows."""
        unbound = self._unbound[row]
        return None if unbound is None else self.traces[row].questions == int(unbound)

    def preferred(self, row: int) -> bool | None:
        """Returns whether it took what the player's profile prefers; None without such a list."""
        held = zip(self._conditions[row], self._held[row], strict=True)
        about = [holds for condition, holds in held if _TAKEN & set(condition.predicates)]
        return all(about) if self._prefers[row] else None

    def failure(self, row: int) -> str:
        """Returns the class of failures of a run that is no success, one of the paper's five.

        The first condition that does not hold decides it. A run in which a program ended with an
        error, and nothing else was done, failed in its code.
        """
        trace = self.traces[row]
        if not any(event.get("type") != "chat" for event in trace.own(*_DEEDS)):
            return "code or execution"
        held = zip(self._conditions[row], self._held[row], strict=True)
        missed = (condition for condition, holds in held if not holds)
        kinds = Counter(PREDICATES[each].failure for one in missed for each in one.predicates)
        return next(iter(kinds), "code or execution")


_TAKEN = {"took", "took_other"}
_DEEDS = ("dug", "placed", "crafted", "smelted", "opened", "took", "put", "tossed", "picked", "ate")
