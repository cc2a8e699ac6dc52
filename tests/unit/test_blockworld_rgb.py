"""The picture: where things are drawn, what hides what, and what light and state change."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bridges.blockworld.pictures.rgb import draw
from bridges.blockworld.pictures.view import STEEPEST
from bridges.blockworld.rules import blocks
from bridges.blockworld.rules.species import COATS, NAMES
from bridges.blockworld.rules.world import EYES
from tests.unit import blockworld_scenes as scenes

pytestmark = [pytest.mark.heavy]

GROUND = 12
HALF_TURN = np.tan(np.radians(35.0))  # of a field of view of 70 degrees


def shoot(worlds, height=128, width=128, hud=0, fov=70.0):
    """The pictures of all worlds."""
    frames = np.full((len(worlds), height, width, 3), 77, np.uint8)
    draw(worlds, frames, fov, hud, 0, len(worlds))
    return frames


def picture(worlds, height=128, width=128, hud=0, fov=70.0):
    return shoot(worlds, height, width, hud, fov)[0].astype(int)


def changed(before, after):
    """Pixels that differ, as a mask."""
    return (before != after).any(-1)


def box_of(mask):
    rows, columns = np.nonzero(mask)
    return rows.min(), rows.max() + 1, columns.min(), columns.max() + 1


@pytest.mark.parametrize("ahead", [3, 5, 8])
def test_a_block_straight_ahead_covers_the_pixels_that_the_projection_says(ahead):
    worlds = scenes.flat_world(GROUND)
    before = picture(worlds, 256, 256)
    # two blocks up, so that no pixel of it could be ground, and its shadow is no part of the test
    x, y, z = 32, GROUND + 1, 32 + ahead
    scenes.put(worlds, x, y, z, "obsidian")
    after = picture(worlds, 256, 256)
    near = z - float(worlds[0]["z"])
    focal = 128 / HALF_TURN
    eye = GROUND + EYES
    top = 128 - focal * (y + 1 - eye) / near
    bottom = 128 - focal * (y - eye) / near
    side = focal * 0.5 / near
    mask = changed(before, after)
    mask[int(np.ceil(bottom)) + 1 :] = False  # the shadow on the ground
    found = box_of(mask)
    assert np.allclose(found, (top, bottom, 128 - side, 128 + side), atol=1.0)


@pytest.mark.parametrize("pitch", [-40, -15, 0, 15, 40])
def test_pitch_shifts_the_horizon_by_its_sine(pitch):
    worlds = scenes.flat_world(GROUND)
    worlds[0]["pitch"] = pitch
    seen = picture(worlds, 256, 128)[:, :32].mean(1)
    horizon = 128 - 128 / HALF_TURN * np.sin(np.radians(pitch))
    rows = np.arange(256) + 0.5
    sky = seen[rows < horizon - 1]
    ground = seen[rows > horizon + 24]  # fog makes both alike at the horizon
    if len(sky):
        assert (sky[:, 2] >= sky[:, 1]).all()
    if len(ground):
        assert (ground[:, 1] > ground[:, 2]).all()
    assert len(sky) + len(ground) > 150


@pytest.mark.parametrize("yaw", [0, 37, 90, 180, 251])
@pytest.mark.parametrize("pitch", [-60, -30, 0, 20, 45, 60, 80])
def test_the_middle_of_the_picture_is_what_the_look_meets(yaw, pitch):
    """A ray of the tests' own, in small steps, along the exact direction of the look."""
    worlds = scenes.flat_world(GROUND)
    for z in range(26, 40):
        for x in range(26, 40):
            if max(abs(x - 32), abs(z - 32)) == 3:
                for y in range(GROUND, GROUND + 9):
                    scenes.put(worlds, x, y, z, "stone")
            scenes.put(worlds, x, GROUND + 9, z, "stone")
    w = worlds[0]
    w["x"], w["z"], w["yaw"], w["pitch"] = 32.31, 32.77, yaw, pitch
    turn, tilt = np.radians(yaw), np.radians(pitch)
    ray = np.array([-np.sin(turn) * np.cos(tilt), -np.sin(tilt), np.cos(turn) * np.cos(tilt)])
    at = np.array([w["x"], w["y"] + EYES, w["z"]])
    solid = w["blocks"]
    while True:
        at = at + ray * 0.002
        place = scenes.index(*np.floor(at).astype(int))
        if solid[place]:
            break
    before = picture(worlds, 129, 129)
    w["blocks"][place] = blocks.NUMBER["lava"]  # glows: no light changes it, nor does it hide more
    mask = changed(before, picture(worlds, 129, 129))
    assert mask[64, 64]


