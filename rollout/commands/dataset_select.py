"""The commands of ``gamut dataset`` that make datasets of some episodes: ``filter``, ``split``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollout.commands.dataset_arguments import add_dataset, add_filter, add_out
from rollout.data import Dataset, EpisodeRef
from rollout.data.expressions import FIELDS
from rollout.data.selecting import Selected, divide, select
from rollout.signals import one_line
from rollout.signals import tell as tell_lines


def filter_(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        refs = dataset.episodes(include_lost=True, filter=args.filter)
        _make(dataset, {".": refs}, args.out)
    return 0


def split(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        refs = dataset.episodes(include_lost=True, filter=args.filter)
        _make(dataset, divide(refs, args.by, dict(args.shares), args.seed), args.out)
    return 0


def _make(dataset: Dataset, parts: Mapping[str, Sequence[EpisodeRef]], out: Path) -> None:
    made = select(dataset, parts, out)
    for name, done in zip(parts, made, strict=True):
        tell_lines(one_line(f"{out / name}: {_said(done, len({r.state for r in parts[name]}))}"))


def _said(done: Selected, states: int) -> str:
    shards = f"{done.linked} shards linked, {done.written} written"
    return f"{done.episodes} episodes of {states} states, {done.steps} steps; {shards}"


def add_commands(commands: Any) -> None:
    """Adds the commands of this module to those of a parser."""
    text = "make a dataset of the episodes that meet a condition, by links where whole files do"
    command = commands.add_parser("filter", help=text, description=text)
    command.set_defaults(function=filter_)
    add_dataset(command)
    add_filter(command, required=True)
    add_out(command)
    text = "make datasets of parts of the episodes, e.g. for training and validation"
    command = commands.add_parser("split", help=text, description=text)
    command.set_defaults(function=split)
    add_dataset(command)
    add_filter(command)
    command.add_argument(
        "--by",
        choices=tuple(FIELDS),
        metavar="FIELD",
        default="state",
        help="what the episodes of a part have in common: state (the default), so that no start "
        f"state is in two parts, or {', '.join(name for name in FIELDS if name != 'state')}",
    )
    command.add_argument(
        "--shares",
        type=_share,
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=SHARE",
        help="share of the values of FIELD in each part, e.g. train=0.9 validation=0.1; without "
        "it, each value is a part, e.g. with --by split",
    )
    command.add_argument("--seed", type=int, default=0, help="of the random order of the values")
    add_out(command, "folder of the new datasets")


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        return name, float(share)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected NAME=SHARE, e.g. train=0.9, got {text!r}"
        ) from None
