"""What a report of a sweep is written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rollout.data.tables import Table
from rollout.evaluate.curves import Intervals
from rollout.evaluate.results import DETERMINISTIC, SAMPLED


@dataclass(frozen=True)
class VisitSummary:
    """How often episodes from each training state of a run came to an end.

    Attributes:
        least: times the least visited state was visited.
        median: of the states.
        most: times the most visited state was visited.
        never: share of the states that were never visited, 0 to 1.
    """

    least: int
    median: float
    most: int
    never: float

    @classmethod
    def of(cls, summary: Mapping[str, float]) -> VisitSummary:
        """Returns what ``rollout.host.schedule.Visits.summary`` says."""
        return cls(int(summary["min"]), summary["median"], int(summary["max"]), summary["never"])


@dataclass(frozen=True)
class RunInfo:
    """One training run that is done.

    Attributes:
        arm: named variation of the sweep.
        n: number of training states.
        training_seed: its seed.
        set_name: the training set.
        set_digest: names exactly these states in this order.
        env_steps: steps it was trained for.
        episodes: episodes it finished in training.
        visits: how often it saw each state.
        seconds: how long the training took.
        checkpoint: where the result is, relative to the report.
    """

    arm: str
    n: int
    training_seed: int
    set_name: str
    set_digest: str
    env_steps: int
    episodes: int
    visits: VisitSummary
    seconds: float
    checkpoint: str

    @property
    def key(self) -> tuple[str, int, int]:
        """Arm, N and training seed."""
        return self.arm, self.n, self.training_seed


@dataclass(frozen=True)
class SetInfo:
    """A set of states that runs were evaluated on.

    Attributes:
        name: as in the table.
        size: number of its states.
        digest: names exactly these states in this order.
        arms: which arms it is for; empty for all.
    """

    name: str
    size: int
    digest: str
    arms: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweepReport:
    """All that a report tells.

    Attributes:
        title: of the report and the picture.
        metric: what a score is, e.g. ``"fraction of the sheep killed"``.
        table: results, see ``rollout.evaluate.results.COLUMNS``; those that are there.
        runs: the training runs that are done.
        protocol: what was done, by name: bridge, task, factors, budgets, seeds, ...
        versions: of packages, and the machine.
        command: repeats the sweep.
        base_arm: the arm that the verdict is about and others are compared with; by default the
            first of the table.
        arms: what each arm is.
        sets: the sets that runs were evaluated on.
        planned: arm, N and training seed of every run of the sweep; empty if they are all done.
        videos: titles and paths relative to the report.
        intervals: how intervals are made.
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

    @property
    def base(self) -> str:
        """The base arm; empty if nothing has been evaluated and none was named."""
        first = [str(arm) for arm in self.table["arm"][:1]] if "arm" in self.table else []
        return self.base_arm or next(iter(first), "")

    @property
    def actions(self) -> str:
        """The way of acting that the report is about: sampled if there is any of it."""
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

        Where N is larger than that, a run does not visit all of its states: a still larger N
        changes which states it happens to see, and not how many.
        """
        found = {}
        for arm in dict.fromkeys(run.arm for run in self.runs):
            own = [run for run in self.runs if run.arm == arm]
            largest = max(run.n for run in own)
            found[arm] = float(np.median([run.episodes for run in own if run.n == largest]))
        return found
