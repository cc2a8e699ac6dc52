"""Plays games and counts their steps, as several benchmarks do."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from rollout.api import Bridge, Fragment, Policy, Splits, Start, StateSpace, Task
from rollout.config import HostConfig
from rollout.host import Player, PlayOptions, Pool


def cpu_seconds() -> float:
    """Returns the processor time of this process."""
    return float(sum(psutil.Process().cpu_times()[:2]))


def resident() -> float:
    """Returns the resident memory of this process in MiB."""
    return float(psutil.Process().memory_info().rss / 2**20)


@dataclass
class Counted:
    """What was played since every instance had played.

    Attributes:
        steps: steps, without those that were lost.
        episodes: episodes that were not lost.
        seconds: how long it took.
        began: when counting began, the processor time until then, and the MiB.
    """

    steps: int = 0
    episodes: int = 0
    seconds: float = 0.0
    began: tuple[float, float, float] = field(default=(0.0, 0.0, 0.0))

    @property
    def rate(self) -> float:
        """Steps per second."""
        return self.steps / self.seconds


def count(
    fragments: Iterable[Fragment],
    instances: int,
    seconds: float,
    see: Callable[[Fragment], object] = lambda _: None,
) -> Counted:
    """Counts for some seconds, from the moment at which every instance has played."""
    found, seen = Counted(), set[int]()
    for fragment in fragments:
        see(fragment)
        if len(seen) < instances:
            seen.add(fragment.instance)
            if len(seen) == instances:
                found.began = (time.perf_counter(), cpu_seconds(), resident())
            continue
        found.steps += fragment.env_steps - sum(loss.steps for loss in fragment.losses)
        found.episodes += sum(result.end != "lost" for result in fragment.results)
        found.seconds = time.perf_counter() - found.began[0]
        if found.seconds > seconds:
            break
    return found


def starts(space: StateSpace, episodes: int) -> list[Start]:
    """Returns starts in states of the train part in turn, each with a seed of its own."""
    splits = Splits(space)
    size = min(episodes, splits.part_size("train"))
    states = splits.take("train", size)
    return [Start(states[i % size], 1000 + i, i) for i in range(episodes)]


@contextlib.contextmanager
def playing(
    bridge: Bridge,
    task: Task,
    policy: Policy,
    shape: tuple[int, int],
    *,
    host: HostConfig,
    play: PlayOptions,
    begins: list[Start],
) -> Iterator[Player]:
    """Yields a player of some instances of a width, in this process."""
    with tempfile.TemporaryDirectory(prefix="gamut-benchmark-") as folder:
        player = Player(Pool(bridge, Path(folder), *shape, host), task, policy, play)
        player.offer(begins)
        try:
            yield player
        finally:
            player.close()


def fragments(player: Player) -> Iterator[Fragment]:
    """Yields what a player plays."""
    while (fragment := player.next_fragment()) is not None:
        yield fragment
