"""Names of action values for people: captions of videos, help of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from rollout.errors import ContractError

Labels: TypeAlias = Mapping[str, Sequence[str]]
"""Names by column of an action space.

* ``Discrete``: one for each value. ``MultiBinary`` in one dimension: one for each bit.
* ``MultiDiscrete`` in one dimension: one for each position, ``{"camera": ("pitch", "yaw")}``; the
  values of a place under the column and the place, ``{"camera/pitch": ("-10", ..., "10")}``.
"""

NOTHING = "nothing"
"""Name of an action without any bit set."""


def check_labels(space: spaces.Dict, labels: Labels) -> None:
    """Checks that labels fit an action space.

    Raises:
        ContractError: a label names an unknown column, or there are too many or too few.
    """
    wanted = _counts(space, labels)
    for column, names in labels.items():
        if column not in wanted:
            raise ContractError(
                f"action_labels: no names can be given for {column!r}; "
                f"valid: {', '.join(wanted) or 'none'}"
            )
        if isinstance(names, str) or len(names) != wanted[column]:
            raise ContractError(
                f"action_labels: expected {wanted[column]} names for {column!r}, "
                f"got {names if isinstance(names, str) else len(names)!r}"
            )


def _counts(space: spaces.Dict, labels: Labels) -> dict[str, int]:
    """Number of names of each column, or position of a column."""
    counts: dict[str, int] = {}
    for column, leaf in space.spaces.items():
        if isinstance(leaf, spaces.Discrete):
            counts[column] = int(leaf.n)
        elif isinstance(leaf, spaces.MultiBinary) and len(leaf.shape) == 1:
            counts[column] = leaf.shape[0]
        elif isinstance(leaf, spaces.MultiDiscrete) and len(leaf.shape) == 1:
            counts[column] = leaf.shape[0]
            places = zip(labels.get(column, ()), leaf.nvec.tolist(), strict=False)
            counts |= {f"{column}/{place}": int(n) for place, n in places}
    return counts


def describe_action(space: spaces.Dict, labels: Labels, action: Mapping[str, Any]) -> str:
    """Returns one action in words.

    Args:
        space: the action space.
        labels: its names; values without a name are shown as numbers, after their column.
        action: one row: a value of each column; missing columns are omitted.
    """
    parts = []
    leaves = space.spaces
    # In the order of the labels: a gymnasium Dict sorts its columns by name.
    for column in dict.fromkeys([*labels, *leaves]):
        if column not in action or column not in leaves:
            continue
        leaf, value = leaves[column], action[column]
        if column in labels:
            parts.append(_named(column, leaf, labels, value))
        else:
            several = len(leaves) > 1
            parts.append(f"{column} {_plain(value)}" if several else _plain(value))
    return "  ".join(parts)


def _named(column: str, leaf: spaces.Space[Any], labels: Labels, value: Any) -> str:
    names = labels[column]
    if isinstance(leaf, spaces.Discrete):
        return names[int(value) - int(leaf.start)]
    row = np.asarray(value).ravel().tolist()
    if isinstance(leaf, spaces.MultiBinary):
        return "+".join(name for name, on in zip(names, row, strict=True) if on) or NOTHING
    firsts = np.asarray(getattr(leaf, "start", 0)) + np.zeros(len(row), np.int64)
    shown = []
    for place, number, first in zip(names, row, firsts.tolist(), strict=True):
        values = labels.get(f"{column}/{place}")
        shown.append(f"{place} {number if values is None else values[int(number) - int(first)]}")
    return " ".join(shown)


def _plain(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        flat = value.ravel().tolist()
        numbers = [v if isinstance(v, str) else f"{v:g}" for v in flat[:8]]
        return f"[{' '.join(numbers)}{' ...' if len(flat) > 8 else ''}]"
    return f"{value:g}" if isinstance(value, np.number | float) else str(value)
