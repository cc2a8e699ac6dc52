"""Vitals, inventory and compass: what the player knows of itself; and the list of observations."""

import numpy as np
import pytest
from gymnasium import spaces

from bridges.blockworld import options
from bridges.blockworld.rules import world
from bridges.blockworld.rules.items import ITEMS, NUMBER
from bridges.blockworld.rules.status import COMPASS, PLACES, SCREEN, VITALS
from bridges.blockworld.sense_options import SenseOptions
from bridges.blockworld.senses import OBSERVATIONS
from rollout.api import allocate, check_columns, is_fixed
from rollout.errors import ConfigError
from tests.unit.blockworld_scenes import MIDDLE, flat_world, give

pytestmark = [pytest.mark.heavy]

WITHOUT_PICTURE = [name for name in OBSERVATIONS if name != "rgb"]


def sense(name, worlds):
    options = SenseOptions()
    space = OBSERVATIONS[name].space(options)
    buffers = allocate(spaces.Dict(space), len(worlds))
    for buffer in buffers.values():
        buffer[...] = 1
    OBSERVATIONS[name].fill(worlds, buffers, options, 0, len(worlds))
    for key, leaf in space.items():
        assert all(leaf.contains(row) for row in buffers[key]), (key, buffers[key])
    return {key: array[0] for key, array in buffers.items()}


def vitals(worlds):
    return dict(zip(VITALS, sense("vitals", worlds)["vitals"].tolist(), strict=True))


def screen(worlds):
    values = sense("inventory", worlds)["inventory/screen"].tolist()
    return dict(zip(SCREEN, values, strict=True))


def places(worlds):
    values = sense("privileged_compass", worlds)["privileged_compass"].tolist()
    return dict(zip(PLACES, values, strict=True))


def test_the_names_are_those_of_the_bridge():
    assert tuple(OBSERVATIONS) == options.OBSERVATIONS
    for name, observation in OBSERVATIONS.items():
        assert observation.name == name
        assert observation.privileged == name.startswith("privileged")
        assert observation.doc


@pytest.mark.parametrize("name", OBSERVATIONS)
@pytest.mark.parametrize(
    "options",
    [
        SenseOptions(),
        SenseOptions(rgb_width=5, rgb_height=3, ray_rows=1, ray_columns=2, grid_size=4),
        SenseOptions(entity_slots=1),
    ],
)
def test_spaces_become_columns(name, options):
    space = OBSERVATIONS[name].space(options)
    assert all(is_fixed(leaf) for leaf in space.values())
    flat = spaces.Dict(space)
    check_columns(flat, allocate(flat, 3), (3,))


