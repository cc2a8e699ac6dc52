"""Places: their contents, free tiles, ways through a map, and warps to another one."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from bridges.stardojo.rules import maps
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.maps import Plan
from bridges.stardojo.rules.registry import DID, ENTER, PLACE, say
from bridges.stardojo.rules.world import Building, Furniture, Item, Place, Thing, Tile, World
from rollout.errors import InputError

FLAT = frozenset({"Red Rug", "Calendar", "Basic Window", "Small Window"})
"""Furniture that is in no one's way."""
FIXED = {"Farmhouse": (9, 3), "Greenhouse": (7, 6)}
"""Sizes of buildings that cannot be bought."""
DOORS = {"Farmhouse": (5, 2), "Greenhouse": (3, 5)}
HOUSE = "FarmHouse"
"""Key of the place inside the farmhouse."""
_SMALL = 20


def get(world: World, key: str) -> Place:
    """Returns a place, made now if nobody was there yet.

    Raises:
        UnknownNameError: there is no such map.
    """
    if key in world.places:
        return world.places[key]
    family = key.rstrip("0123456789")
    rule = PLACE.get(family)
    place = rule(world, key) if rule else blank(key, key, key)
    world.places[key] = place
    return place


def blank(key: str, name: str, plan: str) -> Place:
    """Returns a place as its layout says, with the furniture and things of that."""
    layout = maps.plan(plan)
    place = Place(key, name, plan)
    place.furniture = [Furniture(n, (x, y), (w, h)) for n, x, y, w, h in layout.furniture]
    for thing, x, y, kind in layout.things:
        place.things[x, y] = Thing(thing, kind)
    return place


def plan(place: Place) -> Plan:
    """Returns the layout of a place."""
    seed = place.facts.get("cave")
    return maps.plan(place.plan) if seed is None else maps.cave(seed, place.facts["level"])


def named(layout: Plan, x: int | None, y: int | None, default: Tile) -> Tile:
    """Returns the tile of a map that a command names, or the default if it names none.

    Raises:
        InputError: it is not on the map.
    """
    if x is None and y is None:
        return default
    if x is None or y is None or not layout.inside((x, y)):
        raise InputError(f"expected a tile of the map {layout.name}, got x {x} and y {y}")
    return x, y


def beside(world: World, x: int | None, y: int | None) -> Tile:
    """Returns the tile of this place that a command names, or that to the right of the farmer."""
    me = world.farmer.tile
    return named(plan(world.here), x, y, (me[0] + 1, me[1]))


def size(kind: str) -> Tile:
    """Returns width and height of a kind of building."""
    return FIXED.get(kind) or content().buildings[kind].size


def door(building: Building) -> Tile | None:
    """Returns the tile of a building's door for people."""
    found = content().buildings.get(building.kind)
    step = DOORS.get(building.kind) or (found.door if found else None)
    return (building.tile[0] + step[0], building.tile[1] + step[1]) if step else None


def gate(building: Building) -> Tile | None:
    """Returns the tile of a building's door for animals."""
    found = content().buildings.get(building.kind)
    step = found.gate if found else None
    return (building.tile[0] + step[0], building.tile[1] + step[1]) if step else None


def building_at(world: World, tile: Tile) -> Building | None:
    """Returns the building of the farm that covers a tile."""
    x, y = tile
    for each in world.buildings:
        if 0 <= x - each.tile[0] < each.size[0] and 0 <= y - each.tile[1] < each.size[1]:
            return each
    return None


def building(world: World, number: str) -> Building | None:
    """Returns a building by its id."""
    return next((each for each in world.buildings if each.id == number), None)


def inside_of(world: World, key: str) -> Building | None:
    """Returns the building whose inside a place is."""
    return next((each for each in world.buildings if each.inside == key), None)


def add_building(world: World, kind: str, tile: Tile, days: int = 0) -> Building:
    """Puts a building on the farm, finished after ``days`` nights; returns it."""
    number = _id(world)
    made = Building(kind, tile, size(kind), number, days=days)
    world.buildings.append(made)
    clear_site(world, made)
    if kind in maps.names():
        made.inside = f"{kind}:{number}" if kind != "Greenhouse" else "Greenhouse"
        world.places[made.inside] = blank(made.inside, kind, kind)
    return made


