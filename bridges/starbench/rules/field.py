"""The state of a battle, and the operations that effects and enemies use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import permutations
from typing import Any, Literal

from bridges.starbench.rules.units import Base, Content, Unit
from rollout.api import Factor, StateSpace
from rollout.errors import ConfigError, UnknownNameError

WINDOWS = ("enemy_next", "every_action", "none")
_MASK64 = 2**64 - 1


BATTLES = (
    *("cocolia", "phantylia", "swarm_king", "theater", "feixiao"),
    *("xianzhou", "cliched", "stardevourer"),
)
LEVELS = (-10, -5, 0, 5, 10)
SCRIPTS = 10_000
WEAKNESSES = ("native", "all", "quantum", "other")

SPACE = StateSpace(
    (
        Factor("battle", BATTLES, doc="which battle"),
        Factor("level", LEVELS, "levels", "level of the enemies, above the battle's own"),
        Factor(
            *("weakness", WEAKNESSES),
            doc="what enemies are weak to: as in the game, all, Quantum alone, all but Quantum",
        ),
        Factor(
            *("order", tuple("".join(map(str, each)) for each in permutations(range(4)))),
            doc="characters by slot: 0 Seele, 1 Sparkle, 2 Silver Wolf, 3 Fu Xuan",
        ),
        Factor("energy", (0, 25, 50, 75, 100), "%", "energy of the team at the start"),
        Factor("hp", (25, 50, 75, 100), "%", "HP of the team at the start"),
        Factor("script", range(SCRIPTS), doc="order of the bosses' moves; 0 is that of the files"),
    )
)
FACTORS = {factor.name: factor for factor in SPACE}


BENCHMARK: Mapping[str, Any] = {
    "level": 0,
    "weakness": "native",
    "order": "0123",
    "energy": 50,
    "hp": 100,
    "script": 0,
}
"""The benchmark's values of all factors but the battle itself."""


