"""Which episode of an evaluation a free slot plays next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from rollout.api import Start, Trial
from rollout.evaluate.legs import NO_TRIALS, Legs
from rollout.host.schedule import Schedule


class LegSchedule(Schedule):
    """Hands out the episodes of all legs, leg by leg.

    A player that is told of its earlier episodes plays those of one state one after another: an
    episode is handed out once all earlier ones of its state have a result or were given up. So
    what it is told depends on numbers of episodes only, not on which game is faster.

    Args:
        legs: the legs to play.
        finished: numbers of the episodes that are already finished.
        trials: the results so far, by episode; others may add to it.
        look: called before episodes that wait are looked at, to learn of those that were given up.
    """

    def __init__(
        self,
        legs: Legs,
        finished: Collection[int] = (),
        *,
        trials: Mapping[int, Trial] = NO_TRIALS,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        first = legs.legs[0].states
        super().__init__(first, seed=legs.seed, episodes=legs.episodes, finished=finished)
        self._legs, self._trials, self._look = legs, trials, look
        self._settled = set(finished)
        self._waiting: dict[int, list[int]] = {}  # by the episode that is waited for

    def take(self, count: int) -> list[Start]:
        """Returns up to ``count`` episodes that are not being played; lost ones come first."""
        if self._waiting:
            self._look()
        return super().take(count)

    @property
    def exhausted(self) -> bool:
        """Whether ``take`` would return nothing now."""
        if self._waiting:
            self._look()
        return super().exhausted

    def settle(self, episodes: Iterable[int]) -> None:
        """Hands out what waited for these episodes, which have ended or were given up."""
        for episode in episodes:
            self._settled.add(episode)
            for waiting in self._waiting.pop(episode, ()):
                if self._due(waiting):
                    self._again.append(self.start(waiting))

    def _due(self, episode: int) -> bool:
        for earlier in self._legs.earlier(episode):
            if earlier not in self._settled:
                self._waiting.setdefault(earlier, []).append(episode)
                return False
        return True

    def start(self, episode: int) -> Start:
        """Returns the start of an episode by its number."""
        return self._legs.start(episode, self._trials)
