"""Critiques of earlier episodes; Reflexion, Shinn et al. 2023, section 3."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policies.vlm.prompt import Prompt
from rollout.api import Trial
from rollout.files import read_lines

_STEPS = 60  # of a log; the last ones
_CHARACTERS = 400  # of an observation or an answer in it


class EpisodeLogs:
    """Logs of the observations and answers of each episode, for critiques; thread-safe.

    One file for each episode. Lines of an attempt have its name, so that those of attempts that
    were lost count no more once another has begun.

    Args:
        folder: where the files are; None keeps logs in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._kept = folder, dict[int, list[dict[str, Any]]]()
        self._lock = threading.Lock()

    def add(self, episode: int, attempt: str, **line: Any) -> None:
        """Adds a line to the log of an attempt at an episode.

        Raises:
            OSError: it cannot be written.
        """
        whole = {"attempt": attempt, **{key: _shorten(value) for key, value in line.items()}}
        if self._folder is None:
            with self._lock:
                self._kept.setdefault(episode, []).append(whole)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        data = (json.dumps(whole) + "\n").encode()
        handle = os.open(self._path(episode), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)

    def read(self, episode: int) -> list[dict[str, Any]]:
        """Returns the steps of the attempt at an episode that began last."""
        lines = self._lines(episode)
        begun = [line["attempt"] for line in lines if line.get("step") == 0]
        return [line for line in lines if begun and line["attempt"] == begun[-1]]

    def _lines(self, episode: int) -> list[dict[str, Any]]:
        if self._folder is None:
            with self._lock:
                return list(self._kept.get(episode, ()))
        path = self._path(episode)
        if not path.is_file():
            return []
        lines = read_lines(path)  # a crash may have cut the last one
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def _path(self, episode: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{episode}.jsonl"


def critique_prompt(
    prompt: Prompt, values: Any, trial: Trial, log: Sequence[Any], words: int
) -> str:
    """Returns the prompt for a critique of an episode.

    Args:
        prompt: the prompt.
        values: the variables of the templates at the first step of the next episode.
        trial: how the episode ended.
        log: its steps.
        words: most words of the critique.
    """
    left_out = max(0, len(log) - _STEPS)
    lines = [f"({left_out} earlier steps are left out)"] if left_out else []
    lines += [f"{line['told']}\n-> {line['answered']}" for line in log[left_out:]]
    text = "\n\n".join(lines) or "(there is no log)"
    return prompt.render("reflect", **{**values, "trial": trial, "log": text, "words": words})


def critique_from(answer: str, words: int) -> str:
    """Returns the critique in an answer, cut to a number of words."""
    return " ".join(answer.split()[:words])


def _shorten(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= _CHARACTERS:
        return value
    return f"{value[:_CHARACTERS]}..."
