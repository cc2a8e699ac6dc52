"""The names of files and features in LeRobot's format, version 3.0."""

from __future__ import annotations

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
