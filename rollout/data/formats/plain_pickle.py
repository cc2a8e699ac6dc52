"""Reads pickles of numbers, texts, lists, mappings and arrays; anything else is refused.

Nothing of a pickle is imported or called: the few functions that arrays are made by have stand-ins
here, which check what they are given.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from rollout.errors import DatasetError
from rollout.files import MOST_BYTES

_MOST_VALUES = 1_000_000
_FAULTS = (
    *(pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(OverflowError, MemoryError, RecursionError, AssertionError, struct.error),
)


def load_plain(data: bytes) -> Any:
    """Returns the value of a pickle: None, bool, int, float, str, list, dict and ``numpy.ndarray``.

    Raises:
        DatasetError: it holds another type, which the message names; or it is damaged, or larger
            than 64 MiB or a million values.
    """
    if len(data) > MOST_BYTES:
        raise DatasetError(f"expected a pickle of at most {MOST_BYTES:,} bytes, got {len(data):,}")
    try:
        return _Plain().of(_Unpickler(io.BytesIO(data)).load())
    except DatasetError:
        raise
    except _FAULTS as error:
        raise DatasetError(f"its pickle is damaged: {error!r}") from error


# Python's own unpickler: the one in C takes memory as a pickle asks for it.
class _Unpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # NumPy 2 has renamed its modules.
        known = _MADE.get((module.replace("numpy._core", "numpy.core"), name))
        if known is None:
            raise DatasetError(
                f"its pickle holds {module}.{name}; expected numbers, texts, lists, mappings and "
                f"arrays, and nothing else is loaded"
            )
        return _Call(known)


class _Call:
    """A function of a pickle; a new one each time, so that no pickle changes those of another."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


class _Dtype:
    __slots__ = ("dtype",)

    def __init__(self, text: Any, *_: Any) -> None:
        if not isinstance(text, str):
            raise DatasetError(f"its pickle holds an array of {text!r}; expected numbers")
        self.dtype = np.dtype(text)
        if self.dtype.kind not in "biufUS" or self.dtype.itemsize == 0:
            raise DatasetError(f"its pickle holds an array of {self.dtype}; expected numbers")

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise ValueError(f"byte order {state[1]!r}")
        self.dtype = self.dtype.newbyteorder(state[1]) if state[1] != "|" else self.dtype


class _Array:
    __slots__ = ("value",)

    def __init__(self, *_: Any) -> None:
        self.value = np.zeros(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, data = state
        self.value = _array(data, dtype, shape, "F" if is_fortran else "C").value


def _array(data: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    """An array of exactly the bytes that it needs."""
    if not isinstance(dtype, _Dtype) or not isinstance(data, bytes | bytearray):
        raise ValueError("expected an array of numbers")
    sides = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
    if math.prod(sides) * dtype.dtype.itemsize != len(data) or any(side < 0 for side in sides):
        raise ValueError(f"expected {dtype.dtype}{list(sides)}, got {len(data)} bytes")
    made = _Array()
    made.value = np.frombuffer(data, dtype.dtype).reshape(sides, order="F" if order == "F" else "C")
    return made


def _scalar(dtype: Any, data: Any) -> Any:
    return _array(data, dtype, (), "C").value[()].item()


def _encoded(text: Any, codec: Any) -> bytes:
    """Bytes, which the oldest forms of pickle hold as text."""
    if not isinstance(text, str) or codec != "latin1":
        raise ValueError(f"expected bytes as latin1, got {codec!r}")
    return text.encode("latin1")


_MADE: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _array,
    ("_codecs", "encode"): _encoded,
    ("collections", "OrderedDict"): dict,
}


class _Plain:
    """Puts arrays in the place of their stand-ins, and counts the values."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def of(self, value: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise DatasetError(f"expected a pickle of at most {_MOST_VALUES:,} values, got more")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, _Array):
            return value.value
        if isinstance(value, list | tuple):
            return [self.of(each) for each in value]
        if isinstance(value, dict):
            return {str(key): self.of(each) for key, each in value.items()}
        raise DatasetError(f"its pickle holds a {type(value).__name__}; expected plain values")
