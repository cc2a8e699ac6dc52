"""Functions of the user that are called after every update of a training, and may end it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rollout.api.options import load_function
from rollout.errors import ContractError, named, no_exit

STOP = "stop"


@dataclass(frozen=True)
class UpdateRecord:
    """One update of a training, to read.

    Attributes:
        update: number of updates so far, including this one.
        env_steps: steps played so far.
        metrics: the values of the update by their names in ``metrics.jsonl``, and those of a
            validation that followed it.
        path: the run directory.
        weights: returns a copy of the network's tensors, by name, on the CPU.
    """

    update: int
    env_steps: int
    metrics: Mapping[str, Any]
    path: Path
    weights: Callable[[], dict[str, Any]]


Callback: TypeAlias = Callable[[UpdateRecord], bool | str | None]
"""Called after every update; ends the training if it returns True or ``"stop"``."""


Named: TypeAlias = tuple[str, Callback]
"""A callback with its name, ``module:function``."""


def load_callbacks(names: Sequence[str]) -> list[Named]:
    """Returns the functions of these names.

    Raises:
        ConfigError: one does not exist, or does not take one argument.
    """
    with named("callbacks"):
        return [(name, load_function(name, 1)) for name in names]


def with_name(callback: Callback) -> Named:
    """Returns a callback with the name that comes nearest to ``module:function``."""
    name = getattr(callback, "__qualname__", type(callback).__qualname__)
    return f"{getattr(callback, '__module__', '')}:{name}", callback


def ended_by(callbacks: Sequence[Named], summary: Mapping[str, Any], update: int) -> str:
    """Returns the name of the callback that ended the last session, or "".

    A callback that is no longer configured does not count.

    Args:
        callbacks: those of this session.
        summary: ``summary.json`` of the last session.
        update: updates so far.
    """
    results = summary.get("results")
    results = results if isinstance(results, Mapping) else {}
    updates = results.get("updates", results.get("epochs"))
    if summary.get("status") != "done" or updates != update:
        return ""
    reason = str(results.get("ended_by", ""))
    return next((name for name, _ in callbacks if reason == f"callback {name}"), "")


def call_all(callbacks: Sequence[Named], record: UpdateRecord) -> str:
    """Calls every callback; returns the name of the first that ends the training, or "".

    Raises:
        ContractError: a callback returned something else than it may.
        PluginError: a callback tried to end the program.
        Exception: whatever a callback raises.
    """
    stopping = []
    for name, call in callbacks:
        with no_exit(f"callback {name}"):
            answer = call(record)
        if _stops(name, answer):
            stopping.append(name)
    return stopping[0] if stopping else ""


def _stops(name: str, answer: object) -> bool:
    if answer is None or isinstance(answer, bool | np.bool_):
        return bool(answer)
    if answer == STOP:
        return True
    raise ContractError(
        f"callback {name} returned {answer!r}; expected None or False to continue, True or "
        f"{STOP!r} to end the training"
    )
