"""numpy arrays <-> Arrow arrays: the encoding of the values of a column.

========== ============================================== ===============================
codec      values                                         stored as
========== ============================================== ===============================
plain      scalars, strings                               themselves
list       vectors of up to 64 numbers                    fixed-size list
raw        anything larger, or with more dimensions       fixed-size binary: C-order bytes
png        uint8 images, 1, 3 or 4 channels               PNG file, lossless
webp       uint8 images, 1 or 3 channels                  WebP file, lossless
jpeg:Q     uint8 images, 1 or 3 channels                  JPEG file of quality Q, **lossy**
h264:CRF   uint8 images, 1 or 3 channels                  frame of a video, **lossy** but for CRF 0
json       details                                        JSON text
========== ============================================== ===============================

Images of three channels are taken as RGB, so that the stored files show the right colours.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.api import Array
from rollout.data import h264
from rollout.errors import DatasetError
from rollout.files import parse_json

LONGEST_LIST = 64  # numbers; above it a fixed-size binary is smaller and faster in Parquet
# Of image codecs: numbers of channels, file name extension, option of OpenCV; that of WebP is a
# quality above 100, which means lossless.
_IMAGES = {
    "png": ((1, 3, 4), ".png", (cv2.IMWRITE_PNG_COMPRESSION, 1)),
    "webp": ((1, 3), ".webp", (cv2.IMWRITE_WEBP_QUALITY, 101)),
    "jpeg": ((1, 3), ".jpg", (cv2.IMWRITE_JPEG_QUALITY,)),
}
_VIDEO = (1, 3)  # channels
_JPEG_QUALITY, _CRF = 95, 20


@dataclass(frozen=True)
class Codec:
    """The encoding of a value.

    Attributes:
        name: see the table above.
        quality: of ``jpeg``, 1 to 100; of ``h264`` the constant rate factor, 0 to 51; else 0.
    """

    name: str
    quality: int = 0

    @property
    def is_image(self) -> bool:
        """True if a value is an image file."""
        return self.name in _IMAGES

    @property
    def is_lossy(self) -> bool:
        """True if a value that is read may differ from the one that was stored."""
        return self.name == "jpeg" or (self.is_video and self.quality > 0)

    @property
    def is_video(self) -> bool:
        """True if a value is a frame of a video, which needs those before it."""
        return self.name == "h264"

    def __str__(self) -> str:
        return f"{self.name}:{self.quality}" if self.quality or self.is_video else self.name


PLAIN = Codec("plain")
JSON = Codec("json")
VALID = "raw, png, webp, jpeg, jpeg:QUALITY, h264 or h264:CRF"


def parse_codec(text: str) -> Codec:
    """Returns the codec of a name such as ``raw``, ``png``, ``jpeg:95`` or ``h264:20``.

    Raises:
        DatasetError: there is none of that name, or the quality is out of range.
    """
    name, _, quality = text.partition(":")
    if name == "jpeg":
        if quality and not (quality.isdecimal() and 1 <= int(quality) <= 100):
            raise DatasetError(f"codec {text!r}: expected a quality from 1 to 100, as in jpeg:95")
        return Codec("jpeg", int(quality or _JPEG_QUALITY))
    if name == "h264":
        if quality and not (quality.isdecimal() and int(quality) <= h264.MOST_CRF):
            raise DatasetError(
                f"codec {text!r}: expected a constant rate factor from 0, without loss, to "
                f"{h264.MOST_CRF}, as in h264:20"
            )
        return Codec("h264", int(quality or _CRF))
    if quality or name not in ("plain", "list", "raw", "png", "webp", "json"):
        raise DatasetError(f"unknown codec {text!r}; valid for images: {VALID}, for others: raw")
    return Codec(name)


def choose_codec(
    name: str, dtype: str, shape: tuple[int, ...], default: str, own: str | None
) -> Codec:
    """Returns the codec of a numeric column, given the shape of one value.

    ``default`` is for images; ``own`` is configured for this column and must fit.

    Raises:
        DatasetError: ``own`` cannot carry such values, or no codec can.
    """
    wanted, fallback = parse_codec(own or default), numeric_codec(name, dtype, shape)
    if wanted.name not in (*_IMAGES, "h264", "raw"):
        raise DatasetError(f"column {name!r}: codec {wanted} is not available; valid: {VALID}")
    valid = _image_codecs(dtype, shape)
    # The default applies to images it can encode: a frame stack of 4 remains raw under jpeg, and
    # so does a map of a few cells, whose image file would be mostly header.
    if wanted.name in valid and (own or math.prod(shape) > LONGEST_LIST):
        if wanted.is_video:
            h264.require_encoder()
        return wanted
    if wanted.name == "raw" or own is None:
        return fallback
    also = ", ".join(valid) or "none of the image codecs"
    raise DatasetError(
        f"column {name!r} holds {dtype}{list(shape)}, which codec {wanted} cannot store; "
        f"valid: raw, {also}"
    )


def _image_codecs(dtype: str, shape: tuple[int, ...]) -> list[str]:
    if dtype != "uint8" or len(shape) not in (2, 3):
        return []
    channels = shape[2] if len(shape) == 3 else 1
    fitting = [codec for codec, (fits, *_) in _IMAGES.items() if channels in fits]
    return [*fitting, "h264"] if channels in _VIDEO else fitting


def numeric_codec(name: str, dtype: str, shape: tuple[int, ...]) -> Codec:
    """Returns the codec of numbers that are no images; a DatasetError if none can carry them."""
    if np.dtype(dtype).kind not in "biuf" or np.dtype(dtype).itemsize > 8:
        raise DatasetError(
            f"column {name!r}: expected booleans, integers or floats of up to 64 bits, got {dtype}"
        )
    if math.prod(shape) == 0:
        raise DatasetError(f"column {name!r} has shape {list(shape)}: there is nothing to store")
    if not shape:
        return Codec("plain")
    return Codec("list" if len(shape) == 1 and shape[0] <= LONGEST_LIST else "raw")


def encode(
    codec: Codec, kind: pa.DataType, values: Array, begins: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Returns an Arrow array of the type of the column, without copying where it can.

    Args:
        codec: of the column.
        kind: the type.
        values: ``(n, *shape)`` of the column's dtype; ``(n,)`` objects for strings and details.
        begins: ``(n,)``, which values are the first of an episode here; None for the first alone.
    """
    if codec.is_video:
        return pa.array(h264.encode_frames(values, codec.quality, begins), pa.binary())
    if codec.is_image:
        return pa.array([_encode_image(codec, image) for image in values], pa.binary())
    if codec.name == "raw":
        return _encode_raw(kind, np.ascontiguousarray(values))
    if codec.name == "list":
        return _encode_list(kind, np.ascontiguousarray(values))
    if codec.name == "json":
        return pa.array([_encode_json(v) for v in values], pa.string())
    texts = values.dtype == object
    return pa.array(values.tolist(), pa.string()) if texts else pa.array(values)


