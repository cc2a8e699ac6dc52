"""Which frames of an episode a judge sees."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.api import Array, pixels
from rollout.data import Dataset, EpisodeRef
from rollout.data.replay import images_of
from rollout.errors import ConfigError, UnknownNameError
from rollout.judge.config import FramesConfig


def choose_frames(
    rewards: NDArray[np.float32], progress: NDArray[np.float32], budget: int
) -> list[int]:
    """Returns numbers of steps in order: the first, the last, those of events, and others.

    An event is a reward other than 0, or a change of progress. With more events than room, the
    largest are taken; what is left is the middle of the widest gap, again and again.

    Args:
        rewards: reward of each step, ``(T,)``.
        progress: progress after each step, ``(T,)``; may be NaN.
        budget: most frames, 2 or more.
    """
    steps = len(rewards)
    if steps <= budget:
        return list(range(steps))
    chosen = {0, steps - 1}
    known = np.nan_to_num(progress)
    size = np.abs(rewards) + np.abs(np.diff(known, prepend=known[0]))
    # Before the fill, half of the room at most, so that a steady reward does not hide the rest.
    room = max(0, (budget - 2 + 1) // 2)
    order = np.lexsort((np.arange(steps), -size))
    chosen |= {int(step) for step in order[:room] if size[step] > 0}
    while len(chosen) < budget:
        known_steps = sorted(chosen)
        gaps = np.diff(known_steps)
        widest = int(gaps.argmax())
        chosen.add(known_steps[widest] + int(gaps[widest]) // 2)
    return sorted(chosen)


def reference_of(file: str, task: Mapping[str, Any]) -> bytes | None:
    """Returns the picture of what is to be matched as a PNG file; None if there is none.

    Args:
        file: the picture's path; empty for the one that the task names in ``metadata.reference``.
        task: of the dataset's manifest.

    Raises:
        ConfigError: the picture cannot be read.
    """
    metadata = task.get("metadata") or {}
    path = file or str(metadata.get("reference", ""))
    if not path:
        return None
    place = Path(path).expanduser()
    image = None
    with contextlib.suppress(cv2.error):  # it is larger than OpenCV reads
        image = cv2.imread(str(place), cv2.IMREAD_COLOR) if place.is_file() else None
    if image is None:
        raise ConfigError(f"{path}: no picture there that can be read; set reference to one")
    return bytes(cv2.imencode(".png", image)[1])


class Clips:
    """The chosen frames of episodes as PNG files.

    Raises:
        ConfigError: the dataset has no images, or several and none is named.
        UnknownNameError: it has no image column of that name.
    """

    def __init__(self, dataset: Dataset, options: FramesConfig) -> None:
        found = images_of(dataset)
        if options.column and options.column not in found:
            raise UnknownNameError("image column", options.column, found)
        if not options.column and len(found) != 1:
            raise ConfigError(
                f"frames.column: {dataset.layout.root} has {len(found)} image columns "
                f"({', '.join(found) or 'none'}); name one, or record with images"
            )
        self._dataset, self._options = dataset, options
        self._column = options.column or found[0]
        self._key = self._column.partition("/")[2]

    def read(self, ref: EpisodeRef) -> list[tuple[int, bytes]]:
        """Returns the number of the step and the file of each chosen frame.

        Raises:
            DatasetError: the steps are damaged.
        """
        told = self._dataset.read(ref, ["reward", "progress"]).columns
        chosen = choose_frames(told["reward"], told["progress"], self._options.budget)
        images: dict[int, Array] = {}
        for window in self._dataset.stream(ref, [self._column], length=64):
            column = window.columns[self._column]
            for step in _within(chosen, window.start, window.start + len(column)):
                images[step] = column[step - window.start].copy()
        final = self._dataset.read(ref, []).final_observations.get(self._key)
        frames = [(step, self._encode(images[step])) for step in chosen]
        if final is not None:  # what the last action led to
            frames[-1:] = [(ref.length, self._encode(final))]
        return frames

    def _encode(self, image: Array) -> bytes:
        image = pixels(self._dataset.manifest.observation_space[self._key], image)
        if image.ndim == 3 and image.shape[2] >= 3:
            image = image[:, :, 2::-1]
        side = self._options.scale
        image = np.repeat(np.repeat(image, side, axis=0), side, axis=1)
        return bytes(cv2.imencode(".png", np.ascontiguousarray(image))[1])


def _within(steps: Sequence[int], start: int, stop: int) -> list[int]:
    return [step for step in steps if start <= step < stop]
