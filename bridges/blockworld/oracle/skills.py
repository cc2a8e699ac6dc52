"""The skills: an expert for each task, as a function of the current world.

None has a memory between two calls, so that its action is right whatever led to the world:
an action of another policy, a restored snapshot, any width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, hypot
from typing import Any

import numpy as np

from bridges.blockworld.oracle.fights import creatures, hunt
from bridges.blockworld.oracle.moves import (
    OPEN_GROUND,
    any_of,
    around,
    beside,
    cell_of,
    centre,
    click,
    close,
    dig,
    find_blocks,
    higher,
    steer,
    use,
    walk,
    work_at,
)
from bridges.blockworld.oracle.view import HOPELESS, STAY, Move, View
from bridges.blockworld.rules.blocks import (
    BED,
    FURNACE,
    IRON_ORE,
    LIT_FURNACE,
    LOGS,
    MAX_BLOCKS,
    OAK_PLANKS,
    STONE,
)
from bridges.blockworld.rules.blocks import NUMBER as BLOCK
from bridges.blockworld.rules.items import BUTTONS, FUEL, FURNACE_FIRE, HAND, recipe
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.species import SHEEP, SKELETON, ZOMBIE
from bridges.blockworld.rules.world import (
    FURNACE_SCREEN,
    HOTBAR,
    INVENTORY,
    INVENTORY_SCREEN,
    JUMP,
    NO_SCREEN,
    SIZE,
    TABLE_SCREEN,
    USE,
)

CLIMB = 8.0
"""Blocks above its start that the climber has to reach."""
PILLAR = 5
"""Height of the pillar in blocks."""
_PLANKS_FOR_TABLE = 4
_CLEAR = 0.999
"""Height above the ground in blocks at which a block fits below the feet."""


@dataclass(frozen=True)
class Skill:
    """One skill of the expert.

    Attributes:
        play: returns the next move; ``HOPELESS`` itself if there is no target.
        done: whether there is nothing left to do.
    """

    play: Callable[[View], Move]
    done: Callable[[View], bool]


def _table(*blocks: int) -> Any:
    table = np.zeros(MAX_BLOCKS, np.uint8)
    table[list(blocks)] = 1
    return table


_IS_LOG, _IS_STONE, _IS_ORE = _table(*LOGS), _table(STONE), _table(IRON_ORE)
_IS_FURNACE, _IS_BED = _table(FURNACE, LIT_FURNACE), _table(BED)


def _hands_free(play: Callable[[View], Move]) -> Callable[[View], Move]:
    """Closes any open screen before a skill that does not use it."""

    def wrapped(v: View) -> Move:
        return close(v) if v.screen != NO_SCREEN else play(v)

    return wrapped


# creatures --------------------------------------------------------------------------------------


def _hunter(kind: int) -> Skill:
    def play(v: View) -> Move:
        return hunt(v, kind)

    def done(v: View) -> bool:
        return int(v.w["kills"][kind]) > 0 and not creatures(v, lambda k: k == kind)

    return Skill(_hands_free(play), done)


# blocks -----------------------------------------------------------------------------------------


def _drops(v: View, wanted: tuple[int, ...]) -> list[tuple[float, float, float]]:
    """Positions of the wanted items on the ground."""
    w = v.w
    return [
        (float(w["d_x"][n]), float(w["d_y"][n]), float(w["d_z"][n]))
        for n, item in enumerate(w["d_item"].tolist())
        if item in wanted
    ]


def _pick_up(v: View, drops: list[tuple[float, float, float]]) -> Move:
    step = walk(v, any_of(*(around(x, y, z, 1.0, below=2.0, above=0.4) for x, y, z in drops)))
    if step is not None:
        return step
    x, _, z = min(drops, key=lambda d: hypot(d[0] - v.x, d[2] - v.z))
    return steer(v, x, z, run=False)


def _mine(v: View, wanted: Any, *, below: float = 3.0, sky: bool = False) -> Move:
    found = find_blocks(v, wanted, sky=sky)
    if not found:
        return HOPELESS
    at = work_at(v, found, below=below)
    return at if isinstance(at, Move) else dig(v, at)


def _miner(wanted: Any, item: int) -> Skill:
    """Mines blocks of a kind with a tool that yields their drop, and picks it up."""

    def play(v: View) -> Move:
        drops = _drops(v, (item,))
        if drops:
            return _pick_up(v, drops)
        return _mine(v, wanted, below=2.0, sky=True)

    def done(v: View) -> bool:
        return int(v.w["picked"][item]) > 0

    return Skill(_hands_free(play), done)


def _mine_log(v: View) -> Move:
    return _mine(v, _IS_LOG)


def _mined_log(v: View) -> bool:
    return bool(v.w["mined"][list(LOGS)].any())


# places -----------------------------------------------------------------------------------------


def _climb(v: View) -> Move:
    step = walk(v, any_of(higher(ceil(float(v.w["home_y"]) + CLIMB - 1e-6))))
    return STAY if step is None else step


def _climbed(v: View) -> bool:
    return v.y - float(v.w["home_y"]) >= CLIMB


def _find_hut(v: View) -> Move:
    x0, z0, x1, z1 = v.w["hut"].tolist()
    if x0 < 0:
        return HOPELESS
    step = walk(v, any_of(beside(x0, z0, x1 + 1.0, z1 + 1.0, 1.4)))
    return STAY if step is None else step


def _hut_distance(v: View) -> float:
    x0, z0, x1, z1 = v.w["hut"].tolist()
    if x0 < 0:
        return 1000.0
    return hypot(max(x0 - v.x, v.x - x1 - 1.0, 0.0), max(z0 - v.z, v.z - z1 - 1.0, 0.0))


def _at_hut(v: View) -> bool:
    return _hut_distance(v) <= 2.0


# building ---------------------------------------------------------------------------------------

_STACKABLE = tuple(
    BLOCK[name]
    for name in ("cobblestone", "dirt", "oak_planks", "stone", "sand", "gravel", "sandstone")
)


def _build_pillar(v: View) -> Move:
    key = 0
    if v.items[v.selected] not in _STACKABLE:
        slots = [n for n in range(HOTBAR) if v.items[n] in _STACKABLE]
        if not slots:
            return HOPELESS
        key = v.slot_key(slots[0])
    column = int(v.x) * SIZE + int(v.z)
    started = int(v.w["pillars"][column]) > 0
    if not started:
        step = walk(v, any_of(OPEN_GROUND)) if v.on_ground else STAY
        if v.on_ground and step is None and hypot(v.x % 1.0 - 0.5, v.z % 1.0 - 0.5) > 0.25:
            step = centre(v)
        if step is not None and v.on_ground:
            return Move(step.keys | key, step.pitch, step.yaw)
    pitch = 90.0 - v.pitch
    if pitch > 8.0:
        return Move(key, pitch, 0.0)
    above = v.y - float(v.w["heights"][column])
    return Move(key | (USE if above > _CLEAR else JUMP))


def _built(v: View) -> bool:
    return int(v.w["pillar"]) >= PILLAR


# screens ----------------------------------------------------------------------------------------


def _button(where: int, name: str) -> tuple[int, int]:
    """Column and row of a recipe's button."""
    number = int(np.flatnonzero(BUTTONS[where] == recipe(name))[0])
    return number % HOTBAR, number // HOTBAR


