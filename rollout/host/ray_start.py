"""Starts Ray on a machine that may be busy, with its files in a private folder.

Ray gives each of its parts half a minute, which may be too short on a busy machine.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from rollout.errors import RayUnavailable
from rollout.host.guard import descendants, read
from rollout.host.processes import RAY_TMPDIR, owned_workdir, remove_workdir

log = logging.getLogger(__name__)

_PREFIX = "gamut-ray-"
_SESSION = "r"  # short, since it is part of the paths of sockets
_LONGEST = 107  # bytes in the path of a socket, see unix(7)
# What comes after the folder of temporary files in the longest such path.
_AFTER = (
    f"/{_PREFIX}12345678/{_SESSION}/session_2026-01-01_00-00-00_123456_1234567/sockets/plasma_store"
)
_REMOVE_S = 5.0  # for Ray's processes to end, which write their logs until then
LONGEST_S = 300
"""Seconds that each part of Ray may take to start."""

_LOG_S = 30.0  # between two lines while it starts
_AGAIN_S = 0.1
_PATIENCE = {
    "RAY_gcs_server_port_wait_time_s": LONGEST_S,
    "RAY_agent_register_timeout_ms": 1000 * LONGEST_S,
    "RAY_worker_register_timeout_seconds": LONGEST_S,
}
_SLICE = "RAY_raylet_start_wait_time_s"  # how long Ray waits in one call, deaf to signals
_PARTS = ("start_gcs_server", "start_api_server", "start_log_monitor", "start_raylet")
_LISTEN = "dashboard_agent_listen_port"
_AGENT_PORTS = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", _LISTEN)
_SHOWN = 5  # lines of each log of Ray
_TAIL = 2**18  # bytes of it that are read
_SCANS, _SCAN_S = 5, 0.02  # a process that has just begun has no arguments yet


def private_folder() -> Path:
    """Returns a new folder of mode 0700 for the files of a cluster; removed with this process.

    Ray gives every folder it makes mode 0777, so another user could replace the socket of its
    raylet, and would get the connections of its processes.
    """
    wanted = Path(os.environ.get(RAY_TMPDIR) or tempfile.gettempdir())
    room = _LONGEST - len(_AFTER)
    place = wanted
    if len(os.fsencode(wanted)) > room:
        place = Path("/tmp")  # noqa: S108 - the folder in it is private
        log.warning(
            "Ray's files are in %s, because the path of %s is too long for its sockets; set %s to "
            "a folder whose path has at most %d bytes to have them elsewhere",
            place,
            wanted,
            RAY_TMPDIR,
            room,
        )
    folder = owned_workdir(_PREFIX, place)
    atexit.register(remove_workdir, folder)
    return folder


def session_folder(private: Path) -> Path:
    """Returns the path of Ray's own files in a private folder."""
    return private / _SESSION


def remove_session(private: Path) -> None:
    """Removes Ray's own files, after Ray was shut down; leaves its token. Never raises."""
    folder = session_folder(private)
    for _ in range(int(_REMOVE_S / _AGAIN_S)):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        threading.Event().wait(_AGAIN_S)


class _InterruptibleTime:
    """The module ``time`` for Ray, with a ``sleep`` that a signal ends."""

    def __init__(self, stopping: Callable[[], int]) -> None:
        self._stopping = stopping

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        _require_no_signal(self._stopping)
        threading.Event().wait(seconds)


class _InterruptibleImports(MetaPathFinder):
    """Finds no module; raises before the next one is imported once a signal has come."""

    def __init__(self, stopping: Callable[[], int]) -> None:
        self._stopping, self._thread = stopping, threading.get_ident()

    def find_spec(self, *_: Any) -> None:
        """See ``MetaPathFinder``."""
        if threading.get_ident() == self._thread:
            _require_no_signal(self._stopping)


def _require_no_signal(stopping: Callable[[], int]) -> None:
    if signum := stopping():
        raise KeyboardInterrupt(signal.Signals(signum).name)


@contextlib.contextmanager
def stoppable_imports(stopping: Callable[[], int]) -> Iterator[None]:
    """Context in which a signal ends an import of many modules between two of them.

    Args:
        stopping: returns the number of a signal that arrived; 0 for none.
    """
    finder = _InterruptibleImports(stopping)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextlib.contextmanager
def agent_ports() -> Iterator[dict[str, int]]:
    """Yields a port for each server of a raylet's agents; no other program gets one inside.

    An agent can listen there: a socket that does not listen keeps its port only from programs
    that ask for any port.
    """
    with contextlib.ExitStack() as stack:
        ports = {}
        for name in _AGENT_PORTS:
            held = stack.enter_context(socket.socket())
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("", 0))
            ports[name] = held.getsockname()[1]
        yield ports


