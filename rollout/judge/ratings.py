"""Ratings that verdicts are compared with: of people, or of another judge.

Three kinds of files are read: a CSV file with the columns ``episode``, ``criterion``, ``score``
and, for several raters, ``rater``; the file ``ratings.jsonl`` of ``gamut rate``; and the rating
files of MCU (``*.json``), one or a folder of them.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollout.errors import ConfigError
from rollout.files import parse_json, read_document, read_lines
from rollout.judge.agreement import krippendorff
from rollout.judge.replies import TIE, TITLES, A, read_reply, scores_of
from rollout.judge.rubric import Rubric
from rollout.judge.sources import Clip

FILE = "ratings.jsonl"
"""The file of the ratings of people in the folder of what they rate."""

_MOST_NAMED = 5  # clips in a message


@dataclass(frozen=True)
class Rating:
    """What one rater says of one criterion.

    Attributes:
        rater: who rated.
        clip: name of the clip; see ``Clip.name``.
        other: name of the clip that it is compared with; empty without one.
        criterion: what was rated.
        score: the score; of pairs 1 if ``clip`` is better, 0.5, or 0; NaN for none.
    """

    rater: str
    clip: str
    other: str
    criterion: str
    score: float


@dataclass(frozen=True)
class Known:
    """Ratings by the numbers of clips, averaged over raters.

    Attributes:
        scores: by criterion and clip.
        pairs: by criterion and pair of clips, the smaller number first.
        alpha: Krippendorff's alpha among the raters, by criterion; only where there are several.
    """

    scores: Mapping[str, Mapping[int, float]]
    pairs: Mapping[str, Mapping[tuple[int, int], float]]
    alpha: Mapping[str, float]


def read_ratings(path: str) -> list[Rating]:
    """Returns the ratings of a file, or of a folder of MCU's rating files.

    Raises:
        ConfigError: it cannot be read, or has no rating.
    """
    place = Path(path).expanduser()
    if place.is_dir() and (place / FILE).is_file():
        place /= FILE
    try:
        if place.is_dir() or place.suffix == ".json":
            found = list(_of_mcu(place))
        elif place.suffix == ".jsonl":
            found = list(_of_people(place))
        else:
            found = list(_of_csv(place))
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise ConfigError(
            f"ratings: {path}: expected a CSV file with the columns episode, criterion and score, "
            f"a {FILE} of gamut rate, or rating files of MCU; {error!r}"
        ) from error
    if not found:
        raise ConfigError(f"ratings: {path} has no ratings")
    return found


def _of_csv(path: Path) -> Iterator[Rating]:
    text = read_document(path).decode()
    seen: Counter[tuple[str, str]] = Counter()
    for row in csv.DictReader(io.StringIO(text, newline="")):
        about = row["episode"], row["criterion"]
        seen[about] += 1
        # Without names of raters, the ratings of a clip are of different ones.
        rater = row.get("rater") or f"rating {seen[about]}"
        yield Rating(rater, about[0], "", about[1], float(row["score"]))


def _of_people(path: Path) -> Iterator[Rating]:
    newest: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for line in read_lines(path):
        if not line.endswith(b"\n"):
            continue  # the writer was killed while it wrote it
        data = parse_json(line)
        newest[data["rater"], data["clip"], data["other"]] = data["scores"]
    for (rater, clip, other), scores in newest.items():
        for criterion, value in scores.items():
            yield Rating(rater, clip, other, criterion, score_of(value))


def score_of(value: object) -> float:
    """Returns a score as a number; ``A`` is 1, ``B`` 0, a tie 0.5, and NaN is none."""
    if isinstance(value, str):
        return 0.5 if value == TIE else float(value == A)
    return math.nan if value is None else float(str(value))


@dataclass(frozen=True)
class McuFile:
    """A rating file of MCU.

    Attributes:
        clip: the rated video.
        other: the video that it is compared with; empty without one.
        task: name of the task.
        values: scores or winners by criterion; a criterion without any is left out.
    """

    clip: str
    other: str
    task: str
    values: Mapping[str, float | str | None]


def read_mcu_file(path: Path) -> McuFile:
    """Returns what a rating file of MCU says, whatever form its values have.

    Raises:
        ValueError: it is not a mapping, nor a list of one and the text that it was made from.
    """
    data = parse_json(read_document(path))
    text = ""
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        text = str(data[1]) if len(data) > 1 and isinstance(data[1], str) else ""
        data = data[0]
    if not isinstance(data, Mapping):
        raise ValueError(f"{path}: expected a mapping of dimensions, got {type(data).__name__}")
    pairwise = "video_1_path" in data
    values = {**read_reply(text, pairwise=pairwise), **scores_of(data, pairwise=pairwise)}
    clip = str(data.get("video_1_path") or data.get("video_path") or path.stem)
    other = str(data.get("video_2_path") or "")
    task = str(data.get("task_name") or re.sub(r"[ _]*\d+$", "", path.stem))
    return McuFile(clip, other, task, values)


def _of_mcu(place: Path) -> Iterator[Rating]:
    for file in sorted(place.rglob("*.json")) if place.is_dir() else [place]:
        found = read_mcu_file(file)
        for criterion in TITLES:
            score = score_of(found.values.get(criterion))
            yield Rating(place.name, found.clip, found.other, criterion, score)


def check_scales(ratings: Iterable[Rating], rubric: Rubric, path: str) -> None:
    """Checks that scores are on the scale of their criterion.

    Raises:
        ConfigError: one is not.
    """
    for each in ratings:
        scale = rubric.criteria.get(each.criterion)
        if scale is None or each.other or math.isnan(each.score):
            continue
        if not scale.low <= each.score <= scale.high:
            raise ConfigError(
                f"ratings: {path}: {each.criterion}: expected ratings on the scale of the rubric, "
                f"{scale.low:g} to {scale.high:g}, got {each.score:g} for {each.clip}; convert "
                f"them, or change low and high of the criterion"
            )


def known_ratings(
    ratings: Sequence[Rating], clips: Sequence[Clip], path: str
) -> tuple[Known, list[str]]:
    """Returns the ratings of these clips, and the names of other clips that were rated.

    Raises:
        ConfigError: none of the clips was rated.
    """
    numbers = _numbers_of(clips)
    scores: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    pairs: dict[str, dict[tuple[int, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    strange: dict[str, None] = {}
    used = 0
    for each in ratings:
        names = [each.clip, each.other] if each.other else [each.clip]
        found = [numbers.get(_plain(name)) for name in names]
        strange |= {name: None for name, n in zip(names, found, strict=True) if n is None}
        if None in found:
            continue
        used += 1
        if math.isnan(each.score):
            continue
        first, *rest = (n for n in found if n is not None)
        if not rest:
            scores[each.criterion][first].append(each.score)
        elif first < rest[0]:
            pairs[each.criterion][first, rest[0]].append(each.score)
        else:
            pairs[each.criterion][rest[0], first].append(1.0 - each.score)
    if not used:
        raise ConfigError(
            f"ratings: {path} rates other clips: {named(list(strange))}; expected "
            f"{named([clip.name for clip in clips])}"
        )
    return Known(_means(scores), _means(pairs), alphas(ratings)), list(strange)


def named(names: Sequence[str]) -> str:
    """Returns the first few of some names for a message."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def alphas(ratings: Iterable[Rating]) -> dict[str, float]:
    """Returns Krippendorff's alpha among raters by criterion, where there are several raters.

    The verdicts on single clips count, and those on pairs where there are no others.
    """
    given: dict[tuple[str, bool], dict[tuple[str, str], dict[str, float]]] = {}
    for each in ratings:
        units = given.setdefault((each.criterion, bool(each.other)), {})
        units.setdefault((each.clip, each.other), {})[each.rater] = each.score
    found: dict[str, float] = {}
    for (criterion, of_pairs), units in sorted(given.items()):
        raters = sorted({rater for unit in units.values() for rater in unit})
        if len(raters) < 2 or (of_pairs and (criterion, False) in given):
            continue
        rows = [[unit.get(rater, math.nan) for unit in units.values()] for rater in raters]
        found[criterion] = krippendorff(np.array(rows))
    return found


