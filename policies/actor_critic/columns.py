"""The encoding of observation columns for a network: numbers, symbols or a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from rollout.api import MASK, OBSERVATION, PRIVILEGED
from rollout.errors import ConfigError, UnknownNameError

Kind = Literal["numbers", "symbols", "picture"]

_MOST_SYMBOLS = 64  # whole numbers of fewer values than this are symbols
_MOST_GRID_SYMBOLS = 256  # likewise those on a grid with at most so many
_LARGEST_TABLE = 2**16  # limit of values of a symbol; a larger table is a mistake
_MOST_TABLE_ROWS = 2**17  # values times places, where a picture is possible: 64 MiB at width 128
_SMALLEST = 8  # pixels; a smaller array is not a picture
_CLEAR_PICTURE = 36  # pixels; a smaller picture may be a grid of codes
_WIDE = 1e6  # a bound larger than this is not used as a scale
_LARGE = 100.0  # the floats of a plain Box are scaled if they extend farther, such as brightness

_Leaf: TypeAlias = "spaces.Box | spaces.Discrete[Any] | spaces.MultiBinary | spaces.MultiDiscrete"
_LEAVES = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


@dataclass(frozen=True)
class ColumnEntry:
    """The encoding of one column.

    Attributes:
        key: the column.
        kind: ``numbers`` are scaled by their bounds, if any, to -1 to 1, but for the floats of a
            plain ``Box``, see ``_numbers``; ``symbols`` are one-hot or embedded; a ``picture`` goes
            through the convolutional network.
        shape: of one row's value.
        options: for a column of symbols, the number of values of each place.
        starts: likewise, the smallest value of each place.
        between: whether values may lie between whole numbers, as floats may.
        low: for a column of numbers, the lower bounds; NaN where there is none.
        high: likewise, the upper bounds; for a picture, the value of white.
        doubtful: another kind that fits bounds and shape as well; empty if there is none.
    """

    key: str
    kind: Kind
    shape: tuple[int, ...]
    options: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    between: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    doubtful: Kind | Literal[""] = ""

    @property
    def places(self) -> int:
        """Number of values in a row."""
        return int(np.prod(self.shape))

    def describe(self) -> str:
        """Returns how the column is read, for people."""
        size = " x ".join(map(str, self.shape)) or "1"
        if self.kind == "picture":
            return f"picture of {size}, through convolutions"
        if self.kind == "symbols":
            return f"{size} symbols of up to {max(self.options, default=0)} values"
        scaled = sum(np.isfinite(bound) for bound in self.low)
        if not scaled:
            return f"{size} numbers as they are"
        least, most = np.nanmin(self.low), np.nanmax(self.high)
        rest = f", {self.places - scaled} others as they are" if scaled < self.places else ""
        return f"{size} numbers, {scaled} of them scaled from {least:g} to {most:g}{rest}"


def entries(
    space: spaces.Dict,
    columns: Sequence[str] = (),
    given: Mapping[str, Kind] = MappingProxyType({}),
) -> list[ColumnEntry]:
    """Returns the encoding of each observed column, sorted by name.

    Args:
        space: flat ``Dict`` of leaf spaces.
        columns: the columns to use, beside masks; if empty, all that are not privileged.
        given: the kinds of columns; others are read as ``kind_of`` says.

    Raises:
        UnknownNameError: there is no such column.
        ConfigError: a column cannot be encoded, or none is left.
    """
    wanted = read_columns(space, columns)
    for name, kind in given.items():
        if name not in wanted:
            plural = kind.rstrip("s") + "s"
            raise UnknownNameError(f"column of {plural} among those that are read", name, wanted)
    return [_entry(key, space.spaces[key], given.get(key)) for key in wanted]


def read_columns(space: spaces.Dict, columns: Sequence[str]) -> list[str]:
    """Returns the columns that a network reads, sorted; see ``entries``."""
    for name in columns:
        if name not in space.spaces:
            raise UnknownNameError("observation column", name, list(space.spaces))
    wanted = list(columns) or [k for k in space.spaces if not k.startswith(PRIVILEGED)]
    if wanted:
        wanted += [k for k in space.spaces if k.startswith(MASK) and k not in wanted]
    if not wanted:
        raise ConfigError(
            f"every observation ({', '.join(space.spaces)}) is privileged; name those to learn "
            f"from in policy.columns"
        )
    return sorted(wanted)


def kind_of(leaf: spaces.Space[Any]) -> Kind:
    """Returns how a column is read by its bounds and its shape, whatever its data type.

    Values from 0 to 1 are numbers. Bytes, 0 to 255, in an array of two to four dimensions and at
    least 8 x 8 are a picture. Other whole numbers are symbols if they have fewer than 64 values, or
    at most 256 on a grid: codes read as numbers, where 8 is near 9, are hardly learned, and the
    bounds of a small grid of codes are often those of bytes (MiniGrid's 7 x 7 x 3 codes are 0 to
    255). If so many symbols need a table of more than 131,072 rows, the grid is a picture where it
    can be one. A vector of more values, such as the memory of an Atari console, is numbers, and so
    is a ``Discrete`` or ``MultiDiscrete`` of more than 65,536 values.

    Floats are whole numbers if they are on a grid, from -1 or 0 to a whole number above 1. Others
    are numbers: what their values are cannot be seen from bounds.
    """
    if isinstance(leaf, spaces.Discrete | spaces.MultiDiscrete):
        return "symbols" if max(_symbols_of(leaf)[0], default=0) <= _LARGEST_TABLE else "numbers"
    if not isinstance(leaf, spaces.Box) or not _is_whole(leaf):
        return "numbers"
    options, _ = _symbols_of(leaf)
    if _may_be_picture(leaf) and (_is_bytes(leaf) or sum(options) > _MOST_TABLE_ROWS):
        return "picture"
    most = max(options, default=0)
    return (
        "symbols"
        if most < _MOST_SYMBOLS or (most <= _MOST_GRID_SYMBOLS and len(leaf.shape) > 1)
        else "numbers"
    )


def legacy_kind(leaf: spaces.Space[Any], *, symbols: bool) -> Kind:
    """Returns how a column was read before checkpoints kept it: by its data type, too."""
    if not isinstance(leaf, spaces.Box):
        return kind_of(leaf)
    if not np.issubdtype(leaf.dtype, np.integer):
        return "numbers"
    if leaf.dtype == np.uint8 and _has_sides(leaf.shape) and not symbols:
        return "picture"
    most = max(_symbols_of(leaf)[0], default=0)
    few = most < _MOST_SYMBOLS or (most <= _MOST_GRID_SYMBOLS and len(leaf.shape) > 1)
    return "symbols" if symbols or few else "numbers"


def _entry(key: str, leaf: spaces.Space[Any], given: Kind | None) -> ColumnEntry:
    if not isinstance(leaf, _LEAVES):
        raise ConfigError(f"actor_critic cannot read the observation {key!r}, {leaf}")
    kind: Kind = given or kind_of(leaf)
    entry = {"numbers": _numbers, "symbols": _symbols, "picture": _picture}[kind](key, leaf)
    return entry if given is None else replace(entry, doubtful="")


def _picture(key: str, leaf: _Leaf) -> ColumnEntry:
    if not isinstance(leaf, spaces.Box) or not _may_be_picture(leaf):
        raise ConfigError(
            f"the observation {key!r}, {leaf}, cannot be read as a picture: expected an array of "
            f"2 to 4 dimensions and at least 8 x 8, of values from 0 to 255"
        )
    clear = _is_bytes(leaf) and min(picture_size(leaf.shape)[1:]) >= _CLEAR_PICTURE
    most, between = float(leaf.high.max()), not _is_integer(leaf)
    return ColumnEntry(
        *(key, "picture", leaf.shape),
        between=between,
        high=(1.0 if between and most <= 1.0 else 255.0,),
        doubtful="" if clear else "symbols",
    )


def _symbols(key: str, leaf: _Leaf) -> ColumnEntry:
    if isinstance(leaf, spaces.Box) and not leaf.is_bounded():
        raise ConfigError(
            f"the observation {key!r}, {leaf}, cannot be read as symbols: expected bounds; drop it "
            f"from symbols, and it is read as numbers"
        )
    options, starts = _symbols_of(leaf)
    if max(options, default=0) > _LARGEST_TABLE:
        raise ConfigError(
            f"the observation {key!r} has {max(options)} values, too many for symbols (at most "
            f"{_LARGEST_TABLE}); drop it from symbols, and it is read as numbers"
        )
    between = not _is_integer(leaf)
    doubtful: Kind | Literal[""] = ""
    if isinstance(leaf, spaces.Box):
        large = _may_be_picture(leaf) and min(picture_size(leaf.shape)[1:]) >= _CLEAR_PICTURE
        doubtful = "picture" if large else "numbers" if between else ""
    shape = tuple(leaf.shape or ())
    return ColumnEntry(key, "symbols", shape, options, starts, between, doubtful=doubtful)


def _numbers(key: str, leaf: _Leaf) -> ColumnEntry:
    """Returns the entry of a column of numbers, with the bounds that scale it.

    The floats of a game whose observation is a plain ``Box`` are read as they are, as other
    libraries do: their bounds are often limits that no value comes near. Acrobot's velocities, of 1
    to 4 within bounds of 13 and 28, are hardly learned from when they are scaled by them.
    """
    shape = tuple(leaf.shape or ())
    doubtful: Kind | Literal[""] = ""
    if isinstance(leaf, spaces.Box):
        low, high = (bound.astype(np.float64).ravel() for bound in (leaf.low, leaf.high))
        bounded = (np.abs(low) < _WIDE) & (np.abs(high) < _WIDE)
        if key == OBSERVATION and not _is_integer(leaf):
            bounded &= high - low > _LARGE
        if (
            _is_integer(leaf)
            and _MOST_SYMBOLS <= max(_symbols_of(leaf)[0], default=0) <= _MOST_GRID_SYMBOLS
        ):
            doubtful = "symbols"
    else:
        options, starts = _symbols_of(leaf)
        low = np.array(starts, np.float64)
        high, bounded = low + np.array(options) - 1.0, np.ones(len(low), bool)
    bounded &= high > low
    low, high = np.where(bounded, low, np.nan), np.where(bounded, high, np.nan)
    return ColumnEntry(key, "numbers", shape, low=tuple(low), high=tuple(high), doubtful=doubtful)


def _symbols_of(leaf: _Leaf) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the number of whole numbers at each place of a bounded space, and the first ones."""
    if isinstance(leaf, spaces.Discrete):
        return (int(leaf.n),), (int(leaf.start),)
    if isinstance(leaf, spaces.MultiDiscrete):
        counts, starts = ([int(n) for n in each.ravel()] for each in (leaf.nvec, leaf.start))
        return tuple(counts), tuple(starts)
    if isinstance(leaf, spaces.MultiBinary):
        places = math.prod(leaf.shape)
        return (2,) * places, (0,) * places
    # Python integers: the number of values of 64 bits does not fit into 64 bits.
    least = tuple(math.floor(n) for n in leaf.low.ravel().tolist())
    most = tuple(math.ceil(n) for n in leaf.high.ravel().tolist())
    return tuple(b - a + 1 for a, b in zip(least, most, strict=True)), least


