"""The vocabulary of conditions on a run: ``dug(stone, tool='*_pickaxe') >= 8``.

A condition is a call, a comparison of a call with a number, or such parts joined by ``not`` and
``or``. Names are those of items, blocks, places and players, without quotation marks; patterns with
``*`` and regular expressions are in quotation marks. Every name is checked when a condition is
read. The functions are pure functions of a trace.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridges.mineflayer.minenpc import shapes
from bridges.mineflayer.minenpc.trace import AIR, Cell, Trace, apart, plain
from bridges.mineflayer.names import VERSION, names
from rollout.errors import ConfigError, UnknownNameError

__all__ = ["CLASSES", "PREDICATES", "Condition", "Places", "parse", "parse_all"]

Value = bool | float
_NEAR_GIVEN = 3.0  # blocks from a player within which an item on the ground counts as given
_AT_CHEST = 1.5  # blocks: the other half of a double chest is the same chest
_CONE = math.cos(math.radians(45))
_FAR = 10.0


@dataclass(frozen=True)
class Places:
    """The places that conditions name.

    Attributes:
        points: named positions.
        cells: named lists of positions.
        player: who makes the request.
    """

    points: Mapping[str, Cell] = field(default_factory=dict)
    cells: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    player: str = "Player1"


@dataclass(frozen=True)
class Condition:
    """A condition that was read.

    Attributes:
        text: as it was written.
        predicates: the names of its calls.
    """

    text: str
    predicates: tuple[str, ...]
    _holds: Callable[[Trace], Value]

    def holds(self, trace: Trace) -> bool:
        """Returns whether the condition holds for a run."""
        return bool(self._holds(trace))


def parse_all(texts: Iterable[str], places: Places) -> tuple[Condition, ...]:
    """Returns conditions, read; raises like ``parse``."""
    return tuple(parse(text, places) for text in texts)


def parse(text: str, places: Places) -> Condition:
    """Returns a condition.

    Raises:
        UnknownNameError: it names a predicate, item, block or place that there is not.
        ConfigError: it is no condition.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ConfigError(f"goal: {text!r} is no condition: {error.msg}") from error
    called: list[str] = []
    holds = _read(tree, text, places, called)
    return Condition(text, tuple(called), holds)


_COMPARE: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.GtE: operator.ge,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
}
_ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def number(text: str | int) -> int:
    """Returns the value of a sum or product of whole numbers, such as ``3 * 8 - 1``.

    Raises:
        ConfigError: it is none.
    """
    return int(_constant(ast.parse(str(text), mode="eval").body, str(text)))


def _constant(node: ast.expr, text: str) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_constant(node.operand, text)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _constant(node.left, text), _constant(node.right, text)
        return float(_ARITHMETIC[type(node.op)](left, right))
    raise ConfigError(f"goal: expected a number in {text!r}, got {ast.unparse(node)!r}")


def _read(node: ast.expr, text: str, places: Places, called: list[str]) -> Callable[[Trace], Value]:
    if isinstance(node, ast.BoolOp):
        parts = [_read(each, text, places, called) for each in node.values]
        join = any if isinstance(node.op, ast.Or) else all
        return lambda trace: join(part(trace) for part in parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _read(node.operand, text, places, called)
        return lambda trace: not inner(trace)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        inner = _read(node.left, text, places, called)
        compare, bound = _COMPARE[type(node.ops[0])], _constant(node.comparators[0], text)
        return lambda trace: compare(inner(trace), bound)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node, text, places, called)
    raise ConfigError(
        f"goal: expected a call such as dug(stone), compared with a number, in {text!r}, got "
        f"{ast.unparse(node)!r}"
    )


def _call(node: ast.Call, text: str, places: Places, called: list[str]) -> Callable[[Trace], Value]:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name not in PREDICATES:
        raise UnknownNameError("predicate", name, PREDICATES)
    predicate = PREDICATES[name]
    called.append(name)
    kinds, many = predicate.kinds, predicate.many
    if len(node.args) < predicate.least or (len(node.args) > len(kinds) and not many):
        raise ConfigError(
            f"goal: expected {name}({', '.join(kinds)}) in {text!r}, got {len(node.args)} arguments"
        )
    given = [
        _argument(arg, kinds[min(k, len(kinds) - 1)], text, places)
        for k, arg in enumerate(node.args)
    ]
    named: dict[str, Any] = {}
    for each in node.keywords:
        key = str(each.arg)
        if key not in predicate.named:
            raise UnknownNameError(f"argument of {name}", key, predicate.named)
        named[key] = _argument(each.value, predicate.named[key], text, places)
    work = predicate.work
    return lambda trace: work(trace, places, *given, **named)


