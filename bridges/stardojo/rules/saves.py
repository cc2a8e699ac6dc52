"""The three starting saves, and the factors that change them. Data: ``data/layouts/saves.yaml``.

Everything on the farm that a save counts (weeds, twigs, stones, trees, grass) is laid out by a
generator; ``layout`` chooses another one. Every factor has the value ``save``: as it is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from bridges.stardojo.rules import farmer, maps, places, soil, tools
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import NEW
from bridges.stardojo.rules.world import (
    SEASONS,
    TEN_MINUTES,
    Animal,
    Crop,
    Farmer,
    Ground,
    Pet,
    Quest,
    Thing,
    Tile,
    World,
)
from rollout.errors import UnknownNameError
from rollout.yaml12 import load_yaml

SAVE = "save"
LANES = ((56, 15, 24, 4), (40, 0, 2, 65), (42, 17, 16, 2), (25, 16, 20, 2), (36, 8, 6, 3))
"""Rectangles of the farm without debris, so that its exits can be reached."""
KINDS = {"Weeds": "weeds", "Twig": "twig", "Stone": "stone"}
FORTUNES = {"bad": -0.1, "neutral": 0.0, "good": 0.1}
SUPPLIES = {"wood": "Wood", "stone": "Stone", "fiber": "Fiber", "coal": "Coal"}


@cache
def table() -> dict[str, dict[str, Any]]:
    """Returns the saves by name."""
    found: dict[str, dict[str, Any]] = load_yaml(maps.LAYOUTS / "saves.yaml", ours=True)
    return found


def build(save: str, seed: int, state: Mapping[str, Any]) -> World:
    """Returns the world of a save.

    Args:
        save: its name.
        seed: of all that is random afterwards.
        state: values of factors; those that are missing are as in the save.

    Raises:
        UnknownNameError: there is no such save.
    """
    if save not in table():
        raise UnknownNameError("save", save, table())
    saved = table()[save]
    world = World(save, seed, seed * 2 + 1 & 0xFFFFFFFFFFFFFFFF, Farmer(saved["name"]))
    _calendar(world, saved, state)
    _farmer(world, saved, state)
    for key in ("Farm", "FarmHouse", "Greenhouse"):
        world.places[key] = places.blank(key, key, key)
    number = state.get("layout", SAVE)
    _farm(world, saved, 0 if number == SAVE else int(number) + 1)
    _beasts(world, saved, state)
    for each in saved["quests"]:
        world.quests.append(_quest(each))
    world.mail = list(saved["mail"]) if "mail" in saved else []
    rng = np.random.default_rng([0 if number == SAVE else int(number) + 1, 0x7EE5])
    for key in ("BusStop", "Backwoods", "Town", "Mountain", "Railroad", "Forest"):
        trees = maps.plan(key).trees
        tools.sow_trees(world, key, trees, rng.random(3 * trees).tolist())
    drawn, world.random_state = world.random_state, int(rng.integers(1 << 62))
    soil.spread_forage(world, soil.MOST_FORAGE)
    world.random_state = drawn
    if (arranged := state.get("residents", SAVE)) != SAVE:
        world.facts["residents"] = int(arranged)
    NEW.call(world)
    return world


def _calendar(world: World, saved: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    season, day, weather = (state.get(each, SAVE) for each in ("season", "day", "weather"))
    world.season = "spring" if season == SAVE else season
    world.day = saved["day"] if day == SAVE else int(day)
    world.days_played = saved["day"] - 1
    if weather != SAVE:
        world.weather = "snow" if world.season == "winter" and weather == "rain" else weather
    hour = state.get("hour", SAVE)
    if hour != SAVE:
        world.ticks = (int(hour) // 100 - 6) * 6 * TEN_MINUTES
    fortune = state.get("fortune", SAVE)
    world.fortune = saved["fortune"] if fortune == SAVE else FORTUNES[fortune]
    world.lucky = saved.get("lucky", 0)
    if saved.get("charm"):
        world.read.append("HasSpecialCharm")


def _farmer(world: World, saved: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    me = world.farmer
    me.money = saved["money"]
    me.bag = [None] * saved["slots"]
    for slot, each in enumerate(saved["bag"]):
        name, count = each if isinstance(each, list) else (each, 1)
        me.bag[slot] = farmer.fresh(name, count)
    supplies = state.get("items", SAVE)
    if supplies != SAVE:
        farmer.give(world, SUPPLIES[supplies], 20)
    every = saved["recipes"] == "all"
    me.recipes = [
        key
        for key, recipe in content().crafting.items()
        if every or recipe.learned == "starter" or key in saved.get("also", ())
    ]
    me.dishes = list(content().cooking) if every else list(saved["dishes"])
    world.mine_level = saved["mine_level"]


def _farm(world: World, saved: Mapping[str, Any], layout: int) -> None:
    farm = world.places["Farm"]
    for kind, x, y in saved["buildings"]:
        made = places.add_building(world, kind, (x, y))
        made.gate_open = False
    for name, kind, where, x, y in saved.get("things", ()):
        inside = next(each.inside for each in world.buildings if each.kind == where)
        world.places[inside].things[x, y] = Thing(name, kind, passable=False)
    if "tilled" in saved:
        x, y, width, height = saved["tilled"]
        for tile in places.covered((x, y), (width, height)):
            farm.ground[tile] = Ground("dirt")
    for seed, phase, (x, y, width, height) in saved.get("crops", ()):
        for tile in places.covered((x, y), (width, height)):
            farm.ground[tile].crop = Crop(seed, phase)
    for sapling, x, y in saved.get("fruit_trees", ()):
        farm.ground[x, y] = Ground("fruit_tree", sapling)
    if "chest" in saved:
        x, y, inside = saved["chest"]
        listed = [[name, count, 0, {}] for name, count in inside]
        farm.things[x, y] = Thing("Chest", "chest", facts={"items": listed})
    _debris(world, saved["debris"], layout)


def _debris(world: World, counts: Mapping[str, int], layout: int) -> None:
    """Trees, grass and the debris that the save counts, on free ground of the farm."""
    farm, plan = world.places["Farm"], maps.plan("Farm")
    rng = np.random.default_rng([layout, 0xFA12])
    left = (plan.made == maps.DIRT) | (plan.made == maps.GRASS)
    for x, y, width, height in LANES:
        left[x : x + width, y : y + height] = False
    for made in world.buildings:
        x, y = made.tile
        left[max(0, x - 1) : x + made.size[0] + 1, max(0, y - 1) : y + made.size[1] + 1] = False
    for x, y in (*farm.ground, *farm.things, *plan.exits):
        if plan.inside((x, y)):
            left[max(0, x - 1) : x + 2, max(0, y - 1) : y + 2] = False
    drawn, taken = rng.permutation(np.argwhere(left))[::-1], plan.trees + sum(counts.values())
    left[tuple(drawn[:taken].T)] = False
    tiles: Iterator[Tile] = ((x, y) for x, y in drawn[: taken + plan.patches].tolist())
    kinds = ("Oak", "Maple", "Pine")
    for number in range(plan.trees):
        farm.ground[next(tiles)] = soil.tree(kinds[number % 3])
    for name, count in counts.items():
        for _ in range(count):
            farm.things[next(tiles)] = Thing(name, KINDS[name])
    for x, y in tiles:
        for tile in places.covered((x - 2, y - 2), (5, 5)):
            if plan.inside(tile) and left[tile]:
                farm.ground[tile] = Ground("grass", stage=4)


def _beasts(world: World, saved: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    fewer = state.get("animals", SAVE)
    for kind, name, where in saved.get("animals", ()):
        made = next(each for each in world.buildings if each.kind == where)
        if fewer != "none":
            world.animals.append(_animal(world, kind, name, made.inside, made.id))
    if fewer == "more":
        for made in world.buildings:
            kind = {"Coop": "White Chicken", "Barn": "White Cow"}.get(made.kind.split()[-1])
            if kind:
                name = f"{kind.split()[1]}_2"
                world.animals.append(_animal(world, kind, name, made.inside, made.id))
    if "pet" in saved:
        kind, name, key, x, y = saved["pet"]
        tile = places.near(world, world.places[key], (x, y))
        world.pets.append(Pet(kind=kind, name=name, place=key, tile=tile))


def _animal(world: World, kind: str, name: str, inside: str, home: str) -> Animal:
    place = world.places[inside]
    middle = (places.plan(place).width // 2, places.plan(place).height // 2)
    tile = places.near(world, place, middle)
    return Animal(kind=kind, name=name, place=inside, tile=tile, home=home)


def _quest(saved: str | list[Any]) -> Quest:
    if isinstance(saved, list):
        kind, reward = saved
        return Quest("", "Delivery", kind, "", 1, reward, have=1, done=True)
    found = content().quests[saved]
    kind, what, number = found.ends
    return Quest(saved, found.title, kind, what, number, found.reward)


def factors() -> dict[str, tuple[str | int, ...]]:
    """Returns the values of every factor; the first one is ``save``: as it is there."""
    return {
        "season": (SAVE, *SEASONS),
        "day": (SAVE, *range(1, 29)),
        "weather": (SAVE, "sun", "rain", "storm"),
        "fortune": (SAVE, *FORTUNES),
        "layout": (SAVE, *range(1000)),
        "items": (SAVE, *SUPPLIES),
        "animals": (SAVE, "none", "more"),
        "residents": (SAVE, *range(1, 101)),
        "hour": (SAVE, 600, 900, 1200, 1500, 1800, 2100),
    }
