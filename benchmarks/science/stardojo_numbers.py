"""Compares the numbers of StarDojo's valley with a user's own copy of the game's data.

::

    python -m benchmarks.science.stardojo_numbers FOLDER

``FOLDER`` holds the game's ``Data`` as JSON (``Objects.json``, ``Shops.json`` and so on), as an
unpacker writes it; a file that is not there is skipped. Every number that differs is a line; the
status is 1 if one of them is not among those of ``docs/stardojo.md`` that differ on purpose.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.science import stardojo_numbers_land, stardojo_numbers_people
from benchmarks.science.stardojo_game import Difference, differ, name_of, read
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.tables import Item, Recipe

SHOPS = {
    "SeedShop": "SeedShop", "Saloon": "Saloon", "AnimalShop": "AnimalShop",
    "ScienceHouse": "Carpenter", "Blacksmith": "Blacksmith", "FishShop": "FishShop",
    "Hospital": "Hospital", "JojaMart": "Joja", "AdventureGuild": "AdventureShop",
    "Sewer": "ShadowShop", "SandyHouse": "Sandy", "Dwarf": "Dwarf", "HatMouse": "HatMouse",
}  # fmt: skip
CATEGORIES = {"-5": "<egg>", "-6": "<milk>", "-4": "<fish>", "-777": "<wild seeds>"}
WORDS = {"YEAR": "year {}", "!YEAR": "", "DAYS_PLAYED": "days {}",
         "MINE_LOWEST_LEVEL_REACHED": "mine {}", "PLAYER_HEARTS": "dating"}  # fmt: skip
"""Conditions of the game's shops, and those of the valley."""
ON_PURPOSE = (
    "big ",
    *(f"object {name}: price" for name in ("Prize Ticket", "Mermaid's Pendant", "Jack-O-Lantern")),
    *(f"object {name}" for name in ("Pickles", "Jelly", "Dried ", "Smoked Fish")),
    "crop Cactus Seeds: seasons",
    *(f"crafting {name}: needs" for name in ("Tea Sapling", "Fish Smoker", "Mini-Forge")),
    "crafting Warp Totem: Island: needs", "cooking Lucky Lunch: learned",
    *(f"shop {name}" for name in ("JojaMart", "HatMouse", "ScienceHouse")),
    *(f"shop AnimalShop: {name}" for name in ("Milk Pail", "Shears", "Golden Egg")),
    *(f"shop FishShop: {name}" for name in ("Bait: ", "Bamboo Pole", "Pan")),
    *(f"shop AdventureGuild: {name}" for name in ("Galaxy ", "Explosive Ammo")),
    *(f"shop Sewer: {name}" for name in ("Stardrop", "Return Scepter")),
    "shop Saloon: Crab Cakes", "machine Recycling Machine: Trash",
    "machine Recycling Machine: Driftwood", "building Cabin: door", "quest 23: follows",
    "museum 60",
)  # fmt: skip
"""Beginnings of what differs on purpose; ``docs/stardojo.md`` gives the reasons."""


def differences(folder: Path) -> Iterator[Difference]:
    """Returns the numbers of the valley that differ from those of a folder."""
    for table, compare in (
        ("Objects", _objects), ("BigCraftables", _big), ("Crops", _crops), ("Weapons", _weapons),
        ("Monsters", _monsters), ("Buildings", _buildings), ("FarmAnimals", _animals),
        ("CraftingRecipes", _crafting), ("CookingRecipes", _cooking), ("Shops", _shops),
        ("Bundles", _bundles), *stardojo_numbers_land.TABLES, *stardojo_numbers_people.TABLES,
    ):  # fmt: skip
        if (rows := read(folder, table)) is not None:
            yield from compare(rows, folder)


