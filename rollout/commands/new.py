"""Writes the skeleton of a plug-in: bridge, policy, evaluator or algorithm.

    gamut new bridge my_game

The package is a small example that works, with its test; replace the example by your own code.
Exit status: 0 the package was written, 2 invalid input, nothing was written.
"""

from __future__ import annotations

import argparse
import importlib.util
import keyword
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.files import local_path
from rollout.registry import SINGULAR, Group, names
from rollout.signals import say, tell

TEMPLATES = Path(__file__).parents[1] / "templates"
"""Templates: a folder for each kind of package, and ``common`` for all kinds."""

_SUFFIX, _NAME = ".tmpl", "NAME"  # of template files; stands for the package's name in their paths
_CLASSES: Mapping[str, str] = {
    "bridge": "Bridge",
    "policy": "Policy",
    "evaluator": "Recipe",
    "algorithm": "Algorithm",
}
_GROUPS: dict[str, Group] = {kind: group for group, kind in SINGULAR.items()}
# A distribution must not end in an underscore.
_VALID = re.compile(r"[a-z](?:[a-z0-9_]*[a-z0-9])?")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        written = write_package(asked.kind, asked.name, asked.out or Path(asked.name))
    except (InputError, OSError) as error:
        say(f"error: {error}")
        return 2
    tell("\n".join(map(str, written)))
    tell(f"next: cd {asked.out or asked.name} and follow README.md")
    return 0


def write_package(kind: str, name: str, folder: Path) -> list[Path]:
    """Writes a new package and returns its files.

    Args:
        kind: ``bridge``, ``policy``, ``evaluator`` or ``algorithm``.
        name: name of the plug-in, of its package and of its distribution.
        folder: folder to write; must not exist, or be empty.

    Raises:
        UnknownNameError: there is no such kind.
        ConfigError: the name is not valid or taken, or the folder contains something.
        OSError: the folder cannot be written.
    """
    if kind not in _CLASSES:
        raise UnknownNameError("kind of package", kind, _CLASSES)
    _check_name(kind, name)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ConfigError(
            f"{folder} exists; nothing is overwritten: choose another name, or another folder "
            f"with --out"
        )
    camel = "".join(part.capitalize() for part in name.split("_"))
    values = {
        "name": name,
        "Name": camel,
        "group": _GROUPS[kind],
        "plugin": camel + _CLASSES[kind],
    }
    texts = {}
    for root in (TEMPLATES / "common", TEMPLATES / kind):
        for source in sorted(root.rglob(f"*{_SUFFIX}")):
            file = source.relative_to(root).as_posix().removesuffix(_SUFFIX).replace(_NAME, name)
            texts[folder / file] = Template(source.read_text("utf-8")).substitute(values)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return list(texts)


def _check_name(kind: str, name: str) -> None:
    if not _VALID.fullmatch(name) or keyword.iskeyword(name):
        near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")
        hint = f"; nearest: {near}" if _VALID.fullmatch(near) and near != name else ""
        raise ConfigError(
            f"name: expected an identifier in lower case, e.g. my_{kind}, got {name!r}{hint}"
        )
    if name in names(_GROUPS[kind]):
        raise ConfigError(f"name: there is already a {kind} {name!r}; choose another name")
    if importlib.util.find_spec(name) is not None:
        raise ConfigError(
            f"name: there is already a module {name!r}, which the package would hide; choose "
            f"another name"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", help=f"what it adds: {', '.join(_CLASSES)}")
    parser.add_argument("name", help="its name, e.g. my_game")
    parser.add_argument("--out", type=local_path, help="folder to write; by default NAME")
    return parser
