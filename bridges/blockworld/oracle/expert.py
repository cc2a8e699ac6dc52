"""The expert as an observation: its action for the current state of every world."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bridges.blockworld.actions import Layout
from bridges.blockworld.compiled import one_at_a_time
from bridges.blockworld.oracle.moves import goals
from bridges.blockworld.oracle.paths import find_way, straight
from bridges.blockworld.oracle.sights import crosshair, first_block, nearest_blocks, visible_point
from bridges.blockworld.oracle.skills import SKILLS, Skill
from bridges.blockworld.oracle.view import HOPELESS, LEAVES_ONLY, Desk, Move, View
from bridges.blockworld.rules.world import WORLD
from rollout.api import Columns
from rollout.errors import UnknownNameError

PREFIX = "privileged_oracle/"
"""Prefix of the names of the observations that contain the expert's action."""


def skill(name: str) -> Skill:
    """Returns a skill: one by its name, or several joined by ``then``, ``and``, ``or``.

    It plays the first part that is not done and for which there is a target; ``a or b`` is done
    with the first of its parts. ``or`` binds strongest, ``then`` weakest.

    Raises:
        UnknownNameError: there is no such skill; the message lists the valid ones.
    """
    for joint, enough in (("then", all), ("and", all), ("or", any)):
        parts = re.split(rf"\s+{joint}\s+", name.strip())
        if len(parts) > 1:
            return _joined([skill(part) for part in parts], enough)
    if name.strip() not in SKILLS:
        raise UnknownNameError("skill", name.strip(), SKILLS)
    return SKILLS[name.strip()]


def _joined(parts: list[Skill], enough: Callable[[Iterable[bool]], bool]) -> Skill:
    def play(v: View) -> Move:
        moves = (part.play(v) for part in parts if not part.done(v))
        return next((move for move in moves if move is not HOPELESS), HOPELESS)

    return Skill(play, lambda v: enough(part.done(v) for part in parts))


class Oracle:
    """Fills the observations with the expert's action.

    The action depends on nothing but the record of the world; worlds that are over, and those whose
    task is done, get the no-op.

    Args:
        name: of the skill, see ``skill``.
        layout: action layout.
        buffers: observations of all worlds, those of the expert among them.
    """

    def __init__(self, name: str, layout: Layout, buffers: Columns) -> None:
        self._skill, self._layout = skill(name), layout
        self._columns = {key: buffers[PREFIX + key] for key in layout.space.spaces}
        self._desk = Desk()
        with one_at_a_time():
            self._compile()

    def fill(self, worlds: Any, playing: Any, lo: int, hi: int) -> None:
        """Writes the expert's action for worlds ``lo`` to ``hi``."""
        keys = np.zeros(hi - lo, np.uint32)
        turns = np.zeros((2, hi - lo), np.float32)
        play, done = self._skill.play, self._skill.done
        for row in range(lo, hi):
            if not playing[row] or worlds["dead"][row]:
                continue
            view = View(worlds, row, self._desk)
            if not done(view):
                keys[row - lo], turns[0, row - lo], turns[1, row - lo] = play(view)
        chosen = self._layout.encode(keys, turns[0], turns[1], worlds[lo:hi])
        for key, column in self._columns.items():
            column[lo:hi] = chosen[key]

    def _compile(self) -> None:
        """Compiles or loads the functions that skills call, on an empty world."""
        worlds = np.zeros(1, WORLD)
        worlds["x"] = worlds["z"] = worlds["y"] = 8.0
        desk = self._desk
        find_way(worlds, 0, goals(0), LEAVES_ONLY, desk.work, desk.path)
        straight(worlds, 0, 8.0, 8.0, 8)
        visible_point(worlds, 0, 0, 1.0)
        crosshair(worlds, 0)
        first_block(worlds, 0, 8.0, 8.0, 8.0)
        nearest_blocks(worlds, 0, np.zeros(64, np.uint8), False, desk.found[:0])
