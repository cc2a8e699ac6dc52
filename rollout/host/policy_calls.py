"""Calls of a policy: joined for several instances, in threads if decisions take long, and checked.

``PolicyCaller`` makes one call for all instances that wait. ``ThreadedCalls`` makes a call in a
thread for each of them, while the other instances continue.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    Array,
    BridgeSpec,
    Columns,
    Decision,
    Details,
    Policy,
    Start,
    calls_of,
    check_columns,
    clean_texts,
    leaf_dtype,
    leaf_shape,
)
from rollout.api.types import Bools
from rollout.errors import (
    BudgetExhausted,
    ContractError,
    PluginCode,
    PluginError,
    PolicyUnavailable,
    place_of,
)
from rollout.host.instances import Event
from rollout.host.pool import Pool

POLICY_CODE = PluginCode("the policy")
"""The context of every call of a policy."""

_READ_ONLY = "read-only"  # in the ValueError of numpy
_LOOK_S = 1.0  # between looks at decisions that are pending


def policy_name(policy: Policy) -> str:
    """Returns the name of a policy for messages: its attribute ``name``, or that of its class."""
    kind = type(policy)
    return str(getattr(policy, "name", "")) or f"{kind.__module__}.{kind.__qualname__}"


def read_only(array: Array) -> Array:
    """Returns a view of an array that cannot be written to."""
    view = array[...]
    view.flags.writeable = False
    return view


def call_policy(policy: Policy, inputs: PolicyInput) -> Decision:
    """Returns the decision of a policy, whose observations must be read-only.

    Raises:
        PluginError: it raised an error, e.g. because it wrote into its observations.
    """
    try:
        with POLICY_CODE:
            return policy.act(
                inputs.observations, inputs.memory, details=inputs.details, explore=inputs.explore
            )
    except PluginError as error:
        cause = error.__cause__
        if not isinstance(cause, ValueError) or _READ_ONLY not in str(cause):
            raise
        explained = PluginError(
            f"the policy {policy_name(policy)} tried to write into an array that is read-only "
            f"({place_of(cause)}); its observations are what is recorded: write into a copy, as in "
            f"x = x / 255 instead of x /= 255"
        )
        explained.trace = error.trace
        raise explained from cause


class ActionCheck:
    """Checks that a policy's actions are actions of the game.

    Args:
        space: the action space.
        width: number of rows.
        policy: the policy, which messages name.
    """

    def __init__(self, space: spaces.Dict, width: int, policy: Policy) -> None:
        self._space, self._width, self._policy = space, width, policy
        self._columns = [_ActionColumn(key, leaf, width) for key, leaf in space.spaces.items()]

    def __call__(self, actions: Columns, active: Bools) -> None:
        """Checks the actions of one step.

        Args:
            actions: ``{key: (width, ...)}``.
            active: slots that play, ``(width,)``; the actions of others do nothing.

        Raises:
            SpaceError: a column is missing, or has another shape or dtype.
            PluginError: a value is outside of the space.
        """
        for column in self._columns:
            if not column.contains(actions.get(column.key)):
                self._require_valid(column, actions, active)

    def _require_valid(self, column: _ActionColumn, actions: Columns, active: Bools) -> None:
        check_columns(self._space, actions, (self._width,))
        array = actions[column.key]
        wrong = ~((array >= column.low) & (array <= column.high))
        rows = np.flatnonzero(wrong.reshape(self._width, -1).any(1) & active)
        if not len(rows):
            return
        at = tuple(np.argwhere(wrong[rows[0]])[0].tolist())
        where = f" at {list(at)}" if at else ""
        advice = "; numpy.clip keeps it in bounds" if isinstance(column.space, spaces.Box) else ""
        raise PluginError(
            f"the policy {policy_name(self._policy)} chose {array[(rows[0], *at)]}{where} for "
            f"{column.key!r} in slot {rows[0]}; expected a value of {column.space}{advice}"
        )


class _ActionColumn:
    """One column of an action space.

    Attributes:
        key: its name.
        space: its space.
        low: lowest value of each place.
        high: highest value of each place.
    """

    def __init__(self, key: str, space: spaces.Space[Any], width: int) -> None:
        self.key, self.space = key, space
        self._shape, self._dtype = (width, *leaf_shape(space)), leaf_dtype(space)
        self._free = isinstance(space, spaces.Text)
        self.low, self.high = _bounds(space)
        self._one = None if self._shape != (1,) else (self.low.item(), self.high.item())
        sides = np.empty((2, *self._shape), np.bool_)
        self._above, self._below, self._sides = sides[0], sides[1], sides
        self._inside = np.ones_like(sides).tobytes()

    def contains(self, array: Array | None) -> bool:
        """Returns whether the array has the right shape and dtype and all values are inside."""
        if (
            not isinstance(array, np.ndarray)
            or array.shape != self._shape
            or array.dtype != self._dtype
        ):
            return False
        if self._free:
            return True
        if self._one is not None:  # several times as fast for one slot
            return bool(self._one[0] <= array.item() <= self._one[1])
        np.greater_equal(array, self.low, self._above)
        np.less_equal(array, self.high, self._below)
        return self._sides.tobytes() == self._inside


def _bounds(space: spaces.Space[Any]) -> tuple[Array, Array]:
    dtype = leaf_dtype(space)
    if isinstance(space, spaces.Text):
        return np.zeros(()), np.zeros(())
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.Discrete):
        first, count = int(space.start), int(space.n)
        return np.array(first, dtype), np.array(first + count - 1, dtype)
    if isinstance(space, spaces.MultiDiscrete):
        least = np.asarray(space.start, dtype)
        return least, np.asarray(least + space.nvec - 1, dtype)
    return np.zeros(leaf_shape(space), dtype), np.ones(leaf_shape(space), dtype)


@dataclass(slots=True)
class PolicyInput:
    """The arguments of ``Policy.act``.

    Attributes:
        observations: ``{key: (B, ...)}``.
        memory: memory of the same slots.
        details: one mapping per row, or None.
        explore: whether to sample.
        start: the start of an episode of the caller. A policy may learn the layout of its memory
            from its first ``initial_memory``; a server that continues an episode calls it with this
            start first.
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
        """Key that is equal for inputs which one call of the policy can answer."""
        layout = _layout(self.observations), _layout(self.memory)
        return self.explore, self.details is None, layout