def _argument(node: ast.expr, kind: str, text: str, places: Places) -> Any:
    if kind == "number":
        return _constant(node, text)
    if isinstance(node, ast.Name):
        word = node.id
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        word = node.value
    else:
        raise ConfigError(f"goal: expected a name in {text!r}, got {ast.unparse(node)!r}")
    if kind == "place":
        if word not in places.points:
            raise UnknownNameError("place", word, places.points)
        return places.points[word]
    if kind == "cells":
        if word not in places.cells:
            raise UnknownNameError("list of positions", word, places.cells)
        return tuple(places.cells[word])
    if kind == "pattern":
        try:
            return re.compile(word, re.IGNORECASE)
        except re.error as error:
            raise ConfigError(f"goal: {word!r} is no regular expression: {error}") from error
    if kind in ("item", "block"):
        known = names().items if kind == "item" else names().blocks
        if not any(fnmatch.fnmatchcase(each, word) for each in known):
            raise UnknownNameError(f"{kind} of Minecraft {VERSION}", word, known)
    return word


# the predicates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicate:
    """A function of a run.

    Attributes:
        work: the function, of a trace, the places and its arguments.
        kinds: kinds of its arguments: item, block, place, cells, number, pattern, word.
        failure: the class of failures where it does not hold.
        least: arguments that must be given.
        many: whether the last kind may be repeated.
        named: kinds of the arguments that are given by name.
    """

    work: Callable[..., Value]
    kinds: tuple[str, ...]
    failure: str
    least: int
    many: bool
    named: Mapping[str, str]


PREDICATES: dict[str, Predicate] = {}
"""The predicates by their names."""

CLASSES = (
    "code or execution",
    "inventory or tool",
    "context",
    "referencing",
    "navigation",
)
"""The paper's classes of failures."""


