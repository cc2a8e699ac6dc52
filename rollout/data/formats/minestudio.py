"""MineStudio's format: LMDB of videos and pickles, which are read without running code."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollout.api import Array, Columns, ColumnSpec, Flaw, SourceEpisode, SourceSpec
from rollout.data.formats.plain_pickle import load_plain
from rollout.data.formats.video import VideoError, decode_video
from rollout.errors import DatasetError
from rollout.files import require_file

BUTTONS = (
    *("attack", "back", "forward", "jump", "left", "right", "sneak", "sprint", "use", "drop"),
    "inventory",
    *(f"hotbar.{n}" for n in range(1, 10)),
)
"""Buttons of VPT in the order of the column ``action/keys``."""

_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "image": ("image", "video"),
    "action": ("action",),
    "meta_info": ("meta_info", "contractor_info"),
}
_FILE = "data.mdb"
_BINS, _MOST_DEGREES, _MU = 11, 10.0, 10.0  # of VPT's camera
_MOST_CHUNK = 4096  # frames


class _Place(NamedTuple):
    """Where an episode is in a modality."""

    file: str
    number: int
    frames: int
    chunk: int


@dataclass(frozen=True)
class FromMinestudio:
    """The importer ``minestudio``: a folder with ``action/``, ``image/``, perhaps ``meta_info/``.

    Observations ``rgb`` are the frames of the videos. Actions are VPT's, as in the layout ``human``
    of our Minecraft games: ``keys``, and ``camera`` in 11 bins of pitch and yaw by mu-law; the
    exact angles are ``extra/camera_degrees``, other buttons ``extra/other_buttons``, the state of
    the game ``extra/meta_info``. There are no rewards (0) and no ends: every recording counts as
    truncated after its last frame. Pickles may hold plain values only; no code of them is run.
    """

    def describe(self, source: Path) -> SourceSpec:
        """Returns what a folder holds; see ``rollout.api.Importer``."""
        folder = _Folder(source)
        rgb = spaces.Box(0, 255, folder.frame_shape(), np.uint8)
        extras = {
            "camera_degrees": ColumnSpec("float32", (2,), "degrees", "turn of pitch and yaw"),
            "other_buttons": ColumnSpec("object", doc="buttons that keys has no place for"),
        }
        if "meta_info" in folder.places:
            extras["meta_info"] = ColumnSpec("object", doc="state of the game before the action")
        return SourceSpec(
            name=source.resolve().name,
            observation_space=spaces.Dict({"rgb": rgb}),
            action_space=spaces.Dict(
                {
                    "keys": spaces.MultiBinary(len(BUTTONS)),
                    "camera": spaces.MultiDiscrete([_BINS, _BINS]),
                }
            ),
            episodes=len(folder.names),
            extras=extras,
            about={"keys": list(BUTTONS)},
        )

    def episodes(self, source: Path) -> Iterator[SourceEpisode | Flaw]:
        """Yields the episodes; see ``rollout.api.Importer``."""
        folder = _Folder(source)
        shape = folder.frame_shape()
        for number, name in enumerate(folder.names):
            yield folder.episode(number, name, shape)


@dataclass
class _Folder:
    """A folder: the places of its episodes by modality and name."""

    root: Path
    places: dict[str, dict[str, _Place]] = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for modality, folders in _FOLDERS.items():
            found = [self.root / each for each in folders if (self.root / each).is_dir()]
            if found:
                self.places[modality] = self._index(found[0])
        missing = [each for each in ("action", "image") if not self.places.get(each)]
        if missing:
            raise DatasetError(
                f"{self.root} is no dataset of MineStudio: there is no {missing[0]}/*/{_FILE} "
                f"with episodes"
            )

    @property
    def names(self) -> list[str]:
        """The episodes of any modality."""
        return sorted({name for places in self.places.values() for name in places})

    def _index(self, folder: Path) -> dict[str, _Place]:
        places: dict[str, _Place] = {}
        for path in sorted(folder.glob(f"*/{_FILE}")):
            file = path.relative_to(self.root).as_posix()
            size = self._whole(file, "__chunk_size__")
            if not 0 < size <= _MOST_CHUNK:
                raise DatasetError(
                    f"{file}, __chunk_size__: expected 1 to {_MOST_CHUNK}, got {size}"
                )
            infos = self._pickle(file, "__chunk_infos__")
            try:
                for info in infos:
                    name = str(info["episode"])
                    self.twice |= {name} & places.keys()
                    place = _Place(file, int(info["episode_idx"]), int(info["num_frames"]), size)
                    places[name] = place
            except (TypeError, LookupError, ValueError) as error:
                raise DatasetError(f"{file}, __chunk_infos__: {error!r}") from error
        return places

    def _whole(self, file: str, key: str) -> int:
        value = self._pickle(file, key)
        if type(value) is not int:
            raise DatasetError(f"{file}, {key}: expected a whole number, got {value!r}")
        return value

    def _pickle(self, file: str, key: str) -> Any:
        try:
            return load_plain(self._value(file, key))
        except DatasetError as error:
            raise DatasetError(f"{file}, {key}: {error}") from error

    def _value(self, file: str, key: str) -> bytes:
        lmdb, path = _library(), self.root / file
        try:
            require_file(path)
            # Opened for each value, which is fast: a process may open a file only once.
            with lmdb.open(str(path), readonly=True, lock=False, subdir=False) as opened:
                # The library would end the process at the first page behind the end of the file.
                needed = (opened.info()["last_pgno"] + 1) * opened.stat()["psize"]
                if path.stat().st_size < needed:
                    size = path.stat().st_size
                    raise DatasetError(f"is cut off: expected {needed:,} bytes, got {size:,}")
                with opened.begin() as reading:
                    value = reading.get(key.encode())
        except (OSError, lmdb.Error) as error:
            raise DatasetError(f"cannot be read: {error}") from error
        if value is None:
            raise DatasetError("is missing")
        return bytes(value)

    def frame_shape(self) -> tuple[int, ...]:
        """Height, width and channels of the first frame that can be decoded."""
        said = ""
        for place in self.places["image"].values():
            try:
                data = self._value(place.file, _key(place, 0))
                return decode_video(io.BytesIO(data), None, 1).shape[1:]
            except DatasetError as error:
                said = said or f"{place.file}, {_key(place, 0)}: {error}"
        raise DatasetError(f"no video of {self.root} can be decoded: {said}")

    def episode(self, number: int, name: str, shape: tuple[int, ...]) -> SourceEpisode | Flaw:
        places = {modality: found.get(name) for modality, found in self.places.items()}
        first = next(place for place in places.values() if place is not None)
        try:
            where = self._places(name, places)
            columns: Columns = {}
            for place, add in (
                (where["action"], self._actions),
                (where["image"], partial(self._images, shape=shape)),
                (where.get("meta_info"), self._infos),
            ):
                if place is not None:
                    columns |= self._joined(place, add)
            columns["reward"] = np.zeros(where["action"].frames, np.float32)
            return SourceEpisode(where["action"].file, number, columns, "truncated")
        except _ChunkError as error:
            return Flaw(error.file, number, error.step, f"{name}: {error}")
        except (DatasetError, MemoryError) as error:
            return Flaw(first.file, number, None, f"{name}: {error}")

    def _places(self, name: str, places: Mapping[str, _Place | None]) -> dict[str, _Place]:
        if name in self.twice:
            raise DatasetError("is there twice")
        lacking = [modality for modality, place in places.items() if place is None]
        if lacking:
            raise DatasetError(f"is not in {', '.join(lacking)}")
        found = {modality: place for modality, place in places.items() if place is not None}
        counts = {modality: place.frames for modality, place in found.items()}
        if len(set(counts.values())) > 1 or min(counts.values()) < 1:
            raise DatasetError(f"expected the same number of frames everywhere, got {counts}")
        return found

    def _joined(self, place: _Place, read: Callable[[bytes, int], Columns]) -> Columns:
        """The columns of all chunks of an episode, one after the other."""
        parts: list[Columns] = []
        for start in range(0, place.frames, place.chunk):
            count = min(place.chunk, place.frames - start)
            try:
                parts.append(read(self._value(place.file, _key(place, start)), count))
            except DatasetError as error:
                step = start + (getattr(error, "step", None) or 0)
                said = f"{_key(place, start)}: {error}"
                raise _ChunkError(said, place.file, step) from error
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _images(self, data: bytes, count: int, shape: tuple[int, ...]) -> Columns:
        return {"observation/rgb": decode_video(io.BytesIO(data), shape, count)}

    def _infos(self, data: bytes, count: int) -> Columns:
        infos = load_plain(data)
        if not isinstance(infos, list) or len(infos) != count:
            raise DatasetError(f"expected a list of {count} frames, got {_short(infos)}")
        values = np.empty(count, object)
        values[:] = [_jsonable(each) for each in infos]
        return {"extra/meta_info": values}

    def _actions(self, data: bytes, count: int) -> Columns:
        actions = load_plain(data)
        if not isinstance(actions, dict):
            raise DatasetError(f"expected buttons by their names, got {_short(actions)}")
        if missing := sorted({*BUTTONS, "camera"} - actions.keys()):
            raise DatasetError(f"lacks {', '.join(missing)}")
        camera = _numbers("camera", actions["camera"], (count, 2)).astype(np.float64)
        keys = [_numbers(name, actions[name], (count,)) for name in BUTTONS]
        for name, values in (("camera", camera), *zip(BUTTONS, keys, strict=True)):
            allowed = np.isfinite(values) if name == "camera" else (values == 0) | (values == 1)
            wrong = np.flatnonzero(~allowed.reshape(count, -1).all(1))
            if len(wrong):
                step = int(wrong[0])
                raise VideoError(f"{name} is {values[step]}, outside its range", step)
        others = {n: _jsonable(v) for n, v in actions.items() if n not in (*BUTTONS, "camera")}
        return {
            "action/keys": np.stack(keys, 1).astype(np.int8),
            "action/camera": camera_bins(camera),
            "extra/camera_degrees": camera.astype(np.float32),
            "extra/other_buttons": _rows(others, count),
        }


class _ChunkError(DatasetError):
    """Something is wrong with a chunk of an episode."""

    def __init__(self, problem: str, file: str, step: int) -> None:
        super().__init__(problem)
        self.file, self.step = file, step


def camera_bins(degrees: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns VPT's bins of turns ``(n, 2)`` by mu-law; 5 is no turn, 0 and 10 are 10 degrees."""
    share = np.clip(degrees / _MOST_DEGREES, -1.0, 1.0)
    curved = np.sign(share) * np.log1p(_MU * np.abs(share)) / np.log1p(_MU)
    bins: NDArray[np.int64] = np.round((curved + 1.0) * (_BINS - 1) / 2).astype(np.int64)
    return bins


def _key(place: _Place, start: int) -> str:
    return str((place.number, start))


def _numbers(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        raise DatasetError(f"{name}: expected an array of numbers, got {_short(values)}")
    if values.shape != shape:
        raise DatasetError(f"{name}: expected shape {list(shape)}, got {list(values.shape)}")
    return values


def _rows(others: Mapping[str, Any], count: int) -> Array:
    """The other buttons of each step that are not zero."""
    rows = np.empty(count, object)
    for step in range(count):
        pressed = {n: v[step] for n, v in others.items() if isinstance(v, list) and len(v) == count}
        rows[step] = {name: value for name, value in pressed.items() if value}
    return rows


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [_jsonable(each) for each in value]
    return {k: _jsonable(v) for k, v in value.items()} if isinstance(value, dict) else value


def _short(value: Any) -> str:
    return f"a {type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else repr(value)


def _library() -> Any:
    try:
        import lmdb  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DatasetError(f"lmdb is missing ({error}); run: pip install gamut[formats]") from None
    return lmdb