def _objects(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for item in content().items.values():
        row = rows.get(item.id) if item.qualified.startswith("(O)") else None
        if row is None:
            if item.qualified.startswith("(O)"):
                yield f"object {item.key}", item.id, None
            continue
        food = None if row["Edibility"] in (-300, 0) else row["Edibility"]
        worth = row["Price"] // 2 if item.category == "ring" else row["Price"]  # what shops pay
        pairs = {"name": (item.name, row["Name"]), "price": (item.price, worth)}
        yield from differ(f"object {item.key}", pairs | {"food": (item.edibility or None, food)})


def _big(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for item in (each for each in content().items.values() if each.category == "big"):
        row = rows.get(item.id, {})
        pairs = {"name": (item.name, row.get("Name")), "price": (item.price, row.get("Price"))}
        yield from differ(f"big {item.key}", pairs)


def _crops(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for seed, crop in content().crops.items():
        row = rows.get(content().items[seed].id)
        if row is None or crop.wild:
            continue
        most = max(row["HarvestMinStack"], row["HarvestMaxStack"])
        regrow = None if row["RegrowDays"] == -1 else row["RegrowDays"]
        yield from differ(f"crop {seed}", {
            "harvest": (crop.harvest, name_of(row["HarvestItemId"])),
            "phases": ([*crop.phases], row["DaysInPhase"]),
            "seasons": ([*crop.seasons], [each.lower() for each in row["Seasons"]]),
            "regrow": (crop.regrow, regrow),
            "yields": (crop.yields, (row["HarvestMinStack"], most)),
            "extra": (crop.extra, round(row["ExtraHarvestChance"], 3)),
            "trellis": (crop.trellis, row["IsRaised"]),
            "scythe": (crop.scythe, row["HarvestMethod"] == "Scythe"),
        })  # fmt: skip


def _weapons(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for name, weapon in content().weapons.items():
        row = rows[weapon.id]
        yield from differ(f"weapon {name}", {
            "name": (name, row["Name"]), "least": (weapon.least, row["MinDamage"]),
            "most": (weapon.most, row["MaxDamage"]), "speed": (weapon.speed, row["Speed"]),
        })  # fmt: skip


def _monsters(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for name, monster in content().monsters.items():
        if name not in rows:
            continue
        row = rows[name].split("/")
        health, damage, resilience, points = (int(row[at]) for at in (0, 1, 7, 13))
        drops = row[6].split()
        chances: dict[str, float] = {}
        for number, chance in zip(drops[::2], drops[1::2], strict=True):
            key = name_of(number.removeprefix("-"))
            chances[key] = max(chances.get(key, 0.0), float(chance))
        shared = {key: chances.get(key) for key in monster.drops}
        yield from differ(f"monster {name}", {
            "health": (monster.health, health), "damage": (monster.damage, damage),
            "resilience": (monster.resilience, resilience),
            "experience": (monster.experience, points), "drops": ({**monster.drops}, shared),
        })  # fmt: skip


def _buildings(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for name, made in content().buildings.items():
        row = rows[name]
        cost = {name_of(each["ItemId"]): each["Amount"] for each in row["BuildMaterials"] or ()}
        yield from differ(f"building {name}", {
            "gold": (made.gold, row["BuildCost"]), "materials": ({**made.materials}, cost),
            "days": (made.days, row["BuildDays"]),
            "size": (made.size, (row["Size"]["X"], row["Size"]["Y"])),
        })  # fmt: skip


def _animals(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    for name, animal in content().animals.items():
        row = rows[name]
        sold = animal.shop is not None and row["PurchasePrice"] > 0
        price = 2 * row["PurchasePrice"] if sold else animal.price
        products = [name_of(each["ItemId"]) for each in row["ProduceItemIds"]]
        yield from differ(f"animal {name}", {
            "price": (animal.price, price), "grows": (animal.grows, row["DaysToMature"]),
            "every": (animal.every, row["DaysToProduce"]),
            "product": (animal.product in products, True),
        })  # fmt: skip


def _crafting(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    return _recipes("crafting", content().crafting, rows, 4)


def _cooking(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    return _recipes("cooking", content().cooking, rows, 3)


def _recipes(
    kind: str, ours: Mapping[str, Recipe], rows: Mapping[str, Any], learned: int
) -> Iterator[Difference]:
    rows = {_key(kind, name, row): row for name, row in rows.items()}
    yield from ((f"{kind} {name}", None, rows[name]) for name in rows.keys() - ours.keys())
    for name, recipe in ours.items():
        if name not in rows:
            yield f"{kind} {name}", [*recipe.needs], None
            continue
        row = rows[name].split("/")
        words, made = row[0].split(), row[2].split()
        needs = {
            CATEGORIES.get(number) or name_of(number): int(count)
            for number, count in zip(words[::2], words[1::2], strict=True)
        }
        how, *level = row[learned].split()[-2:] if " " in row[learned] else (row[learned],)
        skill = f"{how.lower()} {level[0]}" if level and row[learned][:2] in ("s ", "f ") else ""
        told = recipe.learned.lower() if skill else ""
        count = int(made[1]) if len(made) > 1 else 1
        yield from differ(f"{kind} {name}", {
            "needs": ({**recipe.needs}, needs), "count": (recipe.count, count),
            "learned": (told, skill),
        })  # fmt: skip


def _key(kind: str, name: str, row: str) -> str:
    """The name of a recipe here: the game shortens some names of dishes."""
    return name if kind == "crafting" else name_of(row.split("/")[2].split(maxsplit=1)[0])


def _shops(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    prices = {f"({kind}){key}": 2 * row["Price"]
              for kind, table in (("O", "Objects"), ("BC", "BigCraftables"))
              for key, row in (read(folder, table) or {}).items()}  # fmt: skip
    furniture = read(folder, "Furniture") or {}
    prices |= {f"(F){key}": int(row.split("/")[5]) for key, row in furniture.items()}
    for ours, theirs in SHOPS.items():
        doubled, joja = theirs == "SeedShop", 1.25 if theirs == "Joja" else 1
        offers: dict[str, list[tuple[int, str, int | None]]] = {}
        for row in rows[theirs]["Items"]:
            number, price = str(row.get("ItemId")), row["Price"]
            if row["IsRecipe"] or number == "None" or row["TradeItemId"] or row["PriceModifiers"]:
                continue
            if price < 0:
                price = prices.get(number, -1)
            elif doubled and not row["IgnoreShopPriceModifiers"]:
                price *= 2
            left = row["AvailableStock"] if row["AvailableStock"] > 0 else None
            line = int(price * joja), row["Condition"] or "", left
            offers.setdefault(name_of(number), []).append(line)
        for item, offer in content().shops[ours].stock.items():
            found = offers.get(item, [])
            later = None
            if any("!YEAR" in condition for _, condition, _ in found):
                later = next(price for price, condition, _ in found if "!YEAR" not in condition)
                found = [each for each in found if each[0] != later]
            same = [_words(condition) for price, condition, _ in found if price == offer.price]
            if not same:
                yield f"shop {ours}: {item}", offer.price, found
            elif (told := set().union(*same)) != set(offer.conditions):
                yield f"shop {ours}: {item}: conditions", sorted(offer.conditions), sorted(told)
            else:
                yield from differ(f"shop {ours}: {item}", {
                    "later": (offer.later, later), "limit": (offer.limit, found[0][2]),
                })  # fmt: skip
        known: Mapping[str, Item] = content().items
        lacking = [key for key in offers if key in known and key not in content().shops[ours].stock]
        yield from ((f"shop {ours}: {key}", None, offers[key]) for key in lacking)


def _bundles(rows: Mapping[str, Any], folder: Path) -> Iterator[Difference]:
    known = {each.id: (name, each) for name, each in content().bundles.items()}
    for key, row in rows.items():
        number = int(key.split("/")[1])
        if number not in known:  # the missing bundle, of the theater
            continue
        name, ours = known[number]
        _, reward, items, *rest = row.split("/")
        kind, prize, pieces = reward.split() or ("O", "", "0")
        words = items.split()
        needs = [("gold" if n == "-1" else name_of(n), int(count))
                 for n, count in zip(words[::3], words[1::3], strict=True)]  # fmt: skip
        asked: dict[str, int] = {}
        for item, count in needs:
            asked[item] = asked.get(item, 0) + count
        told = name_of(f"({'BC' if kind == 'BO' else 'O'}){prize}") if prize else ours.reward
        slots = int(rest[1]) if len(rest) > 1 and rest[1].isdigit() else len(needs)
        yield from differ(f"bundle {name}", {
            "items": ({**ours.items}, asked), "slots": (ours.slots or len(needs), slots),
            "reward": ((ours.reward, ours.pieces), (told, int(pieces) or ours.pieces)),
        })  # fmt: skip


def _words(condition: str) -> set[str]:
    """A condition of the game in the words of the valley; itself, if there are none."""
    found = set()
    for part in filter(None, condition.split(", ")):
        word, *rest = part.split()
        kind = WORDS.get(word)
        if kind == "":
            continue
        if word == "SEASON":
            found |= {each.lower() for each in rest}
        elif word == "DAY_OF_WEEK":
            found |= {each.lower()[:3] for each in rest}
        elif word.startswith("PLAYER_BASE_"):
            found.add(f"{word.split('_')[2].lower()} {rest[1]}")
        else:
            found.add(kind.format(*rest) if kind else part)
    return found


def main(folder: Path) -> int:
    """Prints what differs; returns 1 if some of it is not on purpose."""
    found = list(differences(folder))
    odd = [each for each in found if not each[0].startswith(ON_PURPOSE)]
    for what, ours, theirs in odd:
        print(f"{what}: ours {ours}, the game's {theirs}")
    print(f"{len(odd)} differ, {len(found) - len(odd)} more on purpose")
    return int(bool(odd))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    sys.exit(main(parser.parse_args().folder))
