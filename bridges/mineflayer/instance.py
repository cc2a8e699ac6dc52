"""The game as an ``Instance``: frames are views of one buffer per reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bridges.mineflayer.columns import OVER, TICK, TRUNCATED, Column, Rows
from bridges.mineflayer.commands import Command
from bridges.mineflayer.driver import Driver, Message
from bridges.mineflayer.factors import start_message
from bridges.mineflayer.loadouts import Item
from bridges.mineflayer.minenpc.scene import case_of
from bridges.mineflayer.pictures.observation import PERSON_SCENE, SCENE, Pictures
from bridges.mineflayer.scene import Scene
from bridges.mineflayer.spaces import BEARINGS, BLUEPRINT, PERSON_RGB, RGB, bearings, encode
from rollout.api import NOTICE, PERSON, Columns, Details, Frame, Start, StateSpace, check_slots
from rollout.api.types import Bools
from rollout.errors import GameError, InputError, OutOfTurnError, StateError

_SNAPSHOT = b"gamut-mineflayer-1\n"
_SNAPSHOT_S = 60.0


@dataclass(frozen=True)
class Shape:
    """Properties of the bridge that an instance needs.

    Attributes:
        layout: the columns of a frame.
        observe: keys of the observations, without ``rgb``.
        actions: the action space.
        states: the state space.
        extra: items that each agent of a world is given at the start.
        scene: blocks and commands that each world begins with.
        blueprint: the observation ``blueprint``, the same for all; None without one.
        width: number of slots.
        person: name of the player that a person plays; empty for none.
    """

    layout: tuple[Column, ...]
    observe: tuple[str, ...]
    actions: spaces.Dict
    states: StateSpace
    extra: tuple[tuple[Item, ...], ...]
    scene: Scene
    blueprint: NDArray[np.uint8] | None
    width: int
    person: str = ""


class MineflayerInstance:
    """``width`` agents of one game process; see ``rollout.api.Instance``.

    Args:
        driver: the process, whose start-up message has been read.
        shape: properties of the bridge.
        pictures: renders ``rgb``; None if it is not observed.
        person: renders what a person sees who plays another player; None if there is none.

    Attributes:
        pictures: likewise.
        names: names of agents, by slot, for their next reset, other than those of the bridge.
    """

    def __init__(
        self,
        driver: Driver,
        shape: Shape,
        pictures: Pictures | None = None,
        person: Pictures | None = None,
    ) -> None:
        self.driver, self._shape, self.pictures = driver, shape, pictures
        shown = {RGB: pictures, PERSON_RGB: person}
        self._pictures = {key: each for key, each in shown.items() if each is not None}
        self.names: dict[int, str] = {}
        self._rows = Rows(shape.layout, shape.width)
        self._arrays = self._rows.arrays()
        self._ready: Bools = np.zeros(shape.width, np.bool_)
        self._idle: Bools = np.ones(shape.width, np.bool_)  # never reset, or over
        self._details: list[Details] = [{} for _ in range(shape.width)]
        self._frame = self._framed(self._rows, {k: p.out for k, p in self._pictures.items()})
        self._ended = ""  # why no more requests are accepted

    def _framed(self, rows: Rows, pictures: Columns) -> Frame:
        kept = [key for key in self._shape.observe if key != BEARINGS]
        observations = {key: rows.observations[key] for key in kept}
        if BEARINGS in self._shape.observe:
            observations[BEARINGS] = _bearings(rows)
        observations.update(pictures)
        state = rows.frame
        blueprint = self._shape.blueprint
        if blueprint is not None:
            observations[BLUEPRINT] = np.broadcast_to(
                blueprint, (len(state[OVER]), *blueprint.shape)
            )
        return Frame(observations, rows.signals, state[OVER], state[TRUNCATED], state[TICK])

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots; see ``rollout.api.Instance``."""
        self._require_running()
        rows = check_slots("mineflayer", self._shape.width, slots, len(starts))
        # A world of several agents is made from one of their starts: that of the lowest slot, in
        # any order of the starts.
        order = sorted(range(len(rows)), key=rows.__getitem__)
        states, extra, scene = self._shape.states, self._shape.extra, self._shape.scene
        sent = [start_message(states, starts[k], extra[rows[k] % len(extra)], scene) for k in order]
        start_of = dict(zip(order, sent, strict=True))
        for k, start in start_of.items():
            if rows[k] in self.names:
                start["name"] = self.names[rows[k]]
        sorted_rows = [rows[k] for k in order]
        answer = self._ask("reset", {"slots": sorted_rows, "starts": sent}, timeout_s)
        for k, said in zip(order, self._said(answer, len(rows), "reset"), strict=True):
            if self._shape.person:
                said[f"{PERSON}told"] = _script_of(start_of[k], self._shape.person)
            state = starts[k].state.values
            said.update(case_of(state).told() if "npc" in state else {})
        frame = self._take(sorted_rows, answer, "reset")
        return frame if sorted_rows == rows else frame.take(np.argsort(order))

    def _take(self, slots: list[int], answer: Message, op: str) -> Frame:
        """Copies the rows of a reply into some slots; returns the frame of those rows."""
        data = bytearray(self._columns(answer, len(slots), op))
        rows = Rows(self._shape.layout, len(slots), data)
        details = self._said(answer, len(slots), op)
        for target, source in zip(self._arrays, rows.arrays(), strict=True):
            target[slots] = source
        self._ready[slots] = True
        self._idle[slots] = rows.frame[OVER] | rows.frame[TRUNCATED]
        with self._failing():
            pictures = {key: p.begin(slots, details) for key, p in self._pictures.items()}
        for slot, said in zip(slots, details, strict=True):
            self._details[slot] = _shown(said)
        frame = self._framed(rows, pictures)
        frame.details = [self._details[slot] for slot in slots]
        return frame

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action in every slot that is not over; see ``rollout.api.Instance``."""
        self._require_running()
        if not self._ready.any():
            raise OutOfTurnError(
                "mineflayer: no slot was ever reset; reset at least one before the first step"
            )
        sent = encode(self._shape.actions, actions, self._shape.width)
        answer = self._ask("step", {"actions": sent}, timeout_s)
        columns = self._columns(answer, self._shape.width, "step")
        details = self._said(answer, self._shape.width, "step")
        idle = self._idle
        some_idle = 1 in idle.tobytes()
        kept = [array[idle] for array in self._arrays] if some_idle else []
        self._rows.data[:] = columns
        for array, rows in zip(self._arrays, kept, strict=bool(kept)):
            array[idle] = rows
        if BEARINGS in self._frame.observations:
            self._frame.observations[BEARINGS][:] = _bearings(self._rows)
        playing = np.flatnonzero(~idle).tolist()
        with self._failing():
            for pictures in self._pictures.values():
                pictures.follow(playing, details)
        shown = list(self._details)
        for slot in playing:
            shown[slot] = _shown(details[slot])
        self._details = shown
        self._frame.details = shown
        self._idle = idle | self._frame.game_over | self._frame.game_truncated
        return self._frame

    def command(self, slot: int, command: Command, *, timeout_s: float) -> tuple[bool, str]:
        """Runs a command in a slot's world, as its agent, without a tick.

        Returns:
            whether the game did it, and what it says.
        """
        self._require_running()
        (row,) = check_slots("mineflayer", self._shape.width, [slot], 1)
        answer = self._ask("command", {"slot": row, "command": command.data()}, timeout_s)
        refused = answer.get("refused")
        return refused is None, str(answer.get("answer") if refused is None else refused)

    def state(
        self,
        slot: int,
        *,
        voxels: Sequence[int] | None = None,
        mobs: Sequence[int] | None = None,
        timeout_s: float,
    ) -> dict[str, Any]:
        """Returns the state of a slot's agent by the names of MineRL's engine.

        Args:
            slot: whose.
            voxels: box of the blocks to list, ``x0, x1, y0, y1, z0, z1`` from the agent; or none.
            mobs: box of the mobs to list, likewise.
            timeout_s: seconds it may take.
        """
        self._require_running()
        (row,) = check_slots("mineflayer", self._shape.width, [slot], 1)
        boxes = {"voxels": voxels and list(voxels), "mobs": mobs and list(mobs)}
        state = self._ask("state", {"slot": row, **boxes}, timeout_s).get("state")
        if not isinstance(state, dict):
            raise self._garbage("state", f"{type(state).__name__} instead of a map")
        return state

    def leave(self, slot: int, *, timeout_s: float) -> None:
        """Takes a slot's agent out of its world; the slot is over until it is reset."""
        self._require_running()
        (row,) = check_slots("mineflayer", self._shape.width, [slot], 1)
        self._ask("leave", {"slot": row}, timeout_s)
        self._idle = self._idle.copy()
        self._idle[row] = True

    def close(self) -> None:
        """Ends the game and every process it started. Idempotent; never raises."""
        self._ended = self._ended or "is closed"
        self.driver.close()

    def _ask(self, op: str, fields: Mapping[str, Any], timeout_s: float) -> Message:
        try:
            return self.driver.ask(op, fields, timeout_s=timeout_s)
        except GameError:
            self._fail()
            raise

    def _columns(self, answer: Message, rows: int, op: str) -> bytes:
        columns = answer.get("columns")
        size = rows * len(self._rows.data) // self._shape.width
        if not isinstance(columns, bytes) or len(columns) != size:
            got = f"{len(columns)} bytes" if isinstance(columns, bytes) else repr(columns)[:80]
            raise self._garbage(op, f"columns are {got} instead of {size} bytes")
        return columns

    def _said(self, answer: Message, rows: int, op: str) -> list[dict[str, Any]]:
        details = answer.get("details")
        listed = details if isinstance(details, list) else []
        if len(listed) != rows or not all(isinstance(each, dict) for each in listed):
            raise self._garbage(op, f"details are not {rows} maps")
        return listed

    def _garbage(self, op: str, what: str) -> GameError:
        error = self.driver.garbage(op, what)
        self._fail()
        return error

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Fails the game if its renderer fails."""
        try:
            yield
        except GameError:
            self._fail()
            raise

    def _fail(self) -> None:
        # At once: a host that abandons a game may not close it, and it would keep running.
        self._ended = self._ended or "has failed"
        self.driver.close()

    def _require_running(self) -> None:
        if self._ended:
            raise OutOfTurnError(f"mineflayer: the game {self._ended}; launch another")


class SavingInstance(MineflayerInstance):
    """An instance with one agent per world, so that a slot can be saved as a whole."""

    def snapshot(self, slot: int) -> bytes:
        """Returns everything that determines the slot's future; see ``rollout.api.Snapshots``.

        Raises:
            StateError: the world cannot be saved now, for example while a program of the agent
                runs.
        """
        self._require_running()
        (row,) = check_slots("mineflayer", self._shape.width, [slot], 1)
        if not self._ready[row]:
            raise OutOfTurnError(f"mineflayer: slot {row} was never reset; reset it first")
        saved = self._ask("snapshot", {"slot": row}, _SNAPSHOT_S).get("snapshot")
        if not isinstance(saved, bytes):
            raise self._garbage("snapshot", f"{type(saved).__name__} instead of bytes")
        return _SNAPSHOT + saved

    def restore(self, slot: int, snapshot: bytes) -> Frame:
        """Restores a slot from a snapshot; returns its frame, one row.

        Raises:
            InputError: the bytes are not a snapshot of this version of the game.
        """
        self._require_running()
        (row,) = check_slots("mineflayer", self._shape.width, [slot], 1)
        if not snapshot.startswith(_SNAPSHOT):
            raise InputError(
                f"mineflayer: expected a snapshot made by this version, got {len(snapshot)} other "
                f"bytes; play the episode again from its start"
            )
        fields = {"slot": row, "snapshot": snapshot[len(_SNAPSHOT) :]}
        return self._take([row], self._ask("restore", fields, _SNAPSHOT_S), "restore")


def _bearings(rows: Rows) -> NDArray[np.float32]:
    return bearings(rows.observations["entities"], rows.observations["look"])


def _script_of(start: Message, name: str) -> list[str]:
    """Returns what a scripted player of a start would say, for the person who plays it."""
    found = next((each for each in start["players"] if each["name"] == name), None)
    if found is None:
        raise StateError(f"person={name}: there is no such player in this start")
    says = [step["say"] for step in found["script"] if "say" in step]
    return [*says, *(f"{pattern}? {text}" for pattern, text in found["answers"])]


def _shown(details: dict[str, Any]) -> Details:
    """Details of a slot, without those for the renderer, with the reason why its agent is gone."""
    for key in (SCENE, PERSON_SCENE):
        details.pop(key, None)
    for event in details.get("event") or ():
        if event.get("type") == "kicked":
            details[NOTICE] = f"{event['agent']} was removed: {event['reason']}"
    return details
