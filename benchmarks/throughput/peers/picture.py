"""The picture of what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def draw(path: Path, found: Mapping[str, Mapping[str, Any]], base: str) -> None:
    """Draws how fast each library is, as a factor of one of them.

    Args:
        path: the PNG file.
        found: results of each library on each game; see ``__main__.Result``.
        base: the library to which the others are compared.
    """
    from matplotlib.figure import Figure

    panels: dict[str, dict[str, float]] = {}
    for game, results in found.items():
        panels[f"{game}\nsteps/s"] = _medians(results, "rates")
        times = _medians(results, "times")
        panels[f"{game}\n1 / time to score"] = {name: 1 / value for name, value in times.items()}
    panels = {title: values for title, values in panels.items() if base in values}
    names = list(dict.fromkeys(name for results in found.values() for name in results))[::-1]
    figure = Figure(
        figsize=(1.0 + 1.9 * (len(panels) + 1), 0.9 + 0.28 * len(names)), layout="constrained"
    )
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, values) in zip(axes, panels.items(), strict=True):
        shares = [values.get(name, 0.0) / values[base] for name in names]
        colors = ["C1" if name.startswith("gamut") else "C0" for name in names]
        bars = axis.barh(names, shares, color=colors)
        labels = [f"{share:.2g}" if share else "-" for share in shares]
        axis.bar_label(bars, labels, padding=2, fontsize=8)
        axis.set_title(title, fontsize=9)
        axis.set_xlim(0, 1.3 * max([*shares, 1.0]))
        axis.axvline(1.0, color="0.6", lw=0.8)
        axis.tick_params(axis="x", labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(f"as a factor of {base}", fontsize=9)
    figure.savefig(path, dpi=90)


def _medians(results: Mapping[str, Any], what: str) -> dict[str, float]:
    """Returns the medians of those libraries that have values."""
    values = {name: getattr(result, what) for name, result in results.items() if result.turns}
    return {name: statistics.median(each) for name, each in values.items() if each}
