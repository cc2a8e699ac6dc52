"""One run of a script: started, disturbed, resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.faults.cluster import kill_all, named, tree_of
from rollout.data import Dataset
from rollout.errors import DatasetError
from rollout.host.processes import MarkedProcess, marked_processes

ROOT = Path(__file__).resolve().parents[2]
LONG_S = 600.0  # longest wait for anything, on a busy machine

BASE: dict[str, Any] = {
    "bridge": {
        "name": "chaos",
        "mean_steps": 40,
        "step_latency": 0.02,
        "grandchild": "setsid",
        "step_deadline_s": 20.0,
    },
    "policy": "random",
    "episodes": 120,
    "actors": 2,
    "instances": 4,
    "fragment": {"steps": 16},
    "host": {"restarts": 1000, "retries": 20},
    "wandb": {"mode": "disabled"},
    "log": {"every_s": 2.0},
}


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``base`` with ``more`` in it, section by section; None takes a key away."""
    out = dict(base)
    for key, value in more.items():
        both = isinstance(value, Mapping) and isinstance(out.get(key), Mapping)
        out[key] = merged(out[key], value) if both else value
    return {key: value for key, value in out.items() if value is not None}


def wait_until(condition: Callable[[], Any], what: str, seconds: float = LONG_S) -> Any:
    """Waits until a condition holds and returns its value; the error names the condition."""
    pause, end = threading.Event(), time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds:g} s")
        pause.wait(0.05)
    return value


def pause(seconds: float) -> None:
    """Lets the run continue for a while."""
    threading.Event().wait(seconds)


class Run:
    """A run directory and the script that works on it, session by session.

    Args:
        folder: for all files of the run; its path must be short, since Ray has sockets in it.
        settings: keys that differ from ``BASE``.
        script: ``collect`` or ``evaluate``.
        env: additional environment variables of the driver.
        inside: prefix of its command.
        output: run directory; by default one in the folder.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        *,
        script: str = "collect",
        env: Mapping[str, str] | None = None,
        inside: Sequence[str] = (),
        output: Path | None = None,
    ) -> None:
        self.folder, self.output = folder, output or folder / "run"
        self.temporary = folder / "t"
        self.temporary.mkdir(exist_ok=True)
        self.settings = merged(BASE, {**settings, "output": str(self.output)})
        self.env = {**os.environ, **(env or {}), "TMPDIR": str(self.temporary)}
        self.env.setdefault("RAY_AUTH_MODE", "disabled")
        self.script, self._inside = script, list(inside)
        self.config, self.said = folder / "config.yaml", folder / "said.txt"
        self.driver: subprocess.Popen[bytes] | None = None
        self.sessions: list[int] = []  # status of each

    def command(self, *arguments: str) -> list[str]:
        """Returns the command line of a session."""
        self.config.write_text(yaml.safe_dump(self.settings))
        script = f"scripts/{self.script}.py"
        return [
            *(*self._inside, sys.executable, script, "--config", str(self.config)),
            *("--resume", *arguments),
        ]

    def begin(self, *arguments: str) -> None:
        """Starts a session, the first or another."""
        with self.said.open("ab") as said:
            self.driver = subprocess.Popen(
                self.command(*arguments), cwd=ROOT, env=self.env, stdout=said, stderr=said
            )

    def end(self, seconds: float = LONG_S) -> int:
        """Waits for the end of a session and returns its status; kills it after the timeout."""
        assert self.driver is not None
        try:
            status = self.driver.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            kill_all(self.tree())
            raise AssertionError(f"no end within {seconds:g} s:\n{self.tail()}") from None
        self.sessions.append(status)
        return status

    def kill_driver(self) -> list[str]:
        """Kills the driver alone; returns what of its Ray is left after 15 s, and ends it."""
        assert self.driver is not None
        below = self.tree()[1:]
        self.driver.kill()
        self.sessions.append(self.driver.wait(timeout=30))
        _, left = psutil.wait_procs(below, timeout=15)
        names = [" ".join(each.cmdline()[-1:])[:60] or each.name() for each in left]
        kill_all(left)
        return names

    def tree(self) -> list[psutil.Process]:
        """Returns the driver and its descendants, including its own Ray."""
        return [] if self.driver is None else tree_of(self.driver.pid)

    @property
    def alive(self) -> bool:
        """Whether a session is in progress."""
        return self.driver is not None and self.driver.poll() is None

    def tail(self) -> str:
        """Returns the end of its output."""
        return "\n".join(self.said.read_text(errors="replace").splitlines()[-15:])

    @property
    def run_id(self) -> str:
        """The mark of its games; empty before they exist."""
        about = self.output / "run.json"
        return str(json.loads(about.read_text())["run_id"]) if about.exists() else ""

    def marked(self) -> list[MarkedProcess]:
        """Returns every process that carries its mark."""
        run = self.run_id
        return [each for each in marked_processes() if run and each.run == run]

    def games(self, *, children: bool = False) -> list[psutil.Process]:
        """Returns its games, or their children."""
        parents: dict[psutil.Process, int] = {}
        for each in self.marked():
            if "chaos/game.py" in each.command:
                with suppress(psutil.NoSuchProcess):  # games end all the time
                    process = psutil.Process(each.pid)
                    parents[process] = process.ppid()
        numbers = {each.pid for each in parents}
        return [each for each, parent in parents.items() if (parent in numbers) == children]

    def workers(self, word: str) -> list[psutil.Process]:
        """Returns the workers of its own Ray whose title contains a word."""
        return named(named(self.tree(), "ray::"), word)

    def finished(self) -> int:
        """Returns how many episodes are on disk."""
        if self.script == "evaluate":
            journal = self.output / "episodes.jsonl"
            return journal.read_bytes().count(b"\n") if journal.exists() else 0
        try:
            with Dataset(self.output / "dataset") as dataset:
                return len(dataset.finished().episodes)
        except DatasetError:
            return 0  # no dataset yet

    def until(self, episodes: int, seconds: float = LONG_S) -> None:
        """Waits until that many episodes are on disk, or the session has ended."""
        wait_until(
            lambda: not self.alive or self.finished() >= episodes,
            f"{episodes} finished episodes\n{self.tail() if self.said.exists() else ''}",
            seconds,
        )

    def log(self) -> str:
        """Returns the run's log."""
        path = self.output / "run.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def summary(self) -> dict[str, Any]:
        """Returns the summary that the run prints at its end."""
        return dict(json.loads((self.output / "summary.json").read_text()))
