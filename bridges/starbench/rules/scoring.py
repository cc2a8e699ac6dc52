"""Budgets and scores of the four kinds of battles (docs/starbench.md, Metrics)."""

from __future__ import annotations

import math

from bridges.starbench.rules import foes
from bridges.starbench.rules.field import Field


def cycles_used(action_value: float, first: float = 150.0, later: float = 100.0) -> int:
    """Returns how many cycles have passed: 1 from 150, one more for each further 100."""
    if action_value < first:
        return 0
    return 1 + math.floor((action_value - first) / later)


def chaos_score(action_value: float, cycles: int) -> int:
    """Returns the cycles that are left in Memory of Chaos, at least 0."""
    return max(0, cycles - cycles_used(action_value))


def shadow_score(depleted: float, action_value: float) -> int:
    """Returns the points of Apocalyptic Shadow: 2000 for HP, and time left after a victory.

    Args:
        depleted: share of all bars of the boss that is gone, 0 to 1.
        action_value: used so far.
    """
    left = max(0.0, 2000.0 - action_value) if depleted >= 1.0 else 0.0
    return math.floor(2000.0 * depleted + left + 1e-9)


def used(battle: Field) -> float:
    """Returns the action value that counts: the clock, and what decisions without effect cost."""
    return battle.clock + battle.charged


def within_budget(battle: Field, step: float) -> float:
    """Returns how far the clock may go until a unit's turn, at most to the end of the budget."""
    limit = battle.data.get("action_value")
    return step if limit is None else min(step, max(0.0, limit - used(battle)))


def check_budget(battle: Field) -> None:
    """Ends a battle whose action value is used up."""
    limit, spent = battle.data.get("action_value"), used(battle)
    if limit is not None and spent >= limit:
        won = battle.data["mode"] == "pure_fiction"
        battle.end("won" if won else "lost", "the time is over")
    cycles = battle.data.get("cycles")
    if cycles is not None and cycles_used(spent) >= cycles:
        battle.end("lost", "all cycles are used")


def depleted(battle: Field) -> float:
    """Returns the share of the enemies' HP that is gone; of Pure Fiction, of its time."""
    if battle.data["mode"] == "pure_fiction":
        return min(1.0, used(battle) / float(battle.data["action_value"]))
    if battle.outcome == "won":
        return 1.0
    left = sum(
        unit.hp + sum(unit.base.hp[unit.bar + 1 :])
        for unit in battle.enemies
        if unit.kind.kind != "summon"
    )
    for wave in battle.data["waves"][battle.wave :]:
        left += sum(sum(foes.base_of(battle, key).hp) for key in wave)
    return 1.0 - min(1.0, left / battle.total_hp)


def points(battle: Field) -> float:
    """Returns the score of the battle so far; 0 in Echo of War, which counts decisions."""
    mode = battle.data["mode"]
    if mode == "memory_of_chaos":
        return float(chaos_score(used(battle), battle.data["cycles"]))
    if mode == "apocalyptic_shadow":
        return float(shadow_score(depleted(battle), used(battle)))
    return battle.score
