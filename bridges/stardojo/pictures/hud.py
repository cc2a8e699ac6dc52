"""What is shown beside the scene: toolbar, clock, gold, bars, and the open menu, with text."""

from __future__ import annotations

from typing import TypeAlias

from bridges.stardojo.pictures.paint import Color, Pixels
from bridges.stardojo.pictures.sprites import Drawn, Sprites
from bridges.stardojo.rules import items, services
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.making import chest_items
from bridges.stardojo.rules.maps import names
from bridges.stardojo.rules.registry import MENUS
from bridges.stardojo.rules.world import Item, Menu, World

Row: TypeAlias = tuple[str, str, str]
"""An entry of a menu: the item of its icon or nothing, its text, its price or count."""
SLOTS = 12
INK, FAINT, WHITE, RED = (58, 42, 52), (140, 112, 84), (255, 255, 255), (168, 44, 40)
_TITLES = {
    "cooking": "Cooking", "letter": "Letter", "billboard": "Help wanted", "journal": "Journal",
    "bundles": "Bundles", "museum": "Museum", "joja": "Joja projects", "prize": "Prizes",
    "chest": "Chest", "upgrade": "Upgrade tools", "geode": "Break geodes", "animals": "Buy animals",
    "animal": "Animal", "level": "New profession", "elevator": "Elevator", "carpenter": "Carpenter",
    "map": "Map",
}  # fmt: skip
_WEATHER = {"rain": "rainy", "storm": "stormy", "snow": "snowy"}
_STARS = ("", "silver", "gold", "gold", "iridium")


