"""A line for every episode that was trained on: ``episodes.jsonl``."""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rollout.api import EpisodeResult, Fragment
from rollout.errors import UnknownNameError

Signals = dict[str, float]


def chosen_signals(patterns: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Returns the names that one of the patterns matches, in the order in which they are known.

    Raises:
        UnknownNameError: a pattern matches nothing; names the nearest.
    """
    chosen = set()
    for pattern in patterns:
        found = fnmatch.filter(known, pattern)
        if not found:
            raise UnknownNameError("signal", pattern, known)
        chosen.update(found)
    return tuple(name for name in known if name in chosen)


def last_signals(
    fragment: Fragment, results: Iterable[EpisodeResult], names: Sequence[str]
) -> list[Signals]:
    """Returns what the signals said at the end of episodes that ended in a fragment.

    Args:
        fragment: what was played.
        results: of it, without episodes that were lost.
        names: of the signals.
    """
    if not names:
        return [{} for _ in results]
    ended = zip(*(fragment.terminated | fragment.truncated).nonzero(), strict=True)
    places = {fragment.starts[fragment.start_index[at]].episode: at for at in ended}
    columns = {name: fragment.signals[name] for name in names}
    return [
        {name: column[places[result.start.episode]].item() for name, column in columns.items()}
        for result in results
    ]


class EpisodeLog:
    """Appends the episodes of a run, an update at a time.

    What came after the checkpoint that a run goes on from is played again, so opening forgets it:
    no episode is written twice.

    Args:
        path: the file; made if there is none.
        update: number of the last update that counts; what is of a later one is cut off.

    Raises:
        OSError: the file cannot be opened or written.
    """

    def __init__(self, path: Path, update: int) -> None:
        if path.exists():
            _forget_after(path, update)
        self._file = path.open("ab", buffering=0)

    def write(
        self, update: int, env_steps: int, results: Sequence[EpisodeResult], signals: list[Signals]
    ) -> None:
        """Appends the episodes that ended in an update.

        Args:
            update: its number, from 1.
            env_steps: steps played when it was made, its own included.
            results: the episodes.
            signals: last signals of each.

        Raises:
            OSError: the disk refuses; whoever goes on opens the file anew.
        """
        lines = [
            json.dumps(_line(update, env_steps, result, own), allow_nan=False)
            for result, own in zip(results, signals, strict=True)
        ]
        data = "".join(line + "\n" for line in lines).encode()
        while data:
            data = data[self._file.write(data) :]

    def close(self) -> None:
        """Closes the file. Idempotent."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(
    update: int, env_steps: int, result: EpisodeResult, signals: Mapping[str, float]
) -> dict[str, Any]:
    start = result.start
    return {
        "update": update,
        "env_steps": env_steps,
        "episode": start.episode,
        "state": start.state.index,
        "seed": start.seed,
        "end": result.end,
        "outcome": result.outcome.name.lower(),
        "length": result.length,
        "return": _number(result.total_reward),
        "progress": _number(result.progress),
        "seconds": round(result.seconds, 4),
        **{f"signal/{name}": _number(value) for name, value in signals.items()},
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def read_episodes(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of ``episodes.jsonl``; an unfinished last one is left out."""
    with path.open("rb") as file:
        return [json.loads(line) for line in file if line.endswith(b"\n")]


def _forget_after(path: Path, update: int) -> None:
    """Cuts a file before the first line of a later update, or before one that was not finished."""
    keep = 0
    with path.open("r+b") as file:
        for line in file:
            if not line.endswith(b"\n") or json.loads(line)["update"] > update:
                break
            keep += len(line)
        file.truncate(keep)
