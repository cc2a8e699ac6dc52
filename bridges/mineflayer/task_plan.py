"""Plans over the rules of the game: how an item comes of others, without looking at any world."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bridges.mineflayer import snbt
from bridges.mineflayer.atomic_rows import facts, of_game
from bridges.mineflayer.commands import Command, CommandError, parse_command

FUELS = ("coal", "charcoal", "oak_planks", "oak_log", "lava_bucket", "blaze_rod", "stick")
TIERS = ("wooden", "stone", "iron", "diamond", "netherite")
_DEEPEST = 8  # products of products


@dataclass
class Supplies:
    """What a start gives.

    Attributes:
        items: items with their numbers.
        blocks: blocks that are placed.
        mobs: creatures that are summoned.
        offers: what villagers sell, and what they want for it.
    """

    items: Counter[str] = field(default_factory=Counter)
    blocks: set[str] = field(default_factory=set)
    mobs: set[str] = field(default_factory=set)
    offers: list[tuple[str, Mapping[str, int]]] = field(default_factory=list)

    def slots(self) -> int:
        """Returns how many slots of an inventory the items fill."""
        stacks = facts()["stacks"]
        return sum(math.ceil(n / stacks.get(item, 64)) for item, n in self.items.items())


def supplies(commands: Sequence[str]) -> Supplies:
    """Returns what commands give; those that are not valid give nothing."""
    found = Supplies()
    for line in commands:
        try:
            command: Command | None = parse_command(line)
        except CommandError:
            continue
        while command is not None and command.name == "execute":
            command = command.run
        if command is not None:
            _add(found, command)
    return found


def _add(found: Supplies, command: Command) -> None:
    args = command.args
    if command.name in ("give", "replaceitem", "item") and "item" in args:
        found.items[args["item"]["name"]] += int(args.get("count", 1))
    if command.name in ("setblock", "fill"):
        found.blocks.add(args["block"]["name"])
        for each in _plain(args["block"].get("nbt")).get("Items", ()):
            name = str(each.get("id", "")).removeprefix("minecraft:")
            found.items[name] += int(each.get("Count", 1))
    if command.name == "summon":
        found.mobs.add(args["kind"])
        for offer in _plain(args.get("nbt")).get("Offers", {}).get("Recipes", ()):
            wants = [offer[key] for key in ("buy", "buyB") if key in offer]
            pays = {_name(want): int(want.get("Count", 1)) for want in wants}
            found.offers.append((_name(offer["sell"]), pays))


def _name(item: Mapping[str, Any]) -> str:
    return str(item.get("id", "")).removeprefix("minecraft:")


def _plain(tag: Any) -> Mapping[str, Any]:
    return snbt.plain(tag) if tag else {}


# plans --------------------------------------------------------------------------------------------


@lru_cache
def _smelted_from() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for source, product in facts()["smelts"].items():
        found[product] = (*found.get(product, ()), source)
    return found


@lru_cache
def _cut_from() -> Mapping[str, tuple[tuple[str, int], ...]]:
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for source, products in of_game("cuts")["stones"].items():
        for product in products:
            name = product.removeprefix("2 ")
            found[name] = (*found.get(name, ()), (source, 1 + product.startswith("2 ")))
    return found


def plan(target: str, count: int, have: Supplies, *, make: bool = False) -> list[str] | None:
    """Returns the steps by which some of an item come of what there is; None if none are known.

    Args:
        target: the item.
        count: how many.
        have: what there is.
        make: whether it has to be made, although there is some.
    """
    found = _get(target, count, have.items.copy(), have, (), make=make)
    return None if found is None else found[0]


_Found = tuple[list[str], Counter[str]]


def _get(
    target: str, count: int, items: Counter[str], have: Supplies, within: tuple[str, ...],
    *, make: bool = False,
) -> _Found | None:  # fmt: skip
    """Steps, and the items that are left without those got."""
    if items[target] >= count and not make:
        left = items.copy()
        left[target] -= count
        return [], left
    if target in within or len(within) >= _DEEPEST:
        return None
    missing = count if make else count - items[target]
    for made in _ways(target, missing, items, have, (*within, target)):
        steps, left = made
        left = left.copy()
        left[target] = 0 if not make else left[target]
        return steps, left
    return None


def _ways(
    target: str, count: int, items: Counter[str], have: Supplies, within: tuple[str, ...]
) -> Iterator[_Found]:
    """Ways to get some of an item."""
    for way in (_crafted, _smelted, _cut, _upgraded, _mined, _bought):
        yield from way(target, count, items, have, within)


def _crafted(
    target: str, count: int, items: Counter[str], have: Supplies, within: tuple[str, ...]
) -> Iterator[_Found]:
    for made, by_hand, needs in facts()["recipes"].get(target, ()):
        times = math.ceil(count / made)
        table = ([], items) if by_hand else _at("crafting_table", items, have, within)
        found = table and _all(needs, times, table[1], have, within, table[0])
        if found:
            where = "by hand" if by_hand else "at a crafting table"
            of = ", ".join(f"{n * times} {name}" for name, n in needs.items())
            yield [*found[0], f"craft {made * times} {target} of {of} {where}"], found[1]


def _smelted(
    target: str, count: int, items: Counter[str], have: Supplies, within: tuple[str, ...]
) -> Iterator[_Found]:
    for source in _smelted_from().get(target, ()):
        furnace = _at("furnace", items, have, within)
        burns = furnace and next((name for name in FUELS if furnace[1][name] > 0), None)
        found = furnace and _all({source: 1}, count, furnace[1], have, within, furnace[0])
        if found and burns:
            yield [*found[0], f"smelt {count} {source} with {burns} to {target}"], found[1]


def _cut(
    target: str, count: int, items: Counter[str], have: Supplies, within: tuple[str, ...]
) -> Iterator[_Found]:
    for source, yields in _cut_from().get(target, ()):
        cutter = _at("stonecutter", items, have, within)
        times = math.ceil(count / yields)
        found = cutter and _all({source: 1}, times, cutter[1], have, within, cutter[0])
        if found:
            yield [*found[0], f"cut {times} {source} to {target} at a stonecutter"], found[1]


def _upgraded(
    target: str, count: int, items: Counter[str], have: Supplies, within: tuple[str, ...]
) -> Iterator[_Found]:
    plain = target.replace("netherite_", "diamond_")
    if plain == target or plain not in facts()["durability"]:
        return
    smithy = _at("smithing_table", items, have, within)
    needs = {plain: 1, "netherite_ingot": 1}
    found = smithy and _all(needs, count, smithy[1], have, within, smithy[0])
    if found:
        yield [*found[0], f"upgrade {plain} to {target} at a smithing table"], found[1]


def _mined(
    target: str, count: int, items: Counter[str], have: Supplies, within: tuple[str, ...]
) -> Iterator[_Found]:
    del count, within  # a block is placed several times over
    for block in sorted(have.blocks):
        tool = tool_for(block, items)
        if tool is not None and target in facts()["blocks"].get(block, {}).get("drops", ()):
            yield [f"mine {block} with {tool}"], items


def _bought(
    target: str, count: int, items: Counter[str], have: Supplies, within: tuple[str, ...]
) -> Iterator[_Found]:
    for sold, pays in have.offers:
        paid = _all(pays, 1, items, have, within, []) if sold == target and count == 1 else None
        if paid:
            yield [*paid[0], f"buy {target} of a villager"], paid[1]


def _at(
    station: str, items: Counter[str], have: Supplies, within: tuple[str, ...]
) -> _Found | None:
    """Steps to have a block to work at: it stands there, or is put there."""
    if station in have.blocks:
        return [], items
    found = _get(station, 1, items, have, within)
    return found and ([*found[0], f"place {station}"], found[1])


def _all(
    needs: Mapping[str, int], times: int, items: Counter[str], have: Supplies,
    within: tuple[str, ...], steps: list[str],
) -> _Found | None:  # fmt: skip
    """Steps to have all of some ingredients."""
    done = list(steps)
    for name, each in needs.items():
        found = _get(name, each * times, items, have, within)
        if found is None:
            return None
        done, items = [*done, *found[0]], found[1]
    return done, items


def tool_for(block: str, items: Mapping[str, int]) -> str | None:
    """Returns what to mine a block with, so that it drops something; None if nothing will do."""
    about = facts()["blocks"].get(block)
    if about is None:
        return None
    kinds = [name for name, n in items.items() if n > 0 and name.endswith(f"_{about['tool']}")]
    kinds += [about["tool"]] * bool(about["tool"] and items.get(about["tool"]))
    tier = TIERS.index(about["tier"]) if about["tier"] else -1
    good = [name for name in kinds if tier < 0 or _tier(name) >= tier]
    if good:
        return good[0]
    return "bare hands" if tier < 0 else None


def _tier(tool: str) -> int:
    kind = tool.partition("_")[0]
    return 0 if kind == "golden" else TIERS.index(kind) if kind in TIERS else -1
