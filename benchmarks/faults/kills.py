"""The row of random kills in one process, which measures how soon the games play again.

Each kill hits one process of one game: the game, its child, or the process that hosts it. Measured
are the time until the failure is noticed, and the time until the same slot steps again, including
the game's own start.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.faults.check import LIMIT_S, Row
from benchmarks.report import spread
from benchmarks.throughput.playing import starts
from bridges.chaos import ChaosBridge
from rollout.api import Task
from rollout.config import HostConfig, build_plugin
from rollout.evaluators import GameReward
from rollout.host import Player, PlayOptions, Pool
from rollout.host.instances import Event
from rollout.host.processes import marked_processes, owner_mark

BRIDGE = ChaosBridge(step_latency=0.01, grandchild="setsid", step_deadline_s=10.0)


def mine() -> list[psutil.Process]:
    """Every process of a game of ours."""
    found = []
    for each in marked_processes():
        if each.owner == owner_mark():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(each.pid))
    return found


class Watched(Pool):
    """A pool that records when instances fail, are up and step again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.notes: list[tuple[float, int, str]] = []

    def recv(self, *, timeout_s: float | None = None) -> list[Event]:
        """See ``Pool``."""
        events = super().recv(timeout_s=timeout_s)
        now = time.monotonic()
        self.notes += [(now, event.instance, event.kind) for event in events]
        return events


class Trial:
    """Games that play, and the kills."""

    def __init__(self, folder: Path, instances: int) -> None:
        # Without quarantine after repeated failures: kills here are more frequent than ends of
        # episodes.
        host = HostConfig(isolation="subprocess", restarts=10**6, backoff_s=0.0)
        self.pool = Watched(BRIDGE, folder, instances, 1, host)
        task = Task("walk", "", BRIDGE.spec.state_space, GameReward())
        policy = build_plugin("policies", "random", {}).build(BRIDGE.spec, task, seed=0)
        self.player = Player(self.pool, task, policy, PlayOptions(steps=8, retries=10**6))
        self.player.offer(starts(task.state_space, 100_000))
        self.noticed, self.again = defaultdict[str, list[float]](list), defaultdict(list)
        self.finished: Counter[int] = Counter()
        self.play_until(lambda notes: sum(n[2] == "step" for n in notes) > 20 * instances)

    def play_until(self, done: Callable[[list[tuple[float, int, str]]], bool]) -> None:
        """Plays until a condition on the records holds."""
        while not done(self.pool.notes):
            fragment = self.player.next_fragment()
            assert fragment is not None
            self.finished.update(r.start.episode for r in fragment.results if r.end != "lost")

    def kill(self, victim: psutil.Process) -> None:
        """Kills a process and plays until its game plays again."""
        hosts = "rollout.host.child" in victim.cmdline()
        kind = "host of the game" if hosts else "game or its child"
        self.pool.notes.clear()
        when = time.monotonic()
        os.kill(victim.pid, signal.SIGKILL)
        self.play_until(lambda notes: any(n[2] == "failed" for n in notes))
        at, noted, number = next(
            (i, t, n) for i, (t, n, k) in enumerate(self.pool.notes) if k == "failed"
        )
        self.play_until(lambda notes: any(n[1:] == (number, "step") for n in notes[at:]))
        stepped = next(t for t, n, k in self.pool.notes[at:] if (n, k) == (number, "step"))
        self.noticed[kind].append(noted - when)
        self.again[kind].append(stepped - when)

    def close(self) -> list[psutil.Process]:
        """Ends everything; returns the processes that are left after a while."""
        self.player.close()
        end = time.monotonic() + LIMIT_S
        while (left := mine()) and time.monotonic() < end:
            psutil.wait_procs(left, timeout=0.2)
        return left


def at_random(folder: Path, times: int = 100, instances: int = 8) -> Row:
    """One process of a game after the other."""
    rng, trial = random.Random(0), Trial(folder, instances)
    for _ in range(times):
        trial.kill(rng.choice(mine()))
    left = trial.close()
    twice = sum(count > 1 for count in trial.finished.values())
    held = [f"{len(trial.finished)} episodes finished, each once"]
    for kind, waits in sorted(trial.noticed.items()):
        noticed, again = spread(waits, 2), spread(trial.again[kind], 2)
        held.append(f"{kind}, {len(waits)} times: noticed after {noticed} s, plays after {again} s")
    wrong = [f"{twice} episodes finished twice"] if twice else []
    wrong += [f"{len(left)} processes left after {LIMIT_S:g} s"] if left else []
    return Row(
        "any process of a game, in one host", f"kill -9, {times} times", "; ".join(held), "", wrong
    )
