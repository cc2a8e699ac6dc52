"""Videos of a sweep: the best and the worst held-out episodes, for smallest and largest N."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from rollout.api import Bridge
from rollout.errors import BudgetExhausted, DatasetError
from rollout.evaluate.legs import TEST, Legs
from rollout.evaluate.videos import Recorded, best_and_worst, record
from rollout.files import parse_json, read_document, write_atomically
from rollout.sweep.plan import SweepPlan
from rollout.sweep.run import RunResult, Trainer, folder_of_training, legs_of

log = logging.getLogger(__name__)

_MADE = "films.json"


class Shown(NamedTuple):
    """A video and its description.

    Attributes:
        title: description of its contents.
        file: path relative to the folder of the sweep.
        name: name among the media of the metrics.
    """

    title: str
    file: str
    name: str


def record_runs(
    plan: SweepPlan, outcomes: Mapping[str, RunResult], trainer: Trainer, folder: Path
) -> list[Shown]:
    """Records episodes of the first arm and seed with largest and smallest N, once.

    A run that cannot be recorded causes a warning.

    Args:
        plan: the sweep.
        outcomes: its finished runs, by name.
        trainer: makes the players of trained policies.
        folder: folder of the videos, with a subfolder per run.
    """
    shown: list[Shown] = []
    arm = plan.base.arm
    by_key = {outcome.run.key: outcome for outcome in outcomes.values()}
    for n in dict.fromkeys((max(arm.sizes), min(arm.sizes))):
        outcome = by_key.get((arm.name, n, arm.seeds[0]))
        if plan.video_bridge is None or outcome is None:
            continue
        name = outcome.run.name
        try:
            made = _videos_of(plan, plan.video_bridge, outcome, trainer, folder / name)
        except (BudgetExhausted, DatasetError, OSError) as error:
            log.warning("no video of %s was recorded: %s", name, error)
            continue
        for each in made:
            again = "" if each.same else ", another run of it"
            title = f"N = {n:,}, held-out state {each.state}, {each.rank}: score {each.score:.3g}"
            file = f"{folder.name}/{name}/{each.file}"
            shown.append(Shown(title + again, file, f"videos/n{n}/{each.rank}"))
    return shown


def _videos_of(
    plan: SweepPlan, bridge: Bridge, outcome: RunResult, trainer: Trainer, folder: Path
) -> list[Recorded]:
    run, videos, base = outcome.run, plan.config.videos, plan.base
    asked = {"digest": run.digest, "videos": videos.model_dump(mode="json")}
    done = folder / _MADE
    if done.exists():
        try:
            before = parse_json(read_document(done))
            if before["asked"] == asked:
                return [Recorded(**each) for each in before["films"]]
        except (ValueError, LookupError, TypeError) as error:
            log.warning("%s is damaged (%s); its videos are recorded again", done, error)
        shutil.rmtree(folder)
    shown = (TEST, run.evaluation.actions[0])
    players = legs_of(run, trainer.player(folder_of_training(outcome)))
    own = tuple(leg for leg in players if (leg.set_name, leg.actions) == shown)
    legs = Legs(own, base.task.state_space, run.evaluation.seed)
    recorded = list(
        record(
            *(bridge, base.bridge.spec, base.task, legs),
            best_and_worst(legs, outcome.table, videos.best, videos.worst),
            folder,
            metric=run.evaluation.metric,
            video=videos,
            host=run.config.host,
        )
    )
    made = {"asked": asked, "films": [asdict(each) for each in recorded]}
    write_atomically(done, json.dumps(made, indent=2) + "\n")
    return recorded
