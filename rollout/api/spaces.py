"""Any Gymnasium space as flat, named columns, and back; names of action values.

A *leaf* is a space whose values make a column: ``Box``, ``Discrete``, ``MultiDiscrete`` and
``MultiBinary`` of fixed shape, and ``Text``, whose column holds strings (dtype ``object``).
``Dict`` and ``Tuple`` nest; their keys and positions are joined with slashes. Observations in any
other space (``Sequence``, ``Graph``, ``OneOf`` and spaces of strings by third parties) have no
fixed shape and are passed in ``Frame.details``.

A space that is itself a leaf gets its role as key: ``Box(...)`` becomes ``{"observation": ...}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollout.api.types import Array, Columns, clean_text
from rollout.errors import ContractError, SpaceError

OBSERVATION = "observation"
"""Key of the column of an observation space that is itself a leaf."""
ACTION = "action"
"""Key of the column of an action space that is itself a leaf."""

MASK = "mask/"
"""Prefix of an observation that says which values of an action column are legal now.

See ``rollout.api.masks``.
"""

Path = tuple[str | int, ...]
Labels: TypeAlias = Mapping[str, Sequence[str]]
"""Names by column of an action space.

* ``Discrete``: one for each value. ``MultiBinary`` in one dimension: one for each bit.
* ``MultiDiscrete`` in one dimension: one for each position, ``{"camera": ("pitch", "yaw")}``; the
  values of a place under the column and the place, ``{"camera/pitch": ("-10", ..., "10")}``.
"""

NOTHING = "nothing"
"""Name of an action without any bit set."""


def leaf_shape(space: spaces.Space[Any]) -> tuple[int, ...]:
    """Returns the shape of one value of a leaf space, ``()`` for a scalar.

    Raises:
        SpaceError: the space is not a leaf.
    """
    if is_fixed(space):
        return tuple(int(n) for n in space.shape or ())
    if isinstance(space, spaces.Text):
        return ()
    raise SpaceError(
        f"expected a space of fixed shape (Box, Discrete, MultiDiscrete, MultiBinary or Text), "
        f"got {space}; flatten it first with rollout.api.flatten_space"
    )


def leaf_dtype(space: spaces.Space[Any]) -> np.dtype[Any]:
    """Returns the dtype of a leaf's column; ``object`` (strings) for ``Text``."""
    if isinstance(space, spaces.Text):
        return np.dtype(object)
    leaf_shape(space)
    return np.dtype(space.dtype)


def check_stacks(observations: spaces.Dict, stacks: Mapping[str, int]) -> None:
    """Checks that every stack of frames is an observation with such an axis.

    Raises:
        SpaceError: one is not.
    """
    for key, axis in stacks.items():
        leaf = observations.spaces.get(key)
        shape = leaf_shape(leaf) if isinstance(leaf, spaces.Box) else ()
        if not (0 <= axis < len(shape) and shape[axis] > 1):
            raise SpaceError(
                f"stacks: {key!r} is no stack of frames along axis {axis}: expected a Box with "
                f"several frames on this axis, got {leaf}"
            )


def is_fixed(space: spaces.Space[Any]) -> bool:
    """Returns whether the space has a numeric column of fixed shape."""
    return isinstance(
        space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    )


class AnyText(spaces.Text):
    """Text in which any character may occur; the character set is what samples are drawn from.

    It equals a ``Text`` with the same lengths and character set, as older datasets have it.
    """

    def contains(self, x: object) -> bool:
        """Returns whether it is text of an allowed length, without half a surrogate pair."""
        if not isinstance(x, str) or not self.min_length <= len(x) <= self.max_length:
            return False
        return clean_text(x) == x


@dataclass(frozen=True)
class FlatSpace:
    """A nested space, flattened into leaves.

    Attributes:
        original: the original space.
        columns: flat ``Dict`` of the leaves that become columns.
        paths: position of each column in the nested value.
        loose: leaves without a fixed shape, which are passed in ``details``, by key.
        loose_paths: position of each of those.
    """

    original: spaces.Space[Any]
    columns: spaces.Dict
    paths: Mapping[str, Path]
    loose: Mapping[str, spaces.Space[Any]]
    loose_paths: Mapping[str, Path]

    def write(self, value: Any, columns: Mapping[str, Array], row: int) -> None:
        """Copies one nested value into row ``row`` of arrays shaped ``(B, ...)``."""
        for key, path in self.paths.items():
            columns[key][row] = _at(value, path)

    def details(self, value: Any) -> dict[str, Any]:
        """Returns the parts of one nested value that have no column, by key."""
        return {key: _at(value, path) for key, path in self.loose_paths.items()}

    def read(self, columns: Mapping[str, Array], row: int) -> Any:
        """Returns the nested value of row ``row``, with the containers of the original.

        The value shares nothing with the arrays. Loose leaves are absent from dicts and None in
        tuples: only spaces without loose leaves are restored completely.
        """
        leaves = self.columns.spaces
        values = {p: _value(leaves[key], columns[key][row]) for key, p in self.paths.items()}
        return _rebuild(self.original, (), values)


