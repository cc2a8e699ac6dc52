"""Messages to the model at each step, and the dialogue, the memory of an episode."""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from policies.vlm.answers import Answer, Reader
from policies.vlm.grammar import Grammar
from policies.vlm.options import VlmOptions
from policies.vlm.pictures import MISSION, Pictures, shows, values_of
from policies.vlm.prompt import Prompt
from rollout.api import Array, BridgeSpec, Columns, Details, Start, StateSpace, Task, Trial
from rollout.errors import ConfigError
from rollout.models.examples import Lesson, Library, Recorded

MEMORY = "dialogue"


@dataclass(frozen=True)
class Turn:
    """One earlier step: the message about its observation, its picture, and the answer."""

    asked: str
    picture: bytes
    answered: str


@dataclass(frozen=True)
class Dialogue:
    """The memory of one episode.

    Attributes:
        seed: of the episode.
        state: index of the state it began in; None where no examples are chosen by it.
        step: number of the next step.
        turns: the last turns, oldest first.
        kept: fields of answers that are kept, by name.
        last: the last action that was played, as text.
        problem: why the last answer could not be used; empty if it could.
        unusable: steps in a row without a usable answer.
        same: steps in a row after which nothing had changed.
        seen: digest of the last observation.
        calls: number of calls so far.
        episode: its number.
        log: marks the lines of this attempt in the log of the episode.
        earlier: how earlier episodes from the same state ended, oldest first.
        lessons: what the model wrote about them.
    """

    seed: int = 0
    state: int | None = None
    step: int = 0
    turns: tuple[Turn, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    last: str = ""
    problem: str = ""
    unusable: int = 0
    same: int = 0
    seen: bytes = b""
    calls: int = 0
    episode: int = 0
    log: str = ""
    earlier: tuple[Trial, ...] = ()
    lessons: tuple[str, ...] = ()


def begin(starts: Sequence[Start], space: StateSpace | None, *, trials: bool) -> Columns:
    """Returns the memory of new episodes, a column of objects.

    Args:
        starts: how they begin.
        space: numbers their states; None for states without a number.
        trials: whether they know of earlier episodes and have logs.
    """
    found = []
    for start in starts:
        state = None if space is None else space.index(start.state.values)
        dialogue = Dialogue(seed=start.seed, state=state)
        if trials:
            dialogue = replace(
                dialogue, episode=start.episode, log=uuid.uuid4().hex, earlier=start.earlier
            )
        found.append(dialogue)
    return column(found)


def column(dialogues: Sequence[Any]) -> Columns:
    """Returns the memory with one dialogue, or 0 for no episode, per row."""
    rows: Array = np.zeros(len(dialogues), object)
    for number, dialogue in enumerate(dialogues):
        rows[number] = dialogue
    return {MEMORY: rows}


_STATES = 256  # states whose examples are kept ready


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
        library: recorded episodes that are shown as examples; None for none.

    Raises:
        ConfigError: the actions or the pictures do not fit the options.
    """

    def __init__(self, options: VlmOptions, spec: BridgeSpec, task: Task, prompt: Prompt) -> None:
        self._history, self._spec, self._task = options.history, spec, task
        self.prompt, self.grammar = prompt, Grammar(spec)
        docs = {name: each.doc for name, each in prompt.fields.items()}
        self.reader = Reader(options.form, self.grammar, docs)
        self.pictures = Pictures(spec, options.history, options.picture)
        if not self.pictures and not shows(spec, prompt):
            raise ConfigError(
                f"prompt={options.prompt}: it would show nothing that {spec.name} observes; send a "
                f"picture (history.images=1, with bridge.render=true where a game of Gymnasium can "
                f"be drawn), or use text, observation or details in a prompt of yours"
            )
        chosen = options.examples
        self.library = Library(chosen, spec, task) if chosen.dataset else None
        self._examples = functools.lru_cache(_STATES)(self._examples_for)

    def compose(
        self, dialogue: Dialogue, observations: Columns, row: int, details: Details
    ) -> Composed:
        """Returns what the model is told about a row of observations."""
        values = self.values(dialogue, observations, row, details)
        text = self.prompt.render("observation", **values)
        picture = goal = b""
        column, wanted = self.pictures.column, self.pictures.goal
        if column:
            picture = self.pictures.encode(column, observations[column][row])
        if wanted:
            goal = self.pictures.encode(wanted, observations[wanted][row])
        messages, images = self._messages(dialogue, values, text, picture)
        if goal:
            digest = digest_of_picture(goal)
            images[digest] = goal
            messages[1] = _with_goal(messages[1], digest)
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

    def values(
        self, dialogue: Dialogue, observations: Columns, row: int, details: Details
    ) -> dict[str, Any]:
        """Returns the variables of the templates."""
        return {
            "task": self._task.name,
            "goal": details.get(MISSION) or self._task.goal,
            "hints": self._task.metadata,
            "actions": self.grammar.description,
            "form": self.reader.instruction,
            "step": dialogue.step,
            "example": 0,
            "details": details,
            "kept": dialogue.kept,
            "lessons": dialogue.lessons,
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
        examples = self._examples_of(dialogue)
        begins = [f"{self.prompt.render('example', **values)}\n\n"] if examples else []
        for number, turn in enumerate((*examples, *turns)):
            at = number - len(examples)
            recent = at < 0 or len(turns) - at <= shown
            opening = begins.pop() if at >= 0 and begins else ""
            messages.append(said(opening + turn.asked, turn.picture if recent else b""))
            messages.append({"role": "assistant", "content": turn.answered})
        messages.append(said("".join(begins) + text, picture))
        return messages, images

    def _examples_of(self, dialogue: Dialogue) -> tuple[Turn, ...]:
        """The turns of the examples that an episode is shown, the same at each of its steps."""
        if self.library is None or dialogue.state is None:
            return ()
        return self._examples(dialogue.state)

    def _examples_for(self, state: int) -> tuple[Turn, ...]:
        assert self.library is not None
        found: list[Turn] = []
        for number, ref in enumerate(self.library.nearest(state), 1):
            found += self._turns(number, self.library.read(ref))
        return tuple(found)

    def _turns(self, example: int, recorded: Recorded) -> list[Turn]:
        """The turns of an example."""
        found: list[Turn] = []
        for composed, row, action in self.replayed(recorded):
            opening = ""
            if not found:
                opening = self.prompt.render("example", **{**composed.values, "example": example})
                opening += "\n\n"
            shown = {
                name: text[: self.prompt.fields[name].chars]
                for name, text in recorded.fields[row].items()
                if name in self.prompt.fields
            }
            answer = self.reader.write(shown, action)
            found.append(Turn(opening + composed.text, composed.picture, answer))
        return found

    def replayed(self, recorded: Recorded) -> Iterator[tuple[Composed, int, str]]:
        """Yields what a model would have been told at each step, its number, and the action."""
        dialogue = Dialogue()
        for row in range(len(next(iter(recorded.actions.values())))):
            told = recorded.details[row] or {} if recorded.details is not None else {}
            composed = self.compose(dialogue, recorded.observations, row, told)
            action = self.grammar.write({key: rows[row] for key, rows in recorded.actions.items()})
            yield composed, row, action
            answer = Answer(self.grammar.parse(action), action, {})
            dialogue = self.answered(replace(dialogue, step=row + 1), composed, answer)

    def _last(self, dialogue: Dialogue, turn: Turn) -> tuple[Turn, ...]:
        history = self._history
        turns = (*dialogue.turns, turn)[-history.texts :] if history.texts else ()
        without = max(0, len(turns) - max(0, history.images - 1))
        return (*(replace(t, picture=b"") for t in turns[:without]), *turns[without:])


def _with_goal(message: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """The first message of the user, with the picture of the goal before it."""
    said = message["content"]
    parts = said if isinstance(said, list) else [{"type": "text", "text": said}]
    shown = [
        {"type": "text", "text": "A picture of the goal:"},
        {"type": "image", "digest": digest},
    ]
    return {**message, "content": [*shown, *parts]}


def digest_of_picture(image: bytes) -> str:
    """Returns what messages call the file of a picture."""
    return hashlib.sha256(image).hexdigest()[:32]


class EpisodeTeacher:
    """Replays recorded episodes through the prompt of a policy; see ``Teacher``."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer

    def demonstrated(
        self, observations: Columns, details: Sequence[Details] | None, actions: Columns
    ) -> Iterator[Lesson]:
        """Yields a lesson for each step; its answer is the action alone."""
        recorded = Recorded(observations, details, actions, ())
        for composed, _, action in self._composer.replayed(recorded):
            answer = self._composer.reader.write({}, action)
            yield Lesson(composed.messages, composed.images, answer)

    def pictures(self, observations: Columns) -> dict[str, bytes]:
        """Returns the files of the pictures of an episode, by digest."""
        pictures = self._composer.pictures
        if not pictures:
            return {}
        column = pictures.column
        files = [pictures.encode(column, image) for image in observations[column]]
        return {digest_of_picture(file): file for file in files}
