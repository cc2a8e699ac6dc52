"""What may go wrong when a client plays a game, each kind with a code for its answer."""

from __future__ import annotations

from rollout.api.fragment import Phase
from rollout.errors import GameError, GamutError, InputError, OutOfTurnError
from rollout.models.grammar import UnusableAnswerError


class CapacityError(GamutError):
    """Every game is in use, or none can be launched; ask again later."""


class BusyError(OutOfTurnError):
    """A game got a request while it was still working on an earlier one."""


class GameLost(GameError):  # noqa: N818 - reads as what happened
    """The infrastructure failed, so the episode has no result; reset to play on.

    It must never be counted as a reward or as an episode.

    Attributes:
        phase: what the game was doing: start, reset or step.
        trace: traceback of the game's code, if it raised an error.
    """

    def __init__(self, reason: str, phase: Phase, trace: str = "") -> None:
        super().__init__(f"the game was lost in its {phase}: {reason}")
        self.phase, self.trace = phase, trace


def code_of(error: BaseException) -> str:
    """Returns the code of an error.

    Returns:
        ``capacity``; ``busy``; ``out_of_turn``, a step before a reset or after the end, or a game
        that is closed; ``lost``; ``action_CODE`` with the code of an ``UnusableAnswerError``;
        ``invalid`` for other wrong input; ``internal`` for anything else.
    """
    if isinstance(error, UnusableAnswerError):
        return f"action_{error.code}"
    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (CapacityError, "capacity"),
        (BusyError, "busy"),
        (OutOfTurnError, "out_of_turn"),
        (GameLost, "lost"),
        (InputError, "invalid"),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), "internal")
