"""Published tables whose columns are tasks: success, length and return beside those of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from rollout.config import Section, key
from rollout.evaluate.statistics import wilson
from rollout.reports import table

Figure: TypeAlias = Annotated[tuple[float | None, float | None], Field(strict=False)]


class Cell(Section):
    """What was published of one model on one task; each a mean and a deviation."""

    success: Figure | None = key(None, "Successful episodes in percent.")
    length: Figure | None = key(None, "Steps of the successful episodes.")
    total: Figure | None = key(None, "Return of an episode.")


def own_cell(rows: Mapping[str, Any], confidence: float) -> dict[str, Any]:
    """Returns the figures of a leg: means, deviations with n, and the interval of the success.

    Args:
        rows: the columns of its episodes (``rollout.evaluate.scoreboard.COLUMNS``).
        confidence: of the interval.
    """
    known = ~np.isnan(rows["success"])
    won = known & (rows["success"] == 1.0)
    share = wilson(int(won.sum()), int(known.sum()), confidence=confidence) if known.any() else None
    return {
        "episodes": int(known.sum()),
        "success": share,
        "length": _figure(rows["length"][won]),
        "total": _figure(rows["total_reward"][known]),
    }


def _figure(values: ArrayLike) -> tuple[float, float] | None:
    found = np.asarray(values, np.float64)
    return (float(found.mean()), float(found.std())) if found.size else None


def cells_table(found: Mapping[str, Any]) -> str:
    """Returns a table of the cells of this run and of the published ones, by player or model.

    Args:
        found: the published tables and ``own``, cells by player, actions and set.
    """
    published: Mapping[str, Mapping[str, Any]] = found["tables"]
    columns = list(dict.fromkeys(name for row in published.values() for name in row))
    body = []
    for each in found["own"]:
        cells = [_own(each["cells"].get(name)) for name in columns]
        body.append([f"**{each['player']}** ({each['actions']}, this run)", *cells])
    for model, row in published.items():
        body.append([model, *(_told(row.get(name)) for name in columns)])
    return table(["player or model", *columns], body)


def _own(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "-"
    share = "-"
    if cell["success"] is not None:
        low, high = (100 * cell["success"][end] for end in ("low", "high"))
        share = f"{100 * cell['success']['point']:.1f} [{low:.0f}, {high:.0f}]"
    return f"{share} / {_text(cell['length'])} / {_text(cell['total'])}"


def _told(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "-"
    return " / ".join(_text(cell.get(name)) for name in ("success", "length", "total"))


def _text(figure: Any) -> str:
    if figure is None or figure[0] is None or not math.isfinite(figure[0]):
        return "-"
    digits = 0 if abs(figure[0]) >= 1000 else 1
    return " ± ".join(f"{value:.{digits}f}" for value in figure if value is not None)