def clear_site(world: World, made: Building) -> None:
    """Takes away what grows or lies where a building comes to stand."""
    farm = world.places["Farm"]
    for spot in covered(made.tile, made.size):
        farm.things.pop(spot, None)
        farm.ground.pop(spot, None)


def grow_building(world: World, made: Building, kind: str) -> None:
    """Makes another kind of a building, moving what is inside along."""
    made.kind, made.size = kind, size(kind)
    if made.inside in world.places:
        old = world.places[made.inside]
        new = blank(made.inside, kind, kind)
        new.things |= {at: thing for at, thing in old.things.items() if at not in new.things}
        new.drops = old.drops
        world.places[made.inside] = new


def remove_building(world: World, made: Building) -> None:
    """Takes a building away, with its inside."""
    world.buildings.remove(made)
    world.places.pop(made.inside, None)


def _id(world: World) -> str:
    number = world.facts["ids"] = world.facts.get("ids", 0) + 1
    digits = f"{(world.seed * 2654435761 + number * 40503) % 2**64:016x}{number:016x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def covered(tile: Tile, size: Tile) -> Iterator[Tile]:
    """Yields the tiles of a rectangle."""
    for dx in range(size[0]):
        for dy in range(size[1]):
            yield tile[0] + dx, tile[1] + dy


def site_free(world: World, kind: str, tile: Tile, moving: Building | None = None) -> bool:
    """Returns True if a building fits on the farm there; grass and weeds are removed."""
    farm = world.places["Farm"]
    layout = maps.plan("Farm")
    x, y = tile
    width, height = size(kind)
    for spot in covered((x, y), (width, height + 1)):
        other = building_at(world, spot)
        thing, ground = farm.things.get(spot), farm.ground.get(spot)
        if not layout.walkable(spot) or spot in layout.exits or (other and other is not moving):
            return False
        if (thing and thing.kind not in ("weeds", "twig", "stone")) or (
            ground and (ground.kind in ("tree", "fruit_tree") or ground.crop)
        ):
            return False
    inside = 0 <= world.farmer.tile[0] - x < width and 0 <= world.farmer.tile[1] - y < height
    return not (world.farmer.place == "Farm" and inside)


def sites(world: World, kind: str, most: int, moving: Building | None = None) -> list[Tile]:
    """Returns up to ``most`` places for a building, those nearest to the farmhouse first."""
    around = sorted(
        ((x, y) for x in range(4, 74, 2) for y in range(9, 60, 2)),
        key=lambda t: (abs(t[0] - 60) + abs(t[1] - 18), t),
    )
    found = []
    for tile in around:
        if (moving is None or tile != moving.tile) and site_free(world, kind, tile, moving):
            found.append(tile)
            if len(found) == most:
                break
    return found


def furniture_at(place: Place, tile: Tile) -> Furniture | None:
    """Returns the piece of furniture that covers a tile."""
    x, y = tile
    for each in place.furniture:
        if 0 <= x - each.tile[0] < each.size[0] and 0 <= y - each.tile[1] < each.size[1]:
            return each
    return None


def standing(world: World, key: str) -> set[Tile]:
    """Returns the tiles of a place where residents, animals and pets stand."""
    found = {each.tile for each in world.residents.values() if each.place == key}
    found.update(each.tile for each in world.animals if each.place == key)
    found.update(each.tile for each in world.pets if each.place == key)
    return found


def fixed_free(world: World, place: Place, tile: Tile) -> bool:
    """Returns True if nothing that stays in its place blocks a tile."""
    if not plan(place).walkable(tile) or overgrown(place, tile):
        return False
    if place.key == "Farm" and building_at(world, tile):
        return False
    if place.furniture:
        piece = furniture_at(place, tile)
        return piece is None or _flat(piece)
    return True


def _flat(piece: Furniture) -> bool:
    return piece.name in FLAT or "Bed" in piece.name


def overgrown(place: Place, tile: Tile) -> bool:
    """Returns True if a thing, a tree or a trellis stands on a tile."""
    thing = place.things.get(tile)
    if thing is not None and not thing.passable:
        return True
    ground = place.ground.get(tile)
    if ground is None:
        return False
    plant = content().crops.get(ground.crop.seed) if ground.crop else None
    return ground.kind in ("tree", "fruit_tree") or (plant is not None and plant.trellis)


def free(world: World, place: Place, tile: Tile) -> bool:
    """Returns True if one can stand on a tile."""
    return fixed_free(world, place, tile) and tile not in standing(world, place.key)


