"""Every option of every job and every plug-in is named in some page of the docs, as code."""

import dataclasses
import importlib
import re
import tomllib
import typing
from pathlib import Path

from pydantic import BaseModel

from rollout.commands.gamut import COMMANDS
from rollout.train.jobs import _JOBS

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def loaded(target):
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def classes(annotation):
    """The groups of options in the type of an option."""
    if isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)
    ):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from classes(inner)


def options(group, found):
    """Adds the options of a group, and of those within, to ``found``: their groups by name."""
    if issubclass(group, BaseModel):
        types = {name: field.annotation for name, field in group.model_fields.items()}
    else:
        hints = typing.get_type_hints(group)
        types = {each.name: hints[each.name] for each in dataclasses.fields(group) if each.init}
    for name, annotation in types.items():
        if group.__name__ not in found.setdefault(name, set()):
            found[name].add(group.__name__)
            for inner in classes(annotation):
                options(inner, found)


def all_options():
    found = {}
    jobs = [command.config for command in COMMANDS.values() if command.config]
    for target in (*jobs, *(config for _, config in _JOBS.values())):
        options(loaded(target), found)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for group, entries in project["entry-points"].items():
        for target in entries.values() if group.startswith("gamut.") else ():
            options(loaded(target), found)
    return found


def undocumented(names, text):
    """The names that are nowhere in the code of a page."""
    said = set(re.findall(r"\w+", " ".join(CODE.findall(text))))
    return sorted(set(names) - said)


def test_every_option_is_named_in_the_docs():
    found = all_options()
    assert {"bridge", "gae_lambda", "timeout_s", "rgb_width", "function"} <= found.keys()
    text = "\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    missing = undocumented(found, text)
    assert not missing, "\n".join(f"{name} of {', '.join(sorted(found[name]))}" for name in missing)


def test_a_name_in_prose_is_not_documented():
    assert undocumented(["area", "days", "at"], "The area of `days`.\n```\nat: 1\n```") == ["area"]
