"""Sprites of what is on the ground, as numbers of an atlas."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias
from zlib import crc32

import cv2
import numpy as np

from bridges.stardojo.pictures.atlas import Atlas
from bridges.stardojo.pictures.paint import UNITS, Color, Pixels, color, named, paint, table
from bridges.stardojo.rules import items, soil
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.world import Crop, Ground, Thing

BACK, RIGHT, FRONT, LEFT = range(4)
Drawn: TypeAlias = tuple[int, int, int]
"""A sprite's number, and where its upper left corner is."""
CHILD, YOUNG, LARGE = 0.8, 0.65, 1.5
_HUES = (
    *("red", "orange", "yellow", "lime", "green", "teal", "sky", "blue", "purple", "pink", "brown"),
    *("tan", "cream", "silver", "iron", "ink", "red-", "blue-", "green-", "purple+", "orange+"),
    *("teal+", "copper", "gold"),
)


@cache
def icons() -> dict[str, tuple[str, ...]]:
    """Returns shape and colors of the icon of every item; no two are the same."""
    listed, found, taken = table("icons")["items"], {}, set()
    for name, item in content().items.items():
        if name in listed:
            look = _used(tuple(listed[name].split()))
        else:
            first = crc32(name.encode())
            looks = (_used(_look(name, item.category, first + n)) for n in range(10**5))
            look = next(each for each in looks if each not in taken)
        taken.add(look)
        found[name] = look
    return found


def _used(look: tuple[str, ...]) -> tuple[str, ...]:
    """The shape with as many colors as it has."""
    shapes = table("icons")["shapes"][look[0]]
    return (*look, "copper")[: 1 + max(n for n in range(4) if n == 0 or f"${n}" in shapes)]


