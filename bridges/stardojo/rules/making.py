"""Making things: crafting, cooking, machines, and placing what was made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridges.stardojo.rules import farmer, items, maps, places, registry, soil
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import EVENING, MENUS, SPOT, TEN, TOUCH, MenuRule, random
from bridges.stardojo.rules.tables import Product, Recipe
from bridges.stardojo.rules.world import Furniture, Ground, Item, Menu, Thing, Tile, World

CHEST_SLOTS = 36
NIGHT = 1440 - 20 * 60
"""Minutes from 2:00 to 6:00 that machines work through, at least."""


def make(world: World, key: str, recipe: Recipe) -> bool:
    """Makes one portion of a recipe from the bag; returns True if it could be."""
    name = recipe.makes or key
    if not farmer.has(world, recipe.needs):
        return False
    before = [
        None if each is None else Item(each.name, each.count, each.quality, each.facts)
        for each in world.farmer.bag
    ]
    for wanted, number in recipe.needs.items():
        farmer.take(world, wanted, number)
    if farmer.space(world, name) < recipe.count:
        world.farmer.bag = before
        return False
    farmer.give(world, name, recipe.count)
    return True


def craft(world: World, key: str) -> bool:
    """Crafts one piece by the key of a known recipe; returns True if it could be."""
    recipe = content().crafting.get(key)
    if recipe is None or key not in world.farmer.recipes or not make(world, key, recipe):
        return False
    registry.DID.call(world, "craft", recipe.makes or key, recipe.count)
    return True


def _dishes(world: World, menu: Menu) -> list[str]:
    return list(world.farmer.dishes)


def _cook(world: World, menu: Menu, index: int, quantity: int, inward: bool) -> None:
    dishes = world.farmer.dishes
    if not 0 <= index < len(dishes):
        return
    for _ in range(max(1, quantity)):
        if not make(world, dishes[index], content().cooking[dishes[index]]):
            break
        registry.DID.call(world, "cook", dishes[index], 1)


MENUS["cooking"] = MenuRule("", _dishes, _cook)


def kitchen(world: World, tile: Tile, about: object) -> bool:
    """Opens the menu of the dishes that the farmer knows, at a stove or a cookout kit."""
    world.menu = Menu("cooking")
    return True


SPOT("stove")(kitchen)
TOUCH("kit")(kitchen)


@SPOT("fridge")
def fridge(world: World, tile: Tile, words: object) -> bool:
    """Opens the fridge, which is a chest of its place."""
    world.here.facts.setdefault("fridge", [])
    world.menu = Menu("chest", {"fridge": True})
    return True


def product_of(machine: str, name: str) -> Product | None:
    """Returns what a machine makes of an item, None if it does not take it."""
    table: Mapping[str, Product] = content().machines.get(machine, {})
    return (
        table.get(name)
        or table.get(items.shown(name))
        or next(
            (
                made
                for wanted, made in table.items()
                if wanted[0] == "<" and items.matches(name, wanted)
            ),
            None,
        )
    )


@TOUCH("machine")
def machine(world: World, tile: Tile, thing: Thing) -> bool:
    """Takes what a machine has made, or puts in what is in hand."""
    if product := thing.facts.get("product"):
        if thing.facts["minutes"] > 0:
            return False
        if farmer.space(world, product) < thing.facts["count"]:
            return False
        farmer.give(world, product, thing.facts["count"])
        registry.DID.call(world, "forge", product, thing.facts["count"])
        thing.facts.clear()
        return True
    held = world.farmer.hand
    made = product_of(thing.name, held.name) if held else None
    if held is None or made is None or held.count < made.takes:
        return False
    if made.needs and farmer.count(world, made.needs) < 1:
        return False
    farmer.use_up(world, made.takes)
    if made.needs:
        farmer.take(world, made.needs, 1)
    thing.facts.update(product=made.product, minutes=made.minutes, count=made.count)
    return True


def _work(world: World, minutes: int) -> None:
    for place in world.places.values():
        for thing in place.things.values():
            if thing.kind == "machine" and thing.facts.get("minutes", 0) > 0:
                thing.facts["minutes"] -= minutes


@TEN
def machines_work(world: World) -> None:
    """Machines work for ten minutes."""
    _work(world, 10)


@EVENING
def machines_work_at_night(world: World) -> None:
    """Machines work on until the morning."""
    _work(world, 26 * 60 - world.minutes + NIGHT)


@TOUCH("forage")
def pick(world: World, tile: Tile, thing: Thing) -> bool:
    """Picks up what lies there."""
    draw = random(world) * 30
    skill = farmer.level(world, "foraging")
    quality = 4 if "Botanist" in world.farmer.professions else 2 if draw < skill else 0
    if farmer.space(world, thing.name, quality) < 1:
        return False
    del world.here.things[tile]
    number = 2 if "Gatherer" in world.farmer.professions and random(world) < 0.2 else 1
    farmer.give(world, thing.name, number, quality)
    farmer.learn(world, "foraging", 7)
    registry.DID.call(world, "forage", thing.name, number)
    return True


@TOUCH("chest")
def chest(world: World, tile: Tile, thing: Thing) -> bool:
    """Opens a chest."""
    thing.facts.setdefault("items", [])
    world.menu = Menu("chest", {"tile": list(tile)})
    return True


def chest_items(world: World, menu: Menu) -> list[Any]:
    """Returns what is in the open chest: ``[name, count, quality, facts]`` each."""
    facts = world.here.facts
    key = "fridge"
    if not menu.facts.get("fridge"):
        x, y = menu.facts["tile"]
        facts, key = world.here.things[x, y].facts, "items"
    inside: list[Any] = facts[key]
    return inside


def from_chest(world: World, index: int, number: int) -> None:
    """Takes pieces out of the open chest; the index counts from 0."""
    if world.menu is None or world.menu.kind != "chest":
        return
    inside = chest_items(world, world.menu)
    if not 0 <= index < len(inside) or number <= 0:
        return
    name, count, quality, facts = inside[index]
    taken = min(number, count)
    item = Item(name, taken, quality, dict(facts))
    left = 0 if farmer.give_item(world, item) else item.count
    inside[index][1] = count - taken + left
    if not inside[index][1]:
        del inside[index]


def to_chest(world: World, index: int, number: int) -> None:
    """Puts pieces of a slot of the bag into the open chest."""
    if world.menu is None or world.menu.kind != "chest" or number <= 0:
        return
    bag = world.farmer.bag
    held = bag[index] if 0 <= index < len(bag) else None
    inside = chest_items(world, world.menu)
    if held is None:
        return
    moved = min(number, held.count)
    for each in inside:
        if each[0] == held.name and each[2] == held.quality and not held.facts and not each[3]:
            each[1] += moved
            break
    else:
        if len(inside) >= CHEST_SLOTS:
            return
        inside.append([held.name, moved, held.quality, held.facts])
    held.count -= moved
    if not held.count:
        bag[index] = None


def place_ahead(world: World, held: Item) -> bool:
    """Places what is in hand on the tile ahead; returns True if it could be."""
    tile, place = world.farmer.ahead, world.here
    kind = items.category(held.name)
    ground = place.ground.get(tile)
    if kind == "fertilizer":
        done = _fertilize(ground, held.name)
    elif kind == "seed" and soil.sow(world, place, tile, held.name):
        done = True
    else:
        open_ = tile not in place.things and (ground is None or kind == "craft")
        done = open_ and places.free(world, place, tile) and _put(world, held, tile, kind)
    if done:
        farmer.use_up(world)
    return done


def _fertilize(ground: Ground | None, name: str) -> bool:
    """Spreads fertilizer on tilled ground; most kinds only before a plant grows."""
    if ground is None or ground.kind != "dirt" or ground.fertilizer:
        return False
    if ground.crop is not None and ground.crop.phase and "Speed" not in name:
        return False
    ground.fertilizer = name
    return True


def _put(world: World, held: Item, tile: Tile, kind: str) -> bool:
    """Puts one piece on a free tile, by its category."""
    place = world.here
    name = held.name
    trees = {each.seed: key for key, each in content().wild_trees.items()}
    if name in trees and maps.diggable(places.plan(place), tile) and tile not in place.ground:
        place.ground[tile] = soil.tree(trees[name], 0)
    elif kind == "sapling" and maps.diggable(places.plan(place), tile):
        if any(
            (tile[0] + dx, tile[1] + dy) in place.things | place.ground
            for dx in (-1, 0, 1)
            for dy in (-1, 0, 1)
        ):
            return False
        place.ground[tile] = Ground("fruit_tree", name)
    elif name == "Grass Starter":
        place.ground[tile] = Ground("grass", stage=4)
    elif name.endswith((" Floor", " Path")):
        place.ground[tile] = Ground("floor", name)
    elif kind == "furniture":
        place.furniture.append(Furniture(name, tile))
    elif kind == "big" or name in content().placed:
        rule = "machine" if name in content().machines else content().placed.get(name, "placed")
        place.things[tile] = Thing(name, rule)
    elif name.endswith(("Fence", "Gate", "Torch", "prinkler")) or name == "Crab Pot":
        passable = name in ("Torch", "Gate")
        place.things[tile] = Thing(name, "fence", passable=passable)
    else:
        return False
    return True


def placeable(name: str) -> bool:
    """Returns True for an item that is placed, not used."""
    kind = items.category(name)
    seeds = {each.seed for each in content().wild_trees.values()}
    return (
        kind in ("seed", "sapling", "fertilizer", "big", "furniture")
        or name in seeds
        or name in content().placed
        or name == "Grass Starter"
        or name.endswith((" Floor", " Path", "Fence", "Gate", "Torch", "prinkler"))
    )
