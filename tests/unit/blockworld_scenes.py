"""Worlds made by hand for the tests of blockworld: flat, empty, and nobody there but the player."""

from pathlib import Path

import numba
import numpy as np

from bridges import compilation
from bridges.blockworld.compiled import cache_folder
from bridges.blockworld.rules import blocks
from bridges.blockworld.rules.items import NUMBER
from bridges.blockworld.rules.species import HEALTH
from bridges.blockworld.rules.species import NUMBER as SPECIES
from bridges.blockworld.rules.world import CONTROLS, HEIGHT, SIZE, WORLD, set_block

MIDDLE = SIZE // 2 + 0.5


def compiled(function):
    """Compiles a function of a test, once for this version of the sources that it may call."""
    test = Path(function.__code__.co_filename)
    made = numba.njit(error_model="numpy")(function)
    compilation.keep_code(made, cache_folder("pictures") / f"tests-{compilation.digest([test])}")
    return made


def flat_world(ground=12, seed=1):
    """One world of grass whose feet stand at ``y == ground``, as an array of one record.

    The player stands in the middle, looks along +z, healthy and with empty bags, at noon.
    """
    worlds = np.zeros(1, WORLD)
    w = worlds[0]
    layers = w["blocks"].reshape(SIZE, SIZE, HEIGHT)
    layers[:, :, :ground] = blocks.STONE
    layers[:, :, 0] = blocks.BEDROCK
    layers[:, :, ground - 1] = blocks.GRASS_BLOCK
    heights = w["heights"].reshape(SIZE, SIZE)
    heights[:] = ground
    for border in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
        layers[border] = blocks.EDGE
        heights[border] = HEIGHT
    w["furnaces"], w["hut"], w["dig_at"], w["screen_at"] = -1, -1, -1, -1
    w["time"], w["weather_ticks"], w["random"] = 6_000, 100_000, seed
    w["x"], w["y"], w["z"] = w["home_x"], w["home_y"], w["home_z"] = MIDDLE, ground, MIDDLE
    w["health"], w["food"], w["saturation"], w["air"] = 20, 20, 5, 300
    w["recipes"] = 2**32 - 1
    w["on_ground"], w["blow_ticks"] = 1, 100
    return worlds


def index(x, y, z):
    """Where a block lies."""
    return (x * SIZE + z) * HEIGHT + y


def put(worlds, x, y, z, name):
    """Puts a block by its name, with heights and lamps."""
    set_block(worlds[0], index(x, y, z), blocks.NUMBER[name])


def block(worlds, x, y, z):
    """Name of a block."""
    return blocks.BLOCKS[int(worlds[0]["blocks"][index(x, y, z)])].name


def give(worlds, slot, name, count=1, wear=0):
    """Puts items into a slot."""
    w = worlds[0]
    w["item"][slot], w["count"][slot], w["wear"][slot] = NUMBER[name], count, wear


def creature(worlds, n, name, x, y, z):
    """Puts a creature into a place of the list."""
    w = worlds[0]
    w["c_kind"][n], w["c_health"][n] = SPECIES[name], HEALTH[SPECIES[name]]
    w["c_x"][n], w["c_y"][n], w["c_z"][n] = x, y, z
    w["c_ground"][n] = 1


def control(keys=0, pitch=0.0, yaw=0.0, width=1):
    """The same controls for each of ``width`` worlds."""
    made = np.zeros(width, CONTROLS)
    made["keys"], made["pitch"], made["yaw"] = keys, pitch, yaw
    return made
