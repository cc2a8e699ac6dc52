"""Interpreters and processes of the libraries that are measured."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rollout.api import Environment, environment_folder
from rollout.host.processes import GAME, game_marks, kill_marked

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
MODULES = "benchmarks.throughput.peers.libraries"
_BUILD = {
    # PufferLib is built without its own games, for which it fetches a library; for processors.
    "NO_OCEAN": "1",
    "PYTHONPATH": f"{HERE / 'pufferlib_build'}{os.pathsep}{ROOT}",
}
_QUIET = {
    "RAY_AUTH_MODE": "disabled",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    # Ray's own 30 s are short on a busy machine.
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_gcs_server_port_wait_time_s": "120",
    "RAY_agent_register_timeout_ms": "120000",
    "RAY_worker_register_timeout_seconds": "120",
}


class PeerError(Exception):
    """A library could not be installed, or its process failed; the message is for the table."""


def interpreter(name: str, requirements: Path | None = None, timeout_s: float = 1800.0) -> Path:
    """Returns the interpreter of a library, which is made if it is not there.

    Raises:
        PeerError: it could not be made.
    """
    requirements = requirements or HERE / "requirements" / f"{name}.txt"
    build = {**_BUILD, "UV_BUILD_CONSTRAINT": str(requirements)} if name == "pufferlib" else {}
    folder = environment_folder(f"peer-{name}")
    command = [sys.executable, "-m", __name__, str(requirements), str(folder)]
    variables = {**os.environ, "PYTHONPATH": _with_root(), **build}
    try:
        asked = subprocess.run(
            command,
            env=variables,
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"not installed in {timeout_s:g} s") from error
    if asked.returncode:
        raise PeerError(f"not installed: {last_error(asked.stdout)}")
    return folder / "bin" / "python"


def last_error(text: str) -> str:
    """Returns the last line that names an error, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [
        line for line in lines if "rror" in line.partition(" ")[0] and "ConfigError" not in line
    ]
    return (named or lines or ["nothing was said"])[-1][:160]


def _with_root() -> str:
    """Returns a ``PYTHONPATH`` in which the benchmarks are found."""
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))


class Worker:
    """The process of a library, which answers one order at a time and sleeps in between.

    Attributes:
        started: time at which it was started.
    """

    def __init__(self, python: Path, module: str) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - until it is closed
        self._folder = tempfile.TemporaryDirectory()  # libraries write where they run
        self.started = time.monotonic()
        answers, theirs = os.pipe()
        self._answers = os.fdopen(answers)
        self._marks = game_marks()  # libraries leave processes in sessions of their own
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", module],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            cwd=self._folder.name,
            env={**os.environ, **_QUIET, "PYTHONPATH": _with_root(), "ANSWERS": str(theirs)},
            pass_fds=[theirs],
            start_new_session=True,
            text=True,
            bufsize=1,
        )
        os.close(theirs)

    def ask(self, order: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Returns the answer to an order.

        Raises:
            PeerError: it ended, or did not answer in time and was killed.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
        except OSError:
            raise PeerError(self._said()) from None
        with selectors.DefaultSelector() as waits:
            waits.register(self._answers, selectors.EVENT_READ)
            if not waits.select(timeout_s):
                self.kill()
                raise PeerError(f"no answer in {timeout_s:g} s; killed")
        if not (line := self._answers.readline()):
            raise PeerError(self._said())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _said(self) -> str:
        """Returns the last error of a process that has ended or is about to."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self._log.seek(0)
        return last_error(self._log.read())

    def close(self) -> None:
        """Lets it end, or ends it after half a minute."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._process.stdin.close()
            self._process.wait(30)
        self.kill()
        self._log.close()
        self._answers.close()
        self._folder.cleanup()

    def kill(self) -> None:
        """Ends it and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        kill_marked(self._marks[GAME])


def main() -> None:
    """Makes an interpreter: requirements and folder are given."""
    from rollout.commands.env import make_environment

    requirements, folder = map(Path, sys.argv[1:])
    make_environment(Environment(folder.name, requirements, "3.11"), folder)


if __name__ == "__main__":
    main()
