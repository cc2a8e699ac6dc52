"""How the player of blockworld moves: Minecraft's figures, walls, water, edges, falls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.blockworld.rules import blocks
from bridges.blockworld.rules.collision import TOUCH, body_fits, free_share, heading, move_body
from bridges.blockworld.rules.motion import tick_player
from bridges.blockworld.rules.world import (
    BACK,
    FORWARD,
    HEIGHT,
    JUMP,
    LEFT,
    RIGHT,
    SIZE,
    SLIM,
    SNEAK,
    SPRINT,
)
from tests.unit.blockworld_scenes import MIDDLE, compiled, flat_world, put

pytestmark = [pytest.mark.heavy]

GROUND = 12
SAND_BOX = 26, 39  # columns in which random terrain is laid


@compiled
def run(worlds, keys, ticks):
    """Plays keys for some ticks; returns x, y, z after each."""
    w = worlds[0]
    path = np.empty((ticks, 3))
    for tick in range(ticks):
        if w.hurt_ticks > 0:
            w.hurt_ticks -= 1
        tick_player(w, keys)
        path[tick, 0], path[tick, 1], path[tick, 2] = w.x, w.y, w.z
    return path


@compiled
def overlaps(worlds):
    """Whether the player's body is in a solid block, by every block of the world around it."""
    w = worlds[0]
    height = 1.5 if w.sneaking else 1.8
    for i in range(SIZE):
        for k in range(SIZE):
            if abs(i + 0.5 - w.x) >= 0.8 - TOUCH or abs(k + 0.5 - w.z) >= 0.8 - TOUCH:
                continue
            for j in range(HEIGHT):
                if j + 1 <= w.y + TOUCH or j >= w.y + height - TOUCH:
                    continue
                if blocks.SOLID[w.blocks[(i * SIZE + k) * HEIGHT + j]]:
                    return True
    return False


def wall(worlds, z, height, name="stone"):
    for x in range(1, SIZE - 1):
        for y in range(GROUND, GROUND + height):
            put(worlds, x, y, z, name)


def pool(worlds, depth, liquid="water", x0=28, x1=37, z0=28, z1=37):
    for x in range(x0, x1 + 1):
        for z in range(z0, z1 + 1):
            for y in range(GROUND - depth, GROUND):
                put(worlds, x, y, z, liquid)


def speed(worlds, keys, ticks=20):
    run(worlds, keys, 20)  # gathers speed
    path = run(worlds, keys, ticks)
    return np.hypot(*(path[-1] - path[0])[[0, 2]]) / (ticks - 1) * 20


@pytest.mark.parametrize(
    ("keys", "blocks_per_s"),
    [
        (FORWARD, 4.317),
        (BACK, 4.317),
        (LEFT, 4.317),
        (FORWARD | SPRINT, 5.612),
        (FORWARD | SNEAK, 1.295),
        (FORWARD | SNEAK | SPRINT, 1.295),
        (FORWARD | RIGHT, 4.405),
        (FORWARD | LEFT | RIGHT, 4.317),
        (FORWARD | BACK, 0.0),
        (BACK | SPRINT, 4.317),
        (0, 0.0),
    ],
)
def test_speeds_are_minecrafts(keys, blocks_per_s):
    assert speed(flat_world(), keys) == pytest.approx(blocks_per_s, rel=0.005, abs=1e-9)


def turned(before, after):
    """Degrees clockwise from one yaw to another, -180 to 180."""
    return (after - before + 180) % 360 - 180


@pytest.mark.parametrize("yaw", [0, 37, 90, 180, 261.5])
def test_keys_follow_the_look(yaw):
    worlds = flat_world()
    worlds[0]["yaw"] = yaw
    path = run(worlds, FORWARD, 20)
    dx, _, dz = path[-1] - (MIDDLE, 0, MIDDLE)
    assert turned(yaw, heading(dx, dz)) == pytest.approx(0, abs=0.1)
    worlds = flat_world()
    worlds[0]["yaw"] = yaw
    path = run(worlds, RIGHT, 20)
    dx, _, dz = path[-1] - (MIDDLE, 0, MIDDLE)
    assert turned(yaw, heading(dx, dz)) == pytest.approx(90, abs=0.1)


