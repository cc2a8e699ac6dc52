"""Barns and coops: feeding, what a night brings, produce, incubators; commands for animals."""

from __future__ import annotations

from collections.abc import Sequence

from bridges.stardojo.rules import creatures, farmer, places, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import random, say
from bridges.stardojo.rules.world import Animal, Building, Pet, Place, Thing, Tile, World
from rollout.errors import InputError, nearest

DAY, WAKING = 1440, 360  # minutes


@registry.SPOT("trough")
def feed(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Lays one piece of hay on the bench, or takes it back with an empty hand."""
    things, hand = world.here.things, world.farmer.hand
    if tile in things or hand is None or hand.name != "Hay":
        return False
    things[tile] = Thing("Hay", "hay", passable=False)
    farmer.use_up(world)
    return True


@registry.TOUCH("hopper")
def hopper(world: World, tile: Tile, thing: Thing) -> bool:
    """Takes as much hay from the silos as the bench lacks, or puts hay in hand back."""
    hand = world.farmer.hand
    if hand is not None and hand.name == "Hay":
        count = min(hand.count, silo_room(world))
        farmer.use_up(world, count)
        world.hay += count
        return count > 0
    empty = sum(each not in world.here.things for each in places.plan(world.here).troughs)
    count = min(world.hay, empty)
    if hand is not None or count == 0:
        return False
    world.hay -= count - farmer.give(world, "Hay", count)
    return True


def silo_room(world: World) -> int:
    """Returns how much hay the silos still hold."""
    most = sum(content().buildings[each.kind].hay for each in world.buildings if not each.days)
    return max(most - world.hay, 0)


@registry.EVENING
def settle(world: World) -> None:
    """Animals eat, and are content or not; pets drink; incubators warm until the morning."""
    rules = content().rules
    for animal in world.animals:
        if building := creatures.home_of(world, animal):
            _supper(world, animal, building)
        if not animal.touched:
            less = max(-animal.friendship, rules["unpetted"])
            animal.friendship += less
    full = any(each.kind == "Pet Bowl" and each.full for each in world.buildings)
    for pet in world.pets:
        if full:
            pet.friendship = min(pet.friendship + rules["pet_water"], creatures.FRIENDSHIP)
    minutes = DAY - (world.minutes - WAKING)
    for building in world.buildings:
        _warm(world, building, max(minutes, 0))


def _supper(world: World, animal: Animal, building: Building) -> None:
    rules = content().rules
    grazed = animal.facts.pop("grazed", False) and _graze(world)
    things = places.get(world, building.inside).things
    hay = next((tile for tile, each in things.items() if each.kind == "hay"), None)
    animal.fed = grazed or hay is not None
    if not grazed and hay is not None:
        del things[hay]
    if animal.fed:
        animal.happiness = min(animal.happiness + rules["fed_happiness"], creatures.HAPPINESS)
        animal.friendship += rules["outside"] if grazed else 0
    else:
        animal.happiness = max(animal.happiness + rules["hungry_happiness"], 0)
        animal.friendship += rules["hungry"]
    animal.friendship = max(0, min(animal.friendship, creatures.FRIENDSHIP))


def _graze(world: World) -> bool:
    """Removes a tuft of grass, which an animal eats; returns False if there is none."""
    ground = places.get(world, "Farm").ground
    for tile, each in ground.items():
        if each.kind == "grass":
            each.stage -= 1
            if each.stage <= 0:
                del ground[tile]
            return True
    return False


@registry.MORNING
def rise(world: World) -> None:
    """Animals give, troughs of deluxe houses are filled from the silos, pets go out on dry days."""
    for animal in world.animals:
        animal.touched = False
        animal.age += 1
        if building := creatures.home_of(world, animal):
            creatures.go_in(world, animal, building)
            _produce(world, animal, building)
    for building in world.buildings:
        if building.kind.startswith("Deluxe ") and not building.days:
            _fill(world, building)
        if building.kind == "Pet Bowl":
            building.full = world.weather in ("rain", "storm")
    for pet in world.pets:
        pet.touched = False
        if world.weather == "sun":
            bowl = next((each for each in world.buildings if each.kind == "Pet Bowl"), None)
            creatures.put(world, pet, "Farm", bowl.tile if bowl else (60, 18))
        else:
            creatures.put(world, pet, "FarmHouse", (5, 6))


def _fill(world: World, building: Building) -> None:
    place = places.get(world, building.inside)
    things = place.things
    for tile in places.plan(place).troughs:
        if tile not in things and world.hay > 0:
            things[tile] = Thing("Hay", "hay", passable=False)
            world.hay -= 1


def _produce(world: World, animal: Animal, building: Building) -> None:
    known = content().animals[animal.kind]
    animal.facts["days"] = days = animal.facts.get("days", 0) + 1
    if not (creatures.adult(animal) and animal.fed and days >= known.every and not animal.produce):
        return
    if random(world) > animal.happiness / 150:
        return
    animal.facts["days"] = 0
    large = animal.friendship >= content().rules["large_from"]
    chance = (animal.friendship + animal.happiness) / 1200
    name = known.large if large and random(world) < chance else known.product
    if known.taken == "laid":
        _lay(world, places.get(world, building.inside), name, creatures.quality(animal))
    elif known.taken == "dug":
        if building.gate_open and world.weather == "sun" and world.season != "winter":
            _lay(
                world,
                places.get(world, "Farm"),
                name,
                creatures.quality(animal),
                creatures.gate_tile(building),
            )
    else:
        animal.produce = name


def _lay(world: World, place: Place, name: str, quality: int, by: Tile | None = None) -> None:
    tile = creatures.floor_tile(world, place) if by is None else places.near(world, place, by)
    shown = content().items[name].name
    place.things[tile] = Thing(shown, "laid", facts={"item": name, "quality": quality})


@registry.TOUCH("laid")
def pick_up(world: World, tile: Tile, thing: Thing) -> bool:
    """Picks up what an animal laid."""
    name = thing.facts.get("item", thing.name)
    if farmer.give(world, name, 1, thing.facts.get("quality", 0)):
        return False
    del world.here.things[tile]
    farmer.learn(world, "farming", 5)
    registry.DID.call(world, "harvest", name, 1)
    return True


@registry.TEN
def warm(world: World) -> None:
    """Incubators warm for ten minutes."""
    for building in world.buildings:
        _warm(world, building, 10)


@registry.TOUCH("incubator")
def incubate(world: World, tile: Tile, thing: Thing) -> bool:
    """Puts the egg in hand into the incubator."""
    hand = world.farmer.hand
    building = places.inside_of(world, world.farmer.place)
    if hand is None or building is None or "egg" in world.here.facts:
        return False
    for kind, known in content().animals.items():
        if known.hatches is not None and known.hatches == hand.name.removeprefix("Large "):
            if not homes_with(world, building, kind):
                say(world, "This house is full.")
                return True
            farmer.use_up(world)
            world.here.facts["egg"] = {"kind": kind, "minutes": content().rules["incubation"]}
            return True
    return False


def homes_with(world: World, building: Building, kind: str) -> bool:
    """Returns True if a house has room for one more of a kind."""
    return any(each.id == building.id for each in creatures.homes(world, kind))


def _warm(world: World, building: Building, minutes: int) -> None:
    place = world.places.get(building.inside)
    egg = place.facts.get("egg") if place is not None else None
    if place is None or egg is None:
        return
    egg["minutes"] -= minutes
    if egg["minutes"] <= 0 and homes_with(world, building, egg["kind"]):
        del place.facts["egg"]
        creatures.add(world, egg["kind"], egg["kind"].split()[-1], building)


def _kind(text: str) -> str:
    for kind, known in content().animals.items():
        if str(text).lower() in (kind.lower(), (known.shop or kind).lower()):
            return kind
    near = nearest(str(text).title(), content().animals)
    raise InputError(f"there is no animal {text!r}; nearest: {', '.join(near) or 'none'}")


@registry.COMMAND("spawn_animal")
def spawn_animal(world: World, kind: str, name: str | None = None) -> None:
    """Adds an animal to a house with room."""
    found = _kind(kind)
    if houses := creatures.homes(world, found):
        creatures.add(world, found, name or found.split()[-1], houses[0])


@registry.COMMAND("grow_animal")
def grow_animal(world: World, name: str | None = None) -> None:
    """Makes one animal, or all where the farmer is, adult."""
    for animal in world.animals:
        if animal.name == name or (name is None and animal.place == world.farmer.place):
            animal.age = max(animal.age, content().animals[animal.kind].grows)


@registry.COMMAND("animal_friendship")
def animal_friendship(
    world: World, name: str | None = None, value: registry.Whole | None = creatures.FRIENDSHIP
) -> None:
    """Sets the friendship of one animal, or of all; None for the most."""
    most = creatures.FRIENDSHIP
    for animal in world.animals:
        if name is None or animal.name == name:
            animal.friendship = max(0, min(most if value is None else value, most))


@registry.COMMAND("spawn_pet")
def spawn_pet(
    world: World,
    kind: str = "dog",
    breed: registry.Id = 0,
    name: str | None = None,
    x: int | None = None,
    y: int | None = None,
) -> None:
    """Adds a cat or a dog where the farmer is."""
    which = "Cat" if kind.lower() == "cat" else "Dog"
    tile = places.beside(world, x, y)
    label = name or f"{which}_{len(world.pets) + 1}"
    pet = Pet(name=label, place=world.farmer.place, tile=tile, kind=which)
    creatures.put(world, pet, pet.place, tile)
    world.pets.append(pet)
