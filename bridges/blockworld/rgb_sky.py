"""Sun and moon."""

from __future__ import annotations

import math
from typing import Any

from bridges.blockworld.bare import get_float, set_byte
from bridges.blockworld.compiled import World, fast_inner
from bridges.blockworld.rgb_view import FAR
from bridges.blockworld.world import CLEAR, DAY

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