def test_beyond_the_steepest_pitch_the_picture_stays_as_it_is():
    worlds = scenes.flat_world(GROUND)
    worlds[0]["pitch"] = STEEPEST
    steep = picture(worlds)
    worlds[0]["pitch"] = 90
    assert (picture(worlds) == steep).all()
    worlds[0]["pitch"] = STEEPEST - 5
    assert (picture(worlds) != steep).any()


def test_a_block_under_the_feet_is_seen_when_looking_straight_down():
    worlds = scenes.flat_world(GROUND)
    worlds[0]["pitch"] = 90
    before = picture(worlds)
    scenes.put(worlds, 32, GROUND - 1, 32, "lava")
    assert changed(before, picture(worlds))[60:, 40:88].mean() > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_a_wall_hides_a_creature_and_a_creature_hides_a_wall(name):
    worlds = scenes.flat_world(GROUND)
    for x in range(24, 41):
        for y in range(GROUND, GROUND + 6):
            scenes.put(worlds, x, y, 38, "stone")
    bare = picture(worlds)
    scenes.creature(worlds, 0, name, 32.5, GROUND, 41.0)
    assert (picture(worlds) == bare).all()
    worlds[0]["c_z"][0] = 35.5
    mask = changed(bare, picture(worlds))
    assert mask.sum() > 100
    worlds[0]["c_z"][0] = 28.0  # behind the back
    assert (picture(worlds) == bare).all()


def test_creatures_have_their_size_and_nearer_ones_are_in_front():
    worlds = scenes.flat_world(GROUND)
    bare = picture(worlds, 256, 256)
    scenes.creature(worlds, 0, "zombie", 32.5, GROUND, 38.5)
    worlds[0]["c_yaw"][0] = 180
    far = picture(worlds, 256, 256)
    top, bottom, left, right = box_of(changed(bare, far))
    focal = 128 / HALF_TURN
    assert abs((bottom - 128) - focal * EYES / 6) < 12
    assert abs((128 - top) - focal * (1.95 - EYES) / 6) < 12
    scenes.creature(worlds, 1, "zombie", 32.5, GROUND, 35.0)
    both = picture(worlds, 256, 256)
    worlds[0]["c_kind"][0] = 0
    alone = picture(worlds, 256, 256)
    assert (alone == both).mean() > 0.98  # the far one is hidden but for its rim
    assert changed(alone, far).sum() > 2000
    assert left < 128 < right


def test_no_hole_in_a_closed_room():
    """From inside a room of one kind of block no pixel shows the sky, wherever one looks."""
    worlds = scenes.flat_world(GROUND)
    w = worlds[0]
    for x in range(29, 37):
        for z in range(29, 37):
            for y in range(GROUND - 1, GROUND + 5):
                if x in {29, 36} or z in {29, 36} or y in {GROUND - 1, GROUND + 4}:
                    scenes.put(worlds, x, y, z, "sand")
    scenes.put(worlds, 34, GROUND, 34, "sand")
    scenes.put(worlds, 31, GROUND + 3, 34, "sand")
    for yaw in range(0, 360, 23):
        for pitch in (-85, -50, -20, 0, 20, 50, 85):
            w["yaw"], w["pitch"] = yaw, pitch
            seen = picture(worlds, 72, 72)[:40]
            assert (seen[..., 0] > seen[..., 2]).all(), (yaw, pitch)


