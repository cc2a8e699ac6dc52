"""The regions of a start: named places that the event trace and judges refer to."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rollout.errors import ConfigError, UnknownNameError, named

KEYS = ("at", "radius", "box", "watch")
MOST_WATCHED = 100_000
"""Blocks of all regions with ``watch`` together."""

Place: TypeAlias = tuple[int, int, int]

_NAME = re.compile(r"[\w -]{1,40}")
_LARGEST = 64  # radius
_FARTHEST = 512


@dataclass(frozen=True)
class Region:
    """One region, relative to where the first agent stands at first.

    Attributes:
        name: of the region.
        low: least cell of its box, of a ball the box around it.
        high: greatest cell, likewise.
        centre: cell of a ball's centre; None for a box.
        radius: of a ball, in blocks; 0 for a box.
        watch: whether judges get its blocks.
    """

    name: str
    low: Place
    high: Place
    centre: Place | None = None
    radius: float = 0.0
    watch: bool = False

    @property
    def blocks(self) -> int:
        """Number of blocks of the box."""
        sides = zip(self.low, self.high, strict=True)
        return math.prod(high - low + 1 for low, high in sides)

    def data(self) -> dict[str, Any]:
        """Returns the region in the form that the game gets."""
        return {
            "name": self.name,
            "low": list(self.low),
            "high": list(self.high),
            "centre": self.centre and list(self.centre),
            "radius": self.radius,
            "watch": self.watch,
        }


def make_regions(asked: Mapping[str, Any]) -> tuple[Region, ...]:
    """Returns the regions of a world.

    Args:
        asked: by name, ``{"farm": {"at": "20 0 -20", "radius": 6}}`` or ``{"hill": {"box":
            ["30 0 -6", "41 4 5"], "watch": True}}``.

    Raises:
        ConfigError: a region is not valid; it says which.
    """
    regions = []
    for name, each in asked.items():
        if not _NAME.fullmatch(str(name)):
            raise ConfigError(
                f"regions: expected names of 1 to 40 letters, digits, spaces, _ or -, got {name!r}"
            )
        with named(f"regions.{name}"):
            regions.append(_region(str(name), each))
    watched = sum(each.blocks for each in regions if each.watch)
    if watched > MOST_WATCHED:
        raise ConfigError(
            f"regions: those with watch have {watched} blocks, at most {MOST_WATCHED} are possible"
        )
    return tuple(regions)


def _region(name: str, asked: Any) -> Region:
    if not isinstance(asked, Mapping) or ("at" in asked) == ("box" in asked):
        raise ConfigError(f"expected {{at, radius}} or {{box}}, got {str(asked)[:60]!r}")
    for key in asked:
        if key not in KEYS:
            raise UnknownNameError("key", str(key), KEYS)
    watch = asked.get("watch", False)
    if not isinstance(watch, bool):
        raise ConfigError(f"watch: expected true or false, got {watch!r}")
    if "box" in asked:
        box = asked["box"]
        if not isinstance(box, Sequence) or isinstance(box, str) or len(box) != 2:
            raise ConfigError(f"box: expected two places, got {str(box)[:60]!r}")
        if "radius" in asked:
            raise ConfigError("radius: a box has none; give at and radius, or box")
        pairs = list(zip(_place(box[0]), _place(box[1]), strict=True))
        low, high = (tuple(pick(pair) for pair in pairs) for pick in (min, max))
        return Region(name, low, high, watch=watch)  # type: ignore[arg-type] # three of each
    radius = asked.get("radius", 0)
    if (
        isinstance(radius, bool)
        or not isinstance(radius, int | float)
        or not 0 < radius <= _LARGEST
    ):
        raise ConfigError(f"radius: expected more than 0, up to {_LARGEST} blocks, got {radius!r}")
    x, y, z = centre = _place(asked["at"])
    far = math.ceil(radius)
    low, high = (x - far, y - far, z - far), (x + far, y + far, z + far)
    return Region(name, low, high, centre, float(radius), watch)


def _place(given: Any) -> Place:
    try:
        x, y, z = (float(part) for part in (given.split() if isinstance(given, str) else given))
        good = all(each.is_integer() and abs(each) <= _FARTHEST for each in (x, y, z))
    except (TypeError, ValueError):
        x = y = z = 0.0
        good = False
    if not good:
        raise ConfigError(
            f"expected a place relative to the first agent, three whole numbers up to {_FARTHEST} "
            f"such as '2 0 -1', got {str(given)[:40]!r}"
        )
    return int(x), int(y), int(z)
