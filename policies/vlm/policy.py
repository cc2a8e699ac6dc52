"""The policy: asks a chat model for each action."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policies.vlm.answers import Answer, Reader
from policies.vlm.dialogue import MEMORY, Dialogue, Turn, begin, column
from policies.vlm.grammar import Grammar, Row, Unusable, columns_of
from policies.vlm.options import Options
from policies.vlm.pictures import MISSION, Pictures, digest_of, values_of
from policies.vlm.prompt import Prompt
from rollout.api import (
    CALLS,
    CALLS_SPEC,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Start,
    Task,
)
from rollout.errors import ConfigError
from rollout.models.asking import Asker, Request


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
    calls: list[dict[str, Any]]
    stop: str = ""


class Vlm:
    """Asks a model, one conversation per episode; thread-safe.

    Attributes:
        calls: most calls at once.
    """

    version = 0
    extras: Mapping[str, ColumnSpec] = {CALLS: CALLS_SPEC}

    def __init__(
        self,
        recipe: Options,
        spec: BridgeSpec,
        task: Task,
        prompt: Prompt,
        *,
        asker: Asker,
    ) -> None:
        self._recipe, self._spec, self._task, self._prompt = recipe, spec, task, prompt
        self._asker = asker
        self.calls = recipe.endpoint.calls
        self._grammar = Grammar(spec)
        docs = {name: each.doc for name, each in prompt.fields.items()}
        self._reader = Reader(recipe.form, self._grammar, docs)
        self._pictures = Pictures(spec, recipe.history, recipe.picture)
        self._threads: ThreadPoolExecutor | None = None
        self._fallback = self._parsed_fallback()

    def _parsed_fallback(self) -> Row | None:
        """The action after an unusable answer; None where it is another one each time."""
        wanted = self._recipe.fallback
        if wanted in ("repeat", "random", "stop"):
            return self._grammar.nothing
        if wanted == "nothing":
            if self._grammar.nothing is None:
                raise ConfigError(
                    f"fallback=nothing: {self._spec.name} has no action that does nothing; choose "
                    f"repeat, random, stop, or an action: {self._grammar.description}"
                )
            return self._grammar.nothing
        try:
            return self._grammar.parse(wanted)
        except Unusable as error:
            raise ConfigError(
                f"fallback={wanted!r}: expected nothing, repeat, random, stop or an action; "
                f"{error.problem}"
            ) from error

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns an empty dialogue for each episode."""
        return begin(starts)

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
        if len(asked) == 1:
            decided = [self._decide(asked[0])]
        else:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.calls, "vlm")
            decided = list(self._threads.map(self._decide, asked))
        calls = np.zeros(len(decided), object)
        for row, each in enumerate(decided):
            calls[row] = each.calls
        stops = [each.stop for each in decided]
        return Decision(
            columns_of(self._spec.action_space, [each.row for each in decided]),
            column([each.dialogue for each in decided]),
            {CALLS: calls},
            stops if any(stops) else None,
        )

    def _decide(self, asked: _Asked) -> _Decided:
        """Decides a row; one without an episode does anything."""
        if not isinstance(asked.dialogue, Dialogue):
            row = self._fallback or self._grammar.random(np.random.default_rng(0))
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
        return self._ask(replace(asked, dialogue=dialogue))

    def _ask(self, asked: _Asked) -> _Decided:
        """Asks until there is a usable answer, or the tries are used up."""
        limits = self._recipe.limits
        dialogue: Dialogue = asked.dialogue
        values = self._values(asked)
        text = self._prompt.render("observation", **values)
        picture = b""
        if self._pictures:
            picture = self._pictures.encode(asked.observations[self._pictures.column][asked.row])
        messages, images = self._messages(dialogue, values, text, picture)
        calls: list[dict[str, Any]] = []
        answer: Answer | None = None
        problem = ""
        for number in range(limits.reparse + 1):
            call = self._call(asked, messages, images, number)
            calls.append(call)
            try:
                tools = [(str(n), str(a)) for n, a in call["tools"]]
                answer = self._reader.read(call["answer"], tools, call["finish"])
                call |= {"code": "ok", "usable": True, "action": answer.action}
                call |= {"fields": dict(answer.fields), "problem": ""}
                break
            except Unusable as error:
                problem = error.problem
                call |= {"code": error.code, "usable": False, "action": None, "fields": {}}
                call |= {"problem": problem}
            again = self._prompt.render("unusable", **{**values, "problem": problem})
            said = {"role": "assistant", "content": call["answer"] or "(nothing)"}
            messages = [*messages, said, {"role": "user", "content": again}]
        after = replace(dialogue, calls=dialogue.calls + len(calls), step=dialogue.step + 1)
        if answer is None:
            return self._unusable(after, text, picture, calls, problem)
        return _Decided(answer.row, self._answered(after, text, picture, answer), calls)

    def _values(self, asked: _Asked) -> dict[str, Any]:
        dialogue, details = asked.dialogue, asked.details
        return {
            "task": self._task.name,
            "goal": details.get(MISSION) or self._task.goal,
            "hints": self._task.metadata,
            "actions": self._grammar.description,
            "form": self._reader.instruction,
            "step": dialogue.step,
            "details": details,
            "kept": dialogue.kept,
            "problem": dialogue.problem,
            **values_of(self._spec, asked.observations, asked.row, details),
        }

    def _messages(
        self, dialogue: Dialogue, values: Mapping[str, Any], text: str, picture: bytes
    ) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
        """Returns the messages, in which pictures are digests, and the pictures."""
        images: dict[str, bytes] = {}

        def said(content: str, image: bytes) -> dict[str, Any]:
            if not image:
                return {"role": "user", "content": content}
            digest = hashlib.sha256(image).hexdigest()[:32]
            images[digest] = image
            parts = [{"type": "image", "digest": digest}, {"type": "text", "text": content}]
            return {"role": "user", "content": parts}

        history = self._recipe.history
        turns = dialogue.turns[-history.texts :] if history.texts else ()
        shown = max(0, history.images - 1)
        messages = [{"role": "system", "content": self._prompt.render("system", **values)}]
        for number, turn in enumerate(turns):
            recent = len(turns) - number <= shown
            messages.append(said(turn.asked, turn.picture if recent else b""))
            messages.append({"role": "assistant", "content": turn.answered})
        messages.append(said(text, picture))
        return messages, images

    def _call(
        self,
        asked: _Asked,
        messages: list[dict[str, Any]],
        images: Mapping[str, bytes],
        number: int,
    ) -> dict[str, Any]:
        """Makes a call, or finds its reply of an earlier session; returns its record."""
        dialogue, sampling = asked.dialogue, self._recipe.sampling
        fields: dict[str, Any] = {
            "temperature": sampling.temperature if asked.explore else 0.0,
            "max_tokens": sampling.max_tokens,
            **self._reader.request,
        }
        if sampling.seed:
            fields["seed"] = _digest([dialogue.seed, dialogue.step, number], 4)
        # Not the seed of the policy, which is another one in each session of an evaluation.
        identity = [dialogue.seed, dialogue.step, number]
        request = Request(fields, messages, images, self._pictures.kind, identity)
        about = {"step": dialogue.step, "try": number, "prompt": self._prompt.digest}
        return {**self._asker.ask(request), **about}

    def _answered(self, dialogue: Dialogue, text: str, picture: bytes, answer: Answer) -> Dialogue:
        kept, shown = dict(dialogue.kept), {}
        for name, about in self._prompt.fields.items():
            if name in answer.fields and about.keep == "latest":
                kept[name] = answer.fields[name][: about.chars]
            if name in answer.fields and about.keep == "history":
                shown[name] = answer.fields[name][: about.chars]
        turn = Turn(text, picture, self._reader.write(shown, answer.action))
        return replace(
            dialogue,
            turns=self._last(dialogue, turn),
            kept=kept,
            last=answer.action,
            problem="",
            unusable=0,
        )

    def _last(self, dialogue: Dialogue, turn: Turn) -> tuple[Turn, ...]:
        history = self._recipe.history
        turns = (*dialogue.turns, turn)[-history.texts :] if history.texts else ()
        without = max(0, len(turns) - max(0, history.images - 1))
        return (*(replace(t, picture=b"") for t in turns[:without]), *turns[without:])

    def _unusable(
        self,
        dialogue: Dialogue,
        text: str,
        picture: bytes,
        calls: list[dict[str, Any]],
        problem: str,
    ) -> _Decided:
        """Decides without a usable answer; the model sees no action of it in its history."""
        turn = Turn(text, picture, calls[-1]["answer"] or "(nothing)")
        after = replace(
            dialogue,
            turns=self._last(dialogue, turn),
            problem=problem,
            unusable=dialogue.unusable + 1,
        )
        most, stop = self._recipe.limits.unusable, ""
        if self._recipe.fallback == "stop":
            stop = f"an answer could not be used: {problem}"
        elif most is not None and after.unusable >= most:
            stop = f"{most} steps in a row without a usable answer (limits.unusable): {problem}"
        return _Decided(self._substitute(dialogue), after, calls, stop)

    def _substitute(self, dialogue: Dialogue) -> Row:
        """The action where there is no answer of the model."""
        if self._recipe.fallback == "repeat" and dialogue.last:
            return self._grammar.parse(dialogue.last)
        if self._recipe.fallback == "random" or self._fallback is None:
            rng = np.random.default_rng([dialogue.seed, dialogue.step])
            return self._grammar.random(rng)
        return self._fallback


def _digest(values: Sequence[int], size: int) -> int:
    found = hashlib.blake2b(json.dumps(list(values)).encode(), digest_size=size).digest()
    return int.from_bytes(found, "big") >> 1
