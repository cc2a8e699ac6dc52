"""A small but complete game without dependencies, which can fail in every way on request.

The agent walks on a grid to a target. The state decides walls, colours, start and target; the seed
decides when the agent slips. A few numpy calls move all slots, so an instance is efficient with 1
slot and with 4096.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollout.api import (
    NOTICE,
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Deadlines,
    Details,
    Factor,
    Frame,
    Resources,
    Start,
    StateSpace,
    check_columns,
    check_slots,
    option,
)
from rollout.errors import GameCrashed, GameStartError, GameTimeout, OutOfTurnError

EXIT_STATUS = 3  # of a fake that exits on purpose
IMAGE = 16  # side of the image in pixels
MAPS = 16
COLOURS: dict[str, tuple[int, int, int]] = {
    "black": (0, 0, 0),
    "blue": (20, 40, 120),
    "green": (20, 100, 40),
    "red": (120, 30, 30),
    "purple": (90, 20, 110),
    "brown": (100, 70, 30),
    "grey": (80, 80, 80),
    "teal": (10, 100, 100),
}
WALL, TARGET, AGENT = (160, 160, 160), (250, 220, 0), (255, 255, 255)
_MOVES = np.array([[0, 0], [0, -1], [0, 1], [-1, 0], [1, 0]])  # (x, y): none, N, S, W, E
_SAVED = ("_map", "_floor", "_xy", "_target", "_seed", "_salt", "_tick", "_reward", "_over", "_cut")


@dataclass(frozen=True)
class FakeBridge:
    """A grid world in which an agent must reach a target cell.

    Fault amounts: 0 is never; below 1, a probability per call; from 1 on, the number of the call
    (of that phase, in that instance) that fails.
    """

    side: int = option(8, "Cells along each side of the grid.", unit="cells", choices=(4, 8, 16))
    slip: float = option(0.1, "Probability that a move goes elsewhere, decided by the seed.")
    max_steps: int = option(0, "Steps until the game truncates; 0 for never.", unit="steps")
    max_width: int = option(4096, "Maximum number of slots of an instance.", unit="slots")
    with_details: bool = option(False, "Whether frames have details.")
    process: Literal["in_process", "subprocess"] = option(
        "in_process", "Where the host must run it.", choices=("in_process", "subprocess")
    )
    children: int = option(0, "Processes that each instance starts.", unit="processes")
    step_s: float = option(0.0, "Duration of a step.", unit="s")
    start_deadline_s: float = option(60.0, "Timeout of a start.", unit="s")
    reset_deadline_s: float = option(30.0, "Timeout of a reset.", unit="s")
    step_deadline_s: float = option(10.0, "Timeout of a step.", unit="s")
    close_deadline_s: float = option(5.0, "Timeout of a close.", unit="s")
    # Faults of a running game.
    fail_on_start: float = option(0.0, "Start that fails with GameStartError.")
    hang_on_start: float = option(0.0, "Start that never returns.")
    crash_on_reset: float = option(0.0, "Reset that raises GameCrashed.")
    hang_on_reset: float = option(0.0, "Reset that never returns.")
    crash_on_step: float = option(0.0, "Step that raises GameCrashed.")
    hang_on_step: float = option(0.0, "Step that never returns.")
    exit_on_step: float = option(0.0, "Step that ends the whole process with exit status 3.")
    hang_on_close: float = option(0.0, "Close that never returns.")
    fault_seed: int = option(0, "Determines which calls fail if an amount is a probability.")
    once_file: str = option(
        "", "File that a fault creates; it happens only once, in whichever process is first."
    )
    hang_s: float = option(3600.0, "Duration of a hang.", unit="s")
    # Contract violations, for the conformance suite to find.
    unseeded: bool = option(False, "Whether equal seeds give different episodes.")
    leave_children: bool = option(False, "Whether closing leaves its child processes running.")

    @cached_property
    def spec(self) -> BridgeSpec:
        """The spec; available before anything is launched."""
        cells = range(self.side**2)
        return BridgeSpec(
            name="fake",
            version="1",
            observation_space=spaces.Dict(
                {
                    "image": spaces.Box(0, 255, (IMAGE, IMAGE, 3), np.uint8),
                    "position": spaces.Box(0.0, 1.0, (2,), np.float32),
                }
            ),
            action_space=spaces.Dict({"move": spaces.Discrete(5)}),
            state_space=StateSpace(
                (
                    Factor("map", range(MAPS), doc="where the walls stand"),
                    Factor("colour", tuple(COLOURS), doc="colour of the floor"),
                    Factor("start", cells, "cell", "where the agent begins"),
                    Factor("target", cells, "cell", "where it must go"),
                )
            ),
            signals={
                "reward": ColumnSpec(doc="1 on reaching the target, else -0.01"),
                "distance": ColumnSpec(unit="cells", doc="steps to the target without walls"),
                "reached": ColumnSpec("bool", doc="the agent stands on the target"),
            },
            max_width=self.max_width,
            reproducible=True,
            uses_seed=self.slip > 0,
            process=self.process,
            deadlines=Deadlines(
                self.start_deadline_s,
                self.reset_deadline_s,
                self.step_deadline_s,
                self.close_deadline_s,
            ),
            resources=Resources(cpus=0.1, memory_mb=100),
        )

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> FakeInstance:
        """Launches a grid world; see ``rollout.api.Bridge``."""
        self.spec.require_width(width)
        return FakeInstance(self, Path(workdir), width)


class _Faults:
    """Decides for each call of a fake game whether it fails, and how.

    Instances with different names fail at different calls if an amount is a probability.
    """

    def __init__(self, bridge: FakeBridge, name: str) -> None:
        self.bridge, self.name = bridge, name
        self.calls: Counter[str] = Counter()

    def strike(self, phase: str) -> None:
        """Causes the faults that are due in this call of a phase.

        Raises:
            GameStartError: a failing start is due.
            GameCrashed: a crash is due.
        """
        self.calls[phase] += 1
        for kind in ("fail", "crash", "hang", "exit"):
            amount = getattr(self.bridge, f"{kind}_on_{phase}", 0.0)
            if amount > 0 and self._due(kind, phase, amount) and self._allowed():
                self._commit(kind, f"{phase} call {self.calls[phase]}")

    def _due(self, kind: str, phase: str, amount: float) -> bool:
        call = self.calls[phase]
        if amount >= 1:
            return call == int(amount)
        key = "\x1f".join(map(str, (self.bridge.fault_seed, self.name, kind, phase, call)))
        share = hashlib.blake2b(key.encode(), digest_size=7).digest()
        return int.from_bytes(share, "little") / 2**56 < amount

    def _allowed(self) -> bool:
        """Returns True if a fault may happen; creating ``once_file`` is atomic."""
        try:
            if self.bridge.once_file:
                Path(self.bridge.once_file).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _commit(self, kind: str, at: str) -> None:
        if kind == "fail":
            raise GameStartError(f"the fake game refuses to start on request ({at})")
        if kind == "crash":
            raise GameCrashed(f"the fake game crashes on request ({at})")
        if kind == "hang":
            threading.Event().wait(self.bridge.hang_s)
            return
        sys.stderr.write(f"the fake game ends its process on request ({at})\n")
        sys.stderr.flush()
        os._exit(EXIT_STATUS)


class FakeInstance:
    """A running grid world. Its frames are its own buffers, which the contract allows."""

    def __init__(self, bridge: FakeBridge, workdir: Path, width: int) -> None:
        self.bridge, self.workdir, self.width = bridge, workdir, width
        self._faults = _Faults(bridge, workdir.name)
        self._closed = False
        self._faults.strike("start")
        (workdir / "fake.log").write_text(f"width {width}\n")
        wait = [sys.executable, "-c", "import threading; threading.Event().wait(600)"]
        self._children = [subprocess.Popen(wait) for _ in range(bridge.children)]
        self._walls = walls(bridge.side)
        self._map = np.zeros(width, np.int64)
        self._floor = np.zeros((width, 3), np.uint8)
        self._xy = np.zeros((width, 2), np.int64)
        self._target = np.zeros((width, 2), np.int64)
        self._seed = np.zeros(width, np.uint64)
        self._salt = np.zeros(width, np.uint64)
        self._begun = np.zeros(width, bool)
        self._image = np.zeros((width, IMAGE, IMAGE, 3), np.uint8)
        self._position = np.zeros((width, 2), np.float32)
        self._tick = np.zeros(width, np.int64)
        self._reward = np.zeros(width, np.float32)
        self._over = np.zeros(width, bool)
        self._cut = np.zeros(width, bool)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots; see ``rollout.api.Instance``."""
        self._require_open()
        rows = np.array(check_slots("fake", self.width, slots, len(starts)), np.int64)
        space = self.bridge.spec.state_space
        digits = [space.digits(space.index(start.state.values)) for start in starts]
        self._faults.strike("reset")
        maps, colours, begins, targets = np.array(digits, np.int64).reshape(-1, 4).T
        self._map[rows] = maps
        self._floor[rows] = np.array(list(COLOURS.values()), np.uint8)[colours]
        self._xy[rows] = np.stack([begins % self.bridge.side, begins // self.bridge.side], 1)
        self._target[rows] = np.stack([targets % self.bridge.side, targets // self.bridge.side], 1)
        self._seed[rows] = np.array([start.seed for start in starts], np.uint64)
        self._begun[rows] = True
        self._tick[rows], self._reward[rows] = 0, 0.0
        self._over[rows], self._cut[rows] = False, False
        if self.bridge.unseeded:
            self._salt[rows] = np.frombuffer(os.urandom(8), np.uint64)[0]
        self._paint(rows)
        return self._frame().take(rows)

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action in every slot; see ``rollout.api.Instance``."""
        self._require_open()
        if not self._begun.any():
            raise OutOfTurnError("no slot was ever reset; reset at least one before a step")
        check_columns(self.bridge.spec.action_space, actions, (self.width,))
        self._faults.strike("step")
        if seconds := self.bridge.step_s:
            threading.Event().wait(min(seconds, timeout_s))
            if seconds > timeout_s:
                raise GameTimeout(
                    f"the fake game's step takes {seconds:g} s, the timeout was {timeout_s:g} s"
                )
        self._move(np.asarray(actions["move"]), self._begun & ~(self._over | self._cut))
        return self._frame()

    def _move(self, move: Array, live: NDArray[np.bool_]) -> None:
        side = self.bridge.side
        noise = mix(mix(self._seed ^ (self._salt << np.uint64(40))) + self._tick.astype(np.uint64))
        slipped = (noise >> np.uint64(11)).astype(np.float64) / 2**53 < self.bridge.slip
        move = np.where(slipped, (noise % np.uint64(5)).astype(np.int64), move)
        to = np.clip(self._xy + _MOVES[move], 0, side - 1)
        home = (to == self._target).all(1)
        free = live & (~self._walls[self._map, to[:, 1], to[:, 0]] | home)
        moved = np.flatnonzero(free & (to != self._xy).any(1))
        self._xy[moved] = to[moved]
        home = (self._xy == self._target).all(1)
        self._tick[live] += 1
        self._reward[live] = np.where(home, 1.0, -0.01)[live]
        self._over |= live & home
        if self.bridge.max_steps:
            self._cut |= live & ~home & (self._tick >= self.bridge.max_steps)
        self._paint(moved)

    def _paint(self, rows: Array) -> None:
        side, scale = self.bridge.side, IMAGE // self.bridge.side
        wall = self._walls[self._map[rows]].repeat(scale, 1).repeat(scale, 2)[..., None]
        floor = self._floor[rows][:, None, None]
        self._image[rows] = np.where(wall, np.array(WALL, np.uint8), floor)
        cells = self._image.reshape(self.width, side, scale, side, scale, 3)
        for xy, colour in ((self._target[rows], TARGET), (self._xy[rows], AGENT)):
            cells[rows, xy[:, 1], :, xy[:, 0]] = colour

    def _frame(self) -> Frame:
        np.divide(self._xy, self.bridge.side - 1, out=self._position, casting="unsafe")
        distance = np.abs(self._xy - self._target).sum(1).astype(np.float32)
        signals: Columns = {
            "reward": self._reward,
            "distance": distance,
            "reached": self._over.copy(),
        }
        details: list[Details] | None = None
        if self.bridge.with_details:
            details = [{"text": f"{int(d)} cells to go"} for d in distance]
            for slot in np.flatnonzero(self._over):
                details[slot] = {**details[slot], NOTICE: "the agent arrived"}
        observations: Columns = {"image": self._image, "position": self._position}
        return Frame(observations, signals, self._over, self._cut, self._tick, details)

    def close(self) -> None:
        """Ends the game; idempotent."""
        if self._closed:
            return
        self._closed = True
        for child in self._children:
            if self.bridge.leave_children:
                child.returncode = 0  # so that Popen does not expect a wait
            else:
                child.kill()
                child.wait()
        self._faults.strike("close")

    def snapshot(self, slot: int) -> bytes:
        """Returns the complete state of a slot as JSON."""
        self._require_open()
        return json.dumps({k: getattr(self, k)[slot].tolist() for k in _SAVED}).encode()

    def restore(self, slot: int, snapshot: bytes) -> Frame:
        """Restores the slot and returns its frame, one row."""
        self._require_open()
        for name, value in json.loads(snapshot).items():
            getattr(self, name)[slot] = np.asarray(value, getattr(self, name).dtype)
        self._begun[slot] = True
        self._paint(np.array([slot]))
        return self._frame().take([slot])

    def _require_open(self) -> None:
        if self._closed:
            raise GameCrashed("the fake game was closed; launch another one")


def walls(side: int) -> NDArray[np.bool_]:
    """Returns the positions of walls, ``(maps, y, x)``: pillars, so all cells are reachable."""
    rng = np.random.default_rng(side)
    grid = np.zeros((MAPS, side, side), bool)
    grid[:, 1::2, 1::2] = rng.random((MAPS, side // 2, side // 2)) < 0.5
    return grid


def mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns SplitMix64's output function of each value: a good 64-bit hash (Steele, 2014)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
