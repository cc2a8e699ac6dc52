"""The rules, units and battles that the files of ``data/`` describe, checked by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from bridges.starbench.rules import combat, foes
from bridges.starbench.rules.field import Field
from bridges.starbench.rules.units import (
    ELEMENTS,
    KIND,
    STAT,
    STATS,
    Content,
    Move,
    Op,
    StatusKind,
    Test,
    Trigger,
    Unit,
    UnitKind,
)
from rollout.errors import ConfigError, UnknownNameError
from rollout.yaml12 import load_yaml

FOLDER = Path(__file__).parents[1] / "data"

MODES = ("echo_of_war", "memory_of_chaos", "pure_fiction", "apocalyptic_shadow")
CONTROLS = ("freeze", "entangle", "imprison")
EVENTS = (
    *("kill", "attack", "ally_break", "spent", "hurt", "attacked", "broken", "recovered", "death"),
    *("turn", "turn_end"),
)
TICKS = {"start": 0, "end": 1, "never": 2}
_TARGETS = ("enemy", "ally", "all")


@cache
def load(folder: Path = FOLDER) -> Content:
    """Returns the content of a folder, read and checked once.

    Raises:
        UnknownNameError: a file names a unit, move, status, element, effect or key that does not
            exist; the message has the nearest that does.
        ConfigError: a file cannot be read.
    """
    files = {name: load_yaml(folder / f"{name}.yaml", ours=True) for name in _FILES}
    statuses = {
        key: _read_status(number, key, data, files["statuses"])
        for number, (key, data) in enumerate(files["statuses"].items())
    }
    team = files["team"]
    units = {key: _read_ally(key, data, statuses) for key, data in team["characters"].items()}
    for key, data in files["enemies"].items():
        units[key] = _read_enemy(key, data, statuses, files["enemies"])
    for name in team["order"]:
        known("character", name, team["characters"], "team.yaml: order")
    for name, battle in files["battles"].items():
        _check_battle(name, battle, files["enemies"])
    return Content(
        rules=files["rules"],
        statuses=statuses,
        numbered=tuple(statuses.values()),
        team=tuple(team["order"]),
        level=int(team["level"]),
        units=units,
        battles=files["battles"],
    )


_FILES = ("rules", "statuses", "team", "enemies", "battles")


def _keys(data: Mapping[str, Any], valid: Sequence[str], where: str) -> None:
    for key in data:
        known("key", key, valid, where)


def _element(name: str, where: str) -> int:
    known("element", name, ELEMENTS, where)
    return ELEMENTS.index(name)


def _plain(kind: type[StatusKind | UnitKind], data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what files give for the plain fields of a kind, as the types of their defaults."""
    defaults = {each.name: each.default for each in fields(kind)}
    plain = {key: defaults[key] for key in data if key in _PLAIN}
    return {
        key: data[key] if default in (None, MISSING) else type(default)(data[key])
        for key, default in plain.items()
    }


_PLAIN = (
    *("title", "harmful", "turns", "stacks", "control", "delay", "dot", "per_hit", "redirect"),
    *("wards", "grants", "kind", "aggro", "max_energy", "skill_points", "aura", "auto", "counters"),
    *("bars", "absolute_hp", "control_res", "status_res", "actions", "locked_by", "shares"),
    "revive",
)
_STATUS_KEYS = (
    *("title", "harmful", "turns", "tick", "stacks", "mods", "with", "control", "delay", "dot"),
    *("per_hit", "redirect", "wards", "grants", "implants"),
)


