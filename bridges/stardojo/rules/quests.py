"""Quests: the story, help that is wanted, the log."""

from __future__ import annotations

from collections.abc import Sequence

from bridges.stardojo.rules import farmer, items, registry, residents
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import below, between, random, say, weighted
from bridges.stardojo.rules.world import Facts, Menu, Quest, Tile, World
from rollout.errors import InputError

DAYS_OF_HELP, HELP_FRIENDSHIP, TICKET = 2, 150, 3
HELPS = {"delivery": 0.5, "collect": 0.25, "slay": 0.25}
NO_HELP = 0.1  # the chance that nobody wants help today
REWARD = 3  # times the price
SLAYERS, SLAY_REWARD = ("Lewis", "Clint"), 60
ANY = ("everyone", "anyone")


def start(world: World, number: str) -> None:
    """Adds a quest of the story to the log, if it is not there."""
    known = content().quests.get(str(number))
    if known is None:
        raise InputError(f"there is no quest {number}; known: {', '.join(content().quests)}")
    if not any(each.id == number for each in world.quests):
        kind, what, many = known.ends
        world.quests.append(Quest(str(number), known.title, kind, what, many, known.reward))


def finish(world: World, quest: Quest) -> None:
    """Completes a quest: what follows begins; one with a reward stays until that is taken."""
    quest.done = True
    if quest.id:
        for number in content().quests[quest.id].follows:
            start(world, number)
    else:
        helped = world.facts["helped"] = world.facts.get("helped", 0) + 1
        if helped % TICKET == 1:
            world.mail.append("PrizeTicket")
    if not quest.reward:
        world.quests.remove(quest)


@registry.DID
def progress(world: World, deed: str, what: str, number: int) -> None:
    """Counts what was done for the quests that ask for it."""
    for quest in list(world.quests):
        if quest.done or quest.kind != deed or quest.what not in (what, *ANY):
            continue
        if deed == "mine" and what == "floor":
            quest.have = max(quest.have, number)
        else:
            quest.have += number
        if quest.have >= quest.number and "who" not in quest.facts:
            finish(world, quest)


@registry.GAIN
def gained(world: World, name: str, count: int) -> None:
    """Counts what was collected; the first copper brings a letter of the smith."""
    for quest in world.quests:
        if quest.kind == "collect" and quest.what == name and not quest.done:
            quest.have += count
    if name == "Copper Ore":
        world.facts.setdefault("tomorrow", ["ClintFurnace"])


@registry.CREATURE
def deliver(world: World, tile: Tile) -> bool:
    """Brings somebody what he asked for, or the news that it is done."""
    resident = residents.at(world, world.farmer.place, tile)
    if resident is None:
        return False
    for quest in world.quests:
        if quest.done or quest.facts.get("who") != resident.name:
            continue
        if quest.kind == "deliver":
            held = world.farmer.hand
            if held is None or not items.matches(held.name, quest.what):
                continue
            farmer.use_up(world)
        elif quest.have < quest.number:
            continue
        residents.befriend(resident, HELP_FRIENDSHIP)
        finish(world, quest)
        say(world, f"Just what I needed. Thank you, {world.farmer.name}!", speaker=resident.name)
        return True
    return False


@registry.NEW
@registry.MORNING
def post(world: World) -> None:
    """Today's note on the board; help that was promised for too long is forgotten."""
    for quest in [each for each in world.quests if "left" in each.facts and not each.done]:
        quest.facts["left"] -= 1
        if quest.facts["left"] < 0:
            world.quests.remove(quest)
    none = random(world) < NO_HELP
    world.facts["board"] = None if none else wanted(world, weighted(world, HELPS))


def wanted(world: World, kind: str) -> Facts:
    """Returns a request of a kind: delivery, collect or slay."""
    known = content().help
    people = [
        name
        for name, each in content().residents.items()
        if each.social and each.from_year <= world.year
    ]
    who = people[below(world, len(people))]
    if kind == "delivery":
        names = known.delivery[world.season]
        what, number = names[below(world, len(names))], 1
        price = content().items[what].price
        return _request("deliver", what, number, price * REWARD, who, f"{who} wants: {what}")
    table = known.collect if kind == "collect" else known.slay
    what = list(table)[below(world, len(table))]
    number = max(1, between(world, table[what] // 2, table[what]))
    if kind == "collect":
        reward = content().items[what].price * number * REWARD
        return _request("collect", what, number, reward, who, f"{who} needs {number} {what}")
    who = SLAYERS[below(world, len(SLAYERS))]
    return _request("kill", what, number, SLAY_REWARD * number, who, f"Slay {number} {what}")


def _request(kind: str, what: str, number: int, reward: int, who: str, title: str) -> Facts:
    made = {"kind": kind, "what": what, "number": number, "reward": reward}
    return made | {"who": who, "title": title}


def accept(world: World, request: Facts) -> None:
    """Adds a request to the log."""
    fields = {key: value for key, value in request.items() if key != "who"}
    facts = {"who": request["who"], "left": DAYS_OF_HELP}
    world.quests.append(Quest(id="", facts=facts, **fields))
    registry.DID.call(world, "accept", request["kind"], 1)


@registry.SPOT("billboard")
def billboard(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Shows today's request."""
    if world.facts.get("board") is None:
        say(world, "Nobody needs help today.")
    else:
        world.menu = Menu("billboard")
    return True


def _note(world: World, menu: Menu) -> list[str]:
    request = world.facts.get("board")
    return [f"Accept: {request['title']} for {request['reward']} g"] if request else []


def _accept(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    request = world.facts.get("board")
    world.menu = None
    if index == 0 and request is not None:
        world.facts["board"] = None
        accept(world, request)


registry.MENUS["billboard"] = registry.MenuRule(type="", entries=_note, choose=_accept)


def _log(world: World, menu: Menu) -> list[str]:
    if (at := menu.facts.get("quest")) is not None:
        return [f"Cancel: {world.quests[at].title}", "Back"]
    return [
        f"{each.title}: take {each.reward} g" if each.done else f"{each.title} ({_so_far(each)})"
        for each in world.quests
    ]


def _so_far(quest: Quest) -> str:
    return f"{min(quest.have, quest.number)}/{quest.number}"


def _choose(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    if (at := menu.facts.pop("quest", None)) is not None:
        if index == 0:
            del world.quests[at]
        return
    if not 0 <= index < len(world.quests):
        return
    quest = world.quests[index]
    if quest.done:
        world.farmer.money += quest.reward
        world.quests.remove(quest)
    else:
        menu.facts["quest"] = index


registry.MENUS["journal"] = registry.MenuRule(type="", entries=_log, choose=_choose)


@registry.COMMAND("start_quest")
def start_quest(world: World, number: registry.Id) -> None:
    """Starts a quest of the story."""
    start(world, str(number))


@registry.COMMAND("complete_quest")
def complete_quest(world: World, number: registry.Id) -> None:
    """Completes a quest of the log."""
    for quest in list(world.quests):
        if quest.id == str(number) and not quest.done:
            finish(world, quest)


@registry.COMMAND("start_help_quest")
def start_help_quest(world: World, kind: str) -> None:
    """Accepts a request of a kind: collect, delivery or slay."""
    if kind not in HELPS:
        raise InputError(f"expected collect, delivery or slay, got {kind!r}")
    accept(world, wanted(world, kind))
