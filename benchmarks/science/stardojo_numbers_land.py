"""Compares what grows, lies and is made in the valley with the game's data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.science.stardojo_game import Difference, differ, name_of, read, tags
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.making import product_of

WILD = {"Oak": "1", "Maple": "2", "Pine": "3", "Mahogany": "8", "Mystic": "13"}
FLAVORED = {
    "Pickle": "Pickles", "DriedFruit": "Dried Fruit", "DriedMushroom": "Dried Mushrooms",
    "SmokedFish": "Smoked Fish", "AgedRoe": "Aged Roe",
}  # fmt: skip
SIZES = {"Coop": 1, "Barn": 1, "Big": 2, "Deluxe": 3}
DAY = 1440
TIDE = ("Coral", "Sea Urchin")
"""What the game lays by code, in the tide pools."""
SEASONS = ("spring", "summer", "fall", "winter")
Made = tuple[str, int, int, str, int]
"""What a machine makes, in minutes, of how many, with which fuel, and how many pieces."""


def _fruit_trees(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for sapling, tree in content().fruit_trees.items():
        row = rows[content().items[sapling].id]
        yield from differ(f"fruit tree {sapling}", {
            "fruit": ([tree.fruit], [name_of(each["ItemId"]) for each in row["Fruit"]]),
            "season": ([tree.season], [each.lower() for each in row["Seasons"]]),
        })  # fmt: skip


def _wild_trees(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for name, tree in content().wild_trees.items():
        row = rows[WILD[name]]
        tapped = {name_of(each["ItemId"]): each["DaysUntilReady"] for each in row["TapItems"]}
        yield from differ(f"wild tree {name}", {
            "seed": (tree.seed, name_of(row["SeedItemId"])),
            "tapped": ({tree.syrup: tree.days}, tapped),
        })  # fmt: skip


def _forage(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for place, seasons in content().forage.items():
        found: dict[str, dict[str, float]] = {season: {} for season in SEASONS}
        for row in rows[place]["Forage"]:
            words = (row["Condition"] or "").lower().split()
            named = [row["Season"].lower()] if row["Season"] else [s for s in SEASONS if s in words]
            for season in named or SEASONS:
                found[season][name_of(row["ItemId"])] = round(row["Chance"], 3)
        ours = {season: {k: v for k, v in seasons.get(season, {}).items() if k not in TIDE}
                for season in SEASONS}  # fmt: skip
        pairs = {season: (ours[season], found[season]) for season in SEASONS}
        yield from differ(f"forage {place}", pairs)


def _spots(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for place, ours in content().spots.items():
        for item, chance in ours.items():
            told = rows.get(content().items[item].id, {}).get("ArtifactSpotChances") or {}
            if item not in ("Lost Book", "Clay") and chance != told.get(place):
                yield f"spots {place}: {item}", chance, told.get(place)
        for number, row in rows.items():
            name, found = name_of(number), (row["ArtifactSpotChances"] or {}).get(place)
            if found and name in content().items and name not in ours:
                yield f"spots {place}: {name}", None, found


def _geodes(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for geode, ours in content().geodes.items():
        row = rows.get(content().items[geode].id, {})
        told = {name_of(number) for each in row.get("GeodeDrops") or ()
                for number in each["RandomItemId"] or [each["ItemId"]]}  # fmt: skip
        told &= content().items.keys()
        basic = {"Stone", "Clay", "Coal", "Copper Ore", "Iron Ore", "Gold Ore", "Iridium Ore",
                 "Earth Crystal", "Frozen Tear", "Fire Quartz", "Prismatic Shard"}  # fmt: skip
        if told - basic != ours.keys() - basic:
            yield f"geode {geode}", sorted(ours.keys() - told - basic), sorted(told - ours.keys())


def _machines(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    objects = read(folder, "Objects") or {}
    for machine in content().machines:
        row = rows[content().items[machine].qualified]
        for item in content().items.values():
            if not item.qualified.startswith("(O)") or item.id not in objects:
                continue
            made, known = product_of(machine, item.key), None
            if made:
                known = made.product, made.minutes, made.takes, made.needs or "", made.count
            told = _made(row, item.id, objects)
            if known != told:
                yield f"machine {machine}: {item.key}", known, told


def _made(row: Mapping[str, Any], number: str, objects: Mapping[str, Any]) -> Made | None:
    """What the game's machine makes of an object; of several results the last, which is sure."""
    fuel = [(name_of(each["ItemId"]), each["RequiredCount"])
            for each in row["AdditionalConsumedItems"] or ()]  # fmt: skip
    for rule in row["OutputRules"] or ():
        for asked in rule["Triggers"]:
            if _takes(asked, number, objects[number]):
                result = rule["OutputItem"][-1]
                word, *rest = (result["ItemId"] or result["OutputMethod"] or "").split()
                product = FLAVORED.get(rest[0], rest[0]) if rest else name_of(word)
                days = max(0, rule["DaysUntilReady"]) * DAY
                return (product, max(0, rule["MinutesUntilReady"]) + days, asked["RequiredCount"],
                        fuel[0][0] if fuel else "", max(1, result["MinStack"]))  # fmt: skip
    return None


def _takes(asked: Mapping[str, Any], number: str, row: Mapping[str, Any]) -> bool:
    if asked["Trigger"] != "ItemPlacedInMachine" or "RANDOM" in (asked["Condition"] or ""):
        return False
    if "ITEM_EDIBILITY Input 1" in (asked["Condition"] or "") and row["Edibility"] < 1:
        return False
    mine = tags(number, row)
    if "!ITEM_CONTEXT_TAG Input edible_mushroom" in (asked["Condition"] or ""):
        mine -= {"category_greens"} if "edible_mushroom" in mine else set()
    wanted = asked["RequiredTags"] or ()
    if any(each[1:] in mine if each.startswith("!") else each not in mine for each in wanted):
        return False
    return asked["RequiredItemId"] in (None, f"(O){number}")


def _animals(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for name, animal in content().animals.items():
        row = rows[name]
        large = [name_of(each["ItemId"]) for each in row["DeluxeProduceItemIds"] or ()]
        egg = [name_of(each) for each in row["EggItemIds"] or ()]
        taken = {"DropOvernight": "laid", "DigUp": "dug"}.get(row["HarvestType"])
        house = row["RequiredBuilding"] or row["House"]
        yield from differ(f"animal {name}", {
            "house": (animal.house, row["House"]),
            "size": (animal.size, SIZES[house.split()[0]]),
            "large": (animal.large, large[0] if large else animal.product),
            "taken": (animal.taken, taken or row["HarvestTool"]),
            "hatches": (animal.hatches in egg, bool(egg)),
        })  # fmt: skip


def _buildings(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for name, made in content().buildings.items():
        row = rows[name]
        door, gate = row["HumanDoor"], row["AnimalDoor"]
        yield from differ(f"building {name}", {
            "upgrades": (made.upgrades, row["BuildingToUpgrade"]),
            "animals": (made.animals, row["MaxOccupants"] if made.gate else 0),
            "hay": (made.hay, row["HayCapacity"]),
            "door": (made.door, (door["X"], door["Y"]) if door["X"] >= 0 else None),
            "gate": (made.gate, (gate["X"], gate["Y"]) if gate["X"] >= 0 else None),
        })  # fmt: skip


TABLES = (
    ("FruitTrees", _fruit_trees), ("WildTrees", _wild_trees), ("Locations", _forage),
    ("Objects", _spots), ("Objects", _geodes), ("Machines", _machines), ("FarmAnimals", _animals),
    ("Buildings", _buildings),
)  # fmt: skip
"""Tables of the game, and what compares them."""
