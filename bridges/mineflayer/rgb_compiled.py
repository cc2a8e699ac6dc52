"""How the ray-caster is compiled; ``bridges.compilation`` decides where it is stored."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import carray
from numba.core import cgutils, types
from numba.extending import intrinsic

from bridges.compilation import cache_root, compilation_lock, digest, keep_code

F = TypeVar("F", bound=Callable[..., Any])

_TYPES: Any = types  # numba's own annotations are incomplete


@functools.cache
def cache_folder() -> Path:
    """Returns the folder of the compiled code of this version of the sources."""
    here = Path(__file__).parent
    version = digest([*sorted(here.glob("rgb*.py")), here.parent / "atlas.py"])
    return cache_root() / f"mineflayer-rgb-{version}"


def one_at_a_time() -> AbstractContextManager[None]:
    """Lets one process of the machine compile; the others wait, and load the result."""
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
    """Compiles a function that kernels call; it is inlined in them."""
    made: Any = numba.njit(error_model="numpy", fastmath=True, inline="never")(function)
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
