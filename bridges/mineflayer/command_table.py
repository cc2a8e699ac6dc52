"""The table of commands, ``game/survival/commands.json``, and its forms taken apart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "game" / "survival" / "commands.json"
TABLE: Mapping[str, Any] = json.loads(FILE.read_text())
"""The commands, their forms, and what the embedded world lacks."""

_LOOT: Mapping[str, Any] = json.loads(FILE.with_name("loot_tables.json").read_text())
LOOT_TABLES = (*_LOOT["tables"], *_LOOT["as"])
"""Loot of chests that the embedded world has, without ``chests/``."""

_TOKEN = re.compile(r"(\[)?(?:(\w+):)?(\w+)(?:\(([^)]*)\))?\]?")


@dataclass(frozen=True)
class Token:
    """A word of a form, or one of its arguments.

    Attributes:
        word: the word, or the name of the argument's type.
        name: of the argument; empty for a word.
        parameters: of its type.
        optional: whether a command may end before it.
    """

    word: str
    name: str = ""
    parameters: tuple[str, ...] = ()
    optional: bool = False


@lru_cache
def form(text: str) -> tuple[Token, ...]:
    """Returns a form of the table as tokens."""
    found = [match.groups() for match in _TOKEN.finditer(text)]
    return tuple(
        Token(word, name or "", tuple(re.split(r"[|,]", more)) if more else (), bool(opens))
        for opens, name, word, more in found
    )


def forms(table: str, name: str) -> tuple[tuple[Token, ...], ...]:
    """Returns the forms of a command, or of a step of ``/execute``, by the name of its table."""
    return tuple(form(each) for each in TABLE[table][name])
