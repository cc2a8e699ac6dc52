"""Crafter's world generator, several times faster and equal to the last bit.

Nearly all of Crafter's reset is simplex noise, and nearly all of that is reading small tables out
of NumPy arrays one number at a time. The same functions over plain lists give the same numbers.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any


def generate(world: Any, player: Any) -> None:
    """Fills an empty world; the counterpart of ``crafter.worldgen.generate_world``.

    Draws the same random numbers in the same order, so that the same seed gives the same world.
    """
    from crafter import worldgen  # noqa: PLC0415 - importing the bridge must stay free

    width, height = world.area
    noise = _Noise(int(world.random.randint(0, 2**31 - 1)))
    tunnels = _Marks()
    for x in range(width):
        for y in range(height):
            worldgen._set_material(world, (x, y), player, tunnels, noise)
    for x in range(width):
        for y in range(height):
            worldgen._set_object(world, (x, y), player, tunnels)


class _Marks(dict[tuple[int, int], bool]):
    """A grid that is False wherever nothing was written."""

    def __missing__(self, key: tuple[int, int]) -> bool:
        return False


class _Noise:
    """``opensimplex.OpenSimplex`` of one seed, three dimensions only."""

    def __init__(self, seed: int) -> None:
        internals: Any = importlib.import_module("opensimplex.internals")
        permutation, gradients = internals._init(seed)
        self._permutation: list[int] = permutation.tolist()
        self._gradients: list[int] = gradients.tolist()
        self._noise3 = _noise3()

    def noise3(self, x: float, y: float, z: float) -> float:
        """Returns the noise at a point, -1 to 1."""
        value: float = self._noise3(x, y, z, self._permutation, self._gradients)
        return value


@functools.cache
def _noise3() -> Callable[..., float]:
    """Returns the library's own function, with its innermost one reading lists."""
    internals: Any = importlib.import_module("opensimplex.internals")
    table = internals.GRADIENTS3.tolist()
    directions = [tuple(table[i : i + 3]) for i in range(len(table) - 2)]

    def extrapolate(
        permutation: list[int],
        gradients: list[int],
        xsb: int,
        ysb: int,
        zsb: int,
        dx: float,
        dy: float,
        dz: float,
    ) -> float:
        column = permutation[(permutation[xsb & 0xFF] + ysb) & 0xFF]
        g1, g2, g3 = directions[gradients[(column + zsb) & 0xFF]]
        return float(g1 * dx + g2 * dy + g3 * dz)

    original = internals._noise3
    code = getattr(original, "py_func", original).__code__  # py_func: where numba is installed
    return types.FunctionType(code, {**vars(internals), "_extrapolate3": extrapolate})
