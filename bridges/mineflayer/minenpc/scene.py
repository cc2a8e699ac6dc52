"""MineNPC-Task's starts: what the factors of a state mean for the world, the player and the goal.

The table ``data/minenpc.yaml`` has the fixture and the 44 tasks. A state selects a task and its
variant: the count and the material that it names, the quarter turns of the layout, what else is in
the chests, where the agent stands, and whether its memory has the place that the task is about.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from bridges.mineflayer.atomic_rows import facts
from bridges.mineflayer.minenpc.predicates import Condition, Places, number, parse_all
from bridges.mineflayer.minenpc.trace import ORIGIN, Cell
from bridges.mineflayer.scene import Scene, make_scene
from rollout.api import Factor
from rollout.errors import UnknownNameError
from rollout.yaml12 import load_yaml

PREFIX = "minenpc/"
ALL = "minenpc"
PLAYER = "Player1"
TURNS = (0, 90, 180, 270)
DECOYS = (0, 3, 6)
MEMORIES = ("known", "hidden", "stale")
TICKS = 6000
"""Game time of an episode."""
ASKED = "asked() <= 1"
"""The condition of every task beside its own."""

_TABLE = Path(__file__).parents[1] / "data" / "minenpc.yaml"
_AT = (3, 2)
_SLOTS = 27
_FACING = ("south", "west", "north", "east")  # each a quarter turn after the one before
_SAYS = 20  # ticks until the player makes its request


@lru_cache
def table() -> Mapping[str, Any]:
    """Returns the table of the tasks."""
    found: Mapping[str, Any] = load_yaml(_TABLE, ours=True)
    return found


def tasks() -> Mapping[str, Mapping[str, Any]]:
    """Returns the rows of the 44 tasks by their names."""
    found: Mapping[str, Mapping[str, Any]] = table()["tasks"]
    return found


@lru_cache
def factors() -> tuple[Factor, ...]:
    """Returns the factors that states of these tasks have beside those of every state."""
    counts = max(len(task.get("counts", ())) for task in tasks().values())
    materials = max(len(task.get("materials", ())) for task in tasks().values())
    return (
        Factor("npc", tuple(tasks()), doc="the task of MineNPC-Task"),
        Factor("count", range(counts), doc="which of the task's counts; 0 is the paper's"),
        Factor("material", range(materials), doc="which of its materials; 0 is the paper's"),
        Factor("turn", TURNS, unit="degrees", doc="how far the layout is turned"),
        Factor("decoys", DECOYS, doc="other stacks in each chest of the task"),
        Factor("stand", range(len(table()["stands"])), doc="where the agent stands; 0: the paper"),
        Factor("memory", MEMORIES, doc="whether the place is remembered, or its chest was moved"),
    )


def values_of(name: str) -> dict[str, Any]:
    """Returns the factors of a task's state space; those of another kind of states are usual."""
    if name not in tasks():
        raise UnknownNameError("task of MineNPC-Task", name, tasks())
    task = tasks()[name]
    return {
        "npc": name,
        "count": list(range(len(task.get("counts", (0,))))),
        "material": list(range(len(task.get("materials", (0,))))),
        "turn": list(TURNS),
        "decoys": list(DECOYS),
        "stand": list(range(len(table()["stands"]))),
        "memory": list(_memories(task)),
    }


PAPER = {"count": 0, "material": 0, "turn": 0, "decoys": 0, "stand": 0, "memory": "known"}
"""The factors of the paper's variant of a task."""


def _memories(task: Mapping[str, Any]) -> tuple[str, ...]:
    landmark = task.get("landmark")
    if landmark is None:
        return MEMORIES[:1]
    return MEMORIES if landmark in task.get("chests", {}) else MEMORIES[:2]


