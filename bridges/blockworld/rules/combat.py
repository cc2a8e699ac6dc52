"""Blows, arrows and damage: health, armour, shields, knockback, deaths.

Numbers are those of Minecraft 1.16. Only creatures shoot arrows, and only the player is hit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.blocks import NO_TOOL, SWORD
from bridges.blockworld.rules.collision import CROUCHED, free_share, heading
from bridges.blockworld.rules.drops import spawn_drop
from bridges.blockworld.rules.inventory import wear_out
from bridges.blockworld.rules.items import (
    ARMOUR_PIECES,
    BLOW_TICKS,
    DAMAGE,
    DURABILITY,
    NOTHING,
    NUMBER,
    PROTECTION,
    TOOL,
)
from bridges.blockworld.rules.species import DAMAGE as SPECIES_DAMAGE
from bridges.blockworld.rules.species import DROPS, HOSTILE, NOBODY, SKELETON
from bridges.blockworld.rules.world import (
    ARMOUR,
    CHASE,
    FLEE,
    MAX_ARROWS,
    SLIM,
    STANDING,
    below,
    chance,
    cosine,
    sine,
)

# Arrays, because numba would compile a function again for each literal argument.
_CAUSES: Any = np.arange(9)
_ANSWERS: Any = np.array((True, False))
BLOW, ARROW_HIT, FALL, FIRE, LAVA, DROWNING, HUNGER, CACTUS, VOID = _CAUSES
"""Causes of damage."""
BY_PLAYER, NOT_BY_PLAYER = _ANSWERS
"""Who hurt a creature; see ``hurt_creature``."""

_STRIKES = np.isin(_CAUSES, (BLOW, ARROW_HIT))
_ARMOUR_HELPS = np.isin(_CAUSES, (BLOW, ARROW_HIT, LAVA, CACTUS))

NO_EFFECT, COST, PARRIED = range(3)
"""Results of a blow at the player: no effect, damage, blocked by the shield."""

BLAME_TICKS = 100
"""Ticks after its blow during which a creature's death counts as the player's kill."""
SAFE_TICKS = 10
"""Ticks after damage without further damage: half a second."""
KNOCK = 0.4
"""Knockback of a blow, in blocks per tick, horizontally and upwards."""
FLEE_TICKS = 100
"""Ticks that hurt animals flee: five seconds."""
CHASE_TICKS = 60
"""Ticks that hostile creatures continue when they do not see the player: three seconds."""

_SHIELD = NUMBER["shield"]
_FIRST_DIAMOND = NUMBER[f"diamond_{ARMOUR_PIECES[0]}"]
_LAST_DIAMOND = NUMBER[f"diamond_{ARMOUR_PIECES[-1]}"]
_SHIELD_LEAST = 3.0  # a weaker blow does not wear a shield


@inner
def _parries(w: World, from_x: float, from_z: float) -> bool:
    if not w.blocking:
        return False
    yaw = np.float64(w.yaw)
    return bool((from_x - w.x) * -sine(yaw) + (from_z - w.z) * cosine(yaw) > 0.0)


@inner
def _wear_shield(w: World, amount: float) -> None:
    if amount < _SHIELD_LEAST:
        return
    wear = 1 + int(amount)
    if whole(w.off_item) == _SHIELD:
        w.off_wear += wear
        if w.off_wear >= DURABILITY[_SHIELD]:
            w.off_item, w.off_count, w.off_wear, w.blocking = NOTHING, 0, 0, 0
        return
    wear_out(w, whole(w.selected), wear)
    if whole(w.item[whole(w.selected)]) == NOTHING:
        w.blocking = 0


@inner
def armoured(w: World, amount: float) -> float:
    """Returns the damage of a blow after the reduction by the player's armour."""
    points, toughness = 0.0, 0.0
    for piece in range(ARMOUR):
        item = whole(w.armour[piece])
        points += np.float64(PROTECTION[item])
        if _FIRST_DIAMOND <= item <= _LAST_DIAMOND:
            toughness += 2.0
    helps = min(max(points - amount / (2.0 + toughness / 4.0), points * 0.2), 20.0)
    return amount * (1.0 - helps / 25.0)


@inner
def _wear_armour(w: World, amount: float) -> None:
    wear = max(1, int(amount / 4.0))
    for piece in range(ARMOUR):
        item = whole(w.armour[piece])
        if item == NOTHING:
            continue
        w.armour_wear[piece] += wear
        if w.armour_wear[piece] >= DURABILITY[item]:
            w.armour[piece], w.armour_wear[piece] = NOTHING, 0


