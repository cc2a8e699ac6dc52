"""Conversion of keyboard and mouse input to actions.

Inputs have the names that the window gives them: ``w``, ``left shift``, ``space``, ``mouse left``.
A *chord* is a set of inputs that are held together, joined by ``+``: ``w+j``.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from rollout.api import BridgeSpec, Columns
from rollout.api.spaces import Labels
from rollout.errors import ConfigError, UnknownNameError

Chords = Mapping[str, Sequence[str]]

USUAL_CHORDS: Chords = {
    "forward": ("w",),
    "back": ("s",),
    "left": ("a",),
    "right": ("d",),
    "jump": ("space",),
    "sneak": ("left shift",),
    "sprint": ("left ctrl",),
    "attack": ("mouse left", "j"),
    "use": ("mouse right", "k"),
    "drop": ("q",),
    "inventory": ("e",),
    **{f"hotbar.{n}": (str(n),) for n in range(1, 10)},
    "jump_forward": ("w+space",),
    "forward_attack": ("w+mouse left", "w+j"),
    "turn_left": ("left",),
    "turn_right": ("right",),
    "look_up": ("up",),
    "look_down": ("down",),
    "next_item": ("]",),
    "previous_item": ("[",),
    "noop": ("n",),
    "none": ("n",),
    "move_left": ("left", "a"),
    "move_right": ("right", "d"),
    "move_up": ("up", "w"),
    "move_down": ("down", "s"),
    "up": ("up", "w"),
    "down": ("down", "s"),
    "do": ("space",),
    "fire": ("space",),
}
"""Usual chords for common action names."""
_FALLBACK_CHORDS: Chords = {"left": ("left",), "right": ("right",)}  # if no action uses them
_PRINTED = (*string.digits, *string.ascii_lowercase, "space")
ARROWS = ("up", "down", "left", "right")
RESERVED = ("escape", "f1", "f10", "return", "enter")  # used by the window
TALK = "t"
"""The key that begins a line to say, in games whose actions have a text beside keys."""
_IDLE = ("noop", "none", "nothing", "stay")
_MODIFIERS = ("left shift", "left ctrl", "left alt")
_ARROW_DEGREES = 5.8  # in one step

# VPT's camera (Baker et al. 2022, appendix C.2) as in MineStudio: 11 bins up to 10 degrees.
_MU, _MOST = 10.0, 10.0


@dataclass(frozen=True)
class Inputs:
    """The inputs since the last step.

    Attributes:
        held: inputs that are or were down; the one pressed last is at the end.
        right: pixels that the mouse moved to the right.
        down: pixels that the mouse moved down.
        clicked: where on the picture a button of the mouse was pressed last, as shares of its
            width and height, 0 to 1; None if none was pressed.
        said: the line that was typed; empty for none.
    """

    held: tuple[str, ...] = ()
    right: float = 0.0
    down: float = 0.0
    clicked: tuple[float, float] | None = None
    said: str = ""


class Controls(Protocol):
    """Converts inputs to actions."""

    @property
    def chords(self) -> Chords:
        """Chords of each action, for the help; the most important one first."""
        ...

    @property
    def uses_mouse(self) -> bool:
        """True if mouse movement is part of the actions."""
        ...

    def requests_action(self, inputs: Inputs) -> bool:
        """Returns whether the inputs request an action."""
        ...

    def action(self, inputs: Inputs) -> Columns:
        """Returns one row of the action space."""
        ...


def make_controls(spec: BridgeSpec, given: Chords, *, sensitivity: float) -> Controls:
    """Returns the controls for a game.

    Args:
        spec: the game: one ``Discrete`` column; or three, a click's ``x`` and ``y`` and a key; or a
            ``MultiBinary`` one whose bits have names, and optionally a ``MultiDiscrete`` one with
            the places ``pitch`` and ``yaw``, and a ``Text`` one, a line to say.
        given: chords of actions that replace the usual ones.
        sensitivity: degrees per pixel of mouse movement.

    Raises:
        ConfigError: no keys can express such actions.
        UnknownNameError: a name in ``given`` is not an action.
    """
    leaves = spec.action_space.spaces
    kinds = {key: type(leaf) for key, leaf in leaves.items()}
    columns = list(leaves)
    if list(kinds.values()) == [spaces.Discrete]:
        return DiscreteControls(columns[0], leaves[columns[0]], spec.action_labels, given)
    keys = [key for key in columns if key not in ("x", "y")]
    if list(kinds.values()) == [spaces.Discrete] * 3 and len(keys) == 1:
        named = {key: (key,) for key in spec.action_labels.get(keys[0], ()) if key in _PRINTED}
        pressed = DiscreteControls(keys[0], leaves[keys[0]], spec.action_labels, {**named, **given})
        return ClickControls((leaves["x"], leaves["y"]), pressed)
    bits = [k for k, leaf in leaves.items() if isinstance(leaf, spaces.MultiBinary)]
    lines = [k for k, leaf in leaves.items() if isinstance(leaf, spaces.Text)]
    turns = [k for k, leaf in leaves.items() if isinstance(leaf, spaces.MultiDiscrete)]
    has_names = len(bits) == 1 and bits[0] in spec.action_labels
    turning = all(tuple(spec.action_labels.get(k, ())) == ("pitch", "yaw") for k in turns)
    if has_names and turning and len(turns) <= 1 and len(lines) <= 1:
        camera = Camera.make(turns[0], leaves[turns[0]], spec.action_labels) if turns else None
        names = spec.action_labels[bits[0]]
        if len(leaves) == 1 + len(turns) + len(lines):
            return KeyCameraControls(bits[0], names, camera, given, sensitivity, *lines)
    own = ", ".join(f"{key} ({leaf})" for key, leaf in leaves.items())
    raise ConfigError(
        f"a person can play a game with one Discrete action, with x, y and a key, or with named "
        f"keys and a camera; {spec.name} has {own}; choose other actions, e.g. "
        f"bridge.actions=human if the bridge has that option"
    )


def bind_keys(
    labels: Sequence[str], given: Chords, taken: Sequence[str], *, all_of: bool
) -> Chords:
    """Returns the chords of every label.

    Args:
        labels: names of the actions.
        given: chords that replace the usual ones.
        taken: inputs that have another meaning.
        all_of: whether an action without a chord gets the next free digit or letter; if there is
            none, one with left shift, left ctrl or left alt.

    Raises:
        UnknownNameError: a name in ``given`` is not a label.
        ConfigError: a chord is given twice, or is taken.
    """
    for label in given:
        if label not in labels:
            raise UnknownNameError("action in policy.keys", label, labels)
    used = dict.fromkeys([*taken, *RESERVED], "the window")
    bound: dict[str, list[str]] = {label: [] for label in labels}

    def add(label: str, chord: str) -> bool:
        if _normalize(chord) in used:
            return False
        used[_normalize(chord)] = label
        bound[label].append(chord)
        return True

    for label, chords in given.items():
        for chord in chords:
            if not add(label, chord):
                raise ConfigError(
                    f"policy.keys: {chord!r} is for {used[_normalize(chord)]} already, and was to "
                    f"be for {label}; choose another"
                )
    for table in (USUAL_CHORDS, _FALLBACK_CHORDS):
        for label in (name for name in labels if name not in given):
            for chord in table.get(label.lower(), ()):
                add(label, chord)
    plain = string.digits + string.ascii_lowercase
    held = [f"{key}+" for key in _MODIFIERS if key not in used]
    spare = [prefix + key for prefix in ("", *held) for key in plain]
    for label in (name for name in labels if all_of and not bound[name]):
        any(add(label, chord) for chord in spare)
    return bound


def _normalize(chord: str) -> str:
    return "+".join(sorted(chord.split("+")))


def _is_held(chord: str, held: Sequence[str]) -> bool:
    return set(chord.split("+")) <= set(held)


class DiscreteControls:
    """A ``Discrete`` column: the action with the longest chord; if equal, the one pressed last."""

    uses_mouse = False

    def __init__(self, column: str, leaf: Any, labels: Labels, given: Chords) -> None:
        self._column, self._leaf = column, leaf
        first, count = int(leaf.start), int(leaf.n)
        self._labels = list(labels.get(column, [str(first + n) for n in range(count)]))
        self.chords = bind_keys(self._labels, given, (), all_of=True)
        idle = [n for n, label in enumerate(self._labels) if label.lower() in _IDLE]
        self._idle = idle[0] if idle else 0

    def requests_action(self, inputs: Inputs) -> bool:
        """See ``Controls``."""
        return self._choose(inputs) is not None

    def action(self, inputs: Inputs) -> Columns:
        """See ``Controls``."""
        chosen = self._choose(inputs)
        number = self._idle if chosen is None else chosen
        return {self._column: np.array([int(self._leaf.start) + number], self._leaf.dtype)}

    def _choose(self, inputs: Inputs) -> int | None:
        best, chosen = (0, -1), None
        for number, label in enumerate(self._labels):
            for chord in self.chords[label]:
                if _is_held(chord, inputs.held):
                    parts = chord.split("+")
                    rank = (len(parts), max(inputs.held.index(part) for part in parts))
                    if rank > best:
                        best, chosen = rank, number
        return chosen


class ClickControls:
    """``Discrete`` columns ``x`` and ``y`` for the last click on the picture, and one for a key."""

    uses_mouse = False

    def __init__(self, place: tuple[Any, Any], keys: DiscreteControls) -> None:
        self._place, self._keys = place, keys
        self._clicked = (0.0, 0.0)
        self.chords = {**keys.chords, "click": ("mouse left",)}

    def requests_action(self, inputs: Inputs) -> bool:
        """See ``Controls``."""
        return inputs.clicked is not None or self._keys.requests_action(inputs)

    def action(self, inputs: Inputs) -> Columns:
        """See ``Controls``."""
        self._clicked = inputs.clicked or self._clicked
        row = self._keys.action(inputs)
        for name, leaf, share in zip(("x", "y"), self._place, self._clicked, strict=True):
            row[name] = np.array([min(int(share * leaf.n), int(leaf.n) - 1)], leaf.dtype)
        return row


@dataclass(frozen=True)
class Camera:
    """A ``MultiDiscrete`` column of pitch and yaw.

    Attributes:
        column: its name.
        degrees: angle of each bin, per place.
    """

    column: str
    degrees: tuple[tuple[float, ...], tuple[float, ...]]

    @classmethod
    def make(cls, column: str, leaf: Any, labels: Labels) -> Camera:
        """Returns the camera of a column: angles from the labels of its values, else VPT's.

        Raises:
            ConfigError: the labels are not angles.
        """
        angles = []
        for place, count in zip(("pitch", "yaw"), leaf.nvec.tolist(), strict=True):
            names = labels.get(f"{column}/{place}")
            try:
                own = mu_law(count) if names is None else tuple(float(name) for name in names)
            except ValueError as error:
                raise ConfigError(
                    f"action_labels of {column}/{place}: expected degrees, got {names}"
                ) from error
            angles.append(own)
        return cls(column, (angles[0], angles[1]))

    def bins(self, pitch: float, yaw: float) -> tuple[int, int]:
        """Returns the bins whose angles are nearest."""
        first, second = (
            int(np.abs(np.array(own) - wanted).argmin())
            for own, wanted in zip(self.degrees, (pitch, yaw), strict=True)
        )
        return first, second


def mu_law(count: int) -> tuple[float, ...]:
    """Returns the angles of a camera's bins in degrees: -10, -5.8095, ..., 10 for eleven."""
    steps = np.linspace(-1.0, 1.0, count)
    angles = np.sign(steps) * _MOST / _MU * ((1.0 + _MU) ** np.abs(steps) - 1.0)
    return tuple(float(a) for a in angles)


