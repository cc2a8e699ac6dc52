"""Monsters: how they move and hurt, and what a weapon does to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import hypot

from bridges.stardojo.rules import farmer, mines, places
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import DID, HIT, TICKS, below, between, random
from bridges.stardojo.rules.world import TICKS_PER_SECOND, WAYS, Item, Monster, Place, Tile, World

SIGHT, TOUCHING = 4.5, 0.95  # tiles
CRITICAL, TIMES = 0.02, 3
WAKES, SURFACES = 2.5, 5.0  # tiles from which a crab wakes, a duggy comes up
UP, DOWN = 150, 90  # ticks a duggy is above and below the ground
PUSH = 0.7  # tiles that a hit throws back


@TICKS
def act(world: World, ticks: int) -> None:
    """Moves the monsters of the place for some ticks; those that touch the farmer hurt it."""
    place = world.here
    for monster in list(place.monsters):
        known = content().monsters[monster.name]
        far = _distance(world, monster)
        _MOVES[known.moves](world, place, monster, ticks, far)
        if not hidden(monster) and _distance(world, monster) <= TOUCHING:
            farmer.hurt(world, between(world, known.damage - 1, known.damage + 1))


def _distance(world: World, monster: Monster) -> float:
    x, y = world.farmer.tile
    return hypot(monster.x - x, monster.y - y)


def hidden(monster: Monster) -> bool:
    """Returns True for a monster that cannot be hit: a crab like a stone, a duggy below."""
    moves = content().monsters[monster.name].moves
    return moves in ("hide", "burrow") and not monster.facts.get("up")


def _toward(world: World, place: Place, monster: Monster, ticks: int, goal: Tile) -> None:
    """Moves along the axis that is further off, else along the other."""
    step = content().monsters[monster.name].speed * ticks / TICKS_PER_SECOND
    dx, dy = goal[0] - monster.x, goal[1] - monster.y
    for axis in sorted("xy", key=lambda axis: -abs(dx if axis == "x" else dy)):
        by = dx if axis == "x" else dy
        if not by:
            continue
        to = getattr(monster, axis) + max(-step, min(step, by))
        x, y = (to, monster.y) if axis == "x" else (monster.x, to)
        if (round(x), round(y)) == monster.tile or places.fixed_free(
            world, place, (round(x), round(y))
        ):
            monster.x, monster.y = x, y
            return


def _walk(world: World, place: Place, monster: Monster, ticks: int, far: float) -> None:
    if far < SIGHT:
        _toward(world, place, monster, ticks, world.farmer.tile)
    elif random(world) < ticks / 240:
        step = WAYS[below(world, 4)]
        x, y = monster.tile
        _toward(world, place, monster, ticks, (x + step[0], y + step[1]))


def _fly(world: World, place: Place, monster: Monster, ticks: int, far: float) -> None:
    if not 0 < far < SIGHT * 1.5:
        return
    step = min(content().monsters[monster.name].speed * ticks / TICKS_PER_SECOND, far)
    x, y = world.farmer.tile
    monster.x += (x - monster.x) / far * step
    monster.y += (y - monster.y) / far * step


def _shuttle(world: World, place: Place, monster: Monster, ticks: int, far: float) -> None:
    """To and fro on a line, turning where the way ends."""
    way = monster.facts.setdefault("way", below(world, 4))
    step = WAYS[way]
    speed = content().monsters[monster.name].speed * ticks / TICKS_PER_SECOND
    x, y = monster.x + step[0] * speed, monster.y + step[1] * speed
    ahead = (round(x + step[0] * 0.5), round(y + step[1] * 0.5))
    if places.fixed_free(world, place, ahead):
        monster.x, monster.y = x, y
    else:
        monster.facts["way"] = (way + 2) % 4


def _burrow(world: World, place: Place, monster: Monster, ticks: int, far: float) -> None:
    """Comes up beside the farmer for a while, then digs itself in."""
    left = monster.facts["left"] = monster.facts.get("left", DOWN) - ticks
    if left > 0:
        return
    if monster.facts.get("up"):
        monster.facts.update(up=False, left=DOWN)
    elif far <= SURFACES:
        x, y = world.farmer.tile
        sides = [(x + step[0], y + step[1]) for step in WAYS]
        free = [tile for tile in sides if places.fixed_free(world, place, tile)]
        if free:
            monster.x, monster.y = free[below(world, len(free))]
            monster.facts.update(up=True, left=UP)


def _hide(world: World, place: Place, monster: Monster, ticks: int, far: float) -> None:
    """Looks like a stone until somebody is near."""
    if far <= WAKES:
        monster.facts["up"] = True
    if monster.facts.get("up"):
        _walk(world, place, monster, ticks, far)


_MOVES: dict[str, Callable[[World, Place, Monster, int, float], None]] = {
    "hop": _walk,
    "walk": _walk,
    "crawl": _walk,
    "fly": _fly,
    "shuttle": _shuttle,
    "burrow": _burrow,
    "hide": _hide,
}


@HIT
def hit(world: World, item: Item, tiles: Sequence[Tile]) -> bool:
    """Hits what a weapon sweeps over; returns True if it hit anything."""
    weapon = content().weapons[item.name]
    place, struck = world.here, False
    for monster in list(place.monsters):
        close = any(hypot(monster.x - x, monster.y - y) < TOUCHING for x, y in tiles)
        if not close or hidden(monster):
            continue
        struck = True
        points = between(world, weapon.least, weapon.most)
        if random(world) < CRITICAL:
            points *= TIMES
        hurt(world, place, monster, points)
    return struck


def hurt(world: World, place: Place, monster: Monster, points: int) -> None:
    """Takes health from a monster and throws it back; it may die."""
    monster.health -= max(points - content().monsters[monster.name].resilience, 1)
    if monster.health <= 0:
        die(world, place, monster)
        return
    x, y = world.farmer.tile
    far = hypot(monster.x - x, monster.y - y) or 1.0
    back = (monster.x + (monster.x - x) / far * PUSH, monster.y + (monster.y - y) / far * PUSH)
    if places.fixed_free(world, place, (round(back[0]), round(back[1]))):
        monster.x, monster.y = back


def die(world: World, place: Place, monster: Monster) -> None:
    """Counts a kill; the monster drops what it has, the last one perhaps shows a ladder."""
    known = content().monsters[monster.name]
    place.monsters.remove(monster)
    kills = world.farmer.kills
    kills[monster.name] = kills.get(monster.name, 0) + 1
    tile = places.near(world, place, monster.tile)
    for name, chance in known.drops.items():
        if random(world) < chance:
            places.drop(world, place, tile, Item(name))
    farmer.learn(world, "combat", known.experience)
    DID.call(world, "kill", monster.name, 1)
    if place.monsters or mines.has_ladder(place) or not mines.level_of(place.key):
        return
    if random(world) < content().ladder["last_monster"]:
        mines.show_ladder(place, tile)