def flatten_space(
    space: spaces.Space[Any], role: str = OBSERVATION, *, text_columns: bool = False
) -> FlatSpace:
    """Returns the space flattened into columns.

    Args:
        space: any Gymnasium space.
        role: key of the column when the space is itself a leaf.
        text_columns: whether ``Text`` becomes a column of strings (as in actions), or is left to
            ``details``.

    Raises:
        SpaceError: two leaves would share a key, or a key is empty.
    """
    columns: dict[str, spaces.Space[Any]] = {}
    paths: dict[str, Path] = {}
    loose: dict[str, spaces.Space[Any]] = {}
    loose_paths: dict[str, Path] = {}
    for path, leaf in _leaves(space, ()):
        key = "/".join(str(p) for p in path) or role
        if key in columns or key in loose or any(str(p) == "" for p in path):
            raise SpaceError(
                f"the key {key!r} is empty or names two parts of {space}; "
                f"rename the parts so that their slash-joined keys differ"
            )
        if is_fixed(leaf) or (text_columns and isinstance(leaf, spaces.Text)):
            columns[key], paths[key] = leaf, path
        else:
            loose[key], loose_paths[key] = leaf, path
    return FlatSpace(space, spaces.Dict(columns), paths, loose, loose_paths)


def _leaves(space: spaces.Space[Any], path: Path) -> Iterator[tuple[Path, spaces.Space[Any]]]:
    if isinstance(space, spaces.Dict):
        for name, part in space.spaces.items():
            yield from _leaves(part, (*path, name))
    elif isinstance(space, spaces.Tuple):
        for position, part in enumerate(space.spaces):
            yield from _leaves(part, (*path, position))
    else:
        yield path, space


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _value(leaf: spaces.Space[Any], value: Any) -> Any:
    # Gymnasium expects plain numbers and text, and arrays otherwise, even without dimensions.
    return value if isinstance(leaf, spaces.Discrete | spaces.Text) else np.array(value)


