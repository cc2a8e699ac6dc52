"""Ask-or-act: before a battle, act, or ask a frozen corpus of notes one question (section 4).

The answer is bounded, and is shown in every later step of the battle.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bridges.starbench.rules import scoring
from bridges.starbench.rules.battle import Battle
from rollout.errors import ConfigError, InputError
from rollout.files import read_lines

NOTES = Path(__file__).parent / "data" / "notes"
MOST_WORDS = 120
TASKS = 8
INFINITE_STEPS = 300
"""Steps of a battle of Echo of War that was not won, for differences of scores."""

_COORDINATES = re.compile(r"\(\s*\d+\s*,\s*\d+\s*(,\s*\d+\s*)?\)")
_WORD = re.compile(r"[a-z0-9]+")
_COMMON = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from"),
        *("how", "i", "if", "in", "is", "it", "my", "of", "on", "or", "should", "so", "that"),
        *("the", "to", "we", "what", "when", "which", "who", "why", "will", "with", "you"),
    }
)


@dataclass(frozen=True)
class Answer:
    """An answer: its text, at most 120 words, and the notes it is from."""

    text: str = ""
    doc_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A line of ``ask_log.jsonl``: one choice before a battle.

    Attributes:
        task: name of the battle.
        k: number of the trial, from 1.
        choice: ``ask`` or ``act``.
        score: of the battle that followed.
        prev_score: of the trial before; None in the first.
    """

    task: str
    k: int
    choice: str
    score: float
    prev_score: float | None = None
    question: str = ""
    answer: str = ""
    doc_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.choice not in ("ask", "act"):
            raise InputError(f"choice must be 'ask' or 'act', got {self.choice!r}")


class Notes:
    """A frozen corpus of notes with full-text search.

    Args:
        folder: of Markdown files; each paragraph under a heading is a passage.

    Raises:
        ConfigError: the folder has no notes.
    """

    def __init__(self, folder: Path = NOTES) -> None:
        self.passages = dict(_passages(folder))
        if not self.passages:
            raise ConfigError(f"expected notes (*.md) in {folder}, found none")
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute(
            "CREATE VIRTUAL TABLE notes USING fts5(id UNINDEXED, text, tokenize='porter unicode61')"
        )
        self._index.executemany("INSERT INTO notes VALUES (?, ?)", self.passages.items())

    def ask(self, question: str) -> Answer:
        """Returns the sentences of the nearest passages that share most words with a question.

        Sentences with coordinates or action tuples are left out.

        Raises:
            InputError: the question has no word to search for.
        """
        words = [w for w in _WORD.findall(question.lower()) if w not in _COMMON]
        if not words:
            raise InputError(f"expected a question with words to search for, got {question!r}")
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        found = self._index.execute(
            "SELECT id, text FROM notes WHERE notes MATCH ? ORDER BY bm25(notes), id LIMIT 3",
            (query,),
        ).fetchall()
        ranked = []
        for rank, (name, passage) in enumerate(found):
            for at, sentence in enumerate(re.split(r"(?<=[.!?])\s+", passage)):
                if allowed(sentence):
                    shared = len(set(_WORD.findall(sentence.lower())) & set(words))
                    ranked.append((-shared, rank, at, sentence, name))
        chosen: list[str] = []
        names: list[str] = []
        for _, _, _, sentence, name in sorted(ranked):
            if len(" ".join([*chosen, sentence]).split()) <= MOST_WORDS:
                chosen.append(sentence)
                names.append(name)
        return Answer(" ".join(chosen), tuple(dict.fromkeys(names)))


def _passages(folder: Path) -> list[tuple[str, str]]:
    found = []
    for file in sorted(folder.glob("*.md")):
        heading = file.stem
        number = 0
        for block in file.read_text(encoding="utf-8").split("\n\n"):
            text = " ".join(block.split())
            if text.startswith("#"):
                heading = text.lstrip("# ")
            elif text:
                number += 1
                found.append((f"{file.stem}/{number}", f"{heading}: {text}"))
    return found


def allowed(text: str) -> bool:
    """Returns True if a text has no coordinates or action tuples such as ``(1560, 990)``."""
    return _COORDINATES.search(text) is None


