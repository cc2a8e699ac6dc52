"""Videos of a sweep: the best and the worst held-out episodes, for smallest and largest N."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rollout.errors import BudgetExhausted, DatasetError
from rollout.evaluate.legs import TEST, Legs
from rollout.evaluate.videos import Film, Shot, best_and_worst, film
from rollout.files import parse_json, write_atomically
from rollout.sweep.job import Outcome, Trainer, legs_of
from rollout.sweep.plan import SweepPlan

log = logging.getLogger(__name__)

_MADE = "films.json"


@dataclass(frozen=True)
class Shown:
    """A video and its description.

    Attributes:
        file: path relative to the folder of the sweep.
        title: description of its contents.
        name: name among the media of the metrics.
    """

    file: str
    title: str
    name: str


def filmed_runs(plan: SweepPlan, outcomes: Mapping[str, Outcome]) -> list[Outcome]:
    """Returns the runs to film: first arm, largest and smallest N, first seed."""
    arm = plan.base.arm
    keys = [(arm.name, n, arm.seeds[0]) for n in (max(arm.sizes), min(arm.sizes))]
    by_key = {outcome.job.key: outcome for outcome in outcomes.values()}
    return [by_key[key] for key in dict.fromkeys(keys) if key in by_key]


def film_runs(
    plan: SweepPlan, outcomes: Mapping[str, Outcome], trainer: Trainer, folder: Path
) -> list[Shown]:
    """Records the best and the worst held-out episodes; existing videos are kept.

    A run that cannot be filmed causes a warning.

    Args:
        plan: the sweep.
        outcomes: its finished runs, by name.
        trainer: makes the players of trained policies.
        folder: folder of the videos, with a subfolder per run.
    """
    shown: list[Shown] = []
    if plan.filmed is None:
        return shown
    for outcome in filmed_runs(plan, outcomes):
        try:
            made = _films_of(plan, outcome, trainer, folder / outcome.job.name)
        except (BudgetExhausted, DatasetError, OSError) as error:
            log.warning("%s was not filmed: %s", outcome.job.name, error)
            continue
        shown += [_shown(outcome, each, folder) for each in made]
    return shown


def _films_of(plan: SweepPlan, outcome: Outcome, trainer: Trainer, folder: Path) -> list[Film]:
    assert plan.filmed is not None
    job, videos, base = outcome.job, plan.config.videos, plan.base
    asked = {"digest": job.digest, "videos": videos.model_dump(mode="json")}
    done = folder / _MADE
    if done.exists():
        try:
            before = parse_json(done.read_bytes())
            if before["asked"] == asked:
                return [Film(**each) for each in before["films"]]
        except (ValueError, LookupError, TypeError) as error:
            log.warning("%s is damaged (%s); its films are made again", done, error)
        shutil.rmtree(folder)
    players = tuple(legs_of(job, trainer.player(job.folder)))
    legs = Legs(players, base.task.state_space, job.evaluation.seed)
    films = list(
        film(
            plan.filmed,
            base.bridge.spec,
            base.task,
            legs,
            _shots(plan, outcome, legs),
            folder,
            metric=job.evaluation.metric,
            column=videos.column,
            fps=videos.fps,
            host=job.config.host,
            retries=job.config.host.retries,
        )
    )
    for each in films:
        if not each.same:
            log.warning(
                "%s/%s shows another run of its episode: the game, or the player, does not repeat",
                folder,
                each.file,
            )
    text = json.dumps({"asked": asked, "films": [asdict(each) for each in films]}, indent=2)
    write_atomically(done, text + "\n")
    return films


def _shots(plan: SweepPlan, outcome: Outcome, legs: Legs) -> list[Shot]:
    videos, actions = plan.config.videos, outcome.job.evaluation.actions[0]
    wanted = {f"best{i + 1}" for i in range(videos.best)}
    wanted |= {f"worst{i + 1}" for i in range(videos.worst)}
    shots: Sequence[Shot] = best_and_worst(legs, outcome.table, max(videos.best, videos.worst))
    found = []
    for shot in shots:
        leg = legs.legs[legs.leg_of(shot.episode)]
        if (leg.set_name, leg.actions) == (TEST, actions) and shot.rank in wanted:
            found.append(shot)
    return found


def _shown(outcome: Outcome, made: Film, folder: Path) -> Shown:
    job = outcome.job
    again = "" if made.same else ", another run of it"
    return Shown(
        f"{folder.name}/{job.name}/{made.file}",
        f"N = {job.n:,}, held-out state {made.state}, {made.rank}: score {made.score:.3g}{again}",
        f"videos/n{job.n}/{made.rank}",
    )
