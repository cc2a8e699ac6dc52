"""A bounded sample of a run's calls of models, as a table for dashboards."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import CALLS, Call, Fragment, read_calls
from rollout.data.tables import write_table

_MOST = 500  # rows
_CHARACTERS = 2000  # of a text
_KINDS: Mapping[str, Any] = {
    "episode": np.int64,
    "step": np.int64,
    "model": np.str_,
    "prompt": np.str_,
    "answer": np.str_,
    "action": np.str_,
    "usable": np.bool_,
    "tokens": np.float64,
    "usd": np.float64,
    "seconds": np.float64,
}


class CallSample:
    """A uniform random sample of the calls in fragments, of 500 at most.

    Attributes:
        seen: number of calls so far.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._rows: list[tuple[int, dict[str, Any]]] = []  # with the number of the call
        self._rng = random.Random(0)  # noqa: S311 - a sample, no secret

    def add(self, fragment: Fragment) -> None:
        """Adds the calls of a fragment's steps."""
        calls = fragment.extras.get(CALLS)
        if calls is None:
            return
        for t, b in np.argwhere(fragment.valid).tolist():
            episode = fragment.starts[fragment.start_index[t, b]].episode
            for call in read_calls(calls[t, b]):
                self._keep(call, episode, int(fragment.step[t, b]))

    def _keep(self, call: Call, episode: int, step: int) -> None:
        self.seen += 1
        if len(self._rows) < _MOST:
            self._rows.append((self.seen, _row(call, episode, step)))
        elif (place := self._rng.randrange(self.seen)) < _MOST:
            self._rows[place] = (self.seen, _row(call, episode, step))

    def write(self, path: Path) -> None:
        """Writes the sample in the order of the calls.

        Columns: episode, step, model, prompt (the last message), answer, action, usable, tokens,
        usd and seconds. Long texts are cut; an unknown number is NaN.

        Raises:
            DiskFullError: the disk is full.
            OSError: it cannot be written.
        """
        rows = [row for _, row in sorted(self._rows, key=lambda each: each[0])]
        path.parent.mkdir(parents=True, exist_ok=True)
        table = {name: np.array([r[name] for r in rows], kind) for name, kind in _KINDS.items()}
        write_table(path, table)


def _row(call: Call, episode: int, step: int) -> dict[str, Any]:
    tokens = [call.input_tokens, call.output_tokens]
    numbers = {"usd": call.usd, "seconds": call.seconds}
    return {
        "episode": episode,
        "step": step,
        "model": _text(call.asked),
        "prompt": _text(_content(call.messages[-1].get("content")) if call.messages else ""),
        "answer": _text(call.answer),
        "action": _text(call.action),
        "usable": call.usable is not False,
        "tokens": sum(np.nan if each is None else each for each in tokens),
        **{name: np.nan if value is None else value for name, value in numbers.items()},
    }


def _text(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]} ..."


def _content(content: object) -> object:
    """The text of a message; pictures are named."""
    if not isinstance(content, list):
        return content
    return "\n".join(part.get("text", f"[{part.get('type')}]") for part in content)
