"""Data about a sweep: the contents of its report, its state sets, and its figures."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollout.configuration.plugins import default_options
from rollout.data.tables import concatenate
from rollout.evaluate.legs import TRAIN
from rollout.evaluate.scoreboard import BOUNDS
from rollout.evaluate.statistics import Estimate, Intervals, one_player
from rollout.registry import Group
from rollout.run_directory import versions
from rollout.sweep.config import SweepConfig
from rollout.sweep.curves import Point
from rollout.sweep.job import Outcome
from rollout.sweep.plan import Job, SweepPlan
from rollout.sweep.report_data import RunInfo, SetInfo, SweepReport
from rollout.sweep.results import scores_of, select

_SCORES = {"return": "return", "progress": "progress", "success": "success rate"}


def report_of(
    plan: SweepPlan,
    outcomes: Mapping[str, Outcome],
    failures: Mapping[str, str],
    videos: list[tuple[str, str]],
) -> SweepReport:
    """Returns the data of the report.

    Args:
        plan: the sweep.
        outcomes: finished runs and baselines, by name.
        failures: why runs failed, by name.
        videos: titles and paths, relative to the folder of the sweep.
    """
    config = plan.config
    done = [outcomes[job.name] for job in _in_order(plan) if job.name in outcomes]
    return SweepReport(
        title=config.title or config.output.name,
        metric=config.score or _SCORES[config.evaluate.metric],
        table=concatenate(outcome.table for outcome in done),
        runs=[_run_info(outcome, config.output) for outcome in done],
        protocol=_protocol(plan, outcomes, failures),
        versions={k: v for k, v in versions().items() if v is not None},
        command=_command(config.output),
        base_arm=plan.base.arm.name,
        arms={name: game.arm.doc for name, game in plan.games.items() if game.arm.doc},
        sets=_set_infos(plan),
        planned=[job.key for job in _in_order(plan)],
        videos=videos,
        intervals=_intervals(config),
    )


def _in_order(plan: SweepPlan) -> list[Job]:
    """The runs by arm, N and training seed, whatever order they ran in."""
    arms = list(plan.games)
    return sorted(plan.jobs, key=lambda job: (arms.index(job.arm), job.n, job.training_seed))


def _run_info(outcome: Outcome, output: Path) -> RunInfo:
    result, job = outcome.result, outcome.job
    training = result["training"]
    player = Path(str(result["player"].get("path", job.folder)))
    return RunInfo(
        *(job.arm, job.n, job.training_seed),
        set_name=result["set"]["name"],
        set_digest=result["set"]["digest"],
        env_steps=training["env_steps"],
        episodes=training["episodes"],
        visits=training["visits"],
        seconds=training["seconds"],
        # The folder of the sweep may have been moved since.
        checkpoint=f"{job.folder.relative_to(output)}/{'/'.join(player.parts[-2:])}"
        if player.name != job.folder.name
        else str(job.folder.relative_to(output)),
    )


def _set_infos(plan: SweepPlan) -> list[SetInfo]:
    arms: dict[tuple[str, int, str], list[str]] = {}
    for name, game in plan.games.items():
        for set_name, states in game.held_out.items():
            arms.setdefault((set_name, states.size, states.digest), []).append(name)
    everyone = list(plan.games)
    return [
        SetInfo(*key, arms=() if names == everyone else tuple(names)) for key, names in arms.items()
    ]


def _command(output: Path) -> str:
    script = Path(sys.argv[0])
    given = [argument for argument in sys.argv[1:] if argument != "--resume"]
    if script.name != "sweep.py" or not given:
        given = ["--config", str(output / "config.yaml")]
    return shlex.join([".venv/bin/python", "scripts/sweep.py", *given])


def _protocol(
    plan: SweepPlan, outcomes: Mapping[str, Outcome], failures: Mapping[str, str]
) -> dict[str, object]:
    c, e, base = plan.config, plan.config.evaluate, plan.base
    template, limit = base.arm.template, base.task.limits.steps
    subsets = "the same states in all of them" if c.same_subsets else "each has its own states"
    told: dict[str, object] = {
        "bridge": f"{c.train.bridge.name} {base.bridge.spec.version}",
        "bridge options": _chosen("bridges", base.config.name, base.config.options)
        or "those by default",
        "task": base.task.name,
        "limit of an episode": "that of the game" if limit is None else f"{limit:,} steps",
        "states": f"{base.task.state_space.size:,}",
        "factors (values)": {f.name: f.size for f in base.task.state_space if f.size > 1},
        "algorithm": template.algorithm.name,
        "budget of each run": f"{template.env_steps:,} steps",
        "policy": template.policy.name,
        "policy options": _chosen("policies", template.policy.name, template.policy.options)
        or "those by default",
        "algorithm options": template.algorithm.options,
        "training seeds": f"{', '.join(map(str, base.arm.seeds))}; {subsets}",
        "training sets": "nested: the set of a larger N holds those of the smaller ones"
        if template.state_set.subset == "random"
        else template.state_set.subset,
        "evaluated on": f"the run's first {e.train_states:,} training states, or all of them, and "
        f"{e.test_states:,} held-out states, {e.episodes_per_state} episode(s) from each; where "
        f"there are fewer training states, more from each, so that there are about as many",
        "seed of an evaluated episode": f"numpy SeedSequence({e.seed}, spawn_key=(state, repeat, "
        f"1)): the same for all players",
        "lost episodes": f"tried again up to {template.host.retries} times, then listed; never "
        f"counted as results",
    }
    for job in plan.baselines:
        if job.name in outcomes:
            told |= _baseline(outcomes[job.name], _intervals(c))
    for name, reason in failures.items():
        told[f"failed: {name}"] = reason
    return told


def _chosen(group: Group, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a plug-in that differ from their defaults."""
    defaults = default_options(group, name)
    return {k: v for k, v in options.items() if k not in defaults or v != defaults[k]}


