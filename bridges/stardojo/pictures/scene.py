"""Draws what is around the farmer: the ground, what stands and grows on it, and who is there."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.stardojo.pictures.atlas import Atlas, tint
from bridges.stardojo.pictures.hud import Hud
from bridges.stardojo.pictures.paint import Color, Pixels, paint, table
from bridges.stardojo.pictures.sprites import BACK, LEFT, RIGHT, Drawn, Sprites
from bridges.stardojo.rules import maps, mines, monsters, places
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.maps import Plan
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.rules.world import Building, Furniture, Ground, Place, Thing, Tile, World

TILES_HIGH = 11.25
"""Tiles as high as a screen, as in the game at its usual zoom; the toolbar is below the view."""
_BESIDE, _BELOW = 3, 4  # tiles out of sight whose sprites may reach into it
_DROPS = 110
_DUSK, _NIGHT = 720, 840  # minutes after six
_DARK = (128, 138, 200)
_WEATHER = {"rain": (205, 214, 240), "storm": (165, 175, 210)}
_SHINING = ("Torch", "Campfire", "Brazier", "Lamp", "Jack-O-Lantern")


def draw(valley: Valley, width: int, height: int) -> NDArray[np.uint8]:
    """Returns the screen, ``(height, width, 3)`` bytes."""
    return _stage(width, height).draw(valley.world)


@lru_cache(8)
def _stage(width: int, height: int) -> Stage:
    return Stage(width, height)


@lru_cache(8)
def _atlas(side: int) -> Atlas:
    return Atlas(side)


class Stage:
    """Draws screens of one size."""

    def __init__(self, width: int, height: int) -> None:
        self.side = max(4, round(height / TILES_HIGH))
        self.sprites = Sprites(_atlas(self.side))
        self.hud = Hud(self.sprites, width, height)
        self.width, self.height = width, height - self.hud.below  # of the view
        rng = np.random.default_rng(7)
        self._drops = rng.integers(0, (self.width, self.height), (_DROPS, 2)).tolist()

    def draw(self, world: World) -> Pixels:
        """Returns the screen of a world."""
        screen = np.empty((self.height + self.hud.below, self.width * 3), np.uint8)
        frame, view = screen[: self.height], View(self, world)
        if view.left < 0 or view.top < 0:
            frame[:] = 0  # the map is smaller than the screen
        view.collect()
        atlas = self.sprites.atlas
        numbers = layer(atlas, view.plan, theme(world, view.place))
        (x0, y0), (x1, y1) = view.first, view.last
        atlas.lay_tiles(frame, numbers[y0:y1, x0:x1], *view.at((x0, y0)))
        view.tall.sort(key=itemgetter(0))  # a sprite's number depends on what was drawn before
        atlas.lay(frame, view.flat + [row[1:] for row in view.tall])
        light = daylight(world, view.plan)
        if light != (256, 256, 256):
            tint(frame, light)
        over = view.over
        if view.plan.outdoors and world.weather in ("rain", "storm", "snow"):
            over += self._falling(world)
        atlas.lay(frame, over)
        self.hud.lay(screen, world)
        return screen.reshape(-1, self.width, 3)

    def _falling(self, world: World) -> list[tuple[int, int, int]]:
        """Drops of rain or flakes of snow, which move as time passes."""
        number = self.sprites.named("flake" if world.weather == "snow" else "rain")
        moved = world.ticks // 6
        return [
            (number, (x - moved * 5) % self.width, (y + moved * 23) % self.height)
            for x, y in self._drops
        ]


def theme(world: World, place: Place) -> str:
    """Returns which of its looks the ground of a place has."""
    if level := place.facts.get("level"):
        name = mines.area(level).name
        return "earth" if "earth" in name else name
    if place.name == "Desert":
        return "desert"
    if not places.plan(place).outdoors:
        return {"SkullCave": "cavern"}.get(place.name, "earth")
    return world.season


def daylight(world: World, plan: Plan) -> Color:
    """Returns the light in 256ths: less when it rains and at night."""
    if not plan.outdoors:
        return 256, 256, 256
    minutes = world.ticks / 42
    dark = min(1.0, max(0.0, (minutes - _DUSK) / (_NIGHT - _DUSK)))
    sky = _WEATHER.get(world.weather, (256, 256, 256))
    red, green, blue = (
        round(s * (1 - dark + dark * d / 256)) for s, d in zip(sky, _DARK, strict=True)
    )
    return red, green, blue


class View:
    """The sprites in sight: ``flat`` is below ``tall``, and ``over`` above, in full light."""

    def __init__(self, stage: Stage, world: World) -> None:
        self.sprites, self.side, self.world = stage.sprites, stage.side, world
        self.place, self.plan = world.here, places.plan(world.here)
        self._whole = self.plan.width, self.plan.height
        self.left, self.top = (
            _camera(at * self.side, count * self.side, size)
            for at, count, size in (
                (world.farmer.tile[0] + 0.5, self.plan.width, stage.width),
                (world.farmer.tile[1] + 0.5, self.plan.height, stage.height),
            )
        )
        self.first = max(0, self.left // self.side), max(0, self.top // self.side)
        self.last = (
            min(self.plan.width, -((-self.left - stage.width) // self.side)),
            min(self.plan.height, -((-self.top - stage.height) // self.side)),
        )
        self.night = self.plan.outdoors and world.ticks / 42 > _DUSK + 60
        self.flat: list[tuple[int, int, int]] = []
        self.tall: list[tuple[float, int, int, int]] = []
        self.over: list[tuple[int, int, int]] = []

    def at(self, tile: tuple[float, float]) -> tuple[int, int]:
        """Returns where the upper left corner of a tile is on the frame."""
        return round(tile[0] * self.side) - self.left, round(tile[1] * self.side) - self.top

    def put(
        self,
        number: int,
        tile: tuple[float, float],
        *,
        wide: int = 1,
        lift: float = 0,
        deep: float = 0,
    ) -> None:
        """Sets a sprite upright on a tile, or ``wide`` ones; ``deep`` brings it before others."""
        side = self.side
        width, height = self.sprites.atlas.sizes[number]
        x = int(tile[0] * side) - self.left + (wide * side - width) // 2
        y = int((tile[1] + 1 - lift) * side) - self.top - height
        self.tall.append((tile[1] + deep, number, x, y))

    def lie(self, number: int, tile: Tile) -> None:
        """Lays a sprite flat on a tile."""
        self.flat.append((number, *self.at(tile)))

    def collect(self) -> None:
        """Finds all that is in sight."""
        things, grounds, drops = self.place.things, self.place.ground, self.place.drops
        for y in range(self.first[1], self.last[1] + _BELOW):
            for x in range(self.first[0] - _BESIDE, self.last[0] + _BESIDE):
                tile = x, y
                if grown := grounds.get(tile):
                    self._ground(tile, grown)
                if thing := things.get(tile):
                    self._thing(tile, thing)
                elif tile in drops:
                    self.put(self.sprites.icon(drops[tile][0].name, 0.55), tile)
        self._layout()
        for piece in self.place.furniture:
            self._furniture(piece)
        if self.place.key == "Farm":
            for made in self.world.buildings:
                self._building(made)
        self._beings()
        self._farmer()

    def _sees(self, tile: Tile, margin: int = 2) -> bool:
        (x0, y0), (x1, y1) = self.first, self.last
        return x0 - margin <= tile[0] < x1 + margin and y0 - margin <= tile[1] < y1 + margin

    def _ground(self, tile: Tile, grown: Ground) -> None:
        sprites, rows = self.sprites, table("icons")["seasons"][self.world.season]
        match grown.kind:
            case "dirt":
                self.lie(sprites.named("watered" if grown.watered else "tilled"), tile)
                if grown.fertilizer:
                    kind = grown.fertilizer
                    color = "sky" if "Soil" in kind else "pink" if "Gro" in kind else "yellow"
                    self.lie(sprites.named("fertilizer", color), tile)
                if grown.crop:
                    self.put(sprites.crop(grown.crop, grown), tile, lift=0.1)
            case "grass":
                full = "grass" if grown.stage > 1 else "tuft"
                self.put(sprites.named(full, rows["grass"]), tile)
            case "floor":
                name = grown.name
                color = "wood" if "Wood" in name or "Plank" in name else "stone"
                color = "glass" if "Crystal" in name else "gold" if "Straw" in name else color
                self.lie(sprites.named("path", "copper" if "Brick" in name else color), tile)
            case _:
                self.put(sprites.tree(grown, self.world.season), tile)

    def _thing(self, tile: Tile, thing: Thing) -> None:
        sprites = self.sprites
        at = (tile[0] * 7 + tile[1] * 13 + tile[0] * tile[1]) % 6
        self.put(sprites.thing(thing, self.world.season, at), tile)
        product, left = thing.facts.get("product"), thing.facts.get("minutes", 0)
        if product and left <= 0:
            self.put(sprites.named("bubble", part=0.8), tile, lift=1.3, deep=0.5)
            self.put(sprites.icon(product, 0.5), tile, lift=1.66, deep=0.6)
        if self.night and any(each in thing.name for each in _SHINING):
            self._shine(tile)

    def _shine(self, tile: Tile) -> None:
        number = self.sprites.glow()
        x, y = self.at(tile)
        reach = (self.sprites.atlas.sizes[number][0] - self.side) // 2
        self.over.append((number, x - reach, y - reach))

    def _layout(self) -> None:
        sprites = self.sprites
        for tile, words in self.plan.spots.items():
            if self._sees(tile):
                name = "ladder" if words[0] in ("ladder", "exit", "cavern") else words[0]
                self.put(sprites.named(name), tile)
        for tile in self.plan.bins:
            if self._sees(tile):
                self.put(sprites.named("bin"), tile)
        for tile in self.plan.exits:
            if self._sees(tile):
                x, y = (min(max(a, 0), b - 1) for a, b in zip(tile, self._whole, strict=True))
                self.lie(sprites.named("way" if self.plan.outdoors else "mat"), (x, y))
        doors = dict(self.plan.doors)
        for kind, (x, y, w, h), door in houses(self.plan):
            doors.pop(door)
            if self._sees((x + w // 2, y + h // 2), max(w, h)):
                number = sprites.house(kind, (w, h), door[0] - x)
                self.put(number, (x, y + h - 1), wide=w, deep=-0.4)
                if door[1] >= y + h:
                    self.lie(sprites.named("mat"), door)
                self._sign(kind, door)
        for tile, to in doors.items():
            if self._sees(tile):
                self.put(sprites.named("grate" if to.to == "Sewer" else "mouth"), tile)

    def _sign(self, kind: str, door: Tile) -> None:
        self._label(kind, (door[0] + 0.5, door[1] - 0.62), (door[0] + 0.5, door[1] - 1.15))

    def _label(self, words: str, *spots: tuple[float, float]) -> None:
        """Writes a name at the first of some spots where it does not cover the farmer."""
        me, drawn = self.at(self.world.farmer.tile), list[Drawn]()
        for spot in spots:
            drawn = self.sprites.label(words, *self.at(spot))
            number, x, y = drawn[0]
            wide, high = self.sprites.atlas.sizes[number]
            beside = x >= me[0] + self.side or x + wide <= me[0]
            if beside or y >= me[1] + self.side or y + high <= me[1] - 0.75 * self.side:
                break
        self.over += drawn

    def _furniture(self, piece: Furniture) -> None:
        if not self._sees(piece.tile, 4):
            return
        number = self.sprites.furniture(piece.name, piece.size)
        x, y = piece.tile
        flat = "Rug" in piece.name
        self.put(number, (x, y + piece.size[1] - 1), wide=piece.size[0], deep=-99 if flat else -0.3)

    def _building(self, made: Building) -> None:
        (x, y), (w, h), sprites = made.tile, made.size, self.sprites
        if not self._sees((x + w // 2, y + h // 2), 8):
            return
        low = x, y + h - 1
        if made.kind in table("icons")["houses"]:
            door, gate = places.door(made), places.gate(made)
            number = sprites.house(
                made.kind, made.size, door[0] - x if door else -1, gate[0] - x if gate else -1,
                opened=made.gate_open,
            )  # fmt: skip
        else:
            number = sprites.named(
                made.kind, *(["blue" if made.full else "wood"] if h == 2 else [])
            )
        self.put(number, low, wide=w, deep=-0.4)
        if made.days:
            self.put(sprites.named("scaffold"), low, wide=w, deep=-0.3)

    def _beings(self) -> None:
        key, sprites, world = self.place.key, self.sprites, self.world
        for resident in world.residents.values():
            if resident.place == key and self._sees(resident.tile):
                self.put(sprites.person(resident.name, resident.facing), resident.tile, deep=0.1)
                x, y = resident.tile
                self._label(resident.name, (x + 0.5, y + 1.1), (x + 0.5, y - 1.15))
        for animal in world.animals:
            if animal.place == key and self._sees(animal.tile):
                young = animal.age < content().animals[animal.kind].grows
                flip = sum(animal.tile) % 2 > 0
                number = sprites.creature("animals", animal.kind, young=young, flip=flip)
                self.put(number, animal.tile, deep=0.1)
        for pet in world.pets:
            if pet.place == key and self._sees(pet.tile):
                self.put(sprites.creature("pets", pet.kind), pet.tile, deep=0.1)
        for monster in self.place.monsters:
            if not self._sees(monster.tile):
                continue
            at = monster.x, monster.y
            if not monsters.hidden(monster):
                flip = monster.x > world.farmer.tile[0]
                self.put(sprites.creature("monsters", monster.name, flip=flip), at, deep=0.1)
            elif content().monsters[monster.name].moves == "hide":
                self.put(sprites.named("stone0"), at)

    def _farmer(self) -> None:
        me, sprites = self.world.farmer, self.sprites
        self.put(sprites.person("", me.facing), me.tile, deep=0.2)
        if me.hand:
            number = sprites.icon(me.hand.name, 0.6)
            x = me.tile[0] + {RIGHT: 0.38, LEFT: -0.38}.get(me.facing, 0.3)
            self.put(number, (x, me.tile[1]), lift=0.22, deep=0.1 if me.facing == BACK else 0.3)
        self.lie(sprites.named("marker"), me.ahead)


def _camera(at: float, whole: int, size: int) -> int:
    """The first pixel of a map in sight: the farmer's is in the middle, unless the map ends."""
    if whole <= size:
        return (whole - size) // 2
    return int(min(max(at - size / 2, 0), whole - size))


