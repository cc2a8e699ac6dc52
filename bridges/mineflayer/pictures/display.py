"""What lies over the picture of a player: hotbar, health, hands, and the open window.

The shapes are ``bridges.hud``'s; the game's ``display.js`` says what there is and where.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridges.atlas import SIDE
from bridges.hud import (
    BAR,
    BLOCK,
    CANVAS,
    FILL,
    GLYPH,
    GLYPHS,
    HOTBAR,
    HUD,
    LOOK,
    POINTER,
    ROW,
    SHIELD,
    STACK,
    STICK,
    THING,
    WEAR,
    WHITE,
    draw_crosshair,
    draw_display,
    draw_hands,
    draw_rows,
)
from bridges.mineflayer.pictures.compiled import kernel
from bridges.mineflayer.pictures.looks import Looks
from bridges.mineflayer.pictures.palette import faces_of, icon_of

_CANVAS = np.dtype([*CANVAS], align=True)
_TILE = SIDE * SIDE
_DIGITS_FROM = 12
"""Width of a cell in pixels from which three by five dots can be read in it."""

# icons --------------------------------------------------------------------------------------------

_STICKS = re.compile(
    r"_(sword|pickaxe|axe|shovel|hoe|rod|on_a_stick)$|^(stick|bone|arrow|trident|.*_arrow)$"
)
_FLAT = re.compile(r"pane$|iron_bars|chain$|ladder|vine$|rail$")
_HEIGHTS: tuple[tuple[str, int], ...] = (
    ("_slab$", 8), ("carpet$|pressure_plate$", 1), ("trapdoor$", 3), ("^snow$", 2),
    ("daylight_detector|^cake$", 7), ("enchanting_table|_stonecutter|^stonecutter$", 12),
)  # fmt: skip
"""Heights of blocks that are not whole, in sixteenths."""


class Icons(NamedTuple):
    """The icons of all items as compiled code reads them; see ``bridges.hud``."""

    texels: NDArray[np.int32]
    looks: NDArray[np.int32]


@lru_cache(maxsize=4)
def _icons(items: tuple[str | None, ...], flat: frozenset[str]) -> Icons:
    tiles: dict[bytes, int] = {bytes(4 * _TILE): 0}

    def first(tile: NDArray[np.int32]) -> int:
        return tiles.setdefault(np.asarray(tile[:_TILE], np.int32).tobytes(), len(tiles)) * _TILE

    looks = np.zeros((len(items), LOOK), np.int32)
    for number, name in enumerate(items):
        looks[number] = 0, -1, -1, SIDE, THING
        if name is None or name == "air":
            continue
        icon = icon_of(name)
        if icon is None:
            faces = faces_of(name, {"facing": "north"})
            tall = next((high for part, high in _HEIGHTS if re.search(part, name)), SIDE)
            looks[number] = first(faces[2]), first(faces[5]), first(faces[0]), tall, BLOCK
            icon = faces[0] if name in flat or _FLAT.search(name) else None
        if icon is not None:
            hold = STICK if _STICKS.search(name) else THING
            looks[number] = first(icon), -1, -1, SIDE, SHIELD if name == "shield" else hold
    return Icons(np.frombuffer(b"".join(tiles), np.int32), looks.reshape(-1))


def icons_of(looks: Looks) -> Icons:
    """Returns the icons of a version's items."""
    bodiless = (name for name, boxes, *_ in looks.rows if not boxes)
    return _icons(tuple(looks.items), frozenset(bodiless))


# windows ------------------------------------------------------------------------------------------

_PANEL, _LIGHT, _DARK = 0xC6C6C6, 0xF4F4F4, 0x5A5A5A
_SLOT, _INK, _PALE, _TIP = 0x8B8B8B, 0x404040, 0xF0F0E0, 0x180C28
_ABLE, _CHOSEN, _UNABLE = 0xA8A8A8, 0x7088C0, 0x706860


