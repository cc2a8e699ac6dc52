"""The core of the valley: the land, tools, bag, menus, nights, saves, commands."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.stardojo.rules import farmer, maps, night, places, saves
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.rules.world import WAYS, Ground, Thing
from rollout.errors import InputError, UnknownNameError

pytestmark = pytest.mark.heavy

UP, RIGHT, DOWN, LEFT = range(4)
COUNTS = {
    "save_new": (538, 163, 308),
    "save_farming": (510, 144, 307),
    "save_quests": (526, 160, 326),
}


def hold(valley, name):
    """Takes an item of the bag into the hand."""
    bag = valley.world.farmer.bag
    slot = next(n for n, each in enumerate(bag) if each and each.name == name)
    valley.act("choose_item", (slot,))


def stand(valley, tile, facing=UP):
    """Puts the farmer on a tile of this place that nothing blocks."""
    valley.world.here.things.pop(tile, None)
    valley.world.here.ground.pop(tile, None)
    valley.world.farmer.tile, valley.world.farmer.facing = tile, facing


def ahead(valley, thing=None, ground=None):
    """Clears the tile ahead, or puts something there; returns the tile."""
    tile, here = valley.world.farmer.ahead, valley.world.here
    here.things.pop(tile, None)
    here.ground.pop(tile, None)
    if thing:
        here.things[tile] = thing
    if ground:
        here.ground[tile] = ground
    return tile


@pytest.mark.parametrize("save", COUNTS)
def test_saves_hold_what_the_tasks_expect(save):
    valley = Valley(save, 3)
    seen = valley.observe()
    assert (seen["Player"]["Location"], seen["Player"]["Position"]) == ("Farm", {"X": 64, "Y": 15})
    names = [each.name for each in valley.world.places["Farm"].things.values()]
    assert tuple(map(names.count, ("Weeds", "Twig", "Stone"))) == COUNTS[save]
    assert seen["CallBackData"] == {"OnDayStarted": 1}


@pytest.mark.parametrize("exit_to", ["BusStop", "Backwoods", "Forest"])
@pytest.mark.parametrize("layout", ["save", 0, 41])
def test_the_farm_can_be_left(exit_to, layout):
    valley = Valley("save_new", 0, state={"layout": layout})
    assert valley.act("navigate", (exit_to,)) is True
    assert valley.world.here.name == exit_to


def test_every_place_that_shops_residents_and_saves_name_can_be_stood_on():
    for shop in content().shops.values():
        assert maps.plan(shop.map).inside(shop.counter)
    for name, known in content().residents.items():
        assert known.home[0] in maps.names(), name
        for entries in known.days.values():
            assert {each.map for each in entries} <= set(maps.names()), name


@pytest.mark.parametrize("name", maps.names())
def test_ways_lead_onto_free_tiles_of_maps_that_exist(name):
    plan = maps.plan(name)
    for tile, way in (plan.exits | plan.doors).items():
        if way.to != "home":
            there = maps.plan(way.to)
            near = [t for t in places.rings(way.tile, 3) if there.walkable(t)]
            assert near, (name, tile)
    for tile in plan.doors | plan.spots:
        below = (tile[0], tile[1] + 1)
        beside = [below, (tile[0] - 1, tile[1]), (tile[0] + 1, tile[1]), (tile[0], tile[1] - 1)]
        assert any(plan.walkable(each) for each in beside), (name, tile)


actions = st.one_of(
    st.tuples(st.just("move_relative"), st.tuples(*[st.integers(-4, 4)] * 2)),
    st.tuples(st.just("turn"), st.tuples(st.integers(0, 3))),
    st.tuples(st.just("choose_item"), st.tuples(st.integers(0, 11))),
    st.tuples(st.just("choose_option"), st.tuples(*[st.integers(0, 2)] * 3)),
    *(st.just((name, ())) for name in ("use", "interact", "exit_menu", "open_map")),
)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(sorted(COUNTS)), st.lists(actions, max_size=12), st.lists(actions, max_size=12)
)
def test_a_restored_valley_goes_on_exactly(save, before, after):
    one, other = Valley(save, 5), Valley("save_new", 9)
    for name, args in before:
        one.act(name, args)
    kept = one.snapshot()
    other.restore(kept)
    assert other.snapshot() == kept
    for name, args in after:
        assert one.act(name, args) == other.act(name, args)
    assert one.snapshot() == other.snapshot()
    assert json.dumps(one.observe()) == json.dumps(other.observe())


def test_the_same_seed_gives_the_same_valley_and_another_one_does_not():
    def season(seed):
        valley = Valley("save_farming", seed)
        valley.setup("set_time", (2500,))
        for _ in range(3):
            valley.advance(1500)
        return valley.snapshot()

    assert season(1) == season(1) != season(2)


def test_a_parsnip_grows_from_hoe_to_bin():
    valley = Valley("save_new", 0)
    stand(valley, (62, 20))
    tile = ahead(valley)
    valley.setup("add_item_by_name", ("Parsnip Seeds",))
    hold(valley, "Hoe")
    valley.act("use")
    ground = valley.world.here.ground[tile]
    hold(valley, "Parsnip Seeds")
    valley.act("interact")
    assert ground.crop.seed == "Parsnip Seeds"
    assert farmer.count(valley.world, "Parsnip Seeds") == 0
    for _ in range(4):
        hold(valley, "Watering Can")
        valley.world.weather = valley.world.tomorrow = "sun"
        stand(valley, (62, 20))
        valley.act("use")
        assert ground.watered
        sleep(valley)
        valley.act("move_relative", (0, 0))
        valley.setup("warp", ("Farm",))
    stand(valley, (62, 20))
    money = valley.world.farmer.money
    valley.act("interact")
    assert farmer.count(valley.world, "Parsnip") == 1
    valley.world.farmer.tile = (71, 16)
    valley.world.farmer.facing = UP
    hold(valley, "Parsnip")
    valley.act("interact")
    assert farmer.count(valley.world, "Parsnip") == 0
    sleep(valley)
    assert valley.world.farmer.money >= money + 35


def sleep(valley):
    """Goes to bed by the bed's own question."""
    valley.setup("warp_home")
    valley.world.farmer.tile, valley.world.farmer.facing = (8, 9), RIGHT
    valley.act("interact")
    assert valley.observe()["CurrentMenuData"]["dialogues"] == ["Go to sleep for the night?"]
    valley.act("choose_option", (1, 1, 0))


