"""Games of one instance: each plays a task, observed, judged and cut at its limit."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bridges.stardojo import decoding, skills
from bridges.stardojo.facts import CannotBeJudgedError, money
from bridges.stardojo.judging import Judging, Standing, begin, judge
from bridges.stardojo.skills import Playable, Skill
from bridges.stardojo.task_row import KILLS, TaskRow
from bridges.stardojo.task_table import NO_TASK
from rollout.api import NOTICE, Columns, ColumnSpec, Frame, Start, State, allocate, check_slots
from rollout.errors import GameTimeout, OutOfTurnError

SIGNALS = {
    "reward": ColumnSpec(doc="by how much the step raised the share of the task"),
    "task/share": ColumnSpec(doc="share of the task that is done; NaN if it cannot be judged"),
    "task/quantity": ColumnSpec(unit="pieces", doc="count of its evaluator"),
    "task/completed": ColumnSpec("uint8", doc="whether it is done"),
    "money": ColumnSpec("float64", unit="gold"),
    "day": ColumnSpec("int32", unit="days", doc="days begun since the game was loaded"),
    "unanswered": ColumnSpec("int32", doc="actions whose answer was lost (mode=mod)"),
}

MOST_SKILLS = 2
"""Actions of a step, as agents have in the paper (section 4.1)."""
_LOAD_S = 60.0


class StardewGame(Playable, Protocol):
    """A game that is played: a valley or the real one."""

    def observe(self, size: int = 3) -> dict[str, Any]:
        """Returns the observation as the mod names it."""
        ...

    def setup(self, name: str, args: tuple[Any, ...] = ()) -> Any:
        """Runs a command that prepares a task."""
        ...


Load = Callable[[int, TaskRow | None, Start, float], StardewGame]
"""Prepares the game of a slot: its number, the task, the start and the seconds it may take."""
Expert = Callable[[StardewGame, TaskRow], Iterator[Skill]]
"""Makes the expert of a task in a game: its actions, one after another."""
Draw = Callable[[StardewGame, Mapping[str, Any], int, int], NDArray[np.uint8]]
"""Draws the picture of a game: from it and its observation, width and height."""


PREFIX = "privileged_oracle/"
WAIT = Skill("wait")


def expert_space() -> dict[str, spaces.Space[Any]]:
    """Returns the columns of the expert's action."""
    return {PREFIX + key: leaf for key, leaf in skills.call_space(1).items()}


