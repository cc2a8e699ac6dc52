"""Arrays, sets of named arrays, and text without invalid characters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""Any numpy array."""

Columns: TypeAlias = dict[str, Array]
"""Named arrays that share their leading axes, e.g. ``{"rgb": (B, 64, 64, 3)}``.

Keys are flat and slash-joined (``"inventory/wood"``) and are the same in a space, a frame, a
fragment, an Arrow column and a metric.
"""

Details: TypeAlias = Mapping[str, Any]
"""JSON-able data of one slot without a fixed shape, such as text, lists, structured state."""

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]


def clean_text(text: str) -> str:
    """Returns the text with U+FFFD in place of every lone surrogate, which UTF-8 cannot hold."""
    text = str.__str__(text)  # of a subclass: exactly str
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_texts(value: Any) -> Any:
    """Returns a value with every text in its lists, mappings and arrays of objects cleaned.

    Values without text come back as they are.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, np.ndarray):
        if value.dtype != object:
            return value
        cleaned = np.empty_like(value)
        for place in np.ndindex(value.shape):
            cleaned[place] = clean_texts(value[place])
        return cleaned
    if isinstance(value, dict):
        return {clean_texts(key): clean_texts(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_texts(each) for each in value]
    return value
