"""Finds enemies, cards and buttons on a picture: a small network without anchors.

As in CenterNet (Zhou et al. 2019, "Objects as Points"): a map of centres for each class, with the
size of the box and the offset of its centre within a cell.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bridges.compilation import cache_root
from bridges.starbench.pictures.drawn import LABELS, Label
from bridges.starbench.pictures.sprites import Picture
from rollout.errors import ConfigError

INPUT = (320, 180)
"""Width and height that pictures are shrunk to."""
STRIDE = 8
GRID = (40, 23)
"""Cells of the maps: width and height; the last row is padded."""
_FORMAT = 1
_TOP = 40  # most boxes of a picture
_COMMAND = "python -m bridges.starbench.reading.train"


class _Block(nn.Module):
    """Two convolutions and what came in."""

    def __init__(self, width: int, spread: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=spread, dilation=spread, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.two = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the output of the block."""
        return torch.relu(x + self.two(torch.relu(self.norm(self.one(x)))))


class Network(nn.Module):
    """(N, 3, 184, 320) to (N, classes + 4, 23, 40): centres, then size and offset in cells.

    Args:
        width: channels of the last layers.
    """

    def __init__(self, width: int = 72) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise((3, width // 3, width * 2 // 3, width)):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(after), nn.ReLU()]
        layers += [_Block(width, spread) for spread in (1, 2, 4, 2, 1)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Conv2d(width, len(LABELS) + 4, 1)
        nn.init.constant_(self.head.bias[: len(LABELS)], -4.0)  # type: ignore[index]

    def forward(self, pictures: Tensor) -> Tensor:
        """Returns the maps of a batch."""
        found: Tensor = self.head(self.body(pictures))
        return found


def shrunk(picture: Picture) -> NDArray[np.uint8]:
    """Returns a picture as the network sees it: (3, 184, 320)."""
    small = cv2.resize(picture, INPUT, interpolation=cv2.INTER_AREA)
    out = np.zeros((3, GRID[1] * STRIDE, GRID[0] * STRIDE), np.uint8)
    out[:, : INPUT[1]] = small.transpose(2, 0, 1)
    return out


def targets(labels: list[Label], scale: float) -> NDArray[np.float32]:
    """Returns what the network shall say: (classes + 4, 23, 40).

    Args:
        labels: of a picture.
        scale: pixels of the network's input for one of the picture.
    """
    maps = np.zeros((len(LABELS) + 4, GRID[1], GRID[0]), np.float32)
    rows, columns = np.mgrid[0 : GRID[1], 0 : GRID[0]].astype(np.float32)
    for name, x, y, w, h, _ in labels:
        cx, cy = (x + w / 2) * scale / STRIDE, (y + h / 2) * scale / STRIDE
        wide, high = w * scale / STRIDE, h * scale / STRIDE
        i, j = min(GRID[0] - 1, int(cx)), min(GRID[1] - 1, int(cy))
        spread = max(0.6, 0.1 * min(wide, high))
        bump = np.exp(-((columns - i) ** 2 + (rows - j) ** 2) / (2 * spread**2))
        which = LABELS.index(name)
        maps[which] = np.maximum(maps[which], bump)
        maps[len(LABELS) :, j, i] = (np.log(wide), np.log(high), cx - i, cy - j)
    return maps


def loss(found: Tensor, wanted: Tensor) -> Tensor:
    """Returns the focal loss of the centres and the distance of the boxes (sections 3, 4)."""
    n = len(LABELS)
    likely = torch.sigmoid(found[:, :n].float()).clamp(1e-4, 1 - 1e-4)
    truth = wanted[:, :n]
    hit = (truth == 1).float()
    pull = -((1 - likely) ** 2) * torch.log(likely) * hit
    push = -(likely**2) * torch.log(1 - likely) * (1 - truth) ** 4 * (1 - hit)
    count = hit.sum().clamp(min=1)
    at = hit.amax(dim=1, keepdim=True)
    boxes = ((found[:, n:] - wanted[:, n:]).abs() * at).sum()
    return (pull.sum() + push.sum() + boxes) / count


class Detector:
    """A trained network.

    Args:
        path: of the weights; None for those that the command made in the cache.

    Raises:
        ConfigError: there are no such weights; the message names the command that makes them.
    """

    def __init__(self, path: Path | None = None) -> None:
        path = path or default_weights()
        if not path.is_file():
            raise ConfigError(
                f"the detector has no weights at {path}; make them with `{_COMMAND}` (minutes), or "
                f"name another file"
            )
        with np.load(path, allow_pickle=False) as stored:
            if int(stored["format"]) != _FORMAT or tuple(stored["labels"].tolist()) != LABELS:
                raise ConfigError(
                    f"{path} has weights of another version; make them again with `{_COMMAND}`"
                )
            weights = {
                name.removeprefix("w/"): torch.from_numpy(stored[name].astype(np.float32))
                for name in stored.files
                if name.startswith("w/")
            }
        self.network = Network(weights["head.weight"].shape[1])
        self.network.load_state_dict(weights, strict=False)
        self.network.eval()

    def detect(self, picture: Picture, least: float = 0.3) -> list[Label]:
        """Returns the objects on a picture, the likeliest first.

        Args:
            picture: (height, width, 3), 16:9, of any size.
            least: least score.
        """
        with torch.inference_mode():
            given = torch.from_numpy(shrunk(picture))[None].float() / 255
            return decoded(self.network(given)[0], picture.shape[1] / INPUT[0], least)


def decoded(maps: Tensor, scale: float, least: float) -> list[Label]:
    """Returns the boxes in the network's maps of one picture, (classes + 4, 23, 40)."""
    n = len(LABELS)
    likely = torch.sigmoid(maps[:n])
    peak = nn.functional.max_pool2d(likely[None], 3, 1, 1)[0]
    scores = (likely * (likely == peak)).flatten()
    best, where = scores.topk(_TOP)
    found = []
    for score, at in zip(best.tolist(), where.tolist(), strict=True):
        if score < least:
            break
        which, cell = divmod(at, GRID[0] * GRID[1])
        j, i = divmod(cell, GRID[0])
        wide, high, dx, dy = maps[n:, j, i].tolist()
        w, h = float(np.exp(min(wide, 5))), float(np.exp(min(high, 5)))
        box = (i + dx - w / 2, j + dy - h / 2, w, h)
        x, y, w, h = (each * STRIDE * scale for each in box)
        found.append(Label(LABELS[which], x, y, w, h, score))
    return found


def save(network: Network, path: Path) -> None:
    """Writes weights, in half precision and without pickles."""
    arrays = {
        f"w/{name}": each.numpy().astype(np.float16)
        for name, each in network.state_dict().items()
        if each.is_floating_point()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, format=_FORMAT, labels=np.array(LABELS), **arrays)


def default_weights() -> Path:
    """Returns where the command writes weights unless told otherwise."""
    return cache_root() / "starbench" / f"detector_{_FORMAT}.npz"


def average_precision(
    found: list[list[Label]], labels: list[list[Label]], overlap: float = 0.5
) -> dict[str, float]:
    """Returns the average precision of each class that occurs, from 0 to 1.

    Args:
        found: the boxes of each picture.
        labels: the true boxes of each picture.
        overlap: least intersection over union of a hit.
    """
    out = {}
    for name in LABELS:
        total = sum(label.name == name for each in labels for label in each)
        if not total:
            continue
        hits: list[tuple[float, bool]] = []
        for seen, true in zip(found, labels, strict=True):
            left = [label for label in true if label.name == name]
            for box in sorted((b for b in seen if b.name == name), key=lambda b: -b.score):
                best = max(left, key=lambda label: _overlap(box, label), default=None)
                good = best is not None and _overlap(box, best) >= overlap
                if good and best is not None:
                    left.remove(best)
                hits.append((box.score, good))
        hits.sort(key=lambda hit: -hit[0])
        good_so_far = np.cumsum([good for _, good in hits])
        precision = good_so_far / np.arange(1, len(hits) + 1)
        recall = good_so_far / total
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        steps = np.diff(recall, prepend=0.0)
        out[name] = float((steps * envelope).sum())
    return out


def _overlap(found: Label, label: Label) -> float:
    wide = min(found.x + found.w, label.x + label.w) - max(found.x, label.x)
    high = min(found.y + found.h, label.y + label.h) - max(found.y, label.y)
    shared = max(0.0, wide) * max(0.0, high)
    return shared / (found.w * found.h + label.w * label.h - shared)
