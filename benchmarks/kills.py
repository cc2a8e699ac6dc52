"""Kills games at random and measures how soon they play again, and what is left behind.

Each kill hits one process of one game, by SIGKILL: the game, its child, or the process that hosts
it. Measured are the time until the failure is noticed, and the time until the same slot steps
again, including the game's own start-up; at the end, the processes left.

    python -m benchmarks.kills [--kills 100] [--instances 8] [--save]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.report import header, save, spread, table
from benchmarks.uneven import starts
from bridges.chaos import ChaosBridge
from rollout.api import Task
from rollout.config import HostConfig, build_plugin
from rollout.evaluators import GameReward
from rollout.host import Player, PlayOptions, Pool
from rollout.host.instances import Event
from rollout.host.processes import marked_processes, owner_mark

BRIDGE = ChaosBridge(step_latency=0.01, grandchild="setsid", step_deadline_s=10.0)
LIMIT_S = 10.0  # in which leftovers may disappear


def mine() -> list[psutil.Process]:
    """Every process of a game of ours."""
    found = []
    for each in marked_processes():
        if each.owner == owner_mark():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(each.pid))
    return found


def kind_of(process: psutil.Process) -> str:
    """The role of a process, by its command."""
    if "rollout.host.child" in process.cmdline():
        return "host of the game"
    return "game or its child"


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

    def __init__(self, instances: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gamut-benchmark-"))
        # Without quarantine after repeated failures: kills here are more frequent than ends of
        # episodes.
        host = HostConfig(isolation="subprocess", restarts=10**6, backoff_s=0.0)
        self.pool = Watched(BRIDGE, self.folder, instances, 1, host)
        task = Task("walk", "", BRIDGE.spec.state_space, GameReward())
        policy = build_plugin("policies", "random", {}).build(BRIDGE.spec, task, seed=0)
        self.player = Player(self.pool, task, policy, PlayOptions(steps=8, retries=10**6))
        self.player.offer(starts(BRIDGE, 100_000))
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
        kind = kind_of(victim)
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
        shutil.rmtree(self.folder, ignore_errors=True)
        end = time.monotonic() + LIMIT_S
        while (left := mine()) and time.monotonic() < end:
            psutil.wait_procs(left, timeout=0.2)
        return left


def main() -> None:
    """Kills, waits, counts, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--instances", type=int, default=8)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    rng, trial = random.Random(0), Trial(args.instances)
    for _ in range(args.kills):
        trial.kill(rng.choice(mine()))
    left = trial.close()
    twice = [episode for episode, count in trial.finished.items() if count > 1]
    rows = [
        [kind, str(len(times)), spread(times, 2), spread(trial.again[kind], 2)]
        for kind, times in sorted(trial.noticed.items())
    ]
    text = header("Kills", f"python -m benchmarks.kills --kills {args.kills}") + "\n"
    text += (
        f"{args.instances} games side by side. {sum(trial.finished.values()):,} episodes finished, "
        f"{len(twice)} of them twice. Processes left {LIMIT_S:g} s after the end: {len(left)}.\n\n"
    )
    text += table(["killed", "times", "s to notice", "s to play again"], rows)
    if args.save:
        save("kills", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