def _intervals(config: SweepConfig) -> Intervals:
    return Intervals(**config.intervals.model_dump(), bounds=BOUNDS[config.evaluate.metric])


def _baseline(outcome: Outcome, intervals: Intervals) -> dict[str, object]:
    told: dict[str, object] = {}
    for actions in outcome.job.evaluation.actions:
        own = select(outcome.table, outcome.table["actions"] == actions)
        estimate = one_player(scores_of(own).values[0], intervals)
        told[f"{outcome.job.name}, held-out states, {actions}"] = (
            f"{estimate.text()} (interval over states)"
        )
    return told


def sets_of(plan: SweepPlan) -> dict[str, Any]:
    """Returns every state set of the sweep and their state spaces, as plain data."""
    spaces = {
        game.task.state_space.digest: {
            "size": str(game.task.state_space.size),
            "factors": game.task.state_space.describe(),
        }
        for game in plan.games.values()
    }
    held_out = {
        name: {set_name: states.describe() for set_name, states in game.held_out.items()}
        for name, game in plan.games.items()
    }
    runs = {
        job.name: {
            "trained on": job.states.describe(),
            "evaluated on": {name: states.digest for name, states in job.sets.items()},
        }
        for job in _in_order(plan)
        if job.states is not None
    }
    return {"spaces": spaces, "held_out": held_out, "runs": runs}


def digests_of(plan: SweepPlan) -> dict[str, str]:
    """Returns the digest of every training and test set, by name."""
    found = {
        f"{game.arm.name}/{name}": states.digest
        for game in plan.games.values()
        for name, states in game.held_out.items()
    }
    trained = {f"{job.name}/{TRAIN}": job.states.digest for job in plan.jobs if job.states}
    return {**found, **trained}


def plain_points(points: list[Point]) -> list[dict[str, Any]]:
    """Returns the results of each arm and N as plain data."""
    return [
        {
            "arm": point.arm,
            "n": point.n,
            "actions": point.actions,
            "seeds": list(point.seeds),
            "scores": {name: _plain(score) for name, score in point.scores.items()},
            "gap": None if point.gap is None else _plain(point.gap),
            "success": {name: _plain(rate) for name, rate in point.success.items()},
            "by_seed": {name: [_number(v) for v in each] for name, each in point.by_seed.items()},
            "episodes": point.episodes,
            "lost": point.lost,
        }
        for point in points
    ]


def _plain(estimate: Estimate) -> dict[str, Any]:
    return {
        "point": _number(estimate.point),
        "low": estimate.low,
        "high": estimate.high,
        **({"refused": estimate.refused} if estimate.refused else {}),
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def values_of(point: Point) -> dict[str, float]:
    """Returns the figures of a point for dashboards: means and the bounds of the gap's interval."""
    name = f"sweep/{point.arm}"
    values = {f"{name}/{each}": score.point for each, score in point.scores.items()}
    if point.gap is not None:
        values[f"{name}/gap"] = point.gap.point
        if point.gap.low is not None and point.gap.high is not None:
            values |= {f"{name}/gap_low": point.gap.low, f"{name}/gap_high": point.gap.high}
    return values
