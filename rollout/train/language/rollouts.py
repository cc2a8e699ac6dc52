"""Plays groups of episodes with a language model, with games that stay between updates."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rollout.api import (
    Bridge,
    EpisodeResult,
    Fragment,
    Outcome,
    PolicyRecipe,
    Start,
    StateSet,
    Task,
)
from rollout.config import InferenceConfig
from rollout.evaluate.scoreboard import BOUNDS, Metric
from rollout.evaluate.statistics import Intervals, one_player
from rollout.host import PlayOptions
from rollout.host.fleets import Fleet, open_fleet
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule, derived_seed
from rollout.train.language.config import LanguageConfig

if TYPE_CHECKING:
    from rollout.host.inference_actors import InferenceActors

_VALIDATION = 1  # key of the seeds of validations


class GroupSchedule(Schedule):
    """Schedules groups of episodes with the same start, ``size`` from each of some states.

    Args:
        states: the states.
        positions: positions of the states in the set, one for each group.
        size: episodes from each.
        seed: of the run.
        first: number of the first episode.
        key: separates the seeds of these episodes from those of other purposes.
        finished: numbers of episodes that need not be played.
        attempts: next attempt of episodes that were begun before.
    """

    def __init__(
        self,
        states: StateSet,
        positions: Sequence[int],
        size: int,
        *,
        seed: int,
        first: int = 0,
        key: int = 0,
        finished: Collection[int] = (),
        attempts: Mapping[int, int] | None = None,
    ) -> None:
        super().__init__(
            states,
            seed=seed,
            episodes=first + len(positions) * size,
            finished=finished,
            attempts=attempts,
        )
        self._cursor, self._first_episode, self._size, self._key = first, first, size, key
        self._positions = positions

    def start(self, episode: int) -> Start:
        """Returns the start of an episode; those of a group differ in their seed alone."""
        state = self._states[self._positions[(episode - self._first_episode) // self._size]]
        return Start(
            state=state,
            seed=derived_seed(self._seed, self._key, episode),
            episode=episode,
            attempt=self._attempts.get(episode, 0),
            state_set=self._states.name,
        )


@dataclass(frozen=True)
class Rollouts:
    """The games of a training, and the policy that plays them."""

    fleet: Fleet
    inference: InferenceActors | None

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Plays with the given weights from now on."""
        if self.inference is not None:
            self.inference.load(weights, version)
        else:
            self.fleet.load(weights, version)

    def play(
        self,
        schedule: Schedule,
        *,
        watch: Callable[[Fragment], None] = lambda _: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> list[EpisodeResult]:
        """Returns the results of the episodes that ended; lost ones are tried again.

        Args:
            schedule: the episodes.
            watch: called with every fragment.
            stopping: true ends the play; the episodes in progress are dropped with the games.

        Raises:
            BudgetExhausted: no game is left.
        """
        results: list[EpisodeResult] = []
        for fragment in self.fleet.play(schedule):
            watch(fragment)
            results += [result for result in fragment.results if result.end != "lost"]
            if stopping():
                break
        return results


@contextlib.contextmanager
def open_rollouts(
    config: LanguageConfig,
    bridge: Bridge,
    task: Task,
    recipe: PolicyRecipe,
    inference: InferenceConfig | None = None,
) -> Iterator[Rollouts]:
    """Launches the games of a training, and ends them at the end."""
    plan = HostPlan(
        bridge,
        task,
        recipe,
        seed=config.seed,
        instances=config.instances,
        width=bridge.spec.choose_width(config.width),
        host=config.host,
        play=PlayOptions(retries=config.host.retries),
    )
    inference = inference or InferenceConfig()
    with open_fleet(plan, actors=config.actors, inference=inference) as (fleet, deciding):
        yield Rollouts(fleet, deciding)


def validate(playing: Rollouts, states: StateSet, stopping: Callable[[], bool]) -> dict[str, float]:
    """Returns success and return on validation states, with 95 % intervals.

    One episode is played from each state, with the same seeds at each validation.

    Returns:
        ``success``, ``return``, and of both ``_low`` and ``_high``; nothing if it was stopped.
    """
    schedule = GroupSchedule(states, range(states.size), 1, seed=0, key=_VALIDATION)
    results = playing.play(schedule, stopping=stopping)
    if stopping():
        return {}
    found: dict[str, float] = {}
    scored: dict[Metric, list[float]] = {
        "success": [float(r.outcome == Outcome.SUCCESS) for r in results],
        "return": [r.total_reward for r in results],
    }
    for name, values in scored.items():
        scores = np.array(values).reshape(-1, 1)
        estimated_tokens = one_player(scores, Intervals(bounds=BOUNDS[name]))
        found[name] = estimated_tokens.point
        for side in ("low", "high"):
            value = getattr(estimated_tokens, side)
            if value is not None:
                found[f"{name}_{side}"] = value
    return found