@dataclass(frozen=True)
class Case:
    """A start of a task.

    Attributes:
        name: of the task.
        request: what the player asks for.
        conditions: of the goal, all of which have to hold.
        places: what conditions name.
        scene: what the world begins with.
        memory: entries of the agent's memory.
        user: what it knows of the player.
        unbound: whether the request leaves something open that only the player can say.
        prefers: whether the profile of the player says what to take.
    """

    name: str
    request: str
    conditions: tuple[Condition, ...]
    places: Places
    scene: Scene
    memory: tuple[Mapping[str, Any], ...]
    user: Mapping[str, Any]
    unbound: bool = False
    prefers: bool = False

    def told(self) -> dict[str, Any]:
        """Returns what the details of the first frame tell the agent."""
        memory = [dict(entry) for entry in self.memory]
        return {"request": self.request, "memory": memory, "user": self.user}


def case_of(state: Mapping[str, Any], agent: str = "a0") -> Case:
    """Returns the start of a state.

    Args:
        state: values of the factors.
        agent: name of the agent.

    Raises:
        UnknownNameError: a condition names an item, block or place that there is not.
    """
    chosen = tuple(state[factor.name] for factor in factors())
    return _case(chosen, agent)


@lru_cache(maxsize=256)
def _case(chosen: tuple[Any, ...], agent: str) -> Case:
    state = {factor.name: value for factor, value in zip(factors(), chosen, strict=True)}
    return _Making(state, agent).case()


