"""Columns as Hugging Face's ``datasets`` types them, in Arrow and in the metadata of a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollout.api import Array
from rollout.data.codec import Codec, decode, encode
from rollout.data.schema import Column
from rollout.errors import DatasetError

IMAGE = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
_SMALLEST = 8  # pixels of a side: smaller maps are numbers
_MOST_DIMENSIONS = 5
_PNG = Codec("png")


def is_image(column: Column) -> bool:
    """Whether a value is an image that PNG can store: uint8, H x W with 1, 3 or 4 channels."""
    shape = column.shape
    sides = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4))
    return column.dtype == "uint8" and sides and min(shape[:2]) >= _SMALLEST


def require_dimensions(columns: Sequence[Column], what: str) -> None:
    """Checks that no column has more dimensions than ``datasets`` knows; else a DatasetError."""
    for column in columns:
        if len(column.shape) > _MOST_DIMENSIONS:
            raise DatasetError(
                f"column {column.name} has shape {list(column.shape)}; {what} stores at most "
                f"{_MOST_DIMENSIONS} dimensions"
            )


def arrow_type(column: Column) -> pa.DataType:
    """Returns the type in Arrow; vectors are lists of fixed length, arrays nested lists."""
    if is_image(column):
        return IMAGE
    if column.dtype == "string":
        return pa.string()
    if column.dtype == "timestamp":
        return pa.float64()
    kind, shape = pa.from_numpy_dtype(np.dtype(column.dtype)), column.shape
    if math.prod(shape) == 1 and len(shape) < 2:
        return kind
    if len(shape) == 1:
        return pa.list_(kind, shape[0])
    for _ in shape:
        kind = pa.list_(kind)
    return kind


def feature(column: Column) -> dict[str, Any]:
    """Returns the feature as JSON-able data."""
    if is_image(column):
        return {"_type": "Image"}
    names = {"string": "string", "timestamp": "float64"}
    value = {"dtype": names.get(column.dtype, column.dtype), "_type": "Value"}
    shape = column.shape
    if math.prod(shape) == 1 and len(shape) < 2:
        return value
    if len(shape) == 1:
        return {"feature": value, "length": shape[0], "_type": "Sequence"}
    return {"shape": list(shape), "dtype": column.dtype, "_type": f"Array{len(shape)}D"}


def schema_of(columns: Mapping[str, Column]) -> pa.Schema:
    """Returns the schema of columns by their new names, with the features in its metadata."""
    features = {name: feature(column) for name, column in columns.items()}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    fields = [pa.field(name, arrow_type(column)) for name, column in columns.items()]
    return pa.schema(fields, metadata=about)


def is_png(column: Column) -> bool:
    """Whether the dataset itself stores a column as PNG files."""
    return is_image(column) and column.codec == _PNG


def encode_column(column: Column, values: Array, files: pa.Array | None = None) -> pa.Array:
    """Returns values ``(n, ...)`` of a column in its type; images become PNG files.

    Args:
        column: the column.
        values: its values; any for images that are given as files.
        files: PNG files of the values, if the dataset has them; see ``is_png``.
    """
    kind = arrow_type(column)
    if is_image(column):
        files = encode(_PNG, pa.binary(), values) if files is None else files
        return pa.StructArray.from_arrays([files, pa.nulls(len(files), pa.string())], IMAGE.names)
    if column.dtype == "string":
        # Data without a fixed shape becomes JSON; None stays null.
        return encode(column.codec, pa.string(), values)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), type=kind)
    if not pa.types.is_list(kind):
        return pa.array(values.reshape(-1), kind)
    nested = pa.array(values.reshape(-1))
    for size, count in zip(reversed(values.shape[1:]), _counts(values.shape), strict=True):
        offsets = pa.array(np.arange(0, (count + 1) * size, size, dtype=np.int32))
        nested = pa.ListArray.from_arrays(offsets, nested)
    return nested


def _counts(shape: tuple[int, ...]) -> list[int]:
    """Number of lists of each level, innermost first."""
    return [math.prod(shape[:level]) for level in range(len(shape) - 1, 0, -1)]


def decode_column(column: Column, values: pa.ChunkedArray) -> Array:
    """Returns the values ``(n, ...)`` of a column that ``encode_column`` wrote.

    Raises:
        DatasetError: they do not fit the column.
    """
    values, kind = values.combine_chunks(), arrow_type(column)
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
    if is_image(column):
        files = values.field("bytes")
        if values.null_count or files.null_count:
            raise DatasetError("an image is missing")
        return decode(_PNG, column.dtype, column.shape, files)
    if column.dtype == "string":
        return decode(column.codec, "string", (), values)
    while pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        if values.null_count:
            raise DatasetError("a value is missing")
        values = values.flatten()
    if values.null_count:
        raise DatasetError("a value is missing")
    dtype = np.float64 if column.dtype == "timestamp" else np.dtype(column.dtype)
    numbers = values.to_numpy(zero_copy_only=False)
    if not np.can_cast(numbers.dtype, dtype, "same_kind") and kind != values.type:
        raise DatasetError(f"expected {column.dtype}, got {values.type}")
    out: Array = numbers.astype(dtype, copy=False).reshape(-1, *column.shape)
    return out
