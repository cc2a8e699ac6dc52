"""What a page lists: episodes of a dataset, or results of a job, as columns of a table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.api import Outcome
from rollout.data.expressions import judge_scores
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef, part_of_set
from rollout.data.view.steps import Data


@dataclass(frozen=True)
class Video:
    """A video of an episode, in a file beside the page.

    Attributes:
        key: of the episode in the table.
        file: the file.
        caption: what it shows.
    """

    key: str
    file: Path
    caption: str


@dataclass(frozen=True)
class Listing:
    """What a page lists: the episodes of a dataset, or the results of a job.

    Attributes:
        about: ``name``, ``bridge``, ``task``, ``goal`` and what else is known of all episodes.
        keys: of each episode; one with steps in a dataset has ``EPISODE:ATTEMPT``.
        table: columns of the table: name, kind (number, digits or text) and values.
        report: HTML above the table.
        videos: videos of single episodes.
    """

    about: Mapping[str, Any]
    keys: Sequence[str]
    table: Sequence[Data]
    report: str = ""
    videos: Sequence[Video] = ()

    def summary(self, *, served: str = "") -> str:
        """Returns the table and what is about it, as JSON.

        Args:
            served: ``live`` if a server has the steps and the table grows, ``done`` if it has the
                steps, empty if the page is a file.
        """
        return as_json(
            {"about": self.about, "served": served, "keys": self.keys, "table": self.table}
        )


def dataset_listing(
    dataset: Dataset, refs: Sequence[EpisodeRef], judges: Sequence[str] = ()
) -> Listing:
    """Returns the episodes of a dataset; each of ``judges`` is a column of mean scores."""
    return Listing(_about(dataset), [key_of(ref) for ref in refs], _table(refs, judges))


def listed_episodes(dataset: Dataset, condition: str = "") -> list[EpisodeRef]:
    """Returns the episodes of the table: results, lost and unfinished ones, by their numbers.

    Args:
        dataset: the dataset.
        condition: a filter, see ``EpisodeFilter``.
    """
    refs = dataset.episodes(include_lost=True, filter=condition) + dataset.unfinished(condition)
    return sorted(refs, key=lambda ref: (ref.episode, ref.attempt))


def _about(dataset: Dataset) -> Data:
    """What the page says about a dataset."""
    manifest, counts = dataset.manifest, dataset.counts
    root = dataset.layout.root.resolve()
    return {
        "name": f"{root.parent.name}/{root.name}",
        "bridge": manifest.bridge,
        "task": manifest.task["name"],
        "goal": str(manifest.task.get("goal") or ""),
        "policy": manifest.policy or "unnamed",
        "created": manifest.created,
        "run": manifest.run,
        "steps": counts.steps,
        "columns": [
            [c.name, f"{c.dtype}{list(c.shape) if c.shape else ''}", str(c.codec), c.unit, c.doc]
            for c in manifest.columns
        ],
    }


def _table(refs: Sequence[EpisodeRef], judges: Sequence[str]) -> list[Data]:
    """The columns of the table of a dataset."""
    columns: list[tuple[str, str, list[Any]]] = [
        ("episode", "number", [r.episode for r in refs]),
        ("attempt", "number", [r.attempt for r in refs]),
        ("task", "text", [r.task for r in refs]),
        ("split", "text", [part_of_set(r.state_set) for r in refs]),
        ("state", "digits", [str(r.state) for r in refs]),
        ("return", "number", [finite(r.total_reward) for r in refs]),
        ("progress", "number", [finite(r.progress) for r in refs]),
        ("length", "number", [r.length for r in refs]),
        ("seconds", "number", [finite(r.seconds) for r in refs]),
        ("outcome", "text", [_outcome(r) for r in refs]),
        ("end", "text", [str(r.end) for r in refs]),
        ("policy", "text", [r.policy for r in refs]),
        ("version", "number", [r.version_last for r in refs]),
        *((name, "number", values) for name, values in judged_columns(refs, judges)),
        ("seed", "digits", [str(r.seed) for r in refs]),
        ("state set", "text", [r.state_set for r in refs]),
        ("reason", "text", [": ".join(filter(None, (r.phase, r.reason))) for r in refs]),
    ]
    # Columns that say nothing here.
    idle: Mapping[str, set[Any]] = {
        "attempt": {0},
        "progress": {None},
        "reason": {""},
        "version": {-1},
    }
    return [
        {"name": name, "kind": kind, "values": values}
        for name, kind, values in columns
        if name not in idle or not {*values} <= idle[name]
    ]


def judged_columns(
    refs: Sequence[EpisodeRef | None], judges: Sequence[str]
) -> Iterator[tuple[str, list[float | None]]]:
    """Yields the name of each run of ``gamut judge`` and its mean scores of episodes."""
    for run in judges:
        scores = judge_scores(run)
        found = [math.nan if ref is None else scores.get(ref.episode, math.nan) for ref in refs]
        yield f"score {Path(run).resolve().name}", [finite(score) for score in found]


def _outcome(ref: EpisodeRef) -> str:
    if ref.outcome == Outcome.RUNNING:
        return "undecided" if ref.end in ("terminated", "truncated") else ""
    return ref.outcome.name.lower()


def finite(value: float) -> float | None:
    """Returns a number with seven digits; None for one that JSON does not have."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


def key_of(ref: EpisodeRef) -> str:
    """Returns the key of an episode with steps."""
    return f"{ref.episode}:{ref.attempt}"


def as_json(data: object) -> str:
    """Returns ASCII that neither ends a script element nor opens a comment in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
