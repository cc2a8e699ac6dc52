"""Clicks and keys: what they do in a battle, and which of them make a tool-assisted action.

Direct control (DC) sends a click, which selects, and a key, which decides. Every key is one
decision of the battle; clicks alone are none. Tool-assisted actions (TA) become the same clicks
and keys.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bridges.starbench.screen.drawn import HALF, Marks
from bridges.starbench.screen.layout import Box, UiMap
from bridges.starbench.screen.renderer import places
from bridges.starbench.view import (
    ALL,
    ALLIES,
    BASIC,
    ENEMIES,
    FIRST_ENEMY,
    HOLD,
    MOVES,
    RELEASE,
    SKILL,
    TARGETS,
    BattleView,
    action_id,
)
from rollout.errors import InputError

KEYS = ("q", "e", "1", "2", "3", "4", "space", "a", "d")
"""Keys of the game: basic attack, skill, ultimates by slot, confirm or hold, move the target."""

_JSON = re.compile(r"\{[^{}]*\}")
_PLAIN = re.compile(r"\s*\(?\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*,\s*[\"']?(\w+)[\"']?\s*\)?\s*")


class Played(Protocol):
    """The part of a battle that controls need."""

    def view(self) -> BattleView:
        """Returns what is seen."""
        ...

    def mask(self) -> NDArray[np.bool_]:
        """Returns which actions are legal, by their number."""
        ...

    def act(self, action: int, /) -> bool:
        """Takes an action, and returns whether it was legal."""
        ...

    def act_invalid(self, reason: str = "", /) -> None:
        """Counts an invalid decision."""
        ...

    def act_select(self) -> None:
        """Counts a decision that only selects."""
        ...


@dataclass(frozen=True, slots=True)
class Click:
    """A click on a pixel."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Key:
    """A key, pressed and released."""

    name: str


