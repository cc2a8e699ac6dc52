"""What grows: tilled ground, crops, trees, grass, weeds; what each night does to them."""

from __future__ import annotations

import math

from bridges.stardojo.rules import farmer, items, maps, places, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import EVENING, MORNING, below, between, random, weighted
from bridges.stardojo.rules.tables import Crop as Plant
from bridges.stardojo.rules.world import Crop, Ground, Item, Place, Thing, Tile, World

HOLDING = ("Farm", "Greenhouse")
"""Where tilled ground is kept over the night."""
SPRINKLERS = {"Sprinkler": 0, "Quality Sprinkler": 1, "Iridium Sprinkler": 2}
GROWN = 5
GROWTH = 0.2
"""Chance a night that a tree grows by a stage."""
TREE_HEALTH, STUMP_HEALTH = 10, 5
MOST_FORAGE = 6


def till(world: World, place: Place, tile: Tile) -> bool:
    """Tills a tile, if it can be; returns True if it was."""
    if tile in place.things or tile in place.ground or not maps.diggable(places.plan(place), tile):
        return False
    if not places.fixed_free(world, place, tile):
        return False
    place.ground[tile] = Ground("dirt", watered=raining(world, place))
    return True


def raining(world: World, place: Place) -> bool:
    """Returns True if it rains on a place."""
    return world.weather in ("rain", "storm") and places.plan(place).outdoors


def sow(world: World, place: Place, tile: Tile, seed: str) -> bool:
    """Plants a seed on tilled ground; returns True if it could be."""
    ground = place.ground.get(tile)
    if ground is None or ground.kind != "dirt" or ground.crop is not None or tile in place.things:
        return False
    if seed == "Mixed Seeds":
        choice = content().mixed[world.season]
        seed = choice[below(world, len(choice))]
    plant = content().crops.get(seed)
    anywhere = place.name == "Greenhouse"
    if plant is None or (world.season not in plant.seasons and not anywhere):
        return False
    ground.crop = Crop(seed)
    return True


def phases(ground: Ground, plant: Plant) -> list[int]:
    """Returns the days of each phase with the fertilizer of the ground."""
    days = list(plant.phases)
    fertilizer = content().fertilizers.get(ground.fertilizer)
    if fertilizer and fertilizer.speed:
        saved = round(sum(days) * fertilizer.speed)
        while saved > 0 and any(each > 1 for each in days[1:]):
            for number in range(1, len(days)):
                if days[number] > 1 and saved > 0:
                    days[number] -= 1
                    saved -= 1
    return days


def ripe(ground: Ground) -> bool:
    """Returns True if the crop on a tile can be harvested."""
    crop = ground.crop
    if crop is None or crop.dead:
        return False
    plant = content().crops[crop.seed]
    return crop.phase >= len(plant.phases) and (not crop.regrown or crop.days <= 0)


def harvest(world: World, place: Place, tile: Tile, *, scythe: bool = False) -> bool:
    """Picks the crop of a tile; returns True if it was ripe and fitted into the bag."""
    ground = place.ground[tile]
    crop = ground.crop
    if crop is None or not ripe(ground):
        return False
    plant = content().crops[crop.seed]
    if plant.scythe and not scythe:
        return False
    name = plant.wild[below(world, len(plant.wild))] if plant.wild else plant.harvest
    quality = _quality(world, ground)
    if not scythe and farmer.space(world, name, quality) < 1:
        return False
    number = between(world, *plant.yields)
    while random(world) < plant.extra:
        number += 1
    for piece in range(number):
        best = quality if piece == 0 else 0
        if scythe:
            places.drop(world, place, tile, Item(name, 1, best))
        else:
            farmer.gather(world, name, 1, best)
    skill = "foraging" if plant.wild else "farming"
    worth = items.price(name)
    farmer.learn(world, skill, 3 if plant.wild else round(16 * math.log(0.018 * worth + 1)))
    registry.DID.call(world, "harvest", name, number)
    if plant.regrow is None:
        ground.crop = None
    else:
        crop.regrown, crop.days = True, plant.regrow
    return True


def _quality(world: World, ground: Ground) -> int:
    found = content().fertilizers.get(ground.fertilizer)
    steps = found.quality if found else 0
    gold = 0.2 * farmer.level(world, "farming") / 10 + 0.01
    gold += 0.2 * steps * (farmer.level(world, "farming") + 2) / 12
    draw = random(world)
    return 2 if draw < gold else (1 if random(world) < min(0.75, gold * 2) else 0)


def grass_to_hay(world: World, place: Place, tile: Tile, *, golden: bool = False) -> bool:
    """Cuts grass, half of which becomes hay in a silo with room; returns False if there is none."""
    ground = place.ground.get(tile)
    if ground is None or ground.kind != "grass":
        return False
    del place.ground[tile]
    room = sum(240 for each in world.buildings if each.kind == "Silo" and not each.days)
    if random(world) < (0.75 if golden else 0.5) and world.hay < room:
        world.hay += 1
    return True


