"""One world as one record: everything that determines its future, and nothing else.

A world is ``SIZE`` x ``SIZE`` columns of ``HEIGHT`` blocks. Column ``(x, z)`` is contiguous: block
``(x, y, z)`` is at ``(x * SIZE + z) * HEIGHT + y``. The outermost columns are ``EDGE`` from top to
bottom, and the topmost layer is always air: a ray or a body that stays inside never needs a check
of bounds. ``y`` points up, a block at ``y`` fills ``y`` to ``y + 1``.

Angles are Minecraft's: ``yaw`` 0 looks along +z, 90 along -x; ``pitch`` -90 looks up, 90 down. Time
is counted in ticks, 20 per second; velocities are in blocks per tick.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.blocks import AIR, LIGHT, MAX_BLOCKS
from bridges.blockworld.rules.factors import DESERT, SAVANNA, SNOWY
from bridges.blockworld.rules.items import MAX_ITEMS

SIZE = 64
HEIGHT = 32
COLUMNS = SIZE * SIZE
BLOCKS = COLUMNS * HEIGHT

MAX_CREATURES = 16
MAX_ARROWS = 8
MAX_DROPS = 32
MAX_FURNACES = 4
MAX_LAMPS = 16
SLOTS = 36
HOTBAR = 9
ARMOUR = 4

TICKS_PER_SECOND = 20
DAY = 24_000
"""Ticks of a day: 0 is sunrise, 6000 noon, 12000 sunset, 18000 midnight."""

CLEAR, RAIN, THUNDER = range(3)

# What the player looks at besides the world.
NO_SCREEN, INVENTORY_SCREEN, TABLE_SCREEN, FURNACE_SCREEN = range(4)

# What a creature is doing.
IDLE, WANDER, FLEE, CHASE = range(4)

# Bits of the keys, in the order of VPT's and MineStudio's buttons.
# fmt: off
(
    ATTACK, BACK, FORWARD, JUMP, LEFT, RIGHT, SNEAK, SPRINT, USE, DROP, INVENTORY,
    HOTBAR_1, HOTBAR_2, HOTBAR_3, HOTBAR_4, HOTBAR_5, HOTBAR_6, HOTBAR_7, HOTBAR_8, HOTBAR_9,
) = (1 << bit for bit in range(20))
# fmt: on

AUTO_CLICK = 1 << 20
"""Bit of the keys, set by ``compact``: every step presses its keys again.

With it a held attack strikes whenever a creature is aimed at and the blow has full strength, and in
a screen attack and use click once a step; inventory and drop likewise. Digging continues."""
AUTO_JUMP = 1 << 21
"""Bit of the keys: walking against a block jumps onto it."""

CONTROLS = np.dtype([("keys", "u4"), ("pitch", "f4"), ("yaw", "f4")], align=True)
"""A player's controls in one step: the keys held, and the camera's turn in degrees.

