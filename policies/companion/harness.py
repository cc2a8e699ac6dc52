"""The policy ``companion``: takes a player's requests and does them by programs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policies.companion.asking import FOLDER, RoleClient, load_roles
from policies.companion.guard import check_program
from policies.companion.memory import Memory, load_memory
from policies.companion.session import Session, Turn
from policies.companion.stages import RESUME, ROLES, VARIABLES, Limits, Stages
from policies.vlm.conversing import Conversations, Model
from policies.vlm.options import ModelOptions
from rollout.api import (
    CALLS,
    CALLS_SPEC,
    BridgeSpec,
    Call,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Start,
    Task,
    option,
)
from rollout.errors import ConfigError
from rollout.models.client import Request
from rollout.models.local import LocalModel

TELEMETRY = "companion/telemetry"
TELEMETRY_SPEC = ColumnSpec("object", doc="what a companion did in the step, JSON")
KIND, CODE = "kind", "code"
_SESSION, _MEMORY_FOLDER = "session", "memory"


@dataclass(frozen=True)
class _Row:
    """The decision for one row."""

    action: tuple[int, str]
    session: Any
    calls: list[Call]
    telemetry: dict[str, Any]
    stop: str = ""


class Companion:
    """Plays requests of a player, one session per episode; thread-safe.

    Attributes:
        calls: most calls at once.
    """

    extras: Mapping[str, ColumnSpec] = {CALLS: CALLS_SPEC, TELEMETRY: TELEMETRY_SPEC}

    def __init__(
        self, stages: Stages, task: Task, model: Model, *, memory: Path | None, folder: Path | None
    ) -> None:
        self._stages, self._task, self._model = stages, task, model
        self._given, self._folder = memory, folder
        self._conversations = Conversations(model)
        self.calls = model.calls
        self._own_s, self._steps = 0.0, 0

    @property
    def version(self) -> int:
        """Version of the weights of a local model; 0 for models elsewhere."""
        return self._model.version if isinstance(self._model, LocalModel) else 0

    def figures(self) -> Mapping[str, float]:
        """Returns calls in flight, what was spent, and the harness's own milliseconds a step."""
        own = 1000 * self._own_s / self._steps if self._steps else 0.0
        return {**self._model.figures(), "companion/own_ms": round(own, 3)}

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns a new session for each episode.

        Raises:
            ConfigError: the memory file cannot be read, or belongs to another world.
        """
        found = np.zeros(len(starts), object)
        for row, start in enumerate(starts):
            world = world_of(self._task, start)
            memory: Memory | None = None
            if self._given is not None and self._given.is_file():
                memory = load_memory(self._given, world)
            found[row] = Session(seed=start.seed, world=world, memory=memory)
        return {_SESSION: found}

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the program, or the continuation, of each active row; see ``rollout.api.Policy``.

        Raises:
            ConfigError: the server refuses the first request of the run.
            PolicyUnavailable: it does not answer in time.
            BudgetExhausted: a limit of the run is reached.
        """
        del observations
        rows = self._conversations.run(
            [
                self._decide(session, details[row] if details else {}, explore)
                for row, session in enumerate(memory[_SESSION])
            ]
        )
        columns = {name: np.zeros(len(rows), object) for name in (_SESSION, CALLS, TELEMETRY)}
        for number, row in enumerate(rows):
            columns[_SESSION][number] = row.session
            columns[CALLS][number] = [call.as_json() for call in row.calls]
            columns[TELEMETRY][number] = row.telemetry
        texts = np.zeros(len(rows), object)
        texts[:] = [row.action[1] for row in rows]
        kinds = np.array([row.action[0] for row in rows], np.int64)
        stops = [row.stop for row in rows]
        return Decision(
            {KIND: kinds, CODE: texts},
            {_SESSION: columns.pop(_SESSION)},
            columns,
            stops if any(stops) else None,
        )

    def _decide(
        self, session: Any, details: Details, explore: bool
    ) -> Generator[Request, Call, _Row]:
        """Returns the decision for a row; an idle row waits."""
        if not isinstance(session, Session):
            return _Row((RESUME, ""), session, [], {})
        own, began = 0.0, time.perf_counter()
        turn = Turn(session, details, self._task)
        step = self._stages.step(turn, explore)
        reply: Any = None
        action: Any = None
        while action is None:
            try:
                request = step.send(reply)
            except StopIteration as end:
                action = end.value
            else:
                own += time.perf_counter() - began
                reply = yield request
                began = time.perf_counter()
        turn.change(step=session.step + 1)
        if turn.learned or session.step == 0:
            self._save(turn.session)
        own += time.perf_counter() - began
        self._own_s, self._steps = self._own_s + own, self._steps + 1
        telemetry = {
            "stage": session.stage,
            "next": turn.session.stage,
            "request": turn.session.requests,
            "events": turn.events,
            "own_ms": round(1000 * own, 3),
        }
        return _Row(action, turn.session, turn.calls, telemetry, turn.stop)

    def _save(self, session: Session) -> None:
        """Keeps the memory of the episode on the disk."""
        digest = hashlib.sha256(session.world.encode()).hexdigest()[:16]
        path = self._given or (self._folder and self._folder / f"{digest}.json")
        if path is not None and session.memory is not None:
            session.memory.save_with(path) if self._given else session.memory.save(path)


def world_of(task: Task, start: Start) -> str:
    """Returns the name of the world that an episode plays in: the same start is the same world."""
    return f"{task.name}, state {start.state.index}, seed {start.seed}"


@dataclass(frozen=True)
class CompanionPolicy(ModelOptions):
    """Takes requests of a player in the chat and does them by programs; see docs/companion.md."""

    prompts: str = option("", "YAML file of the prompts of its roles; empty for Gamut's")
    memory: str = option("", "file of memories of one world, read and kept; empty for a new one")
    limits: Limits = option(Limits, "limits of an episode and of the run")

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Companion:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the game is not played by programs, or the prompts or the key do not fit.
        """
        del seed
        columns = sorted(spec.action_space.spaces)
        if columns != [CODE, KIND]:
            raise ConfigError(
                f"companions act by programs: expected the actions {CODE} and {KIND} (mineflayer "
                f"with bridge.actions=code), got {', '.join(columns)}"
            )
        check_program("")  # its parser is installed
        file = Path(self.prompts).expanduser() if self.prompts else FOLDER / "companion.yaml"
        prompts = load_roles(file, spec, ROLES, VARIABLES)
        roles = RoleClient(self, prompts, self.limits.reparse)
        return Companion(
            Stages(roles, self.limits),
            task,
            self.make_model(),
            memory=Path(self.memory).expanduser() if self.memory else None,
            folder=self._folder.parent / _MEMORY_FOLDER if self._folder else None,
        )
