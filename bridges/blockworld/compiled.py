"""Compilation of the game's code, and what that code needs beyond NumPy.

``bridges.compilation`` decides where compiled code is stored. The functions that read and write by
address are for the inner loops of the picture: passing an array through a dozen functions of
compiled code updates its reference count in each of them, which costs several times the work done
there. An address is a number. There are no checks: the caller keeps the array alive, and stays
within its bounds.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from bridges.compilation import cache_root, compilation_lock, digest, keep_code

F = TypeVar("F", bound=Callable[..., Any])

CALLED_FROM_PYTHON = "GAMUT_CALL_INNER"
"""Environment variable: when it is set, functions that are not entry points can be called from
Python, as tests do; without it they compile faster."""

_HERE = Path(__file__).parent
_TYPES: Any = types  # numba's own annotations are incomplete

World: TypeAlias = Any
"""One record of type ``WORLD``, as compiled code sees it."""

_RULES = "rules"
"""Package whose code any other may call."""


@functools.cache
def cache_folder(part: str) -> Path:
    """Returns the folder of the compiled code of a package for this version of the sources.

    Args:
        part: name of a package within this one. Its code may call that of ``rules`` and its own.
    """
    found = [path for each in (_RULES, part) for path in sorted((_HERE / each).glob("*.py"))]
    common = (_HERE / "compiled.py", _HERE.parent / "atlas.py", *sorted(_HERE.glob("data/*")))
    return cache_root() / f"blockworld-{part}-{digest([*found, *common])}"


def one_at_a_time() -> AbstractContextManager[None]:
    """Lets one process of the machine compile; the others wait, and load the result."""
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
    return _part(function, fastmath=False, floats=True)


def fast_inner(function: F) -> F:
    """Like ``inner``, for functions called only by ``fast_kernel``; keeps float32."""
    return _part(function, fastmath=True, floats=False)


def _part(function: F, *, fastmath: bool, floats: bool) -> F:
    wrapped = bool(os.environ.get(CALLED_FROM_PYTHON))
    made: Any = numba.njit(
        error_model="numpy",
        fastmath=fastmath,
        no_cpython_wrapper=not wrapped,
        no_cfunc_wrapper=not wrapped,
    )(function)
    compile_for = made.compile

    def compile_plain(signature: Any) -> Any:
        # Numba would compile a function again for every literal and every integer width of an
        # argument: twice the time for the same code.
        if isinstance(signature, tuple):
            signature = tuple(_plain(one, floats=floats) for one in signature)
        return compile_for(signature)

    made.compile = compile_plain
    return made  # type: ignore[no-any-return] # numba has no types


def _plain(one: Any, *, floats: bool) -> Any:
    one = _TYPES.unliteral(one)
    if isinstance(one, _TYPES.Integer) and one.bitwidth < 64:
        return _TYPES.int64
    return _TYPES.float64 if floats and one == _TYPES.float32 else one


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

_FLOAT, _BYTE = ir.FloatType(), ir.IntType(8)


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def get_float(context: Any, address: Any, index: Any) -> Any:
    """Returns the 32-bit float at an index of an array."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        first = builder.inttoptr(values[0], _FLOAT.as_pointer())
        return builder.load(builder.gep(first, [values[1]]))

    return types.float32(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def set_float(context: Any, address: Any, index: Any, value: Any) -> Any:
    """Writes a 32-bit float to an index of an array."""

    def generate(linked: Any, builder: Any, _signature: Any, values: Any) -> Any:
        first = builder.inttoptr(values[0], _FLOAT.as_pointer())
        builder.store(values[2], builder.gep(first, [values[1]]))
        return linked.get_dummy_value()

    return types.none(types.int64, types.int64, types.float32), generate


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def get_byte(context: Any, address: Any, index: Any) -> Any:
    """Returns the byte at an index of an array."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        first = builder.inttoptr(values[0], _BYTE.as_pointer())
        return builder.load(builder.gep(first, [values[1]]))

    return types.uint8(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def set_byte(context: Any, address: Any, index: Any, value: Any) -> Any:
    """Writes a number from 0 to 255 to an index of an array of bytes."""

    def generate(linked: Any, builder: Any, _signature: Any, values: Any) -> Any:
        first = builder.inttoptr(values[0], _BYTE.as_pointer())
        byte = builder.trunc(values[2], _BYTE)
        builder.store(byte, builder.gep(first, [values[1]]))
        return linked.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate
