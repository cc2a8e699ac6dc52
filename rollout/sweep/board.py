"""A board: evaluations of the same protocol side by side, ranked, with what they cost.

The runs may be of different people. Those that played other states or by another protocol are
refused, with what differs; what may differ without changing a score is named below the board.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import NO_USAGE, Usage
from rollout.data.tables import Table, read_table
from rollout.data.view.page import content_policy
from rollout.errors import ConfigError
from rollout.evaluate.page import TABLE, pairs_table
from rollout.evaluate.pairs import main_rows, pairs_section, verdict
from rollout.evaluate.scoreboard import USAGE
from rollout.files import read_document
from rollout.observe.run_files import SUMMARY, read_about, read_json
from rollout.reports import TEMPLATES, html_table, marked, render, render_page, table
from rollout.sweep.comparing import ComparedRuns, RecordedRun, compare_runs

_COLUMNS = ("rank", "model", "score", "covers", "states", "episodes", "lost", "retries")
_CALLS = ("calls", "unusable", "tokens", "USD")
_SEEDS = (
    "An interval that covers states alone is of one player as it is: it says nothing about another "
    "training of the same method, and training seeds often vary more than states do."
)
_RANKS = (
    "A rank is one more than the number of models that are shown better on that set (p below "
    "{level:.2g} after correction for all comparisons), so models that cannot be told apart share "
    "it."
)
_LOST = (
    "Lost episodes have no score and are in no mean: a model that loses the hard ones looks better "
    "than it is."
)


@dataclass(frozen=True)
class Board:
    """Ranked evaluations.

    Attributes:
        task: the game and the task, in words.
        metric: metric of the scores.
        digest: of the protocol and the sets of states that all have in common.
        protocol: what all runs have in common.
        rows: a row for each model, set and way of acting, by set and rank, JSON-able.
        pairs: the comparisons, as of ``rollout.evaluate.pairs.compare_all``, JSON-able.
        notes: what a reader has to know, in sentences.
    """

    task: str
    metric: str
    digest: str
    protocol: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    pairs: Sequence[Mapping[str, Any]]
    notes: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON-able data."""
        return {
            "task": self.task,
            "metric": self.metric,
            "digest": self.digest,
            "protocol": self.protocol,
            "rows": list(self.rows),
            "pairs": list(self.pairs),
            "notes": list(self.notes),
        }

    def report(self) -> str:
        """Returns the board as Markdown, for a terminal."""
        boards = {
            title: table(self._columns, [[row[n] for n in self._columns] for row in rows])
            for title, rows in self._by_set().items()
        }
        return render(
            "board",
            board=self,
            boards=boards,
            pairs=pairs_section(self.pairs, self.metric),
        )

    def page(self) -> str:
        """Returns the board as an HTML page without scripts."""
        style = read_document(TEMPLATES.parent / "view" / "page.css").decode()
        boards = {}
        for title, rows in self._by_set().items():
            cells = marked([row["estimate"] for row in rows])
            boards[title] = html_table(
                self._columns,
                [
                    [cell if name == "score" else row[name] for name in self._columns]
                    for row, cell in zip(rows, cells, strict=True)
                ],
            )
        several = len({row["actions"] for row in self.pairs}) > 1
        verdicts = [verdict(row, self.metric, actions=several) for row in main_rows(self.pairs)]
        parts = render_page(
            "board",
            policy=content_policy(style, "", served=False),
            style=style,
            board=self,
            boards=boards,
            verdicts=verdicts,
            pairs=pairs_table(self.pairs),
        )
        return "".join(parts)

    @property
    def _columns(self) -> tuple[str, ...]:
        return (*_COLUMNS, *(_CALLS if any(row["calls"] for row in self.rows) else ()))

    def _by_set(self) -> dict[str, list[Mapping[str, Any]]]:
        found: dict[str, list[Mapping[str, Any]]] = {}
        for row in self.rows:
            found.setdefault(f"{row['set']}, {row['actions']} actions", []).append(row)
        return found


