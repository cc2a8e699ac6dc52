"""Trains the detector on pictures that the renderer labels itself.

python -m bridges.starbench.reading.train [--out NPZ] [--pictures 400] [--epochs 8]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bridges.starbench.pictures.renderer import Renderer
from bridges.starbench.reading.detector import (
    Detector,
    Network,
    average_precision,
    default_weights,
    loss,
    save,
    shrunk,
    targets,
)
from bridges.starbench.reading.scenes import scene

_SIZE = (640, 360)
_FIRST_CHECK = 10**6  # scenes from here on are not trained on
_BATCH = 16


def pictures(numbers: range) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Returns scenes as the network sees them, and what it shall say of them."""
    renderer = Renderer(_SIZE)
    seen, wanted = [], []
    for number in numbers:
        drawn = renderer.drawn(*scene(number))
        seen.append(shrunk(drawn.picture))
        wanted.append(targets(drawn.labels, 320 / _SIZE[0]))
    return np.stack(seen), np.stack(wanted)


def train(
    count: int, epochs: int, *, width: int = 72, say: Callable[[str], None] = lambda _: None
) -> Network:
    """Returns a network trained on ``count`` scenes for some epochs; repeatable on one machine."""
    torch.manual_seed(0)
    seen, wanted = (torch.from_numpy(each) for each in pictures(range(count)))
    say(f"{count} pictures drawn")
    network = Network(width)
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=1e-4)
    steps = epochs * (-(-count // _BATCH))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.split(torch.randperm(count), _BATCH):
            light = 0.85 + 0.3 * torch.rand(len(rows), 1, 1, 1)
            given = (seen[rows].float() / 255 * light).clamp(0, 1)
            value = loss(network(given), wanted[rows])
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            total += value.item() * len(rows)
        say(f"epoch {epoch + 1} of {epochs}: loss {total / count:.3f}")
    return network.eval()


def check(detector: Detector, count: int, size: tuple[int, int] = _SIZE) -> dict[str, float]:
    """Returns the average precision of each class on ``count`` scenes that were not trained on."""
    renderer = Renderer(size)
    drawn = [renderer.drawn(*scene(_FIRST_CHECK + i)) for i in range(count)]
    found = [detector.detect(each.picture, 0.05) for each in drawn]
    return average_precision(found, [each.labels for each in drawn])


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=default_weights(), help="the file to write")
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args(arguments)
    began = time.monotonic()

    def say(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:6.1f} s  {text}\n")
        sys.stdout.flush()

    save(train(options.pictures, options.epochs, say=say), options.out)
    found = check(Detector(options.out), 60)
    each = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    say(f"{options.out}: mAP50 {sum(found.values()) / len(found):.3f} on 60 new pictures ({each})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
