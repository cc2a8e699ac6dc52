"""Damage, toughness, breaks, statuses, healing and energy; docs/starbench.md has the formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridges.starbench.rules.field import Field
from bridges.starbench.rules.units import (
    ELEMENTS,
    KIND,
    STACKS,
    STAMP,
    TURNS,
    VALUES,
    StatusKind,
    Unit,
)

_WHOLE = (1.0,)


def defence_factor(defence: float, level: int) -> float:
    """Returns the share of damage that a defence lets through, against an attacker's level."""
    return 1.0 - defence / (defence + 200.0 + 10.0 * level)


def resistance_factor(resistance: float) -> float:
    """Returns ``1 - resistance``, with the resistance between -1 and 0.9."""
    return 1.0 - max(-1.0, min(0.9, resistance))


def hit(
    battle: Field,
    attacker: Unit,
    defender: Unit,
    base: float,
    toughness: float = 0.0,
    hits: Sequence[float] = _WHOLE,
) -> float:
    """Deals the damage of an attack and returns it; ``base`` is multiplier times stat.

    Each hit has its own roll of CRIT. Toughness falls by the share of each hit.
    """
    if attacker.dirty:
        attacker.refresh()
    total, element = 0.0, attacker.kind.element
    for share in hits:
        if defender.hp <= 0.0:
            break
        if defender.dirty:
            defender.refresh()
        amount = base * share * (1.0 + attacker.dmg)
        if attacker.cr > 0.0 and battle.rand() < attacker.cr:
            amount *= 1.0 + attacker.cd
        amount *= taken_factor(attacker, defender, element)
        if not defender.ally and not defender.broken:
            amount *= battle.rules["unbroken"]
        total += amount
        bar = defender.bar
        hurt(battle, defender, amount, attacker)
        if defender.hp > 0.0 and not defender.ally and bar == defender.bar:
            if toughness:
                reduce_toughness(battle, attacker, defender, toughness * share, element)
            _count_hit(defender)
    return total


def taken_factor(attacker: Unit, defender: Unit, element: int) -> float:
    """Returns DEF x RES x VULN x MITIG of a defender."""
    resistance = defender.res[element] - attacker.pen[element]
    factor = defence_factor(defender.defence, attacker.base.level) * resistance_factor(resistance)
    return float(factor * min(3.5, 1.0 + defender.taken) * max(0.01, defender.kept))


def _count_hit(unit: Unit) -> None:
    for status in unit.statuses:
        kind = unit.numbered[status[KIND]]
        if kind.per_hit and status[STACKS] < kind.stacks:
            status[STACKS] += 1


def reduce_toughness(
    battle: Field, attacker: Unit, defender: Unit, amount: float, element: int
) -> None:
    """Takes toughness off a unit that is weak to the element, and breaks it at 0."""
    if defender.broken or element not in defender.weak or battle.locked(defender):
        return
    defender.toughness = max(0.0, defender.toughness - amount)
    if defender.toughness <= 0.0:
        break_unit(battle, attacker, defender, element)


def break_damage(battle: Field, attacker: Unit, defender: Unit, element: int) -> float:
    """Returns the damage of a break; no CRIT, and the factor of an unbroken unit."""
    rule = battle.rules["breaks"][ELEMENTS[element]]
    return float(
        rule["factor"]
        * battle.level_factor(attacker.base.level)
        * (0.5 + defender.max_toughness / 40.0)
        * (1.0 + attacker.base.be)
        * taken_factor(attacker, defender, element)
        * battle.rules["unbroken"]
    )


def break_unit(battle: Field, attacker: Unit, defender: Unit, element: int) -> None:
    """Breaks a unit: damage, a delay, a status of the element, and what follows."""
    rules, defender.broken = battle.rules, True
    rule = rules["breaks"][ELEMENTS[element]]
    hurt(battle, defender, break_damage(battle, attacker, defender, element), attacker)
    battle.note(f"{defender.kind.name} is broken")
    if defender.alive and defender.broken:  # a new bar is not
        kind = battle.content.statuses[rule["status"]]
        delay = rules["break_delay"]
        if give(battle, attacker, defender, kind, chance=rules["break_chance"]):
            delay += rule.get("delay", 0.0) * (1.0 + attacker.base.be)
        advance(battle, defender, -delay)
        if defender.charge:
            defender.charge = ""
            battle.note(f"{defender.kind.name} is interrupted")
        battle.fire("broken", defender, attacker)
    for ally in battle.allies:
        if attacker.ally and ally.alive:
            battle.fire("ally_break", ally, defender)