def test_sleeping_begins_a_day_and_restores_energy():
    valley = Valley()
    farmer.tire(valley.world, 100)
    sleep(valley)
    seen = valley.observe()
    assert seen["GameState"]["DayOfMonth"] == 6
    assert seen["GameState"]["Time"] == 600
    assert seen["Player"]["Stamina"] == 270
    assert seen["CallBackData"]["OnDayStarted"] == 2


@pytest.mark.parametrize(
    ("left", "bed", "next_day"),
    [(50, 2400, 270), (50, 2500, 202.5), (50, 2550, 168.75), (260, 2550, 260), (-5, 2200, 136)],
)
def test_exhaustion_and_late_nights_cost_energy(left, bed, next_day):
    valley = Valley()
    valley.world.farmer.energy = 100.0
    farmer.tire(valley.world, 100.0 - left)
    valley.setup("set_time", (bed,))
    night.sleep(valley.world)
    assert valley.world.farmer.energy == next_day
    night.sleep(valley.world)
    assert valley.world.farmer.energy == 270


def test_what_makes_sick_can_be_eaten():
    valley = Valley()
    valley.setup("clear_backpack", ())
    valley.setup("add_item_by_name", ("Void Egg",))
    valley.world.farmer.energy = 100.0
    for name, args in (("choose_item", (0,)), ("interact", ()), ("choose_option", (1, 1, 0))):
        valley.act(name, args)
    assert valley.world.farmer.energy == 62.5


