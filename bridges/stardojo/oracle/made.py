"""Scripts of crafting: gather what a recipe takes, make it, cook it, smelt it."""

from __future__ import annotations

from bridges.stardojo.oracle import supplies, travel
from bridges.stardojo.oracle.hands import NOTHING, Hands, Plan
from bridges.stardojo.rules import places
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.world import Tile
from bridges.stardojo.task_row import TaskRow

FORAGE: dict[str, tuple[str, ...]]
FORAGE = {"Wild Horseradish": ("Forest", "BusStop", "Backwoods", "Mountain")}
FORAGE |= {"Daffodil": ("Town", "BusStop", "Railroad")}
FORAGE |= {"Leek": ("Mountain", "Backwoods", "BusStop", "Railroad")}
FORAGE |= {"Dandelion": ("Forest", "BusStop", "Town", "Backwoods")}
BOUGHT = ("Copper Ore", "Iron Ore", "Vinegar")
NEAR_AT_HAND = ("Wood", "Stone", "Fiber", "Sap")


def craft(hands: Hands, row: TaskRow) -> Plan:
    """Makes an item in whatever way it is made."""
    name = row.object
    if row.tool in ("Furnace", "Stove", "Cookout Kit"):
        yield from {"Furnace": smelt, "Stove": cook, "Cookout Kit": cook}[row.tool](hands, name)
    else:
        yield from make(hands, name)


def make(hands: Hands, name: str, *keep: str) -> Plan:
    """Crafts an item from what is gathered; ``keep`` is wanted for something else."""
    key, recipe = next(
        (key, each)
        for key, each in content().crafting.items()
        if (each.makes or key) == name and not key.startswith("Transmute")
    )
    for _ in range(2):
        for needed in sorted(recipe.needs, key=lambda each: each not in (*BOUGHT, "Coal")):
            if hands.count(needed) < recipe.needs[needed]:
                yield from provide(hands, needed, recipe.needs[needed], *recipe.needs, *keep)
    yield from hands.close()
    yield "craft", (key,)


def provide(hands: Hands, name: str, count: int, *keep: str) -> Plan:
    """Brings the bag to so many pieces of an item."""
    missing = count - hands.count(name)
    money = hands.world.farmer.money
    if name in ("Copper Bar", "Iron Bar", "Refined Quartz"):
        yield from smelt(hands, name)
    elif name in BOUGHT or (name == "Coal" and money > 1000):
        yield from supplies.buy(hands, name, missing)
    elif name in ("Wood", "Stone") and count >= 20 and money > 2000 and hands.world.time >= 900:
        yield from supplies.buy(hands, name, missing, "ScienceHouse")
    elif name in NEAR_AT_HAND:
        yield from supplies.gather(hands, name, count, *keep)
    elif name in FORAGE:
        for _ in range(missing):
            yield from supplies.forage(hands, name, FORAGE[name])
    elif name == "Quartz":
        yield from supplies.dig_out(hands, name, None)


def furnace(hands: Hands) -> Tile | None:
    """Returns where a furnace stands on the farm."""
    things = hands.world.places["Farm"].things
    return next((tile for tile, each in things.items() if each.name == "Furnace"), None)


def smelt(hands: Hands, name: str) -> Plan:
    """Smelts one piece in a furnace, which is made and placed first if there is none."""
    source, product = next(
        (source, each)
        for source, each in content().machines["Furnace"].items()
        if each.product == name
    )
    goal = hands.count(name) + 1
    if not hands.count("Coal"):
        yield from provide(hands, "Coal", 1)
    if hands.count(source) < product.takes:
        yield from provide(hands, source, product.takes)
    yield from ready_furnace(hands)
    tile = furnace(hands)
    if tile is None:
        return
    facts = hands.world.places["Farm"].things[tile].facts
    for _ in range(4):
        if not facts.get("product"):
            yield from hands.offer(tile, source)
    if product.minutes > 60 and facts.get("minutes", 0) > 60:
        yield from supplies.sleep(hands)
    while hands.count(name) < goal:
        yield from travel.go(hands, "Farm")
        if facts.get("minutes", 0) > 0:
            yield from stroll(hands)
        else:
            yield from hands.empty_hand()
            yield from hands.interact(tile)


def ready_furnace(hands: Hands) -> Plan:
    """Sees that a furnace stands on the farm."""
    if furnace(hands) is None and not hands.count("Furnace"):
        yield from make(hands, "Furnace")
    yield from travel.go(hands, "Farm")
    for _ in range(6):
        if furnace(hands) is None:
            yield from place(hands, "Furnace")


def stroll(hands: Hands) -> Plan:
    """Passes time by walking to and fro."""
    x, y = hands.tile
    goal = (66, 15) if (x, y) != (66, 15) else (76, 16)
    yield "move", (goal[0] - x, goal[1] - y)


def place(hands: Hands, name: str) -> Plan:
    """Places an item on a free tile next to the farmer."""
    x, y = hands.tile
    here = hands.world.here
    for tile in ((x, y + 1), (x + 1, y), (x - 1, y), (x, y - 1)):
        free = places.free(hands.world, here, tile) and tile not in here.ground
        if free and tile not in places.plan(here).exits:
            yield from hands.hold(name)
            yield "interact", (hands.face(tile),)
            return
    yield from hands.walk((66, 16) if hands.world.here.key == "Farm" else hands.tile)
    yield NOTHING


def cook(hands: Hands, name: str) -> Plan:
    """Cooks at the stove at home, or at a cookout kit."""
    recipe = content().cooking[name]
    for needed, count in recipe.needs.items():
        if not needed.startswith("<") and hands.count(needed) < count:
            yield from provide(hands, needed, count)
    if hands.world.house_level:
        yield from travel.go(hands, places.HOUSE)
        spots = places.plan(hands.world.here).spots
        stoves = [tile for tile, words in spots.items() if words[0] == "stove"]
        yield from hands.interact(hands.reachable(stoves) or stoves[0])
    else:
        yield from make(hands, "Cookout Kit", *recipe.needs)
        if hands.world.farmer.place not in ("Farm", "Town", "BusStop", "Mountain", "Forest"):
            yield from travel.go(hands, "Town")
        yield from place(hands, "Cookout Kit")
        things = hands.world.here.things
        tile = next((tile for tile, each in things.items() if each.kind == "kit"), None)
        if tile is not None:
            yield from hands.empty_hand()
            yield from hands.interact(tile)
    yield from hands.pick(name)
