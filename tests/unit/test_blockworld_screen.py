"""Screens: clicks with a cursor that the camera moves, recipes, furnaces; nothing is lost."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.blockworld.rules import world
from bridges.blockworld.rules.items import BUTTONS, FURNACE_FIRE, HAND, NUMBER, RECIPES, TABLE
from bridges.blockworld.rules.tick import advance
from tests.unit.blockworld_scenes import block, control, flat_world, give, index, put

pytestmark = [pytest.mark.heavy]

PLAYING = np.ones(1, np.uint8)
X = Z = 32
FEET = 12
FRONT = index(X, FEET + 1, Z + 2)
NAMES = {number: name for name, number in NUMBER.items()}


def play(worlds, keys=0, ticks=1, pitch=0.0, yaw=0.0):
    advance(worlds, control(keys, pitch, yaw), PLAYING, ticks, 0, 1)


def click(worlds, column, row, keys=world.ATTACK):
    """Moves the cursor to the middle of a cell by turning the camera, clicks, and lets go."""
    w = worlds[0]
    yaw = (column + 0.5 - float(w["cursor_x"])) * 15
    pitch = (row + 0.5 - float(w["cursor_y"])) * 15
    play(worlds, keys, yaw=yaw, pitch=pitch)
    play(worlds)


def cell_of(where, name):
    """Column and row of a recipe's button."""
    (button,) = (n for n, r in enumerate(BUTTONS[where]) if r >= 0 and RECIPES[r].name == name)
    return button % 9, button // 9


