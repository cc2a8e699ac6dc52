"""The conformance suite of policies."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rollout.api import (
    CALLS,
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Policy,
    PolicyRecipe,
    Start,
    Task,
    check_columns,
    figures_of,
    sample,
)
from rollout.errors import ContractError, SpaceError
from rollout.testing.compare import check_declared, check_outside, random_start, same
from rollout.testing.report import Report, Skipped, Suite, require

BATCHES = (1, 3, 17)
_STEPS = 5


@dataclass
class _Case:
    """A recipe under test, with generated observations."""

    recipe: PolicyRecipe
    spec: BridgeSpec
    task: Task
    seed: int

    def build(self) -> Policy:
        return self.recipe.build(self.spec, self.task, seed=self.seed)

    @cached_property
    def policy(self) -> Policy:
        return self.build()

    def starts(self, batch: int) -> list[Start]:
        rng = np.random.default_rng([self.seed, 1])
        return [random_start(self.task.state_space, rng, episode) for episode in range(batch)]

    def observations(self, batch: int, step: int) -> Columns:
        rng = np.random.default_rng([self.seed, 2, step])
        return sample(self.spec.observation_space, batch, rng)

    def play(self, policy: Policy, batch: int, *, explore: bool) -> list[Decision]:
        """Plays a few steps and passes the memory on, as a host does."""
        memory = policy.initial_memory(self.starts(batch))
        decisions = []
        for step in range(_STEPS):
            observations = self.observations(batch, step)
            decision = policy.act(observations, memory, details=None, explore=explore)
            memory = decision.memory
            decisions.append(copy.deepcopy(decision))
        return decisions


def check_policy(
    recipe: PolicyRecipe, spec: BridgeSpec, task: Task, *, seed: int = 0, timeout_s: float = 60.0
) -> Report:
    """Returns whether the policy keeps its contract in these spaces; no game is launched.

    Args:
        recipe: the policy recipe.
        spec: spec of the game; observations are drawn from its space.
        task: the task.
        seed: seed of the policy and of the observations.
        timeout_s: timeout of each check, in seconds.
    """
    checks = {
        "builds": _builds,
        "actions": _actions,
        "extras": _extras,
        "memory": _memory,
        "inputs are left as they are": _inputs_untouched,
        "same seed, same decisions": _same_seed,
        "rows are independent": _rows_independent,
        "figures": _figures,
    }
    suite = Suite(f"policy {type(recipe).__name__}", timeout_s)
    return suite.run(checks, _Case(recipe, spec, task, seed), required="builds")


def _builds(case: _Case) -> str:
    require(dataclasses.is_dataclass(case.recipe), f"{case.recipe!r} is not a dataclass")
    version: object = case.policy.version
    known = isinstance(version, int) and version >= 0
    require(known, f"version: expected 0 or more, got {version!r}")
    return f"{type(case.policy).__name__}, version {version}"


def _actions(case: _Case) -> str:
    for batch in BATCHES:
        for explore in (True, False):
            for decision in case.play(case.policy, batch, explore=explore):
                try:
                    check_columns(case.spec.action_space, decision.actions, (batch,))
                except SpaceError as error:
                    raise ContractError(f"actions of a batch of {batch}: {error}") from error
                check_outside("action", case.spec.action_space, decision.actions)
    return f"in their space for batches of {', '.join(map(str, BATCHES))}"


def _extras(case: _Case) -> str:
    declared = dict(case.policy.extras)
    for batch in BATCHES:
        for decision in case.play(case.policy, batch, explore=True):
            check_declared("extra", declared, decision.extras, batch)
    return ", ".join(declared) or "none declared, none delivered"


def _memory(case: _Case) -> str:
    columns = 0
    for batch in BATCHES:
        first = case.policy.initial_memory(case.starts(batch))
        shapes = {key: ColumnSpec(str(a.dtype), a.shape[1:]) for key, a in first.items()}
        check_declared("memory", shapes, first, batch)
        for decision in case.play(case.policy, batch, explore=True):
            check_declared("memory", shapes, decision.memory, batch)
        columns = len(shapes)
    return f"{columns} columns of constant shape"


def _inputs_untouched(case: _Case) -> str:
    batch = BATCHES[-1]
    memory = case.policy.initial_memory(case.starts(batch))
    for step in range(_STEPS):
        inputs = {"observation": case.observations(batch, step), "memory": memory}
        kept = copy.deepcopy(inputs)
        memory = case.policy.act(inputs["observation"], memory, details=None, explore=True).memory
        for what, columns in kept.items():
            require(columns.keys() == inputs[what].keys(), f"act changed the keys of {what}")
            for key, column in columns.items():
                require(same(column, inputs[what][key]), f"act changed the {what} {key!r}")
    return "unchanged"


def _same_seed(case: _Case) -> str:
    batch = BATCHES[-1]
    for explore in (True, False):
        pair = [case.play(case.build(), batch, explore=explore) for _ in range(2)]
        for step, (left, right) in enumerate(zip(*pair, strict=True)):
            found = _difference(left, right, exact=True)
            require(not found, f"two policies of one seed differ at step {step}: {found}")
    return f"{_STEPS} steps of {batch} rows, twice"


def _difference(left: Decision, right: Decision, *, exact: bool) -> str:
    for what in ("actions", "memory", "extras"):
        ours, theirs = getattr(left, what), getattr(right, what)
        for key in ours:
            if key == CALLS:
                continue  # they hold times
            if not _equal(ours[key], theirs[key], exact=exact):
                return f"{what}/{key}"
    return ""


def _equal(left: Array, right: Array, *, exact: bool) -> bool:
    if exact or not np.issubdtype(left.dtype, np.inexact):
        return same(left, right)
    # Another batch size changes the order of summation: that is rounding, not dependence.
    return bool(np.allclose(left, right, rtol=1e-3, atol=1e-4, equal_nan=True))


def _rows_independent(case: _Case) -> str:
    """Without exploration, rows give the same actions in any order and any batch."""
    batch, policy = BATCHES[-1], case.build()
    observations = case.observations(batch, 0)
    memory = policy.initial_memory(case.starts(batch))

    def act(rows: Sequence[int] | Array) -> Decision:
        return policy.act(_rows(observations, rows), _rows(memory, rows), details=None,
                          explore=False)  # fmt: skip

    everyone = np.arange(batch)
    whole = copy.deepcopy(act(everyone))
    if _difference(whole, act(everyone), exact=True):
        raise Skipped("draws its own random numbers even with explore=False")
    order = np.random.default_rng(case.seed).permutation(batch)
    for name, rows in (("another order", order), ("a batch of 3", order[:3])):
        got = act(rows)
        want = Decision(
            _rows(whole.actions, rows), _rows(whole.memory, rows), _rows(whole.extras, rows)
        )
        found = _difference(want, got, exact=False)
        require(not found, f"rows depend on their batch: in {name}, {found} differs")
    return f"the same in another order and in a batch of 3 of {batch}"


def _figures(case: _Case) -> str:
    found: Mapping[Any, Any] = figures_of(case.policy)
    for name, value in found.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        named = isinstance(name, str) and all(name.partition("/"))
        require(number and named, f"expected numbers by names as a/b, got {name!r}: {value!r}")
    return ", ".join(found) or "none"


def _rows(columns: Mapping[str, Any], rows: Sequence[int] | Array) -> Columns:
    return {key: column[np.asarray(rows)] for key, column in columns.items()}
