"""Scripts of the farm: clearing, tilling, sowing, watering, harvest, animals."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridges.stardojo.oracle import supplies, travel
from bridges.stardojo.oracle.hands import WINDOW, Hands, Plan
from bridges.stardojo.rules import places
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.maps import diggable
from bridges.stardojo.rules.world import Animal, Building, Pet, Tile
from bridges.stardojo.task_row import TaskRow

DEBRIS = {"weeds": "scythe", "twig": "axe", "stone": "pickaxe"}
NAMES = {"Weeds": ("weeds",), "Stone": ("stone",), "Twig": ("twig",), "Debris": tuple(DEBRIS)}


def clear(hands: Hands, row: TaskRow) -> Plan:
    """Clears debris, and picks up what it leaves."""
    kinds = NAMES[row.object]

    def one() -> Plan:
        if row.object == "Stone":
            yield from hands.collect()
        things = hands.world.here.things
        tile = hands.reachable(tile for tile, each in things.items() if each.kind in kinds)
        if tile is not None:
            yield from seen(hands, tile)
            yield from hands.use(tile, DEBRIS[things[tile].kind])

    yield from travel.go(hands, "Farm")
    yield from hands.until(lambda: False, one)


def seen(hands: Hands, tile: Tile) -> Plan:
    """Walks near enough that an observation shows a tile before it is changed."""
    if max(abs(tile[0] - hands.tile[0]), abs(tile[1] - hands.tile[1])) > WINDOW:
        yield from hands.approach(tile)
        yield "pause", ()


def free_soil(hands: Hands) -> list[Tile]:
    """Returns tiles of this place that can be tilled, nearest first."""
    here = hands.world.here
    plan = places.plan(here)
    x, y = hands.tile
    around = [(x + dx, y + dy) for dx in range(-9, 10) for dy in range(-9, 10)]
    return hands.nearest(
        tile
        for tile in around
        if diggable(plan, tile)
        and tile != hands.tile
        and tile not in here.ground
        and tile not in plan.exits
        and places.free(hands.world, here, tile)
    )


def till(hands: Hands, row: TaskRow) -> Plan:
    """Tills tiles."""
    yield from travel.go(hands, "Farm")
    yield from hands.until(lambda: False, lambda: till_one(hands))


def till_one(hands: Hands) -> Plan:
    """Tills the nearest tile."""
    tile = hands.reachable(free_soil(hands))
    if tile is not None:
        yield from seen(hands, tile)
        yield from hands.use(tile, "hoe")


def dirt(hands: Hands, test: Callable[[Tile], bool]) -> Tile | None:
    """Returns the nearest tilled tile for which something holds."""
    ground = hands.world.here.ground
    return hands.reachable(t for t, each in ground.items() if each.kind == "dirt" and test(t))


def _bare(hands: Hands) -> Callable[[Tile], bool]:
    things, ground = hands.world.here.things, hands.world.here.ground
    return lambda tile: ground[tile].crop is None and tile not in things


def sow(hands: Hands, row: TaskRow) -> Plan:
    """Sows seeds, which are bought if there are none."""
    seed = row.tool or ""
    if not hands.count(seed):
        yield from supplies.buy(hands, seed, row.quantity)
    yield from travel.go(hands, "Farm")
    yield from hands.until(lambda: not hands.count(seed), lambda: sow_one(hands, seed))


def sow_one(hands: Hands, seed: str) -> Plan:
    """Sows one seed on the nearest bare tilled tile, which is tilled if there is none."""
    tile = dirt(hands, _bare(hands))
    if tile is None:
        yield from till_one(hands)
    else:
        yield from hands.offer(tile, seed)


def fertilize(hands: Hands, row: TaskRow) -> Plan:
    """Spreads a fertilizer on tilled ground."""
    name = row.tool or ""
    if not hands.count(name):
        yield from from_chest(hands, name)
    yield from travel.go(hands, "Farm")

    def one() -> Plan:
        ground, bare = hands.world.here.ground, _bare(hands)
        tile = dirt(hands, lambda each: bare(each) and not ground[each].fertilizer)
        if tile is None:
            yield from till_one(hands)
        else:
            yield from hands.offer(tile, name)

    yield from hands.until(lambda: not hands.count(name), one)


def from_chest(hands: Hands, name: str, count: int = 1) -> Plan:
    """Takes something out of the chest on the farm."""
    yield from travel.go(hands, "Farm")
    things = hands.world.here.things
    for tile, each in things.items():
        inside = [item[0] for item in each.facts.get("items", ())]
        if each.kind == "chest" and name in inside:
            yield from hands.interact(tile)
            yield from hands.choose(inside.index(name) + 1, count)
            yield from hands.close()
            return


def water(hands: Hands, row: TaskRow) -> Plan:
    """Waters plants."""
    yield from travel.go(hands, "Farm")
    yield from hands.until(lambda: False, lambda: water_one(hands))


def water_one(hands: Hands) -> Plan:
    """Waters the nearest dry plant."""
    ground = hands.world.here.ground
    tile = dirt(hands, lambda t: ground[t].crop is not None and not ground[t].watered)
    if tile is not None:
        yield from hands.use(tile, "can")


def _plants(hands: Hands) -> Iterable[Tile]:
    farm = hands.world.places["Farm"]
    return [tile for tile, each in farm.ground.items() if each.crop is not None]


def harvest_crop(hands: Hands, name: str, count: int) -> Plan:
    """Picks ripe plants; sows, waters and sleeps until there are some."""
    seeds = {seed for seed, crop in content().crops.items() if crop.harvest == name}
    goal = hands.count(name) + count
    for _ in range(30):
        yield from travel.go(hands, "Farm")
        while (tile := _ripe(hands, name)) is not None and hands.count(name) < goal:
            if hands.world.here.key != "Farm":
                break
            yield from hands.interact(tile)
            yield from hands.collect()
        if hands.count(name) >= goal:
            return
        seed = next((each for each in seeds if hands.count(each)), None)
        planted = len([t for t in _plants(hands) if _seed(hands, t) in seeds])
        if seed is not None and planted < count + 2:
            yield from sow_one(hands, seed)
            continue
        if _dry(hands):
            yield from water_one(hands)
            continue
        yield from supplies.sleep(hands)


def _seed(hands: Hands, tile: Tile) -> str:
    crop = hands.world.places["Farm"].ground[tile].crop
    return crop.seed if crop else ""


def _dry(hands: Hands) -> bool:
    ground = hands.world.places["Farm"].ground
    return any(not ground[tile].watered for tile in _plants(hands))


def _ripe(hands: Hands, name: str) -> Tile | None:
    ground = hands.world.places["Farm"].ground
    found = []
    for tile in _plants(hands):
        crop = ground[tile].crop
        known = content().crops[crop.seed] if crop else None
        if crop and known and known.harvest == name and crop.phase >= len(known.phases):
            found.append(tile)
    return hands.reachable(found) if hands.world.here.key == "Farm" else None


def house(hands: Hands, *kinds: str) -> Building | None:
    """Returns the first building of some kinds."""
    return next((each for each in hands.world.buildings if each.kind in kinds), None)


def pet(hands: Hands, row: TaskRow) -> Plan:
    """Pets one creature after another, those in the same place first."""

    def one() -> Plan:
        left = [each for each in creatures(hands) if not each.touched]
        wanted = [e for e in left if row.object in ("Animal", e.kind)]
        here = hands.world.farmer.place
        wanted.sort(key=lambda each: (each.place != here, each.place))
        if wanted:
            yield from caress(hands, wanted[0])

    yield from hands.until(lambda: False, one)


def creatures(hands: Hands) -> list[Animal | Pet]:
    """Returns all animals and pets."""
    return [*hands.world.animals, *hands.world.pets]


def caress(hands: Hands, being: Animal | Pet) -> Plan:
    """Pets a creature, wherever it is."""
    yield from hands.close()
    yield from travel.go(hands, being.place)
    yield from hands.empty_hand()
    yield from hands.interact(being.tile)


def open_gate(hands: Hands, row: TaskRow) -> Plan:
    """Opens or closes the animals' door of a building."""
    building = house(hands, row.object)
    if building is None:
        return
    yield from travel.go(hands, "Farm")
    gate = places.gate(building)
    wanted = row.evaluator == "open"
    for _ in range(6):
        if gate is None or building.gate_open == wanted:
            return
        yield from hands.empty_hand()
        yield from hands.interact(gate)


