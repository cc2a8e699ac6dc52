"""The search player: a beam search over snapshots, with auto-battle for what follows.

A snapshot has the battle's random numbers, so the search knows what will happen. It is an upper
reference for players that do not.
"""

from __future__ import annotations

import hashlib
from typing import Any

from bridges.starbench.oracle import auto
from bridges.starbench.rules import scoring
from bridges.starbench.rules.battle import Battle

BEAM = 24
_KEPT = 100_000  # decisions of plans that are remembered

_plans: dict[bytes, int] = {}


def choose(battle: Battle, *, beam: int = BEAM) -> int:
    """Returns what the best plan does next; a battle is planned once, to its end.

    Args:
        battle: left as it was.
        beam: battles that go on at each depth.
    """
    legal = battle.legal()
    if len(legal) == 1:
        return legal[0]
    here = _key(battle, beam)
    if here not in _plans:
        if len(_plans) > _KEPT:
            _plans.clear()
        saved = battle.save()
        for action in plan(battle, beam):
            _plans[_key(battle, beam)] = action
            battle.act(action)
        battle.load(saved)
    return _plans[here]


def _key(battle: Battle, beam: int) -> bytes:
    return hashlib.blake2b(b"%d " % beam + battle.snapshot(), digest_size=16).digest()


def plan(battle: Battle, beam: int = BEAM) -> list[int]:
    """Returns the best decisions found until the end; never worse than those of auto-battle.

    Each legal action is played in each battle of the beam, and auto-battle after it. Those that
    end best go on, and of several that end alike only the first: mostly they are the same actions
    in another order.
    """
    saved = battle.save()
    best = _finish(battle)
    front: list[tuple[list[Any], list[int]]] = [(saved, [])]
    while front:
        found: dict[float, tuple[list[Any], list[int]]] = {}
        for start, made in front:
            battle.load(start)
            for action in battle.legal():
                battle.load(start)
                battle.act(action)
                over, here, path = battle.outcome is not None, battle.save(), [*made, action]
                value, rest = _finish(battle)
                if value > best[0]:
                    best = value, path + rest
                if not over:
                    found.setdefault(value, (here, path))
        front = [found[value] for value in sorted(found, reverse=True)[:beam]]
    battle.load(saved)
    return best[1]


def _finish(battle: Battle) -> tuple[float, list[int]]:
    """Plays auto-battle to the end; returns what the end is worth, and the actions."""
    actions = []
    while battle.outcome is None:
        actions.append(auto.choose(battle))
        battle.act(actions[-1])
    return worth(battle), actions


def worth(battle: Battle) -> float:
    """Returns how good an end is: victory, then its time or score, then the team."""
    alive = [ally for ally in battle.allies if ally.alive]
    team = sum(0.3 + 0.1 * ally.hp / ally.max_hp for ally in alive) / 4
    if battle.outcome == "lost":
        return 100.0 * scoring.depleted(battle) + team - 1000.0
    if battle.data["mode"] == "pure_fiction":
        return scoring.points(battle) / 1000.0 + 0.01 * team
    if battle.data["mode"] == "echo_of_war":
        return team - battle.decisions
    return team - scoring.used(battle) / 50.0
