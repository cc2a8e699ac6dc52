"""Gymnasium spaces <-> JSON: bounds, starts, dtypes and character order are restored exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollout.errors import SpaceError

Json = dict[str, Any]


@singledispatch
def space_to_json(space: spaces.Space[Any]) -> Json:
    """Returns a space as JSON-able data from which ``space_from_json`` rebuilds it.

    Raises:
        SpaceError: no leaf (see ``rollout.api.spaces``), ``Dict`` or ``Tuple``.
    """
    raise SpaceError(
        f"expected Box, Discrete, MultiDiscrete, MultiBinary, Text, Dict or Tuple, got {space}"
    )


@space_to_json.register
def _(space: spaces.Dict) -> Json:
    return {"type": "Dict", "spaces": {k: space_to_json(s) for k, s in space.spaces.items()}}


@space_to_json.register
def _(space: spaces.Tuple) -> Json:
    return {"type": "Tuple", "spaces": [space_to_json(s) for s in space.spaces]}


@space_to_json.register
def _(space: spaces.Box) -> Json:
    bounds = {"low": _numbers(space.low), "high": _numbers(space.high)}
    dtype = space.low.dtype
    about = {"type": "Box", "dtype": dtype.name, "shape": list(space.shape), **bounds}
    for side in ("bounded_below", "bounded_above"):
        # Integer boxes with infinite bounds store this in these masks only.
        mask: NDArray[np.bool_] = np.asarray(getattr(space, side))
        if dtype.kind == "i" and not mask.all():
            about[side] = mask.ravel().tolist()
    return about


@space_to_json.register(spaces.Discrete)
def _(space: spaces.Discrete[Any]) -> Json:
    sizes = {"n": int(space.n), "start": int(space.start)}
    return {"type": "Discrete", "dtype": np.dtype(space.dtype).name, **sizes}


@space_to_json.register
def _(space: spaces.MultiDiscrete) -> Json:
    sizes = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
    return {"type": "MultiDiscrete", "dtype": np.dtype(space.dtype).name, **sizes}


@space_to_json.register
def _(space: spaces.MultiBinary) -> Json:
    # ``n`` is a number for a vector and a tuple for anything else.
    return {"type": "MultiBinary", "n": np.asarray(space.n).tolist()}


@space_to_json.register
def _(space: spaces.Text) -> Json:
    lengths = {"min_length": space.min_length, "max_length": space.max_length}
    return {"type": "Text", **lengths, "characters": "".join(space.character_list)}


def space_from_json(data: Mapping[str, Any]) -> spaces.Space[Any]:
    """Returns the space that ``space_to_json`` described.

    Raises:
        SpaceError: the data describes no space.
    """
    try:
        return _BUILDERS[data["type"]](data)
    except (
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        AssertionError,
        ArithmeticError,
    ) as error:
        raise SpaceError(
            f"expected a description of one of the spaces {sorted(_BUILDERS)}, got "
            f"{str(data)[:80]} ({error!r})"
        ) from error


def _box(data: Mapping[str, Any]) -> spaces.Space[Any]:
    dtype, shape = np.dtype(data["dtype"]), tuple(data["shape"])
    low, high = (_array(data[side], dtype, shape) for side in ("low", "high"))
    box = spaces.Box(low, high, shape, dtype=dtype.type)
    for side in ("bounded_below", "bounded_above"):
        if side in data:
            setattr(box, side, np.array(data[side], bool).reshape(shape))
    return box


def _discrete(data: Mapping[str, Any]) -> spaces.Space[Any]:
    dtype = np.dtype(data["dtype"]).type
    return spaces.Discrete(data["n"], start=data["start"], dtype=dtype)


def _multi_discrete(data: Mapping[str, Any]) -> spaces.Space[Any]:
    dtype = np.dtype(data["dtype"]).type
    nvec, start = (np.array(data[k], dtype) for k in ("nvec", "start"))
    return spaces.MultiDiscrete(nvec, dtype=dtype, start=start)


def _text(data: Mapping[str, Any]) -> spaces.Space[Any]:
    return spaces.Text(
        data["max_length"], min_length=data["min_length"], charset=data["characters"]
    )


_BUILDERS: Mapping[str, Callable[[Mapping[str, Any]], spaces.Space[Any]]] = {
    "Dict": lambda d: spaces.Dict([(k, space_from_json(s)) for k, s in d["spaces"].items()]),
    "Tuple": lambda d: spaces.Tuple([space_from_json(s) for s in d["spaces"]]),
    "Box": _box,
    "Discrete": _discrete,
    "MultiDiscrete": _multi_discrete,
    "MultiBinary": lambda d: spaces.MultiBinary(d["n"]),
    "Text": _text,
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
