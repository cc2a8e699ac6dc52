"""Ratings by people: who is shown what in which order, and how each rating is kept.

A rater does not see who played. Every press of a key appends a line to ``ratings.jsonl``, which is
on the disk before the page goes on; the newest line of a rater and a clip counts.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rollout.errors import ConfigError, InputError
from rollout.files import LineFile, parse_json, sync_file
from rollout.judge.criteria import Criteria
from rollout.judge.judge import pairs_of
from rollout.judge.ratings import FILE, Rating, alphas, line_of, read_ratings, score_of
from rollout.judge.replies import TIE, A, B
from rollout.judge.rubric import Rubric
from rollout.judge.sources import Clip

Mode = Literal["absolute", "pairwise"]

_MOST_NAME = 60  # characters of a rater's name


@dataclass(frozen=True)
class Item:
    """What is rated at once.

    Attributes:
        clip: the clip; of a pair the one with the smaller number.
        other: the other clip of a pair; None without one.
    """

    clip: Clip
    other: Clip | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The names of its clips, as in the file of ratings."""
        return self.clip.name, "" if self.other is None else self.other.name


class People(AbstractContextManager["People"]):
    """What people rate, and their ratings. Thread-safe.

    Args:
        folder: the folder of the file of ratings, which may have earlier ones.
        clips: the clips.
        rubric: the criteria that are rated.
        rules: points of each task, shown to the raters.
        mode: scores of single clips, or which of two is better.
        pairs: number of pairs.
        seed: of the pairs, and of the orders.

    Raises:
        ConfigError: there is nothing to rate, or the file has other lines.
        OSError: the file cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        clips: Sequence[Clip],
        rubric: Rubric,
        rules: Mapping[str, Criteria],
        *,
        mode: Mode = "absolute",
        pairs: int = 100,
        seed: int = 0,
    ) -> None:
        self._rubric, self._rules, self._mode, self._seed = rubric, rules, mode, seed
        if mode == "pairwise":
            self.items = [Item(*pair) for pair in pairs_of(clips, pairs, seed)]
        else:
            self.items = [Item(clip) for clip in clips]
        if not self.items:
            raise ConfigError(f"there is nothing to rate: {len(clips)} clips, mode {mode}")
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._given: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        known = {item.key for item in self.items}
        if self.path.is_file() and self.path.stat().st_size:
            for each in read_ratings(str(self.path)):
                if (each.clip, each.other) in known:
                    self._take(each)
        self._file = LineFile(self.path)
        self._file.cut()
        sync_file(folder)  # the name of a new file

    def _take(self, each: Rating) -> None:
        value: float | str | None = None if np.isnan(each.score) else each.score
        if each.other and value is not None:
            value = {1.0: A, 0.0: B}.get(each.score, TIE)
        mine = self._given.setdefault(each.rater, {}).setdefault((each.clip, each.other), {})
        mine[each.criterion] = value

    def work(self, rater: str) -> dict[str, Any]:
        """Returns what a rater is shown, in the rater's own order, with the ratings so far.

        Raises:
            InputError: the name cannot be used.
        """
        name = _checked_name(rater)
        order = np.random.default_rng(_seed_of(self._seed, name))
        places = order.permutation(len(self.items)).tolist()
        swapped = order.integers(2, size=len(self.items)).tolist()
        with self._lock:
            given = {key: dict(scores) for key, scores in self._given.get(name, {}).items()}
        items = []
        for place in places:
            item, turned = self.items[place], self._mode == "pairwise" and bool(swapped[place])
            scores = given.get(item.key, {})
            items.append(
                {
                    "item": place,
                    "task": item.clip.task,
                    "goal": item.clip.goal,
                    "rules": {k: list(v) for k, v in self._rules.get(item.clip.task, {}).items()},
                    "swapped": turned,
                    "scores": {k: _turned(v, turned) for k, v in scores.items()},
                }
            )
        return {"rater": name, "items": items}

    def about(self) -> dict[str, Any]:
        """Returns what the page shows to everyone: the criteria and who has rated how much."""
        criteria = [
            {"name": name, "title": each.title or name, "doc": each.doc}
            | {"low": each.low, "high": each.high}
            for name, each in self._rubric.criteria.items()
        ]
        raters = {name: counts["done"] for name, counts in self.progress().items()}
        return {
            "mode": self._mode,
            "count": len(self.items),
            "criteria": criteria,
            "raters": raters,
        }

    def rate(self, body: bytes) -> dict[str, Any]:
        """Stores a rating, which is on the disk on return, and returns the rater's progress.

        Args:
            body: JSON with ``rater``, ``item``, ``swapped`` and ``scores``: a number, null for "I
                cannot tell", or of pairs ``A``, ``B`` or ``tie`` as they were shown.

        Raises:
            InputError: it is something else.
            OSError: it could not be written.
        """
        try:
            data = parse_json(body)
            rater = _checked_name(data["rater"])
            item, turned = self._item(data["item"]), data["swapped"] is True
            scores = {k: self._value(k, v, turned) for k, v in dict(data["scores"]).items()}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise InputError(f"this is not a rating: {error}") from error
        time = datetime.now(UTC).isoformat(timespec="seconds")
        with self._lock:
            both = {**self._given.get(rater, {}).get(item.key, {}), **scores}
            self._file.append(line_of(rater, *item.key, both, time))
            sync_file(self.path)
            self._given.setdefault(rater, {})[item.key] = both
        return self.progress()[rater]

    def _item(self, number: object) -> Item:
        if type(number) is not int or not 0 <= number < len(self.items):
            raise ValueError(f"expected an item from 0 to {len(self.items) - 1}, got {number!r}")
        return self.items[number]

    def _value(self, name: str, value: object, turned: bool) -> float | str | None:
        scale = self._rubric.criteria[name]
        if value is None:
            return None
        if self._mode == "pairwise":
            if value not in (A, B, TIE):
                raise ValueError(f"{name}: expected A, B or tie, got {value!r}")
            return str(_turned(value, turned))
        if type(value) not in (int, float) or not scale.low <= float(str(value)) <= scale.high:
            raise ValueError(f"{name}: expected {scale.low:g} to {scale.high:g}, got {value!r}")
        return float(str(value))

    def progress(self) -> dict[str, dict[str, int]]:
        """Returns by rater how many items are ``done``, ``begun`` and there in ``all``."""
        whole = set(self._rubric.criteria)
        with self._lock:
            counts = {
                rater: Counter(
                    "done" if whole <= set(scores) else "begun" for scores in of.values()
                )
                for rater, of in self._given.items()
            }
        return {
            rater: {"done": each["done"], "begun": each["begun"], "all": len(self.items)}
            for rater, each in counts.items()
        }

    def agreement(self) -> dict[str, float]:
        """Returns Krippendorff's alpha by criterion, where several people rated; NaN if unknown."""
        with self._lock:
            ratings = [
                Rating(rater, *key, criterion, score_of(value))
                for rater, of in self._given.items()
                for key, scores in of.items()
                for criterion, value in scores.items()
            ]
        found = alphas(ratings)
        return {name: found[name] for name in self._rubric.criteria if name in found}

    def close(self) -> None:
        """Closes the file. Idempotent."""
        self._file.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _turned(value: Any, turned: bool) -> Any:
    return {A: B, B: A}.get(value, value) if turned and isinstance(value, str) else value


def _checked_name(name: object) -> str:
    text = " ".join(name.split()) if isinstance(name, str) else ""
    if not text or len(text) > _MOST_NAME or not text.isprintable():
        raise InputError(f"expected the name of a rater of 1 to {_MOST_NAME} characters")
    return text


def _seed_of(seed: int, rater: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{rater}".encode()).digest()[:8], "big")
