"""Transitions of Gymnasium environments in one archive, as D4RL and OGBench write them."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    ACTION,
    OBSERVATION,
    Array,
    Columns,
    Flaw,
    SourceEpisode,
    SourceSpec,
    flatten_space,
    option,
)
from rollout.data.schema import column_name
from rollout.errors import DatasetError
from rollout.files import open_file, require_file

_NAMES: Mapping[str, tuple[str, ...]] = {
    "observations": ("observations", "obs"),
    "actions": ("actions",),
    "rewards": ("rewards",),
    "terminated": ("terminations", "terminated", "terminals", "dones"),
    "truncated": ("truncations", "truncated", "timeouts"),
    "next": ("next_observations", "next_obs"),
}
_DAMAGED = (EOFError, LookupError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)
_NEEDED = ("observations", "actions", "rewards")


@dataclass(frozen=True)
class FromGymnasium:
    """The importer ``gymnasium``: a file .npz or .hdf5 with a row for each step.

    Arrays ``observations``, ``actions``, ``rewards``; ``terminations`` or ``terminals``;
    ``truncations`` or ``timeouts``; and perhaps ``next_observations``, from which the observation
    after the last action is taken. The rows of an episode follow one another.
    """

    env_id: str | None = option(None, "Environment of Gymnasium that has the spaces; else numbers.")

    def describe(self, source: Path) -> SourceSpec:
        """Returns what a file holds; see ``rollout.api.Importer``."""
        arrays = _read(source)
        own = self._spaces(arrays)
        return SourceSpec(
            name=self.env_id or source.stem,
            observation_space=own[OBSERVATION],
            action_space=own[ACTION],
            episodes=len(_ends(arrays)),
        )

    def episodes(self, source: Path) -> Iterator[SourceEpisode | Flaw]:
        """Yields the episodes; see ``rollout.api.Importer``."""
        arrays, first = _read(source), 0
        own = self._spaces(arrays)
        (seen,), (done,) = own[OBSERVATION].spaces.items(), own[ACTION].spaces.items()
        for number, stop in enumerate(_ends(arrays)):
            rows = {name: values[first:stop] for name, values in arrays.items()}
            columns: Columns = {
                column_name(OBSERVATION, seen[0]): _cast(rows["observations"], seen[1]),
                column_name(ACTION, done[0]): _cast(rows["actions"], done[1]),
                "reward": rows["rewards"].astype(np.float32),
            }
            how = None
            for end in ("truncated", "terminated"):
                if end in rows and bool(rows[end][-1]):
                    how = end
            final = {}
            if "next" in rows:
                final = {seen[0]: _cast(rows["next"], seen[1])[-1]}
            yield SourceEpisode(source.name, number, columns, how, final)
            first = stop

    def _spaces(self, arrays: Mapping[str, Array]) -> dict[str, spaces.Dict]:
        given: dict[str, spaces.Space[Any]] = {
            OBSERVATION: _any_space(arrays["observations"]),
            ACTION: _any_space(arrays["actions"]),
        }
        if self.env_id is not None:
            import gymnasium  # noqa: PLC0415 - its environments load libraries of games

            try:
                env = gymnasium.make(self.env_id)
            except Exception as error:
                raise DatasetError(f"cannot make the environment {self.env_id}: {error}") from error
            given = {OBSERVATION: env.observation_space, ACTION: env.action_space}
            env.close()  # type: ignore[no-untyped-call]
        flat = {role: flatten_space(space, role) for role, space in given.items()}
        for role, each in flat.items():
            if list(each.columns.spaces) != [role]:
                raise DatasetError(f"expected one array of {role}s, got the space {each.original}")
        return {role: each.columns for role, each in flat.items()}


def _any_space(values: Array) -> spaces.Space[Any]:
    """A space that holds every value of the type of an array."""
    kind, shape = values.dtype, values.shape[1:]
    if kind.kind == "b":
        return spaces.MultiBinary(shape or 1)
    low: Any = -np.inf if kind.kind == "f" else np.iinfo(kind).min
    high: Any = np.inf if kind.kind == "f" else np.iinfo(kind).max
    return spaces.Box(low, high, shape, kind.type)


def _cast(values: Array, space: spaces.Space[Any]) -> Array:
    """The values in the type of the space; a whole number may have come as a column of one."""
    shape = space.shape or ()
    if values.shape[1:] == (1,) and shape == ():
        values = values[:, 0]
    out: Array = values.astype(space.dtype, copy=False)
    return out


def _read(source: Path) -> dict[str, Array]:
    """The arrays by our names.

    Raises:
        DatasetError: the file cannot be read, lacks an array, or they differ in length.
    """
    try:
        found = _hdf5(source) if source.suffix in (".hdf5", ".h5") else _npz(source)
    except (OSError, ValueError, *_DAMAGED) as error:
        raise DatasetError(f"cannot read {source} as .npz or .hdf5: {error}") from error
    arrays = {}
    for name, others in _NAMES.items():
        there = [other for other in others if other in found]
        if there:
            arrays[name] = found[there[0]]
        elif name in _NEEDED:
            raise DatasetError(f"{source} lacks {name}; it has {', '.join(sorted(found))}")
    if not {"terminated", "truncated"} & arrays.keys():
        raise DatasetError(f"{source} has no terminations or truncations, so no episode has an end")
    if flat := [name for name, values in arrays.items() if values.ndim == 0]:
        raise DatasetError(f"{source}: expected a row for each step, got one number in {flat}")
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DatasetError(f"{source}: expected arrays of one length, got {lengths}")
    if any(values.dtype.kind not in "biuf" for values in arrays.values()):
        raise DatasetError(f"{source}: expected arrays of numbers")
    return arrays


def _known() -> set[str]:
    return {other for others in _NAMES.values() for other in others}


def _npz(source: Path) -> dict[str, Array]:
    with open_file(source) as file, zipfile.ZipFile(file) as archive:
        found = {n: f"{n}.npy" for n in _known() if f"{n}.npy" in archive.namelist()}
        _require_memory(sum(_claimed(archive, member) for member in found.values()))
        arrays = {}
        for name, member in found.items():
            with archive.open(member) as stream:
                arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
        return arrays


def _claimed(archive: zipfile.ZipFile, member: str) -> int:
    """Bytes of an array, which its header and the archive must agree on."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0"}.get(version)
        if read is None:
            raise ValueError(f"{member}: version {version} of the format is not known")
        shape, _, dtype = getattr(np.lib.format, read)(stream)
        held = archive.getinfo(member).file_size - stream.tell()
    if dtype.hasobject:
        raise ValueError(f"{member} holds Python objects, which are not read")
    size: int = math.prod(shape) * dtype.itemsize
    if size != held:
        raise ValueError(f"{member}: expected {size} bytes of {dtype}{list(shape)}, got {held}")
    return size


