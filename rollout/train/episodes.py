"""The episodes of a training run, one line each: ``episodes.jsonl``."""

from __future__ import annotations

import fnmatch
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollout.api import EpisodeResult, Fragment
from rollout.errors import DatasetError, UnknownNameError
from rollout.files import LineFile, parse_json, read_lines

Signals = dict[str, float]


def chosen_signals(patterns: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Returns the names that match one of the patterns, in the order of ``known``.

    Raises:
        UnknownNameError: a pattern matches nothing; the message names the nearest.
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
    """Returns the last signals of each of the results of a fragment; they hold no lost episode."""
    if not names:
        return [{} for _ in results]
    ended = zip(*(fragment.terminated | fragment.truncated).nonzero(), strict=True)
    places = {fragment.starts[fragment.start_index[at]].episode: at for at in ended}
    columns = {name: fragment.signals[name] for name in names}
    return [
        {name: column[places[result.start.episode]].item() for name, column in columns.items()}
        for result in results
    ]


class EpisodeLog(LineFile):
    """Appends the episodes of a run, one update at a time.

    Everything after the checkpoint from which a run continues is played again. So opening the file
    removes those lines, and no episode is written twice.

    Args:
        path: the file; created if missing.
        update: number of the last update to keep; lines of later updates are removed.

    Raises:
        DatasetError: a line is damaged.
        OSError: the file cannot be opened or written.
    """

    def __init__(self, path: Path, update: int) -> None:
        if path.exists():
            _forget_after(path, update)
        super().__init__(path)

    def write(
        self, update: int, env_steps: int, results: Sequence[EpisodeResult], signals: list[Signals]
    ) -> None:
        """Appends the episodes that ended in an update, each with its last signals.

        ``env_steps`` are those played so far, including this update.

        Raises:
            OSError: writing failed; a resumed run repairs the file.
        """
        lines = [
            json.dumps(_line(update, env_steps, result, own), allow_nan=False)
            for result, own in zip(results, signals, strict=True)
        ]
        self.append("".join(line + "\n" for line in lines))


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
    """Returns the lines of ``episodes.jsonl``; an incomplete last line is left out.

    Raises:
        DatasetError: a line is damaged; the message gives its number.
    """
    return [line for _, line in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields every line with the file offset of its end."""
    end = 0
    for number, raw in enumerate(read_lines(path), start=1):
        if raw.startswith(b"{") and not raw.endswith(b"\n"):
            return
        end += len(raw)
        try:
            line = parse_json(raw)
            if type(line["update"]) is not int:
                raise TypeError("update is no whole number")
        except (ValueError, LookupError, TypeError) as error:
            raise DatasetError(
                f"{path}:{number}: expected an episode that was trained on, got "
                f"{raw[:40]!r} ({error!r}); remove the line"
            ) from error
        yield end, line


def _forget_after(path: Path, update: int) -> None:
    """Truncates a file before the first line of a later update, or before an incomplete line."""
    keep = 0
    for end, line in _lines(path):
        if line["update"] > update:
            break
        keep = end
    os.truncate(path, keep)
