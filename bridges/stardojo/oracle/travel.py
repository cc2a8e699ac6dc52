"""How to get from one map to another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from bridges.stardojo.oracle.hands import Hands, Plan
from bridges.stardojo.rules import maps, mines, places
from bridges.stardojo.rules.world import Tile, World

Step = tuple[str, Tile, bool]
"""A place, the tile that leads there, and whether one interacts with that tile."""
PATIENCE = 400


def steps(world: World, key: str) -> Iterator[Step]:
    """Yields what a place leads to, by doors that are closed now, too."""
    if mines.level_of(key):
        yield from _floor(world, key)
        return
    plan = maps.plan(key.partition(":")[0])
    for tile, to in plan.exits.items():
        yield ("Farm" if to.to == "home" else to.to), tile, False
    for tile, to in plan.doors.items():
        yield to.to, tile, True
    if key == "Farm":
        for building in world.buildings:
            door = places.door(building)
            if door is not None and not building.days:
                home = building.kind == "Farmhouse"
                yield (places.HOUSE if home else building.inside), door, True
    if key == "Mine":
        spot = next(tile for tile, words in plan.spots.items() if words[0] == "ladder")
        yield f"{mines.FLOOR}1", spot, True


def _floor(world: World, key: str) -> Iterator[Step]:
    """Yields the places that a floor of the mines leads to, if it exists."""
    place = world.places.get(key)
    if place is None:
        return
    for tile, words in places.plan(place).spots.items():
        if words[0] == "exit":
            yield "Mine", tile, True
    for tile, thing in place.things.items():
        if thing.kind == "ladder":
            yield f"{mines.FLOOR}{mines.level_of(key) + 1}", tile, True


def path(world: World, goal: str) -> list[Step] | None:
    """Returns the steps from where the farmer is to a place, by its key or name."""
    start = world.farmer.place
    came: dict[str, tuple[str, Step] | None] = {start: None}
    queue = deque([start])
    while queue:
        key = queue.popleft()
        if goal in (key, key.partition(":")[0]):
            way: list[Step] = []
            at = came[key]
            while at is not None:
                way.append(at[1])
                at = came[at[0]]
            return way[::-1]
        for step in steps(world, key):
            if step[0] and step[0] not in came:
                came[step[0]] = (key, step)
                queue.append(step[0])
    return None


def go(hands: Hands, goal: str) -> Plan:
    """Goes to a place, waiting for doors to open."""
    for _ in range(PATIENCE):
        if goal in (hands.world.farmer.place, hands.world.farmer.place.partition(":")[0]):
            return
        acted = False
        for skill in _leg(hands, goal):
            acted = True
            yield skill
        if not acted:
            yield from hands.pass_time()


def _leg(hands: Hands, goal: str) -> Plan:
    """The next part of the way: to the next map, or what is in the way of that."""
    yield from hands.close()
    world = hands.world
    way = path(world, goal)
    if not way:
        return
    to, tile, touch = way[0]
    here = world.farmer.place
    tiles = [each[1] for each in steps(world, here) if each[0] == to and each[2] == touch]
    if touch:
        tile = hands.reachable(tiles) or tile
        if closed(world, tile):
            return
        if hands.beside(tile) is not None:
            yield from hands.interact(tile)
        else:
            yield from clear_way(hands, tile)
        return
    found = next((each for each in hands.nearest(tiles) if hands.way(each)), None)
    if found is not None:
        yield from hands.walk(found)
    else:
        yield from clear_way(hands, tile)


def closed(world: World, tile: Tile) -> bool:
    """Returns True if a door cannot be used at this time."""
    door = places.plan(world.here).doors.get(tile)
    return door is not None and not door.opens <= world.time < door.closes


def clear_way(hands: Hands, goal: Tile) -> Plan:
    """Breaks what is nearest to the straight way: one thing at a time."""
    tools = {"weeds": "scythe", "twig": "axe", "stone": "pickaxe", "node": "pickaxe"}
    things = hands.world.here.things
    tiles = [tile for tile, each in things.items() if each.kind in tools]
    x, y = goal
    tiles.sort(key=lambda each: abs(each[0] - x) + abs(each[1] - y))
    for tile in tiles[:60]:
        if hands.beside(tile) is not None:
            yield from hands.use(tile, tools[things[tile].kind])
            return
