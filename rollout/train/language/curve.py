"""Draws how a training of a language model went, from its metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rollout.files import read_lines

_SIZE = (8.0, 3.2)  # inches
_PLAYED, _LEARNED, _VALIDATED = "0.6", "C0", "C1"


def draw_curve(metrics: Path, out: Path, *, unit: str) -> None:
    """Draws success and return over the updates, or the loss where nothing is played.

    Validations have their 95 % intervals.

    Args:
        metrics: ``metrics.jsonl`` of the run.
        out: the picture, ``.png``.
        unit: what is counted: ``epochs`` or ``updates``.
    """
    lines = [json.loads(line) for line in read_lines(metrics)]
    figure = Figure(_SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    played = any("episode/success" in line for line in lines)
    panels = ("success", "return") if played else ("success", "loss")
    for axes, name in zip(figure.subplots(1, 2), panels, strict=True):
        axes.set_xlabel(unit)
        axes.set_title(name, loc="left", fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        if name == "loss":
            _line(axes, lines, "train/loss", "training", _LEARNED)
            _line(axes, lines, "train/held_out_loss", "held-out episodes", _VALIDATED)
        else:
            _line(axes, lines, f"episode/{name}", "training states", _PLAYED)
            _validations(axes, lines, name)
        if name == "success":
            axes.set_ylim(0.0, 1.0)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize="small")
    figure.savefig(out, dpi=120)


def _points(lines: list[dict[str, Any]], key: str) -> tuple[list[float], list[float]]:
    found = [(line.get("train/update", 0), line[key]) for line in lines if key in line]
    return [x for x, _ in found], [y for _, y in found]


def _line(axes: Any, lines: list[dict[str, Any]], key: str, label: str, color: str) -> None:
    x, y = _points(lines, key)
    if x:
        axes.plot(x, y, marker=".", color=color, label=label)


def _validations(axes: Any, lines: list[dict[str, Any]], name: str) -> None:
    key = f"validation/{name}"
    lines = [line for line in lines if f"{key}_low" in line and f"{key}_high" in line]
    x, y = _points(lines, key)
    if not x:
        return
    low, high = _points(lines, f"{key}_low")[1], _points(lines, f"{key}_high")[1]
    below = [a - b for a, b in zip(y, low, strict=True)]
    above = [b - a for a, b in zip(y, high, strict=True)]
    axes.errorbar(
        x, y, yerr=[below, above], fmt="o-", capsize=3, color=_VALIDATED, label="validation, 95 %"
    )
