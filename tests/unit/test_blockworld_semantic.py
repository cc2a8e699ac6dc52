"""Rays, grids and entities: they show what the eye sees, and nothing that it does not."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bridges.blockworld.pictures.semantic import CLASS_OF, CLASSES, OPAQUE, first_block, free_way
from bridges.blockworld.rules import blocks
from bridges.blockworld.rules.species import NAMES, SHEEP
from bridges.blockworld.rules.world import (
    EYES,
    HEIGHT,
    MAX_CREATURES,
    SIZE,
    cosine,
    look,
    set_block,
    sine,
)
from bridges.blockworld.sense_options import SenseOptions
from bridges.blockworld.senses import OBSERVATIONS
from rollout.api import allocate
from tests.unit.blockworld_scenes import MIDDLE, creature, flat_world, put

pytestmark = [pytest.mark.heavy]

EYE = 12 + EYES
AHEAD = int(MIDDLE)
"""Column of the player; it looks along +z."""


def sense(name, worlds, **options):
    """The columns of one observation, as ``{last part of the key: array of world 0}``."""
    chosen = SenseOptions(**options)
    space = OBSERVATIONS[name].space(chosen)
    buffers = allocate(spaces.Dict(space), len(worlds))
    for buffer in buffers.values():
        buffer[...] = 1  # whatever was there before must not shine through
    OBSERVATIONS[name].fill(worlds, buffers, chosen, 0, len(worlds))
    for key, leaf in space.items():
        assert all(leaf.contains(row) for row in buffers[key]), key
    return {key.rpartition("/")[2]: array[0] for key, array in buffers.items()}


def one_ray(worlds, reach=16.0):
    """Class name and distance of what a single ray straight ahead meets."""
    seen = sense("semantic_rays", worlds, ray_rows=1, ray_columns=1, ray_reach=reach)
    return CLASSES[seen["id"][0, 0]], (1.0 - seen["near"][0, 0]) * reach


def named(ids):
    return {CLASSES[number] for number in np.unique(ids)}


def wall(worlds, z, name="stone", x=range(AHEAD - 12, AHEAD + 13), y=range(12, 17)):
    for i in x:
        for j in y:
            put(worlds, i, j, z, name)


def stand(worlds, *, yaw=0.0, pitch=0.0, x=None, y=None, z=None):
    w = worlds[0]
    w["yaw"], w["pitch"] = yaw, pitch
    for name, value in (("x", x), ("y", y), ("z", z)):
        if value is not None:
            w[name] = value
    return worlds


def test_every_block_and_creature_has_a_class():
    assert len(set(CLASSES)) == len(CLASSES) <= 34
    unclassed = {block.name for n, block in enumerate(blocks.BLOCKS) if CLASS_OF[n] == 0}
    assert unclassed == {"air", "edge"}
    assert {name for name in NAMES if name != "sheep"} <= set(CLASSES)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("stone", "stone"),
        ("oak_log", "log"),
        ("tall_grass", "plant"),
        ("water", "water"),
        ("lava", "lava"),
        ("iron_ore", "iron_ore"),
        ("diamond_ore", "precious_ore"),
        ("glass", "building"),
        ("bed", "bed"),
        ("lit_furnace", "furnace"),
    ],
)
@pytest.mark.parametrize("away", [1, 5, 15])
def test_a_ray_meets_the_block_ahead_at_its_distance(name, kind, away):
    worlds = flat_world()
    put(worlds, AHEAD, 13, AHEAD + away, name)
    met, distance = one_ray(worlds)
    assert met == kind
    assert distance == pytest.approx(away - 0.5, abs=1e-4)


@pytest.mark.parametrize("yaw", [0, 90, 180, 270, -90, 725])
def test_rays_turn_with_the_yaw(yaw):
    worlds = stand(flat_world(), yaw=yaw)
    dx, dz = {0: (0, 1), 90: (-1, 0), 180: (0, -1), 270: (1, 0), 5: (0, 1)}[yaw % 360]
    put(worlds, AHEAD + 4 * dx, 13, AHEAD + 4 * dz, "oak_log")
    met, distance = one_ray(worlds)
    assert met == "log"
    assert distance == pytest.approx(3.5, abs=0.02)


def test_the_left_of_the_fan_is_the_left_of_the_player():
    worlds = flat_world()
    # Looking along +z, the left hand is at +x.
    put(worlds, AHEAD + 3, 13, AHEAD + 4, "oak_log")
    ids = sense("semantic_rays", worlds, ray_rows=1, ray_columns=9)["id"][0]
    (places,) = np.nonzero(ids == CLASSES.index("log"))
    assert places.size
    assert places.max() < 4


def test_the_top_of_the_fan_is_above():
    ids = sense("semantic_rays", flat_world(), ray_rows=4)["id"]
    assert named(ids[:2]) == {"nothing"}
    assert named(ids[2:]) == {"ground"}


def test_rays_look_up_and_down_with_the_pitch():
    worlds = flat_world()
    met, distance = one_ray(stand(worlds, pitch=90))
    assert (met, round(float(distance), 3)) == ("ground", EYES)
    assert one_ray(stand(worlds, pitch=-90))[0] == "nothing"
    met, distance = one_ray(stand(worlds, pitch=30))
    assert distance == pytest.approx(EYES / 0.5, abs=0.02)


def test_rays_end_at_their_reach():
    worlds = flat_world()
    put(worlds, AHEAD, 13, AHEAD + 6, "stone")
    assert one_ray(worlds, reach=5.6)[0] == "stone"
    assert one_ray(worlds, reach=5.4) == ("nothing", pytest.approx(5.4))


def test_the_edge_of_the_world_is_nothing():
    worlds = stand(flat_world(), z=SIZE - 2.5)
    assert one_ray(worlds)[0] == "nothing"
    assert one_ray(stand(worlds, x=1.3, z=1.3, yaw=135))[0] == "nothing"


def test_rays_from_above_the_world_reach_down_into_it():
    worlds = stand(flat_world(), y=33.0, pitch=90)
    met, distance = one_ray(worlds, reach=32.0)
    assert met == "ground"
    assert distance == pytest.approx(33.0 + EYES - 12, abs=1e-3)
    assert one_ray(stand(worlds, pitch=-10))[0] == "nothing"


def test_rays_in_water_go_through_it():
    worlds = flat_world()
    for z in range(AHEAD, AHEAD + 4):
        put(worlds, AHEAD, 13, z, "water")
    put(worlds, AHEAD, 13, AHEAD + 5, "oak_log")
    assert one_ray(worlds) == ("log", pytest.approx(4.5, abs=1e-4))
    assert one_ray(stand(worlds, z=AHEAD - 1.5)) == ("water", pytest.approx(1.5, abs=1e-4))


@pytest.mark.parametrize("name", NAMES)
def test_a_ray_meets_a_creature_by_its_box(name):
    worlds = flat_world()
    worlds[0]["c_coat"][2] = 3
    creature(worlds, 2, name, MIDDLE, 13.2, MIDDLE + 6)
    width = {"sheep": 0.9, "cow": 0.9, "pig": 0.9, "chicken": 0.4, "spider": 1.4}.get(name, 0.6)
    met, distance = one_ray(worlds)
    assert met == ("sheep_black" if name == "sheep" else name)
    assert distance == pytest.approx(6 - width / 2, abs=1e-3)


@pytest.mark.parametrize(("at", "met"), [(3, "cow"), (7, "stone")])
def test_what_is_in_front_hides_what_is_behind(at, met):
    worlds = flat_world()
    wall(worlds, AHEAD + 5)
    creature(worlds, 0, "cow", MIDDLE, 12.5, MIDDLE + at)
    assert one_ray(worlds)[0] == met


def test_rays_meet_drops():
    worlds = flat_world()
    w = worlds[0]
    w["d_item"][5], w["d_count"][5] = 3, 1
    w["d_x"][5], w["d_y"][5], w["d_z"][5] = MIDDLE, 13.5, MIDDLE + 2
    assert one_ray(worlds) == ("drop", pytest.approx(1.875, abs=1e-3))


def crowd(worlds, ahead):
    for n, name in enumerate(NAMES):
        creature(worlds, n, name, MIDDLE + n - 3, 12, MIDDLE + ahead)
    return worlds


def creatures_in(ids):
    return named(ids) & set(CLASSES[CLASSES.index("drop") + 1 :])


def test_nothing_behind_the_player_is_shown_unless_privileged():
    worlds = crowd(flat_world(), -3)
    worlds[0]["d_item"][0], worlds[0]["d_count"][0] = 3, 1
    worlds[0]["d_x"][0], worlds[0]["d_y"][0], worlds[0]["d_z"][0] = MIDDLE, 12, MIDDLE - 2
    shown = {"nothing", "ground"}
    assert named(sense("semantic_rays", worlds)["id"]) == shown
    assert named(sense("semantic_grid", worlds)["id"]) == shown
    assert not sense("entities", worlds)["entities"].any()
    assert len(creatures_in(sense("privileged_grid", worlds)["id"])) == len(NAMES)
    assert "drop" in named(sense("privileged_grid", worlds)["id"])
    assert len(sense("privileged_entities", worlds)["privileged_entities"].nonzero()[0])


def test_nothing_behind_a_wall_is_shown_unless_privileged():
    worlds = crowd(flat_world(), 4)
    assert len(creatures_in(sense("semantic_grid", worlds)["id"])) == len(NAMES)
    assert (sense("entities", worlds)["entities"][:7, 0] > 0).all()
    wall(worlds, AHEAD + 2)
    grid = sense("semantic_grid", worlds)
    assert not creatures_in(grid["id"])
    assert named(grid["id"][:6]) == {"nothing"}
    assert named(grid["id"][6, 2:7]) == {"stone"}  # the wall itself, two cells ahead
    assert not grid["height"][:6].any()
    assert not sense("entities", worlds)["entities"].any()
    assert len(creatures_in(sense("privileged_grid", worlds)["id"])) == len(NAMES)


def test_a_low_wall_hides_the_ground_behind_it_and_not_the_heads():
    worlds = flat_world()
    creature(worlds, 0, "zombie", MIDDLE, 12, MIDDLE + 5)
    wall(worlds, AHEAD + 4, y=range(12, 13))
    grid = sense("semantic_grid", worlds)["id"]
    assert CLASSES[grid[4, 4]] == "stone"
    assert CLASSES[grid[3, 4]] == "zombie"
    assert named(grid[3, :3]) == {"nothing"}


def test_glass_and_plants_hide_nothing():
    worlds = flat_world()
    creature(worlds, 0, "cow", MIDDLE, 12, MIDDLE + 5)
    wall(worlds, AHEAD + 3, "glass")
    wall(worlds, AHEAD + 4, "tall_grass", y=range(12, 13))
    assert CLASSES[int(sense("entities", worlds)["entities"][0, 0])] == "cow"


def test_a_creature_under_a_roof_is_seen_from_outside_and_not_from_above():
    worlds = flat_world()
    creature(worlds, 0, "pig", MIDDLE, 12, MIDDLE + 5)
    for x in range(AHEAD - 3, AHEAD + 4):
        for z in range(AHEAD + 3, AHEAD + 9):
            put(worlds, x, 15, z, "oak_planks")
    assert sense("entities", worlds)["entities"][0, 0] > 0
    assert CLASSES[sense("semantic_grid", worlds)["id"][3, 4]] == "pig"
    stand(worlds, y=17.0, pitch=50)
    assert not sense("entities", worlds)["entities"].any()


def test_the_sky_shows_no_ground():
    worlds = crowd(flat_world(), 4)
    stand(worlds, pitch=-60)
    assert not sense("semantic_grid", worlds)["id"].any()
    assert not sense("entities", worlds)["entities"].any()


@pytest.mark.parametrize("yaw", [0, 90, 180, 270])
def test_the_grid_turns_with_the_player(yaw):
    worlds = stand(flat_world(), yaw=yaw)
    dx, dz = {0: (0, 1), 90: (-1, 0), 180: (0, -1), 270: (1, 0)}[yaw]
    # Three ahead, two to the right: the right hand is a quarter turn further.
    put(worlds, AHEAD + 3 * dx - 2 * dz, 12, AHEAD + 3 * dz + 2 * dx, "oak_log")
    creature(worlds, 0, "cow", MIDDLE + 3 * dx + 2 * dz, 12, MIDDLE + 3 * dz - 2 * dx)
    for name, row in (("semantic_grid", 8), ("privileged_grid", 4)):
        grid = sense(name, worlds)
        assert CLASSES[grid["id"][row - 3, 4 + 2]] == "log"
        assert grid["height"][row - 3, 4 + 2] == 1
        assert CLASSES[grid["id"][row - 3, 4 - 2]] == "cow"
        assert (grid["id"] == CLASSES.index("log")).sum() == 1


def test_heights_are_cut_off_and_counted_from_the_feet():
    worlds = flat_world()
    for y in range(12, 30):
        put(worlds, AHEAD, y, AHEAD + 2, "stone")
    for y in range(1, 12):
        put(worlds, AHEAD + 2, y, AHEAD + 2, "air")
    put(worlds, AHEAD - 1, 12, AHEAD + 2, "stone")
    heights = sense("privileged_grid", worlds)["height"]
    assert heights[2, 2:6].tolist() == [-8, 0, 8, 1]
    assert heights[4, 4] == 0


def test_the_grid_ends_at_the_edge_of_the_world():
    worlds = stand(flat_world(), z=SIZE - 3.5)
    ids = sense("privileged_grid", worlds)["id"]
    assert not ids[:2].any()
    assert ids[2:].all()


def test_entities_are_in_blocks_from_the_feet_nearest_first():
    worlds = stand(flat_world(), yaw=90)
    creature(worlds, 3, "cow", MIDDLE - 6, 12, MIDDLE + 2)
    creature(worlds, 9, "sheep", MIDDLE - 4, 13, MIDDLE)
    worlds[0]["c_coat"][9], worlds[0]["c_hurt"][9] = 5, 4
    rows = sense("entities", worlds)["entities"]
    pink, cow = CLASSES.index("sheep_pink"), CLASSES.index("cow")
    np.testing.assert_allclose(rows[0], [pink, 4, 0, 1, np.sqrt(17), 1], atol=1e-4)
    np.testing.assert_allclose(rows[1], [cow, 6, -2, 0, np.sqrt(40), 0], atol=1e-4)
    assert not rows[2:].any()


def test_entities_beyond_sight_and_beyond_the_slots_are_left_out():
    worlds = stand(flat_world(), z=2.5)
    for n in range(MAX_CREATURES):
        creature(worlds, n, "pig", MIDDLE, 12, 4.5 + 3 * n)
    rows = sense("entities", worlds, entity_slots=16)["entities"]
    assert (rows[:, 0] > 0).sum() == 11
    assert sense("privileged_entities", worlds, entity_slots=16)["privileged_entities"].all(0)[0]
    assert sense("entities", worlds, entity_slots=3)["entities"].shape == (3, 6)


def test_worlds_that_were_never_made_show_nothing():
    worlds = np.zeros(1, flat_world().dtype)
    for name in ("semantic_rays", "semantic_grid", "privileged_grid", "entities"):
        assert not any(array.any() for array in sense(name, worlds).values())


# Against slow and simple code -------------------------------------------------------------------


def rough_world(seed):
    rng = np.random.default_rng(seed)
    worlds = flat_world()
    for _ in range(400):
        x, z = rng.integers(AHEAD - 12, AHEAD + 13, 2)
        y = int(rng.integers(10, 20))
        if (x, y, z) != (AHEAD, 13, AHEAD):
            block = rng.choice([blocks.STONE, blocks.OAK_LOG, blocks.WATER, blocks.AIR])
            set_block(worlds[0], (int(x) * SIZE + int(z)) * HEIGHT + y, int(block))
    for n in range(9):
        x, y, z = rng.uniform((22, 11, 22), (43, 16, 43))
        creature(worlds, n, NAMES[n % len(NAMES)], x, y, z)
    w = worlds[0]
    w["yaw"], w["pitch"] = rng.uniform(-180, 180), rng.uniform(-90, 90)
    w["x"], w["y"], w["z"] = MIDDLE + rng.uniform(-0.4, 0.4), 12, MIDDLE + rng.uniform(-0.4, 0.4)
    return worlds


def first_of_boxes(eye, ray, lows, highs):
    """Where a ray enters each of many boxes; infinite where it does not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = np.stack([(lows - eye) / ray, (highs - eye) / ray])
    enter = np.maximum(ways.min(axis=0).max(axis=1), 0)
    return np.where(enter <= ways.max(axis=0).min(axis=1), enter, np.inf)


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1))
def test_rays_agree_with_a_search_of_all_boxes(seed):
    worlds, reach = rough_world(seed), 14.0
    w = worlds[0]
    seen = sense("semantic_rays", worlds, ray_reach=reach)
    eye = np.array([w["x"], EYE, w["z"]])
    layers = w["blocks"].reshape(SIZE, SIZE, HEIGHT)
    part = np.argwhere(CLASS_OF[layers[16:50, 16:50]] > 0)[:, [0, 2, 1]] + [16, 0, 16]
    kinds = [CLASS_OF[layers[x, z, y]] for x, y, z in part]
    lows, highs = part.astype(float), part + 1.0
    for n in range(9):
        kind = int(w["c_kind"][n])
        name = "sheep_white" if kind == SHEEP else NAMES[kind - 1]
        sizes = {"sheep": (0.9, 1.3), "cow": (0.9, 1.4), "pig": (0.9, 0.9), "chicken": (0.4, 0.7)}
        sizes |= {"zombie": (0.6, 1.95), "skeleton": (0.6, 1.99), "spider": (1.4, 0.9)}
        width, tall = np.float32(sizes[NAMES[kind - 1]])
        foot = np.array([w["c_x"][n], w["c_y"][n], w["c_z"][n]], float)
        lows = np.vstack([lows, foot - [width / 2, 0, width / 2]])
        highs = np.vstack([highs, foot + np.array([width / 2, tall, width / 2])])
        kinds.append(CLASSES.index(name))
    yaw, pitch = float(w["yaw"]), float(w["pitch"])
    ahead = np.array(look(yaw, pitch))
    right = np.array([-cosine(yaw), 0.0, -sine(yaw)])
    up = np.cross(ahead, right)
    up *= np.sign(up[1]) or 1.0
    differ = 0
    for row in range(4):
        for column in range(8):
            side = np.radians((column + 0.5) * 12.5 - 50)
            rise = np.radians(25 - (row + 0.5) * 12.5)
            flat = np.cos(rise)
            ray = flat * np.sin(side) * right + np.sin(rise) * up + flat * np.cos(side) * ahead
            ways = first_of_boxes(eye, ray, lows, highs)
            ways[ways >= reach] = np.inf
            nearest = ways.min()
            allowed = {kinds[n] for n in np.flatnonzero(ways <= nearest + 1e-4)}
            if nearest == np.inf:
                allowed = {0}
            found, near = seen["id"][row, column], seen["near"][row, column]
            expected = 0.0 if nearest == np.inf else 1 - nearest / reach
            differ += found not in allowed or abs(near - expected) > 1e-4
    # A ray may pass on the other side of an edge by a rounding error.
    assert differ <= 1


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_a_way_is_free_where_no_ray_meets_anything_on_it(seed):
    worlds, rng = rough_world(seed), np.random.default_rng(seed)
    eye = (float(worlds[0]["x"]), EYE, float(worlds[0]["z"]))
    differ = 0
    for point in rng.uniform((-12, -6, -12), (12, 6, 12), (100, 3)):
        offset = tuple(float(v) for v in point)
        met = first_block(worlds[0], eye, offset, 1.0, OPAQUE, 0)[0]
        differ += free_way(worlds[0], eye, *offset, True) != (met == 0)
    assert differ <= 1


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
@example(187597)  # two creatures in one cell, and the one that is shown of them is out of sight
def test_a_grid_shows_what_the_privileged_one_shows_or_nothing(seed):
    worlds = rough_world(seed)
    seen = sense("semantic_grid", worlds, grid_size=9)
    every = sense("privileged_grid", worlds, grid_size=17)
    ahead = {key: array[:9, 4:13] for key, array in every.items()}
    creatures = ahead["id"] > CLASSES.index("drop")
    cells = (seen["id"] > 0) & ~creatures
    np.testing.assert_array_equal(seen["id"][cells], ahead["id"][cells])
    shown = seen["height"] != 0
    np.testing.assert_array_equal(seen["height"][shown], ahead["height"][shown])


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_entities_are_among_the_privileged_ones_and_before_the_player(seed):
    worlds = rough_world(seed)
    worlds[0]["pitch"] = 0
    seen = sense("entities", worlds)["entities"]
    every = {tuple(r) for r in sense("privileged_entities", worlds)["privileged_entities"]}
    seen = seen[seen[:, 0] > 0]
    assert all(tuple(row) in every for row in seen)
    assert (np.abs(seen[:, 2]) <= seen[:, 1] * 1.1918).all()
    assert (np.diff(seen[:, 4]) >= 0).all()


def test_worlds_do_not_depend_on_each_other():
    worlds = np.concatenate([rough_world(seed) for seed in range(5)])
    options = SenseOptions()
    for name in ("semantic_rays", "semantic_grid", "entities", "privileged_grid"):
        space = spaces.Dict(OBSERVATIONS[name].space(options))
        together, alone = allocate(space, 5), allocate(space, 5)
        OBSERVATIONS[name].fill(worlds, together, options, 0, 5)
        for k in (3, 0, 4, 2, 1):
            OBSERVATIONS[name].fill(worlds, alone, options, k, k + 1)
        for key, array in together.items():
            np.testing.assert_array_equal(array, alone[key])
