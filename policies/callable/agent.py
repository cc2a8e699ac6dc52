"""Policies of functions of one game: agents of anyone's, which may ask the model of the run."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policies.callable.context import Clients, Context, Left, Memory, observe
from policies.callable.options import CallableOptions
from policies.callable.running import Run, Runner
from policies.vlm.composing import Dialogue
from policies.vlm.conversing import sampling_fields, with_verdict
from policies.vlm.fallback import Fallback
from policies.vlm.pictures import observation_digest
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
)
from rollout.errors import PolicyUnavailable
from rollout.models.client import ModelClient
from rollout.models.gateway import Gateway, Model, StepCalls, new_key
from rollout.models.grammar import Grammar, Row, UnusableAnswerError, columns_of
from rollout.models.legal import LegalActions
from rollout.models.local import PlaysLocalModel
from rollout.models.observations import MISSION

_MEMORY = "agent"


@dataclass(frozen=True)
class _Episode:
    """An episode between two steps."""

    dialogue: Dialogue
    memory: Memory


@dataclass(frozen=True)
class _RowDecision:
    """The decision for one row; ``episode`` is 0 for a slot without an episode."""

    row: Row
    episode: Any
    calls: Sequence[Call] = ()
    stop: str = ""


@dataclass(frozen=True)
class _Turn:
    """A step of an episode whose function is being called."""

    episode: _Episode
    context: Context
    calls: StepCalls
    run: Run
    row: int


class AgentPolicy(PlaysLocalModel):
    """Asks a function of one game; thread-safe.

    Attributes:
        name: its ``module:function``, for messages.
        calls: most decisions at once.
        close: ends its threads and connections, as its garbage collection does.
        extras: the calls of the model, if there is one.
    """

    def __init__(
        self,
        recipe: CallableOptions,
        function: Callable[..., Any],
        spec: BridgeSpec,
        task: Task,
        *,
        model: Model | None,
    ) -> None:
        self.name, self.calls = recipe.function, recipe.calls
        self.extras: Mapping[str, ColumnSpec] = {} if model is None else {CALLS: CALLS_SPEC}
        self._recipe, self._spec, self._task = recipe, spec, task
        self._model, self._model_name = model, recipe.local.model or recipe.model
        self._gateway: Gateway | None = None
        self._grammar, self._legal = Grammar(spec), LegalActions(spec)
        most = recipe.limits.unusable
        self._fallback = Fallback(recipe.fallback, most, self._grammar, self._legal, spec.name)
        self._clients = Clients()
        self._runner = Runner(self.name, function, self._clients.close_async)
        self._actions, self._schema = self._grammar.description, self._grammar.schema
        self._ends = [self._clients.close, self._runner.close]
        self.close = weakref.finalize(self, _call_all, self._ends)

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns an empty memory, and a key of its own, for each episode."""
        return _column(
            _MEMORY,
            [
                _Episode(Dialogue(seed=s.seed, episode=s.episode), Memory(new_key(), {}))
                for s in starts
            ],
        )

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the function's action for each active row; see ``rollout.api.Policy``.

        Raises:
            Exception: an error of the function.
            ConfigError: the server of the model refuses the first request of the run.
            PolicyUnavailable: the function or the model does not answer in time.
            BudgetExhausted: a limit of the run is reached.
        """
        until = time.monotonic() + self._recipe.timeout_s
        with ExitStack() as stack:
            begun = [
                self._begin(
                    each, observations, row, details[row] if details else {}, explore, stack
                )
                for row, each in enumerate(memory[_MEMORY])
            ]
            rows = [
                self._finish(each, observations, until) if isinstance(each, _Turn) else each
                for each in begun
            ]
        calls = [[call.as_json() for call in each.calls] for each in rows]
        stops = [each.stop for each in rows]
        return Decision(
            columns_of(self._spec.action_space, [each.row for each in rows]),
            _column(_MEMORY, [each.episode for each in rows]),
            {} if self._model is None else _column(CALLS, calls),
            stops if any(stops) else None,
        )

    def _begin(
        self,
        episode: Any,
        observations: Columns,
        row: int,
        details: Details,
        explore: bool,
        stack: ExitStack,
    ) -> _Turn | _RowDecision:
        """Calls the function for a row; returns the decision of an idle one."""
        if not isinstance(episode, _Episode):
            return _RowDecision(self._fallback.idle, episode)
        if episode.memory.values is None:
            raise PolicyUnavailable("the memory of an episode is lost with its inference actor")
        dialogue = episode.dialogue
        most = self._recipe.limits.episode_calls
        left = None if most is None else most - dialogue.calls
        if left is not None and left < 1:
            why = f"the episode has used its {most} calls (limits.episode_calls)"
            return _RowDecision(
                self._fallback.action(dialogue, observations, row), episode, (), why
            )
        seen = observation_digest(observations, row, details).hex()
        calls = StepCalls(
            [dialogue.seed, dialogue.step],
            sampling_fields(self._recipe.sampling, [dialogue.seed, dialogue.step], explore),
            left,
            {"step": dialogue.step, "prompt": "", "seen": seen},
        )
        key, url = episode.memory.key, ""
        stack.callback(calls.close, 0.0)
        if self._model is not None:
            gateway = self._running_gateway(self._model)
            stack.enter_context(gateway.step(key, calls))
            url = gateway.base_url(key)
        context = Context(
            goal=str(details.get(MISSION) or self._task.goal),
            actions=self._actions,
            schema=self._schema,
            legal=self._legal.text(observations, row),
            step=dialogue.step,
            episode=dialogue.episode,
            seed=dialogue.seed,
            explore=explore,
            left=self._left(dialogue, left),
            memory=dict(episode.memory.values),
            problem=dialogue.problem,
            model=self._model_name,
            base_url=url,
            api_key=key if url else "",
            _clients=self._clients,
        )
        run = self._runner.start(observe(self._spec, observations, row, details), context)
        stack.callback(run.cancel)
        return _Turn(episode, context, calls, run, row)

    def _running_gateway(self, model: Model) -> Gateway:
        """Returns the gateway; it begins with the first step, since plans build policies, too."""
        if self._gateway is None:
            gateway = Gateway(model, self._model_name)
            self._ends.append(gateway.close)
            self._gateway = gateway
        return self._gateway

    def _left(self, dialogue: Dialogue, calls: int | None) -> Left:
        """Returns what is left to spend in the episode and in the run."""
        most = self._task.limits.steps
        steps = None if most is None else most - dialogue.step
        if not isinstance(self._model, ModelClient):
            return Left(steps, calls, None)
        spent, (most_calls, _, most_usd) = self._model.spent, self._recipe.limits.of_run
        of_run = most_calls - spent.calls
        least = min(of_run, math.inf if calls is None else calls)
        return Left(
            steps,
            max(0, int(least)) if math.isfinite(least) else None,
            max(0.0, most_usd - spent.usd) if math.isfinite(most_usd) else None,
        )

    def _finish(self, turn: _Turn, observations: Columns, until: float) -> _RowDecision:
        """Waits for the function; returns its decision."""
        dialogue, calls = turn.episode.dialogue, turn.calls
        if not turn.run.wait(until):
            raise PolicyUnavailable(
                f"{self.name} did not decide within {self._recipe.timeout_s:g} s (policy.timeout_s)"
            )
        error = turn.run.result.exception()
        made = calls.close(None if error is None else 0.0)
        if calls.failure is not None:  # also where the function went on without the answer
            raise calls.failure
        if error is not None and not calls.refused:
            raise error
        step = replace(dialogue, calls=dialogue.calls + len(made), step=dialogue.step + 1)
        memory = Memory(turn.episode.memory.key, turn.context.memory)
        try:
            if error is not None:
                raise UnusableAnswerError("empty", calls.refused)
            row = self._parse(turn.run.result.result())
            self._legal.require(row, observations, turn.row)
        except UnusableAnswerError as unusable:
            return self._unusable(unusable, step, memory, made, observations, turn)
        action = self._grammar.write(row)
        step = replace(step, last=action, problem="", unusable=0)
        return _RowDecision(row, _Episode(step, memory), _judged(made, "ok", "", action))

    def _parse(self, answer: Any) -> Row:
        """Returns the action of an answer; None does nothing.

        Raises:
            UnusableAnswerError: it is none.
        """
        if answer is not None:
            return self._grammar.parse(answer)
        if self._grammar.noop is None:
            raise UnusableAnswerError(
                "empty", "expected an action, got None; no action of this game does nothing"
            )
        return self._grammar.noop

    def _unusable(
        self,
        error: UnusableAnswerError,
        step: Dialogue,
        memory: Memory,
        made: Sequence[Call],
        observations: Columns,
        turn: _Turn,
    ) -> _RowDecision:
        after = replace(step, problem=error.problem, unusable=step.unusable + 1)
        row = self._fallback.action(after, observations, turn.row)
        stop = turn.calls.refused or self._fallback.stop_reason(after)
        calls = _judged(made, error.code, error.problem, None)
        return _RowDecision(row, _Episode(after, memory), calls, stop)


def _call_all(ends: Sequence[Callable[[], object]]) -> None:
    for end in ends:
        end()


def _judged(calls: Sequence[Call], code: str, problem: str, action: str | None) -> list[Call]:
    """Returns the calls of a step with its result; the last one has the action."""
    last = len(calls) - 1
    return [
        with_verdict(call, code, problem, {}, action if number == last else None)
        for number, call in enumerate(calls)
    ]


def _column(name: str, values: Sequence[Any]) -> Columns:
    column = np.zeros(len(values), object)
    for row, value in enumerate(values):
        column[row] = value
    return {name: column}
