"""Orders of a turn, and what a turn answers: the side of a library.

An order is a line of JSON on standard input, an answer one on the pipe whose number is in
``ANSWERS``: libraries print.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any


class Turn:
    """A training from new weights, until it reaches its score or its seconds are over.

    Attributes:
        game: its name.
        size: number of games, or what else the library calls its size.
        variant: of the library.
        ppo: settings of PPO and of the network; see ``settings.yaml``.
        seed: of weights and games.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.game, self.size, self.variant = order["game"], order["size"], order["variant"]
        self.seed, self.ppo = order["seed"], SimpleNamespace(**order["ppo"])
        self._limit, self._target = order["seconds"], order["score"]
        self._returns = deque[float](maxlen=100)
        self._mean: float | None = None
        self._steps, self._seconds = 0, 0.0
        self._reached = False

    def begin(self) -> None:
        """Starts the clock; what is built before does not count."""
        self._began = time.perf_counter()

    def add(self, steps: int, returns: Iterable[float] = (), mean: float | None = None) -> bool:
        """Counts an update.

        Args:
            steps: those that were played for it.
            returns: of episodes that ended.
            mean: the mean return of the last 100 episodes, instead, where a library keeps that.

        Returns:
            whether the turn is over.
        """
        self._seconds = time.perf_counter() - self._began
        self._steps += steps
        self._returns.extend(map(float, returns))
        if len(self._returns) == self._returns.maxlen:
            mean = sum(self._returns) / len(self._returns)
        # NumPy's numbers are not JSON; without episodes some libraries have NaN.
        self._mean = None if mean is None or math.isnan(mean) else float(mean)
        self._reached = None not in (mean, self._target) and bool(mean >= self._target)
        return self._reached or self._seconds >= self._limit

    def answer(self) -> dict[str, Any]:
        """Returns steps, seconds, the score at the end, and whether it is the one asked for."""
        counts = {"steps": self._steps, "seconds": self._seconds}
        return {**counts, "score": self._mean, "reached": self._reached}


def serve(train: Callable[[Turn], None]) -> None:
    """Trains for each order, until there are no more."""
    with os.fdopen(int(os.environ["ANSWERS"]), "w", buffering=1) as answers:
        for line in sys.stdin:
            turn = Turn(json.loads(line))
            train(turn)
            answers.write(json.dumps(turn.answer()) + "\n")
