"""The names of files and features in LeRobot's format, version 3.0."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from rollout.data.formats.common import MARK, step_columns
from rollout.data.formats.hf_features import is_image
from rollout.data.manifest import Manifest
from rollout.data.schema import ACTION, EXTRA, OBSERVATION, SIGNAL, STEP, Column
from rollout.errors import DatasetError

VERSION = "v3.0"
ABOUT = f"meta/{MARK}"
FINAL = "meta/gamut_final.parquet"
INFO, STATS, TASKS = "meta/info.json", "meta/stats.json", "meta/tasks.parquet"
EPISODES = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
DONE, SUCCESS, TIME = "next.done", "next.success", "timestamp"
OWN = tuple(
    Column(name, STEP, name, kind)
    for name, kind in (
        *((DONE, "bool"), (SUCCESS, "bool"), (TIME, "float32"), ("frame_index", "int64")),
        *((name, "int64") for name in ("episode_index", "index", "task_index")),
    )
)
"""Features that LeRobot has in every dataset, and that follow from the facts about an episode."""


_FIELD = re.compile(r"\{(\w+)(?::0?\d{0,2}d)?\}")


def file_of(template: str, **values: Any) -> str:
    """Returns the file that a template of ``meta/info.json`` names, relative to the folder.

    Raises:
        DatasetError: the template has other fields than these, or leaves the folder.
    """
    if unknown := sorted({*_FIELD.findall(template)} - values.keys()):
        raise DatasetError(f"{INFO}: expected the fields {', '.join(values)}, got {unknown}")
    if "{" in (rest := _FIELD.sub("", template)) or "}" in rest:
        raise DatasetError(f"{INFO}: expected fields such as {{file_index:03d}}, got {template!r}")
    path = PurePosixPath(template.format(**values))
    if path.is_absolute() or ".." in path.parts:
        raise DatasetError(f"{INFO}: expected a file within the folder, got {path}")
    return str(path)


def features_of(manifest: Manifest) -> dict[str, Column]:
    """Returns the columns by the names that LeRobot's policies look for.

    An only action is ``action``, an only vector among the observations ``observation.state``.

    Raises:
        DatasetError: two columns would have one name.
    """
    columns = step_columns(manifest)
    actions = [c for c in columns if c.role == ACTION]
    vectors = [c for c in columns if c.role == OBSERVATION and not is_image(c)]
    names: dict[str, Column] = {}
    for column in columns:
        key = column.key.replace("/", ".")
        name = {
            OBSERVATION: f"observation.{'images.' if is_image(column) else ''}{key}",
            ACTION: f"action.{key}",
            SIGNAL: f"signal.{key}",
            EXTRA: f"extra.{key}",
        }.get(column.role, f"gamut.{key}")
        if [column] == actions:
            name = "action"
        elif [column] == vectors and len(column.shape) == 1:
            name = "observation.state"
        elif column.name == "reward":
            name = "next.reward"
        if name in names:
            raise DatasetError(
                f"the columns {names[name].name} and {column.name} would both be the feature "
                f"{name}; rename one"
            )
        names[name] = column
    return names


def finals_of(manifest: Manifest) -> dict[str, Column]:
    """Returns the columns of what follows the last action, by name."""
    return {c.name: c for c in manifest.columns if c.name.startswith("final_")}
