"""StarDojo's tasks as rows: the 100 of Lite, and a user's own copy of the files of all 1,000."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bridges.stardojo.commands import SAVES, table
from bridges.stardojo.evaluators import RULES
from bridges.stardojo.task_row import STEPS, TaskRow
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.yaml12 import load_yaml

CATEGORIES = ("farming", "crafting", "exploration", "combat", "social", "open")
FIELDS = {"id": int, "object": str, "quantity": int, "tool": (str, type(None)), "save": str,
          "init_commands": (list, type(None)), "evaluator": str, "difficulty": str}  # fmt: skip

_NAMED = ("friendship", "location", "bundle")
"""Evaluators of tasks whose numbers are no quantity."""
_HOUSES = {"save_new": ("Coop",), "save_farming": ("Deluxe Coop", "Deluxe Barn"), "save_quests": ()}
_UNREPORTED = ("Fighter", "Gatherer", "Geologist")


@cache
def lite() -> Mapping[str, TaskRow]:
    """Returns the 100 tasks of StarDojo-Lite by name, in the order of the paper's table 5."""
    rows = [
        _row(category, key, fields, "lite.yaml")
        for category, tasks in table("lite").items()
        for key, fields in tasks.items()
    ]
    return {row.name: row for row in rows}


@dataclass(frozen=True)
class OwnFiles:
    """The tasks of a user's own copy.

    Attributes:
        rows: by name, ``CATEGORY/KEY`` without quotation marks.
        defects: what is wrong with tasks that can be played nevertheless, a sentence each.
    """

    rows: Mapping[str, TaskRow]
    defects: tuple[str, ...]


def load_files(path: Path) -> OwnFiles:
    """Returns the tasks of StarDojo's files, of a user's own copy. Nothing in them is executed.

    Args:
        path: a folder with files such as ``farming.yaml`` or ``farming_lite.yaml``, or one file.

    Raises:
        ConfigError: there is no such file, or it holds something that is no task: its fields,
            evaluator, save, difficulty or a command is wrong.
    """
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    wanted = {f"{each}{suffix}": each for each in CATEGORIES for suffix in ("", "_lite")}
    rows: dict[str, TaskRow] = {}
    defects: list[str] = []
    for file in files:
        if file.stem not in wanted:
            if not path.is_dir():
                raise ConfigError(f"{file}: expected the name of a category, one of {[*wanted]}")
            continue
        category = wanted[file.stem]
        for position, (key, fields) in enumerate(_read(file).items()):
            row = _row(category, str(key), fields, f"{file.name}: {key}")
            name = f"{file.stem}/{row.name}"
            rows[name] = row
            defects += [f"{name}: {each}" for each in _defects(row, position)]
    if not rows:
        raise ConfigError(f"{path}: no tasks there; expected files such as farming.yaml")
    return OwnFiles(rows, tuple(defects))


def _read(file: Path) -> Mapping[Any, Any]:
    data = load_yaml(file)
    if not isinstance(data, dict):
        raise ConfigError(f"{file}: expected a mapping of tasks, got {type(data).__name__}")
    return data


def _row(category: str, key: str, fields: Any, place: str) -> TaskRow:
    if not isinstance(fields, dict) or fields.keys() != FIELDS.keys():
        got = sorted(map(str, fields)) if isinstance(fields, dict) else fields
        raise ConfigError(f"{place}: expected the fields {sorted(FIELDS)}, got {got}")
    for name, kind in FIELDS.items():
        if not isinstance(fields[name], kind) or isinstance(fields[name], bool):  # type: ignore[arg-type]
            raise ConfigError(f"{place}: {name}: got {fields[name]!r}")
    evaluators = {name for of, name in RULES if of == category}
    for name, valid in (("evaluator", evaluators), ("save", SAVES), ("difficulty", STEPS)):
        if fields[name] not in valid:
            raise UnknownNameError(f"{name} of a {category} task, in {place},", fields[name], valid)
    commands = fields["init_commands"] or []
    if not all(isinstance(each, str) for each in commands):
        raise ConfigError(f"{place}: init_commands: expected a list of calls, got {commands!r}")
    try:
        return TaskRow(category, key, **{**fields, "init_commands": tuple(commands)})
    except InputError as error:
        raise ConfigError(f"{place}: {error}") from error


def _defects(row: TaskRow, position: int) -> Iterator[str]:
    if row.id != position:
        yield f"its id is {row.id}, its position {position}, which the released code loads it by"
    # The first number, and those after "and": others belong to what is meant (a "5000 bundle").
    told = [int(a or b) for a, b in re.findall(r"^\D*?_(\d+)_|_and_(\d+)_", row.key)]
    if told and row.evaluator not in _NAMED and sum(told) != row.quantity:
        yield f"its name says {sum(told)}, its quantity is {row.quantity}"
    if row.evaluator in ("open", "close"):
        wanted = row.object.split(", ")
        if len(wanted) > 1 and "Deluxe" not in row.object:
            yield f"the released code compares buildings with {row.object!r}, which none is named"
        if lacking := [each for each in wanted if each not in _HOUSES[row.save]]:
            yield f"its save has no {' and no '.join(lacking)}"
    if row.evaluator == "clear" and row.object == "Stone" and "hoe" in row.key:
        yield f"its name says hoe, its tool is {row.tool}"
    if row.evaluator == "profession" and row.object in _UNREPORTED:
        yield f"the released mod never reports the profession {row.object}"
