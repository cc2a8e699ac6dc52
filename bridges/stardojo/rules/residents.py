"""Residents: where they stand, talk, gifts, friendship, dating and marriage.

Where a resident is follows from the day and the time alone, so that a clock that is set leaves no
one behind: from the time of an entry of the schedule on, the resident walks from the place before.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from zlib import crc32

import numpy as np

from bridges.stardojo.rules import farmer, maps, places, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import say
from bridges.stardojo.rules.tables import TASTES
from bridges.stardojo.rules.tables import Place as Entry
from bridges.stardojo.rules.tables import Resident as Known
from bridges.stardojo.rules.world import Item, Place, Resident, Tile, World
from rollout.errors import InputError, nearest

TALK, HEART, BIRTHDAY = 20, 250, 8
MOST, MOST_UNTIED, MOST_MARRIED = 10 * HEART, 8 * HEART, 14 * HEART
GIFTS_A_WEEK, PACE = 2, 13  # PACE: tiles walked in ten minutes
DECAY = {"": -2, "dating": -8, "engaged": -8, "married": -20, "ended": -2}
WORTHLESS = 20
"""Presents below this price are disliked if nobody says more of them."""
WEDDING = 3  # nights


@registry.NEW
def settle(world: World) -> None:
    """Everybody who lives here this year."""
    for name, known in content().residents.items():
        if known.from_year <= world.year and name not in world.residents:
            place, x, y = known.home
            world.residents[name] = Resident(name=name, place=place, tile=(x, y))
    move(world)


@registry.TEN
def move(world: World) -> None:
    """Puts everybody where the schedule says."""
    for resident in world.residents.values():
        place, tile = whereabouts(world, resident)
        taken = place == world.farmer.place and tile == world.farmer.tile
        resident.place = place
        resident.tile = places.near(world, places.get(world, place), tile) if taken else tile


@registry.ENTER
def greet(world: World, place: Place) -> None:
    """Nobody stands where the farmer comes in."""
    if any(each.place == place.key for each in world.residents.values()):
        move(world)


def schedule(world: World, name: str) -> tuple[Entry, ...]:
    """Returns the entries of the day: the first key of ``days`` that fits."""
    known = content().residents[name]
    keys = [f"{world.season} {world.day}", f"{world.season} {world.weekday}"]
    keys += ["rain"] if world.weather in ("rain", "storm") else []
    keys += [world.weekday, world.season, "default"]
    entries = next(known.days[key] for key in keys if key in known.days)
    number = world.facts.get("residents", 0)
    return _elsewhere(name, number, entries) if number else entries


@lru_cache(4096)
def _elsewhere(name: str, number: int, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Another arrangement: at each time a place that this resident goes to on some day.

    Those who keep a shop stay there, or nothing could be bought.
    """
    if name in {shop.keeper for shop in content().shops.values()}:
        return entries
    known = content().residents[name]
    goals = list(dict.fromkeys((e.map, e.x, e.y) for day in known.days.values() for e in day))
    drawn = np.random.default_rng([number, crc32(name.encode())]).integers(len(goals), size=99)
    return tuple(
        Entry(each.time, *goals[choice]) for each, choice in zip(entries, drawn, strict=False)
    )


def whereabouts(world: World, resident: Resident) -> tuple[str, Tile]:
    """Returns the place and the tile of a resident now."""
    if resident.tie == "married":
        return "FarmHouse", _stand("FarmHouse", (6, 6))
    entries = schedule(world, resident.name)
    number = max(n for n, each in enumerate(entries) if each.time <= world.time or n == 0)
    if (put := resident.facts.get("put")) and put["until"] == [world.days_played, number]:
        return put["place"], (put["x"], put["y"])
    entry = entries[number]
    goal = _stand(entry.map, (entry.x, entry.y))
    if number == 0:
        return entry.map, goal
    before = entries[number - 1]
    start = maps.plan(entry.map).arrival
    if before.map == entry.map:
        start = _stand(before.map, (before.x, before.y))
    path = _walk(entry.map, start, goal)
    steps = (_minutes(world.time) - _minutes(entry.time)) // 10 * PACE
    return entry.map, path[min(steps, len(path) - 1)]


@lru_cache(4096)
def _stand(name: str, tile: Tile) -> Tile:
    """The nearest tile of a layout on which somebody can stand."""
    return next((each for each in places.rings(tile, 60) if _open(name, each)), tile)


