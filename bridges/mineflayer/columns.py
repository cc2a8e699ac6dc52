"""The columns of a frame: their position in the bytes that the game sends, and their arrays.

``game/observe/layout.json`` is the only source for both sides. A frame's bytes are its columns one
after the other, each ``rows`` rows in C order, without padding. The layout lists wide types before
narrow ones, so every column is aligned for any number of rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from gymnasium import spaces

from rollout.api import Array, Columns, ColumnSpec
from rollout.errors import ContractError, GameCrashed

LAYOUT = Path(__file__).with_name("game") / "observe" / "layout.json"

Role: TypeAlias = Literal["observation", "signal", "frame"]
ROLES: tuple[Role, ...] = ("observation", "signal", "frame")
OVER, TRUNCATED, TICK = "game_over", "game_truncated", "tick"
_FRAME = {OVER: "bool", TRUNCATED: "bool", TICK: "int64"}
_SAFE = 2**53 - 1
_DTYPES = ("float32", "int64", "int32", "int16", "uint8", "bool")


@dataclass(frozen=True)
class Column:
    """One column of the layout.

    Attributes:
        key: its name.
        role: whether it is an observation, a signal, or the status of a row.
        dtype: of its values.
        shape: of one row.
        low: lower bound; None for that of the type.
        high: upper bound; likewise.
        unit: of its values.
        doc: what the values mean.
    """

    key: str
    role: Role
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    low: float | None
    high: float | None
    unit: str = ""
    doc: str = ""

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.dtype.itemsize * prod(self.shape)

    def space(self) -> spaces.Box:
        """Returns the space of one row of an observation."""
        dtype: Any = self.dtype.newbyteorder("=").type
        low, high = (-np.inf, np.inf)
        if self.dtype.kind == "b":
            low, high = 0, 1
        elif self.dtype.kind in "iu":
            info = np.iinfo(dtype)
            # Not the bounds of int64, with which Gymnasium cannot sample: the exact integers of
            # JavaScript.
            low, high = max(int(info.min), -_SAFE), min(int(info.max), _SAFE)
        low = low if self.low is None else self.low
        high = high if self.high is None else self.high
        return spaces.Box(low, high, self.shape, dtype)

    def signal(self) -> ColumnSpec:
        """Returns the description of a signal."""
        return ColumnSpec(self.dtype.name, self.shape, self.unit, self.doc)


@lru_cache
def load_layout(path: Path = LAYOUT) -> tuple[Column, ...]:
    """Returns the columns of a layout file, in their order.

    Raises:
        ContractError: the file is not a layout; the message names the column.
    """
    return parse_layout(json.loads(path.read_text()))


def parse_layout(data: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Returns the columns that a layout lists; raises like ``load_layout``."""
    columns = tuple(_column(entry) for entry in data)
    seen = {(column.role, column.key) for column in columns}
    if len(seen) != len(columns):
        raise ContractError("the layout names a column twice in one role")
    sizes = [column.dtype.itemsize for column in columns]
    if sizes != sorted(sizes, reverse=True):
        raise ContractError("the layout must list wide types before narrow ones")
    for key, dtype in _FRAME.items():
        found = [c for c in columns if c.role == "frame" and c.key == key]
        if not found or found[0].dtype.name != dtype or found[0].shape:
            raise ContractError(f"the layout needs a {dtype} column {key!r} of role 'frame'")
    return columns


def _column(entry: Mapping[str, Any]) -> Column:
    key, role, dtype = str(entry["key"]), entry["role"], entry["dtype"]
    if role not in ROLES or dtype not in _DTYPES:
        raise ContractError(f"the layout's column {key!r}: no role {role!r} or dtype {dtype!r}")
    shape = tuple(int(n) for n in entry["shape"])
    return Column(
        key,
        role,
        np.dtype(dtype).newbyteorder("<"),
        shape,
        entry.get("low"),
        entry.get("high"),
        str(entry.get("unit", "")),
        str(entry.get("doc", "")),
    )


def agreed(hello: Mapping[str, Any]) -> tuple[Column, ...]:
    """Returns the columns of a frame, whose layout must be the same in the game and here.

    Raises:
        GameCrashed: it has another layout.
    """
    layout = load_layout()
    try:
        sent = parse_layout(hello["layout"])
    except (ContractError, LookupError, TypeError, ValueError) as error:
        raise GameCrashed(f"the game's first message has no valid layout: {error}") from error
    if sent != layout:
        differing = [ours.key for ours, theirs in zip(layout, sent, strict=False) if ours != theirs]
        raise GameCrashed(
            f"the game has another layout than {LAYOUT}: {len(sent)} columns instead of "
            f"{len(layout)}, first difference in {differing[:1] or 'their number'}"
        )
    return layout


class Rows:
    """Arrays over the bytes of a frame.

    Attributes:
        data: the bytes; writing into them changes the arrays.
        observations: views by key, ``(rows, ...)``.
        signals: likewise.
        frame: likewise, of the role ``frame``.
    """

    def __init__(self, layout: Sequence[Column], rows: int, data: bytearray | None = None) -> None:
        size = rows * sum(column.row_bytes for column in layout)
        self.data = bytearray(size) if data is None else data
        if len(self.data) != size:
            raise ValueError(f"{len(self.data)} bytes instead of {size} for {rows} rows")
        views: dict[str, Columns] = {role: {} for role in ROLES}
        offset = 0
        for column in layout:
            count = rows * prod(column.shape)
            flat: Array = np.frombuffer(self.data, column.dtype, count, offset)
            views[column.role][column.key] = flat.reshape(rows, *column.shape)
            offset += rows * column.row_bytes
        self.observations, self.signals = views["observation"], views["signal"]
        self.frame = views["frame"]

    def arrays(self) -> list[Array]:
        """Returns every array, always in the same order."""
        return [*self.observations.values(), *self.signals.values(), *self.frame.values()]