_PLANKS_BUTTON = _button(HAND, "oak_planks")
_TABLE_BUTTON = _button(HAND, "crafting_table")
_COOK_BUTTON = _button(FURNACE_FIRE, "cooked_beef")
_FURNACE_ROW, _IN, _FUEL, _OUT = 2, 0, 1, 2


def _carried(v: View, item: int) -> int:
    counts = v.w["count"].tolist()
    return sum(count for held, count in zip(v.items, counts, strict=True) if held == item)


def _craft_table(v: View) -> Move:
    planks = _carried(v, OAK_PLANKS)
    logs = sum(_carried(v, log) for log in LOGS)
    if planks < _PLANKS_FOR_TABLE and not logs:
        if v.screen != NO_SCREEN:
            return close(v)
        drops = _drops(v, (*LOGS, OAK_PLANKS))
        return _pick_up(v, drops) if drops else _mine_log(v)
    if v.screen == NO_SCREEN:
        return Move(v.press(INVENTORY))
    if v.screen not in (INVENTORY_SCREEN, TABLE_SCREEN):
        return close(v)
    return click(v, *(_TABLE_BUTTON if planks >= _PLANKS_FOR_TABLE else _PLANKS_BUTTON))


def _made(item: int) -> Callable[[View], bool]:
    def done(v: View) -> bool:
        return int(v.w["made"][item]) > 0

    return done


