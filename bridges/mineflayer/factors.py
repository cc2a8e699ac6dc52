"""The starting conditions of episodes: factors of the state space, and the start message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bridges.mineflayer import hunts
from bridges.mineflayer.blueprints import BLUEPRINTS, materials
from bridges.mineflayer.loadouts import LOADOUTS, NONE, Item, parse_loadout
from bridges.mineflayer.minenpc import scene as minenpc
from bridges.mineflayer.scene import NO_SCENE, Scene
from rollout.api import Factor, Start, StateSpace

WORLDS = 2**31
BIOMES = ("plains", "forest", "desert", "taiga", "savanna", "snowy", "any")
TIMES = ("day", "noon", "dusk", "night", "midnight")
WEATHERS = ("clear", "rain", "thunder")
FOES = (
    *("bat", "cave_spider", "creeper", "elder_guardian", "enderman", "endermite", "evoker"),
    *("ghast", "husk", "phantom", "pig", "piglin", "sheep", "shulker", "silverfish", "skeleton"),
    *("snow_golem", "spider", "squid", "stray", "wither", "wither_skeleton", "zombie"),
    "zombified_piglin",
)
"""The mobs of MineLand's combat tasks."""
MOBS = (NONE, *FOES, "chicken", "cow", "rabbit")
NUMBERS = (0, 1, 4, 8)
DISTANCES = (2, 3, 5, 8, 12)
DIFFICULTIES = ("peaceful", "easy", "normal", "hard")
SITES = ("wild", "flat")
HEALTHS = (20, 15, 10, 5, 1)
FOODS = (20, 15, 10, 5, 0)
LEVELS = (0, 1, 5, 10, 30)
EFFECTS = (
    NONE,
    *("speed", "slowness", "strength", "weakness", "jump_boost", "resistance", "regeneration"),
    *("poison", "hunger", "haste", "mining_fatigue", "fire_resistance", "water_breathing"),
    *("night_vision", "blindness", "levitation", "slow_falling"),
)
CONDITION = {"health": 20, "food": 20, "experience": 0, "effect": NONE}
"""The condition of a rested agent, by factor: that of every task that names no other."""

_SAFE = 2**53 - 1  # integers that JavaScript represents exactly


def state_space(*, hunt: bool = False, npc: bool = False) -> StateSpace:
    """Returns the space of all states an episode can start from.

    Args:
        hunt: whether they are those of a hunt (``hunts.py``): ``mobs`` and ``distance`` have other
            values, and more factors follow.
        npc: whether they are those of MineNPC-Task (``minenpc/scene.py``).
    """
    mobs, distances = (hunts.HERDS, hunts.BANDS) if hunt else (NUMBERS, DISTANCES)
    return StateSpace(
        (
            Factor("world", range(WORLDS), doc="seed of the terrain"),
            Factor("biome", BIOMES, doc="biome of the whole world; any for several"),
            Factor("time", TIMES, doc="time of the day"),
            Factor("weather", WEATHERS, doc="weather"),
            Factor("loadout", LOADOUTS, doc="what the agents hold and wear, as MineLand writes it"),
            Factor("mob", MOBS, doc="kind of the targets around the agents"),
            Factor("mobs", mobs, doc="how many of them"),
            Factor("distance", distances, unit="blocks", doc="how far they are"),
            Factor("difficulty", DIFFICULTIES, doc="difficulty of the game"),
            Factor("site", SITES, doc="generated terrain, or flat grass"),
            Factor(
                "blueprint",
                range(len(BLUEPRINTS) + 1),
                doc="number of what is to be built, whose blocks are given; 0 for nothing",
            ),
            Factor("health", HEALTHS, unit="half hearts", doc="health of the agents"),
            Factor("food", FOODS, doc="how well fed they are; 0 is starving"),
            Factor("experience", LEVELS, unit="levels", doc="their experience"),
            Factor("effect", EFFECTS, doc="a status effect of level 1 that stays on them"),
            *(hunts.factors() if hunt else ()),
            *(minenpc.factors() if npc else ()),
        )
    )


def start_message(
    space: StateSpace, start: Start, extra: Iterable[Item] = (), scene: Scene = NO_SCENE
) -> dict[str, Any]:
    """Returns a start in the form that the game gets.

    The seed is reduced to 53 bits, which JavaScript represents exactly.

    Args:
        space: the state space of the bridge.
        start: the state and the seed.
        extra: items that are given in addition to those of the state.
        scene: blocks and commands that the world begins with.

    Raises:
        StateError: the bridge has no such state.
    """
    state = space.state(space.index(start.state.values)).values
    kind, number = str(state["mob"]), int(state["mobs"])
    items = [*parse_loadout(str(state["loadout"])), *extra, *materials(int(state["blueprint"]))]
    targets: list[dict[str, Any]] = []
    if "bearing" in state:
        items = [*hunts.items_of(state), *items]
        targets = hunts.herds_of(state)
    elif kind != NONE and number:
        distance = int(state["distance"])
        targets = [{"kind": kind, "count": number, "distance": distance, "name": kind}]
    return {
        "seed": (start.seed ^ (start.seed >> 53)) & _SAFE,
        "episode": start.episode,
        "state": dict(state),
        "items": [item.as_data() for item in items],
        "targets": targets,
        **(minenpc.case_of(state).scene if "npc" in state else scene).message(),
    }