def _open(name: str, tile: Tile) -> bool:
    plan = maps.plan(name)
    x, y = tile
    return (
        plan.walkable(tile)
        and tile not in plan.exits
        and not any(
            left <= x < left + width and top <= y < top + height
            for _, left, top, width, height in plan.furniture
        )
        and all((left, top) != tile for _, left, top, _ in plan.things)
    )


@lru_cache(4096)
def _walk(name: str, start: Tile, goal: Tile) -> tuple[Tile, ...]:
    """A shortest way through a layout, both ends included; the goal alone if there is none."""
    came: dict[Tile, Tile] = {goal: goal}
    queue = deque([goal])
    while queue and start not in came:
        x, y = queue.popleft()
        for to in ((x, y - 1), (x + 1, y), (x, y + 1), (x - 1, y)):
            if to not in came and _open(name, to):
                came[to] = (x, y)
                queue.append(to)
    if start not in came:
        return (goal,)
    way = [start]
    while way[-1] != goal:
        way.append(came[way[-1]])
    return tuple(way)


def _minutes(time: int) -> int:
    return time // 100 * 60 + time % 100


def put(world: World, name: str, place: str, tile: Tile) -> None:
    """Puts a resident somewhere until the next entry of the schedule."""
    resident = find(world, name)
    entries = schedule(world, resident.name)
    number = max(n for n, each in enumerate(entries) if each.time <= world.time or n == 0)
    until = [world.days_played, number]
    resident.facts["put"] = {"place": place, "x": tile[0], "y": tile[1], "until": until}
    resident.place, resident.tile = place, tile


def find(world: World, name: str) -> Resident:
    """Returns a resident by name, in any case.

    Raises:
        InputError: nobody is called so.
    """
    for key, resident in world.residents.items():
        if key.lower() == str(name).lower():
            return resident
    near = nearest(str(name).title(), world.residents)
    raise InputError(f"nobody is called {name!r}; nearest: {', '.join(near) or 'none'}")


def at(world: World, place: str, tile: Tile) -> Resident | None:
    """Returns the resident on a tile; if there are two who pass, one who was not spoken to."""
    found = [r for r in world.residents.values() if r.tile == tile and r.place == place]
    return min(found, key=lambda each: each.talked, default=None)


@registry.CREATURE
def meet(world: World, tile: Tile) -> bool:
    """Gives what is in the hand, or talks."""
    resident = at(world, world.farmer.place, tile)
    if resident is None:
        return False
    known = content().residents[resident.name]
    if not resident.facts.get("met"):
        resident.facts["met"] = True
        if known.social:
            registry.DID.call(world, "meet", resident.name, 1)
    item = world.farmer.hand
    if item is not None and known.social and _give(world, resident, item):
        return True
    _talk(world, resident, known)
    return True


def _talk(world: World, resident: Resident, known: Known) -> None:
    if known.social and not resident.talked:
        resident.talked = True
        befriend(resident, TALK)
        registry.DID.call(world, "talk", resident.name, 1)
    hearts = resident.friendship // HEART
    lines = [text for least, text in content().talk if least <= hearts][-3:]
    text = lines[(world.days_played + len(resident.name)) % len(lines)]
    say(world, text.format(name=world.farmer.name, season=world.season), speaker=resident.name)


def _give(world: World, resident: Resident, item: Item) -> bool:
    """Gives the item in hand; returns True if it was given, or refused with words."""
    kind = content().by_name[item.name]
    if item.name in ("Bouquet", "Mermaid's Pendant", "Wilted Bouquet"):
        return _tie(world, resident, item)
    if kind.category in content().not_gifts:
        return False
    birthday = content().residents[resident.name].born == f"{world.season} {world.day}"
    if resident.gifts >= 1 or (resident.gifts_week >= GIFTS_A_WEEK and not birthday):
        words = "You have been generous enough. Keep it."
        say(world, words, speaker=resident.name)
        return True
    liking = taste(resident.name, kind.key)
    points = content().points[liking] * (BIRTHDAY if birthday else 1)
    better = content().quality[item.quality] if liking in ("loves", "likes") else 1.0
    farmer.use_up(world)
    resident.gifts, resident.gifts_week = resident.gifts + 1, resident.gifts_week + 1
    befriend(resident, int(points * better))
    registry.DID.call(world, "gift", resident.name, 1)
    say(world, content().thanks[liking].format(name=world.farmer.name), speaker=resident.name)
    return True


