"""Reads a user's own copy of the data of Stardew Valley, for ``stardojo_numbers``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bridges.stardojo.rules.content import content

Difference = tuple[str, Any, Any]
"""What differs, ours, and the game's."""
CATEGORIES = {
    -2: "gem", -4: "fish", -5: "egg", -6: "milk", -12: "minerals", -74: "seeds", -75: "vegetable",
    -79: "fruits", -80: "flower", -81: "greens",
}  # fmt: skip


@cache
def read(folder: Path, name: str) -> Mapping[str, Any] | None:
    """Returns a table of the game, None if the folder lacks it."""
    path = folder / f"{name}.json"
    if not path.exists():
        print(f"skipped: there is no {path}")
        return None
    found = json.loads(path.read_text("utf-8-sig"))
    rows: Mapping[str, Any] = found.get("content", found)
    return rows


def differ(what: str, pairs: Mapping[str, tuple[Any, Any]]) -> Iterator[Difference]:
    """Returns the fields of which ours and the game's differ."""
    return ((f"{what}: {field}", a, b) for field, (a, b) in pairs.items() if a != b)


def name_of(number: str) -> str:
    """Returns the key of an item by its id; the id itself if it is not in the valley."""
    found = content().by_id
    return next((i.key for i in (found.get(number), found.get(f"(O){number}")) if i), number)


def tags(number: str, row: Mapping[str, Any]) -> set[str]:
    """Returns the tags of an object by which machines and tastes name it."""
    found = {*(row["ContextTags"] or ()), f"id_o_{number.lower()}"}
    return found | {f"category_{CATEGORIES.get(row['Category'], '')}"}
