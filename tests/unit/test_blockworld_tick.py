"""Ticks: keys and camera, the clock, the body; and the same bytes however worlds are stepped."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.blockworld.rules import blocks, world
from bridges.blockworld.rules.items import NUMBER, RECIPES
from bridges.blockworld.rules.signals import NO_HUT, SIGNALS, report
from bridges.blockworld.rules.species import NAMES
from bridges.blockworld.rules.tick import advance
from tests.unit.blockworld_scenes import block, control, creature, flat_world, give, index, put

pytestmark = [pytest.mark.heavy]

PLAYING = np.ones(1, np.uint8)
X = Z = 32
FEET = 12


def play(worlds, keys=0, ticks=1, pitch=0.0, yaw=0.0):
    advance(worlds, control(keys, pitch, yaw), PLAYING, ticks, 0, 1)


def signals(worlds):
    columns = np.full((len(SIGNALS), len(worlds)), np.nan, np.float32)
    report(worlds, columns, 0, len(worlds))
    return dict(zip(SIGNALS, columns[:, 0].tolist(), strict=True))


def test_a_step_turns_once_and_presses_once():
    worlds = flat_world()
    give(worlds, 0, "dirt", 5)
    play(worlds, world.DROP, 4, pitch=5.0, yaw=7.0)
    w = worlds[0]
    assert (w["yaw"], w["pitch"], w["tick"], w["count"][0]) == (7, 5, 4, 4)
    play(worlds, world.DROP, 4)
    assert w["count"][0] == 4
    play(worlds)
    play(worlds, world.DROP)
    assert w["count"][0] == 3


def test_auto_click_presses_once_a_step():
    worlds = flat_world()
    give(worlds, 0, "dirt", 5)
    for left in (4, 3, 2):
        play(worlds, world.DROP | 1 << 20, 4)
        assert worlds[0]["count"][0] == left


@pytest.mark.parametrize("auto", [0, world.AUTO_JUMP])
def test_auto_jump_walks_up_a_step_and_only_then_jumps(auto):
    worlds = flat_world()
    for x in range(X - 2, X + 3):
        put(worlds, x, FEET, Z + 3, "stone")
    highest = FEET
    for _ in range(12):  # free ground first: nothing to jump up
        play(worlds, world.FORWARD | auto)
        highest = max(highest, worlds[0]["y"])
    assert highest == FEET
    for _ in range(40):
        play(worlds, world.FORWARD | auto)
        highest = max(highest, worlds[0]["y"])
    assert (highest >= FEET + 1) == bool(auto)
    assert (worlds[0]["z"] > Z + 3) == bool(auto)


@settings(max_examples=200)
@given(
    st.floats(0, 359.5, width=32), st.floats(-1e4, 1e4, width=32), st.floats(-1e4, 1e4, width=32)
)
def test_yaw_stays_in_a_circle_and_pitch_in_a_half(start, yaw, pitch):
    worlds = flat_world()
    worlds[0]["yaw"] = start
    play(worlds, yaw=yaw, pitch=pitch)
    assert 0 <= worlds[0]["yaw"] < 360
    assert -90 <= worlds[0]["pitch"] <= 90
    turned = (float(worlds[0]["yaw"]) - start - yaw + 180) % 360 - 180
    assert abs(turned) < 1e-2


def test_dead_and_idle_worlds_stand_still():
    for field, playing in (("dead", 1), ("food", 0)):
        worlds = flat_world()
        worlds[0][field] = 1
        before = worlds.tobytes()
        controls = control(world.FORWARD, 3.0, 3.0)
        advance(worlds, controls, np.full(1, playing, np.uint8), 3, 0, 1)
        assert worlds.tobytes() == before


def test_the_clock_goes_round_and_the_weather_changes():
    worlds = flat_world()
    w = worlds[0]
    w["time"], w["weather_ticks"] = 23_999, 2
    play(worlds)
    assert (w["time"], w["weather"], w["weather_ticks"]) == (0, world.CLEAR, 1)
    play(worlds)
    assert w["weather"] in {world.RAIN, world.THUNDER}
    assert 12_000 <= w["weather_ticks"] < 24_000
    w["weather_ticks"] = 1
    play(worlds)
    assert w["weather"] == world.CLEAR
    assert 12_000 <= w["weather_ticks"] < 180_000


def in_bed(time=18_000, weather=world.CLEAR):
    worlds = flat_world()
    put(worlds, X, FEET, Z + 2, "bed")
    put(worlds, X, FEET, Z + 3, "bed")
    worlds[0]["time"], worlds[0]["weather"], worlds[0]["pitch"] = time, weather, 35
    play(worlds, world.USE)
    return worlds


@pytest.mark.parametrize(
    ("time", "weather", "asleep"),
    [
        (6_000, world.CLEAR, False),
        (12_540, world.CLEAR, False),
        (12_542, world.CLEAR, True),
        (18_000, world.CLEAR, True),
        (23_470, world.CLEAR, False),
        (12_100, world.RAIN, True),
        (6_000, world.THUNDER, True),
    ],
)
def test_one_can_sleep_at_night_or_in_thunder(time, weather, asleep):
    assert (in_bed(time, weather)[0]["sleep_ticks"] > 0) == asleep


def test_a_whole_sleep_brings_the_morning():
    worlds = in_bed(18_000, world.RAIN)
    w = worlds[0]
    play(worlds, world.USE, 99)
    assert (w["sleep_ticks"], w["slept"]) == (100, 0)
    play(worlds, world.USE, 1)
    assert (w["sleep_ticks"], w["slept"], w["time"], w["weather"]) == (0, 1, 0, world.CLEAR)


def test_a_key_wakes_and_then_nothing_was_slept():
    worlds = in_bed()
    play(worlds, 0, 10)
    play(worlds, world.FORWARD)
    play(worlds)
    assert worlds[0]["sleep_ticks"] > 0
    play(worlds, 0, 10)
    play(worlds, world.FORWARD)
    assert worlds[0]["sleep_ticks"] == 0
    assert worlds[0]["slept"] == 0
    assert worlds[0]["z"] < 32.6


def test_nobody_sleeps_beside_a_monster():
    worlds = flat_world()
    put(worlds, X, FEET, Z + 2, "bed")
    worlds[0]["time"], worlds[0]["pitch"] = 18_000, 35
    creature(worlds, 0, "zombie", 32.5, FEET, 26.5)
    play(worlds, world.USE)
    assert worlds[0]["sleep_ticks"] == 0


def test_without_air_one_drowns_after_sixteen_seconds():
    worlds = flat_world()
    w = worlds[0]
    for y in range(FEET, FEET + 10):
        for x in range(X - 2, X + 3):
            for z in range(Z - 2, Z + 3):
                w["blocks"][index(x, y, z)] = blocks.WATER
    w["food"] = 10  # too hungry to heal
    for health in (20, 18):
        for _ in range(319 if health == 20 else 1):  # 15 s of breath, and one more second
            w["y"], w["vy"] = FEET + 4, 0  # held under water
            play(worlds)
        assert w["health"] == health
    for _ in range(20):
        w["y"], w["vy"] = FEET + 4, 0
        play(worlds)
    assert w["health"] == 16
    for y in range(FEET, FEET + 10):
        w["blocks"][index(X, y, Z)] = blocks.AIR
    play(worlds, 0, 75)
    assert w["air"] == 300


def test_fire_costs_one_a_second_and_rain_puts_it_out():
    worlds = flat_world()
    w = worlds[0]
    w["fire_ticks"], w["food"] = 61, 10
    play(worlds, 0, 62)
    assert (w["health"], w["fire_ticks"]) == (17, 0)
    w["fire_ticks"], w["weather"] = 60, world.RAIN
    play(worlds)
    assert w["fire_ticks"] == 0


def test_lava_costs_four_every_half_second_and_sets_alight():
    worlds = flat_world()
    w = worlds[0]
    for x in range(X - 1, X + 2):
        for z in range(Z - 1, Z + 2):
            w["blocks"][index(x, FEET, z)] = blocks.LAVA
    w["food"] = 10
    play(worlds, 0, 12)
    assert w["health"] == 12
    assert w["fire_ticks"] == 300


def test_the_void_kills():
    worlds = flat_world()
    worlds[0]["y"] = -1
    play(worlds, 0, 5)
    assert worlds[0]["dead"]
    assert worlds[0]["tick"] == 1


def test_hunger_heals_and_starves_as_in_minecraft():
    worlds = flat_world()
    w = worlds[0]
    w["health"], w["food"], w["saturation"] = 10, 18, 0
    play(worlds, 0, 80)
    assert (w["health"], w["exhaustion"]) == (11, 6)
    play(worlds, 0, 1)
    assert w["food"] == 17
    play(worlds, 0, 200)
    assert w["health"] == 11
    w["food"], w["exhaustion"] = 0, 0
    play(worlds, 0, 80 * 12)
    assert w["health"] == 1  # never to death
    w["health"], w["food"], w["saturation"], w["food_ticks"] = 10, 20, 6, 0
    play(worlds, 0, 10)
    assert w["health"] == 11  # a full and sated player heals fast


def test_signals_count_and_measure():
    worlds = flat_world()
    w = worlds[0]
    assert signals(worlds)["hut_distance"] == NO_HUT
    w["hut"] = 40, 31, 43, 34
    w["x"], w["y"] = 36.0, FEET + 2
    w["mined"][list(blocks.LOGS)] = 1, 2, 3, 4
    w["mined"][[blocks.DIRT, blocks.GRASS_BLOCK, blocks.STONE]] = 5, 6, 7
    w["placed"][[blocks.DIRT, blocks.BED]] = 2, 3
    w["picked"][list(blocks.LOGS)] = 1
    w["made"][NUMBER["stick"]], w["kills"][1], w["kills"][7], w["dealt"] = 8, 2, 9, 1.5
    found = signals(worlds)
    assert not np.isnan(list(found.values())).any()
    expected = {
        "mined/log": 10,
        "mined/dirt": 11,
        "mined/stone": 7,
        "mined/iron_ore": 0,
        "placed": 5,
        "picked/log": 4,
        "made/stick": 8,
        "kills/sheep": 2,
        "kills/spider": 9,
        "dealt": 1.5,
        "altitude": 2,
        "travelled": 3.5,
        "position/x": 36,
        "hut_distance": 4,
        "in_hut": 0,
    }
    assert {name: found[name] for name in expected} == expected
    assert {f"made/{r.makes}" for r in RECIPES} < found.keys()
    assert {f"kills/{name}" for name in NAMES} < found.keys()
    w["x"], w["y"] = 41.5, FEET
    assert signals(worlds)["in_hut"] == 0  # no roof
    put(worlds, 41, FEET + 3, Z, "oak_planks")
    assert signals(worlds)["in_hut"] == 1
    assert signals(worlds)["hut_distance"] == 0


def busy_world(seed):
    """A world with something of everything, as night falls."""
    worlds = flat_world(seed=seed)
    w = worlds[0]
    w["time"], w["weather_ticks"] = 12_900, 300
    for n, name in enumerate((*NAMES, "zombie", "cow")):
        creature(worlds, n, name, 24.5 + 2 * n, FEET, 37.5 - 1.5 * (n % 4))
    tools = ("iron_pickaxe", "dirt", "iron_sword", "bread", "furnace", "oak_log", "torch", "bed")
    for slot, name in enumerate(tools):
        give(worlds, slot, name, 1 if slot in {0, 2, 7} else 6)
    w["off_item"], w["off_count"], w["food"] = NUMBER["shield"], 1, 12
    for x, z, name in ((30, 35, "crafting_table"), (34, 35, "furnace"), (28, 32, "water")):
        put(worlds, x, FEET if name != "water" else FEET - 1, z, name)
    w["furnaces"][0] = index(34, FEET, 35)
    return worlds


def test_worlds_do_not_depend_on_who_else_is_stepped_and_how():
    width, steps = 7, 500
    choice = np.random.default_rng(0)
    controls = np.zeros((steps, width), world.CONTROLS)
    bits = choice.random((steps, width, 20)) < 0.2
    bits[:, :, 10] &= choice.random((steps, width)) < 0.2  # the inventory only now and then
    held = (bits << np.arange(20)).sum(axis=2)
    controls["keys"] = np.repeat(held[::3], 3, axis=0)[:steps]
    controls["yaw"], controls["pitch"] = choice.normal(0, 12, (2, steps, width))
    together = np.concatenate([busy_world(seed) for seed in range(width)])
    alone = together.copy()
    backwards = together[::-1].copy()
    playing = np.ones(width, np.uint8)
    for step in range(steps):
        together["health"], together["dead"] = 20, 0
        backwards["health"], backwards["dead"] = 20, 0
        advance(together, controls[step], playing, 4, 0, width)
        for lo, hi in ((5, 7), (0, 2), (2, 5)):
            advance(backwards, controls[step][::-1].copy(), playing, 4, lo, hi)
    for k in range(width):
        for step in range(steps):
            alone["health"][k], alone["dead"][k] = 20, 0
            advance(alone[k : k + 1], controls[step, k : k + 1], playing[:1], 4, 0, 1)
    assert together["tick"].min() > 3.5 * steps  # they play, and seldom die within a step
    assert len({world_.tobytes() for world_ in together}) == width
    for name in world.WORLD.names:
        assert together[name].tobytes() == alone[name].tobytes(), name
        assert together[name].tobytes() == backwards[::-1][name].tobytes(), name


def test_random_play_keeps_the_rules():
    worlds = busy_world(3)
    w = worlds[0]
    choice = np.random.default_rng(1)
    for _ in range(600):
        keys = int((1 << choice.integers(0, 20, 4)).sum()) & 0xFFFFF
        play(worlds, keys, 2, *choice.normal(0, 20, 2))
        w["health"], w["dead"] = 20, 0
        layers = w["blocks"].reshape(-1, world.HEIGHT)
        assert np.array_equal(w["heights"], (layers != 0).cumsum(axis=1).argmax(axis=1) + 1)
        assert not layers[w["heights"] < 32, 31].any()
        assert ((w["item"] == 0) == (w["count"] == 0)).all()
        assert not w["wear"][w["item"] == 0].any()
        lit = {int(at) for at in w["lamps"][: w["n_lamps"]]}
        assert lit == set(np.flatnonzero(blocks.LIGHT[w["blocks"]]).tolist())
        assert 0 <= w["food"] <= 20
        assert 0 <= w["saturation"] <= 20
    assert w["mined"].sum() > 0
    assert w["placed"].sum() > 0


def test_blocks_that_were_dug_are_picked_up():
    worlds = flat_world()
    worlds[0]["pitch"] = 90
    play(worlds, world.ATTACK, 60)
    assert worlds[0]["picked"][blocks.DIRT] >= 1
    assert block(worlds, X, FEET - 1, Z) == "air"
