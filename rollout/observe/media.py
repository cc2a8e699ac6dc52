"""Media of a run: videos, images and tables that a metrics line refers to.

The files stay in the run directory. A line contains their paths relative to the folder of the
metrics file, so that the directory can be moved. A file is complete before its line is written and
is never changed afterwards, since a mirror may read it much later. Use a new file each time.

In a line::

    {"env_steps": 7, "media": {"videos/best": {"kind": "video", "path": "videos/7.mp4", "fps": 20}}}
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from rollout.errors import nearest

logger = logging.getLogger(__name__)

MOST_ROWS = 10_000
"""Maximum number of rows of a table that are shown; W&B keeps no more in a table's file."""

_EXACT = 2**53  # larger integers lose digits in a browser


@dataclass(frozen=True)
class Video:
    """A video.

    Attributes:
        path: an MP4, WebM, Ogg or GIF file.
        fps: frames per second of the file, for readers; video players read the file itself.
        caption: text shown with it.
    """

    kind: ClassVar[str] = "video"
    path: Path
    fps: float | None = None
    caption: str = ""


@dataclass(frozen=True)
class Image:
    """A picture.

    Attributes:
        path: a PNG, JPEG or BMP file; W&B takes no SVG.
        caption: text shown with it.
    """

    kind: ClassVar[str] = "image"
    path: Path
    caption: str = ""


@dataclass(frozen=True)
class Table:
    """Rows with named columns, of which the first ``MOST_ROWS`` are shown.

    Attributes:
        path: a Parquet file, or a file of JSON lines, one object a row.
    """

    kind: ClassVar[str] = "table"
    path: Path


Media: TypeAlias = Video | Image | Table

_KINDS: Mapping[str, type[Media]] = {"video": Video, "image": Image, "table": Table}


def media_as_json(media: Mapping[str, Media], folder: Path) -> dict[str, dict[str, object]]:
    """Returns the JSON-able description of media for a line.

    Args:
        media: media by slash-joined names.
        folder: the folder to which paths are relative.

    Raises:
        TypeError: a value is not a ``Video``, ``Image`` or ``Table``.
        ValueError: a name is empty, or a file lies outside the folder.
    """
    described: dict[str, dict[str, object]] = {}
    root = folder.resolve()
    for name, item in media.items():
        if not name:
            raise ValueError(f"expected a name for the media {item!r}, got {name!r}")
        if not isinstance(item, Video | Image | Table):
            raise TypeError(
                f"media {name!r}: expected a Video, an Image or a Table, got {type(item).__name__}"
            )
        file = Path(item.path).resolve()
        if not file.is_relative_to(root):
            raise ValueError(
                f"media {name!r}: expected a file in {root}, so that the folder can be moved, "
                f"got {file}; write it there"
            )
        fields = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
        more = {key: value for key, value in fields.items() if key != "path" and value}
        path = file.relative_to(root).as_posix()
        described[name] = {"kind": item.kind, "path": path, **more}
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
            media[name] = _one_from_json(described, folder)
        except (ValueError, RuntimeError) as error:  # RuntimeError: circular links
            logger.warning("%s: media %r is left out: %s", place, name, error)
    return media


def _one_from_json(described: object, folder: Path) -> Media:
    if not isinstance(described, dict) or not isinstance(described.get("path"), str):
        raise ValueError(f"expected an object with a kind and a path, got {described!r}")
    kind = described.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        close = nearest(str(kind), _KINDS) or sorted(_KINDS)
        raise ValueError(f"expected one of the kinds {', '.join(close)}, got {kind!r}")
    path = folder / described["path"]
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"expected a path within {folder}, got {described['path']!r}")
    if kind == "table":
        return Table(path)
    caption = described.get("caption", "")
    if not isinstance(caption, str):
        raise ValueError(f"expected a text as caption, got {caption!r}")
    if kind == "image":
        return Image(path, caption)
    fps = described.get("fps")
    if fps is not None and not isinstance(fps, int | float):
        raise ValueError(f"expected a number of frames per second, got {fps!r}")
    return Video(path, fps, caption)


@dataclass(frozen=True)
class Rows:
    """The first rows of a table, as plain values.

    Attributes:
        columns: names of the columns.
        data: row by row; numbers, texts, true, false and None.
        total: number of rows in the file.
    """

    columns: list[str]
    data: list[list[Any]]
    total: int


def read_rows(path: Path, most: int = MOST_ROWS) -> Rows:
    """Returns the first ``most`` rows of a table.

    NaN and infinity become None. A column with integers beyond 2**53 (seeds, for example) becomes
    text, since a browser would round them. A missing value in a row of JSON lines is None.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is neither Parquet nor JSON lines, or is damaged.
    """
    if path.suffix == ".parquet":
        from rollout.data.tables import read_table, rows_of  # noqa: PLC0415 - Arrow loads slowly

        table = read_table(path)
        total = rows_of(table)
        columns = {name: column[:most].tolist() for name, column in table.items()}
    elif path.suffix == ".jsonl":
        columns, total = _json_lines(path, most)
    else:
        raise ValueError(f"expected a table in a .parquet or a .jsonl file, got {path.name}")
    plain = [_plain(column) for column in columns.values()]
    return Rows(list(columns), [list(row) for row in zip(*plain, strict=True)], total)


def _json_lines(path: Path, most: int) -> tuple[dict[str, list[Any]], int]:
    columns: dict[str, list[Any]] = {}
    total = 0
    with path.open("rb") as file:
        for raw in file:
            if total < most:
                row = json.loads(raw)
                if not isinstance(row, dict):
                    place = f"{path}:{total + 1}"
                    raise ValueError(f"{place}: expected a JSON object, got {raw[:40]!r}")
                columns |= {name: [None] * total for name in row if name not in columns}
                for name, column in columns.items():
                    column.append(row.get(name))
            total += 1
    return columns, total


def _plain(column: list[Any]) -> list[Any]:
    exact = all(abs(value) <= _EXACT for value in column if isinstance(value, int))
    return [_plain_value(value, exact=exact) for value in column]


def _plain_value(value: Any, *, exact: bool) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | str):
        return value
    return value if isinstance(value, int) and exact else str(value)
