"""The atlases: every picture has the bytes that it had when it was drawn by code."""

import hashlib
import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

from bridges import atlas, blockworld, mineflayer
from bridges.atlas import Atlas, read_tiles
from bridges.blockworld.pictures import textures
from bridges.blockworld.rules.blocks import MAX_BLOCKS
from bridges.blockworld.rules.items import ITEMS
from bridges.mineflayer.pictures.models import _bodies, model_of
from bridges.mineflayer.pictures.palette import faces_of, icon_of

FILES = [
    Path(package.__file__).parent / "data" / name
    for package, name in ((blockworld, "textures.png"), (mineflayer, "tiles.png"))
]


def table(path):
    return json.loads(path.with_suffix(".json").read_text())


def blocks():
    """Tiles of Minecraft's blocks in every state that has a picture of its own, in two facings."""
    for key in table(FILES[1])["blocks"]:
        name, prop, value = re.fullmatch(r"(\w+)(?:\[(\w+)=(\w+)\])?", key).groups()
        for facing in ("north", "up"):
            yield from faces_of(name, {"facing": facing, **({prop: value} if prop else {})})
        if name.endswith("_log"):
            yield from faces_of(name, {"axis": "x"})


def bodies():
    """Tiles of creatures: every kind, sheep in all colours, players in some, an unknown kind."""
    kinds = [(name, 0) for name in _bodies()["kinds"]] + [("of_a_mod", 0)]
    for name, variant in [*kinds, *(("sheep", n) for n in range(32)), ("player", 0x3C)]:
        for part in model_of(name, 0.9, 1.4, variant, ""):
            yield from (part.side, part.front, part.top)


@pytest.mark.parametrize(
    ("pictures", "digest"),
    [
        pytest.param(lambda: [textures.TILES], "12317bdf59c9e64f", id="blockworld textures"),
        pytest.param(lambda: [textures.FACES], "9647caf27f8bed13", id="blockworld faces"),
        pytest.param(lambda: [textures.CRACKS], "8dff275f3dc2598c", id="blockworld cracks"),
        pytest.param(lambda: [textures.ICONS], "800a5c3b0194c7ec", id="blockworld icons"),
        pytest.param(lambda: [textures.SKINS], "75d269cd0c36757a", id="blockworld skins"),
        pytest.param(blocks, "e788e753268961f6", id="mineflayer blocks"),
        pytest.param(
            lambda: map(icon_of, table(FILES[1])["items"]),
            "cb323400871647eb",
            id="mineflayer items",
        ),
        pytest.param(bodies, "183861215b48c0e8", id="mineflayer bodies"),
    ],
)
def test_pictures_have_their_bytes(pictures, digest):
    content = b"".join(np.asarray(each, "<i4").tobytes() for each in pictures())
    assert hashlib.sha256(content).hexdigest()[:16] == digest


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_tile_is_used_and_every_used_tile_is_there(path):
    rows = table(path)
    used = {n for row in rows["blocks"].values() for n in row} | {*rows.get("items", {}).values()}
    tiles = Atlas(path).tiles
    assert used == set(range(max(used) + 1))
    assert max(used) < len(tiles)
    assert not tiles[max(used) + 1 :].any()


def test_every_item_of_blockworld_has_an_icon():
    drawn = textures.ICONS.reshape(-1, 256).any(1)
    assert all(drawn[: len(ITEMS) - MAX_BLOCKS])
    assert not any(drawn[len(ITEMS) - MAX_BLOCKS :])


def test_a_state_has_its_tiles_and_other_states_those_of_the_name(tmp_path):
    cells = np.zeros((32, 24, 4), np.uint8)
    cells[16:, :, :] = (1, 2, 3, 255)
    cv2.imwrite(str(tmp_path / "a.png"), cells)
    rows = {"oven": [0, 0, 0, 1], "oven[lit=true]": [1], "log": [0, 1]}
    (tmp_path / "a.json").write_text(json.dumps({"blocks": rows}))
    made = Atlas(tmp_path / "a.png")
    assert made.faces("oven", {"facing": "up", "lit": False}) == [0, 0, 0, 1]
    assert made.faces("oven", {"facing": "up", "lit": True}) == [1, 1, 1]
    assert made.faces("log", {}) == [0, 1, 1]
    assert made.faces("loom", {}) is None
    assert made.tiles.shape == (2, atlas.TEXELS)
    assert (made.tiles[1] == 0x1030201).all()


@pytest.mark.parametrize("shape", [(16, 16, 3), (16, 17, 4), None])
def test_another_picture_is_refused_with_its_name(tmp_path, shape):
    path = tmp_path / "a.png"
    path.write_bytes(b"no picture")
    if shape:
        cv2.imwrite(str(path), np.zeros(shape, np.uint8))
    with pytest.raises(ValueError, match=r"a\.png: expected RGBA in tiles of 16 x 16, got"):
        read_tiles(path, 16, 16)
