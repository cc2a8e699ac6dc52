"""The projects of the town: bundles and their rooms, the museum, Joja, prizes."""

from __future__ import annotations

from collections.abc import Sequence

from bridges.stardojo.rules import farmer, items, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import ask, say
from bridges.stardojo.rules.world import Facts, Menu, Tile, World
from rollout.errors import InputError

THEATER = "Movie Theater"
DONATED = ("artifact", "gem", "mineral")


@registry.SPOT("bundles")
def note(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Shows the bundles of a room."""
    room = " ".join(words)
    if world.joja:
        say(world, "The building was sold. The notes are gone.")
    else:
        world.menu = Menu("bundles", {"room": room})
    return True


def complete(world: World, name: str) -> bool:
    """Returns True if a bundle is complete."""
    bundle = content().bundles[name]
    return len(world.bundles.get(name, [])) >= (bundle.slots or len(bundle.items))


def _slots(world: World, name: str) -> list[tuple[str, int]]:
    """Returns the items that a bundle still lacks, with their counts."""
    given = world.bundles.get(name, [])
    return [each for each in content().bundles[name].items.items() if each[0] not in given]


def _entries(world: World, menu: Menu) -> list[str]:
    if (name := menu.facts.get("bundle")) is None:
        names = content().rooms[menu.facts["room"]]
        return [f"{each} (complete)" if complete(world, each) else each for each in names]
    slots = _slots(world, name)
    return [*(f"{count} {'g' if item == 'gold' else item}" for item, count in slots), "Back"]


def _choose(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    if (name := menu.facts.get("bundle")) is None:
        names = content().rooms[menu.facts["room"]]
        if 0 <= index < len(names) and not complete(world, names[index]):
            menu.facts["bundle"] = names[index]
        return
    slots = _slots(world, name)
    if not 0 <= index < len(slots):
        del menu.facts["bundle"]
        return
    item, count = slots[index]
    paid = farmer.pay(world, count) if item == "gold" else farmer.take(world, item, count)
    if paid:
        world.bundles.setdefault(name, []).append(item)
        if complete(world, name):
            del menu.facts["bundle"]
            _reward(world, name)


registry.MENUS["bundles"] = registry.MenuRule(type="", entries=_entries, choose=_choose)


def _reward(world: World, name: str) -> None:
    """The reward of a bundle, and the repair of its room if that was the last one."""
    bundle = content().bundles[name]
    farmer.gather(world, bundle.reward, bundle.pieces)
    registry.DID.call(world, "bundle", name, 1)
    room = next(key for key, names in content().rooms.items() if name in names)
    if all(complete(world, each) for each in content().rooms[room]):
        for project, known in content().projects.items():
            if known.room == room:
                repair(world, project)


def repair(world: World, project: str) -> None:
    """Carries a repair out."""
    if project not in world.repairs:
        world.repairs.append(project)


def _fill(world: World, name: str) -> None:
    world.bundles[name] = list(content().bundles[name].items)


@registry.COMMAND("spawn_junimo_note")
def spawn_note(world: World, room: registry.Id | None = None) -> None:
    """Notes are always there: nothing to do."""


@registry.COMMAND("complete_room_bundle")
def complete_room(world: World, room: registry.Id | None = None) -> None:
    """Completes all bundles of a room, by number, or of all rooms."""
    rooms = list(content().rooms)
    chosen = rooms if room is None else [rooms[_number(room, len(rooms))]]
    for each in chosen:
        for name in content().rooms[each]:
            _fill(world, name)
        for project, known in content().projects.items():
            if known.room == each:
                repair(world, project)


@registry.COMMAND("mark_bundle")
def mark(world: World, number: registry.Id) -> None:
    """Completes a bundle, by its number."""
    for name, bundle in content().bundles.items():
        if str(bundle.id) == str(number):
            _fill(world, name)


def _number(text: registry.Id, below: int) -> int:
    if not str(text).isdigit() or int(text) >= below:
        raise InputError(f"expected a number from 0 to {below - 1}, got {text!r}")
    return int(text)


@registry.SPOT("museum")
def museum(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Shows what of the bag can be donated."""
    if _pieces(world):
        world.menu = Menu("museum")
    else:
        say(world, "You have nothing for the collection.", speaker="Gunther")
    return True


def _pieces(world: World) -> list[str]:
    held = dict.fromkeys(each.name for each in world.farmer.bag if each is not None)
    return [
        name
        for name in held
        if name not in world.museum
        and (items.category(name) in DONATED or name == "Prismatic Shard")
    ]


def _donate(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    pieces = _pieces(world)
    if not 0 <= index < len(pieces) or not farmer.take(world, pieces[index], 1):
        world.menu = None
        return
    world.museum.append(pieces[index])
    registry.DID.call(world, "donate", pieces[index], 1)
    if (reward := content().museum.get(len(world.museum))) is not None:
        farmer.gather(world, *reward)
    if not _pieces(world):
        world.menu = None


registry.MENUS["museum"] = registry.MenuRule(
    type="", entries=lambda world, menu: _pieces(world), choose=_donate
)


@registry.SPOT("joja")
def desk(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Asks at the desk of Joja."""
    joja_desk(world)
    return True


def joja_desk(world: World) -> None:
    """Offers a membership, then the development of the town."""
    if world.joja:
        world.menu = Menu("joja")
        return
    text = f"A membership costs {content().joja['membership']} g. Do you want to join?"
    ask(world, text, [("yes", "Yes"), ("no", "No")], "joja")


@registry.ANSWER("joja")
def join(world: World, key: str, about: Facts) -> None:
    """Becomes a member."""
    if key == "yes" and farmer.pay(world, content().joja["membership"]):
        world.joja = True


def _projects(world: World) -> list[tuple[str, int]]:
    left = [
        (name, each.price) for name, each in content().projects.items() if name not in world.repairs
    ]
    if not left and not world.theater:
        left = [(THEATER, content().joja["theater"])]
    return left


def _develop(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    projects = _projects(world)
    if not 0 <= index < len(projects):
        return
    name, price = projects[index]
    if not farmer.pay(world, price):
        return
    if name == THEATER:
        world.theater = True
    else:
        repair(world, name)
    registry.DID.call(world, "project", name, 1)


registry.MENUS["joja"] = registry.MenuRule(
    type="",
    entries=lambda world, menu: [f"{name}: {price} g" for name, price in _projects(world)],
    choose=_develop,
)


@registry.COMMAND("joja_membership")
def membership(world: World) -> None:
    """Becomes a member at no cost."""
    world.joja = True


@registry.COMMAND("community_development")
def development(world: World, number: registry.Id | None = None) -> None:
    """Carries out a project, by number or name, or all."""
    for name, each in content().projects.items():
        if number is None or str(number) in (str(each.id), name):
            repair(world, name)


@registry.SPOT("prize")
def machine(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Shows the machine that takes tickets."""
    world.menu = Menu("prize")
    return True


def _prize(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    world.menu = None
    if index == 0 and farmer.take(world, "Prize Ticket", 1):
        at = world.facts.get("prizes", 0)
        world.facts["prizes"] = at + 1
        farmer.gather(world, *content().prizes[min(at, len(content().prizes) - 1)])


registry.MENUS["prize"] = registry.MenuRule(
    type="PrizeTicketMenu",
    entries=lambda world, menu: ["Use a ticket", "Close"],
    choose=_prize,
    show=lambda world, menu: {"currentPrizeTrack": world.facts.get("prizes", 0)},
)