def encode_some(values: Array, rows: Array, count: int) -> pa.Array:
    """Returns a binary array of ``count`` rows: the bytes of a value at some rows, null elsewhere.

    Args:
        values: ``(n, *shape)``.
        rows: the row of each value, ascending.
        count: number of all rows.
    """
    present = np.zeros(count, bool)
    present[rows] = True
    if values.nbytes >= 2**31:
        raise DatasetError(
            f"a fragment has {values.nbytes} bytes of older frames, and a column of a batch holds "
            f"less than 2 GiB; record shorter fragments"
        )
    size = values.itemsize * math.prod(values.shape[1:])
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(present * np.int32(size), out=offsets[1:])
    parts = np.packbits(present, bitorder="little"), offsets, np.ascontiguousarray(values)
    return pa.BinaryArray.from_buffers(pa.binary(), count, [pa.py_buffer(part) for part in parts])


def _encode_list(kind: pa.DataType, values: Array) -> pa.Array:
    fixed = pa.list_(kind.value_field, values.shape[1])
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), type=fixed).cast(kind)


def _encode_raw(kind: pa.DataType, values: Array) -> pa.Array:
    fixed = pa.binary(values.itemsize * math.prod(values.shape[1:]))
    data = pa.py_buffer(values)
    return pa.FixedSizeBinaryArray.from_buffers(fixed, len(values), [None, data]).cast(kind)


