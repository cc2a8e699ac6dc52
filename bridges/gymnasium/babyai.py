"""The missions of BabyAI that BALROG plays, with the view in words.

Importing this module registers ``BabyAI-MixedText-v0``, for the bridge ``gymnasium``. Rooms,
missions and words follow BALROG's level ``BabyAI-MixedTrainLocal-v0``, which MiniGrid lacks.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT, STATE_TO_IDX
from minigrid.core.roomgrid import RoomGrid
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import (
    AfterInstr,
    BeforeInstr,
    GoToInstr,
    ObjDesc,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
)
from minigrid.utils.baby_ai_bot import BabyAIBot, DisappearedBoxError
from numpy.typing import NDArray

from bridges.gymnasium.making import check_at_least

ID = "BabyAI-MixedText-v0"

KINDS = ("goto", "pickup", "open", "putnext", "pick_up_seq_go_to")
"""The kinds of missions, each with its own rooms."""

ACTIONS = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
"""What the actions are called; MiniGrid's seventh, which does nothing, is left out."""

NEVER_ASKED = ("yellow box", "red key", "red door", "green ball", "grey door")
"""What no mission names, so that it can be kept for other tests."""

_EXPERT = "privileged_oracle"
_DOOR_COLORS = ("blue", "green", "purple", "yellow")
_ROOM = 8
_NOTHING = ("unseen", "empty")
_STATES = {number: name for name, number in STATE_TO_IDX.items()}
_MOST_TEXT = 4096  # 48 cells, each below 60 characters


def describe(view: NDArray[np.uint8], carried: str = "") -> str:
    """Returns what an agent sees, in words; a line for each thing, empty if there is none.

    First what is carried, then the nearest wall ahead, left and right unless something stands
    before it, then all else from left to right, and from far to near.

    Args:
        view: MiniGrid's encoded view, ``(width, height, 3)``: kind, color and state of each cell.
            The agent stands in the middle of the last row and looks towards the first.
        carried: color and kind of what the agent carries.
    """
    kinds = [[IDX_TO_OBJECT[int(cell)] for cell in column] for column in view[:, :, 0]]
    middle, last = len(kinds) // 2, len(kinds[0]) - 1
    lines = [f"You carry a {carried}"] if carried else []
    for way, cells in {
        "forward": kinds[middle][last - 1 :: -1],
        "left": [column[last] for column in kinds[middle - 1 :: -1]],
        "right": [column[last] for column in kinds[middle + 1 :]],
    }.items():
        seen = [(away, kind) for away, kind in enumerate(cells, 1) if kind not in _NOTHING]
        if seen and seen[0][1] == "wall":
            lines.append(f"a wall {_steps(seen[0][0], way)}")
    for x, y in np.ndindex(view.shape[:2]):
        if kinds[x][y] in (*_NOTHING, "wall") or (x, y) == (middle, last):
            continue
        color, state = IDX_TO_COLOR[int(view[x, y, 1])], _STATES.get(int(view[x, y, 2]), "")
        # "a open": BALROG's words, which published results were got with.
        name = f"{state} {color} door" if kinds[x][y] == "door" else f"{color} {kinds[x][y]}"
        where = []
        if x != middle:
            where.append(_steps(abs(x - middle), "left" if x < middle else "right"))
        if y != last:
            where.append(_steps(last - y, "forward"))
        lines.append(f"a {name} {' and '.join(where)}")
    return "\n".join(lines)


def _steps(number: int, way: str) -> str:
    return f"{number} step{'s' if number > 1 else ''} {way}"


