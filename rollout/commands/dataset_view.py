"""The command ``gamut dataset view``: a page of a dataset, as a file or from a local server."""

from __future__ import annotations

import argparse
import re
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rollout.commands.dataset_arguments import add_dataset, add_filter
from rollout.commands.dataset_formats import SET_ASIDE
from rollout.commands.loopback import Answer, LoopbackServer
from rollout.data import Dataset, EpisodeRef
from rollout.data.view import (
    MOST_BYTES,
    listed_episodes,
    page,
    served_episode,
    served_summary,
    write_page,
)
from rollout.errors import DatasetError, InputError
from rollout.files import local_path
from rollout.signals import one_line
from rollout.signals import tell as tell_lines


def view(args: argparse.Namespace) -> int:
    if args.serve and (args.out or args.episodes):
        raise InputError("--serve shows every episode and writes no file; leave out the others")
    with Dataset(args.dir) as dataset:
        refs = listed_episodes(dataset, args.filter)
        if args.serve:
            return _serve(partial(opened_dataset, args.dir, args.filter), args.judge)
        out = args.out or dataset.layout.root.with_name(f"{dataset.layout.root.name}.html")
        if out.suffix != ".html":
            raise DatasetError(f"expected a file .html, got {out}")
        if not out.parent.is_dir():
            raise DatasetError(f"there is no folder {out.parent} for the page; make it first")
        chosen = _chosen(dataset, refs, args.episodes) if args.episodes else None
        done = write_page(dataset, out, refs, chosen=chosen, judges=args.judge)
    _tell(f"{out}: {done.listed} episodes, {done.nbytes / 1e6:.1f} MB")
    if done.left_out:
        _tell(f"  {done.left_out} frames left out: a page has at most {MOST_BYTES / 1e6:g} MB;")
        _tell("  choose fewer by --episodes, or see all by --serve")
    if chosen is None and done.shown < done.listed:
        _tell(f"  with the steps of the first {done.shown}, as many as there is room for;")
        _tell("  choose others by --episodes or --filter, or see all by --serve")
    if done.failed:
        _tell(f"  {done.failed} episodes cannot be read; run: gamut dataset doctor {args.dir}")
        return SET_ASIDE
    return 0


def _chosen(
    dataset: Dataset, refs: Sequence[EpisodeRef], numbers: Sequence[int]
) -> list[EpisodeRef]:
    known = {ref.episode for ref in refs}
    unknown = sorted({*numbers} - known)
    if unknown:
        there = f"{len(known)} episodes, {min(known)} to {max(known)}" if known else "none"
        raise DatasetError(
            f"there is no episode {', '.join(map(str, unknown))} in {dataset.layout.root} with "
            f"this filter; there are {there}"
        )
    return [ref for ref in refs if ref.episode in numbers]


def opened_dataset(path: Path, condition: str) -> tuple[Dataset, list[EpisodeRef]]:
    """Returns a dataset, opened now, and the episodes that meet a condition."""
    dataset = Dataset(path)
    return dataset, listed_episodes(dataset, condition)


class Server(LoopbackServer):
    """A server of one dataset, whose pages ask for what is new while a run goes on.

    Args:
        opened: returns the dataset, opened now, and its episodes.
        judges: runs of ``gamut judge``.
    """

    def __init__(self, opened: Any, judges: Sequence[str]) -> None:
        super().__init__()
        self._opened, self._judges = opened, judges
        self._lock = threading.Lock()  # the caches of a dataset are of one thread
        self._now: tuple[Dataset, list[EpisodeRef]] | None = None

    def answer(self, path: str, query: str = "") -> Answer | None:
        """Returns the page, its newest table, or the steps of an episode."""
        with self._lock:
            if path in ("", "now") or self._now is None:
                if self._now is not None:
                    self._now[0].close()
                self._now = self._opened()
            dataset, refs = self._now
            if path == "":
                return "text/html", list(page(dataset, refs, self._judges))
            if path == "now":
                return "application/json", [served_summary(dataset, refs, self._judges)]
            asked = re.fullmatch(r"episode/(\d{1,18})/(\d{1,4})", path)
            for ref in refs if asked else ():
                if asked and (ref.episode, ref.attempt) == (int(asked[1]), int(asked[2])):
                    return "application/json", [served_episode(dataset, ref, self._judges)]
        return None


def _serve(opened: Any, judges: Sequence[str]) -> int:
    with Server(opened, judges) as server:
        server.answer("")  # what cannot be read is said here, not in the browser
        server.serve()
    return 0


def add_commands(commands: Any) -> None:
    """Adds the command of this module to those of a parser."""
    text = "write a page that shows the episodes in a browser, or serve it to this machine"
    command = commands.add_parser("view", help=text, description=text)
    command.set_defaults(function=view)
    add_dataset(command)
    command.add_argument(
        "--out", type=local_path, help="file .html to write; by default beside the dataset"
    )
    command.add_argument(
        "--serve", action="store_true", help="serve the page to browsers of this machine instead"
    )
    add_filter(command)
    command.add_argument(
        "--episodes",
        type=int,
        nargs="+",
        metavar="NUMBER",
        help="episodes whose steps the file has; by default the first that fit",
    )
    command.add_argument(
        "--judge",
        nargs="+",
        default=[],
        metavar="RUN",
        help="runs of gamut judge, whose scores are in the table and verdicts in the transcripts",
    )


def _tell(line: str) -> None:
    tell_lines(one_line(line))
