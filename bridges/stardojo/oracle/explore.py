"""Scripts of exploration: places, the mines, forage, quests, monsters."""

from __future__ import annotations

from bridges.stardojo.oracle import farm, people, supplies, travel
from bridges.stardojo.oracle.hands import Hands, Plan
from bridges.stardojo.oracle.made import FORAGE
from bridges.stardojo.rules import mines, places
from bridges.stardojo.rules.content import content
from bridges.stardojo.task_row import TaskRow

MEALS = 6  # for a long way down
BEACH = ("Clam", "Cockle", "Mussel", "Oyster", "Coral", "Sea Urchin")


def location(hands: Hands, row: TaskRow) -> Plan:
    """Goes somewhere."""
    if level := mines.level_of(row.object):
        if level > hands.world.mine_level + 1:
            yield from supplies.buy(hands, supplies.MEAL, MEALS)
        yield from supplies.descend(hands, level)
    else:
        yield from travel.go(hands, row.object)


def harvest(hands: Hands, row: TaskRow) -> Plan:
    """Gets wood, forage, or what is in the mines."""
    name, count = row.object, row.quantity
    if name in ("Wood", "Stone", "Fiber", "Sap"):
        yield from supplies.gather(hands, name, hands.count(name) + count)
    elif name in BEACH:
        yield from supplies.forage(hands, name, ("Beach",))
    elif name in FORAGE:
        yield from supplies.forage(hands, name, FORAGE[name])
    elif row.tool == "Hoe":
        yield from dig(hands, name)
    else:
        for _ in range(count):
            yield from supplies.dig_out(hands, name, node_of(name))


def node_of(name: str) -> str | None:
    """Returns the stone that holds something, None if any may."""
    known = content().nodes
    return next((key for key, each in known.items() if each.gives == name), None)


def dig(hands: Hands, name: str) -> Plan:
    """Digs in the floor of the mines."""
    before = hands.count(name)

    def one() -> Plan:
        yield from supplies.defend(hands)
        yield from hands.collect()
        yield from farm.till_one(hands)

    yield from hands.until(lambda: hands.count(name) > before, one)


def hay(hands: Hands, row: TaskRow) -> Plan:
    """Cuts grass on the farm."""
    yield from travel.go(hands, "Farm")

    def one() -> Plan:
        ground = hands.world.here.ground
        tile = hands.reachable(t for t, each in ground.items() if each.kind == "grass")
        if tile is not None:
            yield from hands.use(tile, "scythe")

    yield from hands.until(lambda: False, one)


def journal(hands: Hands) -> Plan:
    """Opens the log."""
    yield from hands.close()
    yield "menu", ("open", "journal")


def quit_quest(hands: Hands, row: TaskRow) -> Plan:
    """Cancels the first quest of the log."""
    yield from journal(hands)
    yield from hands.choose(1)
    yield from hands.choose(1)


def reward(hands: Hands, row: TaskRow) -> Plan:
    """Takes the reward of a quest that is done."""
    yield from journal(hands)
    number = next(n for n, each in enumerate(hands.world.quests) if each.done)
    yield from hands.choose(number + 1)


def help_wanted(hands: Hands, row: TaskRow) -> Plan:
    """Accepts what is asked for on the board and does it, on whatever day it can be done."""
    for _ in range(8):
        request = hands.world.facts.get("board")
        if request is not None and possible(hands, request["kind"], request["what"]):
            yield from travel.go(hands, "Town")
            spots = places.plan(hands.world.here).spots
            board = next(tile for tile, words in spots.items() if words[0] == "billboard")
            yield from hands.interact(board)
            yield from hands.choose(1)
            yield from fulfil(hands, request["kind"], request["what"], request["number"])
            yield from people.meet(hands, request["who"], request["what"])
            return
        yield from supplies.sleep(hands)


def possible(hands: Hands, kind: str, what: str) -> bool:
    """Returns True if a request can be fulfilled with what is at hand."""
    return kind in ("collect", "kill") or what in FORAGE or what == "Parsnip"


def fulfil(hands: Hands, kind: str, what: str, number: int) -> Plan:
    """Gets what a request asks for."""
    if kind == "kill":
        level = 15 if what == "Grub" else 2
        yield from supplies.descend(hands, min(level, max(hands.world.mine_level, 1)))
        yield from supplies.fight(hands, what, number)
    elif kind == "collect":
        start = hands.count(what)
        if what in ("Wood", "Stone"):
            yield from supplies.gather(hands, what, start + number)
        else:
            yield from supplies.buy(hands, what, number)
    elif what in FORAGE:
        yield from supplies.forage(hands, what, FORAGE[what])
    else:
        yield from supplies.buy(hands, "Parsnip Seeds", 2)
        yield from farm.harvest_crop(hands, what, 1)


def story(hands: Hands, row: TaskRow) -> Plan:
    """Completes a quest of the story."""
    if row.object == "9":
        yield from introductions(hands)
    elif row.object == "6":
        yield from farm.harvest_crop(hands, "Parsnip", 1)


def introductions(hands: Hands) -> Plan:
    """Greets everybody, those nearest first; the next day goes on."""
    while any(each.id == "9" for each in hands.world.quests):
        people_left = [
            each
            for name, each in hands.world.residents.items()
            if content().residents[name].social and not each.facts.get("met")
        ]
        here = hands.world.farmer.place
        ways = []
        for each in people_left:
            way = travel.path(hands.world, each.place)
            if way is not None and (way or each.place == here):
                ways.append((len(way), each.name))
        if not ways or hands.world.time >= 2200:
            yield from supplies.sleep(hands)
        else:
            yield from people.meet(hands, min(ways)[1])
