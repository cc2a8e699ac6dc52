"""Fragments -> Arrow rows: idle rows dropped, every episode's steps together and in order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.api import Array, Columns, Fragment
from rollout.data.codec import JSON, encode, encode_some
from rollout.data.manifest import Manifest
from rollout.data.schema import ACTION, DETAILS, EXTRA, FINAL, OBSERVATION, SIGNAL, Column
from rollout.data.stacks import FrameStack, follows
from rollout.errors import DatasetError

_FRAGMENT_COLUMNS = (
    *("version", "step", "reward", "progress", "outcome", "tick", "latency"),
    *("first", "terminated", "truncated", "lost"),
)

LossRecord = dict[str, Any]
"""One lost episode as JSON-able data: identity, phase, reason, steps and time."""


@dataclass(frozen=True)
class _Order:
    """The rows of a fragment that hold a step, slot after slot.

    ``t`` and ``b`` are None when the rows are those of the only slot, all of them: arrays are
    then used without a copy.
    """

    length: int
    t: NDArray[np.intp] | None
    b: NDArray[np.intp] | None

    @classmethod
    def of(cls, fragment: Fragment) -> _Order:
        valid = fragment.valid
        if fragment.width == 1 and valid.all():
            return cls(fragment.length, None, None)
        b, t = np.nonzero(valid.T)
        return cls(len(t), t, b)

    def take(self, array: Array) -> Array:
        """Returns ``(rows, ...)`` of an array ``(T, B, ...)`` or ``(T,)``."""
        if array.ndim == 1:
            return array if self.t is None else array[self.t]
        out: Array = array[:, 0] if self.t is None else array[self.t, self.b]
        return out

    def find(self, index: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """Returns the row of each ``(t, b)`` in ``index``, which must hold a step."""
        if self.t is None or self.b is None:
            return index[:, 0]
        keys = self.b * np.int64(1 << 40) + self.t
        return np.searchsorted(keys, index[:, 1] * np.int64(1 << 40) + index[:, 0])


class RowEncoder:
    """Turns fragments into rows of one dataset; the policy is recorded with every row."""

    def __init__(self, manifest: Manifest, policy: str) -> None:
        self.schema = manifest.schema
        self._types = {c.name: c.arrow_type for c in manifest.stored}
        self._stacks = manifest.frame_stacks
        self._task, self._policy = str(manifest.task["name"]), policy
        self._details = manifest.details
        self._by_role: dict[str, dict[str, Column]] = {
            role: {c.key: c for c in manifest.columns if c.role == role}
            for role in (OBSERVATION, ACTION, SIGNAL, EXTRA, FINAL)
        }

    def encode(self, fragment: Fragment) -> pa.RecordBatch:
        """Returns the steps of the fragment.

        Raises:
            DatasetError: its columns are not those of the dataset; every difference is named.
        """
        self._check(fragment)
        order = _Order.of(fragment)
        parts = self._identity(fragment, order)
        starts = order.take(fragment.start_index)
        begins = np.concatenate([[True], starts[1:] != starts[:-1]])[: len(starts)]
        for role, group in _groups(fragment).items():
            for key, column in self._by_role[role].items():
                kind = self._types[column.name]
                if column.name in self._stacks:
                    stack = self._stacks[column.name]
                    parts |= self._stacked(stack, group[key], fragment, order, begins)
                    continue
                parts[column.name] = encode(column.codec, kind, order.take(group[key]), begins)
        for name in _FRAGMENT_COLUMNS:
            parts[name] = pa.array(order.take(getattr(fragment, name)))
        micros = np.rint(order.take(fragment.wall_time) * 1e6).astype(np.int64)
        parts["wall_time"] = pa.array(micros)
        parts |= self._ends(fragment, order)
        arrays = [
            part if (part := parts[name]).type == kind else part.cast(kind)
            for name, kind in self._types.items()
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def losses(self, fragment: Fragment) -> list[LossRecord]:
        """Returns the episodes that were lost in the fragment."""
        return [
            {
                **{k: getattr(loss.start, k) for k in ("episode", "attempt", "state_set", "seed")},
                **{k: getattr(loss, k) for k in ("instance", "slot", "phase", "reason", "steps")},
                "state": str(loss.start.state.index),
                "task": self._task,
                "policy": self._policy,
                "time": time.time(),
            }
            for loss in fragment.losses
        ]

    def _stacked(
        self,
        stack: FrameStack,
        values: Array,
        fragment: Fragment,
        order: _Order,
        begins: NDArray[np.bool_],
    ) -> dict[str, pa.Array]:
        """The two columns of a stack of frames."""
        frames = stack.frames(values)
        newest = order.take(frames[:, :, -1])
        kept = np.flatnonzero(~order.take(follows(frames, fragment.start_index)))
        t = kept if order.t is None else order.t[kept]
        b = np.zeros_like(kept) if order.b is None else order.b[kept]
        older = encode_some(frames[t, b, :-1], kept, order.length)
        kind = self._types[stack.newest.name]
        return {
            stack.newest.name: encode(stack.newest.codec, kind, newest, begins),
            stack.older.name: older,
        }

    def _identity(self, fragment: Fragment, order: _Order) -> dict[str, pa.Array]:
        """Columns that identify the episode of a row."""
        starts, n = fragment.starts, order.length
        which = order.take(fragment.start_index)
        picked = pa.array(which)
        numbers: dict[str, Array] = {
            "episode": np.array([s.episode for s in starts], np.int64),
            "attempt": np.array([s.attempt for s in starts], np.int16),
            "seed": np.array([s.seed for s in starts], np.int64),
        }
        texts = {
            "state": [str(s.state.index) for s in starts],
            "state_set": [s.state_set for s in starts],
            "task": [self._task] * len(starts),
            "policy": [self._policy] * len(starts),
        }
        slots = np.zeros(n, np.int32) if order.b is None else order.b.astype(np.int32)
        return {
            **{name: pa.array(values[which]) for name, values in numbers.items()},
            **{k: _repeated(values, picked) for k, values in texts.items()},
            "instance": pa.array(np.full(n, fragment.instance, np.int32)),
            "slot": pa.array(slots),
        }

    def _ends(self, fragment: Fragment, order: _Order) -> dict[str, pa.Array]:
        """Columns that have a value only where an episode ends, and the details."""
        ends = order.find(fragment.final_index, fragment.width)
        if len(ends) == 0 and not self._details:
            names = [c.name for c in self._by_role[FINAL].values()]
            return {name: pa.nulls(order.length, self._types[name]) for name in names}
        index = _places(ends, order.length)
        parts = {}
        for key, column in self._by_role[FINAL].items():
            kind = self._types[column.name]
            if len(ends) == 0 or not fragment.final_observations:
                parts[column.name] = pa.nulls(order.length, kind)
            else:
                values = fragment.final_observations[key]
                parts[column.name] = encode(column.codec, kind, values).take(index)
        if self._details:
            none = pa.nulls(order.length, pa.string())
            rows, finals = _detail_rows(fragment.details, order), fragment.final_details
            parts[DETAILS] = none if rows is None else _texts(rows)
            parts["final_details"] = _texts(finals).take(index) if finals else none
        return parts

    def _check(self, fragment: Fragment) -> None:
        shape = (fragment.length, fragment.width)
        finals = len(fragment.final_index)
        wrong = []
        for role, group in _groups(fragment).items():
            wrong += _misfits(role, self._by_role[role], group, shape)
        if finals and fragment.final_observations:  # an imported episode may have none
            wrong += _misfits(FINAL, self._by_role[FINAL], fragment.final_observations, (finals,))
        ends = int(np.count_nonzero(fragment.done))
        if ends != finals:
            wrong.append(f"final_index lists {finals} ends of episodes, the masks {ends}")
        if wrong:
            raise DatasetError(
                "a fragment does not fit the dataset: "
                + "; ".join(wrong)
                + ". Record it into a separate dataset"
            )


def _repeated(texts: list[str], picked: pa.Array) -> pa.Array:
    """The texts at some places of a list."""
    if len(set(texts)) == 1:  # four times as fast
        return pa.repeat(pa.scalar(texts[0], pa.string()), len(picked))
    return pa.array(texts, pa.string()).take(picked)


def _places(rows: NDArray[np.int64], count: int) -> pa.Array:
    """Indices that ``take`` one value for each of some rows, and null for the others of ``count``.

    No Python per row, any type.
    """
    where = np.zeros(count, np.int64)
    where[rows] = np.arange(len(rows))
    absent = np.ones(count, bool)
    absent[rows] = False
    return pa.array(where, mask=absent)


def _groups(fragment: Fragment) -> dict[str, Columns]:
    """The columns of a fragment that have a row for every step, by role."""
    return {
        OBSERVATION: fragment.observations,
        ACTION: fragment.actions,
        SIGNAL: fragment.signals,
        EXTRA: fragment.extras,
    }


def _misfits(
    role: str, expected: Mapping[str, Column], group: Columns, leading: tuple[int, ...]
) -> list[str]:
    lines = []
    for key in expected.keys() | group.keys():
        if key not in group:
            lines.append(f"{role} {key!r} is missing")
        elif key not in expected:
            lines.append(f"{role} {key!r} is not a column of the dataset")
        else:
            column, array = expected[key], group[key]
            dtype = np.dtype(object if column.dtype == "string" else column.dtype)
            if array.dtype != dtype or array.shape != (*leading, *column.shape):
                lines.append(
                    f"{role} {key!r}: expected {dtype}{[*leading, *column.shape]}, "
                    f"got {array.dtype}{list(array.shape)}"
                )
    return sorted(lines)


def _detail_rows(details: Sequence[Sequence[Any]] | None, order: _Order) -> list[Any] | None:
    if details is None:
        return None
    if order.t is None or order.b is None:
        return [row[0] for row in details]
    return [details[t][b] for t, b in zip(order.t.tolist(), order.b.tolist(), strict=True)]


def _texts(values: Sequence[Any]) -> pa.Array:
    boxed: Array = np.fromiter(values, dtype=object, count=len(values))
    return encode(JSON, pa.string(), boxed)
