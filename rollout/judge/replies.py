"""Replies of judges in the form of MCU: a text with headings and a score below each.

Models write headings and scores in many ways; all of these are read::

    - Task Progress: 7            **Task Progress**: **7**       2. Action Control: 7/10
    ### Creative Attempts         Score: N/A                     - Task Progress: B is better

What is not there is missing, and never 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

TITLES: Mapping[str, str] = {
    "progress": "Task Progress",
    "control": "Action Control",
    "correction": "Error Recognition and Correction",
    "creativity": "Creative Attempts",
    "efficiency": "Task Completion Efficiency",
    "material": "Material Selection and Usage",
}
"""The six dimensions of MCU: the criteria of the rubric ``mcu``, and their headings."""

_SHORT: Mapping[str, str] = {
    "error recognition": "correction",
    "task efficiency": "efficiency",
    "material usage": "material",
}
_MARKS = re.compile(r"[*_`#>]+")
_BULLET = re.compile(r"^\s*(?:[-+\u2022]|\(?\d{1,2}[.)])?\s*")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/\s*10|out of 10|points?)?\s*(?:[.,;(].*)?$")
_WINNER = re.compile(r"(?:video\s+)?([ab])\s+is\s+better\b")
_TIE = re.compile(r"(tie\b|both are (?:bad|good|equal)|equal\b)")
_NONE = re.compile(r"(n\s*/\s*a|not applicable|none|null|unknown)\b", re.IGNORECASE)
_RESULT = re.compile(r"(?:score|result|rating)\s*[:=]\s*(.+)$", re.IGNORECASE)

A, B, TIE = "A", "B", "tie"


class _Missing:
    """No value: neither a score nor a refusal to give one."""


_MISSING = _Missing()


def read_reply(
    text: str, titles: Mapping[str, str] = TITLES, *, pairwise: bool = False
) -> dict[str, float | str | None]:
    """Returns what a reply says, by criterion; a criterion that it does not rate is left out.

    The block of all scores at the end counts more than the score below a heading.

    Args:
        text: the reply.
        titles: the heading of each criterion.
        pairwise: whether it compares two clips.

    Returns:
        a score, None for "N/A"; of pairs ``A``, ``B`` or ``tie``.
    """
    known = {title.lower(): name for name, title in titles.items()}
    known |= {short: name for short, name in _SHORT.items() if name in titles}
    found: dict[str, float | str | None] = {}
    section = ""
    for raw in text.splitlines():
        line = _MARKS.sub("", _BULLET.sub("", _MARKS.sub("", raw))).strip()
        lowered = line.lower()
        title = next((each for each in known if lowered.startswith(each)), None)
        if title is not None:
            section = known[title]
            rest = line[len(title) :].lstrip()
            value = read_value(rest[1:], pairwise=pairwise) if rest[:1] in (":", "=") else _MISSING
            if not isinstance(value, _Missing):
                found[section] = value
        elif section and section not in found and (result := _RESULT.match(line)):
            value = read_value(result[1], pairwise=pairwise)
            if not isinstance(value, _Missing):
                found[section] = value
    return found


def read_value(given: Any, *, pairwise: bool = False) -> float | str | _Missing | None:
    """Returns a score or a winner as it stands in a reply or in a file; missing if it is neither.

    A number that is not from 0 to 10 is none.
    """
    if given is None:
        return None
    if isinstance(given, bool):
        return _MISSING
    text = " ".join(_MARKS.sub("", str(given)).split()).strip("\"' ")
    if _NONE.match(text):
        return None
    return _winner(text.lower()) if pairwise else _score(text.lower())


def _winner(text: str) -> str | _Missing:
    if winner := _WINNER.match(text):
        return winner[1].upper()
    if text in ("a", "b"):
        return text.upper()
    return TIE if _TIE.match(text) else _MISSING


def _score(text: str) -> float | _Missing:
    number = _NUMBER.match(text)
    return float(number[1]) if number and float(number[1]) <= 10 else _MISSING


def scores_of(
    data: Mapping[str, Any], titles: Mapping[str, str] = TITLES, *, pairwise: bool = False
) -> dict[str, float | str | None]:
    """Returns what an entry of a rating file says, by criterion; see ``read_reply``."""
    named = {_MARKS.sub("", str(key)).strip().lower(): value for key, value in data.items()}
    found: dict[str, float | str | None] = {}
    for name, title in titles.items():
        if title.lower() in named:
            value = read_value(named[title.lower()], pairwise=pairwise)
            if not isinstance(value, _Missing):
                found[name] = value
    return found