VARIANTS = 4
WIDEST, HIGHEST = 15, 9
"""A wall of an outdoor map that is no larger, with a door in its lowest row, is a house."""
_NATURE = {
    maps.WATER: "water", maps.DIRT: "dirt", maps.GRASS: "grass", maps.SAND: "sand",
    maps.STONE: "stone", maps.FLOOR: "floor", maps.WOOD: "wood",
}  # fmt: skip
_FACES = 3  # tiles of a wall that are seen above a floor
_AROUND = ((0, -1), (1, 0), (0, 1), (-1, 0), (1, -1), (1, 1), (-1, 1), (-1, -1))


def houses(plan: Plan) -> list[tuple[str, tuple[int, int, int, int], Tile]]:
    """Returns the houses of an outdoor map: where the door leads, rectangle, door."""
    found = []
    for door, to in plan.doors.items() if plan.outdoors else ():
        for x, y, w, h in plan.walls:
            below = y + h - door[1]
            if x <= door[0] < x + w and below in (0, 1) and w <= WIDEST and 2 < h <= HIGHEST:
                found.append((to.to, (x, y, w, h), door))
                break
    return found


@lru_cache(256)
def layer(atlas: Atlas, plan: Plan, theme: str) -> NDArray[np.int32]:
    """Returns the tiles of a map, ``(height, width)``."""
    kinds = _kinds(plan)
    rng = np.random.default_rng([plan.width, plan.height, 0x9A])
    variants = rng.integers(0, VARIANTS, kinds.shape)
    ranks = np.vectorize(lambda kind: _row(kind, theme)[1], otypes=[int])(kinds)
    found = np.zeros(kinds.shape, np.int32)
    for (y, x), kind in np.ndenumerate(kinds):
        over = []
        for dx, dy in _AROUND:
            at = min(max(y + dy, 0), plan.height - 1), min(max(x + dx, 0), plan.width - 1)
            over.append(str(kinds[at]) if 0 < ranks[y, x] < ranks[at] else "")
        for corner in range(4, 8):
            if over[corner - 4] or over[(corner - 3) % 4]:
                over[corner] = ""
        shaded = kind not in _DEEP and kinds[max(y - 1, 0), x] in _TALL
        key = (str(kind), theme, int(variants[y, x]), *over, shaded)
        found[y, x] = atlas.tile(key, lambda key=key: _tile(atlas.side, *key))  # type: ignore[misc]
    return found


