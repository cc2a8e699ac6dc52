"""Measures the embedded Minecraft, beside the figures of MineLand's paper.

    .venv/bin/python -m benchmarks.throughput.mineflayer

Agents walk forward all the time, with a random turn in each step; dead agents respawn. Ticks are
counted per second of the wall clock, including Python and frames, and per second of CPU time of the
game's process, which shows what the code can do when other guests of the machine are idle. Memory
is that of the game's process after the walk. Every figure is the median and range of rounds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.report import arguments, publish, spread, table
from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.spaces import (
    ACTION,
    CAMERA,
    CODE,
    KEYS_COLUMN,
    KIND,
    MOUSE_KEYS,
    NEUTRAL,
    NEW,
    RESUME,
)
from rollout.api import Start

LABEL = "protocol-real, mechanics re-implemented"
TICKS_PER_STEP = 20
PATIENT_S = 600.0
WALKERS = (1, 8, 32, 64, 128)
HOARDERS = 64
FRAMES = 100
ASKED = {1: "1,000", 8: "250", 32: "20", 64: "19"}
"""Required ticks per second."""
MINELAND_GB = {32: "19.65 (with vision)", 64: "6.30", 128: "9.04"}
"""MineLand's paper: memory of server and agents."""
MINELAND_TICKS = 20.0
"""MineLand runs in real time: at most 20 ticks per second, for any number of agents."""
STATE = {
    "world": 7, "biome": "plains", "time": "day", "weather": "clear", "loadout": "none",
    "mob": "none", "mobs": 0, "distance": 5, "difficulty": "peaceful", "site": "flat",
    "blueprint": 0, "health": 20, "food": 20, "experience": 0, "effect": "none",
}  # fmt: skip


@contextmanager
def playing(agents: int, site: str = "flat", **options: Any) -> Iterator[tuple[Any, Any, float]]:
    """Yields an instance with one world at its start, its process, and the seconds this took."""
    options = {"ticks_per_step": TICKS_PER_STEP, "spawning": False, "respawn": True, **options}
    bridge = MineflayerBridge(agents=agents, **options)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        instance = bridge.launch(Path(folder), (), width=agents, timeout_s=PATIENT_S)
        try:
            seconds = time.perf_counter() - began
            reset(bridge, instance, agents, site)
            yield instance, psutil.Process(instance.driver.pid), seconds
        finally:
            instance.close()


def reset(bridge: MineflayerBridge, instance: Any, agents: int, site: str, world: int = 7) -> Any:
    space = bridge.spec.state_space
    state = space.state(space.index({**STATE, "site": site, "world": world}))
    starts = [Start(state, 1, slot) for slot in range(agents)]
    return instance.reset(range(agents), starts, timeout_s=PATIENT_S)


