"""Getting things: from the land, from shops, from the ground of the mines."""

from __future__ import annotations

from collections.abc import Callable

from bridges.stardojo.oracle import travel
from bridges.stardojo.oracle.hands import NOTHING, Hands, Plan
from bridges.stardojo.rules import mines, monsters, places
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.world import WAYS, Thing, Tile

SOURCES = {"Stone": ("stone", "pickaxe"), "Fiber": ("weeds", "scythe")}
TREES = ("Wood", "Sap")
MEAL = "Pizza"
WEAK = 55  # health at which one fights what is near
SWING = 1.85  # tiles to each side that a swing is sure to reach
TIRED = 22  # health at which one goes to bed
SHOPS = {"Copper Ore": "Blacksmith", "Iron Ore": "Blacksmith", "Coal": "Blacksmith"}
SHOPS |= {"Vinegar": "SeedShop", "Oil": "SeedShop"}


def shop_of(name: str) -> str | None:
    """Returns a shop that sells an item."""
    known = content().shops
    if name in SHOPS:
        return SHOPS[name]
    return next((key for key, each in known.items() if name in each.stock), None)


def ask(hands: Hands, shop: str, what: str = "shop") -> Plan:
    """Goes to a counter and opens one of its menus, waiting until somebody is there."""
    known = content().shops[shop]
    for _ in range(80):
        late = hands.world.time >= known.hours[1] or hands.world.weekday in known.closed
        if late and hands.world.farmer.place != known.map:
            yield from sleep(hands)
            continue
        yield from travel.go(hands, known.map)
        yield from hands.close()
        yield from hands.interact(known.counter)
        menu = hands.world.menu
        if menu is None or menu.kind != "dialogue":
            if menu is not None:
                return
            continue
        if menu.facts["responses"]:
            if len(known.menu) > 1:
                yield from hands.choose(list(known.menu).index(what) + 1)
            return
        yield from hands.close()
        yield from hands.pass_time()


def buy(hands: Hands, name: str, count: int, shop: str | None = None) -> Plan:
    """Buys pieces of an item."""
    key = shop or shop_of(name)
    if key is None:
        return
    goal = hands.count(name) + count
    for _ in range(6):
        if hands.count(name) >= goal:
            break
        if hands.world.menu is None or hands.world.menu.kind != "shop":
            yield from ask(hands, key)
        yield from hands.pick(name, goal - hands.count(name))
    yield from hands.close()


def sell(hands: Hands, name: str, shop: str) -> Plan:
    """Sells all pieces of an item."""
    yield from ask(hands, shop)
    if (slot := hands.slot(name)) is not None:
        yield from hands.choose(slot + 1, 1, "out")
    yield from hands.close()


def strike(hands: Hands, test: Callable[[Thing], bool], tool: str) -> Plan:
    """Strikes the nearest thing of a kind once, and picks up what lies about."""
    yield from hands.collect()
    things = hands.world.here.things
    tile = hands.reachable(tile for tile, each in things.items() if test(each))
    if tile is not None:
        yield from hands.use(tile, tool)


def chop(hands: Hands) -> Plan:
    """Gives the nearest tree one blow, and picks up what lies about."""
    yield from hands.collect()
    ground = hands.world.here.ground
    trees = [tile for tile, each in ground.items() if each.kind == "tree" and each.stage >= 4]
    tile = hands.reachable(trees)
    if tile is not None:
        yield from hands.use(tile, "axe")


def gather(hands: Hands, name: str, count: int, *keep: str) -> Plan:
    """Gathers wood, sap, stone or fiber on the farm until the bag has so many."""
    yield from travel.go(hands, "Farm")
    if not hands.count(name):
        yield from hands.make_room(*keep)
    if name == "Wood" and count <= 12:
        plan: Callable[[], Plan] = lambda: strike(hands, lambda each: each.kind == "twig", "axe")  # noqa: E731
    elif name in TREES:
        plan = lambda: chop(hands)  # noqa: E731
    else:
        kind, tool = SOURCES[name]
        plan = lambda: strike(hands, lambda each: each.kind == kind, tool)  # noqa: E731
    yield from hands.until(lambda: hands.count(name) >= count, plan)


