"""One picture: first bodies, pixel by pixel, then rays through the blocks, then the sky.

Bodies are boxes rotated about the vertical axis; each is tested on the pixels that its corners
span, and the nearest is kept in ``s.bodies``. A ray ends there if it meets nothing before it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.mineflayer.pictures.compiled import f8, inner, kernel, set_f8, set_u1, u1
from bridges.mineflayer.pictures.kernel import NOWHERE, THERE, leave_water, texel_at, trace

# A part of a body: position of its feet relative to the eye, rotation, box, tiles of its sides, of
# its front (+z) and of its top and bottom.
(
    BODY_X, BODY_Y, BODY_Z, SINE, COSINE, MIDDLE_X, MIDDLE_Y, MIDDLE_Z, HALF_X, HALF_Y, HALF_Z,
    PART_SIDE, PART_FRONT, PART_TOP, PART,
) = range(15)  # fmt: skip
CLOUDS = 64
"""The period of the clouds in pieces, a power of two."""
_CLOUD = 12.0
_NEAR = 0.05
_SIDES = np.array([0.72, 1.0, 0.86])
"""Brightness of the sides of a part: x, y, z."""


@inner
def light_body(s: Any, part: int) -> None:
    """Stores in ``s`` the light in the cell of a body's chest; outside the box, that of the sky."""
    x = int(s.eye_x + f8(part, BODY_X))
    y = int(s.eye_y + f8(part, BODY_Y) + 0.6)
    z = int(s.eye_z + f8(part, BODY_Z))
    light = 240
    if 0 < x < s.wide - 1 and 0 < y < s.tall - 1 and 0 < z < s.deep - 1:
        light = u1(s.light, (x * s.deep + z) * s.tall + y)
    s.shine_r = f8(s.shine, light * 3)
    s.shine_g = f8(s.shine, light * 3 + 1)
    s.shine_b = f8(s.shine, light * 3 + 2)


@inner
def span(s: Any, part: int, frame: Any) -> bool:
    """Stores the range of columns and rows that contains a part; False if it is behind."""
    frame[0], frame[1], frame[2], frame[3] = NOWHERE, -NOWHERE, NOWHERE, -NOWHERE
    sine, cosine = f8(part, SINE), f8(part, COSINE)
    ahead_of = False
    for corner in range(8):
        half_x, half_y, half_z = f8(part, HALF_X), f8(part, HALF_Y), f8(part, HALF_Z)
        across = f8(part, MIDDLE_X) + (half_x if corner & 1 else -half_x)
        ahead = f8(part, MIDDLE_Z) + (half_z if corner & 2 else -half_z)
        y = f8(part, BODY_Y) + f8(part, MIDDLE_Y) + (half_y if corner & 4 else -half_y)
        x = f8(part, BODY_X) + across * cosine - ahead * sine
        z = f8(part, BODY_Z) - across * sine - ahead * cosine
        away = x * s.ahead_x + y * s.ahead_y + z * s.ahead_z
        if away < _NEAR:
            # It extends behind the picture plane: any pixel may show it.
            frame[0], frame[1], frame[2], frame[3] = 0.0, s.columns, 0.0, s.rows
        else:
            ahead_of = True
            scale = s.focal / away
            column = s.columns * 0.5 + scale * (x * s.right_x + z * s.right_z)
            row = s.rows * 0.5 - scale * (x * s.up_x + y * s.up_y + z * s.up_z)
            frame[0], frame[1] = min(frame[0], column), max(frame[1], column)
            frame[2], frame[3] = min(frame[2], row), max(frame[3], row)
    return ahead_of


@inner
def aim(s: Any, column: int, row: int) -> None:
    """Points the ray through a pixel."""
    across = (column + 0.5 - s.columns * 0.5) / s.focal
    up = (s.rows * 0.5 - row - 0.5) / s.focal
    s.dx = s.ahead_x + across * s.right_x + up * s.up_x
    s.dy = s.ahead_y + up * s.up_y
    s.dz = s.ahead_z + across * s.right_z + up * s.up_z
    s.stretch = math.sqrt(1.0 + across * across + up * up)
    s.pixel = row * s.columns + column


@inner
def strike(s: Any, part: int) -> float:
    """Returns where the ray meets a part; stores the axis."""
    sine, cosine = f8(part, SINE), f8(part, COSINE)
    x, z = f8(part, BODY_X), f8(part, BODY_Z)
    first, last, side = 0.0, NOWHERE, 1
    for axis in range(3):
        if axis == 1:
            start, step = -f8(part, BODY_Y), s.dy
        elif axis == 0:
            start, step = z * sine - x * cosine, s.dx * cosine - s.dz * sine
        else:
            start, step = x * sine + z * cosine, -s.dx * sine - s.dz * cosine
        start -= f8(part, MIDDLE_X + axis)
        half = f8(part, HALF_X + axis)
        if abs(step) < 1e-9:
            if abs(start) > half:
                return NOWHERE
            continue
        near, far = (-half - start) / step, (half - start) / step
        if near > far:
            near, far = far, near
        if near > first:
            first, side = near, axis
        last = min(last, far)
    s.face = side
    return first if _NEAR < first < last else NOWHERE


@inner
def skin_at(s: Any, part: int, t: float) -> int:
    """Returns the texel of a part where the ray meets it, on the axis that ``strike`` stored."""
    sine, cosine = f8(part, SINE), f8(part, COSINE)
    x, z = s.dx * t - f8(part, BODY_X), s.dz * t - f8(part, BODY_Z)
    half_x, half_y, half_z = f8(part, HALF_X), f8(part, HALF_Y), f8(part, HALF_Z)
    # From 0 to 1 over the box; across from the body's right, which is the left of its front.
    across = 0.5 - (x * cosine - z * sine - f8(part, MIDDLE_X)) / (2.0 * half_x)
    ahead = 0.5 + (-x * sine - z * cosine - f8(part, MIDDLE_Z)) / (2.0 * half_z)
    down = 0.5 - (s.dy * t - f8(part, BODY_Y) - f8(part, MIDDLE_Y)) / (2.0 * half_y)
    tile, u, v, half = f8(part, PART_SIDE), ahead, down, half_y
    if s.face == 1:
        tile, u, v, half = f8(part, PART_TOP), across, ahead, half_x
    elif s.face == 2:
        u = across
        if ahead > 0.5:
            tile = f8(part, PART_FRONT)
    column = min(max(int(u * 16.0), 0), 15)
    row = min(max(int(v * 16.0), 0), 15)
    return texel_at(s, int(tile), column, row, t * 0.5 / max(half, 0.05))


@inner
def draw_part(s: Any, part: int, frame: Any) -> None:
    """Draws a part on the pixels of a frame."""
    light_body(s, part)
    first = int(min(max(frame[0] - 0.5, 0.0), s.columns))
    end = int(min(max(frame[1] + 1.5, 0.0), s.columns))
    top = int(min(max(frame[2] - 0.5, 0.0), s.rows))
    bottom = int(min(max(frame[3] + 1.5, 0.0), s.rows))
    for row in range(top, bottom):
        for column in range(first, end):
            aim(s, column, row)
            t = strike(s, part)
            at = s.rows * s.columns + s.pixel * 3
            if t < f8(s.bodies, s.pixel):
                texel = skin_at(s, part, t)
                if texel & THERE:
                    bright = _SIDES[s.face]
                    set_f8(s.bodies, s.pixel, t)
                    set_f8(s.bodies, at, ((texel >> 16) & 255) * bright * s.shine_r)
                    set_f8(s.bodies, at + 1, ((texel >> 8) & 255) * bright * s.shine_g)
                    set_f8(s.bodies, at + 2, (texel & 255) * bright * s.shine_b)


@inner
def cloud_share(s: Any, x: float, y: float, z: float) -> float:
    """Returns the amount of cloud in a direction: flat clouds, twelve blocks per piece."""
    if y < 0.04 or s.cloud_y < 0.0:
        return 0.0
    away = s.cloud_y / y
    u = int(math.floor((s.cloud_x + x * away) / _CLOUD)) & (CLOUDS - 1)  # noqa: RUF046 - a float in numba
    v = int(math.floor((s.cloud_z + z * away) / _CLOUD)) & (CLOUDS - 1)  # noqa: RUF046 - see above
    if u1(s.clouds, u * CLOUDS + v) == 0:
        return 0.0
    return 0.75 * min((y - 0.04) * 5.0, 1.0)


@inner
def in_disc(s: Any, x: float, y: float, z: float, side: float) -> bool:
    """True if a direction points at the sun (side 1) or the moon (-1), which are squares."""
    ahead = (x * s.sun_x + y * s.sun_y) * side
    if ahead < 0.5:
        return False
    half = (0.085 if side > 0.0 else 0.06) * ahead
    return bool(abs(z) < half and abs(x * s.sun_y - y * s.sun_x) < half)


