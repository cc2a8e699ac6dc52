"""Reads a battle from a picture: texts by glyphs or OCR, bars by their pixels.

It knows the map of the screen and nothing of the engine. What it cannot read is None or empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from bridges.starbench.pictures.layout import UiMap
from bridges.starbench.pictures.sprites import Picture
from bridges.starbench.reading.glyphs import LETTERS, NUMBERS, crop, read_bar, read_text, snap
from rollout.errors import missing_extra

if TYPE_CHECKING:
    from bridges.starbench.reading.detector import Detector  # loads torch

CHARACTERS = {
    **dict.fromkeys(("info.cycle", "info.clock", "info.wave", "info.score"), NUMBERS),
    **dict.fromkeys(("damage", "ally.energy", "order.av"), NUMBERS),
    **dict.fromkeys(("boss.percent", "enemy.percent"), NUMBERS + ".%"),
    "ally.life": NUMBERS + "/",
    "ally.percent": NUMBERS + "%",
    "points": NUMBERS + "/",
    "step": NUMBERS + "Step ",
    "invalid": NUMBERS + "Invalid/ ",
    "outcome": "VICTORYDEFEAT",
}
"""Characters that occur in a text; all for texts that are not named."""

_GOLD_RED, _GOLD_BLUE = 200, 170  # of a pixel that is gold: more red, less blue
_EDGE = 2  # pixels of the outline of bars, in pixels of the map


@dataclass(frozen=True)
class AllyRead:
    """The values on a card; shares are 0 to 1."""

    name: str
    hp: int | None
    max_hp: int | None
    share: float
    energy: int | None
    ready: bool
    acting: bool
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnemyRead:
    """The values around a detected enemy; its centre in pixels, shares from 0 to 1."""

    centre: tuple[float, float]
    kind: str
    name: str
    share: float
    toughness: float
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """A battle as read; numbers are None where none was legible."""

    outcome: str | None = None
    off_turn: bool = False
    skill_points: int | None = None
    max_skill_points: int | None = None
    damage: int | None = None
    cycle: int | None = None
    clock: int | None = None
    wave: int | None = None
    score: int | None = None
    steps: int | None = None
    invalid: int | None = None
    allies: tuple[AllyRead, ...] = ()
    enemies: tuple[EnemyRead, ...] = ()

    @property
    def actor(self) -> int | None:
        """The slot whose card is lit; None between turns."""
        lit = [slot for slot, ally in enumerate(self.allies) if ally.acting]
        return lit[0] if len(lit) == 1 and not self.off_turn else None

    @property
    def playable(self) -> bool:
        """True if it shows a battle that waits for a decision."""
        return self.outcome is None and (self.off_turn or self.actor is not None)

    def text(self) -> str:
        """Returns the tokens that a tool-assisted prompt gets (StarBench, section 3.3)."""
        lines = [
            f"enemy {4 + i}: {each.name or each.kind}, HP {100 * each.share:.0f}%, toughness "
            f"{100 * each.toughness:.0f}%" + _listed(each.statuses)
            for i, each in enumerate(self.enemies)
        ]
        lines += [
            f"ally {slot}: {each.name}, HP {_shown(each.hp)} ({100 * each.share:.0f}%), energy "
            f"{_shown(each.energy)}{', ultimate ready' if each.ready else ''}"
            f"{', acts now' if slot == self.actor else ''}" + _listed(each.statuses)
            for slot, each in enumerate(self.allies)
        ]
        lines.append(f"damage this turn: {_shown(self.damage)}")
        points = f"{_shown(self.skill_points)}/{_shown(self.max_skill_points)}"
        return "\n".join([*lines, f"skill points: {points}"])


def _listed(statuses: tuple[str, ...]) -> str:
    return f" [{'; '.join(statuses)}]" if statuses else ""


def _shown(value: int | None) -> str:
    return "?" if value is None else str(value)


def _number(text: str) -> int | None:
    digits = "".join(each for each in text if each.isdigit())
    return int(digits) if digits else None


class Reader:
    """Reads pictures of one size.

    Args:
        ui: the map of the screen.
        detector: finds enemies; without one none are read.
        ocr: reads all texts, for screens that are not ours; None for our own glyphs.
        names: whether names and statuses are read at all.
    """

    def __init__(
        self,
        ui: UiMap,
        detector: Detector | None = None,
        *,
        ocr: Ocr | None = None,
        names: bool = True,
    ) -> None:
        self.ui, self.detector, self.ocr, self.names = ui, detector, ocr, names

    def read(self, picture: Picture) -> Reading:
        """Returns what a picture says."""
        said = self._text(picture, "outcome").upper()
        if said in ("VICTORY", "DEFEAT"):
            return self._result(picture, "won" if said == "VICTORY" else "lost")
        points = self._text(picture, "points").partition("/")
        box = self.ui.box("offer")
        invalid = self._text(picture, "invalid").partition("/")[0]
        return Reading(
            off_turn=_gold(picture, box.x, box.y + box.h // 2),
            damage=self._count(picture, "damage"),
            cycle=self._count(picture, "info.cycle"),
            clock=self._count(picture, "info.clock"),
            wave=self._count(picture, "info.wave"),
            score=self._count(picture, "info.score"),
            steps=self._count(picture, "step"),
            skill_points=_number(points[0]),
            max_skill_points=_number(points[2]),
            invalid=_number(invalid),
            allies=tuple(self._ally(picture, i) for i in range(self.ui.count("ally"))),
            enemies=self._enemies(picture),
        )

    def _result(self, picture: Picture, outcome: str) -> Reading:
        text = self._text(picture, "outcome.result")
        found = [_number(part) for part in text.replace("AV", "Steps").split("Steps")]
        score, steps, clock = found if len(found) == 3 else (None, None, None)
        return Reading(outcome=outcome, score=score, steps=steps, clock=clock)

    def _text(
        self,
        picture: Picture,
        name: str,
        i: int = 0,
        j: int = 0,
        origin: tuple[float, float] | None = None,
    ) -> str:
        part = crop(picture, self.ui.box(name, i, j, origin=origin))
        if self.ocr is not None:
            return self.ocr.read(part)
        size, _, bold = self.ui.text(name)
        slack = 1 if origin is not None and self.ui.scale != 1 else 0
        characters = CHARACTERS.get(name, LETTERS)
        return read_text(part, size, bold=bold, characters=characters, slack=slack)

    def _count(self, picture: Picture, name: str) -> int | None:
        return _number(self._text(picture, name))

    def _statuses(
        self, picture: Picture, name: str, i: int = 0, origin: tuple[float, float] | None = None
    ) -> tuple[str, ...]:
        if not self.names:
            return ()
        read = (self._text(picture, name, i, j, origin) for j in range(self.ui.count(name)))
        return tuple(each for each in read if each)

    def _ally(self, picture: Picture, i: int) -> AllyRead:
        card, ring = self.ui.box("ally", i), self.ui.box("ally.ring", i)
        hp, _, most = self._text(picture, "ally.life", i).partition("/")
        return AllyRead(
            name=self._text(picture, "ally.name", i) if self.names else "",
            hp=_number(hp),
            max_hp=_number(most),
            share=read_bar(picture, self.ui.box("ally.hp", i)),
            energy=_number(self._text(picture, "ally.energy", i)),
            ready=_gold(picture, ring.x + ring.w // 2, ring.y + max(1, round(ring.h * 0.04))),
            acting=_gold(picture, card.x, card.y + card.h // 2),
            statuses=self._statuses(picture, "ally.status", i),
        )

    def _enemies(self, picture: Picture) -> tuple[EnemyRead, ...]:
        """Reads around each enemy; its bar shows to the pixel where its texts are."""
        if self.detector is None:
            return ()
        s = self.ui.scale
        seen = [
            (*each.centre, each.name)
            for each in self.detector.detect(picture)
            if each.name in ("enemy", "boss", "summon")
        ]
        found = []
        for x, y, kind in sorted(seen)[:5]:
            at = (x / s, y / s)
            edge, reach = max(1, round(_EDGE * s)), max(3, round(12 * s))
            dx, dy = snap(picture, self.ui.box("enemy.hp", origin=at), edge, reach)
            at = (at[0] + dx / s, at[1] + dy / s)
            found.append(
                EnemyRead(
                    centre=(x, y),
                    kind=kind,
                    name=self._text(picture, "enemy.name", origin=at) if self.names else "",
                    share=read_bar(picture, self.ui.box("enemy.hp", origin=at)),
                    toughness=read_bar(picture, self.ui.box("enemy.toughness", origin=at)),
                    statuses=self._statuses(picture, "enemy.status", origin=at),
                )
            )
        return tuple(found)


def _gold(picture: Picture, x: int, y: int) -> bool:
    red, _, blue = picture[y, x].tolist()
    return bool(red > _GOLD_RED and blue < _GOLD_BLUE)


_TALL = 48  # pixels, the height that its model reads at
_MARGIN = 6


class Ocr:
    """A reader of any text in a crop, for screens that are not ours.

    Args:
        threads: of the processor; one inside workers, which share the cores.

    Raises:
        ConfigError: the extra is not installed.
    """

    def __init__(self, threads: int = 1) -> None:
        try:
            from rapidocr import RapidOCR  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise missing_extra("reading texts by OCR", "starbench") from error
        self._engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",
                "EngineConfig.onnxruntime.intra_op_num_threads": threads,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )

    def read(self, part: Picture) -> str:
        """Returns the text in a crop of one line, (h, w, 3) in RGB; empty if there is none."""
        line = cleaned(part)
        if line is None:
            return ""
        found = self._engine(line, use_det=False, use_cls=False, use_rec=True)
        return str(found.txts[0]).strip() if found is not None and found.txts else ""


def cleaned(part: Picture) -> Picture | None:
    """Returns a crop as black text on white, as wide as the text; None if there is none."""
    light = part.max(axis=2).astype(np.float32)
    low, high = float(np.median(light)), float(np.partition(light, -8, axis=None)[-8])
    if high - low < 40:
        return None
    ink = np.clip((light - low) / (high - low) * 1.3 - 0.3, 0, 1)  # without dim scenery
    columns = np.flatnonzero(ink.max(axis=0) > 0.5)
    left, right = max(0, columns[0] - _MARGIN), columns[-1] + 1 + _MARGIN
    ink = ink[:, left:right]
    scale = _TALL / ink.shape[0]
    wide = max(_TALL, round(ink.shape[1] * scale))
    line = cv2.resize(255 - 255 * ink, (wide, _TALL), interpolation=cv2.INTER_CUBIC)
    grey = np.clip(line, 0, 255).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)