def _rebuild(space: spaces.Space[Any], path: Path, values: Mapping[Path, Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {
            k: _rebuild(s, (*path, k), values)
            for k, s in space.spaces.items()
            if isinstance(s, spaces.Dict | spaces.Tuple) or (*path, k) in values
        }
    if isinstance(space, spaces.Tuple):
        return tuple(_rebuild(s, (*path, i), values) for i, s in enumerate(space.spaces))
    return values.get(path)


def allocate(space: spaces.Dict, *leading: int) -> Columns:
    """Returns zeroed arrays for a flat ``Dict``, each shaped ``(*leading, *leaf shape)``."""
    return {
        key: (
            np.full(leading, "", dtype=object)
            if isinstance(leaf, spaces.Text)
            else np.zeros((*leading, *leaf_shape(leaf)), leaf_dtype(leaf))
        )
        for key, leaf in space.spaces.items()
    }


def sample(space: spaces.Dict, batch_size: int, rng: np.random.Generator) -> Columns:
    """Returns ``batch_size`` uniform draws of a flat ``Dict``, columns ``(B, ...)``.

    Bounded sides of a ``Box`` are uniform; unbounded ones follow Gymnasium: exponential beyond a
    single bound, normal where there is none.
    """
    return {key: _sample_leaf(leaf, batch_size, rng) for key, leaf in space.spaces.items()}


def _sample_leaf(space: spaces.Space[Any], n: int, rng: np.random.Generator) -> Array:
    if isinstance(space, spaces.Discrete):
        low, count = int(space.start), int(space.n)
        draws = rng.integers(low, low + count, size=n, dtype=np.int64)
        return np.asarray(draws, dtype=leaf_dtype(space))
    if isinstance(space, spaces.MultiDiscrete):
        scale, start = np.asarray(space.nvec), np.asarray(space.start)
        draws = (rng.random((n, *space.shape)) * scale).astype(np.int64)
        return np.asarray(draws + start, dtype=space.dtype)
    if isinstance(space, spaces.MultiBinary):
        return rng.integers(0, 2, size=(n, *space.shape), dtype=np.int8)
    if isinstance(space, spaces.Text):
        letters = np.array(list(space.character_list))
        lengths = rng.integers(space.min_length, space.max_length + 1, size=n)
        words = ["".join(rng.choice(letters, size=int(k))) for k in lengths]
        return np.array(words, dtype=object)
    if isinstance(space, spaces.Box):
        return _sample_box(space, n, rng)
    raise SpaceError(f"expected a leaf space to sample from, got {space}")


def _sample_box(space: spaces.Box, n: int, rng: np.random.Generator) -> Array:
    shape = (n, *space.shape)
    if space.dtype == np.bool_:
        drawn_bits = rng.integers(space.low.astype(int), space.high.astype(int) + 1, size=shape)
        return np.asarray(drawn_bits, dtype=space.dtype)
    if np.issubdtype(space.dtype, np.integer):
        bounds: tuple[Any, Any] = (space.low, space.high)
        return np.asarray(rng.integers(*bounds, size=shape, dtype=bounds[0].dtype, endpoint=True))
    low: NDArray[np.float64] = np.broadcast_to(space.low, shape).astype(np.float64)
    top: NDArray[np.float64] = np.broadcast_to(space.high, shape).astype(np.float64)
    has_low, has_top = np.isfinite(low), np.isfinite(top)
    low, top = np.where(has_low, low, 0), np.where(has_top, top, 0)
    free, tail, share = rng.normal(size=shape), rng.exponential(size=shape), rng.random(shape)
    # A weighted mean, because the difference of the bounds may be more than a float holds.
    bounded = np.clip(low * (1 - share) + top * share, low, np.maximum(low, top))
    drawn = np.select(
        [has_low & has_top, has_low, has_top], [bounded, low + tail, top - tail], free
    )
    holds = np.finfo(leaf_dtype(space))
    return np.asarray(np.clip(drawn, holds.min, holds.max), dtype=space.dtype)


def check_columns(
    space: spaces.Dict, columns: Mapping[str, Array], leading: tuple[int, ...]
) -> None:
    """Checks keys, shapes and dtypes of columns against a flat ``Dict``.

    Raises:
        SpaceError: a key is missing or unknown, or an array has another shape or dtype; the
            message gives the key, the expected and the actual value.
    """
    if columns.keys() != space.spaces.keys():
        missing = sorted(space.spaces.keys() - columns.keys())
        extra = sorted(columns.keys() - space.spaces.keys())
        raise SpaceError(
            f"expected the columns {sorted(space.spaces)}; missing: {missing}, unknown: {extra}"
        )
    for key, leaf in space.spaces.items():
        array = np.asarray(columns[key])
        shape, dtype = (*leading, *leaf_shape(leaf)), leaf_dtype(leaf)
        if array.shape != shape or array.dtype != dtype:
            raise SpaceError(
                f"column {key!r}: expected {dtype}{list(shape)} as in {leaf}, "
                f"got {array.dtype}{list(array.shape)}"
            )


def check_labels(space: spaces.Dict, labels: Labels) -> None:
    """Checks that labels fit an action space.

    Raises:
        ContractError: a label names an unknown column, or there are too many or too few.
    """
    wanted = _counts(space, labels)
    for column, names in labels.items():
        if column not in wanted:
            raise ContractError(
                f"action_labels: no names can be given for {column!r}; "
                f"valid: {', '.join(wanted) or 'none'}"
            )
        if isinstance(names, str) or len(names) != wanted[column]:
            raise ContractError(
                f"action_labels: expected {wanted[column]} names for {column!r}, "
                f"got {names if isinstance(names, str) else len(names)!r}"
            )


def _counts(space: spaces.Dict, labels: Labels) -> dict[str, int]:
    """Returns the number of names of each column, or of each position of a column."""
    counts: dict[str, int] = {}
    for column, leaf in space.spaces.items():
        if isinstance(leaf, spaces.Discrete):
            counts[column] = int(leaf.n)
        elif isinstance(leaf, spaces.MultiBinary) and len(leaf.shape) == 1:
            counts[column] = leaf.shape[0]
        elif isinstance(leaf, spaces.MultiDiscrete) and len(leaf.shape) == 1:
            counts[column] = leaf.shape[0]
            places = zip(labels.get(column, ()), leaf.nvec.tolist(), strict=False)
            counts |= {f"{column}/{place}": int(n) for place, n in places}
    return counts


def describe_action(space: spaces.Dict, labels: Labels, action: Mapping[str, Any]) -> str:
    """Returns one action in words.

    Args:
        space: the action space.
        labels: its names; values without a name are shown as numbers, after their column.
        action: one row: a value of each column; missing columns are omitted.
    """
    parts = []
    leaves = space.spaces
    # In the order of the labels: a gymnasium Dict sorts its columns by name.
    for column in dict.fromkeys([*labels, *leaves]):
        if column not in action or column not in leaves:
            continue
        leaf, value = leaves[column], action[column]
        if column in labels:
            parts.append(_named(column, leaf, labels, value))
        else:
            several = len(leaves) > 1
            parts.append(f"{column} {_plain(value)}" if several else _plain(value))
    return "  ".join(parts)


def _named(column: str, leaf: spaces.Space[Any], labels: Labels, value: Any) -> str:
    names = labels[column]
    if isinstance(leaf, spaces.Discrete):
        return names[int(value) - int(leaf.start)]
    row = np.asarray(value).ravel().tolist()
    if isinstance(leaf, spaces.MultiBinary):
        return "+".join(name for name, on in zip(names, row, strict=True) if on) or NOTHING
    firsts = np.asarray(getattr(leaf, "start", 0)) + np.zeros(len(row), np.int64)
    shown = []
    for place, number, first in zip(names, row, firsts.tolist(), strict=True):
        values = labels.get(f"{column}/{place}")
        shown.append(f"{place} {number if values is None else values[int(number) - int(first)]}")
    return " ".join(shown)


def _plain(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        flat = value.ravel().tolist()
        numbers = [v if isinstance(v, str) else f"{v:g}" for v in flat[:8]]
        return f"[{' '.join(numbers)}{' ...' if len(flat) > 8 else ''}]"
    return f"{value:g}" if isinstance(value, np.number | float) else str(value)