def _layout(columns: Columns) -> Hashable:
    return tuple(sorted((key, a.dtype.str, a.shape[1:]) for key, a in columns.items()))


class PolicyCaller:
    """Calls a policy in this thread, for all slots of the instances that wait.

    Attributes:
        since: when the current call began, monotonic seconds; None while none runs.
        has_begun: whether episodes have begun.
    """

    def __init__(self, policy: Policy, spec: BridgeSpec, width: int) -> None:
        self.since: float | None = None
        self.has_begun = False
        self._policy = policy
        self._check_actions = ActionCheck(spec.action_space, width, policy)
        self._checked = False
        columns = [leaf_dtype(leaf) for leaf in spec.action_space.spaces.values()]
        columns += [np.dtype(column.dtype) for column in policy.extras.values()]
        self._texts = np.dtype(object) in columns

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the initial memory of episodes."""
        self.since, self.has_begun = time.monotonic(), True
        try:
            with POLICY_CODE:
                return self._policy.initial_memory(starts)
        finally:
            self.since = None

    def decide(self, inputs: Sequence[PolicyInput]) -> list[Decision]:
        """Returns the decision for the slots of each instance."""
        self.since = time.monotonic()
        try:
            if len(inputs) > 1:
                return act_together(self._policy, inputs)
            return [call_policy(self._policy, inputs[0])]
        finally:
            self.since = None

    def check(self, decision: Decision, active: Bools) -> None:
        """Checks a decision for an instance, before it is played and recorded.

        Args:
            decision: the decision for all ``B`` slots.
            active: slots that play, ``(B,)`` bool.

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

    def clean(self, decision: Decision) -> Decision:
        """Returns the decision with texts that are valid UTF-8; see ``clean_text``."""
        if not self._texts and decision.stops is None:
            return decision
        return replace(
            decision,
            actions={key: clean_texts(array) for key, array in decision.actions.items()},
            extras={key: clean_texts(array) for key, array in decision.extras.items()},
            stops=clean_texts(decision.stops),
        )


def act_together(policy: Policy, inputs: Sequence[PolicyInput]) -> list[Decision]:
    """Returns the decisions for inputs of one kind, by one call of the policy.

    Details may be missing in some of the inputs; their rows get empty mappings.

    Raises:
        ContractError: the policy did not return one row for each row of the inputs.
    """
    rows = [each.rows for each in inputs]
    details: list[Details] | None = None
    if any(each.details is not None for each in inputs):
        details = [entry for each in inputs for entry in each.details or [{}] * each.rows]
    observations = _join([each.observations for each in inputs])
    memory = writable(_join([each.memory for each in inputs]))
    for key, array in observations.items():
        observations[key] = read_only(array)
    joint = call_policy(policy, PolicyInput(observations, memory, details, inputs[0].explore))
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
    """Returns the concatenated rows."""
    if len(columns) == 1:
        return dict(columns[0])
    return {key: np.concatenate([c[key] for c in columns]) for key in columns[0]}


