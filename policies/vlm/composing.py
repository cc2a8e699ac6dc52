"""Messages to the model at each step, and the dialogue, the memory of an episode."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from policies.vlm.answers import Answer, Reader
from policies.vlm.options import VlmOptions
from policies.vlm.pictures import Pictures, shows_observation
from policies.vlm.prompt import Prompt
from rollout.api import Array, BridgeSpec, Columns, Details, Start, StateSpace, Task, Trial
from rollout.errors import ConfigError
from rollout.models.examples import ExampleEpisode, ExampleLibrary, TrainingExample
from rollout.models.grammar import Grammar
from rollout.models.legal import LegalActions
from rollout.models.observations import MISSION, observation_values, picture_digest

MEMORY = "dialogue"


@dataclass(frozen=True)
class Turn:
    """One earlier step: the message about its observation, its picture, and the answer."""

    message: str
    picture: bytes
    answer: str


@dataclass(frozen=True)
class Dialogue:
    """The memory of one episode.

    Attributes:
        seed: of the episode.
        state: index of the state it began in; None where no examples are chosen by it.
        step: number of the next step.
        turns: the last turns, oldest first.
        kept: fields of answers that are kept, by name.
        last: the last action, as text.
        problem: reason why the last answer was unusable; empty if it was usable.
        unusable: steps in a row without a usable answer.
        same: steps in a row without a change of the observation.
        seen: digest of the last observation.
        calls: number of calls so far.
        episode: its number.
        log: marks the lines of this attempt in the log of the episode.
        earlier: how earlier episodes from the same state ended, oldest first.
        lessons: the critiques of them.
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


