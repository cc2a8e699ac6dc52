"""Memory access by address, for the inner loops of the picture.

Passing an array through a dozen functions of compiled code updates its reference count in each of
them, which costs several times the work done there. An address is a number. There are no checks:
the caller keeps the array alive, and stays within its bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped] # it ships no types
from numba.core import types
from numba.extending import intrinsic

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