@inner
def is_star(s: Any, x: float, y: float, z: float) -> bool:
    """True if a star of the night is in a direction."""
    if s.day > 0.5 or y < 0.0:
        return False
    place = int(x * 90.0 + 100.0) * 7919 + int(y * 90.0) * 104729 + int(z * 90.0 + 100.0) * 1299709
    return bool(((place * 2654435761) >> 16) & 511 < 2)


@inner
def add_sky(s: Any, up: float, glare: float, cloud: float, white: float) -> None:
    """Ends the ray with a mixture of fog, sky, glare and cloud."""
    red = s.fog_r + (s.top_r - s.fog_r) * up
    green = s.fog_g + (s.top_g - s.fog_g) * up
    blue = s.fog_b + (s.top_b - s.fog_b) * up
    red += (s.glare_r - red) * glare
    green += (s.glare_g - green) * glare
    blue += (s.glare_b - blue) * glare
    s.red += s.share * (red + (white - red) * cloud)
    s.green += s.share * (green + (white - green) * cloud)
    s.blue += s.share * (blue + (white - blue) * cloud)
    s.share = 0.0


@inner
def look_at_sky(s: Any) -> None:
    """Ends the ray at the sky."""
    if s.wet > 0.0:
        leave_water(s, 40.0)
    # Below ground, what is out of range is haze, not sky.
    if s.drowned > 0.0 or s.under > 0.0:
        add_sky(s, 0.0, 0.0, 0.0, 0.0)
        return
    x, y, z = s.dx * s.short, s.dy * s.short, s.dz * s.short
    near = max(x * s.sun_x + y * s.sun_y, 0.0)
    glare = near * near * near
    cloud, white = cloud_share(s, x, y, z), 60.0 + 190.0 * s.day
    if s.clear > 0.5:
        if is_star(s, x, y, z):
            cloud, white = max(cloud, 0.8 - 1.6 * s.day), 220.0
        if in_disc(s, x, y, z, 1.0) or in_disc(s, x, y, z, -1.0):
            cloud, white = max(1.0 - cloud, 0.4), 250.0
    add_sky(s, min(max(y * 1.7, 0.0), 1.0), glare * glare * s.clear * 0.6, cloud, white)


@inner
def draw_row(s: Any, row: int, wet: float) -> None:
    """Follows the rays of a row of pixels."""
    per_focal = 1.0 / s.focal
    up = (s.rows * 0.5 - row - 0.5) * per_focal
    x, z = s.ahead_x + up * s.up_x, s.ahead_z + up * s.up_z
    s.dy = s.ahead_y + up * s.up_y
    s.gap_y = 1.0 / max(abs(s.dy), 1e-12)
    level = 1.0 + up * up
    across = (0.5 - s.columns * 0.5) * per_focal
    short = 1.0 / math.sqrt(level + across * across)
    for column in range(s.columns):
        across = (column + 0.5 - s.columns * 0.5) * per_focal
        s.dx, s.dz = x + across * s.right_x, z + across * s.right_z
        # Newton's step from the pixel before: a root and a division would take a tenth of all.
        length = level + across * across
        short *= 1.5 - 0.5 * length * short * short
        s.short, s.stretch = short, short * length
        s.pixel = row * s.columns + column
        s.red = s.green = s.blue = 0.0
        s.share, s.wet, s.wet_since = 1.0, wet, 0.0
        if not trace(s):
            look_at_sky(s)
        at = s.pixel * 3
        set_u1(s.picture, at, int(min(max(s.red, 0.0), 255.0)))
        set_u1(s.picture, at + 1, int(min(max(s.green, 0.0), 255.0)))
        set_u1(s.picture, at + 2, int(min(max(s.blue, 0.0), 255.0)))


@kernel
def draw(sights: Any, wet: float) -> None:
    """Draws a picture.

    Args:
        sights: ``(1,)`` of type ``SIGHT``, all set but the ray; the arrays it points to must be
            alive, contiguous, and of the sizes it states.
        wet: 1 if the eye is in water, else 0.
    """
    s = sights[0]
    if s.n_parts > 0:
        for n in range(s.rows * s.columns):
            set_f8(s.bodies, n, NOWHERE)
    frame = np.zeros(4)
    for n in range(s.n_parts):
        part = s.parts + n * PART * 8
        if span(s, part, frame):
            draw_part(s, part, frame)
    for row in range(s.rows):
        draw_row(s, row, wet)
