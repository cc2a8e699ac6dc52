"""Rows of the game's data from which ``data/atomic.yaml`` makes atomic tasks, by their functions.

A row has the fields that the texts of its rule name, its own items under ``give``, and whatever of
``start``, ``goal`` and ``states`` it has beside those of the rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from bridges.mineflayer.names import names
from rollout.yaml12 import load_yaml

Row: TypeAlias = dict[str, Any]

_DATA = Path(__file__).parent / "data"
_RULES = Path(__file__).parent / "game" / "survival"
_PER_SLOT = 64
_ENOUGH = 2  # times what is needed is given, as MCU asks its generator to
COLOURS = ("white", "orange", "magenta", "light_blue", "yellow", "lime", "pink", "gray",
           "light_gray", "cyan", "purple", "blue", "brown", "green", "red", "black")  # fmt: skip
"""The colours of dyes by their numbers."""


@lru_cache
def facts() -> Mapping[str, Any]:
    """Returns what ``game/facts.js`` prints."""
    data: Mapping[str, Any] = json.loads((_DATA / "facts.json").read_text())
    return data


@lru_cache
def tables() -> Mapping[str, Any]:
    """Returns ``data/atomic.yaml``."""
    data: Mapping[str, Any] = load_yaml(_DATA / "atomic.yaml", ours=True)
    return data


@lru_cache
def of_game(name: str) -> Mapping[str, Any]:
    """Returns a table of the game's own rules, such as ``trades``."""
    data: Mapping[str, Any] = json.loads((_RULES / f"{name}.json").read_text())
    return data


def words(name: str) -> str:
    """Returns a name of the game in words."""
    return name.replace("_", " ")


def _listed(table: str, name: str) -> bool:
    return re.search(tables()[table], name) is not None


def _plain_item(name: str) -> bool:
    return not _listed("no_item", name)


def blocks() -> Iterator[str]:
    """Yields the blocks that can be placed alone and seen, and have an item."""
    for name, block in facts()["blocks"].items():
        if block["item"] and not _listed("no_block", name):
            yield name


# crafting -----------------------------------------------------------------------------------------


def _crafted(*, by_hand: bool) -> Iterator[Row]:
    for item, recipes in facts()["recipes"].items():
        hand = any(recipe[1] for recipe in recipes)
        if hand == by_hand and _plain_item(item):
            recipe = next(each for each in recipes if each[1] == hand)
            needs = {name: count * _ENOUGH for name, count in recipe[2].items()}
            yield {"item": item, "give": needs}


def _smelted() -> Iterator[Row]:
    for source, item in facts()["smelts"].items():
        if _plain_item(source):
            yield {"source": source, "item": item, "words": words(source), "give": {source: 3}}


def _cut() -> Iterator[Row]:
    for source, products in of_game("cuts")["stones"].items():
        for product in products:
            item = product.removeprefix("2 ")
            yield {"item": item, "source": source, "of": words(source), "give": {source: 8}}


def _spoken(potion: str) -> str:
    kind, _, rest = potion.partition("_")
    if kind in ("long", "strong"):
        return f"a {kind} potion of {words(rest)}"
    if potion in ("water", "mundane", "thick", "awkward"):
        return f"{'an' if potion == 'awkward' else 'a'} {potion} potion"
    return f"a potion of {words(potion)}"


def _potion(kind: str, bottle: str = "potion") -> str:
    return f'{bottle}{{Potion:"minecraft:{kind}"}}'


def _brewed() -> Iterator[Row]:
    table = of_game("potions")
    recipes = [tuple(each) for each in table["recipes"]]
    for potion in table["effects"]:
        kind, _, plain = potion.partition("_")
        if kind in ("long", "strong") and plain in table["effects"]:
            recipes.append((plain, "redstone" if kind == "long" else "glowstone_dust", potion))
    seen = set()
    for before, ingredient, potion in recipes:
        if potion in seen:
            continue
        seen.add(potion)
        give = {_potion(before): 3, ingredient: 2, "blaze_powder": 2}
        yield {"item": potion, "words": _spoken(potion), "give": give}
    for potion in sorted(seen):
        give = {_potion(potion): 3, "gunpowder": 2, "blaze_powder": 2}
        said = _spoken(potion).replace("potion", "splash potion")
        yield {"item": f"splash_{potion}", "words": said, "give": give}


def _upgraded() -> Iterator[Row]:
    for item in names().items:
        source = item.replace("netherite_", "diamond_")
        if item != source and source in names().items and source in facts()["durability"]:
            yield {"item": item, "give": {source: 1, "netherite_ingot": 2}}


# use ----------------------------------------------------------------------------------------------


def _foods() -> Iterator[Row]:
    for item in facts()["foods"]:
        if item != "cake":
            yield {"item": item, "give": {item: 3}}


def _potions() -> Iterator[Row]:
    for potion in of_game("potions")["effects"]:
        yield {"item": potion, "words": _spoken(potion), "give": {_potion(potion): 1}}


def _armour() -> Iterator[Row]:
    for item in names().items:
        if _listed("armour", item):
            yield {"item": item, "start": [f"/give @s {item}"]}