@dataclass(frozen=True, slots=True)
class Direct:
    """A decision of direct control: where to click, then which key to press."""

    x: int
    y: int
    key: str

    def events(self) -> list[Click | Key]:
        """Returns the click and the key."""
        return [Click(self.x, self.y), Key(self.key)]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a key did.

    Attributes:
        kind: ``acted``, ``selected`` or ``invalid``.
        action: number of the action that was taken, or None.
        off_target: an action whose click hit nothing, so that it went to the default target.
    """

    kind: Literal["acted", "selected", "invalid"]
    action: int | None = None
    off_target: bool = False


class Controls:
    """The player's side of the screen: turns clicks and keys into actions of a battle.

    Args:
        battle: that is played.
        ui: the map of the screen on which is clicked.

    Attributes:
        marks: what is selected, as the screen shows it.
        last: the last decision, or None.
    """

    def __init__(self, battle: Played, ui: UiMap) -> None:
        self.battle, self.ui = battle, ui
        self.marks = Marks()
        self.last: Decision | None = None
        self._hit: str | None = None  # the widget of the click before the next key
        self._clicked = False
        self._refresh()

    def click(self, x: float, y: float) -> str | None:
        """Selects what is at a pixel: an enemy, an ally or a button.

        Returns:
            The name of the widget, e.g. ``enemy``; None if there is nothing to select.
        """
        view = self.battle.view()
        self._clicked = True
        self._hit, marks = self._under(view, x, y)
        self.marks = dataclasses.replace(marks, events=self.marks.events + 1)
        return self._hit

    def press(self, key: str) -> Decision:
        """Presses a key, which completes a decision; nothing happens once the battle is over."""
        self.marks = dataclasses.replace(self.marks, events=self.marks.events + 1)
        view = self.battle.view()
        if view.window == "over":
            return Decision("invalid")
        key = key.lower()
        if key in ("a", "d"):
            self._move_target(view, 1 if key == "d" else -1)
            decision = Decision("selected")
        elif key in KEYS:
            decision = self._act(view, key)
        else:  # no key of the game does nothing; the click may have selected
            decision = Decision("selected" if self._hit else "invalid")
        if decision.kind == "selected":
            self.battle.act_select()
        elif decision.action is None:
            self.battle.act_invalid(f"nothing to do for key {key}")
        self._hit, self._clicked, self.last = None, False, decision
        self._refresh()
        return decision

    def save(self) -> list[object]:
        """Returns what is selected, as JSON-able data."""
        return [*dataclasses.astuple(self.marks), self._hit, self._clicked]

    def load(self, saved: list[Any]) -> None:
        """Restores what ``save`` returned."""
        *marks, self._hit, self._clicked = saved
        self.marks = Marks(*marks)

    def _under(self, view: BattleView, x: float, y: float) -> tuple[str | None, Marks]:
        for enemy, at in zip(view.enemies, places(self.ui, view), strict=True):
            if _around(at, HALF[enemy.kind], self.ui.scale).contains(x, y):
                return "enemy", dataclasses.replace(self.marks, enemy=enemy.target)
        for ally in view.allies:
            if self.ui.box("ally", ally.slot).contains(x, y):
                return "ally", dataclasses.replace(self.marks, ally=ally.slot)
        for move, name in enumerate(("basic", "skill")):
            if self.ui.box(name).contains(x, y):
                return name, dataclasses.replace(self.marks, move=move)
        return None, self.marks

    def _act(self, view: BattleView, key: str) -> Decision:
        """Takes the action of a key, if it is legal."""
        if key == "space" and view.window == "off_turn":
            held = self.marks.ally
            if self._hit != "ally" or held not in view.offered:
                held = next(iter(view.offered), None)
            character, move = held, HOLD
        elif key.isdigit():
            character, move = int(key) - 1, RELEASE
        else:
            move = {"q": BASIC, "e": SKILL}.get(key, self.marks.move)
            character = view.actor
        if character is None:
            return Decision("invalid")
        first = action_id(character, move, 0)
        legal = np.flatnonzero(self.battle.mask()[first : first + TARGETS]).tolist()
        target = next(
            (t for t in (ALL, self.marks.enemy, self.marks.ally) if t in legal),
            legal[0] if legal else None,
        )
        if target is None:
            return Decision("invalid")
        action = action_id(character, move, int(target))
        self.battle.act(action)
        return Decision("acted", action, off_target=self._clicked and self._hit is None)

    def _move_target(self, view: BattleView, by: int) -> None:
        """Moves the mark of enemies, or that of allies if the skill that is marked needs one."""
        allies = [ally.slot for ally in view.allies if ally.alive]
        if self.marks.move == SKILL and view.actor is not None:
            first = action_id(view.actor, SKILL, 0)
            if self.battle.mask()[first : first + ALLIES].any():
                if allies:
                    self.marks = dataclasses.replace(
                        self.marks, ally=_next(allies, self.marks.ally, by)
                    )
                return
        enemies = [enemy.target for enemy in view.enemies]
        if enemies:
            self.marks = dataclasses.replace(self.marks, enemy=_next(enemies, self.marks.enemy, by))

    def _refresh(self) -> None:
        """Keeps the marks on units that live."""
        view, marks = self.battle.view(), self.marks
        enemies = [enemy.target for enemy in view.enemies]
        allies = [ally.slot for ally in view.allies if ally.alive]
        if marks.enemy not in enemies:
            nearest = [target for target in enemies if target <= (marks.enemy or FIRST_ENEMY)]
            marks = dataclasses.replace(marks, enemy=nearest[-1] if nearest else None)
        if marks.ally not in allies:
            marks = dataclasses.replace(marks, ally=allies[0] if allies else None)
        self.marks = marks


def _next(of: list[int], now: int | None, by: int) -> int:
    return of[(of.index(now) + by) % len(of)] if now in of else of[0]


def _around(at: tuple[float, float], half: float, scale: float) -> Box:
    left, top = round((at[0] - half) * scale), round((at[1] - half) * scale)
    return Box(left, top, round(2 * half * scale), round(2 * half * scale))


def parse_direct(text: str, size: tuple[int, int] = (1920, 1080)) -> Direct | None:
    """Returns the decision in a model's reply; None if there is none, which is a no-op.

    Args:
        text: with ``{"x": 960, "y": 300, "key": "q"}`` in it, or ``960,300,q``.
        size: of the screen; coordinates outside are moved to its edge (StarBench, section 3.2).
    """
    fields: Sequence[object] | None = None
    for found in _JSON.findall(text):
        try:
            loaded = json.loads(found)
        except (ValueError, RecursionError):
            continue
        if isinstance(loaded, dict) and {"x", "y", "key"} <= loaded.keys():
            fields = [loaded["x"], loaded["y"], loaded["key"]]
    if fields is None:
        match = _PLAIN.fullmatch(text)
        if match is None:
            return None
        fields = match.groups()
    x, y = (_pixel(value, most) for value, most in zip(fields[:2], size, strict=True))
    key = str(fields[2]).strip().lower()
    if x is None or y is None or not key:
        return None
    return Direct(x, y, key)


def _pixel(value: object, most: int) -> int | None:
    """Returns a coordinate within the screen; None if it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else round(min(max(number, 0), most - 1))


def events_of(
    action: tuple[int, int, int],
    ui: UiMap,
    *,
    enemies: Sequence[tuple[float, float]],
    actor: int | None,
) -> list[Click | Key]:
    """Returns the clicks and keys of a tool-assisted action ``(c, m, t)`` (StarBench, section 3.3).

    Args:
        action: character 0 to 3; move 0 basic, 1 skill, 2 release, 3 hold an ultimate; target 0 to
            3 an ally, 4 to 8 an enemy from left to right, 9 all.
        ui: the map of the client's screen.
        enemies: centres of the detected enemies in pixels of the client's screen, in any order.
        actor: slot of the character whose turn it is, as seen; None in an off-turn window.

    Raises:
        InputError: it cannot be expressed on this screen, which makes the decision invalid.
    """
    character, move, target = action
    known = range(ALLIES), range(MOVES), range(TARGETS)
    if any(part not in valid for part, valid in zip(action, known, strict=True)):
        raise InputError(f"expected (0 to 3, 0 to 3, 0 to 9), got {action}")
    if move in (BASIC, SKILL) and character != actor:
        whose = "no character's" if actor is None else f"the turn of character {actor}"
        raise InputError(f"character {character} cannot move: it is {whose}")
    if move == HOLD:
        return [Click(*ui.box("ally", character).centre), Key("space")]
    key = Key(str(character + 1) if move == RELEASE else "qe"[move])
    if target == ALL:
        return [key]
    if target < FIRST_ENEMY:
        return [Click(*ui.box("ally", target).centre), key]
    row = sorted(enemies)[:ENEMIES]
    if target - FIRST_ENEMY >= len(row):
        raise InputError(f"target {target} is not there: {len(row)} enemies are seen")
    x, y = row[target - FIRST_ENEMY]
    return [Click(round(x), round(y)), key]