def test_a_jump_rises_one_and_a_quarter_block():
    path = run(flat_world(), JUMP, 14)
    assert path[:, 1].max() - GROUND == pytest.approx(1.2522, abs=1e-3)
    assert path[11, 1] == GROUND  # twelve ticks in the air


def test_a_held_jump_repeats_and_sprint_jumps_are_faster():
    worlds = flat_world()
    worlds[0]["z"] = 5
    path = run(worlds, FORWARD | SPRINT | JUMP, 132)
    assert (path[119, 2] - path[59, 2]) / 60 * 20 == pytest.approx(7.127, rel=0.001)
    assert (path[:, 1] == GROUND).sum() == 11  # once in twelve ticks


def test_on_ice_one_slides():
    worlds = flat_world()
    for x in range(1, SIZE - 1):
        for z in range(1, SIZE - 1):
            put(worlds, x, GROUND - 1, z, "ice")
    run(worlds, FORWARD, 30)
    path = run(worlds, 0, 20)
    assert path[-1, 2] - path[0, 2] > 0.5
    still = flat_world()
    run(still, FORWARD, 30)
    path = run(still, 0, 20)
    assert path[-1, 2] - path[0, 2] < 0.2


@pytest.mark.parametrize(
    ("field", "value"), [("food", 6), ("eat_ticks", 3), ("blocking", 1), ("sneaking", 0)]
)
def test_what_forbids_to_sprint(field, value):
    worlds = flat_world()
    worlds[0][field] = value
    run(worlds, FORWARD | SPRINT, 10)
    assert worlds[0]["sprinting"] == (field == "sneaking")


def test_sprinting_lasts_while_one_runs_on():
    worlds = flat_world()
    run(worlds, FORWARD | SPRINT, 2)
    run(worlds, FORWARD, 20)
    assert worlds[0]["sprinting"]
    run(worlds, 0, 1)
    assert not worlds[0]["sprinting"]
    wall(worlds, 40, 2)
    run(worlds, FORWARD | SPRINT, 100)
    assert not worlds[0]["sprinting"]


def test_using_an_item_slows():
    worlds = flat_world()
    worlds[0]["eat_ticks"] = 5
    assert speed(worlds, FORWARD) == pytest.approx(4.317 * 0.2, rel=0.01)


def test_exhaustion_is_minecrafts():
    worlds = flat_world()
    run(worlds, FORWARD, 40)
    assert worlds[0]["exhaustion"] == 0
    path = run(worlds, FORWARD | SPRINT, 40)
    run(worlds, 0, 10)
    assert worlds[0]["exhaustion"] == pytest.approx(0.1 * (path[-1, 2] - path[0, 2]), rel=0.05)
    worlds = flat_world()
    run(worlds, JUMP, 1)
    assert worlds[0]["exhaustion"] == pytest.approx(0.05)
    worlds = flat_world()
    run(worlds, FORWARD | SPRINT, 1)
    before = float(worlds[0]["exhaustion"])
    run(worlds, FORWARD | SPRINT | JUMP, 1)
    assert worlds[0]["exhaustion"] - before == pytest.approx(0.2)


def test_a_block_is_climbed_by_a_jump_only():
    worlds = flat_world()
    wall(worlds, 36, 1)
    run(worlds, FORWARD, 60)
    assert worlds[0]["y"] == GROUND
    assert worlds[0]["z"] == pytest.approx(36 - 0.3)
    run(worlds, FORWARD | JUMP, 10)
    run(worlds, 0, 10)
    assert worlds[0]["y"] == GROUND + 1
    worlds = flat_world()
    wall(worlds, 36, 2)
    run(worlds, FORWARD | JUMP, 100)
    assert worlds[0]["z"] == pytest.approx(36 - 0.3)


