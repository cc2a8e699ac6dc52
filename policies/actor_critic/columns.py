"""How an observation column enters a network: as numbers, symbols or a picture."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from rollout.api import MASK, OBSERVATION
from rollout.errors import ConfigError, UnknownNameError

PRIVILEGED = "privileged"
"""Prefix of the names of columns that contain what no player can know."""

_FEW = 64  # an integer Box with fewer values than this contains symbols
_CODES = 256  # likewise one on a grid with at most so many
_MOST = 2**16  # limit of values of a symbol; a larger table is a mistake
_SMALLEST = 8  # pixels; a smaller array is not a picture
_USUAL = 36  # pixels; a smaller picture may be a grid of codes
_WIDE = 1e6  # a bound larger than this is not used as a scale
_LARGE = 100.0  # the floats of a plain Box are scaled if they extend farther, such as brightness


@dataclass(frozen=True)
class ColumnEntry:
    """How one column is encoded.

    Attributes:
        key: the column.
        kind: ``numbers`` are scaled by their bounds, if any, to -1 to 1, but for the floats of a
            plain ``Box``, see ``entries``; ``symbols`` are one-hot or embedded; a ``picture`` goes
            through the convolutional network.
        shape: of one row's value.
        options: for a column of symbols, the number of values of each place.
        starts: likewise, the smallest value of each place.
        low: for a column of numbers, the lower bounds; NaN where there is none.
        high: likewise, the upper bounds.
        doubtful: whether these are integers, read as numbers or as a picture, that may be codes:
            numbers of few bits; a picture of fewer than 64 values, or smaller than 36 x 36 pixels.
    """

    key: str
    kind: Literal["numbers", "symbols", "picture"]
    shape: tuple[int, ...]
    options: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    doubtful: bool = False

    @property
    def places(self) -> int:
        """Number of values in a row."""
        return int(np.prod(self.shape))

    def told(self) -> str:
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
    space: spaces.Dict, columns: Sequence[str] = (), symbols: Collection[str] = ()
) -> list[ColumnEntry]:
    """Returns the encoding of each observed column, sorted by name.

    Args:
        space: flat ``Dict`` of leaf spaces.
        columns: the columns to use, beside masks; if empty, all that are not privileged.
        symbols: integer columns that are symbols, whatever their number of values.

    A ``uint8`` array of two to four dimensions and at least 8 x 8 is a picture, whatever its
    bounds, unless ``symbols`` names it. Other integers are symbols if they have fewer than 64
    values, or at most 256 on a grid: the bounds of a grid of codes are often those of the data type
    (MiniGrid's 7 x 7 x 3 codes are 0 to 255), and codes read as numbers, where 8 is near 9, are
    hardly learned. A vector of more values, such as the memory of an Atari console, is numbers, and
    so is a ``Discrete`` or ``MultiDiscrete`` of more than 65,536 values, scaled by its bounds.

    The floats of a game whose observation is a plain ``Box`` are read as they are, as other
    libraries do: their bounds are often limits that no value comes near. Acrobot's velocities, of 1
    to 4 within bounds of 13 and 28, are hardly learned from when they are scaled by them.

    Raises:
        UnknownNameError: there is no such column.
        ConfigError: a column cannot be encoded, or none is left.
    """
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
    for name in symbols:
        if name not in wanted:
            raise UnknownNameError("column of symbols among those that are read", name, wanted)
    return [_entry(key, space.spaces[key], key in symbols) for key in sorted(wanted)]


def _entry(key: str, leaf: spaces.Space[object], symbols: bool) -> ColumnEntry:
    if isinstance(leaf, spaces.Discrete):
        return _choices(key, (), [int(leaf.n)], [int(leaf.start)], symbols)
    if isinstance(leaf, spaces.MultiDiscrete):
        counts, starts = ([int(n) for n in each.ravel()] for each in (leaf.nvec, leaf.start))
        return _choices(key, leaf.shape, counts, starts, symbols)
    if isinstance(leaf, spaces.MultiBinary):
        places = int(np.prod(leaf.shape))
        bounds = ((0.0,) * places, (1.0,) * places)
        return ColumnEntry(key, "numbers", leaf.shape, low=bounds[0], high=bounds[1])
    if not isinstance(leaf, spaces.Box):
        raise ConfigError(f"actor_critic cannot read the observation {key!r}, {leaf}")
    shape = tuple(int(n) for n in leaf.shape)
    if leaf.dtype == np.uint8 and _is_picture(shape) and not symbols:
        values = int(leaf.high.max()) - int(leaf.low.min()) + 1
        doubtful = values < _FEW or min(picture_size(shape)[1:]) < _USUAL
        return ColumnEntry(key, "picture", shape, doubtful=doubtful)
    doubtful = False
    if np.issubdtype(leaf.dtype, np.integer):
        # Python integers: the number of values of 64 bits does not fit into 64 bits.
        least, most = ([int(n) for n in bound.ravel()] for bound in (leaf.low, leaf.high))
        options = tuple(b - a + 1 for a, b in zip(least, most, strict=True))
        if symbols:
            _check_options(key, options)
        doubtful = max(options, default=0) <= _CODES
        few = max(options, default=0) < _FEW
        if symbols or few or (doubtful and len(shape) > 1):
            return ColumnEntry(key, "symbols", shape, options, tuple(least))
    low, high = (bound.astype(np.float64).ravel() for bound in (leaf.low, leaf.high))
    bounded = (np.abs(low) < _WIDE) & (np.abs(high) < _WIDE) & (high > low)
    if key == OBSERVATION and np.issubdtype(leaf.dtype, np.floating):
        bounded &= high - low > _LARGE
    low, high = np.where(bounded, low, np.nan), np.where(bounded, high, np.nan)
    return ColumnEntry(key, "numbers", shape, low=tuple(low), high=tuple(high), doubtful=doubtful)


def _choices(
    key: str, shape: tuple[int, ...], options: list[int], starts: list[int], symbols: bool
) -> ColumnEntry:
    """Returns the encoding of discrete values: symbols, or numbers if there are very many."""
    if symbols:
        _check_options(key, options)
    if max(options, default=0) <= _MOST:
        return ColumnEntry(key, "symbols", shape, tuple(options), tuple(starts))
    low = tuple(float(a) if n > 1 else np.nan for a, n in zip(starts, options, strict=True))
    high = tuple(a + n - 1.0 for a, n in zip(low, options, strict=True))
    return ColumnEntry(key, "numbers", shape, low=low, high=high)


def _check_options(key: str, options: Sequence[int]) -> None:
    if max(options, default=0) > _MOST:
        raise ConfigError(
            f"the observation {key!r} has {max(options)} values, too many for symbols (at most "
            f"{_MOST}); drop it from symbols, and it is read as numbers"
        )


def _is_picture(shape: tuple[int, ...]) -> bool:
    """Whether a uint8 array is an image, H x W (x channels), or a stack of them."""
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
