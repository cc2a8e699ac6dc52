"""The action layouts: what a policy chooses from, and the controls that each choice sets.

``human`` is keyboard and mouse as in VPT and MineStudio: 20 keys, and a camera of 11 x 11 bins that
are denser near zero (mu-law). ``human_flat`` is the same in two numbers, MineStudio's agent space,
so that a policy trained there can be used unchanged. ``compact`` is one of twenty named actions,
for small policies and tests.

Keys are levels, not presses: an attack held over many steps continues to dig, and strikes once.
``compact`` cannot release a key without spending a step, so its controls set ``world.AUTO_CLICK``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bridges.blockworld.rules import world
from rollout.api import Array, Columns
from rollout.errors import ConfigError, SpaceError, UnknownNameError

KEYS = (
    "attack",
    "back",
    "forward",
    "jump",
    "left",
    "right",
    "sneak",
    "sprint",
    "use",
    "drop",
    "inventory",
    *(f"hotbar.{n}" for n in range(1, 10)),
)
"""Names of the keys: bit ``k`` of the controls' keys is ``KEYS[k]``. VPT's ``Buttons.ALL``."""

CAMERA_BINS = 11
CAMERA_MOST = 10.0
"""Maximum degrees that the camera turns in one step of ``human``."""
_BIN_SIZE, _MU = 2.0, 10.0
STILL = CAMERA_BINS // 2
"""Bin of no camera movement."""

TURN = 15.0
"""Degrees of a turn or a look of ``compact``; moves the cursor in a screen by one cell."""


def _expanded(steps: Array) -> Array:
    """Degrees for evenly spaced values in -10 to 10: the inverse of the mu-law."""
    share = np.abs(steps) / CAMERA_MOST
    return np.asarray(np.sign(steps) * CAMERA_MOST / _MU * ((1.0 + _MU) ** share - 1.0))


_CENTRES = _expanded(_BIN_SIZE * np.arange(CAMERA_BINS) - CAMERA_MOST).astype(np.float32)
_EDGES = _expanded(_BIN_SIZE * (np.arange(CAMERA_BINS - 1) + 0.5) - CAMERA_MOST)

_ANGLES = tuple(f"{degrees:.3g}" for degrees in _CENTRES.tolist())
"""Degrees of each bin, as text."""


def camera_bins(degrees: Array) -> NDArray[np.int64]:
    """Returns the bin of each angle, 0 to 10; beyond 10 degrees the outermost.

    MineStudio's ``CameraConfig(camera_binsize=2, camera_maxval=10, camera_mu=10.0)``.
    """
    return np.searchsorted(_EDGES, np.asarray(degrees)).astype(np.int64, copy=False)


def camera_degrees(bins: Array) -> NDArray[np.float32]:
    """Returns the angle at the centre of each bin: 0, +-0.6154, 1.6095, 3.2154, 5.8095, 10."""
    return _CENTRES[bins]


class Decode(Protocol):
    """Writes the controls of ``columns`` into ``out``, ``(n,)`` of type ``world.CONTROLS``.

    ``worlds`` are the records of the same rows; only ``compact`` uses them, for the item in hand.
    Raises ``SpaceError`` for a value outside the space.
    """

    def __call__(self, columns: Mapping[str, Array], worlds: Array, out: Array) -> None:
        """See the class."""


class Encode(Protocol):
    """Returns the columns nearest to keys ``(n,)`` uint32 and angles in degrees."""

    def __call__(self, keys: Array, pitch: Array, yaw: Array, worlds: Array | None = None) -> Any:
        """See the class."""


@dataclass(frozen=True)
class Layout:
    """One action layout.

    Attributes:
        name: its name in options.
        space: flat ``Dict`` of the columns.
        names: names of the values, or the places, of a column, for captions.
        decode: from columns to controls.
        encode: from controls to the nearest columns.
        describe: one action, the columns of one row, as a short text.
    """

    name: str
    space: spaces.Dict
    names: Mapping[str, tuple[str, ...]]
    decode: Decode
    encode: Encode
    describe: Callable[[Mapping[str, Any]], str]


def _check(name: str, values: Array, count: int) -> None:
    # As unsigned numbers, negative values are too large as well: one comparison is enough.
    if values.size and values.view(np.uint64).max() >= count:
        wrong = values[(values < 0) | (values >= count)].flat[0]
        raise SpaceError(f"action column {name!r}: expected 0 to {count - 1}, got {wrong}")


# human ------------------------------------------------------------------------------------------


def _decode_human(columns: Mapping[str, Array], worlds: Array, out: Array) -> None:
    _check("camera", columns["camera"], CAMERA_BINS)
    packed = np.zeros((len(out), 4), np.uint8)
    packed[:, :3] = np.packbits(columns["keys"], axis=1, bitorder="little")
    out["keys"] = packed.view("<u4")[:, 0]
    turned = _CENTRES[columns["camera"]]
    out["pitch"], out["yaw"] = turned[:, 0], turned[:, 1]


def _encode_human(keys: Array, pitch: Array, yaw: Array, worlds: Array | None = None) -> Columns:
    bits = np.asarray(keys, np.uint32)[:, None] >> np.arange(len(KEYS), dtype=np.uint32)
    camera = np.stack([camera_bins(pitch), camera_bins(yaw)], axis=1)
    return {"keys": (bits & 1).astype(np.int8), "camera": camera}


def _text(keys: Array, camera: Array) -> str:
    held = "+".join(name for name, on in zip(KEYS, keys, strict=True) if on) or "nothing"
    pitch, yaw = camera_degrees(np.asarray(camera))
    return f"{held}, pitch {pitch:.3g}, yaw {yaw:.3g}"


def _describe_human(row: Mapping[str, Any]) -> str:
    return _text(row["keys"], row["camera"])


# human_flat -------------------------------------------------------------------------------------

BUTTONS = 8641
"""Size of MineStudio's ``buttons``: 8640 combinations, and inventory alone."""
ONLY_INVENTORY = 8640
CAMERAS = CAMERA_BINS * CAMERA_BINS
STILL_CAMERA = STILL * CAMERA_BINS + STILL
"""MineStudio's null camera, 60."""

