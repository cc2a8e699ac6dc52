"""Tools: what each does to the tile ahead, with its energy and level."""

from __future__ import annotations

from bridges.stardojo.rules import farmer, items, maps, places, soil
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import HIT, STRIKE, USE, random
from bridges.stardojo.rules.world import WAYS, Item, Thing, Tile, World

TICKS = {"axe": 40, "pickaxe": 40, "hoe": 40, "can": 44, "scythe": 26}
POWER = (4, 5, 6, 8, 20)
"""Strength of one blow by level, in quarters of the first axe's or pickaxe's."""


def spend(world: World, skill: str) -> bool:
    """Takes the energy of one use; returns True if there was any left."""
    if world.farmer.energy <= 0:
        farmer.tire(world, 2.0)
        return False
    farmer.tire(world, max(0.1, 2.0 - 0.1 * farmer.level(world, skill)))
    return True


def strike(world: World, kind: str, item: Item, tile: Tile) -> bool:
    """Strikes the thing on a tile by the rules; returns True if there is a rule for it."""
    thing = world.here.things.get(tile)
    rule = STRIKE.get(f"{kind} {thing.kind}") if thing else None
    if rule is None or thing is None:
        return False
    rule(world, item, tile, thing)
    return True


@USE("axe")
def axe(world: World, item: Item, tile: Tile) -> int:
    """Chops trees, twigs and weeds."""
    if not spend(world, "foraging") or strike(world, "axe", item, tile):
        return TICKS["axe"]
    ground = world.here.ground.get(tile)
    if ground and ground.kind == "tree":
        _chop(world, item, tile)
    elif ground and ground.kind == "fruit_tree":
        ground.blows += 1
        if ground.blows >= soil.TREE_HEALTH:
            del world.here.ground[tile]
    elif ground and ground.kind == "grass":
        soil.grass_to_hay(world, world.here, tile)
    return TICKS["axe"]


def _chop(world: World, item: Item, tile: Tile) -> None:
    place, ground = world.here, world.here.ground[tile]
    if ground.stage < 3:  # a sapling falls at once
        del place.ground[tile]
        if ground.stage:
            places.drop(world, place, tile, Item("Wood", 1))
        return
    ground.blows -= POWER[items.level(item.name)]
    if ground.blows > 0:
        return
    if ground.stump or ground.stage < soil.GROWN:
        del place.ground[tile]
        places.drop(world, place, tile, Item("Wood", 4))
        farmer.learn(world, "foraging", 1)
    else:
        soil.fell(world, place, tile)


@USE("pickaxe")
def pickaxe(world: World, item: Item, tile: Tile) -> int:
    """Breaks stones and nodes; takes up placed things and tilled ground."""
    if not spend(world, "mining") or strike(world, "pickaxe", item, tile):
        return TICKS["pickaxe"]
    ground = world.here.ground.get(tile)
    if ground and ground.kind in ("dirt", "floor"):
        if ground.crop:
            ground.crop = None
        else:
            del world.here.ground[tile]
            if ground.kind == "floor":
                places.drop(world, world.here, tile, Item(ground.name))
    return TICKS["pickaxe"]


@USE("hoe")
def hoe(world: World, item: Item, tile: Tile) -> int:
    """Tills; digs up artifact spots; in the mines finds what lies in the ground."""
    if not spend(world, "farming") or strike(world, "hoe", item, tile):
        return TICKS["hoe"]
    place = world.here
    if soil.till(world, place, tile) and place.plan.startswith("UndergroundMine"):
        _dig(world, tile)
    return TICKS["hoe"]


def _dig(world: World, tile: Tile) -> None:
    floor = int(world.here.plan.removeprefix("UndergroundMine"))
    area = next(each for each in content().areas if each.floors[0] <= floor <= each.floors[1])
    for name, chance in area.dig.items():
        if random(world) < chance:
            places.drop(world, world.here, tile, Item(name))
            farmer.learn(world, "foraging", 3 if name == "Cave Carrot" else 0)
            return


@USE("can")
def can(world: World, item: Item, tile: Tile) -> int:
    """Waters tilled ground and pet bowls; fills up at water."""
    place, layout = world.here, places.plan(world.here)
    water = layout.inside(tile) and layout.made[tile] == maps.WATER
    made = places.building_at(world, tile) if place.key == "Farm" else None
    if water or layout.spots.get(tile) == ("sink",) or (made and made.kind == "Well"):
        item.facts["water"] = items.WATER[items.level(item.name)]
        return TICKS["can"]
    if item.facts.get("water", 0) <= 0 or not spend(world, "farming"):
        return TICKS["can"]
    item.facts["water"] -= 1
    ground = place.ground.get(tile)
    if ground and ground.kind == "dirt":
        ground.watered = True
    elif made and made.kind == "Pet Bowl":
        made.full = True
    return TICKS["can"]


