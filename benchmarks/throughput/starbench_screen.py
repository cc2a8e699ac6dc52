"""Measures StarBench's screen: drawing, the window's loop, and how well the screen is read.

    .venv/bin/python -m bridges.starbench.reading.train     # the detector's weights, once
    .venv/bin/python -m benchmarks.throughput.starbench_screen

Texts and boxes are read from new random scenes (bridges/starbench/reading/scenes.py), none of which
the detector was trained on; the truth is what the renderer wrote and labelled. Drawing and the
window are measured on battles of the engine, too. Wall times suffer from what else runs on the
machine, so the time of the processor is beside them.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from benchmarks.report import arguments, publish, table
from bridges.starbench.client import EmulatorClient
from bridges.starbench.pictures.renderer import Renderer
from bridges.starbench.reading.detector import Detector, average_precision
from bridges.starbench.reading.glyphs import LETTERS, crop, read_bar, read_text
from bridges.starbench.reading.reader import CHARACTERS, Ocr, Reader
from bridges.starbench.reading.scenes import scene
from bridges.starbench.rules.battle import Battle
from bridges.starbench.window.client import HostedWindow

FULL, SMALL = (1920, 1080), (640, 360)
BATTLES = ("cocolia", "phantylia", "swarm_king", "theater", "feixiao", "xianzhou", "cliched")
FIRST = 2 * 10**6  # scenes from here on
FIXED = {"auto", "ally.key", "basic.key", "skill.key", "offer.title", "offer.help"}  # say nothing


def folded(text):
    """A text without case and spaces, which OCR gets wrong."""
    return "".join(text.split()).casefold()


def timed(call, *given):
    wall, cpu = time.perf_counter(), time.process_time()
    got = call(*given)
    return got, 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)


def percentiles(values):
    return f"{np.median(values):.1f} (95 %: {np.percentile(values, 95):.1f})"


def drawing(frames):
    rows = []
    for size, limit in ((FULL, 10), (SMALL, 3)):
        for what, times in (("a battle in play", played), ("other units each time", unlike)):
            wall, cpu = zip(*times(size, frames), strict=True)
            wanted = f"{limit}" if times is played else ""
            rows.append([
                *(f"{size[0]}x{size[1]}", what, percentiles(wall), percentiles(cpu), wanted)
            ])  # fmt: skip
    return table(["picture", "of", "wall ms", "processor ms", "wanted"], rows)


def played(size, frames):
    """Times of the pictures of battles at random, after each decision."""
    found, seed = [], 0
    while len(found) < frames:
        battle, rng = Battle(BATTLES[seed % len(BATTLES)], seed), np.random.default_rng(seed)
        client = EmulatorClient(battle, size)
        client.grab()
        while battle.outcome is None and len(found) < frames:
            battle.act(int(rng.choice(np.flatnonzero(battle.mask()))))
            found.append(timed(client.grab)[1:])
        seed += 1
    return found


def unlike(size, frames):
    """Times of random scenes, whose units, statuses and texts all change from one to the next."""
    renderer = Renderer(size)
    for i in range(200):
        renderer.drawn(*scene(FIRST + i))
    return [timed(renderer.drawn, *scene(FIRST + 200 + i))[1:] for i in range(frames)]


def window_loop(decisions):
    wall = []
    with tempfile.TemporaryDirectory() as folder:
        window = HostedWindow(Path(folder), size=FULL)
        try:
            client = window.begin("xianzhou", 1, {}, {})
            x, y = client.ui.box("skill").centre
            before = client.grab()
            for i in range(decisions):
                box = client.ui.box(("skill", "basic")[i % 2])  # each click moves the mark
                began = time.perf_counter()
                client.click(*box.centre)
                client.wait_idle()
                after = client.grab()
                wall.append(1e3 * (time.perf_counter() - began))
                assert (after != before).any()
                before = after
            whole = []
            for seed in range(3):
                client = window.begin("xianzhou", seed, {}, {})
                for _ in range(decisions // 6):
                    began = time.perf_counter()
                    client.click(x, y)
                    client.press("q")
                    client.wait_idle()
                    client.grab()
                    whole.append(1e3 * (time.perf_counter() - began))
        finally:
            window.close()
    return table(
        ["1920x1080, Xvfb", "wall ms", "wanted"],
        [
            ["one event to the changed screenshot", percentiles(wall), "60"],
            ["a decision (click and key) to its screenshot", percentiles(whole), ""],
        ],
    )


def texts(scenes, ocr_scenes):
    rows, wrong = [], []
    for size in (FULL, SMALL):
        renderer = Renderer(size)
        readers = {"glyphs": read_glyphs(renderer.ui)}
        if size == FULL:
            ocr = Ocr()
            readers["rapidocr, 1 thread"] = lambda part, _, ocr=ocr: ocr.read(part)
        for name, read in readers.items():
            right, total, cost = Counter(), Counter(), []
            for i in range(scenes if name == "glyphs" else ocr_scenes):
                drawn = renderer.drawn(*scene(FIRST + i))
                for text in drawn.written:
                    if text.name in FIXED:
                        continue
                    got, _, cpu = timed(read, crop(drawn.picture, text.box), text.name)
                    kind = "numbers" if text.name in CHARACTERS else "names"
                    total[kind] += 1
                    cost.append(cpu)
                    if folded(got) == folded(text.text):
                        right[kind] += 1
                    elif size == FULL and len(wrong) < 12:
                        wrong.append(f"{name}: {text.name} `{text.text}` read `{got}`")
            said = [f"{right[k]} of {total[k]}, {100 * right[k] / total[k]:.2f} %" for k in total]
            whole = f"{100 * right.total() / total.total():.2f} %"
            rows.append([f"{size[0]}x{size[1]}", name, *said, whole, percentiles(cost)])
    head = ["picture", "reader", "names", "numbers", "all", "processor ms a crop"]
    if list(total) != ["names", "numbers"]:
        head[2:4] = list(total)
    return table(head, rows) + "\nWrong at full size: " + "; ".join(wrong or ["none"]) + ".\n"


def read_glyphs(ui):
    def read(part, name):
        size, _, bold = ui.text(name)
        return read_text(part, size, bold=bold, characters=CHARACTERS.get(name, LETTERS))

    return read


def detection(scenes):
    detector = Detector()
    rows, errors = [], defaultdict(list)
    for size in (FULL, SMALL):
        renderer = Renderer(size)
        drawn = [renderer.drawn(*scene(FIRST + i)) for i in range(scenes)]
        found, cpu = [], []
        for each in drawn:
            got, _, c = timed(detector.detect, each.picture, 0.05)
            found.append(got)
            cpu.append(c)
        labels = [each.labels for each in drawn]
        exact = average_precision(found, labels)
        strict = [
            np.mean(list(average_precision(found, labels, k / 100).values()))
            for k in range(50, 100, 5)
        ]
        scale = FULL[0] / size[0]
        for seen, true in zip(found, labels, strict=True):
            for label in true:
                if label.name in ("enemy", "boss", "summon"):
                    x, y = label.centre
                    away = [np.hypot(b.centre[0] - x, b.centre[1] - y) for b in seen]
                    errors[size].append(scale * min(away, default=np.inf))
        rows.append(
            [
                f"{size[0]}x{size[1]}",
                f"{np.mean(list(exact.values())):.4f}",
                f"{np.mean(strict):.3f}",
                f"{np.median(errors[size]):.1f} (99 %: {np.percentile(errors[size], 99):.1f})",
                percentiles(cpu),
            ]
        )
        classes = ", ".join(f"{name} {value:.4f}" for name, value in exact.items())
    head = ["picture", "mAP50", "mAP50-95", "centre of an enemy, px of 1920", "processor ms"]
    return table(head, rows) + f"\nAP50 of the classes at {SMALL[0]}x{SMALL[1]}: {classes}.\n"


def whole_readings(scenes):
    renderer, detector = Renderer(FULL), Detector()
    reader = Reader(renderer.ui, detector)
    total, right, cpu, bars = Counter(), Counter(), [], []
    for i in range(scenes):
        view, marks, places = scene(FIRST + i)
        drawn = renderer.drawn(view, marks, places)
        for ally in view.allies:
            seen = read_bar(drawn.picture, renderer.ui.box("ally.hp", ally.slot))
            bars.append(100 * abs(seen - ally.hp / ally.max_hp))
        reading, _, c = timed(reader.read, drawn.picture)
        cpu.append(c)
        pairs = [
            ("enemies counted", len(reading.enemies) == len(view.enemies)),
            ("skill points", reading.skill_points == view.skill_points),
            ("damage", reading.damage == int(np.ceil(view.damage))),
            ("off-turn window", reading.off_turn == (view.window == "off_turn")),
        ]
        for got, ally in zip(reading.allies, view.allies, strict=True):
            pairs += [
                ("HP of an ally", got.hp == int(np.ceil(ally.hp))),
                ("energy of an ally", got.energy == int(ally.energy)),
                ("ultimate ready", got.ready == ally.ready),
                ("card lit", got.acting == ally.acting),
            ]
        for seen, enemy in zip(reading.enemies, view.enemies, strict=False):
            pairs += [
                ("name of an enemy", folded(seen.name) == folded(enemy.name)),
                ("HP of an enemy within 1 %", abs(seen.share - enemy.hp / enemy.max_hp) < 0.01),
            ]
        for name, good in pairs:
            total[name] += 1
            right[name] += good
    rows = [[name, f"{right[name]} of {total[name]}"] for name in total]
    rows += [
        ["HP bar of an ally, greatest error, % of the bar", f"{max(bars):.2f}"],
        ["processor ms a picture", percentiles(cpu)],
    ]
    return table(["read from pixels alone, 1920x1080", "right"], rows)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without-detector", action="store_true", help="if it has no weights")
    options = parser.parse_args()
    few = 10 if options.quick else 1
    parts = [
        "## Drawing\n" + drawing(300 // few),
        "## Window\n" + window_loop(120 // few),
        "## Texts, per crop\n" + texts(60 // few, 20 // few),
    ]
    if not options.without_detector:
        parts.append("## Detector\n" + detection(200 // few))
        parts.append("## A whole reading\n" + whole_readings(60 // few))
    publish("starbench_screen", "StarBench's screen", "\n".join(parts), save=options.save)


if __name__ == "__main__":
    main()
