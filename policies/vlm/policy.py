"""The policy ``vlm``: asks a language or vision-language model for each action."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from policies.vlm.answers import Answer
from policies.vlm.composing import (
    MEMORY,
    Composed,
    Composer,
    Dialogue,
    EpisodeTeacher,
    begin,
    column,
)
from policies.vlm.grammar import Row, Unusable, columns_of
from policies.vlm.options import VlmOptions
from policies.vlm.pictures import digest_of
from policies.vlm.prompt import Prompt, load_prompt
from policies.vlm.reflecting import Logs, critique_of, question
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
from rollout.models.chat_api import incomplete
from rollout.models.client import Asker, Request
from rollout.models.local import LocalModel

Models: TypeAlias = Asker | LocalModel
_T = TypeVar("_T")


@dataclass(frozen=True)
class _Asked:
    """One row of a question."""

    dialogue: Any  # a Dialogue; 0 for a slot without an episode
    observations: Columns
    row: int
    details: Details
    explore: bool


@dataclass(frozen=True)
class _Decided:
    """One row of a decision."""

    row: Row
    dialogue: Dialogue
    calls: list[Call]
    stop: str = ""


_Talk = Generator[Request, Call, _Decided]
"""Makes requests, gets their calls, and returns a decision."""


def together(
    talks: Sequence[Generator[Request, Call, _T]],
    answer: Callable[[list[Request]], Sequence[Call]],
) -> list[_T]:
    """Carries out talks in step: all their next requests are answered by one call.

    Returns:
        what each talk returns.
    """
    found: dict[int, _T] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(talks)))
    while replies:
        requests: dict[int, Request] = {}
        for number, reply in replies.items():
            try:
                requests[number] = talks[number].send(reply)
            except StopIteration as end:
                found[number] = end.value
        answers = answer(list(requests.values())) if requests else ()
        replies = dict(zip(requests, answers, strict=True))
    return [found[number] for number in range(len(talks))]


class Vlm:
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
        asker: Models,
        logs: Logs | None = None,
    ) -> None:
        self._recipe, self._spec, self._task = recipe, spec, task
        self._asker, self._logs = asker, logs
        self._critiques: dict[int, str] = {}  # by episode
        self._composer = Composer(recipe, spec, task, prompt)
        self.calls = asker.calls
        self._threads: ThreadPoolExecutor | None = None
        self._fallback = self._parsed_fallback()

    @property
    def version(self) -> int:
        """Version of the weights of a local model; 0 for models elsewhere."""
        return self._asker.version if isinstance(self._asker, LocalModel) else 0

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Replaces the weights that a training changes; see ``rollout.api.Trainable``.

        Raises:
            ConfigError: the model is not a local one, or the weights belong to another.
        """
        if not isinstance(self._asker, LocalModel):
            raise ConfigError("a model at an endpoint takes no weights; name one in local.model")
        self._asker.load(weights, version)

    def _parsed_fallback(self) -> Row | None:
        """The action after an unusable answer; None where it is another one each time."""
        wanted = self._recipe.fallback
        if wanted in ("repeat", "random", "stop"):
            return self._composer.grammar.nothing
        if wanted == "nothing":
            if self._composer.grammar.nothing is None:
                raise ConfigError(
                    f"fallback=nothing: {self._spec.name} has no action that does nothing; choose "
                    f"repeat, random, stop, or an action"
                )
            return self._composer.grammar.nothing
        try:
            return self._composer.grammar.parse(wanted)
        except Unusable as error:
            raise ConfigError(
                f"fallback={wanted!r}: expected nothing, repeat, random, stop or an action; "
                f"{error.problem}"
            ) from error

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns an empty dialogue for each episode."""
        space = None if self._composer.library is None else self._task.state_space
        return begin(starts, space, trials=self._logs is not None)

    def figures(self) -> Mapping[str, float]:
        """Returns calls in flight, what was spent and the limits; see ``rollout.api.Reporting``."""
        return self._asker.figures()

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Asks the model for each row that plays; see ``rollout.api.Policy``.

        Raises:
            ConfigError: the server refuses the first request of the run.
            PolicyUnavailable: it does not answer in time.
            BudgetExhausted: a limit of the run is reached.
        """
        asked = [
            _Asked(dialogue, observations, row, details[row] if details else {}, explore)
            for row, dialogue in enumerate(memory[MEMORY])
        ]
        decided = self._carried_out([self._decide(each) for each in asked])
        calls = np.zeros(len(decided), object)
        for row, each in enumerate(decided):
            calls[row] = [call.as_json() for call in each.calls]
        stops = [each.stop for each in decided]
        return Decision(
            columns_of(self._spec.action_space, [each.row for each in decided]),
            column([each.dialogue for each in decided]),
            {CALLS: calls},
            stops if any(stops) else None,
        )

    def _carried_out(self, talks: Sequence[_Talk]) -> list[_Decided]:
        """Answers the requests of all rows: together for a local model, else at the same time."""
        if isinstance(self._asker, LocalModel):
            return together(talks, self._asker.answer)
        ask = self._asker.ask
        if len(talks) == 1:
            return together(talks, lambda requests: [ask(requests[0])])
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.calls, "vlm")
        alone = self._threads.map(lambda t: together([t], lambda r: [ask(r[0])])[0], talks)
        return list(alone)

    def _decide(self, asked: _Asked) -> _Talk:
        """Decides a row; one without an episode does anything."""
        if not isinstance(asked.dialogue, Dialogue):
            row = self._fallback or self._composer.grammar.random(np.random.default_rng(0))
            return _Decided(row, asked.dialogue, [])
        limits = self._recipe.limits
        dialogue: Dialogue = asked.dialogue
        now = digest_of(asked.observations, asked.row, asked.details)
        same = dialogue.same + 1 if now == dialogue.seen else 0
        dialogue = replace(dialogue, seen=now, same=same)
        if limits.stuck is not None and same >= limits.stuck:
            why = f"nothing changed for {same} steps (limits.stuck)"
            return _Decided(self._substitute(dialogue), dialogue, [], why)
        if limits.episode_calls is not None and dialogue.calls >= limits.episode_calls:
            why = f"the episode has used its {limits.episode_calls} calls (limits.episode_calls)"
            return _Decided(self._substitute(dialogue), dialogue, [], why)
        return (yield from self._ask(replace(asked, dialogue=dialogue)))

    def _ask(self, asked: _Asked) -> _Talk:
        """Asks until there is a usable answer, or the tries are used up."""
        calls: list[Call] = []
        dialogue: Dialogue = asked.dialogue
        if self._logs is not None and dialogue.step == 0:
            lessons = yield from self._reflect(asked, calls)
            asked = replace(asked, dialogue=replace(dialogue, lessons=lessons))
            dialogue = asked.dialogue
        composed = self._composer.compose(dialogue, asked.observations, asked.row, asked.details)
        answer: Answer | None = None
        problem = ""
        for number in range(self._recipe.limits.reparse + 1):
            call = replace(
                (yield self._request(asked, composed, number)),
                step=dialogue.step,
                number=number,
                prompt=self._composer.prompt.digest,
                seen=dialogue.seen.hex(),
            )
            try:
                tools = [(str(n), str(a)) for n, a in call.tools]
                answer = self._composer.reader.read(call.answer, tools, call.finish)
                calls.append(_judged(call, "ok", "", dict(answer.fields), answer.action))
                break
            except Unusable as error:
                problem = error.problem
                calls.append(_judged(call, error.code, problem, {}))
            composed = self._composer.again(composed, call.answer, problem)
        after = replace(dialogue, calls=dialogue.calls + len(calls), step=dialogue.step + 1)
        self._log(dialogue, composed, calls[-1])
        if answer is not None:
            return _Decided(answer.row, self._composer.answered(after, composed, answer), calls)
        after = self._composer.unanswered(after, composed, calls[-1].answer, problem)
        most, stop = self._recipe.limits.unusable, ""
        if self._recipe.fallback == "stop":
            stop = f"an answer could not be used: {problem}"
        elif most is not None and after.unusable >= most:
            stop = f"{most} steps in a row without a usable answer (limits.unusable): {problem}"
        return _Decided(self._substitute(after), after, calls, stop)

    def _reflect(
        self, asked: _Asked, calls: list[Call]
    ) -> Generator[Request, Call, tuple[str, ...]]:
        """Returns the critiques of the earlier episodes; a call that is made here is added.

        A critique is written before the next episode begins. Later episodes find it again, and
        those calls are not theirs.
        """
        assert self._logs is not None
        dialogue: Dialogue = asked.dialogue
        found: list[str] = []
        for left, trial in zip(range(len(dialogue.earlier), 0, -1), dialogue.earlier, strict=True):
            latest = left == 1
            critique = None if latest else self._critiques.get(trial.episode)
            if critique is None:
                call = yield self._about(asked, trial)
                critique = critique_of(call.answer, self._recipe.reflect.words)
                self._critiques[trial.episode] = critique
                if latest:
                    calls.append(_as_critique(call, critique, self._composer.prompt.digest))
            found.append(critique)
        return tuple(text for text in found if text)

    def _about(self, asked: _Asked, trial: Trial) -> Request:
        """The request for a critique."""
        assert self._logs is not None
        values = self._composer.values(asked.dialogue, asked.observations, asked.row, asked.details)
        log, words = self._logs.read(trial.episode), self._recipe.reflect.words
        text = question(self._composer.prompt, values, trial, log, words)
        fields = self._sampled(asked, [trial.episode])
        messages = [{"role": "user", "content": text}]
        return Request(fields, messages, {}, "", ["reflect", trial.episode])

    def _log(self, dialogue: Dialogue, composed: Composed, call: Call) -> None:
        """Notes a step for a critique."""
        if self._logs is not None:
            said = call.answer or ", ".join(arguments for _, arguments in call.tools)
            if call.problem:
                said += f" (could not be used: {call.problem})"
            texts = {"told": composed.text, "answered": said}
            self._logs.add(dialogue.episode, dialogue.log, step=dialogue.step, **texts)

    def _request(self, asked: _Asked, composed: Composed, number: int) -> Request:
        dialogue = asked.dialogue
        # Not the seed of the policy, which is another one in each session of an evaluation.
        identity = [dialogue.seed, dialogue.step, number]
        fields = {**self._sampled(asked, identity), **self._composer.reader.request}
        kind = self._composer.pictures.kind
        think = "think" in self._composer.prompt.fields
        return Request(fields, composed.messages, composed.images, kind, identity, think=think)

    def _sampled(self, asked: _Asked, identity: Sequence[int]) -> dict[str, Any]:
        """Fields of a request that say how its answer is drawn."""
        sampling = self._recipe.sampling
        temperature = sampling.temperature if asked.explore else 0.0
        fields: dict[str, Any] = {"temperature": temperature, "max_tokens": sampling.max_tokens}
        if sampling.seed:
            fields["seed"] = _digest(identity, 4)
        return fields

    def _substitute(self, dialogue: Dialogue) -> Row:
        """The action where there is no answer of the model."""
        if self._recipe.fallback == "repeat" and dialogue.last:
            return self._composer.grammar.parse(dialogue.last)
        if self._recipe.fallback == "random" or self._fallback is None:
            rng = np.random.default_rng([dialogue.seed, dialogue.step])
            return self._composer.grammar.random(rng)
        return self._fallback