def test_under_a_roof_one_sees_the_far_side_and_under_a_floating_block_the_sky():
    worlds = scenes.flat_world(GROUND)
    bare = picture(worlds)
    scenes.put(worlds, 32, GROUND + 3, 37, "gravel")
    mask = changed(bare, picture(worlds))[:60]
    rows = np.nonzero(mask.any(1))[0]
    assert rows.max() < 50  # free sky between it and the horizon
    for x in range(29, 36):
        for z in range(34, 40):
            scenes.put(worlds, x, GROUND + 3, z, "oak_planks")
        scenes.put(worlds, x, GROUND + 1, 44, "gold_ore")
    under = picture(worlds)
    for x in range(29, 36):
        scenes.put(worlds, x, GROUND + 1, 44, "air")
    assert changed(under, picture(worlds)).sum() > 60


def test_light_and_weather_change_the_picture_as_they_should():
    worlds = scenes.flat_world(GROUND)
    w = worlds[0]
    light = {}
    for name, time, weather in (
        ("noon", 6_000, 0),
        ("night", 18_000, 0),
        ("evening", 13_000, 0),
        ("rain", 6_000, 1),
        ("thunder", 6_000, 2),
    ):
        w["time"], w["weather"] = time, weather
        light[name] = picture(worlds)[:, :60].mean()
    assert light["noon"] > light["rain"] > light["thunder"] > light["night"] > 5
    assert light["noon"] > light["evening"] > light["night"]
    w["time"], w["weather"] = 18_000, 0
    dark = picture(worlds)
    scenes.put(worlds, 30, GROUND, 36, "torch")
    lit = picture(worlds)
    assert lit.mean() > 1.3 * dark.mean()
    near, far = lit[80:90, 30:60].mean(), lit[66:70, 100:].mean()
    assert near > 1.4 * far


def test_fog_hides_the_edge_of_the_world():
    worlds = scenes.flat_world(GROUND)
    w = worlds[0]
    w["z"] = 5.5
    for x in range(20, 45):
        for y in range(GROUND, GROUND + 9):
            scenes.put(worlds, x, y, 51, "obsidian")
    far = picture(worlds)
    sky = far[10, 64]
    assert abs(far[56, 64] - far[30, 64]).max() < 90
    w["z"] = 45.5
    assert abs(picture(worlds)[40, 64] - sky).max() > 100


def test_eyes_in_water_see_blue_and_not_far():
    worlds = scenes.flat_world(GROUND)
    for x in range(26, 40):
        for z in range(26, 40):
            for y in range(GROUND, GROUND + 4):
                scenes.put(worlds, x, y, z, "water")
    seen = picture(worlds)[:60, :60]
    assert (seen[..., 2] > seen[..., 0] + 20).mean() > 0.95


def test_water_is_seen_through_and_tints():
    worlds = scenes.flat_world(GROUND)
    worlds[0]["pitch"] = 40
    for x in range(30, 36):
        for z in range(33, 38):
            scenes.put(worlds, x, GROUND - 1, z, "sand")
    dry = picture(worlds)
    for x in range(30, 36):
        for z in range(33, 38):
            scenes.put(worlds, x, GROUND - 1, z, "water")
            scenes.put(worlds, x, GROUND - 2, z, "sand")
    sandy = picture(worlds)
    assert sandy[64, 64, 2] > dry[64, 64, 2] - 40
    assert sandy[64, 64, 2] > sandy[64, 64, 0]
    for x in range(30, 36):
        for z in range(33, 38):
            scenes.put(worlds, x, GROUND - 2, z, "obsidian")
    assert picture(worlds)[64, 64].sum() < sandy[64, 64].sum()


