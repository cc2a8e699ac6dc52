"""The map of the screen: named boxes, read from ``ui_map.yaml`` and scaled to any size."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rollout.errors import ConfigError, UnknownNameError
from rollout.yaml12 import load_yaml

UI_MAP = Path(__file__).parents[1] / "data" / "ui_map.yaml"
"""Path of the map of our own screen."""

ENEMIES = 5
"""Most enemies of a row."""
_KEYS = {"at", "in", "step", "count", "text"}
_ALIGNMENTS = ("left", "center", "right")


class Box(NamedTuple):
    """A rectangle of pixels: corner, width, height."""

    x: int
    y: int
    w: int
    h: int

    @property
    def centre(self) -> tuple[int, int]:
        """The pixel in its middle."""
        return self.x + self.w // 2, self.y + self.h // 2

    def contains(self, x: float, y: float) -> bool:
        """Returns whether a point is in it."""
        return self.x <= x < self.x + self.w and self.y <= y < self.y + self.h


@dataclass(frozen=True)
class _Entry:
    at: tuple[float, float, float, float]
    parent: str
    step: tuple[float, float]
    count: int
    text: int  # size in pixels; 0: no text
    align: str
    bold: bool


class UiMap:
    """Named boxes on a screen of some size.

    Args:
        size: width and height in pixels; None for the size that the map is written in.
        path: of the map.

    Raises:
        ConfigError: the map is malformed, or a box leaves the screen.
    """

    def __init__(self, size: tuple[int, int] | None = None, path: Path = UI_MAP) -> None:
        self.path = path
        self._boxes: dict[tuple[str, int, int], Box] = {}
        full, self._entries = _parsed(path, path.stat().st_mtime_ns if path.exists() else 0)
        self.size = size or full
        self.scale = self.size[0] / full[0]
        if self.size[0] < 1 or abs(self.size[1] / full[1] - self.scale) > 1 / full[1]:
            raise ConfigError(
                f"expected a size with the shape of {full[0]} x {full[1]}, got {self.size[0]} x "
                f"{self.size[1]}; say e.g. 640 x 360"
            )
        self._check_inside()

    def __contains__(self, name: str) -> bool:
        """Returns whether the map has a box of this name."""
        return name in self._entries

    def box(
        self, name: str, i: int = 0, j: int = 0, *, origin: tuple[float, float] | None = None
    ) -> Box:
        """Returns a box in pixels of this size.

        Args:
            name: as in the map.
            i: which box; for boxes within others, within which.
            j: for boxes within others, which of those within one.
            origin: the corner of the parent, in pixels of the map, if it is not where the map has
                it.

        Raises:
            UnknownNameError: the map has no such box.
        """
        if origin is None:
            known = self._boxes.get((name, i, j))
            if known is None:
                known = self._boxes[name, i, j] = self._scaled(self.exact(name, i, j))
            return known
        return self._scaled(self.exact(name, i, j, origin=origin))

    def _scaled(self, exact: tuple[float, float, float, float]) -> Box:
        (x, y, w, h), s = exact, self.scale
        left, top = round(x * s), round(y * s)
        return Box(left, top, max(1, round((x + w) * s) - left), max(1, round((y + h) * s) - top))

    def exact(
        self, name: str, i: int = 0, j: int = 0, *, origin: tuple[float, float] | None = None
    ) -> tuple[float, float, float, float]:
        """Returns a box in pixels of the map; see ``box``."""
        entry = self._entry(name)
        x, y, w, h = entry.at
        if not entry.parent:
            return x + i * entry.step[0], y + i * entry.step[1], w, h
        px, py = origin if origin is not None else self.exact(entry.parent, i)[:2]
        return px + x + j * entry.step[0], py + y + j * entry.step[1], w, h

    def count(self, name: str) -> int:
        """Returns how many boxes have this name, within one parent."""
        return self._entry(name).count

    def text(self, name: str) -> tuple[int, str, bool]:
        """Returns the size of the text in a box, in its pixels, its alignment, whether bold."""
        entry = self._entry(name)
        return max(5, round(entry.text * self.scale)), entry.align, entry.bold

    def row(self, n: int) -> list[tuple[float, float]]:
        """Returns the centres of a row of ``n`` enemies, in pixels of the map."""
        entry = self._entry("enemy")
        x, y = entry.at[:2]
        return [
            (x + (i - (n - 1) / 2) * entry.step[0], y + (i - (n - 1) / 2) * entry.step[1])
            for i in range(n)
        ]

    def boxes(self) -> Iterator[tuple[str, int, int, Box]]:
        """Yields every box of the map: its name, its two numbers, and itself."""
        for name, entry in self._entries.items():
            parents = self._entries[entry.parent].count if entry.parent else entry.count
            for i in range(parents):
                origin = self.row(ENEMIES)[i] if entry.parent == "enemy" else None
                for j in range(entry.count if entry.parent else 1):
                    yield name, i, j, self.box(name, i, j, origin=origin)

    def _check_inside(self) -> None:
        """Checks that no box leaves the screen, for any row of enemies."""
        width, height = self.size
        for name, i, j, (x, y, w, h) in self.boxes():
            if x < 0 or y < 0 or x + w > width or y + h > height:
                which = f"{name!r}" + (f" {i}" if i or j else "") + (f", {j}" if j else "")
                raise ConfigError(
                    f"{self.path}: box {which} leaves the screen of {width} x {height}: "
                    f"x {x} to {x + w}, y {y} to {y + h}; move it or make it smaller"
                )

    def _entry(self, name: str) -> _Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownNameError("box of the UI map", name, self._entries) from None


@functools.lru_cache(8)
def _parsed(path: Path, _changed: int) -> tuple[tuple[int, int], Mapping[str, _Entry]]:
    try:
        text = load_yaml(path)
        width, height = (int(each) for each in text["size"])
        raw = dict(text["boxes"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path} is no UI map: expected `size: [width, height]` and `boxes`; {error}"
        ) from error
    entries = {name: _entry(path, name, fields) for name, fields in raw.items()}
    for name, entry in entries.items():
        if entry.parent and entry.parent not in entries:
            raise UnknownNameError(f"box that {name!r} is in", entry.parent, entries)
    for name in ("ally", "enemy", "basic", "skill"):
        if name not in entries:
            raise ConfigError(f"{path}: expected a box {name!r}, which clicks go to; add it")
    return (width, height), entries


def _entry(path: Path, name: str, fields: Any) -> _Entry:
    for key in fields if isinstance(fields, dict) else ():
        if key not in _KEYS:
            raise UnknownNameError(f"key of box {name!r} in {path}", str(key), _KEYS)
    try:
        x, y, w, h = (float(each) for each in fields["at"])
        dx, dy = (float(each) for each in fields.get("step", (0, 0)))
        size, align, *weight = fields.get("text", (0, "left"))
        entry = _Entry(
            (x, y, w, h),
            str(fields.get("in", "")),
            (dx, dy),
            int(fields.get("count", 1)),
            int(size),
            align,
            weight == ["bold"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{path}: box {name!r}: expected {{at: [x, y, width, height]}}, got {fields}; {error}"
        ) from error
    if weight not in ([], ["bold"]):
        raise UnknownNameError(f"weight of box {name!r}", str(weight[0]), ["bold"])
    if align not in _ALIGNMENTS:
        raise UnknownNameError(f"alignment of box {name!r}", str(align), _ALIGNMENTS)
    return entry