def _judged(
    call: Call, code: str, problem: str, fields: Mapping[str, str], action: str | None = None
) -> Call:
    """A call with what was made of its answer."""
    usable = code == "ok"
    return replace(call, code=code, usable=usable, action=action, fields=fields, problem=problem)


def _as_critique(call: Call, critique: str, prompt: str) -> Call:
    """A call that asked for a critique."""
    call = replace(call, role="reflect", step=0, number=0, prompt=prompt, seen="")
    code, problem = ("ok", "") if critique else incomplete(call.finish)
    return _judged(call, code or "empty", problem, {"critique": critique})


def _digest(values: Sequence[int], size: int) -> int:
    found = hashlib.blake2b(json.dumps(list(values)).encode(), digest_size=size).digest()
    return int.from_bytes(found, "big") >> 1


_FOLDER, _LOGS = "replies", "trials"


@dataclass(frozen=True)
class VlmPolicy(VlmOptions):
    """Asks a language or vision-language model for each action; see docs/vlm.md.

    All calls of a run are made by one process, so that its limits hold exactly and its replies are
    kept: a call that was paid is not paid again when the run is resumed.
    """

    _folder: Path | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def keeps_files(self) -> bool:
        """Whether it has limits, replies or logs of a run; a local model has logs at most."""
        return not self.local.model or self.trials > 0

    @property
    def trials(self) -> int:
        """Of how many earlier episodes it is told; see ``rollout.api.Remembering``."""
        return self.reflect.episodes

    @property
    def calls(self) -> int:
        """Most calls at once; see ``rollout.api.Concurrent``. A local model decides in batches."""
        return 1 if self.local.model else self.endpoint.calls

    def in_run(self, folder: Path) -> VlmPolicy:
        """Returns the recipe that keeps its replies in the folder of the run."""
        found = replace(self)
        object.__setattr__(found, "_folder", folder / _FOLDER)
        return found

    def teacher(self, spec: BridgeSpec, task: Task) -> EpisodeTeacher:
        """Returns what turns recorded steps into lessons; see ``LanguageRecipe``.

        Raises:
            ConfigError: the prompt, the actions, the pictures or other options do not fit.
        """
        given = {"examples.dataset": self.examples.dataset, "reflect.episodes": self.trials}
        for name, value in given.items():
            if value:
                raise ConfigError(f"{name}={value} is for play; leave it out where a model learns")
        return EpisodeTeacher(Composer(self, spec, task, load_prompt(self.prompt, spec.tasks)))

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
        logs = Logs(self._folder.parent / _LOGS if self._folder else None) if self.trials else None
        if self.local.model:
            model = LocalModel(self.local, images=bool(self.history.images))
            return Vlm(self, spec, task, prompt, asker=model, logs=logs)
        folder = Path(self.replies).expanduser() if self.replies else self._folder
        asker = Asker(
            self.endpoint,
            self.model,
            limits=self.limits,
            prices=self.prices,
            replies=folder,
            replay=self.replay,
        )
        return Vlm(self, spec, task, prompt, asker=asker, logs=logs)
