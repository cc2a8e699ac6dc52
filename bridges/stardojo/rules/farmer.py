"""The farmer: bag, energy, health, money, skills."""

from __future__ import annotations

from collections.abc import Mapping

from bridges.stardojo.rules import items
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.places import drop
from bridges.stardojo.rules.registry import GAIN
from bridges.stardojo.rules.world import Item, World

REACH = 2
"""Tiles from which items that lie on the ground come to the farmer."""
EXHAUSTED = -15
"""Energy at which the farmer passes out."""


def space(world: World, name: str, quality: int = 0) -> int:
    """Returns how many more pieces of an item fit into the bag."""
    most = items.stack(name)
    left = 0
    for held in world.farmer.bag:
        if held is None:
            left += most
        elif held.name == name and held.quality == quality and most > 1:
            left += most - held.count
    return left


def give(world: World, name: str, count: int = 1, quality: int = 0) -> int:
    """Puts pieces into the bag; returns how many did not fit."""
    most, left = items.stack(name), count
    bag = world.farmer.bag
    for held in bag:
        if held and held.name == name and held.quality == quality and most > 1 and left:
            moved = min(left, most - held.count)
            held.count += moved
            left -= moved
    for slot, held in enumerate(bag):
        if held is None and left:
            moved = min(left, most)
            bag[slot] = fresh(name, moved, quality)
            left -= moved
    if left < count:
        GAIN.call(world, name, count - left)
    return left


def fresh(name: str, count: int = 1, quality: int = 0) -> Item:
    """Returns a new item; a watering can comes full."""
    made = Item(name, count, quality)
    if items.use_kind(name) == "can":
        made.facts["water"] = items.WATER[items.level(name)]
    return made


def give_item(world: World, item: Item) -> bool:
    """Puts an item into the bag, the rest staying in it; returns True if all of it fitted."""
    if item.facts:
        bag = world.farmer.bag
        if None not in bag:
            return False
        bag[bag.index(None)] = item
        GAIN.call(world, item.name, item.count)
        return True
    item.count = give(world, item.name, item.count, item.quality)
    return item.count == 0


def gather(world: World, name: str, count: int = 1, quality: int = 0) -> None:
    """Gives pieces; what does not fit lies on the ground."""
    if left := give(world, name, count, quality):
        drop(world, world.here, world.farmer.tile, Item(name, left, quality))


def count(world: World, wanted: str) -> int:
    """Returns how many pieces of an item, or of a category in ``<>``, are in the bag."""
    return sum(each.count for each in world.farmer.bag if each and items.matches(each.name, wanted))


def take(world: World, wanted: str, number: int) -> bool:
    """Takes pieces out of the bag, if there are enough; returns True if there were."""
    if count(world, wanted) < number:
        return False
    bag = world.farmer.bag
    for slot, held in enumerate(bag):
        if held and number and items.matches(held.name, wanted):
            moved = min(number, held.count)
            held.count -= moved
            number -= moved
            if not held.count:
                bag[slot] = None
    return True


def use_up(world: World, number: int = 1) -> None:
    """Takes pieces from the stack in hand."""
    held = world.farmer.hand
    if held is not None:
        held.count -= number
        if held.count <= 0:
            world.farmer.bag[world.farmer.slot] = None


def pay(world: World, gold: int) -> bool:
    """Pays, if there is enough money; returns True if there was."""
    if world.farmer.money < gold:
        return False
    world.farmer.money -= gold
    return True


def tire(world: World, energy: float) -> None:
    """Spends energy; it may fall below zero, which is felt the next day too."""
    world.farmer.energy = max(world.farmer.energy - energy, float(EXHAUSTED))
    if world.farmer.energy <= 0:
        world.facts["exhausted"] = True


def rest(world: World, energy: float, health: float = 0.0) -> None:
    """Gives energy and health back."""
    farmer = world.farmer
    farmer.energy = min(farmer.energy + energy, float(farmer.most_energy))
    farmer.health = min(farmer.health + int(health), farmer.most_health)


def hurt(world: World, points: int) -> None:
    """Takes health, unless the farmer was just hurt; at zero it faints (see ``night.faint``)."""
    farmer = world.farmer
    if farmer.safe_ticks <= 0 and points > 0:
        farmer.health = max(0, farmer.health - points)
        farmer.safe_ticks = 72


def level(world: World, skill: str) -> int:
    """Returns the level of a skill, 0 to 10."""
    points = world.farmer.points[skill]
    return sum(points >= needed for needed in content().levels)


def learn(world: World, skill: str, points: int) -> None:
    """Adds experience; levels, recipes and professions come in the night."""
    world.farmer.points[skill] += points


def has(world: World, materials: Mapping[str, int]) -> bool:
    """Returns True if the bag holds some materials."""
    return all(count(world, name) >= number for name, number in materials.items())


def collect(world: World) -> None:
    """Picks up what lies within reach, as far as it fits."""
    drops = world.here.drops
    if not drops:
        return
    x, y = world.farmer.tile
    for tile in [t for t in drops if abs(t[0] - x) <= REACH and abs(t[1] - y) <= REACH]:
        left = [item for item in drops[tile] if not give_item(world, item)]
        if left:
            drops[tile] = left
        else:
            del drops[tile]
