"""Compiles kernels that are not in the cache, several at a time.

Numba compiles one function after another in one process, and half of that is Python. So each large
kernel is compiled by a process of its own, as many at a time as there are cores; the caller then
loads what they left in the cache.

    python -m bridges.blockworld.warm             # every large kernel
    python -m bridges.blockworld.warm NAME        # one of them: how those processes are started
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bridges.blockworld.compiled import cache_folder, one_at_a_time
from bridges.blockworld.rules.world import CONTROLS, WORLD

_log = logging.getLogger(__name__)


def _generate() -> None:
    from bridges.blockworld.rules.factors import ORDER  # noqa: PLC0415 - each process imports its own
    from bridges.blockworld.rules.generate import generate  # noqa: PLC0415

    generate(np.zeros(1, WORLD), np.zeros(0, ORDER), 0, 0)


def _advance() -> None:
    from bridges.blockworld.rules.tick import advance  # noqa: PLC0415

    advance(np.zeros(1, WORLD), np.zeros(1, CONTROLS), np.zeros(1, np.uint8), 1, 0, 0)


def _rgb() -> None:
    from bridges.blockworld.pictures.rgb import draw  # noqa: PLC0415

    draw(np.zeros(1, WORLD), np.zeros((1, 8, 8, 3), np.uint8), 70.0, 1, 0, 0)


def _senses() -> None:
    from gymnasium import spaces  # noqa: PLC0415

    from bridges.blockworld.sense_options import SenseOptions  # noqa: PLC0415
    from bridges.blockworld.senses import OBSERVATIONS  # noqa: PLC0415
    from rollout.api import allocate  # noqa: PLC0415

    options, worlds = SenseOptions(), np.zeros(1, WORLD)
    for name, observation in OBSERVATIONS.items():
        if name not in LARGE:
            buffers = allocate(spaces.Dict(observation.space(options)), 1)
            observation.fill(worlds, buffers, options, 0, 0)


SENSES = "senses"
LARGE: Mapping[str, Callable[[], None]] = {
    "advance": _advance,
    "generate": _generate,
    "rgb": _rgb,
    SENSES: _senses,
}
"""Kernels that take more than a few seconds to compile, by name, the longest first: large kernels,
and all observations but pictures."""


def compile_missing(names: Iterable[str]) -> None:
    """Makes sure that large kernels are in the cache of this machine; returns when they are.

    Concurrent processes wait for the first. A kernel that fails to compile here reports why when it
    is called.
    """
    with one_at_a_time():
        missing = [name for name in LARGE if name in set(names) and not _marker(name).exists()]
        if missing:
            _log.info(
                "compiling blockworld (%s) for this machine, about a minute; it is kept in %s",
                ", ".join(missing),
                cache_folder("pictures").parent,
            )
        if len(missing) < 2:
            for name in missing:
                _compile(name)
            return
        _compile_apart(missing)


def _compile_apart(names: list[str]) -> None:
    """Compiles each in its own process, as many at once as there are cores."""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(min(cores, len(names))) as waiting:
        for failed in waiting.map(lambda name: _run(name, environment), names):
            # The caller will compile it again, and report the error.
            if failed:
                _log.warning("compiling blockworld: a process ended with status %d", failed)


def _run(name: str, environment: Mapping[str, str]) -> int:
    command = [sys.executable, "-m", "bridges.blockworld.warm", name]
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, check=False
    ).returncode


def _compile(name: str) -> None:
    LARGE[name]()
    marker = _marker(name)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


def _marker(name: str) -> Path:
    """File that exists when a kernel was compiled, beside its code; ``pictures`` covers all."""
    return cache_folder("pictures") / f"{name}.compiled"


if __name__ == "__main__":
    if not sys.argv[1:]:
        compile_missing(LARGE)
    for name in sys.argv[1:]:
        _compile(name)
