"""Measures games that run in this process: launch, reset, steps, snapshots, memory.

Random legal actions, on one thread. Rates and times are of the processor time of this process: the
median and the range of rounds, in which all games take turns. A launch is measured by the clock,
with what is compiled in the cache; the first one on a machine compiles. Memory is what a launch
with all its slots adds.

    python -m benchmarks.throughput.games
"""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import arguments, publish, spread, table
from benchmarks.throughput.playing import resident, starts
from rollout.api import ACTION, MASK, Task, sample
from rollout.api.bridge import Snapshots
from rollout.config import build_plugin
from rollout.evaluators import GameReward
from rollout.tasks import load_task

SIZES = ((64, 64), (128, 72), (640, 360))
GAMES: dict[str, tuple[str, dict[str, Any], str, int]] = {
    f"blockworld, `{view}`": ("blockworld", {"observe": [view]}, "hunt_sheep", 64)
    for view in ("vitals", "semantic_rays", "semantic_grid", "privileged_grid")
}
for _w, _h in SIZES:
    _picture = {"observe": ["rgb"], "rgb_width": _w, "rgb_height": _h}
    GAMES[f"blockworld, `rgb` {_w}x{_h}"] = ("blockworld", _picture, "hunt_sheep", 16)
GAMES |= {
    "starbench, structured": ("starbench", {}, "starbench", 64),
    "stardojo, tiles": ("stardojo", {}, "lite", 16),
    "stardojo, a picture of 640x360": ("stardojo", {"width": 640, "height": 360}, "lite", 16),
    "gymnasium, CartPole": ("gymnasium", {"id": "CartPole-v1"}, "", 64),
    "crafter": ("crafter", {}, "", 8),
}
"""Bridge, its options, task and slots of each game."""


class Game:
    """A game that is played at random, with its figures of every round."""

    def __init__(self, name: str, options: dict[str, Any], task: str, width: int) -> None:
        self.bridge, self.width = build_plugin("bridges", name, options), width
        spec = self.bridge.spec
        whole = Task("", "", spec.state_space, GameReward())
        space = (load_task(spec, name, task) if task else whole).state_space
        self.starts, self.rng, self.episode = starts(space, 256), np.random.default_rng(0), 0
        self.legal: np.ndarray | None = None
        self.figures = defaultdict[str, list[float]](list)
        before, began = resident(), time.perf_counter()
        folder = Path(tempfile.mkdtemp(prefix="gamut-benchmark-"))
        self.game = self.bridge.launch(folder, (), width=width, timeout_s=600)
        self.figures["launch"].append(time.perf_counter() - began)
        self.reset(range(width))
        self.figures["MiB"].append(resident() - before)

    def reset(self, slots: Any) -> None:
        self.episode += len(slots)
        some = [self.starts[(self.episode + n) % len(self.starts)] for n in range(len(slots))]
        self.see(slots, self.game.reset(slots, some, timeout_s=600))

    def see(self, slots: Any, frame: Any) -> None:
        """Keeps which actions are legal in slots, if the game says so."""
        if (mask := frame.observations.get(MASK + ACTION)) is not None:
            if self.legal is None:
                self.legal = np.ones((self.width, *mask.shape[1:]))
            self.legal[list(slots)] = mask

    def actions(self) -> dict[str, Any]:
        chosen = sample(self.bridge.spec.action_space, self.width, self.rng)
        if self.legal is not None:
            chosen[ACTION] = (self.legal * self.rng.random(self.legal.shape)).argmax(1)
        return dict(chosen)

    def round(self, seconds: float) -> None:
        """Notes the steps of some seconds of processor time, then resets and snapshots."""
        steps, spent = 0, 0.0
        while spent < seconds:
            chosen, began = self.actions(), time.process_time()
            frame = self.game.step(chosen, timeout_s=600)
            spent, steps = spent + time.process_time() - began, steps + self.width
            self.see(range(self.width), frame)
            if over := np.flatnonzero(frame.game_over | frame.game_truncated).tolist():
                self.reset(over)
        self.figures["steps/s"].append(steps / spent)
        self.timed("reset", lambda: self.reset(range(self.width)), seconds / 4, self.width)
        if isinstance(self.game, Snapshots):
            kept = self.game.snapshot(0)
            self.timed("snapshot", lambda: self.game.snapshot(0), seconds / 8)
            self.timed("restore", lambda: self.game.restore(0, kept), seconds / 8)
        self.reset(range(self.width))

    def timed(self, name: str, work: Callable[[], object], seconds: float, parts: int = 1) -> None:
        """Notes the milliseconds of a call, or of each of its parts."""
        calls, began = 0, time.process_time()
        while (spent := time.process_time() - began) < seconds:
            work()
            calls += parts
        self.figures[name].append(1e3 * spent / calls)

    def row(self, name: str) -> list[str]:
        digits = {"launch": 1, "MiB": 0, "steps/s": 0}
        cells = [name, str(self.width)]
        for column in COLUMNS:
            values, many = self.figures[column], digits.get(column, 3)
            one = f"{values[0]:,.{many}f}" if values else "-"
            cells.append(spread(values, many) if len(values) > 1 else one)
        return cells


COLUMNS = {
    "steps/s": "steps/s",
    "reset": "reset of a slot, ms",
    "snapshot": "snapshot, ms",
    "restore": "restore, ms",
    "launch": "launch, s",
    "MiB": "MiB",
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of the steps in a round")
    parser.add_argument("--only", default="", help="games whose name has this word")
    args = parser.parse_args()
    games = {name: Game(*given) for name, given in GAMES.items() if args.only in name}
    for _ in range(args.rounds):
        for game in games.values():
            game.round(args.seconds)
    rows = [game.row(name) for name, game in games.items()]
    text = table(["game", "slots", *COLUMNS.values()], rows)
    publish("games", "Games on one core", text, save=args.save)


if __name__ == "__main__":
    main()