def _is_integer(leaf: _Leaf) -> bool:
    """Returns whether the data type is an integer."""
    return not isinstance(leaf, spaces.Box) or not np.issubdtype(leaf.dtype, np.floating)


def _is_whole(leaf: spaces.Box) -> bool:
    """Returns whether values are integers other than bits, by data type or bounds."""
    if bool((leaf.low >= 0).all() and (leaf.high <= 1).all()):
        return False
    if _is_integer(leaf):
        return True
    if len(leaf.shape) < 2 or not leaf.is_bounded():
        return False
    whole = np.isin(leaf.low, (-1, 0)).all() and (leaf.high == leaf.high.round()).all()
    return bool(whole and (leaf.high > 1).any())


def _may_be_picture(leaf: spaces.Box) -> bool:
    return _has_sides(leaf.shape) and float(leaf.low.min()) >= 0 and float(leaf.high.max()) <= 255


def _is_bytes(leaf: spaces.Box) -> bool:
    return bool((leaf.low == 0).all() and (leaf.high == 255).all())


def _has_sides(shape: tuple[int, ...]) -> bool:
    """Returns whether an array can be an image, H x W (x channels), or a stack of them."""
    if len(shape) == 2:
        return min(shape) >= _SMALLEST
    if len(shape) == 3:  # channels last, or frames first
        return min(shape[:2]) >= _SMALLEST or min(shape[1:]) >= _SMALLEST
    return len(shape) == 4 and min(shape[1:3]) >= _SMALLEST


def channels_first(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Returns pictures ``(B, *shape)`` as ``(B, channels, H, W)``, without copying."""
    if len(shape) == 2:
        return values.unsqueeze(1)
    if len(shape) == 4:  # frames, H, W, channels
        return values.permute(0, 1, 4, 2, 3).flatten(1, 2)
    if min(shape[:2]) >= _SMALLEST and shape[2] <= min(shape[:2]):
        return values.permute(0, 3, 1, 2)
    return values


def picture_size(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Returns channels, height and width of a picture column."""
    return tuple(channels_first(torch.zeros(1, *shape), shape).shape[1:])  # type: ignore[return-value] # three of them