def test_who_stays_up_until_two_passes_out_and_pays():
    valley = Valley()
    valley.setup("set_time", (2550,))
    valley.advance(60 * 8)
    assert valley.world.day == 6
    assert valley.world.farmer.money == 49_000
    assert valley.world.farmer.energy == 135


@pytest.mark.parametrize(
    ("tool", "thing", "gives"),
    [
        ("Pickaxe", Thing("Stone", "stone"), "Stone"),
        ("Axe", Thing("Twig", "twig"), "Wood"),
        ("Axe", Thing("Chest", "chest", facts={"items": []}), "Chest"),
    ],
)
def test_tools_break_what_they_are_for(tool, thing, gives):
    valley = Valley()
    stand(valley, (62, 16))
    tile = ahead(valley, thing)
    hold(valley, tool)
    valley.act("use")
    assert tile not in valley.world.here.things
    assert farmer.count(valley.world, gives) == 1
    assert valley.world.farmer.energy == 268


def test_a_tree_falls_after_ten_blows_and_its_stump_after_five():
    valley = Valley()
    stand(valley, (62, 16))
    tile = ahead(valley, ground=Ground("tree", "Oak", stage=5, blows=40))
    hold(valley, "Axe")
    for _ in range(10):
        valley.act("use")
    assert valley.world.here.ground[tile].stump
    assert farmer.count(valley.world, "Wood") >= 12
    for _ in range(5):
        valley.act("use")
    assert tile not in valley.world.here.ground


def test_a_scythe_cuts_weeds_and_fills_the_silo():
    valley = Valley()
    stand(valley, (62, 16))
    hold(valley, "Scythe")
    for _ in range(40):
        ahead(valley, ground=Ground("grass", stage=4))
        valley.act("use")
    hay = valley.observe()["Farm"]["Buildings"][4]
    assert hay["type"] == "Silo"
    assert 5 < hay["hayNumber"] < 35
    tile = ahead(valley, Thing("Weeds", "weeds"))
    valley.act("use")
    assert tile not in valley.world.here.things


def test_machines_take_time():
    valley = Valley()
    for name, count in (("Furnace", 1), ("Copper Ore", 5), ("Coal", 1)):
        valley.setup("add_item_by_name", (name, count))
    stand(valley, (62, 16))
    ahead(valley)
    for name in ("Furnace", "Copper Ore"):
        hold(valley, name)
        valley.act("interact")
    assert farmer.count(valley.world, "Coal") == 0
    valley.act("interact")
    assert farmer.count(valley.world, "Copper Bar") == 0
    valley.advance(420 * 3)
    valley.act("interact")
    assert farmer.count(valley.world, "Copper Bar") == 1


def test_crafting_takes_what_it_needs_and_only_known_recipes():
    valley = Valley("save_quests")
    valley.setup("add_item_by_name", ("Wood", 60))
    valley.act("craft", ("chest",))
    valley.act("craft", ("Keg",))
    assert farmer.count(valley.world, "Wood") == 60
    valley.act("craft", ("Chest",))
    assert farmer.count(valley.world, "Chest") == 1
    assert farmer.count(valley.world, "Wood") == 10


@pytest.mark.parametrize("faithful", [False, True])
def test_a_chest_counts_from_one_but_from_zero_as_the_mod_does(faithful):
    valley = Valley("save_farming", faithful=faithful)
    valley.world.farmer.tile, valley.world.farmer.facing = (70, 15), UP
    valley.act("interact")
    shown = valley.observe()["CurrentMenuData"]
    assert shown["type"] == "Chest"
    assert shown["ItemsInChest"][1] == {"Name": "Hay", "Quantity": 24}
    valley.act("choose_option", (1, 5, 0))
    taken = "Hay" if faithful else "Speed-Gro"
    assert farmer.count(valley.world, taken) == (5 if faithful else 1)
    assert valley.world.menu is not None
    valley.act("choose_option", (0, 0, 0))
    assert valley.world.menu is None


