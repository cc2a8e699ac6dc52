"""Reads recorded actions from files and checks them against an action space."""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from rollout.api import Array, Columns, leaf_dtype, leaf_shape
from rollout.errors import ConfigError
from rollout.files import open_file, parse_json, read_document

EVERY = -1
"""Key of the script that every episode plays."""

_MOST_BYTES = 1 << 30  # of all actions in a file, unpacked
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

Key: TypeAlias = int | tuple[int, int]
"""Number of an episode, or state index and seed."""

Script: TypeAlias = Columns
"""The actions of one episode, ``{column: (T, ...)}``."""


def read_scripts(path: str | Path) -> Mapping[Any, Any]:
    """Returns the contents of a file of actions, keyed as in memory.

    Raises:
        ConfigError: the file does not exist, cannot be read, or is of another type.
    """
    path = Path(path).expanduser()
    readers = {".json": _read_json, ".npz": _read_npz, ".npy": _read_npy}
    if path.suffix not in readers:
        raise ConfigError(f"actions: expected a file .json, .npz, .npy or .js, got {path}")
    try:
        return readers[path.suffix](path)
    except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ConfigError(f"actions: {path} cannot be read: {error}") from error


def _read_json(path: Path) -> Mapping[Any, Any]:
    data = parse_json(read_document(path))
    if isinstance(data, list):
        return {None: data}
    if not isinstance(data, Mapping):
        raise ValueError(f"expected an object of scripts or a list of actions, got {type(data)}")
    return data


def _read_npy(path: Path) -> Mapping[Any, Any]:
    with open_file(path) as file:
        return {None: _array(file.read(_MOST_BYTES + 1))}


def _read_npz(path: Path) -> Mapping[Any, Any]:
    with open_file(path) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        _require_room(sum(each.file_size for each in members))
        return {each.filename.removesuffix(".npy"): _array(archive.read(each)) for each in members}


def _array(data: bytes) -> Array:
    """The array in a file; NumPy would allocate whatever size its header tells."""
    _require_room(len(data))
    file = io.BytesIO(data)
    read = _HEADERS.get(np.lib.format.read_magic(file))
    if read is None:
        raise ValueError("expected an array in version 1 or 2 of NumPy's format")
    shape, _, dtype = read(file)
    if math.prod(shape) * max(dtype.itemsize, 1) > len(data):
        raise ValueError(f"an array of shape {list(shape)} does not fit in {len(data):,} bytes")
    file.seek(0)
    array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _require_room(nbytes: int) -> None:
    if nbytes > _MOST_BYTES:
        raise ValueError(f"expected at most {_MOST_BYTES:,} bytes of actions, got more")


def script_columns(data: Mapping[Any, Any], space: spaces.Dict) -> dict[Key, Script]:
    """Returns scripts as columns of an action space.

    Args:
        data: ``{key: {column: (T, ...)}}``, ``{"key/column": (T, ...)}``, ``{column: (T, ...)}``,
            or ``{None: (T, ...)}`` for the only column.
        space: the flat action space.

    Raises:
        ConfigError: the data has no script, or columns, shapes or values are not of the space.
    """
    columns = list(space.spaces)
    if set(data) == {None}:
        if len(columns) != 1:
            raise ConfigError(f"a bare array holds one column; these actions have {columns}")
        data = {columns[0]: data[None]}
    if set(data) == set(columns):
        return {EVERY: _checked(data, space, "every episode")}
    nested: dict[Key, dict[str, Any]] = {}
    for name, part in data.items():
        if isinstance(part, Mapping):
            nested.setdefault(_key(name), {}).update(part)
        else:
            head, _, column = str(name).partition("/")
            nested.setdefault(_key(head), {})[column] = part
    return {key: _checked(script, space, f"script {key}") for key, script in nested.items()}


def _key(name: Any) -> Key:
    if isinstance(name, tuple) and len(name) == 2:
        return int(name[0]), int(name[1])
    match = re.fullmatch(r"(\d+)(?::(\d+))?", str(name))
    if match is None:
        raise ConfigError(
            f"actions: expected the number of an episode, 'state:seed', or every column of an "
            f"action, got the key {name!r}"
        )
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def _checked(script: Mapping[str, Any], space: spaces.Dict, which: str) -> Script:
    if set(script) != set(space.spaces):
        raise ConfigError(
            f"actions of {which}: expected the columns {sorted(space.spaces)}, "
            f"got {sorted(map(str, script))}"
        )
    columns = {key: _column(script[key], leaf, which, key) for key, leaf in space.spaces.items()}
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ConfigError(f"actions of {which}: columns need one length above 0, got {lengths}")
    return columns


def _column(value: Any, space: spaces.Space[Any], which: str, key: str) -> Array:
    given = np.asarray(value)
    dtype, shape = leaf_dtype(space), leaf_shape(space)
    if given.ndim == 0 or given.shape[1:] != shape:
        raise ConfigError(
            f"actions of {which}: column {key!r}: expected the shape [T, {list(shape)}] as in "
            f"{space}, got {list(given.shape)}"
        )
    if isinstance(space, spaces.Text):
        return np.array([str(text) for text in given], dtype=object)
    column = given.astype(dtype) if given.dtype.kind in "iufb" else None
    # Floats may be rounded to the column (JSON has one number type); others must fit exactly.
    if column is None or (dtype.kind != "f" and not np.array_equal(column, given)):
        raise ConfigError(
            f"actions of {which}: column {key!r}: expected {dtype} as in {space}, "
            f"got {given.dtype} values that do not fit"
        )
    if isinstance(space, spaces.Discrete):
        first, last = int(space.start), int(space.start) + int(space.n) - 1
        wrong = column[(column < first) | (column > last)]
        if len(wrong):
            raise ConfigError(
                f"actions of {which}: column {key!r}: expected actions of {space}, got {wrong[0]}"
            )
    return column