class MixedText(RoomGridLevel):  # type: ignore[misc] # MiniGrid ships no types
    """One room of 8 by 8 cells, or two with a locked door, and a mission of the given kind.

    Observations have the text of the mission and ``text``, the view in words. The picture is what
    the agent sees, 112 x 112. An episode has 64 steps, or 128 if the mission needs two ways.

    Args:
        distractors: number of objects beside those of the mission.
        kind: kind of the mission, unless ``reset`` is given another as ``options["kind"]``.
        oracle: whether to observe what BabyAI's bot would do, for the policy ``oracle``.
    """

    observation_space: spaces.Dict

    def __init__(
        self,
        distractors: int = 0,
        kind: str = KINDS[0],
        *,
        oracle: bool = False,
        render_mode: str | None = None,
    ) -> None:
        check_at_least("distractors", distractors, 0)
        self._distractors, self._oracle = distractors, oracle
        self._bot: Any = None
        self._kind = self._known(kind)
        super().__init__(
            room_size=_ROOM,
            num_rows=1,
            num_cols=1,
            render_mode=render_mode,
            agent_pov=True,
            tile_size=16,
        )
        self.action_space: spaces.Discrete[np.int64] = spaces.Discrete(len(ACTIONS))
        text = spaces.Text(_MOST_TEXT, min_length=0, charset=string.printable)
        seen = {**self.observation_space.spaces, "text": text}
        if oracle:
            seen[_EXPERT] = spaces.Dict({"action": spaces.Discrete(len(ACTIONS))})
        self.observation_space = spaces.Dict(seen)

    @staticmethod
    def _known(kind: object) -> str:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        return str(kind)

    def get_action_meanings(self) -> list[str]:
        """Returns what the actions are called."""
        return list(ACTIONS)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins an episode; rooms and mission follow from the seed and ``options["kind"]``."""
        self._kind = self._known((options or {}).get("kind", self._kind))
        self.num_cols = 2 if self._kind == "open" else 1
        self.width = (_ROOM - 1) * self.num_cols + 1
        seen, info = super().reset(seed=seed)
        if self._oracle:
            self._bot = BabyAIBot(self)
        return self._with_expert(seen, None), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """Steps the game; see ``gymnasium.Env``."""
        seen, *rest = super().step(action)
        return self._with_expert(seen, self.actions(int(action))), *rest

    def _with_expert(self, seen: dict[str, Any], taken: Any) -> dict[str, Any]:
        """Adds what the bot would do next; it knows what was done instead of its last advice."""
        if not self._oracle:
            return seen
        try:
            advice = int(self._bot.replan(taken))
        except (AssertionError, DisappearedBoxError, IndexError):  # a player led it astray
            advice = len(ACTIONS)
        # Where it has no advice, or the mission is complete, its answer is not read.
        return {**seen, _EXPERT: {"action": np.int64(advice % len(ACTIONS))}}

    def gen_obs(self) -> dict[str, Any]:
        """Returns MiniGrid's observation and its view in words."""
        seen: dict[str, Any] = super().gen_obs()
        held = self.carrying
        text = describe(seen["image"], f"{held.color} {held.type}" if held else "")
        return {**seen, "text": text}

    def _gen_grid(self, width: int, height: int) -> None:
        # As in RoomGridLevel, which prints every rejected draw.
        while True:
            RoomGrid._gen_grid(self, width, height)
            try:
                self.gen_mission()
                self.validate_instrs(self.instrs)
            except (RejectSampling, RecursionError):
                continue
            self.surface = self.mission = self.instrs.surface(self)
            return

    def gen_mission(self) -> None:
        """Draws rooms and a mission.

        Raises:
            RejectSampling: they do not fit together; to be drawn again.
        """
        self.instrs = self._open() if self._kind == "open" else self._in_one_room()
        self.check_objs_reachable()
        mission = self.instrs.surface(self)
        if any(words in mission for words in NEVER_ASKED):
            raise RejectSampling(mission)

    def _open(self) -> Any:
        locked = self._rand_int(0, 2)
        color = self._rand_elem(_DOOR_COLORS)
        self.add_door(locked, 0, 2 if locked else 0, color, locked=True)
        self.add_object(1 - locked, 0, "key", color)
        self.add_distractors(1 - locked, 0, self._distractors, all_unique=False)
        self.place_agent(1 - locked, 0)
        return OpenInstr(ObjDesc("door", self._rand_elem((None, color))))

    def _in_one_room(self) -> Any:
        self.place_agent()
        asked = 1 if self._kind in {"goto", "pickup"} else 2
        there = self.add_distractors(num_distractors=self._distractors + asked, all_unique=False)
        first = self._rand_elem(there)
        named = ObjDesc(first.type, first.color)
        if self._kind == "goto":
            return GoToInstr(named)
        if self._kind == "pickup":
            return PickupInstr(named)
        # One description twice only if two things are called so.
        alike = [one for one in there if (one.type, one.color) == (first.type, first.color)]
        second = self._rand_elem(there if len(alike) > 1 else [o for o in there if o is not first])
        other = ObjDesc(second.type, second.color)
        if self._kind == "putnext":
            return PutNextInstr(named, other)
        take, go = PickupInstr(named), GoToInstr(other)
        return BeforeInstr(take, go) if self._rand_bool() else AfterInstr(go, take)


gymnasium.register(ID, entry_point=f"{__name__}:{MixedText.__name__}")
