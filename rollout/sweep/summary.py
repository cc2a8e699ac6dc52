"""Data about a sweep: contents of its report, state sets, inert factors and figures."""

from __future__ import annotations

import json
import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api.state import digest
from rollout.config import resolved
from rollout.data.tables import Table, concatenate
from rollout.distinguish import distinguishable
from rollout.errors import ContractError, GameError, InputError
from rollout.evaluate.findings import plain
from rollout.evaluate.journal import openings
from rollout.evaluate.legs import TEST, TRAIN
from rollout.evaluate.scoreboard import BOUNDS
from rollout.evaluate.statistics import Estimate, Intervals, one_player
from rollout.files import write_atomically
from rollout.observe.run_files import read_json
from rollout.run_directory import versions
from rollout.sweep.config import SweepConfig, TemplateConfig
from rollout.sweep.curves import DETERMINISTIC, SAMPLED, Point, curves, scores_of, select
from rollout.sweep.decomposition import Decomposition, decompositions
from rollout.sweep.plan import ArmGame, SweepPlan, SweepRun
from rollout.sweep.run import RunResult, SetName, Training, folder_of_training

log = logging.getLogger(__name__)

_DISTINGUISHABLE = "distinguishable.json"


@dataclass(frozen=True)
class RunInfo:
    """One finished training run.

    Attributes:
        arm: named variation of the sweep.
        n: number of training states.
        training_seed: its seed.
        states: the training set.
        training: steps, episodes, duration, and visits of states.
        checkpoint: path of the result, relative to the report.
    """

    arm: str
    n: int
    training_seed: int
    states: SetName
    training: Training
    checkpoint: str


@dataclass(frozen=True)
class SweepReport:
    """The contents of a report.

    Attributes:
        title: title of the report and the figure.
        metric: meaning of a score, e.g. ``"fraction of the sheep killed"``.
        table: the available results, see ``rollout.evaluate.scoreboard.COLUMNS``.
        runs: the finished training runs.
        protocol: bridge, task, factors, budgets, seeds, ..., by name.
        versions: versions of packages, and the machine.
        command: the command that repeats the sweep.
        base_arm: the arm of the verdict, with which others are compared; by default the first of
            the table.
        arms: description of each arm.
        sets: name, size and digest of the state sets on which runs were evaluated, and the arms
            that use each; none for all.
        planned: arm, N and training seed of every run of the sweep; empty if all are finished.
        videos: titles and paths relative to the report.
        intervals: method of the intervals.
    """

    title: str
    metric: str
    table: Table
    runs: Sequence[RunInfo]
    protocol: Mapping[str, object]
    versions: Mapping[str, object]
    command: str
    base_arm: str = ""
    arms: Mapping[str, str] = field(default_factory=dict)
    sets: Sequence[tuple[str, int, str, Sequence[str]]] = ()
    planned: Sequence[tuple[str, int, int]] = ()
    videos: Sequence[tuple[str, str]] = ()
    intervals: Intervals = field(default_factory=Intervals)

    @cached_property
    def points(self) -> list[Point]:
        """The results of each arm and N, for ``actions``."""
        return curves(self.table, actions=self.actions, intervals=self.intervals)

    @cached_property
    def parts(self) -> list[Decomposition]:
        """The parts of the gap of each arm and N, for ``actions``."""
        return decompositions(self.table, actions=self.actions, intervals=self.intervals)

    @property
    def base(self) -> str:
        """The base arm; empty if nothing was evaluated and none was named."""
        first = [str(arm) for arm in self.table["arm"][:1]] if "arm" in self.table else []
        return self.base_arm or next(iter(first), "")

    @property
    def actions(self) -> str:
        """Reported way of choosing actions: ``sampled`` if there are such results."""
        given = set(self.table["actions"].tolist()) if "actions" in self.table else set()
        return DETERMINISTIC if given == {DETERMINISTIC} else SAMPLED

    @cached_property
    def same_runs(self) -> dict[tuple[str, int], int]:
        """The largest N whose runs are those of an arm and a smaller N, by arm and smaller N.

        Random sets of one seed begin with the same states. So trainings that end before they have
        used up theirs are one training.
        """
        played: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
        for run in self.runs:
            if "subset" not in run.states and run.training["episodes"] < run.n:
                length = (run.training["episodes"], run.training["env_steps"])
                played.setdefault((run.arm, run.n), {})[run.training_seed] = length
        found = {}
        for (arm, n), own in played.items():
            larger = [
                m
                for (other, m), theirs in played.items()
                if other == arm and m > n and own.items() <= theirs.items()
            ]
            if larger:
                found[arm, n] = max(larger)
        return found

    def missing(self) -> list[tuple[str, int, int]]:
        """Returns arm, N and training seed of the planned runs that have no results yet."""
        names = ("arm", "n", "training_seed")
        columns = [self.table[name].tolist() for name in names if name in self.table]
        trained = {(run.arm, run.n, run.training_seed) for run in self.runs}
        done = trained.intersection(zip(*columns, strict=True))
        return [key for key in self.planned if tuple(key) not in done]

    def budgets(self) -> dict[str, float]:
        """Returns the median number of training episodes of each arm's runs with the largest N.

        If N is larger, a run does not visit all of its states: increasing N further changes which
        states it visits, but not how many.
        """
        found: dict[str, float] = {}
        for arm in dict.fromkeys(run.arm for run in self.runs):
            own = [(run.n, run.training["episodes"]) for run in self.runs if run.arm == arm]
            largest, _ = max(own)
            found[arm] = float(np.median([episodes for n, episodes in own if n == largest]))
        return found


