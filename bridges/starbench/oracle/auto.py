"""Auto-battle: the game's own program by its documented rules (docs/starbench.md, Agents)."""

from __future__ import annotations

from bridges.starbench.rules.battle import Battle
from bridges.starbench.rules.units import TURNS, Move, Unit
from bridges.starbench.rules.view import ALL, BASIC, FIRST_ENEMY, RELEASE, SKILL, action_id


def choose(battle: Battle) -> int:
    """Returns the number of the action that auto-battle plays; it never holds an ultimate."""
    if battle.offered:
        ready = [battle.allies[slot] for slot in battle.offered]
        first = max(ready, key=lambda unit: (unit.kind.auto.get("priority", 0), -unit.slot))
        move = first.kind.moves["ultimate"]
        return action_id(first.slot, RELEASE, _target(battle, first, move, ultimate=True))
    assert battle.actor is not None
    actor = battle.allies[battle.actor]
    move, rule = actor.kind.moves["skill"], actor.kind.auto
    if battle.points >= max(1, rule["points"]) and _wanted(battle, actor):
        return action_id(actor.slot, SKILL, _target(battle, actor, move))
    return action_id(actor.slot, BASIC, _target(battle, actor, actor.kind.moves["basic"]))


def _wanted(battle: Battle, actor: Unit) -> bool:
    """Returns True if a skill is of use now."""
    rule, statuses = actor.kind.auto, battle.content.statuses
    if "keep" in rule:
        kept = actor.find(statuses[rule["keep"]].number)
        return kept is None or kept[TURNS] <= 1
    if "boss_without" in rule:
        return _main(battle).find(statuses[rule["boss_without"]].number) is None
    return True


def _target(battle: Battle, actor: Unit, move: Move, *, ultimate: bool = False) -> int:
    if move.target == "all":
        return ALL
    if move.target == "ally":
        standing = [ally for ally in battle.allies if ally.alive]
        wanted = [ally for ally in standing if ally.kind.key == actor.kind.auto.get("ally")]
        return (wanted or standing)[0].slot
    if "boss_without" in actor.kind.auto and move.key == "skill":
        return FIRST_ENEMY + battle.enemies.index(_main(battle))

    def worth(unit: Unit) -> tuple[bool, bool, float]:
        share = unit.hp / unit.max_hp
        fits = unit.broken or actor.kind.element in unit.weak
        return fits, ultimate and 0.2 <= share <= 0.8, -share

    return FIRST_ENEMY + battle.enemies.index(max(battle.enemies, key=worth))


def _main(battle: Battle) -> Unit:
    """The boss, or else the enemy with the most HP."""
    return max(battle.enemies, key=lambda unit: (unit.kind.kind == "boss", unit.hp))
