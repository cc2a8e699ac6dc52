"""The drawings of the screen, all our own: backdrop, elements, faces, creatures, buttons."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable

import cv2
import numpy as np

from bridges.starbench.pictures.sprites import Colour, Pen, Picture, Sprite, sprite
from rollout.errors import UnknownNameError

WHITE: Colour = (242, 244, 252)
DIM: Colour = (160, 168, 198)
GOLD: Colour = (246, 206, 124)
CYAN: Colour = (112, 222, 255)
RED: Colour = (255, 98, 108)
GREEN: Colour = (122, 230, 168)
PANEL: Colour = (20, 24, 46)
EDGE: Colour = (78, 88, 134)
DARK: Colour = (8, 10, 22)

ELEMENTS: dict[str, Colour] = {
    "physical": (206, 208, 214),
    "fire": (255, 116, 82),
    "ice": (124, 206, 255),
    "lightning": (208, 128, 255),
    "wind": (104, 226, 168),
    "quantum": (138, 122, 255),
    "imaginary": (255, 218, 98),
}
"""Colours of the elements."""


def colour_of(element: str) -> Colour:
    """Returns the colour of an element.

    Raises:
        UnknownNameError: there is no such element.
    """
    try:
        return ELEMENTS[element.lower()]
    except KeyError:
        raise UnknownNameError("element", element, ELEMENTS) from None


def blend(one: Colour, other: Colour, share: float) -> Colour:
    """Returns a mixture of two colours."""
    mixed = [round(a * (1 - share) + b * share) for a, b in zip(one, other, strict=True)]
    return mixed[0], mixed[1], mixed[2]


def hue(degrees: float, strength: float, value: float) -> Colour:
    """Returns a colour of the wheel."""
    pixel = np.array([[[degrees % 360 / 2, strength * 255, value * 255]]]).round().astype(np.uint8)
    red, green, blue = cv2.cvtColor(pixel, cv2.COLOR_HSV2RGB)[0, 0].tolist()
    return red, green, blue


def _random(name: str) -> np.random.RandomState:
    return np.random.RandomState(zlib.crc32(name.encode()))  # the same on every machine


def _ring(n: int, radius: float, turn: float = 0.0) -> list[tuple[float, float]]:
    angles = [math.tau * (i / n) + turn - math.pi / 2 for i in range(n)]
    return [(radius * math.cos(a), radius * math.sin(a)) for a in angles]


def _star(n: int, outer: float, inner: float, turn: float = 0.0) -> list[tuple[float, float]]:
    out, into = _ring(n, outer, turn), _ring(n, inner, turn + math.pi / n)
    return [point for pair in zip(out, into, strict=True) for point in pair]


def backdrop(name: str, width: int, height: int) -> Picture:
    """Returns the scenery of a battle: a night sky over an arena, its colours by the name."""
    random = _random(name)
    base = random.uniform(200, 300)
    y = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    stops = [hue(base + 20, 0.75, 0.09), hue(base, 0.6, 0.24), hue(base - 40, 0.5, 0.42)]
    high, middle, low = (np.array(each, np.float32) for each in stops)
    up = np.clip(y / 0.45, 0, 1)
    down = np.clip((y - 0.45) / 0.16, 0, 1)
    sky = (high * (1 - up) + middle * up) * (1 - down) + low * down
    image = np.repeat(sky, width, axis=1)
    for cells, strength in ((5, 16), (12, 10), (30, 5)):  # clouds
        noise = random.standard_normal((cells, cells * 2, 1)).astype(np.float32)
        wide = cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)[..., None]
        image += wide * strength * np.array(hue(base - 60, 0.5, 1), np.float32) / 255
    floor = np.clip((y - 0.6) / 0.02, 0, 1)  # the ground, dark towards the viewer
    ground = np.array(hue(base + 10, 0.6, 0.17), np.float32) * (1.25 - y * 0.85)
    image = image * (1 - floor) + np.repeat(ground, width, axis=1) * floor
    picture: Picture = np.clip(image, 0, 255).astype(np.uint8)
    s = width / 1920
    stars = random.uniform(0, 1, (260, 4))
    for x, up_, size, light in stars:
        centre = (round(x * width * 16), round(up_ * 0.55 * height * 16))
        glow = round(70 + 150 * light**2)
        cv2.circle(picture, centre, round((0.7 + 1.6 * size**4) * s * 16), (glow,) * 3, -1, 16, 4)
    _scenery(picture, random, base, s)
    return picture


def _scenery(picture: Picture, random: np.random.RandomState, base: float, s: float) -> None:
    """Draws a planet, far ridges and the circles of the arena."""
    height, width = picture.shape[:2]
    over = picture.copy()
    px, py = round(width * random.uniform(0.62, 0.78)), round(height * 0.2)
    radius = round(210 * s)
    cv2.circle(over, (px, py), radius, hue(base - 30, 0.42, 0.55), -1, 16)
    shade = (px + round(46 * s), py + round(34 * s))
    cv2.circle(over, shade, round(radius * 1.02), hue(base, 0.6, 0.25), -1, 16)
    tilt = round(random.uniform(-28, -12))
    axes = (round(330 * s), round(46 * s))
    cv2.ellipse(over, (px, py), axes, tilt, 0, 360, hue(base - 50, 0.3, 0.7), 1, 16)
    cv2.addWeighted(over, 0.5, picture, 0.5, 0, picture)
    for depth, (level, value) in enumerate(((0.52, 0.2), (0.57, 0.14))):
        steps = random.uniform(0, 1, 25)
        line = [(i / 24, level + 0.07 * (v - 0.4)) for i, v in enumerate(steps)]
        points = [(0.0, 0.62), *line, (1.0, 0.62)]
        shape = np.array([(x * width, y * height) for x, y in points]).round().astype(np.int32)
        cv2.fillPoly(picture, [shape], hue(base + 8 * depth, 0.6, value), 16)
    over = picture.copy()
    centre = (round(890 * s), round(690 * s))
    for axes_x, thick in ((840, 2), (700, 1), (520, 3), (330, 1)):
        ring = (round(axes_x * s), round(axes_x * 0.2 * s))
        tone = hue(base - 50, 0.4, 0.9)
        cv2.ellipse(over, centre, ring, 0, 0, 360, tone, max(1, round(thick * s)), 16)
    for turn in range(24):
        a = math.tau * turn / 24
        ends = [
            (centre[0] + round(r * s * math.cos(a)), centre[1] + round(r * s * 0.2 * math.sin(a)))
            for r in (520, 700)
        ]
        cv2.line(over, ends[0], ends[1], hue(base - 50, 0.4, 0.8), 1, 16)
    cv2.addWeighted(over, 0.35, picture, 0.65, 0, picture)


def _physical(pen: Pen, c: Colour) -> None:
    pen.polygon(_star(4, 0.62, 0.2), c)
    pen.line(_ring(4, 0.62), c, 0.09, closed=True)


def _fire(pen: Pen, c: Colour) -> None:
    flame = [(0, -0.68), (0.3, -0.2), (0.42, -0.3), (0.5, 0.18), (0.3, 0.56), (0, 0.66)]
    pen.polygon(flame + [(-x, y) for x, y in reversed(flame[2:-1])] + [(-0.28, -0.12)], c)
    pen.polygon([(0, -0.06), (0.2, 0.3), (0, 0.54), (-0.2, 0.3)], blend(c, WHITE, 0.65))


def _ice(pen: Pen, c: Colour) -> None:
    for x, y in _ring(6, 0.64):
        pen.line([(0, 0), (x, y)], c, 0.12)
        for side in (0.5, -0.5):
            a = math.atan2(y, x) + side
            pen.line([(0.55 * x, 0.55 * y), (0.62 * math.cos(a), 0.62 * math.sin(a))], c, 0.09)


def _lightning(pen: Pen, c: Colour) -> None:
    bolt = [(0.14, -0.7), (-0.4, 0.1), (-0.04, 0.1), (-0.16, 0.7), (0.42, -0.16), (0.06, -0.16)]
    pen.polygon(bolt, c)


def _wind(pen: Pen, c: Colour) -> None:
    for y, x, r in ((-0.28, 0.18, 0.2), (0.06, 0.34, 0.22), (0.4, 0.06, 0.18)):
        pen.line([(-0.64, y), (x, y)], c, 0.12)
        pen.ellipse((x, y - r), (r, r), c, width=0.12, arc=(-70, 90))


def _quantum(pen: Pen, c: Colour) -> None:
    pen.ellipse((0, 0), (0.6, 0.6), c, width=0.1)
    pen.ellipse((0, 0), (0.24, 0.6), c, width=0.08)
    pen.ellipse((0, 0), (0.14, 0.14), blend(c, WHITE, 0.6))


def _imaginary(pen: Pen, c: Colour) -> None:
    pen.polygon(_star(8, 0.68, 0.2), c)
    pen.ellipse((0, 0), (0.2, 0.2), blend(c, WHITE, 0.7))


_SIGNS: dict[str, Callable[[Pen, Colour], None]] = {
    "physical": _physical,
    "fire": _fire,
    "ice": _ice,
    "lightning": _lightning,
    "wind": _wind,
    "quantum": _quantum,
    "imaginary": _imaginary,
}


@functools.lru_cache(256)
def element(name: str, size: int) -> Sprite:
    """Returns the sign of an element on a disc."""
    c = colour_of(name)
    pen = Pen(size, size)
    pen.ellipse((0, 0), (0.96, 0.96), DARK, alpha=0.85)
    pen.ellipse((0, 0), (0.9, 0.9), blend(c, DARK, 0.3), width=0.08)
    _SIGNS[name.lower()](pen, c)
    return pen.finish()


@functools.lru_cache(256)
def face(name: str, tone: Colour, size: int, *, dark: bool = False) -> Sprite:
    """Returns the portrait of an ally; hair, dress and eyes follow from the name."""
    random = _random(name)
    hair = hue(random.uniform(0, 360), random.uniform(0.2, 0.65), random.uniform(0.5, 0.95))
    dress = blend(tone, DARK, 0.35)
    skin = blend((255, 226, 206), tone, 0.08)
    style = random.randint(4)
    pen = Pen(size, size)
    pen.rounded(size * 0.14, blend(tone, DARK, 0.55), low=blend(tone, DARK, 0.85), border=tone)
    pen.glow((0, -0.1), 0.95, tone, 0.5)
    back = {
        0: [(-0.52, -0.3), (-0.62, 0.75), (0.62, 0.75), (0.52, -0.3)],
        1: [
            *[(-0.5, -0.4), (-0.86, 0.1), (-0.78, 0.8), (-0.4, 0.1)],
            *[(0.4, 0.1), (0.78, 0.8), (0.86, 0.1), (0.5, -0.4)],
        ],
        2: [(-0.5, -0.3), (-0.5, 0.28), (0.5, 0.28), (0.5, -0.3)],
        3: [(-0.48, -0.3), (-0.7, 0.3), (-0.3, 0.55), (0.3, 0.55), (0.7, 0.3), (0.48, -0.3)],
    }[style]
    pen.polygon(back, hair, low=blend(hair, DARK, 0.45))
    pen.ellipse((0, -0.26), (0.54, 0.54), hair)
    if style == 3:  # two buns
        for x in (-0.46, 0.46):
            pen.ellipse((x, -0.66), (0.2, 0.2), hair)
    pen.polygon([(-0.12, 0.2), (0.12, 0.2), (0.14, 0.5), (-0.14, 0.5)], blend(skin, DARK, 0.2))
    pen.polygon([(-0.7, 0.92), (-0.44, 0.5), (0, 0.42), (0.44, 0.5), (0.7, 0.92)], dress)
    pen.polygon([(-0.2, 0.44), (0.2, 0.44), (0, 0.8)], blend(tone, WHITE, 0.5))
    pen.ellipse((0, -0.1), (0.37, 0.42), skin)
    fringe = random.uniform(-0.2, 0.2)
    pen.polygon(
        [
            *[(-0.46, -0.02), (-0.44, -0.5), (0, -0.72), (0.44, -0.5), (0.46, -0.02)],
            *[(0.3, -0.28), (fringe + 0.12, -0.2), (fringe, -0.34), (fringe - 0.14, -0.18)],
            (-0.3, -0.28),
        ],
        blend(hair, WHITE, 0.12),
        low=hair,
    )
    for x in (-0.16, 0.16):
        pen.ellipse((x, -0.02), (0.065, 0.1), blend(tone, DARK, 0.2))
        pen.ellipse((x + 0.02, -0.06), (0.025, 0.035), WHITE)
    pen.line([(-0.06, 0.17), (0.06, 0.17)], (176, 96, 100), 0.04)
    found = pen.finish()
    return dimmed(found) if dark else found


def dimmed(what: Sprite) -> Sprite:
    """Returns a sprite in dark grey."""
    grey = what.ink.mean(axis=2, keepdims=True) * 0.45
    return Sprite(np.repeat(grey.astype(np.uint8), 3, axis=2), what.clear)


@functools.lru_cache(256)
def creature(unit: str, kind: str, size: int) -> Sprite:
    """Returns the picture of an enemy; its shape and colours follow from its id."""
    random = _random(unit)
    warm = random.uniform(-70, 70)
    main, rim = hue(warm, 0.55, 0.62), hue(warm + random.uniform(25, 70), 0.5, 1.0)
    deep = blend(main, DARK, 0.72)
    pen = Pen(size, size)
    pen.glow((0, 0), 1.0, rim, 0.42 if kind == "boss" else 0.3)
    pen.ellipse((0, 0.86), (0.5, 0.08), DARK, alpha=0.6)  # its shadow
    if kind == "boss":
        _wings(pen, random, deep, rim)
    if kind == "summon":
        pen.polygon(_star(4, 0.74, 0.34), main, low=deep)
        pen.line(_star(4, 0.74, 0.34), rim, 0.035, closed=True)
    else:
        n = random.randint(5, 9)
        half = [
            (math.sin(math.pi * (i + 0.5) / n) * random.uniform(0.34, 0.68), 1.56 * i / n - 0.78)
            for i in range(n)
        ]
        body = [(0.0, -0.84), *half, (0.0, 0.84), *[(-x, y) for x, y in reversed(half)]]
        pen.polygon(body, main, low=deep)
        pen.line(body, rim, 0.035, closed=True)
        for x, y in half[1:-1:2]:
            pen.line([(0, y * 0.6), (x * 0.86, y)], rim, 0.02, alpha=0.6)
            pen.line([(0, y * 0.6), (-x * 0.86, y)], rim, 0.02, alpha=0.6)
        reach, lift = random.uniform(0.3, 0.6), random.uniform(0.75, 0.95)
        for side in (-1, 1):  # horns
            horn = [(side * 0.1, -0.5), (side * reach, -lift), (side * 0.3, -0.42)]
            pen.polygon(horn, blend(rim, WHITE, 0.4), low=main)
    eyes = {0: [0.0], 1: [-0.2, 0.2], 2: [-0.26, 0.0, 0.26]}[random.randint(3)]
    for x in eyes:
        pen.glow((x, -0.2), 0.3, rim, 0.8)
        pen.ellipse((x, -0.2), (0.1, 0.065), WHITE)
        pen.ellipse((x, -0.2), (0.035, 0.06), deep)
    pen.polygon([(0, 0.02), (0.1, 0.2), (0, 0.38), (-0.1, 0.2)], rim, low=blend(rim, WHITE, 0.5))
    return pen.finish()


def _wings(pen: Pen, random: np.random.RandomState, deep: Colour, rim: Colour) -> None:
    pen.ellipse((0, -0.2), (0.78, 0.78), rim, width=0.03, alpha=0.8)
    pen.ellipse((0, -0.2), (0.7, 0.7), rim, width=0.012, alpha=0.7)
    for feather in range(4):
        y, reach = -0.5 + 0.3 * feather, random.uniform(0.78, 0.97)
        for side in (-1, 1):
            wing = [(side * 0.2, y), (side * reach, y - 0.34), (side * 0.5, y + 0.12)]
            pen.polygon(wing, blend(deep, rim, 0.35), low=deep)
            pen.line(wing, rim, 0.015, closed=True, alpha=0.7)


@functools.lru_cache(64)
def button(name: str, size: int, tone: Colour, *, enabled: bool, chosen: bool) -> Sprite:
    """Returns a round button: ``basic`` (a blade) or ``skill`` (a burst)."""
    c = tone if enabled else (104, 108, 124)
    pen = Pen(size, size)
    pen.ellipse((0, 0), (0.98, 0.98), DARK, alpha=0.7)
    pen.ellipse((0, 0), (0.9, 0.9), blend(c, DARK, 0.45), low=blend(c, DARK, 0.8))
    pen.ellipse((0, 0), (0.9, 0.9), GOLD if chosen else c, width=0.07)
    pen.ellipse((0, 0), (0.76, 0.76), c, width=0.02, alpha=0.5)
    light = blend(c, WHITE, 0.75) if enabled else c
    if name == "basic":
        pen.polygon([(0.44, -0.5), (0.5, -0.44), (-0.14, 0.3), (-0.26, 0.18)], light)
        pen.line([(-0.36, 0.04), (-0.02, 0.38)], light, 0.1)
        pen.line([(-0.22, 0.24), (-0.44, 0.46)], light, 0.12)
    else:
        pen.polygon(_star(8, 0.56, 0.2), light)
        pen.ellipse((0, 0), (0.36, 0.36), light, width=0.05)
    return pen.finish()


def burst(n: int) -> list[tuple[float, float]]:
    """Returns the corners of a star with many short rays."""
    return _star(n, 0.99, 0.84)


@functools.lru_cache(256)
def shade(high: Colour, low: Colour, h: int) -> Picture:
    """Returns the colours of the rows of a bar."""
    t = np.linspace(0, 1, h)[:, None, None]
    return np.rint(np.array(high) * (1 - t) + np.array(low) * t).astype(np.uint8)


@functools.lru_cache(32)
def veil(w: int, h: int) -> Sprite:
    """Returns a shadow that fades at both ends."""
    x = np.abs(np.linspace(-1, 1, w, dtype=np.float32))
    alpha = 0.5 * np.clip((1 - x) * 2.5, 0, 1)
    clear = np.rint(255 * (1 - alpha)).astype(np.uint8)
    return Sprite(np.zeros((h, w, 3), np.uint8), np.tile(clear[None, :, None], (h, 1, 3)))


@functools.lru_cache(32)
def pip(size: int, on: bool) -> Sprite:
    """Returns a skill point."""
    pen = Pen(size, size)
    diamond = [(0, -0.9), (0.66, 0), (0, 0.9), (-0.66, 0)]
    if on:
        pen.glow((0, 0), 1.0, GOLD, 0.6)
    pen.polygon(diamond, GOLD if on else PANEL, low=(226, 158, 78) if on else DARK)
    pen.line(diamond, WHITE if on else EDGE, 0.1, closed=True)
    return pen.finish()


@functools.lru_cache(64)
def dial(size: int, tone: Colour, ready: bool) -> Sprite:
    """Returns the ring of an ultimate, without its energy."""
    pen = Pen(size, size)
    if ready:
        pen.glow((0, 0), 1.0, GOLD, 0.9)
        pen.polygon(burst(12), GOLD, alpha=0.9)
    pen.ellipse((0, 0), (0.86, 0.86), DARK)
    pen.ellipse((0, 0), (0.8, 0.8), (48, 54, 82), width=0.16)
    pen.ellipse((0, 0), (0.66, 0.66), blend(GOLD if ready else tone, DARK, 0.78))
    return pen.finish()


@functools.lru_cache(32)
def brackets(w: int, h: int, tone: Colour) -> Sprite:
    """Returns the mark of what is selected."""
    pen = Pen(w, h)
    short = min(w, h)
    x, y = w / short * 0.96, h / short * 0.96
    for a in (-1, 1):
        for b in (-1, 1):
            corner = [(a * x, b * (y - 0.3)), (a * x, b * y), (a * (x - 0.3), b * y)]
            pen.line(corner, tone, 0.05)
    pen.polygon([(-0.1, -y), (0.1, -y), (0, -y + 0.14)], tone)
    return pen.finish()


@functools.lru_cache(16)
def alarm(size: int) -> Sprite:
    """Returns the warning around an enemy that prepares a heavy move."""
    pen = Pen(size, size)
    pen.glow((0, 0), 1.0, RED, 0.6)
    pen.ellipse((0, 0), (0.94, 0.94), RED, width=0.03)
    pen.polygon([(0, -0.98), (0.2, -0.64), (-0.2, -0.64)], RED)
    pen.line([(0, -0.88), (0, -0.76)], WHITE, 0.05)
    return pen.finish()


@functools.lru_cache(8)
def banner(w: int, h: int, tone: Colour) -> Sprite:
    """Returns a band of dark light across the screen."""
    rgba = np.zeros((h, w, 4), np.float32)
    x = np.abs(np.linspace(-1, 1, w, dtype=np.float32))
    rgba[..., :3] = blend(tone, DARK, 0.82)
    rgba[..., 3] = 235 * np.clip(1.15 - x, 0, 1)
    line = max(1, h // 90)
    for rows in (slice(0, line), slice(h - line, h)):
        rgba[rows, :, :3] = tone
        rgba[rows, :, 3] = 255 * np.clip(1 - x, 0, 1)
    return sprite(rgba)
