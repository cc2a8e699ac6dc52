"""What is seen of a valley: the fields of ``observe_v2``, and windows of tiles as arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

from bridges.stardojo.rules import items, maps, places
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.farmer import level
from bridges.stardojo.rules.registry import MENUS
from bridges.stardojo.rules.world import Pet, Place, Resident, Tile, World

Json: TypeAlias = dict[str, Any]

WEATHERS = {"rain": "Raining", "storm": "Raining", "snow": "Snowing"}
MENU_FIELDS = (
    *("message", "currentPrizeTrack", "dialogues", "chats", "shopMenuData", "animalsMenuData"),
    *("responses", "bluePrints", "ItemsInChest"),
)
FIRST_UNNAMED = 20
"""Professions from this number on have no name in the mod."""
HOUSE = "Farmhouse"


def observe(world: World, size: int = 3, *, faithful: bool = False) -> Json:
    """Returns the fields of ``observe_v2`` but the picture, with ``Progression`` as the last one.

    Args:
        world: the valley.
        size: half of the width of the window of tiles.
        faithful: whether menus and professions that the mod cannot name stay unnamed.
    """
    place = world.here
    return {
        "Player": _player(world, faithful),
        "NPCs": _residents(world),
        "GameState": {
            "Time": world.time,
            "DayOfMonth": world.day,
            "Season": world.season,
            "Year": world.year,
            "Weather": WEATHERS.get(world.weather, "Sunny"),
        },
        "Farm": _farm(world),
        "CurrentMenuData": menu(world, faithful=faithful),
        "Buildings": _buildings(world, place),
        "Crops": _crops(place),
        "Exits": [
            {"target": to.to if to.to != "home" else "Farm", "position": point(tile)}
            for tile, to in places.plan(place).exits.items()
        ],
        "ShopCounters": [
            {"name": f"{name} Counter", "position": point(content().shops[name].counter)}
            for name in content().counters
        ],
        "MetaData": {"ViewportSize": [1280, 720]},
        "CallBackData": {"OnDayStarted": world.days_started},
        "SurroundingsData": surroundings(world, size),
        "Furnitures": [
            {
                "name": each.name,
                "position": point(each.tile),
                "boundingBox": {
                    "top": each.tile[1],
                    "bottom": each.tile[1] + each.size[1] - 1,
                    "left": each.tile[0],
                    "right": each.tile[0] + each.size[0] - 1,
                },
            }
            for each in place.furniture
        ],
        "Progression": progression(world),
    }


def point(tile: Tile) -> str:
    """Returns a tile as the mod writes vectors: ``"x, y"``."""
    return f"{tile[0]}, {tile[1]}"


def _xy(tile: Tile) -> Json:
    return {"X": tile[0], "Y": tile[1]}


def _player(world: World, faithful: bool) -> Json:
    me = world.farmer
    held = me.hand
    ids = content().profession_ids
    unnamed = {name: f"Unknown_{n}" for name, n in ids.items() if faithful and n >= FIRST_UNNAMED}
    people = world.residents.values()
    return {
        "Name": me.name,
        "Health": me.health,
        "Stamina": me.energy,
        "Money": me.money,
        "Location": world.here.name,
        "Position": _xy(me.tile),
        "FacingDirection": me.facing,
        "Inventory": [
            {"Name": None, "Quantity": None}
            if each is None
            else {"Name": items.shown(each.name), "Quantity": each.count}
            for each in me.bag
        ],
        "CurrentInventory": {
            "Index": me.slot,
            "CurrentItem": items.shown(held.name) if held else "None",
        },
        "Professions": [unnamed.get(each, each) for each in me.professions],
        "Skills": {each.title(): level(world, each) for each in _SKILLS},
        "DatingPartners": [each.name for each in people if each.tie == "dating"],
        "Spouse": [each.name for each in people if each.tie in ("engaged", "married")],
    }


_SKILLS = ("farming", "mining", "combat", "fishing", "foraging")


def _name(world: World, key: str) -> str:
    return world.places[key].name if key in world.places else key


def _residents(world: World) -> list[Json]:
    people: list[Resident | Pet] = [*world.residents.values(), *world.pets]
    return [
        {
            "Name": each.name,
            "Location": _name(world, each.place),
            "Friendship": each.friendship,
            "Position": list(each.tile),
            "isTalked": isinstance(each, Resident) and each.talked,
            "GiftsToday": each.gifts if isinstance(each, Resident) else 0,
        }
        for each in people
    ]


def _farm(world: World) -> Json:
    return {
        "Animals": [
            {
                "Type": each.kind,
                "Name": each.name,
                "Position": _xy(each.tile),
                "Friendship": each.friendship,
                "IsAdult": each.age >= content().animals[each.kind].grows,
                "CurrentProduce": _id(each.produce) if each.produce else None,
                "Happiness": each.happiness,
                "isTouched": each.touched,
            }
            for each in world.animals
        ],
        "Buildings": [
            {
                "type": each.kind,
                "position": point(each.tile),
                "isAnimalDoorOpen": each.gate_open,
                "isBowlFull": each.full if each.kind == "Pet Bowl" else None,
                "hayNumber": _hay(world, each.kind, each.inside),
                "id": each.id,
                "upgradeLevel": world.house_level if each.kind == HOUSE else None,
            }
            for each in world.buildings
        ],
        "Pets": [
            {
                "Type": each.kind,
                "Name": each.name,
                "Position": _xy(each.tile),
                "Friendship": each.friendship,
                "isTouched": each.touched,
            }
            for each in world.pets
            if each.place == "Farm"
        ],
    }


def _hay(world: World, kind: str, inside: str) -> int:
    if kind == "Silo":
        return world.hay
    place = world.places.get(inside)
    if place is None or not kind.endswith(("Coop", "Barn")):
        return 0
    things = (place.things.get(tile) for tile in places.plan(place).troughs)
    return sum(each is not None and each.kind == "hay" for each in things)


def _id(name: str) -> str | None:
    found = items.row(name)
    return found.id if found else None


def menu(world: World, *, faithful: bool = False) -> Json:
    """Returns ``CurrentMenuData``; see ``observe``."""
    shown: Json = {"type": "No Menu", **dict.fromkeys(MENU_FIELDS)}
    if world.menu is None:
        return shown
    rule = MENUS[world.menu.kind]
    if rule.type:
        shown["type"] = rule.type
        shown |= rule.show(world, world.menu) if rule.show else {}
    elif faithful:
        return shown
    else:
        shown["type"] = world.menu.kind
        shown |= rule.show(world, world.menu) if rule.show else {}
    if not faithful and not shown["responses"]:
        entries = rule.entries(world, world.menu)
        shown["responses"] = [
            {"responseKey": str(n), "responseText": text} for n, text in enumerate(entries, 1)
        ] or None
    return shown


def _buildings(world: World, place: Place) -> list[Json]:
    found: list[Json] = []
    if place.key == "Farm":
        seen = set()
        for each in world.buildings:
            if each.kind not in seen:
                seen.add(each.kind)
                at = places.door(each)
                found.append({"name": each.kind, "doorPosition": point(at) if at else None})
    for tile, to in places.plan(place).doors.items():
        found.append({"name": to.to, "doorPosition": point(tile)})
    return found


def _crops(place: Place) -> list[Json]:
    found = []
    for tile, ground in place.ground.items():
        crop = ground.crop
        if crop is not None and not crop.dead:
            found.append(
                {
                    "id": _id(crop.seed),
                    "position": point(tile),
                    "isWatered": ground.watered,
                    "isDead": False,
                    "forage_crop": bool(content().crops[crop.seed].wild),
                    "current_phase": crop.phase,
                }
            )
    return found


def surroundings(world: World, size: int) -> list[Json]:
    """Returns ``SurroundingsData``: the tiles of a square around the farmer, clipped to the map."""
    place, layout = world.here, places.plan(world.here)
    x, y = world.farmer.tile
    people = {
        each.tile: f"Name: {each.name} Friendship: {each.friendship} isTalked: {each.talked} "
        f"GiftsToday: {each.gifts}"
        for each in world.residents.values()
        if each.place == place.key
    }
    for pet in world.pets:
        if pet.place == place.key:
            people[pet.tile] = (
                f"Name: {pet.name} Friendship: {pet.friendship} isTalked: False GiftsToday: "
            )
    for monster in place.monsters:
        people[monster.tile] = f"Name: {monster.name} Friendship: 0 isTalked: False GiftsToday: "
    known = content()
    counter = known.shops[place.name].counter if place.name in known.counters else None
    return [
        _tile(world, place, layout, (tx, ty), people, counter)
        for tx in range(max(0, x - size), min(layout.width, x + size + 1))
        for ty in range(max(0, y - size), min(layout.height, y + size + 1))
    ]


def _tile(
    world: World,
    place: Place,
    layout: maps.Plan,
    tile: Tile,
    people: dict[Tile, str],
    counter: Tile | None,
) -> Json:
    thing, ground = place.things.get(tile), place.ground.get(tile)
    drops = place.drops.get(tile)
    made = places.building_at(world, tile) if place.key == "Farm" else None
    building = made.kind if made else ("mailbox" if layout.spots.get(tile) == ("mailbox",) else "")
    piece = places.furniture_at(place, tile) if place.furniture else None
    furniture = piece.name if piece else ""
    if tile == counter:
        furniture = f"{place.name} Counter"
    crop = None
    if ground is not None and ground.crop is not None:
        plant = content().crops[ground.crop.seed]
        crop = {"seed_id": _id(ground.crop.seed), "index_harvest": _id(plant.harvest)}
    exit_to = layout.exits.get(tile) or layout.doors.get(tile)
    blocked = thing is not None or (ground is not None) or made is not None or piece is not None
    return {
        "position": [tile[0], tile[1]],
        "object_at_tile": items.shown(thing.name) if thing else "",
        "terrain_at_tile": content().terrains[ground.kind] if ground else "",
        "building_info": building,
        "tile_properties": layout.properties(tile),
        "crop_at_tile": crop,
        "debris_at_tile": items.shown(drops[0].name) if drops else "",
        "furniture_at_tile": furniture,
        "exit_info": (exit_to.to if exit_to.to != "home" else "Farm") if exit_to else "",
        "npc_info": people.get(tile, ""),
        "placeable": not blocked and layout.walkable(tile),
    }


def progression(world: World) -> Json:
    """Returns the field that the mod computes and leaves out."""
    found = content()
    done = {name for name, given in world.bundles.items() if _complete(name, given)}
    return {
        "CommunityCenter": len(done) == len(found.bundles),
        "MineLevel": world.mine_level,
        "SkullCavernLevel": world.cavern_level,
        "Achievements": [],
        "Bundles": [
            {"id": each.id, "name": name, "completed": name in done}
            for name, each in found.bundles.items()
        ],
        "Repairs": [
            {"id": each.id, "project": name, "completed": name in world.repairs}
            for name, each in found.projects.items()
        ],
        "MovieTheater": world.theater,
        "JojaMembership": world.joja,
        "Museum": [
            {"position": f"{n}, 0", "itemId": _id(name), "itemName": items.shown(name)}
            for n, name in enumerate(world.museum)
        ],
        "Quests": [{"id": each.id or None, "completed": each.done} for each in world.quests],
    }


def _complete(name: str, given: list[str]) -> bool:
    bundle = content().bundles[name]
    return len(given) >= (bundle.slots or len(bundle.items))
