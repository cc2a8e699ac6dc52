"""The fleet that plays a plan, in this process or in Ray actors, and hints on its size."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rollout.api import PolicyRecipe, keeps_files
from rollout.configuration.sections import InferenceConfig
from rollout.errors import ConfigError
from rollout.host.hosting import HostPlan, LocalFleet, log_launch

if TYPE_CHECKING:
    from rollout.host.inference_actors import InferenceActors
    from rollout.host.ray_fleet import RayFleet

log = logging.getLogger(__name__)

Fleet: TypeAlias = "LocalFleet | RayFleet"
_NONE = InferenceConfig()
HINT_AFTER_S = 20.0
"""Seconds of play after which the hint is logged; launching is over by then."""


def check_inference(policy: PolicyRecipe, inference: InferenceConfig) -> None:
    """Checks that a policy can be in as many inference actors as are configured.

    Raises:
        ConfigError: it needs to be the only one of its run.
    """
    if inference.actors > 1 and keeps_files(policy):
        raise ConfigError(
            f"inference.actors={inference.actors}: expected 1, since this policy has limits and "
            f"files of the whole run; one actor asks for all games at once"
        )


@contextlib.contextmanager
def open_fleet(
    plan: HostPlan,
    *,
    actors: int = 0,
    inference: InferenceConfig = _NONE,
    folder: Path | None = None,
) -> Iterator[tuple[Fleet, InferenceActors | None]]:
    """Launches the games of a plan and its inference actors, and ends them at the end.

    Args:
        plan: what is played.
        actors: number of Ray actors that play; 0 for one player in this process.
        inference: where the policy decides. Ray must run if there are actors of any kind.
        folder: the folder of the run, for a policy that keeps files there.

    Yields:
        the fleet, and the inference actors if there are any.

    Raises:
        InputError: the cluster does not have what is needed, or the policy cannot be built there or
            not in so many actors.
        BudgetExhausted: the inference actors do not come up.
    """
    check_inference(plan.policy, inference)
    if keeps_files(plan.policy):
        if folder is not None:
            plan = replace(plan, policy=plan.policy.in_run(folder))
        if actors and not inference.actors:
            inference = inference.model_copy(update={"actors": 1})
    with contextlib.ExitStack() as stack:
        # Imported here, since Ray reads its authentication when it is imported.
        servers = None
        if inference.actors:
            log.info("launching %d inference actors", inference.actors)
            from rollout.host.inference_actors import InferenceActors  # noqa: PLC0415

            servers = InferenceActors(plan, inference, hosts=actors)
            stack.callback(servers.close)
            servers.wait()
            plan = servers.plan
        log_launch(plan, actors)
        fleet: Fleet
        if actors:
            from rollout.host.ray_fleet import RayFleet  # noqa: PLC0415

            check = servers.supervisor.require_available if servers else lambda: None
            fleet = RayFleet(plan, actors, check)
        else:
            fleet = LocalFleet(plan)
        stack.callback(fleet.close)
        yield fleet, servers


class TuningHints:
    """Logs once which setting limits the speed of a run, if one does; see docs/throughput.md.

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

    def update(self, values: Mapping[str, object], learning: float = 0.0) -> None:
        """Logs the hint, ``HINT_AFTER_S`` seconds after the first line with steps.

        Args:
            values: a metrics line with ``players/games``.
            learning: share of the time that updates take, in a training.
        """
        games = values.get("players/games")
        if self._given or not isinstance(games, float):
            return
        if self._began is None:
            self._began = self._clock()
        if self._clock() - self._began >= HINT_AFTER_S:
            self._given = True
            if hint := self.hint(games, learning):
                log.info("%s; docs/throughput.md says more", hint)

    def hint(self, games: float, learning: float = 0.0) -> str:
        """Returns the hint, empty if no setting limits the speed.

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