class _Sheet:
    """The rows of a window; places in pixels of the interface from its corner."""

    def __init__(self, window: Mapping[str, Any], wide: int, tall: int) -> None:
        self.scale = float(window["scale"])
        size = window["size"]
        self.left: int = round((wide - size[0] * self.scale) / 2)
        self.top: int = round((tall - size[1] * self.scale) / 2)
        self.dot = max(int(self.scale), 1)
        self.rows: list[tuple[float, ...]] = []

    def x(self, at: float) -> int:
        return self.left + round(at * self.scale)

    def y(self, at: float) -> int:
        return self.top + round(at * self.scale)

    def box(self, left: float, top: float, wide: float, tall: float, colour: int) -> None:
        x, y = self.x(left), self.y(top)
        size = (self.x(left + wide) - x, self.y(top + tall) - y)
        self.rows.append((FILL, x, y, *size, colour, 1.0))

    def raised(self, box: Sequence[float], colour: int, *, sunk: bool = False) -> None:
        left, top, wide, tall = box
        light, dark = (_DARK, _LIGHT) if sunk else (_LIGHT, _DARK)
        self.box(left, top, wide, tall, dark)
        self.box(left, top, wide - 1, tall - 1, light)
        self.box(left + 1, top + 1, wide - 2, tall - 2, colour)

    def stack(self, at: Sequence[float], item: Sequence[int]) -> None:
        kind, count, left, whole = item
        if kind == 0:
            return
        x, y, cell = self.x(at[0] - 1), self.y(at[1] - 1), round(18 * self.scale)
        self.rows.append((STACK, kind, count, x, y, cell, 1.0))
        if 0 < left < whole and cell >= 10:
            self.rows.append((WEAR, x, y, cell, left / whole, 0, 0))

    def text(self, words: str, x: int, y: int, dot: int, colour: int) -> None:
        for n, letter in enumerate(words.upper()):
            code = GLYPHS.find(letter)
            if code >= 0:
                self.rows.append((GLYPH, code, x + 4 * dot * n, y, dot, colour, 0))

    def tip(self, words: str, x: int, y: int, wide: int) -> None:
        """Writes words beside the cursor, within the picture."""
        dot = 2 * self.dot if self.scale >= 1 else 1
        size = 4 * dot * len(words)
        x = max(min(x + 6 * dot, wide - size - 2 * dot), 2 * dot)
        self.rows.append((FILL, x - 2 * dot, y - 9 * dot, size + 3 * dot, 9 * dot, _TIP, 0.9))
        self.text(words, x, y - 7 * dot, dot, WHITE)


def window_rows(
    window: Mapping[str, Any], names: Sequence[str | None], wide: int, tall: int
) -> NDArray[np.float64]:
    """Returns the shapes of an open window, as ``bridges.hud.draw_rows`` takes them.

    Args:
        window: as ``display.js`` describes it.
        names: of the items.
        wide: width of the picture.
        tall: height of the picture.
    """
    sheet = _Sheet(window, wide, tall)
    stacks = np.frombuffer(window["stacks"], "<i4").reshape(-1, 4).tolist()
    places = np.array(window["places"], np.int64).reshape(-1, 2).tolist()
    sheet.rows.append((FILL, 0, 0, wide, tall, 0x101010, 0.55))
    sheet.raised((-1, -1, window["size"][0] + 2, window["size"][1] + 2), _PANEL)
    dot = 2 * sheet.dot if sheet.scale >= 1 else 1
    sheet.text(window["title"], sheet.x(window["title_x"]), sheet.y(4), dot, _INK)
    for place, item in zip(places, stacks, strict=True):
        sheet.raised((place[0] - 1, place[1] - 1, 18, 18), _SLOT, sunk=True)
        sheet.stack(place, item)
    for left, top, across, high, share in window["bars"]:
        x, y = sheet.x(left), sheet.y(top)
        size = (sheet.x(left + across) - x, max(sheet.y(top + high) - y, 1))
        sheet.rows.append((BAR, x, y, *size, share, 0xF08A28))
    for button in window["buttons"]:
        _draw_button(sheet, button)
    if window["scroll"] is not None:
        sheet.raised(window["scroll"][:4], _SLOT, sunk=True)
        sheet.raised(window["scroll"][4:], _PANEL)
    if window["note"]:
        sheet.text(window["note"], sheet.x(100), sheet.y(70), dot, 0x80FF20)
    _draw_pointer(sheet, window, places, stacks, names, wide)
    return np.array([(*row, *[0.0] * (ROW - len(row))) for row in sheet.rows])


def _draw_button(sheet: _Sheet, button: Mapping[str, Any]) -> None:
    left, top, wide, tall = button["box"]
    colour = _CHOSEN if button["chosen"] else _ABLE if button["able"] else _UNABLE
    sheet.raised((left, top, wide, tall), colour, sunk=button["chosen"])
    items = np.array(button["items"], np.int64).reshape(-1, 2).tolist()
    step = wide / max(len(items), 1)
    for n, (kind, count) in enumerate(items):
        middle = (left + step * (n + 0.5) - 8, top + tall / 2 - 8)
        sheet.stack(middle, (kind, count, 0, 0))
    if len(items) > 1:  # what is given becomes the last
        sheet.box(left + wide - step * 1.3, top + tall / 2 - 1, step * 0.3, 2, _DARK)
    room = round(wide * sheet.scale) // (4 * sheet.dot)
    y = sheet.y(top + tall / 2) - (5 * sheet.dot) // 2
    sheet.text(button["text"][:room], sheet.x(left + 2), y, sheet.dot, _PALE)


