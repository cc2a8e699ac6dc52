"""Commands that prepare a task (``InitTaskAPI``): the player, items, the land, time and places."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from bridges.stardojo.rules import farmer, items, maps, places, residents, soil
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import COMMAND, Days, Id, Natural, Positive, Quality, Whole
from bridges.stardojo.rules.world import (
    SEASONS,
    TEN_MINUTES,
    Furniture,
    Ground,
    Place,
    Thing,
    World,
)
from rollout.errors import InputError, UnknownNameError


@COMMAND("set_base_stamina")
def set_base_stamina(world: World, amount: Positive = 588) -> None:
    """Sets the most energy."""
    world.farmer.most_energy = amount


@COMMAND("set_stamina")
def set_stamina(world: World, amount: Whole | None = None) -> None:
    """Sets the energy; None for all."""
    world.farmer.energy = float(world.farmer.most_energy if amount is None else amount)


@COMMAND("set_base_health")
def set_base_health(world: World, amount: Positive = 150) -> None:
    """Sets the most health."""
    world.farmer.most_health = amount


@COMMAND("set_health")
def set_health(world: World, amount: Whole | None = None) -> None:
    """Sets the health; None for all."""
    world.farmer.health = world.farmer.most_health if amount is None else amount


@COMMAND("set_backpack_size")
def set_backpack_size(world: World, size: Annotated[int, Field(ge=1, le=36)] = 36) -> None:
    """Sets the slots of the bag; what no longer fits is lost."""
    me = world.farmer
    me.bag = [*me.bag[:size], *[None] * (size - len(me.bag))]
    me.slot = min(me.slot, max(0, size - 1))


@COMMAND("clear_backpack")
def clear_backpack(world: World) -> None:
    """Empties the bag."""
    world.farmer.bag = [None] * len(world.farmer.bag)


@COMMAND("set_money")
def set_money(world: World, amount: Natural = 10_000_000) -> None:
    """Sets the money."""
    world.farmer.money = amount


@COMMAND("add_item_by_id")
def add_item_by_id(world: World, number: Id, count: Positive = 1, quality: Quality = 0) -> None:
    """Gives an item by its id."""
    farmer.give(world, items.by_id(str(number)).key, count, quality)


@COMMAND("add_item_by_name")
def add_item_by_name(world: World, name: str, count: Positive = 1, quality: Quality = 0) -> None:
    """Gives an item by its name; lost if the bag is full."""
    farmer.give(world, items.find(name).key, count, quality)


@COMMAND("world_clear")
def world_clear(world: World, entity: str = "debris", location: str = "current") -> None:
    """Takes away what grows or stands on a map."""
    place = world.here if location == "current" else places.get(world, maps.find(location))
    kinds = content().cleared.get(entity)
    if kinds is None:
        raise UnknownNameError("entity", entity, content().cleared)
    place.things = {tile: each for tile, each in place.things.items() if each.kind not in kinds}
    for ground in place.ground.values():
        if "crop" in kinds:
            ground.crop = None
    place.ground = {tile: each for tile, each in place.ground.items() if each.kind not in kinds}
    if "furniture" in kinds:
        place.furniture = []


@COMMAND("place_item")
def place_item(
    world: World, item: Id, kind: str | None = None, x: int | None = None, y: int | None = None
) -> None:
    """Puts an item on a tile, as forage if that is its type."""
    key = items.by_id(str(item)).key
    tile = places.beside(world, x, y)
    if not places.fixed_free(world, world.here, tile):
        return
    rule = "forage" if kind == "forage" else "machine" if key in content().machines else "placed"
    if items.category(key) == "furniture":
        world.here.furniture.append(Furniture(key, tile))
    else:
        world.here.things[tile] = Thing(key, rule)


@COMMAND("set_terrain")
def set_terrain(
    world: World, terrain: str, kind: Id | None = None, x: int | None = None, y: int | None = None
) -> None:
    """Makes tilled dirt, grass or a tree on a free tile."""
    tile, place = places.beside(world, x, y), world.here
    if tile in place.ground or not maps.diggable(places.plan(place), tile):
        return
    if terrain == "dirt":
        soil.till(world, place, tile)
    elif terrain == "grass":
        place.ground[tile] = Ground("grass", stage=4)
    elif terrain == "tree":
        known = dict(enumerate(content().wild_trees, 1))
        number = next((n for n in known if str(n) == str(kind or 1)), 0)
        if not number:
            raise UnknownNameError("kind of tree", str(kind), map(str, known))
        place.ground[tile] = soil.tree(known[number], 0)
    elif terrain == "fruittree":
        saplings = content().fruit_trees
        key = items.by_id(str(kind)).key if kind is not None else next(iter(saplings))
        if key not in saplings:
            raise UnknownNameError("sapling", key, saplings)
        place.ground[tile] = Ground("fruit_tree", key)
    else:
        raise UnknownNameError("terrain", terrain, ("dirt", "grass", "tree", "fruittree"))


@COMMAND("place_crop")
def place_crop(world: World, seedid: Id, x: int | None = None, y: int | None = None) -> None:
    """Tills a tile if needed and plants a seed there."""
    tile, seed = places.beside(world, x, y), items.by_id(str(seedid)).key
    if seed != "Mixed Seeds" and seed not in content().crops:
        raise UnknownNameError("seed", seed, content().crops)
    soil.till(world, world.here, tile)
    soil.sow(world, world.here, tile, seed)


@COMMAND("grow_crop")
def grow_crop(world: World, days: Days = 100, x: int | None = None, y: int | None = None) -> None:
    """Grows a crop by some watered days."""
    ground = world.here.ground.get(places.beside(world, x, y))
    if ground is not None and ground.crop is not None:
        soil.grow_crop(ground, days)


@COMMAND("grow_tree")
def grow_tree(world: World, days: Days = 100, x: int | None = None, y: int | None = None) -> None:
    """Grows a tree by some days."""
    ground = world.here.ground.get(places.beside(world, x, y))
    if ground is not None and ground.kind == "tree":
        soil.grow_tree(world, ground, days)
    elif ground is not None and ground.kind == "fruit_tree":
        soil.grow_fruit(world, ground, days)


@COMMAND("remove_item")
def remove_item(world: World, x: int | None, y: int | None) -> None:
    """Takes the thing of a tile away."""
    world.here.things.pop(places.beside(world, x, y), None)


@COMMAND("warp")
def warp(world: World, location: str, x: int | None = None, y: int | None = None) -> None:
    """Takes the farmer to a map, to its usual tile if none is given."""
    floor = re.fullmatch(r"UndergroundMine[1-9]\d*", location)
    key = location if floor else maps.find(location)
    made = next((each for each in world.buildings if each.kind == key and each.inside), None)
    if (x is None) != (y is None):
        raise InputError(f"warp: expected two numbers or none, got x {x} and y {y}")
    tile = None if x is None or y is None else (x, y)
    places.warp(world, made.inside if made else key, tile)
    world.busy = 0


@COMMAND("warp_mine")
def warp_mine(world: World, level: Positive = 1) -> None:
    """Takes the farmer to a floor of the mines."""
    warp(world, f"UndergroundMine{level}")


@COMMAND("warp_volcano")
def warp_volcano(world: World, level: int = 1) -> None:
    """Refused: the island is not part of this valley."""
    raise InputError("warp_volcano: the volcano is not part of the valley")


@COMMAND("warp_home")
def warp_home(world: World) -> None:
    """Takes the farmer into the farmhouse."""
    warp(world, "FarmHouse", 9, 9)


@COMMAND("warp_shop")
def warp_shop(world: World, npc: str) -> None:
    """Takes the farmer to the counter of a shop and the keeper behind it."""
    if npc.casefold() not in content().keepers:
        raise UnknownNameError("shop keeper", npc, content().keepers)
    key, tile, name, behind = content().keepers[npc.casefold()]
    warp(world, key, *tile)
    world.farmer.facing = 0
    keeper = COMMAND.get("warp_character")
    if behind is not None and keeper is not None:
        keeper(world, name, key, *behind)


@COMMAND("set_date")
def set_date(
    world: World,
    year: Positive | None = None,
    season: str | None = None,
    day: Annotated[int, Field(ge=1, le=28)] | None = None,
) -> None:
    """Sets the date; what is None stays."""
    season = "fall" if season == "autumn" else season
    if season is not None and season not in SEASONS:
        raise UnknownNameError("season", season, SEASONS)
    world.year = year or world.year
    world.season = season or world.season
    world.day = day or world.day


@COMMAND("set_time")
def set_time(world: World, time: int | None) -> None:
    """Sets the clock, as HHMM from 600 to 2600, None for as it is; residents go where they are."""
    if time is None:
        return
    if not 600 <= time <= 2600 or time % 100 >= 60:
        raise InputError(f"set_time: expected HHMM from 600 to 2600, got {time}")
    minutes = time // 100 * 60 + time % 100 - 360
    world.ticks = min(minutes // 10, 119) * TEN_MINUTES
    residents.move(world)


@COMMAND("character_tile", "print_luck")
def say_nothing(world: World) -> None:
    """Writes to the log of the mod only."""


@COMMAND("lookup")
def lookup(world: World, name: str) -> None:
    """Writes to the log of the mod only."""


@COMMAND("set_deepest_mine_level")
def set_deepest_mine_level(world: World, level: Natural = 120) -> None:
    """Sets how deep the farmer has been."""
    world.mine_level = level


@COMMAND("get_monster_kills")
def get_monster_kills(world: World, monster: str) -> int:
    """Returns how many monsters of a name were killed."""
    return world.farmer.kills.get(monster, 0)


@COMMAND("set_monster_stat")
def set_monster_stat(world: World, monster: str, kills: Natural = 0) -> None:
    """Sets how many monsters of a name were killed."""
    world.farmer.kills[monster] = kills


@COMMAND("add_recipe")
def add_recipe(world: World, kind: str = "crafting", recipe: str | None = None) -> None:
    """Teaches a recipe; None for all."""
    crafting = kind == "crafting"
    known = world.farmer.recipes if crafting else world.farmer.dishes
    table = content().crafting if crafting else content().cooking
    if recipe is not None and recipe not in table:
        raise UnknownNameError("recipe", recipe, table)
    for name in table if recipe is None else [recipe]:
        if name not in known:
            known.append(name)


@COMMAND("upgrade_house")
def upgrade_house(world: World, level: Annotated[int, Field(ge=0, le=3)] = 3) -> None:
    """Makes the farmhouse larger: from level 1 on it has a kitchen."""
    world.house_level = level
    old = world.places["FarmHouse"]
    new: Place = places.blank("FarmHouse", "FarmHouse", "FarmHouse1" if level else "FarmHouse")
    new.drops, new.facts = old.drops, old.facts
    world.places["FarmHouse"] = new
    for pet in world.pets:
        if pet.place == "FarmHouse":
            pet.tile = places.near(world, new, pet.tile)


@COMMAND("set_max_luck")
def set_max_luck(world: World) -> None:
    """Makes the day as fortunate as can be."""
    world.fortune, world.lucky = 0.1, 10


@COMMAND("rain")
def rain(world: World) -> None:
    """Starts rain, or stops it."""
    world.weather = "sun" if world.weather in ("rain", "storm", "snow") else "rain"
    if world.weather == "rain":
        for place in world.places.values():
            if places.plan(place).outdoors:
                for ground in place.ground.values():
                    ground.watered |= ground.kind == "dirt"
