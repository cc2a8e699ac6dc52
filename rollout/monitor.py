"""Counts, logs and shows the fragments of a job that plays.

::

    for fragment in fleet.play(schedule):
        for observe in observers:        # the recorder, a monitor, a function of the user
            observe(fragment)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rollout.api import Fragment
from rollout.host.fleets import Fleet, TuningHints
from rollout.job import Job
from rollout.observe.logs import log_losses, log_notices
from rollout.observe.metrics import Media
from rollout.observe.progress import Throttle
from rollout.tally import Tally

if TYPE_CHECKING:
    from rollout.host.inference_actors import InferenceActors

log = logging.getLogger(__name__)

_METRICS_EVERY_S = 1.0


class Monitor:
    """Counts fragments, logs losses and notices, and writes metrics and progress.

    Args:
        job: the job; its metrics are written at most once a second.
        tally: the totals of the run.
        done: returns the share of the run that is done.
        advice: looks at the metrics; None for none.
        figures: returns more values of a line.

    Attributes:
        tally: the totals.
        decided: ``{"inference": ...}`` for the summary if inference actors decided, otherwise
            empty; complete after ``end``.
    """

    def __init__(
        self,
        job: Job,
        tally: Tally,
        done: Callable[[], float],
        advice: TuningHints | None = None,
        figures: Callable[[], Mapping[str, object]] = dict,
    ) -> None:
        self._job, self.tally, self._done, self._advice = job, tally, done, advice
        self._figures = figures
        self._fleet: Fleet | None = None
        self._inference: InferenceActors | None = None
        self._values: dict[str, float] = {}  # of the inference actors
        self._throttle = Throttle(_METRICS_EVERY_S)
        self.decided: dict[str, Any] = {}

    def follow(self, fleet: Fleet, inference: InferenceActors | None) -> None:
        """Takes the hosts that play, whose losses are counted, and the actors that decide."""
        self._fleet, self._inference = fleet, inference

    def observe(self, fragment: Fragment) -> None:
        """Counts, logs and shows a fragment."""
        self.tally.add(fragment)
        log_notices(log, fragment.results)
        news = [] if self._fleet is None else self.tally.add_news(self._fleet.news)
        log_losses(log, [*fragment.losses, *news])
        if self._throttle.due():
            self.show()

    def show(
        self,
        values: Mapping[str, object] | None = None,
        media: Mapping[str, Media] | None = None,
        *,
        last: bool = False,
    ) -> None:
        """Writes a line of metrics and updates the progress display.

        Args:
            values: more values of the line.
            media: more media of the line.
            last: whether it is the last line of the session.
        """
        tally, done = self.tally, self._done()
        if self._inference is not None:
            self._values = self._inference.values()
        line = {**tally.metrics(), "done": done, **self._values, **self._figures()}
        line |= values or {}
        if self._advice is not None:
            self._advice.update(line)
        shown = {**(media or {}), **tally.media(self._job.run, last=last)}
        self._job.metrics.write(tally.env_steps, line, media=shown)
        counts = {"episodes": tally.episodes, "steps": tally.env_steps}
        self._job.progress.update(done, {**counts, **tally.brief()})

    def end(self) -> bool:
        """Takes the last news of the hosts, which may be closed afterwards.

        Returns:
            whether there are hosts.
        """
        if self._fleet is None:
            return False
        log_losses(log, self.tally.add_news(self._fleet.news))
        if self._inference is not None:
            self.decided = {"inference": self._inference.summary()}
            self._values = self._inference.values()
        self._fleet = self._inference = None
        return True


def given_up(count: int, retries: int, consequence: str) -> str | None:
    """Returns a sentence on episodes that were given up; None if there are none.

    Args:
        count: how many.
        retries: ``host.retries``.
        consequence: what follows, and what was saved.
    """
    if not count:
        return None
    return (
        f"{count} episodes were lost {retries + 1} times each and given up "
        f"(host.retries={retries}{consequence}"
    )
