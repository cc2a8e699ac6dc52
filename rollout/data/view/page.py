"""The page: a table of episodes, and the steps of those that it has room for."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.api import Outcome
from rollout.data.expressions import judge_scores, judge_table
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef, part_of_set
from rollout.data.view.steps import Data, pictures_data, steps_data
from rollout.errors import DatasetError
from rollout.files import read_document, replacing
from rollout.reports import TEMPLATES, render_page

MOST_BYTES = 64_000_000
"""Most bytes of a page."""

_PARTS = TEMPLATES.parent / "view"
_SCRIPTS = ("parts.js", "plots.js", "calls.js", "transcript.js", "film.js", "table.js", "main.js")
_SPARE = 100_000  # bytes for the head of the page and the descriptions of pictures


@dataclass(frozen=True)
class Written:
    """The contents of a page.

    Attributes:
        listed: episodes in its table.
        shown: episodes whose steps it has.
        failed: episodes of these that are damaged and cannot be read.
        left_out: frames that it has no room for.
        nbytes: its size.
    """

    listed: int
    shown: int
    failed: int
    left_out: int
    nbytes: int


def listed_episodes(dataset: Dataset, condition: str = "") -> list[EpisodeRef]:
    """Returns the episodes of the table: results, lost and unfinished ones, by their numbers.

    Args:
        dataset: the dataset.
        condition: a filter, see ``EpisodeFilter``.
    """
    refs = dataset.episodes(include_lost=True, filter=condition) + dataset.unfinished(condition)
    return sorted(refs, key=lambda ref: (ref.episode, ref.attempt))


def write_page(
    dataset: Dataset,
    out: Path,
    refs: Sequence[EpisodeRef],
    *,
    chosen: Sequence[EpisodeRef] | None = None,
    judges: Sequence[str] = (),
    most_bytes: int = MOST_BYTES,
) -> Written:
    """Writes a page that needs no other file, and returns what it has.

    Args:
        dataset: the dataset.
        out: the file.
        refs: episodes of its table.
        chosen: those whose steps it has; frames are left out if there is no room for all. By
            default as many of ``refs``, from the first, as there is room for.
        judges: runs of ``gamut judge``, each a column of mean scores; the verdicts are at the end
            of the transcripts.
        most_bytes: bound of its size.

    Raises:
        DatasetError: even without pictures there is no room for the table or for a chosen episode.
    """
    summary = _summary(dataset, refs, judges, served=False)
    room = most_bytes - len(summary) - _SPARE
    if room < 0:
        raise DatasetError(
            f"a table of {len(refs)} episodes needs {len(summary) / 1e6:.1f} MB, and a page has at "
            f"most {most_bytes / 1e6:g}; choose episodes by --filter"
        )
    verdicts, choose = _verdicts(judges), _first if chosen is None else _chosen
    found = choose(dataset, refs if chosen is None else chosen, room, verdicts)
    shown, failed, left_out = 0, 0, 0

    def counted() -> Iterator[tuple[str, str]]:
        nonlocal shown, failed, left_out
        for ref, data in found:
            shown += 1
            failed += "failed" in data
            left_out += sum(column["left_out"] for column in data["pictures"])
            yield _key(ref), _json(data)

    with replacing(out) as new, new.open("w", encoding="utf-8") as file:
        file.writelines(_rendered(summary, counted(), served=False))
    return Written(len(refs), shown, failed, left_out, out.stat().st_size)


def page(dataset: Dataset, refs: Sequence[EpisodeRef], judges: Sequence[str]) -> Iterator[str]:
    """Yields the text of a page that asks its server for the steps of an episode."""
    return _rendered(_summary(dataset, refs, judges, served=True), (), served=True)


def served_summary(dataset: Dataset, refs: Sequence[EpisodeRef], judges: Sequence[str]) -> str:
    """Returns the table of episodes as JSON, for a page that is open while a run goes on."""
    return _summary(dataset, refs, judges, served=True)


def served_episode(dataset: Dataset, ref: EpisodeRef, judges: Sequence[str] = ()) -> str:
    """Returns the steps of an episode as JSON, with as many pictures as there is room for."""
    [(_, data)] = _chosen(dataset, [ref], MOST_BYTES, _verdicts(judges))
    return _json(data)


Verdicts = Mapping[int, Sequence[tuple[str, str]]]
"""By episode, the criteria with the run, and the judge's words."""


