"""Filters of episodes and weights of steps, and returns to go."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.api import Array
from rollout.data.expressions import KINDS, Expression, Row, Value
from rollout.data.refs import EpisodeRef

_ROUNDING = 1e-4  # the progress of a part that ended is a rounded fraction


class StepField(NamedTuple):
    """A name of the language that has a value for each step.

    Attributes:
        column: of the dataset, which it needs.
        value: returns the values ``(T,)`` for the column, and the number of parts of the task.
        doc: meaning.
    """

    column: str
    value: Callable[[Array, int], Array]
    doc: str


STEP_FIELDS: Mapping[str, StepField] = {
    "reward": StepField("reward", lambda c, _: c, "reward of the step"),
    "return_to_go": StepField("reward", lambda c, _: returns_to_go(c), "rewards from there on"),
    "progress_to_go": StepField(
        "progress", lambda c, _: _rise(c), "by how much progress is to exceed its highest so far"
    ),
    "leg": StepField(
        "progress",
        lambda c, n: np.floor(_before(c) * n + _ROUNDING),
        "number of the part of a task of parts, from 0",
    ),
}
"""Names that only a ``StepWeight`` knows."""


class EpisodeFilter(Expression):
    """A condition on episodes, such as ``success and return > 5 and split == 'train'``.

    It has ``and``, ``or``, ``not``, parentheses, the comparisons of Python with ``in`` and chains
    such as ``1 < length <= 9``, the names of ``FIELDS``, numbers computed by ``+ - * / **``,
    ``exp``, ``log``, ``min`` and ``max``, and the mean score that a run of ``gamut judge`` gave an
    episode: ``score('runs/judge') >= 3``, or of one criterion, ``score('runs/judge',
    'creativity') >= 3``. An episode without a score fulfils no comparison with it but ``!=``, as
    with other values that are NaN.

    Args:
        text: the condition; every episode fulfils an empty one.

    Raises:
        UnknownNameError: a name is unknown.
        DatasetError: it is no such expression, or a run of a judge cannot be read.
    """

    _what = "filter"
    _example = "a condition such as success and return > 5 and split == 'train'"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._matches: Value = lambda _: True
        if self.text:
            kind, self._matches = self._parsed()
            if kind is not bool:
                raise self._wrong("expected a condition that is true or false", KINDS[kind])

    def matches(self, ref: EpisodeRef) -> bool:
        """Returns True if an episode fulfils the condition."""
        return bool(self._matches(Row(ref)))

    def select(self, refs: Sequence[EpisodeRef]) -> list[EpisodeRef]:
        """Returns the episodes that fulfil the condition, in the same order."""
        return [ref for ref in refs if self.matches(ref)]

    def _named(self, name: str) -> tuple[type, Value, tuple[str, ...]]:
        if name in STEP_FIELDS:
            raise self._wrong(
                "expected values of episodes; those of steps are for the weight of a training",
                name,
            )
        return super()._named(name)


class StepWeight(Expression):
    """The weight of the steps of episodes, such as ``exp(return / 10)``.

    The language is that of ``EpisodeFilter``, with the names of ``STEP_FIELDS`` beside, and
    ``count(NAME)``, the number of episodes that have the same value of a name, e.g. ``1 /
    count(task)``. True is the weight 1, and false 0: ``success or return_to_go > 0`` are the steps
    of successful episodes and, of the others, those up to the last reward, where rewards are not
    negative.

    Args:
        text: a number or a condition.
        refs: the episodes, which ``count`` counts.
        parts: number of parts of the task that follow one another, for ``leg``; 1 for no parts.

    Attributes:
        columns: columns of the dataset that it needs.

    Raises:
        UnknownNameError: a name is unknown.
        DatasetError: it is no such expression, or a run of a judge cannot be read.
    """

    _what = "weight"
    _example = "a number such as exp(return / 10)"

    def __init__(self, text: str, refs: Sequence[EpisodeRef] = (), *, parts: int = 1) -> None:
        super().__init__(text)
        self._refs, self._parts = refs, parts
        self.columns: frozenset[str] = frozenset()
        kind, self._value = self._parsed()
        if kind is str:
            raise self._wrong("expected a number or a condition", KINDS[kind])

    def of(self, ref: EpisodeRef, columns: Mapping[str, Array]) -> NDArray[np.float32]:
        """Returns the weights of the steps of an episode, ``(T,)``.

        Args:
            ref: the episode.
            columns: ``self.columns`` of its steps.

        Raises:
            DatasetError: a weight is negative or not finite.
        """
        found = np.broadcast_to(np.asarray(self._value(Row(ref, columns)), np.float64), ref.length)
        weights = found.astype(np.float32)
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(wrong):
            at = int(wrong[0])
            raise self._wrong(
                f"expected weights from 0 on; select other episodes with filter, e.g. those that "
                f"have a score by score(RUN) >= 0; for step {at} of episode {ref.episode}",
                f"{found[at]:g}",
            )
        return weights

    def _build(self, node: ast.expr) -> tuple[type, Value, tuple[str, ...]]:
        match node:
            case ast.Call(ast.Name("count"), [ast.Name() as name], []):
                if name.id in STEP_FIELDS:
                    raise self._wrong("count: expected values of episodes", name.id)
                _, value, _ = super()._build(name)
                counts = Counter(value(Row(ref)) for ref in self._refs)
                return float, lambda r: counts[value(Row(r.ref))], ()
            case ast.Call(ast.Name("count")):
                raise self._wrong("expected count(NAME), e.g. count(task)", ast.unparse(node))
        return super()._build(node)

    def _known(self) -> list[str]:
        return [*super()._known(), *STEP_FIELDS, "count"]

    def _named(self, name: str) -> tuple[type, Value, tuple[str, ...]]:
        if name not in STEP_FIELDS:
            return super()._named(name)
        if name == "leg" and self._parts == 1:
            raise self._wrong("expected a task with the evaluator `then` for leg", "another one")
        field = STEP_FIELDS[name]
        self.columns |= {field.column}
        return float, lambda r: field.value(r.columns[field.column], self._parts), ()


def _before(progress: Array) -> Array:
    """Returns the progress before each step; 0 where it is undefined."""
    return np.asarray(np.nan_to_num(np.concatenate([[0.0], progress[:-1]])))


def _rise(progress: Array) -> Array:
    """Returns by how much progress is to exceed its highest value before each step."""
    later = np.maximum.accumulate(np.nan_to_num(progress)[::-1])[::-1]
    return np.asarray(np.maximum(later - np.maximum.accumulate(_before(progress)), 0.0))


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
