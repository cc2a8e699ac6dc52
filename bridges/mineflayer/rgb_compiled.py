"""How the ray-caster is compiled: once per machine and version of its sources.

Numba looks only at a function's own file to see whether its kept code is stale, and a change in a
function that it calls goes unnoticed. So compiled code is kept in a folder named after a digest of
all sources that it can come from, with their places and times, by which Numba goes.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import carray
from numba.core import cgutils, config, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_TYPES: Any = types  # its own annotations leave half of it out
_HERE = Path(__file__).parent


@functools.cache
def cache_folder() -> Path:
    """Returns the folder of the compiled code: under ``$GAMUT_CACHE``, else ``~/.cache/gamut``.

    Where that cannot be written, it lies in the machine's folder for temporary files.
    """
    text = hashlib.sha256(numba.__version__.encode())
    for path in sorted(_HERE.glob("rgb*.py")):
        text.update(f"{path}\0{path.stat().st_mtime_ns}\0".encode() + path.read_bytes())
    return _root() / f"mineflayer-rgb-{text.hexdigest()[:16]}"


def _root() -> Path:
    if given := os.environ.get("GAMUT_CACHE"):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    root = (Path(home) if home else Path.home() / ".cache") / "gamut"
    with contextlib.suppress(OSError):  # a home that cannot be written, in a container say
        root.mkdir(parents=True, exist_ok=True)
    if os.access(root, os.W_OK):
        return root
    return Path(tempfile.gettempdir()) / f"gamut-{os.getuid()}"


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Lets one process of the machine compile; the others wait, and load what it compiled."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kernel(function: F) -> F:
    """Compiles an entry point: kept on the disk, without the lock of the interpreter.

    Sums may be reordered: a picture is the same on one machine; its last bit may not be on another.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        made: Any = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=True)(function)
    finally:
        config.CACHE_DIR = before
    return made  # type: ignore[no-any-return] # numba has no types


def inner(function: F) -> F:
    """Compiles a function that kernels call; it becomes part of them."""
    made: Any = numba.njit(error_model="numpy", fastmath=True, inline="never")(function)
    return made  # type: ignore[no-any-return] # numba has no types


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def _pointer(context: Any, number: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], cgutils.voidptr_t)

    return _TYPES.voidptr(number), build


@inner
def bare(array: Any) -> Any:
    """Returns an array over the same memory that is not counted.

    Numba counts, with locked additions, who holds an array whenever it is taken out of a tuple or
    handed to a function: more than a ray costs. What is bare keeps nothing alive, so the array
    itself has to be named after its last use.
    """
    return carray(_pointer(array.ctypes.data), array.shape, array.dtype)
