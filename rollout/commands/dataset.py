"""Describes, checks, repairs, exports and imports datasets, and replays episodes.

Exit status: 0 intact, 2 invalid input, 3 damage was found or episodes were left out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rollout.api import Exporter, Outcome
from rollout.cli import fail
from rollout.commands import dataset_formats, dataset_select, dataset_statistics, dataset_view
from rollout.commands.dataset_arguments import add_dataset, add_filter
from rollout.configuration.plugins import build_plugin
from rollout.data import (
    Dataset,
    EpisodeRef,
    doctor,
    play_text,
    repair,
)
from rollout.errors import DatasetError, InputError
from rollout.files import local_path
from rollout.signals import one_line
from rollout.signals import tell as tell_lines


def tell(line: str, end: str = "\n") -> None:
    tell_lines(one_line(line), end)


def info(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        manifest, counts = dataset.manifest, dataset.counts
        refs = dataset.episodes(include_lost=True, filter=args.filter)
        tell(f"{dataset.layout.root}: {manifest.bridge}, task {manifest.task['name']}")
        tell(f"  policy {manifest.policy or 'unnamed'}, created {manifest.created}")
        factors = ", ".join(f.name for f in manifest.state_space)
        tell(f"  states {manifest.state_space.size}: {factors}")
        tell(f"episodes: {counts.terminated} terminated, {counts.truncated} truncated")
        tell(f"  no results: {counts.lost} lost, {counts.unfinished} unfinished, ", end="")
        tell(f"{counts.damaged} damaged")
        results = [r for r in refs if r.end != "lost"]
        if args.filter:
            tell(f"  filter: {len(refs)}, of which {len(results)} are results with")
        outcomes = Counter(map(_outcome, results))
        tell(f"  outcomes: {', '.join(f'{n} {k}' for k, n in outcomes.items()) or 'none'}")
        if results:
            tell(f"  mean reward {sum(r.total_reward for r in results) / len(results):.4g}")
        nbytes = sum(p.stat().st_size for p in dataset.layout.root.rglob("*") if p.is_file())
        each = f", {nbytes / counts.steps:.0f} bytes/step" if counts.steps else ""
        tell(f"steps: {counts.steps}, {nbytes} bytes{each}")
        tell("columns:")
        for column in manifest.columns:
            kind = f"{column.dtype}{list(column.shape) if column.shape else ''}"
            unit = f" [{column.unit}]" if column.unit else ""
            doc = f"{column.doc}, stored with loss" if column.codec.is_lossy else column.doc
            tell(f"  {column.name:28} {kind:20} {column.codec!s:8}{unit} {doc}")
    return 0


def diagnose(args: argparse.Namespace) -> int:
    report = doctor(args.dir)
    for finding in report.findings:
        tell(str(finding))
    state = "clean" if report.clean else f"{len(report.findings)} findings"
    live = f"; being written by {report.writer}" if report.writer else ""
    tell(
        f"{report.path}: {state}; {report.shards} shards, {report.steps} steps, "
        f"{report.episodes} episodes{live}"
    )
    return 0 if report.clean else 3


def mend(args: argparse.Namespace) -> int:
    repaired = repair(args.dir)
    for line in repaired.done:
        tell(line)
    tell(
        f"{repaired.path}: kept {repaired.steps} steps and {repaired.episodes} whole episodes; "
        f"moved {len(repaired.moved)} files to quarantine; "
        f"{len(repaired.damaged)} episodes miss steps"
    )
    return 0


def play(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        ref = _find(dataset, args.episode, args.attempt)
        if args.out is None:
            for line in play_text(dataset, ref):
                tell(line)
            tell(f"end: {ref.end}, {_outcome(ref)}, reward {ref.total_reward:g}")
            return 0
        options = {"column": args.column, "fps": args.fps}
        frames = _exporter("mp4", options).write(dataset, [ref], args.out)
        tell(f"{args.out}: {frames} frames of episode {ref.episode}")
    return 0


def actions(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        episodes = dataset.episodes(include_lost=True, filter=args.filter)
        count = _exporter("actions", {}).write(dataset, episodes, args.out)
    tell(f"{args.out}: actions of {count} episodes; replay them by")
    tell(f"  --set policy.name=scripted policy.actions={args.out} and the seed and state_set")
    tell("  that they were recorded with")
    return 0


def calls(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        episodes = dataset.episodes(include_lost=True, filter=args.filter)
        count = _exporter("calls", {"rows": args.rows}).write(dataset, episodes, args.out)
    tell(f"{args.out}: {count} calls of models")
    return 0


def _exporter(name: str, options: Mapping[str, Any]) -> Exporter:
    exporter: Exporter = build_plugin("exporters", name, options)
    return exporter


def _outcome(ref: EpisodeRef) -> str:
    """Returns the outcome of an episode that has ended; undecided if no evaluator decided it."""
    return "undecided" if ref.outcome == Outcome.RUNNING else ref.outcome.name.lower()


def _find(dataset: Dataset, episode: int | None, attempt: int | None) -> EpisodeRef:
    """Returns the given attempt; by default the one that was not lost, else the last."""
    if episode is None and dataset.episodes():
        return max(dataset.episodes(), key=lambda r: r.total_reward)
    refs = dataset.episodes(episode=episode, include_lost=True)
    refs = [r for r in refs if attempt in (None, r.attempt)]
    if not refs:
        numbers = dataset.index.column("episode").to_pylist()
        known = (
            f"{len(set(numbers))} episodes, {min(numbers)} to {max(numbers)}" if numbers else "none"
        )
        which = f"{episode}" if attempt is None else f"{episode}, attempt {attempt}"
        raise DatasetError(
            f"no episode {which} has ended in {dataset.layout.root}; there are {known}"
        )
    return max(refs, key=lambda r: (r.end != "lost", r.attempt))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, function, text in (
        ("info", info, "show what the dataset contains"),
        ("doctor", diagnose, "look for damage; exit status 3 if there is any"),
        ("repair", mend, "keep everything that is intact, move the rest to quarantine"),
        ("play", play, "show an episode as an MP4 or as text"),
        ("actions", actions, "write the actions to a file that the scripted policy replays"),
        ("calls", calls, "write the calls of models: a table, or conversations to learn from"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        add_dataset(command)
        if function in (info, actions, calls):
            add_filter(command)
        if function is play:
            command.add_argument(
                "episode", type=int, nargs="?", help="its number; by default the best episode"
            )
            command.add_argument("--attempt", type=int, help="its attempt, if it was lost before")
            command.add_argument(
                "--out", type=local_path, help="MP4 file to write; without it, text is printed"
            )
            command.add_argument("--column", help="image column; the first by default")
            command.add_argument("--fps", type=float, default=15.0, help="frames per second")
        if function is actions:
            command.add_argument("--out", type=local_path, required=True, help=".npz file to write")
        if function is calls:
            command.add_argument(
                "--out",
                type=local_path,
                required=True,
                help=".parquet: a table; .jsonl: conversations",
            )
            command.add_argument(
                "--rows",
                choices=("trl", "verl"),
                help="names of the token ids in .jsonl, which each line must have then",
            )
    for module in (dataset_select, dataset_view, dataset_statistics, dataset_formats):
        module.add_commands(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    try:
        status: int = args.function(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe, e.g. head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that nothing is flushed
        return 0
    except (InputError, OSError) as error:
        return fail(error)
    return status