def _chosen(
    dataset: Dataset, refs: Sequence[EpisodeRef], room: int, verdicts: Verdicts
) -> Iterator[tuple[EpisodeRef, Data]]:
    """All these episodes; the shorter leave what they do not need to the longer ones."""
    for n, ref in enumerate(sorted(refs, key=lambda ref: ref.length)):
        data, size = _episode(dataset, ref, room // (len(refs) - n), verdicts)
        if size > room:
            raise DatasetError(
                f"the steps of episode {ref.episode} need {size / 1e6:.1f} MB without pictures, "
                f"and there is room for {room / 1e6:.1f}; choose fewer episodes"
            )
        room -= size
        yield ref, data


def _first(
    dataset: Dataset, refs: Sequence[EpisodeRef], room: int, verdicts: Verdicts
) -> Iterator[tuple[EpisodeRef, Data]]:
    """The first episodes, whole; the very first one without frames that do not fit."""
    for n, ref in enumerate(refs):
        data, size = _episode(dataset, ref, room, verdicts)
        if size > room or (n and any(column["left_out"] for column in data["pictures"])):
            return
        room -= size
        yield ref, data


def _episode(dataset: Dataset, ref: EpisodeRef, room: int, verdicts: Verdicts) -> tuple[Data, int]:
    """An episode whose pictures fit with the rest, and the bytes it takes."""
    try:
        data: Data = steps_data(dataset, ref, verdicts.get(ref.episode, ()))
        size = len(_json(data))
        data["pictures"] = pictures_data(dataset, ref, max(0, room - size))
    except DatasetError as error:  # the other episodes are shown
        data = {"failed": str(error), "pictures": []}
        size = len(_json(data))
    files = sum(len(file) + 3 for column in data["pictures"] for file in column["files"])
    return data, size + files + sum(8 * len(column["at"]) for column in data["pictures"])


def _summary(
    dataset: Dataset, refs: Sequence[EpisodeRef], judges: Sequence[str], *, served: bool
) -> str:
    """The table of episodes and the description of the dataset."""
    manifest, counts = dataset.manifest, dataset.counts
    root = dataset.layout.root.resolve()
    about = {
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
    keys = [_key(ref) for ref in refs]
    data = {"about": about, "served": served, "keys": keys, "table": _table(refs, judges)}
    return _json(data)


def _table(refs: Sequence[EpisodeRef], judges: Sequence[str]) -> list[Data]:
    """Columns of the table: name, kind (number, digits or text) and values."""
    columns: list[tuple[str, str, list[Any]]] = [
        ("episode", "number", [r.episode for r in refs]),
        ("attempt", "number", [r.attempt for r in refs]),
        ("task", "text", [r.task for r in refs]),
        ("split", "text", [part_of_set(r.state_set) for r in refs]),
        ("state", "digits", [str(r.state) for r in refs]),
        ("return", "number", [_finite(r.total_reward) for r in refs]),
        ("progress", "number", [_finite(r.progress) for r in refs]),
        ("length", "number", [r.length for r in refs]),
        ("seconds", "number", [_finite(r.seconds) for r in refs]),
        ("outcome", "text", [_outcome(r) for r in refs]),
        ("end", "text", [str(r.end) for r in refs]),
        ("policy", "text", [r.policy for r in refs]),
        ("version", "number", [r.version_last for r in refs]),
        *((name, "number", values) for name, values in _judged(refs, judges)),
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


def _judged(
    refs: Sequence[EpisodeRef], judges: Sequence[str]
) -> Iterator[tuple[str, list[float | None]]]:
    for run in judges:
        scores = judge_scores(run)
        name = f"score {Path(run).resolve().name}"
        yield name, [_finite(scores.get(ref.episode, math.nan)) for ref in refs]


def _verdicts(judges: Sequence[str]) -> Verdicts:
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for run in judges:
        table = judge_table(run)
        empty = [""] * len(table["episode"])
        names = ("episode", "criterion", "score", "code", "evidence")
        for episode, name, score, code, said in zip(
            *(table[each].tolist() if each in table else empty for each in names), strict=True
        ):
            about = f"{Path(run).resolve().name}, {name}"
            result = f"{_finite(score):g}" if math.isfinite(score) else str(code or "no score")
            found[episode].append((about, f"{result}\n{said}".strip()))
    return found


def _outcome(ref: EpisodeRef) -> str:
    if ref.outcome == Outcome.RUNNING:
        return "undecided" if ref.end in ("terminated", "truncated") else ""
    return ref.outcome.name.lower()


def _finite(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _key(ref: EpisodeRef) -> str:
    return f"{ref.episode}:{ref.attempt}"


def _json(data: object) -> str:
    """ASCII that neither ends a script element nor opens a comment in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _rendered(summary: str, episodes: Iterable[tuple[str, str]], *, served: bool) -> Iterator[str]:
    style = read_document(_PARTS / "page.css").decode()
    script = "\n".join(read_document(_PARTS / name).decode() for name in _SCRIPTS)
    values: Mapping[str, object] = {
        "policy": content_policy(style, script, served=served),
        "style": style,
        "script": script,
        "summary": summary,
        "episodes": episodes,
    }
    return render_page("page", **values)


def content_policy(style: str, script: str, *, served: bool) -> str:
    """Returns the content security policy: its own style and script, and pictures in the page."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            *(["connect-src 'self'"] if served else []),
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
