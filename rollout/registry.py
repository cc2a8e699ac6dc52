"""Finds plug-ins by name. Entry points are the only plug-in mechanism.

A package adds a game, a policy, an evaluator, an algorithm, an exporter or an importer by naming
its class in its ``pyproject.toml``::

    [project.entry-points."gamut.bridges"]
    mygame = "mypackage.bridge:MyGameBridge"

Nothing is imported before it is requested, so a broken plug-in does not affect runs that do not
use it, and a requested plug-in is never skipped silently.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Literal, TypeAlias

from rollout.errors import ContractError, InputError, UnknownNameError, located

Group: TypeAlias = Literal[
    "algorithms", "bridges", "policies", "evaluators", "exporters", "importers"
]
"""The kinds of plug-ins; each is the entry-point group ``gamut.<kind>``."""

SINGULAR: dict[Group, str] = {
    "algorithms": "algorithm",
    "bridges": "bridge",
    "policies": "policy",
    "evaluators": "evaluator",
    "exporters": "exporter",
    "importers": "importer",
}
"""Singular of a group's name, in messages and as the configuration key."""

_INFO = (".dist-info", ".egg-info", "egg-info")


class PluginImportError(InputError, ImportError):
    """A plug-in is installed under the requested name, but cannot be loaded."""


def names(group: Group) -> tuple[str, ...]:
    """Returns the names of every installed plug-in of a group, sorted; imports none of them.

    Raises:
        UnknownNameError: there is no such group.
    """
    return tuple(sorted({point.name for point in _points(group)}))


def load_plugin(group: Group, name: str) -> type:
    """Returns the class of a plug-in, by the name its distribution registered it under.

    Raises:
        UnknownNameError: no such plug-in; the message lists the existing ones, nearest first.
        PluginImportError: it cannot be imported, or two distributions claim the name; the message
            names the distribution and the cause.
        ContractError: the entry point names something that is not a class.
    """
    points = [point for point in _points(group) if point.name == name]
    if not points:
        raise UnknownNameError(SINGULAR[group], name, names(group))
    claims = {point.value: point for point in points}
    if len(claims) > 1:
        claimed = " and ".join(f"{_distribution(p)} ({p.value})" for p in claims.values())
        raise PluginImportError(
            f"{SINGULAR[group]} {name!r} is claimed by {claimed}; uninstall one of them"
        )
    (point,) = claims.values()
    try:
        plugin = point.load()
    # A plug-in's module may raise anything while it is imported: a missing library, a syntax
    # error, a failed licence check, an exit. All of them are reported in the same way.
    except (Exception, SystemExit) as error:
        raise PluginImportError(
            f"{SINGULAR[group]} {name!r} of {_distribution(point)} cannot be imported from "
            f"{point.value!r}: {located(type(error).__name__, str(error), error)}"
        ) from error
    if not isinstance(plugin, type):
        raise ContractError(
            f"{SINGULAR[group]} {name!r} of {_distribution(point)}: expected {point.value!r} to "
            f"name a class, got {type(plugin).__name__}; correct its entry point"
        )
    return plugin


def _points(group: str) -> EntryPoints:
    if group not in SINGULAR:
        raise UnknownNameError("plug-in group", group, SINGULAR)
    return _installed(f"gamut.{group}", tuple((place, *_packages(place)) for place in sys.path))


@lru_cache(maxsize=32)
def _installed(group: str, _places: tuple[tuple[str | int, ...], ...]) -> EntryPoints:
    """Reads the installed entry points once, since this opens hundreds of files."""
    return entry_points(group=group)


def _packages(place: str) -> tuple[str | int, ...]:
    """Returns what changes when something is installed into a folder of ``sys.path``, or removed.

    The time of the folder would not do: runs may write their files beside the script.
    """
    folder = Path(place or ".")
    try:
        return _packages_at(folder, folder.stat().st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=128)
def _packages_at(folder: Path, changed: int) -> tuple[str | int, ...]:
    if not folder.is_dir():  # an archive
        return (changed,)
    found = [each for each in folder.iterdir() if each.name.lower().endswith(_INFO)]
    return tuple(part for each in sorted(found) for part in (each.name, each.stat().st_mtime_ns))


def _distribution(point: EntryPoint) -> str:
    """Returns name and version of the distribution that registered an entry point."""
    if point.dist is None:
        return "an unknown distribution"
    return f"{point.dist.name} {point.dist.version}"
