"""The episode index, made from the steps alone.

A *run* is consecutive rows of a shard with steps of one episode; runs are found in a few narrow
columns, without Python per row. Those of the same episode and attempt are put together, over
shards, into episodes; those that ended are rows of the index, and the rest stay *open*. An episode
that misses steps, or has a step twice, is damaged: it is never a row of the index, and ``doctor``
names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rollout.api import Array, Columns
from rollout.data.rows import LossRecord
from rollout.files import parse_json

_ENDS = ("", "terminated", "truncated", "lost")
_LOST = _ENDS.index("lost")

RUN_COLUMNS = (
    *("episode", "attempt", "step", "instance", "slot"),
    *("state", "state_set", "task", "policy", "seed", "version"),
    *("reward", "progress", "outcome", "terminated", "truncated", "lost", "wall_time", "latency"),
)
"""Columns of the data that the index is made from."""

_TEXTS = ("state", "state_set", "task", "policy")
_DTYPES: Mapping[str, str] = {
    "episode": "int64",
    "attempt": "int16",
    "first_step": "int64",
    "length": "int64",
    "instance": "int32",
    "slot": "int32",
    "seed": "int64",
    "version_first": "int64",
    "version_last": "int64",
    "total_reward": "float64",
    "progress": "float32",
    "outcome": "int8",
    "end": "int8",
    "started": "int64",  # us
    "ended": "int64",  # us
    "whole": "bool",
    **dict.fromkeys(_TEXTS, "object"),
}

_AS_IN_DATA = "as in the data"
_PIECE = pa.struct([("shard", pa.int32()), ("row_start", pa.int64()), ("rows", pa.int64())])
_PIECES = pa.list_(pa.field("element", _PIECE, nullable=False))
INDEX_SCHEMA = pa.schema(
    [
        pa.field(name, kind, metadata={"unit": unit, "doc": doc})
        for name, kind, unit, doc in (
            ("episode", pa.int64(), "", _AS_IN_DATA),
            ("attempt", pa.int16(), "", _AS_IN_DATA),
            ("task", pa.string(), "", _AS_IN_DATA),
            ("state", pa.string(), "", "index of the start state, decimal digits"),
            ("state_set", pa.string(), "", _AS_IN_DATA),
            ("seed", pa.int64(), "", _AS_IN_DATA),
            ("policy", pa.string(), "", _AS_IN_DATA),
            ("version_first", pa.int64(), "", "weights that chose the first action"),
            ("version_last", pa.int64(), "", "weights that chose the last action"),
            ("instance", pa.int32(), "", _AS_IN_DATA),
            ("slot", pa.int32(), "", _AS_IN_DATA),
            ("length", pa.int64(), "steps", "completed steps"),
            ("total_reward", pa.float64(), "", "undiscounted sum of rewards"),
            ("progress", pa.float32(), "", _AS_IN_DATA),
            ("outcome", pa.int8(), "", "0 running, 1 success, 2 failure"),
            ("end", pa.string(), "", "terminated, truncated or lost; lost is never a result"),
            ("seconds", pa.float64(), "s", "from the first observation to the end"),
            ("started", pa.timestamp("us", tz="UTC"), "", "when the first action was sent"),
            ("phase", pa.string(), "", "of a lost episode: what was being done"),
            ("reason", pa.string(), "", "of a lost episode: what went wrong"),
            ("pieces", _PIECES, "", "where its steps are: data shard number, first row, rows"),
        )
    ]
)


class Problem(NamedTuple):
    """One thing that is wrong with the steps of an episode, and the row where it was found."""

    episode: int
    attempt: int
    shard: int
    row: int
    what: str


@dataclass
class Runs:
    """Runs in the order of their rows; what is left open has one for each episode.

    Attributes:
        columns: one value of each key of ``_DTYPES`` for every run.
        places: ``(K, 5)`` int64: episode, attempt, shard, first row, rows of each stretch of rows.
    """

    columns: Columns = field(
        default_factory=lambda: {name: np.zeros(0, dtype) for name, dtype in _DTYPES.items()}
    )
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 5), np.int64))

    @classmethod
    def join(cls, parts: Sequence[Runs]) -> Runs:
        """Returns the runs of several parts, in order."""
        parts = [cls(), *parts]
        columns = {k: np.concatenate([part.columns[k] for part in parts]) for k in _DTYPES}
        return cls(columns, np.concatenate([part.places for part in parts]))

    def to_json(self) -> str:
        """Returns the runs as text."""
        runs = {k: [None if x != x else x for x in v.tolist()] for k, v in self.columns.items()}  # noqa: PLR0124
        return json.dumps({"runs": runs, "places": self.places.tolist()})

    @classmethod
    def from_json(cls, text: str) -> Runs:
        """Returns the runs of a text that ``to_json`` made."""
        data = parse_json(text)
        columns = {}
        for name, dtype in _DTYPES.items():
            values = data["runs"][name]
            nan = [np.nan if x is None else x for x in values] if dtype[0] == "f" else values
            columns[name] = np.array(nan, dtype)
        return cls(columns, np.array(data["places"], np.int64).reshape(-1, 5))


def find_runs(rows: pa.RecordBatch | pa.Table, shard: int, row_start: int) -> Runs:
    """Returns the runs in rows of a shard, of which ``row_start`` is the number of the first."""

    def values(name: str) -> Array:
        column = rows.column(name)
        column = column.cast(pa.int64()) if name == "wall_time" else column
        out: Array = column.to_numpy(zero_copy_only=False)
        return out

    count = rows.num_rows
    if count == 0:
        return Runs()
    episode, attempt, step = values("episode"), values("attempt"), values("step")
    end = values("terminated") + 2 * values("truncated").astype(np.int8) + 3 * values("lost")
    cut = (episode[1:] != episode[:-1]) | (attempt[1:] != attempt[:-1])
    cut |= (step[1:] != step[:-1] + 1) | (end[:-1] != 0)
    first = np.concatenate([[0], np.flatnonzero(cut) + 1])
    last = np.concatenate([first[1:], [count]]) - 1
    length = last - first + 1
    wall, version, at = values("wall_time"), values("version"), pa.array(first)
    latency = np.rint(values("latency")[first].astype(np.float64) * 1e6)
    runs = {
        "episode": episode[first],
        "attempt": attempt[first],
        "first_step": step[first],
        "length": length,
        "version_first": version[first],
        "version_last": version[last],
        "total_reward": np.add.reduceat(values("reward").astype(np.float64), first),
        "end": end[last],
        "started": wall[first] - np.nan_to_num(latency).astype(np.int64),
        "ended": wall[last],
        "whole": np.ones(len(first), bool),
    }
    for name in ("instance", "slot", "seed"):
        runs[name] = values(name)[first]
    for name in ("progress", "outcome"):
        runs[name] = values(name)[last]
    for name in _TEXTS:
        runs[name] = np.array(rows.column(name).take(at).to_pylist(), dtype=object)
    runs = {name: runs[name].astype(dtype) for name, dtype in _DTYPES.items()}
    spot = (np.full(len(first), shard), first + row_start, length)
    places = np.stack([runs["episode"], runs["attempt"], *spot], axis=1).astype(np.int64)
    return Runs(runs, places)


def put_together(
    before: Runs, found: Runs, losses: Sequence[LossRecord]
) -> tuple[pa.Table, Runs, list[Problem]]:
    """Returns the episodes that ended (``INDEX_SCHEMA``), those still open, and problems.

    Args:
        before: episodes left open by the shards before.
        found: runs of the next rows, in the order of the rows.
        losses: episodes that were lost among these rows.
    """
    both = Runs.join([before, found])
    runs, places = both.columns, both.places
    # Both sorts are stable: the runs of an episode stay in the order they were recorded in.
    order = np.lexsort((runs["attempt"], runs["episode"]))
    runs = {name: values[order] for name, values in runs.items()}
    places = places[np.lexsort((places[:, 1], places[:, 0]))]
    group, first = _groups(runs["episode"], runs["attempt"])
    place_group, _ = _groups(places[:, 0], places[:, 1])
    problems = _problems(runs, group, places, place_group)
    merged = _merge(runs, group, first)
    phase, reason, rowless = _apply_losses(merged, losses)
    done = merged["whole"] & (merged["end"] != 0)
    ended = {name: values[done] for name, values in merged.items()}
    table = _table(ended, phase[done], reason[done], places[done[place_group]])
    if rowless:
        table = pa.concat_tables([table, _rowless_table(rowless)])
    left = {name: values[~done] for name, values in merged.items()}
    return table, Runs(left, places[~done[place_group]]), problems


def _groups(episode: Array, attempt: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of the group of each sorted row, and the first row of each group."""
    if len(episode) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    new = np.concatenate([[True], (episode[1:] != episode[:-1]) | (attempt[1:] != attempt[:-1])])
    return np.cumsum(new) - 1, np.flatnonzero(new)