def test_one_slides_along_a_wall():
    worlds = flat_world()
    wall(worlds, 34, 2)
    worlds[0]["yaw"] = -45
    path = run(worlds, FORWARD, 40)
    assert path[-1, 2] == pytest.approx(34 - 0.3)
    assert path[-1, 0] > MIDDLE + 3


def test_a_low_ceiling_stops_a_jump():
    worlds = flat_world()
    put(worlds, 32, GROUND + 2, 32, "stone")
    path = run(worlds, JUMP, 10)
    assert path[:, 1].max() == pytest.approx(GROUND + 0.2)


def test_the_edge_of_the_world_is_solid():
    worlds = flat_world()
    for yaw in (0, 90, 180, 270, 45, 135):
        worlds[0]["yaw"] = yaw
        run(worlds, FORWARD | SPRINT | JUMP, 250)
        for axis in "xz":
            assert 1.3 - 1e-9 <= worlds[0][axis] <= SIZE - 1.3 + 1e-9
    worlds[0]["y"] = HEIGHT + 3.0
    path = run(worlds, FORWARD, 5)
    assert path[:, [0, 2]].max() <= SIZE - 1.3 + 1e-9


def test_one_who_sneaks_does_not_walk_off_an_edge():
    worlds = flat_world()
    pool(worlds, 5, "air", z0=34, z1=50, x0=20, x1=45)
    for yaw in (0, 30, -30):
        worlds[0]["yaw"] = yaw
        run(worlds, FORWARD | SNEAK, 200)
        assert worlds[0]["y"] == GROUND
        assert worlds[0]["z"] > 34  # it leans over the edge
    run(worlds, FORWARD, 20)
    assert worlds[0]["y"] < GROUND


def test_one_who_sneaks_stays_low_under_a_ceiling():
    worlds = flat_world()
    run(worlds, SNEAK, 2)
    assert worlds[0]["sneaking"]
    worlds[0]["y"] = GROUND + 0.3  # as in shallow water: 1.7 blocks to the ceiling
    put(worlds, 32, GROUND + 2, 32, "stone")
    run(worlds, 0, 1)
    assert worlds[0]["sneaking"]
    put(worlds, 32, GROUND + 2, 32, "air")
    run(worlds, 0, 1)
    assert not worlds[0]["sneaking"]


@pytest.mark.parametrize(("blocks_fallen", "cost"), [(2, 0), (3, 0), (4, 1), (5, 2), (10, 7)])
def test_falls_cost_what_goes_beyond_three_blocks(blocks_fallen, cost):
    worlds = flat_world()
    worlds[0]["y"] += blocks_fallen
    run(worlds, 0, 60)
    assert worlds[0]["y"] == GROUND
    assert worlds[0]["on_ground"]
    assert worlds[0]["health"] == 20 - cost
    assert worlds[0]["hurt"] == cost
    assert worlds[0]["fall"] == 0


def test_a_long_fall_kills():
    worlds = flat_world(4)
    worlds[0]["y"] = 30
    run(worlds, 0, 80)
    assert worlds[0]["dead"]
    assert worlds[0]["health"] == 0
    assert worlds[0]["hurt"] == 20


@pytest.mark.parametrize("depth", [1, 3])
def test_a_fall_into_water_costs_nothing(depth):
    worlds = flat_world()
    pool(worlds, depth)
    worlds[0]["y"] += 15
    run(worlds, 0, 100)
    assert worlds[0]["health"] == 20
    assert worlds[0]["in_water"]
    assert worlds[0]["fall"] == 0


def test_a_swimmer_floats_and_sinks():
    worlds = flat_world()
    pool(worlds, 5)
    worlds[0]["y"] = GROUND - 4
    run(worlds, JUMP, 100)
    heights = run(worlds, JUMP, 60)[:, 1]
    assert heights.min() > GROUND - 0.9  # the eyes, 1.62 above, are out of the water
    assert heights.max() < GROUND + 0.3
    path = run(worlds, 0, 60)
    assert (path[-1, 1] - path[-21, 1]) == pytest.approx(-0.5, abs=0.01)  # 0.025 in a tick
    run(worlds, SNEAK, 200)
    assert worlds[0]["y"] == GROUND - 5
    assert worlds[0]["on_ground"]


