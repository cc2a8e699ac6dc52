"""The selectors of Minecraft's commands: ``@e[type=sheep,distance=..5]``.

A selector is ``{"select": letter, "where": [[key, value, negated], ...]}``, or ``{"player": name}``
for a single name (Minecraft Wiki, "Target selectors").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bridges.mineflayer.command_table import TABLE
from bridges.mineflayer.names import names
from bridges.mineflayer.reading import (
    MOST,
    WORD,
    ArgumentError,
    ArgumentType,
    Read,
    Reader,
    decimal,
    lacking,
    read_choice,
    read_integer,
    read_known,
    read_real,
    read_word,
)

SELECTORS = ("p", "a", "r", "s", "e")
MODES = ("survival", "creative", "adventure", "spectator")
SORTS = ("nearest", "furthest", "random", "arbitrary")

_NAME = re.compile(r"[A-Za-z0-9_]{1,16}", re.ASCII)
_END = r"(-?(?:\d{1,15}(?:\.(?!\.)\d{0,15})?|\.(?!\.)\d{1,15}))?"
_RANGE = re.compile(rf"{_END}(\.\.)?{_END}", re.ASCII)


# Selectors: {"select": letter, "where": [[key, value, negated], ...]} or {"player": name}.


def targets(*, players: bool = False, single: bool = False) -> Reader:
    """Returns the reader of a selector, of players alone or of a single entity."""

    def read(text: str, at: int, _: Sequence[str]) -> Read:
        value, end = _selector(text, at)
        where = value.get("where", [])
        limits = [found for key, found, _ in where if key == "limit"]
        one = value.get("select", "s") in "prs" if not limits else limits == [1]
        only_players = value.get("select") != "e" or ["type", "player", False] in where
        if players and not only_players:
            raise ArgumentError(
                "Only players may be affected by this command, but the provided selector includes "
                "entities",
                at,
            )
        if single and not one:
            raise ArgumentError(
                "Only one entity is allowed, but the provided selector allows more than one", at
            )
        return value, end

    return read


def _selector(text: str, at: int) -> Read:
    if not text.startswith("@", at):
        match = _NAME.match(text, at)
        if not match:
            raise ArgumentError("Invalid name or UUID", at)
        return {"player": match[0]}, match.end()
    letter = text[at + 1 : at + 2]
    if not letter or letter not in SELECTORS:
        raise ArgumentError(f"Unknown selector type '@{letter}'", at, letter, SELECTORS)
    here = at + 2
    value: dict[str, Any] = {"select": letter}
    if text.startswith("[", here):
        value["where"], here = _conditions(text, here + 1)
    return value, here


def _conditions(text: str, at: int) -> Read:
    where: list[list[Any]] = []
    kinds: Mapping[str, str] = TABLE["selectors"]
    while not text.startswith("]", at):
        key, end = read_word(text, at, ())
        if key in TABLE["lacks"]["selectors"]:
            raise lacking(f"selectors by {key}", at)
        if key not in kinds:
            raise ArgumentError(f"Unknown option '{key[:20]}'", at, key, kinds)
        if not text.startswith("=", end):
            raise ArgumentError(f"Expected value for option '{key}'", end)
        no = kinds[key] in ("kind", "name", "tag", "mode") and text.startswith("!", end + 1)
        value, end = CONDITIONS[kinds[key]].read(text, end + 1 + no, ())
        where.append([key, value, no])
        if text.startswith(",", end):
            end += 1
        elif not text.startswith("]", end):
            raise ArgumentError("Expected end of options", end)
        at = end
    return where, at + 1


def _range(text: str, at: int, _: Sequence[str]) -> Read:
    match = _RANGE.match(text, at)
    first, dots, last = match.groups() if match else (None, None, None)
    if match is None or (first is None and last is None):
        raise ArgumentError("Expected value or range of values", at)
    low = None if first is None else float(first)
    high = low if not dots else None if last is None else float(last)
    if low is not None and high is not None and low > high:
        raise ArgumentError("Min cannot be bigger than max", at)
    return [low, high], match.end()


def _written_range(ends: Sequence[float | None]) -> str:
    return "..".join("" if end is None else decimal(end) for end in ends)


def _quoted_or_word(text: str, at: int, _: Sequence[str]) -> Read:
    if text[at : at + 1] in ("'", '"'):
        end = text.find(text[at], at + 1)
        if end < 0:
            raise ArgumentError("Unclosed quoted string", at)
        if "\\" in text[at:end]:
            raise ArgumentError("Expected a name without escape sequences", at)
        return text[at + 1 : end], end + 1
    return read_word(text, at, ())


def _quoted_word(text: str) -> str:
    if WORD.fullmatch(text):
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'


def written_selector(value: Mapping[str, Any]) -> str:
    """Returns a selector as text."""
    if "player" in value:
        return str(value["player"])
    kinds = TABLE["selectors"]
    parts = [
        f"{key}={'!' * no}{CONDITIONS[kinds[key]].write(found)}"
        for key, found, no in value.get("where", [])
    ]
    return f"@{value['select']}" + (f"[{','.join(parts)}]" if "where" in value else "")


CONDITIONS: Mapping[str, ArgumentType] = {
    "kind": ArgumentType(read_known("entity:", lambda: names().entities)),
    "name": ArgumentType(_quoted_or_word, _quoted_word),
    "tag": ArgumentType(read_word),
    "mode": ArgumentType(lambda text, at, _: read_choice(text, at, MODES)),
    "sort": ArgumentType(lambda text, at, _: read_choice(text, at, SORTS)),
    "count": ArgumentType(lambda text, at, _: read_integer(text, at, ("1", str(MOST)))),
    "range": ArgumentType(_range, _written_range),
    "number": ArgumentType(lambda text, at, _: read_real(text, at, ("-3e7", "3e7")), decimal),
}
"""The values of a selector's conditions."""
