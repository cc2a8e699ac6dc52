"""Hunting and fighting: choice of the target, approach, and timing of blows."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, hypot, radians, sin
from typing import NamedTuple

from bridges.blockworld.oracle.moves import any_of, around, legs, steer, stuck, walk
from bridges.blockworld.oracle.paths import straight
from bridges.blockworld.oracle.sights import crosshair, first_block
from bridges.blockworld.oracle.view import HOPELESS, Move, View, best_weapon, kill_ticks
from bridges.blockworld.rules.aim import STRIKE_REACH
from bridges.blockworld.rules.blocks import FORM, PLANT
from bridges.blockworld.rules.items import BLOW_TICKS, DAMAGE, NOTHING
from bridges.blockworld.rules.species import HOSTILE, NOBODY, SKELETON, TALL, WIDTH
from bridges.blockworld.rules.world import ATTACK, BACK, FORWARD, JUMP, SPRINT

NEAR = 3.4
"""Distance in blocks from the eyes to a body at which the expert turns to it and strikes."""
_DANGER, _TOO_NEAR = 3.5, 1.5
"""Blocks within which hostile creatures come before prey; the second if a kill takes long."""
_SLOW = 2
"""Ticks before a blow in which the expert does not run."""
_LEAP = (4, 7)
"""Ticks before a blow at which it jumps for it."""
_LONG = 80.0
"""Ticks of a fight that is better avoided."""
_WEAKER = 0.4
"""Blocks of detour that half a heart less of health is worth."""
_KEEP_OFF = 2.1
"""Distance in blocks from hostile creatures until the next blow is ready."""


class Creature(NamedTuple):
    """One creature as the fights use it."""

    n: int
    kind: int
    x: float
    y: float
    z: float
    health: float
    wait: int  # ticks until it can be hurt again
    gap: float  # blocks from the eyes to its body


def creatures(v: View, wanted: Callable[[int], bool]) -> list[Creature]:
    """Returns the living creatures of the given kinds."""
    w = v.w
    found = []
    for n, kind in enumerate(w["c_kind"].tolist()):
        if kind == NOBODY or not wanted(kind):
            continue
        x, y, z = float(w["c_x"][n]), float(w["c_y"][n]), float(w["c_z"][n])
        half = 0.5 * float(WIDTH[kind])
        flat = hypot(max(abs(x - v.x) - half, 0.0), max(abs(z - v.z) - half, 0.0))
        up = max(y - v.eye, v.eye - y - float(TALL[kind]), 0.0)
        health, wait = float(w["c_health"][n]), int(w["c_hurt"][n])
        found.append(Creature(n, kind, x, y, z, health, wait, hypot(flat, up)))
    return found


def hunt(v: View, kind: int) -> Move:
    """Returns the move that kills every creature of a kind; hostile ones nearby come first."""
    prey = creatures(v, lambda k: k == kind)
    if not prey:
        return HOPELESS
    threats = [
        c
        for c in creatures(v, lambda k: bool(HOSTILE[k]) and k != kind)
        if c.gap < _danger(v, c) and _hidden_by(v, c) < 0
    ]
    return fight(v, threats or prey)


def _danger(v: View, c: Creature) -> float:
    """Distance from which a hostile creature comes before the prey."""
    item = v.items[best_weapon(v.items, v.selected, c.health)]
    return _DANGER if kill_ticks(item, c.health) < _LONG else _TOO_NEAR


def fight(v: View, foes: list[Creature]) -> Move:
    """Returns the move against some creatures: towards the nearest, or a blow."""
    slot = best_weapon(v.items, v.selected, max(c.health for c in foes))
    key = v.slot_key(slot)
    pause = max(float(BLOW_TICKS[v.items[slot]]) - float(v.w["blow_ticks"]) - 1.5, 0.0)
    foes = _one_by_one(foes)
    close = [c for c in foes if c.gap < NEAR and _open(v, c)]
    if not close:
        step = walk(v, any_of(*(around(c.x, c.y, c.z, 1.2) for c in foes)))
        if step is None:
            nearest = min(foes, key=lambda c: c.gap)
            step = steer(v, nearest.x, nearest.z, run=False)
        return Move(step.keys | key, step.pitch, step.yaw)
    target = min(close, key=lambda c: (max(c.wait, pause), c.gap))
    move = _strike(v, target, pause, v.items[slot])
    return Move(move.keys | key | _footwork(v, target, close, pause), move.pitch, move.yaw)


def _one_by_one(foes: list[Creature]) -> list[Creature]:
    """Chooses the creature to finish first: the nearest, or a weaker one a little farther away."""
    return [min(foes, key=lambda c: (c.gap + _WEAKER * c.health, c.n))]


def _aim_height(v: View, c: Creature) -> float:
    """The height of a body to look at: as level as possible."""
    tall = float(TALL[c.kind])
    return min(max(v.eye, c.y + 0.3 * tall), c.y + 0.8 * tall)


def _hidden_by(v: View, c: Creature) -> int:
    """The block that hides a creature, -1 for none."""
    return int(first_block(v.worlds, v.row, c.x, _aim_height(v, c), c.z))


def _open(v: View, c: Creature) -> bool:
    """True if nothing but a plant, which a blow breaks, is in front of a creature."""
    at = _hidden_by(v, c)
    return at < 0 or FORM[v.blocks[at]] == PLANT


def _strike(v: View, c: Creature, pause: float, item: int) -> Move:
    pitch, yaw = v.turn_to(c.x, _aim_height(v, c), c.z)
    aimed, block = crosshair(v.worlds, v.row)
    if aimed == c.n:
        share = min((float(v.w["blow_ticks"]) + 1.5) / float(BLOW_TICKS[item]), 1.0)
        kills = float(DAMAGE[item]) * (0.2 + 0.8 * share * share) >= c.health
        if c.wait == 0 and (pause == 0.0 or kills):
            return Move(v.press(ATTACK))
        return Move(0, pitch, yaw)
    if aimed < 0 and block >= 0 and FORM[v.blocks[block]] == PLANT and abs(yaw) < 8.0:
        return Move(ATTACK, pitch, yaw)
    return Move(0, pitch, yaw)


def _footwork(v: View, target: Creature, close: list[Creature], pause: float) -> int:
    """Keys that keep the distance: towards prey, away from attackers until a blow is ready."""
    biting = [c for c in close if HOSTILE[c.kind] and c.kind != SKELETON]
    if biting and min(c.gap for c in biting) < _KEEP_OFF and pause > 1.0:
        return BACK if _level(v, 180.0) else 0
    wanted = 2.4 if biting else 1.2
    if target.gap <= wanted:
        return 0
    if v.w["sprinting"] and target.gap < STRIKE_REACH and max(target.wait, pause) < _SLOW:
        return 0  # a sprinting blow has twice the knockback: slow down first
    _, yaw = v.turn_to(target.x, v.eye, target.z)
    keys = legs(yaw)
    if keys & FORWARD and target.gap > wanted + 0.4 and max(target.wait, pause) >= _SLOW:
        keys |= SPRINT
    if v.in_water or stuck(v) or _leaps(v, target):
        keys |= JUMP
    return keys


def _leaps(v: View, target: Creature) -> bool:
    """True if to jump now, so that the next blow of a bare hand hits the target from above."""
    return v.items[v.selected] == NOTHING and _LEAP[0] <= target.wait <= _LEAP[1] and v.on_ground


def _level(v: View, turn: float) -> bool:
    """True if a step in that direction is safe without a search: level ground for two blocks."""
    turned = radians(v.yaw + turn)
    x, z = v.x - 2.0 * sin(turned), v.z + 2.0 * cos(turned)
    return bool(straight(v.worlds, v.row, x, z, int(v.y + 0.01)))
