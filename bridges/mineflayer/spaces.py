"""Spaces of the bridge: actions and observations, and the observation ``bearings``.

``entities`` gives positions along the axes of the world, in numbers of any size, which suits
generated programs. A small network would first have to learn that the kind of an entity is a
category, and how an offset and a yaw make "to my left"; ``bearings`` computes both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bridges.mineflayer.columns import Column
from bridges.mineflayer.scene import LONGEST_SAY
from rollout.api import PERSON, AnyText, Array, Columns, clean_text, leaf_shape
from rollout.api.spaces import Labels
from rollout.api.types import Floats
from rollout.errors import ConfigError, SpaceError, UnknownNameError

# bearings -----------------------------------------------------------------------------------------

BEARINGS = "bearings"
"""Name of the observation."""

SEEN = 4
"""Number of entities, the nearest first; rows of zeros where there are fewer."""

PARTS = ("target", "health", "ahead", "left", "up", "near")
"""The features of each, all within -1 to 1: whether it is a target; its health, 20 is 1; the cosine
and the sine of the turn to it (1, 0 straight ahead; 0, 1 to the left); the sine of the elevation
from one's own feet to its feet; and 1 / (1 + its distance in blocks)."""

_FULL = 20.0
_TARGET, _HEALTH, _OFFSET = 1, 2, slice(3, 6)


def bearings_space() -> spaces.Box:
    """Returns the space of a row: (entities, parts), float32."""
    return spaces.Box(-1.0, 1.0, (SEEN, len(PARTS)), np.float32)


def bearings(entities: Floats, look: Floats) -> NDArray[np.float32]:
    """Returns the nearby entities of some rows, ``(B, SEEN, len(PARTS))``.

    Args:
        entities: the observation of that name, ``(B, n, 9)``.
        look: the observation of that name, ``(B, 2)``: yaw grows to the left.
    """
    seen = entities[:, :SEEN]
    offset = seen[..., _OFFSET].astype(np.float64)
    yaw = look[:, :1].astype(np.float64)
    # Straight ahead is (-sin yaw, -cos yaw); a left turn by an angle increases yaw by that angle.
    ahead = -np.sin(yaw) * offset[..., 0] - np.cos(yaw) * offset[..., 2]
    left = -np.cos(yaw) * offset[..., 0] + np.sin(yaw) * offset[..., 2]
    level = np.maximum(np.hypot(ahead, left), 1e-6)
    distance = np.linalg.norm(offset, axis=-1)
    out = np.empty((*seen.shape[:2], len(PARTS)), np.float32)
    out[..., 0] = seen[..., _TARGET]
    out[..., 1] = np.clip(seen[..., _HEALTH] / _FULL, 0.0, 1.0)
    out[..., 2] = ahead / level
    out[..., 3] = left / level
    out[..., 4] = offset[..., 1] / np.maximum(distance, 1e-6)
    out[..., 5] = 1.0 / (1.0 + distance)
    out[seen[..., 0] == 0] = 0.0
    return np.clip(out, -1.0, 1.0, out=out)


# spaces -------------------------------------------------------------------------------------------

LAYOUTS = ("low_level", "human", "mouse", "code", "compact")
"""Names of the action layouts."""

ACTION, KEYS_COLUMN, CAMERA, KIND, CODE = "action", "keys", "camera", "kind", "code"
RGB = "rgb"
PERSON_RGB = f"{PERSON}{RGB}"
"""The observation with the picture of the player that a person plays."""

BLUEPRINT = "blueprint"
"""The observation with the picture of what is to be built."""

LOW_LEVEL = (3, 3, 4, 25, 25, 10, 244, 46)
"""Sizes of MineDojo's and MineLand's array: move, strafe, posture, pitch, yaw, do, craft, slot."""

NEUTRAL = (0, 0, 0, 12, 12, 0, 0, 0)
"""The ``low_level`` no-op. Zeros would turn by half a circle: 12 is no turn."""

_ROWS = Path(__file__).with_name("game") / "actions" / "compact.json"
COMPACT: tuple[str, ...] = tuple(json.loads(_ROWS.read_text()))
"""The actions of ``compact`` in order; ``compact.json`` defines each in terms of ``low_level``."""

RESUME, NEW = 0, 1
"""Values of ``kind``: the program continues, or the text in ``code`` replaces it at once."""

DEFAULTS: Mapping[str, Mapping[str, int]] = {"code": {KIND: RESUME}}
"""Values of columns that a model may leave out, by layout."""

MOST_CODE = 20_000
"""Maximum number of characters of a program."""

KEYS = (
    *("attack", "back", "forward", "jump", "left", "right", "sneak", "sprint", "use", "drop"),
    "inventory",
    *(f"hotbar.{n}" for n in range(1, 10)),
)
"""Keys of ``human`` in order: VPT's buttons."""

MOUSE_KEYS = (*KEYS, "pickItem")
"""Keys of ``mouse``: the same, and the one that takes the block that is looked at into the hand."""

