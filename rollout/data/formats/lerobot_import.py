"""Reads datasets of LeRobot, version 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from gymnasium import spaces

from rollout.api import (
    AnyText,
    Array,
    Columns,
    ColumnSpec,
    Flaw,
    Outcome,
    SourceEpisode,
    SourceSpec,
)
from rollout.data.codec import JSON
from rollout.data.formats.common import FACTS, read_about, require_shape
from rollout.data.formats.hf_features import decode_column
from rollout.data.formats.lerobot_names import (
    ABOUT,
    DONE,
    FINAL,
    INFO,
    SUCCESS,
    TASKS,
    TIME,
    file_of,
    finals_of,
)
from rollout.data.formats.video import VideoError, frames_of
from rollout.data.manifest import Manifest
from rollout.data.schema import ACTION, EXTRA, OBSERVATION, SIGNAL, Column, column_name, leaf_column
from rollout.data.shard import UNREADABLE
from rollout.data.space_json import space_from_json
from rollout.errors import DatasetError
from rollout.files import parse_json, read_document, require_file

_DEFAULTS = (TIME, "frame_index", "episode_index", "index", "task_index")
_ENDS = (DONE, SUCCESS)
_OF_EPISODES = ("episode_index", "length", "data/chunk_index", "data/file_index")


@dataclass(frozen=True)
class FromLeRobot:
    """The importer ``lerobot``: a folder in LeRobot's format v3.0, also with videos.

    What the exporter ``lerobot`` wrote becomes the same dataset again. Of other folders,
    ``observation.*`` and ``action*`` are the spaces, ``next.reward`` the reward (0 without it),
    ``next.done`` the end, ``next.success`` the outcome; numbers under other names are signals.
    Without ``next.done``, each episode counts as truncated after its last frame. If there are
    several tasks, their words are the observation ``task``.
    """

    def describe(self, source: Path) -> SourceSpec:
        """Returns what a folder holds; see ``rollout.api.Importer``."""
        return _Folder(source).spec()

    def episodes(self, source: Path) -> Iterator[SourceEpisode | Flaw]:
        """Yields the episodes; see ``rollout.api.Importer``."""
        folder = _Folder(source)
        for row in folder.index():
            yield folder.episode(row)

    def read(self, source: Path) -> Iterator[Columns]:
        """Yields the columns of each episode, ``(T, ...)`` by their names in the dataset.

        Raises:
            DatasetError: an episode cannot be read.
        """
        for found in self.episodes(source):
            if isinstance(found, Flaw):
                raise DatasetError(f"{source}: {found}")
            yield found.columns


@dataclass
class _Folder:
    """One folder, read step by step."""

    root: Path
    files: dict[str, tuple[pq.ParquetFile, Array]] = field(default_factory=dict)

    @cached_property
    def info(self) -> dict[str, Any]:
        path = self.root / INFO
        try:
            info = parse_json(read_document(path))
            version, features = str(info["codebase_version"]), dict(info["features"])
            int(info["total_episodes"]), str(info["data_path"])
        except FileNotFoundError:
            raise DatasetError(f"{self.root} is no LeRobot dataset: {INFO} is missing") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DatasetError(f"cannot read {path}: {error!r}") from error
        if not version.startswith("v3."):
            raise DatasetError(
                f"{path}: expected version v3, got {version}; convert it by LeRobot's "
                f"convert_dataset_v21_to_v30"
            )
        info["features"] = features
        return dict(info)

    @cached_property
    def about(self) -> dict[str, Any] | None:
        return read_about(self.root / ABOUT)

    @cached_property
    def manifest(self) -> Manifest | None:
        return None if self.about is None else Manifest.from_json(self.about["manifest"])

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks in words, by their index."""
        table = _read_table(self.root / TASKS)
        names = [n for n in table.column_names if n != "task_index"]
        if "task_index" not in table.column_names or not names or table["task_index"].null_count:
            raise DatasetError(f"{self.root / TASKS}: expected task_index and a column of tasks")
        rows = zip(table["task_index"].to_pylist(), table[names[0]].to_pylist(), strict=True)
        return [str(text) for _, text in sorted(rows)]

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Features that are columns of the dataset, by their names here."""
        if self.manifest is not None and self.about is not None:
            known = {c.name: c for c in self.manifest.columns}
            try:
                return {name: known[column] for name, column in self.about["features"].items()}
            except (LookupError, AttributeError, TypeError) as error:
                raise DatasetError(f"{self.root / ABOUT}: features: {error!r}") from error
        found = {}
        for name, about in self.info["features"].items():
            if name in _DEFAULTS or name in _ENDS or name == "next.reward":
                continue
            try:
                found[name] = _column(name, about)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise DatasetError(f"{self.root / INFO}: feature {name}: {error!r}") from error
        return found

    def spec(self) -> SourceSpec:
        total = int(self.info["total_episodes"])
        columns = list(self.columns.values())

        def of_role(role: str) -> list[Column]:
            return [c for c in columns if c.role == role]

        leaves: dict[str, dict[str, Any]] = {
            role: {c.key: _space(c) for c in of_role(role)} for role in (OBSERVATION, ACTION)
        }
        if self._several_tasks:
            leaves[OBSERVATION]["task"] = AnyText(4096)
        if not leaves[OBSERVATION] or not leaves[ACTION]:
            raise DatasetError(
                f"{self.root}: expected features observation.* and action, got "
                f"{', '.join(self.info['features'])}"
            )
        return SourceSpec(
            name=self.root.resolve().name,
            observation_space=spaces.Dict(leaves[OBSERVATION]),
            action_space=spaces.Dict(leaves[ACTION]),
            episodes=total,
            goal=self.tasks[0] if len(self.tasks) == 1 else "",
            signals={c.key: ColumnSpec(c.dtype, c.shape) for c in of_role(SIGNAL)},
            extras={c.key: ColumnSpec("object") for c in of_role(EXTRA)},
            about={"fps": self.info.get("fps"), "robot": self.info.get("robot_type")},
            manifest="" if self.about is None else self.about["manifest"],
        )

    @property
    def _several_tasks(self) -> bool:
        return self.manifest is None and len(self.tasks) > 1

    def index(self) -> Iterator[dict[str, Any]]:
        """Yields the rows of the table of episodes."""
        paths = sorted(self.root.glob("meta/episodes/*/*.parquet"))
        if not paths:
            raise DatasetError(f"{self.root} has no table of episodes, meta/episodes")
        for path in paths:
            table = _read_table(path)
            wanted = [n for n in table.column_names if not n.startswith("stats/")]
            if missing := sorted({*_OF_EPISODES} - {*wanted}):
                raise DatasetError(f"{path}: lacks the columns {', '.join(missing)}")
            for batch in table.select(wanted).to_batches(max_chunksize=1024):
                yield from batch.to_pylist()

    def episode(self, row: Mapping[str, Any]) -> SourceEpisode | Flaw:
        number, name = row["episode_index"], str(self.info["data_path"])
        try:
            number = int(number)
            name = file_of(
                name, chunk_index=row["data/chunk_index"], file_index=row["data/file_index"]
            )
            table = self._rows(name, number)
            return self._made(row, name, number, table)
        except _StepError as error:
            return Flaw(error.file or name, number, error.step, str(error))
        except (*UNREADABLE, MemoryError) as error:
            # A file that is missing, pages that are damaged, values of another type.
            return Flaw(name, number, None, f"cannot be read: {error}")

    def _rows(self, name: str, number: int) -> pa.Table:
        """The rows of an episode in a file; episodes come file by file."""
        if name not in self.files:
            for file, _ in self.files.values():
                file.close()
            require_file(self.root / name)
            file = pq.ParquetFile(self.root / name)
            self.files = {name: (file, file.read(["episode_index"])["episode_index"].to_numpy())}
        file, numbers = self.files[name]
        rows = np.flatnonzero(numbers == number)
        if len(rows) == 0:
            return file.schema_arrow.empty_table()
        first, stop = int(rows[0]), int(rows[-1]) + 1
        if stop - first != len(rows):
            raise DatasetError("its frames are not consecutive")
        about = file.metadata
        sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        groups = [i for i in range(len(sizes)) if starts[i] < stop and starts[i + 1] > first]
        table = file.read_row_groups(groups)
        return table.slice(first - int(starts[groups[0]]), stop - first)

    def _made(
        self, row: Mapping[str, Any], name: str, number: int, table: pa.Table
    ) -> SourceEpisode:
        self._require_columns(table)
        length = int(row["length"])
        if table.num_rows != length:
            raise DatasetError(f"expected {length} frames, got {table.num_rows}")
        wrong = np.flatnonzero(table["frame_index"].to_numpy() != np.arange(length))
        if len(wrong):
            raise _StepError(f"expected frame {wrong[0]}, got another", int(wrong[0]))
        columns: Columns = {}
        for feature, column in self.columns.items():
            if self.info["features"][feature]["dtype"] == "video":
                columns[column.name] = self._film(feature, column, row, length)
            else:
                columns[column.name] = _decoded(column, feature, table[feature])
        return self._with_facts(row, name, number, table, columns)

    def _require_columns(self, table: pa.Table) -> None:
        features = self.info["features"]
        wanted = {n for n, about in features.items() if about["dtype"] != "video"}
        missing = sorted(wanted - set(table.column_names))
        extra = sorted(set(table.column_names) - wanted)
        if missing:
            raise DatasetError(f"lacks the columns {', '.join(missing)} of {INFO}")
        if extra:
            raise DatasetError(f"has columns that {INFO} does not: {', '.join(extra)}")

    def _film(self, feature: str, column: Column, row: Mapping[str, Any], length: int) -> Array:
        place = {k: row[f"videos/{feature}/{k}"] for k in ("chunk_index", "file_index")}
        name = file_of(str(self.info["video_path"]), video_key=feature, **place)
        start = float(row[f"videos/{feature}/from_timestamp"])
        try:
            require_file(self.root / name)
            return frames_of(self.root / name, column.shape, length, start_s=start)
        except VideoError as error:
            raise _StepError(str(error), error.step, name) from error
        except OSError as error:
            raise _StepError(f"cannot be read: {error}", None, name) from error

    def _with_facts(
        self,
        row: Mapping[str, Any],
        name: str,
        number: int,
        table: pa.Table,
        columns: Columns,
    ) -> SourceEpisode:
        if self.manifest is not None:
            facts = {k: row[f"gamut/{k}"] for k in FACTS}
            final, details = self._finals(number)
            return SourceEpisode(name, number, columns, row["gamut/end"], final, details, facts)
        count, features = table.num_rows, self.info["features"]
        reward = table["next.reward"].to_numpy() if "next.reward" in features else np.zeros(count)
        columns["reward"] = reward.astype(np.float32)
        columns["wall_time"] = table[TIME].to_numpy().astype(np.float64)
        if SUCCESS in features:
            won = table[SUCCESS].to_numpy(zero_copy_only=False).reshape(count)
            columns["outcome"] = np.where(won, Outcome.SUCCESS, Outcome.RUNNING).astype(np.int8)
        if self._several_tasks:
            texts = np.array(self.tasks, object)
            columns[column_name(OBSERVATION, "task")] = texts[table["task_index"].to_numpy()]
        done = not (DONE in features and count) or bool(table[DONE][count - 1].as_py())
        how = "terminated" if DONE in features else "truncated"
        return SourceEpisode(name, number, columns, how if done else None)  # type: ignore[arg-type]

    @cached_property
    def _final_table(self) -> pa.Table:
        return _read_table(self.root / FINAL)

    def _finals(self, number: int) -> tuple[Columns, Any]:
        assert self.manifest is not None
        final, details = {}, None
        for column in finals_of(self.manifest).values():
            value = self._final_table[column.name].slice(number, 1)
            if value.null_count == 0 and column.codec != JSON:
                final[column.key] = decode_column(column, value)[0]
            elif value.null_count == 0:
                details = decode_column(column, value)[0]
        return final, details


class _StepError(DatasetError):
    """Something is wrong with a step of an episode."""

    def __init__(self, problem: str, step: int | None, file: str = "") -> None:
        super().__init__(problem)
        self.step, self.file = step, file


def _decoded(column: Column, feature: str, values: pa.ChunkedArray) -> Array:
    """The values of a column; the step of the first image that does not decode is named."""
    try:
        return decode_column(column, values)
    except UNREADABLE as error:
        for step in range(len(values)):
            try:
                decode_column(column, values.slice(step, 1))
            except UNREADABLE:
                raise _StepError(f"{feature}: {error}", step) from error
        raise


def _read_table(path: Path) -> pa.Table:
    try:
        require_file(path)
        with pq.ParquetFile(path) as file:
            return file.read()
    except UNREADABLE as error:
        raise DatasetError(f"cannot read {path}: {error}") from error


def _column(name: str, about: Mapping[str, Any]) -> Column:
    """The column of a feature of a folder that Gamut did not write."""
    shape, dtype = tuple(int(n) for n in about["shape"]), str(about["dtype"])
    require_shape(shape)
    role, key = SIGNAL, name
    if name == ACTION or name.startswith("action."):
        role, key = ACTION, name.removeprefix("action.")
    elif name.startswith("observation."):
        role, key = OBSERVATION, name.removeprefix("observation.").removeprefix("images.")
    key = key.replace(".", "/")
    if dtype in ("image", "video"):
        names = about.get("names") or ()
        if names and str(names[0]).startswith("c"):
            shape = (*shape[1:], shape[0])
        return leaf_column(role, key, spaces.Box(0, 255, shape, np.uint8), "")
    if dtype == "string":
        if role == SIGNAL:
            return Column(column_name(EXTRA, key), EXTRA, key, "string", codec=JSON)
        return leaf_column(role, key, AnyText(4096), "")
    flat = () if shape == (1,) and role == SIGNAL else shape
    column = Column(column_name(role, key), role, key, np.dtype(dtype).name, flat)
    return leaf_column(role, key, _space(column), "") if role in (OBSERVATION, ACTION) else column


def _space(column: Column) -> spaces.Space[Any]:
    """A space that holds every value of the type."""
    if column.space is not None:
        return space_from_json(column.space)
    kind = np.dtype(column.dtype)
    if kind.kind == "b":
        return spaces.MultiBinary(column.shape or 1)
    low: Any = -np.inf if kind.kind == "f" else np.iinfo(kind).min
    high: Any = np.inf if kind.kind == "f" else np.iinfo(kind).max
    return spaces.Box(low, high, column.shape, kind.type)