_SCORES = {"return": "return", "progress": "progress", "success": "success rate"}


def report_of(
    plan: SweepPlan,
    outcomes: Mapping[str, RunResult],
    failures: Mapping[str, str],
    videos: list[tuple[str, str]],
) -> SweepReport:
    """Returns the data of the report.

    Args:
        plan: the sweep.
        outcomes: finished runs and baselines, by name.
        failures: reasons of failures, by name of the run.
        videos: titles and paths, relative to the folder of the sweep.
    """
    config = plan.config
    done = [outcomes[run.name] for run in _in_order(plan) if run.name in outcomes]
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
        sets=_sets(plan),
        planned=[run.key for run in _in_order(plan)],
        videos=videos,
        intervals=_intervals(config),
    )


def _in_order(plan: SweepPlan) -> list[SweepRun]:
    """Returns the runs in the order of arm, N and training seed."""
    arms = list(plan.games)
    return sorted(plan.runs, key=lambda run: (arms.index(run.arm), run.n, run.training_seed))


def _run_info(outcome: RunResult, output: Path) -> RunInfo:
    result, run = outcome.result, outcome.run
    # The folder of the sweep may have been moved since.
    folder = folder_of_training(outcome)
    checkpoint = str(folder.relative_to(output))
    player = Path(str(result["player"].get("path", folder)))
    if player.name != folder.name:
        checkpoint += f"/{'/'.join(player.parts[-2:])}"
    return RunInfo(*run.key, result["set"], result["training"], checkpoint)


def _sets(plan: SweepPlan) -> list[tuple[str, int, str, Sequence[str]]]:
    arms: dict[tuple[str, int, str], list[str]] = {}
    for name, game in plan.games.items():
        for set_name, states in game.held_out.items():
            arms.setdefault((set_name, states.size, states.digest), []).append(name)
    everyone = list(plan.games)
    return [(*key, [] if names == everyone else names) for key, names in arms.items()]


def _command(output: Path) -> str:
    script = Path(sys.argv[0])
    given = [argument for argument in sys.argv[1:] if argument != "--resume"]
    if script.name not in {"sweep.py", "gamut sweep"} or not given:
        given = ["--config", str(output / "config.yaml")]
    return shlex.join(["gamut", "sweep", *given])


def _protocol(
    plan: SweepPlan, outcomes: Mapping[str, RunResult], failures: Mapping[str, str]
) -> dict[str, object]:
    c, e, base = plan.config, plan.config.evaluate, plan.base
    template, limit = base.arm.template, base.task.limits.steps
    rows: dict[str, object] = {
        "bridge": f"{c.train.bridge.name} {base.bridge.spec.version}",
        "bridge options": base.config.chosen or "those by default",
        "task": base.task.name,
        "limit of an episode": "that of the game" if limit is None else f"{limit:,} steps",
        "states": states_text(c.output, base.task.state_space.size),
        "factors (values)": {f.name: f.size for f in base.task.state_space if f.size > 1},
        "algorithm": template.algorithm.name,
        "budget of each run": _budget(template),
        "policy": template.policy.name,
        "policy options": template.policy.chosen or "those by default",
        "algorithm options": template.algorithm.options,
        "training seeds": f"{', '.join(map(str, base.arm.seeds))}; each has its own states",
        "training sets": "nested: the set of a larger N holds those of the smaller ones"
        if template.state_set.subset == "random"
        else template.state_set.subset,
        "evaluated on": f"the run's first {e.train_states:,} training states, or all of them, and "
        f"{e.test_states:,} held-out states, {e.episodes_per_state} episode(s) from each; where "
        f"there are fewer training states, more from each, so that there are about as many",
        "part of the held-out states": _part(plan),
        "seed of an evaluated episode": f"numpy SeedSequence({e.seed}, spawn_key=(state, repeat, "
        f"1)): the same for all players",
        "lost episodes": f"tried again up to {template.host.retries} times, then listed; never "
        f"counted as results",
    }
    for name, game in list(plan.games.items())[1:]:
        own = game.arm.template
        if own.algorithm.name != template.algorithm.name:
            rows[f"arm {name}"] = f"{own.algorithm.name}, {_budget(own)}"
            rows[f"arm {name}, algorithm options"] = own.algorithm.options
    for run in plan.baselines:
        if run.name in outcomes:
            rows |= _baseline(outcomes[run.name], _intervals(c))
    for name, reason in failures.items():
        rows[f"failed: {name}"] = reason
    return rows