def hurt(battle: Field, unit: Unit, amount: float, by: Unit | None, *, whole: bool = False) -> None:
    """Takes HP off a unit; part of an ally's may go to the one who guards it."""
    if not unit.alive or amount <= 0.0:
        return
    if unit.ally:
        if not whole:
            amount = _guarded(battle, unit, amount, by)
        unit.hp -= amount
        if unit.hp <= 0.0:
            fall(battle, unit)
        else:
            battle.fire("hurt", unit, by)
        return
    taken = min(amount, unit.hp)
    battle.dealt(amount, taken, unit)
    unit.hp -= amount
    if unit.kind.shares:
        owner = battle.enemy(unit.kind.shares)
        if owner is not None:
            hurt(battle, owner, taken, by)
    if unit.hp <= 0.0 and unit.alive:
        deplete(battle, unit, by)


def _guarded(battle: Field, unit: Unit, amount: float, by: Unit | None) -> float:
    for guard in battle.allies:
        if guard is unit or not guard.alive:
            continue
        for status in guard.statuses:
            share = guard.numbered[status[KIND]].redirect
            if share:
                hurt(battle, guard, amount * share, by, whole=True)
                return float(amount * (1.0 - share))
    return amount


def give(
    battle: Field,
    source: Unit,
    unit: Unit,
    kind: StatusKind,
    *,
    chance: float | None = None,
    stacks: int = 1,
) -> bool:
    """Puts a status on a unit, by its chance if there is one; returns whether it holds."""
    if not unit.alive:
        return False
    if kind.control:
        if kind.control in unit.kind.immune:
            return False
        if unit.ally and _warded(unit):
            battle.note(f"{unit.kind.name} is protected from {kind.title}")
            return False
    if chance is not None:
        specific = unit.kind.control_res if kind.control else unit.kind.status_res
        p = chance * (1.0 + source.base.ehr) * (1.0 - unit.base.resist) * (1.0 - specific)
        if battle.rand() >= p:
            return False
    values = _worked_out(source, kind)
    stamp = battle.turn if battle.current is unit else -1
    found = unit.find(kind.number)
    if found is None:
        unit.statuses.append([kind.number, kind.turns, min(stacks, kind.stacks), values, stamp])
    else:
        more = min(kind.stacks, found[STACKS] + stacks)
        found[TURNS], found[STACKS], found[VALUES], found[STAMP] = kind.turns, more, values, stamp
    if kind.grants:
        own = battle.content.statuses[kind.grants]
        for ally in battle.allies if unit.ally else battle.enemies:
            give(battle, source, ally, own)
    changed(unit, kind)
    if kind.delay:
        advance(battle, unit, -kind.delay)
    return True


def _worked_out(source: Unit, kind: StatusKind) -> list[list[float]]:
    if not kind.worked_out:
        return []
    if source.dirty:
        source.refresh()
    found = []
    for at, name, times, plus in kind.worked_out:
        value = source.base.hp[0] if name == "max_hp" else getattr(source, name)
        found.append([at, value * times + plus])
    return found


def _warded(unit: Unit) -> bool:
    for status in unit.statuses:
        if unit.numbered[status[KIND]].wards:
            unit.statuses.remove(status)
            return True
    return False


def changed(unit: Unit, kind: StatusKind) -> None:
    """Notes that the stats of a unit have to be worked out; at once if its speed may change."""
    if not kind.at_once:
        unit.dirty = True
        return
    before = unit.spd
    unit.refresh()
    if unit.spd != before and unit.av > 0.0:
        unit.av *= before / unit.spd


def strip(battle: Field, unit: Unit, status: list[Any], stacks: int = 0) -> None:
    """Takes a status off a unit, or some of its stacks."""
    kind = unit.numbered[status[KIND]]
    if stacks and status[STACKS] > stacks:
        status[STACKS] -= stacks
        unit.dirty = True
        return
    if status in unit.statuses:
        unit.statuses.remove(status)
    if kind.grants:
        own = battle.content.statuses[kind.grants]
        for other in battle.allies if unit.ally else battle.enemies:
            granted = other.find(own.number)
            if granted is not None:
                strip(battle, other, granted)
    changed(unit, kind)


def tick(battle: Field, unit: Unit, phase: int) -> None:
    """Takes a turn off the statuses that end in a phase of the turn: 0 its start, 1 its end."""
    for status in unit.statuses[:]:
        kind = unit.numbered[status[KIND]]
        if kind.tick != phase or (phase == 1 and status[STAMP] == battle.turn):
            continue
        status[TURNS] -= 1
        if status[TURNS] <= 0 and unit.alive:
            strip(battle, unit, status)
            battle.fire(f"end_{kind.key}", unit, None)


