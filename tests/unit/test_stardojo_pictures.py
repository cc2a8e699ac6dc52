"""Pictures of the valley: what differs in the game differs there, whatever the size and the map."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.stardojo.pictures import draw, scene
from bridges.stardojo.pictures.atlas import Atlas, tint
from bridges.stardojo.pictures.paint import color, paint, table
from bridges.stardojo.pictures.sprites import Sprites, icons
from bridges.stardojo.rules import maps, places, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.rules.world import (
    Animal,
    Building,
    Crop,
    Furniture,
    Ground,
    Item,
    Menu,
    Monster,
    Pet,
    Resident,
    Thing,
)
from rollout.errors import ConfigError

pytestmark = pytest.mark.heavy

SIZE = 320, 180
HERE, NEAR = (40, 30), (42, 31)


@pytest.fixture(scope="module")
def saved():
    """A valley in the middle of an empty field, as a snapshot."""
    valley = Valley("save_farming", 1)
    farm, me = valley.world.here, valley.world.farmer
    farm.things.clear()
    farm.ground.clear()
    me.tile, me.bag[5] = HERE, Item("Parsnip", 3)
    return valley, valley.snapshot()


@pytest.fixture
def valley(saved):
    saved[0].restore(saved[1])
    return saved[0]


def put(thing=None, ground=None, tile=NEAR):
    def change(world):
        if thing:
            world.here.things[tile] = thing
        if ground:
            world.here.ground[tile] = ground

    return change


def field(**values):
    return lambda world: [setattr(world, name, value) for name, value in values.items()]


def mine(**values):
    return lambda world: [setattr(world.farmer, name, value) for name, value in values.items()]


def menu(kind, **facts):
    return lambda world: setattr(world, "menu", Menu(kind, facts))


def dirt(phase=None, *, seed="Parsnip Seeds", **values):
    crop = None if phase is None else Crop(seed, phase)
    return put(ground=Ground("dirt", crop=crop, **values))


def resident(name, **values):
    def change(world):
        world.residents[name] = Resident(name=name, place="Farm", tile=NEAR)
        for key, value in values.items():
            setattr(world.residents[name], key, value)

    return change


def machine(**facts):
    return put(Thing("Furnace", "machine", facts=facts))


def chest(items):
    def change(world):
        world.here.things[NEAR] = Thing("Chest", "chest", facts={"items": items})
        world.menu = Menu("chest", {"tile": NEAR})

    return change


DIFFERENT = {
    "ground": [
        dirt(),
        dirt(watered=True),
        dirt(fertilizer="Speed-Gro"),
        dirt(0),
        dirt(0, watered=True),
        dirt(1),
        dirt(2),
        dirt(3),
        dirt(4),
        dirt(4, seed="Kale Seeds"),
        put(ground=Ground("dirt", crop=Crop("Parsnip Seeds", 2, dead=True))),
        put(ground=Ground("grass", stage=4)),
        put(ground=Ground("grass", stage=1)),
        put(ground=Ground("floor", "Wood Floor")),
        put(ground=Ground("floor", "Stone Floor")),
    ],
    "trees": [
        *(put(ground=Ground("tree", "Oak", stage=n)) for n in range(6)),
        put(ground=Ground("tree", "Pine", stage=5)),
        put(ground=Ground("tree", "Oak", stage=5, stump=True)),
        *(put(ground=Ground("fruit_tree", "Apple Sapling", stage=4, fruit=n)) for n in range(4)),
        put(ground=Ground("fruit_tree", "Cherry Sapling", stage=4, fruit=1)),
    ],
    "things": [
        put(Thing("Weeds", "weeds")),
        put(Thing("Twig", "twig")),
        put(Thing("Stone", "stone")),
        *(
            put(Thing("Stone", "node", facts={"node": each}))
            for each in content().nodes
            if each != "Stone (debris)"
        ),
        put(Thing("Chest", "chest")),
        put(Thing("Chest", "treasure")),
        put(Thing("Ladder", "ladder")),
        put(Thing("Gate", "fence")),
        put(Thing("Wood Fence", "fence")),
        put(Thing("Stone Fence", "fence")),
        put(Thing("Hay", "hay")),
        put(Thing("Torch", "placed")),
        put(Thing("Egg", "laid", facts={"item": "Egg"})),
        put(Thing("Daffodil", "forage")),
        put(Thing("Leek", "forage")),
        lambda world: world.here.drops.update({NEAR: [Item("Wood", 2)]}),
        lambda world: world.here.drops.update({NEAR: [Item("Sap", 2)]}),
    ],
    "machines": [
        machine(),
        machine(product="Iron Bar", minutes=30),
        machine(product="Iron Bar", minutes=0),
        machine(product="Gold Bar", minutes=0),
        put(Thing("Keg", "machine")),
    ],
    "farmer": [
        *(mine(facing=n) for n in (0, 1, 3)),
        *(mine(slot=n) for n in (1, 2, 3, 5)),
        mine(tile=(41, 30)),
        mine(money=501),
        mine(energy=100.0),
        mine(energy=20.0),
        mine(health=50),
        lambda world: setattr(world.farmer.bag[5], "count", 4),
        lambda world: setattr(world.farmer.bag[5], "quality", 2),
    ],
    "day": [
        field(ticks=420),
        field(ticks=42 * 60 * 13),
        field(ticks=42 * 60 * 16),
        field(day=3),
        field(season="summer"),
        field(season="fall"),
        field(season="winter"),
        field(year=2),
        field(weather="rain"),
        field(weather="storm"),
        field(weather="snow"),
    ],
    "beings": [
        *(resident(name) for name in content().residents),
        resident("Robin", facing=0),
        resident("Robin", facing=1),
        resident("Robin", facing=3),
        *(
            lambda world, n=name: world.here.monsters.append(Monster(n, *NEAR, 5, {"up": True}))
            for name in content().monsters
        ),
        *(
            lambda world, k=kind, a=age: world.animals.append(
                Animal(name="x", place="Farm", tile=NEAR, kind=k, home="", age=a)
            )
            for kind in content().animals
            for age in (0, 99)
            if (kind, age) != ("Dinosaur", 0)
        ),
        *(
            lambda world, k=kind: world.pets.append(Pet(name="x", place="Farm", tile=NEAR, kind=k))
            for kind in ("Cat", "Dog")
        ),
    ],
    "buildings": [
        *(
            lambda world, k=kind: world.buildings.append(
                Building(k, (38, 32), places.size(k), "new")
            )
            for kind in content().buildings
        ),
        lambda world: world.buildings.append(
            Building("Coop", (38, 32), (6, 3), "new", gate_open=True)
        ),
        lambda world: world.buildings.append(Building("Coop", (38, 32), (6, 3), "new", days=2)),
        lambda world: world.buildings.append(
            Building("Pet Bowl", (38, 32), (2, 2), "new", full=True)
        ),
    ],
    "furniture": [
        lambda world, n=name: world.here.furniture.append(Furniture(n, (38, 31), (2, 2)))
        for name in (
            "Bed",
            "Double Bed",
            "Budget TV",
            "Oak Table",
            "Red Rug",
            "Calendar",
            "House Plant",
            "Oak Dresser",
        )
    ],
    "menus": [
        menu("dialogue", pages=["Good morning."], responses=[], speaker=""),
        menu("dialogue", pages=["Good evening."], responses=[], speaker=""),
        menu("dialogue", pages=["Good morning."], responses=[], speaker="Robin"),
        menu("dialogue", pages=["Sleep?"], responses=[["Yes", "Yes"]], then="", about={}),
        menu("shop", shop="SeedShop"),
        menu("shop", shop="Blacksmith"),
        menu("journal"),
        menu("journal", quest=0),
        menu("map"),
        menu("upgrade"),
        menu("animals"),
        menu("cooking"),
        menu("letter", text="Come and see me."),
        menu("letter", text="Do not come."),
        chest([]),
        chest([["Wood", 3, 0]]),
        menu("bundles", room="Pantry"),
        menu("elevator"),
        menu("level", names=["Rancher", "Tiller"]),
        menu("joja"),
        menu("museum"),
        menu("geode"),
    ],
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_different_states_give_different_pictures(saved, kind):
    valley, snapshot = saved
    seen = {}
    for number, change in enumerate([lambda world: None, *DIFFERENT[kind]]):
        valley.restore(snapshot)
        change(valley.world)
        picture = hash(draw(valley, *SIZE).tobytes())
        assert picture not in seen, f"{kind}: {number} looks like {seen.get(picture)}"
        seen[picture] = number


def test_every_phase_of_every_crop_is_told_apart():
    sprites = Sprites(Atlas(16))
    for seed, plant in content().crops.items():
        phases = range(len(plant.phases) + 1)
        grown = [sprites.crop(Crop(seed, n), Ground("dirt", crop=Crop(seed, n))) for n in phases]
        assert len(set(grown)) == len(grown), seed


def test_every_item_has_an_icon_of_its_own():
    shapes = table("icons")["shapes"]
    seen = {}
    for name, (shape, *colors) in icons().items():
        picture = paint(shapes[shape], (1, 1), 16, colors).tobytes()
        assert picture not in seen, f"{name} looks like {seen.get(picture)}"
        seen[picture] = name
    assert len(seen) == len(content().items)


def test_drawing_changes_nothing_and_repeats(valley):
    before = valley.snapshot()
    first, other = draw(valley, *SIZE), draw(valley, 64, 64)
    assert valley.snapshot() == before
    assert (draw(valley, *SIZE) == first).all()
    assert other.shape == (64, 64, 3)


TREES = ("Oak", "Pine", "Maple", "Mahogany")
ROW = st.tuples(st.sampled_from((*TREES, "Robin", "Pam", "Linus")), st.integers(38, 43))


@given(row=st.lists(ROW, min_size=2, max_size=6))
@settings(max_examples=15, deadline=None)
def test_what_was_drawn_before_does_not_matter(saved, row):
    valley, snapshot = saved

    def drawn(what):
        valley.restore(snapshot)
        for name, x in what:
            if name in TREES:
                put(ground=Ground("tree", name, stage=5), tile=(x, 31))(valley.world)
            else:
                resident(name, tile=(x, 31))(valley.world)
        return draw(valley, *SIZE)

    scene._atlas.cache_clear()
    scene._stage.cache_clear()
    first = drawn(row)
    scene._atlas.cache_clear()
    scene._stage.cache_clear()
    for each in reversed(row):
        drawn([each])
    assert (drawn(row) == first).all()


@pytest.mark.parametrize(("x", "y"), [(0, -1), (1, -1), (-1, -1), (0, 1), (1, 0), (0, -2)])
def test_a_name_does_not_cover_the_farmer(valley, monkeypatch, x, y):
    at = HERE[0] + x, HERE[1] + y
    resident("Caroline", tile=at)(valley.world)
    view = scene.View(scene.Stage(1280, 720), valley.world)
    left, top = view.at(HERE)
    part = slice(top - 48, top + 64), slice(left, left + 64)
    named = draw(valley, 1280, 720)
    monkeypatch.setattr(Sprites, "label", lambda self, *_: [(self.panel(1, 1, "ink", ""), 0, 0)])
    bare = draw(valley, 1280, 720)
    assert (named[part] == bare[part]).all()
    assert (named != bare).any()


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (84, 84)])
@pytest.mark.parametrize("at", [HERE, (40, 61), (40, 8)])
def test_the_toolbar_covers_no_tile(valley, at, width, height):
    valley.world.farmer.tile = at
    stage = scene.Stage(width, height)
    view = scene.View(stage, valley.world)
    bare = draw(valley, width, height).astype(int)
    row = range((width // 4) // stage.side, (width * 3 // 4) // stage.side)
    for y in {view.first[1], view.last[1] - 1}:
        for x in row:
            tile = view.first[0] + x, y
            valley.world.here.ground[tile] = Ground("dirt", watered=True)
            left, top = view.at(tile)
            seen = (
                slice(max(0, top), min(stage.height, top + stage.side)),
                slice(left, left + stage.side),
            )
            changed = np.abs(draw(valley, width, height) - bare)[seen].any(axis=2)
            assert changed.mean() > 0.5, tile
            del valley.world.here.ground[tile]


def test_what_is_out_of_sight_is_not_drawn(valley):
    first = draw(valley, *SIZE)
    put(Thing("Chest", "chest"), tile=(70, 60))(valley.world)
    valley.world.residents["Robin"].place = "Mountain"
    assert (draw(valley, *SIZE) == first).all()


@pytest.mark.parametrize(("width", "height"), [(16, 16), (84, 84), (300, 60), (60, 200)])
@pytest.mark.parametrize("shown", ["farm", "shop", "dialogue"])
def test_any_size(valley, width, height, shown):
    if shown == "shop":
        menu("shop", shop="SeedShop")(valley.world)
    elif shown == "dialogue":
        registry.ask(valley.world, "Sleep? " * 9, [("Yes", "Yes"), ("No", "No")], "sleep")
    picture = draw(valley, width, height)
    assert picture.shape == (height, width, 3)
    assert picture.dtype == np.uint8
    assert picture.std() > 5


@pytest.mark.parametrize("key", [*maps.names(), "UndergroundMine1", "UndergroundMine40",
                                 "UndergroundMine85", "UndergroundMine121"])  # fmt: skip
def test_every_map_can_be_drawn(valley, key):
    places.warp(valley.world, key)
    valley.world.menu = None
    picture = draw(valley, 160, 90)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20
    # The farmer is in sight: without a farmer's hat the picture is another one.
    x, y = valley.world.farmer.tile
    valley.world.farmer.tile = x, y + 1
    assert (draw(valley, 160, 90) != picture).any()


@given(st.lists(st.tuples(st.integers(-30, 50), st.integers(-30, 40)), max_size=5))
@settings(max_examples=25, deadline=None)
def test_sprites_are_cut_at_the_edges(at):
    atlas = Atlas(16)
    image = paint("o red 8 8 6 6; O white 8 8 2 2", (1, 1), 16)
    number = atlas.sprite("dot", lambda: image)
    frame = np.full((30, 40 * 3), 90, np.uint8)
    atlas.lay(frame, [(number, x, y) for x, y in at])
    wide = np.full((30 + 80, 40 + 80, 3), 90, int)
    for x, y in at:
        part = wide[40 + y : 56 + y, 40 + x : 56 + x] if y >= -40 and x >= -40 else wide[:0]
        alpha = image[..., 3:].astype(int)
        part[:] = np.where(
            alpha == 255, image[..., :3], image[..., :3] + (part * (256 - alpha) >> 8)
        )
    expected = wide[40:70, 40:80]
    assert np.abs(frame.reshape(30, 40, 3).astype(int) - expected).max() <= 1


def test_light_multiplies():
    frame = np.full((2, 6), 200, np.uint8)
    tint(frame, (128, 256, 64))
    assert frame.reshape(2, 2, 3)[0, 0].tolist() == [100, 200, 50]


def test_wrong_shapes_are_refused():
    with pytest.raises(ConfigError, match="color"):
        color("redd")
    with pytest.raises(ConfigError, match="expected o, a, r, p or l"):
        paint("x red 1 2 3 4", (1, 1), 16)