def _budget(template: TemplateConfig) -> str:
    """Returns what each run learns from."""
    shown = template.demonstrations
    if shown is None:
        return f"{template.env_steps:,} steps"
    of = f"{shown.episodes:,} episodes of {shown.policy.name} on its training states"
    if shown.clone is None:
        return of
    return f"{template.env_steps:,} steps, from a clone ({shown.clone.name}) of {of}"


def _part(plan: SweepPlan) -> str:
    if plan.config.evaluate.split != TEST:
        return "validation: for choosing settings, not for figures to report"
    times = openings(plan.config.output)
    return (
        f"test; sessions in this folder that set out to play it, whether they did or not: "
        f"{len(times)} ({', '.join(times)}). Sessions whose folder was lost are not counted"
    )


def _intervals(config: SweepConfig) -> Intervals:
    return Intervals(**config.intervals.model_dump(), bounds=BOUNDS[config.evaluate.metric])


def _baseline(outcome: RunResult, intervals: Intervals) -> dict[str, object]:
    rows: dict[str, object] = {}
    for actions in outcome.run.evaluation.actions:
        own = select(outcome.table, outcome.table["actions"] == actions)
        estimate = one_player(scores_of(own).values[0], intervals)
        rows[f"{outcome.run.name}, held-out states, {actions}"] = (
            f"{estimate.text()} (interval over states)"
        )
    return rows


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
        run.name: {
            "trained on": run.states.describe(),
            "evaluated on": {name: states.digest for name, states in run.sets.items()},
        }
        for run in _in_order(plan)
        if run.states is not None
    }
    return {"spaces": spaces, "held_out": held_out, "runs": runs}


def digests_of(plan: SweepPlan) -> dict[str, str]:
    """Returns the digest of every training and test set, by name."""
    found = {
        f"{game.arm.name}/{name}": states.digest
        for game in plan.games.values()
        for name, states in game.held_out.items()
    }
    trained = {f"{run.name}/{TRAIN}": run.states.digest for run in plan.runs if run.states}
    return {**found, **trained}


def plain_figures(figures: Sequence[Point | Decomposition]) -> list[dict[str, Any]]:
    """Returns the results of each arm and N, or their parts, as plain data."""

    def estimate_dict(estimate: Estimate) -> dict[str, Any]:
        refused = {"refused": estimate.refused} if estimate.refused else {}
        return {"point": estimate.point, "low": estimate.low, "high": estimate.high, **refused}

    return [plain(vars(figure), estimate_dict) for figure in figures]


def values_of(point: Point) -> dict[str, float]:
    """Returns the figures of a point for dashboards: means and the bounds of the gap's interval."""
    name = f"sweep/{point.arm}"
    values = {f"{name}/{each}": score.point for each, score in point.scores.items()}
    if point.gap is not None:
        values[f"{name}/gap"] = point.gap.point
        if point.gap.low is not None and point.gap.high is not None:
            values |= {f"{name}/gap_low": point.gap.low, f"{name}/gap_high": point.gap.high}
    return values


def find_inert(folder: Path, game: ArmGame) -> None:
    """Finds the factors that change nothing for a game's observations, once.

    The result is kept in the folder of the sweep. Only for games that run in this process and
    have several factors; see ``rollout.distinguish``.
    """
    space = game.task.state_space
    here = game.shared.host.plays_in_process(game.bridge.spec.process)
    if not here or sum(factor.size > 1 for factor in space) < 2:
        return
    only = game.shared.state_set.only
    key = digest([resolved(game.config), space.digest, resolved(game.shared.state_set)["only"]])
    if read_json(folder / _DISTINGUISHABLE).get("key") == key:
        return
    log.info("finding the factors of the states that change nothing")
    try:
        found = distinguishable(game.bridge, game.task, only=only).describe()
    except (InputError, GameError, ContractError) as error:
        log.warning("it is not known which states can be told apart: %s", error)
        found = {"unknown": str(error)}
    write_atomically(folder / _DISTINGUISHABLE, json.dumps({"key": key, **found}, indent=2) + "\n")


def states_text(folder: Path, states: int) -> str:
    """Returns the number of states, and of the distinguishable ones if known, as text."""
    found = read_json(folder / _DISTINGUISHABLE)
    if "states" not in found:
        return f"{states:,}"
    inert, tried = ", ".join(found["inert"]), found["tried"]
    if not inert:
        return f"{states:,}; every factor changes something for these observations"
    return (
        f"{states:,}; {int(found['states']):,} without {inert}, which changed nothing that these "
        f"observations show of random actions in {tried} of {tried} states"
    )
