"""The picture that the player sees: ground, creatures, hands, weather and overlays.

See ``view`` for the projection. The ground is drawn by one walk per column of pixels (``columns``),
creatures and items by their boxes against the depth of the ground (``creatures``), weather, held
items and effects on the body over it, and the game's display over it all (``overlay``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, fast_inner, fast_kernel
from bridges.blockworld.pictures.columns import draw_ground
from bridges.blockworld.pictures.creatures import draw_bodies, light_body
from bridges.blockworld.pictures.overlay import draw_panels, read_display
from bridges.blockworld.pictures.textures import ICON_LOOKS, ICON_TEXELS
from bridges.blockworld.pictures.view import (
    SIGHT,
    aim_camera,
    draw_sky_lights,
    find_lamps,
    light_the_hour,
    open_at,
    paint_sky_rows,
)
from bridges.blockworld.rules.factors import DESERT, SAVANNA, SNOWY, TAIGA
from bridges.blockworld.rules.world import CLEAR, HEIGHT, SIZE
from bridges.hud import HUD, draw_hands, fill

# weather, effects ---------------------------------------------------------------------------------


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
    s.texels, s.looks = ICON_TEXELS.ctypes.data, ICON_LOOKS.ctypes.data
    s.digits_from = 16
    displays = np.zeros(1, HUD)
    h = displays[0]
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
        read_display(w, h)
        if not w.dead and w.sleep_ticks == 0:
            light_body(w, s, w.x, s.eye_y - 0.3, w.z, 0.0)
            draw_hands(s, h)
        draw_state(w, s)
        if hud:
            draw_panels(w, s, h)
    # Addresses do not keep arrays alive: the arrays are referenced again after drawing.
    depth[0] = film[0] = sky[0] = sights[0].focal + displays[0].health
