"""The policy ``alex``: plans, acts by programs, criticises itself and remembers."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policies.alex.mind import (
    RESUME,
    ROLES,
    VARIABLES,
    Action,
    AlexLimits,
    Mind,
    Retrieve,
    Thinking,
    Turn,
)
from policies.companion.asking import RoleClient, load_roles
from policies.companion.harness import CODE, KIND, TELEMETRY, TELEMETRY_SPEC
from policies.vlm.conversing import Conversations, Model
from policies.vlm.options import History, ModelOptions, Picture
from policies.vlm.pictures import Pictures
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

_PROMPTS = Path(__file__).with_name("prompts") / "alex.yaml"
_MIND = "mind"


@dataclass(frozen=True)
class _Row:
    action: Action
    mind: Any
    calls: list[Call]
    telemetry: list[dict[str, Any]]
    stop: str = ""


class Alex:
    """Plays agents, one mind per episode; thread-safe.

    Attributes:
        calls: most calls at once.
    """

    extras: Mapping[str, ColumnSpec] = {CALLS: CALLS_SPEC, TELEMETRY: TELEMETRY_SPEC}

    def __init__(self, thinking: Thinking, pictures: Pictures, model: Model) -> None:
        self._thinking, self._pictures, self._model = thinking, pictures, model
        self._conversations = Conversations(model)
        self.calls = model.calls

    @property
    def version(self) -> int:
        """Version of the weights of a local model; 0 for models elsewhere."""
        return self._model.version if isinstance(self._model, LocalModel) else 0

    def figures(self) -> Mapping[str, float]:
        """Returns calls in flight, what was spent and the limits; see ``rollout.api.Reporting``."""
        return self._model.figures()

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns a new mind for each episode."""
        return {_MIND: _objects([Mind(seed=start.seed) for start in starts])}

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
        rows = self._conversations.run(
            [
                self._decide(mind, details[row] if details else {}, observations, row, explore)
                for row, mind in enumerate(memory[_MIND])
            ]
        )
        calls = [[call.as_json() for call in row.calls] for row in rows]
        stops = [row.stop for row in rows]
        return Decision(
            {
                KIND: np.array([row.action[0] for row in rows], np.int64),
                CODE: _objects([row.action[1] for row in rows]),
            },
            {_MIND: _objects([row.mind for row in rows])},
            {CALLS: _objects(calls), TELEMETRY: _objects([row.telemetry for row in rows])},
            stops if any(stops) else None,
        )

    def _decide(
        self, mind: Any, details: Details, observations: Columns, row: int, explore: bool
    ) -> Generator[Request, Call, _Row]:
        """Returns the decision for a row; an idle row waits."""
        if not isinstance(mind, Mind):
            return _Row((RESUME, ""), mind, [], [])
        shown = {}
        for caption, column in (
            ("What you see:", self._pictures.column),
            ("A picture of the goal:", self._pictures.goal),
        ):
            if column:
                shown[caption] = self._pictures.encode(column, observations[column][row])
        turn = Turn(mind, details, shown, explore)
        action = yield from self._thinking.step(turn)
        turn.change(step=mind.step + 1, calls=mind.calls + len(turn.calls))
        stage = {"stage": turn.calls[-1].role if turn.calls else "run", "events": turn.events}
        return _Row(action, turn.mind, turn.calls, [stage], turn.stop)


def _objects(values: Sequence[Any]) -> Any:
    column = np.zeros(len(values), object)
    for row, value in enumerate(values):
        column[row] = value
    return column


@dataclass(frozen=True)
class AlexPolicy(ModelOptions):
    """MineLand's agent Alex: memory, long and short plans, programs, a critic; see docs/alex.md."""

    prompts: str = option("", "YAML file of the prompts of its roles; empty for Gamut's")
    vision: bool = option(True, "whether the model sees pictures; without, the critic reads only")
    picture: Picture = option(Picture, "the observation that is sent as a picture")
    multitask: bool = option(True, "whether special events interrupt the plan")
    retrieve: Retrieve = option(Retrieve, "how many memories it plans with")
    action_tokens: int = option(1536, "tokens of an answer that is a program; paper 1536", ge=1)
    limits: AlexLimits = option(AlexLimits, "limits of Alex, and of the run")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vision and not self.local.model and not self.endpoint.images:
            raise ConfigError(
                "vision=true: endpoint.images=false says that the model takes no pictures; set "
                "vision=false"
            )

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Alex:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the game is not played by programs, or the prompts, the pictures or the key
                do not fit.
        """
        del seed
        columns = sorted(spec.action_space.spaces)
        if columns != [CODE, KIND]:
            raise ConfigError(
                f"alex acts by programs: expected the actions {CODE} and {KIND} (mineflayer with "
                f"bridge.actions=code), got {', '.join(columns)}"
            )
        pictures = Pictures(spec, History(images=int(self.vision)), self.picture)
        file = Path(self.prompts).expanduser() if self.prompts else _PROMPTS
        thinking = Thinking(
            RoleClient(self, load_roles(file, spec, ROLES, VARIABLES), self.limits.reparse),
            task,
            retrieve=self.retrieve,
            limits=self.limits,
            multitask=self.multitask,
            tokens=self.action_tokens,
            kind=pictures.kind,
        )
        return Alex(thinking, pictures, self.make_model(images=self.vision))
