"""The policy ``vlm``: asks a language or vision-language model for each action."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policies.vlm.answers import Answer
from policies.vlm.composing import (
    MEMORY,
    ComposedMessages,
    Composer,
    Dialogue,
    EpisodeExampleBuilder,
    memory_column,
    new_dialogues,
)
from policies.vlm.conversing import Conversations, Model, sampling_fields, with_verdict
from policies.vlm.fallback import Fallback
from policies.vlm.options import VlmOptions
from policies.vlm.pictures import observation_digest
from policies.vlm.prompt import Prompt, load_prompt
from policies.vlm.reflecting import EpisodeLogs, critique_from, critique_prompt
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
    Trial,
)
from rollout.errors import ConfigError
from rollout.models.chat_api import incomplete_reason
from rollout.models.client import Request
from rollout.models.grammar import Row, UnusableAnswerError, columns_of
from rollout.models.local import PlaysLocalModel


@dataclass(frozen=True)
class _RowInput:
    """The input of a decision for one row."""

    dialogue: Any  # a Dialogue; 0 for a slot without an episode
    observations: Columns
    row: int
    details: Details
    explore: bool


@dataclass(frozen=True)
class _RowDecision:
    """The decision for one row."""

    row: Row
    dialogue: Dialogue
    calls: list[Call]
    stop: str = ""


_Conversation = Generator[Request, Call, _RowDecision]
"""Yields requests, receives their calls, and returns a decision."""


class Vlm(PlaysLocalModel):
    """Asks a model, one conversation per episode; thread-safe.

    Attributes:
        calls: most calls at once.
    """

    extras: Mapping[str, ColumnSpec] = {CALLS: CALLS_SPEC}

    def __init__(
        self,
        recipe: VlmOptions,
        spec: BridgeSpec,
        task: Task,
        prompt: Prompt,
        *,
        model: Model,
        logs: EpisodeLogs | None = None,
    ) -> None:
        self._recipe, self._spec, self._task = recipe, spec, task
        self._model, self._logs = model, logs
        self._critiques: dict[int, str] = {}  # by episode
        self._composer = Composer(recipe, spec, task, prompt)
        self.calls = model.calls
        self._conversations = Conversations(model)
        most = recipe.limits.unusable
        self._fallback = Fallback(
            recipe.fallback, most, self._composer.grammar, self._composer.legal, spec.name
        )

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns an empty dialogue for each episode."""
        space = None if self._composer.library is None else self._task.state_space
        return new_dialogues(starts, space, trials=self._logs is not None)

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the model's action for each active row; see ``rollout.api.Policy``.

        Raises:
            ConfigError: the server refuses the first request of the run.
            PolicyUnavailable: it does not answer in time.
            BudgetExhausted: a limit of the run is reached.
        """
        given = [
            _RowInput(dialogue, observations, row, details[row] if details else {}, explore)
            for row, dialogue in enumerate(memory[MEMORY])
        ]
        decided = self._conversations.run([self._decide(each) for each in given])
        calls = np.zeros(len(decided), object)
        for row, each in enumerate(decided):
            calls[row] = [call.as_json() for call in each.calls]
        stops = [each.stop for each in decided]
        return Decision(
            columns_of(self._spec.action_space, [each.row for each in decided]),
            memory_column([each.dialogue for each in decided]),
            {CALLS: calls},
            stops if any(stops) else None,
        )

    def _decide(self, given: _RowInput) -> _Conversation:
        """Returns the decision for a row; an idle row gets any valid action."""
        if not isinstance(given.dialogue, Dialogue):
            return _RowDecision(self._fallback.idle, given.dialogue, [])
        limits = self._recipe.limits
        dialogue: Dialogue = given.dialogue
        now = observation_digest(given.observations, given.row, given.details)
        same = dialogue.same + 1 if now == dialogue.seen else 0
        dialogue = replace(dialogue, seen=now, same=same)
        why = ""
        if limits.stuck is not None and same >= limits.stuck:
            why = f"nothing changed for {same} steps (limits.stuck)"
        elif limits.episode_calls is not None and dialogue.calls >= limits.episode_calls:
            why = f"the episode has used its {limits.episode_calls} calls (limits.episode_calls)"
        if why:
            row = self._fallback.action(dialogue, given.observations, given.row)
            return _RowDecision(row, dialogue, [], why)
        return (yield from self._ask(replace(given, dialogue=dialogue)))

    def _ask(self, given: _RowInput) -> _Conversation:
        """Asks until an answer is usable or no tries are left; returns the decision."""
        calls: list[Call] = []
        dialogue: Dialogue = given.dialogue
        if self._logs is not None and dialogue.step == 0:
            lessons = yield from self._reflect(given, calls)
            given = replace(given, dialogue=replace(dialogue, lessons=lessons))
            dialogue = given.dialogue
        composed = self._composer.compose(dialogue, given.observations, given.row, given.details)
        answer: Answer | None = None
        problem = ""
        for number in range(self._recipe.limits.reparse + 1):
            call = replace(
                (yield self._request(given, composed, number)),
                step=dialogue.step,
                number=number,
                prompt=self._composer.prompt.digest,
                seen=dialogue.seen.hex(),
            )
            try:
                tools = [(str(n), str(a)) for n, a in call.tools]
                read = self._composer.reader.read(call.answer, tools, call.finish)
                self._composer.legal.require(read.row, given.observations, given.row)
                answer = read
                calls.append(with_verdict(call, "ok", "", dict(answer.fields), answer.action))
                break
            except UnusableAnswerError as error:
                problem = error.problem
                calls.append(with_verdict(call, error.code, problem, {}))
            composed = self._composer.compose_retry(composed, call.answer, problem)
        after = replace(dialogue, calls=dialogue.calls + len(calls), step=dialogue.step + 1)
        self._log(dialogue, composed, calls[-1])
        if answer is not None:
            return _RowDecision(
                answer.row, self._composer.after_answer(after, composed, answer), calls
            )
        after = self._composer.after_failed_answer(after, composed, calls[-1].answer, problem)
        row = self._fallback.action(after, given.observations, given.row)
        return _RowDecision(row, after, calls, self._fallback.stop_reason(after))

    def _reflect(
        self, given: _RowInput, calls: list[Call]
    ) -> Generator[Request, Call, tuple[str, ...]]:
        """Returns the critiques of the earlier episodes; a call that is made here is added.

        A critique is written before the next episode begins. Later episodes find it again, and
        those calls are not theirs.
        """
        assert self._logs is not None
        dialogue: Dialogue = given.dialogue
        found: list[str] = []
        for left, trial in zip(range(len(dialogue.earlier), 0, -1), dialogue.earlier, strict=True):
            latest = left == 1
            critique = None if latest else self._critiques.get(trial.episode)
            if critique is None:
                call = yield self._critique_request(given, trial)
                critique = critique_from(call.answer, self._recipe.reflect.words)
                self._critiques[trial.episode] = critique
                if latest:
                    calls.append(_critique_call(call, critique, self._composer.prompt.digest))
            found.append(critique)
        return tuple(text for text in found if text)

    def _critique_request(self, given: _RowInput, trial: Trial) -> Request:
        """Returns the request for a critique."""
        assert self._logs is not None
        values = self._composer.values(given.dialogue, given.observations, given.row, given.details)
        log, words = self._logs.read(trial.episode), self._recipe.reflect.words
        text = critique_prompt(self._composer.prompt, values, trial, log, words)
        fields = sampling_fields(self._recipe.sampling, [trial.episode], given.explore)
        messages = [{"role": "user", "content": text}]
        return Request(fields, messages, {}, "", ["reflect", trial.episode])

    def _log(self, dialogue: Dialogue, composed: ComposedMessages, call: Call) -> None:
        """Logs a step for a later critique."""
        if self._logs is not None:
            said = call.answer or ", ".join(arguments for _, arguments in call.tools)
            if call.problem:
                said += f" (could not be used: {call.problem})"
            texts = {"told": composed.text, "answered": said}
            self._logs.add(dialogue.episode, dialogue.log, step=dialogue.step, **texts)

    def _request(self, given: _RowInput, composed: ComposedMessages, number: int) -> Request:
        dialogue = given.dialogue
        # Not the seed of the policy, which is another one in each session of an evaluation.
        identity = [dialogue.seed, dialogue.step, number]
        fields = sampling_fields(self._recipe.sampling, identity, given.explore)
        fields |= self._composer.reader.request
        kind = self._composer.pictures.kind
        think = "think" in self._composer.prompt.fields
        return Request(fields, composed.messages, composed.images, kind, identity, think=think)


def _critique_call(call: Call, critique: str, prompt: str) -> Call:
    """Returns the record of a call for a critique."""
    call = replace(call, role="reflect", step=0, number=0, prompt=prompt, seen="")
    code, problem = ("ok", "") if critique else incomplete_reason(call.finish)
    return with_verdict(call, code or "empty", problem, {"critique": critique})


_LOGS_FOLDER = "trials"


@dataclass(frozen=True)
class VlmPolicy(VlmOptions):
    """Asks a language or vision-language model for each action; see docs/vlm.md."""

    @property
    def keeps_files(self) -> bool:
        """True if a run has replies, limits or logs; a local model has only logs."""
        return super().keeps_files or self.trials > 0

    @property
    def trials(self) -> int:
        """Number of earlier episodes shown to it; see ``rollout.api.Remembering``."""
        return self.reflect.episodes

    def example_builder(self, spec: BridgeSpec, task: Task) -> EpisodeExampleBuilder:
        """Returns the builder of training examples; see ``LanguageRecipe``.

        Raises:
            ConfigError: the prompt, the actions, the pictures or other options do not fit.
        """
        given = {"examples.dataset": self.examples.dataset, "reflect.episodes": self.trials}
        for name, value in given.items():
            if value:
                raise ConfigError(f"{name}={value} is for play; leave it out where a model learns")
        return EpisodeExampleBuilder(
            Composer(self, spec, task, load_prompt(self.prompt, spec.tasks))
        )

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Vlm:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the prompt, the key, the actions or the pictures do not fit.
        """
        prompt = load_prompt(self.prompt, spec.tasks)
        if self.trials and not prompt.shows_lessons:
            raise ConfigError(
                f"reflect.episodes={self.trials}: the prompt {self.prompt} does not show the "
                f"variable lessons; take act, think, react or plan, or use it in yours"
            )
        logs = (
            EpisodeLogs(self._folder.parent / _LOGS_FOLDER if self._folder else None)
            if self.trials
            else None
        )
        model = self.make_model(images=bool(self.history.images))
        return Vlm(self, spec, task, prompt, model=model, logs=logs)
