"""Lets people rate recordings in a browser of this machine.

    gamut rate runs/first
    gamut rate runs/first --mode pairwise --pairs 60

RUN_DIR is a run that recorded pictures, a folder of such runs, an evaluation with videos, or a
folder of videos TASK_NUMBER.mp4. Ratings are kept in RUN_DIR/ratings.jsonl, under the name of the
rater; each is on the disk before the page goes on, and the next start continues. Ctrl-C ends it and
shows how far the raters agree. `gamut judge --set ratings=RUN_DIR` compares a model with them.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs

from rollout.commands.loopback import Answer, LoopbackServer, pieces
from rollout.data.view.page import content_policy
from rollout.errors import ConfigError, InputError
from rollout.files import local_path, locked, read_document
from rollout.judge.config import FramesConfig
from rollout.judge.criteria import Criteria, given_criteria, own_criteria
from rollout.judge.people import People
from rollout.judge.ratings import FILE
from rollout.judge.rubric import load_rubric
from rollout.judge.sources import Source, open_source
from rollout.reports import TEMPLATES, render_page
from rollout.signals import Stopped, one_line, say, tell

_PARTS = TEMPLATES.parent / "view"
_SCRIPTS = ("parts.js", "rate.js")
_STYLES = ("page.css", "rate.css")


class RatingServer(LoopbackServer):
    """Serves the page, the videos of clips, and takes ratings.

    Args:
        people: what is rated, and the ratings.
        source: the clips.
        folder: where videos are put that have to be made.
    """

    takes = True

    def __init__(self, people: People, source: Source, folder: Path) -> None:
        super().__init__()
        self._people, self._source, self._folder = people, source, folder
        self._lock = threading.Lock()  # the caches of a dataset are of one thread

    def answer(self, path: str, query: str = "") -> Answer | None:
        """Returns the page, the work of a rater, the agreement, or the video of a clip."""
        if path == "":
            return "text/html", list(_page(self._people))
        if path == "work":
            rater = parse_qs(query).get("rater", [""])[0]
            return "application/json", [json.dumps(self._people.work(rater))]
        if path == "agreement":
            alphas = {k: v for k, v in self._people.agreement().items() if not math.isnan(v)}
            found = {"alpha": alphas, "raters": self._people.progress()}
            return "application/json", [json.dumps(found)]
        kind, _, rest = path.partition("/")
        number, _, which = rest.partition("/")
        if kind != "video" or not number.isdecimal() or len(number) > 9 or which not in ("0", "1"):
            return None
        items = self._people.items
        item = items[int(number)] if int(number) < len(items) else None
        clip = None if item is None else (item.clip, item.other)[int(which)]
        if clip is None:
            return None
        with self._lock:
            file = self._source.video(clip, self._folder)
        return "video/mp4", pieces(file)

    def receive(self, path: str, body: bytes) -> Answer | None:
        """Takes a rating."""
        if path != "rating":
            return None
        return "application/json", [json.dumps(self._people.rate(body))]


def _page(people: People) -> Iterator[str]:
    style = "\n".join(read_document(_PARTS / name).decode() for name in _STYLES)
    script = "\n".join(read_document(_PARTS / name).decode() for name in _SCRIPTS)
    about = json.dumps(people.about())
    about = about.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    policy = f"{content_policy(style, script, served=True)}; media-src blob:"
    return render_page("rate", policy=policy, style=style, script=script, about=about)


def _rules(args: argparse.Namespace, source: Source) -> dict[str, Criteria]:
    """Returns the points of each task that has some; ratings need none."""
    rubric, found = load_rubric(args.rubric), {}
    if args.criteria and not rubric.per_task:
        raise ConfigError(f"--criteria: the rubric {args.rubric} is the same for all tasks")
    for clip in source.clips if rubric.per_task else ():
        if clip.task not in found:
            rules = (
                given_criteria(args.criteria, clip.task, rubric)
                if args.criteria
                else own_criteria(clip.task, clip.metadata, rubric)
            )
            if rules is None and args.criteria:
                raise ConfigError(f"--criteria: there is no file for task {clip.task}")
            found[clip.task] = rules or {}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    args = _parser().parse_args(arguments)
    try:
        return _rate(args)
    except (InputError, OSError) as error:
        say(f"error: {error}")
        return 2


def _rate(args: argparse.Namespace) -> int:
    rubric = load_rubric(args.rubric)
    if not args.run_dir.is_dir():
        raise ConfigError(f"there is no folder {args.run_dir}; name a run, or a folder of videos")
    options = FramesConfig(column=args.column)
    source = open_source(str(args.run_dir), options, args.filter, None)
    lock = args.run_dir / f".{FILE}.lock"
    with (
        closing(source),
        locked(lock, 0.0),
        tempfile.TemporaryDirectory(prefix="gamut-rate-") as folder,
    ):
        for reason in source.unreadable.values():
            say(f"left out: {reason}")
        people = People(
            args.run_dir,
            source.clips,
            rubric,
            _rules(args, source),
            mode=args.mode,
            pairs=args.pairs,
            seed=args.seed,
        )
        with closing(people), RatingServer(people, source, Path(folder)) as server:
            what = "pairs" if args.mode == "pairwise" else "recordings"
            tell(one_line(f"{len(people.items)} {what}; ratings in {people.path}"))
            try:
                server.serve()
            except KeyboardInterrupt as error:
                _conclude(people)
                if isinstance(error, Stopped) and error.signum != signal.SIGINT:
                    raise
    return 0


def _conclude(people: People) -> None:
    """Tells who rated how much, and how far they agree."""
    for rater, counts in people.progress().items():
        tell(one_line(f"{rater}: {counts['done']} of {counts['all']} rated"))
    for criterion, alpha in people.agreement().items():
        known = "unknown, too few were rated by several" if math.isnan(alpha) else f"{alpha:.3f}"
        tell(one_line(f"Krippendorff's alpha, {criterion}: {known}"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run_dir", type=local_path, metavar="RUN_DIR", help="what is rated")
    parser.add_argument(
        "--mode",
        choices=("absolute", "pairwise"),
        default="absolute",
        help="scores of single recordings (absolute), or which of two is better",
    )
    parser.add_argument("--rubric", default="mcu", help="name or .yaml file of the rubric (mcu)")
    parser.add_argument("--criteria", default="", help="file or folder of criteria of the tasks")
    parser.add_argument("--pairs", type=int, default=100, metavar="N", help="number of pairs (100)")
    parser.add_argument("--seed", type=int, default=0, help="of the pairs and the orders (0)")
    parser.add_argument("--column", default="", help="image column, if there are several")
    parser.add_argument("--filter", default="", help="episodes to rate, e.g. 'length < 200'")
    return parser