def _expected(runs: Columns, group: NDArray[np.int64]) -> tuple[Array, Array]:
    """The expected first step of each run, and whether its episode had already ended."""
    follows = np.concatenate([np.zeros(min(len(group), 1), bool), group[1:] == group[:-1]])
    next_step = np.concatenate([[0], runs["first_step"] + runs["length"]])[:-1]
    ended = np.concatenate([[0], runs["end"]])[:-1]
    return np.where(follows, next_step[: len(group)], 0), follows & (ended[: len(group)] != 0)


def _merge(runs: Columns, group: NDArray[np.int64], first: NDArray[np.int64]) -> Columns:
    """One run per episode. The runs are sorted by episode and attempt."""
    if len(first) == 0:
        return dict(runs)
    last = np.concatenate([first[1:], [len(group)]]) - 1
    expected, after_end = _expected(runs, group)
    fits = runs["whole"] & (runs["first_step"] == expected) & ~after_end
    at_last = ("version_last", "progress", "outcome", "end", "ended")
    merged = {name: values[last if name in at_last else first] for name, values in runs.items()}
    for name in ("length", "total_reward"):
        merged[name] = np.add.reduceat(runs[name], first)
    merged["whole"] = np.logical_and.reduceat(fits, first)
    return merged


def _problems(
    runs: Columns,
    group: NDArray[np.int64],
    places: NDArray[np.int64],
    place_group: NDArray[np.int64],
) -> list[Problem]:
    """Problems of runs that are consistent in themselves; the others were reported before."""
    expected, after_end = _expected(runs, group)
    found = []
    for i in np.flatnonzero(runs["whole"] & ((runs["first_step"] != expected) | after_end)):
        # Every run but the first of a group has exactly one place, so count from the end.
        back = np.searchsorted(group, group[i], side="right") - i
        place = places[np.searchsorted(place_group, group[i], side="right") - back]
        step, due = int(runs["first_step"][i]), int(expected[i])
        if after_end[i]:
            what = f"steps from {step} on come after the episode's end"
        elif step > due:
            what = f"steps {due} to {step - 1} are missing"
        else:
            what = f"step {step} is repeated; expected step {due}"
        episode, attempt, shard, row = (int(n) for n in place[:4])
        found.append(Problem(episode, attempt, shard, row, what))
    return found


