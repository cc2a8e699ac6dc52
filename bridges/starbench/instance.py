"""The instance: many battles in this process, played one after another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from bridges.starbench import observe
from bridges.starbench.asking import AskWindow, Notes
from bridges.starbench.options import (
    FRAME,
    NO_OP,
    QUESTION,
    SNAPSHOT,
    SNAPSHOT_BYTES,
    Options,
    blank_frame,
)
from bridges.starbench.rules import scoring
from bridges.starbench.rules.battle import Battle
from rollout.api import ACTION, MASK, OBSERVATION, Array, Columns, Frame, Start, check_slots
from rollout.errors import GameCrashed, OutOfTurnError

NAME = "starbench"


class StarbenchInstance:
    """``width`` battles that step one after another; a step is one decision in each."""

    def __init__(self, options: Options, width: int) -> None:
        self._options, self._width = options, width
        self._battles: list[Battle | None] = [None] * width
        self._screens: list[Any] = [None] * width
        notes = Notes() if options.ask else None
        self._asks = [AskWindow(notes, options.ask_log) for _ in range(width)] if notes else []
        self._over = np.ones(width, np.bool_)
        self._frame = blank_frame(options, width)
        rows = self._frame.observations.get(OBSERVATION, ())
        self._rows: list[memoryview[float]] = [memoryview(row) for row in rows]
        self._begun = self._closed = False

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins battles; see ``rollout.api.Instance``."""
        if self._closed:
            raise self._out_of_turn()
        rows = check_slots(NAME, self._width, slots, len(starts))
        battles = [self._options.battle(start) for start in starts]
        for row, battle in zip(rows, battles, strict=True):
            self._put(row, battle)
        self._begun = True
        return self._frame.take(rows)

    def _put(self, row: int, battle: Battle, selected: bytes = b"") -> None:
        self._battles[row], self._screens[row] = battle, None
        if self._asks and not battle.decisions:
            self._asks[row].begin()
        if self._options.pixels:
            self._screens[row] = self._options.screen(battle)
            if selected:
                self._screens[row].load(json.loads(selected))
        self._show(row, battle)
        self._frame.signals["reward"][row] = 0.0

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one decision in every battle that goes on; see ``rollout.api.Instance``."""
        if not self._begun or self._closed:
            raise self._out_of_turn()
        for row in np.flatnonzero(~self._over).tolist():
            battle = self._battles[row]
            assert battle is not None
            self._play(row, battle, actions)
            self._show(row, battle)
        return self._frame

    def _play(self, row: int, battle: Battle, actions: Columns) -> None:
        if self._options.view == "dc":
            self._options.direct(battle, self._screens[row], actions, row)
            return
        if self._asks and self._asks[row].choosing:
            self._asks[row].choose(str(actions[QUESTION][row]))
            return
        number = int(actions[ACTION][row])
        if number == NO_OP:
            battle.act_invalid("no action")
        else:
            battle.act(number)

    def _show(self, row: int, battle: Battle) -> None:
        """Writes the row of a battle."""
        frame, columns = self._frame, self._frame.observations
        over = battle.outcome is not None
        if over and self._asks:
            self._asks[row].end(battle)
        frame.game_over[row] = self._over[row] = over
        frame.tick[row] = battle.decisions
        if self._rows:
            columns[OBSERVATION][row] = 0.0
            observe.write(battle, self._rows[row])
        if MASK + ACTION in columns:
            mask = columns[MASK + ACTION][row]
            mask[:] = 0
            mask[battle.legal()] = 1
        if FRAME in columns:
            columns[FRAME][row] = self._screens[row].grab()
        if SNAPSHOT in columns:
            _write_snapshot(columns[SNAPSHOT][row], battle)
        signals = frame.signals
        depleted = scoring.depleted(battle)
        signals["reward"][row] = depleted - signals["depleted"][row]
        values = (
            *(depleted, battle.step_damage / battle.total_hp, scoring.points(battle)),
            *(scoring.used(battle), battle.invalid, battle.outcome == "won"),
        )
        for key, value in zip(_PLAIN, values, strict=True):
            signals[key][row] = value
        for ally in battle.allies:
            signals[f"hp/{ally.slot}"][row] = ally.hp / ally.max_hp
        if frame.details is not None:
            frame.details[row] = self._details(row, battle)  # type: ignore[index] # a list

    def _details(self, row: int, battle: Battle) -> dict[str, Any]:
        view = battle.view()
        details: dict[str, Any] = {"mission": f"Win the battle: {battle.data['title']}."}
        if self._options.ocr:
            details["text"] = observe.tokens(view)
        if self._asks:
            details["text"] = details.get("text", "") + self._asks[row].prompt_text(battle.task)
        if self._options.view != "dc":
            details["legal"] = observe.choices(view, battle.legal())
        return details

    def snapshot(self, slot: int) -> bytes:
        """Returns the complete battle of a slot; see ``rollout.api.Snapshots``."""
        battle, screen = self._battles[slot], self._screens[slot]
        if battle is None:
            raise self._out_of_turn()
        selected = b"" if screen is None else json.dumps(screen.save()).encode()
        return battle.snapshot() + b"\n" + selected

    def restore(self, slot: int, snapshot: bytes) -> Frame:
        """Restores the battle of a slot, and returns its frame."""
        saved, _, selected = snapshot.partition(b"\n")
        self._put(slot, Battle.from_snapshot(saved), selected)
        self._begun = True
        return self._frame.take([slot])

    def close(self) -> None:
        """Forgets the battles. Idempotent; never raises."""
        self._closed = True
        self._battles = [None] * self._width

    def _out_of_turn(self) -> OutOfTurnError:
        if self._closed:
            return OutOfTurnError(f"{NAME}: the instance is closed; launch another")
        return OutOfTurnError(f"{NAME}: no slot was ever reset; reset one before the first step")


_PLAIN = ("depleted", "damage", "score", "action_value", "invalid", "won")


def _write_snapshot(row: Array, battle: Battle) -> None:
    data = np.frombuffer(battle.snapshot(), np.uint8)
    if len(data) > SNAPSHOT_BYTES:
        raise GameCrashed(f"{NAME}: a snapshot has {len(data)} bytes, more than {SNAPSHOT_BYTES}")
    row[: len(data)], row[len(data) :] = data, 0