_ATTACK, _BACK, _FORWARD, _JUMP, _LEFT, _RIGHT, _SNEAK, _SPRINT, _USE, _DROP, _INVENTORY = range(11)


def _all_buttons() -> NDArray[np.int8]:
    """The keys of every ``buttons``, ``(8641, 20)``."""
    rest = np.arange(ONLY_INVENTORY)
    keys = np.zeros((BUTTONS, len(KEYS)), np.int8)
    for key, place in ((_USE, 16), (_DROP, 8), (_ATTACK, 4), (_JUMP, 2)):
        keys[:-1, key] = rest // place % 2
    groups = (((_FORWARD, _BACK), 288), ((_LEFT, _RIGHT), 96), ((_SPRINT, _SNEAK), 32))
    for pair, place in groups:
        for digit, key in enumerate(pair, 1):
            keys[:-1, key] = rest // place % 3 == digit
    for n in range(1, 10):
        keys[:-1, _INVENTORY + n] = rest // 864 == n
    keys[ONLY_INVENTORY, _INVENTORY] = 1
    return keys


_FLAT_KEYS = _all_buttons()
_FLAT_BITS = (_FLAT_KEYS.astype(np.uint32) << np.arange(len(KEYS), dtype=np.uint32)).sum(
    axis=1, dtype=np.uint32
)
_FLAT_TURNS = np.arange(BUTTONS) % 2 == 1  # inventory alone, 8640, is even: it never turns