def _draw_pointer(
    sheet: _Sheet,
    window: Mapping[str, Any],
    places: Sequence[Sequence[int]],
    stacks: Sequence[Sequence[int]],
    names: Sequence[str | None],
    wide: int,
) -> None:
    over, (x, y) = window["over"], window["cursor"]
    (carried,) = np.frombuffer(window["carried"], "<i4").reshape(-1, 4).tolist()
    at = (sheet.x(x), sheet.y(y))
    if over >= 0:
        left, top = (sheet.x(places[over][0]), sheet.y(places[over][1]))
        size = round(16 * sheet.scale)
        sheet.rows.append((FILL, left, top, size, size, WHITE, 0.4))
    if carried[0]:
        sheet.stack((x - 8, y - 8), carried)
    elif over >= 0 and stacks[over][0] and stacks[over][0] < len(names):
        name = names[stacks[over][0]] or ""
        sheet.tip(name.replace("_", " "), *at, wide)
    sheet.rows.append((POINTER, *at, max(round(9 * sheet.scale), 5), 0, 0, 0))


# pictures -----------------------------------------------------------------------------------------


@kernel
def draw_over(canvases: Any, displays: Any, rows: Any, cell: int) -> None:
    """Draws hands and display, and the shapes of a window, or without any the crosshair.

    Args:
        canvases: ``(1,)`` of type ``_CANVAS``, all set; the arrays it points to must be alive.
        displays: ``(1,)`` of type ``HUD``.
        rows: ``(N, ROW)`` float64.
        cell: width of a cell of the hotbar in pixels.
    """
    s, h = canvases[0], displays[0]
    draw_hands(s, h)
    draw_display(s, h, cell)
    if len(rows) == 0:
        draw_crosshair(s)
    draw_rows(s, rows.ctypes.data, len(rows))
    rows.shape  # noqa: B018 - referenced last: an address does not keep its array alive


def cell_of(height: int, width: int) -> int:
    """Returns the width of a cell of the hotbar: the game's 20, or as many as fit a small one."""
    whole = min(width // 320, height // 240)
    return 20 * whole if whole else min(width // HOTBAR, max(height // 10, 5), 20)


class Over:
    """Draws what lies over the pictures of one scene.

    Args:
        looks: of the game's version.
    """

    def __init__(self, looks: Looks) -> None:
        self._icons, self._names = icons_of(looks), looks.items
        self._canvases, self._displays = np.zeros(1, _CANVAS), np.zeros(1, HUD)

    def draw(
        self, display: Mapping[str, Any], picture: NDArray[np.uint8], light: NDArray[np.float64]
    ) -> None:
        """Draws a display over a picture.

        Args:
            display: as ``display.js`` describes it.
            picture: ``(height, width, 3)``, contiguous.
            light: on the hands: red, green, blue.
        """
        tall, wide, _ = picture.shape
        s, h = self._canvases[0], self._displays[0]
        s["picture"], s["wide"], s["tall"] = picture.ctypes.data, wide, tall
        s["texels"], s["looks"] = self._icons.texels.ctypes.data, self._icons.looks.ctypes.data
        s["digits_from"] = _DIGITS_FROM
        s["red"], s["green"], s["blue"] = light
        bar = np.frombuffer(display["bar"], "<i4").reshape(-1, 4)
        bar = np.where(bar[:, :1] < len(self._names), bar, 0)  # of items this version lacks
        h["item"], h["count"] = bar[:HOTBAR, 0], bar[:HOTBAR, 1]
        h["left"] = np.where(
            bar[:HOTBAR, 3] > 0, bar[:HOTBAR, 2] / np.maximum(bar[:HOTBAR, 3], 1), 1.0
        )
        h["selected"], h["off"] = display["selected"], bar[HOTBAR, 0]
        health, h["food"], h["armour"], h["air"], h["level"], h["progress"] = display["life"]
        h["health"] = np.ceil(health)
        h["swing"], h["eating"], h["raised"] = (
            display["swing"],
            display["eating"],
            display["raised"],
        )
        rows = np.zeros((0, ROW))
        if display["window"] is not None:
            rows = window_rows(display["window"], self._names, wide, tall)
        draw_over(self._canvases, self._displays, rows, cell_of(tall, wide))
