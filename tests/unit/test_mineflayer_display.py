"""What lies over the picture of a Minecraft player, without a game."""

import numpy as np
import pytest

from bridges.hud import FILL, GLYPH, POINTER, STACK
from bridges.mineflayer.pictures.display import cell_of, icons_of, window_rows
from bridges.mineflayer.pictures.looks import Looks
from bridges.mineflayer.pictures.rgb import render
from tests.unit.test_mineflayer_rgb import TABLE, World

pytestmark = [pytest.mark.heavy]

ITEMS = ["air", "diamond", "red_wool", "diamond_sword", "oak_slab", "poppy", "shield"]
LOOKS = Looks({**TABLE, "items": ITEMS})
SIZES = [(64, 64), (128, 128), (360, 640)]


def display(bar=(), window=None, **other):
    stacks = np.zeros((10, 4), np.int32)
    for place, stack in bar:
        stacks[place] = stack
    return {
        "bar": stacks.tobytes(),
        "selected": 0,
        "life": [20, 20, 0, 20, 0, 0],
        "swing": 1.0,
        "eating": 0,
        "raised": False,
        "window": window,
        **other,
    }


def window(stacks, scale, carried=(0, 0, 0, 0), **other):
    return {
        "scale": scale,
        "size": [176, 166],
        "title": "Crafting",
        "title_x": 8,
        "note": "",
        "places": [8, 84, 26, 84],
        "stacks": np.array(stacks, "<i4").tobytes(),
        "bars": [],
        "buttons": [],
        "scroll": None,
        "cursor": [88.0, 83.0],
        "over": -1,
        "carried": np.array([carried], "<i4").tobytes(),
        **other,
    }


def picture(shown, size):
    scene = World().scene(display=shown)
    scene.looks = LOOKS
    return render(scene, *size).astype(int)


def changed(before, after):
    return (before != after).any(-1)


@pytest.mark.parametrize("size", SIZES)
def test_the_display_shows_the_state_of_the_player(size):
    bare, full = picture(None, size), picture(display(), size)
    seen = changed(bare, full)
    assert seen[size[0] // 2, size[1] // 2], "the crosshair"
    assert seen[-3:, size[1] // 2 - 20 : size[1] // 2 + 20].all(), "the hotbar"
    assert not seen[: size[0] // 3].any()
    cell = cell_of(*size)
    left = (size[1] - 9 * cell) // 2
    with_item = changed(full, picture(display([(4, (1, 12, 0, 0))]), size))
    columns = np.flatnonzero(with_item.any(0))
    assert left + 4 * cell <= columns[0]
    assert columns[-1] <= left + 5 * cell
    for part in (0, 1, 2, 3, 4, 5):  # health, food, armour, air, level, progress
        life = [20.0, 20.0, 0.0, 20.0, 0, 0.0]
        life[part] = 7 if part < 5 else 0.5
        shown = changed(full, picture(display(life=life), size)).any()
        assert shown, part


@pytest.mark.parametrize("number", range(1, len(ITEMS)))
def test_each_item_has_an_icon_and_is_held(number):
    bare = picture(display(), (128, 128))
    held = changed(bare, picture(display([(0, (number, 1, 0, 0))]), (128, 128)))
    assert held[64:110, 90:].sum() > 60, "in the hand"
    assert held[-10:, 10:30].any(), "in the hotbar"


def test_blocks_are_solid_and_flowers_flat():
    looks = icons_of(LOOKS).looks.reshape(len(ITEMS), 5)
    forms = {name: (row[1] >= 0, int(row[3])) for name, row in zip(ITEMS, looks, strict=True)}
    assert forms["red_wool"] == (True, 16)
    assert forms["oak_slab"] == (True, 8)
    assert forms["poppy"] == forms["diamond"] == (False, 16)


@pytest.mark.parametrize("size", SIZES)
def test_an_open_window_shows_slots_cursor_and_what_it_carries(size):
    scale = 1.0 if size[0] == 360 else size[0] / 180
    empty, one = [[0] * 4] * 2, [[1, 5, 0, 0], [0] * 4]
    closed = picture(display(), size)
    opened = picture(display(window=window(empty, scale)), size)
    assert changed(closed, opened).mean() > 0.9, "it darkens the rest"
    with_item = picture(display(window=window(one, scale)), size)
    y, x = np.argwhere(changed(opened, with_item)).mean(0)
    left, top = (size[1] - 176 * scale) / 2, (size[0] - 166 * scale) / 2
    assert abs(x - left - 16 * scale) < 4 * scale + 1
    assert abs(y - top - 92 * scale) < 4 * scale + 1
    moved = picture(display(window=window(one, scale, cursor=[40.0, 40.0])), size)
    assert changed(with_item, moved).any()
    carries = picture(display(window=window(one, scale, carried=(2, 1, 0, 0))), size)
    assert changed(with_item, carries).any()


def test_the_item_under_the_cursor_is_named_within_the_picture():
    shown = window([[3, 1, 100, 200], [0] * 4], 1.0, over=0, cursor=[16.0, 92.0])
    rows = window_rows(shown, ITEMS, 640, 360)
    letters = [row for row in rows if row[0] == GLYPH]
    assert len(letters) == len("crafting") + len("diamondsword")
    assert {FILL, STACK, POINTER} <= set(rows[:, 0])
    right = window_rows({**shown, "cursor": [400.0, 92.0]}, ITEMS, 640, 360)
    assert max(row[2] for row in right if row[0] == GLYPH) < 640