def to_flat(keys: Array, camera: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns ``(buttons, camera)`` of MineStudio for keys ``(n, 20)`` and bins ``(n, 2)``.

    What MineStudio cannot express is resolved as there: forward with back, and left with right,
    cancel out; of sprint and sneak, and of two hotbar keys, the later wins; inventory drops all
    others.
    """
    held = np.asarray(keys) != 0
    forward, back, left, right = (held[:, k] for k in (_FORWARD, _BACK, _LEFT, _RIGHT))
    slot = np.zeros(len(held), np.int64)
    for n in range(1, 10):
        slot[held[:, _INVENTORY + n]] = n
    turns = (np.asarray(camera) != STILL).any(axis=1)
    buttons = 864 * slot + 288 * (forward & ~back) + 576 * (back & ~forward)
    buttons += 96 * (left & ~right) + 192 * (right & ~left)
    buttons += np.where(held[:, _SNEAK], 64, 32 * held[:, _SPRINT])
    buttons += 16 * held[:, _USE] + 8 * held[:, _DROP] + 4 * held[:, _ATTACK] + 2 * held[:, _JUMP]
    buttons += turns
    alone = held[:, _INVENTORY]
    flat = np.asarray(camera)[:, 0] * CAMERA_BINS + np.asarray(camera)[:, 1]
    return (
        np.where(alone, ONLY_INVENTORY, buttons),
        np.where(alone, STILL_CAMERA, flat).astype(np.int64),
    )


def from_flat(buttons: Array, camera: Array) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Returns keys ``(n, 20)`` and bins ``(n, 2)`` for MineStudio's ``buttons`` and ``camera``.

    The camera counts only where the last digit of ``buttons`` turns it on.
    """
    index = np.where(_FLAT_TURNS[buttons], camera, STILL_CAMERA)
    return _FLAT_KEYS[buttons], np.stack(np.divmod(index, CAMERA_BINS), axis=1)


def _decode_flat(columns: Mapping[str, Array], worlds: Array, out: Array) -> None:
    buttons, camera = columns["buttons"], columns["camera"]
    _check("buttons", buttons, BUTTONS)
    _check("camera", camera, CAMERAS)
    out["keys"] = _FLAT_BITS[buttons]
    index = np.where(_FLAT_TURNS[buttons], camera, STILL_CAMERA)
    out["pitch"], out["yaw"] = _CENTRES[index // CAMERA_BINS], _CENTRES[index % CAMERA_BINS]


def _encode_flat(keys: Array, pitch: Array, yaw: Array, worlds: Array | None = None) -> Columns:
    human = _encode_human(keys, pitch, yaw)
    buttons, camera = to_flat(human["keys"], human["camera"])
    return {"buttons": buttons, "camera": camera}


def _describe_flat(row: Mapping[str, Any]) -> str:
    keys, camera = from_flat(np.array([int(row["buttons"])]), np.array([int(row["camera"])]))
    return _text(keys[0], camera[0])


# compact ----------------------------------------------------------------------------------------

_NEXT, _PREVIOUS = 15, 16

_COMPACT: tuple[tuple[str, int, float, float], ...] = (
    # name, keys, degrees of pitch and of yaw
    ("noop", 0, 0.0, 0.0),
    ("forward", world.FORWARD, 0.0, 0.0),
    ("back", world.BACK, 0.0, 0.0),
    ("left", world.LEFT, 0.0, 0.0),  # sideways
    ("right", world.RIGHT, 0.0, 0.0),
    ("sprint", world.FORWARD | world.SPRINT, 0.0, 0.0),  # forward, running
    ("jump", world.JUMP, 0.0, 0.0),  # also swims up
    ("jump_forward", world.JUMP | world.FORWARD, 0.0, 0.0),  # up a step
    ("sneak", world.SNEAK, 0.0, 0.0),
    ("turn_left", 0, 0.0, -TURN),  # in a screen these four move the cursor by one cell
    ("turn_right", 0, 0.0, TURN),
    ("look_up", 0, -TURN, 0.0),
    ("look_down", 0, TURN, 0.0),
    ("attack", world.ATTACK, 0.0, 0.0),  # strikes, digs; clicks left in a screen
    ("use", world.USE, 0.0, 0.0),  # places, eats, opens; clicks right in a screen
    ("next_item", 0, 0.0, 0.0),  # the hotbar slot to the right of the selected one, or the first
    ("previous_item", 0, 0.0, 0.0),  # to its left, or the last
    ("drop", world.DROP, 0.0, 0.0),
    ("inventory", world.INVENTORY, 0.0, 0.0),  # opens it; closes any screen
    ("forward_attack", world.FORWARD | world.ATTACK, 0.0, 0.0),  # digs where needed, chases
)
COMPACT = tuple(name for name, *_ in _COMPACT)
"""The actions of ``compact`` in their order."""
_COMPACT_BITS = np.array([keys | world.AUTO_CLICK for _, keys, *_ in _COMPACT], np.uint32)
_COMPACT_PITCH = np.array([pitch for *_, pitch, _ in _COMPACT], np.float32)
_COMPACT_YAW = np.array([yaw for *_, yaw in _COMPACT], np.float32)
_HOTBAR_BITS = world.HOTBAR_1 * ((1 << world.HOTBAR) - 1)

# In increasing priority: where several apply, the last one is chosen.
_BY_KEYS = tuple(
    (COMPACT.index(name), keys)
    for name, keys in (
        ("sneak", world.SNEAK),
        ("right", world.RIGHT),
        ("left", world.LEFT),
        ("back", world.BACK),
        ("forward", world.FORWARD),
        ("sprint", world.FORWARD | world.SPRINT),
        ("jump", world.JUMP),
        ("jump_forward", world.JUMP | world.FORWARD),
        ("attack", world.ATTACK),
        ("forward_attack", world.FORWARD | world.ATTACK),
        ("use", world.USE),
        ("drop", world.DROP),
        ("inventory", world.INVENTORY),
    )
)


def _decode_compact(columns: Mapping[str, Array], worlds: Array, out: Array) -> None:
    action = columns["action"]
    _check("action", action, len(COMPACT))
    out["keys"] = _COMPACT_BITS[action]
    out["pitch"], out["yaw"] = _COMPACT_PITCH[action], _COMPACT_YAW[action]
    # Records are large: only those of the few rows that change their item are read.
    (rows,) = np.nonzero((action == _NEXT) | (action == _PREVIOUS))
    if rows.size:
        step = np.where(action[rows] == _NEXT, 1, world.HOTBAR - 1)
        slot = (worlds["selected"][rows].astype(np.uint32) + step) % world.HOTBAR
        out["keys"][rows] |= (world.HOTBAR_1 << slot).astype(np.uint32)


def _encode_compact(keys: Array, pitch: Array, yaw: Array, worlds: Array | None = None) -> Columns:
    """One action per row: a turn of more than 7.5 degrees, else a look, else a key.

    A hotbar key becomes a step towards its slot, and nothing once it is selected; it needs
    ``worlds``, ``(n,)``, and has priority over all other keys.
    """
    keys, pitch, yaw = np.asarray(keys, np.uint32), np.asarray(pitch), np.asarray(yaw)
    action = np.zeros(len(keys), np.int64)
    for number, needed in _BY_KEYS:
        action[keys & needed == needed] = number
    (rows,) = np.nonzero(keys & _HOTBAR_BITS)
    if rows.size:
        if worlds is None:
            raise ConfigError("compact: a hotbar key can be encoded only where worlds are given")
        wanted = np.log2((keys[rows] & _HOTBAR_BITS) >> 11).astype(np.int64)
        away = (wanted - worlds["selected"][rows]) % world.HOTBAR
        step = np.where(away <= world.HOTBAR // 2, _NEXT, _PREVIOUS)
        action[rows] = np.where(away == 0, action[rows], step)
    for angle, less, more in ((pitch, "look_up", "look_down"), (yaw, "turn_left", "turn_right")):
        action[angle < -TURN / 2] = COMPACT.index(less)
        action[angle > TURN / 2] = COMPACT.index(more)
    return {"action": action}


def _describe_compact(row: Mapping[str, Any]) -> str:
    return COMPACT[int(row["action"])]


LAYOUTS: Mapping[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout(
            "human",
            spaces.Dict(
                {
                    "keys": spaces.MultiBinary(len(KEYS)),
                    "camera": spaces.MultiDiscrete([CAMERA_BINS, CAMERA_BINS]),
                }
            ),
            {
                "keys": KEYS,
                "camera": ("pitch", "yaw"),
                "camera/pitch": _ANGLES,
                "camera/yaw": _ANGLES,
            },
            _decode_human,
            _encode_human,
            _describe_human,
        ),
        Layout(
            "human_flat",
            spaces.Dict({"buttons": spaces.Discrete(BUTTONS), "camera": spaces.Discrete(CAMERAS)}),
            {},
            _decode_flat,
            _encode_flat,
            _describe_flat,
        ),
        Layout(
            "compact",
            spaces.Dict({"action": spaces.Discrete(len(COMPACT))}),
            {"action": COMPACT},
            _decode_compact,
            _encode_compact,
            _describe_compact,
        ),
    )
}
"""Every layout by its name."""


# choice of a layout -------------------------------------------------------------------------------


def layout_of(name: str, chosen: Sequence[str] = ()) -> Layout:
    """Returns a layout by its name; for ``compact``, optionally with a subset of its actions.

    Args:
        name: one of ``LAYOUTS``.
        chosen: the actions of ``compact`` to offer, in this order; all when empty.

    Raises:
        UnknownNameError: there is no such action.
        ConfigError: actions were chosen for another layout.
    """
    layout = LAYOUTS[name]
    if not chosen:
        return layout
    if name != "compact":
        raise ConfigError(
            f"only the actions of compact can be chosen one by one, and actions={name}; "
            f"set actions=compact, or leave compact_actions empty"
        )
    for action in chosen:
        if action not in COMPACT:
            raise UnknownNameError("compact action", action, COMPACT)
    places = {action: place for place, action in enumerate(chosen)}
    numbers = np.array([COMPACT.index(action) for action in chosen], np.int64)

    def decode(columns: Mapping[str, Array], worlds: Array, out: Array) -> None:
        action = columns["action"]
        if action.size and not 0 <= action.min() <= action.max() < len(numbers):
            raise SpaceError(
                f"action column 'action': expected 0 to {len(numbers) - 1}, got {action.tolist()}"
            )
        layout.decode({"action": numbers[action]}, worlds, out)

    def encode(keys: Array, pitch: Array, yaw: Array, worlds: Array | None = None) -> Columns:
        whole = layout.encode(keys, pitch, yaw, worlds)["action"]
        names = [COMPACT[n] for n in whole.tolist()]
        missing = sorted(set(names) - set(chosen))
        if missing:
            raise ConfigError(f"compact_actions leaves out {', '.join(missing)}; add them")
        return {"action": np.array([places[name] for name in names], np.int64)}

    def describe(row: Mapping[str, Any]) -> str:
        return tuple(chosen)[int(row["action"])]

    space = spaces.Dict({"action": spaces.Discrete(len(numbers))})
    return Layout(name, space, {"action": tuple(chosen)}, decode, encode, describe)
