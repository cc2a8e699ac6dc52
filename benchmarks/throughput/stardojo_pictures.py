"""How long a picture of the valley takes, by size and scene; and a sheet of such scenes.

python -m benchmarks.throughput.stardojo_pictures
python -m benchmarks.throughput.stardojo_pictures --sheet docs/stardojo-valley.png
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.report import arguments, publish, table
from bridges.stardojo.pictures import draw
from bridges.stardojo.valley import mines, places, rules
from bridges.stardojo.valley.data import content
from bridges.stardojo.valley.valley import Valley
from bridges.stardojo.valley.world import Crop, Ground, Item, Menu, Monster, Thing

SIZES = ((1280, 720), (640, 360), (320, 180))
LIMIT, REPEATS, STEPS = 3.0, 100, 150
HOUR = 42 * 60
COLUMNS, SMALL = 3, (480, 270)


def farm() -> Valley:
    """A farm with crops in all phases, machines, fences and a chest."""
    valley = Valley("save_farming", 3)
    world = valley.world
    here = world.here
    for x in range(54, 76):
        for y in range(16, 23):
            here.things.pop((x, y), None)
            here.ground.pop((x, y), None)
    seeds = ("Parsnip Seeds", "Bean Starter", "Cauliflower Seeds", "Strawberry Seeds", "Corn Seeds")
    for row, seed in enumerate(seeds):
        phases = len(content().crops[seed].phases)
        for column in range(7):
            crop = Crop(seed, round(column / 6 * phases))
            here.ground[57 + column, 17 + row] = Ground("dirt", watered=row % 2 == 0, crop=crop)
    names = ("Furnace", "Keg", "Preserves Jar", "Scarecrow", "Chest", "Sprinkler", "Torch")
    for at, name in enumerate(names):
        here.things[66 + at, 19] = Thing(name, "machine")
    here.things[66, 19].facts = {"product": "Copper Bar", "minutes": 0, "count": 1}
    for x in range(65, 74):
        here.things[x, 21] = Thing("Wood Fence", "fence")
    world.farmer.bag[5:7] = [Item("Parsnip Seeds", 15), Item("Wood", 120)]
    world.farmer.bag[7:10] = [Item("Cauliflower", 3, 2), Item("Copper Bar", 7), Item("Egg", 1, 1)]
    world.farmer.slot = 7
    world.farmer.energy = 133.0
    return valley


def at(key: str, tile: tuple[int, int], ticks: int = 0, **changes: object) -> Valley:
    """A valley whose farmer is at a tile of a map."""
    valley = Valley("save_quests", 3)
    for name, value in changes.items():
        setattr(valley.world, name, value)
    places.warp(valley.world, key, tile)
    valley.world.menu = None
    valley.advance(ticks)
    return valley


def mine(level: int) -> Valley:
    """A floor of the mines, with what lives there close by."""
    valley = at(f"{mines.FLOOR}{level}", (0, 0))
    here = valley.world.here
    valley.world.farmer.tile = places.plan(here).arrival
    names = sorted(mines.area(level).monsters)
    free = (tile for tile in places.rings(valley.world.farmer.tile, 8)
            if places.free(valley.world, here, tile) and tile not in here.things)  # fmt: skip
    near = [tile for tile in free if tile != valley.world.farmer.tile][2::3]
    here.monsters = [
        Monster(name, *tile, 10, {"up": True}) for name, tile in zip(names, near, strict=False)
    ]
    return valley


def shown(valley: Valley, menu: Callable[[Valley], None]) -> Valley:
    """The valley with a menu."""
    menu(valley)
    return valley


def scenes() -> Iterator[tuple[str, Valley]]:
    """Yields scenes by name."""
    yield "farm", farm()
    yield "autumn", at("Farm", (66, 22), season="fall")
    yield "rain", at("Forest", (88, 20), weather="rain", season="summer")
    yield "winter", at("Town", (44, 60), 6 * HOUR, season="winter", weather="snow")
    yield "town", at("Town", (37, 58), 7 * HOUR)
    yield "night", shown(farm(), lambda valley: setattr(valley.world, "ticks", 15 * HOUR))
    yield "beach", at("Beach", (33, 35), 4 * HOUR)
    yield "shop", at("SeedShop", (5, 20), 4 * HOUR)
    yield "barn", at_barn()
    yield "floor 12", mine(12)
    yield "floor 45", mine(45)
    yield "floor 90", mine(90)
    yield "dialogue", shown(at("SeedShop", (5, 20), 4 * HOUR), lambda valley: rules.say(
        valley.world, "Welcome! Seeds, saplings, flour: I have everything a farm needs.",
        speaker="Pierre"))  # fmt: skip
    yield "question", shown(farm(), lambda valley: rules.ask(
        valley.world, "Go to sleep now?", [("y", "Yes"), ("n", "No")], "bed"))  # fmt: skip
    yield "shop menu", shown(farm(), lambda valley: open_menu(valley, "shop", shop="SeedShop"))
    yield "journal", shown(at("Town", (60, 60)), lambda valley: open_menu(valley, "journal"))
    yield "elevator", shown(mine(10), lambda valley: open_menu(valley, "elevator"))
    yield "desert", at("Desert", (9, 52), 5 * HOUR)


def at_barn() -> Valley:
    """The inside of a barn."""
    valley = Valley("save_farming", 3)
    key = next(each.inside for each in valley.world.buildings if "Barn" in each.kind)
    places.warp(valley.world, key, (11, 9))
    return valley


def open_menu(valley: Valley, kind: str, **facts: object) -> None:
    """Opens a menu."""
    valley.world.mine_level = 40
    valley.world.menu = Menu(kind, dict(facts))


def times(work: Callable[[], object], count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of the wall and of the processor that each call took."""
    wall, busy = [], []
    for _ in range(count):
        began, worked = time.perf_counter(), time.process_time()
        work()
        wall.append(1e3 * (time.perf_counter() - began))
        busy.append(1e3 * (time.process_time() - worked))
    return wall, busy


