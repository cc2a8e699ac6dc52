"""The view of a picture: the camera, the light of the time of day, the fog, the sky.

The image plane is always vertical, whatever the pitch: vertical edges stay vertical in the picture.
With ``p`` the pitch, ``f = height / 2 / tan(fov / 2)`` and ``g = f * cos(p)``, a point that lies
``t`` ahead of the eye (along the level direction of the look), ``s`` to its right and ``h`` above
it is drawn at column ``width / 2 + g * s / t`` and row ``height / 2 - g * (h / t + tan(p))``. At
pitch 0 that is the exact perspective of a camera with this field of view; at any other it is the
exact perspective of a camera whose plane was shifted and not rotated. The middle of the picture is
the exact direction of the look, and horizontal sizes are exact there. Beyond ``STEEPEST`` degrees
up or down the picture stays as at ``STEEPEST``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, fast_inner, get_float, set_byte, set_float
from bridges.blockworld.rules.blocks import FORM, LAVA, LIGHT, LIQUID, PLANT, WATER
from bridges.blockworld.rules.world import (
    CLEAR,
    COLUMNS,
    DAY,
    HEIGHT,
    MAX_LAMPS,
    RAIN,
    SIZE,
    block_at,
    eye_height,
)

STEEPEST = 80.0
"""Degrees of pitch, up or down, beyond which the picture does not change."""
FAR = 1e9
"""Depth of a pixel to which nothing has been drawn."""
NEAR = 0.02
"""Minimum depth of what is drawn, in blocks."""

SIGHT = np.dtype(
    [
        # the camera
        ("eye_x", "f8"),
        ("eye_y", "f8"),
        ("eye_z", "f8"),
        ("ahead_x", "f8"),  # direction of the look, level
        ("ahead_z", "f8"),
        ("right_x", "f8"),
        ("right_z", "f8"),
        ("focal", "f8"),  # pixels per block at a depth of one block
        ("horizon", "f8"),  # row at the height of the eye
        ("drowned", "i8"),  # the eye is in water or lava
        # the time of day
        ("sun", "f8"),  # height of the sun, -1 to 1
        ("limit", "f8"),  # range of sight in blocks
        ("fog_from", "f8"),
        ("fog_step", "f8"),
        ("fog", "f8", (3,)),  # colours: red, green, blue from 0 to 255; ``day`` from 0 to 1
        ("top", "f8", (3,)),
        ("day", "f8", (3,)),
        ("n_lamps", "i8"),
        ("lamps", "i8", (MAX_LAMPS, 4)),
        ("biome", "i8"),
        ("dig_at", "i8"),
        ("crack", "i8"),
        # the picture
        ("wide", "i8"),
        ("tall", "i8"),
        ("picture", "i8"),  # addresses, see ``bare``
        ("depth", "i8"),
        ("film", "i8"),
        ("sky", "i8"),
        ("texels", "i8"),  # of icons; see ``bridges.hud``
        ("looks", "i8"),
        ("digits_from", "i8"),
        # the world: addresses again, since array indices may be negative and are checked
        ("blocks", "i8"),
        ("heights", "i8"),
        # the current column of pixels
        ("column", "i8"),
        ("top_row", "i8"),  # all rows above it are filled
        ("end_row", "i8"),  # and all from it on
        ("watery", "i8"),  # there is a surface of water
        ("ray_x", "f8"),
        ("ray_z", "f8"),
        ("stretch", "f8"),  # length of its rays relative to the one in the middle
        # the current face: a texel ``c`` is drawn as ``c * light + haze``
        ("red", "f8"),
        ("green", "f8"),
        ("blue", "f8"),
        ("haze_red", "f8"),
        ("haze_green", "f8"),
        ("haze_blue", "f8"),
    ],
    align=True,
)
"""Inputs of a picture besides its world: one for each call of ``draw``, not kept."""


@fast_inner
def aim_camera(w: World, s: Any, fov: float) -> None:
    """Stores in ``s`` the position and direction of the camera."""
    pitch = math.radians(min(max(w.pitch, -STEEPEST), STEEPEST))
    yaw = math.radians(w.yaw)
    focal = s.tall * 0.5 / math.tan(math.radians(fov) * 0.5)
    s.eye_x, s.eye_y, s.eye_z = w.x, w.y + eye_height(w), w.z
    s.ahead_x, s.ahead_z = -math.sin(yaw), math.cos(yaw)
    s.right_x, s.right_z = -math.cos(yaw), -math.sin(yaw)
    s.focal = focal * math.cos(pitch)
    s.horizon = s.tall * 0.5 - focal * math.sin(pitch)
    s.blocks, s.heights = w.blocks.ctypes.data, w.heights.ctypes.data
    s.biome = min(int(w.biome), 7)
    s.dig_at = w.dig_at
    s.crack = 24 + int(w.dig_share * 130.0) if w.dig_at >= 0 else 0


@fast_inner
def mix(colour: Any, red: float, green: float, blue: float, share: float) -> None:
    """Blends a colour with another by a share."""
    colour[0] += (red - colour[0]) * share
    colour[1] += (green - colour[1]) * share
    colour[2] += (blue - colour[2]) * share


@fast_inner
def light_the_hour(w: World, s: Any) -> None:
    """Stores in ``s`` the colours of light, fog and sky, for time of day, weather and water."""
    sun = math.cos((w.time - DAY // 4) * (2.0 * math.pi / DAY))
    s.sun = sun
    day = min(max(sun * 1.7 + 0.55, 0.0), 1.0)
    dusk = max(0.0, 1.0 - abs(sun + 0.05) * 2.6)
    s.day[0], s.day[1], s.day[2] = 0.2, 0.24, 0.38
    mix(s.day, 1.0, 1.0, 1.0, day)
    s.fog[0], s.fog[1], s.fog[2] = 14.0, 18.0, 36.0
    mix(s.fog, 192.0, 216.0, 255.0, day)
    mix(s.fog, 236.0, 150.0, 92.0, dusk * 0.75)
    s.top[0], s.top[1], s.top[2] = 4.0, 6.0, 16.0
    mix(s.top, 104.0, 160.0, 252.0, day)
    mix(s.top, 92.0, 92.0, 158.0, dusk * 0.6)
    s.fog_from, s.limit = 20.0, 42.0
    if w.weather != CLEAR:
        storm = 0.72 if w.weather == RAIN else 0.46
        grey = (40.0 + 150.0 * day) * storm
        mix(s.fog, grey, grey * 1.02, grey * 1.08, 0.85)
        mix(s.top, grey * 0.8, grey * 0.83, grey * 0.92, 0.85)
        mix(s.day, 0.14, 0.15, 0.19, 0.9 - storm * 0.9)
        s.fog_from, s.limit = 10.0, 34.0
    block = block_at(w, s.eye_x, s.eye_y, s.eye_z)
    s.drowned = 1 if FORM[block] == LIQUID else 0
    if block == WATER:
        glow = 0.35 + 0.65 * day
        mix(s.fog, 22.0 * glow, 62.0 * glow, 158.0 * glow, 1.0)
        mix(s.day, 0.42 * glow, 0.6 * glow, 0.95 * glow, 0.8)
        s.fog_from, s.limit = 0.0, 14.0
    elif block == LAVA:
        mix(s.fog, 214.0, 84.0, 16.0, 1.0)
        s.fog_from, s.limit = 0.0, 2.0
    if s.drowned:
        mix(s.top, s.fog[0], s.fog[1], s.fog[2], 1.0)
    s.fog_step = 1.0 / (s.limit - 1.0 - s.fog_from)


@fast_inner
def find_lamps(w: World, s: Any) -> None:
    """Stores in ``s`` x, y, z and light of the lamps within range."""
    s.n_lamps = 0
    for n in range(min(w.n_lamps, MAX_LAMPS)):
        at = w.lamps[n]
        x, y, z = at // (SIZE * HEIGHT), at % HEIGHT, at // HEIGHT % SIZE
        light = LIGHT[w.blocks[at]]
        away = abs(x - s.eye_x) + abs(z - s.eye_z)
        if light > 0 and away < 1.5 * s.limit + light:
            n_lamps = s.n_lamps
            s.lamps[n_lamps, 0], s.lamps[n_lamps, 1] = x, y
            s.lamps[n_lamps, 2], s.lamps[n_lamps, 3] = z, light
            s.n_lamps = n_lamps + 1


@fast_inner
def open_at(w: World, column: int, y: int) -> bool:
    """True if nothing but a plant is above a cell, or in it."""
    height = w.heights[column]
    # y 31 is always air: the cell is in the world wherever the second part is evaluated
    return bool(y >= height or (y == height - 1 and FORM[w.blocks[column * HEIGHT + y]] == PLANT))


@fast_inner
def light_of_sky(w: World, column: int, y: int) -> float:
    """Returns how much sky light reaches a cell, from 0 to 1."""
    if open_at(w, column, y):
        return 1.0
    for n in range(2):
        step = 1 if n == 0 else 3
        if (
            y >= w.heights[max(column - SIZE * step, 0)]
            or y >= w.heights[min(column + SIZE * step, COLUMNS - 1)]
            or y >= w.heights[max(column - step, 0)]
            or y >= w.heights[min(column + step, COLUMNS - 1)]
        ):
            return 0.72 if n == 0 else 0.48
    return 0.26


@fast_inner
def light_of_lamps(s: Any, column: int, y: int) -> float:
    """Returns the light of the nearest lamp in a cell, from 0 to 1; it loses 1/15 per block."""
    best = 0
    x, z = column // SIZE, column % SIZE
    for n in range(s.n_lamps):
        lost = abs(x - s.lamps[n, 0]) + abs(y - s.lamps[n, 1]) + abs(z - s.lamps[n, 2])
        best = max(best, s.lamps[n, 3] - lost)
    return best * best * (1.0 / 196.0)


@fast_inner
def light_cell(w: World, s: Any, column: int, y: int, away: float, share: float) -> None:
    """Stores in ``s`` the light in a cell and the fog in front of it, ``away`` blocks from the eye.

    The face reflects ``share`` of the light: Minecraft dims sides and bottoms.
    """
    sky = light_of_sky(w, column, y)
    warm = 0.06
    if s.n_lamps > 0:
        warm = max(warm, light_of_lamps(s, column, y))
    fog = min(max((away - s.fog_from) * s.fog_step, 0.0), 1.0)
    clear = (1.0 - fog) * share
    s.red = max(s.day[0] * sky, warm) * clear
    s.green = max(s.day[1] * sky, warm * 0.86) * clear
    s.blue = max(s.day[2] * sky, warm * 0.64) * clear
    s.haze_red, s.haze_green, s.haze_blue = s.fog[0] * fog, s.fog[1] * fog, s.fog[2] * fog


@fast_inner
def glow(s: Any, away: float) -> None:
    """Gives the current face full light; see ``light_cell``."""
    fog = min(max((away - s.fog_from) * s.fog_step, 0.0), 1.0)
    s.red = s.green = s.blue = 1.0 - fog
    s.haze_red, s.haze_green, s.haze_blue = s.fog[0] * fog, s.fog[1] * fog, s.fog[2] * fog


@fast_inner
def paint_sky_rows(s: Any) -> None:
    """Fills the floats at ``s.sky`` with the colour of the sky in each row, ``(height, 3)``."""
    for row in range(s.tall):
        up = (s.horizon - (row + 0.5)) / s.focal
        share = min(max(up * 1.5, 0.0), 1.0)
        for n in range(3):
            set_float(s.sky, row * 3 + n, s.fog[n] + (s.top[n] - s.fog[n]) * share)


# sun and moon -------------------------------------------------------------------------------------

_HALF = 0.075
"""Half the width of sun and moon, at a distance of one block."""


@fast_inner
def draw_sky_lights(w: World, s: Any) -> None:
    """Draws sun and moon where clear sky is visible: up in the east (+x), down in the west."""
    if w.weather != CLEAR or s.drowned:
        return
    turn = (w.time - DAY // 4) * (2.0 * math.pi / DAY)
    for n in range(2):
        side = 1.0 if n == 0 else -1.0
        x, y = -math.sin(turn) * side, math.cos(turn) * side
        ahead, aside = x * s.ahead_x, x * s.right_x
        if ahead < 0.05 or y < -0.1:
            continue
        scale = s.focal / ahead
        middle, row = s.wide * 0.5 + scale * aside, s.horizon - scale * y
        half = _HALF * s.focal * math.sqrt(1.0 + (y / ahead) ** 2)
        first = int(min(max(middle - half, 0.0), float(s.wide)))
        end = int(min(max(middle + half, 0.0), float(s.wide)))
        top = int(min(max(row - half, 0.0), float(s.tall)))
        bottom = int(min(max(row + half, 0.0), float(s.tall), s.horizon))
        for column in range(first, end):
            for line in range(top, bottom):
                if get_float(s.depth, column * s.tall + line) == FAR:
                    pixel = (line * s.wide + column) * 3
                    set_byte(s.picture, pixel, 255 if n == 0 else 206)
                    set_byte(s.picture, pixel + 1, 248 if n == 0 else 212)
                    set_byte(s.picture, pixel + 2, 206 if n == 0 else 226)
