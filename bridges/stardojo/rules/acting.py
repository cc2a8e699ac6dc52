"""The actions of the protocol: moving, using, interacting, and what is done at once."""

from __future__ import annotations

from collections.abc import Callable, Generator

from bridges.stardojo.rules import farmer, items, making, maps, night, places, registry, soil
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import ask, random
from bridges.stardojo.rules.world import WAYS, Building, Facts, Menu, Tile, World

STEP_TICKS = 12
"""Ticks for a tile, running."""
EATING_TICKS = 100
Walk = Generator[int, None, bool]
"""Yields the ticks until the next step; returns whether the way was found."""


def walk(world: World, goal: Tile) -> Walk:
    """Walks to a tile of this place; see section 4.1 of the protocol for what ends it."""
    place = world.here
    layout = places.plan(place)
    me = world.farmer
    if any(each.tile == goal and each.place == place.key for each in world.residents.values()):
        goal = next((each for each in _around(goal) if places.free(world, place, each)), goal)
    way = places.route(world, place, me.tile, goal)
    if way is None:
        return False
    detours = 0
    while way:
        if me.place != place.key or world.menu is not None:
            return True
        step = way[0]
        if not places.free(world, place, step) and step not in layout.exits:
            detours += 1
            found = places.route(world, place, me.tile, goal) if detours < 5 else None
            if found is None:
                return False
            way = found
            continue
        me.facing = WAYS.index((step[0] - me.tile[0], step[1] - me.tile[1]))
        day = world.days_started
        yield STEP_TICKS
        if world.days_started != day or me.place != place.key or world.menu is not None:
            return True
        me.tile = way.pop(0)
        farmer.collect(world)
        if me.tile in layout.exits:
            places.through(world, layout.exits[me.tile])
            return True
        _step_on(world)
    return True


def _around(tile: Tile) -> list[Tile]:
    return [(tile[0] + dx, tile[1] + dy) for dx, dy in WAYS]


def _step_on(world: World) -> None:
    """Handles a step onto a tile: beds ask."""
    if world.here.furniture:
        piece = places.furniture_at(world.here, world.farmer.tile)
        if piece is not None and "Bed" in piece.name:
            night.ask_sleep(world)


def move(world: World, x: int, y: int) -> Walk:
    """Walks to a tile, if no menu is open."""
    if world.menu is not None:
        return False
    return (yield from walk(world, (x, y)))


def move_relative(world: World, dx: int, dy: int) -> Walk:
    """Walks to a tile given from where the farmer stands."""
    return (yield from walk(world, (world.farmer.tile[0] + dx, world.farmer.tile[1] + dy)))


def move_step(world: World, way: int) -> Walk:
    """Goes one step: 1 up, 2 right, 3 down, 4 left."""
    if world.menu is not None or not 0 <= way <= 4:
        return False
    if way == 0:
        return True
    dx, dy = WAYS[way - 1]
    to = (world.farmer.tile[0] + dx, world.farmer.tile[1] + dy)
    if not places.free(world, world.here, to):
        return False
    yield from walk(world, to)
    return True


def navigate(world: World, name: str) -> Walk:
    """Walks to the first exit that leads to a map; then to a door that does, and through it."""
    layout = places.plan(world.here)
    for tile, to in layout.exits.items():
        if to.to == name and (yield from walk(world, tile)):
            return True
    doors = {tile: to for tile, to in layout.doors.items() if to.to == name}
    if world.farmer.place == "Farm":
        for made in world.buildings:
            if (at := places.door(made)) and name in (made.kind, _inside_name(made.kind)):
                doors[at] = maps.Warp(name, at)
    for tile in doors:
        if (yield from walk(world, (tile[0], tile[1] + 1))):
            world.farmer.facing = 0
            interact(world)
            return True
    return False


def _inside_name(kind: str) -> str:
    return "FarmHouse" if kind == "Farmhouse" else kind


def turn(world: World, way: int) -> None:
    """Faces up 0, right 1, down 2 or left 3."""
    if world.menu is None and 0 <= way <= 3:
        world.farmer.facing = way


def choose_item(world: World, slot: int) -> None:
    """Takes a slot of the bag into the hand."""
    if 0 <= slot < len(world.farmer.bag):
        world.farmer.slot = slot


def use(world: World) -> None:
    """Uses what is in hand, see section 4.2."""
    if world.menu is not None:
        return
    held = world.farmer.hand
    kind = items.use_kind(held.name) if held else ""
    rule = registry.USE.get(kind)
    if held is not None and rule is not None:
        world.busy = max(world.busy, rule(world, held, world.farmer.ahead))
        farmer.collect(world)
    else:
        interact(world)


