"""What a model is told at each step: the messages, and how its answers enter them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from policies.vlm.answers import Answer, Reader
from policies.vlm.dialogue import Dialogue, Turn
from policies.vlm.grammar import Grammar
from policies.vlm.options import Options
from policies.vlm.pictures import MISSION, Pictures, values_of
from policies.vlm.prompt import Prompt
from rollout.api import BridgeSpec, Columns, Details, Task


@dataclass(frozen=True)
class Composed:
    """What a model is told about one observation.

    Attributes:
        messages: all messages; pictures are digests.
        images: files of the pictures, by digest.
        text: the last message.
        picture: file of its picture; empty for none.
        values: the variables of the templates.
    """

    messages: list[dict[str, Any]]
    images: dict[str, bytes]
    text: str
    picture: bytes
    values: Mapping[str, Any]


class Composer:
    """Composes the messages of an episode.

    Attributes:
        grammar: the actions as text.
        reader: reads and writes answers.
        pictures: encodes the observation that is sent as a picture.
        prompt: the prompt.

    Raises:
        ConfigError: the actions or the pictures do not fit the options.
    """

    def __init__(self, options: Options, spec: BridgeSpec, task: Task, prompt: Prompt) -> None:
        self._history, self._spec, self._task = options.history, spec, task
        self.prompt, self.grammar = prompt, Grammar(spec)
        docs = {name: each.doc for name, each in prompt.fields.items()}
        self.reader = Reader(options.form, self.grammar, docs)
        self.pictures = Pictures(spec, options.history, options.picture)

    def compose(
        self, dialogue: Dialogue, observations: Columns, row: int, details: Details
    ) -> Composed:
        """Returns what the model is told about a row of observations."""
        values = self._values(dialogue, observations, row, details)
        text = self.prompt.render("observation", **values)
        picture = b""
        if self.pictures:
            picture = self.pictures.encode(observations[self.pictures.column][row])
        messages, images = self._messages(dialogue, values, text, picture)
        return Composed(messages, images, text, picture, values)

    def again(self, composed: Composed, answer: str, problem: str) -> Composed:
        """Returns the messages that ask again after an unusable answer."""
        text = self.prompt.render("unusable", **{**composed.values, "problem": problem})
        said = {"role": "assistant", "content": answer or "(nothing)"}
        messages = [*composed.messages, said, {"role": "user", "content": text}]
        return replace(composed, messages=messages)

    def answered(self, dialogue: Dialogue, composed: Composed, answer: Answer) -> Dialogue:
        """Returns the dialogue after a usable answer."""
        kept, shown = dict(dialogue.kept), {}
        for name, about in self.prompt.fields.items():
            if name in answer.fields and about.keep == "latest":
                kept[name] = answer.fields[name][: about.chars]
            if name in answer.fields and about.keep == "history":
                shown[name] = answer.fields[name][: about.chars]
        turn = Turn(composed.text, composed.picture, self.reader.write(shown, answer.action))
        return replace(
            dialogue,
            turns=self._last(dialogue, turn),
            kept=kept,
            last=answer.action,
            problem="",
            unusable=0,
        )

    def unanswered(
        self, dialogue: Dialogue, composed: Composed, answer: str, problem: str
    ) -> Dialogue:
        """Returns the dialogue after a step without a usable answer; it shows no action of it."""
        turn = Turn(composed.text, composed.picture, answer or "(nothing)")
        return replace(
            dialogue,
            turns=self._last(dialogue, turn),
            problem=problem,
            unusable=dialogue.unusable + 1,
        )

    def _values(
        self, dialogue: Dialogue, observations: Columns, row: int, details: Details
    ) -> dict[str, Any]:
        return {
            "task": self._task.name,
            "goal": details.get(MISSION) or self._task.goal,
            "hints": self._task.metadata,
            "actions": self.grammar.description,
            "form": self.reader.instruction,
            "step": dialogue.step,
            "details": details,
            "kept": dialogue.kept,
            "problem": dialogue.problem,
            **values_of(self._spec, observations, row, details),
        }

    def _messages(
        self, dialogue: Dialogue, values: Mapping[str, Any], text: str, picture: bytes
    ) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
        """Returns the messages, in which pictures are digests, and the pictures."""
        images: dict[str, bytes] = {}

        def said(content: str, image: bytes) -> dict[str, Any]:
            if not image:
                return {"role": "user", "content": content}
            digest = digest_of_picture(image)
            images[digest] = image
            parts = [{"type": "image", "digest": digest}, {"type": "text", "text": content}]
            return {"role": "user", "content": parts}

        history = self._history
        turns = dialogue.turns[-history.texts :] if history.texts else ()
        shown = max(0, history.images - 1)
        messages = [{"role": "system", "content": self.prompt.render("system", **values)}]
        for number, turn in enumerate(turns):
            recent = len(turns) - number <= shown
            messages.append(said(turn.asked, turn.picture if recent else b""))
            messages.append({"role": "assistant", "content": turn.answered})
        messages.append(said(text, picture))
        return messages, images

    def _last(self, dialogue: Dialogue, turn: Turn) -> tuple[Turn, ...]:
        history = self._history
        turns = (*dialogue.turns, turn)[-history.texts :] if history.texts else ()
        without = max(0, len(turns) - max(0, history.images - 1))
        return (*(replace(t, picture=b"") for t in turns[:without]), *turns[without:])


def digest_of_picture(image: bytes) -> str:
    """Returns what messages call the file of a picture."""
    return hashlib.sha256(image).hexdigest()[:32]
