"""RLDS, episodes in the format of TensorFlow Datasets, written without TensorFlow."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rollout.api import Array, option
from rollout.data.codec import Codec, encode
from rollout.data.formats.common import (
    MARK,
    about_text,
    facts_of,
    replacing_folder,
    require_free,
    results_of,
    step_columns,
)
from rollout.data.formats.hf_features import is_image, is_png
from rollout.data.formats.tfrecord import MOST_BYTES, Values, checksum, example, write_record
from rollout.data.manifest import Manifest
from rollout.data.reader import Dataset
from rollout.data.refs import Episode, EpisodeRef, part_of_set
from rollout.data.schema import OBSERVATION, Column
from rollout.errors import DatasetError

_FEATURES = "tensorflow_datasets.core.features"
_VERSION = "1.0.0"
_PNG = Codec("png")
_MOST_NUMBERS = 64  # of a value that is a list of numbers; larger ones are bytes
_SHARD_MB = 200
_OWN = {
    name: Column(name, "step", name, kind)
    for name, kind in (
        *(("discount", "float32"), ("is_first", "bool"), ("is_last", "bool")),
        ("is_terminal", "bool"),
    )
}


@dataclass(frozen=True)
class Rlds:
    """The exporter ``rlds``: a folder that ``tfds.builder_from_directory`` opens, without loss.

    Each example is an episode: ``steps`` with ``observation``, ``action``, ``reward``,
    ``discount``, ``is_first``, ``is_last``, ``is_terminal`` and the other columns, and
    ``episode_metadata`` with its start, end and policy. The last step has the observation after the
    last action, and zeros for the rest; without such an observation it is the last action's. The
    splits are the parts of the state sets. Images are PNG; float64 and large arrays are bytes.
    """

    shard_mb: int = option(_SHARD_MB, "Size in MB at which a file is closed.", gt=0)

    def check(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> None:
        """Checks the folder and the names; see ``rollout.api.Exporter``."""
        checksum()
        require_free(dataset, out, MARK)
        results_of(episodes, "RLDS")
        _paths(dataset.manifest)

    def write(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> int:
        """Writes the folder and returns the number of episodes; see ``rollout.api.Exporter``."""
        self.check(dataset, episodes, out)
        refs, manifest = results_of(episodes, "RLDS"), dataset.manifest
        parts: dict[str, list[EpisodeRef]] = {}
        for ref in refs:
            part = re.sub(r"\W", "_", part_of_set(ref.state_set)) or "train"
            parts.setdefault(part, []).append(ref)
        name = re.sub(r"\W+", "_", str(manifest.task["name"])).strip("_").lower() or "gamut"
        with replacing_folder(out) as root:
            splits = [
                _Split(dataset, root, name, part, self.shard_mb << 20).write(each)
                for part, each in parts.items()
            ]
            facts = facts_of(refs[0], manifest)
            features = {
                "steps": _sequence(_tree({p: _feature(c) for p, c in _paths(manifest).items()})),
                "episode_metadata": _dict({k: _of_fact(v) for k, v in facts.items()}),
            }
            info = {
                "name": name,
                "version": _VERSION,
                "description": str(manifest.task["goal"] or manifest.task["name"]),
                "fileFormat": "tfrecord",
                "splits": splits,
            }
            for file, content in (("features.json", _dict(features)), ("dataset_info.json", info)):
                (root / file).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
            (root / MARK).write_text(about_text(manifest), "utf-8")
        return len(refs)


@dataclass
class _Split:
    """Writes the files of a split."""

    dataset: Dataset
    root: Path
    name: str
    part: str
    most_bytes: int
    lengths: list[int] = field(default_factory=list)
    nbytes: int = 0

    def write(self, refs: Sequence[EpisodeRef]) -> dict[str, Any]:
        """Writes the episodes, and returns the description of the split."""
        paths, left = _paths(self.dataset.manifest), list(reversed(refs))
        while left:
            self.lengths.append(0)
            with self._file(len(self.lengths) - 1).open("wb") as file:
                while left and file.tell() < self.most_bytes:
                    ref = left.pop()
                    message = example(_episode(self.dataset, ref, paths))
                    if len(message) > MOST_BYTES:
                        raise DatasetError(
                            f"episode {ref.episode} takes {len(message):,} bytes; RLDS holds at "
                            f"most {MOST_BYTES:,} an episode"
                        )
                    self.nbytes += write_record(file, message)
                    self.lengths[-1] += 1
        count = len(self.lengths)
        for number in range(count):
            path = self._file(number)
            path.rename(path.with_name(f"{path.name}-of-{count:05d}"))
        return {
            "name": self.part,
            "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            "numBytes": str(self.nbytes),
            "shardLengths": list(map(str, self.lengths)),
        }

    def _file(self, number: int) -> Path:
        return self.root / f"{self.name}-{self.part}.tfrecord-{number:05d}"


def _paths(manifest: Manifest) -> dict[str, Column]:
    """The columns by their paths in a step, as ``observation/rgb``."""
    paths: dict[str, Column] = dict(_OWN)
    for column in step_columns(manifest):
        role = column.role
        path = role if column.key == role else f"{role}/{column.key.replace('/', '.')}"
        path = column.key if role in ("step", "details") else path
        if path in paths:
            raise DatasetError(f"two columns would both be {path}; rename one")
        paths[path] = column
    return paths


def _episode(dataset: Dataset, ref: EpisodeRef, paths: Mapping[str, Column]) -> dict[str, Values]:
    """The features of an episode."""
    names = [c.name for path, c in paths.items() if path not in _OWN and not is_png(c)]
    episode = dataset.read(ref, names)
    count = ref.length + bool(episode.final_observations)
    last, ended = np.arange(count) == count - 1, np.arange(count) >= ref.length - 1
    is_terminal = ref.end == "terminated"
    own: dict[str, Array] = {
        "discount": np.where(ended & is_terminal, 0.0, 1.0).astype(np.float32),
        "is_first": np.arange(count) == 0,
        "is_last": last,
        "is_terminal": last & is_terminal,
    }
    found: dict[str, Values] = {}
    for path, column in paths.items():
        if is_png(column):
            files = dataset.stored(ref, column.name, 0, ref.length).to_pylist()
            ends = [v[None] for k, v in episode.final_observations.items() if k == column.key]
            found[f"steps/{path}"] = [*files, *(v for end in ends for v in _values(column, end))]
            continue
        values = own[path] if path in own else _with_final(episode, column, count)
        found[f"steps/{path}"] = _values(column, values)
    for name, fact in facts_of(ref, dataset.manifest).items():
        found[f"episode_metadata/{name}"] = _fact(fact)
    return found


def _with_final(episode: Episode, column: Column, count: int) -> Array:
    """The values of the steps, and after the last action its observation, or zero."""
    values = episode.columns[column.name]
    if count == len(values):
        return values
    end: Any
    if column.role == OBSERVATION:
        end = episode.final_observations[column.key]
    elif column.dtype == "string":
        end = episode.final_details if column.name == "details" else None
        end = "" if end is None and column.codec.name != "json" else end
    else:
        end = np.zeros(values.shape[1:], values.dtype)
    joined = np.empty((count, *values.shape[1:]), values.dtype)
    joined[:-1], joined[-1] = values, end
    return joined


def _is_bytes(column: Column) -> bool:
    if column.dtype in ("timestamp", "float64", "float16"):
        return True
    return (
        column.dtype != "bool"
        and math.prod(column.shape) > _MOST_NUMBERS
        and (
            column.dtype not in ("uint32", "uint64")  # which TensorFlow does not decode
        )
    )


def _values(column: Column, values: Array) -> Values:
    """The values of all steps, one after the other."""
    if is_image(column):
        return [v.as_py() for v in encode(_PNG, pa.binary(), values)]
    if column.dtype == "string":
        texts = encode(column.codec, pa.string(), values).to_pylist()
        return [(text or "").encode() for text in texts]
    if _is_bytes(column):
        rows = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        return [row.tobytes() for row in rows]
    return values.reshape(-1)


def _fact(value: Any) -> Values:
    if isinstance(value, str):
        return [value.encode()]
    return [np.float64(value).tobytes()] if isinstance(value, float) else np.array([value])


def _of_fact(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"pythonClassName": f"{_FEATURES}.text_feature.Text", "text": {}}
    kind = ("float64", "bytes") if isinstance(value, float) else ("int64", "none")
    return _tensor((), *kind)


def _feature(column: Column) -> dict[str, Any]:
    """The description of a column in ``features.json``."""
    if is_image(column):
        height, width, *channels = column.shape
        image = {"dtype": "uint8", "encodingFormat": "png"}
        image |= _shape((height, width, *(channels or [1])))
        return {"pythonClassName": f"{_FEATURES}.image_feature.Image", "image": image}
    if column.dtype == "string":
        return {"pythonClassName": f"{_FEATURES}.text_feature.Text", "text": {}}
    dtype = "float64" if column.dtype == "timestamp" else column.dtype
    return _tensor(column.shape, dtype, "bytes" if _is_bytes(column) else "none")


def _tensor(shape: tuple[int, ...], dtype: str, encoding: str) -> dict[str, Any]:
    about = {"dtype": dtype, "encoding": encoding, **_shape(shape)}
    return {"pythonClassName": f"{_FEATURES}.tensor_feature.Tensor", "tensor": about}


def _shape(shape: Sequence[int]) -> dict[str, Any]:
    return {"shape": {"dimensions": list(map(str, shape))} if shape else {}}


def _tree(features: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Features by paths as nested dictionaries."""
    flat, inner = dict[str, Any](), dict[str, dict[str, Any]]()
    for path, each in features.items():
        head, _, rest = path.partition("/")
        if rest:
            inner.setdefault(head, {})[rest] = each
        else:
            flat[head] = each
    return _dict(flat | {head: _dict(each) for head, each in inner.items()})


def _dict(features: Mapping[str, Any]) -> dict[str, Any]:
    name = f"{_FEATURES}.features_dict.FeaturesDict"
    return {"pythonClassName": name, "featuresDict": {"features": dict(features)}}


def _sequence(feature: Mapping[str, Any]) -> dict[str, Any]:
    name = f"{_FEATURES}.dataset_feature.Dataset"
    return {"pythonClassName": name, "sequence": {"feature": dict(feature), "length": "-1"}}