def interact(world: World) -> None:
    """Interacts with what is ahead, see section 4.3."""
    if world.menu is not None:
        return
    me = world.farmer
    tile, place, held = me.ahead, world.here, me.hand
    if place.key == "Farm" and held is not None and _ship(world):
        return
    if registry.CREATURE.first(world, tile) or _thing(world, tile) or _map(world, tile):
        farmer.collect(world)
        return
    if held is not None and making.placeable(held.name) and making.place_ahead(world, held):
        return
    ground = place.ground.get(tile)
    if ground is not None and _pick(world, tile):
        farmer.collect(world)
        return
    if held is not None and items.edible(held.name) is not None:
        ask(world, f"Eat {items.shown(held.name)}?", [("Yes", "Yes"), ("No", "No")], "eat")


def _ship(world: World) -> bool:
    """Puts the stack in hand into the shipping bin, if the farmer stands at one."""
    me = world.farmer
    for made in world.buildings:
        dx, dy = me.tile[0] - made.tile[0], me.tile[1] - made.tile[1]
        if made.kind == "Shipping Bin" and (
            (dx, dy) in ((1, 0), (0, 1), (0, 2), (1, 1))
            or places.building_at(world, me.ahead) is made
        ):
            held = me.hand
            kind = items.category(held.name) if held else ""
            if (
                held is None
                or kind in ("tool", "weapon", "scythe", "quest", "")
                or not (items.price(held.name))
            ):
                return False
            me.bag[me.slot] = None
            world.shipped.append(held)
            registry.DID.call(world, "ship", held.name, held.count)
            return True
    return False


def _thing(world: World, tile: Tile) -> bool:
    thing = world.here.things.get(tile)
    rule = registry.TOUCH.get(thing.kind) if thing else None
    return bool(thing and rule and rule(world, tile, thing))


def _map(world: World, tile: Tile) -> bool:
    """Interacts with furniture, buildings, doors and spots of the map."""
    place, layout = world.here, places.plan(world.here)
    piece = places.furniture_at(place, tile) if place.furniture else None
    if piece is not None:
        rule = registry.FURNITURE.get(piece.name) or registry.FURNITURE.get(
            "tv" if "TV" in piece.name else ""
        )
        if rule is not None and rule(world, piece):
            return True
    if place.key == "Farm" and (made := places.building_at(world, tile)):
        return _building(world, made, tile)
    if tile in layout.doors:
        return places.enter_door(world, layout.doors[tile])
    words = layout.spots.get(tile)
    rule_of_spot = registry.SPOT.get(words[0]) if words else None
    return bool(words and rule_of_spot and rule_of_spot(world, tile, list(words[1:])))


def _building(world: World, made: Building, tile: Tile) -> bool:
    """Goes through the door of a building, or opens the one for animals."""
    if tile == places.door(made) and not made.days:
        inside = "FarmHouse" if made.kind == "Farmhouse" else made.inside
        if inside and (made.kind != "Greenhouse" or "Greenhouse" in world.repairs):
            places.warp(world, inside, None)
            return True
    gate = registry.SPOT.get("gate")
    return bool(gate and tile == places.gate(made) and gate(world, tile, [made.id]))


def _pick(world: World, tile: Tile) -> bool:
    """Harvests a crop, shakes a tree or picks its fruit."""
    place, ground = world.here, world.here.ground[tile]
    if ground.crop is not None:
        return soil.harvest(world, place, tile)
    if ground.kind == "fruit_tree" and ground.fruit:
        fruit = content().fruit_trees[ground.name].fruit
        for _ in range(ground.fruit):
            farmer.gather(world, fruit)
        ground.fruit = 0
        return True
    if ground.kind == "tree" and ground.fruit and not ground.stump:
        ground.fruit = 0
        if random(world) < 0.05:
            seed = content().wild_trees[ground.name].seed
            places.drop(world, place, tile, farmer.fresh(seed))
        return True
    return False


@registry.ANSWER("eat")
def eat(world: World, key: str, about: Facts) -> None:
    """Eats what is in hand."""
    held = world.farmer.hand
    points = items.edible(held.name) if held else None
    if key == "Yes" and held is not None and points is not None:
        strength = points * (1 + 0.4 * held.quality)
        farmer.use_up(world)
        if strength < 0:  # it makes sick
            farmer.tire(world, -strength * 2.5)
        else:
            farmer.rest(world, strength * 2.5, strength * 1.125)
        world.busy = max(world.busy, EATING_TICKS)
        registry.DID.call(world, "eat", held.name, 1)


def craft(world: World, name: str) -> None:
    """Crafts one piece."""
    if world.menu is None:
        making.craft(world, name)


