"""The appearance of blocks, items and creatures, derived by rules from their names.

Colours come from the words in a name (its wood, stone, dye), patterns from the kind of thing; a
name without a rule gets a colour derived from the name. So every name of every version has an
appearance, and none is taken from the game's pictures.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer import rgb_tiles as t
from bridges.mineflayer.rgb_tiles import Colour, Tile
from rollout.yaml12 import load_yaml

DYES: dict[str, Colour] = {
    "white": (232, 236, 236), "orange": (240, 118, 20), "magenta": (188, 68, 178),
    "light_blue": (58, 174, 216),
    "yellow": (248, 198, 40), "lime": (112, 184, 26), "pink": (236, 140, 170), "gray": (62, 68, 72),
    "light_gray": (142, 142, 134), "cyan": (22, 138, 144), "purple": (122, 42, 172),
    "blue": (54, 58, 156),
    "brown": (114, 72, 40), "green": (84, 110, 28), "red": (160, 40, 34), "black": (22, 22, 26),
}  # fmt: skip
WOODS: dict[str, tuple[Colour, Colour]] = {
    "dark_oak": ((66, 43, 20), (60, 46, 26)), "oak": ((164, 132, 80), (108, 84, 50)),
    "spruce": ((114, 84, 48), (60, 38, 18)), "birch": ((194, 178, 122), (216, 214, 206)),
    "jungle": ((160, 114, 80), (86, 68, 26)), "acacia": ((168, 90, 50), (104, 96, 88)),
    "crimson": ((101, 48, 70), (92, 26, 30)), "warped": ((43, 104, 99), (58, 60, 78)),
}  # fmt: skip
"""Planks and bark."""
STONES: dict[str, Colour] = {
    "end_stone": (220, 222, 160), "red_sandstone": (184, 98, 30), "sandstone": (218, 204, 154),
    "blackstone": (44, 38, 46),
    "cobblestone": (130, 130, 130), "deepslate": (80, 80, 84), "granite": (150, 104, 86),
    "diorite": (190, 190, 192),
    "andesite": (136, 138, 138), "netherrack": (100, 40, 40), "nether_brick": (46, 24, 28),
    "basalt": (76, 76, 80),
    "prismarine": (98, 156, 146), "purpur": (170, 126, 170), "quartz": (236, 230, 224),
    "obsidian": (22, 16, 34),
    "terracotta": (152, 94, 68), "bedrock": (84, 84, 84), "stone": (126, 126, 126),
    "brick": (152, 98, 84),
}  # fmt: skip
METALS: dict[str, Colour] = {
    "netherite": (70, 62, 64), "diamond": (100, 232, 224), "emerald": (46, 204, 96),
    "gold": (248, 212, 64),
    "iron": (218, 218, 218), "lapis": (38, 74, 168), "redstone": (196, 26, 10),
    "coal": (36, 36, 38),
    "copper": (192, 108, 80), "quartz": (234, 226, 218), "wooden": (140, 106, 60),
    "leather": (150, 90, 54),
    "chainmail": (150, 150, 156),
}  # fmt: skip
SOILS: dict[str, Colour] = {
    "coarse_dirt": (118, 84, 58), "dirt": (134, 96, 67), "farmland": (110, 74, 46),
    "soul_sand": (82, 62, 50),
    "soul_soil": (76, 58, 46), "red_sand": (190, 102, 32), "sand": (219, 207, 160),
    "gravel": (134, 127, 124),
    "clay": (160, 166, 178), "mycelium": (112, 98, 102), "podzol": (110, 76, 34),
    "path": (150, 122, 66),
    "snow": (244, 250, 252), "packed_ice": (142, 180, 250), "blue_ice": (116, 168, 252),
    "ice": (160, 194, 246),
    "glowstone": (200, 160, 96), "sea_lantern": (200, 222, 214), "magma": (170, 74, 24),
    "slime": (110, 190, 92),
    "honey": (240, 160, 40), "hay": (196, 164, 40), "sponge": (196, 192, 74),
    "bone": (228, 224, 204),
    "shroomlight": (240, 150, 72), "wart": (116, 6, 6), "lava": (218, 94, 18), "tnt": (200, 60, 40),
}  # fmt: skip
PETALS: dict[str, tuple[Colour, Colour]] = {
    "dandelion": ((252, 222, 40), (240, 180, 20)), "poppy": ((214, 36, 30), (50, 20, 20)),
    "blue_orchid": ((46, 172, 240), (240, 240, 140)), "allium": ((184, 120, 228), (150, 90, 200)),
    "azure_bluet": ((230, 236, 240), (246, 220, 90)), "red_tulip": ((204, 42, 26), (240, 90, 50)),
    "orange_tulip": ((228, 124, 32), (250, 170, 60)),
    "white_tulip": ((236, 240, 240), (220, 230, 220)),
    "pink_tulip": ((230, 170, 200), (250, 210, 230)),
    "oxeye_daisy": ((240, 240, 240), (240, 206, 40)),
    "cornflower": ((70, 100, 220), (40, 60, 160)),
    "lily_of_the_valley": ((244, 248, 246), (220, 240, 220)),
    "wither_rose": ((30, 28, 26), (60, 54, 40)), "sunflower": ((248, 208, 40), (104, 66, 20)),
    "lilac": ((200, 140, 196), (170, 104, 168)), "rose_bush": ((200, 30, 34), (130, 14, 20)),
    "peony": ((232, 178, 220), (214, 140, 200)),
}  # fmt: skip
GREEN: Colour = (124, 180, 78)
"""Of grass in plains, relative to which other biomes' colours are given."""
FOLIAGE: Colour = (90, 150, 52)
BIOME_GREENS: tuple[tuple[str, Colour], ...] = (
    ("desert|badlands|savanna", (184, 178, 82)), ("jungle", (84, 190, 60)),
    ("swamp", (106, 112, 57)),
    ("snowy|frozen|ice", (128, 180, 151)), ("taiga", (130, 178, 128)),
    ("mountain|hills|beach|ocean|river", (138, 182, 112)),
    ("dark_forest", (80, 122, 50)), ("forest", (116, 184, 84)), ("plains", GREEN),
)  # fmt: skip


