"""The expressions of filters and weights: a small part of Python's, none of it run as code.

They have the names of ``FIELDS``, and further ones where a subclass of ``Expression`` knows them.
"""

from __future__ import annotations

import ast
import functools
import io
import operator
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rollout.api import Array, Outcome
from rollout.data.refs import EpisodeRef, part_of_set
from rollout.data.tables import read_table
from rollout.errors import DatasetError, InputError, UnknownNameError


class Field(NamedTuple):
    """A name of the language.

    Attributes:
        kind: type of its values.
        value: returns the value of an episode.
        doc: meaning.
        choices: the values it can have; empty for any.
    """

    kind: type
    value: Callable[[EpisodeRef], Any]
    doc: str
    choices: tuple[str, ...] = ()


_OUTCOMES = tuple(outcome.name.lower() for outcome in Outcome)
FIELDS: Mapping[str, Field] = {
    "success": Field(bool, lambda r: r.outcome == Outcome.SUCCESS, "the outcome is success"),
    "failure": Field(bool, lambda r: r.outcome == Outcome.FAILURE, "the outcome is failure"),
    "outcome": Field(str, lambda r: r.outcome.name.lower(), "decision of the evaluator", _OUTCOMES),
    "return": Field(float, lambda r: r.total_reward, "undiscounted sum of rewards"),
    "progress": Field(float, lambda r: r.progress, "last progress, 0 to 1"),
    "length": Field(float, lambda r: r.length, "steps"),
    "seconds": Field(float, lambda r: r.seconds, "duration"),
    "end": Field(str, lambda r: r.end, "kind of end", ("terminated", "truncated", "lost")),
    "episode": Field(float, lambda r: r.episode, "number of the episode"),
    "attempt": Field(float, lambda r: r.attempt, "number of earlier, lost attempts"),
    "task": Field(str, lambda r: r.task, "name of the task"),
    "split": Field(str, lambda r: part_of_set(r.state_set), "part of the states, e.g. 'train'"),
    "state_set": Field(str, lambda r: r.state_set, "name of the state set"),
    "state": Field(float, lambda r: r.state, "index of the start state"),
    "seed": Field(float, lambda r: r.seed, "seed of the episode"),
    "policy": Field(str, lambda r: r.policy, "name of the policy"),
    "version": Field(float, lambda r: r.version_last, "weights that chose the last action"),
    "instance": Field(float, lambda r: r.instance, "game instance"),
    "slot": Field(float, lambda r: r.slot, "slot of the instance"),
}
"""Names of the language, beside ``score(RUN)`` and ``score(RUN, CRITERION)``."""


_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda value, choices: _any(value == each for each in choices)),
    ast.NotIn: ("not in", lambda value, choices: _every(value != each for each in choices)),
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.float_power,
}
FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "exp": (1, np.exp),
    "log": (1, np.log),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
}
"""Functions of numbers, with their numbers of arguments."""
_MOST_CHARACTERS = 2000
_RETURN = "return_"  # the name ``return``, which Python does not allow in an expression
KINDS = {bool: "true or false", float: "a number", str: "a text"}


class Row(NamedTuple):
    """What an expression is evaluated on: an episode, or its steps as well.

    Attributes:
        ref: the episode.
        columns: columns of its steps, each ``(T,)``.
    """

    ref: EpisodeRef
    columns: Mapping[str, Array] = {}


Value = Callable[[Row], Any]


