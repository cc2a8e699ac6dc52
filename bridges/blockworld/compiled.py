"""How the world's code is compiled: once per machine, for all workers.

Numba keeps compiled code beside a function's source file and looks only at that file to see
whether it is stale: a change in a function that it calls goes unnoticed. So the code of this
package lives in a folder of its own, named after a digest of all its sources; whoever comes second
loads what the first one compiled.
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
from typing import Any, TypeAlias, TypeVar

import numba
from numba.core import config, types

F = TypeVar("F", bound=Callable[..., Any])

CALLED_FROM_PYTHON = "GAMUT_CALL_INNER"
"""Environment variable: when it is set, functions that are not entry points can be called from
Python, as tests do; without it they compile faster."""

_HERE = Path(__file__).parent
_TYPES: Any = types  # its own annotations leave half of it out

World: TypeAlias = Any
"""One record of type ``WORLD``, as compiled code sees it."""


_NOT_COMPILED = ("bridge.py", "instance.py", "warm.py")
"""Sources that no compiled code can come from."""


def _digest(folders: tuple[Path, ...]) -> str:
    """Sixteen hex digits of every source in some folders that compiled code can come from.

    Their places and times too, by which Numba goes: another copy of the same sources compiles for
    itself, and has to know that it did.
    """
    text = hashlib.sha256(numba.__version__.encode())
    for folder in folders:
        for path in sorted(folder.glob("*.py")):
            if path.name not in _NOT_COMPILED:
                text.update(f"{path}\0{path.stat().st_mtime_ns}\0".encode() + path.read_bytes())
    return text.hexdigest()[:16]


def _root() -> Path:
    given = os.environ.get("GAMUT_CACHE")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    root = (Path(home) if home else Path.home() / ".cache") / "gamut"
    with contextlib.suppress(OSError):  # a home that cannot be written, in a container say
        root.mkdir(parents=True, exist_ok=True)
    if os.access(root, os.W_OK):
        return root
    return Path(tempfile.gettempdir()) / f"gamut-{os.getuid()}"


@functools.cache
def cache_folder(part: str = "") -> Path:
    """Returns the folder of the compiled code of this version of the sources.

    It lies under ``$GAMUT_CACHE``, else ``$XDG_CACHE_HOME/gamut``, else ``~/.cache/gamut``; where
    that cannot be written, in the machine's folder for temporary files.

    Args:
        part: name of a package within this one, whose code is kept apart: its sources may use
            those of this package, not the other way round.
    """
    folders = (_HERE, _HERE / part) if part else (_HERE,)
    return _root() / f"blockworld-{part or 'game'}-{_digest(folders)}"


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Lets one process of the machine compile; the others wait, and load what it compiled."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kernel(function: F) -> F:
    """Compiles an entry point: cached on the disk, and without the lock of the interpreter.

    Floating point keeps to IEEE 754 and its order, so that results are the same on any machine.
    """
    return _cached(function, fastmath=False)


def fast_kernel(function: F) -> F:
    """Like ``kernel`` for pictures, where the last bit of a number is not seen.

    Sums may be reordered: the same on one machine, at any width; maybe not on another.
    """
    return _cached(function, fastmath=True)


def _cached(function: F, *, fastmath: bool) -> F:
    before = config.CACHE_DIR
    within = Path(function.__code__.co_filename).parent
    config.CACHE_DIR = str(cache_folder("" if within == _HERE else within.name))
    try:
        made: Any = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(
            function
        )
    finally:
        config.CACHE_DIR = before
    return made  # type: ignore[no-any-return] # numba has no types


def inner(function: F) -> F:
    """Compiles a function that entry points call; it becomes part of them."""
    return _part(function, fastmath=False, floats=True)


def fast_inner(function: F) -> F:
    """Like ``inner``, for what only ``fast_kernel`` calls; keeps float32."""
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
        # Numba would compile a function anew for every literal and every width of a number that
        # it is called with: twice the time for the same code.
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
