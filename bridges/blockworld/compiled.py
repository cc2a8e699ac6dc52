"""Compilation of the game's code, and what that code needs beyond NumPy.

``bridges.compilation`` decides where compiled code is stored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from numba.core import types

from bridges.compilation import (
    cache_root,
    compilation_lock,
    digest,
    keep_code,
    part,
    reader,
    writer,
)

F = TypeVar("F", bound=Callable[..., Any])

_HERE = Path(__file__).parent
_TYPES: Any = types  # numba's own annotations are incomplete

World: TypeAlias = Any
"""One record of type ``WORLD``, as compiled code sees it."""

_RULES = "rules"
"""Package whose code any other may call."""
_PICTURES = "pictures"
"""The one that calls ``bridges.hud``."""


@functools.cache
def cache_folder(part: str) -> Path:
    """Returns the folder of the compiled code of a package for this version of the sources.

    Args:
        part: name of a package within this one. Its code may call that of ``rules`` and its own.
    """
    found = [path for each in (_RULES, part) for path in sorted((_HERE / each).glob("*.py"))]
    names = ["atlas.py", "compilation.py", *(["hud.py"] if part == _PICTURES else [])]
    shared = [_HERE.parent / name for name in names]
    common = [_HERE / "compiled.py", *shared, *sorted(_HERE.glob("data/*"))]
    return cache_root() / f"blockworld-{part}-{digest([*found, *common])}"


def one_at_a_time() -> AbstractContextManager[None]:
    """Returns the lock of compilation: one process compiles, others wait and load the result."""
    return compilation_lock(cache_folder(_RULES))


def kernel(function: F) -> F:
    """Compiles an entry point: cached on disk, and without holding the interpreter's lock.

    Floating point follows IEEE 754 and the order of operations, so results are the same on any
    machine.
    """
    return _cached(function, fastmath=False)


def fast_kernel(function: F) -> F:
    """Like ``kernel``, for pictures, where the last bit of a number is not visible.

    Sums may be reordered: reproducible on one machine, at any width; another machine may differ.
    """
    return _cached(function, fastmath=True)


def _cached(function: F, *, fastmath: bool) -> F:
    made: Any = numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    keep_code(made, cache_folder(Path(function.__code__.co_filename).parent.name))
    return made  # type: ignore[no-any-return] # numba has no types


def inner(function: F) -> F:
    """Compiles a function that entry points call; it is inlined in them."""
    return part(function, fastmath=False, floats=True)


def fast_inner(function: F) -> F:
    """Like ``inner``, for functions called only by ``fast_kernel``; keeps float32."""
    return part(function, fastmath=True, floats=False)


# integers -----------------------------------------------------------------------------------------


@inner
def whole(value: Any) -> int:
    """Returns a number as a signed integer of 64 bits.

    In compiled code ``int`` does not convert an unsigned byte: sums of two of them are unsigned,
    those with a signed number are floating point, and each type of argument has a function compiled
    again.
    """
    return np.int64(value)  # type: ignore[return-value] # the same in compiled code


# memory by address --------------------------------------------------------------------------------

get_float = reader("f4", _TYPES.float32)
set_float = writer("f4", _TYPES.float32)
get_byte = reader("u1", _TYPES.uint8)
set_byte = writer("u1", _TYPES.int64)
"""Elements of arrays at an address, for the inner loops of the picture."""
