"""Compilation of the ray-caster, and the inputs of a picture as one record.

``bridges.compilation`` decides where compiled code is stored. Numba updates an array's reference
count whenever it is passed to a function or taken out of a tuple, which costs more than following a
ray. A record is passed as one address, and contains the addresses of the arrays. There are no
checks: the caller keeps the arrays alive.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import carray
from numba.core import cgutils, types
from numba.extending import intrinsic

from bridges.compilation import cache_root, compilation_lock, digest, keep_code, reader, writer

# compilation --------------------------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])

_TYPES: Any = types  # numba's own annotations are incomplete


@functools.cache
def cache_folder() -> Path:
    """Returns the folder of the compiled code of this version of the sources."""
    here, bridges = Path(__file__).parent, Path(__file__).parents[2]
    shared = [bridges / name for name in ("atlas.py", "compilation.py", "hud.py")]
    version = digest([*sorted(here.glob("*.py")), *shared])
    return cache_root() / f"mineflayer-rgb-{version}"


def one_at_a_time() -> AbstractContextManager[None]:
    """Returns the lock of compilation: one process compiles, others wait and load the result."""
    return compilation_lock(cache_folder())


def kernel(function: F) -> F:
    """Compiles an entry point: cached on disk, without holding the interpreter's lock.

    Sums may be reordered: a picture is reproducible on one machine; another may differ in the last
    bit.
    """
    made: Any = numba.njit(nogil=True, error_model="numpy", fastmath=True)(function)
    keep_code(made, cache_folder())
    return made  # type: ignore[no-any-return] # numba has no types


def inner(function: F) -> F:
    """Compiles a function that kernels call; it becomes a part of them."""
    made: Any = numba.njit(error_model="numpy", fastmath=True, forceinline=True)(function)
    return made  # type: ignore[no-any-return] # numba has no types


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def _pointer(context: Any, number: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], cgutils.voidptr_t)

    return _TYPES.voidptr(number), build


@inner
def bare(array: Any) -> Any:
    """Returns an array over the same memory without reference counting.

    Numba updates an array's reference count, with locked additions, whenever it is taken out of a
    tuple or passed to a function, which costs more than a ray. The result does not keep its memory
    alive, so the array itself has to be referenced after the last use.
    """
    return carray(_pointer(array.ctypes.data), array.shape, array.dtype)


# the record ---------------------------------------------------------------------------------------

_ARRAYS = (
    "forms", "cells", "light", "biomes",  # of the grid
    "tiles", "box_at", "boxes", "tops", "emission", "opacity", "atlas",  # of the book
    "ceilings", "shine", "tints", "clouds", "parts", "bodies", "picture",
)  # fmt: skip
_WHOLE = ("wide", "deep", "tall", "columns", "rows", "n_parts", "pixel", "face")
_VIEW = (
    "eye_x", "eye_y", "eye_z", "ahead_x", "ahead_y", "ahead_z", "right_x", "right_z",
    "up_x", "up_y", "up_z", "focal", "fog_from", "fog_step", "sun_x", "sun_y", "day", "clear",
    "cloud_y", "cloud_x", "cloud_z", "drowned", "far", "grain", "per_tall",
)  # fmt: skip
_COLOURS = tuple(
    f"{what}_{part}" for what in ("fog", "top", "glare", "deep_water") for part in "rgb"
)
_RAY = (
    "dx", "dy", "dz", "gap_y", "stretch", "short", "under", "red", "green", "blue", "share",
    "wet", "wet_since", "cell_x", "cell_y", "cell_z", "shine_r", "shine_g", "shine_b",
)  # fmt: skip

RINGS = (4, 10, 20)
"""Distances in blocks along x or z up to which rings around the eye reach; one more has no end."""

SIGHT = np.dtype(
    [(name, "i8") for name in (*_ARRAYS, *_WHOLE)]
    + [(name, "f8") for name in (*_VIEW, *_COLOURS, *_RAY)],
    align=True,
)
"""Addresses; sizes of the grid (``wide``, ``deep``, ``tall``) and of the picture (``columns``,
``rows``); the view: places in cells of the grid with its border, ``ahead``, ``right``, ``up`` the
axes of the camera, ``focal`` pixels per block one block ahead, ``far`` where the fog hides all,
``grain`` texels per pixel one block ahead, ``per_tall`` 1 / ``tall``; colours of the hour; the ray
in hand: ``dx``.. per block ahead, ``gap_y`` blocks ahead per layer, ``stretch`` its length per
block ahead, ``short`` 1 / that, ``red``.. what it has seen so far, ``share`` what is to come,
``wet`` 1 in water, ``under`` 1 if it was lost where no sky is."""

u1: Any = reader("u1", _TYPES.int64)
u2: Any = reader("u2", _TYPES.int64)
i4: Any = reader("i4", _TYPES.int64)
f8: Any = reader("f8", _TYPES.float64)
set_u1: Any = writer("u1", _TYPES.int64)
set_f8: Any = writer("f8", _TYPES.float64)
