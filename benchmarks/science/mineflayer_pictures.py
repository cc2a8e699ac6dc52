"""A sheet of scenes of the embedded Minecraft, as its agents see them in their picture ``rgb``.

python -m benchmarks.science.mineflayer_pictures --sheet docs/mineflayer-scenes.jpg
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.factors import CONDITION
from bridges.mineflayer.spaces import ACTION, NEUTRAL
from rollout.api import Start
from rollout.yaml12 import load_yaml

SCENES = Path(__file__).parent / "mineflayer_scenes.yaml"
HEIGHT, WIDTH = 180, 320
COLUMNS, TITLE = 3, 18
SETTLE = 4
"""Steps until things that fall have landed."""
STATE: dict[str, Any] = {
    "site": "flat", "biome": "plains", "world": 1, "time": "noon", "weather": "clear",
    "loadout": "none", "mob": "none", "mobs": 0, "distance": 2, "difficulty": "normal",
    "blueprint": 0, **CONDITION,
}  # fmt: skip


def commands_of(scene: Mapping[str, Any]) -> list[str]:
    """Returns the commands of a scene; those of its row first."""
    commands = list(scene.get("commands", ()))
    row = scene.get("row")
    if row is None:
        return commands
    (kind, names), *_ = row.items()
    for number, each in enumerate(names):
        name, _, colour = str(each).partition(" ")
        x = ((len(names) - 1) / 2 - number) * row["apart"]
        at = f"~{x:.2f} ~ ~{row['distance']}"
        if kind == "summon":
            coat = f",Color:{colour}b" if colour else ""
            tags = f"{{NoAI:1b{coat}}}"
            commands.append(f"/summon {name} {at} {tags}")
        elif kind == "drop":
            commands.append(f"/summon item {at} {{Item:{{id:{name},Count:1b}}}}")
        else:
            if "ground" in row:
                commands.append(f"/setblock ~{x:.2f} ~-1 ~{row['distance']} {row['ground']}")
            commands.append(f"/setblock {at} {name}")
    turned = "/execute as @e[type=!player] at @s facing entity a0 eyes run tp @s ~ ~ ~ ~ ~"
    return [*commands, "/tp @s ~ ~ ~ 0 10", *([turned] if kind == "summon" else [])]


def picture(scene: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Returns ``(HEIGHT, WIDTH, 3)``, what the agent sees when the scene has settled."""
    bridge = MineflayerBridge(
        observe=("rgb",), rgb_height=HEIGHT, rgb_width=WIDTH, spawning=False, daylight=False,
        commands=tuple(commands_of(scene)),
    )  # fmt: skip
    space = bridge.spec.state_space
    state = space.state(space.index({**STATE, **scene.get("state", {})}))
    with tempfile.TemporaryDirectory() as folder:
        instance = bridge.launch(Path(folder), (), width=1, timeout_s=600.0)
        try:
            frame = instance.reset([0], [Start(state, 1, 0)], timeout_s=600.0)
            for _ in range(SETTLE):
                frame = instance.step({ACTION: np.array([NEUTRAL])}, timeout_s=600.0)
            return np.array(frame.observations["rgb"][0])
        finally:
            instance.close()


def titled(title: str, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    strip = np.full((TITLE, image.shape[1], 3), 255, np.uint8)
    cv2.putText(strip, title, (4, 13), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (0, 0, 0), 1, cv2.LINE_AA)
    return np.concatenate([strip, image])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sheet", required=True, metavar="FILE", help="the picture to write")
    parser.add_argument("--only", default="", help="scenes whose title has this word")
    options = parser.parse_args()
    scenes = [each for each in load_yaml(SCENES) if options.only in each["title"]]
    tiles = [titled(each["title"], picture(each)) for each in scenes]
    tiles += [np.full_like(tiles[0], 255)] * (-len(tiles) % COLUMNS)
    rows = [np.concatenate(tiles[n : n + COLUMNS], 1) for n in range(0, len(tiles), COLUMNS)]
    cv2.imwrite(options.sheet, np.concatenate(rows)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 88])


if __name__ == "__main__":
    main()
