"""The search player: simulates each legal action and what auto-battle would do after it.

The random numbers of a simulation are not those of the battle, so it knows the rules but not what
will happen.
"""

from __future__ import annotations

from typing import Any

from bridges.starbench import auto, scoring
from bridges.starbench.battle import Battle

ROLLOUTS, HORIZON = 8, 24
_HALVINGS, _FEWEST = (2, 4), 3  # after so many simulations the better half of the actions goes on


def choose(battle: Battle, *, rollouts: int = ROLLOUTS, horizon: int = HORIZON) -> int:
    """Returns the legal action whose simulations end best.

    Args:
        battle: left as it was.
        rollouts: simulations of an action with the same random numbers for all of them; fewer of
            those that are worse.
        horizon: decisions of auto-battle after the action.
    """
    legal = battle.legal()
    if len(legal) == 1:
        return legal[0]
    saved, own = battle.save(), battle.rng
    if "stream" in battle.data:
        horizon = 300  # to its end, since decisions take different times
    totals = dict.fromkeys(legal, 0.0)
    for number in range(rollouts):
        if number in _HALVINGS:
            best = sorted(totals, key=totals.__getitem__, reverse=True)
            totals = {action: totals[action] for action in best[: max(_FEWEST, len(best) // 2)]}
        seed = own ^ (0x9E3779B97F4A7C15 * (number + 1)) % 2**64
        for action in totals:
            totals[action] += _simulate(battle, saved, action, seed, horizon)
    battle.load(saved)
    return max(totals, key=lambda action: (totals[action], -action))


def _simulate(battle: Battle, saved: list[Any], action: int, seed: int, horizon: int) -> float:
    battle.load(saved)
    battle.rng = seed
    battle.act(action)
    for _ in range(horizon):
        if battle.outcome is not None:
            break
        battle.act(auto.choose(battle))
    return worth(battle)


def worth(battle: Battle) -> float:
    """Returns how good a battle stands: progress, the team, and the time that it took."""
    standing = sum(ally.hp / ally.max_hp for ally in battle.allies if ally.alive) / 4
    alive = sum(ally.alive for ally in battle.allies) / 4
    if battle.outcome == "lost" and not alive:
        return -5.0 + scoring.depleted(battle)
    if "stream" in battle.data:
        return battle.score / 1000.0 + 0.3 * alive + _hurt(battle)
    gone = scoring.depleted(battle)
    won = 2.0 if battle.outcome == "won" else 0.0
    time = battle.decisions / 4.0  # about what as many take of the HP of a short battle
    if battle.data["mode"] != "echo_of_war":
        time = scoring.used(battle) / 200.0
    return 6.0 * gone + won - time + 0.2 * standing + 0.6 * alive


def _hurt(battle: Battle) -> float:
    """The share of HP that enemies on the field have lost, in points of their kind."""
    stream = battle.data["stream"]
    total = 0.0
    for unit in battle.enemies:
        elite = unit.kind.key == stream["elite"]
        points = stream["elite_points"] if elite else stream["minor_points"]
        total += (1.0 - unit.hp / unit.max_hp) * points / 1000.0
    return total
