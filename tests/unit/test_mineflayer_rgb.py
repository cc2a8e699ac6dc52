"""The first-person picture of the Mineflayer bridge: what is seen where, without a game."""

import math

import numpy as np
import pytest

from bridges.atlas import TEXELS
from bridges.mineflayer.pictures import models as rgb_models
from bridges.mineflayer.pictures import palette
from bridges.mineflayer.pictures.compiled import RINGS
from bridges.mineflayer.pictures.frame import draw
from bridges.mineflayer.pictures.looks import BOXES, CROSS, CUBE, CUTOUT, OUT, WATER, WET_CROSS
from bridges.mineflayer.pictures.models import model_of, parts_of
from bridges.mineflayer.pictures.rgb import FIELD_OF_VIEW, Looks, Scene, relight, render, warm

CUBOID = [[0, 0, 0, 1, 1, 1]]
TABLE = {
    "appearances": [
        ["air", [], {}, 0, 1],
        ["stone", CUBOID, {}, 0, 15],
        ["red_wool", CUBOID, {}, 0, 15],
        ["blue_wool", CUBOID, {}, 0, 15],
        ["glass", CUBOID, {}, 0, 1],
        ["water", [], {"level": 0}, 0, 1],
        ["poppy", [], {}, 0, 1],
        ["oak_slab", [[0, 0, 0, 1, 0.5, 1]], {}, 0, 1],
        ["glowstone", CUBOID, {}, 15, 15],
        ["seagrass", [], {}, 0, 1],
        ["grass_block", CUBOID, {"snowy": False}, 0, 15],
        ["furnace", CUBOID, {"facing": "north", "lit": False}, 0, 15],
    ],
    "entities": [None, ["zombie", 0.6, 1.95], ["item", 0.25, 0.25], ["sheep", 0.9, 1.3]],
    "items": [None, "diamond", "red_wool"],
    "biomes": ["plains", "desert", "nether_wastes"],
}
NAMES = [row[0] for row in TABLE["appearances"]]
SIZE = (48, 32, 48)
"""x, y, z: the box of blocks that tests use."""
EYE = (24.5, 16.62, 24.5)
RED, BLUE = NAMES.index("red_wool"), NAMES.index("blue_wool")


class World:
    """A box of blocks that updates are made of."""

    def __init__(self, floor="stone"):
        self.blocks = np.zeros((SIZE[0], SIZE[2], SIZE[1]), np.uint16)
        self.blocks[:, :, :15] = NAMES.index(floor)
        self.biomes = np.zeros((SIZE[0], SIZE[2]), np.uint8)

    def put(self, name, x, y, z):
        self.blocks[x, z, y] = NAMES.index(name)

    def heights(self):
        solid = np.isin(self.blocks, [0, *(NAMES.index(n) for n in ("glass", "poppy", "oak_slab"))])
        return np.where((~solid).any(2), SIZE[1] - 1 - np.argmax(~solid[:, :, ::-1], 2), -1)

    def update(self, *, box=True, changes=(), bodies=(), **other):
        rows = np.array(changes, np.int32).reshape(-1, 5)
        return {
            "eye": EYE, "yaw": math.pi, "pitch": 0.0, "time": 6000, "rain": 0.0, "thunder": 0.0,
            "changes": rows.tobytes(),
            "bodies": np.array(bodies, np.float32).tobytes(),
            "box": {
                "origin": [0, 0, 0], "size": list(SIZE), "blocks": self.blocks.tobytes(),
                "heights": self.heights().astype(np.int16).tobytes(),
                "biomes": self.biomes.tobytes(),
            } if box else None,
            **other,
        }  # fmt: skip

    def scene(self, **other):
        scene = Scene(LOOKS)
        scene.apply(self.update(**other))
        return scene


LOOKS = Looks(TABLE)


def is_red(picture):
    """Where a picture shows red wool."""
    red, green, blue = (picture[..., n].astype(int) for n in range(3))
    return (red > 60) & (red > 2 * green) & (red > 2 * blue)


def is_blue(picture):
    red, green, blue = (picture[..., n].astype(int) for n in range(3))
    return (blue > 60) & (blue > 1.6 * red) & (blue > 1.6 * green)


