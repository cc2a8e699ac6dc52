"""Episodes played again: as a video, as text, and as scripts for a policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.api import Array
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef
from rollout.data.schema import ACTION, OBSERVATION, Column, column_name, is_image
from rollout.errors import DatasetError, UnknownNameError

Pixels = NDArray[np.uint8]
_BAND, _LINE = 44, 18  # pixels: height of the text band, and of a line in it
_SMALLEST = 256  # pixels; smaller frames are enlarged so that the text can be read
_PIECE = 64  # steps read at once


def images_of(dataset: Dataset) -> tuple[str, ...]:
    """Returns the columns that hold images one can look at."""
    columns = (c for c in dataset.manifest.columns if c.role == OBSERVATION)
    return tuple(c.name for c in columns if is_image(c) or _is_stack(c))


def _is_stack(column: Column) -> bool:
    """Whether a value is a stack of images, the newest last: S x H x W, maybe with channels."""
    shape = column.shape
    ranks = len(shape) == 3 or (len(shape) == 4 and shape[3] <= 4)
    return column.dtype == "uint8" and ranks and shape[0] <= 16 and min(shape[1:3]) >= 8


def play_video(
    dataset: Dataset, ref: EpisodeRef, out: Path, *, column: str | None = None, fps: float = 15.0
) -> int:
    """Writes an episode as an MP4 with step, action and reward below each frame.

    Args:
        dataset: where the episode is.
        ref: the episode.
        out: the file to write.
        column: the image column; the first when None.
        fps: frames per second.

    Returns:
        the number of frames written.

    Raises:
        UnknownNameError: there is no such image column.
        DatasetError: the episode has no steps, or the video cannot be written.
    """
    valid = images_of(dataset)
    if not valid or (column is not None and column not in valid):
        raise UnknownNameError("image column", column or "", valid)
    column = column or valid[0]
    video, frames = None, 0
    try:
        for frame in _frames(dataset, ref, column):
            if video is None:
                size = (frame.shape[1], frame.shape[0])
                video = cv2.VideoWriter(str(out), cv2.VideoWriter.fourcc(*"mp4v"), fps, size)
                if not video.isOpened():
                    raise DatasetError(f"cannot write a video to {out}; is the folder there?")
            video.write(frame)
            frames += 1
    finally:
        if video is not None:
            video.release()
    if frames == 0:
        raise DatasetError(f"episode {ref.episode} has no steps to show")
    return frames


def play_text(dataset: Dataset, ref: EpisodeRef) -> Iterator[str]:
    """Yields one line per step of an episode: step, action, reward, small observations."""
    columns = [c for c in dataset.manifest.columns if _is_small(c)]
    for window in dataset.stream(ref, [*(c.name for c in columns), "reward"], length=_PIECE):
        for t in range(len(window.columns["reward"])):
            values = [f"{c.name}={_short(window.columns[c.name][t])}" for c in columns]
            reward = float(window.columns["reward"][t])
            yield f"step {window.start + t}: {' '.join(values)} reward={reward:g}"


def _is_small(column: Column) -> bool:
    return column.role in (OBSERVATION, ACTION) and column.codec.name in ("plain", "list")


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return (
            "["
            + " ".join(f"{v:g}" for v in value[:8].tolist())
            + (" ...]" if len(value) > 8 else "]")
        )
    return f"{value:g}" if isinstance(value, np.number | float) else str(value)


def _frames(dataset: Dataset, ref: EpisodeRef, column: str) -> Iterator[Pixels]:
    """Frames with their captions, BGR; the last is the final observation."""
    actions = [c.name for c in dataset.manifest.columns if c.role == ACTION and _is_small(c)]
    about = next(c for c in dataset.manifest.columns if c.name == column)
    newest = _is_stack(about) and not is_image(about)
    total = 0.0
    for window in dataset.stream(ref, [column, "reward", *actions], length=_PIECE):
        for t, shown in enumerate(window.columns[column]):
            image = shown[-1] if newest else shown
            reward = float(window.columns["reward"][t])
            total += reward
            action = " ".join(_short(window.columns[a][t]) for a in actions)
            step = window.start + t
            yield _captioned(image, f"step {step}  action {action}", _reward_text(reward, total))
    final = dataset.read(ref, []).final_observations.get(about.key)
    if final is not None:
        final = final[-1] if newest else final
        yield _captioned(final, f"end: {ref.end}, {ref.outcome.name.lower()}", f"sum {total:g}")


def _reward_text(reward: float, total: float) -> str:
    return f"reward {reward:g}  sum {total:g}"


def _captioned(image: Array, *lines: str) -> Pixels:
    picture = _to_bgr(image)
    scale = max(1, -(-_SMALLEST // min(picture.shape[:2])))
    picture = picture.repeat(scale, axis=0).repeat(scale, axis=1)
    # The codec wants even sizes.
    height, width = picture.shape[0] + picture.shape[0] % 2, picture.shape[1] + picture.shape[1] % 2
    canvas = np.zeros((height + _BAND, width, 3), np.uint8)
    canvas[: picture.shape[0], : picture.shape[1]] = picture
    for n, line in enumerate(lines):
        place = (4, height + _LINE * (n + 1))
        cv2.putText(
            canvas, line, place, cv2.FONT_HERSHEY_SIMPLEX, 0.42, (255, 255, 255), 1, cv2.LINE_AA
        )
    return canvas


def _to_bgr(image: Array) -> Pixels:
    """The image as OpenCV draws it; of a stack of frames, the newest."""
    if image.ndim == 2:
        image = image[:, :, None]
    if image.shape[2] == 3:
        return np.ascontiguousarray(image[:, :, ::-1])
    return np.repeat(image[:, :, -1:], 3, axis=2)


def export_actions(dataset: Dataset, out: Path) -> int:
    """Writes the actions of every episode with a result, for the ``scripted`` policy to replay.

    The file is a NumPy archive of arrays ``(T, ...)`` named ``STATE:SEED/COLUMN``, after what an
    episode began from, so that they can only be replayed from the same start.

    Args:
        dataset: what was recorded.
        out: the file, ``.npz``.

    Returns:
        number of episodes written.

    Raises:
        DatasetError: the file is not called ``.npz``, or there is no episode.
    """
    refs = [ref for ref in dataset.episodes() if ref.length]
    if out.suffix != ".npz" or not refs:
        raise DatasetError(
            f"expected a file .npz and at least one episode with a result, got {out} and "
            f"{len(refs)} episodes"
        )
    keys = list(dataset.manifest.action_space.spaces)
    names = {key: column_name("action", key) for key in keys}
    arrays: dict[str, Array] = {}
    for ref in refs:
        columns = dataset.read(ref, list(names.values())).columns
        for key, name in names.items():
            column = columns[name]
            text = column.astype(str) if column.dtype == object else column
            arrays[f"{ref.state}:{ref.seed}/{key}"] = text
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type] # numpy's stub misses the arrays
    return len(refs)
