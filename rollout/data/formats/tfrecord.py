"""Records of ``tf.train.Example``, the file format of TensorFlow Datasets, without TensorFlow.

A record is length, checksum of the length, message, checksum of the message; the message is a
protocol buffer with a list of bytes, floats or whole numbers by name
(https://www.tensorflow.org/tutorials/load_data/tfrecord).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rollout.api import Array
from rollout.errors import DatasetError

MOST_BYTES = (1 << 31) - 1
"""Largest message that readers of protocol buffers accept."""

_MASK = 0xA282EAD8
_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 1, 2, 3  # fields of Feature
_VARINT_BYTES = 10  # of a negative number

Values = Sequence[bytes] | Array


def checksum() -> Any:
    """Returns the function of CRC-32C.

    Raises:
        DatasetError: its library is missing.
    """
    try:
        from google_crc32c import value  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DatasetError(
            f"google-crc32c is missing ({error}); run: pip install gamut[formats]"
        ) from None
    return value


def write_record(file: BinaryIO, message: bytes) -> int:
    """Appends a record to a file, and returns its size in bytes."""
    length = struct.pack("<Q", len(message))
    file.write(length + _masked(length) + message + (end := _masked(message)))
    return len(length) + len(message) + 2 * len(end)


def _masked(data: bytes) -> bytes:
    crc = checksum()(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


def example(features: Mapping[str, Values]) -> bytes:
    """Returns a ``tf.train.Example``.

    Args:
        features: by name, bytes, or a flat array: of float32 as floats, of other types as int64.
    """
    entries = []
    for name, values in features.items():
        if not isinstance(values, np.ndarray):
            kind, content = _BYTES_LIST, b"".join(_field(1, value) for value in values)
        elif values.dtype.kind == "f":
            kind, content = _FLOAT_LIST, _field(1, values.astype("<f4", copy=False).tobytes())
        else:
            kind, content = _INT64_LIST, _field(1, varints(values.astype(np.int64, copy=False)))
        entries.append(_field(1, _field(1, name.encode()) + _field(2, _field(kind, content))))
    return _field(1, b"".join(entries))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varints(np.array([len(content)])) + content


def varints(numbers: NDArray[np.int64]) -> bytes:
    """Returns whole numbers ``(n,)`` as varints, 7 bits a byte, lowest first."""
    if not len(numbers) or (numbers.min() >= 0 and numbers.max() < 128):
        return numbers.astype(np.uint8).tobytes()
    left = numbers.astype(np.int64).view(np.uint64)[:, None]
    digits = left >> np.arange(0, 7 * _VARINT_BYTES, 7, dtype=np.uint64)
    used = digits > 0
    used[:, 0] = True
    out = (digits & np.uint64(127)).astype(np.uint8)
    out[:, :-1][used[:, 1:]] |= 128
    return out[used].tobytes()
