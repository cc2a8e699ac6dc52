"""JSON schemas of servers as columns: what they show, and the actions that they take."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from gymnasium import spaces

from rollout.api import AnyText, Array, Columns, allocate, clean_text, is_picture, leaf_dtype
from rollout.errors import ConfigError, GameCrashed

LONGEST_TEXT = 2**20
"""Characters of an observation in text or JSON."""

LONGEST_ACTION = 4096
"""Characters of a part of an action in text or JSON, unless its schema says otherwise."""

_MOST_CHOICES = 2**16  # of a whole number with bounds that becomes a choice
_INTEGER = 2**53  # beyond it JSON numbers are not exact
_NOT_SHOWN = frozenset({"done", "reward", "metadata"})  # fields that OpenEnv adds to all
_SHAPE = "_shape"  # a field of this name after that of a flat list has the shape of a picture
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class _Part:
    """One column and the field of the JSON object that it holds."""

    leaf: spaces.Space[Any]
    kind: str  # choice, text, json, number, array or picture
    values: tuple[Any, ...] = ()  # of a choice
    needed: bool = True


@dataclass(frozen=True)
class Shape:
    """How the observations and actions of a server become columns.

    Attributes:
        seen: fields of an observation that have a column.
        chosen: fields of an action that have a column.
        fixed: fields of an action that are always the same.
        observations: space of the observations.
        actions: space of the actions.
        labels: names of the values of choices.
        defaults: values of choices that may be left out.
    """

    seen: Mapping[str, _Part]
    chosen: Mapping[str, _Part]
    fixed: Mapping[str, Any]
    observations: spaces.Dict
    actions: spaces.Dict
    labels: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, int] = field(default_factory=dict)

    def write(self, observation: Mapping[str, Any]) -> Columns:
        """Returns an observation as columns of one row.

        Raises:
            GameCrashed: it does not fit its schema or the first observation.
        """
        columns = allocate(self.observations, 1)
        for key, part in self.seen.items():
            value = observation.get(key)
            if part.kind == "picture" and f"{key}{_SHAPE}" in observation:
                value = _shaped(value, observation[f"{key}{_SHAPE}"])
            columns[key][0, ...] = _read(key, part, value)
        return columns

    def action(self, columns: Columns, row: int = 0) -> dict[str, Any]:
        """Returns the action of a row as JSON-able data.

        Raises:
            ValueError: a text that must be JSON is not.
        """
        data = dict(self.fixed)
        for key, part in self.chosen.items():
            value = columns[key][row]
            if part.kind == "choice":
                data[key] = part.values[int(value) - int(getattr(part.leaf, "start", 0))]
            elif part.kind in {"text", "json"}:
                if value or part.needed:
                    data[key] = _json(key, value) if part.kind == "json" else str(value)
            else:
                data[key] = np.asarray(value).tolist()
        return data


def shape_of(action: Schema, observation: Schema, first: Mapping[str, Any]) -> Shape:
    """Returns how a server's data becomes columns.

    Args:
        action: JSON schema of actions, an object.
        observation: JSON schema of observations, an object.
        first: an observation, which shows what a schema may leave open: pictures.

    Raises:
        ConfigError: actions or observations have no fields.
    """
    chosen, fixed = dict[str, _Part](), dict[str, Any]()
    labels, defaults = dict[str, tuple[str, ...]](), dict[str, int]()
    for key, field_ in _fields(action, {"metadata"}):
        if "const" in field_:
            fixed[key] = field_["const"]
            continue
        needed = key in action.get("required", ())
        part = chosen[key] = _action_part(key, field_, needed=needed)
        if part.kind == "choice":
            if not all(isinstance(value, int) for value in part.values) or bool in map(
                type, part.values
            ):
                labels[key] = tuple(_text(value) for value in part.values)
            if not needed and field_.get("default") in part.values:
                start = int(getattr(part.leaf, "start", 0))
                defaults[key] = start + part.values.index(field_["default"])
    names = {*observation.get("properties", ()), *first} - _NOT_SHOWN
    known = dict(_fields(observation, _NOT_SHOWN))
    seen = {key: _observation_part(key, known.get(key, {}), first) for key in sorted(names)}
    if not chosen or not seen:
        raise ConfigError(
            f"the server describes {'no actions' if not chosen else 'no observations'}; expected "
            f"the properties of an object in its schema, or bridge.schema with them"
        )
    return Shape(
        seen,
        chosen,
        fixed,
        spaces.Dict({key: part.leaf for key, part in seen.items()}),
        spaces.Dict({key: part.leaf for key, part in chosen.items()}),
        labels,
        defaults,
    )


def _fields(schema: Schema, left_out: frozenset[str] | set[str]) -> list[tuple[str, Schema]]:
    definitions = schema.get("$defs", {})
    return [
        (key, _resolved(each, definitions))
        for key, each in schema.get("properties", {}).items()
        if key not in left_out
    ]


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Returns a schema with a reference at its top replaced."""
    for _ in range(8):
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if not name or name not in definitions:
            break
        schema = {**definitions[name], **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema


def _action_part(key: str, schema: Schema, *, needed: bool) -> _Part:
    kind = schema.get("type")
    low: Any = schema.get("minimum")
    high: Any = schema.get("maximum")
    if "enum" in schema or kind == "boolean":
        values = tuple(schema.get("enum", (False, True)))
        if not values:
            raise ConfigError(f"action {key!r}: expected values in its enum, got none")
        return _Part(spaces.Discrete(len(values)), "choice", values, needed)
    whole = kind == "integer" and isinstance(low, int) and isinstance(high, int)
    if whole and 0 <= high - low < _MOST_CHOICES:
        leaf: spaces.Space[Any] = spaces.Discrete(high - low + 1, start=low)
        return _Part(leaf, "choice", tuple(range(low, high + 1)), needed)
    if needed and (box := _box(schema)) is not None:
        return _Part(box, "array" if box.shape else "number")
    most = int(schema.get("maxLength", LONGEST_ACTION))
    if kind == "string":
        least = int(schema.get("minLength", 0)) if needed else 0
        return _Part(AnyText(max(most, 1), min_length=least), "text", needed=needed)
    return _Part(AnyText(LONGEST_ACTION, min_length=0), "json", needed=needed)


def _box(schema: Schema) -> spaces.Box | None:
    """Returns the space of a number or of an array of fixed shape; None for anything else."""
    shape: list[int] = []
    while schema.get("type") == "array":
        count = schema.get("minItems")
        if count is None or count != schema.get("maxItems") or "items" not in schema:
            return None
        shape.append(int(count))
        schema = schema["items"]
    kind = schema.get("type")
    if kind not in {"integer", "number"}:
        return None
    widest = _INTEGER if kind == "integer" else math.inf
    low, high = schema.get("minimum", -widest), schema.get("maximum", widest)
    dtype: type[Any] = np.int64 if kind == "integer" else np.float64
    if kind == "integer" and low >= 0 and high <= 255 and len(shape) > 1:
        dtype = np.uint8
    return spaces.Box(low, high, tuple(shape), dtype)


def _observation_part(key: str, schema: Schema, first: Mapping[str, Any]) -> _Part:
    value = first.get(key)
    picture = _shaped(value, first.get(f"{key}{_SHAPE}")) if value is not None else None
    if (found := _picture(picture)) is not None:
        leaf = spaces.Box(0, 255, found.shape, np.uint8)
        if is_picture(leaf):
            return _Part(leaf, "picture")
    box = _box(schema)
    if box is not None and value is not None:
        return _Part(box, "array" if box.shape else "number")
    if schema.get("type") == "boolean" and value is not None:
        return _Part(spaces.Discrete(2), "choice", (False, True))
    text = schema.get("type") == "string" or (not schema and isinstance(value, str))
    return _Part(AnyText(LONGEST_TEXT, min_length=0), "text" if text else "json")


def _shaped(value: Any, shape: Any) -> Any:
    """Returns a flat list in its shape, if it has one; other values as they are."""
    if isinstance(value, list) and isinstance(shape, list) and len(shape) > 1:
        try:
            return np.asarray(value).reshape(shape)
        except (ValueError, TypeError):
            pass
    return value


def _picture(value: Any) -> Array | None:
    """Returns the pixels of a picture: a file in base64, or nested lists with 1 to 4 channels."""
    if isinstance(value, str):
        data = value.partition("base64,")[2] if value.startswith("data:image/") else value
        try:
            file = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return None
        return picture_of(file) if file.startswith(_MAGIC) else None
    if not isinstance(value, list | np.ndarray):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        return None
    if array.ndim != 3 or array.shape[2] > 4 or array.dtype.kind not in "iu":
        return None
    return array.astype(np.uint8) if array.min() >= 0 and array.max() <= 255 else None


def picture_of(file: bytes) -> Array | None:
    """Returns the pixels of a picture file: ``(H, W)``, or ``(H, W, 3 or 4)`` in RGB; or None."""
    image: Array | None = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_UNCHANGED)
    if image is None or image.dtype != np.uint8:
        return None
    if image.ndim == 3:
        code = cv2.COLOR_BGR2RGB if image.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
        image = cv2.cvtColor(image, code)
    return image


def _read(key: str, part: _Part, value: Any) -> Any:
    """Returns the value of a field as its column has it."""
    if part.kind == "text":
        return clean_text("" if value is None else str(value))[:LONGEST_TEXT]
    if part.kind == "json":
        return "" if value is None else clean_text(_text(value))[:LONGEST_TEXT]
    array: Array | None = None
    if part.kind == "picture":
        array = value if isinstance(value, np.ndarray) and value.dtype == np.uint8 else None
        array = _picture(value) if array is None else array
    elif part.kind == "choice":
        array = np.asarray(part.values.index(value)) if value in part.values else None
    elif isinstance(value, int | float | list):
        try:
            array = np.asarray(value, leaf_dtype(part.leaf))
        except (ValueError, TypeError, OverflowError):
            array = None
    if array is None or array.shape != (part.leaf.shape or ()):
        got = "null" if value is None else _text(value)[:200]
        raise GameCrashed(
            f"observation {key!r}: expected {part.leaf} as in the server's schema and its first "
            f"observation, got {got}; describe the field in bridge.schema, e.g. "
            f"{{observation: {{{key}: {{}}}}}} for any JSON"
        )
    return array


def _json(key: str, text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{key}: expected JSON, got {str(text)[:200]!r}: {error}") from error


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
