"""MineLand's task files, of a user's own copy: what each id asks. Nothing in them is executed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from bridges.mineflayer.mcu_files import find_files
from bridges.mineflayer.names import names
from bridges.mineflayer.scripts import VERBS, Act
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.yaml12 import load_yaml

DATA = ("creative", "construction", "stage_performance")
"""Families whose ids mean nothing without their rows."""


@dataclass(frozen=True)
class Row:
    """One id of the files.

    Attributes:
        id: the id.
        family: one of ``DATA``.
        goal: what is asked: the goal, or the script of a play; empty where there is only a picture.
        guidance: advice; empty for none.
        give: initial items, ``{item: n}``, of plays ``{actor.item: n}``.
        left_out: initial items that the version does not have.
        actors: names of the agents of a play.
        personalities: of actors, a word each.
        acts: the actions of a play that must happen, in this order.
        commands: of the server, at the start of a play.
        picture: file of the blueprint; empty for none.
        baseline: file of a picture of what it is compared with; empty for none.
    """

    id: str
    family: str
    goal: str = ""
    guidance: str = ""
    give: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    personalities: Mapping[str, str] = field(default_factory=dict)
    acts: tuple[Act, ...] = ()
    commands: tuple[str, ...] = ()
    picture: str = ""
    baseline: str = ""


def load_files(folder: str) -> Mapping[str, Row]:
    """Returns the rows of a copy's creative, construction and stage performance tasks, by id.

    Args:
        folder: ``mineland/tasks/description_files`` of the copy; empty for no rows.

    Raises:
        ConfigError: there is no such file, or it holds something that is no task.
    """
    if not folder:
        return {}
    files = [Path(folder).expanduser() / f"{family}_tasks.yaml" for family in DATA]
    there = [file for file in files if file.is_file()]
    if not there:
        if find_files(folder):
            return {}
        raise ConfigError(
            f"task_files={folder}: no file such as {files[0].name} there, and no task file of MCU; "
            f"expected mineland/tasks/description_files of a copy of MineLand, or task_configs of "
            f"MCU or MineStudio"
        )
    return _load(tuple((str(file), file.stat().st_mtime_ns) for file in there))


@lru_cache
def _load(files: tuple[tuple[str, int], ...]) -> Mapping[str, Row]:
    rows: dict[str, Row] = {}
    for name, _ in files:
        file = Path(name)
        family = file.stem.removesuffix("_tasks")
        for key, fields in read_file(file).items():
            try:
                rows[str(key)] = _row(str(key), family, fields, file.parent)
            except InputError as error:
                raise ConfigError(f"{file}: {key}: {error}") from error
    return rows


def read_file(file: Path) -> Mapping[Any, Any]:
    """Returns what a task file holds, by id."""
    data = load_yaml(file)
    if not isinstance(data, dict):
        raise ConfigError(f"{file}: expected a mapping of tasks, got {type(data).__name__}")
    return data


def _row(key: str, family: str, fields: Any, folder: Path) -> Row:
    fields = {} if fields is None and family == "construction" else fields
    if not isinstance(fields, dict):
        raise ConfigError(f"expected a mapping, got {fields!r}")
    if family == "stage_performance":
        return _play(key, fields)
    give, left_out = _items(fields.get("initial_inventory"))

    def picture(kind: str) -> str:
        file = folder / "construction_tasks_pictures" / f"{key}_{kind}.png"
        return str(file) if family == "construction" and file.is_file() else ""

    return Row(
        key,
        family,
        goal=_text(fields, "goal"),
        guidance=_text(fields, "guidance"),
        give=give,
        left_out=left_out,
        picture=picture("blueprint"),
        baseline=picture("baseline"),
    )


def _play(key: str, fields: Mapping[str, Any]) -> Row:
    actors, acts = _list(fields, "agent_names"), _list(fields, "critical_point")
    if not actors or not acts or not all(isinstance(each, str) for each in actors):
        raise ConfigError("agent_names and critical_point: expected names and actions")
    for act in acts:
        if not isinstance(act, list) or len(act) != 3 or not all(isinstance(x, str) for x in act):
            raise ConfigError(f"critical_point: expected actor, verb and object, got {act!r}")
        for what, name, valid in (("actor", act[0], actors), ("verb", act[1], VERBS)):
            if name not in valid:
                raise UnknownNameError(what, name, valid)
    give: dict[str, int] = {}
    left: list[str] = []
    for actor, given in (fields.get("initial_inventory") or {}).items():
        items, missing = _items(given)
        give |= {f"{actor}.{item}": count for item, count in items.items()}
        left += missing
    people = fields.get("personalities") or {}
    return Row(
        key,
        "stage_performance",
        goal=_text(fields, "script"),
        give=give,
        left_out=tuple(left),
        actors=tuple(actors),
        personalities={actor: str(people[actor]) for actor in actors if actor in people},
        acts=tuple((act[0], act[1], act[2]) for act in acts),
        commands=tuple(str(each) for each in _list(fields, "system_instructions")),
    )


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{key}: expected a text, got {value!r}")
    return value or ""


def _list(fields: Mapping[str, Any], key: str) -> list[Any]:
    value = fields.get(key) or []
    if not isinstance(value, list):
        raise ConfigError(f"{key}: expected a list, got {value!r}")
    return value


def _items(given: Any) -> tuple[dict[str, int], tuple[str, ...]]:
    """Items by the game's names, and those that it lacks; names may be as the game shows them."""
    counts = given or {}
    if not isinstance(counts, dict) or not all(
        isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in counts.values()
    ):
        raise ConfigError(f"initial_inventory: expected numbers of items, got {given!r}")
    plain = {re.sub(r"\W+", "_", str(name).strip().lower()): n for name, n in counts.items()}
    there = {name: n for name, n in plain.items() if name in names().items}
    return there, tuple(name for name in plain if name not in there)
