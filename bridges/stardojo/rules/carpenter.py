"""The carpenter: buildings that are built, upgraded, moved or demolished, and the farmhouse."""

from __future__ import annotations

from collections.abc import Mapping

from bridges.stardojo.rules import farmer, maps, places
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import ANSWER, COMMAND, DID, MENUS, MORNING, MenuRule, ask, say
from bridges.stardojo.rules.world import Building, Facts, Menu, Tile, World
from rollout.errors import InputError, UnknownNameError

SITES = 12  # offered at once
HOUSE = 3  # nights
KEPT = ("Farmhouse", "Greenhouse")
MOVE, DEMOLISH = "Move a building", "Demolish a building"


def pay(world: World, gold: int, materials: Mapping[str, int]) -> bool:
    """Pays gold and materials; returns False, taking nothing, if there is not enough."""
    if world.farmer.money < gold or not farmer.has(world, materials):
        return False
    world.farmer.money -= gold
    for name, count in materials.items():
        farmer.take(world, name, count)
    return True


def _offers(world: World) -> list[str]:
    kinds = {each.kind for each in world.buildings if not each.days}
    return [
        name
        for name, known in content().buildings.items()
        if known.upgrades is None or known.upgrades in kinds
    ]


def _candidates(world: World, menu: Menu) -> list[Building]:
    """The buildings that one of the menu's lists shows."""
    job = menu.facts["job"]
    idle = [each for each in world.buildings if not each.days and each.kind not in KEPT]
    if job in (MOVE, DEMOLISH):
        return idle
    return [each for each in idle if each.kind == content().buildings[job].upgrades]


def _moved(world: World, menu: Menu) -> Building | None:
    return places.building(world, menu.facts["id"]) if "id" in menu.facts else None


def _entries(world: World, menu: Menu) -> list[str]:
    job = menu.facts.get("job")
    if job is None:
        return [*map(_costs, _offers(world)), MOVE, DEMOLISH]
    if _picks_site(menu):
        tiles = places.sites(world, menu.facts["kind"], SITES, _moved(world, menu))
        return [f"at {x}, {y}" for x, y in tiles]
    return [f"{each.kind} at {each.tile[0]}, {each.tile[1]}" for each in _candidates(world, menu)]


def _picks_site(menu: Menu) -> bool:
    job = menu.facts["job"]
    if job == MOVE:
        return "id" in menu.facts
    return job != DEMOLISH and content().buildings[job].upgrades is None


def _costs(name: str) -> str:
    known = content().buildings[name]
    materials = "".join(f", {count} {item}" for item, count in known.materials.items())
    return f"{name}: {known.gold} g{materials}"