def test_swimming_is_slow_and_costs_little():
    worlds = flat_world()
    pool(worlds, 4, z0=2, z1=60)
    worlds[0]["y"], worlds[0]["z"] = GROUND - 4, 5
    assert speed(worlds, FORWARD, 40) == pytest.approx(0.02 * 0.98 / 0.2 * 20, rel=0.01)
    assert 0 < worlds[0]["exhaustion"] < 0.1


def test_a_swimmer_climbs_out_onto_the_bank():
    worlds = flat_world()
    pool(worlds, 4)
    worlds[0]["y"] = GROUND - 2
    run(worlds, JUMP | FORWARD, 100)
    run(worlds, FORWARD, 20)
    assert worlds[0]["y"] == GROUND
    assert worlds[0]["z"] > 38
    assert not worlds[0]["in_water"]


def test_lava_is_thick():
    worlds = flat_world()
    pool(worlds, 4, "lava")
    worlds[0]["y"] = GROUND - 4
    assert speed(worlds, FORWARD) == pytest.approx(0.02 * 0.98 / 0.5 * 20, rel=0.01)
    assert worlds[0]["in_lava"]
    assert not worlds[0]["in_water"]


def test_a_cactus_pricks():
    worlds = flat_world()
    put(worlds, 32, GROUND, 34, "cactus")
    put(worlds, 32, GROUND + 1, 34, "cactus")
    run(worlds, FORWARD, 25)
    assert worlds[0]["health"] in {18, 19}
    worlds[0]["z"] -= 0.1
    health = float(worlds[0]["health"])
    run(worlds, 0, 30)
    assert worlds[0]["health"] == health


def test_one_who_sleeps_lies_still():
    worlds = flat_world()
    worlds[0]["sleep_ticks"] = 5
    path = run(worlds, FORWARD | JUMP, 10)
    assert (path == path[0]).all()


def test_bodies_fit_where_nothing_solid_is():
    worlds = flat_world()
    put(worlds, 34, GROUND, 32, "stone")
    put(worlds, 30, GROUND, 32, "tall_grass")
    w = worlds[0]
    assert body_fits(w, 32.5, 12.0, 32.5, 0.6, 1.8)
    assert not body_fits(w, 32.5, 11.9, 32.5, 0.6, 1.8)
    assert body_fits(w, 33.7, 12.0, 32.5, 0.6, 1.8)
    assert not body_fits(w, 33.71, 12.0, 32.5, 0.6, 1.8)
    assert body_fits(w, 30.5, 12.0, 32.5, 0.6, 1.8)
    assert body_fits(w, 32.5, 40.0, 32.5, 0.6, 1.8)
    for x, y in ((0.5, 20.0), (-5.0, 20.0), (70.0, 20.0), (32.5, -1.0), (1.2, 50.0)):
        assert not body_fits(w, x, y, 32.5, 0.6, 1.8)


@settings(max_examples=200)
@given(
    move=st.tuples(*[st.floats(-40, 40)] * 3),
    wide=st.floats(0.2, 1.5),
    tall=st.floats(0.2, 2.5),
    seed=st.integers(0, 999),
)
def test_nothing_passes_through_a_wall_at_any_speed(move, wide, tall, seed):
    worlds = flat_world()
    first, last = SAND_BOX  # a closed chamber in the air
    for x in range(first, last):
        for z in range(first, last):
            for y in range(16, 26):
                if x in {first, last - 1} or z in {first, last - 1} or y in {16, 25}:
                    worlds[0]["blocks"][(x * SIZE + z) * HEIGHT + y] = blocks.GLASS
    at = np.random.default_rng(seed).uniform((28, 17, 28), (37, 22, 37))
    x, y, z, hit = move_body(worlds[0], *at, wide, tall, *move)
    assert body_fits(worlds[0], x, y, z, wide, tall)
    assert first + 1 <= x <= last - 1
    assert first + 1 <= z <= last - 1
    assert 17 <= y <= 25
    reached = np.array([x, y, z])
    for axis in range(3):
        assert hit >> axis & 1 or reached[axis] == pytest.approx(at[axis] + move[axis])


