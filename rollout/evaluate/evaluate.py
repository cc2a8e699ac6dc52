"""Plays policies on state sets and reports their scores with confidence intervals.

One fleet of hosts plays all players, sets and ways of acting, since games are expensive to
launch. Finished episodes are written to disk at once; a killed job continues with ``--resume``
and gives the same table.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rollout.cli import Session
from rollout.data.tables import write_table
from rollout.errors import RunDirectoryError
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.findings import Findings, write_report
from rollout.evaluate.journal import Journal
from rollout.evaluate.legs import TEST
from rollout.evaluate.openings import note_opening, openings
from rollout.evaluate.plan import EvaluationPlan, protocol
from rollout.evaluate.playing import legs_plan, play_board
from rollout.evaluate.scoreboard import COLUMN_DOCS, Scoreboard
from rollout.evaluate.videos import EpisodeVideo, best_and_worst, record
from rollout.files import parse_json, read_document, write_atomically
from rollout.host import PlayOptions
from rollout.host.opening import open_fleet
from rollout.job import Job, open_job
from rollout.monitor import Monitor, given_up
from rollout.observe.media import Media, Video
from rollout.observe.media import Table as ShownTable
from rollout.observe.progress import share
from rollout.run_directory import RunDirectory, as_begun
from rollout.tally import Tally

log = logging.getLogger(__name__)

TABLE, REPORT, PLAYERS = "episodes.parquet", "report.md", "players.json"

_MOST_LISTED = 100  # losses in the summary; losses.jsonl lists all of them


def evaluate(config: EvaluateConfig, session: Session) -> str | None:
    """Runs the evaluation that the configuration describes.

    Args:
        config: the configuration.
        session: how the script was called.

    Returns:
        None if everything was done; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: the job was told to stop; what was played is saved.
    """
    plan = EvaluationPlan.make(as_begun(config, resume=session.resume))
    needs_ray = bool(config.actors or config.inference.actors)
    with open_job("evaluate", plan.config, session, needs_ray=needs_ray) as job:
        _require_same_players(plan, job.run)
        if len(plan.divisions) > 1:
            log.warning(
                "the sets divide the states in different ways, so that one may hold states of "
                "another: %s. Give all of them the same seed, validation, test and hold_out",
                " | ".join(", ".join(names) for names in plan.divisions.values()),
            )
        journal = job.stack.enter_context(Journal(job.run.path))
        board = Scoreboard(plan.legs, plan.task, journal)
        digests = {leg.set_name: leg.states.digest for leg in plan.legs.legs}
        job.report(mirrored={"set_digests": digests})
        evaluation = _Evaluation(plan, job, board)
        return job.finish(evaluation.play, evaluation.conclude)


def _require_same_players(plan: EvaluationPlan, run: RunDirectory) -> None:
    """Refuses to mix results of two versions of a player, e.g. of a checkpoint that changed."""
    path = run.path / PLAYERS
    now = dict(plan.versions)
    if path.exists():
        try:
            before = dict(parse_json(read_document(path)))
        except (ValueError, TypeError) as error:
            raise RunDirectoryError(
                f"{path}: expected the versions of the players, got something else ({error}); "
                f"restore it, or remove it if the players are those that the run was begun with"
            ) from error
        moved = [f"{k}: {before[k]} -> {now[k]}" for k in now if before.get(k, now[k]) != now[k]]
        if moved:
            raise RunDirectoryError(
                f"the run in {run.path} was begun with other versions of its players "
                f"({'; '.join(moved)}); name the checkpoint exactly, or choose another output"
            )
    write_atomically(path, json.dumps(now, indent=2) + "\n")


class _Evaluation:
    """One session of an evaluation: its loop and its results."""

    def __init__(self, plan: EvaluationPlan, job: Job, board: Scoreboard) -> None:
        self._plan, self._job, self._board = plan, job, board
        done = len(board.finished)
        tally = Tally(env_steps=board.env_steps, episodes=done)
        self._monitor = Monitor(job, tally, lambda: share((tally.episodes, plan.legs.episodes)))
        self._videos: list[EpisodeVideo] = []

    def play(self) -> str | None:
        """Plays until all episodes have ended, a signal comes or no game is left."""
        if len(self._board.finished) < self._plan.legs.episodes:
            self._play_board()
        return self._given_up() or self._record()

    def _play_board(self) -> None:
        c, plan, stop = self._plan.config, self._plan, self._job.stop
        tested = [leg.name for leg in plan.legs.legs if leg.states.part == TEST]
        hosting = legs_plan(
            *(plan.bridge, plan.task, plan.legs),
            instances=c.instances,
            width=plan.bridge.spec.choose_width(c.width),
            host=c.host,
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, retries=c.host.retries),
            session=self._job.run.resume_count,
        )
        with self._job.ray() as stack:
            fleet, inference = stack.enter_context(
                open_fleet(
                    hosting, actors=c.actors, inference=c.inference, folder=self._job.run.path
                )
            )
            self._monitor.follow(fleet, inference)
            if tested:
                note_opening(self._job.run.path, ", ".join(tested))
            try:
                with stop.deferred():
                    play_board(
                        *(self._board, fleet),
                        watch=self._monitor.observe,
                        stopping=lambda: stop.requested,
                    )
            finally:
                self._monitor.end()

    def _state(self) -> str:
        done = len(self._board.finished)
        return f"{done} of {self._plan.legs.episodes} episodes"

    def _given_up(self) -> str | None:
        return given_up(
            len(self._board.given_up),
            self._plan.config.host.retries,
            f"), and have no score. Saved: {self._state()}; --resume tries them again",
        )

    def _record(self) -> str | None:
        c, plan = self._plan.config, self._plan
        if plan.video_bridge is None:
            return None
        chosen = best_and_worst(plan.legs, self._board.table(c.metric), c.videos, c.videos)
        self._videos.extend(
            record(
                *(plan.video_bridge, plan.bridge.spec, plan.task, plan.legs, chosen),
                self._job.run.videos,
                metric=c.metric,
                video=c.video,
                host=c.host,
                start=self._board.start,
            )
        )
        missing = len(chosen) - len(self._videos)
        return f"{missing} videos were lost. Saved: {self._state()}" if missing else None

    def conclude(self, status: str) -> str:
        """Writes table, summary, report and the last metrics line; returns a status sentence."""
        c, plan, run = self._plan.config, self._plan, self._job.run
        table = self._board.table(c.metric)
        told = protocol(plan)
        path = run.path / TABLE
        write_table(path, table, told, docs=COLUMN_DOCS)
        found = Findings(
            *(table, plan.legs, c.groups),
            metric=c.metric,
            confidence=c.confidence,
            baseline=c.baseline,
            published=plan.published,
            table_of_groups=plan.task.metadata.get("table"),
        ).data()
        summary = self._job.write_summary(
            status,
            protocol={**told, "confidence": c.confidence},
            results=self._results(),
            findings=found,
            films=[asdict(made) for made in self._videos],
            session=self._monitor.tally.session(),
            **self._monitor.decided,
        )
        write_atomically(run.path / REPORT, write_report(summary))
        self._show(found, ShownTable(path))
        return self._state()

    def _results(self) -> dict[str, Any]:
        board = self._board
        columns = [
            *("player", "set", "actions", "position", "state", "repeat", "episode_seed"),
            "attempts",
        ]
        given_up = [{name: getattr(entry, name) for name in columns} for entry in board.given_up]
        return {
            "episodes": len(board.finished),
            "missing": self._plan.legs.episodes - len(board.finished),
            "env_steps": board.env_steps,
            "test_states_opened": openings(self._job.run.path),
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
        for made in self._videos:
            file = self._job.run.videos / made.file
            caption = f"{made.leg}, state {made.state}, score {made.score:g}"
            media[f"videos/{made.leg}/{made.rank}"] = Video(
                file, self._plan.config.video.fps, caption
            )
        self._monitor.show(scores, media, last=True)
