"""A bridge under test: its instances, starts, actions and processes, for all checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import psutil  # type: ignore[import-untyped]
from gymnasium import spaces

from rollout.api import Bridge, BridgeSpec, Columns, Frame, Instance, Start, sample
from rollout.errors import ContractError, GameStartError, InputError, located, trace_of
from rollout.host.instances import free_ports
from rollout.host.processes import marked_processes, owned_workdir, owner_mark, remove_workdir
from rollout.testing.compare import copy_frame, random_start
from rollout.testing.report import Skipped

_MOST_CORNERS = 64  # values of one column that are played

Call: TypeAlias = Callable[[Instance], Frame]
"""A call of an instance, with its arguments."""


def children() -> set[psutil.Process]:
    """Returns all descendants of this process, including games under a guard."""
    found = set(psutil.Process().children(recursive=True))
    mark = owner_mark()
    for each in marked_processes():
        if each.owner == mark:
            with suppress(psutil.NoSuchProcess):
                found.add(psutil.Process(each.pid))
    return found


@dataclass
class Trial:
    """One bridge under test.

    Attributes:
        bridge: the bridge.
        steps: length of the trajectories.
        width: slots of an instance.
        seed: seed of the starts and the actions.
        root: folder of all workdirs.
        workdirs: the folder of each instance that was launched.
        processes: all that were started, none of which may outlive the suite.
    """

    bridge: Bridge
    steps: int
    width: int
    seed: int
    root: Path = field(default_factory=lambda: owned_workdir("gamut-check-bridge-"))
    workdirs: list[Path] = field(default_factory=list)
    processes: list[psutil.Process] = field(default_factory=list)
    _shared: Instance | None = None

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
        space, slots = self.spec.state_space, range(width or self.width)
        return [random_start(space, self.rng(0, key, slot), key * 10_000 + slot) for slot in slots]

    def actions(self, key: int, steps: int | None = None) -> list[Columns]:
        """Returns random actions for every step, ``{key: (width, ...)}``."""
        rng = self.rng(1, key)
        count = self.steps if steps is None else steps
        return [sample(self.spec.action_space, self.width, rng) for _ in range(count)]

    def launch(self, width: int | None = None) -> Instance:
        """Launches an instance with the width of the trial, or another.

        Raises:
            ContractError: it failed with an error other than GameStartError or InputError.
        """
        workdir = self.root / f"instance-{len(self.workdirs) + 1}"
        workdir.mkdir()  # fails once the trial has ended and another thread still checks
        self.workdirs.append(workdir)
        before = children()
        try:
            return self.bridge.launch(
                workdir,
                free_ports(self.spec.ports),
                width=self.width if width is None else width,
                timeout_s=self.spec.deadlines.start_s,
            )
        except (GameStartError, InputError):
            raise
        except (Exception, SystemExit) as error:
            broken = ContractError(
                f"launch raised {located(type(error).__name__, str(error), error)}; expected "
                f"GameStartError"
            )
            broken.trace = trace_of(error)
            raise broken from error
        finally:
            self.processes += children() - before

    @property
    def shared(self) -> Instance:
        """The instance that checks share; most checks see it after earlier episodes."""
        if self._shared is None:
            self._shared = self.launch()
        return self._shared

    def take_shared(self) -> Instance | None:
        """Returns the shared instance, if there is one; the next check gets another."""
        shared, self._shared = self._shared, None
        return shared

    def reset(self, instance: Instance, slots: Sequence[int], starts: Sequence[Start]) -> Frame:
        """Resets slots within the timeout of the spec."""
        return instance.reset(slots, starts, timeout_s=self.spec.deadlines.reset_s)

    def step(self, instance: Instance, actions: Columns) -> Frame:
        """Plays a step within the timeout of the spec."""
        return instance.step(actions, timeout_s=self.spec.deadlines.step_s)

    def roll(
        self, instance: Instance, starts: Sequence[Start], actions: Sequence[Columns]
    ) -> list[Frame]:
        """Resets every slot, plays the actions, and returns copies of all frames."""
        frames = [copy_frame(self.reset(instance, range(len(starts)), starts))]
        return frames + [copy_frame(self.step(instance, each)) for each in actions]

    @cached_property
    def reference(self) -> list[Frame]:
        """The trajectory of start 0 and actions 0 on a new instance."""
        with closing(self.launch()) as instance:
            return self.roll(instance, self.starts(0), self.actions(0))

    def random_play(self, instance: Instance, key: int) -> tuple[list[Call], list[Frame]]:
        """Plays random actions and resets slots as they end.

        Returns:
            the calls, which can be repeated on any instance, and a copy of each frame.
        """
        calls: list[Call] = []
        frames: list[Frame] = []

        def play(call: Call) -> Frame:
            calls.append(call)
            frames.append(copy_frame(call(instance)))
            return frames[-1]

        play(partial(self.reset, slots=range(self.width), starts=self.starts(key)))
        for number, actions in enumerate(self.actions(key), 1):
            frame = play(partial(self.step, actions=actions))
            over: list[int] = np.flatnonzero(frame.game_over | frame.game_truncated).tolist()
            if over:
                fresh = self.starts(key + number)
                play(partial(self.reset, slots=over, starts=[fresh[slot] for slot in over]))
        return calls, frames

    def require_reproducible(self) -> None:
        """Skips the check for a game that is not reproducible by its spec."""
        if not self.spec.reproducible:
            raise Skipped("the spec says reproducible=False")

    def end(self) -> None:
        """Ends every remaining process and removes every folder."""
        for process in self.processes:
            with suppress(psutil.Error):  # most have ended
                process.kill()
                process.wait(5)
        remove_workdir(self.root)


def corner_actions(space: spaces.Dict, width: int) -> list[Columns]:
    """Returns the bounds of every action and each value of discrete ones, ``(width, ...)``."""
    rng = np.random.default_rng(0)
    out = []
    for key, leaf in space.spaces.items():
        for value in _corners(leaf)[:_MOST_CORNERS]:
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