def _predicate(
    name: str, kinds: str, failure: str, *, least: int | None = None, **named: str
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    def add(work: Callable[..., Value]) -> Callable[..., Value]:
        asked = tuple(kinds.removesuffix("...").split())
        fewest = len(asked) if least is None else least
        PREDICATES[name] = Predicate(work, asked, failure, fewest, kinds.endswith("..."), named)
        return work

    return add


def _like(value: Any, pattern: str) -> bool:
    return fnmatch.fnmatchcase(plain(str(value)), pattern)


def _total(counts: Mapping[str, int], item: str) -> int:
    return sum(count for name, count in counts.items() if _like(name, item))


def _counted(events: Iterable[Mapping[str, Any]], item: str) -> int:
    return sum(int(each.get("count", 1)) for each in events if _like(each.get("item"), item))


@_predicate("d", "item", "inventory or tool")
def _change(trace: Trace, places: Places, item: str) -> Value:
    return _total(trace.after, item) - _total(trace.before, item)


@_predicate("has", "item", "inventory or tool")
def _has(trace: Trace, places: Places, item: str) -> Value:
    return _total(trace.after, item)


@_predicate(
    "dug", "block", "inventory or tool",
    at="place", r="number", tool="item", least_age="number", most_age="number", ahead="place",
)  # fmt: skip
def _dug(
    trace: Trace,
    places: Places,
    block: str,
    at: Cell | None = None,
    r: float = _FAR,
    tool: str | None = None,
    least_age: float = -1,
    most_age: float = math.inf,
    ahead: Cell | None = None,
) -> Value:
    """Blocks dug; ``at`` and ``r`` limit where, ``ahead`` to a cone of the player's view."""
    found = 0
    for event in trace.own("dug"):
        age = float((event.get("properties") or {}).get("age", least_age))
        found += (
            _like(event.get("block"), block)
            and (at is None or apart(event["position"], at) <= r)
            and (tool is None or _like(event.get("tool"), tool))
            and least_age <= age <= most_age
            and (ahead is None or _ahead(event["position"], places, ahead, _CONE, _FAR))
        )
    return found


def _ahead(where: Sequence[float], places: Places, front: Cell, cosine: float, far: float) -> bool:
    """Whether a position is before the player, who looks from P to ``front``."""
    x, _, z = places.points["P"]
    dx, dz = where[0] - x, where[2] - z
    ux, uz = front[0] - x, front[2] - z
    length = math.hypot(dx, dz)
    if length > far or length == 0:
        return length == 0
    return bool((dx * ux + dz * uz) / (length * math.hypot(ux, uz)) >= cosine)


@_predicate("first_dug", "place number", "referencing")
def _first_dug(trace: Trace, places: Places, place: Cell, r: float) -> Value:
    first = next(trace.own("dug"), None)
    return first is not None and apart(first["position"], place) <= r


@_predicate("crafted", "item", "inventory or tool")
def _crafted(trace: Trace, places: Places, item: str) -> Value:
    return _counted(trace.own("crafted"), item)


@_predicate("smelted", "item", "inventory or tool")
def _smelted(trace: Trace, places: Places, item: str) -> Value:
    return _counted(trace.own("smelted"), item)


@_predicate("ate", "item", "inventory or tool")
def _ate(trace: Trace, places: Places, item: str) -> Value:
    return sum(_like(each.get("item"), item) for each in trace.own("ate"))


def _of_chest(trace: Trace, kind: str, place: Cell) -> list[Mapping[str, Any]]:
    near = (each for each in trace.own(kind) if each.get("position"))
    return [each for each in near if apart(each["position"], place) <= _AT_CHEST]


def _moved(trace: Trace, place: Cell, items: Callable[[str], bool]) -> Iterator[int]:
    """Yields the items that the agent has put into a chest less those that it took, in time."""
    total = 0
    for event in trace.own("took", "put"):
        where = event.get("position")
        if where and apart(where, place) <= _AT_CHEST and items(plain(str(event.get("item")))):
            count = int(event.get("count", 1))
            total += count if event["type"] == "put" else -count
            yield total


@_predicate("took", "place item", "referencing")
def _took(trace: Trace, places: Places, place: Cell, item: str) -> Value:
    """The most that it had from the chest at one time: what is put back was not taken again."""
    return max((-n for n in _moved(trace, place, lambda name: _like(name, item))), default=0)


@_predicate("took_other", "place item...", "referencing")
def _took_other(trace: Trace, places: Places, place: Cell, *items: str) -> Value:
    """Other items that it took and has not put back."""
    kinds = {plain(str(event.get("item"))) for event in _of_chest(trace, "took", place)}
    others = [each for each in kinds if not any(_like(each, item) for item in items)]
    left = (list(_moved(trace, place, functools.partial(str.__eq__, kind))) for kind in others)
    return sum(max(0, -counts[-1]) for counts in left)


@_predicate("put", "place item", "referencing")
def _put(trace: Trace, places: Places, place: Cell, item: str) -> Value:
    """Items that it put into the chest and left there."""
    *_, last = (0, *_moved(trace, place, lambda name: _like(name, item)))
    return max(0, last)


@_predicate("opened", "place", "referencing")
def _opened(trace: Trace, places: Places, place: Cell) -> Value:
    return len(_of_chest(trace, "opened", place))


def _lying(trace: Trace, item: str, place: Sequence[float], r: float) -> list[Mapping[str, Any]]:
    mine = (each for each in trace.drops if each.get("thrower") == trace.agent)
    near = (each for each in mine if _like(each.get("item"), item))
    return [each for each in near if apart(each["position"], place) <= r]


def _collected(trace: Trace, item: str, who: str) -> int:
    return _counted((each for each in trace.own("gave") if each.get("to") == who), item)


@_predicate("gave", "item word", "inventory or tool", least=1)
def _gave(trace: Trace, places: Places, item: str, who: str = "") -> Value:
    """Items tossed that a player collected, or that lie within 3 blocks of it."""
    who = who or places.player
    place = trace.players.get(who, places.points.get("P", (0, 64, 0)))
    there = _collected(trace, item, who) + _counted(_lying(trace, item, place, _NEAR_GIVEN), "*")
    return min(there, _counted(trace.own("tossed"), item))


@_predicate("dropped", "item place number", "inventory or tool", ahead="place")
def _dropped(
    trace: Trace, places: Places, item: str, place: Cell, r: float, ahead: Cell | None = None
) -> Value:
    """Items tossed that lie near a place, or that the player there collected."""
    lying = _lying(trace, item, place, r)
    if ahead is not None:
        lying = [each for each in lying if _ahead(each["position"], places, ahead, 0.0, math.inf)]
    there = _counted(lying, "*") + _collected(trace, item, places.player)
    return min(there, _counted(trace.own("tossed"), item))


@_predicate("lying", "item place number", "inventory or tool")
def _left(trace: Trace, places: Places, item: str, place: Cell, r: float) -> Value:
    """Items on the ground near a place."""
    near = (each for each in trace.drops if apart(each["position"], place) <= r)
    return _counted(near, item)


@_predicate("near", "place number", "navigation")
def _near(trace: Trace, places: Places, place: Cell, r: float) -> Value:
    return bool(trace.path) and apart(trace.path[-1], place) <= r


@_predicate("visited", "place number", "navigation")
def _visited(trace: Trace, places: Places, place: Cell, r: float) -> Value:
    return any(apart(each, place) <= r for each in trace.path)


@_predicate("rose", "number", "navigation")
def _rose(trace: Trace, places: Places, height: float) -> Value:
    return bool(trace.path and trace.path[-1][1] >= height)


@_predicate("trampled", "", "code or execution")
def _trampled(trace: Trace, places: Places) -> Value:
    return len(list(trace.own("trampled")))


@_predicate("hit", "word", "code or execution")
def _hit(trace: Trace, places: Places, who: str) -> Value:
    return sum(bool(each.get("entity") == who) for each in trace.own("hit"))


@_predicate("chat", "pattern", "context")
def _chat(trace: Trace, places: Places, pattern: re.Pattern[str]) -> Value:
    return sum(bool(pattern.search(line)) for line in trace.said)


@_predicate("asked", "", "context")
def _asked(trace: Trace, places: Places) -> Value:
    return trace.questions


@_predicate("listed", "", "context")
def _listed(trace: Trace, places: Places) -> Value:
    said = " ".join(trace.said).lower().replace(" ", "_")
    return all(name in said for name in trace.after)


@_predicate("told", "place", "context")
def _told(trace: Trace, places: Places, place: Cell) -> Value:
    """Whether a line of the agent gives a place, as three numbers, within a block."""
    for line in trace.said:
        numbers = [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", line)]
        if any(apart(numbers[k : k + 3], place) <= 1.8 for k in range(len(numbers) - 2)):
            return True
    return False


@_predicate("cells", "cells block", "referencing")
def _cells(trace: Trace, places: Places, cells: Sequence[Cell], block: str) -> Value:
    """How many positions of a list have a block."""
    found = (plain(trace.blocks.get(each, "air")) for each in cells)
    return sum(_like(name, block) and (block != "*" or name not in AIR) for name in found)


@_predicate("changed", "cells cells", "inventory or tool", least=1)
def _changed(
    trace: Trace, places: Places, cells: Sequence[Cell], but: Sequence[Cell] = ()
) -> Value:
    """How many positions of a list have another block than at the start, some left out."""
    looked = set(cells) - set(but)
    return sum(
        plain(trace.blocks.get(each, "air")) != plain(trace.first.get(each, "air"))
        for each in looked
    )


@_predicate("new", "block", "inventory or tool")
def _new(trace: Trace, places: Places, block: str) -> Value:
    """Watched positions that have a block they did not have at the start."""
    return sum(_like(name, block) for name in trace.new().values())


@_predicate("pyramid", "block number", "code or execution")
def _pyramid(trace: Trace, places: Places, block: str, side: float) -> Value:
    return trace.shape(
        ("pyramid", block, side), lambda: shapes.pyramid(_built(trace, block), int(side))
    )


@_predicate("house", "block number number", "code or execution", at="place", r="number")
def _house(
    trace: Trace,
    places: Places,
    block: str,
    side: float,
    height: float,
    at: Cell | None = None,
    r: float = 8,
) -> Value:
    """Whether a closed house with one opening and a roof was built."""
    return trace.shape(
        ("house", block, side, height, at, r),
        lambda: shapes.house(_built(trace, block, at, r), int(side), int(height)),
    )


@_predicate("walls", "block number number", "code or execution", at="place", r="number")
def _walls(
    trace: Trace,
    places: Places,
    block: str,
    side: float,
    height: float,
    at: Cell | None = None,
    r: float = 8,
) -> Value:
    """The share of the cells of a square ring of walls that are built, where it is largest."""
    return trace.shape(
        ("walls", block, side, height, at, r),
        lambda: shapes.walls(_built(trace, block, at, r), int(side), int(height)),
    )


@_predicate("row", "block number number cells number", "code or execution")
def _row(
    trace: Trace,
    places: Places,
    block: str,
    length: float,
    height: float,
    beside: Sequence[Cell],
    r: float,
) -> Value:
    """Whether a straight wall of one material stands within ``r`` of some cells, apart of them."""
    built = {
        each: name
        for each, name in trace.new().items()
        if _like(name, block) and each not in beside
    }
    for kind in set(built.values()):
        of_kind = {each for each, name in built.items() if name == kind}
        for wall in shapes.rows(of_kind, int(length), int(height)):
            if min(apart(a, b) for a in wall for b in beside) <= r:
                return True
    return False


def _built(trace: Trace, block: str, at: Cell | None = None, r: float = 8) -> set[Cell]:
    """Positions of blocks that were built, near a place if there is one."""
    return {
        each
        for each, name in trace.new().items()
        if _like(name, block)
        and (at is None or max(abs(each[0] - at[0]), abs(each[2] - at[2])) <= r)
    }