def rings(tile: Tile, most: int = _SMALL) -> Iterator[Tile]:
    """Yields the tiles around one, nearest first."""
    for far in range(most):
        for dx in range(-far, far + 1):
            for dy in sorted({-(far - abs(dx)), far - abs(dx)}):
                yield tile[0] + dx, tile[1] + dy


def near(world: World, place: Place, tile: Tile) -> Tile:
    """Returns the nearest free tile that is no exit, the tile itself if nothing near is free.

    Args:
        world: the valley.
        place: where.
        tile: on the map; for one beside it, that at the map's border.
    """
    taken, layout = standing(world, place.key), plan(place)
    exits = layout.exits
    tile = min(max(tile[0], 0), layout.width - 1), min(max(tile[1], 0), layout.height - 1)
    for each in rings(tile):
        if each not in taken and each not in exits and fixed_free(world, place, each):
            return each
    return tile


def drop(world: World, place: Place, tile: Tile, item: Item) -> None:
    """Lays an item on the ground."""
    place.drops.setdefault(tile, []).append(item)


def warp(world: World, key: str, tile: Tile | None = None) -> None:
    """Takes the farmer to another place, to the nearest free tile; fades for about a second."""
    place = get(world, key)
    world.farmer.place = key
    world.farmer.tile = near(world, place, tile or plan(place).arrival)
    world.busy = max(world.busy, 40)
    ENTER.call(world, place)
    DID.call(world, "visit", place.name, 1)


def through(world: World, warp_to: maps.Warp) -> None:
    """Goes through an exit or a door."""
    if warp_to.to != "home":
        key = HOUSE if warp_to.to == "FarmHouse" else warp_to.to
        warp(world, key, warp_to.tile)
        return
    made = inside_of(world, world.farmer.place)
    at = door(made) if made else None
    warp(world, "Farm", (at[0], at[1] + 1) if at else None)


def enter_door(world: World, to: maps.Warp) -> bool:
    """Goes through a door if it is open, else says when it is; always True."""
    if to.opens <= world.time < to.closes:
        through(world, to)
    else:
        say(world, f"Closed. Open from {to.opens // 100}:00 to {to.closes // 100 % 24}:00.")
    return True


def route(
    world: World, place: Place, start: Tile, goal: Tile, limit: int = 8000
) -> list[Tile] | None:
    """Returns the tiles of a shortest way without the start, None if there is none.

    A* from the goal backwards: a goal that is shut in is then found out at once.
    """
    layout = plan(place)
    taken, exits = standing(world, place.key), layout.exits
    if start == goal:
        return []
    if goal in taken or not (goal in exits or fixed_free(world, place, goal)):
        return None
    blocked = Blocked(world, place)
    came: dict[Tile, Tile] = {}
    costs = {goal: 0}
    heap = [(abs(start[0] - goal[0]) + abs(start[1] - goal[1]), 0, goal)]
    while heap and limit:
        _, cost, tile = heappop(heap)
        if tile == start:
            way = []
            while tile != goal:
                tile = came[tile]
                way.append(tile)
            return way
        if cost > costs[tile]:
            continue
        limit -= 1
        x, y = tile
        for to in ((x, y - 1), (x + 1, y), (x, y + 1), (x - 1, y)):
            if costs.get(to, 1 << 30) <= cost + 1:
                continue
            if to != start and (to in taken or to in exits or blocked(to)):
                continue
            costs[to] = cost + 1
            came[to] = tile
            heappush(heap, (cost + 1 + abs(to[0] - start[0]) + abs(to[1] - start[1]), cost + 1, to))
    return None


class Blocked:
    """Test for things that stay in their place, for many tiles of one place."""

    def __init__(self, world: World, place: Place) -> None:
        self.place, self.open = place, plan(place).open
        self.width, self.height = len(self.open), len(self.open[0])
        self.covered: set[Tile] = set()
        if place.key == "Farm":
            for each in world.buildings:
                self.covered.update(covered(each.tile, each.size))
        for piece in place.furniture:
            if not _flat(piece):
                self.covered.update(covered(piece.tile, piece.size))

    def __call__(self, tile: Tile) -> bool:
        """Returns True if one cannot stand on a tile of the map."""
        x, y = tile
        if not (0 <= x < self.width and 0 <= y < self.height and self.open[x][y]):
            return True
        return tile in self.covered or overgrown(self.place, tile)
