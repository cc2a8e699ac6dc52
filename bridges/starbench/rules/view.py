"""The view of a battle, which observations, the screen and programs read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BASIC, SKILL, RELEASE, HOLD = range(4)
"""Moves ``m`` of an action."""

ALL = 9
"""Target ``t`` of moves that need none: on all enemies, on all allies, on oneself, and hold."""

ALLIES, MOVES, TARGETS = 4, 4, 10
ACTIONS = ALLIES * MOVES * TARGETS
FIRST_ENEMY, ENEMIES = 4, 5

MOVE_NAMES = ("basic", "skill", "release", "hold")


def action_id(character: int, move: int, target: int) -> int:
    """Returns the number of a tool-assisted action ``(c, m, t)``: ``(c * 4 + m) * 10 + t``."""
    return (character * MOVES + move) * TARGETS + target


def action_parts(number: int) -> tuple[int, int, int]:
    """Returns ``(c, m, t)`` of an action's number."""
    rest, target = divmod(number, TARGETS)
    character, move = divmod(rest, MOVES)
    return character, move, target


@dataclass(frozen=True, slots=True)
class StatusView:
    """A status on a unit; ``turns`` are the turns left."""

    name: str
    turns: int
    harmful: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitView:
    """The common fields of allies and enemies."""

    name: str
    hp: float
    max_hp: float
    statuses: tuple[StatusView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllyView(UnitView):
    """A character of the team.

    Attributes:
        slot: 0 to 3, also its number ``c`` as actor and ``t`` as target.
        ready: whether its energy is full, so that the ultimate can be released.
        acting: whether it is its turn.
        shield: HP that damage takes first; nobody in the team gives one.
    """

    slot: int
    alive: bool
    element: str
    energy: float
    max_energy: float
    ready: bool
    acting: bool
    shield: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnemyView(UnitView):
    """An enemy on the field. Fallen ones leave the view.

    Attributes:
        target: 4 to 8, from left to right without gaps: after a death those to the right move up,
            so that the numbers are those of the boxes on the screen.
        unit: key of the unit in ``enemies.yaml``.
        toughness: in displayed points; 0 while it is broken.
        charging: whether it prepares a heavy move.
    """

    target: int
    unit: str
    kind: Literal["enemy", "boss", "summon"]
    toughness: float
    max_toughness: float
    weaknesses: tuple[str, ...]
    charging: bool


@dataclass(frozen=True, slots=True)
class TurnView:
    """An entry of the turn order: who acts in ``av`` units of action value."""

    name: str
    ally: bool
    av: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleView:
    """Everything that a player may know of a battle.

    Attributes:
        task: name of the battle, e.g. ``cocolia``.
        allies: four, by slot.
        enemies: at most five, by target.
        order: who acts next, the nearest first.
        damage: dealt by the team in this turn.
        window: ``turn`` while an ally acts, ``off_turn`` while ultimates are offered before an
            enemy acts, ``over`` at the end.
        actor: slot of the ally that acts; None in an off-turn window.
        offered: slots whose ultimate may be released or, in an off-turn window, held.
        clock: action value since the beginning.
        cycle: number of the cycle, from 0.
        score: points so far of a battle that counts points, else 0.
        wave: number of the wave or, of a boss, the phase, from 1.
        message: what happened last, one line.
        auto: whether a program plays, which battles here do not say.
        steps: decisions so far, invalid ones included.
        invalid: invalid decisions in a row.
    """

    task: str
    allies: tuple[AllyView, ...]
    enemies: tuple[EnemyView, ...]
    order: tuple[TurnView, ...]
    skill_points: int
    max_skill_points: int
    damage: float
    window: Literal["turn", "off_turn", "over"]
    actor: int | None
    offered: tuple[int, ...]
    clock: float
    cycle: int
    score: float
    wave: int
    message: str
    outcome: Literal["won", "lost"] | None
    steps: int
    invalid: int
    auto: bool = False
