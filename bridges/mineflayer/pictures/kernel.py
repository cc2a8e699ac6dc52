"""The ray-caster: one ray per pixel, from cell to cell, until it meets something.

``s`` is a record of ``compiled.SIGHT``. ``t`` along a ray counts blocks ahead of the eye. The
colour of a ray is accumulated in ``s``; a cell that is not empty adds to it, or ends the ray.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.atlas import LEVELS, TEXELS
from bridges.mineflayer.pictures.compiled import RINGS, f8, i4, inner, u1, u2
from bridges.mineflayer.pictures.looks import AIR, BOXES, CUBE, CUTOUT, OUT, WATER, WET_CROSS

NOWHERE = 1e9
BODY = 4
"""Numbers for each pixel in ``s.bodies``: the distances of the nearest bodies to all pixels come
first, then their colours."""
THERE, _TINTED = 1 << 24, 2 << 24
_SHARES = np.array([0.64, 0.64, 1.0, 0.5, 0.82, 0.82, 0.9])
"""Brightness of a face: +x, -x, +y, -y, +z, -z, and crossed planes."""


@inner
def texel_at(s: Any, tile: int, u: int, v: int, t: float) -> int:
    """Returns a texel from the tile size that fits a distance."""
    spread = t * s.grain
    level = 0
    if spread >= 1.5:
        level = 1 if spread < 3.0 else 2 if spread < 6.0 else 3 if spread < 12.0 else 4
    at = tile * TEXELS + LEVELS[level] + ((v >> level) << (4 - level)) + (u >> level)
    return i4(s.atlas, at)  # type: ignore[no-any-return] # compiled


@inner
def lay(s: Any, red: float, green: float, blue: float, t: float, share: float) -> None:
    """Adds a share of a colour at a distance to the ray; the rest continues."""
    fog = min(max((t * s.stretch - s.fog_from) * s.fog_step, 0.0), 1.0)
    part = s.share * share
    clear = part * (1.0 - fog)
    hazy = part * fog
    s.red += red * clear + s.fog_r * hazy
    s.green += green * clear + s.fog_g * hazy
    s.blue += blue * clear + s.fog_b * hazy
    s.share -= part


@inner
def lay_texel(s: Any, texel: int, lit: int, at: int, face: int, t: float) -> None:
    """Ends the ray at a texel of the cell ``at``, in the light of the cell ``lit``."""
    bright = _SHARES[face]
    light = u1(s.light, lit) * 3
    red, green, blue = f8(s.shine, light), f8(s.shine, light + 1), f8(s.shine, light + 2)
    if texel & _TINTED:
        # A product of floats takes a fifth of the time of a division of integers.
        biome = u1(s.biomes, int((at + 0.5) * s.per_tall)) * 3
        red *= f8(s.tints, biome)
        green *= f8(s.tints, biome + 1)
        blue *= f8(s.tints, biome + 2)
    red *= bright * ((texel >> 16) & 255)
    green *= bright * ((texel >> 8) & 255)
    blue *= bright * (texel & 255)
    lay(s, red, green, blue, t, 1.0)


@inner
def meet_cube(s: Any, at: int, before: int, t: float) -> bool:
    """Draws the side of a full block where the ray enters; returns whether the ray ends there."""
    look, face = u2(s.cells, at), s.face
    x, y, z = s.eye_x + s.dx * t, s.eye_y + s.dy * t, s.eye_z + s.dz * t
    flat = face == 2 or face == 3  # noqa: PLR1714 - a tuple would be made each time
    u = int((z if face < 2 else x) * 16.0) & 15
    v = int(z * 16.0) & 15 if flat else 15 - (int(y * 16.0) & 15)
    texel = texel_at(s, i4(s.tiles, look * 6 + face), u, v, t)
    if not texel & THERE:
        return False
    lit = before
    if u1(s.emission, look) > 0 and f8(s.shine, u1(s.light, at) * 3) > f8(
        s.shine, u1(s.light, before) * 3
    ):
        lit = at
    lay_texel(s, texel, lit, at, face, t)
    return True


@inner
def enter_box(s: Any, n: int, x: float, y: float, z: float) -> float:
    """Returns where the ray meets a box, from a start within its cell; stores the face."""
    first, last, face = -NOWHERE, NOWHERE, 0
    for axis in range(3):
        start = x if axis == 0 else y if axis == 1 else z
        step = s.dx if axis == 0 else s.dy if axis == 1 else s.dz
        low, high = f8(s.boxes, n * 6 + axis), f8(s.boxes, n * 6 + axis + 3)
        if abs(step) < 1e-9:
            if start < low or start > high:
                return NOWHERE
            continue
        near, far = (low - start) / step, (high - start) / step
        if near > far:
            near, far = far, near
        if near > first:
            first, face = near, axis * 2 + (1 if step > 0 else 0)
        last = min(last, far)
    if first >= last or first < 0.0:
        return NOWHERE
    s.face = face
    return first


@inner
def meet_boxes(s: Any, at: int, t_in: float, t_out: float) -> bool:
    """Draws the nearest box of a cell that the ray meets; returns whether the ray ends."""
    look = u2(s.cells, at)
    x, y, z = s.eye_x - s.cell_x, s.eye_y - s.cell_y, s.eye_z - s.cell_z
    best, texel, face = t_out + 1e-6, 0, 0
    for n in range(i4(s.box_at, look), i4(s.box_at, look + 1)):
        t = enter_box(s, n, x, y, z)
        if t >= best or t < t_in - 1e-6:
            continue
        side = s.face
        flat = side == 2 or side == 3  # noqa: PLR1714 - a tuple would be made each time
        hx, hy, hz = x + s.dx * t, y + s.dy * t, z + s.dz * t
        u = min(max(int((hz if side < 2 else hx) * 16.0), 0), 15)
        v = min(max(int(hz * 16.0) if flat else int((1.0 - hy) * 16.0), 0), 15)
        found = texel_at(s, i4(s.tiles, look * 6 + side), u, v, t)
        if found & THERE:
            best, texel, face = t, found, side
    if texel == 0:
        return False
    # A block that absorbs all light is dark inside: it takes the light above.
    lay_texel(s, texel, at if u1(s.opacity, look) < 15 else at + 1, at, face, best)
    return True


@inner
def meet_cross(s: Any, at: int, t_in: float, t_out: float) -> bool:
    """Draws one of the two crossed planes of a plant, the nearer first."""
    x, y, z = s.eye_x - s.cell_x, s.eye_y - s.cell_y, s.eye_z - s.cell_z
    apart, along = s.dx - s.dz, s.dx + s.dz
    one = (z - x) / apart if abs(apart) > 1e-9 else NOWHERE
    two = (1.0 - x - z) / along if abs(along) > 1e-9 else NOWHERE
    tile = i4(s.tiles, u2(s.cells, at) * 6 + 4)
    for n in range(2):
        t = min(one, two) if n == 0 else max(one, two)
        if t < t_in or t > t_out:
            continue
        u, v = int((x + s.dx * t) * 16.0), 15 - int((y + s.dy * t) * 16.0)
        if u < 0 or u > 15 or v < 0 or v > 15:
            continue
        texel = texel_at(s, tile, u, v, t)
        if texel & THERE:
            if s.wet > 0.0:  # water plants
                leave_water(s, t)
            lay_texel(s, texel, at, at, 6, t)
            return True
    return False


@inner
def leave_water(s: Any, t: float) -> None:
    """Tints everything behind the water that the ray passed through."""
    share = 1.0 - math.exp(-0.13 * (t - s.wet_since) * s.stretch)
    lay(s, s.deep_water_r, s.deep_water_g, s.deep_water_b, s.wet_since, share)
    s.wet = 0.0


@inner
def enter_water(s: Any, at: int, before: int, t_in: float, t_out: float) -> None:
    """Draws the surface of water where the ray meets it, if that is within the cell."""
    above = u1(s.forms, at + 1)
    top = 1.0
    if above != WATER and above != WET_CROSS:  # noqa: PLR1714 - a tuple would be made each time
        top = f8(s.tops, u2(s.cells, at)) if u1(s.forms, at) == WATER else 0.875
    t = t_in
    height = s.eye_y - s.cell_y + s.dy * t_in
    if height > top:
        if s.dy >= 0.0:
            return
        t = t_in - (height - top) / s.dy
        if t > t_out:
            return
    light = u1(s.light, before) * 3
    x, z = s.eye_x + s.dx * t, s.eye_z + s.dz * t
    wave = 0.92 + 0.1 * (((int(x * 4.0) * 7 + int(z * 4.0) * 13) & 7) / 7.0)
    red, green, blue = f8(s.shine, light), f8(s.shine, light + 1), f8(s.shine, light + 2)
    lay(s, 60.0 * wave * red, 104.0 * wave * green, 208.0 * wave * blue, t, 0.52)
    s.wet, s.wet_since = 1.0, t


@inner
def meet_water(s: Any, form: int, at: int, before: int, t_in: float, t_out: float) -> None:
    """Moves the ray into or out of water."""
    wet = form == WATER or form == WET_CROSS  # noqa: PLR1714 - a tuple would be made each time
    if s.wet > 0.0 and not wet:
        leave_water(s, t_in)
    elif wet and s.wet == 0.0:
        enter_water(s, at, before, t_in, t_out)


@inner
def meet(s: Any, form: int, at: int, before: int, t_in: float, t_out: float) -> bool:
    """Draws the contents of a cell that is not empty; returns whether the ray ends there."""
    if form == CUBE:
        if s.face < 0:  # the eye is inside it
            lay(s, 0.0, 0.0, 0.0, 0.0, 1.0)
            return True
        return meet_cube(s, at, before, t_in)
    if form == CUTOUT:
        # Leaves and glass show no face towards a block of the same kind.
        if s.face < 0 or u2(s.cells, at) == u2(s.cells, before):
            return False
        return meet_cube(s, at, before, t_in)
    column = at // s.tall
    s.cell_x, s.cell_y, s.cell_z = column // s.deep, at - column * s.tall, column % s.deep
    if form == BOXES:
        return meet_boxes(s, at, t_in, t_out)
    # Water has been handled already; see trace.
    return form != WATER and meet_cross(s, at, t_in, t_out)


@inner
def end_on_body(s: Any) -> None:
    """Ends the ray at the body of its pixel."""
    t = f8(s.bodies, s.pixel)
    if s.wet > 0.0:
        leave_water(s, t)
    at = s.rows * s.columns + s.pixel * 3
    lay(s, f8(s.bodies, at), f8(s.bodies, at + 1), f8(s.bodies, at + 2), t, 1.0)


@inner
def start_of(s: Any) -> float:
    """Returns how far a ray downwards goes in the grid before it is as low as any block there."""
    level = max(abs(s.dx), abs(s.dz))
    at = (8 if s.dx > 0.0 else 0) + (4 if s.dz > 0.0 else 0)
    t = max(1.0 - f8(s.ceilings, at), 0.0) * s.gap_y
    for n in range(3):
        if t * level < RINGS[n]:
            break
        t = max(max(1.0 - f8(s.ceilings, at + n + 1), 0.0) * s.gap_y, RINGS[n] / level)
    # An eye that is not in the middle of the grid may see past its edge before the fog.
    edge_x = (s.wide - 1.001 - s.eye_x if s.dx > 0.0 else s.eye_x - 1.0) / max(abs(s.dx), 1e-12)
    edge_z = (s.deep - 1.001 - s.eye_z if s.dz > 0.0 else s.eye_z - 1.0) / max(abs(s.dz), 1e-12)
    return min(0.999 * t, edge_x, edge_z)  # type: ignore[no-any-return] # compiled


@inner
def reach_of(s: Any, nearest: float) -> float:
    """Returns where the ray can meet nothing more: in the fog, behind a body, above all blocks."""
    stop = min(s.far * s.short, nearest)
    if s.dy <= 1e-9:
        return stop  # type: ignore[no-any-return] # compiled
    # From the outermost ring: above its blocks where the ray enters it, it meets none of them.
    level = max(abs(s.dx), abs(s.dz))
    at = (8 if s.dx > 0.0 else 0) + (4 if s.dz > 0.0 else 0)
    over = f8(s.ceilings, at + 3)
    if over * level <= s.dy * RINGS[2]:
        over = f8(s.ceilings, at + 2)
        if over * level <= s.dy * RINGS[1]:
            over = f8(s.ceilings, at + 1)
            if over * level <= s.dy * RINGS[0]:
                over = f8(s.ceilings, at)
    return min(stop, max(over, 0.0) * s.gap_y)  # type: ignore[no-any-return] # compiled


@inner
def trace(s: Any) -> bool:
    """Follows the current ray; returns whether it met something; otherwise it reaches the sky."""
    eye_x, eye_y, eye_z, dx, dy, dz = s.eye_x, s.eye_y, s.eye_z, s.dx, s.dy, s.dz
    nearest = f8(s.bodies, s.pixel) if s.n_parts > 0 else NOWHERE
    stop = reach_of(s, nearest)
    t = 0.0
    if dy < 0.0 and s.wet == 0.0:
        t = min(start_of(s), stop)
    x, y, z = int(eye_x + dx * t), int(eye_y + dy * t), int(eye_z + dz * t)
    gap_x = 1.0 / max(abs(dx), 1e-12)
    gap_y = s.gap_y
    gap_z = 1.0 / max(abs(dz), 1e-12)
    next_x = ((x + 1 - eye_x) if dx > 0 else (eye_x - x)) * gap_x
    next_y = ((y + 1 - eye_y) if dy > 0 else (eye_y - y)) * gap_y
    next_z = ((z + 1 - eye_z) if dz > 0 else (eye_z - z)) * gap_z
    row, tall, forms = s.deep * s.tall, s.tall, s.forms
    jump_x, jump_y, jump_z = row if dx > 0 else -row, 1 if dy > 0 else -1, tall if dz > 0 else -tall
    face_x, face_y, face_z = 1 if dx > 0 else 0, 3 if dy > 0 else 2, 5 if dz > 0 else 4
    at = before = x * row + z * tall + y
    face = -1
    through = WATER if s.wet > 0.0 else AIR
    while t < stop:
        form = u1(forms, at)
        if form != through:
            if form == OUT:
                break
            s.face = face
            t_out = min(next_x, next_y, next_z, nearest)
            if form == WATER or form == WET_CROSS or through == WATER:  # noqa: PLR1714,SIM109 - see above
                s.cell_y = at % tall
                meet_water(s, form, at, before, t, t_out)
                through = WATER if s.wet > 0.0 else AIR
            if form != AIR and meet(s, form, at, before, t, t_out):
                return True
        before = at
        if next_x < next_y and next_x < next_z:
            at, t, face = at + jump_x, next_x, face_x
            next_x += gap_x
        elif next_y < next_z:
            at, t, face = at + jump_y, next_y, face_y
            next_y += gap_y
        else:
            at, t, face = at + jump_z, next_z, face_z
            next_z += gap_z
    if nearest < NOWHERE:
        end_on_body(s)
        return True
    s.under = 0.0 if u1(s.light, before) >> 4 > 0 else 1.0
    return False
