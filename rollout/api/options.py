"""How a plug-in declares its options: a frozen dataclass, each field documented beside it."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def option(default: Any, doc: str, *, unit: str = "", choices: tuple[Any, ...] = ()) -> Any:
    """Returns a dataclass field with its documentation, its unit and its valid values.

    A bridge, a policy and an evaluator are frozen dataclasses whose fields *are* their
    configuration keys: ``bridge.id`` is the field ``id`` of the bridge. Whatever is written here
    is what ``--help`` prints and what the checker of configurations enforces.

    Args:
        default: the value when the key is not given; mutable defaults must be a factory.
        doc: one sentence, shown by ``--help``.
        unit: e.g. ``"s"``, ``"steps"``; empty for a pure number or a name.
        choices: the only valid values, if there is a closed list.
    """
    metadata = {"doc": doc, "unit": unit, "choices": choices}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)
