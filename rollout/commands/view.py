"""Shows a run in a browser of this machine: the results of an evaluation, or recorded episodes.

    gamut view runs/evaluation
    gamut view runs/evaluation --judge runs/judge --out shared.html

Of an evaluation: scores with intervals, comparisons, lost episodes and cost, and each episode with
its steps, calls of models and videos; of a collection or a dataset: its episodes. The address that
is printed holds a random token. Ctrl-C ends it. Exit status: 0, or 2 if there is nothing to show.
"""

from __future__ import annotations

import argparse
import re
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from rollout.cli import fail
from rollout.commands.dataset_view import Server, opened_dataset
from rollout.commands.loopback import Answer, LoopbackServer, pieces
from rollout.data.view import served_episode, served_page
from rollout.data.view.listing import key_of
from rollout.errors import ConfigError, InputError
from rollout.evaluate.page import EvaluationPages
from rollout.files import local_path
from rollout.observe.run_files import RUN, read_about
from rollout.signals import one_line, tell


class EvaluationServer(LoopbackServer):
    """A server of one evaluation that has results.

    Args:
        pages: the evaluation.
    """

    def __init__(self, pages: EvaluationPages) -> None:
        super().__init__()
        self._pages = pages
        self._lock = threading.Lock()  # the caches of a dataset are of one thread
        self._refs = {key_of(ref): ref for ref in pages.refs}
        self._videos = {video.file.name: video.file for video in pages.listing.videos}

    def answer(self, path: str, query: str = "") -> Answer | None:
        """Returns the page, the steps of an episode, or a video."""
        if path == "":
            return "text/html", served_page(self._pages.listing, "done")
        if (video := self._videos.get(unquote(path).removeprefix("videos/"))) is not None:
            return "video/mp4", pieces(video)
        asked = re.fullmatch(r"episode/(\d{1,18})/(\d{1,4})", path)
        ref = self._refs.get(":".join(asked.groups())) if asked else None
        if ref is None or self._pages.dataset is None:
            return None
        with self._lock:
            steps = served_episode(self._pages.dataset, ref, self._pages.judges)
        return "application/json", [steps]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    args = _parser().parse_args(arguments)
    try:
        return _view(args.dir, args.judge, args.out)
    except InputError as error:
        return fail(error)


def _view(folder: Path, judges: Sequence[str], out: Path | None) -> int:
    kind = read_about(folder)["kind"] if (folder / RUN).exists() else ""
    if kind == "EvaluateConfig":
        with EvaluationPages.read(folder, judges) as pages:
            if out is not None:
                _write(pages, out)
                return 0
            with EvaluationServer(pages) as server:
                server.serve()
        return 0
    parts = sorted(each.parent for each in folder.glob(f"runs/*/{RUN}"))
    if parts and not (folder / "dataset").is_dir():
        raise ConfigError(
            f"{folder} has several runs, each with its own episodes; view one of them, e.g. "
            f"{', '.join(map(str, parts[:3]))}"
        )
    if out is not None:
        raise ConfigError(
            f"{folder} is no evaluation, and --out writes the page of one; use gamut dataset view "
            f"{folder} --out {out}"
        )
    with Server(partial(opened_dataset, folder, ""), judges) as server:
        server.answer("")  # what cannot be read is said here, not in the browser
        server.serve()
    return 0


def _write(pages: EvaluationPages, out: Path) -> None:
    if out.suffix != ".html" or not out.parent.is_dir():
        raise ConfigError(f"expected a file .html in a folder that exists, got {out}")
    done = pages.write(out)
    shown = f", {done.shown} of them with steps" if pages.refs else ""
    tell(one_line(f"{out}: {done.listed} episodes{shown}, {done.nbytes / 1e6:.1f} MB"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "dir", type=local_path, metavar="DIR", help="the folder of a run, or a dataset"
    )
    parser.add_argument(
        "--judge",
        nargs="+",
        default=[],
        metavar="RUN",
        help="runs of gamut judge, whose scores are in the table and verdicts in the transcripts",
    )
    parser.add_argument(
        "--out",
        type=local_path,
        metavar="FILE",
        help="write the page of an evaluation to this file .html instead of serving it",
    )
    return parser