def fill(hands: Hands, row: TaskRow) -> Plan:
    """Fills the pet bowl with water, or the feeding bench with hay."""
    if row.object == "Pet Bowl":
        yield from fill_bowl(hands)
        return
    building = house(hands, "Deluxe Coop", "Deluxe Barn")
    if building is not None:
        yield from travel.go(hands, building.inside)
        yield from lay_hay(hands)


def fill_bowl(hands: Hands) -> Plan:
    """Fills the pet bowl."""
    yield from travel.go(hands, "Farm")
    building = house(hands, "Pet Bowl")
    for _ in range(6):
        if building is None or building.full:
            return
        tiles = list(places.covered(building.tile, building.size))
        tile = hands.reachable(tiles)
        if tile is not None:
            yield from hands.use(tile, "can")


def lay_hay(hands: Hands, most: int = 99) -> Plan:
    """Lays hay on free places of the bench."""
    for tile in places.plan(hands.world.here).troughs:
        if most > 0 and tile not in hands.world.here.things and hands.count("Hay"):
            yield from hands.offer(tile, "Hay")
            most -= 1


def harvest(hands: Hands, row: TaskRow) -> Plan:
    """Gets eggs, milk, or plants."""
    name = row.object
    if name == "Egg":
        yield from eggs(hands, name, row.quantity)
    elif name == "Milk":
        yield from milk(hands, name, row.quantity)
    else:
        yield from harvest_crop(hands, name, row.quantity)


