"""Quotas of episodes: a recording has so many of each kind, and the steps of others are dropped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from rollout.api import EpisodeResult, Fragment, Outcome
from rollout.data.filters import EpisodeFilter
from rollout.data.refs import EpisodeRef
from rollout.data.rows import LossRecord
from rollout.data.shard import chunk_ends
from rollout.data.writer import DatasetWriter
from rollout.errors import DatasetError
from rollout.files import LineFile, parse_json, read_lines

_MOST_BYTES = 256 << 20  # of steps whose episodes go on


class Quotas:
    """How many episodes of each kind are wanted, and how many there are.

    Args:
        wanted: number of episodes by the condition that they fulfil, see ``EpisodeFilter``.

    Attributes:
        counts: number of episodes so far, by condition; may exceed what is wanted.

    Raises:
        DatasetError: a condition is none, or uses scores, which no episode has when it ends.
    """

    def __init__(self, wanted: Mapping[str, int]) -> None:
        self.wanted = dict(wanted)
        self._filters = {text: EpisodeFilter(text) for text in wanted}
        self.counts = dict.fromkeys(wanted, 0)
        judged = [text for text, each in self._filters.items() if each.uses_scores]
        if judged:
            raise DatasetError(
                f"quota {judged[0]!r}: expected a condition on what is known when an episode ends, "
                f"got the score of a judge; record first, then filter by scores"
            )

    def need(self, ref: EpisodeRef) -> bool:
        """Returns True if the episode counts for a quota that is not met."""
        return any(self.counts[text] < self.wanted[text] for text in self._matching(ref))

    def count(self, ref: EpisodeRef) -> None:
        """Counts an episode for every quota whose condition it fulfils."""
        for text in self._matching(ref):
            self.counts[text] += 1

    def _matching(self, ref: EpisodeRef) -> list[str]:
        return [text for text, each in self._filters.items() if each.matches(ref)]

    @property
    def progress(self) -> tuple[int, int]:
        """Number of episodes counted for quotas, without those beyond them, and number wanted."""
        have = sum(min(self.counts[text], number) for text, number in self.wanted.items())
        return have, sum(self.wanted.values())

    def unmet(self) -> str:
        """Returns what is missing, e.g. ``3 of 100 episodes with success``; empty if nothing is."""
        return ", ".join(
            f"{self.counts[text]} of {number} episodes with {text}"
            for text, number in self.wanted.items()
            if self.counts[text] < number
        )


@dataclass
class _Steps:
    """The steps of an episode that goes on; ``kept`` if they are recorded whatever its end is."""

    attempt: int
    version: int
    started: datetime
    batches: list[pa.RecordBatch] = field(default_factory=list)
    nbytes: int = 0
    kept: bool = False

    def take(self) -> list[pa.RecordBatch]:
        taken, self.batches, self.nbytes = self.batches, [], 0
        return taken


class QuotaRecorder(AbstractContextManager["QuotaRecorder"]):
    """Records the episodes that quotas need, when they end, and drops the steps of the others.

    The steps of an episode are kept in memory until it ends, so a crash costs those of the episodes
    that were being played, which are played again. Where they need more than ``most_bytes``, the
    longest episode is recorded from then on, whatever its end is. Lost episodes are recorded. What
    is known of a dropped episode is appended to a file.

    Args:
        writer: where the episodes are recorded.
        quotas: counted here.
        dropped: the file of dropped episodes, one line of JSON each.
        most_bytes: most bytes of steps in memory.
    """

    def __init__(
        self,
        writer: DatasetWriter,
        quotas: Quotas,
        dropped: Path,
        *,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self._writer, self._quotas, self._path = writer, quotas, dropped
        self._most_bytes = most_bytes
        self._playing: dict[int, _Steps] = {}
        self._dropped: LineFile | None = None

    def append(self, fragment: Fragment) -> None:
        """Records the episodes that end in a fragment and are needed.

        Raises:
            DatasetError, DiskFullError, OutOfTurnError: as of ``DatasetWriter.append``.
        """
        batch, losses = self._writer.encode(fragment)
        rows: list[pa.RecordBatch] = []
        self._hold(batch)
        for episode in {loss["episode"] for loss in losses}:
            rows += self._lost(episode, losses)
        for result in fragment.results:
            if result.end != "lost":
                rows += self._ended(result, str(self._writer.manifest.policy))
        rows += self._limit()
        rows += [b for steps in self._playing.values() if steps.kept for b in steps.take()]
        if rows or losses:
            every = pa.concat_batches(rows) if rows else batch.slice(0, 0)
            self._writer.append_rows(every, losses)

    def _hold(self, batch: pa.RecordBatch) -> None:
        """Keeps the steps of each episode."""
        start = 0
        for stop in chunk_ends(batch).tolist() if batch.num_rows else ():
            # Copied: the columns may be those of the fragment, whose memory is used again.
            part = batch.take(pa.array(np.arange(start, stop)))
            start = stop
            episode, attempt = part["episode"][0].as_py(), part["attempt"][0].as_py()
            steps = self._playing.get(episode)
            if steps is None or steps.attempt != attempt:  # an earlier attempt is no result
                began = part["wall_time"][0].as_py() - timedelta(seconds=part["latency"][0].as_py())
                steps = _Steps(attempt, part["version"][0].as_py(), began)
                self._playing[episode] = steps
            steps.batches.append(part)
            steps.nbytes += part.nbytes

    def _lost(self, episode: int, losses: Sequence[LossRecord]) -> list[pa.RecordBatch]:
        attempts = {loss["attempt"] for loss in losses if loss["episode"] == episode}
        steps = self._playing.get(episode)
        if steps is None or steps.attempt not in attempts:
            return []
        return self._playing.pop(episode).take()

    def _ended(self, result: EpisodeResult, policy: str) -> list[pa.RecordBatch]:
        """The steps to record of an episode that has ended."""
        steps = self._playing.pop(result.start.episode)  # it has one step at least
        version = steps.batches[-1]["version"][-1].as_py() if steps.batches else steps.version
        task = str(self._writer.manifest.task["name"])
        ref = _ref(result, task, policy, (steps.version, version), steps.started)
        if self._quotas.need(ref) or steps.kept:
            self._quotas.count(ref)
            return steps.take()
        if self._dropped is None:
            self._dropped = LineFile(self._path)
            self._dropped.cut()
        self._dropped.append(_line(ref))
        return []

    def _limit(self) -> list[pa.RecordBatch]:
        """The steps of the longest episodes, if all that are held are too many."""
        rows: list[pa.RecordBatch] = []
        while sum(steps.nbytes for steps in self._playing.values()) > self._most_bytes:
            longest = max(self._playing.values(), key=lambda steps: steps.nbytes)
            longest.kept = True
            rows += longest.take()
        return rows

    def flush(self) -> None:
        """Forces everything recorded to disk; raises like ``DatasetWriter.flush``."""
        self._writer.flush()

    def close(self) -> None:
        """Closes the file of dropped episodes; the writer is closed by who opened it. Idempotent.

        The steps of episodes that go on are dropped.
        """
        self._playing.clear()
        if self._dropped is not None:
            self._dropped.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def read_dropped(path: Path) -> list[EpisodeRef]:
    """Returns the dropped episodes in a file; none if there is no file.

    Raises:
        DatasetError: a line is damaged.
    """
    return list(_parsed(path, read_lines(path))) if path.exists() else []


def _parsed(path: Path, lines: Iterable[bytes]) -> Iterator[EpisodeRef]:
    for number, line in enumerate(lines, 1):
        if line.endswith(b"\n"):  # else a crash cut it, and the episode is played again
            try:
                known = parse_json(line)
                known["outcome"] = Outcome(known["outcome"])
                known["started"] = datetime.fromisoformat(known["started"])
                yield EpisodeRef(**known, pieces=())
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                raise DatasetError(
                    f"{path}, line {number}: expected a dropped episode ({error!r}); remove the "
                    f"line, and its episode is played again"
                ) from error


def _line(ref: EpisodeRef) -> str:
    known = {f.name: getattr(ref, f.name) for f in fields(ref) if f.name != "pieces"}
    known |= {"outcome": int(ref.outcome), "started": ref.started.isoformat()}
    return json.dumps(known) + "\n"


def _ref(
    result: EpisodeResult, task: str, policy: str, versions: tuple[int, int], started: datetime
) -> EpisodeRef:
    """The episode of a result, without the places of its steps."""
    start = result.start
    return EpisodeRef(
        episode=start.episode,
        attempt=start.attempt,
        task=task,
        state=start.state.index,
        state_set=start.state_set,
        seed=start.seed,
        policy=policy,
        version_first=versions[0],
        version_last=versions[1],
        instance=result.instance,
        slot=result.slot,
        length=result.length,
        total_reward=result.total_reward,
        progress=result.progress,
        outcome=result.outcome,
        end=result.end,
        seconds=result.seconds,
        started=started,
        phase=None,
        reason=None,
        pieces=(),
    )
