"""Rows in which processes are killed, hang, crash or leak, on one machine."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from benchmarks.faults.check import Row, checked, left_after
from benchmarks.faults.cluster import kill_all
from benchmarks.faults.runs import LONG_S, Run, merged, pause, wait_until

KILLS = 5


def _kill_now_and_then(
    run: Run, victims: Callable[[], list[psutil.Process]], times: int, first: int
) -> int:
    """Kills a random victim, waits for more episodes, and repeats; returns the number of kills."""
    rng, killed = random.Random(0), 0
    for number in range(times):
        run.until(first * (number + 1))
        if not run.alive:
            break
        found = wait_until(lambda: victims() or not run.alive, "somebody to kill")
        if found is not True:
            killed += kill_all([rng.choice(found)])
    return killed


def killed(
    folder: Path,
    fault: str,
    victims: Callable[[Run], list[psutil.Process]],
    *,
    cause: str,
    settings: dict[str, Any] | None = None,
    script: str = "collect",
    times: int = KILLS,
    first: int = 10,
) -> Row:
    """A run of which a random victim is killed after every ``first`` episodes, some times."""
    run = Run(folder, settings or {}, script=script)
    run.begin()
    kills = _kill_now_and_then(run, lambda: victims(run), times, first)
    run.end(LONG_S + 2.0 * times)
    row = checked(run, fault, f"kill -9, {kills} times", cause=cause)
    if not kills:
        row.wrong.append("it was over before anything was killed")
    return row


def one_game(folder: Path) -> Row:
    """The process of a game."""
    return killed(folder, "a game", lambda run: run.games(), cause="killed by SIGKILL", times=10)


def one_grandchild(folder: Path) -> Row:
    """The process that a game has started and that has left its session."""
    cause = "exit code 10"
    return killed(folder, "a grandchild", lambda run: run.games(children=True), cause=cause)


def host_actor(folder: Path) -> Row:
    """The Ray worker in which games are played."""
    cause = r"host \d+ failed"
    return killed(folder, "a host actor", lambda run: run.workers("OneThreadHost"), cause=cause)


def evaluation_actor(folder: Path) -> Row:
    """The same in an evaluation."""
    settings = {
        "players": {"chance": "random"},
        "sets": {"train": {"size": 20}, "test": {"split": "test", "size": 20}},
        "episodes_per_state": 3,
        "policy": None,
        "episodes": None,
    }
    return killed(
        folder,
        "an evaluation actor",
        lambda run: run.workers("OneThreadHost"),
        cause=r"host \d+ failed",
        settings=settings,
        script="evaluate",
        times=3,
    )


def inference_actor(folder: Path) -> Row:
    """The Ray worker in which the policy chooses actions for all hosts."""
    return killed(
        folder,
        "the inference actor",
        lambda run: run.workers("InferenceServer"),
        cause="inference actor 0 failed",
        settings={"inference": {"actors": 1, "restarts": 20}},
        times=3,
    )


def recorder(folder: Path) -> Row:
    """The process that records, while a journal is open, which is then truncated."""
    run = Run(folder, {"recording": {"fsync": "episode"}})
    cut = 0
    for number in range(3):
        run.begin()
        run.until(25 * (number + 1))
        journals = sorted((run.output / "dataset").glob("journal/*"))
        before = run.finished()
        run.kill_driver()
        # A process that dies during a write leaves half a row after its last complete one.
        if journals and journals[-1].exists() and not run.finished() < before:
            with journals[-1].open("ab") as file:
                file.write(b"\xff\xff\xff\xff\x10\x00")
            cut += 1
        if run.finished() < before:
            raise AssertionError(f"{before} episodes were on disk, {run.finished()} are left")
    run.begin()
    run.end()
    injected = f"kill -9 with a journal open, 3 times; {cut} of these journals end in half a row"
    return checked(run, "the recorder, mid-shard", injected, cause="")


def driver(folder: Path) -> Row:
    """The driver alone; its Ray has to notice."""
    run = Run(folder, {})
    outlived: list[str] = []
    for number in range(3):
        run.begin()
        run.until(20 * (number + 1))
        outlived += run.kill_driver()
    gone = left_after(run)
    run.begin()
    run.end()
    names = ", ".join(f"{n} {name}" for name, n in sorted(Counter(outlived).items()))
    note = f"of its Ray, outlived it by 15 s: {names or 'nothing'}"
    return checked(run, "the driver", "kill -9, 3 times", cause="", note=note, before=gone)


def everything(folder: Path) -> Row:
    """The driver, its Ray and all workers, at the same moment."""
    run, killed = Run(folder, {}), []
    for number in range(3):
        run.begin()
        run.until(20 * (number + 1))
        killed.append(kill_all(run.tree()))
        run.end()
    gone = left_after(run)
    run.begin()
    run.end()
    injected = f"kill -9 of {', '.join(map(str, killed))} processes at once"
    return checked(run, "driver and its whole Ray", injected, cause="", before=gone)


_HANGS: dict[str, dict[str, Any]] = {
    "start": {
        "bridge": {"start_hang": 0.25, "start_deadline_s": 4.0},
        "host": {"recycle_episodes": 4},
    },
    "reset": {"bridge": {"reset_hang": 0.1, "reset_deadline_s": 4.0}},
    "step": {"bridge": {"step_hang": 0.003, "step_deadline_s": 4.0}},
    "close": {
        "bridge": {"close_hang": 1.0, "close_deadline_s": 2.0, "ignore_sigterm": True},
        "host": {"recycle_episodes": 4},
    },
}


def hang(phase: str) -> Callable[[Path], Row]:
    """Returns the row of games that hang in a phase."""

    def row(folder: Path) -> Row:
        settings = _HANGS[phase]
        run = Run(folder, settings)
        run.begin()
        run.end()
        told = ", ".join(f"{k}={v}" for part in settings.values() for k, v in part.items())
        # A game that hangs in its close is killed in the background; nothing waits for it.
        cause = "" if phase == "close" else f"(no answer to {phase}|did not come up)"
        figures = json.loads((run.output / "metrics.jsonl").read_text().splitlines()[-1])
        counts = {k: figures[f"restarts/{k}"] for k in ("failed", "recycled")}
        note = ", ".join(f"{n:.0f} games {k}" for k, n in counts.items())
        row = checked(run, f"hang in {phase}", told, cause=cause, note=note)
        if not counts["recycled" if phase == "close" else "failed"]:
            row.wrong.append("nothing hung")
        return row

    return row


def crashing(folder: Path, seconds: float) -> Row:
    """One per cent of the steps of 64 games, for a long time."""
    bridge = {"step_crash": 0.01, "step_latency": "lognormal(0.2, 1, 2)", "crash_kind": "any"}
    settings = {
        "bridge": merged(bridge, {"start_deadline_s": 120.0}),
        "instances": 32,
        "episodes": 64,
        "host": {"concurrent_launches": 2, "spares": 1, "restarts": 10**6, "retries": 1000},
        "fragment": {"seconds": 2.0},
    }
    run = Run(folder, settings)
    began = time.monotonic()
    while (left := seconds - (time.monotonic() - began)) > 0:
        before, at = run.finished(), time.monotonic()
        if before:
            rate = before / (at - began)
            run.settings["episodes"] = before + max(64, int(0.9 * rate * left))
        run.begin()
        run.end(LONG_FACTOR * seconds + 600)
    took = time.monotonic() - began
    lost = len(re.findall("episode lost in step", run.log()))
    injected = f"64 games, 1 % of steps crash in any way, {took:.0f} s; {lost} crashes in play"
    return checked(run, "crashes, for long", injected, cause="(killed by SIG|exit code)")


LONG_FACTOR = 5.0  # allowance: a rate measured on few episodes may be this much too high


def leak(folder: Path) -> Row:
    """Games that use more and more memory."""
    settings = {
        "bridge": {"leak_bytes": 3_000_000, "step_latency": 0.05},
        "host": {"memory_mb": 160},
        "episodes": 60,
    }
    run = Run(folder, settings)
    run.begin()
    highest = 0.0
    while run.alive:
        for game in run.games():
            try:
                highest = max(highest, game.memory_info().rss / 2**20)
            except psutil.NoSuchProcess:
                continue
        pause(0.5)
    run.end()
    note = f"the biggest game had {highest:.0f} MB; memory is looked at every 5 s"
    injected = "3 MB leaked in every step, cap 160 MB"
    return checked(run, "leak to the cap", injected, cause="over the limit of 160 MB", note=note)