def _require_memory(nbytes: int) -> None:
    """Checks that the arrays fit in the memory of this machine; else a ValueError."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if nbytes > most // 2:
        raise ValueError(
            f"its arrays take {nbytes:,} bytes, more than half the memory of this machine"
        )


def _hdf5(source: Path) -> dict[str, Array]:
    try:
        import h5py  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DatasetError(f"h5py is missing ({error}); run: pip install gamut[formats]") from error
    require_file(source)
    with h5py.File(source, "r") as file:
        found = {name: file[name] for name in sorted(_known() & set(file)) if _is_own(file, name)}
        _require_memory(sum(int(each.nbytes) for each in found.values()))
        return {name: each[()] for name, each in found.items()}


def _is_own(file: Any, name: str) -> bool:
    """Whether a name is an array of numbers in the file itself; else a ValueError."""
    import h5py  # noqa: PLC0415 - optional

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link, which is not followed")
    array = file[name]
    if not isinstance(array, h5py.Dataset) or array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected an array of numbers")
    if array.external or array.is_virtual:
        raise ValueError(f"{name} is in another file, which is not read")
    return True


def _ends(arrays: Mapping[str, Array]) -> list[int]:
    """One past the last row of each episode; the rows after the last end are one without it."""
    count = len(arrays["rewards"])
    done = np.zeros(count, bool)
    for name in ("terminated", "truncated"):
        if name in arrays:
            done |= arrays[name].reshape(count, -1).any(1)
    stops: list[int] = (np.flatnonzero(done) + 1).tolist()
    return [*stops, count] if count and (not stops or stops[-1] < count) else stops