def forage(hands: Hands, name: str, maps: tuple[str, ...]) -> Plan:
    """Picks up forage of a kind, searching some maps, and the day after again."""
    before = hands.count(name)
    for _ in range(8):
        for key in maps:
            found = _lying(hands, key, name)
            if found:
                yield from travel.go(hands, key)
                tile = hands.reachable(found)
                if tile is not None:
                    yield from hands.interact(tile)
            if hands.count(name) > before:
                return
        yield from sleep(hands)


def _lying(hands: Hands, key: str, name: str) -> list[Tile]:
    place = hands.world.places.get(key)
    things = place.things.items() if place is not None else ()
    return [tile for tile, each in things if each.kind == "forage" and each.name == name]


def sleep(hands: Hands) -> Plan:
    """Goes home to bed, until the next morning."""
    day = hands.world.days_started
    for _ in range(20):
        if hands.world.days_started != day:
            break
        yield from travel.go(hands, places.HOUSE)
        bed = next(each for each in hands.world.here.furniture if "Bed" in each.name)
        yield from hands.close()
        yield from hands.interact(bed.tile)
        if hands.world.menu is not None and hands.world.menu.facts.get("then") == "sleep":
            yield from hands.choose(1)
    if hands.world.days_started == day:
        yield NOTHING  # the bed cannot be reached; plans that try again must let steps pass
    yield from morning(hands)


def morning(hands: Hands) -> Plan:
    """Chooses a profession, or closes what the night left open."""
    while hands.world.menu is not None:
        if hands.world.menu.kind == "level":
            yield from hands.choose(1)
        else:
            yield NOTHING


def descend(hands: Hands, level: int) -> Plan:
    """Goes down the mines to a floor, by the elevator as far as it goes."""
    for _ in range(60):
        at = mines.level_of(hands.world.farmer.place)
        stop = min(hands.world.mine_level, level) // mines.STOP * mines.STOP
        if at == level:
            return
        yield from hands.close()
        if at:
            yield from down(hands)
        elif stop:
            yield from ride(hands, stop)
        else:
            yield from travel.go(hands, f"{mines.FLOOR}1")


def ride(hands: Hands, level: int) -> Plan:
    """Takes the elevator of the entrance to a floor."""
    for _ in range(8):
        if mines.level_of(hands.world.farmer.place) == level:
            return
        yield from travel.go(hands, "Mine")
        spots = places.plan(hands.world.here).spots
        yield from hands.interact(next(t for t, words in spots.items() if words[0] == "elevator"))
        yield from hands.pick(f"Floor {level}")


def down(hands: Hands) -> Plan:
    """Breaks stones until there is a ladder, and climbs down."""
    here = hands.world.here
    for _ in range(200):
        if hands.world.here is not here:
            return
        ladder = [tile for tile, each in here.things.items() if each.kind == "ladder"]
        if ladder and hands.reachable(ladder) is not None:
            yield from hands.interact(ladder[0])
        else:
            yield from defend(hands)
            yield from mine_stone(hands, "")


def mine_stone(hands: Hands, node: str) -> Plan:
    """Strikes the nearest stone of a kind (any if there is none), until it breaks."""
    things = hands.world.here.things
    stones = {tile: each for tile, each in things.items() if each.kind == "node"}
    wanted = [tile for tile, each in stones.items() if each.facts.get("node") == node]
    tile = hands.reachable(wanted) if wanted else None
    soft = [tile for tile, each in stones.items() if each.blows == 1]
    tile = tile or hands.reachable(soft) or hands.reachable(stones)
    if tile is None:
        yield from leave_floor(hands)
        return
    thing, here = things[tile], hands.world.here
    for _ in range(20):
        if here.things.get(tile) is not thing or hands.world.here is not here:
            return
        yield from hands.use(tile, "pickaxe")


def leave_floor(hands: Hands) -> Plan:
    """Climbs up: floors are made again."""
    spots = places.plan(hands.world.here).spots
    way = next((tile for tile, words in spots.items() if words[0] == "exit"), None)
    if way is not None:
        yield from hands.interact(way)


def defend(hands: Hands) -> Plan:
    """Hits monsters that are next to the farmer, once it is weak."""
    for _ in range(12):
        if hands.world.farmer.health > WEAK:
            return
        yield from eat(hands)
        x, y = hands.tile
        close = [
            each
            for each in hands.world.here.monsters
            if max(abs(each.x - x), abs(each.y - y)) <= SWING and not monsters.hidden(each)
        ]
        if not close or hands.slot("sword", "dagger", "club") is None:
            return
        each = min(close, key=lambda m: abs(m.x - x) + abs(m.y - y))
        yield from hands.hold("sword", "dagger", "club")
        yield "use", (toward(hands.tile, (each.x, each.y)),)


