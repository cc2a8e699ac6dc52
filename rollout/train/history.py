"""The validations of a run so far, in ``validation.json`` beside its checkpoints.

The file is written after every validation. It decides which checkpoint is the best, when the next
validation is due, and whether the run has stopped improving. So a run that was killed and continues
from an older checkpoint repeats exactly the validations after it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import Field, TypeAdapter, ValidationError

from rollout.configuration.problems import wrong_in
from rollout.files import read_document, write_atomically
from rollout.train.checkpoint import (
    Checkpoint,
    CheckpointError,
    Strict,
    find_checkpoint,
    place_of,
)

FILE = "validation.json"
_ROUNDING = 1e-9  # relative difference up to which scores are equal

_Count = Annotated[int, Field(ge=0, lt=2**63)]


class Validated(Strict):
    """One validation. ``score`` is null if no episode has a result, its interval if there is none.

    ``low`` and ``high`` are the ends of the interval, ``episodes`` counts those with a result.
    ``scores`` are those of the states in their order, null for a lost episode; only the newest
    validation has them.
    """

    update: _Count
    env_steps: _Count
    score: float | None
    low: float | None
    high: float | None
    episodes: _Count
    scores: NotRequired[list[float | None]]


_SCHEMA: TypeAdapter[list[Validated]] = TypeAdapter(list[Validated])


class History:
    """The validations of a run.

    Args:
        folder: folder of its checkpoints.
        until: newest update to consider; later ones are repeated by a run that continues from it.

    Raises:
        CheckpointError: the file is damaged.
    """

    def __init__(self, folder: Path, until: int | None = None) -> None:
        self._folder, self._file = folder, folder / FILE
        found = _read(self._file)
        self._entries: list[Validated] = []
        self._best: Validated | None = None
        for entry in found:
            if until is None or entry["update"] <= until:
                self._append(entry)

    def add(self, entry: Validated) -> None:
        """Adds the newest validation, on disk too."""
        for earlier in self._entries:
            earlier.pop("scores", None)
        self._append(entry)
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, json.dumps(self._entries, indent=1) + "\n")

    def _append(self, entry: Validated) -> None:
        self._entries.append(entry)
        if entry["score"] is None or not place_of(self._folder, entry["update"]).is_dir():
            return
        best = None if self._best is None else self._best["score"] or 0.0
        # Equal means differ by rounding if other episodes give them.
        if best is None or (
            entry["score"] > best and not math.isclose(entry["score"], best, rel_tol=_ROUNDING)
        ):
            self._best = entry

    @property
    def entries(self) -> Sequence[Validated]:
        """All validations, oldest first."""
        return tuple(self._entries)

    @property
    def last(self) -> Validated | None:
        """The newest validation; None if there is none."""
        return self._entries[-1] if self._entries else None

    @property
    def best(self) -> Validated | None:
        """The validation with the highest score, the first of equal ones; None if there is none.

        Only those whose checkpoint is there count: that of the best is never removed.
        """
        return self._best

    @property
    def since_best(self) -> int:
        """Number of validations after the best one."""
        best = self.best
        return sum(best is None or e["update"] > best["update"] for e in self._entries)


def _read(file: Path) -> list[Validated]:
    try:
        data = read_document(file)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror or error}") from error
    try:
        entries = _SCHEMA.validate_json(data)
    except ValidationError as error:
        raise CheckpointError(
            f"{file} is damaged: {wrong_in(error)}; restore it, or remove it to begin a new list "
            f"of validations"
        ) from error
    return sorted(entries, key=lambda e: e["update"])


def best_checkpoint(path: Path | str) -> Checkpoint:
    """Returns the best checkpoint of a run, or of a folder of checkpoints, by its validations.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    path = Path(path).expanduser()
    for folder in (path, path / "checkpoints"):
        best = History(folder).best
        if best is not None:
            return find_checkpoint(place_of(folder, best["update"]))
    raise CheckpointError(
        f"there is no best checkpoint in {path}: expected a run with validations, whose "
        f"checkpoints/{FILE} lists them; set validation.every in training, or take the newest "
        f"checkpoint"
    )


def as_metrics(entry: Validated, best: Validated | None, seconds: float) -> dict[str, Any]:
    """Returns a validation as values of a metrics line."""
    values = {name: entry[name] for name in ("score", "low", "high", "episodes")}
    values |= {"seconds": seconds}
    if best is not None:
        values |= {"best": best["score"], "best_update": best["update"]}
    return {f"validation/{name}": value for name, value in values.items()}