@inner
def hurt_player(w: World, amount: float, from_x: float, from_z: float, cause: int) -> int:
    """Hurts the player, unless it was hurt within half a second or its shield blocks the blow.

    Armour does not help against a fall, burning, drowning, hunger and the void. Only blows and
    arrows knock the player back and can be blocked by a shield.

    Args:
        w: the world.
        amount: damage, in half hearts.
        from_x: position of the attacker; not used for other causes.
        from_z: see ``from_x``.
        cause: one of ``BLOW`` to ``VOID``.

    Returns:
        ``NO_EFFECT``, ``COST`` or ``PARRIED``.
    """
    if w.dead or amount <= 0.0 or w.hurt_ticks > 0:
        return NO_EFFECT
    if _STRIKES[cause] and _parries(w, from_x, from_z):
        _wear_shield(w, amount)
        return PARRIED
    cost = amount
    if _ARMOUR_HELPS[cause]:
        cost = armoured(w, amount)
        _wear_armour(w, amount)
        w.exhaustion += 0.1
    w.hurt_ticks = SAFE_TICKS
    w.sleep_ticks = 0
    before = np.float64(w.health)
    w.health = max(before - cost, 0.0)
    w.hurt += before - np.float64(w.health)
    if w.health <= 0.0:
        w.dead = 1
    if _STRIKES[cause]:
        w.vx, w.vy, w.vz = knocked(w.vx, w.vy, w.vz, w.on_ground, w.x - from_x, w.z - from_z, KNOCK)
    return COST


@inner
def knocked(
    vx: float, vy: float, vz: float, ground: int, dx: float, dz: float, strength: float
) -> tuple[float, float, float]:
    """Returns a velocity after knockback along ``(dx, dz)``, in blocks per tick."""
    length = math.sqrt(dx * dx + dz * dz)
    if length < 1e-4:
        return vx, vy, vz
    if ground:
        vy = min(KNOCK, vy * 0.5 + strength)
    push = strength / length
    return vx * 0.5 + dx * push, vy, vz * 0.5 + dz * push


@inner
def knock_creature(w: World, n: int, dx: float, dz: float, strength: float) -> None:
    """Knocks a creature back along ``(dx, dz)``."""
    vx, vy, vz = knocked(
        np.float64(w.c_vx[n]),
        np.float64(w.c_vy[n]),
        np.float64(w.c_vz[n]),
        whole(w.c_ground[n]),
        dx,
        dz,
        strength,
    )
    w.c_vx[n], w.c_vy[n], w.c_vz[n] = vx, vy, vz


@inner
def _die(w: World, n: int, by_player: bool) -> None:
    kind = whole(w.c_kind[n])
    x, y, z = np.float64(w.c_x[n]), np.float64(w.c_y[n]), np.float64(w.c_z[n])
    w.c_kind[n] = NOBODY
    if by_player:
        w.kills[kind] += 1
    for row in range(DROPS.shape[1]):
        item = whole(DROPS[kind, row, 0])
        least, most = whole(DROPS[kind, row, 1]), whole(DROPS[kind, row, 2])
        if item == NOTHING:
            continue
        count = least + below(w, most - least + 1)
        if count > 0:
            spawn_drop(w, item, count, 0, x, y + 0.25, z)


@inner
def hurt_creature(
    w: World, n: int, amount: float, from_x: float, from_z: float, by_player: bool
) -> bool:
    """Hurts a creature, unless it was hurt within half a second.

    Animals flee from the player's blows, hostile creatures attack. A creature without health
    dies: its place becomes free, its drops appear, and it counts as a kill if the player hurt it
    within the last five seconds, whatever it died of (Minecraft's rule). An attack from the
    creature's own position does not knock it back.

    Returns:
        Whether the creature lost health.
    """
    if w.c_kind[n] == NOBODY or w.c_hurt[n] > 0 or amount <= 0.0:
        return False
    before = np.float64(w.c_health[n])
    after = max(before - amount, 0.0)
    w.c_health[n] = after
    w.c_hurt[n] = SAFE_TICKS
    dx, dz = np.float64(w.c_x[n]) - from_x, np.float64(w.c_z[n]) - from_z
    if by_player:
        w.dealt += before - after
        w.c_blame[n] = BLAME_TICKS
        if HOSTILE[whole(w.c_kind[n])]:
            w.c_mode[n], w.c_timer[n] = CHASE, CHASE_TICKS
        else:
            w.c_mode[n], w.c_timer[n] = FLEE, FLEE_TICKS
            w.c_yaw[n] = heading(dx, dz) + 60.0 * chance(w) - 30.0
    if after <= 0.0:
        _die(w, n, by_player or w.c_blame[n] > 0)
    else:
        knock_creature(w, n, dx, dz, KNOCK)
    return True


