"""Starting a Ray of our own on a machine that may be busy.

Ray gives each of its parts half a minute, which a busy machine may not suffice for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rollout.errors import RayUnavailable

log = logging.getLogger(__name__)

LONGEST_S = 300
"""How long each part of Ray may take to start."""

_TELL_S = 30.0  # between two lines while it starts
_AGAIN_S = 0.5
_PATIENCE = {
    "RAY_gcs_server_port_wait_time_s": LONGEST_S,
    "RAY_agent_register_timeout_ms": 1000 * LONGEST_S,
    "RAY_worker_register_timeout_seconds": LONGEST_S,
}
_SHOWN = 5  # lines of each log of Ray


@contextlib.contextmanager
def patient(services: Any, stopping: Callable[[], int]) -> Iterator[None]:
    """Inside, Ray may take minutes to start, which is told; what ends early is an error.

    Args:
        services: the module ``ray._private.services``.
        stopping: returns the number of a signal that arrived; 0 for none.
    """
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, str(value))
    began, started = time.monotonic(), []
    before = {name: getattr(services, name) for name in ("get_node", "start_raylet")}
    told = threading.Event()

    def start_raylet(*arguments: Any, **more: Any) -> Any:
        process = before["start_raylet"](*arguments, **more)
        started.append(process.process)
        return process

    def get_node(*arguments: Any) -> Any:
        while True:
            try:
                return before["get_node"](*arguments)
            except RuntimeError as error:  # it is not known to the head yet
                ended = [each.poll() for each in started if each.poll() is not None]
                if ended:
                    raise RayUnavailable(f"its raylet ended with status {ended[0]}") from error
                if time.monotonic() - began > LONGEST_S:
                    raise RayUnavailable(f"it has not started in {LONGEST_S} s") from error
                if signum := stopping():
                    raise KeyboardInterrupt(signal.Signals(signum).name) from error
            threading.Event().wait(_AGAIN_S)

    def tell() -> None:
        while not told.wait(_TELL_S):
            log.warning(
                "Ray has not started after %.0f s, because this machine is busy; each of its parts "
                "is given %d s",
                *(time.monotonic() - began, LONGEST_S),
            )

    threading.Thread(target=tell, name="ray-start", daemon=True).start()
    services.get_node, services.start_raylet = get_node, start_raylet
    try:
        yield
    finally:
        told.set()
        for name, function in before.items():
            setattr(services, name, function)


def tell_logs(folder: Path) -> None:
    """Logs the last errors that Ray itself has logged in a folder of sessions."""
    for path in sorted(folder.glob("session_2*/logs/*")):
        if path.stem not in ("raylet", "gcs_server") or not path.is_file():
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in [line for line in lines if " E " in line or " C " in line][-_SHOWN:]:
            log.warning("%s: %s", path.name, line)
