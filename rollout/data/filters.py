"""Filters of episodes, a small expression language, and returns to go.

``success and return > 5 and split == 'train'`` is parsed as a Python expression of which a few
nodes and the names of ``FIELDS`` are allowed; nothing of it is executed as code.
"""

from __future__ import annotations

import ast
import io
import operator
import tokenize
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.api import Outcome
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

_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda value, choices: value in choices),
    ast.NotIn: ("not in", lambda value, choices: value not in choices),
}
_MOST_CHARACTERS = 2000
_RETURN = "return_"  # the name ``return``, which Python does not allow in an expression
_KINDS = {bool: "true or false", float: "a number", str: "a text"}

_Value = Callable[[EpisodeRef], Any]


class EpisodeFilter:
    """A condition on episodes, such as ``success and return > 5 and split == 'train'``.

    It has ``and``, ``or``, ``not``, parentheses, the comparisons of Python with ``in`` and chains
    such as ``1 < length <= 9``, the names of ``FIELDS``, and the mean score that a run of
    ``gamut judge`` gave an episode: ``score('runs/judge') >= 3``, or of one criterion,
    ``score('runs/judge', 'creativity') >= 3``. An episode without a score fulfils no comparison
    with it but ``!=``, as with other values that are NaN.

    Args:
        text: the condition; every episode fulfils an empty one.

    Attributes:
        uses_scores: whether it depends on the scores of a judge.

    Raises:
        UnknownNameError: a name is unknown.
        DatasetError: it is no such expression, or a run of a judge cannot be read.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.uses_scores = False
        self._matches: _Value = lambda _: True
        if self.text:
            kind, self._matches, _ = self._build(_parse(self.text))
            if kind is not bool:
                raise self._wrong("expected a condition that is true or false", _KINDS[kind])

    def matches(self, ref: EpisodeRef) -> bool:
        """Returns True if an episode fulfils the condition."""
        return bool(self._matches(ref))

    def select(self, refs: Sequence[EpisodeRef]) -> list[EpisodeRef]:
        """Returns the episodes that fulfil the condition, in the same order."""
        return [ref for ref in refs if self.matches(ref)]

    def _build(self, node: ast.expr) -> tuple[type, _Value, tuple[str, ...]]:
        """The kind of an expression, its value, and the values it can have, empty for any."""
        match node:
            case ast.BoolOp(op, values):
                parts = [self._condition(each) for each in values]
                every = isinstance(op, ast.And)
                return bool, lambda r: (all if every else any)(part(r) for part in parts), ()
            case ast.UnaryOp(ast.Not(), operand):
                inner = self._condition(operand)
                return bool, lambda r: not inner(r), ()
            case ast.Compare(left, ops, comparators):
                return bool, self._comparison([left, *comparators], ops), ()
        return self._operand(node)

    def _operand(self, node: ast.expr) -> tuple[type, _Value, tuple[str, ...]]:
        """Like ``_build``, of an expression without parts."""
        match node:
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                return float, lambda _: -number, ()
            case ast.Constant(bool() | int() | float() | str() as value):
                kind = type(value) if isinstance(value, bool | str) else float
                return kind, lambda _: value, ()
            case ast.Name(name):
                name = "return" if name == _RETURN else name
                if name not in FIELDS:
                    raise UnknownNameError("name in a filter", name, [*FIELDS, "score"])
                field = FIELDS[name]
                return field.kind, field.value, field.choices
            case ast.Call(ast.Name("score"), [*arguments], []):
                return float, self._score(arguments), ()
        raise self._wrong(
            "expected names, numbers, texts, and, or, not and comparisons", ast.unparse(node)
        )

    def _condition(self, node: ast.expr) -> _Value:
        kind, value, _ = self._build(node)
        if kind is not bool:
            raise self._wrong("expected a condition that is true or false", ast.unparse(node))
        return value

    def _comparison(self, nodes: Sequence[ast.expr], ops: Sequence[ast.cmpop]) -> _Value:
        """A chain of comparisons: each holds between neighbours."""
        tests = [
            self._pair(left, op, right)
            for left, op, right in zip(nodes[:-1], ops, nodes[1:], strict=True)
        ]
        return lambda r: all(test(r) for test in tests)

    def _pair(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Value:
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
                    f"{ast.unparse(left)} is {_KINDS[kind]}; expected likewise after {sign}",
                    ast.unparse(node),
                )
            for valid, constant in ((choices, node), (other_choices, left)):
                if valid and isinstance(constant, ast.Constant) and constant.value not in valid:
                    raise UnknownNameError("value in a filter", str(constant.value), valid)
            if len(others) == 1 and not isinstance(op, ast.In | ast.NotIn):
                return lambda r: compare(value(r), other(r))
        known = [each.value for each in right.elts]  # type: ignore[attr-defined] # a list, see above
        return lambda r: compare(value(r), known)

    def _score(self, arguments: Sequence[ast.expr]) -> _Value:
        """The mean score in the verdicts of a judge."""
        given = [each.value for each in arguments if isinstance(each, ast.Constant)]
        if not 1 <= len(arguments) <= 2 or [type(each) for each in given] != [str] * len(arguments):
            shown = ", ".join(map(ast.unparse, arguments))
            raise self._wrong("expected score('RUN') or score('RUN', 'CRITERION')", f"({shown})")
        self.uses_scores = True
        scores = judge_scores(*map(str, given))
        return lambda r: scores.get(r.episode, float("nan"))

    def _wrong(self, expected: str, came: str) -> DatasetError:
        text = came.replace(_RETURN, "return")
        return DatasetError(
            f"filter {self.text!r}: {expected.replace(_RETURN, 'return')}, got {text}"
        )


def _parse(text: str) -> ast.expr:
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
        raise DatasetError(
            f"filter {text[:200]!r}: {reason}; expected a condition such as "
            f"success and return > 5 and split == 'train'"
        ) from error


def judge_scores(run: str, criterion: str | None = None) -> dict[int, float]:
    """Returns mean scores by episode in a run of a judge; those of pairs count for both episodes.

    Args:
        run: the run, or its file of verdicts.
        criterion: of this criterion only.

    Raises:
        DatasetError, InputError: they cannot be read, or are no verdicts.
        UnknownNameError: there is no such criterion.
    """
    path = Path(run)
    path = path / "verdicts.parquet" if path.is_dir() else path
    table = read_table(path)
    missing = {"episode", "other", "criterion", "score"} - table.keys()
    if missing:
        raise InputError(f"{path} has no columns {sorted(missing)}; expected a run of gamut judge")
    names = sorted({*table["criterion"].tolist()})
    if criterion is not None and criterion not in names:
        raise UnknownNameError(f"criterion of {path}", criterion, names)
    found: dict[int, list[float]] = defaultdict(list)
    columns = [table[name].tolist() for name in ("episode", "other", "criterion", "score")]
    for episode, other, name, score in zip(*columns, strict=True):
        if score == score and criterion in (None, name):  # noqa: PLR0124 - not NaN
            found[episode].append(score)
            if other >= 0:
                found[other].append(1.0 - score)
    return {episode: sum(each) / len(each) for episode, each in found.items()}


def returns_to_go(rewards: ArrayLike, discount: float = 1.0) -> NDArray[np.float64]:
    """Returns the discounted sum of rewards from each step of an episode to its end.

    Args:
        rewards: ``(T,)``.
        discount: factor of the next step's sum, 0 to 1.

    Returns:
        ``(T,)`` float64.
    """
    left = np.asarray(rewards, np.float64)
    if discount == 1.0:
        return np.cumsum(left[::-1])[::-1]
    found, total = np.empty_like(left), 0.0
    for t in range(len(left) - 1, -1, -1):
        total = left[t] + discount * total
        found[t] = total
    return found
