"""What every format needs: whole episodes, facts about them, and folders that are replaced."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rollout.data.manifest import Manifest
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef, Window, part_of_set
from rollout.data.schema import STEP, Column
from rollout.errors import DatasetError
from rollout.files import parse_json, read_document, temporary

MARK = "gamut.json"
"""Name of the file by which an exported folder is known as one, with the manifest in it."""

FACTS = ("episode", "attempt", "state", "state_set", "seed", "policy", "instance")
"""Facts about an episode that an import needs; see ``SourceEpisode.about``."""

_PIECE_BYTES = 16 << 20
_MOST_NUMBERS = 1 << 26
_DERIVED = {
    *("episode", "attempt", "step", "instance", "slot", "state", "state_set", "task", "policy"),
    *("seed", "first", "terminated", "truncated", "lost"),
}


def results_of(episodes: Sequence[EpisodeRef], what: str) -> list[EpisodeRef]:
    """Returns the episodes that ended with a result and have a step.

    Raises:
        DatasetError: there is none.
    """
    refs = [ref for ref in episodes if ref.length and ref.end != "lost"]
    if not refs:
        raise DatasetError(f"expected at least one episode with a result for {what}, got none")
    return refs


def step_columns(manifest: Manifest) -> list[Column]:
    """Returns the columns that cannot be derived from the facts about an episode."""
    return [
        c
        for c in manifest.columns
        if not c.name.startswith("final_") and not (c.role == STEP and c.key in _DERIVED)
    ]


def pieces_of(dataset: Dataset, ref: EpisodeRef, names: Sequence[str]) -> Iterator[Window]:
    """Yields an episode in pieces of about 16 MB when decoded."""
    fits = _PIECE_BYTES // max(dataset.manifest.row_bytes, 1)
    return dataset.stream(ref, names, length=max(64, min(16_384, fits)))


def facts_of(ref: EpisodeRef, manifest: Manifest) -> dict[str, Any]:
    """Returns what is known of an episode as JSON-able data, e.g. its start and its end.

    The index of the state is text: it may have hundreds of digits.
    """
    names = ("episode", "attempt", "task", "state_set", "seed", "policy", "version_first")
    more = ("version_last", "instance", "slot", "length", "total_reward", "progress", "end")
    facts = {name: getattr(ref, name) for name in (*names, *more, "seconds")}
    facts |= {"state": str(ref.state), "part": part_of_set(ref.state_set)}
    facts |= {"outcome": ref.outcome.name.lower(), "started": ref.started.isoformat()}
    return facts | {"state_space": manifest.state_space.digest}


def about_text(manifest: Manifest, **more: Any) -> str:
    """Returns the text of the file ``MARK``: the manifest, the digest of its states, and more."""
    about = {"manifest": manifest.to_json(indent=None), "digest": manifest.state_space.digest}
    return json.dumps({**about, **more}, indent=2) + "\n"


def read_about(path: Path) -> dict[str, Any] | None:
    """Returns the contents of a file ``MARK``; None if there is none.

    Raises:
        DatasetError: it is damaged.
    """
    try:
        about = parse_json(read_document(path))
        if not isinstance(about, dict) or not isinstance(about.get("manifest"), str):
            raise ValueError("it names no manifest")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot read {path}: {error}; export the dataset again") from error
    return about


def require_shape(shape: Sequence[int]) -> None:
    """Checks the shape that a file of others claims, before memory is taken for it.

    Raises:
        DatasetError: a side is not positive, or a value would have over 64 million numbers.
    """
    if any(side < 1 for side in shape) or math.prod(shape) > _MOST_NUMBERS:
        raise DatasetError(
            f"expected a shape of at most {_MOST_NUMBERS:,} numbers, got {list(shape)}"
        )


def require_free(dataset: Dataset, out: Path, mark: str) -> None:
    """Checks that a folder can be written without overwriting anything but an earlier export.

    Raises:
        DatasetError: it is within the dataset, a file, or holds something else.
    """
    root, place = dataset.layout.root.resolve(), out.resolve()
    if place == root or root in place.parents or place in root.parents:
        raise DatasetError(f"expected a folder apart from the dataset {root}, got {out}")
    if out.exists() and not out.is_dir():
        raise DatasetError(f"expected a folder to write, and {out} is a file; name another")
    if out.is_dir() and any(out.iterdir()) and not (out / mark).is_file():
        raise DatasetError(
            f"{out} holds something else than an earlier export; name an empty or new folder"
        )


@contextmanager
def replacing_folder(out: Path) -> Iterator[Path]:
    """Gives an empty folder to write, which takes the place of ``out`` when the block ends.

    A failure leaves an earlier export as it was.
    """
    new, old = temporary(out), out.with_name(f".{out.name}.old.tmp")
    for leftover in (new, old):
        if leftover.is_dir():
            shutil.rmtree(leftover)
    new.mkdir(parents=True)
    try:
        yield new
        if out.exists():
            out.rename(old)
        new.rename(out)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