def _thrown() -> Iterator[Row]:
    for item in tables()["thrown"]:
        yield {"item": item, "name": item, "give": {item: 8}}
    for potion in of_game("potions")["effects"]:
        said = _spoken(potion).replace("potion", "splash potion")
        give = {_potion(potion, "splash_potion"): 2}
        row = {"item": "splash_potion", "name": f"splash_{potion}", "words": said, "give": give}
        yield row


def _enchantable() -> Iterator[Row]:
    for item in names().items:
        if _listed("enchantable", item):
            yield {"item": item, "give": {item: 1}}


def _books() -> Iterator[Row]:
    for enchantment, (kind, _, _) in facts()["enchantments"].items():
        book = f'enchanted_book{{StoredEnchantments:[{{id:"minecraft:{enchantment}",lvl:1}}]}}'
        for item in tables()["takes"][kind]:
            give = {item: 1, book: 1}
            spell = words(enchantment)
            yield {"item": item, "enchantment": enchantment, "spell": spell, "give": give}


def _worn_out() -> Iterator[Row]:
    for item, uses in facts()["durability"].items():
        material = tables()["materials"].get(item.partition("_")[0])
        if material and item not in ("carrot_on_a_stick", "warped_fungus_on_a_stick"):
            give = {f"{item}{{Damage:{int(uses * 0.8)}}}": 1, material: 8}
            yield {"item": item, "give": give}


def _renamed() -> Iterator[Row]:
    for item in tables()["named"]:
        yield {"item": item, "give": {item: 1}}


def _plants() -> Iterator[Row]:
    for item, ground in tables()["plants"].items():
        block = tables()["grown"].get(item, item)
        yield {"item": item, "block": block, "ground": ground, "give": {item: 4}}


_OFFER = re.compile(r"(\d+) ([a-z_]+)\*?")


def _offers() -> Iterator[tuple[str, int, list[tuple[str, int]], tuple[str, int]]]:
    """Offers of villagers: profession, level, what it wants, what it gives."""
    for profession, row in of_game("trades")["professions"].items():
        for level, offers in enumerate(row["levels"], start=1):
            for wants, gives, *_ in offers:
                for colour in COLOURS:
                    pair = [_filled(text, colour) for text in (wants, gives)]
                    parts = [each and _OFFER.findall(each) for each in pair]
                    if parts[0] and parts[1] and not gives.endswith("*"):
                        paid = [(name, int(count)) for count, name in parts[0]]
                        ((count, got),) = parts[1]
                        yield profession, level, paid, (got, int(count))
                    if "{colour" not in f"{wants}{gives}":
                        break


def _filled(text: str, colour: str) -> str:
    """An offer with a colour, empty if it is not for that one."""
    match = re.search(r"\{colour(?:\|([a-z_,]+))?\}", text)
    if match and match[1] and colour not in match[1].split(","):
        return ""
    plain = re.sub(r"\{colour[^}]*\}", colour, text).replace("{wood}", "oak")
    return plain.replace("0 emerald", "8 emerald") if plain.startswith("0 ") else plain


def _merchant(profession: str, level: int, wants: list[tuple[str, int]], got: Any) -> str:
    def item(name: str, count: int) -> str:
        return f'{{id:"minecraft:{name}",Count:{count}b}}'

    buys = ",".join(
        f"{key}:{item(*want)}" for key, want in zip(("buy", "buyB"), wants, strict=False)
    )
    offer = f"{{{buys},sell:{item(*got)},maxUses:16}}"
    about = f'profession:"minecraft:{profession}",level:{level}'
    return f"/summon villager ~3 ~ ~2 {{VillagerData:{{{about}}},Offers:{{Recipes:[{offer}]}}}}"


def _trades(*, sells: bool) -> Iterator[Row]:
    seen = set()
    for profession, level, wants, got in _offers():
        item = wants[0][0] if sells else got[0]
        if (got[0] == "emerald") != sells or item in seen or not _plain_item(item):
            continue
        seen.add(item)
        give = {name: min(count * _ENOUGH, _PER_SLOT) for name, count in wants}
        yield {"item": item, "give": give, "start": [_merchant(profession, level, wants, got)]}


def _named_rows(table: str) -> Callable[[], Iterator[Row]]:
    """Rows that the table itself lists by their names."""

    def rows() -> Iterator[Row]:
        for name, row in tables()[table].items():
            yield {"name": name, **row}

    return rows


# mining, fights, places ---------------------------------------------------------------------------


def _mined(tool: str) -> Callable[[], Iterator[Row]]:
    def rows() -> Iterator[Row]:
        for name in blocks():
            block = facts()["blocks"][name]
            by = block["tool"] if block["tool"] in ("pickaxe", "axe", "shovel") else "hand"
            if by != tool or not block["drops"] or name.endswith("_shulker_box"):
                continue
            tier = "diamond" if block["tier"] == "diamond" else "iron"
            yield {"item": name, "give": {} if by == "hand" else {f"{tier}_{by}": 1}}

    return rows


