"""Auto-battle and the search player as functions for the policy ``callable``.

They read the whole battle from an observation: ``bridge.snapshots=true``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bridges.starbench.options import NO_OP, SNAPSHOT
from bridges.starbench.oracle import auto, search
from bridges.starbench.rules.battle import Battle
from rollout.api import Array, Columns
from rollout.errors import ConfigError


def auto_battle(observations: Columns) -> Array:
    """Returns what auto-battle plays, ``(B,)``."""
    return _each(observations, auto.choose)


def search_player(observations: Columns) -> Array:
    """Returns what the search player plays, ``(B,)``; some seconds for a battle."""
    return _each(observations, search.choose)


def _each(observations: Columns, choose: Callable[[Any], int]) -> Array:
    if SNAPSHOT not in observations:
        raise ConfigError(
            f"auto-battle and search read the observation {SNAPSHOT}, got "
            f"{', '.join(observations)}; set bridge.snapshots=true"
        )
    chosen = np.full(len(observations[SNAPSHOT]), NO_OP, np.int64)
    for row, data in enumerate(observations[SNAPSHOT]):
        saved = data.tobytes().rstrip(b"\0")
        battle = Battle.from_snapshot(saved) if saved else None
        if battle is not None and battle.outcome is None:
            chosen[row] = choose(battle)
    return chosen
