"""The structured observation: a battle as one row of numbers, mostly between 0 and 1."""

from __future__ import annotations

from functools import cache

from bridges.starbench.rules import scoring
from bridges.starbench.rules.battle import Battle
from bridges.starbench.rules.content import load
from bridges.starbench.rules.field import BATTLES
from bridges.starbench.rules.units import KIND, STACKS, TURNS, Unit
from bridges.starbench.rules.view import (
    ALL,
    ALLIES,
    ENEMIES,
    FIRST_ENEMY,
    MOVE_NAMES,
    AllyView,
    BattleView,
    EnemyView,
    StatusView,
    action_parts,
)

_GLOBAL, _ALLY, _ENEMY = 12, 8, 15


@cache
def _layout() -> tuple[dict[str, int], dict[str, int], int, int, int]:
    """Numbers of characters and enemies, statuses, and the sizes of the two kinds of blocks."""
    content = load()
    team = {key: at for at, key in enumerate(content.team)}
    foes = {key: at for at, key in enumerate(k for k, u in content.units.items() if not u.ally)}
    statuses = 2 * len(content.numbered)
    return team, foes, statuses, _ALLY + len(team) + statuses, _ENEMY + len(foes) + statuses


def size() -> int:
    """Returns the length of a row; it depends on how many units and statuses the files have."""
    _, _, _, ally, enemy = _layout()
    return _GLOBAL + len(BATTLES) + ALLIES * ally + ENEMIES * enemy


def write(battle: Battle, row: memoryview[float]) -> None:
    """Writes a battle into a row of zeros.

    Globals first (skill points, window, clock, progress, score, battle), then a block for each
    ally by slot, then for each enemy by target: shares of HP, energy or toughness, action value,
    flags, which unit it is, and for each status its turns and stacks.
    """
    team, foes, _, ally_size, enemy_size = _layout()
    head = (
        *(battle.points / 7.0, battle.max_points() / 7.0, float(battle.window == "off_turn")),
        *(float(battle.extra), scoring.used(battle) / 1000.0, battle.decisions / 300.0),
        *(battle.invalid / 10.0, scoring.depleted(battle), scoring.points(battle) / 10000.0),
        *(battle.wave / 4.0, battle.kills / 20.0, len(battle.enemies) / 5.0),
    )
    for at, value in enumerate(head):
        row[at] = value
    row[_GLOBAL + BATTLES.index(battle.task)] = 1.0
    at = _GLOBAL + len(BATTLES)
    acting = battle.actor if battle.window == "turn" else None
    for unit in battle.allies:
        if unit.alive:
            _write_ally(battle, unit, acting, row, at)
            row[at + _ALLY + team[unit.kind.key]] = 1.0
            _write_statuses(unit, row, at + _ALLY + len(team))
        at += ally_size
    for unit in battle.enemies:
        _write_enemy(battle, unit, row, at)
        row[at + _ENEMY + foes[unit.kind.key]] = 1.0
        _write_statuses(unit, row, at + _ENEMY + len(foes))
        at += enemy_size


def _write_ally(
    battle: Battle, unit: Unit, acting: int | None, row: memoryview[float], at: int
) -> None:
    row[at] = 1.0
    row[at + 1] = unit.hp / unit.max_hp
    row[at + 2] = unit.energy / unit.kind.max_energy
    row[at + 3] = min(2.0, unit.av / 100.0)
    row[at + 4] = float(unit.slot == acting)
    row[at + 5] = float(unit.slot in battle.offered)
    row[at + 6] = unit.spd / 200.0
    row[at + 7] = sum(unit.counters.values()) / 2.0


def _write_enemy(battle: Battle, unit: Unit, row: memoryview[float], at: int) -> None:
    kind = unit.kind
    row[at] = 1.0
    row[at + 1] = unit.hp / unit.max_hp
    row[at + 2] = (kind.bars - unit.bar) / 3.0
    row[at + 3] = 0.0 if unit.broken else unit.toughness / unit.max_toughness
    row[at + 4] = float(unit.broken)
    row[at + 5] = float(bool(unit.charge))
    row[at + 6] = min(2.0, unit.av / 100.0)
    row[at + 7] = float(battle.locked(unit))
    for element in unit.weak:
        row[at + 8 + element] = 1.0


def _write_statuses(unit: Unit, row: memoryview[float], at: int) -> None:
    for status in unit.statuses:
        place = at + 2 * status[KIND]
        row[place] = status[TURNS] / 4.0
        row[place + 1] = status[STACKS] / 3.0


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
    return [f"({c}, {m}, {t}) {_move_text(view, c, m, t)}" for c, m, t in map(action_parts, legal)]


def _move_text(view: BattleView, character: int, move: int, target: int) -> str:
    text = f"{view.allies[character].name} {MOVE_NAMES[move]}"
    if target == ALL:
        return text
    if target < FIRST_ENEMY:
        return f"{text} on {view.allies[target].name}"
    return f"{text} on {view.enemies[target - FIRST_ENEMY].name}"