def _choose(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    count = len(_entries(world, menu))
    if not 0 <= index < count:
        return
    if "job" not in menu.facts:
        job = [*_offers(world), MOVE, DEMOLISH][index]
        if job not in (MOVE, DEMOLISH) and not _may_build(world, job):
            return
        menu.facts.update(job=job, kind=job)
    elif _picks_site(menu):
        _put(world, menu, index)
    else:
        _change(world, menu, _candidates(world, menu)[index])


def _may_build(world: World, name: str) -> bool:
    known = content().buildings[name]
    if world.farmer.money < known.gold or not farmer.has(world, known.materials):
        return False
    return known.days == 0 or not any(each.days for each in world.buildings)


def _put(world: World, menu: Menu, index: int) -> None:
    """Builds or moves to the chosen site."""
    kind, moved = menu.facts["kind"], _moved(world, menu)
    tile = places.sites(world, kind, SITES, moved)[index]
    known = content().buildings[kind]
    world.menu = None
    if moved is not None:
        moved.tile = tile
        places.clear_site(world, moved)
        DID.call(world, "move", kind, 1)
    elif pay(world, known.gold, known.materials):
        places.add_building(world, kind, tile, days=known.days)
        if known.days:
            say(world, f"I will start on it in the morning: {known.days} days.", speaker="Robin")
        else:
            DID.call(world, "build", kind, 1)


def _change(world: World, menu: Menu, building: Building) -> None:
    """Upgrades or demolishes a building, or remembers which one is moved."""
    job = menu.facts["job"]
    if job == MOVE:
        menu.facts.update(id=building.id, kind=building.kind)
        return
    world.menu = None
    if job == DEMOLISH:
        if any(each.home == building.id for each in world.animals):
            say(world, "There are still animals in it.", speaker="Robin")
        else:
            places.remove_building(world, building)
            DID.call(world, "demolish", building.kind, 1)
        return
    known = content().buildings[job]
    if pay(world, known.gold, known.materials):
        building.days, building.becomes = known.days, job
        say(world, f"I will start on it in the morning: {known.days} days.", speaker="Robin")


MENUS["carpenter"] = MenuRule(
    type="CarpenterMenu",
    entries=_entries,
    choose=_choose,
    show=lambda world, menu: {"bluePrints": "StardewValley.Menus.CarpenterMenu+BlueprintEntry"},
)


def offer_house(world: World) -> None:
    """Offers the next size of the farmhouse."""
    cost = content().house.get(world.house_level + 1)
    if cost is None or any(each["what"] == "house" for each in world.orders):
        say(world, "There is nothing to do on your house now.", speaker="Robin")
        return
    materials = "".join(f" and {count} {name}" for name, count in cost.materials.items())
    text = f"I can make your house larger for {cost.gold} g{materials}."
    ask(world, text, [("yes", "Yes"), ("no", "No")], "house")


@ANSWER("house")
def enlarge_house(world: World, key: str, about: Facts) -> None:
    """Orders the next size of the farmhouse."""
    cost = content().house[world.house_level + 1]
    if key == "yes" and pay(world, cost.gold, cost.materials):
        world.orders.append({"what": "house", "nights": HOUSE})
        say(world, "I will start in the morning. It takes three days.", speaker="Robin")


@MORNING
def work(world: World) -> None:
    """A night of building passes."""
    for building in world.buildings:
        if building.days:
            building.days -= 1
            if not building.days:
                _finish(world, building)
    for order in [each for each in world.orders if each["what"] == "house"]:
        if order["nights"] <= 1:
            world.orders.remove(order)
            world.house_level += 1


def _finish(world: World, building: Building) -> None:
    if building.becomes:
        places.grow_building(world, building, building.becomes)
        building.becomes = ""
    DID.call(world, "build", building.kind, 1)


def _spot(world: World, x: int | None, y: int | None) -> Tile:
    """A tile of the farm, where the farmer must be, as in the game."""
    if world.farmer.place != "Farm":
        raise InputError(f"buildings stand on the farm; the farmer is in {world.here.name}")
    return places.beside(world, x, y)


def _site(tile: Tile, size: Tile) -> Tile:
    """The tile, if a building from there on lies on the farm."""
    farm = maps.plan("Farm")
    if not farm.inside(tile) or not farm.inside((tile[0] + size[0] - 1, tile[1] + size[1] - 1)):
        raise InputError(f"a building of {size[0]} x {size[1]} tiles at {tile} leaves the farm")
    return tile


@COMMAND("build")
def build(
    world: World,
    kind: str,
    force: bool | str = True,
    x: int | None = None,
    y: int | None = None,
) -> None:
    """Builds a finished building on the farm."""
    if kind not in content().buildings:
        raise UnknownNameError("building", kind, content().buildings)
    tile = _site(_spot(world, x, y), places.size(kind))
    if force in (True, "True") or places.site_free(world, kind, tile):
        places.add_building(world, kind, tile)


@COMMAND("build_stable")
def build_stable(world: World, x: int | None = None, y: int | None = None) -> None:
    """Builds a stable."""
    build(world, "Stable", True, x, y)


@COMMAND("move_building")
def move_building(
    world: World, xs: int | None, ys: int | None, xd: int | None, yd: int | None
) -> None:
    """Moves the building of a tile."""
    start, to = _spot(world, xs, ys), _spot(world, xd, yd)
    if made := places.building_at(world, start):
        made.tile = _site(to, made.size)
        places.clear_site(world, made)


@COMMAND("remove_building")
def remove_building(world: World, x: int | None, y: int | None) -> None:
    """Takes the building of a tile away."""
    if made := places.building_at(world, _spot(world, x, y)):
        places.remove_building(world, made)


@COMMAND("instant_build")
def instant_build(world: World, x: int | None, y: int | None) -> None:
    """Finishes the building of a tile."""
    if made := places.building_at(world, _spot(world, x, y)):
        if made.becomes:
            places.grow_building(world, made, made.becomes)
        made.days, made.becomes = 0, ""