def _from_animals() -> Iterator[Row]:
    yield from _named_rows("from_animals")()
    _, summon, name, said = tables()["wool"]
    for number, colour in enumerate(COLOURS):
        fields = {"colour": colour, "number": number}
        goal = {"count": "pickup", "of": [f"{colour}_wool"]}
        said_so = said.format(colour=words(colour))
        row = {"name": name.format(**fields), "words": said_so, "goal": goal}
        yield {**row, "give": {"shears": 1}, "start": [summon.format(**fields)] * 2}
    for item, mob in tables()["drops"].items():
        row = {"name": f"get_{item}_of_a_{mob}", "words": f"Get {words(item)} of a {words(mob)}."}
        summons = [f"/summon {mob} ~4 ~ ~{z}" for z in (2, -2, 4)]
        goal = {"count": "pickup", "of": [item]}
        states = {"time": "midnight"} if mob in tables()["hostile"] else {}
        yield {**row, "give": {"iron_sword": 1}, "start": summons, "goal": goal, "states": states}


def _mobs(*lists: str) -> Callable[[], Iterator[Row]]:
    def rows() -> Iterator[Row]:
        for name in lists:
            for mob in tables()[name]:
                if not _listed("heavy", mob) and not _listed("water", mob):
                    states = {"time": "midnight"} if mob in tables()["hostile"] else {}
                    article = "an" if mob[0] in "aeiou" else "a"
                    yield {"mob": mob, "words": f"{article} {words(mob)}", "states": states}

    return rows


def _found(source: Iterator[str]) -> Iterator[Row]:
    """Rows of things that are somewhere in sight, at a place that their name decides."""
    for number, item in enumerate(source):
        x, z = 6 + number % 5, number * 7 % 13 - 6
        yield {"item": item, "x": x, "z": z}


def _placeable() -> Iterator[Row]:
    yield from _found(blocks())


def _in_chests() -> Iterator[Row]:
    """Items that are not found as blocks."""
    placed = set(blocks())
    yield from _found(i for i in names().items if i not in placed and _plain_item(i))


def _found_mobs() -> Iterator[Row]:
    for number, row in enumerate(_mobs("friends", "hostile")()):
        yield {**row, "x": 7 + number % 5, "z": number * 7 % 13 - 6}


def _containers() -> Iterator[Row]:
    for item, statistic in tables()["containers"].items():
        goal = {"goal": {"count": "custom", "of": [statistic]}} if statistic else {}
        yield {"item": item, **goal}


def _tamed() -> Iterator[Row]:
    for mob, item in tables()["tamed"].items():
        yield {"mob": mob, "words": f"a {words(mob)}", "give": {item: 32}}


def _bred() -> Iterator[Row]:
    for mob, row in of_game("animals").items():
        if isinstance(row, str) or mob in ("bee", "ocelot"):
            continue
        tame = "" if not row.get("tamed") else " {Tame:1b}"
        for item in row.get("breeds", ()):
            fields = {"mob": mob, "item": item, "many": words(mob), "tame": tame}
            yield {**fields, "give": {item: 8}}


# building -----------------------------------------------------------------------------------------


def _material(test: str) -> Callable[[], Iterator[Row]]:
    def rows() -> Iterator[Row]:
        every = names().items if test == "ornament" else blocks()
        for item in every:
            if _listed(test, item) and _plain_item(item):
                yield {"item": item}

    return rows


def _structures() -> Iterator[Row]:
    for name, said in tables()["structures"].items():
        for item in tables()["of_blocks"]:
            yield {"name": name, "a": said, "item": item}


def _lights() -> Iterator[Row]:
    for item in tables()["lights"]:
        yield {"item": item}


SOURCES: Mapping[str, Callable[[], Iterator[Row]]] = {
    "by_hand": lambda: _crafted(by_hand=True),
    "at_table": lambda: _crafted(by_hand=False),
    "smelted": _smelted,
    "cut": _cut,
    "brewed": _brewed,
    "upgraded": _upgraded,
    "foods": _foods,
    "potions": _potions,
    "armour": _armour,
    "thrown": _thrown,
    "enchantable": _enchantable,
    "books": _books,
    "worn_out": _worn_out,
    "renamed": _renamed,
    "plants": _plants,
    "bought": lambda: _trades(sells=False),
    "sold": lambda: _trades(sells=True),
    "used": _named_rows("used"),
    "with_pickaxe": _mined("pickaxe"),
    "with_shovel": _mined("shovel"),
    "with_axe": _mined("axe"),
    "with_hands": _mined("hand"),
    "from_animals": _from_animals,
    "foes": _mobs("hostile"),
    "prey": _mobs("hunted"),
    "placeable": _placeable,
    "mobs": _found_mobs,
    "in_chests": _in_chests,
    "ways": _named_rows("ways"),
    "containers": _containers,
    "moves": _named_rows("moves"),
    "rides": _named_rows("rides"),
    "boat_prey": _mobs("boatable"),
    "tamed": _tamed,
    "bred": _bred,
    "cubes": _material("cube"),
    "structures": _structures,
    "ornaments": _material("ornament"),
    "lights": _lights,
    "works": _named_rows("works"),
}
"""The sources of rows by the names that the rules use."""