@contextlib.contextmanager
def known_ports(ray: Any, ports: Mapping[str, int]) -> Iterator[None]:
    """Context in which a new raylet gets the ports of its agents.

    It ends itself unless they tell it their ports within 15 s, where it does not know them. No
    setting changes that (github.com/ray-project/ray/issues/65983).

    Args:
        ray: the package.
        ports: those of ``agent_ports``.
    """
    services = ray._private.services
    own, own_process = services.start_raylet, services.start_ray_process

    def start_raylet(*arguments: Any, **more: Any) -> Any:
        return own(*arguments, **{**more, **ports})

    def start_ray_process(line: list[str], kind: str, *arguments: Any, **more: Any) -> Any:
        if kind == "raylet":  # Ray gives this port only to the agent
            line = [*line, f"--{_LISTEN}={ports[_LISTEN]}"]
        return own_process(line, kind, *arguments, **more)

    services.start_raylet, services.start_ray_process = start_raylet, start_ray_process
    try:
        yield
    finally:
        services.start_raylet, services.start_ray_process = own, own_process


@contextlib.contextmanager
def extended_timeouts(ray: Any, stopping: Callable[[], int]) -> Iterator[None]:
    """Context in which Ray may take minutes to start; a part that ends is an error.

    A signal ends the start where Ray starts a part of it or waits for one: elsewhere that might
    crash the interpreter.

    Args:
        ray: the package.
        stopping: returns the number of a signal that arrived; 0 for none.
    """
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, str(value))
    services = ray._private.services
    began, started = time.monotonic(), []
    before = {name: getattr(services, name) for name in ("get_node", "time", *_PARTS)}
    started_all = threading.Event()

    def starting(name: str) -> Callable[..., Any]:
        def start(*arguments: Any, **more: Any) -> Any:
            _require_no_signal(stopping)
            made = before[name](*arguments, **more)
            if name == "start_raylet":
                started.append(made.process)
            return made

        return start

    def get_node(*arguments: Any) -> Any:
        while True:
            _require_no_signal(stopping)
            try:
                return before["get_node"](*arguments)
            except RuntimeError as error:  # it is not known to the head yet
                ended = [each.poll() for each in started if each.poll() is not None]
                if ended:
                    raise RayUnavailable(f"its raylet ended with status {ended[0]}") from error
                if time.monotonic() - began > LONGEST_S:
                    raise RayUnavailable(f"it has not started in {LONGEST_S} s") from error
            threading.Event().wait(_AGAIN_S)

    _shorten_waits(ray)
    thread = threading.Thread(target=_log_slow_start, args=(started_all,), daemon=True)
    thread.start()
    replaced: dict[str, Any] = {name: starting(name) for name in _PARTS}
    replaced |= {"get_node": get_node, "time": _InterruptibleTime(stopping)}
    for name, value in replaced.items():
        setattr(services, name, value)
    try:
        yield
    finally:
        started_all.set()
        for name, function in before.items():
            setattr(services, name, function)


def _log_slow_start(started: threading.Event) -> None:
    """Logs at intervals that Ray has not started, until it has."""
    began = time.monotonic()
    while not started.wait(_LOG_S):
        log.warning(
            "Ray has not started after %.0f s, because this machine is busy; each of its parts "
            "is given %d s",
            time.monotonic() - began,
            LONGEST_S,
        )


def _shorten_waits(ray: Any) -> None:
    """Makes Ray's own waits in this process return each second; its processes do not inherit it."""
    os.environ[_SLICE] = "1"
    ray._raylet.Config.initialize("")  # reads the environment
    del os.environ[_SLICE]


def kill_parts(folder: Path) -> None:
    """Kills every process below this one that has its files in a folder, and all below those."""
    for _ in range(_SCANS):
        files = os.fsencode(folder)
        own = [p for p in descendants(os.getpid()) if files in read(f"/proc/{p}/cmdline")]
        below = [each for pid in own for each in descendants(pid)]
        for pid in dict.fromkeys((*own, *below)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        threading.Event().wait(_SCAN_S)


def log_errors(session: Path) -> None:
    """Logs the last errors of Ray's head, its raylet and that one's agents, without which it ends.

    Never raises: a log that cannot be read is left out.

    Args:
        session: folder of Ray's files.
    """
    for path in sorted(session.glob("logs/*")):
        of_agent = path.match("*_agent.err")
        if not (of_agent or path.stem in ("raylet", "gcs_server")):
            continue
        try:
            if not path.is_file():
                continue
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _TAIL))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            continue
        for line in [x for x in lines if of_agent or " E " in x or " C " in x][-_SHOWN:]:
            log.warning("%s: %s", path.name, line)
