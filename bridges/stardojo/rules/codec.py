"""Saves a tree of dataclasses as JSON and restores it exactly, without pickle."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def dumps(tree: Any) -> bytes:
    """Returns a tree of dataclasses, lists, dicts and plain values as bytes."""
    return json.dumps(_plain(tree), separators=(",", ":"), ensure_ascii=False).encode()


def loads(kind: Callable[..., T], data: bytes) -> T:
    """Returns the tree that ``dumps`` saved.

    Args:
        kind: class of its root; the types of the fields say what else there is.
        data: the bytes.
    """
    made: T = reader(kind)(json.loads(data))
    return made


def _plain(value: Any) -> Any:
    kind: Any = type(value)
    if kind is dict:
        if value and type(next(iter(value))) is tuple:
            return {f"{k[0]},{k[1]}": _plain(v) for k, v in value.items()}
        return {k: _plain(v) for k, v in value.items()}
    if kind is list or kind is tuple:
        return [_plain(each) for each in value]
    if names := _names(kind):
        return [_plain(getattr(value, name)) for name in names]
    return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    if not dataclasses.is_dataclass(kind):
        return ()
    return tuple(each.name for each in dataclasses.fields(kind))


@cache
def reader(kind: Any) -> Callable[[Any], Any]:
    """Returns the function that makes a value of a type from plain JSON values."""
    origin, args = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object(kind)
    if origin in (Union, types.UnionType):
        inner = reader(next(each for each in args if each is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is dict:
        return _dict(get_origin(args[0]) is tuple, reader(args[1]))
    if origin is list:
        inner = reader(args[0])
        return lambda value: [inner(each) for each in value]
    return tuple if origin is tuple else lambda value: value


def _dict(tiles: bool, inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if tiles:
        return lambda value: {_tile(k): inner(v) for k, v in value.items()}
    return lambda value: {k: inner(v) for k, v in value.items()}


def _tile(text: str) -> tuple[int, int]:
    x, y = text.split(",")
    return int(x), int(y)


def _object(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    names = _names(kind)
    readers: list[Callable[[Any], Any]] = []

    def read(values: list[Any]) -> Any:
        if not readers:  # only now, because types may contain themselves
            readers.extend(reader(hints[name]) for name in names)
        made: Any = object.__new__(kind)
        for name, each, value in zip(names, readers, values, strict=True):
            setattr(made, name, each(value))
        return made

    return read
