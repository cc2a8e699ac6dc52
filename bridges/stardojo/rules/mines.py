"""The mines: floors of stones, ores and monsters, ladders, the elevator, chests."""

from __future__ import annotations

from collections.abc import Sequence

from bridges.stardojo.rules import farmer, items, maps, places, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import below, between, random, weighted
from bridges.stardojo.rules.tables import Area
from bridges.stardojo.rules.world import Item, Menu, Monster, Place, Thing, Tile, World
from rollout.errors import InputError

FLOOR, LOWEST, STOP = "UndergroundMine", 120, 5
CALM = 4  # tiles around the way up without stones, and twice as many without monsters
GEM_NODES = {"Prismatic Shard": "Mystic Stone"}


def level_of(key: str) -> int:
    """Returns the number of a floor, 0 of another place."""
    return int(key.removeprefix(FLOOR)) if key.startswith(FLOOR) else 0


def area(level: int) -> Area:
    """Returns the area of a floor.

    Raises:
        InputError: there is no such floor.
    """
    for each in content().areas:
        if each.floors[0] <= level <= each.floors[1]:
            return each
    raise InputError(f"the mines have no floor {level}")


@registry.PLACE(FLOOR)
def floor(world: World, key: str) -> Place:
    """Makes a floor with all that is on it."""
    level, rule = level_of(key), content().floor
    known = area(level)
    seed = (world.seed * 7919 + world.days_played * 127) & 0x7FFFFFFF
    place = Place(key, key, key, facts={"cave": seed, "level": level})
    plan = maps.cave(seed, level)
    tiles = [(x, y) for x in range(plan.width) for y in range(plan.height)]
    free = [tile for tile in tiles if plan.walkable(tile) and _far(plan.arrival, tile) >= CALM]
    if level % 10 == 0 and level <= LOWEST:
        place.things[_take(world, free)] = Thing("Ladder", "ladder")
        if level in content().chests and level not in world.facts.get("chests", []):
            place.things[_take(world, free)] = Thing("Chest", "treasure")
        return place
    for _ in range(int(len(free) * rule.stones)):
        place.things[_take(world, free)] = _stone(world, known, level)
    for _ in range(between(world, *rule.forage)):
        name = weighted(world, dict(known.forage))
        place.things[_take(world, free)] = Thing(name, "forage")
    wild = [tile for tile in free if _far(plan.arrival, tile) >= 2 * CALM] or free
    starts = content().from_floor
    chances = {name: n for name, n in known.monsters.items() if level >= starts.get(name, 0)}
    names = [name for name, (first, last) in rule.sure.items() if first <= level <= last]
    names += [weighted(world, chances) for _ in range(between(world, *rule.monsters))]
    for name in names:
        x, y = _take(world, wild)
        place.monsters.append(Monster(name, x, y, content().monsters[name].health))
    return place


def _far(one: Tile, other: Tile) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _take(world: World, free: list[Tile]) -> Tile:
    return free.pop(below(world, len(free)))


def _stone(world: World, known: Area, level: int) -> Thing:
    """A stone of an area: plain, with ore, or with a gem."""
    chances: dict[str, float] = {}
    if level > 1:
        chances |= {name.replace(" Ore", " Node"): n for name, n in known.ores.items()}
    for name, chance in known.gems.items():
        chances[GEM_NODES.get(name, f"{name} Node")] = chance
    key, left = "Stone (debris)", random(world)
    for name, chance in chances.items():
        left -= chance
        if left < 0:
            key = name
            break
    blows = known.stone if key == "Stone (debris)" else content().nodes[key].blows
    return Thing("Stone", "node", blows, facts={"node": key})


@registry.STRIKE("pickaxe node")
def strike(world: World, item: Item, tile: Tile, thing: Thing) -> None:
    """Hits a stone; each level of the pickaxe adds one blow."""
    thing.blows -= 1 + items.level(item.name)
    if thing.blows <= 0:
        shatter(world, world.here, tile, thing)


def shatter(world: World, place: Place, tile: Tile, thing: Thing) -> None:
    """Breaks a stone: what was in it lies on the ground, perhaps beside a ladder."""
    node = content().nodes[thing.facts["node"]]
    known = area(level_of(place.key) or 1)
    del place.things[tile]
    for _ in range(between(world, *node.pieces)):
        places.drop(world, place, tile, Item(node.gives))
    if thing.facts["node"] == "Stone (debris)":
        if random(world) < known.coal:
            places.drop(world, place, tile, Item("Coal"))
        if random(world) < known.geode_chance:
            places.drop(world, place, tile, Item(known.geode))
    farmer.learn(world, "mining", node.experience)
    registry.DID.call(world, "mine", node.gives, 1)
    _ladder(world, place, tile)


def _ladder(world: World, place: Place, tile: Tile) -> None:
    """Perhaps shows a ladder (the game's rule: the fewer stones are left, the likelier)."""
    if has_ladder(place) or not level_of(place.key):
        return
    rule = content().ladder
    left = sum(each.kind == "node" for each in place.things.values())
    chance = rule["base"] + rule["per_stone_left"] / max(left, 1)
    chance += world.fortune * rule["per_fortune"] + (0 if place.monsters else rule["cleared"])
    if random(world) < chance:
        show_ladder(place, tile)


def has_ladder(place: Place) -> bool:
    """Returns True if there is a way down."""
    return any(each.kind == "ladder" for each in place.things.values())


def show_ladder(place: Place, tile: Tile) -> None:
    """Puts a ladder on a tile."""
    place.things[tile] = Thing("Ladder", "ladder")


@registry.TOUCH("ladder")
def down(world: World, tile: Tile, thing: Thing) -> bool:
    """Climbs down to the next floor."""
    places.warp(world, f"{FLOOR}{level_of(world.farmer.place) + 1}", None)
    return True


@registry.SPOT("ladder")
def enter_mine(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Climbs down from the entrance."""
    places.warp(world, f"{FLOOR}1", None)
    return True


@registry.SPOT("exit")
def leave(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Climbs up to the entrance."""
    places.warp(world, "Mine", None)
    return True


@registry.TOUCH("treasure")
def treasure(world: World, tile: Tile, thing: Thing) -> bool:
    """Takes what a chest of the mines holds."""
    level = level_of(world.farmer.place)
    if farmer.give(world, content().chests[level], 1):
        return False
    world.facts.setdefault("chests", []).append(level)
    del world.here.things[tile]
    return True


@registry.ENTER
def arrive(world: World, place: Place) -> None:
    """Remembers the deepest floor; floors where no one is are made again when somebody comes."""
    level = level_of(place.key)
    for key in [key for key in world.places if level_of(key) and key != place.key]:
        del world.places[key]
    if not level:
        return
    if level <= LOWEST:
        world.mine_level = max(world.mine_level, level)
        registry.DID.call(world, "mine", "floor", level)
    else:
        world.cavern_level = max(world.cavern_level, level - LOWEST)


@registry.SPOT("elevator")
def elevator(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Shows the floors that were reached."""
    world.menu = Menu("elevator")
    return True


def _stops(world: World) -> list[int]:
    return list(range(0, min(world.mine_level, LOWEST) + 1, STOP))


def _ride(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    world.menu = None
    stops = _stops(world)
    if 0 <= index < len(stops):
        places.warp(world, f"{FLOOR}{stops[index]}" if stops[index] else "Mine", None)


registry.MENUS["elevator"] = registry.MenuRule(
    type="", entries=lambda world, menu: [f"Floor {n}" for n in _stops(world)], choose=_ride
)