def walk(rng: np.random.Generator, agents: int) -> dict[str, Any]:
    """Walks forward, with a turn of up to 30 degrees."""
    actions = np.tile(np.array(NEUTRAL, np.int64), (agents, 1))
    actions[:, 0] = 1
    actions[:, 4] = rng.integers(10, 15, agents)
    return {ACTION: actions}


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def ticks(agents: int, rounds: int, site: str = "flat") -> tuple[list[float], list[float], float]:
    """Ticks per second of the wall clock and of CPU time in each round, and memory in GB."""
    rng = np.random.default_rng(0)
    steps = max(2, 120 // agents)
    wall, cpu = [], []
    with playing(agents, site) as (instance, process, _):
        for _ in range(3):
            instance.step(walk(rng, agents), timeout_s=PATIENT_S)
        for _ in range(rounds):
            began, spent = time.perf_counter(), cpu_seconds(process)
            for _ in range(steps):
                frame = instance.step(walk(rng, agents), timeout_s=PATIENT_S)
            if frame.game_over.any():
                raise SystemExit("agents are out of the game: the figure would be of nothing")
            done = steps * TICKS_PER_STEP
            wall.append(done / (time.perf_counter() - began))
            cpu.append(done / (cpu_seconds(process) - spent))
        return wall, cpu, process.memory_info().rss / 2**30


def resets(site: str, rounds: int) -> tuple[list[float], list[float], float]:
    """Seconds of a reset in wall-clock and CPU time, and those of the launch."""
    wall, cpu = [], []
    bridge = MineflayerBridge(ticks_per_step=TICKS_PER_STEP, spawning=False)
    with playing(1, site) as (instance, process, launch):
        for number in range(rounds):
            began, spent = time.perf_counter(), cpu_seconds(process)
            reset(bridge, instance, 1, site, world=number)
            wall.append(time.perf_counter() - began)
            cpu.append(cpu_seconds(process) - spent)
        return wall, cpu, launch


def pictures(rounds: int) -> tuple[list[float], list[float]]:
    """Frames of 64x64 per second of CPU time of one thread, and whole steps with them."""
    rng = np.random.default_rng(0)
    options = {"observe": ("rgb", "position"), "ticks_per_step": 1}
    drawn, stepped = [], []
    with playing(1, "wild", **options) as (instance, _, _):
        for _ in range(40):
            instance.step(walk(rng, 1), timeout_s=PATIENT_S)
        shown = instance.pictures
        for _ in range(rounds):
            began = time.thread_time()
            for _ in range(100):
                shown._renderer.render(shown._scenes[0], shown.out[0])
            drawn.append(100 / (time.thread_time() - began))
            began = time.perf_counter()
            for _ in range(40):
                instance.step(walk(rng, 1), timeout_s=PATIENT_S)
            stepped.append(40 / (time.perf_counter() - began))
    return drawn, stepped


def frames(height: int, width: int, rounds: int) -> list[float]:
    """Frames with the display per second of CPU time of the game and of this process.

    A tick each, walking with the mouse layout in a wild world; drawing and all columns included.
    """
    rng = np.random.default_rng(0)
    keys = np.array([[key == "forward" for key in MOUSE_KEYS]], np.int8)
    options = {
        "observe": ("rgb",), "hud": True, "actions": "mouse", "ticks_per_step": 1,
        "rgb_height": height, "rgb_width": width,
    }  # fmt: skip
    found = []
    with playing(1, "wild", **options) as (instance, process, _):
        for number in range(rounds + 1):
            began, spent = time.process_time(), cpu_seconds(process)
            for _ in range(FRAMES):
                camera = np.array([[0.0, rng.uniform(-15, 15)]], np.float32)
                instance.step({KEYS_COLUMN: keys, CAMERA: camera}, timeout_s=PATIENT_S)
            if number > 0:  # the first warms both
                spent = cpu_seconds(process) - spent + time.process_time() - began
                found.append(FRAMES / spent)
    return found


HOARD = """
const kept = [];
try { for (;;) kept.push(new Uint8Array(1 << 18).fill(1)); } catch (error) { kept.length -= 4; }
for (;;) await bot.waitForTicks(1);
"""
"""A program that takes all the memory it may have, and keeps it."""


def programs(agents: int) -> tuple[float, float, int]:
    """GB with a hoarding program for each agent, GB declared, and how many programs still run."""
    options: dict[str, Any] = {"actions": "code", "observe": ("code_state",)}
    declared = MineflayerBridge(agents=agents, **options).spec.resources.memory_mb / 1024
    with playing(agents, "flat", **options) as (instance, process, _):
        texts = np.array([HOARD] * agents, object)
        frame = instance.step({KIND: np.full(agents, NEW), CODE: texts}, timeout_s=PATIENT_S)
        for _ in range(5):
            none = np.array([""] * agents, object)
            frame = instance.step({KIND: np.full(agents, RESUME), CODE: none}, timeout_s=PATIENT_S)
        run = int((frame.observations["code_state"][:, 0] == 1).sum())
        return process.memory_info().rss / 2**30, declared, run


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer agents and rounds")
    args = parser.parse_args()
    rounds = 2 if args.quick else args.rounds
    text = f"\nLabel: {LABEL}. MineLand's figures are its paper's, on Mojang's server.\n"
    text += walking(WALKERS[:2] if args.quick else WALKERS, rounds) + other(rounds)
    publish("mineflayer", "Mineflayer: the embedded Minecraft", text, save=args.save)


def walking(numbers: tuple[int, ...], rounds: int) -> str:
    rows = []
    for agents in numbers:
        wall, cpu, memory = ticks(agents, rounds)
        mineland = [f"{MINELAND_TICKS:.0f} at most", MINELAND_GB.get(agents, "-")]
        asked = ASKED.get(agents, "-")
        rows.append(
            [str(agents), spread(wall, 1), spread(cpu, 1), asked, f"{memory:.2f}", *mineland]
        )
        print(*rows[-1], sep="  ", flush=True)
    head = ["agents walking in one world", "ticks/s", "ticks per CPU second", "asked", "GB"]
    head += ["MineLand ticks/s", "MineLand GB"]
    return f"\n## Walking, flat world, {TICKS_PER_STEP} ticks a step\n\n" + table(head, rows)


def other(rounds: int) -> str:
    rows = []
    wall, cpu, _ = ticks(1, rounds, "wild")
    rows.append(["ticks/s, 1 agent in a wild world", spread(wall), spread(cpu), "-"])
    for site in ("flat", "wild"):
        wall, cpu, launch = resets(site, rounds)
        rows.append(
            [f"reset to another world, {site}, s", spread(wall, 2), spread(cpu, 2), "0.5 at most"]
        )
        rows.append([f"launch, {site}, s", f"{launch:.1f}", "-", "-"])
    drawn, stepped = pictures(rounds)
    rows.append(["pictures 64x64 a second, drawing alone", "-", spread(drawn), "800"])
    rows.append(["steps of one tick a second with a picture", spread(stepped), "-", "-"])
    for height, width, asked in ((360, 640, "60"), (128, 128, "200")):
        what = f"frames {width}x{height} with the display a second, game and drawing"
        rows.append([what, "-", spread(frames(height, width, rounds)), asked])
    held, declared, running = programs(HOARDERS)
    what = f"GB, {HOARDERS} agents whose programs hold all they may"
    rows.append([what, f"{held:.2f}, {running} run", "-", f"{declared:.2f} declared"])
    head = ["what", "wall clock", "CPU time", "asked or found"]
    return "\n## Resets, pictures, memory\n\n" + table(head, rows)


if __name__ == "__main__":
    main()