def number_of(name: str) -> int:
    """Returns a hash of a name, 0 to 65535."""
    return int.from_bytes(hashlib.blake2s(name.encode(), digest_size=2).digest(), "little")


def own_colour(name: str) -> Colour:
    """Returns the colour of a name without a rule: a muted colour derived from the name."""
    n = number_of(name)
    return (80 + n % 120, 80 + n // 7 % 120, 80 + n // 53 % 120)


def _word(name: str, table: Mapping[str, Any]) -> Any:
    """Returns the entry of the first word of a table that is in a name, longest words first."""
    for word in sorted(table, key=len, reverse=True):
        if re.search(rf"(^|_){word}(s|en)?(_|$)", name):
            return table[word]
    return None


def colour_of(name: str) -> Colour:
    """Returns the main colour of a block or item, by the words in its name."""
    for table in (METALS, DYES, SOILS, STONES):
        found = _word(name, table)
        if found is not None:
            return found  # type: ignore[no-any-return] # of these tables
    wood = _word(name, WOODS)
    if wood is not None:
        return wood[1 if re.search("log|wood|stem|hyphae", name) else 0]  # type: ignore[no-any-return]
    return own_colour(name)


def tint_of(biome: str) -> tuple[float, float, float]:
    """Returns the factors from the grass and leaf colours of plains to another biome's."""
    for pattern, green in BIOME_GREENS:
        if re.search(pattern, biome):
            return (green[0] / GREEN[0], green[1] / GREEN[1], green[2] / GREEN[2])
    return (1.0, 1.0, 1.0)


def _ground(name: str, seed: int, snowy: bool) -> tuple[Tile, Tile, Tile] | None:
    dirt = t.plain(SOILS["dirt"], 11, 0.24)
    if name in {"grass_block", "mycelium", "podzol", "crimson_nylium", "warped_nylium"}:
        tinted = name == "grass_block" and not snowy
        colour = GREEN if name == "grass_block" else own_colour(name)
        colour = SOILS["snow"] if snowy else SOILS.get(name, colour)
        top = t.plain(colour, 21, 0.26, tinted=tinted)
        return top, t.turf(dirt, top, 31), dirt
    if re.search("path$", name):
        top = t.plain(SOILS["path"], 23, 0.2)
        return top, t.turf(dirt, top, 33, 1), dirt
    if name == "farmland":
        return t.dim(t.plain(SOILS["farmland"], 24, 0.2), t.ROW % 4 == 0, 0.7), dirt, dirt
    return None


def _wooden(name: str, seed: int) -> tuple[Tile, Tile, Tile] | None:
    wood = _word(name, WOODS)
    if wood is None or "leaves" in name:
        return None
    board, rind = wood
    if re.search("_(log|wood|stem|hyphae)$", name):
        stripped = name.startswith("stripped")
        rough = t.birch_bark if "birch" in name and not stripped else t.bark
        side = rough(board if stripped else rind, seed)
        whole = name.endswith(("wood", "hyphae"))
        end = side if whole else t.rings(board, board if stripped else rind, seed + 40)
        return end, side, end
    tile = t.planks(board, 61)
    if name.endswith("_door"):
        tile = t.framed(tile, (board[0] * 7 // 10, board[1] * 7 // 10, board[2] * 7 // 10))
    return tile, tile, tile


def _same(tile: Tile) -> tuple[Tile, Tile, Tile]:
    return tile, tile, tile


def _rocks(name: str, seed: int) -> Tile | None:  # noqa: PLR0911 - a list of rules
    """Returns the tile of rock, brick, ore, metal, wool and similar materials."""
    colour = colour_of(name)
    if name.endswith("_ore"):
        base = STONES["netherrack"] if "nether" in name else STONES["stone"]
        return t.ore(base, colour, seed)
    if re.search("cobble|mossy_stone_wall", name):
        tile = t.stones(STONES["cobblestone"], 45)
        moss = (t.grain(46)[::2, ::2].repeat(2, 0).repeat(2, 1) < 0.4) & ("mossy" in name)
        return t.paint(tile, moss, (88, 112, 58))
    if name == "gravel":
        return t.stones(colour, 15, 20, 0.8)
    if re.search("brick", name):
        dark = (colour[0] * 7 // 10, colour[1] * 7 // 10, colour[2] * 7 // 10)
        return t.bricks(
            colour, dark if name != "bricks" else (168, 158, 150), seed, 8 if "stone" in name else 4
        )
    if name == "bedrock":
        return t.stones(colour, 5, 13, 0.5)
    if re.search("_wool|carpet|concrete|terracotta|_bed$|banner|candle", name):
        return t.plain(colour, 19, 0.05 if "concrete" in name else 0.14)
    if re.search("sandstone|smooth|polished|quartz|purpur|prismarine", name):
        tile = t.plain(colour, seed, 0.1)
        return t.dim(tile, np.isin(t.ROW, (5, 11, 15)), 0.86) if "smooth" not in name else tile
    if _word(name, METALS) is not None and name.endswith("_block"):
        bright = (min(colour[0] + 20, 255), min(colour[1] + 20, 255), min(colour[2] + 20, 255))
        return t.framed(t.plain(colour, 27, 0.08), bright)
    return None


def _plants(name: str, props: Mapping[str, Any], seed: int) -> Tile | None:  # noqa: PLR0911 - a list of rules
    """Returns the tile of a plant that is drawn as two crossed planes."""
    if name in PETALS:
        petal, heart = PETALS[name]
        if "half" in props and props["half"] == "lower":
            return t.blades((70, 120, 50), seed, 16, tinted=False)
        return t.flower(petal, heart, seed, high=6)
    age = int(props.get("age", 7))
    if re.search("^(wheat|carrots|potatoes|beetroots)$", name):
        share = age / (3 if name == "beetroots" else 7)
        ripe = (206, 176, 66) if name == "wheat" else (70, 150, 40)
        colour = ripe if share == 1.0 else (84, 156, 44)
        tile = t.blades(colour, seed, 4 + int(11 * share), tinted=False)
        roots = {"carrots": (240, 130, 20), "potatoes": (200, 166, 90), "beetroots": (164, 40, 44)}
        spots = (t.ROW > 12) & (t.grain(seed) < 0.3) & (share == 1.0) & (name in roots)
        return t.paint(tile, spots, roots.get(name, ripe))
    if re.search("mushroom$|fungus$", name):
        red = "red" in name or "crimson" in name
        return t.mushroom((196, 36, 32) if red else (148, 110, 82), 0 if red else 1)
    if re.search("dead_bush|roots$", name):
        return t.bush((134, 98, 52) if "dead" in name else own_colour(name), seed)
    if re.search("sapling|bush|azalea", name):
        wood = _word(name, WOODS)
        tile = t.leaves((70, 124, 46), seed, holes=0.35)
        tile[(np.hypot(t.ROW - 7, t.COLUMN - 7.5) > 6) & (t.ROW < 12)] = 0
        tile[12:] = 0
        berries = (t.grain(seed + 9) < 0.12) & (tile[..., 3] > 0) & ("berry" in name) & (age > 1)
        tile = t.paint(tile, berries, (200, 30, 40))
        return t.paint(
            tile, (t.ROW > 9) & (np.abs(t.COLUMN - 7.5) < 1), wood[1] if wood else (90, 70, 40)
        )
    if re.search("sugar_cane|bamboo", name):
        return t.dim(t.blades((140, 196, 100), seed, 16, tinted=False), t.ROW % 6 == 0, 0.7)
    if re.search("kelp|seagrass", name):
        return t.blades((60, 130, 60), seed, 16, tinted=False)
    if "cobweb" in name:
        lines = (
            (t.ROW == t.COLUMN) | (t.ROW + t.COLUMN == 15) | (np.abs(t.ROW - 7.5).astype(int) == 4)
        )
        return t.paint(t.empty(), lines, (230, 230, 230))
    if "fire" in name and "campfire" not in name:
        return t.blades(
            (90, 210, 220) if "soul" in name else (255, 170, 40), seed, 15, tinted=False
        )
    if "coral" in name or "wart" in name or "vines" in name:
        return t.bush(own_colour(name) if "coral" in name else (120, 30, 40), seed)
    return None


@functools.cache
def _drawings() -> Mapping[str, Any]:
    return load_yaml(Path(__file__).with_name("drawings.yaml"), ours=True)  # type: ignore[no-any-return] # a table


@functools.cache
def icon_of(name: str) -> Tile | None:
    """Returns the drawing of an item; None for one that looks like its block."""
    for pattern, shape, *colours in _drawings()["items"]:
        if re.search(pattern, name):
            main = t.hexed(colours[0]) if colours else colour_of(name)
            return t.rimmed(t.drawn(_drawings()["shapes"][shape], main, t.empty()))
    return None


def _made(name: str, props: Mapping[str, Any], seed: int) -> dict[str, Tile] | None:
    """Returns the tiles of a block that is drawn: furnaces, chests, tables, rails."""
    row: Any = next((row for row in _drawings()["blocks"] if re.search(row[0], name)), None)
    if row is None:
        return None
    _, material, strokes = row
    if re.fullmatch("[0-9a-f]{6}|0", material):
        main = t.hexed(material.zfill(6))
        base = t.empty() if material == "0" else t.plain(main, seed, 0.12)
        tiles = {"side": base, "top": base}
    else:
        main, tiles = colour_of(material), _tiles(material, ())
    side = t.drawn(strokes.get("side", ()), main, tiles["side"])
    front = t.drawn(
        strokes.get("front", ()), main, side if "front" not in strokes else tiles["side"]
    )
    top = t.drawn(strokes.get("top", ()), main, tiles.get("top", side))
    if props.get("lit"):
        front = t.drawn(strokes.get("lit", ()), main, front)
        side = side if "front" in strokes else front
    return {"side": side, "top": top, "front": front}


def _simple(name: str, props: Mapping[str, Any], seed: int) -> Tile:  # noqa: PLR0911 - a list of rules
    """Returns the tile of every name without another rule."""
    row, column = t.ROW, t.COLUMN
    if name.endswith("leaves"):
        tinted = not re.search("birch|spruce", name)
        colour = {"birch_leaves": (122, 156, 74), "spruce_leaves": (72, 110, 74)}.get(name, FOLIAGE)
        return t.leaves(colour, seed, tinted=tinted)
    if "glass" in name:
        dye = _word(name, DYES)
        return t.glass((206, 226, 232)) if dye is None else t.framed(t.glass(dye), dye)
    if name == "cactus":
        tile = t.dim(t.plain((86, 140, 54), 65, 0.14), column % 4 == 0, 0.72)
        return t.paint(tile, (column % 4 == 2) & (row % 4 == 1), (226, 228, 190))
    if name == "melon":
        return t.dim(t.plain((116, 152, 34), 63, 0.2), column % 4 < 2, 0.78)
    if "lava" in name or "magma" in name:
        wave = np.sin(row * 0.9 + 2.0 * np.sin(column * 0.5)) + t.grain(68) - 0.5
        tile = t.plain((220, 92, 18), 67, 0.2)
        return t.paint(t.paint(tile, wave > 0.7, (255, 206, 70)), wave < -0.9, (168, 46, 10))
    if "torch" in name:
        return t.torch(
            (90, 220, 230)
            if "soul" in name
            else (220, 50, 30)
            if "redstone" in name
            else (255, 190, 60),
            71,
        )
    if re.search("lantern|glowstone|shroomlight|lamp|end_rod|beacon", name):
        return t.paint(t.plain(colour_of(name), seed, 0.2), t.grain(seed) > 0.6, (255, 232, 170))
    if name == "vine":
        return t.paint(t.empty(), t.grain(seed) < 0.6, (84, 128, 44))
    return t.plain(colour_of(name), seed, 0.16)


@functools.lru_cache(maxsize=4096)
def _tiles(name: str, items: tuple[tuple[str, Any], ...]) -> dict[str, Tile]:
    props = dict(items)
    seed = 100 + number_of(name) % 5000
    made = _made(name, props, seed)
    if made is not None:
        return made
    plant = _plants(name, props, seed)
    if plant is not None:
        return {"side": plant}
    if name in {"grass", "short_grass", "fern", "tall_grass", "large_fern"}:
        upper = props.get("half") == "upper"
        return {"side": t.blades(GREEN, seed, 12 if upper else 16 if "half" in props else 11)}
    three = _ground(name, seed, bool(props.get("snowy"))) or _wooden(name, seed)
    if three is None:
        rock = _rocks(name, seed)
        three = _same(rock if rock is not None else _simple(name, props, seed))
    return {"top": three[0], "side": three[1], "bottom": three[2]}


_FRONTS: dict[str, int] = {"east": 0, "west": 1, "up": 2, "down": 3, "south": 4, "north": 5}


def faces_of(name: str, props: Mapping[str, Any]) -> Sequence[Tile]:
    """Returns the tiles of a block's faces: +x, -x, +y, -y, +z, -z.

    Args:
        name: of the block.
        props: of its state, those that are visible: ``facing``, ``axis``, ``lit``, ``age``...
    """
    kept = {
        key: value
        for key, value in props.items()
        if key not in {"facing", "axis", "level", "layers"}
    }
    tiles = _tiles(name, tuple(sorted(kept.items())))
    side = tiles["side"]
    top, bottom = tiles.get("top", side), tiles.get("bottom", tiles.get("top", side))
    faces = [side, side, top, bottom, side, side]
    axis = props.get("axis")
    if axis in {"x", "z"}:
        lying = np.swapaxes(side, 0, 1)
        ends = (0, 1) if axis == "x" else (4, 5)
        faces = [top if n in ends else (lying if axis == "x" else side) for n in range(6)]
    front = _FRONTS.get(str(props.get("facing")))
    if front is not None and "front" in tiles:
        faces[front] = tiles["front"]
    return faces


def atlas_of(tiles: Sequence[Tile]) -> NDArray[np.int32]:
    """Returns tiles in all their sizes, one after another."""
    return np.concatenate([t.packed(tile) for tile in tiles])
