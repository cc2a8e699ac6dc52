"""The action of a step without a usable answer."""

from __future__ import annotations

import numpy as np

from policies.vlm.composing import Dialogue
from rollout.api import Columns
from rollout.errors import ConfigError
from rollout.models.grammar import Grammar, Row, UnusableAnswerError
from rollout.models.legal import LegalActions


class Fallback:
    """Chooses actions for steps without a usable answer; see ``VlmOptions.fallback``.

    Args:
        wanted: nothing, repeat, random, stop, or an action.
        unusable: steps in a row without a usable answer that truncate an episode; None for any.
        grammar: the actions as text.
        legal: which of them are legal.
        game: name of the game, for messages.

    Raises:
        ConfigError: ``wanted`` is nothing of the kind.
    """

    def __init__(
        self, wanted: str, unusable: int | None, grammar: Grammar, legal: LegalActions, game: str
    ) -> None:
        self._wanted, self._unusable = wanted, unusable
        self._grammar, self._legal = grammar, legal
        self._fixed = self._parse(game)

    def _parse(self, game: str) -> Row | None:
        """Returns the action; None if it differs each time."""
        wanted, noop = self._wanted, self._grammar.noop
        if wanted in ("repeat", "random", "stop"):
            return noop
        if wanted == "nothing":
            if noop is None:
                raise ConfigError(
                    f"fallback=nothing: {game} has no action that does nothing; choose repeat, "
                    f"random, stop, or an action"
                )
            return noop
        try:
            return self._grammar.parse(wanted)
        except UnusableAnswerError as error:
            raise ConfigError(
                f"fallback={wanted!r}: expected nothing, repeat, random, stop or an action; "
                f"{error.problem}"
            ) from error

    @property
    def idle(self) -> Row:
        """An action for a slot without an episode: any valid one."""
        return self._fixed or self._grammar.random(np.random.default_rng(0))

    def action(self, dialogue: Dialogue, observations: Columns, row: int) -> Row:
        """Returns the action for a step without a usable answer; it is legal."""
        rng = np.random.default_rng([dialogue.seed, dialogue.step])
        if self._wanted == "repeat" and dialogue.last:
            action = self._grammar.parse(dialogue.last)
        elif self._wanted == "random" or self._fixed is None:
            action = self._grammar.random(rng)
        else:
            action = self._fixed
        return self._legal.nearest(action, observations, row, rng)

    def stop_reason(self, after: Dialogue) -> str:
        """Returns why an unusable answer truncates the episode; empty if it does not.

        Args:
            after: the dialogue with the answer.
        """
        if self._wanted == "stop":
            return f"an answer could not be used: {after.problem}"
        if self._unusable is not None and after.unusable >= self._unusable:
            return (
                f"{self._unusable} steps in a row without a usable answer (limits.unusable): "
                f"{after.problem}"
            )
        return ""