def test_eating_asks_and_gives_energy():
    valley = Valley()
    farmer.tire(valley.world, 200)
    valley.setup("add_item_by_name", ("Salad",))
    hold(valley, "Salad")
    stand(valley, (62, 16), DOWN)
    ahead(valley)
    valley.act("use")
    valley.act("choose_option", (1, 1, 0))
    assert valley.world.farmer.energy == pytest.approx(70 + 45 * 2.5)


def test_an_open_menu_stops_the_clock():
    valley = Valley()
    valley.act("open_map")
    valley.advance(10_000)
    assert valley.world.ticks == 0


def test_a_walk_takes_time_and_can_be_begun():
    valley = Valley()
    pending = valley.begin("move_relative", (5, 0))
    assert not pending.done
    assert valley.world.farmer.tile == (64, 15)
    with pytest.raises(InputError, match="in progress"):
        valley.snapshot()
    valley.advance(30)
    assert valley.world.farmer.tile == (66, 15)
    valley.advance(100)
    assert pending.done
    assert pending.reply is True
    assert valley.world.farmer.tile == (69, 15)


@pytest.mark.parametrize(
    ("command", "args", "message"),
    [
        ("set_tme", (900,), "set_time"),
        ("set_time", (), "missing"),
        ("set_time", (975,), "HHMM"),
        ("add_item_by_name", ("Parsnipp",), "Parsnip"),
        ("add_item_by_name", ("",), "unknown item"),
        ("add_item_by_name", (" ",), "unknown item"),
        ("warp", ("Frest",), "Forest"),
        ("warp", ("",), "unknown map"),
        ("world_clear", ("debris", " "), "unknown map"),
        ("spawn_animal", ("",), "no animal"),
        ("warp_volcano", (1,), "volcano"),
    ],
)
def test_commands_that_cannot_be_run_say_why(command, args, message):
    with pytest.raises(InputError, match=message):
        Valley().setup(command, args)


def test_unknown_saves_and_actions_are_named():
    with pytest.raises(UnknownNameError, match="save_farming"):
        Valley("save_farm")
    with pytest.raises(UnknownNameError, match="interact"):
        Valley().act("interactt")
    with pytest.raises(InputError, match="2 arguments"):
        Valley().act("move_relative", (1,))


def test_factors_change_the_start():
    state = {"season": "fall", "day": 11, "weather": "rain", "layout": 7, "items": "wood"}
    valley = Valley("save_new", 0, state=state)
    seen = valley.observe()["GameState"]
    assert (seen["Season"], seen["DayOfMonth"], seen["Weather"]) == ("fall", 11, "Raining")
    assert farmer.count(valley.world, "Wood") == 20
    plain = saves.build("save_new", 0, {}).places["Farm"].things
    assert plain.keys() != valley.world.places["Farm"].things.keys()


@pytest.mark.parametrize("name", maps.names())
def test_all_ways_spots_and_counters_of_a_map_can_be_reached(name):
    valley = Valley()
    place, plan = places.get(valley.world, name), maps.plan(name)
    reached, left = set(), [plan.arrival]
    while left:
        tile = left.pop()
        if tile not in reached and (
            tile in plan.exits or places.fixed_free(valley.world, place, tile)
        ):
            reached.add(tile)
            left += [(tile[0] + dx, tile[1] + dy) for dx, dy in WAYS]
    behind = {each.counter for each in content().shops.values() if each.map == name}
    for tile in plan.exits:
        assert tile in reached, f"exit {tile}"
    for tile in (*plan.doors, *plan.spots, *behind):
        assert any((tile[0] + dx, tile[1] + dy) in reached for dx, dy in WAYS), tile
