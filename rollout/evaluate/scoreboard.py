"""The results of an evaluation, one per episode, and the schedule of what is left to play."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollout.api import (
    EpisodeResult,
    Fragment,
    Loss,
    Outcome,
    Start,
    Task,
    Trial,
    Usage,
    trials_of,
)
from rollout.data.tables import Table
from rollout.errors import ConfigError, DatasetError
from rollout.evaluate.journal import Entry, Journal, LossEntry
from rollout.evaluate.legs import NO_TRIALS, Leg, Legs, Place
from rollout.evaluate.statistics import UNBOUNDED
from rollout.evaluators import GameReward
from rollout.host.schedule import Schedule

Metric: TypeAlias = Literal["progress", "return", "success"]
BOUNDS: Mapping[Metric, tuple[float, float]] = {
    "progress": (0.0, 1.0),
    "return": UNBOUNDED,
    "success": (0.0, 1.0),
}
"""The smallest and the largest value of each metric."""

COLUMNS: Mapping[str, tuple[type, str]] = {
    "arm": (str, "named variation of a sweep; empty outside of one"),
    "n": (np.int64, "number of training states; 0 if unknown"),
    "training_seed": (np.int64, "seed of the training run; -1 if unknown"),
    "player": (str, "who played"),
    "set": (str, "which states: train (in a sweep the run's own), test (held out), full, ..."),
    "actions": (str, "sampled or deterministic"),
    "position": (np.int64, "number of the state in its set"),
    "state": (str, "index of the state in the task's space, decimal"),
    "repeat": (np.int64, "number of the episode among those of the state"),
    "episode_seed": (np.int64, "randomness beyond the state"),
    "score": (np.float64, "the metric; NaN if the episode was given up"),
    "total_reward": (np.float64, "undiscounted sum of rewards"),
    "progress": (np.float64, "last progress, 0 to 1; NaN if undefined"),
    "success": (np.float64, "1 or 0; NaN where the task decides nothing"),
    "length": (np.int64, "completed steps"),
    "end": (str, "terminated, truncated, or lost if it was given up"),
    "attempts": (np.int64, "how often it was begun, lost attempts included"),
    "calls": (np.int64, "calls of models"),
    "unusable": (np.int64, "calls whose answer was no action"),
    "input_tokens": (np.int64, "tokens of the prompts of the calls"),
    "output_tokens": (np.int64, "tokens of the answers"),
    "usd": (np.float64, "their price in US dollars; NaN if unknown, a lower bound if some is"),
    "unpriced": (np.int64, "calls without a known price"),
    "invalid": (np.int64, "1 if it broke a rule of the task, which is no success; otherwise 0"),
}
"""Columns of a result table, with type and meaning; one row per episode."""

USAGE = tuple(field.name for field in fields(Usage))
"""The columns about calls of models."""

COLUMN_DOCS: Mapping[str, str] = {name: doc for name, (_, doc) in COLUMNS.items()}

_FIELD: Mapping[Metric, str] = {
    "progress": "progress",
    "return": "total_reward",
    "success": "success",
}


def decides(task: Task) -> bool:
    """Returns whether a task can decide success or failure.

    An evaluator recipe can say so in an attribute ``decides``, which is true by default. The game's
    own reward decides only with ``success_return``.
    """
    evaluator = task.evaluator
    declared = getattr(evaluator, "decides", None)
    if isinstance(declared, bool):
        return declared
    return not (isinstance(evaluator, GameReward) and evaluator.success_return is None)


def check_metric(metric: Metric, task: Task) -> None:
    """Checks that a task provides a metric.

    Raises:
        ConfigError: the task does not decide success, so that it has neither success nor progress.
    """
    if metric != "return" and not decides(task):
        raise ConfigError(
            f"metric={metric}: task {task.name!r} decides neither success nor failure and knows "
            f"no progress; choose metric=return, or a task that does"
        )


class Scoreboard:
    """The results of every episode of some legs.

    An episode counts once; a repeated result changes nothing. Episodes that an earlier session
    abandoned are tried again.

    Args:
        legs: the legs to play.
        task: the task.
        journal: file of the results; None keeps them in memory only.
        only: numbers of the episodes to play; None for all.

    Raises:
        DatasetError: the journal contains results of other states or seeds.
    """

    def __init__(
        self,
        legs: Legs,
        task: Task,
        journal: Journal | None = None,
        *,
        only: Collection[int] | None = None,
    ) -> None:
        self.legs, self._only = legs, only
        self._decides = decides(task)
        self._journal = journal
        self._entries: dict[int, Entry] = {}
        self._losses: list[LossEntry] = []
        self._lost_before: Counter[int] = Counter()
        self._trials: dict[int, Trial] = {}
        self._schedule: LegSchedule | None = None
        self._numbers = {leg.name: number for number, leg in enumerate(legs.legs)}
        if journal is not None:
            self._read(journal)

    def _read(self, journal: Journal) -> None:
        for entry in journal.entries:
            episode = self._episode(entry)
            if episode is None:
                continue
            start = self.legs.start(episode)
            if (entry.state, entry.episode_seed) != (self._index(start), start.seed):
                raise DatasetError(
                    f"the results hold the state {entry.state} with seed {entry.episode_seed} for "
                    f"{'/'.join(map(str, entry.key))}, expected {self._index(start)} with "
                    f"{start.seed}: they are of other sets or of another seed; choose another "
                    f"output"
                )
            if entry.end != "lost":
                self._entries[episode] = entry
                self._remember(episode, entry)
        for loss in journal.losses:
            episode = self._episode(loss)
            if episode is not None:
                self._losses.append(loss)
                self._lost_before[episode] += 1

    def _episode(self, entry: Entry | LossEntry) -> int | None:
        """Returns the number of an episode; None if it does not belong to this job."""
        leg = self._numbers.get(f"{entry.player}/{entry.set}/{entry.actions}")
        if leg is None:
            return None
        about = self.legs.legs[leg]
        if entry.position >= about.states.size or entry.repeat >= about.repeats:
            return None
        return self.legs.number(Place(leg, entry.position, entry.repeat))

    def _index(self, start: Start) -> str:
        return str(self.legs.space.index(start.state.values))

    def schedule(self, look: Callable[[], None] = lambda: None) -> LegSchedule:
        """Returns the episodes that have no result yet, including abandoned ones.

        Args:
            look: reports the episodes that were given up since.
        """
        self._schedule = LegSchedule(
            self.legs, self.finished, trials=self._trials, look=look, only=self._only
        )
        return self._schedule

    def usages(self, leg: Leg) -> list[Usage]:
        """Returns what the calls of each episode of a leg cost that has a result."""
        mine = (self._entries[number] for number in self.finished)
        return [
            Usage(**{name: getattr(entry, name) for name in USAGE})
            for entry in mine
            if (entry.player, entry.set, entry.actions) == (leg.player, leg.set_name, leg.actions)
        ]

    def start(self, episode: int) -> Start:
        """Returns the start of an episode, with the earlier results that its player sees."""
        return self.legs.start(episode, self._trials)

    def _remember(self, episode: int, entry: Entry) -> None:
        about = self.legs.legs[self.legs.leg_of(episode)]
        if about.repeats > 1 and trials_of(about.recipe):
            success = None if math.isnan(entry.success) else bool(entry.success)
            scores = entry.total_reward, entry.progress
            self._trials[episode] = Trial(episode, success, *scores, entry.length)

    @property
    def finished(self) -> frozenset[int]:
        """Numbers of the episodes that have a result."""
        return frozenset(e for e, entry in self._entries.items() if entry.end != "lost")

    @property
    def given_up(self) -> tuple[Entry, ...]:
        """Abandoned episodes, lost in all their attempts; by leg, state and repeat."""
        return tuple(entry for _, entry in sorted(self._entries.items()) if entry.end == "lost")

    @property
    def losses(self) -> tuple[LossEntry, ...]:
        """Every lost attempt, of all sessions."""
        return tuple(self._losses)

    @property
    def env_steps(self) -> int:
        """Steps of the episodes that have a result."""
        return sum(entry.length for entry in self._entries.values())

    def add(self, fragment: Fragment) -> None:
        """Records the episodes that ended or were lost in a fragment."""
        entries = {r.start.episode: self._entry(r) for r in fragment.results if r.end != "lost"}
        self._keep(entries, fragment.losses)

    def lose(self, losses: Iterable[Loss]) -> None:
        """Records attempts that were lost with their host."""
        self._keep({}, losses)

    def give_up(self, starts: Iterable[Start]) -> None:
        """Records episodes that are abandoned."""
        self._keep({start.episode: self._lost(start) for start in starts}, ())

    def _keep(self, entries: Mapping[int, Entry], losses: Iterable[Loss]) -> None:
        done = self.finished if any(e in self._entries for e in entries) else frozenset()
        new = {episode: entry for episode, entry in entries.items() if episode not in done}
        lost = [
            LossEntry(**self._about(x.start), phase=x.phase, reason=x.reason, steps=x.steps)
            for x in losses
        ]
        if self._journal is not None:
            self._journal.append(new.values(), lost)
        self._entries.update(new)
        self._losses += lost
        for episode, entry in new.items():
            if entry.end != "lost":
                self._remember(episode, entry)
        if self._schedule is not None:
            self._schedule.settle(new)

    def _about(self, start: Start) -> dict[str, Any]:
        number, position, repeat = self.legs.place(start.episode)
        leg = self.legs.legs[number]
        return {
            "player": leg.player,
            "set": leg.set_name,
            "actions": leg.actions,
            "position": position,
            "state": self._index(start),
            "repeat": repeat,
            "episode_seed": start.seed,
        }

    def _entry(self, result: EpisodeResult) -> Entry:
        success = float(result.outcome == Outcome.SUCCESS)
        return Entry(
            **self._about(result.start),
            total_reward=result.total_reward,
            progress=result.progress,
            success=success if self._decides else math.nan,
            length=result.length,
            end=result.end,
            attempts=self._attempts(result.start),
            invalid=int(result.outcome == Outcome.INVALID),
            notes=dict(result.notes),
            **asdict(result.usage),
        )

    def _lost(self, start: Start) -> Entry:
        unknown: Any = dict.fromkeys(("total_reward", "progress", "success"), math.nan)
        about, attempts = self._about(start), self._attempts(start)
        return Entry(**about, **unknown, length=0, end="lost", attempts=attempts)

    def _attempts(self, start: Start) -> int:
        return self._lost_before[start.episode] + start.attempt + 1

    def notes(self) -> dict[str, list[Mapping[str, Any]]]:
        """Returns the notes of the episodes that have a result, by the name of their leg."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for _, entry in sorted(self._entries.items()):
            if entry.notes:
                name = f"{entry.player}/{entry.set}/{entry.actions}"
                found.setdefault(name, []).append(entry.notes)
        return found

    def table(
        self, metric: Metric, *, arm: str = "", n: int = 0, training_seed: int = -1
    ) -> dict[str, NDArray[Any]]:
        """Returns the episodes that have a result, one row each, by leg, position and repeat.

        The table depends neither on the number of games nor on the order in which episodes end.

        Args:
            metric: metric of the column ``score``.
            arm: value of this column in every row.
            n: likewise.
            training_seed: likewise.
        """
        rows = [self._entries[episode] for episode in sorted(self._entries)]
        shared = {"arm": arm, "n": n, "training_seed": training_seed}
        table: dict[str, NDArray[Any]] = {}
        for name, (kind, _) in COLUMNS.items():
            if name in shared:
                table[name] = np.array([shared[name]] * len(rows), kind)
            else:
                field = attrgetter(_FIELD[metric] if name == "score" else name)
                table[name] = np.array([field(row) for row in rows], kind)
        unknown = (table["unpriced"] > 0) & (table["unpriced"] == table["calls"])
        table["usd"] = np.where(unknown, np.nan, table["usd"])
        return table


