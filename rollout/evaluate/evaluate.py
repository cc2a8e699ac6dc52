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
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rollout.api import (
    CALLS,
    CALLS_SPEC,
    Bridge,
    PolicyRecipe,
    StateSet,
    Task,
    calls_of,
    trials_of,
)
from rollout.api.sets import ALL
from rollout.api.subsets import CHOSEN
from rollout.cli import Session
from rollout.config import resolved
from rollout.data import Manifest, describe_dataset
from rollout.data.tables import write_table
from rollout.errors import ConfigError, InputError, RunDirectoryError, named
from rollout.estimate import Estimate
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.findings import Findings, write_report
from rollout.evaluate.journal import Journal, note_opening, openings
from rollout.evaluate.legs import TEST, Leg, Legs
from rollout.evaluate.notes import notes_sections
from rollout.evaluate.page import PAGE, TABLE, EvaluationPages
from rollout.evaluate.playing import legs_plan, play_board
from rollout.evaluate.published import Published, load_published
from rollout.evaluate.recording import Recording
from rollout.evaluate.scoreboard import COLUMN_DOCS, Scoreboard, check_metric
from rollout.evaluate.videos import EpisodeVideo, best_and_worst, record, video_bridge
from rollout.files import parse_json, read_document, write_atomically
from rollout.host import PlayOptions
from rollout.host.fleets import check_inference, open_fleet
from rollout.job import Job, open_job
from rollout.monitor import Monitor, given_up
from rollout.observe.lineage import Results
from rollout.observe.metrics import Media, Video
from rollout.observe.metrics import Table as ShownTable
from rollout.observe.progress import share
from rollout.observe.run_files import SUMMARY
from rollout.run_directory import RunDirectory, as_begun, versions
from rollout.tally import Tally
from rollout.tasks import bridge_and_task

log = logging.getLogger(__name__)

REPORT, PLAYERS = "report.md", "players.json"

_MOST_EPISODES = 10_000_000  # results are kept in memory, about 500 bytes each
_MOST_LISTED = 100  # losses in the summary; losses.jsonl lists all of them


@dataclass(frozen=True)
class EvaluationPlan:
    """A configuration that is built and checked; nothing has been launched.

    Attributes:
        config: the configuration, including the options that the task requires.
        bridge: recipe of the game.
        task: the task.
        legs: the legs to play.
        versions: the version of each player's weights.
        calls: whether a player calls models.
        published: the published results that the report shows; None for none.
        video_bridge: the game with an image observation; None without videos.
    """

    config: EvaluateConfig
    bridge: Bridge
    task: Task
    legs: Legs
    versions: Mapping[str, int]
    calls: bool
    published: Published | None
    video_bridge: Bridge | None

    @classmethod
    def make(cls, config: EvaluateConfig) -> EvaluationPlan:
        """Returns the plan of a configuration.

        Raises:
            InputError: something in the configuration does not exist or does not fit.
        """
        bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
        check_metric(config.metric, task)
        published = _published(config, bridge.spec.tasks)
        sets = _sets(config, task)
        recipes, versions, has_calls = _players(config, bridge, task)
        for recipe in recipes.values():
            check_inference(recipe, config.inference)
            if trials_of(recipe) and config.episodes_per_state == 1:
                raise ConfigError(
                    "episodes_per_state=1: a player is to be told of its earlier episodes from "
                    "the same state, and there are none; set 2 or more, or leave reflect out"
                )
        calls = max(map(calls_of, recipes.values()))
        width = bridge.spec.choose_width(config.width, calls=calls)
        config = config.model_copy(update={"bridge": bridge_config, "width": width})
        legs = [
            Leg(player, recipes[player], name, sets[name], actions, config.episodes_per_state)
            for player, name, actions in product(recipes, sets, config.actions)
        ]
        recorded = None
        if config.videos:
            recorded = video_bridge(config.video, "video", bridge_config, bridge, task)
        played = Legs(tuple(legs), task.state_space, config.seed)
        return cls(config, bridge, task, played, versions, has_calls, published, recorded)

    def recorded(self, run: str) -> Manifest | None:
        """Returns the description of the dataset of a run; None if it does not record its steps."""
        c = self.config
        if not (self.calls if c.record is None else c.record):
            return None
        return describe_dataset(
            self.bridge.spec,
            self.task,
            bridge=c.bridge.name,
            bridge_options=c.bridge.options,
            policy=", ".join(c.players),
            policy_options={name: resolved(player) for name, player in c.players.items()},
            extras={CALLS: CALLS_SPEC} if self.calls else {},
            codec="raw",
            details=True,
            code_version=str(versions()["gamut"]),
            run=run,
        )

    @property
    def divisions(self) -> dict[str, list[str]]:
        """Names of the sets by how they divide the space; sets of two divisions may overlap.

        Sets that are drawn from all states, or listed, overlap on purpose and are left out.
        """
        divisions: dict[str, list[str]] = {}
        for leg in self.legs.legs:
            if leg.states.part not in (ALL, CHOSEN):
                names = divisions.setdefault(json.dumps(leg.states.splits.describe()), [])
                names += [leg.set_name] * (leg.set_name not in names)
        return divisions


