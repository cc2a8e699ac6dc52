"""Frames of videos."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from rollout.api import Array
from rollout.data.formats.common import require_shape
from rollout.errors import DatasetError
from rollout.files import open_file

_UNDECODABLE = (DatasetError, OSError, LookupError, ValueError, ArithmeticError, MemoryError)


class VideoError(DatasetError):
    """A video that cannot be decoded; ``step`` is the first frame that is missing."""

    def __init__(self, problem: str, step: int | None) -> None:
        super().__init__(problem)
        self.step = step


def frames_of(path: Path, shape: tuple[int, ...], count: int, *, start_s: float = 0.0) -> Array:
    """Returns consecutive frames of a video in a file, like ``decode_video``.

    Raises:
        OSError: the file cannot be opened.
        VideoError: there are fewer frames, or of another size, or one does not decode.
    """
    with open_file(path) as file:
        return decode_video(file, shape, count, start_s=start_s)


def decode_video(
    file: BinaryIO, shape: tuple[int, ...] | None, count: int, *, start_s: float = 0.0
) -> Array:
    """Returns consecutive frames of a video.

    Args:
        file: the video.
        shape: ``(height, width, 3)`` of a frame; None for any.
        count: number of frames.
        start_s: time of the first one, in seconds.

    Returns:
        ``(count, height, width, 3)`` uint8, RGB.

    Raises:
        VideoError: there are fewer, or of another size, or one does not decode.
    """
    import av  # noqa: PLC0415 - 0.1 s

    found = 0
    try:
        with av.open(file, "r") as video:
            stream = video.streams.video[0]
            size = (stream.height, stream.width, 3)
            require_shape(size)
            frames = np.empty((count, *(shape or size)), np.uint8)
            half = 0.5 / float(stream.average_rate or 30)
            if start_s > half:
                video.seek(int(start_s / float(stream.time_base or 1)), stream=stream)
            for frame in video.decode(stream):
                if (frame.time or 0.0) < start_s - half:
                    continue
                if found == count:
                    break
                picture = frame.to_ndarray(format="rgb24")
                if picture.shape != frames.shape[1:]:
                    said = f"expected frames {list(frames.shape[1:])}, got {list(picture.shape)}"
                    raise VideoError(said, found)
                frames[found] = picture
                found += 1
    except VideoError:
        raise
    except (av.FFmpegError, *_UNDECODABLE) as error:
        raise VideoError(f"the video does not decode: {error}", found) from error
    if found < count:
        raise VideoError(f"expected {count} frames, got {found}", found)
    return frames
