"""Compares residents, their tastes, quests and rewards with the game's data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.science.stardojo_game import Difference, differ, name_of, read, tags
from bridges.stardojo.rules import residents
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.tables import Item

TASTES = {"loves": "Love", "hates": "Hate", "likes": "Like", "dislikes": "Dislike"}
"""In the order in which the game asks."""
FIELDS = {"loves": 1, "hates": 7, "likes": 3, "dislikes": 5, "neutral": 9}
WORTHLESS = 20


def _characters(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for name, each in content().residents.items():
        row = rows[name]
        born = f"{row['BirthSeason']} {row['BirthDay']}".lower()
        yield from differ(f"resident {name}", {
            "born": (each.born, born if row["BirthSeason"] else each.born),
            "datable": (each.datable, row["CanBeRomanced"]),
            "home": (each.home[0], row["Home"][0]["Location"]),
        })  # fmt: skip


def _tastes(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    objects = read(folder, "Objects") or {}
    for name in content().residents.keys() & rows.keys():
        for item in content().items.values():
            row = objects.get(item.id) if item.qualified.startswith("(O)") else None
            if row is None or item.category in content().not_gifts or not row["CanBeGivenAsGift"]:
                continue
            ours, theirs = residents.taste(name, item.key), _taste(name, item, row, rows)
            if ours != theirs:
                yield f"taste {name}: {item.key}", ours, theirs


def _taste(name: str, item: Item, row: Mapping[str, Any], rows: Mapping[str, str]) -> str:
    """What the game's rule says, from what everybody thinks and what somebody does."""
    number, mine = str(row["Category"]), tags(item.id, row)
    names = {item.id, f"(O){item.id}"}
    everyone = {taste: {*rows[f"Universal_{word}"].split()} for taste, word in TASTES.items()}
    found, sure = "neutral", False
    for wanted in ({number}, mine):
        found = next((t for t, words in everyone.items() if words & wanted), found)
    named = next((taste for taste, words in everyone.items() if words & names), "")
    neutral = not named and bool(names & {*rows["Universal_Neutral"].split()})
    if named or neutral:
        found, sure = named or "neutral", True
    if row["Type"] == "Arch":
        found = "likes" if name in ("Penny", "Dwarf") else "dislikes"
    if found == "neutral" and not neutral:
        if -300 < row["Edibility"] < 0:
            found = "hates"
        elif row["Price"] < WORTHLESS:
            found = "dislikes"
    parts = rows[name].split("/")
    own = {taste: {*parts[at].split()} for taste, at in FIELDS.items()}
    for wanted in (names, mine, set() if sure or number == "0" else {number}):
        if taste := next((t for t, words in own.items() if words & wanted), ""):
            return taste
    return found


def _quests(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for number, quest in content().quests.items():
        _, _, _, _, what, follows, reward, *_ = rows[number].split("/")
        known = {each.removeprefix("h") for each in follows.split()} & content().quests.keys()
        pairs: dict[str, tuple[Any, Any]] = {
            "reward": (quest.reward, int(reward)), "follows": ({*quest.follows}, known)
        }  # fmt: skip
        if "(" in what:
            told = next(name_of(each) for each in what.split() if each.startswith("("))
            pairs["asks"] = told in quest.ends[1], True
        yield from differ(f"quest {number}", pairs)


def _museum(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    told = {}
    for row in rows.values():
        [*asked] = row["TargetContextTags"]
        if len(asked) == 1 and not asked[0]["Tag"] and row["RewardItemId"]:
            total = asked[0]["Count"] if asked[0]["Count"] > 0 else 95
            told[total] = name_of(row["RewardItemId"]), row["RewardItemCount"]
    for count, reward in content().museum.items():
        if reward != told.get(count):
            yield f"museum {count}", reward, told.get(count)
    for count in sorted(told.keys() - content().museum.keys()):
        if told[count][0] in content().items:
            yield f"museum {count}", None, told[count]


def _tools(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for metal, upgrade in content().upgrades.items():
        for tool in ("Axe", "Hoe", "Pickaxe", "WateringCan"):
            price = rows[f"{metal}{tool}"]["SalePrice"]
            yield from differ(f"upgrade {metal} {tool}", {"gold": (upgrade.gold, price)})


TABLES = (
    ("Characters", _characters), ("NPCGiftTastes", _tastes), ("Quests", _quests),
    ("MuseumRewards", _museum), ("Tools", _tools),
)  # fmt: skip
"""Tables of the game, and what compares them."""