def _read_status(number: int, key: str, data: Mapping[str, Any], others: Any) -> StatusKind:
    where = f"statuses.yaml: {key}"
    _keys(data, _STATUS_KEYS, where)
    tick = data.get("tick", "end")
    known("tick", tick, TICKS, where)
    if data.get("control"):
        known("control", data["control"], CONTROLS, where)
    if data.get("grants"):
        known("status", data["grants"], others, where)
    mods, worked_out = [], []
    for stat, value in data.get("mods", {}).items():
        known("stat", stat, STATS, where)
        if isinstance(value, Mapping):
            formula = (STAT[stat], value["of"], float(value["times"]), float(value.get("plus", 0)))
            worked_out.append(formula)
        else:
            mods.append((STAT[stat], float(value)))
    extra = None
    if "with" in data:
        known("status", data["with"]["status"], others, where)
        added = tuple((STAT[k], float(v)) for k, v in data["with"]["mods"].items())
        extra = (list(others).index(data["with"]["status"]), added)
    made: dict[str, Any] = {
        "tick": TICKS[tick],
        "mods": tuple(mods),
        "worked_out": tuple(worked_out),
        "implants": _element(data["implants"], where) if "implants" in data else -1,
        "at_once": bool({*data.get("mods", {})} & {"spd", "hp_flat"}),
    }
    return StatusKind(key, number, extra=extra, **_plain(StatusKind, data), **made)


def _read_ops(data: Any, statuses: Mapping[str, StatusKind], where: str) -> tuple[Op, ...]:
    ops = []
    for entry in data:
        rest = {key: value for key, value in entry.items() if key != "if"}
        if len(rest) != 1:
            raise ConfigError(f"{where}: expected one effect, got {list(rest)}")
        (name,) = rest
        known("effect", name, EFFECTS, where)
        ops.append(compile_op(name, rest[name], entry.get("if"), statuses, where))
    return tuple(ops)


def _read_move(key: str, data: Mapping[str, Any], statuses: Any, where: str) -> Move:
    where = f"{where}: {key}"
    _keys(data, ("target", "energy", "do", "charge"), where)
    energy = data.get("energy", "single")
    if isinstance(energy, str):
        known("energy", energy, ("single", "area", "heavy"), where)
        energy = {"single": 10.0, "area": 5.0, "heavy": 15.0}[energy]
    ops = _read_ops(data.get("do", ()), statuses, where)
    return Move(key, data.get("target", "random"), float(energy), ops, data.get("charge", ""))


def _read_triggers(data: Any, statuses: Any, where: str) -> dict[str, tuple[Trigger, ...]]:
    found: dict[str, tuple[Trigger, ...]] = {}
    ends = tuple(f"end_{key}" for key in statuses)
    for entry in data:
        _keys(entry, ("on", "if", "do"), where)
        event = entry["on"]
        known("event", event, (*EVENTS, *ends), where)
        test = condition(entry["if"], statuses, where) if "if" in entry else None
        trigger = Trigger(_read_ops(entry["do"], statuses, where), test)
        found[event] = (*found.get(event, ()), trigger)
    return found


_ALLY_KEYS = (
    *("name", "element", "aggro", "max_energy", "stats", "basic", "skill", "ultimate", "triggers"),
    *("aura", "skill_points", "counters", "auto"),
)
_AUTO_KEYS = ("points", "ally", "boss_without", "keep", "priority")


def _read_ally(key: str, data: Mapping[str, Any], statuses: Any) -> UnitKind:
    where = f"team.yaml: {key}"
    _keys(data, _ALLY_KEYS, where)
    moves = {}
    for name in ("basic", "skill", "ultimate"):
        moves[name] = _read_move(name, data[name], statuses, where)
        known("target", moves[name].target, _TARGETS, f"{where}: {name}")
    if data.get("aura"):
        known("status", data["aura"], statuses, where)
    auto = data.get("auto", {})
    _keys(auto, _AUTO_KEYS, f"{where}: auto")
    for name in [auto[each] for each in ("boss_without", "keep") if each in auto]:
        known("status", name, statuses, f"{where}: auto")
    return UnitKind(
        *(key, data["name"], True, _element(data["element"], where), data["stats"], moves),
        _read_triggers(data.get("triggers", ()), statuses, where),
        **_plain(UnitKind, data),
    )


_ENEMY_KEYS = (
    *("name", "kind", "element", "hp", "absolute_hp", "bars", "spd", "toughness", "weak", "res"),
    *("immune", "control_res", "status_res", "actions", "phases", "enter", "moves", "triggers"),
    *("locked_by", "shares", "revive"),
)


