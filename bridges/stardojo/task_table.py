"""StarDojo's tasks as rows: the 100 of Lite, and a user's own copy of the files of all 1,000."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bridges.stardojo.commands import SAVES, table
from bridges.stardojo.evaluators import RULES
from bridges.stardojo.task_row import STEPS, TaskRow, plain
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
    numbers = [int(a or b) for a, b in re.findall(r"^\D*?_(\d+)_|_and_(\d+)_", row.key)]
    if numbers and row.evaluator not in _NAMED and sum(numbers) != row.quantity:
        yield f"its name says {sum(numbers)}, its quantity is {row.quantity}"
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


NO_TASK = "none"
SUITE = "lite"
GOAL = "Do the task that you are given in Stardew Valley."
SAME = "save"
"""Value of a factor that leaves a save as it is."""
WIDE = "_wide"
"""Ends the name of a task from all states, to measure generalization."""
_OF_THE_TASK = "hour"
"""A factor that tasks set themselves, so that it is the task's in its wide form too."""


@dataclass(frozen=True)
class StardojoTasks:
    """Makes tasks by the names of rows; ``lite`` is all 100, ``lite_farming`` and so on a category.

    The tasks of a user's file ``farming.yaml`` are ``farming/NAME``, and all of them ``farming``.
    ``NAME_wide`` is the task NAME from every season, day, weather, layout and so on. Quotation
    marks in a name, as StarDojo's files have them, are ignored.

    Attributes:
        rows: by name.
        limits: see ``task_row.TaskRow.steps``.
        longer: how many steps stand for one of those.
        factors: those that stay as the save has them, unless a task file says otherwise.
    """

    rows: Mapping[str, TaskRow]
    limits: str = "paper"
    longer: int = 1
    factors: tuple[str, ...] = ()

    def names(self) -> Iterable[str]:
        """Returns the names of all tasks, suites first."""
        return (*self._suites(), *self.rows, *(name + WIDE for name in self.rows))

    def _suites(self) -> dict[str, list[str]]:
        own = {name: row for name, row in self.rows.items() if name in lite()}
        categories = dict.fromkeys(row.category for row in own.values())
        named = {f"{SUITE}_{c}": [n for n, r in own.items() if r.category == c] for c in categories}
        files: dict[str, list[str]] = {}
        for name in self.rows:
            if "/" in name:
                files.setdefault(name.partition("/")[0], []).append(name)
        return {SUITE: list(own), **named, **files}

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Returns the contents of a task's file; see ``rollout.api.bridge.TaskMaker``."""
        name = plain(name)
        suites, wide = self._suites(), name.endswith(WIDE)
        row = name.removesuffix(WIDE)
        if name not in suites and row not in self.rows:
            return None
        members = suites.get(name, [row])
        fixed = [each for each in self.factors if not wide or each == _OF_THE_TASK]
        steps = [self.rows[each].steps(self.limits) for each in members]
        longest = None if None in steps else max(each or 1 for each in steps)
        one = self.rows.get(row)
        return {
            "name": name,
            "goal": one.goal if one else GOAL,
            "state_space": {"task": members, **dict.fromkeys(fixed, SAME)},
            "evaluator": {"name": "signal_goal", "signal": "task/share", "target": 1},
            # The game cuts each task at its own limit; these are the longest.
            **({"limits": {"steps": longest * self.longer}} if longest else {}),
            "difficulty": one.difficulty if one else "",
            "metadata": {"source": "StarDojo", "table": self._table(members)},
        }

    def _table(self, members: list[str]) -> dict[str, Any]:
        rows = [(name, self.rows[name]) for name in members]
        return {
            "factor": "task",
            "rows": {name: row.difficulty.capitalize() for name, row in rows},
            "columns": {name: row.category.capitalize() for name, row in rows},
        }