def test_each_coat_of_a_sheep_has_its_own_colour_and_a_blow_reddens():
    worlds = scenes.flat_world(GROUND)
    scenes.creature(worlds, 0, "sheep", 31.5, GROUND, 35.5)
    w = worlds[0]
    w["c_yaw"][0] = 90
    seen = {}
    for coat, name in enumerate(COATS):
        w["c_coat"][0] = coat
        seen[name] = picture(worlds)
    for one in COATS:
        for other in COATS:
            if one != other:
                away = abs(seen[one] - seen[other]).sum(-1)
                assert (away > 30).sum() > 200, (one, other)
    w["c_coat"][0] = 0
    w["c_hurt"][0] = 8
    red = picture(worlds) - seen["white"]
    assert (red[..., 1] < -40).sum() > 200


def test_a_block_that_is_being_broken_cracks():
    worlds = scenes.flat_world(GROUND)
    scenes.put(worlds, 32, GROUND + 1, 35, "stone")
    w = worlds[0]
    whole = picture(worlds)
    w["dig_at"], w["dig_share"] = scenes.index(32, GROUND + 1, 35), 0.2
    little = picture(worlds)
    w["dig_share"] = 0.9
    much = picture(worlds)
    assert whole.sum() > little.sum() > much.sum()
    assert box_of(changed(whole, much)) < (64, 128, 128, 128)


def test_arrows_and_lying_items_are_seen():
    worlds = scenes.flat_world(GROUND)
    w = worlds[0]
    bare = picture(worlds)
    w["d_item"][0], w["d_count"][0] = blocks.NUMBER["pumpkin"], 1
    w["d_x"][0], w["d_y"][0], w["d_z"][0] = 32.0, GROUND, 35.0
    one = picture(worlds)
    assert changed(bare, one).sum() > 20
    w["a_age"][0], w["a_vx"][0] = 3, 1.0
    w["a_x"][0], w["a_y"][0], w["a_z"][0] = 33.0, GROUND + 2.0, 35.0
    assert changed(one, picture(worlds)).sum() > 10


@pytest.mark.parametrize("size", [(1, 1), (64, 64), (72, 128), (7, 5), (5, 7), (360, 640), (1, 9)])
@pytest.mark.parametrize("hud", [0, 1])
def test_any_size_is_filled_and_nothing_beside_it(size, hud):
    worlds = scenes.flat_world(GROUND)
    worlds[0]["screen"], worlds[0]["weather"] = hud, 1
    scenes.creature(worlds, 0, "cow", 32.5, GROUND, 34.5)
    frames = np.full((3, *size, 3), 77, np.uint8)
    three = np.concatenate([worlds] * 3)
    draw(three, frames, 70.0, hud, 1, 2)
    assert (frames[0] == 77).all()
    assert (frames[2] == 77).all()
    assert (frames[1] != 77).any()
    draw(three, frames, 70.0, hud, 0, 3)
    assert (frames[0] == frames[1]).all()


def test_a_picture_does_not_depend_on_the_batch_nor_on_threads():
    worlds = np.concatenate([scenes.flat_world(GROUND, seed=n) for n in range(8)])
    for n in range(8):
        w = worlds[n : n + 1]
        w[0]["yaw"], w[0]["time"], w[0]["screen"] = 40 * n, 3_000 * n, n % 4
        scenes.put(w, 30 + n % 4, GROUND, 36, "torch")
        scenes.creature(w, 0, NAMES[n % len(NAMES)], 32.5, GROUND, 36.5)
    before = worlds.copy()
    whole = shoot(worlds, 64, 64, hud=1)
    for name in worlds.dtype.names:  # only read
        assert (worlds[name] == before[name]).all(), name
    for n in (0, 3, 7):
        assert (shoot(worlds[n : n + 1], 64, 64, hud=1)[0] == whole[n]).all()
    halves = np.zeros_like(whole)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(draw, worlds, halves, 70.0, 1, lo, lo + 4) for lo in (0, 4)]
        for job in jobs:
            job.result()
    assert (halves == whole).all()