def slot_cell(slot):
    return (slot, 6) if slot < 9 else ((slot - 9) % 9, 3 + (slot - 9) // 9)


def inventory_open():
    worlds = flat_world()
    play(worlds, world.INVENTORY)
    play(worlds)
    assert worlds[0]["screen"] == world.INVENTORY_SCREEN
    return worlds


def station_open(name):
    worlds = flat_world()
    put(worlds, X, FEET + 1, Z + 2, name)
    if name == "furnace":
        worlds[0]["furnaces"][0] = FRONT
    play(worlds, world.USE)
    play(worlds)
    return worlds


def stack(worlds, slot):
    return NAMES[int(worlds[0]["item"][slot])], int(worlds[0]["count"][slot])


def carried(worlds):
    return NAMES[int(worlds[0]["carried"])], int(worlds[0]["carried_count"])


def bags(worlds):
    """Items in the bags by name."""
    found = Counter()
    for item, count in zip(worlds[0]["item"], worlds[0]["count"], strict=True):
        if item:
            found[NAMES[int(item)]] += int(count)
    return dict(found)


def everything(worlds):
    """Items anywhere in the world, by name and wear."""
    w = worlds[0]
    places = [
        *zip(w["item"], w["count"], w["wear"], strict=True),
        *(
            (item, int(item > 0), wear)
            for item, wear in zip(w["armour"], w["armour_wear"], strict=True)
        ),
        (w["off_item"], w["off_count"], w["off_wear"]),
        (w["carried"], w["carried_count"], w["carried_wear"]),
        *((i, c, 0) for i, c in zip(w["furnace_in"], w["furnace_in_count"], strict=True)),
        *((i, c, 0) for i, c in zip(w["furnace_fuel"], w["furnace_fuel_count"], strict=True)),
        *((i, c, 0) for i, c in zip(w["furnace_out"], w["furnace_out_count"], strict=True)),
        *(
            (i, c * (i > 0), r)
            for i, c, r in zip(w["d_item"], w["d_count"], w["d_wear"], strict=True)
        ),
    ]
    found = Counter()
    for item, count, wear in places:
        if count:
            found[NAMES[int(item)], int(wear)] += int(count)
    return found


def test_the_inventory_key_opens_and_closes():
    worlds = inventory_open()
    assert (worlds[0]["cursor_x"], worlds[0]["cursor_y"]) == (4.5, 3.5)
    play(worlds, world.INVENTORY, 5)
    assert worlds[0]["screen"] == world.NO_SCREEN


def test_the_camera_moves_the_cursor_and_not_the_player():
    worlds = inventory_open()
    play(worlds, world.FORWARD | world.JUMP, 10, pitch=15.0, yaw=-30.0)
    w = worlds[0]
    assert (w["cursor_x"], w["cursor_y"]) == (2.5, 4.5)
    assert (w["x"], w["y"], w["z"], w["yaw"], w["pitch"]) == (32.5, FEET, 32.5, 0, 0)
    play(worlds, yaw=1e6, pitch=-1e6)
    assert 8.9 < w["cursor_x"] < 9
    assert w["cursor_y"] == 0


def test_left_clicks_take_put_join_and_swap():
    worlds = inventory_open()
    give(worlds, 0, "dirt", 40)
    give(worlds, 10, "dirt", 50)
    give(worlds, 11, "iron_sword", 1, 9)
    click(worlds, *slot_cell(0))
    assert carried(worlds) == ("dirt", 40)
    assert stack(worlds, 0) == ("air", 0)
    click(worlds, *slot_cell(10))
    assert stack(worlds, 10) == ("dirt", 64)
    assert carried(worlds) == ("dirt", 26)
    click(worlds, *slot_cell(11))
    assert stack(worlds, 11) == ("dirt", 26)
    assert carried(worlds) == ("iron_sword", 1)
    assert worlds[0]["carried_wear"] == 9
    play(worlds, world.INVENTORY)
    assert stack(worlds, 0) == ("iron_sword", 1)
    assert worlds[0]["wear"][0] == 9


def test_right_clicks_take_half_and_put_one():
    worlds = inventory_open()
    give(worlds, 4, "dirt", 7)
    click(worlds, *slot_cell(4), world.USE)
    assert carried(worlds) == ("dirt", 4)
    assert stack(worlds, 4) == ("dirt", 3)
    click(worlds, *slot_cell(20), world.USE)
    click(worlds, *slot_cell(20), world.USE)
    assert carried(worlds) == ("dirt", 2)
    assert stack(worlds, 20) == ("dirt", 2)


def test_sneak_clicks_send_stacks_where_they_belong():
    worlds = inventory_open()
    for slot, name, count in ((0, "dirt", 5), (1, "iron_boots", 1), (9, "shield", 1)):
        give(worlds, slot, name, count)
    for slot in (0, 1, 9):
        click(worlds, *slot_cell(slot), world.ATTACK | world.SNEAK)
    assert stack(worlds, 9) == ("air", 0)
    assert stack(worlds, 10) == ("dirt", 5)  # the shield was still at 9
    assert worlds[0]["armour"][3] == NUMBER["iron_boots"]
    assert worlds[0]["off_item"] == NUMBER["shield"]
    click(worlds, 3, 2, world.ATTACK | world.SNEAK)
    assert worlds[0]["armour"][3] == 0
    assert stack(worlds, 0) == ("iron_boots", 1)


def test_armour_goes_only_into_its_own_place():
    worlds = inventory_open()
    give(worlds, 0, "iron_helmet")
    click(worlds, *slot_cell(0))
    click(worlds, 1, 2)
    assert carried(worlds) == ("iron_helmet", 1)
    click(worlds, 0, 2)
    assert carried(worlds) == ("air", 0)
    assert worlds[0]["armour"][0] == NUMBER["iron_helmet"]


def test_crafting_by_hand_takes_any_log_and_counts_what_is_made():
    worlds = inventory_open()
    give(worlds, 0, "spruce_log", 1)
    give(worlds, 1, "birch_log", 1)
    click(worlds, *cell_of(HAND, "oak_planks"))
    assert bags(worlds) == {"oak_planks": 4, "spruce_log": 1}  # birch has the lower number
    click(worlds, *cell_of(HAND, "oak_planks"))
    click(worlds, *cell_of(HAND, "oak_planks"))  # nothing is left
    assert bags(worlds) == {"oak_planks": 8}
    click(worlds, *cell_of(HAND, "crafting_table"))
    assert bags(worlds) == {"oak_planks": 4, "crafting_table": 1}
    made = worlds[0]["made"]
    assert (made[NUMBER["oak_planks"]], made[NUMBER["crafting_table"]]) == (8, 1)


def test_a_right_click_makes_as_many_as_possible():
    worlds = inventory_open()
    give(worlds, 0, "oak_log", 5)
    click(worlds, *cell_of(HAND, "oak_planks"), world.USE)
    assert bags(worlds) == {"oak_planks": 20}


def test_nothing_is_made_without_room_or_recipe():
    worlds = inventory_open()
    for slot in range(36):
        give(worlds, slot, "oak_log", 64)
    click(worlds, *cell_of(HAND, "oak_planks"))
    assert bags(worlds) == {"oak_log": 36 * 64}
    give(worlds, 0, "air", 0)
    worlds[0]["recipes"] = ~(1 << 0) & 0xFFFFFFFF
    click(worlds, *cell_of(HAND, "oak_planks"))
    assert bags(worlds) == {"oak_log": 35 * 64}


def test_tools_are_made_at_a_table_only():
    worlds = station_open("crafting_table")
    assert worlds[0]["screen"] == world.TABLE_SCREEN
    give(worlds, 0, "oak_planks", 3)
    give(worlds, 1, "stick", 2)
    click(worlds, *cell_of(TABLE, "wooden_pickaxe"))
    assert bags(worlds) == {"wooden_pickaxe": 1}
    shown = {RECIPES[r].name for r in BUTTONS[HAND] if r >= 0}
    assert shown == {"oak_planks", "stick", "crafting_table", "torch"}


def test_a_furnace_cooks_in_200_ticks_and_coal_lasts_for_eight():
    worlds = station_open("furnace")
    assert worlds[0]["screen"] == world.FURNACE_SCREEN
    give(worlds, 0, "beef", 10)
    give(worlds, 1, "coal", 1)
    click(worlds, *cell_of(FURNACE_FIRE, "cooked_beef"), world.USE)  # all of it
    click(worlds, *slot_cell(1))
    play(worlds, yaw=(1.5 - float(worlds[0]["cursor_x"])) * 15, pitch=-60.0)
    play(worlds, world.ATTACK, 200)
    w = worlds[0]
    assert (w["furnace_in_count"][0], w["furnace_out_count"][0]) == (9, 1)
    assert block(worlds, X, FEET + 1, Z + 2) == "lit_furnace"
    assert w["n_lamps"] == 1
    play(worlds, 0, 1400)
    assert (w["furnace_in_count"][0], w["furnace_out_count"][0]) == (2, 8)
    play(worlds, 0, 300)
    assert (w["furnace_in_count"][0], w["furnace_out_count"][0]) == (2, 8)
    assert block(worlds, X, FEET + 1, Z + 2) == "furnace"
    assert w["n_lamps"] == 0
    assert w["made"][NUMBER["cooked_beef"]] == 0
    click(worlds, 2, 2, world.ATTACK | world.SNEAK)
    assert bags(worlds) == {"cooked_beef": 8}
    assert w["made"][NUMBER["cooked_beef"]] == 8


def test_fuel_is_not_lit_without_something_to_cook():
    worlds = station_open("furnace")
    give(worlds, 0, "stick", 2)
    click(worlds, *slot_cell(0), world.ATTACK | world.SNEAK)
    play(worlds, 0, 10)
    assert worlds[0]["furnace_fuel_count"][0] == 2
    give(worlds, 0, "birch_log", 1)
    click(worlds, *slot_cell(0), world.ATTACK | world.SNEAK)
    assert worlds[0]["furnace_in"][0] == NUMBER["birch_log"]
    play(worlds, 0, 230)
    assert worlds[0]["furnace_out"][0] == NUMBER["charcoal"]


def test_a_furnace_takes_nothing_that_is_worn():
    worlds = station_open("furnace")
    give(worlds, 0, "wooden_pickaxe", 1, 30)
    click(worlds, *slot_cell(0))
    click(worlds, 1, 2)
    assert carried(worlds) == ("wooden_pickaxe", 1)  # it would come out as new


@pytest.mark.parametrize("name", ["crafting_table", "furnace"])
def test_a_screen_closes_when_its_block_is_gone_or_far(name):
    worlds = station_open(name)
    put(worlds, X, FEET + 1, Z + 2, "air")
    play(worlds)
    assert worlds[0]["screen"] == world.NO_SCREEN
    worlds = station_open(name)
    worlds[0]["z"] -= 8
    play(worlds)
    assert worlds[0]["screen"] == world.NO_SCREEN


def test_opening_a_screen_stops_digging():
    worlds = flat_world()
    put(worlds, X, FEET + 1, Z + 2, "stone")
    play(worlds, world.ATTACK, 10)
    play(worlds, world.ATTACK | world.INVENTORY)
    assert worlds[0]["dig_at"] == -1
    play(worlds, world.ATTACK, 200)
    assert block(worlds, X, FEET + 1, Z + 2) == "stone"


CLICKS = st.tuples(
    st.integers(0, 8),
    st.integers(0, 6),
    st.sampled_from(
        [world.ATTACK, world.USE, world.ATTACK | world.SNEAK, world.INVENTORY, world.USE]
    ),
)
STACKS = st.tuples(
    st.integers(0, 35),
    st.sampled_from(["dirt", "beef", "coal", "oak_log", "shield", "iron_boots", "wooden_axe"]),
    st.integers(1, 64),
    st.integers(0, 3),
)


@settings(max_examples=60)
@given(
    st.sampled_from(["none", "crafting_table", "furnace"]),
    st.lists(STACKS, max_size=36),
    st.lists(CLICKS, max_size=40),
)
def test_no_click_makes_or_destroys_anything(station, stacks, clicks):
    worlds = inventory_open() if station == "none" else station_open(station)
    worlds[0]["recipes"] = 0  # buttons and fire are left out
    for slot, name, count, wear in stacks:
        single = name in {"shield", "iron_boots", "wooden_axe"}
        give(worlds, slot, name, 1 if single else count, wear if single else 0)
    before = everything(worlds)
    for column, row, keys in clicks:
        click(worlds, column, row, keys)
        assert everything(worlds) == before
        if worlds[0]["screen"] == world.NO_SCREEN:
            break


@settings(max_examples=30)
@given(st.lists(CLICKS, max_size=30), st.integers(0, 3))
def test_feeding_a_furnace_keeps_everything(clicks, logs):
    worlds = station_open("furnace")
    for slot, (name, count) in enumerate(
        [("beef", 3), ("sand", 64), ("birch_log", logs), ("iron_ore", 2)]
    ):
        if count:
            give(worlds, slot, name, count)
    before = everything(worlds)
    for column, row, keys in clicks:
        worlds[0]["furnace_fuel"], worlds[0]["furnace_fuel_count"] = 0, 0
        if row == 2 and column == 1:
            continue  # logs would burn
        if keys & world.SNEAK and row >= 3:
            continue
        click(worlds, column, row, keys)
        assert everything(worlds) == before
        if worlds[0]["screen"] == world.NO_SCREEN:
            break
