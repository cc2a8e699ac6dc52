"""Recorded steps as batches: read from a dataset in parts that fit in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollout.api import MASK, Array, Columns
from rollout.api.masks import illegal_rows
from rollout.data import Dataset, EpisodeRef, StepWeight, returns_to_go
from rollout.data.schema import column_name
from rollout.errors import DatasetError
from rollout.train.batch import ACTION, OBSERVATION, part
from rollout.train.replay import NEXT

_MIB = 2**20


@dataclass(frozen=True)
class StepColumns:
    """The columns of recorded steps that an algorithm learns from.

    Attributes:
        reads: the observation columns that the network reads.
        actions: the action columns.
        needs: further columns: ``reward`` (with ``terminated``), ``return``, ``next``.
        gamma: discount factor of ``return``.
        weight: weight of each step, a further column; None for none.
    """

    reads: Sequence[str]
    actions: Sequence[str]
    needs: frozenset[str] = frozenset()
    gamma: float = 1.0
    weight: StepWeight | None = None

    def read(self, dataset: Dataset, ref: EpisodeRef) -> Columns:
        """Returns an episode, ``{column: (T, ...)}``.

        Raises:
            DatasetError: the steps are damaged, a weight is negative or not finite, or an action
                was not legal by its mask.
        """
        names = {OBSERVATION + k: column_name("observation", k) for k in self.reads}
        names |= {ACTION + k: column_name("action", k) for k in self.actions}
        if self.needs & {"reward", "return"}:
            names |= {"reward": "reward", "terminated": "terminated"}
        weighed = frozenset() if self.weight is None else self.weight.columns
        episode = dataset.read(ref, [*names.values(), *(weighed - names.keys())])
        columns: Columns = {key: episode.columns[name] for key, name in names.items()}
        if self.weight is not None:
            columns["weight"] = self.weight.of(ref, {k: episode.columns[k] for k in weighed})
        self._require_legal(dataset, ref, columns)
        if "return" in self.needs:
            returns = returns_to_go(columns["reward"], self.gamma)
            columns["return"] = returns.astype(np.float32)
        if "next" in self.needs:
            for key in self.reads:
                seen = columns[OBSERVATION + key]
                # Where the end was not seen nothing follows; the last observation is repeated.
                final = episode.final_observations.get(key, seen[-1])
                columns[NEXT + key] = np.concatenate(
                    [seen[1:], np.asarray(final, seen.dtype)[None]]
                )
        return columns

    def _require_legal(self, dataset: Dataset, ref: EpisodeRef, columns: Columns) -> None:
        """Raises DatasetError if an action was not legal: no masked network can learn it."""
        for key in self.actions:
            mask = columns.get(OBSERVATION + MASK + key)
            if mask is None:
                continue
            taken = columns[ACTION + key]
            wrong = illegal_rows(dataset.manifest.action_space[key], mask, taken)
            if "weight" in columns:
                wrong &= columns["weight"] > 0
            if wrong.any():
                step = int(wrong.argmax())
                raise DatasetError(
                    f"episode {ref.episode}, step {step}: the recorded {key} {taken[step]} is not "
                    f"legal by {MASK + key!r}, and a network that keeps to the mask cannot learn "
                    f"it ({int(wrong.sum())} of {len(wrong)} steps of the episode); leave such "
                    f"episodes out with filter, or such steps with weight"
                )


@dataclass(frozen=True)
class Demonstrations:
    """Recorded episodes, one after another.

    Attributes:
        columns: of the steps, each ``(steps, ...)``.
        lengths: steps of each episode.
    """

    columns: Columns
    lengths: NDArray[np.int64]

    @classmethod
    def read(
        cls, dataset: Dataset, refs: Sequence[EpisodeRef], columns: StepColumns
    ) -> Demonstrations:
        """Returns some episodes of a dataset, at least one; they are held in memory."""
        first = columns.read(dataset, refs[0])
        lengths = np.array([ref.length for ref in refs], np.int64)
        steps = int(lengths.sum())
        out = {key: np.empty((steps, *a.shape[1:]), a.dtype) for key, a in first.items()}
        at = 0
        for number, ref in enumerate(refs):
            episode = first if number == 0 else columns.read(dataset, ref)
            for key, array in episode.items():
                out[key][at : at + ref.length] = array
            at += ref.length
        return cls(out, lengths)

    def chunks(
        self, rng: np.random.Generator | None, *, minibatch: int, bptt: int, recurrent: bool
    ) -> Iterator[tuple[NDArray[np.int64], Array, Array]]:
        """Yields every step once, in parts of ``bptt`` by ``minibatch / bptt`` steps.

        Steps of weight 0 are left out, but for a recurrent network, which sees whole episodes.
        For a recurrent network, a column of a part continues that of the part before: each column
        is a sequence of whole episodes in random order. Otherwise the order of steps is random.

        Args:
            rng: decides the order; None for that of the recording.
            minibatch: steps of a part.
            bptt: length of its sequences.
            recurrent: whether the network has a memory.

        Yields:
            numbers of the steps, whether an episode begins there, and whether there is a step at
            all; each ``(bptt, columns)``.
        """
        lengths = self.lengths if recurrent else np.ones(self.lengths.sum(), np.int64)
        begins = np.cumsum(lengths) - lengths
        order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
        if not recurrent and "weight" in self.columns:
            order = order[self.columns["weight"][order] > 0]
        width = max(1, minibatch // bptt)
        # The next episode goes to the sequence that is the shortest so far.
        ends = np.zeros(width, np.int64)
        parts: list[list[NDArray[np.int64]]] = [[] for _ in range(width)]
        for number in order.tolist():
            column = int(ends.argmin())
            parts[column].append(np.arange(begins[number], begins[number] + lengths[number]))
            ends[column] += lengths[number]
        rows = -(-int(ends.max()) // bptt) * bptt
        index = np.full((rows, width), -1, np.int64)
        for column, own in enumerate(parts):
            if own:
                index[: ends[column], column] = np.concatenate(own)
        first = np.isin(index, begins)
        for row in range(0, rows, bptt):
            here = index[row : row + bptt]
            yield np.maximum(here, 0), first[row : row + bptt] | (here < 0), here >= 0


def last_transitions(path: str, like: Mapping[str, Array], most: int) -> Columns:
    """Returns the last recorded steps of a dataset, as rows in the order of the episodes.

    Args:
        path: of the dataset.
        like: the rows of a batch of ``rollout.train.replay.transitions``, which decide columns and
            data types.
        most: maximum number of steps.

    Raises:
        DatasetError: the dataset is damaged, or has no finished episode.
    """
    columns = StepColumns(
        list(part(like, OBSERVATION)), list(part(like, ACTION)), frozenset({"reward", "next"})
    )
    with Dataset(path) as dataset:
        refs = sorted((ref for ref in dataset.episodes() if ref.length), key=lambda r: r.episode)
        if not refs:
            raise DatasetError(f"{path} has no finished episode; record some with gamut collect")
        before = np.cumsum([0, *(ref.length for ref in reversed(refs))])
        count = int(np.searchsorted(before, most))
        found = Demonstrations.read(dataset, refs[-count:], columns).columns
    return {key: found[key][-most:].astype(array.dtype, copy=False) for key, array in like.items()}


class PartReader:
    """Reads the episodes of a dataset in parts; the next one is read while one is learned from.

    All of them are kept if they fit in memory. Otherwise the parts of an epoch are a random
    division of the episodes, which depends on the seed and the epoch only.

    Args:
        dataset: where they are; nothing else may read it meanwhile.
        refs: the episodes.
        columns: what is read of them.
        memory_mb: limit of the memory of the steps, in MiB.
        seed: of the run.

    Attributes:
        parts: number of parts of an epoch.
        wait_s: seconds that ``part`` has waited for the disk in all.
    """

    def __init__(
        self,
        dataset: Dataset,
        refs: Sequence[EpisodeRef],
        columns: StepColumns,
        *,
        memory_mb: float,
        seed: int,
    ) -> None:
        self._dataset, self._refs, self._columns, self._seed = dataset, list(refs), columns, seed
        step = columns.read(dataset, self._refs[0])
        size = sum(a.nbytes / len(a) for a in step.values()) * sum(r.length for r in refs)
        # Two parts are in memory: the one that is learned from and the next. The rows that the
        # dataset holds decoded have an eighth.
        needed = size / (memory_mb * _MIB)
        parts = int(np.ceil(2.0 * needed * 8 / 7))
        self.parts = 1 if needed <= 1.0 else min(len(self._refs), parts)
        self._executor = ThreadPoolExecutor(1, "gamut-dataset")
        self._next: tuple[int, Future[Demonstrations]] | None = None
        self.wait_s = 0.0

    def part(self, number: int) -> Demonstrations:
        """Returns part ``number % parts`` of epoch ``number // parts``.

        Raises:
            DatasetError: the steps are damaged.
        """
        if self.parts == 1:
            number = 0
        if self._next is None or self._next[0] != number:
            self._next = (number, self._executor.submit(self._read, number))
        began = time.monotonic()
        found = self._next[1].result()
        self.wait_s += time.monotonic() - began
        if self.parts > 1:
            self._next = (number + 1, self._executor.submit(self._read, number + 1))
        return found

    def _read(self, number: int) -> Demonstrations:
        return Demonstrations.read(self._dataset, self._refs_of(number), self._columns)

    def _refs_of(self, number: int) -> list[EpisodeRef]:
        if self.parts == 1:
            return self._refs
        epoch, part = divmod(number, self.parts)
        order = np.random.default_rng((self._seed, epoch, 1)).permutation(len(self._refs))
        lengths = np.array([self._refs[n].length for n in order])
        # Cut where the steps are divided evenly; every part has an episode.
        before = np.cumsum(lengths) - lengths
        cuts = np.searchsorted(before, np.arange(1, self.parts) * lengths.sum() / self.parts)
        steps = np.arange(1, self.parts)
        cuts = np.maximum.accumulate(np.maximum(cuts, steps) - steps) + steps
        cuts = np.minimum(cuts, len(order) - self.parts + steps)
        # In the order of the recording, in which episodes share row groups: each is decoded once.
        return [self._refs[n] for n in np.sort(np.split(order, cuts)[part])]

    def close(self) -> None:
        """Ends the thread that reads. Idempotent."""
        self._executor.shutdown(wait=True, cancel_futures=True)
