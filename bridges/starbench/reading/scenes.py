"""Random battle views: what readers learn from and are measured on, without playing."""

from __future__ import annotations

import random

from bridges.starbench.pictures.art import ELEMENTS
from bridges.starbench.pictures.drawn import Marks
from bridges.starbench.rules.view import AllyView, BattleView, EnemyView, StatusView, TurnView

TEAM = (("Seele", 3000, 120), ("Sparkle", 4200, 110), ("Silver Wolf", 3400, 110))
TANK = ("Fu Xuan", 7200, 135)
NAMES = (
    *("Cocolia", "Phantylia", "Swarm King", "Ice Lance", "Mara-Struck Soldier", "Golden Hound"),
    *("Aurumaton Gatekeeper", "Golden Cloud Toad", "Sting", "Winder Goon", "Harmonious Choir"),
)
STATUSES = (
    *("Cipher", "DEF Down", "Freeze", "Entanglement", "Matrix", "Speed Up", "Imprisonment"),
    *("Bleed", "Resurgence", "Weak to Quantum", "Bug: ATK", "Shock", "Burn"),
)


def scene(number: int) -> tuple[BattleView, Marks, list[tuple[float, float]]]:
    """Returns a random view with marks, and places of its enemies in pixels of the map.

    Units are made up, so that a detector learns what an enemy is rather than those of a season.
    """
    dice = random.Random(number)  # noqa: S311 - pictures, no secrets
    allies = tuple(_ally(dice, i, *who) for i, who in enumerate((*TEAM, TANK)))
    count = dice.randint(1, 5)
    boss = dice.choice((None, *range(count)))  # battles have one at most
    enemies = tuple(_enemy(dice, i, boss=i == boss) for i in range(count))
    turns = [(ally.name, True) for ally in allies] + [(enemy.name, False) for enemy in enemies]
    dice.shuffle(turns)
    order = tuple(TurnView(name, ally, dice.uniform(0, 150)) for name, ally in turns)
    off_turn, most = dice.random() < 0.3, dice.choice((5, 7))
    living = [ally.slot for ally in allies if ally.alive]
    view = BattleView(
        task=f"scenery {number % 40}",
        allies=allies,
        enemies=enemies,
        order=tuple(sorted(order, key=lambda turn: turn.av)),
        skill_points=dice.randint(0, most),
        max_skill_points=most,
        damage=dice.choice((0.0, 10 ** dice.uniform(1, 6))),
        window="off_turn" if off_turn else "turn",
        actor=None if off_turn else dice.choice(living),
        offered=tuple(ally.slot for ally in allies if ally.ready),
        clock=dice.uniform(0, 1500),
        cycle=dice.randint(0, 14),
        score=dice.choice((0.0, dice.uniform(0, 40000))),
        wave=dice.randint(1, 3),
        message=dice.choice(("", "", "Not enough skill points", "Sparkle gives 4 skill points")),
        outcome=None,
        auto=dice.random() < 0.2,
        steps=dice.randint(0, 300),
        invalid=dice.randint(0, 9),
    )
    marks = Marks(
        enemy=dice.choice(enemies).target,
        ally=dice.choice(living),
        move=dice.randint(0, 1),
        events=dice.randint(0, 255),
    )
    step, left = 236, 890 - 236 * (len(enemies) - 1) / 2 + dice.uniform(-30, 30)
    places = [(left + step * i, 350 + dice.uniform(-24, 24)) for i in range(len(enemies))]
    return view, marks, places


def _statuses(dice: random.Random) -> tuple[StatusView, ...]:
    return tuple(
        StatusView(dice.choice(STATUSES), dice.randint(0, 4), dice.random() < 0.5)
        for _ in range(dice.randint(0, 3))
    )


def _ally(dice: random.Random, slot: int, name: str, hp: float, energy: float) -> AllyView:
    alive = slot == 0 or dice.random() > 0.1
    full = alive and dice.random() < 0.35
    return AllyView(
        slot=slot,
        name=name,
        element="quantum",
        hp=hp * dice.choice((1.0, dice.uniform(0.01, 1))) if alive else 0.0,
        max_hp=hp,
        shield=dice.choice((0.0, dice.uniform(0, 0.4) * hp)),
        energy=energy if full else dice.uniform(0, 0.99) * energy,
        max_energy=energy,
        ready=full,
        alive=alive,
        acting=alive and dice.random() < 0.25,
        statuses=_statuses(dice),
    )


def _enemy(dice: random.Random, place: int, *, boss: bool) -> EnemyView:
    hp, tough = 10 ** dice.uniform(4, 7), dice.choice((20, 60, 180))
    return EnemyView(
        target=4 + place,
        unit=f"unit {dice.randrange(400)}",
        name=dice.choice(NAMES),
        kind="boss" if boss else "enemy" if dice.random() < 0.6 else "summon",
        hp=hp * dice.choice((1.0, dice.uniform(0.01, 1))),
        max_hp=hp,
        toughness=tough * dice.choice((0.0, 1.0, dice.uniform(0, 1))),
        max_toughness=tough,
        weaknesses=tuple(dice.sample(sorted(ELEMENTS), dice.randint(1, 4))),
        statuses=_statuses(dice),
        charging=dice.random() < 0.2,
    )
