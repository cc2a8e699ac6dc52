"""``README.md`` of a dataset, for people and for ``datasets.load_dataset``.

Its first lines say which files are steps and which are episodes, in the format of Hugging Face's
dataset cards; without them, that library tries to read every file of the folder as one table.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from rollout.data.layout import Layout
from rollout.data.manifest import Manifest
from rollout.data.schema import Column
from rollout.errors import DatasetError
from rollout.files import read_document, write_atomically
from rollout.reports import render, table

_BEGIN, _END = "<!-- gamut statistics", "<!-- end of gamut statistics -->"
_STATISTICS = re.compile(rf"{_BEGIN} ([0-9a-f]+) -->(.*?){_END}\n?", re.DOTALL)


def write_card(layout: Layout, manifest: Manifest) -> None:
    """Writes ``README.md`` unless there is one: people may edit it."""
    if not layout.card.exists():
        write_atomically(layout.card, card(manifest))


def refresh_card(layout: Layout, manifest: Manifest, statistics: str) -> None:
    """Puts statistics into ``README.md``, in place of those that this function wrote before.

    Everything else in the file stays as it is; without a file, the card is written first.

    Args:
        layout: the dataset.
        manifest: its description.
        statistics: Markdown.

    Raises:
        DatasetError: the earlier statistics were edited, or the file cannot be read.
    """
    write_card(layout, manifest)
    try:
        text = read_document(layout.card).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"cannot read {layout.card}: {error}") from error
    found = list(_STATISTICS.finditer(text))
    if any(_digest(each[2]) != each[1] for each in found) or len(found) != text.count(_BEGIN):
        raise DatasetError(
            f"{layout.card}: the statistics were edited; remove the lines <!-- gamut statistics "
            f"... --> around them to keep your text, or remove the section"
        )
    body = f"\n{statistics.strip()}\n"
    section = f"{_BEGIN} {_digest(body)} -->{body}{_END}\n"
    if found:
        start, stop = found[0].span()
        text = text[:start] + section + text[stop:]
    else:
        text = f"{text.rstrip()}\n\n{section}"
    write_atomically(layout.card, text)


def _digest(text: str) -> str:
    """By which a section is known that nobody edited; editors change white space."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def card(manifest: Manifest) -> str:
    """Returns the text of the card: game, task, columns with units, and how to read them."""
    return render(
        "dataset",
        task=manifest.task,
        game=manifest.bridge,
        policy=manifest.policy or "an unnamed policy",
        examples=_examples(manifest.stored),
        columns=table(("column", "type", "unit", "contents"), map(_row, manifest.stored)),
    )


def _row(column: Column) -> tuple[str, ...]:
    kind = f"{column.dtype}{list(column.shape) if column.shape else ''}"
    stored = "" if column.codec.name in ("plain", "list") else f", stored as {column.codec}"
    stored += " with loss" if column.codec.is_lossy else ""
    return f"`{column.name}`", f"{kind}{stored}", column.unit, column.doc


def _examples(columns: Iterable[Column]) -> list[Column]:
    """The first column with images and the first with arrays that are stored as bytes."""
    found: dict[bool, Column] = {}
    for column in columns:
        if not column.nullable and (column.codec.is_image or column.codec.name == "raw"):
            found.setdefault(column.codec.is_image, column)
    return list(found.values())