The camera turns in the first tick of a step, keys are held through all of them."""

WORLD = np.dtype(
    [
        # the ground
        ("blocks", "u1", (BLOCKS,)),
        ("heights", "u1", (COLUMNS,)),  # 1 + y of the highest block that is not air
        ("pillars", "u1", (COLUMNS,)),  # blocks the player stacked on top of each column
        ("biome", "u1"),
        ("terrain", "u4"),
        ("n_lamps", "i4"),
        ("lamps", "i4", (MAX_LAMPS,)),  # blocks that give light, where they are
        ("furnaces", "i4", (MAX_FURNACES,)),  # where they are; -1 for none
        ("furnace_in", "u1", (MAX_FURNACES,)),  # items and how many
        ("furnace_in_count", "u1", (MAX_FURNACES,)),
        ("furnace_fuel", "u1", (MAX_FURNACES,)),
        ("furnace_fuel_count", "u1", (MAX_FURNACES,)),
        ("furnace_out", "u1", (MAX_FURNACES,)),
        ("furnace_out_count", "u1", (MAX_FURNACES,)),
        ("furnace_burn", "i2", (MAX_FURNACES,)),  # ticks the fire still burns
        ("furnace_cook", "i2", (MAX_FURNACES,)),  # ticks the piece has been in it
        ("hut", "i2", (4,)),  # x, z of the first and last column of the hut; -1 for none
        # the sky
        ("time", "i4"),
        ("weather", "u1"),
        ("weather_ticks", "i4"),  # until it changes
        ("tick", "i8"),  # since the reset
        ("random", "u8"),  # state of the generator of random events
        ("recipes", "u4"),  # a bit for each available recipe
        # the player
        ("x", "f8"),
        ("y", "f8"),  # of the feet
        ("z", "f8"),
        ("vx", "f8"),
        ("vy", "f8"),
        ("vz", "f8"),
        ("yaw", "f4"),
        ("pitch", "f4"),
        ("home_x", "f8"),  # where the player began
        ("home_y", "f8"),
        ("home_z", "f8"),
        ("on_ground", "u1"),
        ("in_water", "u1"),
        ("in_lava", "u1"),
        ("sneaking", "u1"),
        ("sprinting", "u1"),
        ("blocking", "u1"),  # holds up a shield
        ("dead", "u1"),
        ("fall", "f4"),  # blocks fallen so far
        ("jump_ticks", "i2"),  # until the next jump
        ("health", "f4"),  # half hearts, 20 at most
        ("food", "i2"),  # half drumsticks, 20 at most
        ("saturation", "f4"),
        ("exhaustion", "f4"),
        ("food_ticks", "i2"),  # since the last healing or starving
        ("air", "i2"),  # ticks of breath, 300 at most
        ("fire_ticks", "i2"),  # ticks that it still burns
        ("hurt_ticks", "i2"),  # ticks until it can be hurt again
        ("sleep_ticks", "i2"),  # ticks asleep; 0 awake
        ("keys_before", "u4"),  # keys held in the tick before
        # hands and inventory; slots 0 to 8 are the hotbar
        ("selected", "u1"),
        ("item", "u1", (SLOTS,)),
        ("count", "u1", (SLOTS,)),
        ("wear", "i2", (SLOTS,)),  # uses so far of a tool or armour
        ("armour", "u1", (ARMOUR,)),  # helmet, chestplate, leggings, boots
        ("armour_wear", "i2", (ARMOUR,)),
        ("off_item", "u1"),
        ("off_count", "u1"),
        ("off_wear", "i2"),
        ("blow_ticks", "f4"),  # since the last blow; full strength after the tool's time
        ("swing_ticks", "i2"),  # of the arm's movement, for the picture; 0 at rest
        ("eat_ticks", "i2"),  # ticks of eating so far
        ("use_ticks", "i2"),  # until the next use while the key is held
        ("dig_at", "i4"),  # block being broken; -1 for none
        ("dig_share", "f4"),  # how far it is broken, 0 to 1
        # the screen: cursor in cells, see ``screen``
        ("screen", "u1"),
        ("screen_at", "i4"),  # the table's or furnace's block
        ("cursor_x", "f4"),
        ("cursor_y", "f4"),
        ("carried", "u1"),  # item on the cursor
        ("carried_count", "u1"),
        ("carried_wear", "i2"),
        # creatures; kind 0 is a free place
        ("c_kind", "u1", (MAX_CREATURES,)),
        ("c_coat", "u1", (MAX_CREATURES,)),
        ("c_mode", "u1", (MAX_CREATURES,)),
        ("c_ground", "u1", (MAX_CREATURES,)),
        ("c_x", "f4", (MAX_CREATURES,)),
        ("c_y", "f4", (MAX_CREATURES,)),
        ("c_z", "f4", (MAX_CREATURES,)),
        ("c_vx", "f4", (MAX_CREATURES,)),
        ("c_vy", "f4", (MAX_CREATURES,)),
        ("c_vz", "f4", (MAX_CREATURES,)),
        ("c_yaw", "f4", (MAX_CREATURES,)),  # degrees, where it looks and walks
        ("c_health", "f4", (MAX_CREATURES,)),
        ("c_fall", "f4", (MAX_CREATURES,)),
        ("c_timer", "i2", (MAX_CREATURES,)),  # ticks until its next decision
        ("c_hurt", "i2", (MAX_CREATURES,)),  # ticks until it can be hurt again; drawn red
        ("c_blame", "i2", (MAX_CREATURES,)),  # ticks in which its death counts as the player's
        ("c_attack", "i2", (MAX_CREATURES,)),  # ticks until it can strike or shoot again
        ("c_burn", "i2", (MAX_CREATURES,)),  # ticks that it still burns
        # arrows; age 0 is a free place
        ("a_age", "i2", (MAX_ARROWS,)),
        ("a_x", "f4", (MAX_ARROWS,)),
        ("a_y", "f4", (MAX_ARROWS,)),
        ("a_z", "f4", (MAX_ARROWS,)),
        ("a_vx", "f4", (MAX_ARROWS,)),
        ("a_vy", "f4", (MAX_ARROWS,)),
        ("a_vz", "f4", (MAX_ARROWS,)),
        # dropped items; item 0 is a free place
        ("d_item", "u1", (MAX_DROPS,)),
        ("d_count", "u1", (MAX_DROPS,)),
        ("d_wear", "i2", (MAX_DROPS,)),
        ("d_age", "i2", (MAX_DROPS,)),
        ("d_x", "f4", (MAX_DROPS,)),
        ("d_y", "f4", (MAX_DROPS,)),
        ("d_z", "f4", (MAX_DROPS,)),
        ("d_vx", "f4", (MAX_DROPS,)),
        ("d_vy", "f4", (MAX_DROPS,)),
        ("d_vz", "f4", (MAX_DROPS,)),
        # what has happened since the reset, for signals
        ("kills", "u2", (8,)),  # by species
        ("mined", "u2", (MAX_BLOCKS,)),  # by block
        ("placed", "u2", (MAX_BLOCKS,)),
        ("made", "u2", (MAX_ITEMS,)),  # by item: crafted, or taken out of a furnace
        ("picked", "u2", (MAX_ITEMS,)),  # by item
        ("eaten", "u2"),
        ("slept", "u2"),
        ("pillar", "u2"),  # highest stack of its own blocks on which the player stood
        ("hurt", "f4"),  # damage taken
        ("dealt", "f4"),  # damage dealt to creatures
    ],
    align=True,
)
"""Everything about one world. Its bytes are its snapshot."""

SLIM = 0.6
"""Width of the player."""
STANDING = 1.8
"""Height of the player; 1.5 when sneaking."""
EYES = 1.62
"""Height of the eyes; 1.27 when sneaking."""
EYES_SNEAKING = 1.27

# Sines as in Minecraft: from a table, the same on every machine with any mathematics library.
_STEPS = 4096
_SINE = np.round(np.sin(np.arange(_STEPS) * (2 * np.pi / _STEPS)), 7).astype(np.float64)


@inner
def sine(degrees: float) -> float:
    """Returns the sine of an angle, from a table of 4096 steps (0.09 degrees)."""
    return _SINE[int(np.floor(degrees * (_STEPS / 360.0) + 0.5)) & (_STEPS - 1)]  # type: ignore[no-any-return]


@inner
def cosine(degrees: float) -> float:
    """Returns the cosine of an angle; see ``sine``."""
    return _SINE[int(np.floor(degrees * (_STEPS / 360.0) + 0.5 + _STEPS // 4)) & (_STEPS - 1)]  # type: ignore[no-any-return]


@inner
def mixed(key: Any) -> Any:
    """Returns a hash of 64 bits: one round of SplitMix64."""
    key = key + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@inner
def chance(w: World) -> float:
    """Returns a number in [0, 1) from the world's generator, and advances it."""
    w.random = w.random + np.uint64(0x9E3779B97F4A7C15)
    return np.float64(mixed(w.random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inner
def below(w: World, n: int) -> int:
    """Returns an integer from 0 to ``n - 1`` from the world's generator."""
    return int(chance(w) * n)


@inner
def place(x: int, y: int, z: int) -> int:
    """Returns the index of block ``(x, y, z)`` in ``blocks``; no check of bounds."""
    return (x * SIZE + z) * HEIGHT + y


@inner
def inside(x: int, y: int, z: int) -> bool:
    """True if a block is in the world, its edge included."""
    return 0 <= x < SIZE and 0 <= z < SIZE and 0 <= y < HEIGHT


@inner
def block_at(w: World, x: float, y: float, z: float) -> int:
    """Returns the block at a point; below the world and beside it ``EDGE``, above it air."""
    i, j, k = int(np.floor(x)), int(np.floor(y)), int(np.floor(z))
    if j >= HEIGHT:
        return 0
    if i < 0 or i >= SIZE or k < 0 or k >= SIZE or j < 0:
        return 1
    return int(w.blocks[(i * SIZE + k) * HEIGHT + j])


@inner
def set_block(w: World, at: int, block: int) -> None:
    """Sets a block, and updates heights and lamps. The only way to change a block."""
    before = w.blocks[at]
    w.blocks[at] = block
    column, y = at // HEIGHT, at % HEIGHT
    if block != AIR:
        if y >= w.heights[column]:
            w.heights[column] = y + 1
    elif y + 1 == w.heights[column]:
        while y > 0 and w.blocks[column * HEIGHT + y - 1] == AIR:
            y -= 1
        w.heights[column] = y
    if LIGHT[before] > 0:
        for n in range(w.n_lamps):
            if w.lamps[n] == at:
                w.n_lamps -= 1
                w.lamps[n] = w.lamps[w.n_lamps]
                break
    if LIGHT[block] > 0 and w.n_lamps < MAX_LAMPS:
        w.lamps[w.n_lamps] = at
        w.n_lamps += 1


@inner
def look(yaw: float, pitch: float) -> tuple[float, float, float]:
    """Returns the direction of a look, a unit vector."""
    flat = cosine(pitch)
    return -sine(yaw) * flat, -sine(pitch), cosine(yaw) * flat


@inner
def eye_height(w: World) -> float:
    """Returns the height of the player's eyes above its feet."""
    return EYES_SNEAKING if w.sneaking else EYES


# time and weather ---------------------------------------------------------------------------------

_CLEAR_TICKS = (12_000, 180_000)
_WET_TICKS = (12_000, 24_000)
"""Minimum and maximum ticks of fair weather, and of rain or thunder; Minecraft 1.16's."""
_THUNDER = 0.2
"""Share of storms with thunder; Minecraft uses a separate clock for it."""

NIGHT = (12_542, 23_459)
"""First and last tick of a clear day at which one can sleep; Minecraft 1.16's."""
WET_NIGHT = (12_010, 23_991)
"""The same in rain."""


@inner
def tick_clock(w: World) -> None:
    """Advances the time of day and the weather by one tick."""
    w.time = (whole(w.time) + 1) % DAY
    left = whole(w.weather_ticks) - 1
    if left <= 0:
        if whole(w.weather) == CLEAR:
            w.weather = THUNDER if chance(w) < _THUNDER else RAIN
            left = _WET_TICKS[0] + below(w, _WET_TICKS[1] - _WET_TICKS[0])
        else:
            left = clear_up(w)
    w.weather_ticks = left


@inner
def clear_up(w: World) -> int:
    """Makes the weather fair, and returns for how many ticks."""
    w.weather = CLEAR
    return _CLEAR_TICKS[0] + below(w, _CLEAR_TICKS[1] - _CLEAR_TICKS[0])


@inner
def can_sleep_now(w: World) -> bool:
    """True if it is night, or thunders, so that the player can sleep."""
    time, weather = whole(w.time), whole(w.weather)
    if weather == THUNDER:
        return True
    first, last = WET_NIGHT if weather == RAIN else NIGHT
    return first <= time <= last


@inner
def rained_on(w: World, column: int, y: float) -> bool:
    """True if rain falls on a point of a column: bad weather, open sky, and a climate with rain."""
    if whole(w.weather) == CLEAR or whole(w.heights[column]) > y:
        return False
    biome = whole(w.biome)
    return biome not in (DESERT, SAVANNA, SNOWY) and whole(w.heights[column]) < HEIGHT
