"""A policy that replays recorded actions exactly, or runs a recorded program."""

from __future__ import annotations

import io
import logging
import math
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from rollout.api import (
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Start,
    Task,
    allocate,
    leaf_dtype,
    leaf_shape,
    option,
)
from rollout.errors import ConfigError, OutOfTurnError
from rollout.files import open_file, parse_json, read_document

log = logging.getLogger(__name__)

KIND, CODE, RESUME, NEW = "kind", "code", 0, 1  # the columns of the action, and values of the first


class Program:
    """Starts a program at the beginning of every episode, then lets it continue.

    An error that ends the program is logged as a warning; the episode continues without it.

    Args:
        path: the file of the program.
        space: the flat action space: ``kind`` (0 continue, 1 new) and ``code``, text.

    Raises:
        ConfigError: the file cannot be read, or the game has no such actions or refuses the text.
    """

    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(self, path: Path, space: spaces.Dict) -> None:
        text = space.spaces.get(CODE)
        if set(space.spaces) != {KIND, CODE} or not isinstance(text, spaces.Text):
            raise ConfigError(
                f"actions: {path} is a program, which needs a game with the action columns {KIND} "
                f"and {CODE}, e.g. bridge.name=mineflayer bridge.actions=code; the actions of this "
                f"game are {list(space.spaces)}"
            )
        self._path, self._code = path, _read(path, text)

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns memory in which no slot has started its program."""
        return {
            "started": np.zeros(len(starts), np.bool_),
            "episode": np.array([start.episode for start in starts], np.int64),
        }

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns NEW with the program in the first step of an episode, RESUME in all others."""
        started = memory["started"]
        for row in np.flatnonzero(started):
            error = _program_error(details[int(row)] if details else {})
            if error:
                log.warning(
                    "episode %d: %s ended with %s in line %s: %s",
                    memory["episode"][row],
                    self._path,
                    error.get("error_type"),
                    error.get("error_line"),
                    error.get("error_message"),
                )
        code = np.full(len(started), "", object)
        code[~started] = self._code
        kind = np.where(started, RESUME, NEW).astype(np.int64)
        begun = {"started": np.ones_like(started), "episode": memory["episode"]}
        return Decision({KIND: kind, CODE: code}, begun)


def _read(path: Path, space: spaces.Text) -> str:
    try:
        text = read_document(path.expanduser()).decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"actions: {path} cannot be read: {error}") from error
    if not text.strip() or len(text) > space.max_length:
        raise ConfigError(
            f"actions: {path}: expected a program of 1 to {space.max_length} characters, "
            f"got {len(text)}"
        )
    if space.contains(text):
        return text
    for number, line in enumerate(text.split("\n"), 1):
        for character in line:
            if character not in space.character_set:
                raise ConfigError(
                    f"actions: {path}, line {number}: expected the characters of the game, "
                    f"got {character!r}; write it as an escape sequence, or leave it out"
                )
    return text