def _encode_image(codec: Codec, image: Array) -> bytes:
    _, extension, option = _IMAGES[codec.name]
    options = (*option, codec.quality) if codec.quality else option
    done, data = cv2.imencode(extension, _swap_red_and_blue(image), options)
    if not done:
        raise DatasetError(f"an image of shape {list(image.shape)} could not be written as {codec}")
    return data.tobytes()


def _swap_red_and_blue(image: Array) -> Array:
    """Converts RGB to OpenCV's BGR, or back; other images are returned unchanged."""
    if image.ndim == 3 and image.shape[2] >= 3:
        how = cv2.COLOR_BGR2RGB if image.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
        swapped: Array = cv2.cvtColor(np.ascontiguousarray(image), how)  # NumPy takes 12 times it
        return swapped
    return image


def _encode_json(value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DatasetError(
            f"details must be JSON-able: {error}; give numbers, text, lists and mappings"
        ) from error


def decode(codec: Codec, dtype: str, shape: tuple[int, ...], values: pa.Array) -> Array:
    """Returns the values of an Arrow array without nulls as ``(n, *shape)``.

    Frames of a video begin with a key frame. Strings and details come as ``(n,)`` objects,
    timestamps as float64 Unix seconds. The result may share the memory of ``values`` and be
    read-only.

    Raises:
        DatasetError: a value is damaged or has another shape.
    """
    count = len(values)
    if dtype == "string":
        texts = values.to_pylist()
        if codec.name == "json":
            texts = [_decode_json(t) for t in texts]
        out: Array = np.fromiter(texts, dtype=object, count=count)
        return out
    if dtype == "timestamp":
        micros: Array = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return micros / 1e6
    if codec.is_image:
        images = [_decode_image(shape, data.as_buffer()) for data in values]
        return np.stack(images) if images else np.zeros((0, *shape), np.uint8)
    if codec.is_video:
        return h264.decode_frames(shape, h264.buffers(values))
    if codec.name == "raw":
        return _decode_raw(np.dtype(dtype), shape, values)
    flat = values.flatten() if codec.name == "list" else values
    plain: Array = flat.to_numpy(zero_copy_only=False)
    return plain.astype(dtype, copy=False).reshape(count, *shape)


def _decode_raw(dtype: np.dtype[Any], shape: tuple[int, ...], values: pa.Array) -> Array:
    count, size = len(values), dtype.itemsize * math.prod(shape)
    try:
        fixed = values.cast(pa.binary(size))
    except pa.ArrowInvalid as error:
        raise DatasetError(f"expected values of {size} bytes, {dtype}{list(shape)}") from error
    data = np.frombuffer(fixed.buffers()[1] or b"", np.uint8)
    return data[fixed.offset * size :][: count * size].view(dtype).reshape(count, *shape)


def _decode_image(shape: tuple[int, ...], data: pa.Buffer) -> Array:
    encoded = np.frombuffer(data, np.uint8)
    try:
        image = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED) if len(encoded) else None
    except cv2.error as error:
        raise DatasetError(f"an image does not decode: {error}") from error
    if image is None:
        raise DatasetError(f"an image of {len(encoded)} bytes does not decode")
    channels = shape[2] if len(shape) == 3 else 1
    if channels == 1 and image.ndim == 3:
        image = image[:, :, 0]  # WebP has no grey images: the three channels are the same
    if image.size != math.prod(shape) or image.shape[:2] != shape[:2]:
        raise DatasetError(f"expected an image {list(shape)}, got {list(image.shape)}")
    return _swap_red_and_blue(image).reshape(shape)


def _decode_json(text: str | None) -> Any:
    try:
        return None if text is None else parse_json(text)
    except ValueError as error:
        raise DatasetError(f"details are not valid JSON: {error}") from error
