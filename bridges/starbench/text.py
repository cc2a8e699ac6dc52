"""A battle as text tokens, for language models."""

from __future__ import annotations

from bridges.starbench.rules.view import (
    ALL,
    FIRST_ENEMY,
    MOVE_NAMES,
    AllyView,
    BattleView,
    EnemyView,
    StatusView,
    action_parts,
)

NO_OP = "no-op"


def labels(count: int) -> tuple[str, ...]:
    """Returns the names of actions: character, move and target, e.g. ``(0, 1, 5)``."""
    parts = (action_parts(number) for number in range(count))
    return tuple(f"({c}, {m}, {t})" for c, m, t in parts)


def tokens(view: BattleView) -> str:
    """Returns what the tool-assisted player reads: enemies, damage, allies, order and points."""
    lines = [
        f"Window: {view.window}. Skill points {view.skill_points}/{view.max_skill_points}. "
        f"Damage this turn {view.damage:.0f}. Cycle {view.cycle}, action value {view.clock:.0f}, "
        f"wave {view.wave}, score {view.score:.0f}.",
        *(_ally(view, ally) for ally in view.allies),
        *(_enemy(enemy) for enemy in view.enemies),
        "Order: " + ", ".join(f"{turn.name} {turn.av:.0f}" for turn in view.order[:7]),
    ]
    if view.message:
        lines.append(f"Last: {view.message}.")
    return "\n".join(lines)


def _statuses(statuses: tuple[StatusView, ...]) -> str:
    return ", ".join(f"{each.name} {each.turns}" for each in statuses) or "none"


def _ally(view: BattleView, ally: AllyView) -> str:
    state = "acts" if ally.acting else "waits" if ally.alive else "down"
    ready = ", ultimate ready" if ally.slot in view.offered else ""
    return (
        f"Ally {ally.slot} {ally.name}: {state}, HP {ally.hp:.0f}/{ally.max_hp:.0f}, energy "
        f"{ally.energy:.0f}/{ally.max_energy:.0f}{ready}; {_statuses(ally.statuses)}"
    )


def _enemy(enemy: EnemyView) -> str:
    charging = ", prepares a heavy move" if enemy.charging else ""
    return (
        f"Enemy {enemy.target} {enemy.name} ({enemy.kind}): HP {enemy.hp / enemy.max_hp:.0%}, "
        f"toughness {enemy.toughness:.0f}/{enemy.max_toughness:.0f}, weak to "
        f"{', '.join(enemy.weaknesses)}{charging}; {_statuses(enemy.statuses)}"
    )


def choices(view: BattleView, legal: list[int]) -> list[str]:
    """Returns the legal actions with what they mean, one line each."""
    return [f"({c}, {m}, {t}) {_told(view, c, m, t)}" for c, m, t in map(action_parts, legal)]


def _told(view: BattleView, character: int, move: int, target: int) -> str:
    told = f"{view.allies[character].name} {MOVE_NAMES[move]}"
    if target == ALL:
        return told
    if target < FIRST_ENEMY:
        return f"{told} on {view.allies[target].name}"
    return f"{told} on {view.enemies[target - FIRST_ENEMY].name}"
