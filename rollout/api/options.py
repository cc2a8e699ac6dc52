"""Declaration of a plug-in's options: a frozen dataclass with documented fields."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def option(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    choices: tuple[Any, ...] = (),
    gt: float | None = None,
    ge: float | None = None,
    le: float | None = None,
) -> Any:
    """Returns a dataclass field with its documentation, its unit and its valid values.

    Bridges, policies, evaluators and algorithms are frozen dataclasses whose fields *are* their
    configuration keys: ``bridge.id`` is the field ``id`` of the bridge. Whatever is written here
    is what ``--help`` prints and what the checker of configurations enforces.

    Args:
        default: the value when the key is not given; mutable defaults must be a factory.
        doc: one sentence, shown by ``--help``.
        unit: e.g. ``"s"``, ``"steps"``; empty for a pure number or a name.
        choices: the only valid values, if there is a closed list.
        gt: the value must be greater than this; such bounds allow no infinity and no NaN.
        ge: the value must be at least this.
        le: the value must be at most this.
    """
    bounds = {name: b for name, b in (("gt", gt), ("ge", ge), ("le", le)) if b is not None}
    metadata = {"doc": doc, "unit": unit, "choices": choices, "bounds": bounds}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)
