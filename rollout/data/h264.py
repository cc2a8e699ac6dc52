"""Images as H.264: each row has the data of one frame, in RGB, without loss at CRF 0.

The frames of consecutive rows of an episode form a video without B-frames, so every frame is one
packet, and a row can be found without an index of frames. A frame is decoded from the last key
frame on: the first row of an episode in each fragment is one, and one in 64 rows after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.api import Array
from rollout.errors import DatasetError

if TYPE_CHECKING:
    from av import VideoCodecContext

KEY_EVERY = 64
"""Rows from a key frame to the next, at most."""

MOST_CRF = 51
_ENCODERS = {1: ("libx264", "gray"), 3: ("libx264rgb", "rgb24")}  # by channels, and their pixels
_SPS = 7  # type of the NAL unit that only packets of key frames begin with
_LOW_DELAY = 0x80000  # AV_CODEC_FLAG_LOW_DELAY: a frame comes with its packet
_ALIGNED = 64  # buffers of frames are larger than frames by less than it, on each side


class FrameError(DatasetError):
    """A frame that does not decode; ``row`` is its number among those that were given."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(f"frame {row} of H.264 data {problem}")
        self.row = row


def is_key(data: Any) -> bool:
    """Returns whether the data of a frame, as bytes or as a buffer, is that of a key frame."""
    head = bytes(memoryview(data)[:5])
    return head[:4] == b"\0\0\0\1" and len(head) == 5 and head[4] & 31 == _SPS


@cache
def require_encoder() -> None:
    """Raises a DatasetError if the installed PyAV cannot encode H.264."""
    import av  # noqa: PLC0415 - 0.1 s

    missing = [name for name, _ in _ENCODERS.values() if name not in av.codecs_available]
    if missing:
        raise DatasetError(
            f"the codec h264 needs the encoders {missing} of FFmpeg, which this build of PyAV "
            f"{av.__version__} does not have; install PyAV's own wheel, or choose png or webp"
        )


def encode_frames(images: Array, crf: int, begins: NDArray[np.bool_] | None = None) -> list[bytes]:
    """Returns the data of each frame.

    Args:
        images: ``(n, height, width)`` or ``(n, height, width, 1 or 3)`` uint8.
        crf: constant rate factor of x264; 0 is without loss.
        begins: ``(n,)``, which images follow no other; None for the first one alone.
    """
    import av  # noqa: PLC0415 - 0.1 s

    channels = images.shape[3] if images.ndim == 4 else 1
    encoder, kind = _ENCODERS[channels]
    first = np.zeros(len(images), bool) if begins is None else begins.copy()
    first[:1] = True
    at: list[int] = np.flatnonzero(first).tolist()
    data: list[bytes] = []
    for start, stop in pairwise([*at, len(images)]):
        stream: Any = av.CodecContext.create(encoder, "w")
        stream.height, stream.width = images.shape[1:3]
        stream.pix_fmt, stream.time_base, stream.thread_count = kind, Fraction(1, 30), 1
        stream.options = {
            "preset": "veryfast",
            "tune": "zerolatency",
            "crf": str(crf),
            "g": str(KEY_EVERY),
            "x264-params": "scenecut=0",
        }
        packets: list[Any] = []
        for number, image in enumerate(images[start:stop]):
            pixels = image.reshape(image.shape[:2]) if channels == 1 else image
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format=kind)
            frame.pts = number
            packets += stream.encode(frame)
        packets += stream.encode(None)
        if len(packets) != stop - start:
            raise DatasetError(f"{stop - start} frames were encoded as {len(packets)} packets")
        data += map(bytes, packets)
    return data


def decode_frames(shape: tuple[int, ...], data: Sequence[Any]) -> Array:
    """Returns the images ``(n, *shape)`` of consecutive rows.

    Args:
        shape: of an image.
        data: of each frame, from a key frame on.

    Raises:
        FrameError: a frame is damaged or of another shape, or the first one is no key frame.
    """
    images: Array = np.empty((len(data), *shape), np.uint8)
    stream: VideoCodecContext | None = None
    for row, each in enumerate(data):
        if is_key(each) or stream is None:
            stream = _decoder(shape)
        images[row] = _decoded(stream, shape, row, each)
    return images


def undecodable(shape: tuple[int, ...], data: Sequence[Any]) -> dict[int, str]:
    """Returns what is wrong with each row that does not decode, with the rows that need it."""
    keys = [row for row, each in enumerate(data) if is_key(each)]
    edges = sorted({0, *keys, len(data)})
    found: dict[int, str] = {}
    for start, stop in pairwise(edges):
        try:
            decode_frames(shape, data[start:stop])
        except FrameError as error:
            found |= dict.fromkeys(range(start + error.row, stop), str(error))
    return found


def from_key(
    stored: pa.ChunkedArray, start: int, read: Callable[[int, int], pa.ChunkedArray]
) -> tuple[list[pa.Buffer], int]:
    """Returns the data of rows from the last key frame on.

    Args:
        stored: the data of the wanted rows.
        start: the row of the first one in its shard.
        read: returns that of other rows of the shard, from one to another (exclusive).

    Returns:
        The data, and the number of frames before the wanted ones; 0 if there is no key frame.
    """
    data = buffers(stored)
    if not data or is_key(data[0]):
        return data, 0
    before = buffers(read(max(0, start - KEY_EVERY), start))
    keys = [row for row, each in enumerate(before) if is_key(each)]
    before = before[keys[-1] :] if keys else []
    return [*before, *data], len(before)


def buffers(stored: Iterable[pa.BinaryScalar]) -> list[pa.Buffer]:
    """Returns the values of a binary array, without a copy."""
    return [value.as_buffer() for value in stored]


def _decoder(shape: tuple[int, ...]) -> VideoCodecContext:
    import av  # noqa: PLC0415 - 0.1 s

    stream: Any = av.CodecContext.create("h264", "r")
    height, width = (side + _ALIGNED for side in shape[:2])
    # Larger frames than the column's are refused before there is memory for them.
    stream.options = {"max_pixels": str(height * width), "err_detect": "explode"}
    stream.thread_count, stream.flags = 1, stream.flags | _LOW_DELAY
    found: VideoCodecContext = stream
    return found


def _decoded(stream: VideoCodecContext, shape: tuple[int, ...], row: int, data: Any) -> Array:
    """The image of the next frame of a video."""
    import av  # noqa: PLC0415 - 0.1 s

    try:
        frames = stream.decode(av.Packet(bytes(data)))
        if len(frames) != 1 or frames[0].is_corrupt:
            raise FrameError(row, "does not decode")
        frame = frames[0]
        if (frame.height, frame.width) != shape[:2]:
            found = [frame.height, frame.width]
            raise FrameError(row, f"is an image {found}, expected {list(shape[:2])}")
        if shape[2:] == (3,):
            if frame.format.name != "gbrp":
                raise FrameError(row, f"is {frame.format.name}, expected gbrp, which is RGB")
            image: Array = frame.to_ndarray()
        else:  # grey images have planes of colour without contents
            lines = np.frombuffer(memoryview(frame.planes[0]), np.uint8).reshape(frame.height, -1)
            image = lines[:, : frame.width]
    except FrameError:
        raise
    except (av.FFmpegError, ValueError, OSError, MemoryError) as error:
        raise FrameError(row, f"does not decode: {error}") from error
    return image.reshape(shape)