def test_no_two_observations_share_a_key():
    keys = [key for o in OBSERVATIONS.values() for key in o.space(SenseOptions())]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ray_rows": 0}, "ray_rows must be a whole number from 1 to 64, got 0"),
        ({"ray_columns": -8}, "from 1 to 256, got -8"),
        ({"grid_size": 0}, "from 3 to 63, got 0"),
        ({"grid_size": 2.5}, "a whole number"),
        ({"entity_slots": 17}, "from 1 to 16, got 17"),
        ({"ray_fov": 0.0}, "ray_fov must be a number from 1.0"),
        ({"ray_reach": float("nan")}, "got nan"),
        ({"rgb_width": 0}, "from 1 to 4096"),
        ({"ray_rows": True}, "got True"),
        ({"ray_rows": "4"}, "got '4'"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        SenseOptions(**options)


@pytest.mark.parametrize("name", WITHOUT_PICTURE)
def test_only_the_worlds_asked_for_are_written(name):
    worlds = np.repeat(flat_world(), 4)
    space = spaces.Dict(OBSERVATIONS[name].space(SenseOptions()))
    buffers = allocate(space, 4)
    for buffer in buffers.values():
        buffer[...] = 7
    OBSERVATIONS[name].fill(worlds, buffers, SenseOptions(), 1, 3)
    for buffer in buffers.values():
        assert (buffer[[0, 3]] == 7).all()
        np.testing.assert_array_equal(buffer[1], buffer[2])
        assert (buffer[1] != 7).any()


@pytest.mark.parametrize("name", WITHOUT_PICTURE)
def test_looking_changes_nothing(name):
    worlds = flat_world()
    before = worlds.tobytes()
    sense(name, worlds)
    assert worlds.tobytes() == before


def test_vitals_are_shares():
    worlds = flat_world()
    w = worlds[0]
    w["health"], w["food"], w["saturation"], w["air"] = 5, 10, 5, 75
    w["armour"][:] = [NUMBER[f"iron_{p}"] for p in ("helmet", "chestplate", "leggings", "boots")]
    w["fire_ticks"], w["sneaking"], w["in_water"] = 3, 1, 1
    assert vitals(worlds) == pytest.approx(
        {
            "health": 0.25,
            "food": 0.5,
            "saturation": 0.25,
            "air": 0.25,
            "armour": 0.75,
            "on_ground": 1,
            "in_water": 1,
            "sneaking": 1,
            "sprinting": 0,
            "burning": 1,
            "asleep": 0,
            "attack_strength": 1,
            "dig_share": 0,
            "daylight": 1,
            "raining": 0,
        }
    )


def test_vitals_stay_in_their_space_at_the_worst():
    worlds = flat_world()
    w = worlds[0]
    w["health"], w["saturation"], w["air"], w["dead"] = -3, 25, -20, 1
    shown = vitals(worlds)
    assert (shown["health"], shown["saturation"], shown["air"]) == (0, 1, 0)


@pytest.mark.parametrize(("held", "ticks"), [(None, 5.0), ("iron_sword", 12.5), ("iron_axe", 22.2)])
def test_the_strength_of_a_blow_grows_with_the_time_of_the_tool(held, ticks):
    worlds = flat_world()
    if held is not None:
        give(worlds, 4, held)
    worlds[0]["selected"] = 4
    worlds[0]["blow_ticks"] = ticks / 2
    assert vitals(worlds)["attack_strength"] == pytest.approx(0.5, abs=0.01)


def test_digging_shows_only_while_a_block_is_being_broken():
    worlds = flat_world()
    worlds[0]["dig_share"] = 0.4
    assert vitals(worlds)["dig_share"] == 0
    worlds[0]["dig_at"] = 99
    assert vitals(worlds)["dig_share"] == pytest.approx(0.4)


def test_it_is_bright_by_day_dark_by_night_and_dimmer_in_rain():
    def daylight(time, weather=world.CLEAR):
        worlds = flat_world()
        worlds[0]["time"], worlds[0]["weather"] = time, weather
        return vitals(worlds)["daylight"]

    assert daylight(6_000) == 1
    assert 0.9 < daylight(1_000) <= 1
    assert daylight(18_000) == 0
    assert 0 < daylight(13_000) < 0.5
    assert daylight(6_000, world.RAIN) == pytest.approx(0.72)
    assert daylight(6_000, world.THUNDER) == pytest.approx(0.46)


def test_inventory_lists_bags_armour_and_off_hand():
    worlds = flat_world()
    give(worlds, 0, "stone_axe")
    give(worlds, 35, "cobblestone", 64)
    w = worlds[0]
    w["selected"], w["armour"][3] = 7, NUMBER["leather_boots"]
    w["off_item"], w["off_count"] = NUMBER["torch"], 9
    w["item"][5] = NUMBER["dirt"]  # none of it is left
    shown = sense("inventory", worlds)
    items, counts = shown["inventory/item"], shown["inventory/count"]
    slots = {n: (ITEMS[items[n]].name, int(counts[n])) for n in np.flatnonzero(items)}
    assert slots == {
        0: ("stone_axe", 1),
        35: ("cobblestone", 64),
        39: ("leather_boots", 1),
        40: ("torch", 9),
    }
    assert not counts[items == 0].any()
    assert shown["inventory/selected"] == 7


def test_a_closed_screen_shows_nothing():
    worlds = flat_world()
    worlds[0]["cursor_x"], worlds[0]["carried"], worlds[0]["carried_count"] = 4.5, 3, 2
    assert not any(screen(worlds).values())


def test_an_open_screen_shows_the_cursor_and_what_it_carries():
    worlds = flat_world()
    w = worlds[0]
    w["screen"], w["cursor_x"], w["cursor_y"] = world.TABLE_SCREEN, 4.5, 3.5
    w["carried"], w["carried_count"] = NUMBER["stick"], 4
    shown = screen(worlds)
    assert shown["screen"] == world.TABLE_SCREEN
    assert (shown["cursor_x"], shown["cursor_y"]) == (4.5, 3.5)
    assert (shown["carried_item"], shown["carried_count"]) == (NUMBER["stick"], 4)
    assert not any(value for name, value in shown.items() if name.startswith("furnace"))


def test_an_open_furnace_shows_what_is_in_it_and_not_another_one():
    worlds = flat_world()
    w = worlds[0]
    w["furnaces"][:2] = 500, 900
    w["furnace_in"][1], w["furnace_in_count"][1] = NUMBER["beef"], 3
    w["furnace_fuel"][1], w["furnace_fuel_count"][1] = NUMBER["coal"], 7
    w["furnace_out"][1], w["furnace_out_count"][1] = NUMBER["cooked_beef"], 1
    w["furnace_burn"][1], w["furnace_cook"][1] = 1000, 50
    w["screen"], w["screen_at"] = world.FURNACE_SCREEN, 900
    shown = screen(worlds)
    assert (shown["furnace_in_item"], shown["furnace_in_count"]) == (NUMBER["beef"], 3)
    assert (shown["furnace_fuel_item"], shown["furnace_fuel_count"]) == (NUMBER["coal"], 7)
    assert (shown["furnace_out_item"], shown["furnace_out_count"]) == (NUMBER["cooked_beef"], 1)
    assert (shown["furnace_burning"], shown["furnace_cooked"]) == (1, 0.25)
    w["screen_at"] = 500
    assert not any(value for name, value in screen(worlds).items() if name.startswith("furnace"))


@pytest.mark.parametrize(
    ("yaw", "pitch", "shown"),
    [(0, 0, (0, 1, 0)), (90, 45, (1, 0, 0.5)), (180, -90, (0, -1, -1)), (-450, 0, (-1, 0, 0))],
)
def test_the_compass_tells_where_the_player_looks(yaw, pitch, shown):
    worlds = flat_world()
    worlds[0]["yaw"], worlds[0]["pitch"] = yaw, pitch
    assert len(COMPASS) == 3
    np.testing.assert_allclose(sense("compass", worlds)["compass"], shown, atol=1e-6)


def test_the_compass_does_not_tell_the_place():
    here, there = flat_world(), flat_world()
    there[0]["x"], there[0]["z"], there[0]["time"] = 5.5, 9.5, 18_000
    np.testing.assert_array_equal(
        sense("compass", here)["compass"], sense("compass", there)["compass"]
    )


def test_the_privileged_compass_tells_the_way_home_and_to_the_hut():
    worlds = flat_world()
    w = worlds[0]
    shown = places(worlds)
    assert (shown["x"], shown["y"], shown["z"]) == pytest.approx(
        (MIDDLE / 64, 12 / 32, MIDDLE / 64)
    )
    assert not any(value for name, value in shown.items() if name.startswith(("home", "hut")))
    w["yaw"], w["z"] = 90, MIDDLE - 8  # looks along -x, home is along +z: to its left
    w["hut"] = 20, 24, 24, 24  # x 20 to 24, z 24: its middle is straight ahead
    shown = places(worlds)
    home = [shown[f"home_{name}"] for name in ("right", "ahead", "distance")]
    assert home == pytest.approx([-1, 0, 8], abs=1e-5)
    hut = [shown[f"hut_{name}"] for name in ("right", "ahead", "distance")]
    assert hut == pytest.approx([0, 1, 10], abs=1e-5)
    assert shown["hut"] == 1
