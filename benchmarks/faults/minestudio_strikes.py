"""A policy that kills or stops MineStudio's engines while its actions are played."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter

import numpy as np

from rollout.host.processes import marked_processes

STRIKES = 100
"""One step in so many is struck."""
_ENGINE = "bridges.minestudio.engine"
_dice = random.Random(0)
struck: Counter[str] = Counter()
"""Strikes of this process, by signal."""


def striking(observations: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns random actions; now and then strikes an engine while they are played."""
    rows = len(observations["rgb"])
    engines = [each.pid for each in marked_processes() if _ENGINE in each.command]
    for _ in range(rows):
        if engines and _dice.randrange(STRIKES) == 0:
            number = _dice.choice((signal.SIGKILL, signal.SIGSTOP))
            threading.Timer(0.003, strike, (_dice.choice(engines), number)).start()
    return {
        "buttons": np.array([_dice.randrange(8641) for _ in range(rows)]),
        "camera": np.array([_dice.randrange(121) for _ in range(rows)]),
    }


def strike(pid: int, number: signal.Signals) -> None:
    """Sends a signal to an engine that may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    struck[number.name] += 1