class _Making:
    """Makes the case of a state."""

    def __init__(self, state: Mapping[str, Any], agent: str) -> None:
        self._name, self._task = str(state["npc"]), tasks()[str(state["npc"])]
        self._state, self._agent = state, agent
        self._turns = int(state["turn"]) // 90
        counts, materials = self._task.get("counts", [0]), self._task.get("materials", [""])
        allowed = _memories(self._task)
        self._memory = state["memory"] if state["memory"] in allowed else "known"
        self._chance = random.Random(f"{self._name} {state['decoys']} {state['count']}")  # noqa: S311
        points = {name: self._turned(at) for name, at in table()["places"].items()}
        if self._memory == "stale":
            self._moved(points)
        self._fields = {
            "n": counts[int(state["count"]) % len(counts)],
            "m": materials[int(state["material"]) % len(materials)],
            **{name: " ".join(map(str, at)) for name, at in points.items()},
        }
        if "player" in self._task:
            points["P"] = self._turned(self._task["player"])
        cells = {name: self._box(corners) for name, corners in table()["boxes"].items()}
        self._crops = self._planted(cells)
        self.places = Places(points, cells, PLAYER)

    def _turned(self, at: Sequence[int]) -> Cell:
        x, y, z = at
        for _ in range(self._turns):
            x, z = -z, x
        return x, y, z

    def _moved(self, points: dict[str, Cell]) -> None:
        landmark = self._task["landmark"]
        by = self._turned(table()["moved"])
        x, y, z = points[landmark]
        points[landmark] = (x + by[0], y + by[1], z + by[2])

    def _corner(self, corner: Any) -> Cell:
        return self._turned(table()["places"][corner] if isinstance(corner, str) else corner)

    def _box(self, corners: Sequence[Any]) -> tuple[Cell, ...]:
        if len(corners) != 2:
            return tuple(self._corner(each) for each in corners)
        low, high = self._bounds(*corners)
        xs, ys, zs = (range(a, b + 1) for a, b in zip(low, high, strict=True))
        return tuple(product(xs, ys, zs))

    def _bounds(self, one: Any, other: Any) -> tuple[Cell, Cell]:
        a, b = self._corner(one), self._corner(other)
        low, high = zip(*((min(p, q), max(p, q)) for p, q in zip(a, b, strict=True)), strict=True)
        return (low[0], low[1], low[2]), (high[0], high[1], high[2])

    def _text(self, value: Any) -> str:
        return str(value).format(**self._fields)

    def _planted(self, cells: dict[str, tuple[Cell, ...]]) -> list[tuple[str, Cell]]:
        """Returns crops by their positions; adds the list ``bare`` of a plot to plant."""
        task, crops = self._task, []
        water = self._turned((20, 64, -20))
        field = [each for each in cells["farm"] if each != water]
        self._chance.shuffle(field)
        for kind, age in (("mature", 7), ("immature", 3)):
            crops += [(f"wheat[age={age}]", field.pop()) for _ in range(task.get(kind, 0))]
        if task.get("plot"):
            plot = list(cells["plot"])
            self._chance.shuffle(plot)
            bare = int(self._fields["n"])
            cells["bare"] = tuple(plot[:bare])
            crops += [("wheat[age=3]", each) for each in plot[bare:]]
        if "scattered" in task:
            self._scattered = [field.pop() for _ in range(int(self._fields["n"]))]
        return crops

    def case(self) -> Case:
        task = self._task
        request = self._text(task["request"])
        if self._memory == "hidden":  # the one question is for the place
            request = " ".join([request, *map(self._text, task.get("answers", {}).values())])
        goal = [*(self._text(each) for each in task["goal"]), ASKED]
        conditions = parse_all(goal, self.places)
        commands, players = list(self._commands()), self._players(request)
        scene = make_scene({}, commands, players, [self._agent], self.regions())
        user = {**table()["user"]}
        user["preferences"] = {**user["preferences"], **task.get("user", {})}
        unbound = bool(task.get("answers")) or self._memory == "hidden"
        memory = tuple(self._memories())
        about = (self._name, request, conditions, self.places, scene, memory, user)
        return Case(*about, unbound, prefers="user" in task)

    def regions(self) -> dict[str, Any]:
        """Returns the watched regions, relative to the first agent's start."""
        watched = list(self._task.get("watch", ()))
        if any(word in each for each in self._task["goal"] for word in ("gave(", "dropped(")):
            watched.append("P")
        found: dict[str, Any] = {}
        for name in watched:
            corners = table()["boxes"][name]
            if name == "P":
                x, y, z = self.places.points["P"]
                low, high = (x - 4, y - 1, z - 4), (x + 4, y + 1, z + 4)
            else:
                low, high = self._bounds(*corners)
            box = [[a - b for a, b in zip(each, ORIGIN, strict=True)] for each in (low, high)]
            found[name] = {"box": box, "watch": True}
        return found

    def _commands(self) -> Iterator[str]:
        task = self._task
        yield "/gamerule randomTickSpeed 0"
        for block, one, other in (*table()["fixture"], *task.get("blocks", ())):
            yield self._fill(block, one, other)
        if task.get("plot"):
            (x, _, z), (u, _, w) = table()["boxes"]["plot"]
            yield self._fill("farmland[moisture=7]", (x, 63, z), (u, 63, w))
        for x, z in table()["trees"]:
            yield self._fill("oak_leaves[persistent=true]", (x - 1, 67, z - 1), (x + 1, 69, z + 1))
            yield self._fill("oak_log", (x, 64, z), (x, 68, z))
        for block, at in self._crops:
            yield f"/setblock {_relative(at)} {block}"
        yield from self._chests()
        for at in getattr(self, "_scattered", ()):
            item = self._task["scattered"]
            yield f'/summon item {_relative(at)} {{Item:{{id:"minecraft:{item}",Count:1b}}}}'
        for item, count in task.get("give", {}).items():
            many = number(self._text(count))
            if many:
                yield f"/give @s {self._text(item)} {many}"
        dx, dz = table()["stands"][int(self._state["stand"])]
        x, z = task.get("at", _AT)
        at = self._turned((x + dx, 64, z + dz))
        yield f"/tp @s {_relative(at)} {90 + 90 * self._turns} 0"

    def _fill(self, block: str, one: Any, other: Any) -> str:
        low, high = self._bounds(one, other)
        if low == high:
            return f"/setblock {_relative(low)} {block}"
        return f"/fill {_relative(low)} {_relative(high)} {block}"

    def _chests(self) -> Iterator[str]:
        task = self._task
        own = {
            name: {self._text(item): count for item, count in items.items()}
            for name, items in task.get("chests", {}).items()
        }
        for name in dict.fromkeys((*table()["chests"], *own)):
            if (
                self._memory == "stale"
                and name != task["landmark"]
                and (self.places.points[name] == self.places.points[task["landmark"]])
            ):
                continue
            stacks = list(own.get(name, {}).items())
            if own.get(name):
                stacks += self._others(own[name], int(self._state["decoys"]) + task.get("mixed", 0))
            yield from self._chest(name, stacks, double=task.get("double") == name)

    def _others(self, wanted: Mapping[str, int], how_many: int) -> list[tuple[str, int]]:
        known = [each for each in table()["decoys"] if each not in wanted]
        return [(self._chance.choice(known), self._chance.randint(1, 16)) for _ in range(how_many)]

    def _chest(self, name: str, stacks: list[tuple[str, int]], *, double: bool) -> Iterator[str]:
        x, _, z = table()["places"][name]
        facing = (
            "west"
            if abs(x) >= abs(z) and x > 0
            else "east"
            if abs(x) >= abs(z)
            else ("north" if z > 0 else "south")
        )
        facing = _FACING[(_FACING.index(facing) + self._turns) % 4]
        at = self.places.points[name]
        single = facts()["stacks"]
        stacks = [
            each
            for item, count in stacks
            for each in ([(item, 1)] * count if single.get(item, 64) == 1 else [(item, count)])
        ]
        slots = self._chance.sample(range(_SLOTS), min(len(stacks), _SLOTS))
        parts = []
        for slot, (item, count) in zip(slots, stacks, strict=False):
            parts.append(f'{{Slot:{slot}b,id:"minecraft:{item}",Count:{count}b}}')
        if double:
            beside = self._beside(at, facing)
            yield f"/setblock {_relative(beside)} chest[facing={facing}]"
        yield f"/setblock {_relative(at)} chest[facing={facing}]{{Items:[{','.join(parts)}]}}"

    def _beside(self, at: Cell, facing: str) -> Cell:
        x, y, z = at
        return (x, y, z + 1) if facing in ("east", "west") else (x + 1, y, z)

    def _players(self, request: str) -> dict[str, Any]:
        answers = {
            pattern: self._text(text) for pattern, text in self._task.get("answers", {}).items()
        }
        landmark = self._task.get("landmark")
        if self._memory == "hidden":
            answer = f"{landmark} is at {self._fields[landmark]}."
            answers.setdefault("where|place|coordinates", answer)
        # Only questions are answered: a plan that is shown has the same words.
        answers = {f"({key}).*[?]": text for key, text in answers.items()}
        script = [{"wait": _SAYS}, {"say": request}]
        return {
            PLAYER: {
                "at": " ".join(map(str, _offset(self.places.points["P"]))),
                "script": script,
                "answers": answers,
            }
        }

    def _memories(self) -> Iterator[Mapping[str, Any]]:
        unknown = {*table()["unknown"]}
        if self._memory == "hidden":
            unknown.add(self._task["landmark"])
        for name, at in table()["places"].items():
            if name not in unknown:
                yield self._entry("landmark", name, list(self._turned(at)), "told")
        for entry in self._task.get("memory", ()):
            value = self._text(entry["value"])
            yield self._entry(entry["kind"], entry["key"], value, entry["provenance"])

    def _entry(self, kind: str, key: str, value: Any, provenance: str) -> Mapping[str, Any]:
        return {
            "id": f"{kind}:{key}",
            "kind": kind,
            "key": key,
            "value": value,
            "provenance": provenance,
            "source": {"task_id": "before"},
            "scope": {"player": PLAYER},
            "created_tick": 0,
            "last_used_tick": 0,
            "uses": 0,
            "stale": False,
            "confidence": 1.0,
        }


def _offset(at: Cell) -> Cell:
    return at[0] - ORIGIN[0], at[1] - ORIGIN[1], at[2] - ORIGIN[2]


def _relative(at: Sequence[int]) -> str:
    return " ".join(f"~{each or ''}" for each in _offset((at[0], at[1], at[2])))
