"""Criteria of tasks: the points that a judge looks at in one task.

They come from a file that a user names (YAML, or the text files of MCU), from the task
(``metadata.criteria``), from Gamut's own in the folder ``families``, or from a model. A file has
the names of its tasks, in which ``*`` stands for anything; the most exact one counts::

    tasks: [combat_*, shoot_*]
    criteria:
      progress: [whether the agent finds the mob, whether the mob dies]
      control: [e.g. strikes at the air]
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rollout.errors import ConfigError, UnknownNameError
from rollout.files import read_document
from rollout.judge.replies import TITLES
from rollout.judge.rubric import Rubric
from rollout.models.chat_api import json_object, shorten
from rollout.yaml12 import load_yaml

GENERATE = "generate"
"""The value of ``criteria`` that lets the model write them."""

Criteria = Mapping[str, tuple[str, ...]]
"""Points by criterion."""

_FAMILIES = Path(__file__).with_name("families")
_HEADING = re.compile(r"\*\*\s*(.+?)\s*\*\*\s*$")
_POINT = re.compile(r"^\s*[-*\u2022]\s+(.+)$")


def parse_text(text: str, source: str) -> Criteria:
    """Returns the criteria of a text file of MCU: headings between ``**``, points below them.

    Raises:
        ConfigError: it has none of the six headings.
    """
    found: dict[str, list[str]] = {}
    section: list[str] | None = None
    for line in text.splitlines():
        if heading := _HEADING.match(line.strip()):
            name = heading[1].partition(":")[0].strip().lower()
            key = next((key for key, title in TITLES.items() if title.lower() == name), None)
            section = None if key is None else found.setdefault(key, [])
        elif section is not None and (point := _POINT.match(line)):
            section.append(point[1].strip())
    if not found:
        raise ConfigError(
            f"{source}: expected headings such as **{TITLES['progress']}**, found none"
        )
    return {name: tuple(points) for name, points in found.items()}


def parse_data(data: Any, rubric: Rubric, source: str) -> Criteria:
    """Returns criteria from plain data: lists of points by criterion.

    Raises:
        ConfigError: it is something else.
        UnknownNameError: the rubric has no such criterion.
    """
    if not isinstance(data, Mapping) or not data:
        raise ConfigError(f"{source}: expected lists of points by criterion, got {shorten(data)}")
    for name, points in data.items():
        if name not in rubric.criteria:
            raise UnknownNameError(f"criterion in {source}", str(name), rubric.criteria)
        if not isinstance(points, list | tuple) or not all(isinstance(p, str) for p in points):
            raise ConfigError(f"{source}: {name}: expected a list of texts, got {shorten(points)}")
    return {str(name): tuple(points) for name, points in data.items()}


def read_criteria(path: Path, rubric: Rubric) -> Criteria:
    """Returns the criteria of a file, by its ending: ``.yaml``, or a text file of MCU.

    Raises:
        ConfigError: it cannot be read, or has no criteria.
    """
    if path.suffix in (".yaml", ".yml"):
        data = load_yaml(path)
        inner = data.get("criteria", data) if isinstance(data, Mapping) else data
        return parse_data(inner, rubric, str(path))
    try:
        return parse_text(read_document(path).decode(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"criteria: {path} cannot be read: {error}") from error


def given_criteria(path: str, task: str, rubric: Rubric) -> Criteria | None:
    """Returns the criteria of a task from a file, or from the folder of a user.

    Returns:
        None if the folder has no file of the task.

    Raises:
        ConfigError: there is no such file or folder, or the file cannot be read.
    """
    place = Path(path).expanduser()
    if place.is_file():
        return read_criteria(place, rubric)
    if not place.is_dir():
        raise ConfigError(
            f"criteria: there is no file or folder {path}; expected criteria of one task, a folder "
            f"with {task}.txt or {task}.yaml, {GENERATE}, or nothing for those of the task"
        )
    for ending in (".yaml", ".yml", ".txt"):
        if (place / f"{task}{ending}").is_file():
            return read_criteria(place / f"{task}{ending}", rubric)
    return None


def own_criteria(name: str, metadata: Mapping[str, Any], rubric: Rubric) -> Criteria | None:
    """Returns the criteria that a task has itself, or Gamut's for tasks of its name; None for none.

    Args:
        name: name of the task.
        metadata: of the task.
        rubric: the rubric.

    Raises:
        InputError: the task's own are not of the form of the rubric.
    """
    if metadata.get("criteria"):
        return parse_data(metadata["criteria"], rubric, f"task {name}: metadata.criteria")
    fitting = [
        (len(pattern.replace("*", "")), file)
        for file in sorted(_FAMILIES.glob("*.yaml"))
        for pattern in load_yaml(file)["tasks"]
        if fnmatchcase(name, pattern)
    ]
    return read_criteria(max(fitting)[1], rubric) if fitting else None


def request_of(rubric: Rubric, task: str, goal: str) -> list[dict[str, Any]]:
    """Returns the messages that ask a model for the criteria of a task.

    Raises:
        ConfigError: the rubric does not say how they are written.
    """
    if not rubric.generate:
        raise ConfigError(f"criteria={GENERATE}: the rubric has no text `generate`; add it")
    names = ", ".join(f'"{name}": ["point", ...]' for name in rubric.criteria)
    dimensions = "\n".join(f"- {name}: {each.doc}" for name, each in rubric.criteria.items())
    system = (
        f"{rubric.generate.strip()}\n\nDimensions:\n{dimensions}\n\n"
        f"Answer with one JSON object and nothing else: {{{names}}}"
    )
    asked = f"The task {task}, quoted: {json.dumps(goal or task, ensure_ascii=False)}"
    return [{"role": "system", "content": system}, {"role": "user", "content": asked}]


def read_generated(answer: str, rubric: Rubric) -> Criteria:
    """Returns the criteria that a model wrote.

    Raises:
        ValueError: they are not of the asked form.
    """
    found = parse_data(json_object(answer), rubric, "the answer")
    if missing := [name for name in rubric.criteria if not found.get(name)]:
        raise ValueError(f"expected points of every dimension, none of {', '.join(missing)}")
    return found
