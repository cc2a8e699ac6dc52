"""Which episode a free slot gets next, and how often each state was played."""

from __future__ import annotations

import base64
import zlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api import EpisodeResult, Loss, Start, StateSet
from rollout.errors import ConfigError

COUNTED = 1_000_000
"""Sets of up to so many states are counted state by state in ``Visits``."""


def episode_seed(run_seed: int, episode: int) -> int:
    """Returns the seed of an episode, below 2**63.

    One ``SeedSequence`` tree, run -> episode: the seed does not depend on which actor or slot
    plays the episode, so a run that was killed and resumed plays what an unbroken one would have.
    """
    sequence = np.random.SeedSequence(run_seed, spawn_key=(episode,))
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)


class Schedule:
    """Hands out the episodes of a run: number ``i`` starts from state ``i`` of the set, in turn.

    ``stride`` runners share the episodes of a run without talking to one another: runner
    ``offset`` plays the numbers ``offset``, ``offset + stride``, and so on.

    Args:
        states: the set; episodes go round it as often as needed.
        seed: of the run.
        episodes: how many there are in all, over all runners; None for no end.
        finished: numbers of the episodes that are already done (a resumed run).
        attempts: next attempt of episodes that were begun before and did not finish.
        stride: number of runners.
        offset: number of this runner, from 0.

    Raises:
        ConfigError: ``offset`` is not the number of one of ``stride`` runners.
    """

    def __init__(
        self,
        states: StateSet,
        *,
        seed: int,
        episodes: int | None,
        finished: Collection[int] = (),
        attempts: Mapping[int, int] | None = None,
        stride: int = 1,
        offset: int = 0,
    ) -> None:
        if not 0 <= offset < stride:
            raise ConfigError(
                f"expected offset to be the number of one of {stride} runners, from 0 to "
                f"{stride - 1}, got {offset}"
            )
        self._states, self._seed, self._episodes = states, seed, episodes
        self._finished = frozenset(finished)
        self._attempts = dict(attempts or {})
        self._stride, self._offset = stride, offset
        self._cursor = offset
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
                self._cursor += self._stride
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

    def state(self, playing: Iterable[Start] = ()) -> dict[str, Any]:
        """Returns where the schedule stands, as JSON-able data.

        Args:
            playing: episodes that were handed out and have not ended: what ``Ledger.held`` holds.
                A state taken without them would leave them out when it is restored.
        """
        return {
            **self._identity(),
            "cursor": self._cursor,
            "again": [[s.episode, s.attempt] for s in self._again],
            "playing": sorted([s.episode, s.attempt] for s in playing),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes to where another schedule, made with the same arguments, stood.

        Episodes that were being played then come first, from the same starts and one attempt up:
        what was recorded of them is an earlier attempt. Then those that were waiting to be played
        again, then the rest. The additional attempt counts against the retries of a player.

        Raises:
            ConfigError: the state is that of a schedule of other episodes.
        """
        for name, own in self._identity().items():
            if state[name] != own:
                raise ConfigError(
                    f"the saved schedule has {name}={state[name]} and this one {name}={own}: they "
                    f"play different episodes; resume with the settings of the run that was saved"
                )
        again = [(episode, attempt + 1) for episode, attempt in state["playing"]]
        again += [(episode, attempt) for episode, attempt in state["again"]]
        self._again = deque(replace(self.start(e), attempt=attempt) for e, attempt in again)
        self._cursor = state["cursor"]

    def _identity(self) -> dict[str, Any]:
        """What two schedules of the same episodes agree in."""
        return {
            "state_set": self._states.digest,
            "seed": self._seed,
            "stride": self._stride,
            "offset": self._offset,
        }


class Visits:
    """How many episodes from each state of a set came to an end, terminated or truncated.

    Lost episodes are not counted: they are played again. A set of up to ``COUNTED`` states is
    counted state by state. Of a larger one only the number of episodes is kept, and since a
    schedule goes round the set in turn, that says how often each state came up: position ``k`` as
    often as ``k, k + size, k + 2 * size, ...`` are below the number of episodes. The few episodes
    that are under way, or were given up, make the difference between this and the truth.

    Args:
        states: the set; its order is the order of the counts.
    """

    def __init__(self, states: StateSet) -> None:
        self._name, self._size = states.digest, states.size
        self.episodes = 0
        self._counts = np.zeros(self._size, np.int64) if self._size <= COUNTED else None

    def add(self, results: Iterable[EpisodeResult]) -> None:
        """Counts the episodes of one run that ended."""
        ended = [r.start.episode % self._size for r in results if r.end != "lost"]
        self.episodes += len(ended)
        if self._counts is not None:
            np.add.at(self._counts, np.array(ended, np.int64), 1)

    def merge(self, other: Visits | Mapping[str, Any]) -> None:
        """Adds the visits of another runner, or those of a saved state.

        Raises:
            ConfigError: they are visits of another set.
        """
        if isinstance(other, Visits):
            other = other.state()
        if other["state_set"] != self._name:
            raise ConfigError(
                f"expected visits of the state set {self._name}, got those of "
                f"{other['state_set']}; visits of different sets have no sum"
            )
        self.episodes += other["episodes"]
        if self._counts is not None:
            packed = zlib.decompress(base64.b64decode(other["counts"]))
            self._counts += np.frombuffer(packed, "<i8")

    def state(self) -> dict[str, Any]:
        """Returns the visits as JSON-able data, for ``merge``; counts are packed, if kept."""
        counts = ""
        if self._counts is not None:
            packed = zlib.compress(self._counts.astype("<i8").tobytes(), 1)
            counts = base64.b64encode(packed).decode("ascii")
        return {"state_set": self._name, "episodes": self.episodes, "counts": counts}

    def counts(self) -> NDArray[np.int64]:
        """Returns the episodes of each state, ``(size,)``, in the order of the set.

        Raises:
            ConfigError: the set has more than ``COUNTED`` states, so they are not kept.
        """
        if self._counts is None:
            raise ConfigError(
                f"a set of {self._size} states is not counted state by state, only up to "
                f"{COUNTED}; use summary()"
            )
        return self._counts.copy()

    def summary(self) -> dict[str, float]:
        """Returns the numbers that say how evenly, and how far, the set was gone through.

        Returns:
            ``states`` and ``episodes``; ``min``, ``median`` and ``max`` of the episodes per state;
            ``never``, the share of the states from which no episode ended.
        """
        if self._counts is not None:
            ordered = np.sort(self._counts)
            middle = ordered[(self._size - 1) // 2], ordered[self._size // 2]
            least, most = int(ordered[0]), int(ordered[-1])
            never = int(np.searchsorted(ordered, 1)) / self._size
        else:
            least, more = divmod(self.episodes, self._size)
            most = least + (more > 0)
            # In ascending order the states with one visit more are the last ``more``.
            few = self._size - more
            middle = (
                least + ((self._size - 1) // 2 >= few),
                least + (self._size // 2 >= few),
            )
            never = few / self._size if least == 0 else 0.0
        return {
            "states": self._size,
            "episodes": self.episodes,
            "min": least,
            "median": float(sum(middle)) / 2,
            "max": most,
            "never": never,
        }


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
