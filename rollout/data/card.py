"""``README.md`` of a dataset, for people and for ``datasets.load_dataset``.

Its first lines say which files are steps and which are episodes, in the format of Hugging Face's
dataset cards; without them, that library tries to read every file of the folder as one table.
"""

from __future__ import annotations

from collections.abc import Iterable

from rollout.data.layout import Layout
from rollout.data.manifest import Manifest
from rollout.data.schema import Column
from rollout.files import write_atomically
from rollout.reports import render, table


def write_card(layout: Layout, manifest: Manifest) -> None:
    """Writes ``README.md`` unless there is one: people may edit it."""
    if not layout.card.exists():
        write_atomically(layout.card, card(manifest))


def card(manifest: Manifest) -> str:
    """Returns the text of the card: game, task, columns with units, and how to read them."""
    return render(
        "dataset",
        task=manifest.task,
        game=manifest.bridge,
        policy=manifest.policy or "an unnamed policy",
        examples=_examples(manifest.columns),
        columns=table(("column", "type", "unit", "contents"), map(_row, manifest.columns)),
    )


def _row(column: Column) -> tuple[str, ...]:
    kind = f"{column.dtype}{list(column.shape) if column.shape else ''}"
    stored = "" if column.codec.name in ("plain", "list") else f", stored as {column.codec}"
    return f"`{column.name}`", f"{kind}{stored}", column.unit, column.doc


def _examples(columns: Iterable[Column]) -> list[Column]:
    """The first column with images and the first with arrays that are stored as bytes."""
    found: dict[bool, Column] = {}
    for column in columns:
        if not column.nullable and (column.codec.is_image or column.codec.name == "raw"):
            found.setdefault(column.codec.is_image, column)
    return list(found.values())
