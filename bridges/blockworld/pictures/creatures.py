"""Creatures, arrows and dropped items, against the depth of the ground.

A creature consists of boxes that rotate about a vertical axis. As in the ground's walk, each column
of pixels cuts a box in one strip: a vertical face where its ray enters, and the top or the bottom
from there to where it leaves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, fast_inner, get_float, set_byte, set_float
from bridges.blockworld.pictures.columns import face_column, tint_water
from bridges.blockworld.pictures.textures import (
    ARROW,
    BOX_FIRST,
    BOX_LOOKS,
    BOX_REACH,
    BOX_SIZES,
    COAT_COLOURS,
    SKINS,
)
from bridges.blockworld.pictures.view import NEAR, light_cell
from bridges.blockworld.rules.species import SHEEP
from bridges.blockworld.rules.world import HEIGHT, MAX_ARROWS, MAX_CREATURES, MAX_DROPS, SIZE
from bridges.hud import icon_texel

_DROP_SIZE = 0.34
"""Width of a dropped item, in blocks."""


@fast_inner
def put_pixel(
    s: Any, depth: int, pixel: int, row: int, texel: int, away: float,
    red: float, green: float, blue: float,
) -> None:  # fmt: skip
    """Sets the colour of a pixel of the current column, if nothing nearer is there.

    ``depth`` is the address of the column's depths, ``pixel`` that of the pixel.
    """
    if get_float(depth, row) <= away:
        return
    set_float(depth, row, away)
    set_byte(pixel, 0, int(min(((texel >> 16) & 255) * red + s.haze_red, 255.0)))
    set_byte(pixel, 1, int(min(((texel >> 8) & 255) * green + s.haze_green, 255.0)))
    set_byte(pixel, 2, int(min((texel & 255) * blue + s.haze_blue, 255.0)))
    surface = get_float(s.film, s.column * s.tall + row)
    if surface < away:
        tint_water(s, row, surface, min(0.5 + 0.11 * (away - surface) * s.stretch, 0.92))


@fast_inner
def light_body(w: World, s: Any, x: float, y: float, z: float, away: float) -> None:
    """Stores in ``s`` the light at a body; see ``light_cell``."""
    cell_x, cell_z = min(max(int(x), 1), SIZE - 2), min(max(int(z), 1), SIZE - 2)
    cell_y = min(max(int(y + 0.3), 0), HEIGHT - 1)
    light_cell(w, s, cell_x * SIZE + cell_z, cell_y, away, 1.0)


@fast_inner
def clipped(row: float, s: Any) -> int:
    """Returns a row of the picture: the first whose middle is below a height."""
    return math.ceil(min(max(row - 0.5, 0.0), float(s.tall)))


@fast_inner
def column_span(s: Any, ahead: float, aside: float, reach: float) -> tuple[int, int]:
    """Returns the columns of pixels that something of a width can cover: first, and end."""
    if ahead < -reach:
        return 0, 0
    if ahead - reach < 0.1:
        return 0, int(s.wide)
    left, right = aside - reach, aside + reach
    first = left / (ahead - reach if left < 0 else ahead + reach) * s.focal + s.wide * 0.5
    end = right / (ahead - reach if right > 0 else ahead + reach) * s.focal + s.wide * 0.5 + 1.0
    wide = float(s.wide)
    return int(min(max(first, 0.0), wide)), int(min(max(end, 0.0), wide))


@fast_inner
def draw_strip(
    s: Any, box: int, bottom: float, near: float, far: float, u: float, skin: int, share: float,
    red: float, green: float, blue: float,
) -> None:  # fmt: skip
    """Draws what the current column shows of a box in which its ray is from ``near`` to ``far``."""
    low, high = bottom + BOX_SIZES[box, 1], bottom + BOX_SIZES[box, 4]
    scale, deep = s.focal / near, s.focal / far
    first = clipped(s.horizon + (s.eye_y - high) * scale, s)
    end = clipped(s.horizon + (s.eye_y - low) * scale, s)
    depth, stride = s.depth + s.column * s.tall * 4, s.wide * 3
    picture = s.picture + s.column * 3
    base = skin * 64 + min(max(int(u * 8.0), 0), 7)
    per_row = 8.0 / ((high - low) * scale)
    v = (first + 0.5 - s.horizon - (s.eye_y - high) * scale) * per_row
    for row in range(first, end):
        texel = SKINS[base + min(max(int(v), 0), 7) * 8]
        pixel = picture + row * stride
        put_pixel(s, depth, pixel, row, texel, near, red * share, green * share, blue * share)
        v += per_row
    if high < s.eye_y or low > s.eye_y:
        level = high if high < s.eye_y else low
        one = clipped(s.horizon + (s.eye_y - level) * deep, s)
        other = clipped(s.horizon + (s.eye_y - level) * scale, s)
        flat = 1.0 if high < s.eye_y else 0.52
        base = BOX_LOOKS[box, 0] * 64 + min(max(int(u * 8.0), 0), 7)
        ratio = s.focal * (s.eye_y - level)
        for row in range(min(one, other), max(one, other)):
            away = ratio / (row + 0.5 - s.horizon)
            texel = SKINS[base + (int(away * 12.0) & 7) * 8]
            pixel = picture + row * stride
            put_pixel(s, depth, pixel, row, texel, away, red * flat, green * flat, blue * flat)


@fast_inner
def box_span(
    s: Any, box: int, local_x: float, local_z: float, sine: float, cosine: float,
    first: int, end: int,
) -> tuple[int, int]:  # fmt: skip
    """Returns which of the columns ``first`` to ``end`` may show a box: first, and end.

    ``local_x`` and ``local_z`` are the eye's position in the body's own axes, whose yaw has the
    sine and cosine.
    """
    ahead_x = -cosine * s.ahead_x - sine * s.ahead_z
    ahead_z = -sine * s.ahead_x + cosine * s.ahead_z
    right_x = -cosine * s.right_x - sine * s.right_z
    right_z = -sine * s.right_x + cosine * s.right_z
    left, right = float(end), float(first)
    for corner in range(4):
        x = BOX_SIZES[box, 3 if corner & 1 else 0] - local_x
        z = BOX_SIZES[box, 5 if corner & 2 else 2] - local_z
        ahead = x * ahead_x + z * ahead_z
        if ahead < 0.1:
            return first, end
        at = (x * right_x + z * right_z) / ahead * s.focal + s.wide * 0.5
        left, right = min(left, at), max(right, at)
    # one pixel more on either side: a rounding error must not lose a column
    return max(first, int(max(left, 2.0)) - 2), min(end, int(min(right, float(end))) + 2)


@fast_inner
def draw_box(
    s: Any, box: int, x: float, y: float, z: float, sine: float, cosine: float, push: float,
    first: int, end: int, red: float, green: float, blue: float,
) -> None:  # fmt: skip
    """Draws one box of a body at ``(x, y, z)`` rotated by a yaw."""
    eye_x, eye_z = s.eye_x - x, s.eye_z - z
    local_x, local_z = -cosine * eye_x - sine * eye_z, -sine * eye_x + cosine * eye_z - push
    x0, z0, x1, z1 = BOX_SIZES[box, 0], BOX_SIZES[box, 2], BOX_SIZES[box, 3], BOX_SIZES[box, 5]
    first, end = box_span(s, box, local_x, local_z, sine, cosine, first, end)
    for column in range(first, end):
        face_column(s, column)
        ray_x = -cosine * s.ray_x - sine * s.ray_z
        ray_z = -sine * s.ray_x + cosine * s.ray_z
        ray_x = ray_x if abs(ray_x) > 1e-6 else 1e-6
        ray_z = ray_z if abs(ray_z) > 1e-6 else 1e-6
        from_x, to_x = (x0 - local_x) / ray_x, (x1 - local_x) / ray_x
        from_z, to_z = (z0 - local_z) / ray_z, (z1 - local_z) / ray_z
        in_x, in_z = min(from_x, to_x), min(from_z, to_z)
        far = min(max(from_x, to_x), max(from_z, to_z))
        near = max(in_x, in_z)
        if near >= far or far <= NEAR:
            continue
        near = max(near, NEAR)
        if in_x > in_z:
            u = (local_z + ray_z * near - z0) / (z1 - z0)
            draw_strip(s, box, y, near, far, u, BOX_LOOKS[box, 0], 0.7, red, green, blue)
        else:
            u = (local_x + ray_x * near - x0) / (x1 - x0)
            skin = BOX_LOOKS[box, 1] if ray_z < 0 else BOX_LOOKS[box, 0]
            draw_strip(s, box, y, near, far, u, skin, 0.86, red, green, blue)


@fast_inner
def draw_body(
    w: World, s: Any, kind: int, coat: int, x: float, y: float, z: float, yaw: float, pace: float,
    hurt: int, burns: int,
) -> None:  # fmt: skip
    """Draws a creature or an arrow, if it is in front of the eye and not too far."""
    eye_x, eye_z = x - s.eye_x, z - s.eye_z
    ahead = eye_x * s.ahead_x + eye_z * s.ahead_z
    aside = eye_x * s.right_x + eye_z * s.right_z
    away = math.sqrt(ahead * ahead + aside * aside)
    first, end = column_span(s, ahead, aside, BOX_REACH[kind])
    if first >= end or away > s.limit:
        return
    light_body(w, s, x, y, z, away)
    red, green, blue = s.red, s.green, s.blue
    if hurt > 0:
        red, green, blue = red * 1.1 + 0.15, green * 0.45, blue * 0.45
    if burns > 0:
        red, green, blue = red + 0.5, green * 0.9 + 0.2, blue * 0.6
    sine, cosine = math.sin(math.radians(yaw)), math.cos(math.radians(yaw))
    for box in range(BOX_FIRST[kind], BOX_FIRST[kind + 1]):
        push = pace * BOX_LOOKS[box, 2]
        if BOX_LOOKS[box, 3]:
            draw_box(
                s, box, x, y, z, sine, cosine, push, first, end, red * COAT_COLOURS[coat, 0],
                green * COAT_COLOURS[coat, 1], blue * COAT_COLOURS[coat, 2],
            )  # fmt: skip
        else:
            draw_box(s, box, x, y, z, sine, cosine, push, first, end, red, green, blue)


@fast_inner
def draw_drop(w: World, s: Any, item: int, x: float, y: float, z: float, age: int) -> None:
    """Draws a dropped item: its icon, vertical, facing the eye, moving up and down a little."""
    eye_x, eye_z = x - s.eye_x, z - s.eye_z
    ahead = eye_x * s.ahead_x + eye_z * s.ahead_z
    aside = eye_x * s.right_x + eye_z * s.right_z
    if ahead < 0.1 or ahead > s.limit:
        return
    scale = s.focal / ahead
    size = _DROP_SIZE * scale
    left = s.wide * 0.5 + aside * scale - size * 0.5
    top = s.horizon + (s.eye_y - y - 0.06 * math.sin(age * 0.1) - 0.08) * scale - size
    first, end = column_span(s, ahead, aside, _DROP_SIZE)
    upper, lower = clipped(top, s), clipped(top + size, s)
    if first >= end or upper >= lower:
        return
    light_body(w, s, x, y, z, ahead)
    for column in range(first, end):
        u = (column + 0.5 - left) / size
        if 0.0 <= u < 1.0:
            face_column(s, column)
            for row in range(upper, lower):
                texel = icon_texel(s, item, u, min(max((row + 0.5 - top) / size, 0.0), 0.999))
                if texel >> 24:
                    depth = s.depth + column * s.tall * 4
                    pixel = s.picture + (row * s.wide + column) * 3
                    put_pixel(s, depth, pixel, row, texel, ahead, s.red, s.green, s.blue)


@fast_inner
def draw_bodies(w: World, s: Any) -> None:
    """Draws all creatures, arrows and dropped items of a world."""
    for n in range(MAX_CREATURES):
        kind = w.c_kind[n]
        if kind > 0:
            speed = math.sqrt(w.c_vx[n] * w.c_vx[n] + w.c_vz[n] * w.c_vz[n])
            pace = math.sin(w.tick * 0.7 + n) * min(speed * 1.6, 0.2)
            coat = min(int(w.c_coat[n]), 7) if kind == SHEEP else 0
            x, y, z = np.float64(w.c_x[n]), np.float64(w.c_y[n]), np.float64(w.c_z[n])
            yaw, hurt, burns = np.float64(w.c_yaw[n]), int(w.c_hurt[n]), int(w.c_burn[n])
            draw_body(w, s, kind, coat, x, y, z, yaw, pace, hurt, burns)
    for n in range(MAX_ARROWS):
        if w.a_age[n] > 0:
            x, y, z = np.float64(w.a_x[n]), np.float64(w.a_y[n]), np.float64(w.a_z[n])
            yaw = np.float64(math.degrees(math.atan2(-w.a_vx[n], w.a_vz[n])))
            draw_body(w, s, ARROW, 0, x, y, z, yaw, 0.0, 0, 0)
    for n in range(MAX_DROPS):
        if w.d_item[n] > 0:
            x, y, z = np.float64(w.d_x[n]), np.float64(w.d_y[n]), np.float64(w.d_z[n])
            draw_drop(w, s, int(w.d_item[n]), x, y, z, int(w.d_age[n]))
