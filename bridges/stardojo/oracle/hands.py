"""The parts of every script: skills, and plans that yield one skill after another.

A plan is a generator of skills. It reads the state of the valley and changes nothing: what it
wants is done by the actions that any agent has, and the next skill is asked for when the one
before is over. A skill is the name and the arguments of one of the ten actions of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

from bridges.stardojo.rules import farmer, items, places
from bridges.stardojo.rules.registry import MENUS
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.rules.world import WAYS, Tile, World
from bridges.stardojo.skills import DIRECTIONS

Skill = tuple[str, tuple[int | str, ...]]
Plan = Generator[Skill, None, None]
WINDOW = 3  # tiles that an observation shows around the farmer
NOTHING: Skill = ("menu", ("close", ""))
ENOUGH = 12  # tries of one thing that does not work
REACH, FAR = 4000, 30000  # tiles that a move, and a plan, look at for a way


class Hands:
    """The plans that all scripts share, for one valley."""

    def __init__(self, valley: Valley) -> None:
        self.valley = valley

    @property
    def world(self) -> World:
        """The state, which plans read."""
        return self.valley.world

    @property
    def tile(self) -> Tile:
        """The tile of the farmer."""
        return self.world.farmer.tile

    def way(self, goal: Tile) -> list[Tile] | None:
        """Returns the way to a tile of this place."""
        return places.route(self.world, self.world.here, self.tile, goal, FAR)

    def wait(self, times: int = 1) -> Plan:
        """Waits for a short time."""
        for _ in range(times):
            yield NOTHING

    def close(self) -> Plan:
        """Closes whatever menu is open."""
        for _ in range(ENOUGH):
            if self.world.menu is None:
                return
            yield NOTHING

    def walk(self, goal: Tile) -> Plan:
        """Walks to a tile of this place."""
        here = self.world.here
        for _ in range(ENOUGH):
            if self.tile == goal or self.world.here is not here:
                return
            yield from self.close()
            stop = self._stage(goal)
            if stop is None:
                return
            yield "move", (stop[0] - self.tile[0], stop[1] - self.tile[1])

    def _stage(self, goal: Tile) -> Tile | None:
        """The goal, or how far one move gets on the way to it; None if there is no way."""
        world, here = self.world, self.world.here
        if places.route(world, here, self.tile, goal, REACH) is not None:
            return goal
        way = self.way(goal) or []
        for part in (0.7, 0.4, 0.2):
            stop = way[int(len(way) * part)] if way else None
            if stop is not None and places.route(world, here, self.tile, stop, REACH):
                return stop
        return None

    def pass_time(self) -> Plan:
        """Passes time by walking to the far end of the map, or by waiting where it is small."""
        plan = places.plan(self.world.here)
        ends = [plan.arrival, *(self._inner(tile) for tile in plan.exits)]
        for end in self.nearest(ends)[::-1][:3]:
            if abs(end[0] - self.tile[0]) + abs(end[1] - self.tile[1]) < 15:
                break
            if (stop := self._stage(end)) is not None:
                yield "move", (stop[0] - self.tile[0], stop[1] - self.tile[1])
                return
        yield NOTHING

    def _inner(self, exit_tile: Tile) -> Tile:
        return next(
            (
                each
                for each in places.rings(exit_tile, 4)
                if each not in places.plan(self.world.here).exits
                and places.free(self.world, self.world.here, each)
            ),
            self.tile,
        )

    def beside(self, tile: Tile) -> Tile | None:
        """Returns the tile next to one from which it is reached soonest, None if there is none."""
        x, y = tile
        sides = [(x - dx, y - dy) for dx, dy in WAYS]
        if self.tile in sides:
            return self.tile
        free = [each for each in sides if places.free(self.world, self.world.here, each)]
        free.sort(key=lambda each: abs(each[0] - self.tile[0]) + abs(each[1] - self.tile[1]))
        return next((each for each in free if self.way(each) is not None), None)

    def approach(self, tile: Tile) -> Generator[Skill, None, bool]:
        """Walks to a tile next to one; returns whether the farmer is there."""
        if (goal := self.beside(tile)) is None:
            return False
        yield from self.walk(goal)
        return self.tile == goal

    def face(self, tile: Tile) -> str:
        """Returns the direction of a tile next to the farmer."""
        step = (tile[0] - self.tile[0], tile[1] - self.tile[1])
        return DIRECTIONS[WAYS.index(step)] if step in WAYS else "down"

    def interact(self, tile: Tile) -> Plan:
        """Walks to a tile and interacts with it."""
        if (yield from self.approach(tile)):
            yield "interact", (self.face(tile),)

    def offer(self, tile: Tile, name: str) -> Plan:
        """Walks to a tile and interacts with it, an item in hand."""
        if (yield from self.approach(tile)):
            yield from self.hold(name)
            yield "interact", (self.face(tile),)

    def use(self, tile: Tile, *tools: str) -> Plan:
        """Walks to a tile and uses a tool on it."""
        if (yield from self.approach(tile)):
            yield from self.hold(*tools)
            yield "use", (self.face(tile),)

    def slot(self, *names: str) -> int | None:
        """Returns the slot of the first of some items that the bag has."""
        for name in names:
            for slot, each in enumerate(self.world.farmer.bag):
                if each is not None and name in (each.name, items.use_kind(each.name)):
                    return slot
        return None

    def hold(self, *names: str) -> Plan:
        """Takes an item, or a tool by its kind, into the hand."""
        slot = self.slot(*names)
        if slot is not None and slot != self.world.farmer.slot:
            yield "choose_item", (slot,)

    def empty_hand(self) -> Plan:
        """Takes an empty slot, or a tool, into the hand: nothing that can be given away."""
        bag = self.world.farmer.bag
        slot = bag.index(None) if None in bag else (self.slot("Axe", "Hoe", "Scythe") or 0)
        if slot != self.world.farmer.slot:
            yield "choose_item", (slot,)

    def count(self, name: str) -> int:
        """Returns how many pieces the bag has."""
        return sum(each.count for each in self.world.farmer.bag if each and each.name == name)

    def choose(self, option: int, quantity: int = 1, direction: str = "in") -> Plan:
        """Chooses an entry of the open menu; the first is 1."""
        yield "choose_option", (option, quantity, 0 if direction == "in" else 1)

    def pick(self, text: str, quantity: int = 1) -> Plan:
        """Chooses the first entry of the open menu whose text contains one."""
        for number, entry in enumerate(entries(self.valley)):
            if text in entry:
                yield from self.choose(number + 1, quantity)
                return

    def nearest(self, tiles: Iterable[Tile]) -> list[Tile]:
        """Returns tiles by their distance from the farmer."""
        x, y = self.tile
        return sorted(tiles, key=lambda each: (abs(each[0] - x) + abs(each[1] - y), each))

    def reachable(self, tiles: Iterable[Tile], tries: int = 40) -> Tile | None:
        """Returns the nearest tile that can be reached or stood next to."""
        for tile in self.nearest(tiles)[:tries]:
            if self.beside(tile) is not None:
                return tile
        return None

    def collect(self) -> Plan:
        """Walks over what lies on the ground near by."""
        drops = self.world.here.drops
        for tile in self.nearest(drops)[:6]:
            room = any(farmer.space(self.world, each.name) for each in drops.get(tile, ()))
            if room and places.free(self.world, self.world.here, tile):
                yield from self.walk(tile)

    def make_room(self, *wanted: str) -> Plan:
        """Ships what is not wanted, so that the bag has an empty slot."""
        bag = self.world.farmer.bag
        bins = [each for each in self.world.buildings if each.kind == "Shipping Bin"]
        if None in bag or self.world.here.key != "Farm" or not bins:
            return
        junk = [
            each.name
            for each in bag
            if each is not None and items.stack(each.name) > 1 and each.name not in wanted
        ]
        for name in junk[:3]:
            yield from self.hold(name)
            yield from self.interact(bins[0].tile)

    def until(self, done: Callable[[], bool], plan: Callable[[], Plan], most: int = 200) -> Plan:
        """Repeats a plan until something holds; a plan that does nothing waits instead."""
        for _ in range(most):
            if done():
                return
            acted = False
            for skill in plan():
                acted = True
                yield skill
                if done():
                    return
            if not acted:
                yield NOTHING


def entries(valley: Valley) -> list[str]:
    """Returns the texts that can be chosen in the open menu."""
    menu = valley.world.menu
    return [] if menu is None else MENUS[menu.kind].entries(valley.world, menu)