def write_log(path: Path, entries: Sequence[Entry]) -> None:
    """Appends entries to an ``ask_log.jsonl``."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(entry)) + "\n" for entry in entries)


def read_log(path: Path) -> list[Entry]:
    """Returns the entries of an ``ask_log.jsonl``; a last line that was cut is left out."""
    entries = []
    for line in read_lines(path):
        if line.endswith(b"\n"):
            data = json.loads(line)
            entries.append(Entry(**{**data, "doc_ids": tuple(data["doc_ids"])}))
    return entries


def echo_score(steps: float, won: bool) -> float:
    """Returns the score of an Echo of War: minus its steps, those of the cap if it was lost."""
    return -float(steps) if won else -float(INFINITE_STEPS)


@dataclass
class AskWindow:
    """The questions of one slot.

    Attributes:
        log: file to which each battle adds a line; empty for none.
        choosing: whether the next step is the choice.
        question: what was asked before this battle; empty for nothing.
        answer: what is shown during the battle.
    """

    notes: Notes
    log: str = ""
    choosing: bool = False
    question: str = ""
    answer: Answer = field(default_factory=Answer)
    _scores: dict[str, list[float]] = field(default_factory=dict)

    def begin(self) -> None:
        """Opens the choice of a new battle."""
        self.choosing, self.question, self.answer = True, "", Answer()

    def choose(self, question: str) -> None:
        """Asks a question, or acts if it is empty; words that say nothing find no answer."""
        self.choosing, self.question = False, question.strip()
        if not self.question:
            return
        try:
            self.answer = self.notes.ask(question)
        except InputError as error:
            self.answer = Answer(f"No answer: {error}")
        if not self.answer.text:
            self.answer = Answer("No answer: no note speaks of this.")

    def end(self, battle: Battle) -> None:
        """Logs a battle that is over."""
        score = scoring.points(battle)
        if battle.data["mode"] == "echo_of_war":
            score = echo_score(battle.decisions, battle.outcome == "won")
        past = self._scores.setdefault(battle.task, [])
        entry = Entry(
            battle.task,
            len(past) + 1,
            "ask" if self.question else "act",
            score,
            past[-1] if past else None,
            self.question,
            self.answer.text,
            self.answer.doc_ids,
        )
        past.append(score)
        if self.log:
            write_log(Path(self.log), [entry])

    def prompt_text(self, task: str) -> str:
        """Returns text for the prompt: past scores at the choice, later the answer."""
        if not self.choosing:
            return f"\nAnswer to your question: {self.answer.text}" if self.question else ""
        past = ", ".join(f"{score:.0f}" for score in self._scores.get(task, [])[-3:]) or "none"
        return (
            "\nBefore this battle you may ask one question about it, which is answered from notes "
            "and shown in every later step: write it in `question`, or leave it empty to act. "
            f"Scores of your last battles here: {past}."
        )


def metrics(entries: Sequence[Entry], tasks: int = TASKS) -> Mapping[str, float | None]:
    """Returns how often, and with what effect, questions were asked (section 4).

    Returns:
        ``AR`` in percent; ``effect``, the mean change of score over the trial before, of trials
        after the first that were asked; ``effect_abs``, the mean score of asked trials (what
        Table 6 seems to have); and the efficiency of each. None where nothing was asked.
    """
    asked = [entry for entry in entries if entry.choice == "ask"]
    later = [e.score - e.prev_score for e in asked if e.prev_score is not None and e.k > 1]
    rate = 100.0 * len(asked) / len(entries) if entries else 0.0
    effect = sum(later) / len(later) if later else None
    absolute = sum(e.score for e in asked) / len(asked) if asked else None
    return {
        "AR": rate,
        "effect": effect,
        "effect_abs": absolute,
        "efficiency": efficiency(effect, rate, tasks),
        "efficiency_abs": efficiency(absolute, rate, tasks),
    }


def efficiency(effect: float | None, rate: float, tasks: int = TASKS) -> float | None:
    """Returns ``effect / (tasks * rate / 100)``; 0 if nothing was asked, None without effect."""
    if rate == 0:
        return 0.0
    return None if effect is None else effect / (tasks * rate / 100.0)