def rows_of_leg(table: Table, leg: Leg) -> list[int]:
    """Returns the rows of a table that belong to a leg."""
    columns = {"player": leg.player, "set": leg.set_name, "actions": leg.actions}
    mine = np.logical_and.reduce([table[name] == value for name, value in columns.items()])
    rows: list[int] = np.flatnonzero(mine).tolist()
    return rows


class LegSchedule(Schedule):
    """Hands out the episodes of all legs, leg by leg.

    A player that sees the results of its earlier episodes plays those of one state one after
    another: an episode is handed out once all earlier ones of its state have a result or were
    given up. So what it sees depends on numbers of episodes only, not on which game is faster.

    Args:
        legs: the legs to play.
        finished: numbers of the episodes that are already finished.
        trials: the results so far, by episode; they may be added to.
        look: called before waiting episodes are examined, to report those that were given up.
        only: numbers of the episodes to hand out; None for all.
    """

    def __init__(
        self,
        legs: Legs,
        finished: Collection[int] = (),
        *,
        trials: Mapping[int, Trial] = NO_TRIALS,
        look: Callable[[], None] = lambda: None,
        only: Collection[int] | None = None,
    ) -> None:
        first = legs.legs[0].states
        super().__init__(first, seed=legs.seed, episodes=legs.episodes, finished=finished)
        self._legs, self._trials, self._look = legs, trials, look
        self._only = None if only is None else frozenset(only)
        self._settled = set(finished)
        self._waiting: dict[int, list[int]] = {}  # by the episode that is waited for

    def take(self, count: int) -> list[Start]:
        """Returns up to ``count`` episodes that are not being played; lost ones come first."""
        if self._waiting:
            self._look()
        return super().take(count)

    @property
    def exhausted(self) -> bool:
        """True if ``take`` would return nothing now."""
        if self._waiting:
            self._look()
        return super().exhausted

    def settle(self, episodes: Iterable[int]) -> None:
        """Hands out the episodes that waited for these, which have ended or were given up."""
        for episode in episodes:
            self._settled.add(episode)
            for waiting in self._waiting.pop(episode, ()):
                if self._due(waiting):
                    self._again.append(self.start(waiting))

    def _due(self, episode: int) -> bool:
        if self._only is not None and episode not in self._only:
            return False
        for earlier in self._legs.earlier(episode):
            if earlier not in self._settled:
                self._waiting.setdefault(earlier, []).append(episode)
                return False
        return True

    def start(self, episode: int) -> Start:
        """Returns the start of an episode by its number."""
        return self._legs.start(episode, self._trials)