def eat(hands: Hands) -> Plan:
    """Eats what was bought, if there is any."""
    if hands.count(MEAL):
        yield from hands.hold(MEAL)
        yield "use", ("down",)
        yield from hands.choose(1)


def toward(tile: Tile, goal: tuple[float, float]) -> str:
    """Returns the direction in which a point lies."""
    dx, dy = goal[0] - tile[0], goal[1] - tile[1]
    if abs(dx) >= abs(dy):
        return "right" if dx > 0 else "left"
    return "down" if dy > 0 else "up"


def search_mines(
    hands: Hands, plan: Callable[[], Plan], done: Callable[[], bool], again: bool = False
) -> Plan:
    """Repeats a plan on floor after floor until something holds.

    The plan is asked again and again on a floor; when it does nothing there, the next floor is
    looked for: below, or if ``again``, the floor of an elevator, which is made again each time.
    """
    for _ in range(400):
        if done():
            return
        stop = hands.world.mine_level // mines.STOP * mines.STOP
        if again and hands.world.farmer.health < TIRED:
            yield from sleep(hands)
        if not mines.level_of(hands.world.farmer.place):
            if again and stop:
                yield from ride(hands, stop - mines.STOP if stop % 10 == 0 else stop)
            else:
                yield from travel.go(hands, f"{mines.FLOOR}1")
        acted = False
        for skill in plan():
            acted = True
            yield skill
            if done():
                return
        if not acted:
            yield from defend(hands)
            ladder = [t for t, each in hands.world.here.things.items() if each.kind == "ladder"]
            if again and stop:
                yield from leave_floor(hands)
            elif ladder and hands.reachable(ladder) is not None:
                yield from hands.interact(ladder[0])
            else:
                yield from mine_stone(hands, "")
                yield from hands.collect()


def dig_out(hands: Hands, name: str, node: str | None) -> Plan:
    """Finds a mineral: lying on the floor, in its stones, or in any stone."""
    before = hands.count(name)

    def look() -> Plan:
        yield from hands.collect()
        things = hands.world.here.things
        lying = [t for t, each in things.items() if each.kind == "forage" and each.name == name]
        if lying and (tile := hands.reachable(lying)) is not None:
            yield from hands.interact(tile)
            return
        nodes = [t for t, each in things.items() if each.facts.get("node") == node]
        if nodes and hands.reachable(nodes) is not None:
            yield from defend(hands)
            yield from mine_stone(hands, node or "")
            yield from hands.collect()

    first = content().areas[0]
    again = name in first.gems or name in first.forage
    yield from search_mines(hands, look, lambda: hands.count(name) > before, again)


def fight(hands: Hands, name: str, count: int) -> Plan:
    """Kills monsters of a kind, on floor after floor."""
    start = hands.world.farmer.kills.get(name, 0)

    def done() -> bool:
        return hands.world.farmer.kills.get(name, 0) >= start + count

    def hunt() -> Plan:
        found = [each for each in hands.world.here.monsters if each.name == name]
        if not found:
            return
        x, y = hands.tile
        each = min(found, key=lambda m: abs(m.x - x) + abs(m.y - y))
        yield from hands.close()
        far = abs(each.x - x) + abs(each.y - y)
        if max(abs(each.x - x), abs(each.y - y)) <= SWING and not monsters.hidden(each):
            yield from hands.hold("sword", "dagger", "club")
            yield "use", (toward(hands.tile, (each.x, each.y)),)
            return
        goals = [each.tile, *((each.tile[0] + dx, each.tile[1] + dy) for dx, dy in WAYS)]
        for goal in goals:
            way = hands.way(goal)
            if way and places.free(hands.world, hands.world.here, goal):
                stop = way[max(0, min(len(way) - 1, max(len(way) - 2, 3)))]
                yield "move", (stop[0] - x, stop[1] - y)
                return
        if far > 2:
            yield from travel.clear_way(hands, each.tile)
        else:
            yield NOTHING

    stop = hands.world.mine_level // mines.STOP * mines.STOP
    again = content().from_floor.get(name, 0) <= stop
    yield from search_mines(hands, hunt, done, again)
