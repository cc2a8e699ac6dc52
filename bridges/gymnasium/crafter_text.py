"""Tells what a player of Crafter sees, in the words in which BALROG tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

VIEW = (9, 7)
"""Width and height of what is seen around the player, in cells."""

_PLAIN = ("", "grass", "sand", "path")  # ground that is not told
_WAYS = {"left": "west", "right": "east", "up": "north", "down": "south"}


def labels(actions: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of Crafter's actions with the directions of the text: ``Move West``."""
    words = [[_WAYS.get(word, word) for word in name.split("_")] for name in actions]
    return tuple(" ".join(word.title() for word in each) for each in words)


def describe(
    view: Sequence[Sequence[str]],
    facing: tuple[int, int],
    vitals: Mapping[str, int],
    inventory: Mapping[str, int],
    *,
    sleeping: bool = False,
) -> str:
    """Returns what is seen, what is faced, how the player is and what it carries.

    Of each kind of thing one is told: the one whose place has the smallest first number, which
    counts steps north or south if there are any. Of water only the edge counts.

    Args:
        view: what is in each cell, ``[x][y]`` from west and north, the player in the middle; empty
            outside of the world.
        facing: the direction in which the player looks, east and south.
        vitals: how the player is, 0 to 9.
        inventory: what it carries.
        sleeping: whether it sleeps.
    """
    x, y = len(view) // 2, len(view[0]) // 2
    parts = ["You died."] if not vitals["health"] > 0 else []
    if sleeping:
        parts = ["You are sleeping, and will not be able take actions until energy is full."]
    seen = [f"- {name} {where}" for name, (_, where) in _nearest(view, x, y).items()]
    parts.append("\n".join(["You see:", *seen]) if seen else "You see nothing away from you.")
    faced = view[x + facing[0]][y + facing[1]]
    parts.append(f"You face {'nothing' if faced in _PLAIN else faced} at your front.")
    parts.append("\n".join(["Your status:", *(f"- {k}: {v}/9" for k, v in vitals.items())]))
    carried = [f"- {name}: {number}" for name, number in inventory.items() if number]
    nothing = "You have nothing in your inventory."
    parts.append("\n".join(["Your inventory:", *carried]) if carried else nothing)
    return "\n\n".join(parts)


def _nearest(view: Sequence[Sequence[str]], x: int, y: int) -> dict[str, tuple[int, str]]:
    """The first number and the place of one thing of each kind, in the order of the cells."""
    found: dict[str, tuple[int, str]] = {}
    for i, j in np.ndindex(len(view), len(view[0])):
        name = view[i][j]
        if (i, j) == (x, y) or name in _PLAIN or (name == "water" and not _edge(view, i, j)):
            continue
        ways = [(j - y, "south" if j > y else "north"), (i - x, "east" if i > x else "west")]
        told = [(abs(steps), way) for steps, way in ways if steps]
        place = " and ".join(f"{n} step{'s' if n > 1 else ''} {way}" for n, way in told)
        if name not in found or told[0][0] < found[name][0]:
            found[name] = (told[0][0], place)
    return found


def _edge(view: Sequence[Sequence[str]], i: int, j: int) -> bool:
    beside = ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
    within = [(a, b) for a, b in beside if 0 <= a < len(view) and 0 <= b < len(view[0])]
    return any(view[a][b] != view[i][j] for a, b in within)


def seen_by(player: Any) -> list[list[str]]:
    """Returns what is in each cell around a player: its creature or plant, or the ground."""
    (x, y), (width, height) = player.pos.tolist(), VIEW
    columns = range(x - width // 2, x + width // 2 + 1)
    rows = range(y - height // 2, y + height // 2 + 1)
    return [[_name(*player.world[i, j]) for j in rows] for i in columns]


def _name(material: str | None, thing: Any) -> str:
    return material or "" if thing is None else type(thing).__name__.lower()
