"""Prioritized level replay (Jiang et al., 2021): states are played by how much is learned in them.

The score of a state is the mean absolute advantage of its last episode, the value loss of the
paper's Table 1. The more of its states a runner has scored, the more often it plays one of them
again, with a probability of ``(1 - staleness) * P_score + staleness * P_stale`` (their Section 3):
``P_score`` is proportional to ``rank ** (-1 / temperature)``, ``P_stale`` to the number of episodes
since the state was last handed out. Otherwise it plays the next state of the set.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api import Array, EpisodeResult, Fragment, Loss, Start, StateSet
from rollout.errors import ConfigError
from rollout.host.schedule import Schedule
from rollout.train.gae import advantages

NEEDS = ("gamma", "gae_lambda")
"""Options of an algorithm from whose batches states can be scored."""


class ScoredSchedule(Schedule):
    """Hands out endless episodes, more often from states with higher scores.

    Episode ``k * size + p`` is the visit ``k`` to state ``p``, so that a number says which state it
    is, as in ``Schedule``. Of ``stride`` runners, each plays and scores a share of the states.

    Args:
        states: the set.
        seed: seed of the run.
        temperature: small values prefer the states with the highest scores.
        staleness: weight of the states that were not played for long, 0 to 1.
        gamma: discount factor of the advantages.
        lambda_: that of generalised advantage estimation.
        stride: number of runners.
        offset: number of this runner, from 0.

    Attributes:
        ahead: number of episodes that the sampler has at once; may be set, and is part of the
            state, since it decides with which scores an episode is chosen.
    """

    def __init__(
        self,
        states: StateSet,
        *,
        seed: int,
        temperature: float,
        staleness: float,
        gamma: float,
        lambda_: float,
        stride: int = 1,
        offset: int = 0,
    ) -> None:
        super().__init__(states, seed=seed, episodes=None, stride=stride, offset=offset)
        self._temperature, self._staleness = temperature, staleness
        self._gamma, self._lambda = gamma, lambda_
        self._own = range(offset % states.size, states.size, stride)
        self._cursor = 0  # number of states that were taken in the order of the set
        self._drawn = 0  # number of episodes that were chosen
        self.ahead = 0
        self._visits: dict[int, int] = {}  # by position in the set, like the next two
        self._newest: dict[int, int] = {}
        self._scores: dict[int, float] = {}
        self._sums: dict[tuple[int, int], tuple[float, int]] = {}  # by episode and attempt

    def take(self, count: int) -> list[Start]:
        """Returns ``count`` episodes that are not being played; lost ones come first."""
        out: list[Start] = []
        while self._again and len(out) < count and not self._stopped:
            out.append(self._again.popleft())
        if self._stopped or len(out) == count:
            return out
        generator = np.random.default_rng((self._seed, self._offset, self._drawn))
        known = np.fromiter(self._scores, np.int64, len(self._scores))
        upper = np.cumsum(self._probabilities(known))
        while len(out) < count:
            if generator.random() < len(known) / len(self._own):
                at = np.searchsorted(upper, generator.random() * upper[-1], side="right")
                position = int(known[min(at, len(known) - 1)])
            else:
                position = self._own[self._cursor % len(self._own)]
                self._cursor += 1
            visit = self._visits.get(position, 0)
            self._visits[position], self._newest[position] = visit + 1, self._drawn
            self._drawn += 1
            number = self._offset + self._stride * visit
            out.append(self.start(number * self._states.size + position))
        return out

    def _probabilities(self, known: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the probability of each of the scored states."""
        if not len(known):
            return np.zeros(0)
        scores = np.fromiter(self._scores.values(), np.float64, len(known))
        ranks = np.empty(len(known))
        ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(known) + 1)
        by_score = ranks ** (-1.0 / self._temperature)
        age = self._drawn - np.array([self._newest[p] for p in known.tolist()], np.float64)
        mixed: NDArray[np.float64] = (1 - self._staleness) * by_score / by_score.sum()
        mixed += self._staleness * age / age.sum()
        return mixed

    def learn(
        self, fragment: Fragment, batch: Mapping[str, Array], results: Iterable[EpisodeResult]
    ) -> None:
        """Scores the states of the episodes that ended in a fragment.

        Args:
            fragment: the fragment.
            batch: what PPO's ``gather`` made of it.
            results: episodes that ended in it and were not lost.
        """
        advantage, _ = advantages(
            *(batch[key] for key in ("reward", "value", "next_value", "end")),
            gamma=self._gamma,
            lambda_=self._lambda,
        )
        size = np.abs(advantage[:, : fragment.length].T)[fragment.valid]
        rows = fragment.start_index[fragment.valid]
        sums = np.bincount(rows, size, len(fragment.starts))
        counts = np.bincount(rows, minlength=len(fragment.starts))
        for start, total, count in zip(fragment.starts, sums, counts, strict=True):
            before, steps = self._sums.get(key := (start.episode, start.attempt), (0.0, 0))
            if count:
                self._sums[key] = (before + float(total), steps + int(count))
        for result in results:
            total, steps = self._sums.pop((result.start.episode, result.start.attempt), (0.0, 0))
            if steps:
                self._scores[result.start.episode % self._states.size] = total / steps

    def forget(self, losses: Iterable[Loss]) -> None:
        """Removes what was counted of episodes that were lost."""
        for loss in losses:
            self._sums.pop((loss.start.episode, loss.start.attempt), None)

    def state(self, playing: Iterable[Start] = ()) -> dict[str, Any]:
        """Returns the position of the schedule with the scores, JSON-able."""
        played, scored = list(self._visits), list(self._scores)
        table = {
            "played": np.array(played, "<i8"),
            "visits": np.array([self._visits[p] for p in played], "<i8"),
            "newest": np.array([self._newest[p] for p in played], "<i8"),
            "scored": np.array(scored, "<i8"),
            "scores": np.array([self._scores[p] for p in scored], "<f8"),
        }
        packed = {name: _packed(array) for name, array in table.items()}
        begun = list(playing)
        return {
            **super().state(begun),
            # As they were handed out: their numbers say nothing about it here.
            "playing": [[s.episode, s.attempt] for s in begun],
            "curriculum": {"drawn": self._drawn, "ahead": self.ahead, **packed},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues from the position of another schedule with the same arguments.

        Raises:
            ConfigError: the state belongs to a schedule of other episodes.
        """
        if "curriculum" not in state:
            raise ConfigError(
                "the saved schedule has no scores of states: it is of a run without "
                "curriculum.sampler=score; resume with the settings of the run that was saved"
            )
        super().restore(state)
        saved = state["curriculum"]
        self._drawn, self.ahead = int(saved["drawn"]), int(saved["ahead"])
        played, scored = _unpacked(saved["played"], "<i8"), _unpacked(saved["scored"], "<i8")
        self._visits = dict(zip(played, _unpacked(saved["visits"], "<i8"), strict=True))
        self._newest = dict(zip(played, _unpacked(saved["newest"], "<i8"), strict=True))
        self._scores = dict(zip(scored, _unpacked(saved["scores"], "<f8"), strict=True))
        self._sums = {}  # episodes that were being played begin again


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(array.tobytes(), 1)).decode("ascii")


def _unpacked(text: str, dtype: str) -> list[Any]:
    found: list[Any] = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).tolist()
    return found
