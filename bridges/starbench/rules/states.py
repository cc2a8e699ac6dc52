"""The state space: what a battle can start from."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

from rollout.api import Factor, StateSpace

BATTLES = (
    *("cocolia", "phantylia", "swarm_king", "theater", "feixiao"),
    *("xianzhou", "cliched", "stardevourer"),
)
LEVELS = (-10, -5, 0, 5, 10)
SCRIPTS = 10_000
WEAKNESSES = ("native", "all", "quantum", "other")

SPACE = StateSpace(
    (
        Factor("battle", BATTLES, doc="which battle"),
        Factor("level", LEVELS, "levels", "level of the enemies, above the battle's own"),
        Factor(
            *("weakness", WEAKNESSES),
            doc="what enemies are weak to: as in the game, all, Quantum alone, all but Quantum",
        ),
        Factor(
            *("order", tuple("".join(map(str, each)) for each in permutations(range(4)))),
            doc="characters by slot: 0 Seele, 1 Sparkle, 2 Silver Wolf, 3 Fu Xuan",
        ),
        Factor("energy", (0, 25, 50, 75, 100), "%", "energy of the team at the start"),
        Factor("hp", (25, 50, 75, 100), "%", "HP of the team at the start"),
        Factor("script", range(SCRIPTS), doc="order of the bosses' moves; 0 is that of the files"),
    )
)
FACTORS = {factor.name: factor for factor in SPACE}


BENCHMARK: Mapping[str, Any] = {
    "level": 0,
    "weakness": "native",
    "order": "0123",
    "energy": 50,
    "hp": 100,
    "script": 0,
}
"""The benchmark's values of all factors but the battle itself."""