def _sets(config: EvaluateConfig, task: Task) -> dict[str, StateSet]:
    sets: dict[str, StateSet] = {}
    for name, chosen in config.sets.items():
        with named(f"sets.{name}"):
            sets[name] = chosen.take(task.state_space)
    total = sum(states.size for states in sets.values())
    total *= len(config.players) * len(config.actions) * config.episodes_per_state
    if total > _MOST_EPISODES:
        sizes = ", ".join(f"{name} {states.size}" for name, states in sets.items())
        raise ConfigError(
            f"sets: the job has {total} episodes, and at most {_MOST_EPISODES} are supported "
            f"(states: {sizes}); give the sets a size"
        )
    names: dict[str, str] = {}
    for name, states in sets.items():
        first = names.setdefault(states.digest, name)
        if first != name:
            raise ConfigError(f"sets.{first} and sets.{name} are the same states; drop one")
    return sets


def _published(config: EvaluateConfig, tasks: Path | None) -> Published | None:
    if not config.published:
        return None
    published = load_published(config.published, tasks)
    if published.metric != config.metric:
        raise ConfigError(
            f"published={config.published}: its results are of metric={published.metric}, and the "
            f"evaluation has metric={config.metric}; set the same, or leave published empty"
        )
    return published


def _players(
    config: EvaluateConfig, bridge: Bridge, task: Task
) -> tuple[dict[str, PolicyRecipe], dict[str, int], bool]:
    """Returns recipes and versions by player, and whether any calls models.

    Each is built once, so that a bad one is refused.
    """
    recipes, versions, has_calls = {}, {}, False
    for name, chosen in config.players.items():
        with named(f"players.{name}"):
            recipes[name] = chosen.build()
            built = recipes[name].build(bridge.spec, task, seed=config.seed)
            versions[name], has_calls = built.version, has_calls or CALLS in built.extras
    return recipes, versions, has_calls


def protocol(plan: EvaluationPlan) -> dict[str, Any]:
    """Returns everything needed to reproduce the figures; the same in every session of a run."""
    c = plan.config
    return {
        "bridge": c.bridge.name,
        "bridge_version": plan.bridge.spec.version,
        "bridge_options": c.bridge.options,
        "task": plan.task.name,
        "limit_steps": plan.task.limits.steps,
        "metric": c.metric,
        "seed": c.seed,
        "players": {name: resolved(player) for name, player in c.players.items()},
        "player_versions": dict(plan.versions),
        "groups": dict(c.groups),
        "sets": {leg.set_name: leg.states.describe() for leg in plan.legs.legs},
        "episodes_per_state": c.episodes_per_state,
        "actions": list(c.actions),
        "episode_seed": "numpy SeedSequence(seed, spawn_key=(state, repeat, 1)), for all players",
        "lost_episodes": f"tried again up to {c.host.retries} times, never counted as results",
    }


