"""LeRobot's format, version 3.0, with images as PNG in Parquet: no video encoder, no loss."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollout.api import Array, Columns, Outcome, option
from rollout.data.formats.common import (
    about_text,
    facts_of,
    pieces_of,
    replacing_folder,
    require_free,
    results_of,
)
from rollout.data.formats.hf_features import (
    encode_column,
    is_image,
    is_png,
    require_dimensions,
    schema_of,
)
from rollout.data.formats.lerobot_import import FromLeRobot
from rollout.data.formats.lerobot_names import (
    ABOUT,
    DATA,
    DONE,
    EPISODES,
    FINAL,
    INFO,
    OWN,
    STATS,
    SUCCESS,
    TASKS,
    TIME,
    VERSION,
    features_of,
    finals_of,
)
from rollout.data.reader import Dataset
from rollout.data.refs import Episode, EpisodeRef
from rollout.data.schema import FINAL as FINAL_OBSERVATION
from rollout.data.schema import Column
from rollout.data.statistics import QUANTILES, Levels, Running

_CHUNK_FILES, _FILE_MB = 1000, 100
_INDEXED = json.dumps(
    {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {"name": n, "field_name": n, "pandas_type": p, "numpy_type": t, "metadata": None}
            for n, p, t in (("task_index", "int64", "int64"), ("task", "unicode", "object"))
        ],
        "pandas_version": "2.0.0",
    }
)
"""What makes pandas, with which LeRobot reads its table of tasks, index it by their words."""


@dataclass(frozen=True)
class LeRobot:
    """The exporter ``lerobot``: a folder in LeRobot's format v3.0, without loss.

    Images are PNG files in Parquet (``dtype: image``). Rewards are ``next.reward``, the end of an
    episode ``next.done``. The table of episodes has columns ``gamut/...`` with the start, the end
    and the policy of each; ``meta/gamut.json`` has the description of the dataset, and
    ``meta/gamut_final.parquet`` the observations after the last actions, for which LeRobot has no
    place. With these the importer ``lerobot`` makes the same dataset again.
    """

    fps: int = option(15, "Frames per second that the timestamps count by.", gt=0)

    def check(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> None:
        """Checks the folder and the columns; see ``rollout.api.Exporter``."""
        require_free(dataset, out, ABOUT)
        results_of(episodes, "LeRobot")
        require_dimensions(list(features_of(dataset.manifest).values()), "LeRobot")

    def write(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> int:
        """Writes the folder and returns the number of episodes; see ``rollout.api.Exporter``."""
        self.check(dataset, episodes, out)
        refs = results_of(episodes, "LeRobot")
        with replacing_folder(out) as root:
            _Export(dataset, root, self.fps).write(refs)
        return len(refs)

    def read(self, path: Path) -> Iterator[Columns]:
        """Yields the columns of each episode; see ``rollout.api.ReadsBack``."""
        yield from FromLeRobot().read(path)


@dataclass
class _Export:
    """Writes one folder."""

    dataset: Dataset
    root: Path
    fps: int
    rows: int = 0
    files: int = 0
    about: list[dict[str, Any]] = field(default_factory=list)
    total: dict[str, Running | Levels] = field(default_factory=dict)

    def write(self, refs: Sequence[EpisodeRef]) -> None:
        manifest = self.dataset.manifest
        features = features_of(manifest)
        columns = {**features, **{c.name: c for c in OWN}}
        schema = schema_of(columns)
        left = iter(enumerate(refs))
        number, ref = next(left, (0, None))
        while ref is not None:
            path = self.root / self._place(DATA, self.files)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file, pq.ParquetWriter(file, schema, compression="zstd") as out:
                while ref is not None and file.tell() < _FILE_MB << 20:
                    self._episode(out, features, schema, number, ref)
                    number, ref = next(left, (0, None))
            self.files += 1
        self._metadata(columns, refs)

    @staticmethod
    def _place(template: str, number: int) -> str:
        chunk, file = divmod(number, _CHUNK_FILES)
        return template.format(chunk_index=chunk, file_index=file)

    def _episode(
        self,
        out: pq.ParquetWriter,
        features: Mapping[str, Column],
        schema: pa.Schema,
        number: int,
        ref: EpisodeRef,
    ) -> None:
        first, stats = self.rows, dict[str, Running | Levels]()
        for window in pieces_of(self.dataset, ref, [c.name for c in features.values()]):
            own = self._own(ref, number, window.start, len(window.columns["reward"]))
            arrays = []
            values = {n: window.columns[c.name] for n, c in features.items()} | own
            start, stop = window.start, window.start + len(own["index"])
            for name, column in (*features.items(), *((c.name, c) for c in OWN)):
                is_file = is_png(column)
                files = self.dataset.stored(ref, column.name, start, stop) if is_file else None
                arrays.append(encode_column(column, values[name], files))
                if column.dtype != "string":
                    _add(stats, name, _stats(column, values[name]))
            out.write_table(pa.Table.from_arrays(arrays, schema=schema))
            self.rows += len(values["index"])
        for name, found in stats.items():
            _add(self.total, name, found)
        chunk, file = divmod(self.files, _CHUNK_FILES)
        about = {"episode_index": number, "tasks": [self._task], "length": ref.length}
        about |= {"data/chunk_index": chunk, "data/file_index": file}
        about |= {"dataset_from_index": first, "dataset_to_index": self.rows}
        about |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
        facts = facts_of(ref, self.dataset.manifest)
        about |= {f"gamut/{name}": value for name, value in facts.items()}
        for name, found in stats.items():
            about |= {f"stats/{name}/{k}": v for k, v in _stats_json(found).items()}
        self.about.append(about)

    @property
    def _task(self) -> str:
        task = self.dataset.manifest.task
        return str(task["goal"] or task["name"])

    def _own(self, ref: EpisodeRef, number: int, start: int, count: int) -> dict[str, Array]:
        steps = np.arange(start, start + count, dtype=np.int64)
        done = steps == ref.length - 1
        return {
            DONE: done,
            SUCCESS: done & (ref.outcome == Outcome.SUCCESS),
            TIME: (steps / self.fps).astype(np.float32),
            "frame_index": steps,
            "episode_index": np.full(count, number, np.int64),
            "index": self.rows + np.arange(count, dtype=np.int64),
            "task_index": np.zeros(count, np.int64),
        }

    def _metadata(self, columns: Mapping[str, Column], refs: Sequence[EpisodeRef]) -> None:
        episodes = self.root / self._place(EPISODES, 0)
        episodes.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(self.about), episodes, compression="zstd")
        tasks = pa.table({"task_index": pa.array([0], pa.int64()), "task": [self._task]})
        pq.write_table(tasks.replace_schema_metadata({"pandas": _INDEXED}), self.root / TASKS)
        info = {
            "codebase_version": VERSION,
            "robot_type": self.dataset.manifest.bridge,
            "total_episodes": len(refs),
            "total_frames": self.rows,
            "total_tasks": 1,
            "chunks_size": _CHUNK_FILES,
            "data_files_size_in_mb": _FILE_MB,
            "video_files_size_in_mb": 200,
            "fps": self.fps,
            "splits": {"train": f"0:{len(refs)}"},
            "data_path": DATA,
            "video_path": None,
            "features": {name: _feature(column) for name, column in columns.items()},
        }
        stats = {name: _stats_json(found) for name, found in self.total.items()}
        names = {name: column.name for name, column in columns.items() if column not in OWN}
        texts = {INFO: json.dumps(info, indent=4), STATS: json.dumps(stats, indent=4)}
        texts[ABOUT] = about_text(self.dataset.manifest, features=names)
        for name, text in texts.items():
            (self.root / name).write_text(text, "utf-8")
        write_finals(self.root / FINAL, self.dataset, refs)


def write_finals(path: Path, dataset: Dataset, refs: Sequence[EpisodeRef]) -> None:
    """Writes a table with a row for each episode: what follows its last action, or null."""
    columns = finals_of(dataset.manifest)
    schema = schema_of(columns)
    with pq.ParquetWriter(path, schema, compression="zstd") as out:
        for ref in refs if columns else ():
            episode = dataset.read(ref, ["reward"])
            arrays = [_final(column, episode) for column in columns.values()]
            out.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _final(column: Column, episode: Episode) -> pa.Array:
    if column.role != FINAL_OBSERVATION:
        details = np.empty(1, object)
        details[0] = episode.final_details
        return encode_column(column, details)
    value = episode.final_observations.get(column.key)
    if value is None:
        return pa.nulls(1, schema_of({column.name: column}).field(0).type)
    if column.dtype == "string":
        return pa.array([str(value)], pa.string())
    return encode_column(column, np.asarray(value)[None])


def _feature(column: Column) -> dict[str, Any]:
    if is_image(column):
        height, width, *channels = column.shape
        shape = [height, width, *(channels or [1])]
        return {"dtype": "image", "shape": shape, "names": ["height", "width", "channels"]}
    dtype = "float64" if column.dtype == "timestamp" else column.dtype
    return {"dtype": dtype, "shape": list(column.shape) or [1], "names": None}


def _stats(column: Column, values: Array) -> Running | Levels:
    if is_image(column):
        return Levels.of(values if values.ndim == 4 else values[..., None])
    return Running.of(values.reshape(len(values), -1) if values.ndim == 1 else values)


def _add(stats: dict[str, Running | Levels], name: str, found: Running | Levels) -> None:
    known = stats.get(name)
    stats[name] = found if known is None else known.joined(found)  # type: ignore[arg-type]


def _stats_json(found: Running | Levels) -> dict[str, Any]:
    """The statistics as LeRobot has them: those of images are ``(C, 1, 1)``, 255 counting as 1."""
    arrays = {"min": found.low, "max": found.high, "mean": found.mean, "std": found.std}
    for share, values in zip(QUANTILES, found.quantiles(), strict=True):
        arrays[f"q{round(share * 100):02d}"] = values
    if isinstance(found, Levels):
        arrays = {name: values[:, None, None] / 255.0 for name, values in arrays.items()}
    return {**{k: v.tolist() for k, v in arrays.items()}, "count": [found.count]}
