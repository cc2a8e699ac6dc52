"""Opens the fleet of a plan: here or in Ray actors, with or without inference actors."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rollout.api import PolicyRecipe, keeps_files
from rollout.configuration.sections import InferenceConfig
from rollout.errors import ConfigError
from rollout.host.hosting import HostPlan, LocalFleet, log_launch

if TYPE_CHECKING:
    from rollout.host.fleet import RayFleet
    from rollout.host.inference_actors import InferenceActors

log = logging.getLogger(__name__)

Fleet: TypeAlias = "LocalFleet | RayFleet"
_NONE = InferenceConfig()


def check_inference(policy: PolicyRecipe, inference: InferenceConfig) -> None:
    """Checks that a policy can be in several inference actors, if there are to be several.

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
        # Ray reads how it authenticates when it is imported: not before the session has set that.
        deciding = None
        if inference.actors:
            log.info("launching %d inference actors", inference.actors)
            from rollout.host.inference_actors import InferenceActors  # noqa: PLC0415

            deciding = InferenceActors(plan, inference, hosts=actors)
            stack.callback(deciding.close)
            deciding.wait()
            plan = deciding.plan
        log_launch(plan, actors)
        fleet: Fleet
        if actors:
            from rollout.host.fleet import RayFleet  # noqa: PLC0415

            check = deciding.supervisor.require_available if deciding else lambda: None
            fleet = RayFleet(plan, actors, check)
        else:
            fleet = LocalFleet(plan)
        stack.callback(fleet.close)
        yield fleet, deciding