def test_a_wall_fills_the_pixels_it_should():
    """Yaw pi looks along +z; a wall from x 22 to 27, y 15 to 20, five blocks ahead of the eye."""
    world = World()
    world.blocks[22:27, 30, 15:20] = RED
    picture = render(world.scene(), 140, 140)
    focal = 70 / math.tan(math.radians(FIELD_OF_VIEW) / 2)
    half = 2.5 / 5.5 * focal
    seen = is_red(picture)
    columns = np.flatnonzero(seen.any(0))
    rows = np.flatnonzero(seen.any(1))
    assert abs(columns[0] - (70 - half)) <= 1.5
    assert abs(columns[-1] + 1 - (70 + half)) <= 1.5
    assert abs(rows[0] - (70 - 3.38 / 5.5 * focal)) <= 1.5
    assert abs(rows[-1] + 1 - (70 + 1.62 / 5.5 * focal)) <= 1.5
    assert seen[rows[0] + 2 : rows[-1] - 1, columns[0] + 2 : columns[-1] - 1].all()


@pytest.mark.parametrize(
    ("yaw", "place"),
    [
        (math.pi, (24, 16, 28)),
        (0.0, (24, 16, 20)),
        (math.pi / 2, (20, 16, 24)),
        (-math.pi / 2, (28, 16, 24)),
    ],
)
def test_the_look_turns_as_mineflayers_does(yaw, place):
    world = World()
    world.put("red_wool", *place)
    picture = render(world.scene(yaw=yaw), 64, 64)
    assert is_red(picture)[32, 32]
    assert not is_red(render(world.scene(yaw=yaw + math.pi), 64, 64)).any()


def test_right_is_right_and_up_is_up():
    world = World()
    world.put("red_wool", 22, 16, 28)  # looking along +z, smaller x is to the right
    world.put("blue_wool", 24, 19, 28)
    picture = render(world.scene(), 64, 64)
    assert is_red(picture)[:, 33:].any()
    assert not is_red(picture)[:, :32].any()
    assert is_blue(picture)[:32].any()
    up = render(world.scene(pitch=0.3), 64, 64)  # what is above comes down
    assert np.flatnonzero(is_blue(up).any(1))[0] > 6 + np.flatnonzero(is_blue(picture).any(1))[0]


def test_nearer_blocks_cover_farther_ones():
    world = World()
    world.blocks[20:29, 34, 10:26] = BLUE
    assert is_blue(render(world.scene(), 64, 64))[30, 32]
    world.blocks[20:29, 30, 10:26] = RED
    picture = render(world.scene(), 64, 64)
    assert is_red(picture)[30, 32]
    assert not is_blue(picture).any()


def test_the_sky_is_above_and_follows_the_hour():
    world = World()
    noon = render(world.scene(), 64, 64)
    assert noon[2, :, 2].min() > 200
    night = render(world.scene(time=18000), 64, 64)
    assert night.mean() < 0.4 * noon.mean()
    rain = render(world.scene(rain=1.0), 64, 64).astype(int)
    spread = np.abs(rain[2, :, 2] - rain[2, :, 0])
    assert spread.max() < 45
    assert (noon[2, :, 2].astype(int) - noon[2, :, 0]).max() > 60


def test_the_sun_rises_in_the_east():
    look = {"yaw": -math.pi / 2, "pitch": 0.26}
    morning = render(World().scene(time=1000, **look), 64, 64)
    evening = render(World().scene(time=11000, **look), 64, 64)
    white = (morning.astype(int).min(2) > 245).sum()
    assert white > 20
    assert (evening.astype(int).min(2) > 245).sum() < white / 4


def test_bodies_are_seen_and_hidden():
    world = World()
    zombie = (1, 0.0, -1.62, 5.0, 0.0, 0.0, 0.0, 0.0)
    plain, seen = render(world.scene(), 64, 64), render(world.scene(bodies=[zombie]), 64, 64)
    changed = (plain != seen).any(2)
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    focal = 32 / math.tan(math.radians(FIELD_OF_VIEW) / 2)
    assert abs(rows[-1] + 1 - (32 + 1.62 / 5 * focal)) <= 3
    assert abs(rows[0] - (32 - 0.33 / 5 * focal)) <= 2
    assert columns[0] > 24
    assert columns[-1] < 40
    world.blocks[20:29, 27, 10:26] = BLUE
    hidden = render(world.scene(bodies=[zombie]), 64, 64)
    np.testing.assert_array_equal(hidden, render(world.scene(), 64, 64))