CAMERA_BINS = 11
"""Bins of a camera axis of ``human``; 5 is no movement (mu-law, 10 degrees at most, mu 10)."""

_MOST_DEGREES, _MU = 10.0, 10.0


def camera_degrees(number: int) -> float:
    """Returns the degrees of a bin of the camera, down or right, as in ``actions/human.js``."""
    share = (2 * number - (CAMERA_BINS - 1)) / (CAMERA_BINS - 1)
    size: float = _MOST_DEGREES / _MU * ((1 + _MU) ** abs(share) - 1)
    return math.copysign(size, share)


FARTHEST = 180.0
"""Largest turn of an axis of ``mouse`` in a step, in degrees; down and right are positive."""

_TURNS = tuple(f"{(v - 12) * 15}" for v in range(25))
_ANGLES = ("-10", "-5.81", "-3.22", "-1.61", "-0.615", "0", "0.615", "1.61", "3.22", "5.81", "10")
_PLACES = ("move", "strafe", "posture", "pitch", "yaw", "do", "craft", "slot")
_DONE = ("none", "use", "drop", "attack", "craft", "equip", "place", "destroy", "dig", "stop dig")
_PRINTED = "".join(map(chr, range(32, 127))) + "\n\t"

_SPACES: Mapping[str, spaces.Dict] = {
    "low_level": spaces.Dict({ACTION: spaces.MultiDiscrete(list(LOW_LEVEL))}),
    "human": spaces.Dict(
        {
            KEYS_COLUMN: spaces.MultiBinary(len(KEYS)),
            CAMERA: spaces.MultiDiscrete([CAMERA_BINS, CAMERA_BINS]),
        }
    ),
    "mouse": spaces.Dict(
        {
            KEYS_COLUMN: spaces.MultiBinary(len(MOUSE_KEYS)),
            CAMERA: spaces.Box(-FARTHEST, FARTHEST, (2,), np.float32),
        }
    ),
    "code": spaces.Dict(
        {
            KIND: spaces.Discrete(2),
            CODE: AnyText(MOST_CODE, min_length=0, charset=_PRINTED),
        }
    ),
    "compact": spaces.Dict({ACTION: spaces.Discrete(len(COMPACT))}),
}

_LABELS: Mapping[str, Labels] = {
    "low_level": {
        ACTION: _PLACES,
        f"{ACTION}/move": ("none", "forward", "back"),
        f"{ACTION}/strafe": ("none", "left", "right"),
        f"{ACTION}/posture": ("none", "jump", "sneak", "sprint"),
        f"{ACTION}/pitch": _TURNS,
        f"{ACTION}/yaw": _TURNS,
        f"{ACTION}/do": _DONE,
    },
    "human": {
        KEYS_COLUMN: KEYS,
        CAMERA: ("pitch", "yaw"),
        f"{CAMERA}/pitch": _ANGLES,
        f"{CAMERA}/yaw": _ANGLES,
    },
    "mouse": {KEYS_COLUMN: MOUSE_KEYS},
    "code": {KIND: ("resume", "new")},
    "compact": {ACTION: COMPACT},
}


def action_space(layout: str, chosen: Sequence[str] = ()) -> spaces.Dict:
    """Returns the action space of one of ``LAYOUTS``.

    Args:
        layout: its name.
        chosen: the actions of ``compact`` to offer, in this order; all when empty.

    Raises:
        UnknownNameError: there is no such action.
        ConfigError: actions were chosen for another layout, or one was chosen twice.
    """
    if not chosen:
        return _SPACES[layout]
    if layout != "compact":
        raise ConfigError(
            f"only the actions of compact can be chosen one by one, and actions={layout}; set "
            f"actions=compact, or leave compact_actions empty"
        )
    for name in chosen:
        if name not in COMPACT:
            raise UnknownNameError("compact action", name, COMPACT)
    if len(set(chosen)) != len(chosen):
        raise ConfigError(f"compact_actions must be a list of different names, got {list(chosen)}")
    return spaces.Dict({ACTION: spaces.Discrete(len(chosen))})


def action_labels(layout: str, chosen: Sequence[str] = ()) -> Labels:
    """Returns the names of a layout's actions; see ``action_space``."""
    return {ACTION: tuple(chosen)} if chosen else _LABELS[layout]


def person_actions() -> tuple[dict[str, spaces.Space[Any]], Labels]:
    """Returns the action columns of a person who plays a scripted player, and their names."""
    columns: dict[str, spaces.Space[Any]] = {
        f"{PERSON}{key}": leaf for key, leaf in _SPACES["human"].spaces.items()
    }
    columns[f"{PERSON}say"] = AnyText(LONGEST_SAY, min_length=0, charset=_PRINTED)
    return columns, {f"{PERSON}{key}": names for key, names in _LABELS["human"].items()}