def make_board(folders: Sequence[Path], *, confidence: float = 0.95) -> Board:
    """Returns the board of some evaluations.

    Args:
        folders: run directories of evaluations.
        confidence: of the intervals; one minus it is the level of the tests.

    Raises:
        RunDirectoryError: a folder contains no run.
        ConfigError: there is nothing to compare, or the runs cannot be compared; the message names
            what differs.
        DatasetError: results are damaged.
    """
    for folder in folders:
        if read_about(folder).get("kind") != "EvaluateConfig":
            raise ConfigError(
                f"{folder} is no evaluation; a board is of evaluations: evaluate a training by "
                f"gamut evaluate --player {folder}, and name {folder / 'evaluation'}"
            )
    found = compare_runs(folders, confidence=confidence)
    tables = {run.label: read_table(run.folder / TABLE) for run in found.runs}
    rows = [_row(row, found, tables) for row in found.scores]
    kinds = [*dict.fromkeys((row["set"], row["actions"]) for row in rows)]
    rows.sort(key=lambda row: (kinds.index((row["set"], row["actions"])), row["rank"], _low(row)))
    run = found.runs[0]
    used = {row["set"] for row in rows}
    protocol = {**run.protocol, "sets": {k: v for k, v in run.sets.items() if k in used}}
    digest = hashlib.sha256(json.dumps(protocol, sort_keys=True).encode()).hexdigest()[:12]
    notes = [_RANKS.format(level=1 - confidence), *found.notes, *_differences(found.runs)]
    if any(row["seeds"] == 1 for row in rows):
        notes.insert(1, _SEEDS)
    if any(row["lost"] for row in rows):
        notes.insert(1, _LOST)
    return Board(found.task, found.metric, digest, protocol, rows, found.rows, notes)


def _low(row: Mapping[str, Any]) -> float:
    point = row["estimate"]["point"]
    return float("inf") if point is None else -point


def _row(
    row: Mapping[str, Any], found: ComparedRuns, tables: Mapping[str, Table]
) -> dict[str, Any]:
    """Returns a row of the board: the score with what it covers, the rank, and the cost."""
    run, name = found.models[row["model"]]
    rows = tables[run.label]
    mine = np.isin(rows["player"], list(run.players[name]))
    mine &= (rows["set"] == row["set"]) & (rows["actions"] == row["actions"])
    ended = mine & (rows["end"] != "lost") if "end" in rows else mine
    used = NO_USAGE
    if "calls" in rows:
        used = Usage(**{each: np.nansum(rows[each][ended]).item() for each in USAGE})
    better = sum(
        pair["better"] not in (None, row["model"])
        for pair in found.rows
        if row["model"] in (pair["model"], pair["minus"])
        and (pair["set"], pair["actions"]) == (row["set"], row["actions"])
    )
    interval = row["estimate"]["low"] != row["estimate"]["high"]  # both None, or alike: unknown
    seeds = f"states and {row['seeds']} training seeds"
    given_up = int((mine & ~ended).sum())
    attempts = int(rows["attempts"][mine].sum()) if "attempts" in rows else int(mine.sum())
    return {
        **row,
        "rank": better + 1,
        "covers": "-" if not interval else "states" if row["seeds"] == 1 else seeds,
        "episodes": int(ended.sum()),
        "lost": given_up,
        "retries": attempts - int(mine.sum()),
        "calls": used.calls,
        "unusable": f"{used.unusable / used.calls:.1%}" if used.calls else "-",
        "tokens": used.input_tokens + used.output_tokens,
        "USD": used.price_text(".4g") if used.calls else "-",
        "usage": used.as_json(),
    }


def _differences(runs: Sequence[RecordedRun]) -> list[str]:
    """Returns what differs between the runs and changes no score, in sentences."""
    facts: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        session = read_about(run.folder)["sessions"][-1]
        protocol = read_json(run.folder / SUMMARY).get("protocol") or {}
        known = {
            "the version of gamut": (session.get("versions") or {}).get("gamut"),
            "lost_episodes": protocol.get("lost_episodes"),
        }
        for key, value in known.items():
            facts.setdefault(key, {}).setdefault(str(value or "unknown"), []).append(run.label)
    return [
        f"Differs: {key} is "
        + "; ".join(f"{value} in {', '.join(labels)}" for value, labels in values.items())
        + "."
        for key, values in facts.items()
        if len(values) > 1
    ]
