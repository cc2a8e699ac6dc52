"""Metrics: an authoritative file of JSON lines, which dashboards mirror.

One line is one moment: ``time`` (Unix, s), ``wall_s`` (working time of the run in s, over all its
sessions without the pauses between them), ``env_steps``, any number of values under slash-joined
names, and under ``media`` the files that belong to this moment. Lines are only appended, each in
one write, so a crash loses at most the line that was being written. A training that continues from
a checkpoint repeats the steps after it: their lines are removed first, so that each step has one.

Media files (videos, images, tables) stay in the run directory. A line contains their paths relative
to the folder of the metrics file, so that the directory can be moved. A file is complete before its
line is written and is never changed afterwards, since a mirror may read it much later::

    {"env_steps": 7, "media": {"videos/best": {"kind": "video", "path": "videos/7.mp4", "fps": 20}}}
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from rollout.configuration.problems import wrong_in
from rollout.errors import DatasetError
from rollout.files import LineFile, parse_json, read_lines
from rollout.observe.run_files import newest_lines, parse

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Video:
    """A video.

    Attributes:
        path: an MP4, WebM, Ogg or GIF file.
        fps: frames per second of the file, for readers; video players read the file itself.
        caption: text shown with it.
    """

    path: Path
    fps: float | None = None
    caption: str = ""
    kind: Literal["video"] = "video"


@dataclass(frozen=True)
class Image:
    """A picture.

    Attributes:
        path: a PNG, JPEG or BMP file; W&B takes no SVG.
        caption: text shown with it.
    """

    path: Path
    caption: str = ""
    kind: Literal["image"] = "image"


@dataclass(frozen=True)
class Table:
    """Rows with named columns; W&B shows the first ones.

    Attributes:
        path: a Parquet file.
    """

    path: Path
    kind: Literal["table"] = "table"


Media: TypeAlias = Video | Image | Table

_MEDIA: TypeAdapter[Media] = TypeAdapter(Annotated[Media, Field(discriminator="kind")])


def media_as_json(media: Mapping[str, Media], folder: Path) -> dict[str, dict[str, Any]]:
    """Returns the JSON-able description of media for a line.

    Args:
        media: media by slash-joined names.
        folder: the folder to which paths are relative.

    Raises:
        TypeError: a value is not a ``Video``, ``Image`` or ``Table``.
        ValueError: a name is empty, or a file lies outside the folder.
    """
    described = {}
    root = folder.resolve()
    for name, item in media.items():
        if not name:
            raise ValueError(f"expected a name for the media {item!r}, got {name!r}")
        if not isinstance(item, Video | Image | Table):
            raise TypeError(
                f"media {name!r}: expected a Video, an Image or a Table, got {type(item).__name__}"
            )
        file = item.path.resolve()
        if not file.is_relative_to(root):
            raise ValueError(
                f"media {name!r}: expected a file in {root}, so that the folder can be moved, "
                f"got {file}; write it there"
            )
        fields = {**dataclasses.asdict(item), "path": file.relative_to(root).as_posix()}
        described[name] = {key: value for key, value in fields.items() if value}
    return described


def media_from_json(data: Mapping[str, object], folder: Path, place: str) -> dict[str, Media]:
    """Returns the media of a line by name, with paths that begin with ``folder``.

    Invalid media are left out with a warning that begins with ``place``: they are seldom worth a
    whole line, and a later version may have more kinds. A path outside the folder is left out too:
    mirroring a file from another source must not upload other files of the user.
    """
    media: dict[str, Media] = {}
    for name, described in data.items():
        try:
            item = _MEDIA.validate_python(described)
            path = folder / item.path
            if not path.resolve().is_relative_to(folder.resolve()):
                raise ValueError(f"expected a path within {folder}, got {str(item.path)!r}")
        except (ValueError, RuntimeError) as error:  # RuntimeError: circular links
            what = wrong_in(error) if isinstance(error, ValidationError) else error
            logger.warning("%s: media %r is left out: %s", place, name, what)
        else:
            media[name] = dataclasses.replace(item, path=path)
    return media


Scalar: TypeAlias = bool | int | float | str | None
"""Type of a metric value."""

OWN_NAMES = ("time", "wall_s", "env_steps")
"""Names that every line has; ``Metrics`` sets them itself."""

MEDIA = "media"
"""Key of a line's media; no value may have this name."""


class Line(dict[str, Scalar]):
    """One line as it is read: its values by name, and its media separately.

    Args:
        values: the values by name.
        media: the media by name, with paths that begin with the folder of the metrics file.
    """

    def __init__(
        self, values: Mapping[str, Scalar], media: Mapping[str, Media] | None = None
    ) -> None:
        super().__init__(values)
        self.media: dict[str, Media] = dict(media or {})


