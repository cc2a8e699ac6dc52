"""One tick of a world, and the entry point that steps many of them."""

from __future__ import annotations

from typing import Any

from bridges.blockworld.arrows import tick_arrows
from bridges.blockworld.body import tick_body, tick_sleep
from bridges.blockworld.clock import tick_clock
from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.creatures import tick_creatures
from bridges.blockworld.drops import tick_drops
from bridges.blockworld.furnaces import tick_furnaces
from bridges.blockworld.hands import tick_hands
from bridges.blockworld.motion import tick_player
from bridges.blockworld.screen import move_cursor, tick_screen
from bridges.blockworld.whole import whole
from bridges.blockworld.world import (
    ATTACK,
    AUTO_CLICK,
    AUTO_JUMP,
    DROP,
    FORWARD,
    INVENTORY,
    JUMP,
    NO_SCREEN,
    USE,
)

_STILL = 1e-3  # squared speed, in blocks per tick; unobstructed walking is faster


@kernel
def advance(worlds: Any, controls: Any, playing: Any, ticks: int, lo: int, hi: int) -> None:
    """Steps worlds by a number of ticks, in place.

    Worlds whose player is dead, and those that do not play, are not changed. Each world depends on
    nothing but itself and its controls: any split of ``lo`` to ``hi`` gives the same.

    Args:
        worlds: the worlds, ``(W,)`` of type ``WORLD``.
        controls: of each player, ``(W,)`` of type ``CONTROLS``; finite degrees.
        playing: which worlds play, ``(W,)`` uint8.
        ticks: ticks of this step; the camera turns in the first of them.
        lo: first world to step.
        hi: end of the range of worlds.
    """
    for k in range(lo, hi):
        if playing[k]:
            w = worlds[k]
            keys = whole(controls[k].keys)
            for number in range(ticks):
                if w.dead:
                    break
                if number == 0:
                    turn(w, float(controls[k].yaw), float(controls[k].pitch))
                tick(w, keys, number == 0)


@inner
def stands_still(w: World) -> bool:
    """Whether the player stands still after it ran into an obstacle."""
    return bool(w.on_ground != 0 and w.vx * w.vx + w.vz * w.vz < _STILL)


@inner
def turn(w: World, yaw: float, pitch: float) -> None:
    """Turns the camera by some degrees, or moves the cursor if a screen is open."""
    if w.screen != NO_SCREEN:
        move_cursor(w, yaw, pitch)
        return
    w.yaw = (float(w.yaw) + yaw) % 360.0
    if w.yaw >= 360.0:  # rounded up to it
        w.yaw = 0.0
    w.pitch = min(max(float(w.pitch) + pitch, -90.0), 90.0)


@inner
def tick(w: World, keys: int, first: bool) -> None:
    """Runs one tick with these keys held; ``first`` says whether a step begins with it.

    The order is part of the game's rules: clock, screen or hands, the player's motion, its body,
    creatures, arrows, drops, furnaces.
    """
    before = whole(w.keys_before)
    pressed = keys & ~before
    w.keys_before = keys
    if first and keys & AUTO_CLICK:
        pressed |= keys & (DROP | INVENTORY)
        if w.screen != NO_SCREEN:
            pressed |= keys & (ATTACK | USE)
    w.tick += 1
    tick_clock(w)
    moving = keys
    if w.sleep_ticks > 0:
        tick_sleep(w, pressed)
        moving = 0
    elif w.screen != NO_SCREEN:
        tick_screen(w, keys, pressed)
        moving = 0
    else:
        tick_hands(w, keys, pressed)
        if w.screen != NO_SCREEN or w.sleep_ticks > 0:
            moving = 0
    if moving & before & AUTO_JUMP and moving & before & FORWARD and stands_still(w):
        moving |= JUMP
    tick_player(w, moving)
    tick_body(w)
    tick_creatures(w)
    tick_arrows(w)
    tick_drops(w)
    tick_furnaces(w)
