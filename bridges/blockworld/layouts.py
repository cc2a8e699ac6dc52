"""Action layouts by name, and subsets of ``compact``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from bridges.blockworld.actions import COMPACT, LAYOUTS, Layout
from rollout.api import Array, Columns
from rollout.errors import ConfigError, SpaceError, UnknownNameError


def layout_of(name: str, chosen: Sequence[str] = ()) -> Layout:
    """Returns a layout by its name; for ``compact``, optionally with a subset of its actions.

    Args:
        name: one of ``LAYOUTS``.
        chosen: the actions of ``compact`` to offer, in this order; all when empty.

    Raises:
        UnknownNameError: there is no such action.
        ConfigError: actions were chosen for another layout.
    """
    layout = LAYOUTS[name]
    if not chosen:
        return layout
    if name != "compact":
        raise ConfigError(
            f"only the actions of compact can be chosen one by one, and actions={name}; "
            f"set actions=compact, or leave compact_actions empty"
        )
    for action in chosen:
        if action not in COMPACT:
            raise UnknownNameError("compact action", action, COMPACT)
    places = {action: place for place, action in enumerate(chosen)}
    numbers = np.array([COMPACT.index(action) for action in chosen], np.int64)

    def decode(columns: Mapping[str, Array], worlds: Array, out: Array) -> None:
        action = columns["action"]
        if action.size and not 0 <= action.min() <= action.max() < len(numbers):
            raise SpaceError(
                f"action column 'action': expected 0 to {len(numbers) - 1}, got {action.tolist()}"
            )
        layout.decode({"action": numbers[action]}, worlds, out)

    def encode(keys: Array, pitch: Array, yaw: Array, worlds: Array | None = None) -> Columns:
        whole = layout.encode(keys, pitch, yaw, worlds)["action"]
        names = [COMPACT[n] for n in whole.tolist()]
        missing = sorted(set(names) - set(chosen))
        if missing:
            raise ConfigError(f"compact_actions leaves out {', '.join(missing)}; add them")
        return {"action": np.array([places[name] for name in names], np.int64)}

    def describe(row: Mapping[str, Any]) -> str:
        return tuple(chosen)[int(row["action"])]

    space = spaces.Dict({"action": spaces.Discrete(len(numbers))})
    return Layout(name, space, {"action": tuple(chosen)}, decode, encode, describe)
