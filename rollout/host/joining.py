"""Rows of several instances as one batch for the policy, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollout.api import Array, Columns, Details


def join_columns(columns: Sequence[Columns]) -> Columns:
    """Returns the rows of all, one after the other."""
    return {key: np.concatenate([c[key] for c in columns]) for key in columns[0]}


def part_of(columns: Columns, rows: slice) -> Columns:
    """Returns a copy of some rows."""

    def copy(array: Array) -> Array:
        return array[rows].copy()

    return {key: copy(array) for key, array in columns.items()}


def filled(details: Sequence[Details | None] | None) -> list[Details] | None:
    """Returns details with an empty mapping where a slot has none."""
    return None if details is None else [d if d is not None else {} for d in details]


def join_details(parts: Sequence[list[Details] | None], width: int) -> list[Details] | None:
    """Returns the details of all, ``width`` rows each; None if no slot has any."""
    if all(part is None for part in parts):
        return None
    blank: list[Details] = [{}] * width
    return [entry for part in parts for entry in (part if part is not None else blank)]
