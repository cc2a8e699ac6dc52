"""The effects of which moves and triggers are made, from their data to functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bridges.starbench import combat
from bridges.starbench.field import Field
from bridges.starbench.kinds import Op, Test
from bridges.starbench.units import ELEMENTS, Unit
from rollout.errors import ConfigError, UnknownNameError


def _one(battle: Field, actor: Unit) -> list[Unit]:
    return [battle.aim()] if not actor.ally else battle.enemies[:1]


def _blast(battle: Field, target: Unit | None) -> list[Unit]:
    row = [u for u in battle.allies if u.alive] if target and target.ally else battle.enemies
    if target is None or target not in row:
        return []
    at = row.index(target)
    return [target, *row[max(0, at - 1) : at], *row[at + 1 : at + 2]]


SELECTORS: dict[str, Callable[[Field, Unit, Unit | None], list[Unit]]] = {
    "self": lambda b, a, t: [a],
    "target": lambda b, a, t: [] if t is None else [t],
    "team": lambda b, a, t: b.side(a),
    "others": lambda b, a, t: [u for u in b.side(a) if u is not a],
    "foes": lambda b, a, t: b.opponents(a),
    "one_foe": lambda b, a, t: _one(b, a),
    "blast": lambda b, a, t: _blast(b, t),
    "boss": lambda b, a, t: [u for u in b.enemies if u.kind.kind == "boss"],
}


def _damage(p: Mapping[str, Any], _: Any) -> Op:
    mult, side = float(p["mult"]), float(p.get("side", 1.0))
    by_hp, toughness = p.get("scale") == "hp", float(p.get("toughness", 0))
    hits, select = tuple(p.get("hits", (1.0,))), SELECTORS[p.get("on", "target")]

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        if actor.dirty:
            actor.refresh()
        stat = actor.max_hp if by_hp else actor.atk
        factor = mult
        for unit in select(battle, actor, target):
            if unit.alive:
                combat.hit(battle, actor, unit, factor * stat, toughness, hits)
                battle.attacked(unit, actor)
            factor = mult * side

    return op


def _status(p: Mapping[str, Any], statuses: Mapping[str, Any]) -> Op:
    select, chance, stacks = SELECTORS[p["on"]], p.get("chance"), int(p.get("stacks", 1))
    kinds = [statuses[name] for name in p.get("one_of", [p.get("name")])]

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        for unit in select(battle, actor, target):
            some = kinds
            if len(kinds) > 1:
                some = [k for k in kinds if unit.find(k.number) is None] or kinds
            kind = some[0] if len(some) == 1 else some[int(battle.rand() * len(some))]
            combat.give(battle, actor, unit, kind, chance=chance, stacks=stacks)

    return op


def _heal(p: Mapping[str, Any], _: Any) -> Op:
    select, missing, of_max = SELECTORS[p["on"]], p.get("missing", 0.0), p.get("of_max", 0.0)
    mult, flat = p.get("mult", 0.0), p.get("flat", 0.0)

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        for unit in select(battle, actor, target):
            amount = (unit.max_hp - unit.hp) * missing + unit.max_hp * of_max
            combat.heal(unit, amount + actor.max_hp * mult + flat)

    return op


def _energy(p: Mapping[str, Any], _: Any) -> Op:
    select, add, fill = SELECTORS[p["on"]], float(p.get("add", 0)), bool(p.get("fill"))

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        for unit in select(battle, actor, target):
            if fill and unit.alive:
                unit.energy = unit.kind.max_energy
            else:
                combat.gain_energy(unit, add)

    return op


def _skill_points(p: Mapping[str, Any], _: Any) -> Op:
    return lambda battle, actor, target: battle.add_points(int(p["add"]))


def _advance(p: Mapping[str, Any], _: Any) -> Op:
    select, share, others = SELECTORS[p["on"]], float(p["share"]), bool(p.get("others_only"))

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        for unit in select(battle, actor, target):
            if not (others and unit is actor):
                combat.advance(battle, unit, share)

    return op


def _extra_turn(p: Mapping[str, Any], _: Any) -> Op:
    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        battle.extra_slot = actor.slot

    return op


def _summon(p: Mapping[str, Any], _: Any) -> Op:
    names, most = tuple(p["units"]), int(p.get("most", 1))

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        for name in names:
            if sum(u.kind.key == name for u in battle.enemies) < most:
                battle.summon(name)

    return op


def _after(p: Mapping[str, Any], _: Any) -> Op:
    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        owner = battle.enemy(p["unit"])
        if owner is not None and not any(t[1] == p["move"] for t in owner.timers):
            owner.timers.append([int(p["turns"]), p["move"]])

    return op


def _move(p: str, _: Any) -> Op:
    return lambda battle, actor, target: battle.perform(actor, p)


def _instead(p: str, _: Any) -> Op:
    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        actor.charge = p

    return op


def _counter(p: Mapping[str, Any], _: Any) -> Op:
    name, most = p["name"], float(p.get("most", 99))

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        owner = battle.enemy(p["unit"]) if "unit" in p else actor
        if owner is not None:
            value = p["set"] if "set" in p else owner.counters.get(name, 0.0) + p["add"]
            owner.counters[name] = min(most, value)

    return op


def _cancel(p: Mapping[str, Any], _: Any) -> Op:
    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        owner = battle.enemy(p["unit"])
        if owner is not None and all(
            owner.counters.get(k, 0) >= n for k, n in p["counter"].items()
        ):
            owner.charge = ""

    return op


def _strip(p: Mapping[str, Any], statuses: Mapping[str, Any]) -> Op:
    number, stacks = statuses[p["name"]].number, int(p.get("stacks", 0))

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        found = actor.find(number)
        if found is not None:
            combat.strip(battle, actor, found, stacks)

    return op


def _cleanse(p: Mapping[str, Any], _: Any) -> Op:
    select = SELECTORS[p["on"]]

    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        for unit in select(battle, actor, target):
            for status in [s for s in unit.statuses if unit.numbered[s[0]].control]:
                combat.strip(battle, unit, status)

    return op


def _wither(p: Mapping[str, Any], _: Any) -> Op:
    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        for unit in [u for u in battle.enemies if u.kind.key == p["unit"]]:
            combat.hurt(battle, unit, unit.max_hp * p["share"], None)

    return op


def _eat(p: Mapping[str, Any], statuses: Mapping[str, Any]) -> Op:
    def op(battle: Field, actor: Unit, target: Unit | None) -> None:
        eaten = [u for u in battle.enemies if u.kind.key == p["unit"]][: int(p["most"])]
        for unit in eaten:
            battle.remove(unit)
            combat.give(battle, actor, actor, statuses[p["status"]])

    return op


def _die(p: Mapping[str, Any], _: Any) -> Op:
    return lambda battle, actor, target: battle.remove(actor)


OPS: dict[str, tuple[Callable[[Any, Any], Op], tuple[str, ...]]] = {
    "damage": (_damage, ("mult", "scale", "on", "side", "toughness", "hits")),
    "status": (_status, ("name", "one_of", "on", "chance", "stacks")),
    "heal": (_heal, ("on", "mult", "flat", "missing", "of_max")),
    "energy": (_energy, ("on", "add", "fill")),
    "skill_points": (_skill_points, ("add",)),
    "advance": (_advance, ("on", "share", "others_only")),
    "extra_turn": (_extra_turn, ()),
    "summon": (_summon, ("units", "most")),
    "after": (_after, ("unit", "turns", "move")),
    "move": (_move, ()),
    "instead": (_instead, ()),
    "counter": (_counter, ("unit", "name", "add", "set", "most")),
    "cancel": (_cancel, ("unit", "counter")),
    "strip": (_strip, ("name", "stacks")),
    "cleanse": (_cleanse, ("on",)),
    "wither": (_wither, ("unit", "share")),
    "eat": (_eat, ("unit", "most", "status")),
    "die": (_die, ()),
}
"""Effects by name: how each is compiled, and its keys."""


def compile_op(name: str, data: Any, test: Any, statuses: Any, where: str) -> Op:
    """Returns an effect as a function of battle, actor and target.

    Raises:
        UnknownNameError: a key, selector or status does not exist.
        ConfigError: a value is missing or of another type.
    """
    build, keys = OPS[name]
    if isinstance(data, Mapping):
        for key in data:
            _require("key", key, keys, f"{where}: {name}")
        if "on" in data:
            _require("selector", data["on"], SELECTORS, f"{where}: {name}")
        named = [*data.get("one_of", ()), *([data["status"]] if name == "eat" else ())]
        if name in {"status", "strip"} and "name" in data:
            named.append(data["name"])
        for status in named:
            _require("status", status, statuses, f"{where}: {name}")
    try:
        op = build(data, statuses)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {name}: {data!r} is incomplete or wrong: {error}") from error
    if test is None:
        return op
    holds = condition(test, statuses, where)

    def guarded(battle: Field, actor: Unit, target: Unit | None) -> None:
        if holds(battle, actor, target):
            op(battle, actor, target)

    return guarded


def _require(kind: str, name: str, valid: Any, where: str) -> None:
    if name not in valid:
        raise UnknownNameError(f"{kind} in {where}", str(name), list(valid))


def _has(name: str, statuses: Mapping[str, Any], where: str) -> Test:
    _require("status", name, statuses, where)
    number = statuses[name].number
    return lambda b, a, t: a.find(number) is not None


def _counted(wanted: Mapping[str, float]) -> Test:
    return lambda b, a, t: all(a.counters.get(k, 0) >= n for k, n in wanted.items())


_TESTS: dict[str, Callable[[Any], Test]] = {
    "phase": lambda v: lambda b, a, t: a.bar + 1 == v,
    "own_turn": lambda v: lambda b, a, t: b.current is a and not b.extra,
    "hp_at_most": lambda v: lambda b, a, t: a.hp <= v * a.max_hp,
    "counter": _counted,
    "target_debuffs": lambda v: lambda b, a, t: t is not None and t.harmful() >= v,
    "target_debuffs_below": lambda v: lambda b, a, t: t is not None and t.harmful() < v,
}


def condition(data: Mapping[str, Any], statuses: Mapping[str, Any], where: str) -> Test:
    """Returns the conditions of an effect or a trigger, all of which have to hold.

    Raises:
        UnknownNameError: there is no such condition, status or element.
    """
    tests: list[Test] = []
    for name, value in data.items():
        _require("condition", name, (*_TESTS, "has", "target_lacks_weakness"), where)
        if name == "has":
            tests.append(_has(value, statuses, where))
        elif name == "target_lacks_weakness":
            _require("element", value, ELEMENTS, where)
            tests.append(_lacks(ELEMENTS.index(value)))
        else:
            tests.append(_TESTS[name](value))
    if len(tests) == 1:
        return tests[0]
    return lambda b, a, t: all(test(b, a, t) for test in tests)


def _lacks(element: int) -> Test:
    """Whether the target is not weak to an element by its own nature."""
    return lambda b, a, t: t is not None and element not in t.base.weak[t.bar]