def attach(world: World, slot: int) -> None:
    """Attaches bait, tackle or ammunition of a slot to the tool in hand."""
    bag, held = world.farmer.bag, world.farmer.hand
    part = bag[slot] if 0 <= slot < len(bag) else None
    if held is None or part is None or items.use_kind(held.name) != "rod":
        return
    if items.category(part.name) in ("bait", "tackle"):
        held.facts["attached"] = [part.name, part.count, part.quality]
        bag[slot] = None


def detach(world: World) -> None:
    """Takes off what is attached to the tool in hand."""
    held = world.farmer.hand
    if held is not None and (part := held.facts.pop("attached", None)):
        farmer.gather(world, *part)


def exit_menu(world: World) -> None:
    """Closes the open menu."""
    world.menu = None  # a profession that is to be chosen is asked for again at night


def open_map(world: World) -> None:
    """Opens the map."""
    world.menu = Menu("map")


def open_journal(world: World) -> None:
    """Opens the list of quests."""
    if "journal" in registry.MENUS:
        world.menu = Menu("journal")


def sell_current_item(world: World) -> None:
    """Sells the stack in hand to the open shop."""
    menu = world.menu
    if menu is not None and menu.kind == "shop":
        registry.MENUS["shop"].choose(world, menu, world.farmer.slot, 1, False)


MOVES: dict[str, tuple[int, Callable[..., Walk]]] = {
    "move": (2, move),
    "move_relative": (2, move_relative),
    "move_step": (1, move_step),
    "navigate": (1, navigate),
}
"""Actions that take time before they reply: how many arguments, and the walk."""
DEEDS: dict[str, tuple[int, Callable[..., None]]] = {
    "turn": (1, turn),
    "use": (0, use),
    "interact": (0, interact),
    "craft": (1, craft),
    "take_from_chest": (2, making.from_chest),
    "put_to_chest": (2, making.to_chest),
    "sell_current_item": (0, sell_current_item),
    "choose_item": (1, choose_item),
    "attach": (1, attach),
    "detach": (0, detach),
    "exit_menu": (0, exit_menu),
    "open_map": (0, open_map),
    "open_journal": (0, open_journal),
}
"""Actions that are done at once."""


def choose(
    world: World, option: int, quantity: int, outward: bool, *, faithful: bool = False
) -> None:
    """Chooses in the open menu.

    Args:
        world: the valley.
        option: 1 for the first entry; 0 or less closes the menu.
        quantity: pieces, where that matters.
        outward: sell or put, not buy or take.
        faithful: as the mod does it: menus that it does not know close, an option of a chest counts
            from 0, and a quantity of 0 buys nothing; otherwise 0 means one piece.
    """
    menu = world.menu
    if menu is None:
        return
    rule = registry.MENUS[menu.kind]
    if option <= 0 or (faithful and not rule.operable):
        world.menu = None
        return
    if faithful:
        if menu.kind == "chest":
            option += 1
        if quantity < 0:
            quantity = 1
    else:
        quantity = max(1, quantity)
    rule.choose(world, menu, option - 1, quantity, not outward)


def _responses(world: World, menu: Menu) -> list[str]:
    return [text for _, text in menu.facts["responses"]]


def _answer(world: World, menu: Menu, index: int, quantity: int, inward: bool) -> None:
    responses = menu.facts["responses"]
    if not responses:
        menu.facts["pages"].pop(0)
        if not menu.facts["pages"]:
            world.menu = None
        return
    if not 0 <= index < len(responses):
        return
    world.menu = None
    rule = registry.ANSWER.get(menu.facts["then"])
    if rule is not None:
        rule(world, responses[index][0], menu.facts["about"])


def _dialogue(world: World, menu: Menu) -> Facts:
    pages = list(menu.facts["pages"])
    spoken = bool(menu.facts.get("speaker"))
    return {
        "dialogues": pages[:1],
        "chats": pages[::-1] if spoken else [],
        "responses": [
            {"responseKey": key, "responseText": text} for key, text in menu.facts["responses"]
        ],
    }


def _in_chest(world: World, menu: Menu) -> list[str]:
    return [f"{name} x{count}" for name, count, *_ in making.chest_items(world, menu)]


def _show_chest(world: World, menu: Menu) -> Facts:
    inside = making.chest_items(world, menu)
    return {"ItemsInChest": [{"Name": each[0], "Quantity": each[1]} for each in inside]}


def _use_chest(world: World, menu: Menu, index: int, quantity: int, inward: bool) -> None:
    (making.from_chest if inward else making.to_chest)(world, index, quantity)


registry.MENUS["dialogue"] = registry.MenuRule(
    "DialogueBox", _responses, _answer, _dialogue, operable=True
)
registry.MENUS["chest"] = registry.MenuRule(
    "Chest", _in_chest, _use_chest, _show_chest, operable=True
)
registry.MENUS["map"] = registry.MenuRule("", lambda world, menu: [], registry.close_menu)
