"""A battle on a screen as an instance: frames, signals and ends are read from its pixels."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import cv2

from bridges.starbench.client import KEYS, Client, Direct, direct_of, send
from bridges.starbench.options import FRAME, NO_OP, Options, blank_frame
from bridges.starbench.reading.glyphs import read_bar
from bridges.starbench.reading.reader import Ocr, Reader, Reading
from bridges.starbench.rules.view import (
    ALL,
    BASIC,
    FIRST_ENEMY,
    HOLD,
    RELEASE,
    SKILL,
    action_id,
    action_parts,
)
from rollout.api import ACTION, MASK, Columns, Frame, Start, check_slots
from rollout.errors import GameTimeout, InputError, OutOfTurnError

_LOOK_S = 0.5  # between looks whether a battle has begun
LIMIT = 10
"""Invalid decisions in a row that end a battle (StarBench, section 3.2)."""


class WindowInstance:
    """One battle, played through a client alone; see ``Instance``.

    The number of invalid decisions is that of the screen plus those that never reached it, such as
    an answer that is no action. ``depleted`` is what the bar of a boss has lost, ``action_value``
    is the clock, without what no-ops are charged, and ``damage`` is not known.

    Args:
        options: of the bridge.
        begin: begins the battle of a start and returns the client that plays it.
        end: closes the window, if it is ours.
        ours: whether the screen is; texts of another are read by OCR, and a reset waits until a
            person has begun a battle in it.
    """

    def __init__(
        self,
        options: Options,
        begin: Callable[[Start], Client],
        end: Callable[[], None],
        *,
        ours: bool = True,
    ) -> None:
        self._options, self._begin, self._end, self._ours = options, begin, end, ours
        self._client: Client | None = None
        self._reader: Reader | None = None
        self._reading, self._pause = Reading(), threading.Event()
        self._over, self._closed = True, False
        self._steps = self._lost = self._shown = 0
        self._frame = blank_frame(options, 1)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins a battle; see ``rollout.api.Instance``."""
        if self._closed:
            raise OutOfTurnError("starbench: the window is closed; launch another")
        check_slots("starbench", 1, slots, len(starts))
        self._client = self._begin(starts[0])
        if self._reader is None:
            ocr, names = None if self._ours else Ocr(), self._options.ocr and self._options.tells
            self._reader = Reader(self._client.ui, self._detector(), ocr=ocr, names=names)
        if not self._ours:
            self._await_battle(self._client, self._reader, timeout_s)
        self._steps = self._lost = self._shown = 0
        for values in self._frame.signals.values():
            values[:] = 0.0
        self._show()
        return self._frame

    def _await_battle(self, client: Client, reader: Reader, timeout_s: float) -> None:
        """Waits for a battle in a window that is not ours.

        Raises:
            GameTimeout: nobody has begun one.
        """
        end = time.monotonic() + 0.9 * timeout_s
        while not reader.read(client.grab()).playable:
            if time.monotonic() > end:
                raise GameTimeout(
                    f"client=real cannot begin battles, and its window showed none within "
                    f"{0.9 * timeout_s:.0f} s; begin each by hand, and look whether the map fits: "
                    f"python -m bridges.starbench.window.calibrate"
                )
            self._pause.wait(_LOOK_S)

    def _detector(self) -> Any:
        """Returns what finds enemies, which tool-assisted play needs."""
        if self._options.view != "ta":
            return None
        from bridges.starbench.reading.detector import Detector  # noqa: PLC0415 - loads torch

        return Detector()

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Sends the clicks and keys of one decision; see ``rollout.api.Instance``."""
        if self._client is None or self._closed:
            raise OutOfTurnError("starbench: no battle was begun; reset first")
        if not self._over:
            decision = self._decision(actions)
            if decision is not None:
                send(self._client, decision)
            self._steps += 1
            before = self._shown
            self._show(missed=decision is None)
            if self._shown <= before and decision is not None:
                self._lost = 0  # the screen took the decision
                self._count()
        return self._frame

    def _decision(self, actions: Columns) -> Direct | None:
        """Returns what is clicked and pressed; None if it is no action on this screen."""
        assert self._client is not None
        ui = self._client.ui
        if self._options.view == "dc":
            key = int(actions["key"][0])
            if key == 0:
                return None
            x, y = (int(actions[each][0]) for each in ("x", "y"))
            at = round(x * ui.size[0] / 1920), round(y * ui.size[1] / 1080)
            return Direct(KEYS[key - 1], at)
        number = int(actions[ACTION][0])
        if number == NO_OP:
            return None
        try:
            return direct_of(
                action_parts(number),
                ui,
                enemies=[each.centre for each in self._reading.enemies],
                actor=self._reading.actor,
            )
        except InputError:
            return None

    def _show(self, *, missed: bool = False) -> None:
        """Reads the screen and fills the frame."""
        assert self._client is not None
        assert self._reader is not None
        picture = self._client.grab()
        self._reading = reading = self._reader.read(picture)
        frame, signals = self._frame, self._frame.signals
        self._lost += missed
        self._shown = self._shown if reading.invalid is None else reading.invalid
        self._count()
        frame.tick[0] = self._steps
        small = cv2.resize(picture, self._options.picture, interpolation=cv2.INTER_AREA)
        frame.observations[FRAME][0] = small
        if MASK + ACTION in frame.observations:
            mask = frame.observations[MASK + ACTION][0]
            mask[:] = 0
            mask[[*_playable(reading), NO_OP]] = 1
        depleted = signals["depleted"][0]
        now = 1.0 if reading.outcome == "won" else max(depleted, self._boss(picture))
        signals["reward"][0] = (now - depleted) if self._steps else 0.0
        signals["depleted"][0] = now
        for name, value in (("score", reading.score), ("action_value", reading.clock)):
            signals[name][0] = signals[name][0] if value is None else value
        signals["won"][0] = reading.outcome == "won"
        for slot, ally in enumerate(reading.allies):
            signals[f"hp/{slot}"][0] = ally.share
        if frame.details is not None:
            text = reading.text() if self._options.ocr else ""
            frame.details[0] = {"text": text}  # type: ignore[index] # a list

    def _count(self) -> None:
        invalid = self._shown + self._lost
        self._frame.signals["invalid"][0] = invalid
        self._over = self._reading.outcome is not None or invalid >= LIMIT
        self._frame.game_over[0] = self._over

    def _boss(self, picture: Any) -> float:
        """Returns the share that the bar of a boss has lost; 0 if there is none."""
        assert self._client is not None
        ui = self._client.ui
        if "boss.hp" not in ui:
            return 0.0
        box = ui.box("boss.hp")
        outline = picture[box.y - 1, box.x : box.x + box.w].max()
        return 1 - read_bar(picture, box) if outline < 40 and not self._reading.outcome else 0.0

    def close(self) -> None:
        """Ends the window, if it is ours. Idempotent; never raises."""
        self._closed = True
        self._end()


def _playable(reading: Reading) -> list[int]:
    """Returns the actions that a screen shows to be possible.

    What a move may target is not on the screen: a move at a wrong target goes to the default one.
    """
    ready = [slot for slot, ally in enumerate(reading.allies) if ally.ready]
    living = [slot for slot, ally in enumerate(reading.allies) if ally.share > 0]
    enemies = [FIRST_ENEMY + i for i in range(len(reading.enemies))]
    found = [action_id(c, RELEASE, t) for c in ready for t in (*enemies, ALL)]
    if reading.off_turn:
        return found + [action_id(c, HOLD, ALL) for c in ready]
    if reading.actor is None:
        return found
    moves = [(BASIC, enemies)]
    if reading.skill_points != 0:  # None where it was not legible
        moves.append((SKILL, [*living, *enemies, ALL]))
    return found + [action_id(reading.actor, move, t) for move, of in moves for t in of]
