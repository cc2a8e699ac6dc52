"""What plays the screen: anything that shows pictures and takes clicks and keys.

Direct control (DC) sends a click, which selects, and a key, which decides. Every key is one
decision of the battle; clicks alone are none. Tool-assisted actions (TA) become the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Protocol

import numpy as np

from bridges.starbench.pictures.drawn import HALF, Marks
from bridges.starbench.pictures.layout import Box, UiMap
from bridges.starbench.pictures.renderer import Renderer, places
from bridges.starbench.pictures.sprites import Picture
from bridges.starbench.rules.battle import Battle
from bridges.starbench.rules.view import (
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


@dataclass(frozen=True, slots=True)
class Direct:
    """A decision of direct control: the key to press, and the pixel to click first, if any."""

    key: str
    at: tuple[int, int] | None = None


class Client(Protocol):
    """A screen with a mouse and a keyboard. Nothing else is known of the game behind it."""

    @property
    def ui(self) -> UiMap:
        """The map of its screen, in its pixels."""
        ...

    def grab(self) -> Picture:
        """Returns the screen now, (height, width, 3) in RGB."""
        ...

    def click(self, x: int, y: int) -> None:
        """Clicks on a pixel of the screen."""
        ...

    def press(self, key: str) -> None:
        """Presses and releases a key."""
        ...

    def wait_idle(self) -> None:
        """Waits until the screen shows what the clicks and keys did.

        Raises:
            GameTimeout: it does not.
        """
        ...


def send(client: Client, decision: Direct) -> None:
    """Sends the click and the key of a decision, and waits until the screen shows what they did."""
    if decision.at is not None:
        client.click(*decision.at)
    client.press(decision.key)
    client.wait_idle()


class EmulatorClient:
    """The screen of a battle in this process: turns clicks and keys into actions of the battle.

    Args:
        battle: that is played.
        size: of the screen in pixels.

    Attributes:
        ui: the map of the screen.
        marks: what is selected, as the screen shows it.
        off_target: whether the click before the last action hit nothing, so that it went to the
            default target.
    """

    def __init__(self, battle: Battle, size: tuple[int, int] = (1920, 1080)) -> None:
        self._renderer = Renderer(size)
        self.ui = self._renderer.ui
        self.begin(battle)

    def begin(self, battle: Battle) -> None:
        """Plays this battle from now on, with nothing selected."""
        self.battle, self.marks, self.off_target = battle, Marks(), False
        self._hit: str | None = None  # the widget of the click before the next key
        self._clicked = False
        self._refresh()

    def grab(self) -> Picture:
        """Returns the picture of the battle now."""
        return self._renderer.draw(self.battle.view(), self.marks)

    def wait_idle(self) -> None:
        """Returns at once: every event has been handled."""

    def click(self, x: int, y: int) -> None:
        """Selects what is at a pixel: an enemy, an ally or a button."""
        self._clicked = True
        self._hit, marks = self._under(self.battle.view(), x, y)
        self.marks = replace(marks, events=self.marks.events + 1)

    def press(self, key: str) -> None:
        """Presses a key, which completes a decision; nothing happens once the battle is over."""
        self.marks = replace(self.marks, events=self.marks.events + 1)
        view = self.battle.view()
        if view.window == "over":
            return
        key, action = key.lower(), None
        if key in ("a", "d"):
            self._move_target(view, 1 if key == "d" else -1)
            self.battle.act_select()
        elif key in KEYS and (action := self._action(view, key)) is not None:
            self.battle.act(action)
        elif key not in KEYS and self._hit:  # the click has selected
            self.battle.act_select()
        else:
            self.battle.act_invalid(f"nothing to do for key {key}")
        self.off_target = action is not None and self._clicked and self._hit is None
        self._hit, self._clicked = None, False
        self._refresh()

    def save(self) -> list[object]:
        """Returns what is selected, as JSON-able data."""
        return [*astuple(self.marks), self._hit, self._clicked]

    def load(self, saved: list[Any]) -> None:
        """Restores what ``save`` returned."""
        *marks, self._hit, self._clicked = saved
        self.marks = Marks(*marks)

    def _under(self, view: BattleView, x: float, y: float) -> tuple[str | None, Marks]:
        for enemy, at in zip(view.enemies, places(self.ui, view), strict=True):
            if _around(at, HALF[enemy.kind], self.ui.scale).contains(x, y):
                return "enemy", replace(self.marks, enemy=enemy.target)
        for ally in view.allies:
            if self.ui.box("ally", ally.slot).contains(x, y):
                return "ally", replace(self.marks, ally=ally.slot)
        for move, name in enumerate(("basic", "skill")):
            if self.ui.box(name).contains(x, y):
                return name, replace(self.marks, move=move)
        return None, self.marks

    def _action(self, view: BattleView, key: str) -> int | None:
        """Returns the action of a key; None if it has none that is legal."""
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
            return None
        first = action_id(character, move, 0)
        legal = np.flatnonzero(self.battle.mask()[first : first + TARGETS]).tolist()
        marked = [t for t in (ALL, self.marks.enemy, self.marks.ally) if t in legal]
        return next((first + target for target in (*marked, *legal)), None)

    def _move_target(self, view: BattleView, by: int) -> None:
        """Moves the mark of enemies, or that of allies if the skill that is marked needs one."""
        enemies, allies = _present(view)
        if self.marks.move == SKILL and view.actor is not None:
            first = action_id(view.actor, SKILL, 0)
            if self.battle.mask()[first : first + ALLIES].any():
                self.marks = replace(self.marks, ally=_next(allies, self.marks.ally, by))
                return
        self.marks = replace(self.marks, enemy=_next(enemies, self.marks.enemy, by))

    def _refresh(self) -> None:
        """Keeps the marks on units that live."""
        marks, (enemies, allies) = self.marks, _present(self.battle.view())
        if marks.enemy not in enemies:
            nearest = [target for target in enemies if target <= (marks.enemy or FIRST_ENEMY)]
            marks = replace(marks, enemy=nearest[-1] if nearest else None)
        if marks.ally not in allies:
            marks = replace(marks, ally=allies[0] if allies else None)
        self.marks = marks


def _present(view: BattleView) -> tuple[list[int], list[int]]:
    """Returns the targets of the enemies, and those of the allies who stand."""
    allies = [ally.slot for ally in view.allies if ally.alive]
    return [enemy.target for enemy in view.enemies], allies


def _next(of: list[int], now: int | None, by: int) -> int | None:
    return of[(of.index(now) + by) % len(of)] if now in of else next(iter(of), now)


def _around(at: tuple[float, float], half: float, scale: float) -> Box:
    left, top = round((at[0] - half) * scale), round((at[1] - half) * scale)
    return Box(left, top, round(2 * half * scale), round(2 * half * scale))


def direct_of(
    action: tuple[int, int, int],
    ui: UiMap,
    *,
    enemies: Sequence[tuple[float, float]],
    actor: int | None,
) -> Direct:
    """Returns what a tool-assisted action clicks and presses (StarBench, section 3.3).

    Args:
        action: ``(c, m, t)``: character 0 to 3; move 0 basic, 1 skill, 2 release, 3 hold an
            ultimate; target 0 to 3 an ally, 4 to 8 an enemy from left to right, 9 all.
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
        return Direct("space", ui.box("ally", character).centre)
    key = str(character + 1) if move == RELEASE else "qe"[move]
    if target == ALL:
        return Direct(key)
    if target < FIRST_ENEMY:
        return Direct(key, ui.box("ally", target).centre)
    row = sorted(enemies)[:ENEMIES]
    if target - FIRST_ENEMY >= len(row):
        raise InputError(f"target {target} is not there: {len(row)} enemies are seen")
    x, y = row[target - FIRST_ENEMY]
    return Direct(key, (round(x), round(y)))