def evaluate(config: EvaluateConfig, session: Session) -> str | None:
    """Runs an evaluation.

    Args:
        config: the configuration.
        session: arguments of the script beside the configuration.

    Returns:
        None if everything was done; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: a signal arrived; what was played is saved.
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
        only = None if session.estimate is None else plan.legs.offsets
        board = Scoreboard(plan.legs, plan.task, journal, only=only)
        recording = None
        left = len(board.finished) < plan.legs.episodes
        if left and (manifest := plan.recorded(job.run.run_id)):
            recording = job.stack.enter_context(Recording(job.run.dataset, manifest))
        digests = {leg.set_name: leg.states.digest for leg in plan.legs.legs}
        job.lineage.add("used", *{leg.player: leg.recipe for leg in plan.legs.legs}.values())
        job.report(mirrored={"set_digests": digests})
        evaluation = _Evaluation(plan, job, board, recording, session.estimate)
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

    def __init__(
        self,
        plan: EvaluationPlan,
        job: Job,
        board: Scoreboard,
        recording: Recording | None,
        estimate: Estimate | None,
    ) -> None:
        self._plan, self._job, self._board, self._estimate = plan, job, board, estimate
        self._recording = recording
        done = len(board.finished)
        tally = Tally(env_steps=board.env_steps, episodes=done)
        self._monitor = Monitor(job, tally, lambda: share((tally.episodes, plan.legs.episodes)))
        self._videos: list[EpisodeVideo] = []

    def play(self) -> str | None:
        """Plays until all episodes have ended, a signal comes or no game is left."""
        if len(self._board.finished) < self._plan.legs.episodes:
            self._play_board()
        if self._estimate is not None:
            return self._given_up_text() or self._estimated(self._estimate)
        return self._given_up_text() or self._record()

    def _estimated(self, estimate: Estimate) -> str:
        for leg in self._plan.legs.legs:
            estimate.add(leg.name, self._board.usages(leg), leg.episodes)
        return f"only an estimate was asked for: {self._state()} were played"

    def _play_board(self) -> None:
        c, plan, stop = self._plan.config, self._plan, self._job.stop
        tested = [leg.name for leg in plan.legs.legs if leg.states.part == TEST]
        hosting = legs_plan(
            plan.bridge,
            plan.task,
            plan.legs,
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
                        self._board,
                        fleet,
                        record=self._recording.append if self._recording else lambda _: None,
                        watch=self._monitor.observe,
                        stopping=lambda: stop.requested,
                    )
            finally:
                self._monitor.end()

    def _state(self) -> str:
        done = len(self._board.finished)
        return f"{done} of {self._plan.legs.episodes} episodes"

    def _given_up_text(self) -> str | None:
        return given_up(
            len(self._board.given_up),
            self._plan.config.host.retries,
            f"), and have no score. Saved: {self._state()}; --resume tries them again",
        )

    def _record(self) -> str | None:
        """Records the videos; returns a sentence on those that were lost, None without any."""
        c, plan = self._plan.config, self._plan
        if plan.video_bridge is None:
            return None
        chosen = best_and_worst(plan.legs, self._board.table(c.metric), c.videos, c.videos)
        self._videos.extend(
            record(
                plan.video_bridge,
                plan.bridge.spec,
                plan.task,
                plan.legs,
                chosen,
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
        about = protocol(plan)
        path = run.path / TABLE
        write_table(path, table, about, docs=COLUMN_DOCS)
        findings = Findings(
            table,
            plan.legs,
            c.groups,
            metric=c.metric,
            confidence=c.confidence,
            baseline=c.baseline,
            published=plan.published,
            labels=plan.task.metadata.get("table"),
        ).data()
        summary = self._job.write_summary(
            status,
            protocol={**about, "confidence": c.confidence},
            results=self._results(),
            findings=findings,
            notes={leg: notes_sections(found) for leg, found in self._board.notes().items()},
            films=[asdict(video) for video in self._videos],
            session=self._monitor.tally.session(),
            **self._monitor.decided,
        )
        write_atomically(run.path / REPORT, write_report(summary))
        self._write_page()
        log.info("the scores are in %s and %s", run.path / REPORT, PAGE)
        self._job.lineage.add("made", Results(run.path, (SUMMARY, REPORT, TABLE)))
        self._show(findings, ShownTable(path))
        return self._state()

    def _write_page(self) -> None:
        """Writes the page; what keeps it from that is logged, since the results are there."""
        if self._recording is not None:
            self._recording.close()
        run = self._job.run.path
        try:
            with EvaluationPages.read(run) as pages:
                pages.write(run / PAGE)
        except (InputError, OSError) as error:
            log.warning("%s was not written: %s", run / PAGE, error)

    def _results(self) -> dict[str, Any]:
        board = self._board
        columns = [
            "player",
            "set",
            "actions",
            "position",
            "state",
            "repeat",
            "episode_seed",
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

    def _show(self, findings: Mapping[str, Any], table: ShownTable) -> None:
        scores: dict[str, object] = {}
        for leg in findings["legs"]:
            name = f"evaluate/{leg['player']}/{leg['set']}/{leg['actions']}"
            scores[f"{name}/score"] = leg["score"]["point"]
            if leg["success"]:
                scores[f"{name}/success"] = leg["success"]["point"]
        for gap in findings["gaps"]:
            scores[f"evaluate/{gap['model']}/gap/{gap['actions']}"] = gap["gap"]["point"]
        media: dict[str, Media] = {"tables/episodes": table}
        for video in self._videos:
            file = self._job.run.videos / video.file
            caption = f"{video.leg}, state {video.state}, score {video.score:g}"
            fps = self._plan.config.video.fps
            media[f"videos/{video.leg}/{video.rank}"] = Video(file, fps, caption)
        self._monitor.show(scores, media, last=True)
