"""Evaluation: players play sets of states, and what they score is told with its uncertainty.

All players, sets and kinds of actions are played by one fleet of games, since games are dear to
launch. What ends is on the disk at once; a job that is killed goes on with ``--resume`` and comes
to the same table.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rollout.api import Fragment
from rollout.cli import Session
from rollout.config import resolved
from rollout.configuration.files import write_atomically
from rollout.data.tables import write_table
from rollout.errors import BudgetExhausted, RunDirectoryError
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.findings import Findings, write_report
from rollout.evaluate.journal import Journal
from rollout.evaluate.plan import Plan, protocol
from rollout.evaluate.playing import legs_plan, open_fleet, play_board
from rollout.evaluate.scoreboard import COLUMNS, Scoreboard
from rollout.evaluate.videos import Film, best_and_worst, film
from rollout.host import PlayOptions
from rollout.host.hosting import Fleet
from rollout.host.inference import InferenceOptions, open_inference
from rollout.host.session import ray_session, require_session
from rollout.observe.exporter import RayExporter
from rollout.observe.logs import about, log_losses, log_notices, set_up_logging
from rollout.observe.media import Media, Video
from rollout.observe.media import Table as ShownTable
from rollout.observe.metrics import Metrics
from rollout.observe.progress import Progress, share, show_progress
from rollout.observe.wandb_mirror import WandbMirror, mirror_settings
from rollout.run_directory import RunDirectory, versions
from rollout.tally import Tally

if TYPE_CHECKING:
    from rollout.host.inference_actors import InferenceActors

log = logging.getLogger(__name__)

TABLE, REPORT, PLAYERS = "episodes.parquet", "report.md", "players.json"

_METRICS_EVERY_S = 1.0
_MOST_LISTED = 100  # losses in the summary; losses.jsonl has them all


def evaluate(config: EvaluateConfig, session: Session) -> str | None:
    """Plays and scores what the configuration says.

    Args:
        config: who plays what.
        session: how the script was called.

    Returns:
        None when all was done; else a sentence that says what is missing.

    Raises:
        InputError: the configuration is wrong; nothing was launched.
        KeyboardInterrupt: it was told to stop; what was played is saved.
    """
    plan = Plan.make(config)
    if config.actors or config.inference.actors:
        require_session(config.ray.address)
    with contextlib.ExitStack() as stack:
        opened = RunDirectory.opened(config.output, plan.config, resume=session.resume)
        run = stack.enter_context(opened)
        set_up_logging(config.log.level, run.log)
        stack.enter_context(about(run=run.run_id))
        _require_same_players(plan, run)
        if len(plan.divisions) > 1:
            log.warning(
                "the sets divide the states in different ways, so that one may hold states of "
                "another: %s. Give all of them the same seed, validation, test and hold_out",
                " | ".join(", ".join(names) for names in plan.divisions.values()),
            )
        journal = stack.enter_context(Journal(run.path))
        board = Scoreboard(plan.legs, plan.task, journal)
        metrics = stack.enter_context(
            Metrics(run.metrics, constants={"resume_count": run.resume_count})
        )
        _mirror(plan, run, stack)
        progress = stack.enter_context(show_progress("evaluate", every_s=config.log.every_s))
        return _Job(plan, run, board, metrics, progress).work(session)


def _require_same_players(plan: Plan, run: RunDirectory) -> None:
    """Refuses to mix the results of two versions of a player, say of a checkpoint that moved."""
    path = run.path / PLAYERS
    now = dict(plan.versions)
    if path.exists():
        before: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        moved = [f"{k}: {before[k]} -> {now[k]}" for k in now if before.get(k, now[k]) != now[k]]
        if moved:
            raise RunDirectoryError(
                f"the run in {run.path} was begun with other versions of its players "
                f"({'; '.join(moved)}); name the checkpoint exactly, or choose another output"
            )
    write_atomically(path, json.dumps(now, indent=2) + "\n")


class _Job:
    """One session of an evaluation: the loop, and what it writes down."""

    def __init__(
        self,
        plan: Plan,
        run: RunDirectory,
        board: Scoreboard,
        metrics: Metrics,
        progress: Progress,
    ) -> None:
        self._plan, self._run, self._board = plan, run, board
        self._metrics, self._progress = metrics, progress
        done = len(board.finished)
        self._tally = Tally(plan.bridge.spec.name, env_steps=board.env_steps, episodes=done)
        self._films: list[Film] = []
        self._decided: dict[str, Any] = {}  # what inference actors decided, if there were any
        self._written = 0.0

    def work(self, session: Session) -> str | None:
        """Plays until all has ended, a signal comes, or no game is left; then writes it down."""
        missing: str | None = None
        try:
            if len(self._board.finished) < self._plan.legs.episodes:
                self._play(session)
            missing = self._given_up()
            if missing is None:
                missing = self._film()
        except KeyboardInterrupt:
            self._conclude("interrupted")
            raise
        except BudgetExhausted as error:
            missing = f"{error}. Saved: {self._state()}"
        self._conclude("done" if missing is None else "ended short")
        return missing

    def _play(self, session: Session) -> None:
        c, plan = self._plan.config, self._plan
        hosting = legs_plan(
            plan.bridge,
            plan.task,
            plan.legs,
            instances=c.instances,
            width=c.width,
            pool=plan.pool,
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, retries=c.host.retries),
            session=self._run.resume_count,
        )
        with contextlib.ExitStack() as stack:
            if c.actors or c.inference.actors:
                stack.enter_context(ray_session(c.ray.address))
            options = InferenceOptions.of(c.inference)
            inference = stack.enter_context(open_inference(hosting, options, hosts=c.actors))
            fleet = stack.enter_context(
                open_fleet(
                    hosting if inference is None else inference.plan,
                    actors=c.actors,
                    max_in_flight=c.host.max_in_flight,
                    restarts=c.host.restarts,
                )
            )
            self._metrics.listen(stack.enter_context(RayExporter(self._run.run_id, "evaluate")))
            session.stop.install()  # ray.init has put its own handler of SIGTERM in place
            try:
                with session.stop.deferred():
                    play_board(
                        self._board,
                        fleet,
                        watch=lambda fragment: self._count(fragment, fleet, inference),
                        stopping=lambda: session.stop.requested,
                    )
            finally:
                log_losses(log, self._tally.hear(fleet.news))
                if inference is not None:
                    self._decided = {"inference": inference.summary()}

    def _count(self, fragment: Fragment, fleet: Fleet, inference: InferenceActors | None) -> None:
        self._tally.add(fragment)
        log_notices(log, fragment.results)
        log_losses(log, [*fragment.losses, *self._tally.hear(fleet.news)])
        now = time.monotonic()
        if now - self._written < _METRICS_EVERY_S:
            return
        self._written = now
        done = share((self._tally.episodes, self._plan.legs.episodes))
        queue = {} if inference is None else {"queue/inference": inference.queued}
        line = {**self._tally.metrics(), **queue, "done": done}
        self._metrics.write(self._tally.env_steps, line)
        self._progress.update(done, self._tally.brief())

    def _state(self) -> str:
        done = len(self._board.finished)
        return f"{done} of {self._plan.legs.episodes} episodes"

    def _given_up(self) -> str | None:
        lost = self._board.given_up
        if not lost:
            return None
        return (
            f"{len(lost)} episodes were lost {self._plan.config.host.retries + 1} times each and "
            f"given up, and have no score. Saved: {self._state()}; --resume tries them again"
        )

    def _film(self) -> str | None:
        c, plan = self._plan.config, self._plan
        if plan.filmed is None:
            return None
        shots = best_and_worst(plan.legs, self._board.table(c.metric), c.videos)
        films = film(
            plan.filmed,
            plan.bridge.spec,
            plan.task,
            plan.legs,
            shots,
            self._run.videos,
            metric=c.metric,
            column=c.video.column,
            fps=c.video.fps,
            pool=plan.pool,
            retries=c.host.retries,
        )
        for made in films:
            self._films.append(made)
            if not made.same:
                log.warning(
                    "%s scored %g, and %g when it was filmed: the game, or the player, does not "
                    "repeat, so that the film shows another run",
                    made.file,
                    made.score,
                    made.replayed,
                )
        missing = len(shots) - len(self._films)
        return f"{missing} films were lost. Saved: {self._state()}" if missing else None

    def _conclude(self, status: str) -> None:
        """Writes the table, the summary, the report and the last line of metrics."""
        c, plan, board = self._plan.config, self._plan, self._board
        table = board.table(c.metric)
        told = protocol(plan)
        path = self._run.path / TABLE
        write_table(path, table, told, docs={k: doc for k, (_, doc) in COLUMNS.items()})
        found = Findings(
            table, plan.legs, c.groups, confidence=c.confidence, resamples=c.resamples
        ).data()
        summary = {
            "status": status,
            "run_id": self._run.run_id,
            "resume_count": self._run.resume_count,
            "protocol": {**told, "confidence": c.confidence, "resamples": c.resamples},
            "results": self._results(),
            "findings": found,
            "films": [asdict(made) for made in self._films],
            "session": self._tally.session(),
            **self._decided,
            "versions": versions(),
        }
        self._run.write_summary(summary)
        write_atomically(self._run.path / REPORT, write_report(summary))
        self._show(found, ShownTable(path))
        log.info("%s: %s in %s", status, self._state(), self._run.path)

    def _results(self) -> dict[str, Any]:
        board = self._board
        columns = ("player", "set", "actions", "position", "state", "repeat", "episode_seed")
        given_up = [
            {**{name: getattr(entry, name) for name in columns}, "attempts": entry.attempts}
            for entry in board.given_up
        ]
        return {
            "episodes": len(board.finished),
            "missing": self._plan.legs.episodes - len(board.finished),
            "env_steps": board.env_steps,
            "attempts_lost": len(board.losses),
            "lost_by_phase": dict(Counter(loss.phase for loss in board.losses)),
            "lost": [asdict(loss) for loss in board.losses[:_MOST_LISTED]],
            "given_up": given_up,
        }

    def _show(self, found: Mapping[str, Any], table: ShownTable) -> None:
        scores: dict[str, object] = {}
        for leg in found["legs"]:
            name = f"evaluate/{leg['player']}/{leg['set']}/{leg['actions']}"
            scores[f"{name}/score"] = leg["score"]["point"]
            if leg["success"]:
                scores[f"{name}/success"] = leg["success"]["point"]
        for gap in found["gaps"]:
            scores[f"evaluate/{gap['model']}/gap/{gap['actions']}"] = gap["gap"]["point"]
        media: dict[str, Media] = {"tables/episodes": table}
        for made in self._films:
            file = self._run.videos / made.file
            caption = f"{made.leg}, state {made.state}, score {made.score:g}"
            media[f"videos/{made.leg}/{made.rank}"] = Video(
                file, self._plan.config.video.fps, caption
            )
        done = share((self._tally.episodes, self._plan.legs.episodes))
        values = {**self._tally.metrics(), "done": done, **scores}
        self._metrics.write(self._tally.env_steps, values, media=media)
        self._progress.update(done, self._tally.brief())


def _mirror(plan: Plan, run: RunDirectory, stack: contextlib.ExitStack) -> None:
    digests = {leg.set_name: leg.states.digest for leg in plan.legs.legs}
    settings = mirror_settings(
        plan.config.wandb,
        run.path,
        run.run_id,
        job_type="evaluate",
        config={**resolved(plan.config), "set_digests": digests},
        resume_count=run.resume_count,
    )
    if settings is not None:
        stack.callback(WandbMirror(run.metrics, settings).finish)
