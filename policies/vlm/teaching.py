"""Recorded episodes as lessons: what the policy would have told its model, and its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policies.vlm.composing import Composer, digest_of_picture
from rollout.api import Columns, Details
from rollout.models.examples import Recorded
from rollout.models.lessons import Lesson


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
