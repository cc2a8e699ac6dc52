"""Scripts of people: talk, gifts, friendship, what is bought, sold and built."""

from __future__ import annotations

from bridges.stardojo.oracle import supplies, travel
from bridges.stardojo.oracle.hands import Hands, Plan
from bridges.stardojo.rules import places, residents
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.tables import TASTES
from bridges.stardojo.task_row import TaskRow

ANIMAL_MENU = "animal"


def meet(hands: Hands, name: str, item: str | None = None) -> Plan:
    """Goes to a resident and gives an item, or talks."""
    for _ in range(60):
        yield from hands.close()
        resident = residents.find(hands.world, name)
        if resident.place != hands.world.farmer.place:
            way = travel.path(hands.world, resident.place)
            if not way:
                yield from hands.pass_time()
                continue
            yield from toward(hands, resident.place)
            continue
        if hands.beside(resident.tile) is None:
            yield from hands.pass_time()
            continue
        before = (resident.gifts, resident.talked, resident.facts.get("met"))
        if item is not None and hands.count(item):
            yield from hands.hold(item)
        else:
            yield from hands.empty_hand()
        yield from hands.interact(resident.tile)
        if (resident.gifts, resident.talked, resident.facts.get("met")) != before:
            yield from hands.close()
            return


def toward(hands: Hands, goal: str) -> Plan:
    """Goes one map further on the way to a place, or lets time pass before a closed door."""
    here = hands.world.farmer.place
    for skill in travel.go(hands, goal):
        yield skill
        if hands.world.farmer.place != here:
            return


def befriend(hands: Hands, row: TaskRow) -> Plan:
    """Makes friends with somebody by gifts and talk, day after day."""
    resident = residents.find(hands.world, row.object)
    while True:
        if not resident.gifts and resident.gifts_week < residents.GIFTS_A_WEEK:
            item = liked(hands, row.object)
            if item is None and resident.friendship + residents.TALK < row.quantity:
                yield from supplies.buy(hands, *wanted(hands, row.object))
                item = liked(hands, row.object)
            if item is not None:
                yield from meet(hands, row.object, item)
        if not resident.talked:
            yield from meet(hands, row.object)
        if resident.friendship >= row.quantity:
            return
        yield from supplies.sleep(hands)


def liked(hands: Hands, name: str) -> str | None:
    """Returns the item of the bag that somebody likes best."""
    bag = {each.name for each in hands.world.farmer.bag if each is not None}
    kinds = [each for each in bag if content().by_name[each].category not in content().not_gifts]
    for liking in TASTES[:2]:
        for each in sorted(kinds):
            if residents.taste(name, content().by_name[each].key) == liking:
                return each
    return None


def wanted(hands: Hands, name: str) -> tuple[str, int, str]:
    """Returns what to buy for somebody: item, count, shop."""
    for liking in TASTES[:2]:
        for shop in ("SeedShop", "Saloon"):
            for item in content().shops[shop].stock:
                price = content().shops[shop].stock[item].price
                if residents.taste(name, item) == liking and price <= 400:
                    return item, 2, shop
    return "Bread", 2, "Saloon"


def sell(hands: Hands, row: TaskRow) -> Plan:
    """Sells to a shop, or puts into the shipping bin."""
    if row.tool == "Shipping Bin":
        yield from travel.go(hands, "Farm")
        bin_ = next(each for each in hands.world.buildings if each.kind == "Shipping Bin")
        yield from hands.hold(row.object)
        yield from hands.interact(bin_.tile)
    else:
        yield from supplies.sell(hands, row.object, "SeedShop")


def upgrade_tool(hands: Hands, row: TaskRow) -> Plan:
    """Has a tool upgraded and fetches it after two nights."""
    yield from supplies.ask(hands, "Blacksmith", "upgrade")
    yield from hands.pick(row.object)
    yield from hands.close()
    while not hands.count(row.object):
        yield from supplies.sleep(hands)
        if all(order["nights"] <= 0 for order in hands.world.orders):
            yield from supplies.ask(hands, "Blacksmith", "shop")
            yield from hands.close()


def crack(hands: Hands, row: TaskRow) -> Plan:
    """Has geodes broken."""
    yield from supplies.ask(hands, "Blacksmith", "geodes")
    for _ in range(row.quantity):
        yield from hands.pick(row.object)


def joja(hands: Hands, row: TaskRow) -> Plan:
    """Becomes a member of Joja, or buys a project."""
    yield from supplies.ask(hands, "JojaDesk")
    if row.object == "Joja Membership":
        yield from hands.choose(1)
    else:
        yield from hands.pick(row.object)


def backpack(hands: Hands, row: TaskRow) -> Plan:
    """Buys a larger backpack."""
    yield from travel.go(hands, "SeedShop")
    spots = places.plan(hands.world.here).spots
    for _ in range(4):
        yield from hands.interact(next(t for t, words in spots.items() if words[0] == "backpack"))
        yield from hands.choose(1)


def buy_animal(hands: Hands, row: TaskRow) -> Plan:
    """Buys an animal."""
    yield from supplies.ask(hands, "AnimalShop", "animals")
    yield from hands.pick(row.object)
    if hands.world.menu is not None and hands.world.menu.kind == "animals":
        yield from hands.choose(1)


def sell_animal(hands: Hands, row: TaskRow) -> Plan:
    """Sells an animal: it is asked twice, since the first touch pets it."""
    kinds = [kind for kind, each in content().animals.items() if each.shop == row.object]
    animal = next((each for each in hands.world.animals if each.kind in kinds), None)
    if animal is None:  # the state may have no animals
        return
    for _ in range(20):
        yield from travel.go(hands, animal.place)
        yield from hands.empty_hand()
        yield from hands.interact(animal.tile)
        menu = hands.world.menu
        if menu is not None and menu.kind == ANIMAL_MENU:
            yield from hands.choose(1)
            return


def build(hands: Hands, row: TaskRow) -> Plan:
    """Has a building built or upgraded, and sleeps until it is done."""
    yield from supplies.ask(hands, "ScienceHouse", "build")
    yield from hands.pick(f"{row.object}:")
    yield from hands.choose(1)
    yield from hands.close()
    while not any(each.kind == row.object and not each.days for each in hands.world.buildings):
        yield from supplies.sleep(hands)


def move(hands: Hands, row: TaskRow) -> Plan:
    """Has a building moved."""
    yield from supplies.ask(hands, "ScienceHouse", "build")
    yield from hands.pick("Move a building")
    yield from hands.pick(f"{row.object} at")
    yield from hands.choose(1)


def demolish(hands: Hands, row: TaskRow) -> Plan:
    """Has a building demolished."""
    yield from supplies.ask(hands, "ScienceHouse", "build")
    yield from hands.pick("Demolish a building")
    yield from hands.pick(f"{row.object} at")


def upgrade_house(hands: Hands, row: TaskRow) -> Plan:
    """Has the farmhouse enlarged."""
    level = hands.world.house_level
    yield from supplies.ask(hands, "ScienceHouse", "house")
    yield from hands.choose(1)
    while hands.world.house_level == level:
        yield from supplies.sleep(hands)
