"""Rows of runs whose output is in a store: killed and continued elsewhere, and cut off."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.check import Row, doctor
from benchmarks.faults.runs import Run, pause, wait_until
from benchmarks.faults.store_server import StoreServer
from rollout.data import Dataset
from rollout.errors import DatasetError
from rollout.run_directory import cached_output

_END_S = 3600.0  # of the last session, on a busy machine
_ADDRESS = "s3://bucket/runs/first"
_SETTINGS: dict[str, Any] = {
    "bridge": {
        **dict.fromkeys(("mean_steps", "step_latency", "grandchild", "step_deadline_s")),
        "name": "fake",
        "max_steps": 100,
    },
    "actors": 0,
    "instances": 1,
    "recording": {"shard_mb": 1},
}


class _Machine(Run):
    """A machine with a cache of its own, which is empty at first."""

    def __init__(self, folder: Path, server: StoreServer, settings: dict[str, Any]) -> None:
        folder.mkdir()
        self.cache = folder / "cache"
        super().__init__(
            folder,
            {**_SETTINGS, **settings},
            env={**server.env, "GAMUT_CACHE": str(self.cache)},
        )
        self.settings["output"] = _ADDRESS
        os.environ["GAMUT_CACHE"] = str(self.cache)
        self.output = cached_output(_ADDRESS)


def _stored() -> list[int]:
    """Returns the finished episodes at the address."""
    try:
        with Dataset(_ADDRESS) as dataset:
            return [ref.episode for ref in dataset.episodes()]
    except DatasetError:
        return []  # killed before there was a dataset


def kills(folder: Path, times: int = 20, episodes: int = 12_000) -> Row:
    """Kill -9 at random moments; every session runs on a machine that has nothing of the run."""
    rng, wrong = random.Random(0), list[str]()
    before: set[int] = set()
    again, statuses = list[int](), list[int]()
    with StoreServer(folder) as server:
        for number in range(times + 1):
            machine = _Machine(folder / f"m{number}", server, {"episodes": episodes})
            machine.begin()
            if number == times:
                statuses.append(machine.end(_END_S))
                break
            # By progress: how long the episodes take depends on the machine.
            machine.until(len(before) + rng.randrange(episodes // (times + 1)))
            pause(rng.uniform(0.0, 0.2))
            assert machine.driver is not None
            if not machine.alive:
                wrong.append(f"it ended before kill {number}; give it more episodes")
            machine.driver.send_signal(signal.SIGKILL)
            statuses.append(machine.driver.wait())
            here = _finished(machine)
            there = _stored()
            wrong += [f"kill {number}: episodes twice"] * (len(there) != len(set(there)))
            if lost := before - set(there):
                wrong.append(f"kill {number}: {len(lost)} episodes are gone from the address")
            before = set(there)
            again.append(len(here - before))
        there = _stored()
        if sorted(there) != list(range(episodes)):
            wrong.append(f"{len(there)} at the address, {len(set(there))} different")
        if statuses[-1] != 0:
            wrong.append(f"status {statuses[-1]}: {machine.tail()}")
        if doctor(machine.output / "dataset") != 0:
            wrong.append("doctor has findings")
        reported = machine.summary()["results"]["episodes"]
        if reported != episodes:
            wrong.append(f"{reported} reported")
    held = (
        f"{len(there)} of {episodes} episodes at the address and reported, each once; played "
        f"again because they were not there yet: {np.median(again):.0f} a kill in the median, at "
        f"most {max(again)}"
    )
    return Row(
        "kill -9 of a run whose output is in a store",
        f"{times} times, each continued on an empty machine",
        held,
        f"killed {times} times, then status {statuses[-1]}",
        wrong,
    )


def _finished(machine: _Machine) -> set[int]:
    """Returns the finished episodes on a machine, those of its journal included."""
    try:
        with Dataset(machine.output / "dataset") as dataset:
            return {int(each) for each in dataset.finished().episodes}
    except DatasetError:
        return set()


def cut(folder: Path, seconds: float = 40.0, episodes: int = 4_000) -> Row:
    """The store is cut off in the middle of a run, and answers again after its end."""
    wrong = list[str]()
    with StoreServer(folder) as server:
        machine = _Machine(folder / "m", server, {"episodes": episodes})
        machine.begin()
        wait_until(_stored, "the first shard at the address")
        server.cut()
        first = machine.end()
        told = "cannot copy to" in machine.said.read_text()
        kept = len(_finished(machine))
        pause(min(seconds, 1.0))
        server.restore()
        partial = _stored()
        machine.begin()
        second = machine.end()
        there = _stored()
    if first != 3 or not told:
        wrong.append(f"cut off it ended with {first}, told: {told}")
    if second != 0 or sorted(there) != list(range(episodes)):
        wrong.append(f"then with {second} and {len(there)} episodes at the address")
    if kept != episodes or len(partial) != len(set(partial)):
        wrong.append(f"{kept} kept, {len(partial)} at the address in between")
    return Row(
        "a store that is cut off",
        "in the middle of a run, until after its end",
        f"{kept} of {episodes} episodes kept, {len(partial)} at the address; all of them there "
        f"after --resume, each once",
        f"status {first}, then status {second}",
        wrong,
    )
