"""The icons of the items: 16 x 16 texels each; for a block, a small cube made of its tiles.

Texels are packed as in ``textures``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.blocks import FORM, MAX_BLOCKS, PLANT
from bridges.blockworld.compiled import fast_inner
from bridges.blockworld.items import ARMOUR_PIECES, ARMOUR_TIERS, ITEMS, MAX_ITEMS, TIERS, TOOLS
from bridges.blockworld.items import NUMBER as ITEM
from bridges.blockworld.textures import FACES, TILES
from bridges.blockworld.tiles import TILE, packed

_Colour = tuple[int, int, int]

# Letters: ``h`` handle, ``m`` the tier's metal, ``d`` its shade, ``l`` its light.
_SHAPES = {
    "sword": """
    ..............mm .............mlm ............mlm. ...........mlm.. ..........mlm...
    .........mlm.... ........mlm..... .......mlm...... ..d...mlm....... ..dd.mlm........
    ...dddm......... ....dd.......... ...hhdd......... ..hh..dd........ hhh.............
    hh..............""",
    "pickaxe": """
    ................ .....dmmmm...... .......dmmmmlh.. ..........mmhm.. ..........hhmm..
    .........hhhmmd. ........hhh.mmm. .......hhh..mmm. ......hhh....mm. .....hhh.....mm.
    ....hhh......md. ...hhh.......d.. ..hhh........... .hhh............ hhh.............
    hh..............""",
    "axe": """
    ................ ........mm...... .......mllm.h... ......mllllmhh.. ......mlllmhhm..
    ......dmmmhhhlm. .......dmhhhmlm. ........hhh.mlm. .......hhh..mm.. ......hhh...d...
    .....hhh........ ....hhh......... ...hhh.......... ..hhh........... .hhh............
    hhh.............""",
    "shovel": """
    ................ ..........dmmm.. .........dmllmm. ........dmllllm. ........mlllllm.
    ........mllllmd. .........hmlmd.. ........hhhmd... .......hhh...... ......hhh.......
    .....hhh........ ....hhh......... ...hhh.......... ..hhh........... .hhh............
    hh..............""",
    "helmet": """
    ................ ................ ................ ....mmmmmmmm.... ...mllllllllm...
    ..mllllllllllm.. ..mllmmmmmmllm.. ..mlm......mlm.. ..mlm......mlm.. ..mlm......mlm..
    ..mmm......mmm.. ..ddd......ddd.. ................ ................ ................
    ................""",
    "chestplate": """
    ................ .mmmm......mmmm. mllllm....mllllm mlllllmmmmlllllm mllllllllllllllm
    mlmmllllllllmmlm mm.mllllllllm.mm ...mllllllllm... ...mllllllllm... ...mllllllllm...
    ...mllllllllm... ...mllllllllm... ...mllllllllm... ...dmmmmmmmmd... ................
    ................""",
    "leggings": """
    ................ ...mmmmmmmmmm... ...mllllllllm... ...mllllllllm... ...mlllmmlllm...
    ...mllm..mllm... ...mllm..mllm... ...mllm..mllm... ...mllm..mllm... ...mllm..mllm...
    ...mllm..mllm... ...mllm..mllm... ...mllm..mllm... ...dmmd..dmmd... ................
    ................""",
    "boots": """
    ................ ................ ................ ..mmm......mmm.. ..mlm......mlm..
    ..mlm......mlm.. ..mlm......mlm.. ..mlm......mlm.. ..mllm....mllm.. .mlllm....mlllm.
    mllllm....mllllm mmmmmm....mmmmmm dddddd....dddddd ................ ................
    ................""",
    "ingot": """
    ................ ................ ................ ................ ..........mmmm..
    .......mmmllllm. ....mmmlllllldm. ..mmlllllllddmm. .mllllllldddmmd. .mlllldddmmmddd.
    .mdddmmmmddddd.. .mmmmmdddddd.... ..ddddddd....... ................ ................
    ................""",
    "gem": """
    ................ ................ ................ ....mmmmmmmm.... ...mlllmmlllm...
    ..mlllmmmmmlldm. ..mllmmmmmmmddm. ..mmmmmmmmmmmmm. ...mmlmmmmmdmm.. ....mmlmmmdmm...
    .....mmlmdmm.... ......mmmmm..... .......mmm...... ........m....... ................
    ................""",
    "lump": """
    ................ ................ ................ .....mmmmm...... ...mmllllmmm....
    ..mlllllmmmmm... ..mlllmmmmmmdm.. .mmllmmmmmmmddm. .mmmmmmmmmmdddm. .mmmmmmdmmmdddm.
    ..mmmmmddmmddd.. ..mmdmmmmdddd... ...dddddddddd... .....dddddd..... ................
    ................""",
    "stick": """
    ................ ................ ............mm.. ...........mlm.. ..........mlm...
    .........mld.... ........mld..... .......mld...... ......mld....... .....mld........
    ....mld......... ...mld.......... ..mld........... ..mm............ ................
    ................""",
    "arrow": """
    ............dddd .............ddd ............hhdd ...........hh.dd ..........hh....
    .........hh..... ........hh...... .......hh....... ......hh........ .....hh.........
    ..m.hh.......... .mmhh........... .mlmm........... mlm.mm.......... llm..m..........
    ..mm............""",
    "meat": """
    ................ ................ ......mmmmm..... ....mmlllllmm... ...mllllllllmm..
    ..mlllhhlllllmd. ..mllhhhhllllmd. .mlllhhhhlllmmd. .mllllhhlllmmdd. .mlllllllmmmdd..
    .dmllllmmmmddd.. ..dmmmmmmddd.... ...dddddddd..... ................ ................
    ................""",
    "drumstick": """
    ................ .........mmmmm.. .......mmlllmmm. ......mlllllmmm. ......mllllmmmd.
    .....mmlllmmmmd. .....mmmmmmmmdd. .....mmmmmmmdd.. .....dmmmmddd... ....hhdmddd.....
    ...hhh.dd....... ..hhh........... hhhh............ hhh............. .hh.............
    ................""",
    "apple": """
    .........hh..... ........hh...... ........h....... ....mmm.h.mmm... ...mmmmmmmmmmm..
    ..mmllmmmmmmmmm. ..mlllmmmmmmmmd. ..mllmmmmmmmmmd. ..mlmmmmmmmmmmd. ..mmmmmmmmmmmdd.
    ..dmmmmmmmmmmdd. ...dmmmmmmmmdd.. ...ddmmmmmmdd... ....dddddddd.... ......d..d......
    ................""",
    "bread": """
    ................ ................ ..........mmmm.. ........mmlllmm. ......mmlllmlmm.
    .....mllmlllmmd. ....mlllmllmmdd. ...mllmlllmmdd.. ..mlllmlmmmdd... .mlmlllmmmdd....
    .mllmlmmmddd.... .mllmmmddd...... .dmmmddd........ ..dddd.......... ................
    ................""",
    "feather": """
    ................ ............mm.. ..........mmlm.. .........mllmm.. ........mlllm...
    .......mlllmm... ......mllllm.... .....mllllm..... ....mllllm...... ...mllllm.......
    ...mlllm........ ...mmmm......... ..hdd........... .hh............. hh..............
    ................""",
    "wheat": """
    ................ .....m....m..m.. ....ml.m.ml.m... ....mmlmlmmm.m.. .....mlmllmlmm..
    ......hmllmlm... ...m.hhmlmhm.... ....mlhhhhhm.... .....mhhhhm..... ......hhhh......
    .....hhhh.h..... ....hh.hh.h..... ...hh..hh..h.... ..hh...h....h... .hh....h........
    ................""",
    "shield": """
    ................ ...dddddddddd... ...dmmmllmmmmd.. ...dmmmllmmmmd.. ...dmmmllmmmmd..
    ...dmmmllmmmmd.. ...dmmmllmmmmd.. ...dmmmhhmmmmd.. ...dmmmhhmmmmd.. ...dmmmllmmmmd..
    ...dmmmllmmmmd.. ...dmmmllmmmmd.. ....dmmllmmmd... .....dmllmmd.... ......dddddd....
    ................""",
}
_TIER_COLOURS: dict[str, _Colour] = {
    "wooden": (150, 116, 66),
    "stone": (140, 140, 140),
    "iron": (216, 216, 216),
    "golden": (238, 206, 60),
    "diamond": (64, 212, 196),
    "leather": (160, 92, 54),
    "chainmail": (120, 124, 130),
}
_OTHERS: dict[str, tuple[str, _Colour]] = {
    "stick": ("stick", (134, 98, 56)),
    "coal": ("lump", (48, 48, 50)),
    "charcoal": ("lump", (74, 64, 54)),
    "iron_ingot": ("ingot", (206, 206, 206)),
    "gold_ingot": ("ingot", (244, 206, 60)),
    "diamond": ("gem", (84, 222, 214)),
    "leather": ("lump", (176, 96, 52)),
    "feather": ("feather", (226, 226, 226)),
    "string": ("stick", (226, 226, 226)),
    "bone": ("stick", (232, 230, 210)),
    "arrow": ("arrow", (150, 150, 152)),
    "wheat": ("wheat", (214, 182, 74)),
    "flint": ("lump", (72, 72, 78)),
    "apple": ("apple", (214, 36, 36)),
    "bread": ("bread", (184, 128, 52)),
    "beef": ("meat", (196, 44, 40)),
    "cooked_beef": ("meat", (124, 74, 44)),
    "porkchop": ("meat", (240, 140, 140)),
    "cooked_porkchop": ("meat", (202, 154, 96)),
    "mutton": ("meat", (212, 76, 66)),
    "cooked_mutton": ("meat", (150, 92, 60)),
    "chicken": ("drumstick", (236, 190, 178)),
    "cooked_chicken": ("drumstick", (196, 118, 56)),
    "rotten_flesh": ("meat", (150, 76, 44)),
    "spider_eye": ("lump", (164, 30, 50)),
    "shield": ("shield", (124, 92, 52)),
}


def _drawn(shape: str, colour: _Colour) -> NDArray[np.int32]:
    letters = {
        "m": colour,
        "l": tuple(min(255, int(c * 1.22) + 14) for c in colour),
        "d": tuple(int(c * 0.62) for c in colour),
        "h": {"meat": (240, 226, 200), "drumstick": (240, 234, 220), "apple": (96, 68, 34)}.get(
            shape, (116, 84, 46)
        ),
    }
    picture = np.zeros((16, 16, 4))
    rows = _SHAPES[shape].split()
    assert len(rows) == 16
    for row, line in enumerate(rows):
        assert len(line) == 16, (shape, line)
        for column, letter in enumerate(line):
            if letter != ".":
                picture[row, column] = (*letters[letter], 1)
    return packed(picture)


def _icons() -> NDArray[np.int32]:
    made = np.zeros((MAX_ITEMS - MAX_BLOCKS, 256), np.int32)
    for tier, colour in _TIER_COLOURS.items():
        kinds = (TOOLS if tier in TIERS else ()) + (ARMOUR_PIECES if tier in ARMOUR_TIERS else ())
        for kind in kinds:
            made[ITEM[f"{tier}_{kind}"] - MAX_BLOCKS] = _drawn(kind, colour)
    for name, (shape, colour) in _OTHERS.items():
        made[ITEM[name] - MAX_BLOCKS] = _drawn(shape, colour)
    missing = [i.name for n, i in enumerate(ITEMS[MAX_BLOCKS:]) if not made[n].any()]
    assert not missing, missing
    return made.reshape(-1)


ICONS = _icons()
"""Texels of the items that are not blocks, by ``(item - MAX_BLOCKS) * 256 + row * 16 + column``."""


@fast_inner
def shaded(texel: int, share: int) -> int:
    """Returns a texel with its brightness times so many 256ths."""
    red, green, blue = (texel >> 16) & 255, (texel >> 8) & 255, texel & 255
    return (
        (texel & (1 << 24))
        | ((red * share >> 8) << 16)
        | ((green * share >> 8) << 8)
        | (blue * share >> 8)
    )


@fast_inner
def icon_texel(item: int, u: float, v: float) -> int:
    """Returns the texel of an item's icon at a position in [0, 1) x [0, 1); 0 where it is empty."""
    if item >= MAX_BLOCKS:
        return int(ICONS[(item - MAX_BLOCKS) * 256 + int(v * 16.0) * 16 + int(u * 16.0)])
    if FORM[item] == PLANT:
        return int(TILES[FACES[item * 3 + 1] * TILE + int(v * 16.0) * 16 + int(u * 16.0)])
    x = u - 0.5
    right, left = 2.0 * v + x, 2.0 * v - x
    if 0.0 <= right < 1.0 and 0.0 <= left < 1.0:
        at = int(left * 16.0) * 16 + int(right * 16.0)
        return int(TILES[FACES[item * 3] * TILE + at])
    across = 2.0 * x + 1.0 if x < 0.0 else 2.0 * x
    edge = 0.25 + 0.25 * across if x < 0.0 else 0.5 - 0.25 * across
    down = (v - edge) * 2.0
    if not 0.0 <= down < 1.0:
        return 0
    at = int(down * 16.0) * 16 + int(across * 16.0)
    return shaded(int(TILES[FACES[item * 3 + 1] * TILE + at]), 200 if x < 0.0 else 150)
