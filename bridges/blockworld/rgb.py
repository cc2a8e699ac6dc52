"""The picture that the player sees: ground, creatures, hands and overlays.

See ``rgb_view`` for the projection. The ground is drawn by one walk per column of pixels
(``rgb_columns``), creatures and items by their boxes against the depth of the ground
(``rgb_creatures``), weather and hands over it (``rgb_hands``), and the game's display over it all
(``overlay``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import fast_kernel
from bridges.blockworld.overlay import draw_panels
from bridges.blockworld.rgb_columns import draw_ground
from bridges.blockworld.rgb_creatures import draw_bodies
from bridges.blockworld.rgb_hands import draw_hands, draw_state, draw_weather
from bridges.blockworld.rgb_sky import draw_sky_lights
from bridges.blockworld.rgb_view import (
    SIGHT,
    aim_camera,
    find_lamps,
    light_the_hour,
    paint_sky_rows,
)


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
