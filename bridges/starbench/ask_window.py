"""The choice before a battle: act, or ask a question whose answer is shown in every later step."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bridges.starbench import scoring
from bridges.starbench.asking import Entry, Notes, echo_score, write_log
from bridges.starbench.battle import Battle
from rollout.errors import InputError


@dataclass
class AskWindow:
    """The questions of one slot.

    Attributes:
        log: file to which each battle adds a line; empty for none.
        choosing: whether the next step is the choice.
        answer: what is shown during the battle.
    """

    notes: Notes
    log: str = ""
    choosing: bool = False
    answer: str = ""
    _question: str = ""
    _ids: tuple[str, ...] = ()
    _asked: bool = False
    _trials: dict[str, list[float]] = field(default_factory=dict)

    def begin(self) -> None:
        """Opens the choice of a new battle."""
        self.choosing, self._asked = True, False
        self.answer = self._question = ""
        self._ids = ()

    def choose(self, question: str) -> None:
        """Asks a question, or acts if it is empty; words that say nothing find no answer."""
        self.choosing = False
        if not question.strip():
            return
        self._asked, self._question = True, question.strip()
        try:
            found = self.notes.ask(question)
        except InputError as error:
            self.answer = f"No answer: {error}"
            return
        self.answer, self._ids = found.text or "No answer: no note speaks of this.", found.doc_ids

    def end(self, battle: Battle) -> None:
        """Logs a battle that is over."""
        if battle.data["mode"] == "echo_of_war":
            score = echo_score(battle.decisions, battle.outcome == "won")
        else:
            score = scoring.points(battle)
        scores = self._trials.setdefault(battle.task, [])
        entry = Entry(
            battle.task,
            len(scores) + 1,
            "ask" if self._asked else "act",
            score,
            scores[-1] if scores else None,
            self._question,
            self.answer,
            self._ids,
        )
        scores.append(score)
        if self.log:
            write_log(Path(self.log), [entry])

    def told(self, task: str) -> str:
        """Returns what the player reads: at the choice past scores, and later the answer."""
        if not self.choosing:
            return f"\nAnswer to your question: {self.answer}" if self._asked else ""
        past = self._trials.get(task, [])
        before = ", ".join(f"{score:.0f}" for score in past[-3:]) or "none"
        return (
            "\nBefore this battle you may ask one question about it, which is answered from notes "
            "and shown in every later step: write it in `question`, or leave it empty to act. "
            f"Scores of your last battles here: {before}."
        )
