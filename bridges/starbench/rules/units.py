"""Units of a battle: their base values, statuses, and the stats that follow from both."""

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


ELEMENTS = ("physical", "fire", "ice", "lightning", "wind", "quantum", "imaginary")
STATS = (
    *("atk_base", "atk", "def", "spd", "cr", "cd", "dmg", "taken", "hp_flat", "mitigation"),
    *(f"res_{each}" for each in ELEMENTS),
    *(f"pen_{each}" for each in ELEMENTS),
    "res",
)
STAT = {name: at for at, name in enumerate(STATS)}
_MITIGATION, _RES, _PEN = STAT["mitigation"], STAT["res_physical"], STAT["pen_physical"]
_ALL_RES = STAT["res"]
_ZEROS = [0.0] * len(STATS)

# A status on a unit is a list, so that a snapshot is a copy of lists.
KIND, TURNS, STACKS, VALUES, STAMP = range(5)


@dataclass(frozen=True, slots=True)
class Base:
    """Values of a unit that statuses change; of enemies, after level and calibration."""

    hp: tuple[float, ...]
    atk: float
    defence: float
    spd: tuple[float, ...]
    level: int
    base_atk: float = 0.0
    base_spd: float = 0.0
    cr: float = 0.0
    cd: float = 0.0
    dmg: float = 0.0
    ehr: float = 0.0
    err: float = 0.0
    be: float = 0.0
    resist: float = 0.0
    weak: tuple[frozenset[int], ...] = ()


class Unit:
    """A unit on the field.

    Attributes:
        kind: what its file says.
        base: its base values.
        slot: of an ally, 0 to 3; of an enemy, its number in the order of arrival.
        rank: breaks ties of the turn order: the smaller acts first.
        av: action value until its turn.
        bar: of an enemy, the bar of HP it is at, from 0.
        step: of an enemy, the next move of its script.
        charge: the move it prepares, or "".
        orders: of an enemy, the moves of each bar as this battle's script has them.
    """

    __slots__ = (
        *("kind", "base", "ally", "slot", "rank", "hp", "max_hp", "av", "energy", "toughness"),
        *("broken", "statuses", "bar", "step", "charge", "counters", "timers", "alive", "orders"),
        *("dirty", "atk", "defence", "spd", "cr", "cd", "dmg", "taken", "kept", "res", "pen"),
        *("numbered", "weak"),
    )

    def __init__(
        self, kind: UnitKind, base: Base, slot: int, numbered: tuple[StatusKind, ...]
    ) -> None:
        self.kind, self.base, self.ally, self.slot = kind, base, kind.ally, slot
        self.numbered = numbered
        self.rank = slot
        self.max_hp = self.hp = base.hp[0]
        self.av = self.energy = 0.0
        self.toughness = kind.toughness[0] if kind.toughness else 0.0
        self.broken, self.alive = False, True
        self.statuses: list[list[Any]] = []
        self.bar = self.step = 0
        self.charge = ""
        self.counters: dict[str, float] = dict(kind.counters)
        self.timers: list[list[Any]] = []
        self.orders = kind.phases
        self.dmg = self.taken = self.kept = 0.0
        self.refresh()

    @property
    def max_toughness(self) -> float:
        """Toughness of its present bar, in displayed points."""
        return self.kind.toughness[min(self.bar, len(self.kind.toughness) - 1)]

    def find(self, number: int) -> list[Any] | None:
        """Returns the status of that kind, or None."""
        for status in self.statuses:
            if status[KIND] == number:
                return status
        return None

    def harmful(self) -> int:
        """Returns the number of harmful statuses."""
        return sum(self.numbered[status[KIND]].harmful for status in self.statuses)

    def controlled(self) -> bool:
        """Returns True if it is frozen, so that it can do nothing."""
        return any(self.numbered[s[KIND]].control == "freeze" for s in self.statuses)

    def refresh(self) -> None:
        """Works out the stats from base values and statuses."""
        base, m, kept = self.base, _ZEROS[:], 1.0
        bar = min(self.bar, len(base.weak) - 1)
        weak = base.weak[bar] if base.weak else frozenset()
        for status in self.statuses:
            kind, stacks = self.numbered[status[KIND]], status[STACKS]
            for at, value in kind.mods:
                if at == _MITIGATION:
                    kept *= 1.0 - value
                else:
                    m[at] += value * stacks
            for at, value in status[VALUES]:
                m[at] += value * stacks
            if kind.extra is not None and self.find(kind.extra[0]) is not None:
                for at, value in kind.extra[1]:
                    m[at] += value * stacks
            if kind.implants >= 0:
                weak = weak | {kind.implants}
        self.weak = weak
        self.atk = base.atk * (1.0 + m[1]) + base.base_atk * m[0]
        self.defence = base.defence * max(0.0, 1.0 + m[2])
        spd = base.spd[min(self.bar, len(base.spd) - 1)]
        self.spd = spd + (base.base_spd or spd) * m[3]
        self.cr, self.cd = base.cr + m[4], base.cd + m[5]
        self.dmg, self.taken, self.kept = base.dmg + m[6], m[7], kept
        shred = m[_ALL_RES]
        if self.ally:
            self.res: list[float] | tuple[float, ...] = _NO_RES
        else:
            own = self.kind.res
            self.res = [
                (0.0 if e in weak else own.get(e, 0.2)) + m[_RES + e] + shred for e in range(7)
            ]
        self.pen = m[_PEN : _PEN + 7]
        most = base.hp[min(self.bar, len(base.hp) - 1)] + m[8]
        if most != self.max_hp:
            self.hp = min(self.hp * most / self.max_hp, most)
            self.max_hp = most
        self.dirty = False

    def save(self) -> list[Any]:
        """Returns everything that changes, as JSON-able data."""
        return [
            *(self.kind.key, self.slot, self.rank, self.hp, self.max_hp, self.av, self.energy),
            *(self.toughness, self.broken, [s[:] for s in self.statuses], self.bar, self.step),
            *(self.charge, dict(self.counters), [t[:] for t in self.timers], self.alive),
        ]

    def load(self, saved: list[Any]) -> None:
        """Restores what ``save`` returned."""
        (_, self.slot, self.rank, self.hp, self.max_hp, self.av, self.energy, *rest) = saved
        (self.toughness, self.broken, statuses, self.bar, self.step, *rest) = rest
        (self.charge, counters, timers, self.alive) = rest
        self.statuses = [s[:] for s in statuses]
        self.counters, self.timers = dict(counters), [t[:] for t in timers]
        self.refresh()


_NO_RES = (0.0,) * 7