def _look(name: str, category: str, at: int) -> tuple[str, ...]:
    rows, use = table("icons"), items.use_kind(name)
    if use in rows["tools"] and category == "tool" and use != "rod":
        return use, rows["metals"][items.level(name)], _HUES[at % len(_HUES)]
    word = next((shape for word, shape in rows["words"].items() if word in name), "")
    shapes = rows["categories"].get(category, ["orb"])
    shape = use if use in rows["tools"] else word or shapes[at % len(shapes)]
    first, second = _HUES[at // 7 % len(_HUES)], _HUES[at // 211 % len(_HUES)]
    return shape, first, second if second != first else "white"


@lru_cache(4096)
def _line(atlas: Atlas, words: str, size: int, rgb: Color) -> tuple[list[tuple[int, int]], int]:
    """The glyphs of a line, each with its distance from the left, and the width of all."""
    glyphs, end = [], 0
    for character in words:
        number, wide = atlas.glyph(character, size, rgb)
        glyphs.append((number, end))
        end += wide
    return glyphs, end


class Sprites:
    """Sprites by their subject; each method returns a number of the atlas."""

    def __init__(self, atlas: Atlas) -> None:
        self.atlas, self.side = atlas, atlas.side

    def named(self, name: str, *colors: str, part: float = 1.0, scale: float = 1.0) -> int:
        """A sprite of ``shapes.yaml``."""
        key = (name, colors, part, scale)
        number = self.atlas.known(key)
        if number is None:
            size, shapes = named(name)
            number = self.painted(
                key, size, shapes, colors, part=part, scale=scale, outline=shapes[0].islower()
            )
        return number

    def painted(
        self,
        key: Hashable,
        size: tuple[float, float],
        shapes: str,
        colors: Sequence[str] = (),
        *,
        part: float = 1.0,
        **how: Any,
    ) -> int:
        """Shapes that are painted once for each key; ``part`` is the size of a tile of theirs."""
        side = max(4, round(self.side * part))
        return self.atlas.sprite(key, lambda: paint(shapes, size, side, colors, **how))

    def icon(self, name: str, part: float = 1.0) -> int:
        """The icon of an item; ``part`` is its size in tiles."""
        number = self.atlas.known(key := ("icon", name, part))
        if number is None:
            shape, *colors = icons().get(name) or icons()[items.find(name).key]
            shapes = table("icons")["shapes"][shape]
            number = self.painted(key, (1, 1), shapes, colors, part=part)
        return number

    def thing(self, thing: Thing, season: str, at: int) -> int:
        """Returns the sprite of a thing on a tile; ``at`` selects one of several variants."""
        match thing.kind:
            case "weeds":
                name = ("weeds", "weeds1", "weeds2")[at % 3]
                return self.named(name, table("icons")["seasons"][season]["weeds"])
            case "twig" | "ladder" | "treasure" | "hay":
                return self.named(thing.kind)
            case "stone" | "node":
                return self.node(thing.facts.get("node", thing.name), at)
            case "fence":
                metal = thing.name.split()[0]
                made = {"Stone": "stone", "Iron": "iron", "Hardwood": "brown"}.get(metal, "wood")
                return self.named("gate" if thing.name == "Gate" else "fence", made)
        return self._made(thing)

    def _made(self, thing: Thing) -> int:
        """A machine, another thing that was made, or an item that lies there."""
        look = table("icons")["standing"].get(thing.name)
        if look is not None:
            name, *colors = look.split()
            on = "orange" if thing.facts.get("minutes", 0) > 0 else "ink"
            return self.named(name, *colors, *([] if colors else [on]))
        if items.category(thing.name) == "big":
            shape, *colors = icons()[items.find(thing.name).key]
            known = {"device": "machine", "crate": "crate", "statue": "statue", "lamp": "lamp"}
            return self.named(known.get(shape, "machine"), *colors)
        return self.icon(thing.facts.get("item", thing.name), 0.8)

    def node(self, name: str, at: int) -> int:
        """A stone, or an ore or gem in one."""
        if name in ("Stone", "Stone (debris)"):
            return self.named(f"stone{at % 2}")
        given = content().nodes[name].gives if name in content().nodes else "Quartz"
        shape, first, second, *_ = (*icons()[given], "white")
        return self.named("node", second if shape == "lump" else first, "stone-")

    def crop(self, crop: Crop, ground: Ground) -> int:
        """A plant: its form, its phase, and the fruit of a ripe one."""
        plant = content().crops[crop.seed]
        if crop.dead:
            return self.named("dead", scale=0.8)
        if crop.phase == 0:
            return self.named("seeds")
        rows = table("icons")["forms"]
        form = next((form for form, names in rows.items() if plant.harvest in names), "bush")
        size, shapes = named(form)
        ripe = soil.ripe(ground)
        grown = 1.0 if crop.regrown else min(1.0, 0.3 + 0.62 * crop.phase / len(plant.phases))
        if ripe:
            shapes, grown = f"{shapes}; {named(f'{form} fruit')[1]}", 1.0
        _, first, second, *_ = (*icons()[plant.harvest], "white")
        key = (form, ripe, first, second, grown)
        return self.painted(key, size, shapes, (first, second), scale=grown)

    def tree(self, ground: Ground, season: str) -> int:
        """A tree, its stump, or what will be one."""
        rows = table("icons")
        if ground.stump:
            return self.named("stump")
        size, shapes = named(ground.name if ground.kind == "tree" else "fruit tree")
        leaves = rows["trees"].get(ground.name) or rows["seasons"][season].get(ground.name)
        leaves = leaves or rows["seasons"][season]["Maple"]
        grown, full = ground.stage, 5 if ground.kind == "tree" else 4
        scale = min(1.0, 0.22 + 0.78 * (grown / full) ** 1.5) if grown < full else 1.0
        fruit: tuple[str, ...] = ()
        if ground.kind == "fruit_tree" and ground.fruit:
            harvest = content().fruit_trees[ground.name].fruit
            fruit = (icons()[harvest][1],)
            for x, y in ((15, 22), (32, 26), (24, 15))[: ground.fruit]:
                shapes += f"; o $2 {x} {y} 2.6 2.6; O white {x - 0.8} {y - 0.8} 0.7 0.7"
        key = (ground.name, leaves, fruit and ground.fruit, scale)
        return self.painted(key, size, shapes, (leaves, *fruit), scale=scale)

    def person(self, name: str, facing: int, part: float = 1.0) -> int:
        """A resident, or the farmer (an empty name)."""
        number = self.atlas.known(key := ("person", name, facing, part))
        if number is not None:
            return number
        rows = table("beings")
        style, *colors = rows["residents"].get(name, rows["farmer"]) if name else rows["farmer"]
        colors, extras = colors[:4], colors[4:]
        view = ("back", "side", "front", "side")[facing]
        parts = [rows["body"], rows[view]]
        if view != "back":
            parts += [rows[each] for each in ("beard", "glasses") if each in extras]
        hair = rows["hair"][style]
        parts.append(hair.get(view, hair["front"]))
        scale = CHILD if "child" in extras else 1.0
        return self.painted(
            key, (1, 1.75), "; ".join(parts), colors, part=part, scale=scale, flip=facing == LEFT
        )  # fmt: skip

    def creature(self, group: str, kind: str, *, young: bool = False, flip: bool = False) -> int:
        """An animal, a pet or a monster."""
        rows = table("beings")
        form, *colors = rows[group][kind]
        wide, high, shapes = rows["forms"][form]
        return self.painted(
            ("being", kind, young, flip), (wide, high), shapes, colors,
            part=LARGE if kind.startswith("Big") else 1.0, scale=YOUNG if young else 1.0, flip=flip,
        )  # fmt: skip

    def house(
        self, kind: str, size: tuple[int, int], door: int, gate: int = -1, *, opened: bool = False
    ) -> int:
        """A house of some tiles, with a door and perhaps a gate in these columns; -1 is none."""
        wall, roof = table("icons")["houses"].get(kind, ["tan", "#9a5a3c"])
        wide, high = size[0] * UNITS, (size[1] + 1) * UNITS
        eaves = high - 32
        shapes = [f"r {wall} 2 {eaves - 4} {wide - 4} 35.4"]
        shapes += [f"l {wall}- 0.6 2.4 {y} {wide - 2.4} {y}" for y in range(eaves + 6, high, 6)]
        for column in range(size[0]):
            x = column * UNITS
            if column == door:
                shapes += [
                    f"r brown {x + 2} {high - 20} 12 19.4",
                    f"O gold {x + 11.4} {high - 9} 1 1",
                ]
            elif column == gate:
                shapes.append(
                    f"r {'black' if opened else 'brown-'} {x + 1.6} {high - 13} 12.8 12.4"
                )
                if not opened:
                    shapes.append(f"l tan 1 {x + 2.4} {high - 12} {x + 13.6} {high - 2}")
            elif column % 2 == (door + 1) % 2:
                y = high - 24
                shapes.append(f"r {wall}-- {x + 3} {y} 10 10; R glass {x + 4} {y + 1} 8 8")
                shapes.append(f"R {wall}-- {x + 7.6} {y + 1} 0.8 8")
        shapes.append(f"p {roof} 0 {eaves} 7 1 {wide - 7} 1 {wide} {eaves}")
        for y in range(8, eaves, 7):
            inset = 7 - 7 * y / eaves
            shapes.append(f"l {roof}- 0.8 {inset:.1f} {y} {wide - inset:.1f} {y}")
        shapes.append(f"R {roof}+ 7.6 1.6 {wide - 15.2} 2")
        key = ("house", kind, size, door, gate, opened)
        return self.painted(key, (size[0], size[1] + 1), "; ".join(shapes))

    def furniture(self, name: str, size: tuple[int, int]) -> int:
        """A piece of furniture, stretched over its tiles."""
        number = self.atlas.known(key := ("furniture", name, size))
        if number is None:
            look = table("icons")["standing"].get(name, "crate wood")
            shape, *colors = look.split()
            (wide, high), shapes = named(shape)
            image = paint(shapes, (wide, high), self.side, colors)
            to = round(wide * size[0] * self.side), round((high - 1 + size[1]) * self.side)
            stretched = cv2.resize(image, to, interpolation=cv2.INTER_LINEAR)
            number = self.atlas.sprite(key, lambda: np.asarray(stretched, np.uint8))
        return number

    def glow(self) -> int:
        """Light around a lamp."""
        reach = 2 * self.side

        def make() -> Pixels:
            y, x = np.mgrid[-1 : 1 : 2j * reach, -1 : 1 : 2j * reach]
            opacity = (np.clip(1 - np.hypot(x, y), 0, 1) * 120)[..., None]
            rgb = opacity * np.array([255, 214, 120]) / 255
            return np.concatenate([rgb, opacity], 2).astype(np.uint8)

        return self.atlas.sprite("glow", make)

    def panel(self, width: int, height: int, fill: str, edge: str, opacity: int = 255) -> int:
        """A plain panel of some pixels with an edge."""

        def make() -> Pixels:
            image = np.full((max(1, height), max(1, width), 4), 255, np.uint8)
            thick = max(1, self.side // 20) if edge else 0
            image[..., :3] = color(edge or fill)
            inner = image[thick : height - thick, thick : width - thick]
            inner[..., :3] = color(fill)
            if thick > 1:
                inner[: thick // 2, :, :3] = inner[:, : thick // 2, :3] = color(fill + "+")
            return (image.astype(np.uint16) * opacity // 255).astype(np.uint8)

        return self.atlas.sprite(("panel", width, height, fill, edge, opacity), make)

    def text(
        self, words: str, x: int, y: int, size: int, rgb: Color = (58, 42, 52)
    ) -> tuple[list[Drawn], int]:
        """Returns what draws a line of text whose upper left corner is x, y; and where it ends."""
        glyphs, wide = _line(self.atlas, words, size, rgb)
        return [(number, x + dx, y) for number, dx in glyphs], x + wide

    def label(self, words: str, x: int, y: int) -> list[Drawn]:
        """Returns what draws a short text on a dark plate about the point x, y."""
        size = max(7, round(self.side * 0.22))
        drawn, end = self.text(words, 0, 0, size, (255, 255, 255))
        pad = max(1, size // 4)
        plate = self.panel(end + 2 * pad, round(size * 1.25), "ink", "", 190)
        left = x - end // 2
        return [(plate, left - pad, y), *((n, left + dx, y) for n, dx, _ in drawn)]