class Metrics:
    """Writes the metrics of a run; any thread may write.

    Opening removes an incomplete last line, which a crash leaves behind.

    Args:
        path: the file; created if missing, otherwise appended to.
        constants: values that every line repeats, e.g. ``resume_count``.
        clock: Unix time in seconds.
        until: ``env_steps`` of the checkpoint from which the run continues, -1 if there is none
            yet: all from the first line with more is removed. None keeps every line.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        constants: Mapping[str, object] | None = None,
        clock: Callable[[], float] = time.time,
        until: int | None = None,
    ) -> None:
        self.path = path
        self._constants = flatten(constants or {})
        self._listeners: list[Callable[[Mapping[str, Scalar]], None]] = []
        self._clock = clock
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = LineFile(path)
        cut = self._file.cut()
        if cut:
            logger.warning("%s: cut off %d bytes of a line that was never finished", path, cut)
        lines, _ = newest_lines(path)
        worked_s = lines[-1].get("wall_s") if lines else None
        self._began = clock() - (worked_s if isinstance(worked_s, int | float) else 0.0)
        if until is not None:
            _truncate_after(path, until)

    def write(
        self,
        env_steps: int,
        values: Mapping[str, object],
        *,
        media: Mapping[str, Media] | None = None,
    ) -> None:
        """Appends a line.

        Args:
            env_steps: steps of single slots so far; need not increase from line to line.
            values: numbers, texts, true, false and None, under slash-joined names. Mappings are
                flattened with slashes; numpy and torch scalars are accepted. NaN and infinity are
                written as null.
            media: files that belong to this moment, under their own slash-joined names. They must
                be complete and lie below the folder of the metrics file; a missing file causes a
                warning.

        Raises:
            TypeError: a value has another type.
            ValueError: a name is empty, duplicated or reserved; or a media file lies outside the
                folder.
            OutOfTurnError: the file is closed.
            OSError: writing failed; no part of the line remains.
        """
        flat = flatten(values)
        taken = sorted({*OWN_NAMES, MEDIA} & set(flat))
        if taken:
            raise ValueError(f"{', '.join(taken)}: a line has its own; use another name")
        described = self._describe(media or {}, flat)
        with self._lock:
            now = self._clock()
            line: dict[str, Scalar] = {"time": now, "wall_s": now - self._began}
            line |= {"env_steps": int(env_steps), **self._constants, **flat}
            self._file.append(json.dumps({**line, **described}, allow_nan=False) + "\n")
            for listener in self._listeners:
                listener(line)

    def listen(self, listener: Callable[[Mapping[str, Scalar]], None]) -> None:
        """Registers a listener for every line from now on, called once the line is in the file.

        Args:
            listener: receives the values of a line, in the order of the file; must not raise or
                write metrics itself.
        """
        with self._lock:
            self._listeners.append(listener)

    def _describe(
        self, media: Mapping[str, Media], values: Mapping[str, Scalar]
    ) -> dict[str, dict[str, dict[str, object]]]:
        described = media_as_json(media, self.path.parent)
        duplicates = sorted(described.keys() & {*OWN_NAMES, *self._constants, *values})
        if duplicates:
            raise ValueError(
                f"{', '.join(duplicates)}: a value has this name; the media need another"
            )
        for name, item in media.items():
            if not item.path.is_file():
                logger.warning("%s: media %r: there is no file %s", self.path, name, item.path)
        return {MEDIA: described} if described else {}

    def close(self) -> None:
        """Closes the file. Idempotent."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _truncate_after(path: Path, env_steps: int) -> None:
    """Truncates a file before its first line with more steps; damaged lines have no number."""
    keep = 0
    for raw in read_lines(path):
        steps = (parse(raw) or {}).get("env_steps")
        if isinstance(steps, int | float) and steps > env_steps:
            break
        keep += len(raw)
    if keep < path.stat().st_size:
        logger.info("%s: removed the lines of steps that are made again", path)
        os.truncate(path, keep)


def flatten(values: Mapping[Any, object], prefix: str = "") -> dict[str, Scalar]:
    """Returns nested values under slash-joined names, as JSON-able scalars.

    Raises:
        TypeError: a value is not a scalar.
        ValueError: a name is empty.
    """
    flat: dict[str, Scalar] = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"expected a name for the metric {value!r}, got {name!r}")
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}/")
        else:
            flat[f"{prefix}{name}"] = _scalar(f"{prefix}{name}", value)
    return flat


def _scalar(name: str, value: Any) -> Scalar:
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()  # a numpy or torch scalar
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(
        f"metric {name!r}: expected a number, a text, true, false or None, got "
        f"{type(value).__name__}; reduce it first"
    )


def read_metrics(path: Path) -> Iterator[Line]:
    """Yields the lines of a metrics file, oldest first; an incomplete last line is left out.

    A line is a dictionary of its values, and ``line.media`` are its media.

    Raises:
        FileNotFoundError: the file does not exist.
        DatasetError: a line before the last is damaged; the message gives its number. Or it is a
            folder.
    """
    if path.is_dir():
        raise DatasetError(f"{path}: expected a metrics file, got a folder; move it away")
    for number, raw in enumerate(read_lines(path), start=1):
        if not raw.endswith(b"\n"):
            return
        yield parse_line(raw, f"{path}:{number}", path.parent)


def parse_line(raw: bytes, place: str, folder: Path) -> Line:
    """Parses one line; invalid media are left out with a warning.

    Args:
        raw: the line.
        place: the file and the number of the line, for messages.
        folder: the folder of the file, where the paths of media begin.

    Raises:
        DatasetError: it is not a JSON object; the message begins with ``place``.
    """
    try:
        line = parse_json(raw)
    except ValueError as error:
        raise DatasetError(f"{place}: expected a JSON object, got {raw[:40]!r}: {error}") from error
    if not isinstance(line, dict):
        raise DatasetError(f"{place}: expected a JSON object, got {raw[:40]!r}")
    described = line.get(MEDIA)
    if not isinstance(described, dict):  # there are none, or it is a value in an older file
        return Line(line)
    del line[MEDIA]
    return Line(line, media_from_json(described, folder, place))