def test_a_body_behind_the_eye_is_not_drawn():
    behind = (1, 0.0, -1.62, -5.0, 0.0, 0.0, 0.0, 0.0)
    np.testing.assert_array_equal(
        render(World().scene(bodies=[behind]), 64, 64), render(World().scene(), 64, 64)
    )


def test_bodies_look_where_they_look():
    """A face has dark eyes: seen when it looks at us, not when it looks away."""

    def darkest(yaw):
        body = (1, 0.0, -1.62, 2.0, yaw, yaw, 0.0, 0.0)
        return int(
            render(World().scene(bodies=[body]), 128, 128)[52:66, 56:72].astype(int).sum(2).min()
        )

    assert darkest(0.0) < 80  # yaw 0 looks along -z, at us
    assert darkest(math.pi) > 80


def test_items_and_wool_have_their_colours():
    for row, test in (
        ((2, 0, -1.2, 2, 0, 0, 2, 0), is_red),
        ((3, 0, -1.62, 3, 0, 0, 14, 0), is_red),
    ):
        assert test(render(World().scene(bodies=[row]), 64, 64)).sum() > 10
    shorn = (3, 0, -1.62, 3, 0, 0, 14 + 16, 0)
    assert not is_red(render(World().scene(bodies=[shorn]), 64, 64)).any()


def test_unknown_kinds_are_drawn_as_something():
    rows = np.array([(99, 0, 0, 3, 0, 0, 0, 0), (-1, 0, 0, 3, 0, 0, 0, 0)], np.float32)
    assert len(parts_of(LOOKS, rows)) > 0


def test_glass_is_seen_through_and_water_tints():
    world = World()
    world.blocks[20:29, 34, 10:26] = RED
    clear = render(world.scene(), 64, 64)
    world.blocks[20:29, 30, 10:26] = NAMES.index("glass")
    assert 0.4 < is_red(render(world.scene(), 64, 64)).sum() / is_red(clear).sum() < 1.0
    world.blocks[20:29, 30, 10:26] = NAMES.index("water")
    tinted = render(world.scene(), 64, 64)
    assert not is_red(tinted)[26:34, 30:34].any()
    assert (tinted[30, 32].astype(int) != clear[30, 32]).any()
    assert tinted[30, 32, 2] > clear[30, 32, 2]


def test_under_water_everything_is_blue():
    world = World()
    world.blocks[:, :, 15:22] = NAMES.index("water")
    picture = render(world.scene(), 64, 64).astype(int)
    assert (picture[..., 2] > picture[..., 0]).all()


def test_half_blocks_and_plants_leave_room():
    world = World()
    world.blocks[22:27, 28, 16] = RED
    whole = is_red(render(world.scene(), 64, 64)).sum()
    world.blocks[22:27, 28, 16] = NAMES.index("oak_slab")
    slab = render(world.scene(), 64, 64)
    world.blocks[22:27, 28, 16] = 0
    empty = render(world.scene(), 64, 64)
    assert 0.3 < (slab != empty).any(2).sum() / whole < 0.75
    world.put("poppy", 24, 16, 27)
    poppy = (render(world.scene(), 64, 64) != empty).any(2).sum()
    assert 10 < poppy < whole / 2


def test_caves_are_dark_and_lamps_light_them():
    world = World()
    world.blocks[10:40, 10:40, 22] = NAMES.index("stone")
    world.blocks[10:40, [10, 39], 15:22] = NAMES.index("stone")
    world.blocks[[10, 39], 10:40, 15:22] = NAMES.index("stone")
    dark = render(world.scene(), 64, 64)
    assert dark.max() < 40
    world.put("glowstone", 24, 15, 30)
    lit = render(world.scene(), 64, 64)
    assert lit.mean() > 4 * dark.mean()


