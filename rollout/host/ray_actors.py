"""Actors on Ray, for the supervisor of ``rollout.host.actors``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayTaskError

from rollout.cluster.resources import Node, fits, missing_resources, read_nodes, requested_resources
from rollout.errors import GamutError
from rollout.host.actors import ActorLost, Pulse, Supervisor
from rollout.host.hosting import HostPlan
from rollout.host.ray_watch import lost, require_ray

_NODE = "ray.io/node-id"  # label that Ray gives every node
_WATCH = "watch"  # concurrency group that answers while the actor is busy
_CLOSE_MARGIN_S = 5.0  # added to the deadline of the games for their actors to answer
_FETCH_S = 120.0  # deadline to fetch a result that is ready
_SHARE, _GATHER_S = (
    16,
    0.02,
)  # one of so many references is awaited for so long, see RayLauncher.wait


class Watched:
    """Mixin for classes whose actors are supervised; they must define ``pulse``."""

    def machine_and_pulse(self) -> tuple[str, Pulse]:
        """Returns the id of the Ray node on which the actor runs, and its pulse."""
        pulse: Pulse = self.pulse()  # type: ignore[attr-defined] # of the class that mixes this in
        return str(ray.get_runtime_context().get_node_id()), pulse


class RayLauncher:
    """Launches actors of a class; see ``rollout.host.actors.Launcher``.

    Args:
        cls: class of the actors; a subclass of ``Watched``.
        arguments: returns the constructor's arguments, given number and incarnation.
        options: options of ``ray.remote``.
        name: prefix of the actors' names, ``<name>-<number>-<incarnation>``; empty for no names.
    """

    def __init__(
        self,
        cls: type[Watched],
        arguments: Callable[[int, int], tuple[Any, ...]],
        options: Mapping[str, Any],
        name: str = "",
    ) -> None:
        self._cls, self._arguments, self._options, self._name = cls, arguments, options, name

    def launch(self, number: int, incarnation: int, avoid: Sequence[str]) -> Any:
        """See ``Launcher``; a placement group has fixed machines, so ``avoid`` is ignored there."""
        require_ray()
        options = dict(self._options)
        if self._name:
            options["name"] = f"{self._name}-{number}-{incarnation}"
        if avoid and ray.util.get_current_placement_group() is None:
            options["label_selector"] = {_NODE: f"!in({','.join(avoid)})"}
        actor = ray.remote(
            **options,
            max_restarts=0,  # the supervisor replaces it, within a budget
            max_task_retries=0,  # steps are not idempotent
            concurrency_groups={_WATCH: 1},
        )(self._cls)
        return actor.remote(*self._arguments(number, incarnation))

    @staticmethod
    def request_pulse(handle: Any) -> Any:
        """See ``Launcher``."""
        require_ray()
        return handle.machine_and_pulse.options(concurrency_group=_WATCH).remote()

    def wait(self, references: Sequence[Any], timeout_s: float) -> list[Any]:
        """See ``Launcher``.

        A call of Ray costs more the more references there are. So many are waited for together, and
        after the first of many, a sixteenth of all for 20 ms: then the cost of a call is shared by
        what it returns.
        """
        if not references:
            threading.Event().wait(timeout_s)
            return []
        require_ray()
        given, count = list(references), len(references)
        ready, _ = ray.wait(given, num_returns=count, timeout=0)
        if timeout_s > 0 and len(ready) <= count // _SHARE:
            ready, _ = ray.wait(given, num_returns=1, timeout=timeout_s)
            if ready and count > _SHARE:
                ray.wait(given, num_returns=count // _SHARE, timeout=_GATHER_S)
            require_ray()
            if ready and count > 1:
                ready, _ = ray.wait(given, num_returns=count, timeout=0)
        return list(ready)

    def get(self, reference: Any) -> Any:
        """See ``Launcher``."""
        return fetch(reference, _FETCH_S)

    def kill(self, handle: Any) -> None:
        """See ``Launcher``; does nothing if Ray has died, since its actors end with it."""
        if not lost():
            ray.kill(handle)

    def machines(self) -> Sequence[str]:
        """See ``Launcher``."""
        require_ray()
        requested = requested_resources(self._options)
        alive = [n for n in ray.nodes() if n["Alive"]]
        return [n["NodeID"] for n in alive if fits(Node("", n["Resources"]), requested)]

    def missing_resources(self) -> str:
        """See ``Launcher``."""
        require_ray()
        return missing_resources(requested_resources(self._options), read_nodes())


def close_hosts(supervisor: Supervisor, plan: HostPlan) -> None:
    """Ends the games of all actors, within the deadline of their game, and then the actors."""
    if lost():
        return  # its actors end, and their games with them
    actors = [actor.handle for actor in supervisor.actors if actor.handle is not None]
    closing = [actor.close.remote() for actor in actors]
    if closing:
        timeout_s = plan.deadlines.close_s * plan.instances + _CLOSE_MARGIN_S
        ray.wait(closing, num_returns=len(closing), timeout=timeout_s)
    supervisor.close()


def fetch(reference: Any, timeout_s: float) -> Any:
    """Returns the result of a call of an actor, or raises its error.

    Raises:
        ActorLost: it does not come within ``timeout_s``, or never.
        RayUnavailable: Ray has died.
    """
    require_ray()
    try:
        return ray.get(reference, timeout=timeout_s)
    except RayTaskError as error:
        if isinstance(error.cause, GamutError):
            raise error.cause from None
        raise error.as_instanceof_cause() from error
    except GetTimeoutError as error:
        raise ActorLost(f"did not answer within {timeout_s:.3g} s") from error
    except (RayActorError, ObjectLostError) as error:
        # A result may be lost with its node before the death of the actor is known.
        lines = str(error).strip().splitlines() or [""]
        # An error that the constructor of an actor raised is in the last line.
        created = "creation task" not in lines[0]
        line = lines[0 if created else -1].strip()
        trace = "" if created else str(error)
        raise ActorLost(f"{type(error).__name__}: {line}", trace) from error
