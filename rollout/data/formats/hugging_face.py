"""A folder for Hugging Face's ``datasets`` with images as images, and a card of the dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollout.data.formats.common import (
    MARK,
    about_text,
    facts_of,
    pieces_of,
    replacing_folder,
    require_free,
    results_of,
)
from rollout.data.formats.hf_features import encode_column, is_png, require_dimensions, schema_of
from rollout.data.manifest import Manifest
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef, part_of_set
from rollout.data.schema import Column
from rollout.reports import render, table

_FILE_BYTES = 500 << 20
_NONE = np.empty(0)  # values of images that are copied as files


@dataclass(frozen=True)
class HuggingFace:
    """The exporter ``hf``: a folder that ``datasets.load_dataset`` opens, with a card.

    The splits are the parts of the state sets (``train``, ``test``). The configuration ``default``
    has a row for each step with all columns, images as ``Image``, arrays as ``Array3D`` and so on;
    ``episodes`` a row for each episode with its start, end and policy.
    """

    def check(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> None:
        """Checks the folder and the columns; see ``rollout.api.Exporter``."""
        require_free(dataset, out, MARK)
        results_of(episodes, "Hugging Face")
        require_dimensions(list(_columns(dataset.manifest).values()), "datasets")

    def write(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> int:
        """Writes the folder and returns the number of episodes; see ``rollout.api.Exporter``."""
        self.check(dataset, episodes, out)
        parts: dict[str, list[EpisodeRef]] = {}
        for ref in results_of(episodes, "Hugging Face"):
            name = re.sub(r"\W", "_", part_of_set(ref.state_set)) or "train"
            parts.setdefault(name, []).append(ref)
        with replacing_folder(out) as root:
            for folder in ("data", "episodes"):
                (root / folder).mkdir()
            for part, refs in parts.items():
                _write_steps(dataset, refs, root / "data", part)
                rows = pa.Table.from_pylist([facts_of(ref, dataset.manifest) for ref in refs])
                pq.write_table(rows, root / "episodes" / f"{part}.parquet", compression="zstd")
            manifest = dataset.manifest
            card = render(
                "hugging_face",
                parts=list(parts),
                task=manifest.task,
                game=manifest.bridge,
                policy=manifest.policy or "an unnamed policy",
                digest=manifest.state_space.digest,
                columns=table(("column", "type", "unit", "contents"), _rows(manifest)),
            )
            (root / "README.md").write_text(card, "utf-8")
            (root / MARK).write_text(about_text(manifest), "utf-8")
        return sum(map(len, parts.values()))


def _columns(manifest: Manifest) -> Mapping[str, Column]:
    return {c.name: c for c in manifest.columns if not c.name.startswith("final_")}


def _rows(manifest: Manifest) -> list[tuple[str, ...]]:
    columns = _columns(manifest).values()
    kinds = [f"{c.dtype}{list(c.shape) if c.shape else ''}" for c in columns]
    return [(f"`{c.name}`", k, c.unit, c.doc) for c, k in zip(columns, kinds, strict=True)]


def _write_steps(dataset: Dataset, refs: Sequence[EpisodeRef], folder: Path, part: str) -> None:
    columns = _columns(dataset.manifest)
    schema = schema_of(columns)
    decoded = [name for name, column in columns.items() if not is_png(column)]
    left = list(reversed(refs))
    number = 0
    while left:
        path = folder / f"{part}-{number:05d}.parquet"
        with ExitStack() as stack:
            file = stack.enter_context(path.open("wb"))
            out = stack.enter_context(pq.ParquetWriter(file, schema, compression="zstd"))
            while left and file.tell() < _FILE_BYTES:
                ref = left.pop()
                for window in pieces_of(dataset, ref, decoded):
                    start, stop = window.start, window.start + len(window.columns["reward"])
                    arrays = [
                        encode_column(c, window.columns[n])
                        if n in window.columns
                        else encode_column(c, _NONE, dataset.stored(ref, n, start, stop))
                        for n, c in columns.items()
                    ]
                    out.write_table(pa.Table.from_arrays(arrays, schema=schema))
        number += 1