def _per_bar(value: Any, bars: int) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value] * bars
    return tuple(float(each) for each in values)


def _read_enemy(key: str, data: Mapping[str, Any], statuses: Any, others: Any) -> UnitKind:
    where = f"enemies.yaml: {key}"
    _keys(data, _ENEMY_KEYS, where)
    bars = int(data.get("bars", 1))
    moves = {name: _read_move(name, move, statuses, where) for name, move in data["moves"].items()}
    for name in (n for part in ("phases", "enter") for ph in data.get(part, ()) for n in ph):
        known("move", name, moves, where)
    for move in moves.values():
        if move.charge:
            known("move", move.charge, moves, where)
    for name in data.get("locked_by", {}).get("units", ()):
        known("unit", name, others, where)
    weak = data["weak"] if isinstance(data["weak"][0], list) else [data["weak"]] * bars
    for control in data.get("immune", ()):
        known("control", control, CONTROLS, where)
    return UnitKind(
        *(key, data["name"], False, _element(data["element"], where), {}, moves),
        _read_triggers(data.get("triggers", ()), statuses, where),
        hp=_per_bar(data.get("hp", 0), bars),
        spd=_per_bar(data["spd"], bars),
        toughness=_per_bar(data["toughness"], bars),
        weak=tuple(frozenset(_element(e, where) for e in each) for each in weak),
        res={_element(e, where): float(v) for e, v in data.get("res", {}).items()},
        immune=frozenset(data.get("immune", ())),
        phases=tuple(tuple(each) for each in data["phases"]),
        enter=tuple(tuple(each) for each in data.get("enter", ())),
        **_plain(UnitKind, data),
    )


_BATTLE_KEYS = (
    *("title", "mode", "level", "waves", "stream", "cycles", "action_value", "calibration"),
)


def _check_battle(name: str, data: Mapping[str, Any], enemies: Any) -> None:
    where = f"battles.yaml: {name}"
    _keys(data, _BATTLE_KEYS, where)
    known("mode", data["mode"], MODES, where)
    named = [unit for wave in data.get("waves", ()) for unit in wave]
    if "stream" in data:
        named += [*data["stream"]["order"], data["stream"]["elite"]]
    for unit in named:
        known("unit", unit, enemies, where)


Units: TypeAlias = list[Unit]


def known(kind: str, name: str, valid: Any, where: str) -> None:
    """Raises an UnknownNameError for a name that is not valid."""
    if name not in valid:
        raise UnknownNameError(f"{kind} in {where}", str(name), list(valid))


def _one(battle: Field, actor: Unit) -> Units:
    return [battle.aim()] if not actor.ally else battle.enemies[:1]


def _blast(battle: Field, target: Unit | None) -> Units:
    row = [u for u in battle.allies if u.alive] if target and target.ally else battle.enemies
    if target is None or target not in row:
        return []
    at = row.index(target)
    return [target, *row[max(0, at - 1) : at], *row[at + 1 : at + 2]]


SELECTORS: dict[str, Callable[[Field, Unit, Unit | None], Units]] = {
    "self": lambda b, a, t: [a],
    "target": lambda b, a, t: [] if t is None else [t],
    "team": lambda b, a, t: b.side(a),
    "others": lambda b, a, t: [u for u in b.side(a) if u is not a],
    "foes": lambda b, a, t: b.opponents(a),
    "one_foe": lambda b, a, t: _one(b, a),
    "blast": lambda b, a, t: _blast(b, t),
    "boss": lambda b, a, t: [u for u in b.enemies if u.kind.kind == "boss"],
}

# Effects: on a battle, by an actor, on the selected units, with the values of the keys as ``p``.