@inner
def strike(w: World, n: int) -> None:
    """Strikes creature ``n`` with the item in the player's hand.

    The blow has full strength only after the weapon's cooldown, deals half as much again when the
    player is falling, and has more knockback when it sprints.
    """
    slot = whole(w.selected)
    item = whole(w.item[slot])
    strength = min((np.float64(w.blow_ticks) + 0.5) / np.float64(BLOW_TICKS[item]), 1.0)
    amount = np.float64(DAMAGE[item]) * (0.2 + strength * strength * 0.8)
    w.blow_ticks = 0.0
    strong = strength > 0.9
    if strong and w.fall > 0.0 and not w.on_ground and not w.in_water and not w.sprinting:
        amount *= 1.5
    if not hurt_creature(w, n, amount, w.x, w.z, BY_PLAYER):
        return
    if strong and w.sprinting:
        yaw = np.float64(w.yaw)
        knock_creature(w, n, -sine(yaw), cosine(yaw), 0.5)
        w.vx *= 0.6
        w.vz *= 0.6
        w.sprinting = 0
    if TOOL[item] != NO_TOOL:
        wear_out(w, slot, 1 if TOOL[item] == SWORD else 2)
    w.exhaustion += 0.1


# arrows -------------------------------------------------------------------------------------------

STUCK_TICKS = 100
"""Ticks that an arrow stays in a block before it vanishes."""
FLIGHT_TICKS = 200
"""Maximum ticks of flight of an arrow."""
_GRAVITY, _DRAG = 0.05, 0.99
_GROWN = 0.3  # blocks by which a body is wider for an arrow, as in Minecraft
_MISSED = 2.0


@inner
def shoot(w: World, x: float, y: float, z: float, vx: float, vy: float, vz: float) -> int:
    """Shoots an arrow from a point with a velocity in blocks per tick; returns its place.

    If no place is free, it takes that of the oldest arrow.
    """
    place = 0
    for n in range(MAX_ARROWS):
        if w.a_age[n] == 0:
            place = n
            break
        if w.a_age[n] > w.a_age[place]:
            place = n
    w.a_age[place] = 1
    w.a_x[place], w.a_y[place], w.a_z[place] = x, y, z
    w.a_vx[place], w.a_vy[place], w.a_vz[place] = vx, vy, vz
    return place


@inner
def _span(
    start: float, move: float, low: float, high: float, first: float, last: float
) -> tuple[float, float]:
    """Returns the part of a way, ``first`` to ``last``, on which a coordinate is within a range."""
    if move == 0.0:
        return (first, last) if low <= start <= high else (_MISSED, -_MISSED)
    enter, leave = (low - start) / move, (high - start) / move
    return max(first, min(enter, leave)), min(last, max(enter, leave))


@inner
def player_share(w: World, x: float, y: float, z: float, dx: float, dy: float, dz: float) -> float:
    """Returns the share of a straight way at which it hits the player; 2 if it does not."""
    half = SLIM * 0.5 + _GROWN
    height = CROUCHED if w.sneaking else STANDING
    first, last = _span(x, dx, w.x - half, w.x + half, 0.0, 1.0)
    first, last = _span(y, dy, w.y - _GROWN, w.y + height + _GROWN, first, last)
    first, last = _span(z, dz, w.z - half, w.z + half, first, last)
    return first if first <= last else _MISSED


@inner
def _fly(w: World, n: int) -> None:
    x, y, z = np.float64(w.a_x[n]), np.float64(w.a_y[n]), np.float64(w.a_z[n])
    vx, vy, vz = np.float64(w.a_vx[n]), np.float64(w.a_vy[n]), np.float64(w.a_vz[n])
    share = free_share(w, x, y, z, vx, vy, vz)
    met = player_share(w, x, y, z, vx, vy, vz)
    if met <= share:
        hurt_player(w, np.float64(SPECIES_DAMAGE[SKELETON]), w.x - vx, w.z - vz, ARROW_HIT)
        w.a_age[n] = 0
        return
    w.a_x[n], w.a_y[n], w.a_z[n] = x + vx * share, y + vy * share, z + vz * share
    if share < 1.0:
        w.a_vx[n], w.a_vy[n], w.a_vz[n] = 0.0, 0.0, 0.0
        w.a_age[n] = 1
        return
    w.a_vx[n], w.a_vy[n], w.a_vz[n] = vx * _DRAG, vy * _DRAG - _GRAVITY, vz * _DRAG


@inner
def tick_arrows(w: World) -> None:
    """Moves the arrows for one tick: they fly, hit the player, get stuck in blocks, vanish."""
    for n in range(MAX_ARROWS):
        if w.a_age[n] == 0:
            continue
        w.a_age[n] += 1
        stuck = w.a_vx[n] == 0.0 and w.a_vy[n] == 0.0 and w.a_vz[n] == 0.0
        if w.a_age[n] > (STUCK_TICKS if stuck else FLIGHT_TICKS):
            w.a_age[n] = 0
        elif not stuck:
            _fly(w, n)
