"""Thirteen buildings of our own, and the share of one that is built.

MineLand shows a picture of each of its thirteen and compares pictures (ORB key points); they come
from a user's copy, see ``task_files``. These are given block by block in ``data/blueprints.yaml``,
and the score counts blocks: the share of a blueprint's blocks that are at their places relative to
one another, at any position and in any of the four orientations.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from bridges.mineflayer.loadouts import Item
from rollout.errors import ConfigError
from rollout.yaml12 import load_yaml

_FILE = Path(__file__).parent / "data" / "blueprints.yaml"

Place: TypeAlias = tuple[int, int, int]
Plan: TypeAlias = Mapping[Place, str]


@dataclass(frozen=True)
class Blueprint:
    """One thing to build.

    Attributes:
        short: its name; the task is ``build_SHORT``.
        name: what it is, as in ``build a NAME``.
        plan: block by place (x, y, z); y grows upwards from 0, the ground.
    """

    short: str
    name: str
    plan: Plan

    @property
    def text(self) -> str:
        """The blueprint as agents are shown it: layers of letters, and what they stand for."""
        letters: dict[str, str] = {}
        for kind in sorted(set(self.plan.values())):
            likely = (kind.rpartition("_")[2] + kind).upper()
            letters[kind] = next(c for c in likely if c not in letters.values())
        x_end, y_end, z_end = (max(place[axis] for place in self.plan) + 1 for axis in range(3))
        rows = (
            ["".join(letters.get(self.plan.get((x, y, z), ""), ".") for x in range(x_end))
             for z in range(z_end)]
            for y in range(y_end)
        )  # fmt: skip
        layers = "; ".join("/".join(layer) for layer in rows)
        legend = ", ".join(f"{letter} {kind}" for kind, letter in letters.items())
        return (
            f"Its layers from the ground up, rows from north to south: {layers}. "
            f"{legend[0]} is{legend[1:]}, . nothing."
        )


def _add(plan: dict[Place, str], part: str) -> None:
    """Adds a part of ``data/blueprints.yaml`` to a plan."""
    kind, wide, high, deep, *more = part.split()
    size = int(wide), int(high), int(deep)
    if kind == "hole":
        del plan[size]
        return
    block, *at = more
    x, y, z = map(int, at or (0, 0, 0))
    for i, j, k in itertools.product(*map(range, size)):
        if kind == "box" or i in (0, size[0] - 1) or k in (0, size[2] - 1):
            plan[x + i, y + j, z + k] = block


def _blueprint(short: str, row: Mapping[str, Any]) -> Blueprint:
    plan: dict[Place, str] = {}
    for part in row["parts"]:
        _add(plan, part)
    return Blueprint(short, row["name"], plan)


BLUEPRINTS = tuple(_blueprint(short, row) for short, row in load_yaml(_FILE, ours=True).items())
"""Number ``k`` is ``BLUEPRINTS[k - 1]``."""


def blueprint(number: int) -> Blueprint:
    """Returns a blueprint by its number, starting at 1.

    Raises:
        ConfigError: there is no blueprint with that number.
    """
    if not 1 <= number <= len(BLUEPRINTS):
        raise ConfigError(f"blueprint: expected 1 to {len(BLUEPRINTS)}, got {number}")
    return BLUEPRINTS[number - 1]


def materials(number: int) -> list[Item]:
    """Returns the blocks that a blueprint needs; none for number 0."""
    if not number:
        return []
    counts = Counter(blueprint(number).plan.values())
    return [Item(name, count) for name, count in sorted(counts.items())]


def score(built: Iterable[tuple[Place, str]], number: int) -> float:
    """Returns the share of a blueprint that is built, 0 to 1.

    The building may be at any position and turned by quarter turns about the vertical axis; the
    position and turn with the most correct blocks count. Extra blocks cost nothing.

    Args:
        built: placed blocks, by place; blocks that are not in the blueprint are ignored.
        number: of the blueprint.
    """
    standing = list(built)
    best = 0
    for plan in _turned(number):
        wanted: dict[str, list[Place]] = {}
        for place, name in plan.items():
            wanted.setdefault(name, []).append(place)
        # Every pair of a placed block and a wanted block votes for the shift between them.
        votes: Counter[Place] = Counter(
            (x - a, y - b, z - c)
            for (x, y, z), name in standing
            for a, b, c in wanted.get(name, ())
        )
        best = max(best, max(votes.values(), default=0))
    return best / len(blueprint(number).plan)


@lru_cache
def _turned(number: int) -> Sequence[Plan]:
    turns: Sequence[Callable[[int, int], tuple[int, int]]] = (
        lambda x, z: (x, z),
        lambda x, z: (-z, x),
        lambda x, z: (-x, -z),
        lambda x, z: (z, -x),
    )
    plans = []
    for turn in turns:
        plan = {}
        for (x, y, z), name in blueprint(number).plan.items():
            i, k = turn(x, z)
            plan[i, y, k] = name
        plans.append(plan)
    return plans