def _program_error(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the error that ended the program in the last step; empty without one."""
    error: Mapping[str, Any] = details.get("code_info", {}).get("code_error") or {}
    return error


EVERY_EPISODE = -1
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
        _check_size(sum(each.file_size for each in members))
        return {each.filename.removesuffix(".npy"): _array(archive.read(each)) for each in members}


def _array(data: bytes) -> Array:
    """Returns the array in a file; NumPy would allocate any size that its header claims."""
    _check_size(len(data))
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


def _check_size(nbytes: int) -> None:
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
        return {EVERY_EPISODE: _checked(data, space, "every episode")}
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


AFTER = ("error", "repeat_last", "noop")


@dataclass(frozen=True)
class ScriptedPolicy:
    """Replays the actions of a script per episode.

    ``actions`` is a mapping in memory or a file:

    * mapping: ``{key: {column: (T, ...)}}``, where a key is the number of an episode, or ``(state
      index, seed)``; or ``{column: (T, ...)}`` for every episode. If both keys are present, the one
      with state and seed has priority.
    * ``.json``: the same, with the keys ``"3"`` for an episode, ``"17:42"`` for state and seed.
    * ``.npz``: arrays named ``3/action`` or ``17:42/action``, or ``action`` for every episode.
    * ``.npy``: one array ``(T, ...)`` for every episode, if the action space has one column.
    * ``.js``: a program that is started once in every episode and then continues, whatever
      ``after`` says; for Mineflayer's actions ``code``.

    The position in the script is in the memory, so slots may be batched in any order.
    """

    actions: str | Mapping[Any, Any] = option(
        "", "file of the actions (.json, .npz, .npy; .js: a program), or a mapping in memory"
    )
    after: str = option("error", "what to do when a script ends before its episode", choices=AFTER)

    def __post_init__(self) -> None:
        if self.after not in AFTER:
            raise ConfigError(f"after must be one of {', '.join(AFTER)}, got {self.after!r}")
        if not self.actions:
            raise ConfigError("actions must name a file (.json, .npz, .npy, .js) or be a mapping")

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Scripted | Program:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the file cannot be read, or its actions are not of this game.
        """
        if isinstance(self.actions, str) and Path(self.actions).suffix == ".js":
            return Program(Path(self.actions), spec.action_space)
        data = self.actions if isinstance(self.actions, Mapping) else read_scripts(self.actions)
        return Scripted(spec.action_space, script_columns(data, spec.action_space), self.after)


class Scripted:
    """Plays scripts that are concatenated in one array per column."""

    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(self, space: spaces.Dict, scripts: Mapping[Key, Script], after: str) -> None:
        self._after, self._names = after, list(scripts)
        self._numbers = {key: number for number, key in enumerate(scripts)}
        lengths = [len(next(iter(script.values()))) for script in scripts.values()]
        self._length = np.array(lengths, np.int64)
        self._first = np.concatenate([[0], np.cumsum(self._length)[:-1]]).astype(np.int64)
        # One row more than the scripts have: the no-op, for ``after: noop``.
        idle = _noop(space)
        self._actions = {
            key: np.concatenate([*(script[key] for script in scripts.values()), idle[key]])
            for key in space.spaces
        }
        self._noop = int(self._length.sum())

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the script of each slot, counted from 1, and the position in it: the beginning.

        Raises:
            ConfigError: there is no script for an episode.
        """
        numbers = [self._script(start) + 1 for start in starts]
        return {
            "script": np.array(numbers, np.int64),
            "position": np.zeros(len(starts), np.int64),
        }

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the next action of each row's script.

        Raises:
            OutOfTurnError: a script has ended and ``after`` is ``error``.
        """
        position, script = memory["position"], memory["script"] - 1
        length = self._length[script]
        ended = (position >= length) & (script >= 0)  # less where there is no episode
        row = self._first[script] + np.minimum(position, length - 1)
        if ended.any():
            if self._after == "error":
                raise self._script_ended_error(int(script[ended][0]))
            if self._after == "noop":
                row[ended] = self._noop
        actions = {key: column[row] for key, column in self._actions.items()}
        return Decision(actions, {"script": memory["script"], "position": position + 1})

    def _script(self, start: Start) -> int:
        for key in ((start.state.index, start.seed), start.episode, EVERY_EPISODE):
            number = self._numbers.get(key)
            if number is not None:
                return number
        raise ConfigError(
            f"no script for episode {start.episode} (state {start.state.index}, seed "
            f"{start.seed}); there are scripts for {self._names[:10]}"
            f"{' and more' if len(self._names) > 10 else ''}"
        )

    def _script_ended_error(self, number: int) -> OutOfTurnError:
        name = self._names[number]
        which = "every episode" if name == EVERY_EPISODE else f"{name}"
        return OutOfTurnError(
            f"the script for {which} has {self._length[number]} actions and the episode continues; "
            f"record more, or set after to repeat_last or noop"
        )


def _noop(space: spaces.Dict) -> Columns:
    """Returns zero, moved into the space, for every column: one row."""
    idle = allocate(space, 1)
    for key, leaf in space.spaces.items():
        if isinstance(leaf, spaces.Box):
            idle[key] = np.clip(idle[key], leaf.low, leaf.high).astype(leaf.dtype)
        elif isinstance(leaf, spaces.Discrete | spaces.MultiDiscrete):
            least = np.asarray(leaf.start)
            most = (
                least + np.asarray(leaf.n if isinstance(leaf, spaces.Discrete) else leaf.nvec) - 1
            )
            idle[key] = np.clip(idle[key], least, most).astype(leaf.dtype)
    return idle