class Field:
    """The units, counters and random numbers of a battle; see ``Battle``."""

    def __init__(
        self,
        task: str,
        seed: int,
        state: Mapping[str, Any],
        windows: str,
        raw: bool,
        content: Content,
    ) -> None:
        if windows not in WINDOWS:
            raise UnknownNameError("windows", windows, WINDOWS)
        self.content = content
        self.rules = self.content.rules
        self.task, self.data = task, self.content.battle(task)
        self.windows, self.raw = windows, raw
        self.state = {**BENCHMARK, **_checked(state)}
        self.bases: dict[str, Base] = {}
        self.rng = (seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & _MASK64
        self.clock = self.charged = 0.0
        self.points = int(self.rules["skill_points"]["start"])
        self.turn = self.front = self.arrived = 0
        self.current: Unit | None = None
        self.actor: int | None = None
        self.window: Literal["turn", "off_turn", "over"] | None = None
        self.offered: tuple[int, ...] = ()
        self.held: set[int] = set()
        self.extra_slot: int | None = None
        self.extra: bool = False
        self.ahead = self.damage = self.step_damage = self.hit_energy = self.score = 0.0
        self.decisions = self.invalid = self.wave = self.kills = self.minors = 0
        self.outcome: Literal["won", "lost"] | None = None
        self.message = ""
        self.struck: list[Unit] = []
        self._legal: list[int] | None = None
        self.allies = [self._ally(slot) for slot in range(4)]
        self.enemies: list[Unit] = []
        self.total_hp = 1.0

    def _ally(self, slot: int) -> Unit:
        kind = self.content.units[self.content.team[int(self.state["order"][slot])]]
        s = kind.stats
        base = Base(
            *((s["hp"],), s["atk"], s["def"], (s["spd"],), self.content.level, s["base_atk"]),
            *(s["base_spd"], s["cr"], s["cd"], s.get("dmg", 0.0), s.get("ehr", 0.0)),
            *(s.get("err", 0.0), s.get("be", 0.0), s.get("res", 0.0)),
        )
        unit = Unit(kind, base, slot, self.content.numbered)
        unit.energy = kind.max_energy * self.state["energy"] / 100
        unit.av = self.rules["gauge"] / unit.spd
        return unit

    def units(self) -> list[Unit]:
        """Returns everybody who stands."""
        return [*(ally for ally in self.allies if ally.alive), *self.enemies]

    def ready(self) -> tuple[int, ...]:
        """Returns the slots whose ultimate can be released."""
        return tuple(
            ally.slot
            for ally in self.allies
            if ally.alive and ally.energy >= ally.kind.max_energy and not ally.controlled()
        )

    def rand(self) -> float:
        """Returns the next random number, from 0 to 1."""
        self.rng = (self.rng * 6364136223846793005 + 1442695040888963407) & _MASK64
        mixed = ((self.rng >> 29) ^ self.rng) * 0xBF58476D1CE4E5B9 & _MASK64
        return (mixed >> 11) / 9007199254740992.0

    def note(self, message: str) -> None:
        """Keeps what happened last, for the view."""
        self.message = message

    def level_factor(self, level: int) -> float:
        """Returns the factor of break damage of an attacker's level."""
        return float(self.rules["level_factor"][level])

    def side(self, unit: Unit) -> list[Unit]:
        """Returns those who stand on the side of a unit."""
        return [u for u in self.allies if u.alive] if unit.ally else self.enemies[:]

    def opponents(self, unit: Unit) -> list[Unit]:
        """Returns those who stand on the other side."""
        return self.enemies[:] if unit.ally else [u for u in self.allies if u.alive]

    def enemy(self, key: str) -> Unit | None:
        """Returns the first enemy of that kind, or None."""
        return next((u for u in self.enemies if u.kind.key == key), None)

    def dealt(self, amount: float, taken: float, unit: Unit) -> None:
        """Adds up damage: what was shown in this turn, and HP of bosses in this decision."""
        self.damage += amount
        if unit.kind.kind == "boss":
            self.step_damage += taken

    def add_points(self, number: int) -> None:
        """Adds skill points, up to the maximum."""
        self.points = min(self.max_points(), self.points + number)

    def max_points(self) -> int:
        """Returns the most skill points."""
        extra = sum(ally.kind.skill_points for ally in self.allies if ally.alive)
        return int(self.rules["skill_points"]["most"]) + extra

    def end(self, outcome: Literal["won", "lost"], message: str) -> None:
        """Ends the battle."""
        if self.outcome is None:
            self.outcome = outcome
            self.note(message)

    # --- moves and triggers

    def fire(self, event: str, unit: Unit, other: Unit | None) -> None:
        """Plays the triggers of a unit for an event."""
        for trigger in unit.kind.triggers.get(event, ()):
            if trigger.test is None or trigger.test(self, unit, other):
                for op in trigger.ops:
                    op(self, unit, other)

    def perform(self, unit: Unit, name: str) -> None:
        """Plays a move of an enemy."""
        move = unit.kind.moves[name]
        if move.target == "none":
            target = None
        elif isinstance(move.target, dict):
            number = self.content.statuses[move.target["bearer"]].number
            bearers = [a for a in self.allies if a.alive and a.find(number) is not None]
            target = bearers[0] if bearers else self.aim()
        else:
            target = self.aim()
        self.hit_energy = move.energy
        self.note(f"{unit.kind.name}: {name}")
        for op in move.ops:
            op(self, unit, target)
        if move.charge:
            unit.charge = move.charge
            self.note(f"{unit.kind.name} prepares {move.charge}")

    def enter(self, unit: Unit) -> None:
        """Plays the moves of an enemy as its present bar appears."""
        if unit.bar < len(unit.kind.enter):
            for name in unit.kind.enter[unit.bar]:
                self.perform(unit, name)

    def aim(self) -> Unit:
        """Returns the ally that an enemy attacks, by the weights of their aggro."""
        standing = [ally for ally in self.allies if ally.alive]
        if not standing:
            return self.allies[0]
        weights = []
        for ally in standing:
            aggro = ally.kind.aggro
            low = "below" in aggro and ally.hp <= aggro["below"] * ally.max_hp
            weights.append(aggro["weight"] * (1.0 + (aggro["change"] if low else 0.0)))
        at = self.rand() * sum(weights)
        for ally, weight in zip(standing, weights, strict=True):
            at -= weight
            if at < 0.0:
                return ally
        return standing[-1]

    def locked(self, unit: Unit) -> bool:
        """Returns True if the toughness of a unit cannot fall now."""
        rule = unit.kind.locked_by
        if rule is None or unit.bar + 1 != rule["phase"]:
            return False
        return any(other.kind.key in rule["units"] for other in self.enemies)

    def remove(self, unit: Unit) -> None:
        """Takes an enemy off the field."""
        unit.hp, unit.alive = 0.0, False
        if unit in self.enemies:
            self.enemies.remove(unit)

    # --- snapshots

    def save(self) -> list[Any]:
        """Returns everything that changes, as JSON-able data that shares nothing."""
        return [
            [getattr(self, name) for name in PLAIN],
            [sorted(self.held), list(self.offered)],
            None if self.current is None else [self.current.ally, self.current.slot],
            [unit.save() for unit in self.allies],
            [unit.save() for unit in self.enemies],
        ]

    def snapshot(self) -> bytes:
        """Returns the complete battle; ``Battle.from_snapshot`` reads it."""
        head = [self.task, self.state, self.windows, self.raw]
        return json.dumps([head, self.save()], separators=(",", ":")).encode()


PLAIN = (
    *("rng", "clock", "charged", "points", "turn", "front", "arrived", "actor", "window"),
    *("extra_slot", "extra", "ahead", "damage", "step_damage", "hit_energy", "score"),
    *("decisions", "invalid", "wave", "kills", "minors", "outcome", "message"),
)


def _checked(state: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in state.items():
        if name not in FACTORS:
            raise UnknownNameError("factor of StarBench", name, FACTORS)
        FACTORS[name].digit(value)
    if "battle" in state:
        raise ConfigError("state: the battle is named by task, not by the factor 'battle'")
    return dict(state)
