"""An evaluation over several tasks: every player plays every task, and a judge rates it all.

::

    runs/simple.hunt_pig.random/   a run of gamut collect for each cell, with its dataset
    judge/                         a run of gamut judge over all of them
    report.md, summary.json        the tables

A cell that is done is not played again, and a verdict is paid once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import Outcome, is_picture
from rollout.cli import Session
from rollout.collect import CollectPlan, collect
from rollout.config import CollectConfig
from rollout.data import Dataset
from rollout.data.tables import read_table
from rollout.errors import ConfigError, DatasetError, GamutError, InputError
from rollout.estimate import Estimate
from rollout.evaluate.findings import plain
from rollout.evaluate.scoreboard import decides
from rollout.files import write_atomically
from rollout.job import Job, open_job
from rollout.judge.config import JudgeConfig
from rollout.judge.criteria import GENERATE
from rollout.judge.judge import VERDICTS, VERDICTS_PART, checked, judge, rules_of
from rollout.judge.rubric import Rubric, load_rubric
from rollout.observe.lineage import Results
from rollout.observe.logs import set_up_logging
from rollout.observe.progress import share
from rollout.observe.run_files import SUMMARY, read_json
from rollout.run_directory import as_begun, folder_of
from rollout.suite.config import Cell, SuiteConfig
from rollout.suite.tables import Episodes, Tables, write_report

log = logging.getLogger(__name__)

REPORT = "report.md"


@dataclass(frozen=True)
class SuitePlan:
    """A configuration that is built and checked; nothing has been launched.

    Attributes:
        config: the configuration.
        cells: what is played, with its configuration.
        undecided: cells whose task decides neither success nor failure.
        judge: the configuration of the judge; None without one.
        rubric: the judge's.
    """

    config: SuiteConfig
    cells: Mapping[Cell, CollectConfig]
    undecided: frozenset[Cell]
    judge: JudgeConfig | None
    rubric: Rubric

    @classmethod
    def make(cls, config: SuiteConfig) -> SuitePlan:
        """Returns the plan of a configuration.

        Raises:
            InputError: something in the configuration does not exist or does not fit.
        """
        config = config.model_copy(update={"output": folder_of(config.output)})
        judging = config.judgement()
        rubric = load_rubric("mcu") if judging is None else checked(judging)[0]
        cells: dict[Cell, CollectConfig] = {}
        undecided: set[Cell] = set()
        for cell in config.cells():
            chosen = config.collection(cell)
            try:
                plan = CollectPlan.make(chosen)
                if judging is not None:
                    _check_rated(judging, plan, rubric)
            except InputError as error:
                raise ConfigError(
                    f"{cell.difficulty}, {cell.name}, {cell.player}: {error}"
                ) from error
            cells[cell] = chosen
            undecided |= set() if decides(plan.task) else {cell}
        return cls(config, cells, frozenset(undecided), judging, rubric)


def _check_rated(judging: JudgeConfig, plan: CollectPlan, rubric: Rubric) -> None:
    """Checks that a judge will see pictures and has criteria of the task."""
    leaves = plan.bridge.spec.observation_space.spaces
    pictures = [name for name, leaf in leaves.items() if is_picture(leaf)]
    if not pictures or (len(pictures) > 1 and not judging.frames.column):
        raise ConfigError(
            f"the judge needs one picture, and the game shows {', '.join(pictures) or 'none'}; add "
            f"one to the options of the bridge, or name one in judge.frames.column"
        )
    if judging.criteria != GENERATE and _lacks_rules(judging, plan, rubric):
        raise ConfigError(
            f"judge.criteria: there are none for task {plan.task.name}; name a file, or set "
            f"judge.criteria={GENERATE}"
        )


def _lacks_rules(judging: JudgeConfig, plan: CollectPlan, rubric: Rubric) -> bool:
    task = plan.task
    return rubric.per_task and rules_of(judging, task.name, task.metadata, rubric) is None


def evaluate_suite(config: SuiteConfig, session: Session) -> str | None:
    """Runs an evaluation over several tasks.

    Returns:
        None if everything was done; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: a signal arrived; what was played is saved.
    """
    plan = SuitePlan.make(as_begun(config, resume=session.resume))
    with open_job("evaluate", plan.config, session, needs_ray=False) as job:
        job.report(mirrored={})
        suite = _Suite(plan, job, session.estimate)
        return job.finish(suite.play, suite.conclude)


class _Suite:
    """One session of a suite."""

    def __init__(self, plan: SuitePlan, job: Job, estimate: Estimate | None) -> None:
        self._plan, self._job, self._estimate = plan, job, estimate
        self._missing: list[str] = []

    def play(self) -> str | None:
        """Plays what is not done, one cell after the other, and lets the judge rate everything."""
        for number, (cell, config) in enumerate(self._plan.cells.items()):
            if not _done(config):
                self._run(f"{cell.folder}", lambda config=config: self._collect(config))
            self._show(number + 1, cell.folder)
        if self._plan.judge is not None:
            self._run("judge", lambda: judge(self._plan.judge, self._session()))
        if self._estimate is not None and self._plan.judge is not None:
            self._scale_verdicts(self._estimate)
        return "; ".join(self._missing) or None

    def _scale_verdicts(self, estimate: Estimate) -> None:
        """Counts the verdicts on all episodes of the suite, not on those that were played."""
        cells = self._plan.cells  # those that are done are no parts, but judged too
        played = sum(self._episodes(cell).count for cell in cells)
        whole = sum(config.episodes or 0 for config in cells.values())
        estimate.parts = [
            replace(part, whole=round(part.whole * whole / max(played, 1)))
            if part.name == VERDICTS_PART
            else part
            for part in estimate.parts
        ]

    def _session(self) -> Session:
        return Session(resume=True, stop=self._job.stop, estimate=self._estimate)

    def _collect(self, config: CollectConfig) -> str | None:
        return collect(config, self._session())

    def _run(self, name: str, work: Any) -> None:
        """Runs a job; one that fails is noted, and the others go on."""
        try:
            missing = work()
        except GamutError as error:
            log.debug("%s failed", name, exc_info=True)
            missing = str(error)
        finally:  # the job has installed its own logging
            set_up_logging(self._job.config.log.level, self._job.run.log)
        if missing is not None:
            log.warning("%s: %s", name, missing)
            self._missing.append(f"{name}: {missing}")

    def _show(self, done: int, name: str) -> None:
        part = share((done, len(self._plan.cells)))
        self._job.metrics.write(done, {"done": part})
        self._job.progress.update(part, {"cells": done, "last": name})

    def conclude(self, status: str) -> str:
        """Writes the tables of what is there; returns a status sentence."""
        run, c = self._job.run, self._plan.config
        found = {cell: self._episodes(cell) for cell in self._plan.cells}
        tables = Tables(found, self._plan.rubric, c.confidence, judged=self._plan.judge is not None)
        judged = read_json(c.output / "judge" / SUMMARY) if self._plan.judge is not None else {}
        summary = self._job.write_summary(
            status,
            protocol=self._protocol(),
            results={"episodes": sum(each.count for each in found.values())},
            findings=plain(tables.data(), lambda each: {"text": each.text(1), **vars(each)}),
            judge=(judged.get("results") or {}).get("findings", {}),
            usage=(judged.get("results") or {}).get("usage", {}),
            missing=self._missing,
        )
        write_atomically(run.path / REPORT, write_report(summary, tables))
        self._job.lineage.add("made", Results(run.path, (SUMMARY, REPORT)))
        return f"{sum(each.count for each in found.values())} episodes of {len(found)} cells"

    def _protocol(self) -> dict[str, Any]:
        c, judging = self._plan.config, self._plan.judge
        return {
            "bridge": c.bridge.name,
            "bridge_options": c.bridge.options,
            "tasks": c.tasks,
            "states": c.state_set.size,
            "state_set": c.state_set.model_dump(mode="json"),
            "seed": c.seed,
            "players": {name: each.model_dump(mode="json") for name, each in c.players.items()},
            "judge": None if judging is None else judging.model,
            "rubric": self._plan.rubric.data(),
            "confidence": c.confidence,
        }

    def _episodes(self, cell: Cell) -> Episodes:
        """Returns the results of a cell, as far as there are any."""
        folder = self._plan.config.output
        try:
            with Dataset(folder / "runs" / cell.folder) as dataset:
                refs = sorted(dataset.episodes(), key=lambda ref: ref.episode)
        except DatasetError:  # it was never begun
            refs = []
        success = np.array([float(ref.outcome == Outcome.SUCCESS) for ref in refs])
        if cell in self._plan.undecided:
            success[:] = math.nan
        scores = _verdicts(folder / "judge" / VERDICTS, cell, [ref.episode for ref in refs])
        progress = [ref.progress for ref in refs]
        return Episodes(success, np.array(progress), scores)


def _done(config: CollectConfig) -> bool:
    return read_json(config.output / SUMMARY).get("status") == "done"


def _verdicts(path: Path, cell: Cell, episodes: Sequence[int]) -> dict[str, Any]:
    """Returns the mean verdicts of the episodes of a cell by criterion, NaN where there is none."""
    if not path.is_file():
        return {}
    columns = ("clip", "criterion", "score")
    clips, criteria, scores = (read_table(path)[name] for name in columns)
    prefix = f"runs/{cell.folder}/"
    given: dict[str, dict[int, list[float]]] = {}
    for clip, criterion, score in zip(clips, criteria, scores, strict=True):
        if str(clip).startswith(prefix) and not math.isnan(score):
            number = int(str(clip).removeprefix(prefix))
            given.setdefault(str(criterion), {}).setdefault(number, []).append(float(score))
    return {
        criterion: np.array([np.mean(of.get(n, [math.nan])) for n in episodes], np.float64)
        for criterion, of in given.items()
    }