class Hud:
    """Draws it for screens of one size."""

    def __init__(self, sprites: Sprites, width: int, height: int) -> None:
        self.sprites, self.width, self.height = sprites, width, height
        self.scale = height / 720
        self.below = self._px(66)  # rows below the view, for the toolbar
        self.drawn: list[Drawn] = []

    def lay(self, frame: Pixels, world: World) -> None:
        """Lays it over a screen: the clock and the bars over the view, the toolbar below it."""
        self.drawn = []
        self._panel(0, self.height - self.below, self.width, self.below, "wood-", "")
        self._clock(world)
        self._bars(world)
        if world.menu is None:
            self._toolbar(world, self.height - self._px(62))
        elif world.menu.kind == "dialogue":
            self._dialogue(world, world.menu)
        else:
            self._list(world, world.menu)
        self.sprites.atlas.lay(frame, self.drawn)

    def _px(self, units: float) -> int:
        """Pixels of units of a screen that is 720 high."""
        return max(1, round(units * self.scale))

    def _font(self, units: float) -> int:
        return max(6, round(units * self.scale))

    def _panel(self, x: int, y: int, wide: int, high: int, fill: str = "cream", edge: str = "brown",
               opacity: int = 255) -> None:  # fmt: skip
        self.drawn.append((self.sprites.panel(wide, high, fill, edge, opacity), x, y))

    def _text(self, words: str, x: int, y: int, units: float, rgb: Color = INK) -> int:
        drawn, end = self.sprites.text(words, x, y, self._font(units), rgb)
        self.drawn += drawn
        return end

    def _right(self, words: str, x: int, y: int, units: float, rgb: Color = INK) -> None:
        drawn, end = self.sprites.text(words, 0, y, self._font(units), rgb)
        self.drawn += [(n, x - end + dx, dy) for n, dx, dy in drawn]

    def _icon(self, item: Item, x: int, y: int, wide: int) -> None:
        """An item in a slot, with its count and quality."""
        part = 0.8 * wide / self.sprites.side
        number = self.sprites.icon(item.name, part)
        inset = (wide - self.sprites.atlas.sizes[number][0]) // 2
        self.drawn.append((number, x + inset, y + inset))
        if item.quality:
            star = self.sprites.named("star", _STARS[item.quality], part=0.3 * part)
            self.drawn.append((star, x + self._px(3), y + wide - self._px(18)))
        if item.count > 1:
            words, x, y = str(item.count), x + wide - self._px(3), y + wide - self._px(20)
            for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                self._right(words, x + dx, y + dy, 15, WHITE)
            self._right(words, x, y, 15)

    def _slots(
        self, bag: list[Item | None], x: int, y: int, wide: int, chosen: int, first: int = 0
    ) -> None:
        """Rows of twelve slots, numbered as the actions count them: from ``first``."""
        for number, item in enumerate(bag):
            left, top = x + number % SLOTS * wide, y + number // SLOTS * wide
            lit = number == chosen
            self._panel(left, top, wide, wide, "tan+" if lit else "tan", "red" if lit else "brown")
            if item is not None:
                self._icon(item, left, top, wide)
            self._text(str(number + first), left + self._px(4), top + self._px(2), 12)

    def _toolbar(self, world: World, y: int) -> None:
        me, wide = world.farmer, self._px(58)
        if me.hand:  # first: a name that has no room is under the slots
            self._text(items.shown(me.hand.name), self._px(12), y + self._px(18), 20, WHITE)
        self._slots(me.bag[:SLOTS], (self.width - SLOTS * wide) // 2, y, wide, me.slot)

    def _clock(self, world: World) -> None:
        wide, pad = max(self._px(208), 4), self._px(10)
        x, y = self.width - wide - self._px(8), self._px(8)
        self._panel(x, y, wide, self._px(134))
        hour, minute = divmod(world.time, 100)
        noon = "am" if hour % 24 < 12 else "pm"
        time = f"{hour % 12 or 12}:{minute:02} {noon}"
        self._text(f"{world.weekday.title()}. {world.day}", x + pad, y + self._px(6), 22)
        self._text(time, x + pad, y + self._px(34), 22, RED if hour >= 24 else INK)
        self._text(f"{world.season.title()}, year {world.year}", x + pad, y + self._px(62), 16)
        self._text(world.here.name, x + pad, y + self._px(82), 15, FAINT)
        sky = _WEATHER.get(world.weather, "sun")
        part = 36 * self.scale / self.sprites.side
        for name, dx in ((sky, 82), (world.season, 44)):
            number = self.sprites.named(name, part=part)
            self.drawn.append((number, x + wide - self._px(dx), y + self._px(8)))
        coin = self.sprites.named("coin", part=part * 0.6)
        self.drawn.append((coin, x + pad, y + self._px(106)))
        self._right(f"{world.farmer.money:,}g", x + wide - pad, y + self._px(104), 20)

    def _bars(self, world: World) -> None:
        me = world.farmer
        wide, high = self._px(32), self._px(180)
        y = self.height - self.below - high - self._px(30)
        for name, value, most, full, at in (
            ("E", me.energy, me.most_energy, "green", 1),
            ("H", me.health, me.most_health, "red", 2),
        ):
            x = self.width - self._px(8) - at * (wide + self._px(12))
            self._panel(x, y, wide, high, "wood-")
            share = min(1.0, max(0.0, value / most))
            filled = round(share * (high - self._px(28)))
            if filled > 1:
                fill = full if share > 0.25 else "orange"
                inset = self._px(5)
                self._panel(
                    x + inset, y + high - inset - filled, wide - 2 * inset, filled, fill, ""
                )
            self._text(name, x + self._px(9), y + self._px(3), 17, WHITE)
            self._right(f"{max(0, round(value))}", x + wide, y + high + self._px(2), 15, WHITE)

    def _dialogue(self, world: World, menu: Menu) -> None:
        responses = [text for _, text in menu.facts["responses"]]
        lines = self._wrapped(str(menu.facts["pages"][0]), 22, self._px(720))
        high = self._px(max(210, 70 + 30 * len(lines) + 32 * len(responses)))
        x, y, wide = (
            self._px(120),
            self.height - high - self._px(16),
            self.width - 2 * self._px(120),
        )
        self._panel(x, y, wide, high)
        left, top = x + self._px(24), y + self._px(18)
        if speaker := menu.facts.get("speaker"):
            self._panel(
                x + wide - self._px(190), y + self._px(14), self._px(174), self._px(182), "tan"
            )
            number = self.sprites.person(speaker, 2, 1.5 * 64 * self.scale / self.sprites.side)
            self.drawn.append((number, x + wide - self._px(151), y + self._px(16)))
            self._text(speaker, x + wide - self._px(182), y + self._px(168), 18)
        for line in lines:
            self._text(line, left, top, 22)
            top += self._px(30)
        for number, words in enumerate(responses, 1):
            top += self._px(2)
            self._text(f"{number}. {words}", left + self._px(10), top, 20, RED)
            top += self._px(28)

    def _wrapped(self, words: str, units: float, most: int) -> list[str]:
        """Lines of a text that are no wider than some pixels."""
        lines: list[str] = []
        for word in words.split():
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and self.sprites.text(longer, 0, 0, self._font(units))[1] <= most:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines

    def _list(self, world: World, menu: Menu) -> None:
        rows = _rows(world, menu)
        trades = menu.kind in ("shop", "chest")
        wide, most = self.width - self._px(270), self._px(430 if trades else 560)
        x, y, pad, line = self._px(30), self._px(14), self._px(12), self._px(34)
        message = menu.facts["text"] if menu.kind == "letter" else ""
        lines = self._wrapped(message, 20, wide - 2 * pad)
        fit = max(1, (most - line * len(lines)) // line)
        used = fit if trades else min(fit, len(rows))
        top = y + self._px(48)
        self._panel(x, y, wide, top - y + (len(lines) + used) * line + pad)
        title = menu.facts.get("shop") or _TITLES.get(menu.kind, menu.kind.title())
        self._text(str(title), x + pad, y + self._px(8), 26, RED)
        for words in lines:
            self._text(words, x + pad, top, 20)
            top += line
        columns = max(1, -(-len(rows) // fit))
        units, across = (20 if columns < 3 else 15), (wide - 2 * pad) // columns
        for number, row in enumerate(rows):
            left, at = x + pad + number // fit * across, top + number % fit * line
            self._row(f"{number + 1}.", row, left, at, left + across - self._px(16), units)
        if trades:
            slot = self._px(64)
            left = x + (wide - SLOTS * slot) // 2
            self._slots(world.farmer.bag, left, top + used * line + 2 * pad, slot, -1, 1)

    def _row(self, number: str, row: Row, left: int, at: int, right: int, units: float) -> None:
        """An entry of a list, from ``left`` to ``right``."""
        name, words, worth = row
        at += self._px(3)
        end = self._text(number, left, at, units, FAINT) + self._px(4)
        if name:
            icon = self.sprites.icon(name, 30 * self.scale / self.sprites.side)
            self.drawn.append((icon, end, at - self._px(3)))
            end += self._px(34)
        self._text(words, end, at, units)
        self._right(worth, right, at, units, RED)


def _rows(world: World, menu: Menu) -> list[Row]:
    """The entries of a menu, in the order in which they are chosen."""
    if menu.kind == "shop":
        offers = services.stock(world, menu.facts["shop"])
        return [(name, items.shown(name), f"{offer.price}g") for name, offer in offers]
    if menu.kind == "chest":
        return [(name, name, f"x{count}") for name, count, *_ in chest_items(world, menu)]
    if menu.kind == "map":
        return [("", name, "here" if name == world.here.plan else "") for name in names()[:40]]
    known = content().by_name
    return [
        (text if text in known else "", text, "") for text in MENUS[menu.kind].entries(world, menu)
    ]
