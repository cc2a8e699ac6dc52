"""What a run of a task shows: inventories, events, positions, watched blocks and dropped items.

The trace is read from the details of the frames (docs/minenpc.md), which datasets record, so that a
recorded run is judged as a running one. All positions are those that agents see.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Cell: TypeAlias = tuple[int, int, int]
Point: TypeAlias = Sequence[float]

AIR = frozenset({"air", "cave_air", "void_air"})
QUESTION_MARKS = "?\N{FULLWIDTH QUESTION MARK}\N{ARABIC QUESTION MARK}"
ORIGIN: Cell = (0, 64, 0)
"""Where the first agent of a flat world stands, which places of a scene are relative to."""


def plain(block: str) -> str:
    """Returns the name of a block state such as ``minecraft:wheat[age=7]``."""
    return block.partition("[")[0].removeprefix("minecraft:")


def cell(point: Point) -> Cell:
    """Returns the block that a point is in."""
    x, y, z = (math.floor(each) for each in point)
    return x, y, z


def apart(a: Point, b: Point) -> float:
    """Returns the distance of two points, in blocks."""
    return math.dist([float(each) for each in a], [float(each) for each in b])


@dataclass
class Trace:
    """A run so far.

    Attributes:
        agent: name of the agent.
        before: number of items by name in the inventory at the start.
        after: likewise, now.
        events: of the details' ``trace``, in their order.
        path: blocks the agent stood in, without repetitions in a row.
        first: block states of the watched regions at the start, by position.
        blocks: likewise, now.
        drops: item entities near the watched regions.
        players: position of the players by their names.
    """

    agent: str = "a0"
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    events: list[Mapping[str, Any]] = field(default_factory=list)
    path: list[Cell] = field(default_factory=list)
    first: dict[Cell, str] = field(default_factory=dict)
    blocks: dict[Cell, str] = field(default_factory=dict)
    drops: Sequence[Mapping[str, Any]] = ()
    players: Mapping[str, Point] = field(default_factory=dict)
    _shapes: dict[Any, Any] = field(default_factory=dict)
    _origin: Cell = ORIGIN

    @classmethod
    def begin(cls, details: Mapping[str, Any]) -> Trace:
        """Returns the trace of a run whose first frame has these details."""
        trace = cls(agent=str(details.get("name", "a0")), before=inventory(details))
        trace.add(details)
        trace.first = dict(trace.blocks)
        return trace

    def add(self, details: Mapping[str, Any]) -> None:
        """Adds the details of the next frame."""
        self.after = inventory(details)
        self.events += details.get("trace") or ()
        place = (details.get("location_stats") or {}).get("pos")
        if place and (not self.path or cell(place) != self.path[-1]):
            self.path.append(cell(place))
        shown = details.get("privileged")
        if not shown:
            return
        origin = shown.get("origin")
        self._origin = cell(origin) if origin else self._origin
        if any((shown.get("regions") or {}).values()):
            self._shapes.clear()
        for blocks in (shown.get("regions") or {}).values():
            for where, state in blocks.items():
                self.blocks[self._absolute(where)] = str(state)
        self.drops = shown.get("drops") or ()
        self.players = {
            name: each["position"] for name, each in (shown.get("players") or {}).items()
        }

    def _absolute(self, where: str) -> Cell:
        x, y, z = (int(each) + of for each, of in zip(where.split(), self._origin, strict=True))
        return x, y, z

    def shape(self, key: Any, work: Callable[[], bool | float]) -> bool | float:
        """Returns a function's value for the blocks there are, computed once until they change."""
        if key not in self._shapes:
            self._shapes[key] = work()
        found: bool | float = self._shapes[key]
        return found

    def own(self, *kinds: str) -> Iterator[Mapping[str, Any]]:
        """Yields the agent's own events of some types."""
        for event in self.events:
            if event.get("type") in kinds and event.get("who", self.agent) == self.agent:
                yield event

    @property
    def said(self) -> list[str]:
        """The agent's own lines of the chat."""
        return [str(event.get("text", "")) for event in self.own("chat")]

    @property
    def questions(self) -> int:
        """Number of the agent's lines that ask something, which players answer."""
        return sum(any(mark in line for mark in QUESTION_MARKS) for line in self.said)

    @property
    def violations(self) -> list[Mapping[str, Any]]:
        """Refused calls against the policy of bounded knowledge."""
        return list(self.own("violation"))

    def new(self, cells: Iterable[Cell] | None = None) -> dict[Cell, str]:
        """Returns names of the blocks that are there now and were not at the start, air excluded.

        Args:
            cells: positions to look at; None for all watched ones.
        """
        found = {}
        for each in self.blocks if cells is None else cells:
            name = plain(self.blocks.get(each, "air"))
            if name not in AIR and name != plain(self.first.get(each, "air")):
                found[each] = name
        return found


def inventory(details: Mapping[str, Any]) -> Counter[str]:
    """Returns the number of items by name in the main inventory of a frame's details."""
    found: Counter[str] = Counter()
    for stack in (details.get("inventory_all") or {}).values():
        if stack and stack.get("name"):
            found[str(stack["name"])] += int(stack.get("count") or 0)
    return found
