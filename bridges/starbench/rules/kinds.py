"""What the files of ``data/`` describe: statuses, moves and units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rollout.errors import UnknownNameError

Op: TypeAlias = Callable[[Any, Any, Any], None]
"""An effect: what it does to a battle, by an actor, on a target or None."""

Test: TypeAlias = Callable[[Any, Any, Any], bool]
"""A condition of an effect or a trigger, with the same arguments."""


@dataclass(frozen=True, slots=True)
class StatusKind:
    """A status: what it adds to its bearer and when it ends; see ``data/statuses.yaml``."""

    key: str
    number: int
    title: str
    harmful: bool = False
    turns: int = 1
    tick: int = 1
    stacks: int = 1
    mods: tuple[tuple[int, float], ...] = ()
    worked_out: tuple[tuple[int, str, float, float], ...] = ()
    extra: tuple[int, tuple[tuple[int, float], ...]] | None = None
    control: str = ""
    delay: float = 0.0
    dot: Mapping[str, Any] | None = None
    per_hit: bool = False
    redirect: float = 0.0
    wards: bool = False
    grants: str = ""
    implants: int = -1
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """A move: on whom, how much energy it gives, and its effects in their order."""

    key: str
    target: Any
    energy: float
    ops: tuple[Op, ...]
    charge: str = ""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Effects that follow an event on a unit."""

    ops: tuple[Op, ...]
    test: Test | None


@dataclass(frozen=True, slots=True)
class UnitKind:
    """A character or an enemy, as its file describes it."""

    key: str
    name: str
    ally: bool
    element: int
    stats: Mapping[str, float]
    moves: Mapping[str, Move]
    triggers: Mapping[str, tuple[Trigger, ...]]
    kind: str = "ally"
    aggro: Mapping[str, float] = field(default_factory=dict)
    max_energy: float = 0.0
    skill_points: int = 0
    aura: str = ""
    auto: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    bars: int = 1
    hp: tuple[float, ...] = ()
    absolute_hp: float = 0.0
    spd: tuple[float, ...] = ()
    toughness: tuple[float, ...] = ()
    weak: tuple[frozenset[int], ...] = ()
    res: Mapping[int, float] = field(default_factory=dict)
    immune: frozenset[str] = frozenset()
    control_res: float = 0.0
    status_res: float = 0.0
    actions: int = 1
    phases: tuple[tuple[str, ...], ...] = ()
    enter: tuple[tuple[str, ...], ...] = ()
    locked_by: Mapping[str, Any] | None = None
    shares: str = ""
    revive: float = 0.0


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that the files describe."""

    rules: Mapping[str, Any]
    statuses: Mapping[str, StatusKind]
    numbered: tuple[StatusKind, ...]
    team: tuple[str, ...]
    level: int
    units: Mapping[str, UnitKind]
    battles: Mapping[str, Mapping[str, Any]]

    def battle(self, name: str) -> Mapping[str, Any]:
        """Returns a battle by its name.

        Raises:
            UnknownNameError: there is none of that name.
        """
        if name not in self.battles:
            raise UnknownNameError("battle of StarBench", name, self.battles)
        return self.battles[name]
