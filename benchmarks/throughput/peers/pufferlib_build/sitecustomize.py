"""Lets PufferLib 3.0.0 be built for processors alone, without its own games (``NO_OCEAN=1``).

Its setup.py then reads a name that it has not set; and it builds for CUDA wherever an nvcc is.
"""

import builtins
import shutil
from typing import Any

_which = shutil.which
builtins.c_extension_paths = []  # type: ignore[attr-defined]


def _without_cuda(name: Any, *given: Any, **named: Any) -> Any:
    return None if name == "nvcc" else _which(name, *given, **named)


shutil.which = _without_cuda  # type: ignore[assignment]
