"""One line in the log if the number of slots, instances or actors limits the speed of a run."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping

from rollout.host.hosting import HostPlan

log = logging.getLogger(__name__)

AFTER_S = 20.0
"""Seconds of play after which the advice is given; launching is over by then."""


class Advice:
    """Logs once what a run is bound by, if a setting would change that; see docs/throughput.md.

    Args:
        plan: how every player plays.
        actors: number of actors that play; 0 for this process.
        key: configuration key of that number.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        plan: HostPlan,
        actors: int,
        key: str = "actors",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._actors, self._key, self._clock = plan, actors, key, clock
        self._began: float | None = None
        self._given = False

    def look(self, values: Mapping[str, object], learning: float = 0.0) -> None:
        """Logs the advice once it is time to.

        Args:
            values: a metrics line with ``players/games``.
            learning: share of the time that updates take, in a training.
        """
        games = values.get("players/games")
        if self._given or not isinstance(games, float):
            return
        if self._began is None:
            self._began = self._clock()
        if self._clock() - self._began >= AFTER_S:
            self._given = True
            if said := self.say(games, learning):
                log.info("%s; docs/throughput.md says more", said)

    def say(self, games: float, learning: float = 0.0) -> str:
        """Returns the advice, empty if there is none.

        Args:
            games: share of their time that players wait for games.
            learning: share of the time that updates take.
        """
        plan, cpus = self._plan, os.cpu_count() or 1
        usual, waits = plan.bridge.spec.default_width, games >= 0.5
        if learning > 0.6:
            return (
                f"updates take {learning:.0%} of the time, so more games would not help; "
                "learners.* decides where the network learns"
            )
        if not waits and plan.slots < usual:
            return (
                f"a player waits for games {games:.0%} of its time, and decides for {plan.slots} "
                f"slots at once; more are faster; set width={usual} instead of {plan.width}"
            )
        if plan.instances == 1 and waits and not plan.in_process:
            return (
                f"a player waits for its only game {games:.0%} of its time; more instances play "
                "meanwhile; set instances=2"
            )
        if not self._actors and cpus > 1:
            return (
                f"one process plays, and this machine has {cpus} processors; with actors more of "
                f"them play; set {self._key}={cpus}"
            )
        return ""
