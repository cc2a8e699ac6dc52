"""Masks: observations that say which actions are legal.

The mask of the action column ``NAME`` is the observation ``mask/NAME``, a ``MultiBinary``. An
action column consists of one or more *choices*: a ``Discrete`` of one, a ``MultiDiscrete`` of one
for each of its numbers, a ``MultiBinary`` of one for each of its bits. The mask has an element for
each value of the first choice, then for each of the second, and so on, as in ``sb3-contrib``. A
choice of which no value is legal is that of a slot that does not play, or whose episode is over;
it is not restricted.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api.spaces import MASK, FlatSpace, leaf_dtype, leaf_shape
from rollout.api.types import Array, Bools, Columns
from rollout.errors import SpaceError

_NAMES = ("mask", "legal", "action_mask", "legal_actions", "valid_actions", "available_actions")
"""Names of observations that are probably masks."""
_NEAR = 0.8  # similarity of a name to one of them


def choices_of(leaf: spaces.Space[Any]) -> tuple[int, ...]:
    """Returns the number of values of each choice of an action column; empty without choices."""
    if isinstance(leaf, spaces.Discrete):
        return (int(leaf.n),)
    if isinstance(leaf, spaces.MultiDiscrete):
        return tuple(int(n) for n in leaf.nvec.ravel())
    if isinstance(leaf, spaces.MultiBinary):
        return (2,) * math.prod(leaf.shape)
    return ()


def mask_spaces(actions: spaces.Dict) -> dict[str, spaces.MultiBinary]:
    """Returns the space of the mask of each action column that has choices, by action column."""
    sizes = {key: sum(choices_of(leaf)) for key, leaf in actions.spaces.items()}
    return {key: spaces.MultiBinary(size) for key, size in sizes.items() if size}


def check_masks(observations: spaces.Dict, actions: spaces.Dict) -> None:
    """Checks that every mask belongs to an action column with choices and has its size.

    Raises:
        SpaceError: one does not.
    """
    wanted = mask_spaces(actions)
    for key, leaf in observations.spaces.items():
        if not key.startswith(MASK):
            continue
        name = key.removeprefix(MASK)
        if name not in wanted:
            raise SpaceError(
                f"the observation {key!r} is a mask: expected the name of a Discrete, "
                f"MultiDiscrete or MultiBinary action after {MASK!r} "
                f"({', '.join(wanted) or 'there is none'}), got {actions.spaces.get(name, name)}"
            )
        if leaf != wanted[name]:
            raise SpaceError(
                f"the observation {key!r} is the mask of the action {actions.spaces[name]}: "
                f"expected {wanted[name]}, one element for each value of each choice, got {leaf}"
            )


def masks_of(observations: spaces.Dict, actions: spaces.Dict) -> dict[str, tuple[int, ...]]:
    """Returns the masks among observations, each with the number of values of its choices."""
    return {
        key: choices_of(actions.spaces[key.removeprefix(MASK)])
        for key in observations.spaces
        if key.startswith(MASK)
    }


def legal_values(mask: Array, sizes: Sequence[int]) -> Bools:
    """Returns which values are legal, ``(B, n)``; all of a choice of which the mask has none.

    Args:
        mask: ``(B, n)``.
        sizes: number of values of each choice; their sum is ``n``.
    """
    legal: Bools = mask.reshape(len(mask), -1).astype(bool)
    if len(sizes) == 1:
        return legal | ~legal.any(1, keepdims=True)
    return legal | np.repeat(~_any_legal(legal, sizes), sizes, axis=1)


def _any_legal(legal: Bools, sizes: Sequence[int]) -> Bools:
    """Returns whether any value of each choice is legal, ``(B, choices)``."""
    firsts = np.cumsum([0, *sizes[:-1]])
    found: Bools = np.logical_or.reduceat(legal, firsts, axis=1)
    return found


def draw_legal(leaf: spaces.Space[Any], mask: Array, rng: np.random.Generator) -> Array:
    """Returns a legal value of an action column for each row of its mask, drawn uniformly."""
    sizes = choices_of(leaf)
    chosen = []
    for own in np.split(legal_values(mask, sizes), np.cumsum(sizes)[:-1], 1):
        number = np.floor(rng.random(len(own)) * own.sum(1))
        chosen.append((own.cumsum(1) > number[:, None]).argmax(1))
    values = np.stack(chosen, 1).reshape(len(mask), *leaf_shape(leaf))
    return np.asarray(values + np.asarray(getattr(leaf, "start", 0)), leaf_dtype(leaf))


def illegal_rows(leaf: spaces.Space[Any], mask: Array, actions: Array) -> Bools:
    """Returns which rows of an action column have a value that their mask forbids, ``(B,)``."""
    sizes = choices_of(leaf)
    chosen = actions.reshape(len(actions), -1) - np.ravel(getattr(leaf, "start", 0))
    places = chosen.astype(np.int64) + np.cumsum([0, *sizes[:-1]])
    allowed = np.take_along_axis(legal_values(mask, sizes), places, 1)
    return np.asarray(~allowed.all(1))


class MaskCheck:
    """Finds slots that play and may choose nothing.

    Args:
        observations: the observation space of the game.
        actions: its action space.
    """

    def __init__(self, observations: spaces.Dict, actions: spaces.Dict) -> None:
        self._masks = masks_of(observations, actions)

    def __bool__(self) -> bool:
        return bool(self._masks)

    def __call__(self, observations: Columns, active: Bools) -> tuple[int, str] | None:
        """Returns the first such slot and what it lacks; None if there is none.

        Args:
            observations: ``{key: (B, ...)}``.
            active: slots that play, ``(B,)``.
        """
        for key, sizes in self._masks.items():
            found = _any_legal(observations[key].astype(bool), sizes)
            wrong = active & ~found.all(1)
            if wrong.any():
                slot = int(wrong.argmax())
                number = int(found[slot].argmin())
                which = f" in choice {number} of {len(sizes)}" if len(sizes) > 1 else ""
                return slot, f"the mask {key!r} allows none of {sizes[number]} values{which}"
        return None


def mask_like(observations: spaces.Dict, actions: spaces.Dict) -> dict[str, str]:
    """Returns observations that look like masks and are none, each with the column it could mask.

    Their name is near "mask" or "legal actions", and they have an element for each value of an
    action column that has no mask.
    """
    wanted = {k: s for k, s in mask_spaces(actions).items() if MASK + k not in observations.spaces}
    found = {}
    for key, leaf in observations.spaces.items():
        if key.startswith(MASK) or not _named_like_one(key):
            continue
        size = math.prod(leaf_shape(leaf))
        fits = [name for name, space in wanted.items() if space.shape == (size,)]
        if not fits and size == sum(int(space.n) for space in wanted.values()):
            fits = list(wanted)
        if fits:
            found[key] = fits[0]
    return found


def _named_like_one(key: str) -> bool:
    name = key.rpartition("/")[2].casefold().replace("-", "_")
    words = name.split("_")
    if "mask" in name or "legal" in words or "valid" in words:
        return True
    return bool(difflib.get_close_matches(name, _NAMES, 1, _NEAR))


class MaskReader:
    """Reads the masks that games give for their actions.

    The mask of an action space is, as for Gymnasium's ``Space.sample(mask)``: of a ``Discrete`` an
    array with an element for each value; of a ``MultiDiscrete`` a tuple of such arrays; of a
    ``MultiBinary`` an array of its shape, 0 and 1 for bits that must be so and 2 for others; of a
    ``Dict`` or ``Tuple`` the same with the mask of each part, or None where a part is not
    restricted. It may also be one array, all of these joined in the order of the columns, with an
    element for each value of each choice, as in ``sb3-contrib``.

    Attributes:
        sizes: length of the mask of each action column.

    Args:
        action: the action space.
    """

    def __init__(self, action: FlatSpace) -> None:
        self._action = action
        self.sizes = {key: int(s.shape[0]) for key, s in mask_spaces(action.columns).items()}
        self._total = sum(self.sizes.values())

    def read(self, value: Any, lead: tuple[int, ...] = ()) -> Columns:
        """Returns the masks by action column, ``(*lead, n)`` int8.

        Args:
            value: one mask, or the masks of a batch in arrays with the axes ``lead`` first.
            lead: as above.

        Raises:
            SpaceError: it has another shape, or values other than 0 and 1.
        """
        joined = self._joined(value, lead)
        if joined is not None:
            ends = np.cumsum(list(self.sizes.values()))[:-1]
            return dict(zip(self.sizes, np.split(joined, ends, -1), strict=True))
        columns: Columns = {}
        for key, path in self._action.paths.items():
            if key not in self.sizes:
                continue
            part = value
            for name in path:
                part = self._part(part, name)
            columns[key] = self._column(key, part, lead)
        return columns

    def _joined(self, value: Any, lead: tuple[int, ...]) -> Array | None:
        """Returns the value if it is one array for all columns."""
        if isinstance(value, Mapping | tuple):
            return None
        array = _array(value)
        if array is None or array.shape != (*lead, self._total):
            if self._action.paths and list(self._action.paths.values()) != [()]:
                raise self._error("the actions", self._total, value, lead)
            return None
        return _bits("the actions", array)

    def _part(self, value: Any, name: Any) -> Any:
        if value is None:
            return None
        try:
            return value[name]
        except (KeyError, IndexError, TypeError):
            has = list(value) if isinstance(value, Mapping) else type(value).__name__
            raise SpaceError(
                f"the mask of the actions has no part {name!r}; expected the parts of "
                f"{self._action.original}, or one array of {self._total} numbers, got {has}"
            ) from None

    def _column(self, key: str, value: Any, lead: tuple[int, ...]) -> Array:
        size, leaf = self.sizes[key], self._action.columns[key]
        if value is None:
            return np.ones((*lead, size), np.int8)
        if isinstance(leaf, spaces.MultiDiscrete) and _has_parts(value):
            parts = [_array(each) for each in _flat(value)]
            sizes = choices_of(leaf)
            shapes = [None if part is None else part.shape for part in parts]
            if shapes != [(*lead, n) for n in sizes]:
                expected = f"a tuple of arrays of {list(sizes)} numbers"
                raise SpaceError(f"the mask of {key!r}, {leaf}: expected {expected}, got {shapes}")
            value = np.concatenate([part for part in parts if part is not None], -1)
        array = _array(value)
        if array is not None and array.shape == (*lead, size):
            return _bits(repr(key), array)
        wanted = (*lead, *leaf.shape) if isinstance(leaf, spaces.MultiBinary) else None
        if array is not None and array.shape == wanted:
            both = np.stack([array != 1, array != 0], -1)
            return both.reshape(*lead, size).astype(np.int8)
        raise self._error(f"{key!r}, {leaf}", size, value, lead)

    def _error(self, what: str, size: int, value: Any, lead: tuple[int, ...]) -> SpaceError:
        array = _array(value)
        came = type(value).__name__ if array is None else f"an array of shape {list(array.shape)}"
        return SpaceError(
            f"the mask of {what}: expected an array of shape {[*lead, size]}, one element for each "
            f"value, got {came}"
        )


def _array(value: Any) -> Array | None:
    try:
        array = np.asarray(value)
    except ValueError:  # arrays of several lengths
        return None
    return array if array.dtype.kind in "biuf" else None


def _has_parts(value: Any) -> bool:
    first = value[0] if isinstance(value, tuple | list) and value else None
    return isinstance(first, tuple | list | np.ndarray)


def _flat(value: Sequence[Any]) -> list[Any]:
    """Returns the arrays of a nested tuple, as Gymnasium has it for several dimensions."""
    nested = [_flat(each) if isinstance(each, tuple) else [each] for each in value]
    return [one for each in nested for one in each]


def _bits(what: str, array: Array) -> Array:
    bits = array.astype(np.int8)
    if array.dtype != np.bool_ and not ((array == 0) | (array == 1)).all():
        raise SpaceError(
            f"the mask of {what}: expected 0 for a value that is not legal and 1 for one that is, "
            f"got values from {array.min()} to {array.max()}"
        )
    return bits


def sample_mask(actions: spaces.Dict, observations: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the masks of one row in the form of ``actions.sample(mask)``.

    Args:
        actions: flat ``Dict`` of action columns.
        observations: one row, with the masks.
    """
    found: dict[str, Any] = {}
    for key, leaf in actions.spaces.items():
        mask = observations.get(MASK + key)
        if mask is None:
            found[key] = None
            continue
        bits: Array = np.asarray(mask, np.int8)
        if isinstance(leaf, spaces.MultiDiscrete):
            parts = np.split(bits, np.cumsum(choices_of(leaf))[:-1])
            found[key] = _nested(iter(parts), leaf.nvec.shape)
        elif isinstance(leaf, spaces.MultiBinary):
            pairs = bits.reshape(*leaf.shape, 2)
            found[key] = np.where(pairs.sum(-1) == 1, pairs[..., 1], 2).astype(np.int8)
        else:
            found[key] = bits
    return found


def _nested(parts: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    if len(shape) == 1:
        return tuple(next(parts) for _ in range(shape[0]))
    return tuple(_nested(parts, shape[1:]) for _ in range(shape[0]))
