"""The ground in a picture: one walk over the world's columns for each column of pixels.

Pixels are filled from near to far, and a filled pixel is final: ``depth`` says which are filled and
their distance, ``(width, height)``, column by column. Water is transparent: it leaves pixels open,
and stores the distance of its surface in ``film``.

Within one column of blocks everything above the eye is processed upwards, and everything below
downwards: that is the order in which a ray meets the blocks of a column.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.atlas import LEVELS, TEXELS
from bridges.blockworld.compiled import World, fast_inner, get_byte, get_float, set_byte, set_float
from bridges.blockworld.pictures.textures import CRACKS, FACES, TILES
from bridges.blockworld.pictures.view import FAR, NEAR, glow, light_cell
from bridges.blockworld.rules.blocks import (
    AIR,
    BED,
    CUBE,
    FORM,
    GLASS,
    LAVA,
    LIT_FURNACE,
    MAX_BLOCKS,
    PLANT,
    TORCH,
    WATER,
)
from bridges.blockworld.rules.world import HEIGHT, SIZE

TOP, SIDE, BOTTOM = range(3)
# For shifts and masks: Python's division rounds down, which costs more than its use is worth.
_LAYER, _LAYER_BITS, _ROW_BITS = HEIGHT - 1, HEIGHT.bit_length() - 1, SIZE.bit_length() - 1
OPAQUE = ((FORM == CUBE) & ~np.isin(np.arange(MAX_BLOCKS), (GLASS, BED))).astype(np.uint8)
"""Blocks that hide everything behind them."""
TOPS = np.ones(MAX_BLOCKS)
"""How high a block is drawn."""
TOPS[BED] = 9 / 16
TOPS[WATER] = 14 / 16
GLOWS = np.isin(np.arange(MAX_BLOCKS), (LAVA, TORCH)).astype(np.uint8)
"""Blocks that are as bright in the dark."""


@fast_inner
def level_of(texels: float) -> int:
    """Returns the tile size for so many texels per pixel, 0 the largest."""
    if texels < 1.5:
        return 0
    if texels < 3.0:
        return 1
    if texels < 6.0:
        return 2
    return 3 if texels < 12.0 else 4


@fast_inner
def row_of(s: Any, height: float, scale: float) -> int:
    """Returns the first open row whose middle is below a point; ``scale`` is pixels per block."""
    row = s.horizon + (s.eye_y - height) * scale - 0.5
    return math.ceil(min(max(row, float(s.top_row)), float(s.end_row)))  # type: ignore[no-any-return] # record


@fast_inner
def any_open(s: Any, first: int, end: int) -> bool:
    """True if one of the rows is still open."""
    place = s.column * s.tall
    for row in range(first, end):  # noqa: SIM110 - a generator would be slow here
        if get_float(s.depth, place + row) == FAR:
            return True
    return False


@fast_inner
def paint_upright(
    s: Any, tile: int, u: int, crack: int, y: int, first: int, end: int, away: float
) -> None:
    """Draws a strip of a vertical face in rows ``first`` to ``end``, where it is not hidden."""
    per_row = 16.0 * away / s.focal
    level = level_of(per_row)
    base = tile * TEXELS + LEVELS[level] + (u >> level)
    v = (y + 1.0 - s.eye_y) * 16.0 + (first + 0.5 - s.horizon) * per_row
    picture, depth = s.picture, s.depth + s.column * s.tall * 4
    red, green, blue = s.red, s.green, s.blue
    haze_red, haze_green, haze_blue = s.haze_red, s.haze_green, s.haze_blue
    stride = s.wide * 3
    pixel = first * stride + s.column * 3
    for row in range(first, end):
        if get_float(depth, row) == FAR:
            at = int(v) & 15
            texel = TILES[base + ((at >> level) << (4 - level))]
            if texel >> 24:
                if crack > 0 and crack > CRACKS[at * 16 + u]:
                    texel = (texel >> 1) & 0x7F7F7F
                set_byte(picture, pixel, int(((texel >> 16) & 255) * red + haze_red))
                set_byte(picture, pixel + 1, int(((texel >> 8) & 255) * green + haze_green))
                set_byte(picture, pixel + 2, int((texel & 255) * blue + haze_blue))
                set_float(depth, row, away)
        v += per_row
        pixel += stride


@fast_inner
def paint_level(
    s: Any, tile: int, crack: int, height: float, first: int, end: int, near: float
) -> None:
    """Draws the part of a horizontal face in rows ``first`` to ``end``, where it is not hidden."""
    ratio = s.focal * (s.eye_y - height)
    across = 16.0 * near / s.focal
    level = level_of(math.sqrt(across * across * near / max(abs(s.eye_y - height), 0.02)))
    base = tile * TEXELS + LEVELS[level]
    picture, depth = s.picture, s.depth + s.column * s.tall * 4
    red, green, blue = s.red, s.green, s.blue
    haze_red, haze_green, haze_blue = s.haze_red, s.haze_green, s.haze_blue
    x, z, ray_x, ray_z = s.eye_x * 16.0, s.eye_z * 16.0, s.ray_x * 16.0, s.ray_z * 16.0
    below = 0.5 - s.horizon
    stride = s.wide * 3
    pixel = first * stride + s.column * 3
    for row in range(first, end):
        if get_float(depth, row) == FAR:
            away = ratio / (row + below)
            u, v = int(x + ray_x * away) & 15, int(z + ray_z * away) & 15
            texel = TILES[base + ((v >> level) << (4 - level)) + (u >> level)]
            if texel >> 24:
                if crack > 0 and crack > CRACKS[v * 16 + u]:
                    texel = (texel >> 1) & 0x7F7F7F
                set_byte(picture, pixel, int(((texel >> 16) & 255) * red + haze_red))
                set_byte(picture, pixel + 1, int(((texel >> 8) & 255) * green + haze_green))
                set_byte(picture, pixel + 2, int((texel & 255) * blue + haze_blue))
                set_float(depth, row, away)
        pixel += stride


@fast_inner
def lay_film(s: Any, first: int, end: int, away: float, ratio: float) -> None:
    """Stores a surface of water in rows: ``away`` for a vertical one, else by ``ratio``."""
    place = s.column * s.tall
    for row in range(first, end):
        if get_float(s.depth, place + row) == FAR and get_float(s.film, place + row) == FAR:
            at = away if ratio == 0.0 else ratio / (row + 0.5 - s.horizon)
            set_float(s.film, place + row, at)
            s.watery = 1


@fast_inner
def draw_water(w: World, s: Any, at: int, before: int, near: float, far: float) -> None:
    """Stores where the surface of a block of water is visible, unless the eye is under water."""
    if s.drowned:
        return
    y = at & _LAYER
    height = y + (1.0 if get_byte(s.blocks, at + 1) == WATER else TOPS[WATER])
    if before >= 0 and get_byte(s.blocks, before) != WATER:
        scale = s.focal / near
        lay_film(s, row_of(s, height, scale), row_of(s, y, scale), near, 0.0)
    if height < s.eye_y and get_byte(s.blocks, at + 1) != WATER:
        first, end = row_of(s, height, s.focal / far), row_of(s, height, s.focal / near)
        lay_film(s, first, end, 0.0, s.focal * (s.eye_y - height))


@fast_inner
def draw_plant(w: World, s: Any, at: int, near: float, far: float) -> None:
    """Draws the two crossed planes of a plant, the nearer one first."""
    y, column = at & _LAYER, at >> _LAYER_BITS
    x, z = s.eye_x - (column >> _ROW_BITS), s.eye_z - (column & (SIZE - 1))
    rising = (z - x) / (s.ray_x - s.ray_z) if abs(s.ray_x - s.ray_z) > 1e-6 else -1.0
    falling = (1.0 - x - z) / (s.ray_x + s.ray_z) if abs(s.ray_x + s.ray_z) > 1e-6 else -1.0
    block = get_byte(s.blocks, at)
    tile = FACES[(s.biome * MAX_BLOCKS + block) * 3 + SIDE]
    crack = s.crack if at == s.dig_at else 0
    for n in range(2):
        away = min(rising, falling) if n == 0 else max(rising, falling)
        if away < near or away > far:
            continue
        scale = s.focal / away
        first, end = row_of(s, y + 1.0, scale), row_of(s, y, scale)
        if first < end and any_open(s, first, end):
            if GLOWS[block]:
                glow(s, away * s.stretch)
            else:
                light_cell(w, s, column, y, away * s.stretch, 1.0)
            u = min(max(int((x + s.ray_x * away) * 16.0), 0), 15)
            paint_upright(s, tile, u, crack, y, first, end, away)


@fast_inner
def light_face(
    w: World, s: Any, block: int, column: int, y: int, away: float, share: float
) -> None:
    """Stores in ``s`` the light on a face towards a cell; see ``light_cell``."""
    if GLOWS[block]:
        glow(s, away)
    else:
        light_cell(w, s, column, y, away, 0.9 if block == LIT_FURNACE else share)


@fast_inner
def draw_side(w: World, s: Any, at: int, before: int, along_x: bool, near: float) -> None:
    """Draws the side of a block that a ray reaches from the block ``before``."""
    block, y = get_byte(s.blocks, at), at & _LAYER
    scale = s.focal / near
    first, end = row_of(s, y + TOPS[block], scale), row_of(s, y, scale)
    if first >= end or not any_open(s, first, end):
        return
    share = 0.62 if along_x else 0.8
    light_face(w, s, block, before >> _LAYER_BITS, y, near * s.stretch, share)
    across = s.eye_z + s.ray_z * near if along_x else s.eye_x + s.ray_x * near
    crack = s.crack if at == s.dig_at else 0
    tile = FACES[(s.biome * MAX_BLOCKS + block) * 3 + SIDE]
    paint_upright(s, tile, int(across * 16.0) & 15, crack, y, first, end, near)


@fast_inner
def draw_lid(w: World, s: Any, at: int, face: int, near: float, far: float) -> None:
    """Draws the top of a block below the eye, or the bottom of one above it."""
    block, y = get_byte(s.blocks, at), at & _LAYER
    height = y + TOPS[block] if face == TOP else float(y)
    one, other = row_of(s, height, s.focal / far), row_of(s, height, s.focal / near)
    first, end = min(one, other), max(one, other)
    if first >= end or not any_open(s, first, end):
        return
    beside = y - 1 if face == BOTTOM else int(height)
    share = 1.0 if face == TOP else 0.52
    light_face(w, s, block, at >> _LAYER_BITS, beside, near * s.stretch, share)
    crack = s.crack if at == s.dig_at else 0
    tile = FACES[(s.biome * MAX_BLOCKS + block) * 3 + face]
    paint_level(s, tile, crack, height, first, end, near)


@fast_inner
def draw_cell(
    w: World, s: Any, column: int, before: int, along_x: bool, near: float, far: float,
    low: int, high: int,
) -> None:  # fmt: skip
    """Draws blocks ``low`` to ``high`` of a column in which the ray is from ``near`` to ``far``."""
    base = column * HEIGHT
    level = int(s.eye_y)
    up_from = max(low, level)
    ups = max(high + 1 - up_from, 0)
    down_from = min(high, level - 1)
    for n in range(ups + max(down_from + 1 - low, 0)):
        y = up_from + n if n < ups else down_from - (n - ups)
        block, at = get_byte(s.blocks, base + y), base + y
        if block == AIR:
            continue
        came = before * HEIGHT + y if before >= 0 else -1
        if FORM[block] == PLANT:
            draw_plant(w, s, at, near, far)
        elif block == WATER:
            draw_water(w, s, at, came, near, far)
        else:
            if came >= 0 and not OPAQUE[get_byte(s.blocks, came)]:
                draw_side(w, s, at, came, along_x, near)
            if y + TOPS[block] < s.eye_y and not OPAQUE[get_byte(s.blocks, at + 1)]:
                draw_lid(w, s, at, TOP, near, far)
            elif y > s.eye_y and not OPAQUE[get_byte(s.blocks, at - 1)]:
                draw_lid(w, s, at, BOTTOM, near, far)


@fast_inner
def shrink(s: Any) -> bool:
    """Shrinks the range of open rows by filled ones; returns whether any row is left."""
    first, end = s.top_row, s.end_row
    place = s.column * s.tall
    while first < end and get_float(s.depth, place + first) != FAR:
        first += 1
    while first < end and get_float(s.depth, place + end - 1) != FAR:
        end -= 1
    s.top_row, s.end_row = first, end
    return first < end  # type: ignore[no-any-return] # numbers of the record


@fast_inner
def walk(w: World, s: Any) -> None:
    """Draws the ground in one column of pixels; stops at the edge, the fog, or the last pixel."""
    ray_x, ray_z, eye, horizon = s.ray_x, s.ray_z, s.eye_y, s.horizon
    column = int(s.eye_x) * SIZE + int(s.eye_z)
    step_x, step_z = SIZE if ray_x > 0 else -SIZE, 1 if ray_z > 0 else -1
    gap_x, gap_z = 1.0 / max(abs(ray_x), 1e-9), 1.0 / max(abs(ray_z), 1e-9)
    part_x, part_z = s.eye_x - int(s.eye_x), s.eye_z - int(s.eye_z)
    next_x = (1.0 - part_x if ray_x > 0 else part_x) * gap_x
    next_z = (1.0 - part_z if ray_z > 0 else part_z) * gap_z
    limit, per_row = s.limit / s.stretch, 1.0 / s.focal
    rising = (horizon - s.top_row - 0.5) * per_row
    falling = (horizon - s.end_row + 0.5) * per_row
    near, before, along_x = 0.0, -1, False
    while near < limit:
        height = int(get_byte(s.heights, column))
        if height == HEIGHT:
            return
        far = min(next_x, next_z)
        lowest = eye + falling * (far if falling < 0 else near)
        if lowest < height:
            low = max(int(lowest - 0.001), 0)
            highest = eye + rising * (far if rising > 0 else near) + 0.001
            high = min(int(max(highest, 0.0)), height - 1)
            draw_cell(w, s, column, before, along_x, max(near, NEAR), far, low, high)
            if not shrink(s):
                return
            rising = (horizon - s.top_row - 0.5) * per_row
            falling = (horizon - s.end_row + 0.5) * per_row
        before, near, along_x = column, far, next_x < next_z
        if along_x:
            next_x += gap_x
            column += step_x
        else:
            next_z += gap_z
            column += step_z


@fast_inner
def finish(s: Any) -> None:
    """Fills the open pixels of a column with sky, and draws the water over the others."""
    picture, depth, sky = s.picture, s.depth + s.column * s.tall * 4, s.sky
    stride = s.wide * 3
    pixel = s.top_row * stride + s.column * 3
    for row in range(s.top_row, s.end_row):
        if get_float(depth, row) == FAR:
            set_byte(picture, pixel, int(get_float(sky, row * 3)))
            set_byte(picture, pixel + 1, int(get_float(sky, row * 3 + 1)))
            set_byte(picture, pixel + 2, int(get_float(sky, row * 3 + 2)))
        pixel += stride
    if s.watery:
        lay_water(s)


@fast_inner
def lay_water(s: Any) -> None:
    """Tints the pixels of a column that are seen through water, more with depth."""
    for row in range(s.tall):
        place = s.column * s.tall + row
        away = get_float(s.film, place)
        if away < FAR:
            deep = (get_float(s.depth, place) - away) * s.stretch
            tint_water(s, row, away, min(0.5 + 0.11 * deep, 0.92))


@fast_inner
def tint_water(s: Any, row: int, away: float, share: float) -> None:
    """Blends a share of the colour of the water's surface into a pixel of the current column."""
    fog = min(max((away * s.stretch - s.fog_from) * s.fog_step, 0.0), 1.0)
    u, v = int((s.eye_x + s.ray_x * away) * 16.0) & 15, int((s.eye_z + s.ray_z * away) * 16.0) & 15
    level = level_of(8.0 * away * away / s.focal)
    tile = FACES[WATER * 3] * TEXELS + LEVELS[level]
    texel = TILES[tile + ((v >> level) << (4 - level)) + (u >> level)]
    pixel = (row * s.wide + s.column) * 3
    for n in range(3):
        clear = ((texel >> (16 - 8 * n)) & 255) * s.day[n] * (1.0 - fog)
        seen = clear + s.fog[n] * fog
        below = get_byte(s.picture, pixel + n)
        set_byte(s.picture, pixel + n, int(below * (1.0 - share) + seen * share))


@fast_inner
def draw_ground(w: World, s: Any) -> None:
    """Draws ground and sky of one world; fills ``depth`` and ``film``."""
    inside = 1.0 <= s.eye_x < SIZE - 1.0 and 1.0 <= s.eye_z < SIZE - 1.0
    depth, film = s.depth, s.film
    for n in range(s.wide * s.tall):
        set_float(depth, n, FAR)
    for n in range(s.wide * s.tall):
        set_float(film, n, FAR)
    for column in range(s.wide):
        face_column(s, column)
        s.top_row, s.end_row, s.watery = 0, s.tall, 0
        if inside:
            walk(w, s)
        finish(s)


@fast_inner
def face_column(s: Any, column: int) -> None:
    """Stores in ``s`` the rays of a column of pixels."""
    aside = (column + 0.5 - s.wide * 0.5) / s.focal
    s.column = column
    s.ray_x = s.ahead_x + aside * s.right_x
    s.ray_z = s.ahead_z + aside * s.right_z
    s.stretch = math.sqrt(1.0 + aside * aside)