def new_dialogues(starts: Sequence[Start], space: StateSpace | None, *, trials: bool) -> Columns:
    """Returns the memory of new episodes, a column of objects.

    Args:
        starts: how they begin.
        space: numbers their states; None for states without a number.
        trials: whether the policy uses earlier episodes and their logs.
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
    return memory_column(found)


def memory_column(dialogues: Sequence[Any]) -> Columns:
    """Returns the memory with one dialogue, or 0 for no episode, per row."""
    rows: Array = np.zeros(len(dialogues), object)
    for number, dialogue in enumerate(dialogues):
        rows[number] = dialogue
    return {MEMORY: rows}


_STATES = 256  # states whose examples are kept ready


@dataclass(frozen=True)
class ComposedMessages:
    """The messages to a model about one observation.

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
        legal: which of them are legal.
        reader: reads and writes answers.
        pictures: encodes the observation that is sent as a picture.
        prompt: the prompt.
        library: recorded episodes that are shown as examples; None for none.

    Raises:
        ConfigError: the actions or the pictures do not fit the options.
    """

    def __init__(self, options: VlmOptions, spec: BridgeSpec, task: Task, prompt: Prompt) -> None:
        self._history, self._spec, self._task = options.history, spec, task
        self.prompt, self.grammar, self.legal = prompt, Grammar(spec), LegalActions(spec)
        docs = {name: each.doc for name, each in prompt.fields.items()}
        self.reader = Reader(options.form, self.grammar, docs)
        self.pictures = Pictures(spec, options.history, options.picture)
        if not self.pictures and not shows_observation(spec, prompt):
            raise ConfigError(
                f"prompt={options.prompt}: it would show nothing that {spec.name} observes; send a "
                f"picture (history.images=1, with bridge.render=true where a game of Gymnasium can "
                f"be drawn), or use text, observation or details in a prompt of yours"
            )
        chosen = options.examples
        self.library = ExampleLibrary(chosen, spec, task) if chosen.dataset else None
        self._examples = functools.lru_cache(_STATES)(self._examples_for)

    def compose(
        self, dialogue: Dialogue, observations: Columns, row: int, details: Details
    ) -> ComposedMessages:
        """Returns the messages about a row of observations."""
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
            digest = picture_digest(goal)
            images[digest] = goal
            messages[1] = _with_goal(messages[1], digest)
        return ComposedMessages(messages, images, text, picture, values)

    def compose_retry(
        self, composed: ComposedMessages, answer: str, problem: str
    ) -> ComposedMessages:
        """Returns the messages that ask again after an unusable answer."""
        text = self.prompt.render("unusable", **{**composed.values, "problem": problem})
        reply = {"role": "assistant", "content": answer or "(nothing)"}
        messages = [*composed.messages, reply, {"role": "user", "content": text}]
        return replace(composed, messages=messages)

    def after_answer(
        self, dialogue: Dialogue, composed: ComposedMessages, answer: Answer
    ) -> Dialogue:
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
            turns=self._recent_turns(dialogue, turn),
            kept=kept,
            last=answer.action,
            problem="",
            unusable=0,
        )

    def after_failed_answer(
        self, dialogue: Dialogue, composed: ComposedMessages, answer: str, problem: str
    ) -> Dialogue:
        """Returns the dialogue after a step without a usable answer; it shows no action of it."""
        turn = Turn(composed.text, composed.picture, answer or "(nothing)")
        return replace(
            dialogue,
            turns=self._recent_turns(dialogue, turn),
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
            "legal": self.legal.text(observations, row),
            "form": self.reader.instruction,
            "step": dialogue.step,
            "example": 0,
            "details": details,
            "kept": dialogue.kept,
            "lessons": dialogue.lessons,
            "problem": dialogue.problem,
            **observation_values(self._spec, observations, row, details),
        }

    def _messages(
        self, dialogue: Dialogue, values: Mapping[str, Any], text: str, picture: bytes
    ) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
        """Returns the messages, in which pictures are digests, and the pictures."""
        images: dict[str, bytes] = {}

        def user_message(content: str, image: bytes) -> dict[str, Any]:
            if not image:
                return {"role": "user", "content": content}
            digest = picture_digest(image)
            images[digest] = image
            parts = [{"type": "image", "digest": digest}, {"type": "text", "text": content}]
            return {"role": "user", "content": parts}

        history = self._history
        turns = dialogue.turns[-history.texts :] if history.texts else ()
        shown = max(0, history.images - 1)
        messages = [{"role": "system", "content": self.prompt.render("system", **values)}]
        examples = self._examples_shown(dialogue)
        openings = [f"{self.prompt.render('example', **values)}\n\n"] if examples else []
        for number, turn in enumerate((*examples, *turns)):
            at = number - len(examples)
            recent = at < 0 or len(turns) - at <= shown
            opening = openings.pop() if at >= 0 and openings else ""
            messages.append(user_message(opening + turn.message, turn.picture if recent else b""))
            messages.append({"role": "assistant", "content": turn.answer})
        messages.append(user_message("".join(openings) + text, picture))
        return messages, images

    def _examples_shown(self, dialogue: Dialogue) -> tuple[Turn, ...]:
        """Returns the turns of the examples shown in an episode, the same at each step."""
        if self.library is None or dialogue.state is None:
            return ()
        return self._examples(dialogue.state)

    def _examples_for(self, state: int) -> tuple[Turn, ...]:
        assert self.library is not None
        found: list[Turn] = []
        for number, ref in enumerate(self.library.nearest(state), 1):
            found += self._turns(number, self.library.read(ref))
        return tuple(found)

    def _turns(self, example: int, recorded: ExampleEpisode) -> list[Turn]:
        """Returns the turns of an example."""
        found: list[Turn] = []
        for composed, row, action in self.replay(recorded):
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

    def replay(self, recorded: ExampleEpisode) -> Iterator[tuple[ComposedMessages, int, str]]:
        """Yields the messages of each recorded step, its number, and the action as text."""
        dialogue = Dialogue()
        for row in range(len(next(iter(recorded.actions.values())))):
            details = recorded.details[row] or {} if recorded.details is not None else {}
            composed = self.compose(dialogue, recorded.observations, row, details)
            action = self.grammar.write({key: rows[row] for key, rows in recorded.actions.items()})
            yield composed, row, action
            answer = Answer(self.grammar.parse(action), action, {})
            dialogue = self.after_answer(replace(dialogue, step=row + 1), composed, answer)

    def _recent_turns(self, dialogue: Dialogue, turn: Turn) -> tuple[Turn, ...]:
        history = self._history
        turns = (*dialogue.turns, turn)[-history.texts :] if history.texts else ()
        without = max(0, len(turns) - max(0, history.images - 1))
        return (*(replace(t, picture=b"") for t in turns[:without]), *turns[without:])


def _with_goal(message: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """Returns the first message of the user with the picture of the goal before it."""
    content = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    shown = [
        {"type": "text", "text": "A picture of the goal:"},
        {"type": "image", "digest": digest},
    ]
    return {**message, "content": [*shown, *parts]}


class EpisodeExampleBuilder:
    """Replays recorded episodes through the prompt of a policy; see ``ExampleBuilder``."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer

    def from_actions(
        self, observations: Columns, details: Sequence[Details] | None, actions: Columns
    ) -> Iterator[TrainingExample]:
        """Yields an example for each step; its answer is the action alone."""
        recorded = ExampleEpisode(observations, details, actions, ())
        for composed, _, action in self._composer.replay(recorded):
            answer = self._composer.reader.write({}, action)
            yield TrainingExample(composed.messages, composed.images, answer)

    def pictures(self, observations: Columns) -> dict[str, bytes]:
        """Returns the files of the pictures of an episode, by digest."""
        pictures = self._composer.pictures
        if not pictures:
            return {}
        column = pictures.column
        files = [pictures.encode(column, image) for image in observations[column]]
        return {picture_digest(file): file for file in files}
