"""The files of a dataset at one moment, and their rows.

A live writer is allowed: a row has the same number in a journal and in the shard it becomes, so
a journal that is rolled in the meantime is read from its shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollout.data.episodes import INDEX_SCHEMA
from rollout.data.journal import JournalReader
from rollout.data.layout import Layout
from rollout.data.roll import derive_index, read_index
from rollout.data.runs import Open
from rollout.data.shard import UNREADABLE, ShardReader
from rollout.errors import DatasetError

_OPEN_SHARDS = 32  # a footer takes about a megabyte
_TRIES = 10  # retries if a journal becomes a shard during the scan


class Snapshot:
    """The shards, journals and episodes of a dataset at one moment.

    Args:
        layout: the dataset.

    Attributes:
        index: episodes that ended (``INDEX_SCHEMA``), each attempt once.
        open: episodes that have not.
        numbers: shards and journals, by number.

    Raises:
        DatasetError: an index is damaged, and so is the shard it could be rebuilt from.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.index: pa.Table = INDEX_SCHEMA.empty_table()
        self.open = Open.none()
        self.numbers: list[int] = []
        self._journals: dict[int, JournalReader] = {}
        self._shard = lru_cache(_OPEN_SHARDS)(self._open_shard)
        for _ in range(_TRIES):
            try:
                self._take()
            except FileNotFoundError:
                continue
            return
        raise DatasetError(f"the files of {layout.root} disappear while they are being read")

    def _take(self) -> None:
        # Journals first: one that has disappeared in the meantime has become a shard.
        waiting, data = self.layout.numbers("journal"), self.layout.numbers("data")
        tables, left = [INDEX_SCHEMA.empty_table()], Open.none()
        self._journals, self.numbers = {}, sorted({*waiting, *data})
        for number in self.numbers:
            if number in data:
                try:
                    table, left = read_index(self.layout, number)
                except DatasetError:
                    shard = ShardReader(self.layout.data(number))
                    table, left, _ = derive_index(shard, number, left)
            else:
                journal = self._journals[number] = JournalReader(self.layout.journal(number))
                table, left, _ = derive_index(journal, number, left)
            tables.append(table)
        self.index, self.open = _first_of_each(pa.concat_tables(tables)), left

    def read(self, number: int, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """Returns rows ``start`` to ``stop`` (exclusive) of a shard or journal.

        Raises:
            DatasetError: the rows are damaged, or gone.
        """
        journal = self._journals.get(number)
        if journal is not None:
            try:
                return journal.read(columns, start, stop)
            except FileNotFoundError:
                del self._journals[number]
        return self._shard(number).read(columns, start, stop)

    def table(
        self, number: int, columns: Sequence[str], narrow: Sequence[str], where: pc.Expression
    ) -> pa.Table:
        """Returns rows of a shard or journal.

        Args:
            number: the shard or journal.
            columns: columns wanted.
            narrow: columns that ``where`` may use.
            where: filter of the rows, None for all.

        Raises:
            DatasetError: the rows are damaged, or gone.
        """
        import pyarrow.dataset as pads  # noqa: PLC0415 - loads pandas, a third of a script's start

        journal = self._journals.get(number)
        if journal is not None:
            try:
                read = list(dict.fromkeys([*columns, *narrow]))
                rows = journal.read(read, 0, journal.rows)
                return pads.dataset(rows).to_table(columns=list(columns), filter=where)
            except FileNotFoundError:
                del self._journals[number]
        try:
            source = pads.dataset(str(self.layout.data(number)), format="parquet")
            return source.to_table(columns=list(columns), filter=where)
        except UNREADABLE as error:
            raise DatasetError(f"cannot read {self.layout.data(number)}: {error}") from error

    def _open_shard(self, number: int) -> ShardReader:
        try:
            return ShardReader(self.layout.data(number))
        except FileNotFoundError as error:
            raise DatasetError(
                f"{self.layout.data(number)} is gone; if it was not removed on purpose, run: "
                f"scripts/dataset.py doctor {self.layout.root}"
            ) from error

    def close(self) -> None:
        """Closes the files."""
        self._shard.cache_clear()


def _first_of_each(index: pa.Table) -> pa.Table:
    """The index without duplicates: a shard may have been copied by hand."""
    keys = [index.column(name).to_numpy().astype(np.int64) for name in ("episode", "attempt")]
    _, first = np.unique(np.stack(keys), axis=1, return_index=True)
    if len(first) == index.num_rows:
        return index.combine_chunks()
    return index.take(pa.array(np.sort(first))).combine_chunks()
