"""Names for arrays and for sets of named arrays."""

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