def taste(name: str, item: str) -> str:
    """Returns how a resident likes an item: one of ``TASTES``.

    What somebody says of an item counts before what he says of its category, and that before what
    everybody thinks. Of the rest, food that does harm is hated, and what is worth little is
    disliked.
    """
    known, kind = content().residents[name], content().items[item]
    everyone = content().everyone
    for word in (item, f"<{kind.category}>"):
        for liking in TASTES:
            if word in getattr(known, liking):
                return liking
    for word in (item, f"<{kind.category}>"):
        for liking in TASTES:
            if word in everyone[liking]:
                return liking
    if (kind.edibility or 0) < 0:
        return "hates"
    return "dislikes" if kind.price < WORTHLESS else "neutral"


def befriend(resident: Resident, points: int) -> None:
    """Adds friendship, within what the tie allows."""
    most = MOST_MARRIED if resident.tie == "married" else MOST
    if content().residents[resident.name].datable and resident.tie in ("", "ended"):
        most = MOST_UNTIED
    resident.friendship = max(0, min(resident.friendship + points, max(most, resident.friendship)))


def _tie(world: World, resident: Resident, item: Item) -> bool:
    """Bouquet, pendant and wilted bouquet: dates, proposes, ends it."""
    datable = content().residents[resident.name].datable
    words = "I do not know what to say. No, thank you."
    if item.name == "Bouquet" and datable and resident.friendship >= MOST_UNTIED:
        if resident.tie in ("", "ended"):
            resident.tie, words = "dating", "You feel the same? I am so happy!"
            befriend(resident, 25)
            farmer.use_up(world)
    elif item.name == "Mermaid's Pendant" and resident.tie == "dating":
        if resident.friendship >= MOST and not _taken(world) and world.house_level >= 1:
            resident.tie, words = "engaged", "Yes! A thousand times yes!"
            resident.facts["wedding"] = WEDDING
            farmer.use_up(world)
    elif item.name == "Wilted Bouquet" and resident.tie == "dating":
        resident.tie, words = "ended", "I see. I think you should go."
        resident.friendship = min(resident.friendship, 5 * HEART)
        farmer.use_up(world)
    say(world, words, speaker=resident.name)
    return True


def _taken(world: World) -> bool:
    return any(each.tie in ("engaged", "married") for each in world.residents.values())


@registry.EVENING
def forget(world: World) -> None:
    """Friendship fades for those who were not spoken to."""
    for resident in world.residents.values():
        if not resident.talked and 0 < resident.friendship < MOST:
            befriend(resident, DECAY[resident.tie])


@registry.MORNING
def rise(world: World) -> None:
    """A new day: talk and gifts count again; weddings; those who move in in a later year."""
    for resident in world.residents.values():
        resident.talked, resident.gifts = False, 0
        if world.weekday == "sun":
            resident.gifts_week = 0
        if resident.tie == "engaged":
            resident.facts["wedding"] -= 1
            if resident.facts["wedding"] <= 0:
                resident.tie = "married"
    settle(world)


@registry.COMMAND("npc_friendship")
def set_friendship(world: World, name: str, points: registry.Whole) -> None:
    """Sets the points of one resident."""
    find(world, name).friendship = max(0, points)


@registry.COMMAND("all_npc_friendship")
def add_friendship(world: World, delta: registry.Whole) -> None:
    """Adds points for everybody."""
    for resident in world.residents.values():
        resident.friendship = max(0, resident.friendship + delta)


@registry.COMMAND("dating")
def date(world: World, name: str) -> None:
    """Makes somebody a partner."""
    find(world, name).tie = "dating"


@registry.COMMAND("warp_character")
def warp(
    world: World, name: str, place: str | None, x: int | None = None, y: int | None = None
) -> None:
    """Puts a resident somewhere: beside the farmer, or where one comes into a map."""
    resident = find(world, name)
    if place is None:
        put(world, resident.name, world.here.key, places.beside(world, x, y))
    else:
        layout = maps.plan(maps.find(place))
        put(world, resident.name, layout.name, places.named(layout, x, y, layout.arrival))
