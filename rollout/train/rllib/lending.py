"""The runners of a training as a fleet that plays other episodes, such as those of a validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray

from rollout.api import Start
from rollout.host.actors import Actor, Supervisor
from rollout.host.hosting import HostPlan
from rollout.host.ray_fleet import RayFleet
from rollout.host.ray_watch import lost

_MARGIN_S = 5.0  # added to the deadline of the games for their actors to answer


class LentRunners(RayFleet):
    """A fleet of the actors of runners, which must have no requests.

    Each runner launches the games of the plan beside those of its training, with the first request,
    so they need no further room in the cluster. ``close`` ends these games and leaves the runners.

    Args:
        plan: plan of the games.
        supervisor: supervisor of the runners; it must report failures to ``failed``.
    """

    def __init__(self, plan: HostPlan, supervisor: Supervisor) -> None:
        super().__init__(plan, supervisor=supervisor)
        self._shared = [ray.put(plan)]  # in a list, so that a runner reads it only if it needs it

    def _request(self, actor: Actor, starts: Sequence[Start]) -> Any:
        return actor.handle.play.remote(self._shared, starts)

    def close(self) -> None:
        """Ends the games; requests that were not taken are dropped."""
        if lost():
            return
        self._relaunch_withdrawn()
        handles = []
        for actor in self.supervisor.actors:
            actor.requests.clear()
            if actor.handle is not None:
                handles.append(actor.handle.dismiss.remote())
        if handles:
            timeout_s = self.plan.deadlines.close_s * self.plan.instances + _MARGIN_S
            ray.wait(handles, num_returns=len(handles), timeout=timeout_s)
