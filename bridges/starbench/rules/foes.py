"""Enemies: their base values, turns, scripts, bars and waves."""

from __future__ import annotations

from collections.abc import Mapping

from bridges.starbench.rules import combat
from bridges.starbench.rules.field import Field
from bridges.starbench.rules.units import ELEMENTS, Base, Unit, UnitKind
from bridges.starbench.rules.view import ENEMIES

_QUANTUM = ELEMENTS.index("quantum")
_WEAK = {
    "all": frozenset(range(7)),
    "quantum": frozenset({_QUANTUM}),
    "other": frozenset(range(7)) - {_QUANTUM},
}


def curve_at(levels: Mapping[int, Mapping[str, float]], level: int) -> dict[str, float]:
    """Returns the values of a level; those between two rows of the table are interpolated."""
    low = max(each for each in levels if each <= level)
    high = min(each for each in levels if each >= level)
    share = (level - low) / (high - low) if high > low else 0.0
    return {k: v + (levels[high][k] - v) * share for k, v in levels[low].items()}


def base_of(battle: Field, key: str) -> Base:
    """Returns the base values of a kind of enemy, after level and calibration."""
    if key not in battle.bases:
        battle.bases[key] = _base(battle, battle.content.units[key])
    return battle.bases[key]


def _base(battle: Field, kind: UnitKind) -> Base:
    level = int(battle.data["level"]) + int(battle.state["level"])
    curve = curve_at(battle.rules["levels"], level)
    factors = battle.data["calibration"]
    k_hp, k_atk = (1.0, 1.0) if battle.raw else (factors["k_hp"], factors["k_atk"])
    hp = tuple(u * curve["hp"] * k_hp for u in kind.hp)
    if kind.absolute_hp:
        native = battle.rules["levels"][int(battle.data["level"])]["hp"]
        hp = (kind.absolute_hp * curve["hp"] / native * k_hp,) * kind.bars
    changed = _WEAK.get(str(battle.state["weakness"]))
    return Base(
        *(hp, curve["atk"] * k_atk, 200.0 + 10.0 * level),
        tuple(spd * curve["spd"] for spd in kind.spd),
        level,
        ehr=curve["ehr"],
        resist=curve["res"],
        weak=kind.weak if changed is None else (changed,) * kind.bars,
    )


def unit_of(battle: Field, key: str, number: int) -> Unit:
    """Returns a new enemy with a number; its script is that of the battle's state."""
    kind = battle.content.units[key]
    unit = Unit(kind, base_of(battle, key), number, battle.content.numbered)
    script = int(battle.state["script"])
    if script:
        unit.orders = tuple(_shuffled(order, script + bar) for bar, order in enumerate(kind.phases))
    unit.av = battle.rules["gauge"] / unit.spd
    return unit


def _shuffled(order: tuple[str, ...], seed: int) -> tuple[str, ...]:
    mixed, found, rest = seed * 2654435761 % 2**32, [], list(order)
    while rest:
        mixed = (mixed * 1664525 + 1013904223) % 2**32
        found.append(rest.pop((mixed >> 8) % len(rest)))
    return tuple(found)


def total_hp(battle: Field) -> float:
    """Returns the HP of all enemies that have to be defeated, all bars and waves."""
    waves = battle.data.get("waves", ())
    return sum(sum(base_of(battle, key).hp) for wave in waves for key in wave) or 1.0


def next_wave(battle: Field) -> None:
    """Brings the next enemies; everybody else keeps their place in the turn order."""
    if "stream" in battle.data:
        _refill(battle)
        return
    names = battle.data["waves"][battle.wave]
    battle.wave += 1
    units = [_arrive(battle, key) for key in names]
    battle.enemies = units
    for unit in units:
        battle.enter(unit)


def _refill(battle: Field) -> None:
    stream = battle.data["stream"]
    while len(battle.enemies) < ENEMIES:
        due = battle.kills // stream["every"] > battle.wave
        if due:
            battle.wave += 1
            key = stream["elite"]
        else:
            key = stream["order"][battle.minors % len(stream["order"])]
            battle.minors += 1
        battle.enemies.append(_arrive(battle, key))


def _arrive(battle: Field, key: str) -> Unit:
    battle.arrived += 1
    return unit_of(battle, key, 3 + battle.arrived)


def summon(battle: Field, key: str) -> None:
    """Brings a summon to one side of the row, if there is room."""
    if len(battle.enemies) < ENEMIES and battle.outcome is None:
        unit = _arrive(battle, key)
        at = 0 if battle.arrived % 2 == 0 else len(battle.enemies)
        battle.enemies.insert(at, unit)


def settle(battle: Field) -> None:
    """Decides the battle, or brings the next enemies, after something has happened."""
    if battle.outcome is not None:
        return
    if not any(ally.alive for ally in battle.allies):
        battle.end("lost", "the team has fallen")
        return
    if "stream" in battle.data:
        _refill(battle)
        return
    if any(unit.kind.kind != "summon" for unit in battle.enemies):
        return
    for unit in battle.enemies:
        unit.alive = False
    battle.enemies = []
    if battle.wave >= len(battle.data["waves"]):
        battle.end("won", "victory")
    else:
        next_wave(battle)


def take_turn(battle: Field, unit: Unit) -> None:
    """Plays the whole turn of an enemy."""
    combat.damage_over_time(battle, unit)
    frozen = unit.controlled()
    if unit.alive:
        if unit.broken:
            unit.broken, unit.toughness = False, unit.max_toughness
            battle.fire("recovered", unit, None)
        combat.tick(battle, unit, 0)
    if frozen:
        battle.ahead = 0.5
    else:
        battle.fire("turn", unit, None)
        for _ in range(unit.kind.actions):
            if unit.alive and not unit.broken and any(ally.alive for ally in battle.allies):
                _script(battle, unit)
    if unit.alive:
        battle.fire("turn_end", unit, None)
        _timers(battle, unit)


def _script(battle: Field, unit: Unit) -> None:
    name, unit.charge = unit.charge, ""
    if not name:
        order = unit.orders[min(unit.bar, len(unit.orders) - 1)]
        name = order[unit.step % len(order)]
        unit.step += 1
    battle.perform(unit, name)


def _timers(battle: Field, unit: Unit) -> None:
    for timer in unit.timers:
        timer[0] -= 1
    due = [timer[1] for timer in unit.timers if timer[0] <= 0]
    unit.timers = [timer for timer in unit.timers if timer[0] > 0]
    for name in due:
        battle.perform(unit, name)
