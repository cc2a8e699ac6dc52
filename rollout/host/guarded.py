"""The host's side of a guard: launches a command under it, receives its events, ends it.

See ``rollout.host.guard`` for what the guard does, and docs/processes.md for why.
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

from rollout.errors import ConfigError
from rollout.host.guard import GRACE_S, children, descendants, peak_kb, read, status_field
from rollout.host.processes import GAME, game_marks, is_stopped, kill_marked

Namespace = Literal["never", "auto", "always"]

_SCRIPT = str(Path(__file__).with_name("guard.py"))
_PYTHON = (sys.executable, "-S", "-I")  # without the user's site packages, which cost time
_STOP_S = 2.0  # longest wait of a stop for the guard; the guard continues without us
_STATE_S = 0.1  # between two looks at whether the guard is stopped, during a stop
_PROBE_S = 20.0
_MB = 1 << 20

# Ends of control pipes that this process holds. A copy in a forked process would keep a game alive
# after the death of its host, so a forked process closes them first.
_controls: set[int] = set()


def _close_controls_after_fork() -> None:
    for control in _controls:
        os.close(control)
    _controls.clear()


os.register_at_fork(after_in_child=_close_controls_after_fork)


@functools.cache
def namespaces_allowed() -> bool:
    """Returns whether games can have a PID namespace here; checked once per process."""
    try:
        probe = subprocess.run(
            [*_PYTHON, _SCRIPT, "probe"], capture_output=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


class Guarded:
    """A command with all its subprocesses.

    Args:
        command: program and arguments.
        output: file for the output of the command and the guard, open for appending; the guard
            bounds its size.
        descriptors: descriptors that the command inherits; close yours after this call.
        namespace: whether the command gets a PID namespace: ``never``, ``auto`` (where permitted)
            or ``always``. With one, no process survives even a ``kill -9`` of the guard.
        variables: further environment variables of the command.

    Raises:
        ConfigError: ``namespace="always"`` where it is not permitted; or this is not Linux.
        OSError: no process can be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        output: IO[Any],
        *,
        descriptors: Sequence[int] = (),
        namespace: Namespace = "never",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise ConfigError(
                f"games in their own processes need Linux, this is {sys.platform}; games that "
                "are libraries run here with the option in_process"
            )
        self._namespace = namespace != "never" and namespaces_allowed()
        if namespace == "always" and not self._namespace:
            raise ConfigError(
                "namespace='always': PID namespaces are not allowed on this machine (they take "
                "CAP_SYS_ADMIN, or user namespaces and an unmasked /proc); use 'auto' or 'never'"
            )
        self._marks = game_marks()
        self._owner = os.getpid()
        self._unread = b""
        self._ended: tuple[int, int] | None = None  # wait status, peak in KiB
        self._guard = self._game = 0
        self._gone = self._done = self._ending = False
        self._peak = 0.0
        self._begun = time.monotonic()
        control_read, self._control = os.pipe()
        _controls.add(self._control)
        self._report, report_write = os.pipe()
        kind = "namespace" if self._namespace else "plain"
        pipes = (control_read, report_write)
        inherited = ",".join(map(str, descriptors))
        added = self._marks | dict(variables or {})
        marks = (f"{name}={value}" for name, value in added.items())
        guard = (*_PYTHON, _SCRIPT, *map(str, pipes), kind, inherited, *marks)
        try:
            self._starter = subprocess.Popen(
                [*guard, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(*pipes, *descriptors),
                start_new_session=True,
            )
        except OSError:
            _controls.discard(self._control)
            os.close(self._control)
            os.close(self._report)
            raise
        finally:
            os.close(control_read)
            os.close(report_write)

    @property
    def mark(self) -> str:
        """Value of ``GAMUT_GAME`` in the environment of the command and its subprocesses."""
        return self._marks[GAME]

    @property
    def guard_pid(self) -> int | None:
        """Process id of the guard; None while it starts."""
        self._read_events(0.0)
        return self._guard or None

    @property
    def pid(self) -> int | None:
        """Process id of the command in this process's namespace; None if unknown."""
        self._read_events(0.0)
        if not (self._namespace and self._game):
            return self._game or None
        own = [p for p in children(self._guard) if status_field(p, "NSpid")[-1:] == [self._game]]
        return own[0] if own else None

    @property
    def age_s(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._begun

    @property
    def exit_code(self) -> int | None:
        """Exit code of the command, or the negative signal that ended it; None if unknown."""
        self._read_events(0.0)
        return None if self._ended is None else os.waitstatus_to_exitcode(self._ended[0])

    @property
    def guard_lost(self) -> bool:
        """True if the guard died too early, so that only marks identify remaining processes."""
        self._read_events(0.0)
        return self._gone and not self._done

    def memory_mb(self) -> float:
        """Returns the resident memory of the whole tree now, in MB of 2**20 bytes.

        Shared pages are counted once per process. Takes well below a millisecond for
        a few processes.
        """
        self._read_events(0.0)
        if not self._guard or self._gone:
            return 0.0
        sizes = [read(f"/proc/{pid}/statm").split() for pid in descendants(self._guard)]
        total = sum(int(size[1]) for size in sizes if size) * resource.getpagesize() / _MB
        self._peak = max(self._peak, total)
        return total

    def peak_mb(self) -> float:
        """Returns the highest known memory, in MB: of one process, or of the tree if measured."""
        self.memory_mb()
        kilobytes = self._ended[1] if self._ended else 0
        if self._guard and not self._gone:
            kilobytes = max(kilobytes, peak_kb(descendants(self._guard)))
        self._peak = max(self._peak, kilobytes / 1024)
        return self._peak

    def stopped(self) -> str:
        """Returns a description of the guard or the command if it is stopped (SIGSTOP); else empty.

        Subprocesses of the command are not checked: some commands pause a game between two steps.
        """
        if (guard := self.guard_pid) and is_stopped(guard):
            return f"its guard, process {guard}, is stopped"
        return _stopped([self.pid] if self.pid else [])

    def stopped_below(self) -> str:
        """Returns a description of the stopped processes below the guard; empty if none is."""
        return _stopped(descendants(self._guard) if self.guard_pid and not self._gone else [])

    def wait(self, timeout_s: float) -> bool:
        """Waits at most ``timeout_s`` seconds; returns whether the command has ended."""
        deadline = time.monotonic() + timeout_s
        while self._ended is None and not self._gone:
            left = deadline - time.monotonic()
            self._read_events(max(0.0, left))
            if left <= 0:
                break
        return self._ended is not None or self._gone

    def stop(self, *, at_once: bool) -> bool:
        """Ends the command and all its subprocesses. Idempotent; never raises.

        Args:
            at_once: KILL; otherwise TERM first, and KILL a second later.

        Returns:
            whether no process is left; if False, the guard is still ending them and needs no help.
        """
        if self._ending or os.getpid() != self._owner:  # a forked copy must not end anything
            return self._gone
        self._ending = True
        if at_once:
            with contextlib.suppress(OSError):  # the guard has already ended
                os.write(self._control, b"k")
        _controls.discard(self._control)
        os.close(self._control)
        # It ends by itself as soon as it has forked. Before that there is no game, and after that
        # the guard works without it, so killing it is always safe.
        if at_once and self._starter.poll() is None:
            self._starter.kill()
        deadline = time.monotonic() + _STOP_S + (0.0 if at_once else GRACE_S)
        while not self._gone and (left := deadline - time.monotonic()) > 0:
            self._read_events(min(left, _STATE_S))
            if is_stopped(self._guard):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._guard, signal.SIGKILL)  # it would do nothing
        self._starter.kill()
        self._starter.wait()
        if self.guard_lost:
            kill_marked(self.mark)
        os.close(self._report)
        self._report = -1
        return self._gone

    def _read_events(self, timeout_s: float) -> None:
        """Reads the events of the guard; waits at most ``timeout_s`` for the first."""
        if self._gone or self._report < 0:
            return
        poller = select.poll()
        poller.register(self._report, select.POLLIN)
        while poller.poll(1000 * timeout_s):
            timeout_s = 0.0
            news = os.read(self._report, 4096)
            if not news:
                self._gone = True
                break
            *lines, self._unread = (self._unread + news).split(b"\n")
            for line in lines:
                self._handle_event(line.decode().split())
        self._starter.poll()  # reaps it as soon as it has ended

    def _handle_event(self, words: list[str]) -> None:
        match words:
            case ["guard", pid]:
                self._guard = int(pid)
            case ["game", pid]:
                self._game = int(pid)
            case ["ended", status, peak]:
                self._ended = int(status), int(peak)
            case ["done"]:
                self._done = True
            case _:
                raise AssertionError(f"expected an event of the guard, got {words}")


def _stopped(pids: Sequence[int]) -> str:
    names = ((p, read(f"/proc/{p}/comm").decode(errors="replace").strip()) for p in pids)
    return ", ".join(f"process {p} ({name}) is stopped" for p, name in names if is_stopped(p))
