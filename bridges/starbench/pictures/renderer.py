"""Draws a battle: the same picture for the same view and marks, at any size."""

from __future__ import annotations

import math

import cv2
import numpy as np

from bridges.starbench.pictures import art
from bridges.starbench.pictures.art import CYAN, DARK, DIM, EDGE, GOLD, GREEN, PANEL, RED, WHITE
from bridges.starbench.pictures.drawn import HALF, Drawn, Label, Marks, Written, number, percent
from bridges.starbench.pictures.layout import Box, UiMap
from bridges.starbench.pictures.sprites import (
    Colour,
    Pen,
    Picture,
    Sprite,
    blit,
    fitted,
    stacked,
    text_sprite,
)
from bridges.starbench.rules.view import AllyView, BattleView, EnemyView, StatusView, TurnView

_LIMIT = 10  # invalid decisions in a row


class Renderer:
    """Draws views of battles.

    Args:
        size: width and height in pixels, 16:9.
        ui: the map; ours by default.
    """

    def __init__(self, size: tuple[int, int] = (1920, 1080), ui: UiMap | None = None) -> None:
        self.ui = ui or UiMap(size)
        self._scenery: dict[str, Picture] = {}
        self._plates: dict[tuple[object, ...], Sprite] = {}

    def draw(self, view: BattleView, marks: Marks | None = None) -> Picture:
        """Returns the picture of a view, (height, width, 3) in RGB, newly made."""
        return self.drawn(view, marks).picture

    def drawn(
        self,
        view: BattleView,
        marks: Marks | None = None,
        centres: list[tuple[float, float]] | None = None,
    ) -> Drawn:
        """Returns the picture of a view with its labels and texts.

        Args:
            view: of the battle.
            marks: what is selected.
            centres: of the enemies, in pixels of the map; None for a row.
        """
        marks = marks or Marks()
        if view.task not in self._scenery:
            if len(self._scenery) > 8:
                self._scenery.clear()
            self._scenery[view.task] = self._stage(view.task)
        out = Drawn(self._scenery[view.task].copy())
        centres = centres or places(self.ui, view)
        for enemy, at in zip(view.enemies, centres, strict=True):
            self._enemy(out, enemy, at, chosen=enemy.target == marks.enemy)
        self._boss(out, view)
        self._order(out, view)
        self._info(out, view)
        for ally in view.allies:
            self._ally(out, view, ally, chosen=ally.slot == marks.ally)
        self._moves(out, view, marks)
        self._foot(out, view)
        if view.outcome is not None:
            self._outcome(out, view)
        if "pulse" in self.ui:
            for bit in range(self.ui.count("pulse")):
                x, y, w, h = self.ui.box("pulse", bit)
                lit = marks.events >> bit & 1
                out.picture[y : y + h, x : x + w] = CYAN if lit else (30, 34, 52)
        return out

    # What never moves is drawn once.

    def _stage(self, task: str) -> Picture:
        picture = art.backdrop(task, *self.ui.size)
        self._panel(picture, self.ui.box("info.panel"), EDGE)
        for i in range(self.ui.count("ally")):
            self._panel(picture, self.ui.box("ally", i), EDGE)
        still = Drawn(picture)
        self._text(still, "order.title", "TURN ORDER", DIM)
        for i, (high, low) in enumerate((("CYCLE", "WAVE"), ("ACTION VALUE", "SCORE"))):
            self._text(still, "info.label", high, DIM, 0, i)
            self._text(still, "info.label_low", low, DIM, 0, i)
        self._text(still, "damage.label", "TOTAL DAMAGE", DIM)
        for name in ("basic", "skill"):
            self._text(still, f"{name}.label", name.upper(), WHITE)
        self._text(still, "task", task.replace("_", " "), DIM)
        return picture

    def _plate(self, w: int, h: int, edge: Colour, fill: Colour, alpha: float) -> Sprite:
        key = ("plate", w, h, edge, fill, alpha)
        if key not in self._plates:
            pen = Pen(w, h)
            radius, width = 12 * self.ui.scale, max(1.0, 2 * self.ui.scale)
            low = art.blend(fill, DARK, 0.5)
            pen.rounded(radius, fill, low=low, alpha=alpha, border=edge, width=width)
            self._plates[key] = pen.finish()
        return self._plates[key]

    def _panel(
        self, picture: Picture, box: Box, edge: Colour, fill: Colour = PANEL, alpha: float = 0.86
    ) -> None:
        blit(picture, self._plate(box.w, box.h, edge, fill, alpha), box.x, box.y)

    def _text(
        self,
        out: Drawn,
        name: str,
        text: str,
        colour: Colour,
        i: int = 0,
        j: int = 0,
        *,
        origin: tuple[float, float] | None = None,
    ) -> None:
        box = self.ui.box(name, i, j, origin=origin)
        size, align, bold = self.ui.text(name)
        text = fitted(text, box.w, size, bold=bold)
        what = text_sprite(text, size, colour, bold=bold)
        w, h = what.size
        shift = {"left": 0, "center": (box.w - w) // 2, "right": box.w - w}[align]
        blit(out.picture, what, box.x + shift, box.y + (box.h - h) // 2)
        out.written.append(Written(name, i, j, box, text))

    def _dim(self, out: Drawn, name: str, i: int, j: int, at: tuple[float, float] | None) -> None:
        """Darkens the scenery behind a text."""
        box = self.ui.box(name, i, j, origin=at)
        blit(out.picture, art.veil(box.w, box.h), box.x, box.y)

    def _bar(self, picture: Picture, box: Box, share: float, high: Colour, low: Colour) -> None:
        """Draws a bar; its filled part is as wide as its share, rounded up to a pixel."""
        x, y, w, h = box
        edge = max(1, round(2 * self.ui.scale))
        picture[max(0, y - edge) : y + h + edge, max(0, x - edge) : x + w + edge] = DARK
        filled = min(w, math.ceil(w * min(1.0, max(0.0, share)) - 1e-9))
        if filled:
            picture[y : y + h, x : x + filled] = art.shade(high, low, h)
        picture[y : y + h, x + filled : x + w] = (46, 50, 70)

    def _enemy(
        self, out: Drawn, enemy: EnemyView, at: tuple[float, float], *, chosen: bool
    ) -> None:
        s, ui = self.ui.scale, self.ui
        half = HALF[enemy.kind]
        x, y, size = round((at[0] - half) * s), round((at[1] - half) * s), round(2 * half * s)
        picture = art.creature(enemy.unit, enemy.kind, size)
        blit(out.picture, picture, x, y)
        out.labels.append(Label(enemy.kind, x, y, size, size))
        if enemy.charging:
            blit(out.picture, art.alarm(size), x, y)
        if chosen:
            blit(out.picture, art.brackets(size, size, GOLD), x, y)
        n = len(enemy.weaknesses)
        step = ui.exact("enemy.weakness", 0, 1)[0] - ui.exact("enemy.weakness")[0]
        for j, weakness in enumerate(enemy.weaknesses):
            box = ui.box("enemy.weakness", 0, j, origin=(at[0] - n * step / 2, at[1]))
            blit(out.picture, art.element(weakness, box.w), box.x, box.y)
        if enemy.max_toughness > 0:
            share = enemy.toughness / enemy.max_toughness
            box = ui.box("enemy.toughness", origin=at)
            self._bar(out.picture, box, share, WHITE, (190, 198, 224))
        box = ui.box("enemy.hp", origin=at)
        self._bar(out.picture, box, enemy.hp / enemy.max_hp, RED, (196, 48, 72))
        for name in ("enemy.name", "enemy.percent"):
            self._dim(out, name, enemy.target, 0, at)
        self._text(out, "enemy.name", enemy.name, WHITE, enemy.target, origin=at)
        share_text = percent(enemy.hp, enemy.max_hp)
        self._text(out, "enemy.percent", share_text, WHITE, enemy.target, origin=at)
        self._statuses(out, "enemy.status", enemy.target, enemy.statuses, at)

    def _statuses(
        self,
        out: Drawn,
        name: str,
        i: int,
        statuses: tuple[StatusView, ...],
        origin: tuple[float, float] | None = None,
    ) -> None:
        room = self.ui.count(name)
        shown = statuses if len(statuses) <= room else statuses[-room:]  # the newest
        for j, status in enumerate(shown):
            tone = RED if status.harmful else GREEN
            text = f"{status.name} {status.turns}" if status.turns > 0 else status.name
            self._dim(out, name, i, j, origin)
            self._text(out, name, text, tone, i, j, origin=origin)

    def _boss(self, out: Drawn, view: BattleView) -> None:
        boss = next((each for each in view.enemies if each.kind == "boss"), None)
        if boss is None:
            return
        ui = self.ui
        self._text(out, "boss.name", boss.name, WHITE)
        for i, weakness in enumerate(boss.weaknesses[: ui.count("boss.weakness")]):
            box = ui.box("boss.weakness", i)
            blit(out.picture, art.element(weakness, box.w), box.x, box.y)
        self._text(out, "boss.percent", percent(boss.hp, boss.max_hp), WHITE)
        share = boss.toughness / max(boss.max_toughness, 1e-9)
        self._bar(out.picture, ui.box("boss.toughness"), share, WHITE, (190, 198, 224))
        share = boss.hp / boss.max_hp
        self._bar(out.picture, ui.box("boss.hp"), share, (255, 120, 96), (206, 44, 76))

    def _order(self, out: Drawn, view: BattleView) -> None:
        for i, turn in enumerate(view.order[: self.ui.count("order.entry")]):
            box = self.ui.box("order.entry", i)
            edge = CYAN if turn.ally else RED
            everyone: list[AllyView | EnemyView] = [*view.allies, *view.enemies]
            known = next((each for each in everyone if each.name == turn.name), None)
            key = ("order", turn.name, turn.ally, i == 0, known is None)
            if key not in self._plates:
                self._plates[key] = self._entry(turn, known, edge, first=i == 0)
            blit(out.picture, self._plates[key], box.x, box.y)
            self._text(out, "order.name", turn.name, WHITE, i)
            self._text(out, "order.av", number(turn.av), edge, i)

    def _entry(
        self, turn: TurnView, known: AllyView | EnemyView | None, edge: Colour, *, first: bool
    ) -> Sprite:
        """Returns the panel of a turn with the face of who has it."""
        box, mark = self.ui.box("order.entry"), self.ui.box("order.face")
        fill = art.blend(PANEL, edge, 0.28 if first else 0.06)
        line = edge if first else art.blend(edge, PANEL, 0.55)
        if isinstance(known, AllyView):
            who = art.face(turn.name, art.colour_of(known.element), mark.w)
        else:
            unit, kind = (known.unit, known.kind) if known is not None else (turn.name, "enemy")
            who = art.creature(unit, kind, mark.w)
        plate = self._plate(box.w, box.h, line, fill, 0.86)
        return stacked(box.w, box.h, (plate, 0, 0), (who, mark.x - box.x, mark.y - box.y))

    def _info(self, out: Drawn, view: BattleView) -> None:
        self._text(out, "info.cycle", str(view.cycle), WHITE)
        self._text(out, "info.clock", number(view.clock), WHITE)
        self._text(out, "info.wave", str(view.wave), WHITE)
        self._text(out, "info.score", number(view.score), GOLD)
        edge = GOLD if view.auto else EDGE
        self._panel(out.picture, self.ui.box("auto"), edge)
        self._text(out, "auto", "AUTO", GOLD if view.auto else DIM)
        self._text(out, "damage", number(view.damage), GOLD)

    def _ally(self, out: Drawn, view: BattleView, ally: AllyView, *, chosen: bool) -> None:
        ui, i = self.ui, ally.slot
        tone = art.colour_of(ally.element)
        box = ui.box("ally", i)
        if ally.acting and ally.alive:
            self._panel(out.picture, box, GOLD, art.blend(PANEL, GOLD, 0.2), 1.0)
        out.labels.append(Label("ally_slot", *box))
        if chosen:
            blit(out.picture, art.brackets(box.w, box.h, CYAN), box.x, box.y)
        at = ui.box("ally.face", i)
        blit(out.picture, art.face(ally.name, tone, at.w, dark=not ally.alive), at.x, at.y)
        self._ring(out, ally, tone)
        light = WHITE if ally.alive else DIM
        self._text(out, "ally.name", ally.name, light, i)
        share = ally.hp / ally.max_hp
        high, low = (GREEN, (52, 168, 124)) if share > 0.3 else (RED, (196, 48, 72))
        bar = ui.box("ally.hp", i)
        self._bar(out.picture, bar, share, high, low)
        if ally.shield > 0:
            wide = max(1, round(bar.w * min(1.0, ally.shield / ally.max_hp)))
            edge = max(1, round(4 * ui.scale))
            out.picture[bar.y - edge : bar.y, bar.x : bar.x + wide] = CYAN
        life = f"{number(ally.hp)}/{number(ally.max_hp)}"
        self._text(out, "ally.life", life, light, i)
        self._text(out, "ally.percent", f"{100 * share:.0f}%", light, i)
        offered = i in view.offered
        key = ui.box("ally.key", i)
        rim = GOLD if offered else EDGE
        self._panel(out.picture, key, rim, art.blend(PANEL, rim, 0.4 if offered else 0.1))
        self._text(out, "ally.key", str(i + 1), rim if offered else DIM, i)
        if ally.alive:
            self._statuses(out, "ally.status", i, ally.statuses)

    def _ring(self, out: Drawn, ally: AllyView, tone: Colour) -> None:
        box = self.ui.box("ally.ring", ally.slot)
        share = min(1.0, max(0.0, ally.energy / ally.max_energy))
        ready = ally.ready and ally.alive
        thick = max(1, round(box.w * 0.09))
        blit(out.picture, art.dial(box.w, tone, ready), box.x, box.y)
        if share > 0.005 and ally.alive:  # OpenCV draws a shorter arc as a dot in the middle
            axes = (box.w // 2 - thick, box.w // 2 - thick)
            sweep = 360 * share
            colour = GOLD if ready else tone
            cv2.ellipse(out.picture, box.centre, axes, -90, 0, sweep, colour, thick, cv2.LINE_AA)
        light = GOLD if ready else WHITE
        self._text(out, "ally.energy", str(math.floor(ally.energy + 1e-9)), light, ally.slot)
        if ready:
            out.labels.append(Label("ult_ready", *box))

    def _moves(self, out: Drawn, view: BattleView, marks: Marks) -> None:
        ui = self.ui
        for i in range(min(view.max_skill_points, ui.count("points.pip"))):
            box = ui.box("points.pip", i)
            blit(out.picture, art.pip(box.w, i < view.skill_points), box.x, box.y)
        self._text(out, "points", f"{view.skill_points}/{view.max_skill_points}", WHITE)
        actor = next((a for a in view.allies if a.slot == view.actor), None)
        turn = view.window == "turn" and actor is not None
        tone = art.colour_of(actor.element) if actor is not None else CYAN
        for move, name in enumerate(("basic", "skill")):
            box = ui.box(name)
            enabled = turn and (move == 0 or view.skill_points > 0)
            chosen = turn and marks.move == move
            drawn = art.button(name, box.w, tone, enabled=enabled, chosen=chosen)
            blit(out.picture, drawn, box.x, box.y)
            out.labels.append(Label(f"btn_{name}", *box))
            self._panel(out.picture, ui.box(f"{name}.key"), EDGE)
            self._text(out, f"{name}.key", "QE"[move], WHITE if enabled else DIM)
        if view.window == "off_turn":
            self._panel(out.picture, ui.box("offer"), GOLD, art.blend(PANEL, GOLD, 0.16), 0.94)
            names = ", ".join(str(slot + 1) for slot in view.offered)
            self._text(out, "offer.title", f"ULTIMATE READY: {names}", GOLD)
            self._text(out, "offer.help", "1 to 4: release    SPACE: hold", WHITE)
        if view.message:
            self._panel(out.picture, ui.box("message"), EDGE, PANEL, 0.8)
            self._text(out, "message", view.message, WHITE)

    def _foot(self, out: Drawn, view: BattleView) -> None:
        self._text(out, "step", f"Step {view.steps}", DIM)
        tone = RED if view.invalid else DIM
        self._text(out, "invalid", f"Invalid {view.invalid}/{_LIMIT}", tone)

    def _outcome(self, out: Drawn, view: BattleView) -> None:
        np.right_shift(out.picture, 2, out=out.picture)
        won = view.outcome == "won"
        tone = GOLD if won else RED
        box = self.ui.box("outcome")
        blit(out.picture, art.banner(self.ui.size[0], box.h * 2, tone), 0, box.y - box.h // 3)
        out.written.clear()  # too dark to be read
        out.labels.clear()
        self._text(out, "outcome", "VICTORY" if won else "DEFEAT", tone)
        text = f"Score {number(view.score)}, Steps {view.steps}, AV {number(view.clock)}"
        self._text(out, "outcome.result", text, WHITE)


def places(ui: UiMap, view: BattleView) -> list[tuple[float, float]]:
    """Returns where the enemies of a view stand: a row that sways as the clock goes on."""
    return [
        (x, y + 10 * math.sin(view.clock / 23 + 1.7 * i))
        for i, (x, y) in enumerate(ui.row(len(view.enemies)))
    ]