def damage_over_time(battle: Field, unit: Unit) -> None:
    """Deals the damage of the statuses of a unit at the start of its turn."""
    for status in unit.statuses[:]:
        dot = unit.numbered[status[KIND]].dot
        if dot is None or not unit.alive or unit.ally:
            continue
        level = battle.level_factor(battle.content.level)
        tough = 0.5 + unit.max_toughness / 40.0
        if "hp" in dot:
            share = dot["hp"] if unit.kind.kind == "enemy" else dot["hp_boss"]
            amount = min(share * unit.max_hp, dot["most"] * level * tough)
        else:
            amount = dot["level"] * level
            amount *= status[STACKS] if dot.get("stacked") else 1.0
            amount *= tough if dot.get("tough") else 1.0
        if unit.dirty:
            unit.refresh()
        element = ELEMENTS.index(dot["element"])
        factor = defence_factor(unit.defence, battle.content.level)
        factor *= resistance_factor(unit.res[element]) * min(3.5, 1.0 + unit.taken)
        factor *= max(0.01, unit.kept) * (1.0 if unit.broken else battle.rules["unbroken"])
        hurt(battle, unit, amount * factor, None)


def heal(unit: Unit, amount: float) -> None:
    """Heals a unit that stands, up to its maximum."""
    if unit.alive:
        unit.hp = min(unit.max_hp, unit.hp + amount)


def gain_energy(unit: Unit, amount: float) -> None:
    """Gives energy, more with a higher regeneration rate."""
    if unit.ally and unit.alive:
        gained = amount * (1.0 + unit.base.err) if amount > 0 else amount
        unit.energy = min(unit.kind.max_energy, max(0.0, unit.energy + gained))


def advance(battle: Field, unit: Unit, share: float) -> None:
    """Advances a unit by a share of its gauge; a negative share delays it.

    Within its own turn the gauge that follows becomes shorter.
    """
    step = share * battle.rules["gauge"] / unit.spd
    if battle.current is unit:
        battle.ahead += share
        return
    unit.av = max(0.0, unit.av - step)
    if share > 0.0 and unit.av == 0.0:
        battle.front -= 1
        unit.rank = battle.front


def attacked(battle: Field, unit: Unit, by: Unit) -> None:
    """Notes an attack: energy for an ally that was hit, triggers of an enemy."""
    if unit.ally:
        gain_energy(unit, battle.hit_energy)
        return
    battle.struck.append(unit)
    if unit.alive:
        battle.fire("attacked", unit, by)


def deplete(battle: Field, unit: Unit, by: Unit | None) -> None:
    """Handles an enemy whose HP are gone: it revives, shows its next bar, or dies."""
    kind = unit.kind
    if kind.revive and not unit.counters.get("revived"):
        unit.counters["revived"] = 1.0
        unit.hp = kind.revive * unit.max_hp
        battle.note(f"{kind.name} rises again")
        return
    if unit.bar + 1 < len(unit.base.hp):
        unit.bar += 1
        unit.step, unit.charge, unit.broken = 0, "", False
        unit.hp = unit.max_hp = unit.base.hp[unit.bar]
        unit.toughness = unit.max_toughness
        before = unit.spd
        unit.refresh()
        unit.av *= before / unit.spd
        battle.note(f"{kind.name} enters phase {unit.bar + 1}")
        battle.enter(unit)
        return
    battle.remove(unit)
    battle.note(f"{kind.name} is defeated")
    if "stream" in battle.data:
        stream = battle.data["stream"]
        minor = kind.key != stream["elite"]
        battle.kills += minor
        gained = stream["minor_points"] if minor else stream["elite_points"]
        battle.score = min(stream["most_points"], battle.score + gained)
    battle.fire("death", unit, by)
    if by is not None and by.ally:
        gain_energy(by, battle.rules["energy"]["kill"])
        battle.fire("kill", by, unit)


def fall(battle: Field, unit: Unit) -> None:
    """Handles an ally that falls: its statuses end, and what it gave to others."""
    unit.hp, unit.alive, unit.energy = 0.0, False, 0.0
    for status in unit.statuses[:]:
        strip(battle, unit, status)
    if unit.kind.aura:
        aura = battle.content.statuses[unit.kind.aura]
        for ally in battle.allies:
            found = ally.find(aura.number)
            if found is not None:
                strip(battle, ally, found)
    battle.points = min(battle.points, battle.max_points())
    battle.note(f"{unit.kind.name} falls")