class Expression:
    """An expression of the language.

    Args:
        text: the expression.

    Attributes:
        text: the expression.
        uses_scores: whether it depends on the scores of a judge.
    """

    _what: ClassVar[str]
    _example: ClassVar[str]

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.uses_scores = False

    def _parsed(self) -> tuple[type, Value]:
        """The kind of the whole expression, and its value."""
        kind, value, _ = self._build(_parse(self.text, self._what, self._example))
        return kind, value

    def _build(self, node: ast.expr) -> tuple[type, Value, tuple[str, ...]]:
        """The kind of an expression, its value, and the values it can have, empty for any."""
        match node:
            case ast.BoolOp(op, values):
                parts = [self._condition(each) for each in values]
                join = _every if isinstance(op, ast.And) else _any
                return bool, lambda r: join(part(r) for part in parts), ()
            case ast.UnaryOp(ast.Not(), operand):
                inner = self._condition(operand)
                return bool, lambda r: inner(r) ^ True, ()
            case ast.Compare(left, ops, comparators):
                return bool, self._comparison([left, *comparators], ops), ()
        return self._number(node)

    def _number(self, node: ast.expr) -> tuple[type, Value, tuple[str, ...]]:
        """Like ``_build``, of an expression that is no condition."""
        match node:
            case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
                return float, self._computed(_ARITHMETIC[type(op)], [left, right]), ()
            case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
                return float, self._computed(np.negative, [operand]), ()
            case ast.Call(ast.Name(name), [*arguments], []) if name in FUNCTIONS:
                count, function = FUNCTIONS[name]
                if len(arguments) != count:
                    wanted = "one number" if count == 1 else "two numbers"
                    raise self._wrong(f"expected {wanted} for {name}", ast.unparse(node))
                return float, self._computed(function, arguments), ()
        return self._operand(node)

    def _computed(self, function: Callable[..., Any], nodes: Sequence[ast.expr]) -> Value:
        """A number that is computed from others; true counts as 1, and false as 0."""
        values = []
        for node in nodes:
            kind, value, _ = self._build(node)
            if kind is str:
                raise self._wrong("expected a number to compute with", ast.unparse(node))
            values.append(value)

        def compute(r: Row) -> Any:
            with np.errstate(all="ignore"):
                found = function(*(np.asarray(value(r), np.float64) for value in values))
            return found if np.ndim(found) else float(found)

        return compute

    def _operand(self, node: ast.expr) -> tuple[type, Value, tuple[str, ...]]:
        """Like ``_build``, of an expression without parts."""
        match node:
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                return float, lambda _: -number, ()
            case ast.Constant(bool() | int() | float() | str() as value):
                kind = type(value) if isinstance(value, bool | str) else float
                return kind, lambda _: value, ()
            case ast.Name(name):
                return self._named("return" if name == _RETURN else name)
            case ast.Call(ast.Name("score"), [*arguments], []):
                return float, self._score(arguments), ()
        raise self._wrong(
            "expected names, numbers, texts, and, or, not, comparisons, + - * / **, exp, log, min "
            "and max",
            ast.unparse(node),
        )

    def _named(self, name: str) -> tuple[type, Value, tuple[str, ...]]:
        """Like ``_build``, of a name."""
        if name not in FIELDS:
            raise UnknownNameError(f"name in a {self._what}", name, self._known())
        field = FIELDS[name]
        return field.kind, lambda r: field.value(r.ref), field.choices

    def _known(self) -> list[str]:
        """All names of the language."""
        return [*FIELDS, "score", *FUNCTIONS]

    def _condition(self, node: ast.expr) -> Value:
        kind, value, _ = self._build(node)
        if kind is not bool:
            raise self._wrong("expected a condition that is true or false", ast.unparse(node))
        return value

    def _comparison(self, nodes: Sequence[ast.expr], ops: Sequence[ast.cmpop]) -> Value:
        """A chain of comparisons: each holds between neighbours."""
        tests = [
            self._pair(left, op, right)
            for left, op, right in zip(nodes[:-1], ops, nodes[1:], strict=True)
        ]
        return lambda r: _every(test(r) for test in tests)

    def _pair(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Value:
        if type(op) not in _COMPARISONS:
            raise self._wrong("expected ==, !=, <, <=, >, >=, in or not in", "is")
        sign, compare = _COMPARISONS[type(op)]
        kind, value, choices = self._build(left)
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.List | ast.Tuple | ast.Set) or not right.elts:
                raise self._wrong(
                    f"expected a list after {sign}, e.g. ['a', 'b']", ast.unparse(right)
                )
            others = [self._build(each) for each in right.elts]
            if not all(isinstance(each, ast.Constant) for each in right.elts):
                raise self._wrong("expected a list of numbers or texts", ast.unparse(right))
        else:
            others = [self._build(right)]
        for (other_kind, other, other_choices), node in zip(
            others, getattr(right, "elts", [right]), strict=True
        ):
            if other_kind is not kind:
                raise self._wrong(
                    f"{ast.unparse(left)} is {KINDS[kind]}; expected likewise after {sign}",
                    ast.unparse(node),
                )
            for valid, constant in ((choices, node), (other_choices, left)):
                if valid and isinstance(constant, ast.Constant) and constant.value not in valid:
                    raise UnknownNameError(f"value in a {self._what}", str(constant.value), valid)
            if len(others) == 1 and not isinstance(op, ast.In | ast.NotIn):
                return lambda r: compare(value(r), other(r))
        known = [each.value for each in right.elts]  # type: ignore[attr-defined] # a list, see above
        return lambda r: compare(value(r), known)

    def _score(self, arguments: Sequence[ast.expr]) -> Value:
        """The mean score in the verdicts of a judge."""
        given = [each.value for each in arguments if isinstance(each, ast.Constant)]
        if not 1 <= len(arguments) <= 2 or [type(each) for each in given] != [str] * len(arguments):
            shown = ", ".join(map(ast.unparse, arguments))
            raise self._wrong("expected score('RUN') or score('RUN', 'CRITERION')", f"({shown})")
        self.uses_scores = True
        scores = judge_scores(*map(str, given))
        return lambda r: scores.get(r.ref.episode, float("nan"))

    def _wrong(self, expected: str, came: str) -> DatasetError:
        text = came.replace(_RETURN, "return")
        return DatasetError(
            f"{self._what} {self.text!r}: {expected.replace(_RETURN, 'return')}, got {text}"
        )