def fell(world: World, place: Place, tile: Tile) -> None:
    """A tree falls, leaving a stump, wood, sap and perhaps seeds beside it."""
    tree = place.ground[tile]
    dx = 1 if world.farmer.tile[0] <= tile[0] else -1
    for name, number in (("Wood", between(world, 12, 16)), ("Sap", 5)):
        places.drop(world, place, (tile[0] + dx, tile[1]), Item(name, number))
    if farmer.level(world, "foraging") >= 1 and random(world) < 0.75:
        seed = content().wild_trees[tree.name].seed
        places.drop(world, place, (tile[0] + dx, tile[1]), Item(seed, between(world, 1, 2)))
    tree.stump, tree.blows = True, STUMP_HEALTH * 4
    farmer.learn(world, "foraging", 12)


def tree(name: str, stage: int = GROWN) -> Ground:
    """Returns a wild tree; a grown one takes ten blows of the first axe."""
    return Ground("tree", name, stage=stage, blows=TREE_HEALTH * 4, fruit=int(stage == GROWN))


@EVENING
def plants_grow(world: World) -> None:
    """Plants of the farm and the greenhouse grow, dry, or die with the season."""
    for key in HOLDING:
        place = world.places.get(key)
        if place is not None:
            for tile in list(place.ground):
                _night(world, place, tile, place.ground[tile])


def _night(world: World, place: Place, tile: Tile, ground: Ground) -> None:
    if ground.kind == "dirt":
        if ground.crop is not None:
            _grow(ground)
        found = content().fertilizers.get(ground.fertilizer)
        if not (found and ground.watered and random(world) < found.keeps_water):
            ground.watered = False
        if ground.crop is None and place.key == "Farm" and random(world) < 0.1:
            del place.ground[tile]
    elif ground.kind == "tree" and not ground.stump and ground.stage < GROWN:
        grow_tree(world, ground, 1)
    elif ground.kind == "fruit_tree":
        grow_fruit(world, ground, 1)


def grow_tree(world: World, ground: Ground, days: int) -> None:
    """A wild tree grows for some nights."""
    for _ in range(days):
        if ground.stage < GROWN and random(world) < GROWTH:
            ground.stage += 1
    if ground.stage >= GROWN:
        ground.blows, ground.fruit = TREE_HEALTH * 4, 1


def grow_fruit(world: World, ground: Ground, days: int) -> None:
    """A fruit tree grows for some nights, and bears in its season."""
    ground.days = min(28, ground.days + days)
    ground.stage = ground.days // 7
    if ground.days >= 28 and content().fruit_trees[ground.name].season == world.season:
        ground.fruit = min(3, ground.fruit + days)


def _grow(ground: Ground, *, watered: bool = False) -> None:
    crop = ground.crop
    if crop is None or crop.dead or not (ground.watered or watered):
        return
    plant = content().crops[crop.seed]
    days = phases(ground, plant)
    if crop.phase >= len(days):
        crop.days = max(0, crop.days - 1) if crop.regrown else crop.days + 1
        return
    crop.days += 1
    if crop.days >= days[crop.phase]:
        crop.phase, crop.days = crop.phase + 1, 0


def grow_crop(ground: Ground, days: int) -> None:
    """A crop grows for some watered days."""
    for _ in range(days):
        _grow(ground, watered=True)


@MORNING
def dawn(world: World) -> None:
    """A new day on the land: the season's change, rain, sprinklers, forage."""
    farm = world.places["Farm"]
    if world.day == 1:
        for ground in farm.ground.values():
            if ground.crop and world.season not in content().crops[ground.crop.seed].seasons:
                ground.crop.dead = True
            if ground.kind == "grass" and world.season == "winter":
                ground.stage = 0
        farm.ground = {t: g for t, g in farm.ground.items() if g.kind != "grass" or g.stage}
    for key in HOLDING:
        if place := world.places.get(key):
            for ground in place.ground.values():
                ground.watered |= ground.kind == "dirt" and raining(world, place)
            _sprinkle(place)
    spread_forage(world, 2 if world.day % 7 else MOST_FORAGE)


def _sprinkle(place: Place) -> None:
    for (x, y), thing in place.things.items():
        reach = SPRINKLERS.get(thing.name)
        if reach is None:
            continue
        for dx in range(-max(reach, 1), max(reach, 1) + 1):
            for dy in range(-max(reach, 1), max(reach, 1) + 1):
                ground = place.ground.get((x + dx, y + dy))
                if ground and ground.kind == "dirt" and (reach or abs(dx) + abs(dy) == 1):
                    ground.watered = True


def spread_forage(world: World, number: int) -> None:
    """Lays up to ``number`` pieces of the season's forage on every map that has some."""
    for key, seasons in content().forage.items():
        place = places.get(world, key)
        if world.day % 7 == 1:  # what nobody took rots on Sunday night
            place.things = {t: each for t, each in place.things.items() if each.kind != "forage"}
        lying = sum(each.kind == "forage" for each in place.things.values())
        layout = places.plan(place)
        for _ in range(min(number, MOST_FORAGE - lying)):
            name = weighted(world, dict(seasons[world.season]))
            for _ in range(12):
                tile = (below(world, layout.width), below(world, layout.height))
                if _forage_spot(place, layout, tile):
                    place.things[tile] = Thing(name, "forage", passable=False)
                    break


def _forage_spot(place: Place, layout: maps.Plan, tile: Tile) -> bool:
    good = (maps.DIRT, maps.GRASS, maps.SAND)
    return (
        layout.made[tile] in good
        and tile not in place.things
        and tile not in place.ground
        and tile not in layout.exits
    )
