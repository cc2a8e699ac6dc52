"""Calls of learners in their own processes, which may die."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError

from rollout.errors import RayUnavailable
from rollout.host.ray_watch import lost_after, require_ray

_PING_S = 5.0  # deadline of a learner that lives


@contextlib.contextmanager
def asking(group: Any) -> Iterator[None]:
    """Around calls of RLlib's ``LearnerGroup``.

    Raises:
        RayUnavailable: a learner in its own process has died, or Ray.
    """
    if group.is_remote:
        require_ray(head=False)
    try:
        yield
    except RayError as error:
        what = lost_after(error) or _dead_learner(group)
        if not what:
            raise
        raise RayUnavailable(what) from error


def first_answer(answers: Iterable[Any]) -> Any:
    """Returns what the first learner has answered.

    Raises:
        RayUnavailable: no learner is left.
        Exception: its answer was an error, which RLlib returns.
    """
    for answer in answers:
        found = answer.get()
        if isinstance(found, Exception):
            raise found
        return found
    raise RayUnavailable("no learner is left")


def _dead_learner(group: Any) -> str:
    """Returns which learner has died, and how; empty if all live."""
    for number, learner in enumerate(group._workers or []):
        try:
            ray.get(learner.__ray_ready__.remote(), timeout=_PING_S)
        except RayActorError as error:
            how = str(error).partition("Worker exit type: ")[2].split(".")[0].strip()
            return f"learner {number} has died: {how or type(error).__name__}"
        except GetTimeoutError:
            continue
    return ""
