"""Finds plug-ins by name. Entry points are the only plug-in mechanism.

A package adds a game, a policy or an evaluator by naming its class in its ``pyproject.toml``::

    [project.entry-points."gamut.bridges"]
    mygame = "mypackage.bridge:MyGameBridge"

Nothing is imported before it is asked for, so a broken plug-in never harms a run that does not
use it, and one that is asked for is never skipped in silence.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from rollout.errors import ContractError, InputError, UnknownNameError

Group: TypeAlias = Literal["bridges", "policies", "evaluators"]
"""The kinds of plug-ins; each is the entry-point group ``gamut.<kind>``."""

GROUPS: tuple[Group, ...] = get_args(Group)

SINGULAR: dict[Group, str] = {"bridges": "bridge", "policies": "policy", "evaluators": "evaluator"}
"""What one plug-in of a group is called, in messages and as the key of a configuration."""


class PluginImportError(InputError, ImportError):
    """A plug-in is installed under the name that was asked for, but cannot be loaded."""


def names(group: Group) -> tuple[str, ...]:
    """Returns the names of every installed plug-in of a group, sorted; imports none of them.

    Raises:
        UnknownNameError: there is no such group.
    """
    return tuple(sorted({point.name for point in _points(group)}))


def load_plugin(group: Group, name: str) -> type:
    """Returns the class of a plug-in.

    Args:
        group: ``"bridges"``, ``"policies"`` or ``"evaluators"``.
        name: the name its distribution registered it under.

    Raises:
        UnknownNameError: no such plug-in; the message lists those there are, nearest first.
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
    # error, a failed licence check. All of them mean the same thing here, and none is hidden.
    except Exception as error:
        raise PluginImportError(
            f"{SINGULAR[group]} {name!r} of {_distribution(point)} cannot be imported from "
            f"{point.value!r}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(plugin, type):
        raise ContractError(
            f"{SINGULAR[group]} {name!r} of {_distribution(point)}: expected {point.value!r} to "
            f"name a class, got {type(plugin).__name__}; correct its entry point"
        )
    return plugin


def _points(group: str) -> EntryPoints:
    if group not in GROUPS:
        raise UnknownNameError("plug-in group", group, GROUPS)
    return _installed(f"gamut.{group}", tuple((place, _changed(place)) for place in sys.path))


@lru_cache(maxsize=8)
def _installed(group: str, _places: tuple[tuple[str, int], ...]) -> EntryPoints:
    """Reads what is installed, once: hundreds of files, whenever a plug-in is named."""
    return entry_points(group=group)


def _changed(place: str) -> int:
    """When something was last installed into a folder of the path, or taken away."""
    try:
        return Path(place or ".").stat().st_mtime_ns
    except OSError:
        return 0


def _distribution(point: EntryPoint) -> str:
    """Name and version of the distribution that registered an entry point."""
    if point.dist is None:
        return "an unknown distribution"
    return f"{point.dist.name} {point.dist.version}"
