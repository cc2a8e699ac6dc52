"""The rules, units and battles that the files of ``data/`` describe, checked by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bridges.starbench.rules.effects import EFFECTS, compile_op, condition, known
from bridges.starbench.rules.kinds import Content, Move, Op, StatusKind, Trigger, UnitKind
from bridges.starbench.rules.units import ELEMENTS, STAT, STATS
from rollout.errors import ConfigError
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
        key: _status(number, key, data, files["statuses"])
        for number, (key, data) in enumerate(files["statuses"].items())
    }
    team = files["team"]
    units = {key: _ally(key, data, statuses) for key, data in team["characters"].items()}
    for key, data in files["enemies"].items():
        units[key] = _enemy(key, data, statuses, files["enemies"])
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


_STATUS_KEYS = (
    *("title", "harmful", "turns", "tick", "stacks", "mods", "with", "control", "delay", "dot"),
    *("per_hit", "redirect", "wards", "grants", "implants"),
)


def _status(number: int, key: str, data: Mapping[str, Any], others: Any) -> StatusKind:
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
    names = {*data.get("mods", {})}
    return StatusKind(
        *(key, number, data["title"], bool(data.get("harmful")), int(data.get("turns", 1))),
        tick=TICKS[tick],
        stacks=int(data.get("stacks", 1)),
        mods=tuple(mods),
        worked_out=tuple(worked_out),
        extra=extra,
        control=data.get("control", ""),
        delay=float(data.get("delay", 0)),
        dot=data.get("dot"),
        per_hit=bool(data.get("per_hit")),
        redirect=float(data.get("redirect", 0)),
        wards=bool(data.get("wards")),
        grants=data.get("grants", ""),
        implants=_element(data["implants"], where) if "implants" in data else -1,
        at_once=bool(names & {"spd", "hp_flat"}),
    )


def _ops(data: Any, statuses: Mapping[str, StatusKind], where: str) -> tuple[Op, ...]:
    ops = []
    for entry in data:
        rest = {key: value for key, value in entry.items() if key != "if"}
        if len(rest) != 1:
            raise ConfigError(f"{where}: expected one effect, got {list(rest)}")
        (name,) = rest
        known("effect", name, EFFECTS, where)
        ops.append(compile_op(name, rest[name], entry.get("if"), statuses, where))
    return tuple(ops)


def _move(key: str, data: Mapping[str, Any], statuses: Any, where: str) -> Move:
    where = f"{where}: {key}"
    _keys(data, ("target", "energy", "do", "charge"), where)
    energy = data.get("energy", "single")
    if isinstance(energy, str):
        known("energy", energy, ("single", "area", "heavy"), where)
        energy = {"single": 10.0, "area": 5.0, "heavy": 15.0}[energy]
    ops = _ops(data.get("do", ()), statuses, where)
    return Move(key, data.get("target", "random"), float(energy), ops, data.get("charge", ""))


def _triggers(data: Any, statuses: Any, where: str) -> dict[str, tuple[Trigger, ...]]:
    found: dict[str, tuple[Trigger, ...]] = {}
    ends = tuple(f"end_{key}" for key in statuses)
    for entry in data:
        _keys(entry, ("on", "if", "do"), where)
        event = entry["on"]
        known("event", event, (*EVENTS, *ends), where)
        test = condition(entry["if"], statuses, where) if "if" in entry else None
        trigger = Trigger(_ops(entry["do"], statuses, where), test)
        found[event] = (*found.get(event, ()), trigger)
    return found


_ALLY_KEYS = (
    *("name", "element", "aggro", "max_energy", "stats", "basic", "skill", "ultimate", "triggers"),
    *("aura", "skill_points", "counters", "auto"),
)
_AUTO_KEYS = ("points", "ally", "boss_without", "keep", "priority")


def _ally(key: str, data: Mapping[str, Any], statuses: Any) -> UnitKind:
    where = f"team.yaml: {key}"
    _keys(data, _ALLY_KEYS, where)
    moves = {}
    for name in ("basic", "skill", "ultimate"):
        moves[name] = _move(name, data[name], statuses, where)
        known("target", moves[name].target, _TARGETS, f"{where}: {name}")
    if data.get("aura"):
        known("status", data["aura"], statuses, where)
    auto = data.get("auto", {})
    _keys(auto, _AUTO_KEYS, f"{where}: auto")
    for name in [auto[each] for each in ("boss_without", "keep") if each in auto]:
        known("status", name, statuses, f"{where}: auto")
    return UnitKind(
        *(key, data["name"], True, _element(data["element"], where), data["stats"], moves),
        _triggers(data.get("triggers", ()), statuses, where),
        aggro=data["aggro"],
        max_energy=float(data["max_energy"]),
        skill_points=int(data.get("skill_points", 0)),
        aura=data.get("aura", ""),
        auto=auto,
        counters=data.get("counters", {}),
    )


_ENEMY_KEYS = (
    *("name", "kind", "element", "hp", "absolute_hp", "bars", "spd", "toughness", "weak", "res"),
    *("immune", "control_res", "status_res", "actions", "phases", "enter", "moves", "triggers"),
    *("locked_by", "shares", "revive"),
)


def _per_bar(value: Any, bars: int) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value] * bars
    return tuple(float(each) for each in values)


def _enemy(key: str, data: Mapping[str, Any], statuses: Any, others: Any) -> UnitKind:
    where = f"enemies.yaml: {key}"
    _keys(data, _ENEMY_KEYS, where)
    bars = int(data.get("bars", 1))
    moves = {name: _move(name, move, statuses, where) for name, move in data["moves"].items()}
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
        _triggers(data.get("triggers", ()), statuses, where),
        kind=data["kind"],
        bars=bars,
        hp=_per_bar(data.get("hp", 0), bars),
        absolute_hp=float(data.get("absolute_hp", 0)),
        spd=_per_bar(data["spd"], bars),
        toughness=_per_bar(data["toughness"], bars),
        weak=tuple(frozenset(_element(e, where) for e in each) for each in weak),
        res={_element(e, where): float(v) for e, v in data.get("res", {}).items()},
        immune=frozenset(data.get("immune", ())),
        control_res=float(data.get("control_res", 0)),
        status_res=float(data.get("status_res", 0)),
        actions=int(data.get("actions", 1)),
        phases=tuple(tuple(each) for each in data["phases"]),
        enter=tuple(tuple(each) for each in data.get("enter", ())),
        locked_by=data.get("locked_by"),
        shares=data.get("shares", ""),
        revive=float(data.get("revive", 0)),
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
