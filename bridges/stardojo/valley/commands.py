"""Commands that prepare a task (``InitTaskAPI``): the player, items, the land, time and places."""

from __future__ import annotations

from bridges.stardojo.valley import farmer, items, maps, places, residents, soil
from bridges.stardojo.valley.data import content
from bridges.stardojo.valley.rules import COMMAND
from bridges.stardojo.valley.world import (
    SEASONS,
    TEN_MINUTES,
    Furniture,
    Ground,
    Place,
    Thing,
    Tile,
    World,
)
from rollout.errors import InputError, UnknownNameError

Whole = int | None
KEEPERS: dict[str, tuple[str, Tile, str, Tile | None]] = {
    "pierre": ("SeedShop", (4, 19), "Pierre", (4, 17)),
    "robin": ("ScienceHouse", (8, 20), "Robin", (8, 18)),
    "krobus": ("Sewer", (31, 19), "Krobus", None),
    "sandy": ("SandyHouse", (2, 7), "Sandy", (2, 5)),
    "marnie": ("AnimalShop", (12, 16), "Marnie", (12, 14)),
    "clint": ("Blacksmith", (3, 15), "Clint", (3, 13)),
    "gus": ("Saloon", (10, 20), "Gus", (10, 18)),
    "willy": ("FishShop", (6, 6), "Willy", (6, 4)),
    "pam": ("BusStop", (17, 23), "Pam", None),
    "dwarf": ("Mine", (43, 8), "Dwarf", None),
    "wizard": ("WizardHouse", (2, 14), "Wizard", None),
}
"""Shops by their keeper: map, where the farmer stands, and where the keeper does. Where the tile of
the game is a counter here, the farmer stands before it."""
_DEBRIS = ("weeds", "twig", "stone")
_REMOVABLE = (*_DEBRIS, "crop", "fruit_tree", "grass", "tree", "furniture")
_MADE = ("placed", "machine", "chest", "fence", "node")
CLEARED: dict[str, tuple[str, ...]] = {
    "crops": ("crop",),
    "debris": _DEBRIS,
    "fruit-trees": ("fruit_tree",),
    "furniture": ("furniture",),
    "grass": ("grass",),
    "trees": ("tree",),
    "removable": _REMOVABLE,
    "everything": (*_REMOVABLE, "dirt", "forage", *_MADE),
}


def _beside(world: World, x: Whole, y: Whole) -> Tile:
    me = world.farmer.tile
    return (me[0] + 1, me[1]) if x is None or y is None else (x, y)


@COMMAND("set_base_stamina")
def set_base_stamina(world: World, amount: int = 588) -> None:
    """Sets the most energy."""
    world.farmer.most_energy = amount


@COMMAND("set_stamina")
def set_stamina(world: World, amount: Whole = None) -> None:
    """Sets the energy; None for all."""
    world.farmer.energy = float(world.farmer.most_energy if amount is None else amount)


@COMMAND("set_base_health")
def set_base_health(world: World, amount: int = 150) -> None:
    """Sets the most health."""
    world.farmer.most_health = amount


@COMMAND("set_health")
def set_health(world: World, amount: Whole = None) -> None:
    """Sets the health; None for all."""
    world.farmer.health = world.farmer.most_health if amount is None else amount


@COMMAND("set_backpack_size")
def set_backpack_size(world: World, size: int = 36) -> None:
    """Sets the slots of the bag; what no longer fits is lost."""
    me = world.farmer
    me.bag = [*me.bag[:size], *[None] * (size - len(me.bag))]
    me.slot = min(me.slot, max(0, size - 1))


@COMMAND("clear_backpack")
def clear_backpack(world: World) -> None:
    """Empties the bag."""
    world.farmer.bag = [None] * len(world.farmer.bag)


@COMMAND("set_money")
def set_money(world: World, amount: int = 10_000_000) -> None:
    """Sets the money."""
    world.farmer.money = amount


@COMMAND("add_item_by_id")
def add_item_by_id(world: World, number: object, count: int = 1, quality: int = 0) -> None:
    """Gives an item by its id."""
    farmer.give(world, items.by_id(str(number)).key, count, quality)


@COMMAND("add_item_by_name")
def add_item_by_name(world: World, name: str, count: int = 1, quality: int = 0) -> None:
    """Gives an item by its name; lost if the bag is full."""
    farmer.give(world, items.find(name).key, count, quality)


@COMMAND("world_clear")
def world_clear(world: World, entity: str = "debris", location: str = "current") -> None:
    """Takes away what grows or stands on a map."""
    place = world.here if location == "current" else places.get(world, maps.find(location))
    if entity not in CLEARED:
        raise UnknownNameError("entity", entity, CLEARED)
    kinds = CLEARED[entity]
    place.things = {tile: each for tile, each in place.things.items() if each.kind not in kinds}
    for ground in place.ground.values():
        if "crop" in kinds:
            ground.crop = None
    place.ground = {tile: each for tile, each in place.ground.items() if each.kind not in kinds}
    if "furniture" in kinds:
        place.furniture = []


@COMMAND("place_item")
def place_item(
    world: World, item: object, kind: str | None = None, x: Whole = None, y: Whole = None
) -> None:
    """Puts an item on a tile, as forage if that is its type."""
    key = items.by_id(str(item)).key
    tile = _beside(world, x, y)
    rule = "forage" if kind == "forage" else "machine" if key in content().machines else "placed"
    if items.category(key) == "furniture":
        world.here.furniture.append(Furniture(key, tile))
    else:
        world.here.things[tile] = Thing(key, rule)


