"""Small tables of results as Parquet files, written atomically.

A table is a set of columns of one length: numbers, truth values or text. NaN stays NaN; text is
UTF-8. The descriptions of the columns are in the metadata of the schema, as in the trajectory
store. The same table and metadata give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rollout.data.layout import full_disk_named
from rollout.data.shard import UNREADABLE
from rollout.errors import DatasetError
from rollout.files import replacing, require_file

Table: TypeAlias = Mapping[str, NDArray[Any]]
"""Columns by name, all of one length."""

_ABOUT = b"gamut.table"


def rows_of(table: Table) -> int:
    """Returns the number of rows.

    Raises:
        ValueError: a column is not one-dimensional, or the columns differ in length.
    """
    lengths = {}
    for name, column in table.items():
        if np.ndim(column) != 1:
            raise ValueError(
                f"column {name!r}: expected one dimension, got shape {np.shape(column)}; make one "
                f"column of each entry"
            )
        lengths[name] = len(column)
    if len(set(lengths.values())) > 1:
        raise ValueError(f"expected columns of one length, got {lengths}")
    return next(iter(lengths.values()), 0)


def concatenate(tables: Iterable[Table]) -> dict[str, NDArray[Any]]:
    """Returns the concatenated rows of several tables; no columns if there is no table.

    Raises:
        ValueError: a table has other columns than the first, or columns of unequal length.
    """
    parts = list(tables)
    for part in parts:
        rows_of(part)
        if part.keys() != parts[0].keys():
            raise ValueError(
                f"expected the columns {', '.join(parts[0])}, got {', '.join(part)}; only tables "
                f"with the same columns can be concatenated"
            )
    names = list(parts[0]) if parts else []
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def write_table(
    path: Path | str,
    table: Table,
    metadata: Mapping[str, Any] | None = None,
    *,
    docs: Mapping[str, str] | None = None,
) -> None:
    """Writes a table atomically, replacing an existing file.

    Args:
        path: the file.
        table: columns of numbers, truth values or text.
        metadata: JSON-able data, stored as JSON in the metadata of the schema, ``gamut.table``.
        docs: descriptions of the columns, by name.

    Raises:
        ValueError: columns of unequal length, or of another type.
        DiskFullError: the disk is full.
        OSError: it cannot be written.
    """
    path = Path(path)
    rows_of(table)
    about = {name: {"doc": doc} for name, doc in (docs or {}).items() if doc}
    columns = {name: _to_arrow(name, np.asarray(column)) for name, column in table.items()}
    schema = pa.schema(
        [
            pa.field(name, column.type, nullable=False, metadata=about.get(name))
            for name, column in columns.items()
        ],
        metadata={_ABOUT: json.dumps(dict(metadata or {}), sort_keys=True).encode()},
    )
    with full_disk_named(path, "writing"), replacing(path) as new:
        pq.write_table(
            pa.table(columns, schema=schema),
            new,
            compression="zstd",
            version="2.6",
            write_page_checksum=True,
        )


def read_table(path: Path | str) -> dict[str, NDArray[Any]]:
    """Returns the columns of a table, in the order they were written; text as ``str`` arrays.

    Raises:
        DatasetError: there is no such file, it is damaged, or a column is of another kind.
    """
    path = Path(path)
    try:
        require_file(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
    except FileNotFoundError as error:
        raise DatasetError(f"there is no table {path}; check the path") from error
    except UNREADABLE as error:
        raise DatasetError(
            f"{path} is not a table, or damaged: {error}; write it again, or restore it from a copy"
        ) from error
    return {name: _from_arrow(path, name, table[name]) for name in table.column_names}


def _to_arrow(name: str, column: NDArray[Any]) -> pa.Array:
    if column.dtype.kind in "biuf":
        return pa.array(column)
    texts = column.tolist()
    if column.dtype.kind in "UTO" and all(isinstance(text, str) for text in texts):
        return pa.array(texts, pa.string())
    kinds = sorted({type(entry).__name__ for entry in texts})
    raise ValueError(
        f"column {name!r}: expected numbers, truth values or text, got {column.dtype} "
        f"({', '.join(kinds[:5])})"
    )


def _from_arrow(path: Path, name: str, column: pa.ChunkedArray) -> NDArray[Any]:
    kind = column.type
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    whole = texts or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    # Of floating numbers, nothing there is NaN.
    if pa.types.is_floating(kind) or (whole and not column.null_count):
        return np.array(column.to_pylist(), np.str_) if texts else np.asarray(column.to_numpy())
    empty = f" with {column.null_count} empty entries" if column.null_count else ""
    raise DatasetError(
        f"{path}: column {name!r} is {kind}{empty}, expected numbers, truth values or text in "
        f"every row; it is not a table of results"
    )
