"""Cache of compiled code: one per machine, for all processes and all copies of the sources.

Numba's own cache checks only the file of a function to see whether its code is stale, so it misses
a change in a function that it calls; and it stores code by the path of that file, so every copy of
the sources, such as that of a Ray job, is compiled again. Here the code of a package is in a folder
named after a digest of everything it depends on: the content of all sources, the versions of
Python, NumPy, Numba and LLVM, and the processor.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import numba
import numpy as np
from filelock import FileLock
from llvmlite import ir
from numba.core import caching, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

CALLED_FROM_PYTHON = "GAMUT_CALL_INNER"
"""Environment variable: when it is set, functions that are not entry points can be called from
Python, as tests do; without it they compile faster."""

_TYPES: Any = types  # numba's own annotations are incomplete
_COMPILE_S = 1800.0  # that another process may take to compile, on a busy machine


def cache_root() -> Path:
    """Returns the folder of all compiled code.

    It is ``$GAMUT_CACHE``, else ``$XDG_CACHE_HOME/gamut``, else ``~/.cache/gamut``; if that is not
    writable, a folder among the machine's temporary files.
    """
    if given := os.environ.get("GAMUT_CACHE"):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    root = (Path(home) if home else Path.home() / ".cache") / "gamut"
    with contextlib.suppress(OSError):  # the home is not writable, for example in a container
        root.mkdir(parents=True, exist_ok=True)
    if os.access(root, os.W_OK):
        return root
    return Path(tempfile.gettempdir()) / f"gamut-{os.getuid()}"


def digest(sources: Sequence[Path]) -> str:
    """Returns sixteen hex digits that depend on everything the compiled code depends on.

    Args:
        sources: every file that the code may come from. Their names and contents count; their
            folders and modification times do not.
    """
    text = hashlib.sha256("\0".join(_toolchain()).encode())
    for path in sources:
        content = path.read_bytes()
        text.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return text.hexdigest()[:16]


@functools.cache
def _toolchain() -> tuple[str, ...]:
    """Returns the compiler and the processor: machines of different types may share a home."""
    processor = llvmlite.binding.get_host_cpu_name()
    features = llvmlite.binding.get_host_cpu_features().flatten()
    versions = (numba.__version__, llvmlite.__version__, np.__version__, platform.python_version())
    return (*versions, processor, features)


@contextlib.contextmanager
def compilation_lock(folder: Path) -> Iterator[None]:
    """Locks a folder while one process compiles into it; others wait and load its code."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock", timeout=_COMPILE_S):
        yield


def keep_code(made: Any, folder: Path) -> None:
    """Makes a function load its compiled code from a folder, and save it there.

    Args:
        made: what ``numba.njit`` returned, without ``cache=True``.
        folder: one whose name changes with the sources, see ``digest``.
    """

    class Locator(caching.InTreeCacheLocator):  # type: ignore[misc] # numba has no types
        def get_cache_path(self) -> str:
            return str(folder)

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc] # as above
        # If the folder is not writable, Numba's own locations are used.
        _locator_classes = (Locator, *caching.CacheImpl._locator_classes)

    class Cache(caching.FunctionCache):  # type: ignore[misc] # as above
        _impl_class = Implementation

    # What `cache=True` does, with a folder of our choice.
    made._cache = Cache(made.py_func)


def part(function: F, *, fastmath: bool, floats: bool) -> F:
    """Compiles a function that entry points call; it is inlined in them.

    Args:
        function: to compile, once for all its kinds of whole numbers.
        fastmath: whether sums may be reordered.
        floats: whether numbers of 32 bits become such of 64.
    """
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


_ELEMENTS: Mapping[str, ir.Type] = {
    "u1": ir.IntType(8),
    "u2": ir.IntType(16),
    "i4": ir.IntType(32),
    "f4": ir.FloatType(),
    "f8": ir.DoubleType(),
}


def reader(kind: str, given: Any) -> Any:
    """Returns an intrinsic ``read(address, index)`` of one element of an array.

    Passing an array through functions of compiled code updates its reference count in each of them,
    which costs several times the work done there; an address is a number. There are no checks: the
    caller keeps the array alive, and stays within its bounds.

    Args:
        kind: type of the elements, as in NumPy, one of ``u1 u2 i4 f4 f8``.
        given: Numba's type of the result: that of the elements, or ``int64``.
    """
    element = _ELEMENTS[kind]

    def read(context: Any, address: Any, index: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            first = builder.inttoptr(values[0], element.as_pointer())
            found = builder.load(builder.gep(first, [values[1]]))
            if given != types.int64:
                return found
            widen = builder.sext if kind == "i4" else builder.zext
            return widen(found, ir.IntType(64))

        return given(types.int64, types.int64), generate

    return intrinsic(read)


def writer(kind: str, taken: Any) -> Any:
    """Returns an intrinsic ``write(address, index, value)``; see ``reader``.

    Args:
        kind: type of the elements, as of ``reader``.
        taken: Numba's type of the value: that of the elements, or ``int64``.
    """
    element = _ELEMENTS[kind]

    def write(context: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(linked: Any, builder: Any, _signature: Any, values: Any) -> Any:
            first = builder.inttoptr(values[0], element.as_pointer())
            new = builder.trunc(values[2], element) if taken == types.int64 else values[2]
            builder.store(new, builder.gep(first, [values[1]]))
            return linked.get_dummy_value()

        return types.none(types.int64, types.int64, taken), generate

    return intrinsic(write)
