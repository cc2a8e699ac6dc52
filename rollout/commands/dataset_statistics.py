"""The commands of ``gamut dataset`` that say what it holds in numbers: ``stats``, ``card``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from rollout.commands.dataset_arguments import add_dataset, add_filter
from rollout.data import Dataset
from rollout.data.card import refresh_card
from rollout.data.summary import (
    QUANTILE_NAMES,
    ColumnSummary,
    GroupSummary,
    Spread,
    summarize_columns,
    summarize_episodes,
)
from rollout.reports import render, table
from rollout.signals import one_line
from rollout.signals import tell as tell_lines

_MOST_ROWS = 8  # of a column with several numbers


def stats(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        refs = dataset.episodes(filter=args.filter)
        groups, columns = summarize_episodes(refs), summarize_columns(dataset, refs)
        if args.json:
            about: dict[str, Any] = {"dataset": str(dataset.layout.root), "filter": args.filter}
            about |= {"episodes": len(refs), "steps": sum(ref.length for ref in refs)}
            about["groups"] = [_group_json(each) for each in groups]
            about["columns"] = {each.column.name: _column_json(each) for each in columns}
            text = json.dumps(about, indent=2, allow_nan=False)
        else:
            text = statistics_text(groups, columns)
    for line in text.rstrip("\n").split("\n"):
        tell_lines(one_line(line))
    return 0


def card(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        refs = dataset.episodes()
        text = statistics_text(summarize_episodes(refs), summarize_columns(dataset, refs))
        refresh_card(dataset.layout, dataset.manifest, text)
        tell_lines(one_line(f"{dataset.layout.card}: statistics of {len(refs)} episodes"))
    return 0


def statistics_text(groups: Sequence[GroupSummary], columns: Sequence[ColumnSummary]) -> str:
    """Returns the statistics as two tables in Markdown."""
    names = ("task", "split", "states", "episodes", "success rate", "return", "length", "steps")
    episodes = table(names, map(_group_row, groups), align=True)
    head = ("column", "min", "max", "mean", "std", *QUANTILE_NAMES)
    steps = table(head, [row for each in columns for row in _column_rows(each)], align=True)
    return render("statistics", episodes=episodes, steps=steps)


def _group_row(group: GroupSummary) -> tuple[object, ...]:
    success = _success(group)
    rate = "undecided" if success is None else success.text(2)
    spreads = (
        f"{_short(each.mean)} ± {_short(each.std)}" for each in (group.returns, group.lengths)
    )
    return (group.task, group.split, group.states, group.episodes, rate, *spreads, group.steps)


def _success(group: GroupSummary) -> Any:
    from rollout.evaluate.statistics import wilson  # noqa: PLC0415 - of two commands only

    return None if group.successes is None else wilson(group.successes, group.episodes)


def _column_rows(summary: ColumnSummary) -> list[tuple[str, ...]]:
    name, spreads = f"`{summary.column.name}`", summary.spreads
    if len(spreads) == 1:
        return [(name, *_cells(spreads[0]))]
    rows = [(f"{name} {at}", *_cells(each)) for at, each in enumerate(spreads[:_MOST_ROWS])]
    if len(spreads) > _MOST_ROWS:
        rows.append((f"{name} and {len(spreads) - _MOST_ROWS} more", *[""] * len(rows[0][1:])))
    return rows


def _cells(spread: Spread) -> list[str]:
    return [_short(v) for v in (*spread[:4], *spread.quantiles)]


def _short(value: float) -> str:
    return f"{value:.4g}"


def _group_json(group: GroupSummary) -> dict[str, Any]:
    success = _success(group)
    if success is not None:
        names = ("point", "low", "high", "confidence")
        success = {name: getattr(success, name) for name in names}
    found = {name: getattr(group, name) for name in ("task", "split", "states", "episodes")}
    found |= {"steps": group.steps, "success": success}
    return found | {"return": group.returns.to_json(), "length": group.lengths.to_json()}


def _column_json(summary: ColumnSummary) -> dict[str, Any]:
    column, spreads = summary.column, [each.to_json() for each in summary.spreads]
    found: dict[str, Any] = {"dtype": column.dtype, "shape": list(column.shape)}
    found |= {"unit": column.unit, "steps": summary.steps}
    return found | {name: [each[name] for each in spreads] for name in spreads[0]}


def add_commands(commands: Any) -> None:
    """Adds the commands of this module to those of a parser."""
    text = "show statistics of the columns, and of the episodes by task and split"
    command = commands.add_parser("stats", help=text, description=text)
    command.set_defaults(function=stats)
    add_dataset(command)
    add_filter(command)
    command.add_argument("--json", action="store_true", help="write JSON, for programs")
    text = "write the statistics into the card of the dataset, README.md; other text is kept"
    command = commands.add_parser("card", help=text, description=text)
    command.set_defaults(function=card)
    add_dataset(command)
