"""Gymnasium spaces <-> JSON: bounds, starts, dtypes and character order are restored exactly."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollout.api import AnyText
from rollout.errors import SpaceError

Json = dict[str, Any]
_MOST_NUMBERS = 10**8  # of all leaves of a space; a picture of 8K has fewer
_MOST_LEVELS = 50  # of spaces within one another
_UNFIT = (KeyError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError)


def space_to_json(space: spaces.Space[Any]) -> Json:
    """Returns a space as JSON-able data from which ``space_from_json`` rebuilds it.

    Raises:
        SpaceError: no leaf (see ``rollout.api.spaces``), ``Dict`` or ``Tuple``.
    """
    kind = next((k for k in _BUILDERS if isinstance(space, getattr(spaces, k))), None)
    about: Json = {"type": kind}
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete):
        about["dtype"] = np.dtype(space.dtype).name
    match space:
        case spaces.Dict():
            about["spaces"] = {k: space_to_json(s) for k, s in space.spaces.items()}
        case spaces.Tuple():
            about["spaces"] = [space_to_json(s) for s in space.spaces]
        case spaces.Box():
            about |= _bounds(space)
        case spaces.Discrete():
            about |= {"n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            about |= {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        case spaces.MultiBinary():
            # ``n`` is a number for a vector and a tuple for anything else.
            about["n"] = np.asarray(space.n).tolist()
        case spaces.Text():
            about |= {"min_length": space.min_length, "max_length": space.max_length}
            about["characters"] = "".join(space.character_list)
            if isinstance(space, AnyText):  # absent in older datasets
                about["any"] = True
        case _:
            raise SpaceError(f"expected {', '.join(_BUILDERS)}, got {space}")
    return about


def _bounds(space: spaces.Box) -> Json:
    low, high = _numbers(space.low), _numbers(space.high)
    about = {"shape": list(space.shape), "low": low, "high": high}
    for side in ("bounded_below", "bounded_above"):
        # Integer boxes with infinite bounds store this in these masks only.
        mask: NDArray[np.bool_] = np.asarray(getattr(space, side))
        if space.low.dtype.kind == "i" and not mask.all():
            about[side] = mask.ravel().tolist()
    return about


def space_from_json(data: Mapping[str, Any]) -> spaces.Space[Any]:
    """Returns the space that ``space_to_json`` described.

    Raises:
        SpaceError: the data describes no space.
    """
    try:
        _require_small(data)
        return _build(data)
    except _UNFIT as error:
        raise SpaceError(
            f"expected a description of one of the spaces {sorted(_BUILDERS)}, got "
            f"{reprlib.repr(data)[:80]} ({error!r})"
        ) from error


def _require_small(data: Any) -> None:
    """Checks that building a space does not exhaust the memory or the stack."""
    numbers, left = 0, [(data, 1)]
    while left:
        about, level = left.pop()
        inner = about.get("spaces", ())
        left += [(each, level + 1) for each in (inner.values() if type(inner) is dict else inner)]
        # Every dimension counts: a shape (0, 10**10) costs no memory here, and a reader some.
        numbers += math.prod(max(1, int(n)) for n in about.get("shape", ()))
        if level > _MOST_LEVELS:
            raise ValueError(f"nested too deeply: more than {_MOST_LEVELS} levels")
        if numbers > _MOST_NUMBERS:
            raise ValueError(f"too large: more than {_MOST_NUMBERS:,} numbers")
        if "dtype" in about and np.dtype(about["dtype"]).kind not in "biuf":
            raise ValueError(f"expected a dtype of numbers, got {about['dtype']!r}")


def _build(data: Mapping[str, Any]) -> spaces.Space[Any]:
    return _BUILDERS[data["type"]](data)


def _box(data: Mapping[str, Any]) -> spaces.Space[Any]:
    dtype, shape = np.dtype(data["dtype"]), tuple(data["shape"])
    low, high = (_array(data[side], dtype, shape) for side in ("low", "high"))
    box = spaces.Box(low, high, shape, dtype=dtype.type)
    for side in ("bounded_below", "bounded_above"):
        if side in data:
            setattr(box, side, np.array(data[side], bool).reshape(shape))
    return box


def _discrete(data: Mapping[str, Any]) -> spaces.Space[Any]:
    return spaces.Discrete(data["n"], start=data["start"], dtype=np.dtype(data["dtype"]).type)


def _multi_discrete(data: Mapping[str, Any]) -> spaces.Space[Any]:
    nvec, start = (np.array(data[k], data["dtype"]) for k in ("nvec", "start"))
    return spaces.MultiDiscrete(nvec, dtype=nvec.dtype.type, start=start)


_BUILDERS: Mapping[str, Callable[[Mapping[str, Any]], spaces.Space[Any]]] = {
    "Dict": lambda d: spaces.Dict([(k, _build(s)) for k, s in d["spaces"].items()]),
    "Tuple": lambda d: spaces.Tuple([_build(s) for s in d["spaces"]]),
    "Box": _box,
    "Discrete": _discrete,
    "MultiDiscrete": _multi_discrete,
    "MultiBinary": lambda d: spaces.MultiBinary(d["n"]),
    "Text": lambda d: (AnyText if d.get("any") else spaces.Text)(
        d["max_length"], min_length=d["min_length"], charset=d["characters"]
    ),
}


def _numbers(bounds: NDArray[Any]) -> Any:
    """One number if all are equal, else a flat list; infinities as text, since JSON has none."""
    flat = bounds.ravel()
    same = flat.size > 0 and bool((flat == flat[0]).all())
    values = flat[:1].tolist() if same else flat.tolist()
    texts = [str(v) if isinstance(v, float) and math.isinf(v) else v for v in values]
    return texts[0] if same else texts


def _array(values: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if not isinstance(values, list):
        return np.full(shape, float(values) if isinstance(values, str) else values, dtype)
    numbers = [float(v) if isinstance(v, str) else v for v in values]
    return np.array(numbers, dtype).reshape(shape)
