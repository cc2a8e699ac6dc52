"""Evaluators of goals in the game's own words: what an agent has done, and where it has come.

MCU judges its tasks by a model that looks at the recording. Many of them also have a goal that can
be counted, by the statistics that the game itself keeps (Minecraft Wiki, "Statistics").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.evaluators import WorldJudge, detail, items_of
from rollout.api import Details, Evaluator, Frame, Start, option
from rollout.errors import ConfigError, UnknownNameError

STATISTICS = (
    *("mine_block", "craft_item", "use_item", "pickup", "break_item", "drop", "kill_entity"),
    *("damage_dealt", "custom", "tame", "breed", "rename", "repair", "enchant", "trade"),
)
"""Groups of statistics that can be goals: the game's, and from ``tame`` on ours."""

PLACES = ("entity", "block", "biome", "item", "worn")
"""What can be reached: an entity in sight, a block at the agent, a biome, an item had or worn."""

_AGENTS = "number of agents of a world, which are judged together"


@dataclass(frozen=True)
class MinecraftCount:
    """Success once statistics of the game have grown enough since the start.

    The counts of a world's agents are added. Needs an embedded world.
    """

    statistic: str = option("mine_block", "group of the game's statistics", choices=STATISTICS)
    names: tuple[str, ...] = option((), "names in the group that count; empty for all of them")
    count: int = option(1, "how much has to be added to them")
    agents: int = option(1, _AGENTS)
    reward: float = option(1.0, "reward for the whole task, given in parts")

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise UnknownNameError("group of statistics", self.statistic, STATISTICS)
        _check(self.agents, self.count)

    @property
    def requires(self) -> frozenset[str]:
        """No signals: statistics are in the details."""
        return frozenset()

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Count(self, width)


class _Count(WorldJudge):
    def __init__(self, options: MinecraftCount, width: int) -> None:
        super().__init__(width, options.agents, options.reward)
        self._options = options
        self._first: NDArray[np.float64] = np.zeros(width)
        self._now: NDArray[np.float64] = np.zeros(width)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        for number, row in enumerate(rows):
            self._first[row] = self._now[row] = self._counted(detail(frame, number))

    def watch(self, rows: list[int], frame: Frame) -> None:
        for row in rows:
            self._now[row] = self._counted(detail(frame, row))

    def _counted(self, details: Details) -> float:
        statistics: Mapping[str, Any] = details.get("statistics") or {}
        counts: Mapping[str, float] = statistics.get(self._options.statistic) or {}
        names = self._options.names or counts
        return float(sum(counts.get(name, 0) for name in names))

    def share(self) -> NDArray[np.float64]:
        return self.together(self._now - self._first, np.sum) / self._options.count


@dataclass(frozen=True)
class MinecraftReach:
    """Success once an agent has come to one of some things.

    An entity counts within ``distance`` and in sight, a block if it touches the agent's feet or
    body, a biome if the agent stands in it, an item if it is in the main inventory, what is worn if
    it is armour in its place or in the off hand.
    """

    kind: str = option("entity", "what is to be reached", choices=PLACES)
    names: tuple[str, ...] = option((), "entities, blocks, biomes or items, any of which counts")
    distance: float = option(3.0, "how near an entity has to be", unit="blocks")
    agents: int = option(1, _AGENTS)
    reward: float = option(1.0, "reward for the success")

    def __post_init__(self) -> None:
        if self.kind not in PLACES:
            raise UnknownNameError("kind of what is reached", self.kind, PLACES)
        if not self.names:
            raise ConfigError("names: expected what is to be reached, got an empty list")
        _check(self.agents, self.distance)

    @property
    def requires(self) -> frozenset[str]:
        """No signals: the surroundings are in the details."""
        return frozenset()

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Reach(self, width)


class _Reach(WorldJudge):
    def __init__(self, options: MinecraftReach, width: int) -> None:
        super().__init__(width, options.agents, options.reward)
        self._options, self._names = options, frozenset(options.names)
        self._there: NDArray[np.float64] = np.zeros(width)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        # What is there at the start was not reached: it is looked for from the first step on.
        self._there[rows] = 0.0

    def watch(self, rows: list[int], frame: Frame) -> None:
        for row in rows:
            self._there[row] = float(self._reached(detail(frame, row)))

    def _reached(self, details: Details) -> bool:
        kind = self._options.kind
        if kind == "entity":
            seen = details.get("entities", ())
            near = (each["kind"] for each in seen if each["distance"] <= self._options.distance)
            return not self._names.isdisjoint(near)
        if kind == "item":
            return not self._names.isdisjoint(items_of(details))
        if kind == "worn":
            return not self._names.isdisjoint(details.get("equipment", {}).get("name", ())[1:])
        if kind == "biome":
            return details.get("location_stats", {}).get("biome") in self._names
        around = details.get("voxels", {}).get("block_name", ())
        return any(name in self._names for plane in around for line in plane for name in line)

    def share(self) -> NDArray[np.float64]:
        return self.together(self._there, np.max)


def _check(agents: int, amount: float) -> None:
    if agents < 1 or not amount > 0:
        raise ConfigError(f"expected agents >= 1 and a goal above 0, got {agents=} and {amount}")
