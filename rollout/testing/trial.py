"""Shared by the checks of a bridge: instances, starts, actions and remaining processes."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil  # type: ignore[import-untyped]
from gymnasium import spaces

from rollout.api import Bridge, BridgeSpec, Columns, Frame, Instance, Start, sample
from rollout.errors import ContractError, GameStartError, InputError
from rollout.host.processes import marked_processes, owner_mark
from rollout.testing.compare import copy_frame, roll
from rollout.testing.report import Skipped


class Event(NamedTuple):
    """One call of an instance: a reset if it has slots, otherwise a step."""

    slots: Sequence[int]
    starts: Sequence[Start]
    actions: Columns | None


class Copy(NamedTuple):
    """A running instance, its folder and its processes."""

    instance: Instance
    workdir: Path
    processes: tuple[psutil.Process, ...]


def children() -> set[psutil.Process]:
    """Returns all descendants of this process, including games under a guard."""
    found = set(psutil.Process().children(recursive=True))
    mark = owner_mark()
    for each in marked_processes():
        if each.owner == mark:
            with suppress(psutil.NoSuchProcess):
                found.add(psutil.Process(each.pid))
    return found


def alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Returns the processes that still exist, including zombies."""
    return [process for process in processes if process.is_running()]


@dataclass
class Trial:
    """One bridge under test.

    Attributes:
        bridge: the bridge.
        steps: length of the trajectories.
        width: slots of an instance.
        seed: seed of the starts and the actions.
        root: folder of all workdirs.
    """

    bridge: Bridge
    steps: int
    width: int
    seed: int
    root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="check-bridge-")))
    _shared: Copy | None = None
    _launched: int = 0
    _processes: list[psutil.Process] = field(default_factory=list)

    @cached_property
    def spec(self) -> BridgeSpec:
        """The spec of the bridge."""
        return self.bridge.spec

    @property
    def first(self) -> list[int]:
        """The slots of the first world, which are launched together; one in most games."""
        return list(range(self.spec.width_step))

    def fitting(self, width: int) -> int:
        """Returns the nearest width that the spec allows; two worlds if possible."""
        step, most = self.spec.width_step, self.spec.max_width
        return max(step, min(max(width, 2 * step), most) // step * step)

    @property
    def others(self) -> list[int]:
        """The slots of all other worlds.

        Raises:
            Skipped: there are none.
        """
        together = self.spec.width_step
        if self.width == together:
            raise Skipped(f"slots 0 to {together - 1} have no others; give a larger width")
        return list(range(together, self.width))

    def rng(self, *key: int) -> np.random.Generator:
        """Returns a generator that depends only on the seed and the key."""
        return np.random.default_rng([self.seed, *key])

    def starts(self, key: int, width: int | None = None) -> list[Start]:
        """Returns one random start per slot; slot ``k`` gets the same at every width."""
        out = []
        for slot in range(width or self.width):
            rng = self.rng(0, key, slot)
            index = int.from_bytes(rng.bytes(32), "little") % self.spec.state_space.size
            seed = int(rng.integers(2**63))
            state = self.spec.state_space.state(index)
            out.append(Start(state, seed, episode=key * 10_000 + slot, state_set="check"))
        return out

    def actions(self, key: int, steps: int | None = None) -> list[Columns]:
        """Returns random actions for every step, ``{key: (width, ...)}``."""
        rng = self.rng(1, key)
        count = self.steps if steps is None else steps
        return [sample(self.spec.action_space, self.width, rng) for _ in range(count)]

    def launch(self, width: int | None = None) -> Copy:
        """Launches an instance with the width of the trial, or another.

        Raises:
            ContractError: it failed with an error other than GameStartError or InputError.
        """
        self._launched += 1
        workdir = self.root / f"instance-{self._launched}"
        workdir.mkdir(parents=True)
        before = children()
        try:
            instance = self.bridge.launch(
                workdir,
                free_ports(self.spec.ports),
                width=self.width if width is None else width,
                timeout_s=self.spec.deadlines.start_s,
            )
        except (GameStartError, InputError):
            raise
        except Exception as error:
            raise ContractError(
                f"launch raised {type(error).__name__}: {error}; expected GameStartError"
            ) from error
        finally:
            started = tuple(children() - before)
            self._processes += started
        return Copy(instance, workdir, started)

    @contextmanager
    def fresh(self, width: int | None = None) -> Iterator[Instance]:
        """A new instance for the duration of a ``with`` block."""
        copy = self.launch(width)
        try:
            yield copy.instance
        finally:
            copy.instance.close()

    @property
    def shared(self) -> Instance:
        """The instance that checks share; most checks see it after earlier episodes."""
        if self._shared is None:
            self._shared = self.launch()
        return self._shared.instance

    def drop_shared(self) -> str:
        """Closes the shared instance, if there is one; the next use launches another."""
        shared, self._shared = self._shared, None
        if shared is None:
            return "there was none"
        shared.instance.close()
        return "closed"

    def forget_shared(self) -> None:
        """Drops a shared instance that hangs; its processes are ended at the end of the suite."""
        self._shared = None

    def reset(self, instance: Instance, slots: Sequence[int], starts: Sequence[Start]) -> Frame:
        """Resets slots within the timeout of the spec."""
        return instance.reset(slots, starts, timeout_s=self.spec.deadlines.reset_s)

    def step(self, instance: Instance, actions: Columns) -> Frame:
        """Plays a step within the timeout of the spec."""
        return instance.step(actions, timeout_s=self.spec.deadlines.step_s)

    @cached_property
    def reference(self) -> list[Frame]:
        """The trajectory of start 0 and actions 0 on a new instance."""
        with self.fresh() as instance:
            return roll(self.spec, instance, self.starts(0), self.actions(0))

    def random_play(self, instance: Instance, key: int) -> tuple[list[Event], list[Frame]]:
        """Plays random actions and resets slots as they end; returns calls and copied frames."""
        everyone = list(range(self.width))
        events = [Event(everyone, self.starts(key), None)]
        frames = [copy_frame(self.reset(instance, everyone, events[0].starts))]
        for number, actions in enumerate(self.actions(key)):
            frames.append(copy_frame(self.step(instance, actions)))
            events.append(Event((), (), actions))
            over = np.flatnonzero(frames[-1].game_over | frames[-1].game_truncated)
            if len(over):
                fresh = self.starts(key + number + 1)
                slots = [int(slot) for slot in over]
                events.append(Event(slots, [fresh[s] for s in slots], None))
                frames.append(copy_frame(self.reset(instance, slots, events[-1].starts)))
        return events, frames

    def replay(self, instance: Instance, events: Sequence[Event]) -> list[Frame]:
        """Repeats the calls; returns copied frames."""
        return [
            copy_frame(
                self.reset(instance, event.slots, event.starts)
                if event.actions is None
                else self.step(instance, event.actions)
            )
            for event in events
        ]

    def require_reproducible(self) -> None:
        """Skips the check for a game that is not reproducible by its spec."""
        if not self.spec.reproducible:
            raise Skipped("the spec says reproducible=False")

    def watch(self, processes: Sequence[psutil.Process]) -> None:
        """Records processes that must not outlive the suite."""
        self._processes += processes

    def end(self) -> None:
        """Ends every remaining process and removes every folder."""
        for process in alive(self._processes):
            try:
                process.kill()
                process.wait(5)
            except psutil.Error:
                continue  # it has ended meanwhile
        shutil.rmtree(self.root, ignore_errors=True)


def open_files(folder: Path) -> list[str]:
    """Returns the files below a folder that this process has open."""
    paths = [file.path for file in psutil.Process().open_files()]
    return [path for path in paths if Path(path).is_relative_to(folder)]


def free_ports(count: int) -> list[int]:
    """Returns ``count`` network ports that were free at the time of the call."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def corner_actions(space: spaces.Dict, width: int, *, most: int = 64) -> list[Columns]:
    """Returns the bounds of every action and each value of discrete ones, ``(width, ...)``."""
    rng = np.random.default_rng(0)
    out = []
    for key, leaf in space.spaces.items():
        for value in _corners(leaf)[:most]:
            action = sample(space, width, rng)
            action[key] = np.broadcast_to(value, action[key].shape).astype(action[key].dtype)
            out.append(action)
    return out


def _corners(leaf: spaces.Space[Any]) -> list[Any]:
    if isinstance(leaf, spaces.Discrete):
        low, n = int(leaf.start), int(leaf.n)
        return [low, low + n - 1, *range(low + 1, low + n - 1)]
    if isinstance(leaf, spaces.MultiDiscrete):
        return [leaf.start, leaf.start + leaf.nvec - 1]
    if isinstance(leaf, spaces.MultiBinary):
        return [0, 1]
    if isinstance(leaf, spaces.Box) and leaf.is_bounded():
        return [leaf.low, leaf.high]
    return []


def refuses_width(trial: Trial, width: int) -> None:
    """Fails unless launching with an invalid width is refused."""
    try:
        copy = trial.launch(width)
    except (GameStartError, InputError):
        return
    copy.instance.close()
    raise ContractError(
        f"launch with width={width} was accepted; expected GameStartError or an InputError"
    )
