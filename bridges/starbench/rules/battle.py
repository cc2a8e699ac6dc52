"""A battle: the turn order, the decisions of the player, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from bridges.starbench.rules import combat, foes, scoring
from bridges.starbench.rules.content import load
from bridges.starbench.rules.field import PLAIN, Field
from bridges.starbench.rules.units import ELEMENTS, KIND, TURNS, Content, Move, Unit
from bridges.starbench.rules.view import (
    ACTIONS,
    ALL,
    BASIC,
    FIRST_ENEMY,
    HOLD,
    RELEASE,
    SKILL,
    AllyView,
    BattleView,
    EnemyView,
    StatusView,
    TurnView,
    action_id,
    action_parts,
)
from rollout.api.types import Bools

_MOVES = ("basic", "skill", "ultimate")
_NEXT = attrgetter("av", "rank")  # whose turn comes first


class Battle(Field):
    """One battle, deterministic from task, state and seed.

    Args:
        task: name of the battle, e.g. ``cocolia``.
        seed: of all random events.
        state: values of factors (see ``states.py``); those that are missing have the benchmark's.
        windows: when ultimates are offered between turns: if an enemy is next, after every action,
            or never.
        raw: whether enemies keep the game's HP and ATK instead of the calibrated ones.
        content: what the files describe.

    Attributes:
        decisions: decisions so far, invalid ones included.
        invalid: invalid decisions in a row.
        outcome: "won" or "lost" at the end.
        window: what is to be decided, see ``BattleView``.

    Raises:
        UnknownNameError: there is no such battle or factor.
        StateError: a factor has no such value.
    """

    def __init__(
        self,
        task: str,
        seed: int,
        state: Mapping[str, Any] | None = None,
        *,
        windows: str = "enemy_next",
        raw: bool = False,
        content: Content | None = None,
    ) -> None:
        super().__init__(task, seed, state or {}, windows, raw, content or load())
        for ally in self.allies:
            if ally.kind.aura:
                for other in self.allies:
                    combat.give(self, ally, other, self.content.statuses[ally.kind.aura])
            ally.refresh()
            ally.hp = ally.max_hp * self.state["hp"] / 100
        self.total_hp = foes.total_hp(self)
        foes.next_wave(self)
        self._run()

    # --- the player

    def view(self) -> BattleView:
        """Returns everything that a player may know."""
        return _view(self)

    def legal(self) -> list[int]:
        """Returns the numbers of the legal actions, ascending."""
        if self._legal is None:
            self._legal = sorted(self._actions())
        return self._legal

    def mask(self) -> Bools:
        """Returns which actions are legal, ``(160,)`` bool."""
        mask = np.zeros(ACTIONS, np.bool_)
        mask[self.legal()] = True
        return mask

    def _actions(self) -> list[int]:
        found: list[int] = []
        if self.window == "turn":
            actor = self.actor
            assert actor is not None
            moves = self.allies[actor].kind.moves
            found += [action_id(actor, BASIC, t) for t in self._targets(moves["basic"])]
            if self.points >= 1:
                found += [action_id(actor, SKILL, t) for t in self._targets(moves["skill"])]
        if self.window in ("turn", "off_turn"):
            for slot in self.offered:
                move = self.allies[slot].kind.moves["ultimate"]
                found += [action_id(slot, RELEASE, t) for t in self._targets(move)]
                if self.window == "off_turn":
                    found.append(action_id(slot, HOLD, ALL))
        return found

    def _targets(self, move: Move) -> Sequence[int]:
        if move.target == "enemy":
            return range(FIRST_ENEMY, FIRST_ENEMY + len(self.enemies))
        if move.target == "ally":
            return [ally.slot for ally in self.allies if ally.alive]
        return (ALL,)

    def act(self, number: int) -> bool:
        """Plays an action and goes on to the next decision.

        Returns:
            whether it was legal; if not, it counts as an invalid decision.
        """
        if self.outcome is not None:
            return False
        if number not in self.legal():
            self.act_invalid(f"action {number} is not legal now")
            return False
        self._decide()
        slot, move, target = action_parts(number)
        if move == HOLD:
            self.held.add(slot)
            self.note(f"{self.allies[slot].kind.name} holds the ultimate")
        else:
            self._play(self.allies[slot], _MOVES[move], target)
            foes.settle(self)
            if move != RELEASE and self.current is not None:
                self.finish()
        self._run()
        return True

    def act_select(self) -> None:
        """Counts a decision that is legal but only selects; the clock stands still."""
        if self.outcome is None:
            self._decide()
            self._run()

    def act_invalid(self, reason: str = "") -> None:
        """Counts an invalid decision; ten in a row lose the battle."""
        if self.outcome is not None:
            return
        invalid = self.invalid + 1
        if self.actor is not None:
            self.charged += self.rules["gauge"] / self.allies[self.actor].spd
        self._decide()
        self.invalid = invalid
        self.note(f"invalid: {reason}" if reason else "invalid")
        if invalid >= self.rules["budget"]["invalid"]:
            self.end("lost", f"{invalid} invalid decisions in a row")
        scoring.check_budget(self)
        self._run()

    def _decide(self) -> None:
        self.decisions += 1
        self.invalid, self.step_damage = 0, 0.0
        self._legal = None

    def _play(self, unit: Unit, name: str, target: int) -> None:
        move = unit.kind.moves[name]
        if name == "basic":
            self.add_points(1)
        elif name == "skill":
            self.points -= 1
        else:
            unit.energy = 0.0
        combat.gain_energy(unit, move.energy)
        on = None
        if target < FIRST_ENEMY:
            on = self.allies[target]
        elif target != ALL:
            on = self.enemies[target - FIRST_ENEMY]
        self.note(f"{unit.kind.name}: {name}" + (f" on {on.kind.name}" if on else ""))
        if name == "skill":
            for ally in self.allies:
                if ally.alive:
                    self.fire("spent", ally, on)
        self.struck.clear()
        for op in move.ops:
            op(self, unit, on)
        if self.struck and self.struck[-1].alive:
            self.fire("attack", unit, self.struck[-1])

    # --- turns

    def _run(self) -> None:
        """Goes on until something is to be decided."""
        self.window, self._legal = None, None
        if self.decisions >= self.rules["budget"]["steps"] and self.outcome is None:
            self.end("lost", f"{self.decisions} decisions were made")
        while self.window is None:
            if self.outcome is not None:
                self.window, self.actor, self.offered = "over", None, ()
            elif self.current is not None:
                self.window = "turn"
                self.offered = () if self.extra else self.ready()
            elif self.extra_slot is not None:
                unit, self.extra_slot = self.allies[self.extra_slot], None
                if unit.alive:
                    self._begin(unit, extra=True)
            else:
                unit = min(self.units(), key=_NEXT)
                if not self._offer(unit):
                    self._pass_time(unit)

    def _offer(self, unit: Unit) -> bool:
        """Opens a window for ultimates before a unit's turn, if there are any to offer."""
        if self.windows == "none" or (unit.ally and self.windows == "enemy_next"):
            return False
        self.offered = tuple(slot for slot in self.ready() if slot not in self.held)
        if self.offered:
            self.window = "off_turn"
        return bool(self.offered)

    def _pass_time(self, unit: Unit) -> None:
        self.held.clear()
        passed = scoring.within_budget(self, unit.av)
        for each in self.units():
            each.av -= passed
        self.clock += passed
        scoring.check_budget(self)
        if self.outcome is None:
            self._begin(unit)

    def _begin(self, unit: Unit, *, extra: bool = False) -> None:
        self.turn += 1
        self.current, self.extra, self.ahead = unit, extra, 0.0
        if not unit.ally:
            foes.take_turn(self, unit)
            self.finish()
            return
        self.damage = 0.0
        self.actor = unit.slot
        frozen = unit.controlled()
        if not extra:
            combat.tick(self, unit, 0)
        if frozen:
            self.ahead = 0.5
            self.note(f"{unit.kind.name} cannot act")
            self.finish()

    def finish(self) -> None:
        """Ends the present turn; an extra turn leaves gauge and durations as they are."""
        unit = self.current
        assert unit is not None
        if not self.extra:
            combat.tick(self, unit, 1)
        self.current, self.actor = None, None
        if not self.extra:
            unit.av = max(0.0, (1.0 - self.ahead) * self.rules["gauge"] / unit.spd)
            unit.rank = unit.slot
        self.extra, self.ahead = False, 0.0
        foes.settle(self)

    # --- snapshots

    def load(self, saved: list[Any]) -> None:
        """Restores what ``save`` returned; of a battle of the same task and state."""
        plain, (held, offered), current, allies, enemies = saved
        for name, value in zip(PLAIN, plain, strict=True):
            setattr(self, name, value)
        self.held, self.offered, self._legal = set(held), tuple(offered), None
        self.struck.clear()
        for unit, data in zip(self.allies, allies, strict=True):
            unit.load(data)
        self.enemies = []
        for data in enemies:
            unit = foes.unit_of(self, data[0], data[1])
            unit.load(data)
            self.enemies.append(unit)
        self.current = None
        if current is not None:
            ally, slot = current
            side = self.allies if ally else self.enemies
            self.current = next(unit for unit in side if unit.slot == slot)

    @classmethod
    def from_snapshot(cls, snapshot: bytes) -> Battle:
        """Returns a new battle in the state of a snapshot."""
        (task, state, windows, raw), saved = json.loads(snapshot)
        battle = cls(task, 0, state, windows=windows, raw=raw)
        battle.load(saved)
        return battle


