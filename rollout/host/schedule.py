"""Which episode a free slot gets next."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from rollout.api import EpisodeResult, Loss, Start, StateSet


def episode_seed(run_seed: int, episode: int) -> int:
    """Returns the seed of an episode, below 2**63.

    One ``SeedSequence`` tree, run -> episode: the seed does not depend on which actor or slot
    plays the episode, so a run that was killed and resumed plays what an unbroken one would have.
    """
    sequence = np.random.SeedSequence(run_seed, spawn_key=(episode,))
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)


class Schedule:
    """Hands out the episodes of a run: number ``i`` starts from state ``i`` of the set, in turn.

    Args:
        states: the set; episodes go round it as often as needed.
        seed: of the run.
        episodes: how many there are in all; None for no end.
        finished: numbers of the episodes that are already done (a resumed run).
        attempts: next attempt of episodes that were begun before and did not finish.
    """

    def __init__(
        self,
        states: StateSet,
        *,
        seed: int,
        episodes: int | None,
        finished: Collection[int] = (),
        attempts: Mapping[int, int] | None = None,
    ) -> None:
        self._states, self._seed, self._episodes = states, seed, episodes
        self._finished = frozenset(finished)
        self._attempts = dict(attempts or {})
        self._cursor = 0
        self._again: deque[Start] = deque()
        self._stopped = False

    def take(self, count: int) -> list[Start]:
        """Returns up to ``count`` episodes that nobody plays yet; lost ones come first."""
        out: list[Start] = []
        while len(out) < count and not self._stopped:
            if self._again:
                out.append(self._again.popleft())
            elif self._episodes is not None and self._cursor >= self._episodes:
                break
            else:
                if self._cursor not in self._finished:
                    out.append(self.start(self._cursor))
                self._cursor += 1
        return out

    def start(self, episode: int) -> Start:
        """Returns the start of an episode by its number."""
        return Start(
            state=self._states[episode % self._states.size],
            seed=episode_seed(self._seed, episode),
            episode=episode,
            attempt=self._attempts.get(episode, 0),
            state_set=self._states.name,
        )

    def give_back(self, starts: Iterable[Start]) -> None:
        """Takes episodes back that were handed out and not finished; they are next in line."""
        for start in sorted(starts, key=lambda s: s.episode, reverse=True):
            self._again.appendleft(start)

    def stop(self) -> None:
        """Hands out nothing any more."""
        self._stopped = True

    @property
    def exhausted(self) -> bool:
        """Whether ``take`` would return nothing."""
        if self._stopped:
            return True
        return not self._again and self._episodes is not None and self._cursor >= self._episodes


class Ledger:
    """What one player holds: episodes handed to it whose end has not been seen."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self.held: dict[int, Start] = {}

    def give(self, starts: Iterable[Start]) -> None:
        """Notes episodes as handed out."""
        self.held.update((s.episode, s) for s in starts)

    def settle(
        self,
        results: Iterable[EpisodeResult],
        losses: Iterable[Loss] = (),
        abandoned: Iterable[Start] = (),
    ) -> None:
        """Strikes out what ended for good, and follows the attempts of what was lost.

        The player tries a lost episode again by itself, one attempt up, also when it was lost
        before its first step; if the player dies, the next attempt must be a new one.
        """
        for result in results:
            if result.end != "lost":
                self.held.pop(result.start.episode, None)
        for loss in losses:
            held = self.held.get(loss.start.episode)
            if held is not None and held.attempt <= loss.start.attempt:
                self.held[held.episode] = replace(held, attempt=loss.start.attempt + 1)
        for start in abandoned:
            self.held.pop(start.episode, None)

    def lose(self) -> tuple[list[Start], list[Start]]:
        """Empties the ledger after its player died.

        Returns:
            the episodes to try again, one attempt up, and those that were tried often enough.
        """
        lost, self.held = list(self.held.values()), {}
        again = [replace(s, attempt=s.attempt + 1) for s in lost if s.attempt < self._retries]
        return again, [s for s in lost if s.attempt >= self._retries]