def _every(values: Iterable[Any]) -> Any:
    return functools.reduce(operator.and_, values)


def _any(values: Iterable[Any]) -> Any:
    return functools.reduce(operator.or_, values)


def _parse(text: str, what: str, example: str) -> ast.expr:
    """The syntax tree of an expression."""
    try:
        if len(text) > _MOST_CHARACTERS:
            raise ValueError(f"it has more than {_MOST_CHARACTERS:,} characters")
        tokens = [
            (
                each.type,
                _RETURN if (each.type, each.string) == (tokenize.NAME, "return") else each.string,
            )
            for each in tokenize.generate_tokens(io.StringIO(" ".join(text.split())).readline)
        ]
        return ast.parse(tokenize.untokenize(tokens).strip(), mode="eval").body
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError) as error:
        reason = error.args[0] if error.args else error
        raise DatasetError(f"{what} {text[:200]!r}: {reason}; expected {example}") from error


def judge_scores(run: str, criterion: str | None = None) -> dict[int, float]:
    """Returns mean scores by episode in a run of a judge; those of pairs count for both episodes.

    Args:
        run: the run, or its file of verdicts.
        criterion: of this criterion only.

    Raises:
        DatasetError, InputError: they cannot be read, or are no verdicts.
        UnknownNameError: there is no such criterion.
    """
    table = judge_table(run)
    names = sorted({*table["criterion"].tolist()})
    if criterion is not None and criterion not in names:
        raise UnknownNameError(f"criterion of {run}", criterion, names)
    found: dict[int, list[float]] = defaultdict(list)
    columns = [table[name].tolist() for name in ("episode", "other", "criterion", "score")]
    for episode, other, name, score in zip(*columns, strict=True):
        if score == score and criterion in (None, name):  # noqa: PLR0124 - not NaN
            found[episode].append(score)
            if other >= 0:
                found[other].append(1.0 - score)
    return {episode: sum(each) / len(each) for episode, each in found.items()}


def judge_table(run: str) -> dict[str, Array]:
    """Returns the verdicts in a run of a judge, by column; see ``judge_scores``.

    Raises:
        DatasetError, InputError: they cannot be read, or are no verdicts.
    """
    path = Path(run)
    path = path / "verdicts.parquet" if path.is_dir() else path
    table = read_table(path)
    missing = {"episode", "other", "criterion", "score"} - table.keys()
    if missing:
        raise InputError(f"{path} has no columns {sorted(missing)}; expected a run of gamut judge")
    return dict(table)
