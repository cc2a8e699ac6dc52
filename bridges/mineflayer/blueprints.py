"""Thirteen buildings of our own, and the share of one that is built.

MineLand shows a picture of each of its thirteen and compares pictures (ORB key points); they come
from a user's copy, see ``task_files``. These are given block by block, and the score counts blocks:
the share of a blueprint's blocks that are at their places relative to one another, at any position
and in any of the four orientations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from bridges.mineflayer.loadouts import Item
from rollout.errors import ConfigError

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
        told = ", ".join(f"{letter} {kind}" for kind, letter in letters.items())
        return (
            f"Its layers from the ground up, rows from north to south: {layers}. "
            f"{told[0]} is{told[1:]}, . nothing."
        )


def _box(size: Place, block: str, at: Place = (0, 0, 0)) -> dict[Place, str]:
    x, y, z = at
    return {
        (x + i, y + j, z + k): block
        for i in range(size[0])
        for j in range(size[1])
        for k in range(size[2])
    }


def _walls(width: int, height: int, depth: int, block: str) -> dict[Place, str]:
    whole = _box((width, height, depth), block)
    inner = _box((width - 2, height, depth - 2), block, (1, 0, 1))
    return {place: name for place, name in whole.items() if place not in inner}


def _without(plan: Plan, *holes: Place) -> dict[Place, str]:
    return {place: name for place, name in plan.items() if place not in holes}


def _house() -> dict[Place, str]:
    walls = _without(_walls(5, 3, 5, "oak_planks"), (2, 0, 0), (2, 1, 0))
    return walls | _box((5, 1, 5), "oak_log", (0, 3, 0)) | {(0, 1, 2): "glass", (4, 1, 2): "glass"}


def _bridge() -> dict[Place, str]:
    deck = _box((7, 1, 3), "oak_planks", (0, 2, 0))
    posts = [_box((1, 2, 1), "cobblestone", (x, 0, z)) for x in (0, 6) for z in (0, 2)]
    return deck | posts[0] | posts[1] | posts[2] | posts[3]


def _well() -> dict[Place, str]:
    ring = _walls(3, 1, 3, "cobblestone")
    posts = _box((1, 2, 1), "oak_log", (0, 1, 1)) | _box((1, 2, 1), "oak_log", (2, 1, 1))
    return ring | posts | _box((3, 1, 1), "oak_planks", (0, 3, 1))


def _gate() -> dict[Place, str]:
    sides = _box((1, 4, 1), "stone_bricks") | _box((1, 4, 1), "stone_bricks", (4, 0, 0))
    return sides | _box((5, 1, 1), "stone_bricks", (0, 4, 0))


def _monument() -> dict[Place, str]:
    steps = _box((5, 1, 5), "stone") | _box((3, 1, 3), "stone", (1, 1, 1))
    return steps | _box((1, 4, 1), "stone_bricks", (2, 2, 2))


def _stele() -> dict[Place, str]:
    return _box((3, 1, 2), "stone") | _box((3, 4, 1), "smooth_stone", (0, 1, 0))


def _cross() -> dict[Place, str]:
    return _box((1, 5, 1), "oak_log", (1, 0, 0)) | _box((3, 1, 1), "oak_log", (0, 3, 0))


def _tower() -> dict[Place, str]:
    body = _without(_walls(3, 6, 3, "cobblestone"), (1, 0, 0), (1, 1, 0))
    return body | _box((3, 1, 3), "oak_planks", (0, 6, 0))


def _stairs() -> dict[Place, str]:
    plan: dict[Place, str] = {}
    for step in range(5):
        plan |= _box((2, step + 1, 1), "cobblestone", (0, 0, step))
    return plan


BLUEPRINTS = (
    Blueprint("pillar", "pillar of five blocks of cobblestone", _box((1, 5, 1), "cobblestone")),
    Blueprint("wall", "wall of five by three blocks", _box((5, 3, 1), "cobblestone")),
    Blueprint("floor", "floor of five by five planks", _box((5, 1, 5), "oak_planks")),
    Blueprint("pen", "pen of cobblestone", _walls(5, 1, 5, "cobblestone")),
    Blueprint("stele", "stele", _stele()),
    Blueprint("gate", "gate", _gate()),
    Blueprint("cross", "cross of logs", _cross()),
    Blueprint("stairs", "flight of stairs", _stairs()),
    Blueprint("well", "well", _well()),
    Blueprint("monument", "monument", _monument()),
    Blueprint("footbridge", "footbridge", _bridge()),
    Blueprint("tower", "tower", _tower()),
    Blueprint("house", "house", _house()),
)
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
