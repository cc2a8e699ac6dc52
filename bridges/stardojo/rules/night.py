"""Nights: sleeping, passing out, what is sold, and what the next morning brings."""

from __future__ import annotations

from bridges.stardojo.rules import items, places, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.farmer import level
from bridges.stardojo.rules.registry import ask, random, say
from bridges.stardojo.rules.world import SEASONS, Facts, Furniture, Menu, World

DAYS = 28
STORMS = 13
"""On this day of summer, and thirteen days later, there is a storm."""
MIDNIGHT, MORNING_AFTER = 2400, 2600
MOST_LOST = 1000


def ask_sleep(world: World) -> None:
    """Asks whether to go to bed."""
    ask(world, "Go to sleep for the night?", [("Yes", "Yes"), ("No", "No")], "sleep")


@registry.FURNITURE("Bed", "Double Bed")
def bed(world: World, piece: Furniture) -> bool:
    """Asks whether to go to bed."""
    ask_sleep(world)
    return True


@registry.ANSWER("sleep")
def answer(world: World, key: str, about: Facts) -> None:
    """Goes to bed, if the farmer wants to."""
    if key == "Yes":
        sleep(world)


def sleep(world: World) -> None:
    """Goes to bed: the next day begins at once."""
    _next_day(world, rested=True)


def pass_out(world: World) -> None:
    """Falls asleep where the farmer stands: costs money, half the energy, and the day."""
    lost = min(MOST_LOST, world.farmer.money // 10)
    world.farmer.money -= lost
    _next_day(world, rested=False)
    if lost:
        say(world, f"You passed out. Somebody brought you home; {lost}g are missing.")


def faint(world: World) -> None:
    """Loses all health: wakes up in the clinic, some money poorer."""
    me = world.farmer
    lost = min(MOST_LOST, me.money // 20)
    me.money -= lost
    me.health, me.energy = me.most_health // 2, max(me.energy, 2.0)
    me.safe_ticks = 0
    world.ticks = min(world.ticks + 12 * 420, 119 * 420)
    places.warp(world, "Hospital", (10, 12))
    say(world, f"You were found unconscious and brought to the clinic. The treatment cost {lost}g.")


def _next_day(world: World, *, rested: bool) -> None:
    me = world.farmer
    world.menu = None
    bed = world.time if rested else MORNING_AFTER
    _sell(world)
    registry.EVENING.call(world)
    learned = {skill: level(world, skill) for skill in me.points}
    world.days_played += 1
    world.day += 1
    if world.day > DAYS:
        world.day = 1
        world.season = SEASONS[(SEASONS.index(world.season) + 1) % 4]
        world.year += world.season == "spring"
    world.ticks, world.busy = 0, 100
    world.weather, world.tomorrow = world.tomorrow, _weather(world)
    world.fortune = round(random(world) * 0.2 - 0.1, 3)
    me.energy = _energy(world, bed)
    me.health = me.most_health
    for key in [key for key in world.places if key.startswith("UndergroundMine")]:
        if key != me.place:
            del world.places[key]
    me.place = places.HOUSE
    me.tile = places.near(world, world.here, _bedside(world))
    me.facing = 2
    for key in [key for key in world.places if key.startswith("UndergroundMine")]:
        del world.places[key]
    registry.MORNING.call(world)
    world.days_started += 1
    _level_up(world, learned)


def _energy(world: World, bed: int) -> float:
    """The next morning's energy: half after exhaustion, and less for each hour past midnight."""
    me, tired = world.farmer, world.facts.pop("exhausted", False)
    fresh = float(me.most_energy // 2 + 1 if tired else me.most_energy)
    if bed > MIDNIGHT:
        fresh -= (1 - (MORNING_AFTER - min(bed, MORNING_AFTER)) / 200) * (me.most_energy // 2)
    return fresh if tired or bed >= MORNING_AFTER else max(fresh, me.energy)


def _bedside(world: World) -> tuple[int, int]:
    bed = next((each for each in world.here.furniture if "Bed" in each.name), None)
    return (bed.tile[0] - 1, bed.tile[1] + 1) if bed else (9, 9)


def _sell(world: World) -> None:
    for item in world.shipped:
        world.farmer.money += items.price(item.name, item.quality) * item.count
    world.shipped.clear()


def _weather(world: World) -> str:
    """The weather of the day after this one."""
    draw = random(world)
    day, season = world.day + 1, world.season
    if day > DAYS:
        day, season = 1, SEASONS[(SEASONS.index(season) + 1) % 4]
    if (
        day in content().festivals[season]
        or day == 1
        or (world.year == 1 and season == "spring" and day < 3)
    ):
        return "sun"
    if season == "summer" and day % STORMS == 0:
        return "storm"
    if draw >= content().rain[season]:
        return "sun"
    return (
        "snow" if season == "winter" else ("storm" if draw < content().rain[season] / 4 else "rain")
    )


def _level_up(world: World, before: dict[str, int]) -> None:
    """Teaches what new levels teach; asks for a profession at levels 5 and 10."""
    reached = world.facts.setdefault("levels", {})
    for skill, now in before.items():
        old = reached.get(skill, 0)
        reached[skill] = max(old, now)
        for number in range(old + 1, now + 1):
            _teach(world, skill, number)
            if number in (5, 10) and (choice := _professions(world, skill, number)):
                world.facts.setdefault("choices", []).append([skill, number, choice])
    ask_profession(world)


def _teach(world: World, skill: str, number: int) -> None:
    for name, recipe in content().crafting.items():
        if recipe.learned == f"{skill} {number}" and name not in world.farmer.recipes:
            world.farmer.recipes.append(name)
    for name, recipe in content().cooking.items():
        if recipe.learned == f"{skill} {number}" and name not in world.farmer.dishes:
            world.farmer.dishes.append(name)


def _professions(world: World, skill: str, number: int) -> list[str]:
    table = content().professions[skill]
    if number == 5:
        return list(table)
    have = next((each for each in table if each in world.farmer.professions), None)
    return list(table[have]) if have else []


def ask_profession(world: World) -> None:
    """Opens the menu of the next profession that is to be chosen, if there is one."""
    if choices := world.facts.get("choices"):
        skill, number, names = choices[0]
        world.menu = Menu("level", {"skill": skill, "level": number, "names": names})


def _choose(world: World, menu: Menu, index: int, quantity: int, inward: bool) -> None:
    names = menu.facts["names"]
    if 0 <= index < len(names):
        world.farmer.professions.append(names[index])
        world.facts["choices"].pop(0)
        world.menu = None
        ask_profession(world)


registry.MENUS["level"] = registry.MenuRule(
    "", lambda world, menu: list(menu.facts["names"]), _choose
)
