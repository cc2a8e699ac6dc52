"""The picture that the player sees: ground, creatures, hands, weather and overlays.

See ``view`` for the projection. The ground is drawn by one walk per column of pixels (``columns``),
creatures and items by their boxes against the depth of the ground (``creatures``), weather, held
items and effects on the body over it, and the game's display over it all (``overlay``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, fast_inner, fast_kernel
from bridges.blockworld.pictures.columns import draw_ground
from bridges.blockworld.pictures.creatures import draw_bodies, light_body
from bridges.blockworld.pictures.overlay import blend, draw_panels, fill
from bridges.blockworld.pictures.textures import icon_texel
from bridges.blockworld.pictures.view import (
    SIGHT,
    aim_camera,
    draw_sky_lights,
    find_lamps,
    light_the_hour,
    open_at,
    paint_sky_rows,
)
from bridges.blockworld.rules.blocks import MAX_BLOCKS
from bridges.blockworld.rules.factors import DESERT, SAVANNA, SNOWY, TAIGA
from bridges.blockworld.rules.items import ITEMS, MAX_ITEMS, TOOL
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.world import CLEAR, HEIGHT, SIZE

# hands, weather, effects --------------------------------------------------------------------------

_SHIELD = ITEM["shield"]
_STICKS = np.zeros(MAX_ITEMS, np.uint8)
"""Items that are held by their lower end, diagonally."""
for _number, _item in enumerate(ITEMS):
    _STICKS[_number] = _item.name in {"stick", "bone", "arrow"} or TOOL[_number] > 0
_SKIN, _SLEEVE = 0xC68E6E, 0x2E8C92


@fast_inner
def lit(s: Any, texel: int) -> int:
    """Returns a texel under the light in ``s``."""
    red, green, blue = (texel >> 16) & 255, (texel >> 8) & 255, texel & 255
    return (
        (int(min(red * s.red, 255.0)) << 16)
        | (int(min(green * s.green, 255.0)) << 8)
        | int(min(blue * s.blue, 255.0))
    )


@fast_inner
def draw_held(s: Any, item: int, left: float, top: float, size: float, turned: int) -> None:
    """Draws an item into a square; mirrored if ``turned`` is 1."""
    first, end = int(max(left, 0.0)), int(min(left + size, float(s.wide)))
    upper, lower = int(max(top, 0.0)), int(min(top + size, float(s.tall)))
    for row in range(upper, lower):
        v = min(max((row + 0.5 - top) / size, 0.0), 0.999)
        for column in range(first, end):
            u = min(max((column + 0.5 - left) / size, 0.0), 0.999)
            texel = icon_texel(item, 0.999 - u if turned else u, v)
            if texel >> 24:
                blend(s, row, column, lit(s, texel), 1.0)


@fast_inner
def draw_arm(s: Any, aside: float, up: float) -> None:
    """Draws the bare arm: it comes from the lower right corner and leans to the middle."""
    tall, wide = float(s.tall), float(s.wide)
    reach = 0.34 * tall
    for row in range(int(max(tall - reach - up, 0.0)), s.tall):
        along = (tall + 0.5 - row + up * 0.5) / reach
        middle = wide - 0.05 * tall - aside - 0.2 * tall * along
        half = 0.085 * tall * (1.1 - 0.2 * along)
        skin = _SKIN if along > 0.42 else _SLEEVE
        for column in range(int(max(middle - half, 0.0)), int(min(middle + half, wide))):
            shade = 0xC0 if column > middle + 0.35 * half else 0x100
            red, green, blue = skin >> 16, (skin >> 8) & 255, skin & 255
            colour = ((red * shade >> 8) << 16) | ((green * shade >> 8) << 8) | (blue * shade >> 8)
            blend(s, row, column, lit(s, colour), 1.0)


@fast_inner
def draw_hands(w: World, s: Any) -> None:
    """Draws the items in both hands, in the light at the player's position."""
    light_body(w, s, w.x, s.eye_y - 0.3, w.z, 0.0)
    item, off = int(w.item[w.selected]), int(w.off_item)
    tall, wide = float(s.tall), float(s.wide)
    swing = math.sin(min(max(w.swing_ticks, 0), 6) * (math.pi / 6.0))
    aside, up = 0.16 * swing * tall, 0.1 * swing * tall
    if w.eat_ticks > 0:
        aside, up = 0.3 * wide, 0.04 * tall * math.sin(w.eat_ticks * 1.6)
    if item == 0 or w.count[w.selected] == 0:
        draw_arm(s, aside, up)
    elif _STICKS[item]:
        size = 0.58 * tall
        draw_held(s, item, wide - 0.86 * size - aside, tall - 0.84 * size - up, size, 1)
    else:
        size = (0.42 if item < MAX_BLOCKS else 0.36) * tall
        draw_held(s, item, wide - 1.1 * size - aside, tall - 0.82 * size - up, size, 1)
    if off > 0:
        size = (0.52 if off == _SHIELD else 0.36) * tall
        lift = 0.34 if w.blocking else 0.0
        draw_held(s, off, -0.1 * size + lift * 0.5 * wide, tall - (0.66 + lift) * size, size, 0)