def eggs(hands: Hands, name: str, count: int) -> Plan:
    """Picks up what lies in a coop."""
    goal = hands.count(name) + count
    while hands.count(name) < goal:
        for building in hands.world.buildings:
            inside = hands.world.places.get(building.inside)
            things = inside.things.items() if inside is not None else ()
            lying = [t for t, each in things if each.kind == "laid" and each.name == name]
            if lying:
                yield from travel.go(hands, building.inside)
                yield from hands.interact(hands.nearest(lying)[0])
        if hands.count(name) < goal:
            yield from supplies.sleep(hands)


def milk(hands: Hands, name: str, count: int) -> Plan:
    """Milks cows, feeds them, and sleeps until there is enough."""
    goal = hands.count(name) + count
    if not hands.count("Milk Pail"):
        yield from from_chest(hands, "Milk Pail")
    if count > 1:
        yield from from_chest(hands, "Hay", 24)
    while hands.count(name) < goal:
        for animal in hands.world.animals:
            if animal.produce == name:
                yield from travel.go(hands, animal.place)
                for _ in range(4):
                    if animal.produce:
                        yield from hands.use(animal.tile, "pail")
        if hands.count(name) < goal:
            building = house(hands, "Deluxe Barn")
            if building is not None:
                yield from travel.go(hands, building.inside)
                laid = sum(each.kind == "hay" for each in hands.world.here.things.values())
                if laid < 4:
                    yield from lay_hay(hands, 4 - laid)
            yield from supplies.sleep(hands)


def incubate(hands: Hands, row: TaskRow) -> Plan:
    """Puts an egg into the incubator and sleeps until it hatches."""
    yield from eggs(hands, "Egg", 1)
    building = house(hands, "Deluxe Coop", "Big Coop")
    if building is None:
        return
    yield from travel.go(hands, building.inside)
    things = hands.world.here.things
    tile = next(tile for tile, each in things.items() if each.kind == "incubator")
    for _ in range(4):
        if "egg" not in hands.world.here.facts:
            yield from hands.close()
            yield from hands.offer(tile, "Egg")
    while True:
        yield from supplies.sleep(hands)


def befriend_pet(hands: Hands, row: TaskRow) -> Plan:
    """Pets the cat and fills its bowl, day after day."""
    while True:
        for being in creatures(hands):
            if being.kind == row.object:
                for _ in range(4):
                    if not being.touched:
                        yield from caress(hands, being)
        yield from fill_bowl(hands)
        yield from travel.go(hands, "Farm")
        yield from supplies.sleep(hands)
