"""What lies over the picture: hands, hotbar, health, screens."""

import numpy as np
import pytest

from bridges.blockworld.pictures.rgb import draw
from bridges.blockworld.rules.items import ITEMS, MAX_BLOCKS, NUMBER
from bridges.blockworld.rules.world import FURNACE_SCREEN, INVENTORY_SCREEN, TABLE_SCREEN
from tests.unit import blockworld_scenes as scenes

pytestmark = [pytest.mark.heavy]

SIZES = [(64, 64), (72, 128), (360, 640)]


def picture(worlds, height=64, width=64, hud=1):
    frames = np.zeros((1, height, width, 3), np.uint8)
    draw(worlds, frames, 70.0, hud, 0, 1)
    return frames[0].astype(int)


def changed(before, after):
    return (before != after).any(-1)


@pytest.mark.parametrize("size", SIZES)
def test_without_hud_there_is_neither_crosshair_nor_hotbar(size):
    worlds = scenes.flat_world()
    mask = changed(picture(worlds, *size, hud=0), picture(worlds, *size, hud=1))
    rows = mask.any(1)
    assert mask[size[0] // 2, size[1] // 2]
    assert rows[-3:].all()
    assert not rows[: size[0] // 3].any()
    assert mask.mean() < 0.2


def test_each_item_in_the_hand_is_a_picture_of_its_own():
    worlds = scenes.flat_world()
    seen = {picture(worlds, 128, 128, hud=0).tobytes()}
    names = [item.name for item in ITEMS if item.name and item.name not in {"air", "edge"}]
    for name in names:
        scenes.give(worlds, 0, name)
        seen.add(picture(worlds, 128, 128, hud=0).tobytes())
    same = len(names) + 1 - len(seen)
    assert same <= 0, same
    assert len(names) > MAX_BLOCKS // 2


def test_the_hand_swings():
    worlds = scenes.flat_world()
    scenes.give(worlds, 0, "iron_sword")
    rest = picture(worlds, 128, 128)
    worlds[0]["swing_ticks"] = 3
    assert changed(rest, picture(worlds, 128, 128)).sum() > 200


def test_the_off_hand_is_seen_at_the_left_and_a_shield_is_raised():
    worlds = scenes.flat_world()
    bare = picture(worlds, 128, 128, hud=0)
    worlds[0]["off_item"], worlds[0]["off_count"] = NUMBER["shield"], 1
    held = picture(worlds, 128, 128, hud=0)
    mask = changed(bare, held)
    assert mask.any()
    assert not mask[:, 64:].any()
    worlds[0]["blocking"] = 1
    raised = changed(bare, picture(worlds, 128, 128, hud=0))
    assert np.nonzero(raised.any(1))[0].min() < np.nonzero(mask.any(1))[0].min()


@pytest.mark.parametrize("size", SIZES)
def test_health_food_armour_and_breath_are_shown(size):
    worlds = scenes.flat_world()
    w = worlds[0]
    full = picture(worlds, *size)
    for field, value in (("health", 9), ("food", 7), ("air", 100)):
        before = w[field].copy()
        w[field] = value
        assert changed(full, picture(worlds, *size)).any(), field
        w[field] = before
    w["armour"][1] = NUMBER["iron_chestplate"]
    assert changed(full, picture(worlds, *size)).any()


@pytest.mark.parametrize("size", SIZES)
def test_the_hotbar_shows_what_is_in_it_and_which_is_selected(size):
    worlds = scenes.flat_world()
    empty = picture(worlds, *size)
    scenes.give(worlds, 4, "apple", 3)
    mask = changed(empty, picture(worlds, *size))
    columns = np.nonzero(mask.any(0))[0]
    cell = min(max(size[0] // 12, 5), size[1] // 9)
    left = (size[1] - 9 * cell) // 2
    assert columns.min() >= left + 4 * cell
    assert columns.max() <= left + 5 * cell
    worlds[0]["selected"] = 8
    assert changed(empty, picture(worlds, *size))[-2:].any()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("screen", [INVENTORY_SCREEN, TABLE_SCREEN, FURNACE_SCREEN])
def test_a_screen_shows_bags_cursor_and_what_it_carries(size, screen):
    worlds = scenes.flat_world()
    w = worlds[0]
    closed = picture(worlds, *size)
    w["screen"], w["cursor_x"], w["cursor_y"] = screen, 4.5, 3.5
    opened = picture(worlds, *size)
    assert changed(closed, opened).mean() > 0.4
    scenes.give(worlds, 20, "diamond", 2)
    with_item = picture(worlds, *size)
    assert changed(opened, with_item).any()
    w["cursor_x"], w["cursor_y"] = 0.5, 6.5
    moved = picture(worlds, *size)
    assert changed(with_item, moved).any()
    w["carried"], w["carried_count"] = NUMBER["bread"], 1
    assert changed(moved, picture(worlds, *size)).any()


def test_what_lies_in_an_open_furnace_is_shown():
    worlds = scenes.flat_world()
    w = worlds[0]
    scenes.put(worlds, 32, 12, 34, "furnace")
    at = scenes.index(32, 12, 34)
    w["furnaces"][0], w["screen"], w["screen_at"] = at, FURNACE_SCREEN, at
    empty = picture(worlds, 128, 128)
    w["furnace_in"][0], w["furnace_in_count"][0] = NUMBER["beef"], 2
    raw = picture(worlds, 128, 128)
    assert changed(empty, raw).any()
    w["furnace_cook"][0] = 150
    assert changed(raw, picture(worlds, 128, 128)).any()


def test_sleep_darkens_death_and_blows_redden():
    worlds = scenes.flat_world()
    w = worlds[0]
    awake = picture(worlds, hud=0)
    w["sleep_ticks"] = 60
    assert picture(worlds, hud=0).mean() < 0.5 * awake.mean()
    w["sleep_ticks"], w["hurt_ticks"] = 0, 10
    rim = picture(worlds, hud=0)
    assert changed(awake, rim)[0].all()
    assert not changed(awake, rim)[20:40, 20:40].any()
    w["hurt_ticks"], w["dead"] = 0, 1
    dead = picture(worlds, hud=0)
    assert dead[..., 0].mean() > dead[..., 1].mean()
