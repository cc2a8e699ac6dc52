"""``width`` worlds that step together in compiled code."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.actions import layout_of
from bridges.blockworld.compiled import one_at_a_time
from bridges.blockworld.options import BlockworldOptions
from bridges.blockworld.rules.factors import ORDER, orders
from bridges.blockworld.rules.generate import generate
from bridges.blockworld.rules.items import RECIPES
from bridges.blockworld.rules.signals import SIGNALS, report
from bridges.blockworld.rules.tick import advance
from bridges.blockworld.rules.world import AUTO_JUMP, CONTROLS, WORLD
from bridges.blockworld.warm import SENSES, compile_missing
from rollout.api import Columns, Frame, Start, allocate, check_slots
from rollout.errors import InputError, OutOfTurnError, SpaceError

_FORMAT = hashlib.sha256(str(WORLD).encode()).digest()[:8]
"""Identifies the layout of a world; the first bytes of every snapshot."""
_EVERYTHING = (1 << len(RECIPES)) - 1
_FEWEST = 8  # minimum worlds for which another thread is worth its cost


class BlockworldInstance:
    """Independent worlds side by side; each is one record.

    Deadlines cannot be enforced on code that runs in the caller's own process; nothing here waits,
    and a step of a world takes microseconds.
    """

    def __init__(self, given: BlockworldOptions, width: int) -> None:
        self._width, self._threads = width, min(given.threads, -(-width // _FEWEST))
        self._ticks, self._pitch = given.ticks_per_step, given.start_pitch
        self._auto_jump = given.auto_jump
        self._recipes = sum(1 << n for n, r in enumerate(RECIPES) if r.name in given.recipes)
        self._layout = layout_of(given.actions, given.compact_actions)
        self._worlds = np.zeros(width, WORLD)
        self._controls = np.zeros(width, CONTROLS)
        self._playing = np.zeros(width, np.uint8)
        self._ready = np.zeros(width, np.bool_)  # slots that were reset at least once
        self._signals = np.zeros((len(SIGNALS), width), np.float32)
        spec = given.spec
        self._buffers = allocate(spec.observation_space, width)
        self._senses = [
            (observation, {key: self._buffers[key] for key in observation.space(given)})
            for observation in given.observations()
        ]
        self._options = given
        self._oracle = self._make_oracle(given.oracle) if given.oracle else None
        self._frame = Frame(
            self._buffers,
            {name: self._signals[row] for row, name in enumerate(SIGNALS)},
            np.zeros(width, np.bool_),
            np.zeros(width, np.bool_),
            np.zeros(width, np.int64),
        )
        self._workers: ThreadPoolExecutor | None = None
        if self._threads > 1:
            self._workers = ThreadPoolExecutor(self._threads, "blockworld")
        self._closed = False
        compile_missing(["advance", "generate", SENSES, *(o.name for o, _ in self._senses)])
        with one_at_a_time():
            self._compile()

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots; see ``rollout.api.Instance``."""
        rows = self._checked(slots, len(starts))
        if not rows:
            return self._frame.take([])
        made = orders(rows, starts)
        generate(self._worlds, made, 0, len(made))
        if self._options.common_noise:
            self._worlds["random"][rows] = made["random"]
        self._worlds["recipes"][rows] = self._recipes or _EVERYTHING
        self._worlds["pitch"][rows] = self._pitch
        self._playing[rows] = 1
        self._ready[rows] = True
        self._show(rows)
        return self._frame if rows == list(range(self._width)) else self._frame.take(rows)

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action in every slot that is not over; see ``rollout.api.Instance``."""
        if self._closed or not self._ready.any():
            raise self._out_of_turn()
        try:
            self._layout.decode(actions, self._worlds, self._controls)
        except SpaceError:
            # The action of a slot that is over is ignored, even if invalid.
            self._decode_playing(actions)
        if self._auto_jump:
            self._controls["keys"] |= AUTO_JUMP
        self._each(advance, self._worlds, self._controls, self._playing, self._ticks)
        self._show(None)
        return self._frame

    def snapshot(self, slot: int) -> bytes:
        """Returns everything that determines the slot's future; see ``rollout.api.Snapshots``."""
        row = self._known(slot)
        flag = bytes([self._playing[row]])
        return b"".join((_FORMAT, flag, self._worlds[row : row + 1].view(np.uint8).data))

    def restore(self, slot: int, snapshot: bytes) -> Frame:
        """Restores a slot from a snapshot, also of another slot; returns its frame, one row.

        Raises:
            InputError: the bytes are not a snapshot of this version of the game.
        """
        (row,) = self._checked([slot], 1)
        head = len(_FORMAT)
        if len(snapshot) != head + 1 + WORLD.itemsize or snapshot[:head] != _FORMAT:
            raise InputError(
                f"blockworld: expected a snapshot of {head + 1 + WORLD.itemsize} bytes made by "
                f"this version, got {len(snapshot)} bytes; play the episode again from its start"
            )
        self._worlds[row] = np.frombuffer(snapshot, WORLD, 1, head + 1)[0]
        self._playing[row] = snapshot[head]
        self._ready[row] = True
        self._show([row])
        return self._frame.take([row])

    def close(self) -> None:
        """Frees the worlds. Idempotent; never raises."""
        self._closed = True
        if self._workers is not None:
            self._workers.shutdown()
            self._workers = None

    def _make_oracle(self, name: str) -> Any:
        from bridges.blockworld.oracle import Oracle  # noqa: PLC0415 - only if it is asked for

        return Oracle(name, self._layout, self._buffers)

    def _compile(self) -> None:
        """Compiles or loads every kernel that is used, by calls with an empty range of worlds."""
        none = np.zeros(0, ORDER)
        generate(self._worlds, none, 0, 0)
        advance(self._worlds, self._controls, self._playing, self._ticks, 0, 0)
        report(self._worlds, self._signals, 0, 0)
        for observation, buffers in self._senses:
            observation.fill(self._worlds, buffers, self._options, 0, 0)

    def _show(self, rows: Sequence[int] | None) -> None:
        """Writes the frame of some slots, or of all."""
        runs = [(0, self._width)] if rows is None else _runs(rows)
        for lo, hi in runs:
            self._each(report, self._worlds, self._signals, lo=lo, hi=hi)
            for observation, buffers in self._senses:
                self._each(_fill, observation, self._worlds, buffers, self._options, lo=lo, hi=hi)
            if self._oracle is not None:
                self._oracle.fill(self._worlds, self._playing, lo, hi)
        over = self._worlds["dead"] != 0
        self._frame.game_over[:] = over
        self._playing[over] = 0
        self._frame.tick[:] = self._worlds["tick"]
        if not self._ready.all():
            blank = ~self._ready
            for column in (*self._buffers.values(), *self._frame.signals.values()):
                column[blank] = 0

    def _each(
        self, function: Callable[..., None], *args: Any, lo: int = 0, hi: int | None = None
    ) -> None:
        """Calls a kernel on the worlds ``lo`` to ``hi``, in parts if there are threads."""
        hi = self._width if hi is None else hi
        if self._workers is None or hi - lo < 2 * _FEWEST:
            function(*args, lo, hi)
            return
        cuts = np.linspace(lo, hi, self._threads + 1).astype(int).tolist()
        pieces = [
            self._workers.submit(function, *args, first, end)
            for first, end in itertools.pairwise(cuts)
        ]
        for piece in pieces:
            piece.result()

    def _decode_playing(self, actions: Columns) -> None:
        rows = np.flatnonzero(self._playing)
        some = np.zeros(len(rows), CONTROLS)
        chosen = {key: np.asarray(column)[rows] for key, column in actions.items()}
        self._layout.decode(chosen, self._worlds[rows], some)
        self._controls[rows] = some

    def _checked(self, slots: Sequence[int], starts: int) -> list[int]:
        if self._closed:
            raise self._out_of_turn()
        return check_slots("blockworld", self._width, slots, starts)

    def _known(self, slot: int) -> int:
        (row,) = self._checked([slot], 1)
        if not self._ready[row]:
            raise OutOfTurnError(f"blockworld: slot {row} was never reset; reset it first")
        return row

    def _out_of_turn(self) -> OutOfTurnError:
        if self._closed:
            return OutOfTurnError("blockworld: the instance is closed; launch another")
        return OutOfTurnError(
            "blockworld: no slot was ever reset; reset at least one before the first step"
        )


def _fill(observation: Any, worlds: Any, buffers: Columns, options: Any, lo: int, hi: int) -> None:
    observation.fill(worlds, buffers, options, lo, hi)


def _runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Returns rows as ranges, first and end of each."""
    numbers: NDArray[np.int64] = np.sort(np.asarray(rows, np.int64))
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(numbers, breaks)]
