"""Plays with a network and returns batches: the work of a runner, without Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollout.api import Algorithm, Columns, EpisodeResult, Fragment, Loss, Policy, Start
from rollout.errors import BudgetExhausted, no_exit
from rollout.host.actors import Pulse
from rollout.host.hosting import HostPlan, pulse_of
from rollout.host.instances import Event
from rollout.host.processes import owned_workdir, remove_workdir, sweep_orphans
from rollout.host.schedule import Ledger, Schedule
from rollout.observe.hosts import HostFigures
from rollout.train.curriculum import ScoredSchedule
from rollout.train.episodes import Signals, last_signals


@dataclass(kw_only=True)
class Ended:
    """Episodes that ended or were lost.

    Attributes:
        results: every episode that ended.
        signals: the last values of the requested signals, for each result.
        losses: every episode that was lost.
        abandoned: episodes that were lost in all their attempts.
    """

    results: list[EpisodeResult] = field(default_factory=list)
    signals: list[Signals] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    abandoned: list[Start] = field(default_factory=list)

    def extend(self, other: Ended) -> None:
        """Adds the episodes of another."""
        self.results += other.results
        self.signals += other.signals
        self.losses += other.losses
        self.abandoned += other.abandoned


@dataclass
class Sample(Ended):
    """One batch of a runner.

    Attributes:
        batch: the steps, see ``rollout.train.batch``.
        env_steps: number of steps in it.
        version: the oldest version of the weights that played in it.
        figures: state of the runner's games; none if the runner died.
        idle_failures: instance and event of games that failed without an episode.
    """

    batch: Columns
    env_steps: int
    version: int
    figures: HostFigures = field(default_factory=lambda: HostFigures(instances=0, ready=0))
    idle_failures: list[tuple[int, Event]] = field(default_factory=list)


@dataclass
class Iteration(Ended):
    """The facts of one update.

    Attributes:
        update: number of updates so far, including this one.
        env_steps: steps played so far, in all updates.
        fresh_steps: steps of this update.
        staleness: number of updates by which the weights of its oldest steps were behind.
        dropped_steps: steps that were too old to learn from.
        figures: figures of the update, see ``rollout.api.Learner``.
        sample_s: seconds spent waiting for steps.
        update_s: seconds spent learning from them.
        hosts: state of the games, as metrics.
    """

    update: int = 0
    env_steps: int = 0
    fresh_steps: int = 0
    staleness: int = 0
    dropped_steps: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    sample_s: float = 0.0
    update_s: float = 0.0
    hosts: dict[str, float] = field(default_factory=dict)


def enough(samples: Sequence[Sample], batch: int) -> bool:
    """Returns whether one more sample of mean size would not bring the steps nearer to ``batch``.

    Not whether they reach it: while a game is being relaunched, some rows of a fragment have no
    step, and a batch of as many steps as a fragment has rows would become two fragments.
    """
    steps = sum(sample.env_steps for sample in samples)
    return steps > 0 and steps + steps / len(samples) / 2 >= batch


class Sampler:
    """A host with its games, which never runs out of episodes.

    Args:
        plan: plan of the game and the policy, whose recipe is a ``TrainableRecipe``.
        schedule: the episodes; must be endless.
        algorithm: makes batches of fragments.
        reads: the observation columns that the network reads.
        number: number of the runner.
        signals: names of the signals whose last values are recorded with a result.

    Attributes:
        schedule: the episodes.
        untouched: whether none has been handed out yet.
    """

    def __init__(
        self,
        plan: HostPlan,
        schedule: Schedule,
        algorithm: Algorithm,
        reads: tuple[str, ...],
        *,
        number: int = 0,
        signals: tuple[str, ...] = (),
    ) -> None:
        self.schedule, self._plan, self._reads = schedule, plan, reads
        self._algorithm, self._signals = algorithm, signals
        self._ledger = Ledger(plan.play.retries)
        self.untouched = True
        self._want = 2 * plan.slots  # length of the queue of episodes that wait for a slot
        sweep_orphans()
        self._workdir = owned_workdir(f"gamut-runner-{number}-")
        self._player = plan.build(number, 0, self._workdir)
        policy: Any = self._player.policy
        self._policy = policy

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Plays with the given weights from now on."""
        self._policy.load(weights, version)

    def sample(self) -> Sample:
        """Plays until a fragment is complete.

        Raises:
            BudgetExhausted: no game is left, and none may be launched.
        """
        player = self._player
        self.untouched = False
        while True:
            if isinstance(self.schedule, ScoredSchedule):
                self._want = self.schedule.ahead = max(self._want, self.schedule.ahead)
            starts = self.schedule.take(max(0, self._want - len(player.starts)))
            self._ledger.give(starts)
            player.offer(starts)
            fragment = player.next_fragment()
            abandoned, player.abandoned = player.abandoned, []
            if fragment is None:
                raise BudgetExhausted("a runner has nothing left to play")
            self._ledger.settle(fragment.results, fragment.losses, abandoned)
            # With short episodes, the queue must be longer than the number of slots, or slots stay
            # idle.
            self._want = max(self._want, len(fragment.results) + 2 * self._plan.slots)
            if isinstance(self.schedule, ScoredSchedule):
                self.schedule.ahead = self._want
            if fragment.env_steps or fragment.losses:
                return self._sample(fragment, abandoned)

    def _sample(self, fragment: Fragment, abandoned: list[Start]) -> Sample:
        player = self._player
        sample = Sample({}, fragment.env_steps, self._policy.version, abandoned=abandoned)
        sample.losses += fragment.losses
        sample.figures = player.figures
        sample.idle_failures, player.idle_failures = player.idle_failures, []
        if fragment.length:
            sample.version = int(fragment.version[0])
            sample.results += [r for r in fragment.results if r.end != "lost"]
            sample.signals += last_signals(fragment, sample.results, self._signals)
            with no_exit("the algorithm"):
                sample.batch = self._algorithm.gather(
                    *(fragment, self._policy.network),
                    reads=self._reads,
                    steps=self._plan.play.steps,
                )
            if isinstance(self.schedule, ScoredSchedule):
                self.schedule.learn(fragment, sample.batch, sample.results)
        if isinstance(self.schedule, ScoredSchedule):
            self.schedule.forget(fragment.losses)
        return sample

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self._player.policy

    def pulse(self) -> Pulse:
        """Returns a sign of life; another thread may call it during play."""
        return pulse_of(self._player)

    def position(self) -> dict[str, Any]:
        """Returns the position of the schedule, JSON-able, for ``schedule.restore``."""
        return self.schedule.state(self._ledger.held.values())

    def close(self) -> None:
        """Ends every game and removes their folders."""
        self._player.close()
        remove_workdir(self._workdir)