def row(name: str, size: tuple[int, int], wall: list[float], busy: list[float]) -> list[str]:
    """A row of the table."""
    cells = [f"{np.percentile(each, p):.2f}" for each in (busy, wall) for p in (50, 99)]
    return [name, "{}x{}".format(*size), *cells]


def measure() -> str:
    """Returns the table: each scene again and again, then one valley that is played at random."""
    rows = []
    found = dict(scenes())
    for size in SIZES:
        for name in ("farm", "rain", "town", "floor 12", "shop menu"):
            draw(found[name], *size)
            rows.append(row(name, size, *times(lambda: draw(found[name], *size), REPEATS)))  # noqa: B023
        valley, rng = Valley("save_new", 1), np.random.default_rng(1)
        wall, busy = [], []
        for _ in range(STEPS):
            valley.act("move_relative", tuple(map(int, rng.integers(-3, 4, 2))))
            spent = times(lambda: draw(valley, *size), 1)  # noqa: B023
            wall += spent[0]
            busy += spent[1]
        rows.append(row("a walk on the farm, sprites painted on the way", size, wall, busy))
    names = ["scene", "size", "processor p50, ms", "p99", "wall p50, ms", "p99"]
    return table(names, rows)


def sheet() -> NDArray[np.uint8]:
    """Returns all scenes in one picture."""
    found = [cv2.resize(draw(valley, 1280, 720), SMALL, interpolation=cv2.INTER_AREA)
             for _, valley in scenes()]  # fmt: skip
    rows = [np.hstack(found[at : at + COLUMNS]) for at in range(0, len(found), COLUMNS)]
    return np.vstack(rows)


def main() -> None:
    """Measures, or writes the sheet."""
    parser = arguments(__doc__)
    parser.add_argument("--sheet", help="where to write the sheet, instead of measuring")
    asked = parser.parse_args()
    if asked.sheet:
        Image.fromarray(sheet()).quantize(128, dither=Image.Dither.NONE).save(
            asked.sheet, optimize=True
        )
        return
    about = f"{REPEATS} pictures of a scene, {STEPS} of a walk; wanted: {LIMIT:g} ms at 1280x720.\n"
    text = f"{about}\n{measure()}"
    publish("stardojo_pictures", "Pictures of StarDojo's valley", text, save=asked.save)


if __name__ == "__main__":
    main()
