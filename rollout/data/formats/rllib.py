"""Columns that RLlib's offline algorithms read, as BC and MARWIL, in Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollout.api import Array, Columns, option
from rollout.data.formats.common import (
    MARK,
    about_text,
    facts_of,
    pieces_of,
    replacing_folder,
    require_free,
    results_of,
)
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef
from rollout.data.schema import ACTION, OBSERVATION, Column
from rollout.errors import DatasetError, UnknownNameError

_ROWS = 4096  # of a file in which RLlib's readers take their share
_FACTS = ("state", "state_set", "part", "seed", "policy", "end", "outcome", "state_space")


@dataclass(frozen=True)
class Rllib:
    """The exporter ``rllib``: Parquet files in the columns of RLlib's offline data.

    ``eps_id``, ``t``, ``obs``, ``actions``, ``rewards``, ``new_obs``, ``terminateds``,
    ``truncateds`` and ``infos``, which has the start, the end and the policy of the episode. BC
    reads the folder by ``config.offline_data(input_=[OUT + "/data"])``. A game with several
    observations needs ``column``; one with several actions has no form there.
    """

    column: str | None = option(None, "The observation, e.g. observation/rgb; by default the only.")

    def check(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> None:
        """Checks the folder and that there is one action; see ``rollout.api.Exporter``."""
        require_free(dataset, out, MARK)
        results_of(episodes, "RLlib")
        self._columns(dataset)

    def _columns(self, dataset: Dataset) -> tuple[Column, Column]:
        columns = dataset.manifest.columns
        seen = {c.name: c for c in columns if c.role == OBSERVATION and c.dtype != "string"}
        done = [c for c in columns if c.role == ACTION]
        if self.column is not None and self.column not in seen:
            raise UnknownNameError("observation", self.column, tuple(seen))
        if self.column is None and len(seen) != 1:
            raise DatasetError(
                f"RLlib's columns hold one observation, and there are {', '.join(seen)}; choose "
                f"one: --set column=NAME"
            )
        if len(done) != 1 or done[0].dtype == "string":
            names = ", ".join(c.name for c in done)
            raise DatasetError(f"RLlib's columns hold one action of numbers, and there are {names}")
        return seen[self.column or next(iter(seen))], done[0]

    def write(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> int:
        """Writes the folder and returns the number of steps; see ``rollout.api.Exporter``."""
        self.check(dataset, episodes, out)
        seen, done = self._columns(dataset)
        refs, steps = results_of(episodes, "RLlib"), 0
        with replacing_folder(out) as root:
            (root / "data").mkdir()
            waiting, rows, number = list[pa.Table](), 0, 0
            for at, ref in enumerate(refs):
                waiting.append(_episode(dataset, ref, seen, done))
                rows += ref.length
                steps += ref.length
                if rows >= _ROWS or at == len(refs) - 1:
                    path = root / "data" / f"part-{number:06d}.parquet"
                    pq.write_table(pa.concat_tables(waiting), path, compression="zstd")
                    waiting, rows, number = [], 0, number + 1
            (root / MARK).write_text(about_text(dataset.manifest), "utf-8")
        return steps


def _episode(dataset: Dataset, ref: EpisodeRef, seen: Column, done: Column) -> pa.Table:
    names = [seen.name, done.name, "reward"]
    parts: list[Columns] = [w.columns for w in pieces_of(dataset, ref, names)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    obs, count = columns[seen.name], ref.length
    last = dataset.read(ref, ["reward"]).final_observations.get(seen.key, obs[-1])
    ends = np.zeros(count, bool)
    ends[-1] = True
    facts = facts_of(ref, dataset.manifest)
    infos = {name: pa.array([str(facts[name])] * count) for name in _FACTS}
    arrays: Mapping[str, pa.Array] = {
        "eps_id": pa.array([f"{ref.episode}-{ref.attempt}"] * count),
        "t": pa.array(np.arange(count)),
        "obs": _tensors(obs),
        "actions": _tensors(columns[done.name]),
        "rewards": pa.array(columns["reward"]),
        "new_obs": _tensors(np.concatenate([obs[1:], np.asarray(last)[None]])),
        "terminateds": pa.array(ends & (ref.end == "terminated")),
        "truncateds": pa.array(ends & (ref.end == "truncated")),
        "infos": pa.StructArray.from_arrays(list(infos.values()), names=list(infos)),
    }
    return pa.table(dict(arrays))


def _tensors(values: Array) -> pa.Array:
    """Numbers as themselves, arrays as Arrow's tensors of a fixed shape, which Ray Data reads."""
    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(values))