def _apply_losses(
    merged: Columns, losses: Sequence[LossRecord]
) -> tuple[Array, Array, list[LossRecord]]:
    """Marks lost episodes; returns phase and reason of each, and the losses without a step."""
    phase, reason = (np.full(len(merged["episode"]), None, dtype=object) for _ in range(2))
    rowless: dict[tuple[int, int], LossRecord] = {}
    for loss in losses:
        key = (loss["episode"], loss["attempt"])
        same = (merged["episode"] == key[0]) & (merged["attempt"] == key[1])
        at = np.flatnonzero(same)
        if len(at) == 0:
            rowless[key] = loss
        else:
            merged["end"][at] = np.where(merged["end"][at] == 0, _LOST, merged["end"][at])
            phase[at], reason[at] = loss["phase"], loss["reason"]
    return phase, reason, list(rowless.values())


def _table(runs: Columns, phase: Array, reason: Array, places: NDArray[np.int64]) -> pa.Table:
    columns: dict[str, Any] = {
        name: pa.array(runs[name].tolist() if name in _TEXTS else runs[name])
        for name in (*_TEXTS, *_DTYPES)
        if name in INDEX_SCHEMA.names
    }
    names = np.array(_ENDS, dtype=object)
    columns["end"] = names[runs["end"]].tolist()
    columns["seconds"] = (runs["ended"] - runs["started"]) / 1e6
    columns["started"] = pa.array(runs["started"]).cast(INDEX_SCHEMA.field("started").type)
    columns["phase"], columns["reason"] = phase.tolist(), reason.tolist()
    columns["pieces"] = _pieces(places)
    return pa.table([columns[name] for name in INDEX_SCHEMA.names], schema=INDEX_SCHEMA)


