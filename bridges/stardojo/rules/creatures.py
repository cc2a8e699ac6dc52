"""Animals of the farm and pets: where they are, petting, milking, selling, gates."""

from __future__ import annotations

from collections.abc import Sequence

from bridges.stardojo.rules import farmer, places, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import below, random, say
from bridges.stardojo.rules.world import Animal, Building, Item, Menu, Pet, Place, Tile, World

FRIENDSHIP, HAPPINESS = 1000, 255
OUT, HOME = 630, 1900  # when animals go out and come home
STROLL = 0.4  # the chance that an animal takes a step in ten minutes
MILKING = 30  # ticks


@registry.NEW
def ready(world: World) -> None:
    """Grown animals have milk and wool to give."""
    for animal in world.animals:
        known = content().animals[animal.kind]
        if known.taken not in ("laid", "dug") and adult(animal):
            animal.produce = known.product


@registry.TEN
def stroll(world: World) -> None:
    """Animals leave through open gates, walk about, and come home; incubators warm."""
    outside = OUT <= world.time < HOME and world.weather == "sun" and world.season != "winter"
    for animal in world.animals:
        building = home_of(world, animal)
        if building is None:
            continue
        if animal.place == "Farm" and not outside:
            go_in(world, animal, building)
        elif animal.place == building.inside and outside and building.gate_open:
            put(world, animal, "Farm", gate_tile(building))
            animal.facts["grazed"] = True
        elif random(world) < STROLL:
            _step(world, animal)
    for pet in world.pets:
        if random(world) < STROLL:
            _step(world, pet)


def _step(world: World, being: Animal | Pet) -> None:
    x, y = being.tile
    step = ((0, -1), (1, 0), (0, 1), (-1, 0))[below(world, 4)]
    tile = (x + step[0], y + step[1])
    if places.free(world, places.get(world, being.place), tile):
        being.tile = tile


def put(world: World, being: Animal | Pet, place: str, tile: Tile) -> None:
    """Puts a creature on the nearest free tile of a place."""
    being.place = place
    being.tile = places.near(world, places.get(world, place), tile)


def gate_tile(building: Building) -> Tile:
    """Returns the tile before the animals' door of a building."""
    x, y = places.gate(building) or building.tile
    return x, y + 1


def go_in(world: World, animal: Animal, building: Building) -> None:
    """Puts an animal into its house, each on a tile of its own."""
    inside = places.get(world, building.inside)
    animal.place, animal.tile = "", (-1, -1)
    tile = floor_tile(world, inside)
    animal.place, animal.tile = building.inside, tile


def floor_tile(world: World, place: Place) -> Tile:
    """Returns a random free tile of a place."""
    plan = places.plan(place)
    tile = (1 + below(world, plan.width - 2), 1 + below(world, plan.height - 2))
    return places.near(world, place, tile)


def home_of(world: World, animal: Animal) -> Building | None:
    """Returns the building of an animal."""
    return places.building(world, animal.home)


def at(world: World, tile: Tile) -> Animal | Pet | None:
    """Returns the animal or pet on a tile of the place where the farmer is."""
    here = world.farmer.place
    beings: list[Animal | Pet] = [*world.animals, *world.pets]
    return next((each for each in beings if each.tile == tile and each.place == here), None)


@registry.SPOT("gate")
def gate(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Opens or closes the door for the animals."""
    for building in world.buildings:
        if building.id == words[0] and not building.days:
            building.gate_open = not building.gate_open
            return True
    return False


@registry.CREATURE
def touch(world: World, tile: Tile) -> bool:
    """Pets an animal or a pet; an animal that was petted shows what one can ask of it."""
    being = at(world, tile)
    rules = content().rules
    if isinstance(being, Pet):
        if not being.touched:
            being.touched = True
            being.friendship = min(being.friendship + rules["pet_stroke"], FRIENDSHIP)
        return True
    if being is None:
        return False
    if being.touched:
        world.menu = Menu("animal", {"name": being.name})
        return True
    being.touched = True
    being.friendship = min(being.friendship + rules["pet"], FRIENDSHIP)
    being.happiness = min(being.happiness + rules["pet_happiness"], HAPPINESS)
    farmer.learn(world, "farming", 5)
    return True


@registry.USE("pail", "shears")
def take_produce(world: World, item: Item, tile: Tile) -> int:
    """Milks or shears the animal ahead."""
    farmer.tire(world, 4)
    animal = at(world, tile)
    if isinstance(animal, Animal) and content().animals[animal.kind].taken == item.name:
        if not animal.produce:
            say(world, f"{animal.name} has nothing to give now.")
        elif farmer.give(world, animal.produce, 1, quality(animal)) == 0:
            registry.DID.call(world, "harvest", animal.produce, 1)
            animal.produce = ""
            animal.friendship = min(animal.friendship + content().rules["milked"], FRIENDSHIP)
            farmer.learn(world, "farming", 5)
    return MILKING


def quality(animal: Animal) -> int:
    """Returns the quality of what an animal gives: by its friendship and happiness."""
    score = animal.friendship / FRIENDSHIP - (1 - animal.happiness / (HAPPINESS - 30)) * 0.5
    return 4 if score > 0.95 else 2 if score > 0.7 else 1 if score > 0.4 else 0


def _worth(animal: Animal) -> int:
    price = content().animals[animal.kind].price
    return int(price * (animal.friendship / FRIENDSHIP + 0.3))


def _asked(world: World, menu: Menu) -> Animal | None:
    return next((each for each in world.animals if each.name == menu.facts["name"]), None)


def _queries(world: World, menu: Menu) -> list[str]:
    animal = _asked(world, menu)
    if animal is None:
        return []
    return [f"Sell {animal.name} for {_worth(animal)} g", "Move to another house", "Close"]


def _query(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    animal = _asked(world, menu)
    world.menu = None
    if animal is None:
        return
    if index == 0:
        world.farmer.money += _worth(animal)
        world.animals.remove(animal)
        registry.DID.call(world, "sell animal", animal.kind, 1)
    elif index == 1:
        others = [each for each in homes(world, animal.kind) if each.id != animal.home]
        if others:
            animal.home = others[0].id
            go_in(world, animal, others[0])
        else:
            say(world, "There is no room in another house.")


registry.MENUS["animal"] = registry.MenuRule(type="", entries=_queries, choose=_query)


def homes(world: World, kind: str) -> list[Building]:
    """Returns the finished buildings with room for one more of a kind."""
    known = content().animals[kind]
    found = []
    for building in world.buildings:
        size = (
            ("", "Big ", "Deluxe ").index(building.kind.removesuffix(known.house)) + 1
            if (building.kind in (known.house, f"Big {known.house}", f"Deluxe {known.house}"))
            else 0
        )
        room = content().buildings[building.kind].animals if size >= known.size else 0
        if not building.days and sum(each.home == building.id for each in world.animals) < room:
            found.append(building)
    return found


def add(world: World, kind: str, name: str, building: Building, age: int = 0) -> Animal:
    """Adds an animal to a house."""
    taken = {each.name for each in world.animals}
    unique = name
    number = 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    animal = Animal(name=unique, place="", tile=(0, 0), kind=kind, home=building.id, age=age)
    go_in(world, animal, building)
    world.animals.append(animal)
    registry.DID.call(world, "animal", kind, 1)
    return animal


def adult(animal: Animal) -> bool:
    """Returns True if an animal is grown up."""
    return animal.age >= content().animals[animal.kind].grows
