"""Detection, within seconds, of the death of Ray on this machine, or of its head anywhere.

Ray itself needs a minute to detect the death of its head, and then ends this process. When its
raylet is dead, the next object that this process stores ends it at once. So no request may be sent
to a Ray that has died.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.errors import RayUnavailable
from rollout.host.processes import is_stopped
from rollout.host.ray_start import log_errors
from rollout.signals import say

log = logging.getLogger(__name__)

_POLL_S = 1.0
_ANSWER_S = 2.0  # deadline of a connection to the head
_WARN_S = 5.0  # without a sign of life of a part that may come back
_GONE_S = 45.0  # likewise, after which the run ends; Ray ends the process after 60
_RECONNECT = "RAY_gcs_rpc_server_reconnect_timeout_s"  # variable: these 60 s, where others are set
_GRACE_S = 8.0  # for the main thread to notice, where it does not wait for Ray
_DETECT_S = 3.0  # between an error of Ray and the death that caused it
_ENDED_SHORT = 3
_HEAD = "Ray's head"


@dataclass
class _Part:
    """A required process of Ray on this machine."""

    name: str
    pid: int
    child: subprocess.Popen[Any] | None = None  # of ours

    def __post_init__(self) -> None:
        self.descriptor = os.pidfd_open(self.pid)

    def ending(self) -> str:
        """Returns how it ended; empty while it lives. Thread-safe."""
        ended = select.poll()
        ended.register(self.descriptor, select.POLLIN)
        if not ended.poll(0):
            return ""
        status = None if self.child is None else self.child.poll()
        text = "has ended" if status is None else f"ended with status {status}"
        if status is not None and status < 0:
            text = f"was killed by {signal.Signals(-status).name}"
        return f"Ray's {self.name} on this machine, process {self.pid}, {text}"


class RayWatch:
    """Watches the processes of a cluster that this process has started or joined.

    Args:
        parts: the processes on this machine.
        head: host and port of a head that is none of them; None for no such head.
        session: folder of Ray's files on this machine.
    """

    def __init__(self, parts: list[_Part], head: tuple[str, int] | None, session: Path) -> None:
        self._parts, self._head, self._session, self._lost = parts, head, session, ""
        self._last_answer, self._warned = time.monotonic(), False
        self._last_running, self._stop_warned = time.monotonic(), False  # when no part was stopped
        self._acknowledged, self._closed = threading.Event(), threading.Event()
        self.conclude_if_lost: Callable[[], str] | None = None
        self._thread = threading.Thread(target=self._run, name="ray-watch", daemon=True)
        self._thread.start()

    def lost(self) -> str:
        """Returns the part of Ray that has died, and how; empty while all live."""
        self._lost = self._lost or next(filter(None, (part.ending() for part in self._parts)), "")
        return self._lost

    def acknowledge(self) -> None:
        """Records that the main thread knows of the death and will end by itself."""
        self._acknowledged.set()

    def close(self) -> None:
        """Ends the watch; what was lost stays known."""
        self._closed.set()
        self._thread.join(_ANSWER_S + _POLL_S)
        for part in self._parts:
            os.close(part.descriptor)
        self._parts = []

    def _run(self) -> None:
        while not self._closed.wait(_POLL_S):
            self._check_head()
            self._check_stopped()
            if self.lost():
                log.error("%s; the run ends", self._lost)
                log_errors(self._session)
                self._end()
                return

    def _check_head(self) -> None:
        if self._head is None:
            return
        host, port = self._head
        try:
            socket.create_connection(self._head, timeout=_ANSWER_S).close()
        except OSError as error:
            silent = time.monotonic() - self._last_answer
            what = f"{_HEAD} at {host}:{port} does not answer ({error.strerror or error})"
            patience_s = _head_patience()
            if silent > patience_s:
                self._lost = self._lost or f"{what} for {silent:.0f} s"
            elif silent > _WARN_S and not self._warned:
                self._warned = True
                log.warning("%s; it is given %.0f s to come back", what, patience_s)
            return
        self._last_answer, self._warned = time.monotonic(), False

    def _check_stopped(self) -> None:
        """Detects a part that is stopped, as by SIGSTOP, and does not answer."""
        stopped = next((part for part in self._parts if is_stopped(part.pid)), None)
        if stopped is None:
            self._last_running, self._stop_warned = time.monotonic(), False
            return
        silent = time.monotonic() - self._last_running
        what = f"Ray's {stopped.name} on this machine, process {stopped.pid}, is stopped"
        if silent > _GONE_S:
            self._lost = self._lost or f"{what} for {silent:.0f} s"
        elif silent > _WARN_S and not self._stop_warned:
            self._stop_warned = True
            message = "%s; it is given %.0f s to be continued: kill -CONT %d"
            log.warning(message, what, _GONE_S, stopped.pid)

    def _end(self) -> None:
        """Ends the process if its main thread waits for Ray, which will never answer."""
        waited = 0.0
        while not self._acknowledged.wait(_POLL_S) and not self._closed.is_set():
            waited = waited + _POLL_S if _is_in_ray() else 0.0
            if waited >= _GRACE_S and self.conclude_if_lost is not None:
                try:
                    saved = self.conclude_if_lost()
                finally:
                    say(f"ended short: {self._lost}. Saved: {saved}; continue with --resume")
                    os._exit(_ENDED_SHORT)


def _head_patience() -> float:
    """Returns how long a head may be silent, in seconds; less than Ray itself waits for one.

    A head that keeps its tables in Redis may be replaced, for which KubeRay sets ten minutes.
    """
    given = os.environ.get(_RECONNECT, "")
    return max(_GONE_S, 0.75 * int(given)) if given.isdecimal() else _GONE_S


_current: RayWatch | None = None


def lost(wait_s: float = 0.0) -> str:
    """Returns the part of Ray that has died, and how; empty while all live, or if there is no Ray.

    Args:
        wait_s: longest wait for a death, in seconds.
    """
    end = time.monotonic() + wait_s
    while _current is not None:
        death = _current.lost()
        if death:
            _current.acknowledge()
        if death or time.monotonic() >= end:
            return death
        threading.Event().wait(0.1)
    return ""


def lost_after(error: BaseException) -> str:
    """Returns the death of a part of Ray that caused an error; empty if none did."""
    of_ray = any(each.__module__.startswith("ray.") for each in type(error).__mro__)
    return lost(_DETECT_S if of_ray else 0.0)


def require_ray(*, head: bool = True) -> None:
    """Checks that Ray lives, before anything is asked of it.

    Args:
        head: whether its head is needed, as for all but calls of actors that run.

    Raises:
        RayUnavailable: a part of it has died.
    """
    what = lost()
    if what and (head or _HEAD not in what):
        raise RayUnavailable(what)


@contextlib.contextmanager
def conclude_if_lost(conclude: Callable[[], str]) -> Iterator[None]:
    """Context in which ``conclude`` is called if the main thread waits for a Ray that has died.

    ``conclude`` writes the results and returns a sentence on the progress; then the process ends.
    """
    watch = _current
    if watch is not None:
        watch.conclude_if_lost = conclude
    try:
        yield
    finally:
        if watch is not None:
            watch.conclude_if_lost = None


@contextlib.contextmanager
def watched(ray: Any) -> Iterator[None]:
    """Watches the cluster that this process is connected to, if it has a node here."""
    global _current  # noqa: PLW0603 - as Ray, which is one for a process
    node = ray._private.worker._global_node
    before = _current
    if node is not None:
        _current = _watch_of(node)
    try:
        yield
    finally:
        if _current is not None and _current is not before:
            _current.close()


def forget() -> None:
    """Clears the watched cluster, after it was left."""
    global _current  # noqa: PLW0603 - see above
    _current = None


def _watch_of(node: Any) -> RayWatch:
    own = {
        kind: infos[0].process
        for kind, infos in node.all_processes.items()
        if kind in ("gcs_server", "raylet")
    }
    parts = [
        _Part("head (GCS)" if kind == "gcs_server" else kind, process.pid, process)
        for kind, process in own.items()
    ]
    if "raylet" not in own:
        with contextlib.suppress(OSError):
            parts.append(_Part("raylet", _listener(node.raylet_socket_name)))
    host, _, port = node.gcs_address.rpartition(":")
    address = None if "gcs_server" in own else (host.strip("[]"), int(port))
    return RayWatch(parts, address, Path(node.get_session_dir_path()))


def _listener(path: str) -> int:
    """Returns the process that listens on a socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_S)
        connection.connect(path.removeprefix("unix://"))
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("3i", credentials)[0])


def _is_in_ray() -> bool:
    """True if the main thread executes code of Ray."""
    ray = sys.modules.get("ray")
    folder = f"{Path(getattr(ray, '__file__', None) or '/').parent}/"
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and frame.f_code.co_filename == threading.__file__:
        frame = frame.f_back  # it waits for a condition
    return ray is not None and frame is not None and frame.f_code.co_filename.startswith(folder)