def test_headings_are_angles():
    for yaw in np.arange(-179.5, 180, 0.5):
        dx, dz = -np.sin(np.radians(yaw)) * 7, np.cos(np.radians(yaw)) * 7
        assert heading(dx, dz) == pytest.approx(yaw, abs=0.002)
    assert heading(0.0, 0.0) == 0


@settings(max_examples=100)
@given(seed=st.integers(0, 99_999))
def test_a_way_is_free_up_to_the_first_block(seed):
    random = np.random.default_rng(seed)
    worlds = flat_world()
    for x, y, z in random.integers((26, 12, 26), (39, 20, 39), (60, 3)):
        worlds[0]["blocks"][(x * SIZE + z) * HEIGHT + y] = blocks.STONE
    start = random.uniform((26, 12, 26), (39, 20, 39))
    way = random.uniform(-12, 12, 3)
    share = free_share(worlds[0], *start, *way)
    steps = np.linspace(0, 1, 2_001)
    cells = np.floor(start + way * steps[:, None]).astype(int)
    own = (cells == cells[0]).all(1)
    inside = np.clip(cells, 0, (SIZE - 1, HEIGHT - 1, SIZE - 1))
    at = (inside[:, 0] * SIZE + inside[:, 2]) * HEIGHT + inside[:, 1]
    solid = blocks.SOLID[worlds[0]["blocks"][at]].astype(bool) & ~own
    if solid.any():
        assert share <= steps[solid.argmax()] + 1e-9
    if share < 1:
        before = steps < share - 1e-6
        assert not solid[before].any()


def rough_world(seed):
    """Random small terrain: pits, steps, water, lava and cacti around the player."""
    random = np.random.default_rng(seed)
    worlds = flat_world()
    layers = worlds[0]["blocks"].reshape(SIZE, SIZE, HEIGHT)
    first, last = SAND_BOX
    names = ("air", "stone", "glass", "water", "lava", "cactus", "ice", "torch")
    numbers = [blocks.NUMBER[name] for name in names]
    chances = (0.55, 0.2, 0.05, 0.1, 0.02, 0.02, 0.04, 0.02)
    shape = (last - first, last - first, 8)
    layers[first:last, first:last, 9:17] = random.choice(numbers, shape, p=chances)
    layers[first - 1 : last + 1, (first - 1, last), :20] = blocks.STONE
    layers[(first - 1, last), first - 1 : last + 1, :20] = blocks.STONE
    layers[32, 32, GROUND : GROUND + 2] = blocks.AIR
    return worlds


@settings(max_examples=40)
@given(seed=st.integers(0, 9_999))
def test_random_keys_never_bring_the_body_into_a_block(seed):
    worlds = rough_world(seed)
    w = worlds[0]
    random = np.random.default_rng(seed)
    choices = (FORWARD, BACK, LEFT, RIGHT, JUMP, SNEAK, SPRINT)
    for _ in range(120):
        keys = sum(key for key in choices if random.random() < 0.4)
        w["yaw"] = random.uniform(0, 360)
        if random.random() < 0.1:
            w["vx"], w["vy"], w["vz"] = random.uniform(-0.9, 0.9, 3)
        path = run(worlds, keys, int(random.integers(1, 20)))
        w["health"], w["dead"] = 20, 0
        assert np.isfinite(path).all()
        assert not overlaps(worlds)
        assert body_fits(w, w["x"], w["y"], w["z"], SLIM, 1.5 if w["sneaking"] else 1.8)
        assert all(np.isfinite(w[name]) for name in ("vx", "vy", "vz", "fall", "exhaustion"))
