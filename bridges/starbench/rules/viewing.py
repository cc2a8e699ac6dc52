"""The view of a battle: what a player may know, as plain data."""

from __future__ import annotations

from bridges.starbench.rules import scoring
from bridges.starbench.rules.field import Field
from bridges.starbench.rules.units import ELEMENTS, KIND, TURNS, Unit
from bridges.starbench.rules.view import (
    FIRST_ENEMY,
    AllyView,
    BattleView,
    EnemyView,
    StatusView,
    TurnView,
)


def view(battle: Field) -> BattleView:
    """Returns the view of a battle."""
    ready = battle.ready()
    acting = battle.window == "turn"
    order = sorted(battle.units(), key=lambda u: (-1.0 if u is battle.current else u.av, u.rank))
    return BattleView(
        task=battle.task,
        allies=tuple(_ally(battle, unit, ready) for unit in battle.allies),
        enemies=tuple(_enemy(at, unit) for at, unit in enumerate(battle.enemies, FIRST_ENEMY)),
        order=tuple(
            TurnView(u.kind.name, u.ally, 0.0 if u is battle.current else u.av) for u in order
        ),
        skill_points=battle.points,
        max_skill_points=battle.max_points(),
        damage=battle.damage,
        window=battle.window or "over",
        actor=battle.actor if acting else None,
        offered=battle.offered,
        clock=scoring.used(battle),
        cycle=scoring.cycles_used(scoring.used(battle)),
        score=scoring.points(battle),
        wave=_wave(battle),
        message=battle.message,
        outcome=battle.outcome,
        steps=battle.decisions,
        invalid=battle.invalid,
    )


def _wave(battle: Field) -> int:
    bars = [u.bar + 1 for u in battle.enemies if u.kind.bars > 1]
    return bars[0] if bars else max(1, battle.wave)


def _statuses(unit: Unit) -> tuple[StatusView, ...]:
    kinds = ((unit.numbered[s[KIND]], s[TURNS]) for s in unit.statuses)
    return tuple(StatusView(kind.title, turns, kind.harmful) for kind, turns in kinds)


def _ally(battle: Field, unit: Unit, ready: tuple[int, ...]) -> AllyView:
    if unit.dirty:
        unit.refresh()
    return AllyView(
        name=unit.kind.name,
        hp=unit.hp,
        max_hp=unit.max_hp,
        alive=unit.alive,
        statuses=_statuses(unit),
        slot=unit.slot,
        element=ELEMENTS[unit.kind.element],
        energy=unit.energy,
        max_energy=unit.kind.max_energy,
        ready=unit.slot in ready,
        acting=battle.window == "turn" and battle.actor == unit.slot,
    )


def _enemy(target: int, unit: Unit) -> EnemyView:
    if unit.dirty:
        unit.refresh()
    return EnemyView(
        name=unit.kind.name,
        hp=unit.hp,
        max_hp=unit.max_hp,
        statuses=_statuses(unit),
        target=target,
        unit=unit.kind.key,
        kind=unit.kind.kind,  # type: ignore[arg-type] # checked when the files are read
        toughness=0.0 if unit.broken else unit.toughness,
        max_toughness=unit.max_toughness,
        weaknesses=tuple(ELEMENTS[each] for each in sorted(unit.weak)),
        charging=bool(unit.charge),
    )