def test_single_changes_give_what_a_whole_box_gives():
    rng = np.random.default_rng(5)
    world = World()
    scene = world.scene()
    for _ in range(12):
        rows = []
        for _ in range(rng.integers(1, 6)):
            x, z, y = (int(rng.integers(1, n - 1)) for n in (SIZE[0], SIZE[2], SIZE[1]))
            look = int(rng.choice([0, 1, RED, NAMES.index("glowstone"), NAMES.index("glass")]))
            world.blocks[x, z, y] = look
            rows.append([x, y, z, look, 0])
        heights = world.heights()
        # The driver tells every height as it is after all changes.
        rows = [[x, y, z, int(world.blocks[x, z, y]), int(heights[x, z])] for x, y, z, *_ in rows]
        scene.apply(world.update(box=False, changes=rows))
        whole = world.scene()
        np.testing.assert_array_equal(scene.grid.light, whole.grid.light)
        np.testing.assert_array_equal(render(scene, 48, 64), render(whole, 48, 64))


def test_light_falls_by_one_a_block():
    world = World()
    world.blocks[:, :, 29] = NAMES.index("stone")
    world.put("glowstone", 24, 20, 24)
    grid = world.scene().grid
    light = grid.light.reshape(grid.wide, grid.deep, grid.tall) & 15
    for away in range(1, 9):
        assert light[25 + away, 25, 21] == 15 - away
        assert light[25, 25, 21 + away] == (15 - away if away < 9 else 0)
    relight(grid, LOOKS.book, 1, 2, 1, 2, 1, 2, np.zeros(1 << 17, np.int32))
    assert light[26, 25, 21] == 14


def test_grass_has_the_colour_of_its_biome():
    world = World("grass_block")
    plains = render(world.scene(pitch=-0.8), 32, 32).reshape(-1, 3).mean(0)
    world.biomes[:] = 1
    desert = render(world.scene(pitch=-0.8), 32, 32).reshape(-1, 3).mean(0)
    assert desert[0] > plains[0] + 15
    assert plains[1] > 1.3 * plains[0]


def test_the_nether_has_a_red_haze_and_no_night():
    world = World()
    world.biomes[:] = 2
    day, night = (render(world.scene(time=hour, pitch=0.5), 32, 32) for hour in (6000, 18000))
    np.testing.assert_array_equal(day[:8], night[:8])
    assert day[..., 0].mean() > 2 * day[..., 2].mean()


def test_pictures_are_the_same_each_time():
    world = World("grass_block")
    rng = np.random.default_rng(1)
    world.blocks[5:40, 5:40, 15] = rng.choice(len(NAMES), (35, 35))
    bodies = [(1, 1, -1.6, 4, 0.3, 0.1, 0, 0), (3, -1, -1.6, 3, 2, 2, 5, 2)]
    one, two = world.scene(bodies=bodies), world.scene(bodies=bodies)
    first = render(one, 72, 128)
    assert first.shape == (72, 128, 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, render(two, 72, 128))
    np.testing.assert_array_equal(first, render(one, 72, 128))
    # Other looks paint in another order, and show the same.
    looks = Looks(TABLE)
    looks.paint(np.array([9, 3, 7]))
    other = Scene(looks)
    other.apply(world.update(bodies=bodies))
    np.testing.assert_array_equal(first, render(other, 72, 128))


def test_the_picture_goes_where_it_should():
    scene = World().scene()
    out = np.zeros((2, 40, 30, 3), np.uint8)
    assert render(scene, 40, 30, out[1]) is not None
    assert out[1].any()
    assert not out[0].any()
    with pytest.raises(ValueError, match=r"must be \(40, 30, 3\)"):
        render(scene, 40, 30, np.zeros((40, 31, 3), np.uint8))
    with pytest.raises(ValueError, match="in one piece"):
        render(scene, 40, 30, np.zeros((40, 60, 3), np.uint8)[:, ::2])


def test_warming_compiles_all_that_pictures_need():
    warm()
    render(World().scene(bodies=[(1, 0, 0, 3, 0, 0, 0, 0)]), 16, 16)
    # Another type of an argument would have been compiled anew.
    assert [len(kernel.signatures) for kernel in (draw, relight)] == [1, 1]


def test_nothing_before_the_first_box():
    scene = Scene(LOOKS)
    with pytest.raises(ValueError, match="first update"):
        render(scene, 8, 8)
    with pytest.raises(ValueError, match="begins with a box"):
        scene.apply(World().update(box=False))