@fast_inner
def draw_weather(w: World, s: Any) -> None:
    """Draws rain or snow in front of the eye; neither in deserts nor under a roof."""
    if w.weather == CLEAR or s.drowned or w.biome in (DESERT, SAVANNA):
        return
    x, z = min(max(int(s.eye_x), 1), SIZE - 2), min(max(int(s.eye_z), 1), SIZE - 2)
    if not open_at(w, x * SIZE + z, min(max(int(s.eye_y), 0), HEIGHT - 1)):
        return
    snow = w.biome in (SNOWY, TAIGA)
    length = 1 if snow else max(s.tall // 9, 2)
    size = max(s.tall // 160, 1)
    count = max(s.wide // (2 if snow else 3), 1)
    for n in range(min(count, 160)):
        drop = (n * 2654435761 + 97) & 0xFFFFFF
        column = drop % s.wide
        speed = s.tall // (24 if snow else 4) + 1
        row = ((drop >> 8) + (w.tick + n) * speed) % (s.tall + length) - length
        if snow:
            fill(s, column, row, 2 * size, 2 * size, 0xF4F8FF, 0.8)
        else:
            fill(s, column, row, size, length, 0x8CA0C8, 0.34)


@fast_inner
def draw_state(w: World, s: Any) -> None:
    """Tints the picture by the state of the body: fire, a blow, sleep, death."""
    wide, tall = int(s.wide), int(s.tall)
    if w.fire_ticks > 0:
        fill(s, 0, tall - tall // 4, wide, tall // 4, 0xFF8A1E, 0.45)
        fill(s, 0, tall - tall // 8, wide, tall // 8, 0xFFC83C, 0.4)
    if w.dead:
        fill(s, 0, 0, wide, tall, 0x8C0A0A, 0.5)
    elif w.sleep_ticks > 0:
        fill(s, 0, 0, wide, tall, 0x05050F, min(0.3 + w.sleep_ticks * 0.01, 0.85))
    elif w.hurt_ticks > 0:
        rim = max(tall // 16, 1)
        share = min(0.15 + 0.03 * w.hurt_ticks, 0.5)
        fill(s, 0, 0, wide, rim, 0xD01010, share)
        fill(s, 0, tall - rim, wide, rim, 0xD01010, share)
        fill(s, 0, rim, rim, tall - 2 * rim, 0xD01010, share)
        fill(s, wide - rim, rim, rim, tall - 2 * rim, 0xD01010, share)


# the picture --------------------------------------------------------------------------------------


@fast_kernel
def draw(worlds: Any, frames: Any, fov: float, hud: int, lo: int, hi: int) -> None:
    """Draws what the players of worlds ``lo`` to ``hi - 1`` see.

    Args:
        worlds: ``(W,)`` of type ``WORLD``; only read.
        frames: ``(W, height, width, 3)`` uint8, red, green, blue, contiguous; ``frames[k]`` is
            filled from ``worlds[k]``. Any height and width of at least 1.
        fov: vertical field of view in degrees.
        hud: whether hotbar, health, crosshair and open screens are drawn too.
        lo: first world.
        hi: end of the range of worlds.
    """
    tall, wide = frames.shape[1], frames.shape[2]
    if (
        frames.strides[0] != tall * wide * 3
        or frames.strides[2] != 3
        or frames.strides[1] != wide * 3
    ):
        raise ValueError("frames must lie in one piece (C order): pass a whole array, not a slice")
    depth = np.empty(tall * wide, np.float32)
    film = np.empty(tall * wide, np.float32)
    sky = np.empty(tall * 3, np.float32)
    sights = np.zeros(1, SIGHT)
    s = sights[0]
    s.tall, s.wide = tall, wide
    s.depth, s.film, s.sky = depth.ctypes.data, film.ctypes.data, sky.ctypes.data
    for k in range(lo, hi):
        s.picture = frames.ctypes.data + k * tall * wide * 3
        # Called one by one: the compiler processes each level of calls again.
        w = worlds[k]
        aim_camera(w, s, fov)
        light_the_hour(w, s)
        find_lamps(w, s)
        paint_sky_rows(s)
        draw_ground(w, s)
        draw_sky_lights(w, s)
        draw_bodies(w, s)
        draw_weather(w, s)
        if not w.dead and w.sleep_ticks == 0:
            draw_hands(w, s)
        draw_state(w, s)
        if hud:
            draw_panels(w, s)
    # Addresses do not keep arrays alive: the arrays are referenced again after drawing.
    depth[0] = film[0] = sky[0] = sights[0].focal
