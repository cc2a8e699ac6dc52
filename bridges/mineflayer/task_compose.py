"""Tasks composed of others by ``and``, ``or`` and ``then`` (MCU, section 2.3 and appendix E.2).

Inventories are merged: all items of both for ``and`` and ``then``, those of the larger need for
``or``. Where both place blocks at the same spot, the later scene is moved aside. What cannot hold
at once is an error that names both values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bridges.mineflayer.mcu_files import start_states
from bridges.mineflayer.task_check import check, goals
from rollout.errors import ConfigError, UnknownNameError

OPERATORS = ("and", "or", "then")

_GIVE = re.compile(r"/?give @[sp] (?:minecraft:)?(\w+(?:\{.*\})?)(?: (\d+))?\s*")
_ONE_OF = {"weather": re.compile(r"/?weather (\w+)"), "time": re.compile(r"/?time set (\w+)")}
_PLACES = re.compile(r"^((?:.*\b(?:fill|setblock)|.*\bsummon \S+) )((?:~[-\d.]* ?){3,6})(.*)$")
_ASIDE = (0, 8, -8, 16, -16)  # blocks to the south
_MOST = 6400  # items that one command gives


def compose(operator: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the document of a composed task; see ``rollout.api.TaskTools``."""
    if operator not in OPERATORS:
        raise UnknownNameError("operator", operator, OPERATORS)
    if len(documents) < 2:
        raise ConfigError(f"{operator}: expected at least two tasks, got {len(documents)}")
    names = [str(each.get("name", "task")) for each in documents]
    steps = [int((each.get("limits") or {}).get("steps") or 0) for each in documents]
    whole: dict[str, Any] = {
        "name": f"_{operator}_".join(name.replace("/", "_") for name in names),
        "goal": _sentence(operator, [str(each.get("goal", "")) for each in documents]),
        "state_space": _states(names, documents),
        "options": _options(operator, names, documents),
        "difficulty": "hard" if any(e.get("difficulty") == "hard" for e in documents) else "simple",
        "metadata": {"family": "composed", "category": "compositional", "parts": names},
    }
    whole["evaluator"] = _evaluator(operator, documents, whole["goal"])
    if all(steps):
        whole["limits"] = {"steps": max(steps) if operator == "or" else sum(steps)}
    problems = check(whole)
    if problems:
        said = "; ".join(each.problem for each in problems)
        raise ConfigError(f"{operator}: {', '.join(names)} cannot be composed: {said}")
    return whole


def _sentence(operator: str, goals_: Sequence[str]) -> str:
    plain = [goal.strip().rstrip(".") for goal in goals_]
    first, rest = plain[0], [goal[:1].lower() + goal[1:] for goal in plain[1:]]
    return f", {operator} ".join([first, *rest]) + "."


def _states(names: Sequence[str], documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The factors of all: what one asks for counts before what is usual."""
    usual = start_states(site="flat")
    found: dict[str, Any] = {}
    owner: dict[str, str] = {}
    for name, document in zip(names, documents, strict=True):
        for factor, values in (document.get("state_space") or {}).items():
            both = _common(found.get(factor, values), values)
            if factor not in found or both is not None:
                found[factor] = values if factor not in found else both
            elif _listed(found[factor]) == _listed(usual.get(factor)):
                found[factor] = values
            elif _listed(values) != _listed(usual.get(factor)):
                raise ConfigError(
                    f"state_space.{factor}: {owner[factor]} needs {found[factor]!r}, and {name} "
                    f"needs {values!r}"
                )
            owner[factor] = name
    return found


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list) else [values]


def _common(first: Any, second: Any) -> Any:
    """Values in both; None if there are none, or if they are no lists of values."""
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        return first if first == second else None
    both = [value for value in _listed(first) if value in _listed(second)]
    if not both:
        return None
    return both if isinstance(first, list) and isinstance(second, list) else both[0]


# starts -------------------------------------------------------------------------------------------


def _options(
    operator: str, names: Sequence[str], documents: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    gifts: dict[str, int] = {}
    scene: list[str] = []
    made: set[str] = set()
    for name, document in zip(names, documents, strict=True):
        asked = dict(document.get("options") or {})
        lines = [str(each) for each in asked.pop("commands", ())]
        for key, value in asked.items():
            if options.setdefault(key, value) != value:
                raise ConfigError(
                    f"options.{key}: {options[key]!r} before, and {value!r} of {name}"
                )
        for item, count in _given(lines):
            if operator == "then" and item.partition("{")[0] in made:
                continue  # the part before makes it
            before = gifts.get(item, 0)
            gifts[item] = min(max(before, count) if operator == "or" else before + count, _MOST)
        others = [line for line in lines if not _GIVE.fullmatch(line)]
        _require_one(name, [*scene, *others])
        scene += _moved(name, others, scene)
        made |= _products(document)
    gives = [f"/give @s {item} {count}" for item, count in gifts.items()]
    return {**options, "commands": [*gives, *scene]} if gives or scene else options


def _given(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    for line in lines:
        match = _GIVE.fullmatch(line)
        if match:
            yield match[1], int(match[2] or 1)


def _products(document: Mapping[str, Any]) -> set[str]:
    made = [
        goal for goal in goals(document.get("evaluator")) if goal.get("statistic") == "craft_item"
    ]
    return {str(name) for goal in made for name in goal.get("names", ())}


def _require_one(name: str, lines: Sequence[str]) -> None:
    for what, pattern in _ONE_OF.items():
        said = {match[1] for line in lines if (match := pattern.search(line))}
        if len(said) > 1:
            raise ConfigError(f"commands: /{what} {' and '.join(sorted(said))} at once, of {name}")


def _moved(name: str, lines: Sequence[str], before: Sequence[str]) -> list[str]:
    """Commands whose blocks are beside those of others."""
    taken = [box for line in before if (box := _box(line, 0)) is not None]
    for aside in _ASIDE:
        boxes = [box for line in lines if (box := _box(line, aside)) is not None]
        if not any(_overlap(box, other) for box in boxes for other in taken):
            return [_shifted(line, aside) for line in lines]
    raise ConfigError(f"commands: the blocks of {name} have no room beside those of the others")


_Box = list[tuple[float, float]]


def _box(line: str, aside: int) -> _Box | None:
    """The spans of x, y and z that a command changes blocks in; None if it does not, by ``~``."""
    match = _PLACES.match(line)
    if match is None or "summon" in match[1]:
        return None
    numbers = [float(each[1:] or 0) for each in match[2].split()]
    corners = [numbers[:3], numbers[-3:]]
    spans = [(min(pair), max(pair)) for pair in zip(*corners, strict=True)]
    return [*spans[:2], (spans[2][0] + aside, spans[2][1] + aside)]


def _overlap(one: _Box, other: _Box) -> bool:
    return all(a <= d and c <= b for (a, b), (c, d) in zip(one, other, strict=True))


def _shifted(line: str, aside: int) -> str:
    match = _PLACES.match(line)
    if match is None or not aside:
        return line
    places = match[2].split()
    for k in range(2, len(places), 3):
        places[k] = f"~{float(places[k][1:] or 0) + aside:g}"
    return f"{match[1]}{' '.join(places)} {match[3]}".rstrip()


def _evaluator(operator: str, documents: Sequence[Mapping[str, Any]], goal: str) -> dict[str, Any]:
    """The composed goals; a goal for a judge alone if one of them is."""
    parts = [dict(each.get("evaluator") or {"name": "game_reward"}) for each in documents]
    if any(part["name"] == "mineland_creative" for part in parts):
        return {"name": "mineland_creative", "goal": goal}
    return {"name": operator, "parts": parts}