def test_the_eye_may_leave_the_box():
    """A teleport is drawn one frame before its box comes: no crash, whatever it shows."""
    for eye in ((-500.0, 16.0, 24.0), (24.0, 900.0, 24.0), (24.0, 16.0, 1e7)):
        render(World().scene(eye=eye), 16, 16)


@pytest.mark.parametrize("yaw", [0.0, math.pi / 2, math.pi, -math.pi / 2])
@pytest.mark.parametrize(("x", "z"), [(0.3, 24.0), (47.7, 24.0), (24.0, 0.3), (24.0, 47.7)])
def test_rays_that_skip_open_air_stay_in_the_box(x, z, yaw, monkeypatch):
    """From its edges, high above the ground, down to both sides of the edge."""
    scene = World().scene(eye=(x, SIZE[1] - 1.5, z), yaw=yaw, pitch=-0.5)
    seen = render(scene, 48, 64)
    monkeypatch.setattr(Scene, "ceilings", lambda *_: np.full((2, 2, len(RINGS) + 1), 1e6))
    followed = render(scene, 48, 64)  # cell by cell
    assert (seen == followed).all(2).mean() > 0.995


def test_forms_follow_from_names_and_boxes():
    forms = dict(zip(NAMES, LOOKS.forms, strict=False))
    assert forms["stone"] == CUBE
    assert forms["glass"] == CUTOUT
    assert forms["water"] == WATER
    assert forms["poppy"] == CROSS
    assert forms["oak_slab"] == BOXES
    assert forms["seagrass"] == WET_CROSS
    assert LOOKS.forms[-1] == OUT


def test_every_name_has_a_look():
    for name in ("oak_log", "diamond_ore", "stone_bricks", "wheat", "red_bed", "cobweb", "zzz"):
        faces = palette.faces_of(name, {})
        assert len(faces) == 6
        assert all(tile.shape == (TEXELS,) for tile in faces)
        assert any((tile >> 24).any() for tile in faces)
    north = palette.faces_of("furnace", {"facing": "north"})
    assert (north[5] != north[4]).any()
    assert (palette.faces_of("furnace", {"facing": "south"})[4] == north[5]).all()
    mean = [int(palette.faces_of("zzz", {})[0][-1]) >> shift & 255 for shift in (16, 8, 0)]
    np.testing.assert_allclose(mean, palette.own_colour("zzz"), atol=12)


def test_models_fit_their_size():
    for name, wide, tall in (("zombie", 0.6, 1.95), ("cow", 0.9, 1.4), ("slime", 2.0, 2.0)):
        parts = model_of(name, wide, tall, 0, "")
        own = [part for part in parts if part.half_y > 0.1]
        assert abs(max(part.y + part.half_y for part in own) - tall) < 0.12
        assert abs(min(part.y - part.half_y for part in parts)) < 0.02


def test_every_kind_of_the_table_can_be_made():
    """A misspelt stroke, face or plan is found here and not when a creature comes by."""
    for name in rgb_models._bodies()["kinds"]:
        assert len(model_of(name, 0.9, 1.4, 0, "")) > 0


def test_items_have_icons():
    drawn = {
        name: palette.icon_of(name)
        for name in ("iron_sword", "bread", "oak_door", "diamond", "lava_bucket", "stone")
    }
    assert drawn.pop("stone") is None  # a small block
    assert all(20 < (tile[:256] >> 24).sum() < 256 for tile in drawn.values())


def test_icons_face_the_eye_from_every_side():
    """A diamond on the ground shows its drawing, whatever the direction it is seen from."""
    seen = []
    for x, z, yaw in ((0, 2, math.pi), (2, 0, -math.pi / 2), (0, -2, 0.0), (-2, 0, math.pi / 2)):
        empty = render(World().scene(yaw=yaw), 64, 64)
        row = (2, x, -0.3, z, 0.7, 0.7, 1, 0)
        seen.append(
            int((render(World().scene(yaw=yaw, bodies=[row]), 64, 64) != empty).any(2).sum())
        )
    assert min(seen) > 25
    assert max(seen) - min(seen) < 12