def swept(world: World) -> list[Tile]:
    """Returns the tiles that a swing reaches: three ahead, two beside, and one's own."""
    x, y = world.farmer.tile
    dx, dy = WAYS[world.farmer.facing]
    side = (dy, dx)
    found = [(x + dx, y + dy)]
    found += [(x + dx + s * side[0], y + dy + s * side[1]) for s in (-1, 1)]
    found += [(x + s * side[0], y + s * side[1]) for s in (-1, 1)]
    return [*found, (x, y)]


def swing_ticks(name: str) -> int:
    """Returns how long a swing takes: 400 ms, less 40 for each point of speed (daggers half)."""
    weapon = content().weapons[name]
    ticks = round((400 - 40 * weapon.speed) * 0.06)
    return max(8, ticks // 2 if weapon.kind == "dagger" else ticks)


@USE("scythe")
def scythe(world: World, item: Item, tile: Tile) -> int:
    """Cuts weeds, grass and ripe grain over the tiles of a swing."""
    HIT.first(world, item, swept(world))
    cut(world, item, "scythe")
    return TICKS["scythe"]


@USE("sword", "dagger", "club")
def weapon(world: World, item: Item, tile: Tile) -> int:
    """Hits monsters, cuts weeds and grass over the tiles of a swing."""
    HIT.first(world, item, swept(world))
    cut(world, item, "weapon")
    return swing_ticks(item.name)


def cut(world: World, item: Item, kind: str) -> None:
    """Cuts what grows on the tiles of a swing."""
    place = world.here
    for tile in swept(world):
        if strike(world, kind, item, tile):
            continue
        ground = place.ground.get(tile)
        if ground is None:
            continue
        if ground.kind == "grass":
            ground.blows -= 1
            soil.grass_to_hay(world, place, tile, golden=item.name != "Scythe")
        elif ground.crop and kind == "scythe":
            if ground.crop.dead:
                ground.crop = None
            else:
                soil.harvest(world, place, tile, scythe=True)


@STRIKE("axe weeds", "pickaxe weeds", "hoe weeds", "scythe weeds", "weapon weeds")
def weeds(world: World, item: Item, tile: Tile, thing: Thing) -> None:
    """Cuts weeds: fiber half of the time, rarely seeds."""
    del world.here.things[tile]
    if random(world) < 0.5:
        places.drop(world, world.here, tile, Item("Fiber"))
    if random(world) < 0.05:
        places.drop(world, world.here, tile, Item("Mixed Seeds"))


@STRIKE("axe twig", "pickaxe twig")
def twig(world: World, item: Item, tile: Tile, thing: Thing) -> None:
    """Chops a twig: a piece of wood."""
    del world.here.things[tile]
    places.drop(world, world.here, tile, Item("Wood"))
    farmer.learn(world, "foraging", 1)


@STRIKE("pickaxe stone")
def stone(world: World, item: Item, tile: Tile, thing: Thing) -> None:
    """Breaks a stone of the farm: a piece of stone, rarely coal."""
    thing.blows -= 1
    if thing.blows > 0:
        return
    del world.here.things[tile]
    places.drop(world, world.here, tile, Item("Stone"))
    farmer.learn(world, "mining", 1)
    if random(world) < 0.05:
        places.drop(world, world.here, tile, Item("Coal"))


@STRIKE("hoe spot")
def artifact(world: World, item: Item, tile: Tile, thing: Thing) -> None:
    """Digs up an artifact spot."""
    del world.here.things[tile]
    found = content().spots.get(world.here.name, {"Clay": 1.0})
    for name, chance in found.items():
        if random(world) < chance:
            places.drop(world, world.here, tile, Item(name))
            break
    farmer.learn(world, "foraging", 15)
    if (tile not in world.here.ground) and maps.diggable(places.plan(world.here), tile):
        soil.till(world, world.here, tile)


@STRIKE(
    *(
        f"{tool} {kind}"
        for tool in ("axe", "pickaxe")
        for kind in ("machine", "placed", "chest", "fence", "kit", "incubator", "heater", "hopper")
    )
)
def take_up(world: World, item: Item, tile: Tile, thing: Thing) -> None:
    """Takes up something that was placed, if it is empty."""
    if thing.facts.get("items") or (thing.facts.get("fixed")):
        return
    del world.here.things[tile]
    if product := thing.facts.get("product"):
        places.drop(world, world.here, tile, Item(product, thing.facts.get("count", 1)))
    places.drop(world, world.here, tile, Item(thing.name))


def sow_trees(world: World, key: str, number: int, draw: list[float]) -> None:
    """Sets wild trees on a place's free ground, where ``draw`` says (three numbers for each)."""
    place = places.get(world, key)
    layout = places.plan(place)
    kinds = ("Oak", "Maple", "Pine")
    for n in range(number):
        a, b, c = draw[3 * n : 3 * n + 3]
        tile = (int(a * layout.width), int(b * layout.height))
        good = layout.made[tile] in (maps.DIRT, maps.GRASS) and tile not in layout.exits
        if good and tile not in place.things and tile not in place.ground:
            place.ground[tile] = soil.tree(kinds[int(c * 3)])
