"""The page: a table of episodes, and the steps of those that it has room for."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from rollout.data.expressions import judge_table
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef
from rollout.data.view.listing import (
    Listing,
    Video,
    as_json,
    dataset_listing,
    finite,
    key_of,
)
from rollout.data.view.steps import Data, pictures_data, steps_data
from rollout.errors import DatasetError
from rollout.files import open_file, read_document, replacing
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


def write_page(
    dataset: Dataset,
    out: Path,
    refs: Sequence[EpisodeRef],
    *,
    chosen: Sequence[EpisodeRef] | None = None,
    judges: Sequence[str] = (),
    most_bytes: int = MOST_BYTES,
) -> Written:
    """Writes a page of a dataset that needs no other file, and returns what it has.

    Args:
        dataset: the dataset.
        out: the file.
        refs: episodes of its table.
        chosen: as of ``write_listing``.
        judges: runs of ``gamut judge``, each a column of mean scores; the verdicts are at the end
            of the transcripts.
        most_bytes: bound of its size.

    Raises:
        DatasetError: even without pictures there is no room for the table or for a chosen episode.
    """
    listing = dataset_listing(dataset, refs, judges)
    return write_listing(
        listing, out, dataset, refs, chosen=chosen, judges=judges, most_bytes=most_bytes
    )


def write_listing(
    listing: Listing,
    out: Path,
    dataset: Dataset | None,
    refs: Sequence[EpisodeRef],
    *,
    chosen: Sequence[EpisodeRef] | None = None,
    judges: Sequence[str] = (),
    most_bytes: int = MOST_BYTES,
) -> Written:
    """Writes a page as a file, and returns what it has.

    Args:
        listing: what it lists. Videos are in the page while they take at most half of it; the
            others stay in their files, to which the page has relative links.
        out: the file.
        dataset: the steps; None if there are none.
        refs: the episodes with steps, of which it has those there is room for, from the first.
        chosen: those whose steps it has; frames are left out if there is no room for all.
        judges: runs of ``gamut judge``; the verdicts are at the end of the transcripts.
        most_bytes: bound of its size.

    Raises:
        DatasetError: even without pictures there is no room for the table or for a chosen episode.
    """
    summary = listing.summary()
    head = len(summary) + len(listing.report)
    room = most_bytes - head - _SPARE
    if room < 0:
        raise DatasetError(
            f"a table of {len(listing.keys)} episodes needs {head / 1e6:.1f} MB, and a page has "
            f"at most {most_bytes / 1e6:g}; choose episodes by --filter"
        )
    videos = list(_placed(listing.videos, out.parent, room // 2))
    room -= sum(len(video["data"]) for video in videos)
    verdicts, choose = _verdicts(judges), _first if chosen is None else _chosen
    wanted = refs if chosen is None else chosen
    found = iter(()) if dataset is None else choose(dataset, wanted, room, verdicts)
    shown, failed, left_out = 0, 0, 0

    def counted() -> Iterator[tuple[str, str]]:
        nonlocal shown, failed, left_out
        for ref, data in found:
            shown += 1
            failed += "failed" in data
            left_out += sum(column["left_out"] for column in data["pictures"])
            yield key_of(ref), as_json(data)

    with replacing(out) as new, new.open("w", encoding="utf-8") as file:
        file.writelines(_rendered(summary, counted(), listing.report, videos, served=False))
    return Written(len(listing.keys), shown, failed, left_out, out.stat().st_size)


def _placed(videos: Sequence[Video], folder: Path, room: int) -> Iterator[Data]:
    """The videos as a page has them: in itself while there is room, else as links."""
    for video in videos:
        data = ""
        if video.file.stat().st_size * 4 // 3 + 4 <= room:
            with open_file(video.file) as file:
                data = f"data:video/mp4;base64,{base64.b64encode(file.read(room)).decode()}"
            room -= len(data)
        link = os.path.relpath(video.file, folder)
        yield {"key": video.key, "caption": video.caption, "data": data, "link": link}


def page(dataset: Dataset, refs: Sequence[EpisodeRef], judges: Sequence[str]) -> Iterator[str]:
    """Yields the text of a page that asks its server for the steps of an episode."""
    return served_page(dataset_listing(dataset, refs, judges), "live")


def served_page(listing: Listing, served: str) -> Iterator[str]:
    """Yields the text of a page whose server has the steps and the folder ``videos``.

    Args:
        listing: what it lists.
        served: as of ``Listing.summary``.
    """
    videos = [
        {"key": v.key, "caption": v.caption, "data": "", "link": f"videos/{quote(v.file.name)}"}
        for v in listing.videos
    ]
    return _rendered(listing.summary(served=served), (), listing.report, videos, served=True)


def served_summary(dataset: Dataset, refs: Sequence[EpisodeRef], judges: Sequence[str]) -> str:
    """Returns the table of episodes as JSON, for a page that is open while a run goes on."""
    return dataset_listing(dataset, refs, judges).summary(served="live")


def served_episode(dataset: Dataset, ref: EpisodeRef, judges: Sequence[str] = ()) -> str:
    """Returns the steps of an episode as JSON, with as many pictures as there is room for."""
    [(_, data)] = _chosen(dataset, [ref], MOST_BYTES, _verdicts(judges))
    return as_json(data)


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
        size = len(as_json(data))
        data["pictures"] = pictures_data(dataset, ref, max(0, room - size))
    except DatasetError as error:  # the other episodes are shown
        data = {"failed": str(error), "pictures": []}
        size = len(as_json(data))
    files = sum(len(file) + 3 for column in data["pictures"] for file in column["files"])
    return data, size + files + sum(8 * len(column["at"]) for column in data["pictures"])


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
            result = f"{finite(score):g}" if math.isfinite(score) else str(code or "no score")
            found[episode].append((about, f"{result}\n{said}".strip()))
    return found


def _rendered(
    summary: str,
    episodes: Iterable[tuple[str, str]],
    report: str,
    videos: Sequence[Data],
    *,
    served: bool,
) -> Iterator[str]:
    style = read_document(_PARTS / "page.css").decode()
    script = "\n".join(read_document(_PARTS / name).decode() for name in _SCRIPTS)
    media = "'self'" if served else "data:"
    policy = f"{content_policy(style, script, served=served)}; media-src {media}"
    values: Mapping[str, object] = {
        "policy": policy,
        "style": style,
        "script": script,
        "summary": summary,
        "episodes": episodes,
        "report": report,
        "videos": videos,
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