def _view(battle: Field) -> BattleView:
    """Returns the view of a battle."""
    ready = battle.ready()
    acting = battle.window == "turn"
    order = sorted(battle.units(), key=lambda u: (-1.0 if u is battle.current else u.av, u.rank))
    return BattleView(
        task=battle.task,
        allies=tuple(_ally(battle, unit, ready) for unit in battle.allies),
        enemies=tuple(_enemy(at, unit) for at, unit in enumerate(battle.enemies, FIRST_ENEMY)),
        order=tuple(
            TurnView(u.kind.name, u.ally, 0.0 if u is battle.current else u.av) for u in order
        ),
        skill_points=battle.points,
        max_skill_points=battle.max_points(),
        damage=battle.damage,
        window=battle.window or "over",
        actor=battle.actor if acting else None,
        offered=battle.offered,
        clock=scoring.used(battle),
        cycle=scoring.cycles_used(scoring.used(battle)),
        score=scoring.points(battle),
        wave=_wave(battle),
        message=battle.message,
        outcome=battle.outcome,
        steps=battle.decisions,
        invalid=battle.invalid,
    )


def _wave(battle: Field) -> int:
    bars = [u.bar + 1 for u in battle.enemies if u.kind.bars > 1]
    return bars[0] if bars else max(1, battle.wave)


