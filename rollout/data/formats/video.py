"""Frames of videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rollout.api import Array
from rollout.errors import DatasetError
from rollout.files import open_file

_UNDECODABLE = (OSError, LookupError, ValueError, ArithmeticError, MemoryError)


class VideoError(DatasetError):
    """A video that cannot be decoded; ``step`` is the first frame that is missing."""

    def __init__(self, problem: str, step: int | None) -> None:
        super().__init__(problem)
        self.step = step


def frames_of(path: Path, shape: tuple[int, ...], count: int, *, start_s: float = 0.0) -> Array:
    """Returns consecutive frames of a video.

    Args:
        path: the file.
        shape: ``(height, width, 3)`` of a frame.
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
        frames = np.empty((count, *shape), np.uint8)
        with open_file(path) as file, av.open(file, "r") as video:
            stream = video.streams.video[0]
            half = 0.5 / float(stream.average_rate or 30)
            if start_s > half:
                video.seek(int(start_s / float(stream.time_base or 1)), stream=stream)
            for frame in video.decode(stream):
                if (frame.time or 0.0) < start_s - half:
                    continue
                if found == count:
                    break
                picture = frame.to_ndarray(format="rgb24")
                if picture.shape != shape:
                    said = f"expected frames {list(shape)}, got {list(picture.shape)}"
                    raise VideoError(said, found)
                frames[found] = picture
                found += 1
    except VideoError:
        raise
    except (
        av.FFmpegError,
        OSError,
        LookupError,
        ValueError,
        ArithmeticError,
        MemoryError,
    ) as error:
        raise VideoError(f"the video does not decode: {error}", found) from error
    if found < count:
        raise VideoError(f"expected {count} frames, got {found}", found)
    return frames
