"""Schedules of episodes, counts of visits to states, and records of episodes in progress."""

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
"""Sets of up to this many states are counted state by state in ``Visits``."""


def episode_seed(run_seed: int, episode: int) -> int:
    """Returns the seed of an episode, below 2**63.

    One ``SeedSequence`` tree, run -> episode: the seed does not depend on the actor or slot that
    plays the episode, so a run that was killed and resumed plays the same episodes as an
    uninterrupted one.
    """
    return derived_seed(run_seed, episode)


def derived_seed(seed: int, *key: int) -> int:
    """Returns a seed below 2**63 that numpy's ``SeedSequence`` derives with a spawn key."""
    sequence = np.random.SeedSequence(seed, spawn_key=key)
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)


class Schedule:
    """Hands out the episodes of a run: episode ``i`` starts from state ``i``, cyclically.

    ``stride`` runners share the episodes of a run without communication: runner ``offset`` plays
    the numbers ``offset``, ``offset + stride``, and so on.

    Args:
        states: the set; episodes cycle through it.
        seed: seed of the run.
        episodes: total number of episodes of all runners; None for no end.
        finished: numbers of the episodes that are already finished (in a resumed run).
        attempts: next attempt of episodes that began before and did not finish.
        stride: number of runners.
        offset: number of this runner, from 0.

    Raises:
        ConfigError: ``offset`` is not in ``[0, stride)``.
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
        """Returns up to ``count`` episodes that are not being played; lost ones come first."""
        out: list[Start] = []
        while len(out) < count and not self._stopped:
            if self._again:
                out.append(self._again.popleft())
            elif self._episodes is not None and self._cursor >= self._episodes:
                break
            else:
                if self._cursor not in self._finished and self._due(self._cursor):
                    out.append(self.start(self._cursor))
                self._cursor += self._stride
        return out

    def _due(self, episode: int) -> bool:
        """Returns True if an episode may be played now; otherwise it is handed out later."""
        del episode
        return True

    def start(self, episode: int) -> Start:
        """Returns the start of an episode."""
        return Start(
            state=self._states[episode % self._states.size],
            seed=episode_seed(self._seed, episode),
            episode=episode,
            attempt=self._attempts.get(episode, 0),
            state_set=self._states.name,
        )

    def give_back(self, starts: Iterable[Start]) -> None:
        """Takes back episodes that were handed out and not finished; they are next in the queue."""
        for start in sorted(starts, key=lambda s: s.episode, reverse=True):
            self._again.appendleft(start)

    def stop(self) -> None:
        """Hands out no more episodes."""
        self._stopped = True

    @property
    def exhausted(self) -> bool:
        """True if ``take`` would return nothing."""
        if self._stopped:
            return True
        return not self._again and self._episodes is not None and self._cursor >= self._episodes

    def state(self, playing: Iterable[Start] = ()) -> dict[str, Any]:
        """Returns the position of the schedule, JSON-able.

        Args:
            playing: episodes that were handed out and have not ended, as in ``Ledger.held``. A
                restored schedule would skip those that are missing here.
        """
        return {
            **self._identity(),
            "cursor": self._cursor,
            "again": [[s.episode, s.attempt] for s in self._again],
            "playing": sorted([s.episode, s.attempt] for s in playing),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues from the position of another schedule with the same arguments.

        Episodes that were being played come first, from the same starts and one attempt higher,
        since recorded steps belong to the earlier attempt. Then come those that waited for a retry,
        then the rest. The additional attempt counts against the retries of a player.

        Raises:
            ConfigError: the state belongs to a schedule of other episodes.
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
        """Values in which two schedules of the same episodes agree."""
        return {
            "state_set": self._states.digest,
            "seed": self._seed,
            "stride": self._stride,
            "offset": self._offset,
        }


class Visits:
    """Counts of the episodes from each state of a set that were terminated or truncated.

    Lost episodes are not counted, since they are retried. A set of up to ``COUNTED`` states is
    counted state by state. For a larger set only the number of episodes is kept. Since a schedule
    cycles through the set, this gives the count of position ``k``: the number of ``k, k + size,
    k + 2 * size, ...`` below the number of episodes. Only the few episodes that are still in
    progress or were abandoned make this inexact.

    Args:
        states: the set; its order is the order of the counts.
    """

    def __init__(self, states: StateSet) -> None:
        self._name, self._size = states.digest, states.size
        self.episodes = 0
        self._counts = np.zeros(self._size, np.int64) if self._size <= COUNTED else None

    def add(self, results: Iterable[EpisodeResult]) -> None:
        """Counts the episodes that ended."""
        ended = [r.start.episode % self._size for r in results if r.end != "lost"]
        self.episodes += len(ended)
        if self._counts is not None:
            np.add.at(self._counts, np.array(ended, np.int64), 1)

    def merge(self, other: Visits | Mapping[str, Any]) -> None:
        """Adds the visits of another runner or of a saved state.

        Raises:
            ConfigError: the visits belong to another set.
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
            try:
                packed = zlib.decompress(base64.b64decode(other["counts"], validate=True))
                self._counts += np.frombuffer(packed, "<i8").reshape(self._size)
            except (ValueError, zlib.error) as error:
                raise ConfigError(
                    f"expected the packed visits of {self._size} states, got something else "
                    f"({error}); go on from another checkpoint"
                ) from error

    def state(self) -> dict[str, Any]:
        """Returns the visits as JSON-able data, for ``merge``; counts are packed, if kept."""
        counts = ""
        if self._counts is not None:
            packed = zlib.compress(self._counts.astype("<i8").tobytes(), 1)
            counts = base64.b64encode(packed).decode("ascii")
        return {"state_set": self._name, "episodes": self.episodes, "counts": counts}

    def counts(self) -> NDArray[np.int64]:
        """Returns the number of episodes of each state, ``(size,)``, in the order of the set.

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
        """Returns statistics of how evenly and how completely the set was visited.

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
    """The episodes that one player holds: handed out, and their end not yet reported."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self.held: dict[int, Start] = {}

    def give(self, starts: Iterable[Start]) -> None:
        """Records episodes as handed out."""
        self.held.update((s.episode, s) for s in starts)

    def settle(
        self,
        results: Iterable[EpisodeResult],
        losses: Iterable[Loss] = (),
        abandoned: Iterable[Start] = (),
    ) -> None:
        """Removes episodes that ended, and updates the attempts of those that were lost.

        A player retries a lost episode by itself, one attempt higher, even if it was lost before
        its first step. If the player dies, the next attempt must have a new number.
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
            the episodes to retry, one attempt higher, and those without attempts left.
        """
        lost, self.held = list(self.held.values()), {}
        again = [replace(s, attempt=s.attempt + 1) for s in lost if s.attempt < self._retries]
        return again, [s for s in lost if s.attempt >= self._retries]