class KeyCameraControls:
    """A ``MultiBinary`` column of named keys, a camera by mouse and arrow keys, and a line to say.

    Each bin has one angle, so mouse movement beyond the chosen bin is carried over to the next
    step: over a few steps the view turns as far as the mouse moved.
    """

    def __init__(
        self,
        column: str,
        labels: Sequence[str],
        camera: Camera | None,
        given: Chords,
        sensitivity: float,
        line: str = "",
    ) -> None:
        self._column, self._labels = column, list(labels)
        self._camera, self._sensitivity, self._line = camera, sensitivity, line
        taken = (*(() if camera is None else ARROWS), *((TALK,) if line else ()))
        self.chords = dict(bind_keys(self._labels, given, taken, all_of=False))
        if line:
            self.chords["say"] = (TALK,)
        self.uses_mouse = camera is not None
        self._left = np.zeros(2)  # degrees of pitch and yaw that remain to be turned

    def requests_action(self, inputs: Inputs) -> bool:
        """See ``Controls``."""
        pressed = any(_is_held(c, inputs.held) for chords in self.chords.values() for c in chords)
        turned = self._camera is not None and (
            bool(inputs.right or inputs.down) or any(a in inputs.held for a in ARROWS)
        )
        return pressed or turned or bool(inputs.said)

    def action(self, inputs: Inputs) -> Columns:
        """See ``Controls``."""
        bits = [any(_is_held(c, inputs.held) for c in self.chords[name]) for name in self._labels]
        row: Columns = {self._column: np.array([bits], np.int8)}
        if self._camera is not None:
            row[self._camera.column] = np.array([self._turn(self._camera, inputs)], np.int64)
        if self._line:
            row[self._line] = np.array([inputs.said], object)
        return row

    def _turn(self, camera: Camera, inputs: Inputs) -> tuple[int, int]:
        up, down, left, right = (arrow in inputs.held for arrow in ARROWS)
        arrows = _ARROW_DEGREES * np.array([down - up, right - left], np.float64)
        mouse = self._sensitivity * np.array([inputs.down, inputs.right])
        wanted = self._left + mouse + arrows
        chosen = camera.bins(*wanted.tolist())
        turned = [own[n] for own, n in zip(camera.degrees, chosen, strict=True)]
        # Of a mouse movement faster than the game allows, only a little is carried over, not
        # seconds.
        most = 2.0 * np.array([max(own) for own in camera.degrees])
        rest = np.clip(self._left + mouse + arrows - turned, -most, most)
        # The arrow keys request a speed, not a distance: nothing of it is carried over.
        self._left = np.where(arrows != 0, 0.0, rest)
        return chosen