def _damage(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    if actor.dirty:
        actor.refresh()
    stat = actor.max_hp if p.scale == "hp" else actor.atk
    factor = p.mult
    for unit in units:
        if unit.alive:
            combat.hit(battle, actor, unit, factor * stat, p.toughness, p.hits)
            combat.attacked(battle, unit, actor)
        factor = p.mult * p.side


def _status(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    for unit in units:
        some = p.name
        if len(some) > 1:
            some = [kind for kind in some if unit.find(kind.number) is None] or some
        kind = some[0] if len(some) == 1 else some[int(battle.rand() * len(some))]
        combat.give(battle, actor, unit, kind, chance=p.chance, stacks=p.stacks)


def _heal(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    for unit in units:
        amount = (unit.max_hp - unit.hp) * p.missing + unit.max_hp * p.of_max
        combat.heal(unit, amount + actor.max_hp * p.mult + p.flat)


def _energy(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    for unit in units:
        if p.fill and unit.alive:
            unit.energy = unit.kind.max_energy
        else:
            combat.gain_energy(unit, p.add)


def _skill_points(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    battle.add_points(p.add)


def _advance(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    for unit in units:
        if not (p.others_only and unit is actor):
            combat.advance(battle, unit, p.share)


def _extra_turn(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    battle.extra_slot = actor.slot


def _summon(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    for name in p.units:
        if sum(u.kind.key == name for u in battle.enemies) < p.most:
            foes.summon(battle, name)


def _after(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    owner = battle.enemy(p.unit)
    if owner is not None and not any(timer[1] == p.move for timer in owner.timers):
        owner.timers.append([p.turns, p.move])


def _move(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    battle.perform(actor, p.name)


def _instead(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    actor.charge = p.name


def _counter(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    owner = battle.enemy(p.unit) if p.unit else actor
    if owner is not None:
        value = p.set if p.add is None else owner.counters.get(p.name, 0.0) + p.add
        owner.counters[p.name] = min(p.most, value)


def _cancel(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    owner = battle.enemy(p.unit)
    if owner is not None and _TESTS["counter"](p.counter)(battle, owner, None):
        owner.charge = ""


def _strip(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    found = actor.find(p.name[0].number)
    if found is not None:
        combat.strip(battle, actor, found, p.stacks)


def _cleanse(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    for unit in units:
        for status in [s for s in unit.statuses if unit.numbered[s[KIND]].control]:
            combat.strip(battle, unit, status)


def _wither(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    for unit in [u for u in battle.enemies if u.kind.key == p.unit]:
        combat.hurt(battle, unit, unit.max_hp * p.share, None)


def _eat(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    for unit in [u for u in battle.enemies if u.kind.key == p.unit][: p.most]:
        battle.remove(unit)
        combat.give(battle, actor, actor, p.status[0])


def _die(battle: Field, actor: Unit, units: Units, p: Any) -> None:
    battle.remove(actor)


_Effect: TypeAlias = Callable[[Field, Unit, Units, Any], None]
EFFECTS: dict[str, tuple[_Effect, dict[str, Any]]] = {
    "damage": (
        _damage,
        {
            "mult": float,
            "on": "target",
            "scale": "atk",
            "side": 1.0,
            "toughness": 0.0,
            "hits": (1.0,),
        },
    ),
    "status": (_status, {"name": StatusKind, "on": str, "chance": None, "stacks": 1}),
    "heal": (_heal, {"on": str, "mult": 0.0, "flat": 0.0, "missing": 0.0, "of_max": 0.0}),
    "energy": (_energy, {"on": str, "add": 0.0, "fill": False}),
    "skill_points": (_skill_points, {"add": int}),
    "advance": (_advance, {"on": str, "share": float, "others_only": False}),
    "extra_turn": (_extra_turn, {}),
    "summon": (_summon, {"units": tuple, "most": 1}),
    "after": (_after, {"unit": str, "turns": int, "move": str}),
    "move": (_move, {"name": str}),
    "instead": (_instead, {"name": str}),
    "counter": (_counter, {"name": str, "add": None, "set": None, "unit": "", "most": 99.0}),
    "cancel": (_cancel, {"unit": str, "counter": dict}),
    "strip": (_strip, {"name": StatusKind, "stacks": 0}),
    "cleanse": (_cleanse, {"on": str}),
    "wither": (_wither, {"unit": str, "share": float}),
    "eat": (_eat, {"unit": str, "most": int, "status": StatusKind}),
    "die": (_die, {}),
}
"""Effects by name with their keys: the type of one that has to be given, the default of others.

A ``StatusKind`` is the name of a status, or a list of names of which one is drawn.
"""


def compile_op(name: str, data: Any, test: Any, statuses: Any, where: str) -> Op:
    """Returns an effect as a function of battle, actor and target.

    Args:
        name: of the effect.
        data: the values of its keys, or that of its only key.
        test: the conditions under which it happens; None for always.
        statuses: all there are, by name.
        where: it is in the files.

    Raises:
        UnknownNameError: a key, selector or status does not exist.
        ConfigError: a value is missing or of another type.
    """
    effect, keys = EFFECTS[name]
    given = data if isinstance(data, Mapping) or len(keys) != 1 else dict.fromkeys(keys, data)
    try:
        for key in given:
            known("key", key, keys, f"{where}: {name}")
        p = {key: _value(given, key, of, statuses, f"{where}: {name}") for key, of in keys.items()}
    except UnknownNameError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {name}: {data!r} is incomplete or wrong: {error}") from error
    select, values = SELECTORS[p.get("on", "target")], _Values()
    for key, value in p.items():
        setattr(values, key, value)
    holds = None if test is None else condition(test, statuses, where)

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        if holds is None or holds(battle, actor, target):
            effect(battle, actor, select(battle, actor, target), values)

    return op


class _Values:
    """The values of an effect's keys; attributes of a class of ours are the fastest to read."""


def _value(given: Mapping[str, Any], key: str, kind: Any, statuses: Any, where: str) -> Any:
    """Returns the value of a key; without one, its default, or KeyError if it has none."""
    if key not in given and not isinstance(kind, type):
        return kind
    value = given[key]
    if kind is StatusKind:
        names = value if isinstance(value, list) else [value]
        for name in names:
            known("status", name, statuses, where)
        return [statuses[name] for name in names]
    if key == "on":
        known("selector", value, SELECTORS, where)
    if kind is None:
        return value
    of = kind if isinstance(kind, type) else type(kind)
    if of is tuple and isinstance(value, str):
        raise TypeError(f"{key}: expected a list, got {value!r}")
    return of(value)


_TESTS: dict[str, Callable[[Any], Test]] = {
    "phase": lambda v: lambda b, a, t: a.bar + 1 == v,
    "own_turn": lambda v: lambda b, a, t: b.current is a and not b.extra,
    "hp_at_most": lambda v: lambda b, a, t: a.hp <= v * a.max_hp,
    "counter": lambda v: lambda b, a, t: all(a.counters.get(k, 0) >= n for k, n in v.items()),
    "target_debuffs": lambda v: lambda b, a, t: t is not None and t.harmful() >= v,
    "target_debuffs_below": lambda v: lambda b, a, t: t is not None and t.harmful() < v,
    "has": lambda v: lambda b, a, t: a.find(v) is not None,
    # By its own nature, whatever statuses add.
    "target_lacks_weakness": lambda v: (
        lambda b, a, t: t is not None and v not in t.base.weak[t.bar]
    ),
}


def condition(data: Mapping[str, Any], statuses: Mapping[str, Any], where: str) -> Test:
    """Returns the conditions of an effect or a trigger, all of which have to hold.

    Raises:
        UnknownNameError: there is no such condition, status or element.
    """
    tests: list[Test] = []
    for name, given in data.items():
        known("condition", name, _TESTS, where)
        value = given
        if name == "has":
            known("status", given, statuses, where)
            value = statuses[given].number
        elif name == "target_lacks_weakness":
            known("element", given, ELEMENTS, where)
            value = ELEMENTS.index(given)
        tests.append(_TESTS[name](value))
    if len(tests) == 1:
        return tests[0]
    return lambda b, a, t: all(test(b, a, t) for test in tests)