def _means(given: Mapping[str, Mapping[Any, Sequence[float]]]) -> dict[str, dict[Any, float]]:
    return {
        criterion: {key: float(np.mean(each)) for key, each in of.items()}
        for criterion, of in given.items()
    }


def _numbers_of(clips: Sequence[Clip]) -> dict[str, int]:
    """Numbers of clips by every name that a file may give them; ambiguous names are left out."""
    found: dict[str, set[int]] = defaultdict(set)
    for clip in clips:
        path = Path(clip.name)
        for name in (clip.name, clip.name.replace("/", "_"), path.name):
            found[_plain(name)].add(clip.number)
    return {name: next(iter(numbers)) for name, numbers in found.items() if len(numbers) == 1}


def _plain(name: str) -> str:
    """A name without what differs between files: folder of another machine, ending, spaces."""
    name = name.removesuffix(".mp4").removesuffix(".json")
    if Path(name).is_absolute() or name.startswith("."):
        name = Path(name).name
    return re.sub(r"[\s_-]+", "_", name)


def line_of(rater: str, clip: str, other: str, scores: Mapping[str, object], time: str) -> str:
    """Returns a line of the file of ``gamut rate``."""
    data = {"rater": rater, "clip": clip, "other": other, "scores": dict(scores), "time": time}
    return json.dumps(data, ensure_ascii=False) + "\n"
