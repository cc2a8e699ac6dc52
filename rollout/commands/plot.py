"""Draws learning curves of trainings as PNG and SVG, with the numbers as JSON.

    gamut plot runs/ppo
    gamut plot runs/ppo runs/appo --by seconds --score 450

A run with seeds is drawn as the interquartile mean over its seeds, with bootstrap intervals of
95 %; a run of one seed as one curve without a band. Return, success and the score of validations
have a panel each, as far as they are recorded. A run in progress can be drawn, too. Exit status:
0, or 2 if a folder contains no such run.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollout.cli import fail
from rollout.configuration.document import read
from rollout.errors import ConfigError, InputError
from rollout.files import local_path, write_atomically
from rollout.signals import tell
from rollout.sweep.learning import Curve, as_json, curves_of, named_runs, times_to

_WHOLE = 100.0  # from how many seconds on they are whole
_SUFFIXES = (".png", ".svg", ".json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    args = _parser().parse_args(arguments)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    try:
        _plot(args.run_dir, args.by, args.score, args.output)
    except InputError as error:
        return fail(error)
    except OSError as error:
        return fail(ConfigError(f"{error.filename}: {error.strerror}; choose another --output"))
    return 0


def _plot(folders: Sequence[Path], by: Any, score: float | None, output: Path | None) -> None:
    runs = named_runs(folders)
    stem = output or folders[0] / "_".join(["curves", *(run.label for run in runs[1:])]).replace(
        "/", "-"
    )
    if stem.suffix in _SUFFIXES:
        stem = stem.with_suffix("")
    curves = curves_of(runs, by=by)
    times = [] if score is None else times_to(curves, score)
    from rollout.sweep.learning_figure import draw_curves  # noqa: PLC0415 - loads matplotlib

    for curve in curves:
        tell(_line(curve))
    games = {run.label: game for run in runs if (game := _game(run.folder))}
    if len(set(games.values())) > 1:
        said = ", ".join(f"{label} plays {game}" for label, game in games.items())
        tell(f"these are different games, so their scores cannot be compared: {said}")
    for run in runs:
        if not run.several:
            tell(
                f"{run.label}: one training seed, so its curve has no band; train with seeds=5 to "
                f"see how runs differ"
            )
    for each in times:
        tell(_time(each))
    stem.parent.mkdir(parents=True, exist_ok=True)
    numbers = stem.with_name(f"{stem.name}.json")
    data = {"by": by, "curves": as_json(curves), "time_to_score": times}
    files = [*draw_curves(curves, stem, score=score), numbers]
    write_atomically(numbers, json.dumps(data) + "\n")
    tell(f"written: {', '.join(map(str, files))}")


def _game(folder: Path) -> str:
    """Returns the task of a run and its game, for people; empty if that is not known."""
    if not (config := folder / "config.yaml").is_file():
        return ""
    data = read(config).data
    bridge = data.get("bridge") or {}
    named = (bridge.get("name"), bridge.get("id")) if isinstance(bridge, Mapping) else (bridge,)
    return f"{data.get('task')} of {' '.join(str(each) for each in named if each)}"


def _line(curve: Curve) -> str:
    """Returns the end of a curve in a line, and what it leaves out."""
    interval = ""
    if curve.low is not None and curve.high is not None and curve.low[-1] < curve.high[-1]:
        interval = f" [{curve.low[-1]:.4g}, {curve.high[-1]:.4g}]"
    there = f"{curve.drawn} of {curve.planned} seeds"
    farthest = max(float(series.along(curve.by)[-1]) for series in curve.seeds.values())
    more = f"; the farthest seed is at {_amount(farthest)}" if farthest > 1.02 * curve.x[-1] else ""
    return (
        f"{curve.run}: {curve.figure} {curve.iqm[-1]:.4g}{interval} after {_amount(curve.x[-1])} "
        f"{curve.by}, {there}{more}"
    )


def _amount(value: float) -> str:
    """Returns steps, or seconds, of which the first few have a fraction."""
    return f"{value:,.0f}" if value >= _WHOLE or value.is_integer() else f"{value:.3g}"


def _time(found: Mapping[str, Any]) -> str:
    median, by = found["median"], found["by"]
    when = "not by half of them" if median is None else f"median {_amount(median)} {by}"
    return (
        f"{found['run']}: {found['figure']} {found['score']:g} reached by {found['reached']} of "
        f"{len(found['seeds'])} seeds, {when}"
    )


def _score(text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}; give e.g. 450")
    return score


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "run_dir", type=local_path, nargs="+", metavar="RUN_DIR", help="the folder of a training"
    )
    parser.add_argument(
        "--by",
        choices=("steps", "seconds"),
        default="steps",
        help="the horizontal axis: steps, or wall time of a seed (steps)",
    )
    parser.add_argument(
        "--score",
        type=_score,
        metavar="X",
        help="also report when each seed first reaches this score: of validations where every run "
        "has them, otherwise the return",
    )
    parser.add_argument(
        "--output",
        type=local_path,
        metavar="PATH",
        help="path of the files without suffix (curves in the first run's folder)",
    )
    return parser
