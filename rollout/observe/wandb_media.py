"""Media of a run for Weights & Biases."""

from __future__ import annotations

import logging
from typing import Any

from rollout.observe.media import Image, Media, Table, Video, read_rows

logger = logging.getLogger(__name__)


def add_media(run: Any, name: str, media: Media) -> bool:
    """Adds a file to the step that the next ``run.log`` closes; returns whether that succeeded.

    A missing file, or one that W&B refuses, causes a warning. For a table with too many rows, the
    first rows are shown, with a warning and ``<name>/rows_left_out`` in the summary of the run.

    Args:
        run: a W&B run.
        name: name of the panel.
        media: the file.
    """
    try:
        if not media.path.is_file():
            raise FileNotFoundError("there is no such file")
        # One by one before the values, so that an invalid file does not affect them.
        run.log({name: _as_wandb(run, name, media)}, commit=False)
    except Exception as error:  # noqa: BLE001 - W&B's errors have no common base class
        kind = type(error).__name__
        logger.warning("W&B does not show %s, %s: %s: %s", name, media.path, kind, error)
        return False
    return True


def _as_wandb(run: Any, name: str, media: Media) -> object:
    import wandb  # noqa: PLC0415 - slow to import

    if isinstance(media, Table):
        return _table(run, name, media)
    # Without fps: W&B uses the file unchanged, and warns that fps has no effect.
    kind = {Video: wandb.Video, Image: wandb.Image}[type(media)]
    return kind(str(media.path), caption=media.caption or None)


def _table(run: Any, name: str, table: Table) -> object:
    import wandb  # noqa: PLC0415 - slow to import

    rows = read_rows(table.path)
    shown = len(rows.data)
    if shown < rows.total:
        run.summary[f"{name}/rows_left_out"] = rows.total - shown
        logger.warning(
            "W&B shows the first %d of the %d rows of %s; %s has them all",
            shown,
            rows.total,
            name,
            table.path,
        )
    return wandb.Table(columns=rows.columns, data=rows.data)
