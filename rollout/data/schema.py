"""Spaces <-> Arrow schema: the columns of a dataset and their contents.

A row is one step. A column is named by its role and key (``observation/rgb``), or by the role
alone when the key is the role (``observation``). Everything a reader needs is in the metadata of
the field: role, key, dtype, shape, codec, unit, doc and, for observations and actions, the space.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from gymnasium import spaces

from rollout.api import ColumnSpec, leaf_dtype, leaf_shape
from rollout.data.codec import JSON, PLAIN, Codec, numeric_codec
from rollout.data.space_json import space_from_json, space_to_json

OBSERVATION, ACTION, SIGNAL, EXTRA = "observation", "action", "signal", "extra"
FINAL = "final_observation"
OLDER = "older_frames"
STEP = "step"
DETAILS = "details"


@dataclass(frozen=True)
class Column:
    """One column of the data.

    Attributes:
        name: name in Arrow.
        role: observation, action, signal, extra, final_observation, older_frames, details or step.
        key: key within the role, as in the space or the fragment.
        dtype: numpy dtype name; ``string`` or ``timestamp`` for those.
        shape: shape of one row's value.
        unit: unit of the values.
        doc: meaning of the value.
        codec: encoding of a value.
        nullable: True if rows may have no value.
        space: JSON of the leaf space, None for other roles.
        stack: of the newest frames of a stack, the axis and the number of all frames.
    """

    name: str
    role: str
    key: str
    dtype: str
    shape: tuple[int, ...] = ()
    unit: str = ""
    doc: str = ""
    codec: Codec = PLAIN
    nullable: bool = False
    space: Mapping[str, Any] | None = None
    stack: tuple[int, int] | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of one decoded value; 32 for strings."""
        if self.dtype in ("string", "timestamp"):
            return 32 if self.dtype == "string" else 8
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column in Arrow."""
        if self.dtype == "string":
            return pa.string()
        if self.dtype == "timestamp":
            return pa.timestamp("us", tz="UTC")
        element = pa.from_numpy_dtype(np.dtype(self.dtype))
        if self.codec.name == "plain":
            return element
        if self.codec.name == "list":
            inner = pa.field("element", element, nullable=False)
            return pa.list_(inner) if self.nullable else pa.list_(inner, self.shape[0])
        if self.codec.name == "raw" and not self.nullable:
            return pa.binary(self.row_bytes)
        # A nullable fixed-size binary would spend its width on every row without a value.
        return pa.binary()

    @property
    def is_narrow(self) -> bool:
        """True if it has statistics, so that filters may use it without reading large values."""
        return self.codec.name == "plain" and not self.nullable

    def field(self) -> pa.Field:
        """Returns the Arrow field, with everything about the column in its metadata."""
        about = {"role": self.role, "key": self.key, **self.describe()}
        about |= {"shape": json.dumps(list(self.shape))}
        del about["name"]
        if self.space is not None:
            about["space"] = json.dumps(self.space)
        if self.stack is not None:
            about["stack"] = json.dumps(dict(zip(("axis", "frames"), self.stack, strict=True)))
        return pa.field(self.name, self.arrow_type, nullable=self.nullable, metadata=about)

    def describe(self) -> dict[str, Any]:
        """Returns the column as JSON-able data, for people and for comparison."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "codec": str(self.codec),
            "unit": self.unit,
            "doc": self.doc,
        }

    def short(self) -> str:
        """Returns dtype, shape, codec, unit and bounds in one phrase, for messages."""
        text = f"{self.dtype}{list(self.shape)} as {self.codec}"
        text += f" in {self.unit}" if self.unit else ""
        text += f", newest of {self.stack[1]} frames" if self.stack else ""
        return text + (f", {space_from_json(self.space)}" if self.space is not None else "")


def column_name(role: str, key: str) -> str:
    """Returns the Arrow name of a key of a role."""
    return role if key == role else f"{role}/{key}"


IDENTITY = (
    Column("episode", STEP, "episode", "int64", doc="number of the episode in its run"),
    Column("attempt", STEP, "attempt", "int16", doc="number of earlier, lost attempts"),
    Column("step", STEP, "step", "int32", unit="steps", doc="number of the step, from 0"),
    Column("instance", STEP, "instance", "int32", doc="game instance that played it"),
    Column("slot", STEP, "slot", "int32", doc="seat in the instance"),
    Column("state", STEP, "state", "string", doc="index of the start state, decimal digits"),
    Column("state_set", STEP, "state_set", "string", doc="set the start state was drawn from"),
    Column("task", STEP, "task", "string", doc="name of the task"),
    Column("policy", STEP, "policy", "string", doc="name of the policy"),
    Column("seed", STEP, "seed", "int64", doc="randomness of the episode beyond its state"),
    Column("version", STEP, "version", "int64", doc="number of the weights that chose the action"),
)
RESULT = (
    Column("reward", STEP, "reward", "float32", doc="reward of the action"),
    Column("progress", STEP, "progress", "float32", doc="share of the task done, NaN if undefined"),
    Column("outcome", STEP, "outcome", "int8", doc="0 running, 1 success, 2 failure"),
    Column("tick", STEP, "tick", "int64", unit="ticks", doc="game time after the action"),
    Column("first", STEP, "first", "bool", doc="first step of its episode"),
    Column("terminated", STEP, "terminated", "bool", doc="the game or the task ended it here"),
    Column("truncated", STEP, "truncated", "bool", doc="a limit cut it here"),
    Column("lost", STEP, "lost", "bool", doc="our machinery failed after this step"),
    Column("wall_time", STEP, "wall_time", "timestamp", unit="us", doc="when the result came"),
    Column("latency", STEP, "latency", "float32", unit="s", doc="time the game took for the step"),
)


def leaf_column(role: str, key: str, leaf: spaces.Space[Any], doc: str) -> Column:
    """Returns the column of a leaf of an observation or action space."""
    name, about = column_name(role, key), space_to_json(leaf)
    if isinstance(leaf, spaces.Text):
        return Column(name, role, key, "string", doc=doc, space=about)
    dtype, shape = leaf_dtype(leaf).name, leaf_shape(leaf)
    codec = numeric_codec(name, dtype, shape)
    return Column(name, role, key, dtype, shape, doc=doc, codec=codec, space=about)


def spec_column(role: str, key: str, spec: ColumnSpec) -> Column:
    """Returns the column of a signal or an extra; objects are stored as JSON."""
    name, dtype, shape = column_name(role, key), np.dtype(spec.dtype).name, tuple(spec.shape)
    if dtype == "object":
        return Column(name, role, key, "string", unit=spec.unit, doc=spec.doc, codec=JSON)
    codec = numeric_codec(name, dtype, shape)
    return Column(name, role, key, dtype, shape, spec.unit, spec.doc, codec)


def json_column(name: str, doc: str) -> Column:
    """Returns a column of data without a fixed shape."""
    return Column(name, DETAILS, name, "string", doc=doc, codec=JSON, nullable=True)