def open_table(runs: Runs) -> pa.Table:
    """Returns the episodes of open runs (``INDEX_SCHEMA``); the end is unfinished or damaged."""
    nothing = np.full(len(runs.columns["episode"]), None, object)
    table = _table(runs.columns, nothing, nothing, runs.places)
    at = INDEX_SCHEMA.get_field_index("end")
    ends = pa.array(np.where(runs.columns["whole"], "unfinished", "damaged").tolist(), pa.string())
    return table.set_column(at, INDEX_SCHEMA.field(at), ends)


def _pieces(places: NDArray[np.int64]) -> pa.Array:
    """Positions of sorted episodes as one list per episode, adjacent ones merged."""
    group, first = _groups(places[:, 0], places[:, 1])
    if len(group) == 0:
        return pa.array([], _PIECES)
    shard, row, rows = places[:, 2], places[:, 3], places[:, 4]
    joins = (group[1:] == group[:-1]) & (shard[1:] == shard[:-1])
    joins &= row[1:] == row[:-1] + rows[:-1]
    head = np.flatnonzero(np.concatenate([[True], ~joins]))
    parts = [shard[head].astype(np.int32), row[head], np.add.reduceat(rows, head)]
    offsets = np.concatenate([np.searchsorted(head, first), [len(head)]]).astype(np.int32)
    pieces = pa.StructArray.from_arrays([pa.array(p) for p in parts], names=_PIECE.names)
    return pa.ListArray.from_arrays(pa.array(offsets), pieces, type=_PIECES)


def _rowless_table(losses: Sequence[LossRecord]) -> pa.Table:
    """Episodes that were lost before their first step."""
    same = ("episode", "attempt", "task", "state", "state_set", "seed", "policy", "instance")
    rows = [
        {
            **{name: loss[name] for name in (*same, "slot", "phase", "reason")},
            "version_first": -1,
            "version_last": -1,
            "length": 0,
            "total_reward": 0.0,
            "progress": float("nan"),
            "outcome": 0,
            "end": "lost",
            "seconds": 0.0,
            "started": round(loss["time"] * 1e6),
            "pieces": [],
        }
        for loss in losses
    ]
    return pa.Table.from_pylist(rows, schema=INDEX_SCHEMA)


def check_index(index: pa.Table) -> None:
    """Checks that the episodes of an index have as many rows as steps.

    Raises:
        ValueError: one has not, or a value is missing.
    """
    known = [n for n in index.column_names if n not in ("phase", "reason")]
    missing = [n for n in known if index[n].null_count]
    lists = index["pieces"].combine_chunks()
    pieces = lists.flatten()
    if missing or any(pieces.field(n).null_count for n in ("shard", "row_start", "rows")):
        raise ValueError(f"it has empty entries: {missing or 'pieces'}")
    start, rows = (pieces.field(n).to_numpy() for n in ("row_start", "rows"))
    owner = np.repeat(np.arange(len(index)), pc.list_value_length(lists).to_numpy())
    counted = np.bincount(owner, rows, minlength=len(index))
    if (rows < 1).any() or (start < 0).any() or (counted != index["length"].to_numpy()).any():
        raise ValueError("the lengths of its episodes are not those of their pieces")


def same_index(one: pa.Table, other: pa.Table) -> bool:
    """Returns whether two indexes have the same episodes; NaN equals NaN here."""
    return one.num_rows == other.num_rows and all(
        np.array_equal(a.to_numpy(), b.to_numpy(), equal_nan=True)
        if pa.types.is_floating(a.type)
        else a.equals(b)
        for a, b in zip(one.columns, other.columns, strict=True)
    )