def split_rows(what: str, columns: Columns, rows: Sequence[int]) -> list[Columns]:
    """Returns a copy of each caller's rows, which remain valid after the next call.

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


class ThreadedCalls:
    """Calls a policy for single instances, several at a time, each in a thread.

    Only ``Policy.act`` is called in other threads; the methods of this class are not thread-safe.

    Args:
        policy: the policy; its ``act`` must be thread-safe.
        pool: the instances; its ``recv`` returns once a call has returned.
    """

    def __init__(self, policy: Policy, pool: Pool) -> None:
        self._policy, self._pool = policy, pool
        self._calls = min(calls_of(policy), pool.instances)
        self._inputs: SimpleQueue[tuple[int, PolicyInput] | None] = SimpleQueue()
        self._results: deque[tuple[int, Decision | BaseException]] = deque()
        # Instance and time by ticket, oldest first.
        self._pending: dict[int, tuple[int, float]] = {}
        self._ticket = 0
        self._threads = 0
        self._waitable, self._writer = os.pipe()
        pool.watch(self._waitable)
        self._closed = False

    @property
    def pending(self) -> int:
        """Number of instances that wait for a decision."""
        return len(self._pending)

    def submit(self, instance: int, inputs: PolicyInput) -> None:
        """Requests a decision; the columns must not change until it is collected."""
        self._ticket += 1
        self._pending[self._ticket] = (instance, time.monotonic())
        if self._threads < min(self._calls, len(self._pending)):
            self._begin_thread()
        self._inputs.put((self._ticket, inputs))

    def _begin_thread(self) -> None:
        self._threads += 1
        # A daemon: a call that hangs must not keep the process from ending.
        threading.Thread(target=self._serve, name="decision", daemon=True).start()

    def _serve(self) -> None:
        while (submitted := self._inputs.get()) is not None:
            ticket, inputs = submitted
            result: Decision | BaseException
            try:
                result = call_policy(self._policy, inputs)
            except BaseException as error:  # noqa: BLE001 - raised again where it is collected
                result = error
            if self._closed:
                return
            self._results.append((ticket, result))
            os.write(self._writer, b"!")

    def receive(self, timeout_s: float | None) -> list[Event]:
        """Returns the next events of the pool; none if a call of the policy returns first.

        Args:
            timeout_s: longest wait in seconds; None, or more than a second, waits for a second.
        """
        timeout_s = _LOOK_S if timeout_s is None else min(max(timeout_s, 0.0), _LOOK_S)
        if self._pool.busy:
            return self._pool.recv(timeout_s=timeout_s)
        select.select([self._waitable], [], [], timeout_s)
        return []

    def collect(self, limit_s: float) -> list[tuple[int, Decision | BudgetExhausted]]:
        """Returns instances with their decisions, without waiting.

        Those that have waited for longer than ``limit_s`` seconds get a ``PolicyUnavailable``.

        Raises:
            Exception: an error of the policy.
        """
        collected: list[tuple[int, Decision | BudgetExhausted]] = []
        while self._results:
            ticket, result = self._results.popleft()
            os.read(self._waitable, 1)
            pending = self._pending.pop(ticket, None)
            if pending is None:
                continue  # it was late
            if isinstance(result, BaseException) and not isinstance(result, BudgetExhausted):
                raise result
            collected.append((pending[0], result))
        for ticket, (instance, since) in list(self._pending.items()):
            if time.monotonic() - since <= limit_s:
                break
            del self._pending[ticket]
            # A call cannot be ended from outside, so another thread takes the place of its own.
            self._begin_thread()
            late = PolicyUnavailable(f"the policy did not decide within {limit_s:g} s")
            collected.append((instance, late))
        return collected

    def close(self) -> None:
        """Drops all decisions; threads end with their calls."""
        self._closed = True
        self._pending.clear()
        for _ in range(self._threads):
            self._inputs.put(None)
        os.close(self._waitable)
        # The writing end stays open: a call that is in progress may still write to it.