_DEEP = ("void", "woods", "rock", "face", "skirting", "cliff")
_TALL = ("skirting", "rock", "cliff", "counter")


def _kinds(plan: Plan) -> NDArray[Any]:
    made = plan.made.T.copy()
    for _, (x, y, w, h), _ in houses(plan):
        below = made[min(y + h, plan.height - 1), x : x + w]
        made[y : y + h, x : x + w] = (
            below[below < maps.SPOT][:1] if (below < maps.SPOT).any() else 3
        )
    for y in range(plan.height - 2, -1, -1):
        special = made[y] >= maps.SPOT
        made[y, special] = made[y + 1, special]
    made[-1, made[-1] >= maps.SPOT] = maps.WALL
    cave = plan.name.startswith(("UndergroundMine", "Mine", "SkullCave", "FarmCave", "Sewer"))
    kinds = np.empty(made.shape, "U8")
    for code, name in _NATURE.items():
        kinds[made == code] = "cave" if cave and code in (maps.DIRT, maps.STONE) else name
    depth = np.full(plan.width, 99)  # rows of wall down to the next floor; many if there is none
    for y in range(plan.height - 1, -1, -1):
        wall = made[y] == maps.WALL
        depth = np.where(wall, depth + 1, 0)
        above = made[y - 1] == maps.WALL if y else np.ones(plan.width, bool)
        if cave:
            kinds[y, wall] = "rock"
        elif plan.outdoors:
            kinds[y, wall] = np.where(depth == 1, "cliff", "woods")[wall]
        else:
            kinds[y, wall] = "void"
            kinds[y, wall & (depth > 1) & (depth <= _FACES)] = "face"
            kinds[y, wall & (depth == 1)] = "skirting"
            kinds[y, wall & (depth == 1) & ~above] = "counter"
    return kinds


