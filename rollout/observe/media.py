"""Media of a run: videos, images and tables that a metrics line refers to.

The files stay in the run directory. A line contains their paths relative to the folder of the
metrics file, so that the directory can be moved. A file is complete before its line is written and
is never changed afterwards, since a mirror may read it much later. Use a new file each time.

In a line::

    {"env_steps": 7, "media": {"videos/best": {"kind": "video", "path": "videos/7.mp4", "fps": 20}}}
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from rollout.configuration.problems import wrong_in

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
