"""Compares the two renderers of the Minecraft bridge.

    .venv/bin/python -m benchmarks.mineflayer_viewer [--quick]

One agent stands in a wild world and looks all round; only drawing is timed, including the transfer
of the scene to the renderer and of the picture back. CPU time is that of all processes that draw:
this one, the viewer's, its X server. Memory is what the renderer adds to the game: resident memory
of the viewer's process and of its X server, and the increase of this process since before the
launch.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.mineflayer import STATE
from benchmarks.report import header, save, spread, table
from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.bridge import PRISMARINE, RENDERERS
from bridges.mineflayer.pictures import Pictures
from bridges.mineflayer.rgb import warm
from rollout.api import Start

PATIENT_S = 600.0
SIZES = ((64, 64), (72, 128), (180, 320), (360, 640))
WIDTHS = (1, 4)
MB = 1 << 20


class Tap:
    """A renderer that forwards to another, and records the last update of each scene."""

    def __init__(self, renderer: Any) -> None:
        self.renderer = renderer
        self.scenes: list[TapScene] = []

    def scene(self) -> TapScene:
        self.scenes.append(TapScene(self.renderer.scene()))
        return self.scenes[-1]

    def render(self, scene: TapScene, out: np.ndarray) -> None:
        self.renderer.render(scene.inner, out)


class TapScene:
    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.last: Mapping[str, Any] = {}

    def apply(self, update: Mapping[str, Any]) -> None:
        self.last = update
        self.inner.apply(update)

    def look(self, yaw: float) -> None:
        self.inner.apply({**self.last, "box": None, "changes": b"", "yaw": yaw})


class Drawn:
    """An instance of which only the renderer is used."""

    def __init__(self, folder: str, renderer: str, size: tuple[int, int], width: int) -> None:
        self.bridge = MineflayerBridge(
            observe=("rgb", "position"),
            rgb_height=size[0],
            rgb_width=size[1],
            renderer=renderer,
            spawning=False,
        )
        self.before = psutil.Process().memory_info().rss
        began = time.perf_counter()
        self.instance: Any = self.bridge.launch(Path(folder), (), width=width, timeout_s=PATIENT_S)
        self.launch_s = time.perf_counter() - began
        pictures: Pictures = self.instance._pictures
        self.out = pictures.out
        self.tap = Tap(pictures._renderer)
        pictures._renderer = self.tap
        self.processes = [psutil.Process()]
        if renderer == PRISMARINE:
            viewer = psutil.Process(self.instance.driver.viewer.driver.pid)
            self.processes += [viewer, *viewer.children()]

    def cpu_s(self) -> float:
        times = [each.cpu_times() for each in self.processes]
        return sum(each.user + each.system for each in times)

    def memory_mb(self) -> float:
        return (sum(each.memory_info().rss for each in self.processes) - self.before) / MB

    def reset(self, world: int) -> float:
        """Returns the seconds of a reset of all slots, each to a world of its own."""
        space = self.bridge.spec.state_space
        began = time.perf_counter()
        for slot in range(len(self.out)):
            values = {**STATE, "site": "wild", "world": (world + slot) % 8}
            start = Start(space.state(space.index(values)), 1, slot)
            self.instance.reset([slot], [start], timeout_s=PATIENT_S)
        return (time.perf_counter() - began) / len(self.out)

    def pictures(self, count: int) -> tuple[float, float]:
        """Returns pictures per second of the wall clock and of CPU time."""
        scene = self.tap.scenes[-1]
        began, spent = time.perf_counter(), self.cpu_s()
        for number in range(count):
            scene.look(2 * math.pi * number / count)
            self.tap.render(scene, self.out[0])
        return count / (time.perf_counter() - began), count / (self.cpu_s() - spent)


def measure(renderer: str, size: tuple[int, int], width: int, rounds: int, count: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        drawn = Drawn(folder, renderer, size, width)
        try:
            first, again = drawn.reset(0), drawn.reset(0)
            drawn.pictures(count)  # compiles, warms up
            rates = [drawn.pictures(count) for _ in range(rounds)]
            row = [
                f"{size[1]} x {size[0]}",
                renderer,
                str(width),
                spread([wall for wall, _ in rates]),
                spread([cpu for _, cpu in rates]),
                f"{first:.2f}",
                f"{again:.2f}",
                f"{drawn.launch_s:.1f}",
                f"{drawn.memory_mb():,.0f}",
            ]
        finally:
            drawn.instance.close()
    print(*row, sep="  ", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one size, not saved")
    options = parser.parse_args()
    warm()
    sizes, rounds = (SIZES[:1], 2) if options.quick else (SIZES, options.rounds)
    cases = [(size, name, 1) for size in sizes for name in RENDERERS]
    cases += [(SIZES[0], name, width) for width in WIDTHS[1:] for name in RENDERERS]
    rows = [measure(name, size, width, rounds, 120) for size, name, width in cases]
    head = [
        "picture",
        "renderer",
        "slots",
        "pictures/s",
        "pictures per CPU second",
        "first reset, s per slot",
        "reset to a world seen before, s per slot",
        "launch, s",
        "MB beyond the game",
    ]
    text = header("Mineflayer: the renderers", "python -m benchmarks.mineflayer_viewer")
    text += f"\nOne thread draws. The game's pid is not counted; {os.cpu_count()} cores.\n\n"
    text += table(head, rows)
    if options.quick:
        print(text)
    else:
        save("mineflayer_viewer", text)


if __name__ == "__main__":
    main()