def _smelt_beef(v: View) -> Move:
    if v.screen == FURNACE_SCREEN:
        return _tend_furnace(v)
    if v.screen != NO_SCREEN:
        return close(v)
    furnaces = [at for at in v.w["furnaces"].tolist() if at >= 0]
    at = work_at(v, furnaces) if furnaces else HOPELESS
    return at if isinstance(at, Move) else use(v, at)


def _tend_furnace(v: View) -> Move:
    w = v.w
    n = v.w["furnaces"].tolist().index(int(w["screen_at"]))
    cooked, beef = ITEM["cooked_beef"], ITEM["beef"]
    carried = int(w["carried"]) if int(w["carried_count"]) > 0 else 0
    if carried and carried != cooked:
        if FUEL[carried] > 0 and int(w["furnace_fuel"][n]) in (0, carried):
            return click(v, _FUEL, _FURNACE_ROW)
        if carried == beef:
            return click(v, _IN, _FURNACE_ROW)
        return close(v)
    if int(w["furnace_out_count"][n]) > 0:
        return click(v, _OUT, _FURNACE_ROW)
    if int(w["furnace_in_count"][n]) == 0:
        return click(v, *_COOK_BUTTON)
    if int(w["furnace_in"][n]) != beef:
        return click(v, _IN, _FURNACE_ROW)
    if int(w["furnace_burn"][n]) == 0 and int(w["furnace_fuel_count"][n]) == 0:
        fuels = [slot for slot, item in enumerate(v.items) if FUEL[item] > 0]
        if not fuels:
            return HOPELESS
        best = max(fuels, key=lambda slot: int(FUEL[v.items[slot]]))
        return click(v, *cell_of(best))
    return _hover(v, _OUT, _FURNACE_ROW)


def _hover(v: View, column: int, row: int) -> Move:
    return click(v, column, row, 0)


# sleep ------------------------------------------------------------------------------------------


def _sleep(v: View) -> Move:
    if int(v.w["sleep_ticks"]) > 0:
        return STAY
    beds = find_blocks(v, _IS_BED)
    at = work_at(v, beds) if beds else HOPELESS
    return at if isinstance(at, Move) else use(v, at)


def _slept(v: View) -> bool:
    return int(v.w["slept"]) > 0


SKILLS: Mapping[str, Skill] = {
    "hunt_sheep": _hunter(SHEEP),
    "combat_zombie": _hunter(ZOMBIE),
    "combat_skeleton": _hunter(SKELETON),
    "mine_log": Skill(_hands_free(_mine_log), _mined_log),
    "mine_stone": _miner(_IS_STONE, ITEM["cobblestone"]),
    "mine_iron_ore": _miner(_IS_ORE, ITEM["iron_ore"]),
    "climb_mountain": Skill(_hands_free(_climb), _climbed),
    "find_hut": Skill(_hands_free(_find_hut), _at_hut),
    "build_pillar": Skill(_hands_free(_build_pillar), _built),
    "craft_crafting_table": Skill(_craft_table, _made(ITEM["crafting_table"])),
    "smelt_beef": Skill(_smelt_beef, _made(ITEM["cooked_beef"])),
    "sleep_in_bed": Skill(_hands_free(_sleep), _slept),
}
"""Every skill by its name, which is that of its task."""
