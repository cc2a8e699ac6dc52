"""The Task API of OpenEnv over our state sets: a split is a set, a task one of its states."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from rollout.api import StateSet
from rollout.errors import UnknownNameError
from rollout.interop import openenv_wire as wire
from rollout.interop.games import Games
from rollout.interop.openenv_wire import Refused

MOST_TASKS = 10_000
"""Tasks in one answer."""


class Tasks:
    """Answers to requests for tasks; each takes the request and its body.

    Args:
        games: the games.
        name: name of the environment.

    Raises:
        Refused: wrong input, in each method.
    """

    def __init__(self, games: Games, name: str) -> None:
        self._games, self._name = games, name

    def splits(self, request: Request, _: bytes) -> list[dict[str, str]]:
        """Returns the splits that have states."""
        self._require_name(request)
        return [{"name": name, "type": name} for name in self._games.splits]

    def _require_name(self, request: Request) -> None:
        given = request.path_params["env_name"]
        if given.lower() != self._name.lower():
            unknown = UnknownNameError("environment", given, [self._name])
            raise Refused(wire.VALIDATION, str(unknown), 404)

    def _split(self, request: Request, body: bytes) -> tuple[str, StateSet, dict[str, Any]]:
        self._require_name(request)
        data = wire.read(body)
        split = data.get("split")
        if not isinstance(split, str) or split not in self._games.splits:
            raise UnknownNameError("split", str(split), self._games.splits)
        return split, self._games.splits[split], data

    def num_tasks(self, request: Request, body: bytes) -> dict[str, Any]:
        """Returns how many tasks a split has."""
        return {"num_tasks": self._split(request, body)[1].size}

    def task(self, request: Request, body: bytes) -> dict[str, Any]:
        """Returns one task."""
        split, states, data = self._split(request, body)
        index = data.get("index")
        if type(index) is not int:
            raise Refused(wire.VALIDATION, f"index: expected a whole number, got {index!r}")
        return {"task": self._data(split, states, index)}

    def tasks(self, request: Request, body: bytes) -> dict[str, Any]:
        """Returns the tasks from ``start`` to before ``stop``, by default all."""
        split, states, data = self._split(request, body)
        start, stop = data.get("start") or 0, data.get("stop")
        stop = states.size if stop is None else stop
        if type(start) is not int or type(stop) is not int or not 0 <= start <= stop <= states.size:
            raise Refused(
                wire.VALIDATION, f"expected 0 <= start <= stop <= {states.size} as whole numbers"
            )
        if stop - start > MOST_TASKS:
            raise Refused(
                wire.VALIDATION,
                f"{stop - start} tasks are too many for one answer; ask task_range for at most "
                f"{MOST_TASKS}, or task for one",
            )
        tasks = [self._data(split, states, k) for k in range(start, stop)]
        return {"tasks": tasks, "env_name": self._name}

    def _data(self, split: str, states: StateSet, index: int) -> dict[str, Any]:
        state = states[index]
        found = {"id": f"{states.name}/{index}", "split": split, "index": index}
        found |= {"state": str(state.index), "values": dict(state.values)}
        return {**found, "goal": self._games.task.goal}
