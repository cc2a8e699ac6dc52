"""The data of a sweep report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rollout.data.tables import Table
from rollout.evaluate.statistics import Intervals
from rollout.sweep.curves import Point, curves
from rollout.sweep.job import VisitCounts
from rollout.sweep.results import DETERMINISTIC, SAMPLED


@dataclass(frozen=True)
class RunInfo:
    """One finished training run.

    Attributes:
        arm: named variation of the sweep.
        n: number of training states.
        training_seed: its seed.
        set_name: the training set.
        set_digest: identifies these states and their order.
        env_steps: number of training steps.
        episodes: number of finished training episodes.
        visits: visits per state: ``min``, ``median``, ``max``, and ``never``, the share of the
            states that were never visited.
        seconds: duration of the training.
        checkpoint: path of the result, relative to the report.
    """

    arm: str
    n: int
    training_seed: int
    set_name: str
    set_digest: str
    env_steps: int
    episodes: int
    visits: VisitCounts
    seconds: float
    checkpoint: str

    @property
    def key(self) -> tuple[str, int, int]:
        """Arm, N and training seed."""
        return self.arm, self.n, self.training_seed


@dataclass(frozen=True)
class SetInfo:
    """A state set on which runs were evaluated.

    Attributes:
        name: its name in the table.
        size: number of its states.
        digest: identifies these states and their order.
        arms: the arms that use it; empty for all.
    """

    name: str
    size: int
    digest: str
    arms: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweepReport:
    """The contents of a report.

    Attributes:
        title: title of the report and the figure.
        metric: meaning of a score, e.g. ``"fraction of the sheep killed"``.
        table: the available results, see ``rollout.evaluate.scoreboard.COLUMNS``.
        runs: the finished training runs.
        protocol: how the sweep was done, by name: bridge, task, factors, budgets, seeds, ...
        versions: versions of packages, and the machine.
        command: the command that repeats the sweep.
        base_arm: the arm of the verdict, with which others are compared; by default the first of
            the table.
        arms: description of each arm.
        sets: the state sets on which runs were evaluated.
        planned: arm, N and training seed of every run of the sweep; empty if all are finished.
        videos: titles and paths relative to the report.
        intervals: how intervals are computed.
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
    sets: Sequence[SetInfo] = ()
    planned: Sequence[tuple[str, int, int]] = ()
    videos: Sequence[tuple[str, str]] = ()
    intervals: Intervals = field(default_factory=Intervals)

    @cached_property
    def points(self) -> list[Point]:
        """The results of each arm and N, for ``actions``."""
        return curves(self.table, actions=self.actions, intervals=self.intervals)

    @property
    def base(self) -> str:
        """The base arm; empty if nothing was evaluated and none was named."""
        first = [str(arm) for arm in self.table["arm"][:1]] if "arm" in self.table else []
        return self.base_arm or next(iter(first), "")

    @property
    def actions(self) -> str:
        """The way of acting that is reported: ``sampled`` if there are such results."""
        given = set(self.table["actions"].tolist()) if "actions" in self.table else set()
        return DETERMINISTIC if given == {DETERMINISTIC} else SAMPLED

    def missing(self) -> list[tuple[str, int, int]]:
        """Returns arm, N and training seed of the planned runs that have no results yet."""
        names = ("arm", "n", "training_seed")
        columns = [self.table[name].tolist() for name in names if name in self.table]
        done = set(zip(*columns, strict=True)) & {run.key for run in self.runs}
        return [key for key in self.planned if tuple(key) not in done]

    def budgets(self) -> dict[str, float]:
        """Returns the median number of training episodes of each arm's runs with the largest N.

        If N is larger, a run does not visit all of its states: increasing N further changes which
        states it visits, but not how many.
        """
        found = {}
        for arm in dict.fromkeys(run.arm for run in self.runs):
            own = [run for run in self.runs if run.arm == arm]
            largest = max(run.n for run in own)
            found[arm] = float(np.median([run.episodes for run in own if run.n == largest]))
        return found
