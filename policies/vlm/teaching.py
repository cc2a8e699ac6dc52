"""Recorded episodes as lessons: what the policy would have told its model, and its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from policies.vlm.answers import Answer
from policies.vlm.composing import Composer, digest_of_picture
from policies.vlm.dialogue import Dialogue
from rollout.api import Columns, Details
from rollout.models.lessons import Lesson


class EpisodeTeacher:
    """Replays recorded episodes through the prompt of a policy; see ``Teacher``."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer

    def demonstrated(
        self, observations: Columns, details: Sequence[Details] | None, actions: Columns
    ) -> Iterator[Lesson]:
        """Yields a lesson for each step; its answer is the action alone."""
        composer, dialogue = self._composer, Dialogue()
        for row in range(len(next(iter(actions.values())))):
            told = {} if details is None else details[row] or {}
            composed = composer.compose(dialogue, observations, row, told)
            action = composer.grammar.write({key: rows[row] for key, rows in actions.items()})
            answer = Answer(composer.grammar.parse(action), action, {})
            yield Lesson(composed.messages, composed.images, composer.reader.write({}, action))
            after = replace(dialogue, step=dialogue.step + 1)
            dialogue = composer.answered(after, composed, answer)

    def pictures(self, observations: Columns) -> dict[str, bytes]:
        """Returns the files of the pictures of an episode, by digest."""
        pictures = self._composer.pictures
        if not pictures:
            return {}
        files = [pictures.encode(image) for image in observations[pictures.column]]
        return {digest_of_picture(file): file for file in files}