def neutral(layout: str, rows: int, chosen: Sequence[str] = ()) -> Columns:
    """Returns the no-op for some rows; a running program continues.

    Args:
        layout: its name.
        rows: how many.
        chosen: the offered actions of ``compact``, as for ``action_space``.

    Raises:
        ConfigError: the chosen actions have no ``noop``.
    """
    if layout == "compact":
        names = list(chosen or COMPACT)
        if "noop" not in names:
            raise ConfigError(
                f"compact_actions has no noop, and one is needed here; got {', '.join(names)}"
            )
        return {ACTION: np.full(rows, names.index("noop"), np.int64)}
    if layout == "low_level":
        return {ACTION: np.tile(np.array(NEUTRAL, np.int64), (rows, 1))}
    if layout in ("human", "mouse"):
        still: Array = np.full((rows, 2), CAMERA_BINS // 2, np.int64)
        if layout == "mouse":
            still = np.zeros((rows, 2), np.float32)
        none = np.zeros((rows, *leaf_shape(_SPACES[layout][KEYS_COLUMN])), np.int8)
        return {KEYS_COLUMN: none, CAMERA: still}
    return {KIND: np.full(rows, RESUME, np.int64), CODE: np.full(rows, "", object)}


def observation_space(
    layout: Sequence[Column],
    observe: Sequence[str],
    picture: tuple[int, int],
    blueprint: tuple[int, ...] | None = None,
    *,
    person: bool = False,
) -> spaces.Dict:
    """Returns the observation space.

    Args:
        layout: the columns of a frame.
        observe: keys of the layout, ``bearings`` and ``rgb``.
        picture: height and width of ``rgb`` in pixels.
        blueprint: shape of the picture of what is to be built; None without one.
        person: whether a person plays another player, whose picture is observed, too.
    """
    shown: dict[str, spaces.Space[Any]] = {
        column.key: column.space()
        for column in layout
        if column.role == "observation" and column.key in observe
    }
    if BEARINGS in observe:
        shown[BEARINGS] = bearings_space()
    if RGB in observe:
        shown[RGB] = spaces.Box(0, 255, (*picture, 3), np.uint8)
    if person:
        shown[PERSON_RGB] = spaces.Box(0, 255, (*picture, 3), np.uint8)
    if blueprint is not None:
        shown[BLUEPRINT] = spaces.Box(0, 255, blueprint, np.uint8)
    return spaces.Dict(shown)


def encode(space: spaces.Dict, actions: Mapping[str, Array], rows: int) -> dict[str, Any]:
    """Returns actions in the form that the game gets: bytes in C order, texts as a list.

    Raises:
        SpaceError: a column is missing or unknown, has another shape, or contains an invalid
            action; the message names the column and the first such value.
    """
    if actions.keys() != space.spaces.keys():
        raise SpaceError(
            f"expected the action columns {sorted(space.spaces)}, got {sorted(actions)}"
        )
    return {key: _encoded(key, leaf, actions[key], rows) for key, leaf in space.spaces.items()}


def _encoded(key: str, leaf: spaces.Space[Any], column: Array, rows: int) -> Any:
    column = np.asarray(column)
    shape = (rows, *leaf_shape(leaf))
    if column.shape != shape:
        raise SpaceError(f"action column {key!r}: expected {list(shape)}, got {list(column.shape)}")
    if isinstance(leaf, spaces.Text):
        return [_text(key, leaf, value) for value in column.tolist()]
    if isinstance(leaf, spaces.Box):
        return _angles(key, leaf, column)
    sizes: Any = 2
    if isinstance(leaf, spaces.MultiDiscrete):
        sizes = leaf.nvec
    elif isinstance(leaf, spaces.Discrete):
        sizes = leaf.n
    wrong = (column < 0) | (column >= sizes)
    if column.dtype.kind not in "iub" or wrong.any():
        place = np.argwhere(wrong)[0].tolist() if wrong.any() else []
        raise SpaceError(
            f"action column {key!r}: expected whole numbers inside {leaf}, got "
            f"{column[tuple(place)] if place else column.dtype} in row {place[:1] or 'any'}"
        )
    return np.ascontiguousarray(column, np.dtype(leaf.dtype).newbyteorder("<")).tobytes()


def _angles(key: str, leaf: spaces.Box, column: Array) -> bytes:
    inside = (column >= leaf.low) & (column <= leaf.high)  # NaN is not
    if column.dtype.kind not in "iuf" or not inside.all():
        raise SpaceError(
            f"action column {key!r}: expected numbers inside {leaf}, got "
            f"{column[~inside][:1].tolist() if column.dtype.kind in 'iuf' else column.dtype}"
        )
    return np.ascontiguousarray(column, "<f4").tobytes()


def _text(key: str, leaf: spaces.Text, value: object) -> str:
    if not isinstance(value, str):
        raise SpaceError(f"action column {key!r}: expected text, got {type(value).__name__}")
    # One character too many is an error of the program, which the game tells its agent.
    return clean_text(value[: leaf.max_length + 1])
