"""Integers of one type in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import inner


@inner
def whole(value: Any) -> int:
    """Returns a number as a signed integer of 64 bits.

    In compiled code ``int`` does not convert an unsigned byte: sums of two of them are unsigned,
    those with a signed number are floating point, and each type of argument has a function compiled
    again.
    """
    return np.int64(value)  # type: ignore[return-value] # the same in compiled code
