"""Draws a UI map over a screenshot, to see whether it fits.

python -m bridges.starbench.window.calibrate SCREENSHOT --out PNG [--map YAML]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cv2

from bridges.starbench.pictures.art import hue
from bridges.starbench.pictures.layout import UI_MAP, UiMap
from bridges.starbench.pictures.sprites import Picture, blit, text_sprite
from rollout.errors import GamutError, InputError


def overlay(picture: Picture, ui: UiMap) -> Picture:
    """Returns a screenshot with every box of a map and its name; a colour for each group."""
    out = picture.copy()
    groups = list(dict.fromkeys(name.partition(".")[0] for name, *_ in ui.boxes()))
    size = max(9, round(17 * ui.scale))
    for name, i, j, box in ui.boxes():
        colour = hue(360 * groups.index(name.partition(".")[0]) / len(groups), 0.75, 1.0)
        cv2.rectangle(out, (box.x, box.y), (box.x + box.w - 1, box.y + box.h - 1), colour, 1)
        if i == j == 0:
            blit(out, text_sprite(name, size, colour, bold=False), box.x + 2, box.y)
    return out


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("screenshot", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the picture to write")
    parser.add_argument("--map", type=Path, default=UI_MAP, help="the UI map; ours by default")
    options = parser.parse_args(arguments)
    try:
        picture = cv2.imread(str(options.screenshot))
        if picture is None:
            raise InputError(f"expected a picture, got {options.screenshot}, which is none")
        ui = UiMap((picture.shape[1], picture.shape[0]), options.map)
        if not cv2.imwrite(str(options.out), overlay(picture[..., ::-1].copy(), ui)[..., ::-1]):
            raise InputError(f"{options.out} cannot be written; name a PNG in a folder that exists")
    except (GamutError, cv2.error) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{options.out}: {len(list(ui.boxes()))} boxes of {options.map}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
