"""Queries about items: kinds of tools, categories, names that players write."""

from __future__ import annotations

from functools import cache

from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.tables import Item
from rollout.errors import UnknownNameError

LEVELS = ("", "Copper", "Steel", "Gold", "Iridium")
WATER = (40, 55, 70, 85, 100)
"""Uses of a full watering can of each level."""


@cache
def row(name: str) -> Item | None:
    """Returns what the content says of an item, or None."""
    return content().by_name.get(name)


@cache
def category(name: str) -> str:
    """Returns the category of an item, empty if there is no such item."""
    found = row(name)
    return found.category if found else ""


@cache
def shown(name: str) -> str:
    """Returns the name that observations give an item."""
    found = row(name)
    return found.name if found else name


@cache
def use_kind(name: str) -> str:
    """Returns how something in hand is used: a tool's or weapon's kind, or empty."""
    if name in content().weapons:
        return content().weapons[name].kind
    if name.endswith((" Pole", " Rod")) and category(name) == "tool":
        return "rod"
    base = name.partition(" ")[2] if name.partition(" ")[0] in LEVELS[1:] else name
    return content().tools.get(base, "")


@cache
def level(name: str) -> int:
    """Returns the level of a tool, 0 (basic) to 4 (iridium)."""
    first = name.partition(" ")[0]
    return LEVELS.index(first) if first in LEVELS[1:] and use_kind(name) else 0


@cache
def matches(name: str, wanted: str) -> bool:
    """Returns True if an item has a name, or is of a category in ``<>``."""
    if wanted.startswith("<"):
        return category(name) == wanted[1:-1]
    return name == wanted


@cache
def stack(name: str) -> int:
    """Returns the most pieces in one slot."""
    found = row(name)
    return found.stack if found else 999


@cache
def edible(name: str) -> int | None:
    """Returns the edibility, None if it cannot be eaten."""
    found = row(name)
    return found.edibility if found else None


def price(name: str, quality: int = 0) -> int:
    """Returns what one piece is worth."""
    found = row(name)
    return int((found.price if found else 0) * (1, 1.25, 1.5, 1.5, 2)[quality])


@cache
def find(text: str) -> Item:
    """Returns the item that a text names: exactly, then without case, then by its first letters.

    Raises:
        UnknownNameError: there is none; an empty text names none.
    """
    found = content().by_name
    if text in found:
        return found[text]
    plain = text.strip().casefold()
    if not plain:  # every name begins with it
        raise UnknownNameError("item", text, found)
    for test in (plain.__eq__, lambda name: name.startswith(plain), lambda name: plain in name):
        for name, item in found.items():
            if test(name.casefold()) and item.category != "litter":
                return item
    raise UnknownNameError("item", text, found)


def by_id(text: str) -> Item:
    """Returns the item of an id, qualified or not.

    Raises:
        UnknownNameError: there is none.
    """
    found = content().by_id
    for each in (text, *(f"({kind}){text}" for kind in ("O", "BC", "T", "W", "F", "B", "H"))):
        if each in found:
            return found[each]
    raise UnknownNameError("item id", text, found)