def _row(kind: str, theme: str) -> tuple[str, int, Any, str]:
    rows = table("shapes")["ground"]
    base, rank, marks, *always = rows.get(f"{kind}/{theme}") or rows[kind]
    return base, rank, marks, always[0] if always else ""


def _tile(side: int, kind: str, theme: str, variant: int, *around: Any) -> Pixels:
    """Paints a tile; ``around`` says which kinds overlap it from each side and corner."""
    base, _, marks, always = _row(kind, theme)
    rng = np.random.default_rng([variant, *kind.encode()])
    shapes = [f"R {base} -1 -1 18 18", always]
    for mark, count in marks:
        for _ in range(count):
            x, y = rng.uniform(1.5, 14.5, 2)
            shapes.append("; ".join(_moved(each, x, y) for each in mark.split(";")))
    for number, other in enumerate(around[:8]):
        if other:
            shapes.append(_fringe(_row(other, theme)[0], number, rng))
    image = paint("; ".join(shapes), (1, 1), side, outline=False)[..., :3]
    light = 0.97 / np.linspace(1.0, 0.9, side)  # without the shade of a sprite
    if around[8]:
        light[: side // 4] *= np.linspace(0.62, 1.0, side // 4)
    return np.minimum(np.round(image * light[:, None, None]), 255).astype(np.uint8)


def _moved(shape: str, x: float, y: float) -> str:
    kind, name, *numbers = shape.split()
    values = np.array(numbers, float)
    skip = 1 if kind in "lL" else 0
    if kind in "rRoOaA":
        values[:2] += (x, y)
    else:
        values[skip::2] += x
        values[skip + 1 :: 2] += y
    return f"{kind} {name} {' '.join(f'{v:.2f}' for v in values)}"


def _fringe(base: str, number: int, rng: np.random.Generator) -> str:
    """The edge of a neighbor that overlaps: a wavy strip at a side, or a spot in a corner."""
    dark = f"{base}-"
    if number >= 4:
        x, y = ((16, 0), (16, 16), (0, 16), (0, 0))[number - 4]
        return f"O {dark} {x} {y} 3.5 3.5; O {base} {x} {y} 2.7 2.7"
    along = np.linspace(-1, 17, 9)
    deep = 2.6 + rng.uniform(-0.8, 0.8, 9)
    deep[[0, 1, -2, -1]] = 2.6
    found = []
    for name, extra in ((dark, 0.8), (base, 0.0)):
        d = deep + extra
        xs, ys = ((along, d), (16 - d, along), (along, 16 - d), (d, along))[number]
        ends = (
            ((17, -1), (-1, -1)),
            ((17, 17), (17, -1)),
            ((17, 17), (-1, 17)),
            ((-1, 17), (-1, -1)),
        )
        points = [*zip(xs, ys, strict=True), *ends[number]]
        found.append(f"P {name} " + " ".join(f"{a:.2f} {b:.2f}" for a, b in points))
    return "; ".join(found)