@dataclass(frozen=True)
class Playing:
    """The options of an episode.

    Attributes:
        judging: whose rules, ``strict`` or ``faithful``.
        actions: what actions do, likewise.
        limits: where tasks are cut, see ``TaskRow.steps``.
        size: half of the width of the window of tiles.
        picture: width and height; zeros for none.
        skills: most actions of a step. The steps of the paper have two, so that with one an episode
            has twice as many steps.
        masked: whether the flat layout's mask is observed.
    """

    judging: Judging = "strict"
    actions: skills.Mode = "strict"
    limits: str = "paper"
    size: int = 3
    picture: tuple[int, int] = (0, 0)
    skills: int = 1
    masked: bool = True

    def limit(self, row: TaskRow | None) -> int | None:
        """Returns the most steps of a task's episode."""
        steps = row.steps(self.limits) if row else None
        return None if steps is None else steps * (MOST_SKILLS // self.skills)


@dataclass(slots=True)
class Slot:
    """The episode of one slot."""

    game: StardewGame | None = None
    row: TaskRow | None = None
    standing: Standing | None = None
    seen: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    over: bool = True
    expert: Iterator[Skill] | None = None


class StardojoInstance:
    """``width`` games; see ``rollout.api.Instance``.

    Args:
        width: number of slots.
        rows: tasks by name.
        playing: how they are played.
        actions: turns a row of actions into those that are played.
        load: prepares a game.
        draw: draws one.
        close: ends all games.
        expert: makes the expert of a task, whose next action is an observation; None for none.
    """

    def __init__(
        self,
        width: int,
        rows: Mapping[str, TaskRow],
        playing: Playing,
        *,
        actions: Callable[[Columns, int], list[Skill]],
        load: Load,
        draw: Draw,
        close: Callable[[], None] = lambda: None,
        expert: Expert | None = None,
    ) -> None:
        self._rows, self._playing, self._read = rows, playing, actions
        self._load, self._draw, self._close = load, draw, close
        self._expert = expert
        self._slots = [Slot() for _ in range(width)]
        leaves = decoding.space(playing.size, *playing.picture, playing.masked)
        if expert is not None:
            leaves |= expert_space()
        columns = allocate(spaces.Dict(leaves), width)
        signals = {key: np.zeros(width, spec.dtype) for key, spec in SIGNALS.items()}
        never = np.zeros(width, np.bool_)
        self._details: list[dict[str, Any]] = [{} for _ in range(width)]
        self._frame = Frame(
            columns, signals, never, never.copy(), np.zeros(width, np.int64), self._details
        )

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots; see ``rollout.api.Instance``."""
        rows = check_slots("stardojo", len(self._slots), slots, len(starts))
        deadline = time.monotonic() + timeout_s
        for number, start in zip(rows, starts, strict=True):
            left = deadline - time.monotonic()
            if left <= 0:
                raise GameTimeout(f"stardojo: the slots {rows} were not reset in {timeout_s:g} s")
            slot, name = self._slots[number], str(start.state.values.get("task", NO_TASK))
            slot.row = self._rows.get(name)
            slot.game = self._load(number, slot.row, start, left)
            slot.steps, slot.over = 0, False
            slot.seen = self._observe(slot)
            self._begin(number, slot)
        return self._frame.take(rows)

    def _begin(self, number: int, slot: Slot) -> None:
        notice, slot.standing = "", None
        try:
            if slot.row is not None:
                slot.standing = begin(slot.row, slot.seen, self._playing.judging)
        except CannotBeJudgedError as error:
            notice = f"the task {slot.row.name if slot.row else ''} cannot be judged: {error}"
        frame = self._frame
        frame.game_truncated[number], frame.tick[number] = bool(notice), 0
        slot.over = bool(notice)
        slot.expert = None
        if self._expert is not None and slot.row is not None and slot.game is not None:
            slot.expert = self._expert(slot.game, slot.row)
        self._show(number, slot, 0.0, notice)

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action in every slot that is not over; see ``rollout.api.Instance``."""
        if all(slot.game is None for slot in self._slots):
            raise OutOfTurnError("stardojo: no slot was reset")
        for number, slot in enumerate(self._slots):
            if slot.game is None or slot.over:
                self._frame.signals["reward"][number] = 0.0
                continue
            for skill in self._read(actions, number):
                skills.perform(slot.game, skill, slot.seen, self._playing.actions)
            slot.seen = self._observe(slot)
            slot.steps += 1
            self._judge(number, slot)
        return self._frame.take(range(len(self._slots)))

    def _judge(self, number: int, slot: Slot) -> None:
        before = slot.standing.share if slot.standing else 0.0
        notice = ""
        if slot.row is not None and slot.standing is not None:
            try:
                slot.standing = judge(slot.row, slot.standing, slot.seen, self._playing.judging)
            except CannotBeJudgedError as error:
                slot.standing = None
                notice = f"the task {slot.row.name} cannot be judged: {error}"
        gained = slot.standing.share - before if slot.standing else 0.0
        limit = self._playing.limit(slot.row)
        cut = bool(notice) or (limit is not None and slot.steps >= limit)
        self._frame.game_truncated[number] = cut
        self._frame.tick[number] = slot.steps
        slot.over = cut
        self._show(number, slot, gained, notice)

    def _observe(self, slot: Slot) -> dict[str, Any]:
        assert slot.game is not None
        seen = slot.game.observe(self._playing.size)
        if slot.row is not None and KILLS in slot.row.features:
            about = slot.row.object
            seen["MonsterKills"] = {about: slot.game.setup("get_monster_kills", (about,))}
        return seen

    def _show(self, number: int, slot: Slot, reward: float, notice: str) -> None:
        columns, signals, standing = self._frame.observations, self._frame.signals, slot.standing
        share = standing.share if standing else (np.nan if slot.row else 0.0)
        decoding.write(columns, number, slot.seen, self._playing.size, np.nan_to_num(share))
        if "rgb" in columns:
            assert slot.game is not None
            columns["rgb"][number] = self._draw(slot.game, slot.seen, *self._playing.picture)
        signals["reward"][number] = reward
        signals["task/share"][number] = share
        signals["task/quantity"][number] = standing.current if standing else 0.0
        signals["task/completed"][number] = bool(standing and standing.completed)
        signals["money"][number] = money(slot.seen)
        signals["day"][number] = (slot.seen.get("CallBackData") or {}).get("OnDayStarted") or 0
        signals["unanswered"][number] = getattr(slot.game, "unanswered", 0)
        if self._expert is not None:
            skill = next(slot.expert, WAIT) if slot.expert and not slot.over else WAIT
            for key, value in skills.to_row(skill).items():
                columns[PREFIX + key][number] = value
        details = decoding.details(slot.seen, slot.row.goal if slot.row else "")
        self._details[number] = {**details, NOTICE: notice} if notice else details

    def close(self) -> None:
        """Ends the games; see ``rollout.api.Instance``."""
        self._close()


class EmbeddedInstance(StardojoInstance):
    """Valleys in this process, which can be saved and restored; see ``rollout.api.Snapshots``."""

    def snapshot(self, slot: int) -> bytes:
        """Returns the complete state of a slot."""
        each = self._slots[slot]
        if each.game is None:
            raise OutOfTurnError("stardojo: the slot was not reset")
        standing = each.standing
        head = {
            "row": each.row.name if each.row else NO_TASK,
            "steps": each.steps,
            "over": each.over,
            "cut": bool(self._frame.game_truncated[slot]),
            "seen": each.seen,
            "details": self._details[slot],
            "signals": {key: value[slot].item() for key, value in self._frame.signals.items()},
            "standing": standing and [standing.current, standing.change, standing.completed],
            "views": [standing.base, standing.last] if standing else [],
            "counted": repr(sorted(standing.counted, key=repr)) if standing else "[]",
        }
        data = json.dumps(head).encode()
        return len(data).to_bytes(8, "big") + data + each.game.snapshot()  # type: ignore[attr-defined, no-any-return]

    def restore(self, slot: int, snapshot: bytes) -> Frame:
        """Restores a slot and returns its frame, one row."""
        size = int.from_bytes(snapshot[:8], "big")
        head, each = json.loads(snapshot[8 : 8 + size]), self._slots[slot]
        if each.game is None:
            each.game = self._load(slot, None, Start(State(0, {}), 0), _LOAD_S)
        each.game.restore(snapshot[8 + size :])  # type: ignore[attr-defined]
        each.row = self._rows.get(head["row"])
        each.steps, each.over, each.seen = head["steps"], head["over"], head["seen"]
        each.standing = None
        if head["standing"] and each.row:
            current, change, completed = head["standing"]
            base, last = head["views"]
            each.standing = Standing(
                each.row.quantity,
                *(current, change, completed, base, last),
                frozenset(ast.literal_eval(head["counted"])),
            )
        self._frame.game_truncated[slot], self._frame.tick[slot] = head["cut"], head["steps"]
        self._show(slot, each, head["signals"]["reward"], "")
        self._details[slot] = head["details"]
        return self._frame.take([slot])