def _statuses(unit: Unit) -> tuple[StatusView, ...]:
    kinds = ((unit.numbered[s[KIND]], s[TURNS]) for s in unit.statuses)
    return tuple(StatusView(kind.title, turns, kind.harmful) for kind, turns in kinds)


def _ally(battle: Field, unit: Unit, ready: tuple[int, ...]) -> AllyView:
    if unit.dirty:
        unit.refresh()
    return AllyView(
        name=unit.kind.name,
        hp=unit.hp,
        max_hp=unit.max_hp,
        alive=unit.alive,
        statuses=_statuses(unit),
        slot=unit.slot,
        element=ELEMENTS[unit.kind.element],
        energy=unit.energy,
        max_energy=unit.kind.max_energy,
        ready=unit.slot in ready,
        acting=battle.window == "turn" and battle.actor == unit.slot,
    )


def _enemy(target: int, unit: Unit) -> EnemyView:
    if unit.dirty:
        unit.refresh()
    return EnemyView(
        name=unit.kind.name,
        hp=unit.hp,
        max_hp=unit.max_hp,
        statuses=_statuses(unit),
        target=target,
        unit=unit.kind.key,
        kind=unit.kind.kind,  # type: ignore[arg-type] # checked when the files are read
        toughness=0.0 if unit.broken else unit.toughness,
        max_toughness=unit.max_toughness,
        weaknesses=tuple(ELEMENTS[each] for each in sorted(unit.weak)),
        charging=bool(unit.charge),
    )