@COMMAND("set_terrain")
def set_terrain(
    world: World, terrain: str, kind: object = None, x: Whole = None, y: Whole = None
) -> None:
    """Makes tilled dirt, grass or a tree on a free tile."""
    tile, place = _beside(world, x, y), world.here
    if tile in place.ground or not maps.diggable(places.plan(place), tile):
        return
    name = str(kind) if kind is not None else ""
    if terrain == "dirt":
        soil.till(world, place, tile)
    elif terrain == "grass":
        place.ground[tile] = Ground("grass", stage=4)
    elif terrain == "tree":
        kinds = list(content().wild_trees)
        place.ground[tile] = soil.tree(kinds[int(name) - 1] if name.isdigit() else kinds[0], 0)
    elif terrain == "fruittree":
        key = items.by_id(name).key if name else next(iter(content().fruit_trees))
        place.ground[tile] = Ground("fruit_tree", key)
    else:
        raise UnknownNameError("terrain", terrain, ("dirt", "grass", "tree", "fruittree"))


@COMMAND("place_crop")
def place_crop(world: World, seedid: object, x: Whole = None, y: Whole = None) -> None:
    """Tills a tile if needed and plants a seed there."""
    tile = _beside(world, x, y)
    soil.till(world, world.here, tile)
    soil.sow(world, world.here, tile, items.by_id(str(seedid)).key)


@COMMAND("grow_crop")
def grow_crop(world: World, days: int = 100, x: Whole = None, y: Whole = None) -> None:
    """Lets a crop grow as if it was watered."""
    ground = world.here.ground.get(_beside(world, x, y))
    if ground is not None and ground.crop is not None:
        soil.grow_crop(ground, days)


@COMMAND("grow_tree")
def grow_tree(world: World, days: int = 100, x: Whole = None, y: Whole = None) -> None:
    """Lets a tree grow."""
    ground = world.here.ground.get(_beside(world, x, y))
    if ground is not None and ground.kind == "tree":
        soil.grow_tree(world, ground, days)
    elif ground is not None and ground.kind == "fruit_tree":
        soil.grow_fruit(world, ground, days)


@COMMAND("build")
def build(world: World, kind: str, force: object = True, x: Whole = None, y: Whole = None) -> None:
    """Builds a finished building on the farm."""
    if kind not in content().buildings:
        raise UnknownNameError("building", kind, content().buildings)
    places.add_building(world, kind, _beside(world, x, y))


@COMMAND("build_stable")
def build_stable(world: World, x: Whole = None, y: Whole = None) -> None:
    """Builds a stable."""
    build(world, "Stable", True, x, y)


@COMMAND("move_building")
def move_building(world: World, xs: int, ys: int, xd: int, yd: int) -> None:
    """Moves the building of a tile."""
    if made := places.building_at(world, (xs, ys)):
        made.tile = (xd, yd)
        places.clear_site(world, made)


@COMMAND("remove_building")
def remove_building(world: World, x: int, y: int) -> None:
    """Takes the building of a tile away."""
    if made := places.building_at(world, (x, y)):
        places.remove_building(world, made)


@COMMAND("instant_build")
def instant_build(world: World, x: int, y: int) -> None:
    """Finishes the building of a tile."""
    if made := places.building_at(world, (x, y)):
        if made.becomes:
            places.grow_building(world, made, made.becomes)
        made.days, made.becomes = 0, ""


@COMMAND("remove_item")
def remove_item(world: World, x: int, y: int) -> None:
    """Takes the thing of a tile away."""
    world.here.things.pop((x, y), None)


@COMMAND("warp")
def warp(world: World, location: str, x: Whole = None, y: Whole = None) -> None:
    """Takes the farmer to a map, to its usual tile if none is given."""
    key = location if location.startswith("UndergroundMine") else maps.find(location)
    made = next((each for each in world.buildings if each.kind == key and each.inside), None)
    tile = None if x is None or y is None else (x, y)
    places.warp(world, made.inside if made else key, tile)
    world.busy = 0


@COMMAND("warp_mine")
def warp_mine(world: World, level: int = 1) -> None:
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
    if npc.casefold() not in KEEPERS:
        raise UnknownNameError("shop keeper", npc, KEEPERS)
    key, tile, name, behind = KEEPERS[npc.casefold()]
    warp(world, key, *tile)
    world.farmer.facing = 0
    keeper = COMMAND.get("warp_character")
    if behind is not None and keeper is not None:
        keeper(world, name, key, *behind)


@COMMAND("set_date")
def set_date(
    world: World, year: Whole = None, season: str | None = None, day: Whole = None
) -> None:
    """Sets the date; what is None stays."""
    if season is not None and season not in SEASONS:
        raise UnknownNameError("season", season, SEASONS)
    world.year = year or world.year
    world.season = season or world.season
    world.day = day or world.day


@COMMAND("set_time")
def set_time(world: World, time: int) -> None:
    """Sets the clock, as HHMM from 600 to 2600; residents go where they are then."""
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
def set_deepest_mine_level(world: World, level: int = 120) -> None:
    """Sets how deep the farmer has been."""
    world.mine_level = level


@COMMAND("get_monster_kills")
def get_monster_kills(world: World, monster: str) -> int:
    """Returns how many monsters of a name were killed."""
    return world.farmer.kills.get(monster, 0)


@COMMAND("set_monster_stat")
def set_monster_stat(world: World, monster: str, kills: int = 0) -> None:
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
def upgrade_house(world: World, level: int = 3) -> None:
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
    """Lets it rain, or stop."""
    world.weather = "sun" if world.weather in ("rain", "storm", "snow") else "rain"
    if world.weather == "rain":
        for place in world.places.values():
            if places.plan(place).outdoors:
                for ground in place.ground.values():
                    ground.watered |= ground.kind == "dirt"
