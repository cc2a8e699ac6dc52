"""What a client sees of a game."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rollout.api import PRIVILEGED, BridgeSpec, Columns, Details, Outcome, Start
from rollout.api.fragment import End, EpisodeResult
from rollout.interop.driver import Played
from rollout.models.legal import LegalActions
from rollout.models.observations import is_shown_picture, observation_values, picture_file


@dataclass(frozen=True)
class Moment:
    """What a client sees after a reset or a step.

    Attributes:
        start: start of the episode: state, seed, attempt, name of the state set.
        step: number of completed steps of the episode, 0 after a reset.
        columns: the observations with a leading axis of one, ``{key: (1, ...)}``, a copy; without
            privileged columns.
        details: data without a fixed shape, without what is privileged; often empty.
        reward: reward of the step by the task's evaluator; 0 after a reset.
        progress: 0 to 1; NaN if the evaluator defines none.
        outcome: what the evaluator has decided; ``RUNNING`` if nothing.
        terminated: the game or the task ended the episode with this step.
        truncated: a limit ended it.
        result: result of the episode, with its total reward; None while it goes on.
        legal: what is legal now of the choices that are restricted, in words; empty if nothing is.
        spec: the game.
    """

    start: Start
    step: int
    columns: Columns
    details: Details
    reward: float
    progress: float
    outcome: Outcome
    terminated: bool
    truncated: bool
    result: EpisodeResult | None
    legal: str
    spec: BridgeSpec = field(repr=False)

    @classmethod
    def of(cls, played: Played, spec: BridgeSpec, legal: LegalActions) -> Moment:
        """Returns what a client sees of what was played."""
        shown = {k: v for k, v in played.columns.items() if not k.startswith(PRIVILEGED)}
        ruling, nothing = played.ruling, float("nan")
        return cls(
            start=played.start,
            step=played.step,
            columns=shown,
            details=played.details,
            reward=float(ruling.verdict.reward[0]) if ruling else 0.0,
            progress=float(ruling.verdict.progress[0]) if ruling else nothing,
            outcome=Outcome(int(ruling.verdict.outcome[0])) if ruling else Outcome.RUNNING,
            terminated=bool(ruling and ruling.terminated[0]),
            truncated=bool(ruling and ruling.truncated[0]),
            result=played.result,
            legal=legal.text(played.columns, 0) if legal else "",
            spec=spec,
        )

    @cached_property
    def observations(self) -> dict[str, Any]:
        """The observations without a leading axis: arrays, numbers of NumPy, or ``str``."""
        return {key: column[0] for key, column in self.columns.items()}

    @property
    def done(self) -> bool:
        """True if the episode has ended."""
        return self.terminated or self.truncated

    @property
    def end(self) -> End | None:
        """How the episode ended; None if it goes on."""
        return "terminated" if self.terminated else "truncated" if self.truncated else None

    @property
    def success(self) -> bool | None:
        """Whether the task is accomplished; None if nothing was decided."""
        running = self.outcome is Outcome.RUNNING
        return None if running else self.outcome is Outcome.SUCCESS

    def text(self) -> str:
        """Returns the observation in words, for a model.

        It is the game's own text, or the small columns as ``name: values`` if it has none; then
        what is legal. Pictures are not in it.
        """
        values = observation_values(self.spec, self.columns, 0, self.details)
        small = (f"{name}: {value}" for name, value in values["observation"].items())
        text = values["text"] or "\n".join(small)
        return "\n".join(filter(None, (text, f"Legal now: {self.legal}" if self.legal else "")))

    def pictures(self) -> list[tuple[str, bytes]]:
        """Returns the pictures a model could recognize: each column with a lossless PNG file."""
        return [
            (key, picture_file(leaf, self.columns[key][0]))
            for key, leaf in self.spec.observation_space.spaces.items()
            if key in self.columns and is_shown_picture(leaf)
        ]
