"""The table of commands, and the readers of their simple arguments: words, numbers, coordinates.

The table is ``game/survival/commands.json``. A reader gets a text, an index and the parameters of
the type, and returns a value and the index after it; a value is plain data, as the game gets it,
and its writer returns text that reads as the same value. The grammar and the first words of errors
are those of Minecraft 1.16 (Minecraft Wiki, "Commands" and "Argument types").
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

# the table ----------------------------------------------------------------------------------------

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


# readers ------------------------------------------------------------------------------------------

Read: TypeAlias = tuple[Any, int]
Reader: TypeAlias = Callable[[str, int, Sequence[str]], Read]
Writer: TypeAlias = Callable[[Any], str]

MOST = 2_147_483_647
FARTHEST = 30_000_000

_ID = re.compile(r"[A-Za-z0-9_.:/\-]*")
WORD = re.compile(r"[A-Za-z0-9_.+\-]+")
_NUMBER = re.compile(r"-?(?:\d{1,15}\.?\d{0,40}|\.\d{1,40})", re.ASCII)
_PLACES = 15  # after the point
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_TIME = re.compile(r"(-?\d{1,15}(?:\.\d{0,40})?)([dst]?)", re.ASCII)
_TIMES = {"d": 24_000, "s": 20, "t": 1, "": 1}


class ArgumentError(Exception):
    """An argument that cannot be read.

    Attributes:
        at: index where it is wrong.
        word: the unknown word, and ``valid`` the valid ones, if it is about a name.
    """

    def __init__(self, message: str, at: int, word: str = "", valid: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.at, self.word, self.valid = at, word, tuple(valid)


@dataclass(frozen=True)
class ArgumentType:
    """The reader and the writer of an argument."""

    read: Reader
    write: Writer = str


def lacking(mechanic: str, at: int) -> ArgumentError:
    """Returns the error that the world lacks a mechanic."""
    return ArgumentError(f"the embedded world has no {mechanic}", at)


def _id(text: str, at: int) -> Read:
    match = _ID.match(text, at)
    word = match[0] if match else ""
    return word.removeprefix("minecraft:"), at + len(word)


def read_known(what: str, valid: Callable[[], Collection[str]]) -> Reader:
    """Returns the reader of a name out of a list, with or without ``minecraft:``."""

    def read(text: str, at: int, _: Sequence[str]) -> Read:
        word, end = _id(text, at)
        listed = valid()
        if word not in listed:
            raise ArgumentError(f"Unknown {what} '{text[at:end][:40]}'", at, word, listed)
        return word, end

    return read


def read_choice(text: str, at: int, options: Sequence[str]) -> Read:
    """Reads one of some words."""
    match = WORD.match(text, at)
    word = match[0] if match else ""
    if word not in options:
        raise ArgumentError("Incorrect argument for command", at, word, options)
    return word, at + len(word)


def read_word(text: str, at: int, _: Sequence[str]) -> Read:
    """Reads a word."""
    match = WORD.match(text, at)
    if not match:
        raise ArgumentError("Expected a word", at)
    return match[0], match.end()


def read_rest(text: str, at: int, _: Sequence[str]) -> Read:
    """Reads all that is left, which must be something."""
    if at >= len(text):
        raise ArgumentError("Expected a message", at)
    return text[at:], len(text)


def read_flag(text: str, at: int, _: Sequence[str]) -> Read:
    """Reads ``true`` or ``false``."""
    match = WORD.match(text, at)
    if not match or match[0] not in ("true", "false"):
        word = match[0][:20] if match else ""
        raise ArgumentError(f"Invalid boolean, expected true or false but found '{word}'", at)
    return match[0] == "true", match.end()


def _bounded(what: str, number: Any, at: int, limits: Sequence[str]) -> None:
    low, high = (float(each) for each in limits) if limits else (-MOST - 1, MOST)
    if number < low:
        raise ArgumentError(f"{what} must not be less than {low:.10g}, found {number:.10g}", at)
    if number > high:
        raise ArgumentError(f"{what} must not be more than {high:.10g}, found {number:.10g}", at)


def read_integer(text: str, at: int, limits: Sequence[str]) -> Read:
    """Reads a whole number within limits."""
    match = _WHOLE.match(text, at)
    if not match or len(match[0]) > 18 or text[match.end() : match.end() + 1] == ".":
        raise ArgumentError("Expected integer", at)
    _bounded("Integer", int(match[0]), at, limits)
    return int(match[0]), match.end()


def read_real(text: str, at: int, limits: Sequence[str]) -> Read:
    """Reads a number within limits."""
    match = _NUMBER.match(text, at)
    if not match:
        raise ArgumentError("Expected float", at)
    number = real(match[0])
    _bounded("Float", number, at, limits)
    return number, match.end()


def read_ticks(text: str, at: int, _: Sequence[str]) -> Read:
    """Reads a time in ticks, seconds (``10s``) or days (``1d``)."""
    match = _TIME.match(text, at)
    if not match:
        raise ArgumentError("Expected a time such as 13000, 10s or 1d", at)
    ticks = round(float(match[1]) * _TIMES[match[2]])
    if ticks < 0:
        raise ArgumentError("Tick count must be non-negative", at)
    _bounded("Integer", ticks, at, ())
    return ticks, match.end()


def real(digits: str) -> float:
    """Returns the number that some digits say, to as many places as ``decimal`` writes."""
    return round(float(digits), _PLACES)


def decimal(number: float) -> str:
    """Returns a number without an exponent."""
    return f"{number:.{_PLACES}f}".rstrip("0").rstrip(".") or "0"


def read_coordinates(
    count: int, *, whole: bool = False, local: bool = True, centred: Sequence[int] = ()
) -> Reader:
    """Returns the reader of coordinates: each ``[sign, number]``, its sign ``~``, ``^`` or none.

    Args:
        count: how many.
        whole: whether they are those of a block.
        local: whether they may be local, with ``^``.
        centred: those for which a whole number is the middle of the block.
    """

    def read(text: str, at: int, _: Sequence[str]) -> Read:
        values: list[list[Any]] = []
        here = at
        for number in range(count):
            if number:
                if not text.startswith(" ", here):
                    raise ArgumentError(f"Incomplete (expected {count} coordinates)", at)
                here = len(text) - len(text[here:].lstrip(" "))
            sign = text[here] if here < len(text) and text[here] in "~^" else ""
            if sign == "^" and not local:
                raise ArgumentError("Expected a coordinate without ^", here)
            here += len(sign)
            match = _NUMBER.match(text, here)
            if not match and not sign:
                raise ArgumentError("Expected a coordinate", here)
            digits = match[0] if match else "0"
            if whole and not sign and "." in digits:
                raise ArgumentError("Expected integer", here)
            if abs(float(digits)) > FARTHEST:
                raise ArgumentError("That position is out of this world!", here)
            middle = 0.5 * (number in centred and not sign and "." not in digits)
            values.append([sign, real(digits) + middle])
            here = match.end() if match else here
        if len({sign == "^" for sign, _ in values}) > 1:
            raise ArgumentError(
                "Cannot mix world & local coordinates (everything must either use ^ or not)", at
            )
        return values, here

    return read


def written_coordinates(values: Sequence[Sequence[Any]]) -> str:
    """Returns coordinates as text."""

    def one(sign: str, number: float) -> str:
        return sign if sign and not number else f"{sign}{decimal(number)}"

    return " ".join(one(*each) for each in values)


def written_position(values: Sequence[Sequence[Any]]) -> str:
    """Returns coordinates as text, with a point: a whole number would be the middle of a block."""

    def one(sign: str, number: float) -> str:
        text = written_coordinates([(sign, number)])
        return text if sign or "." in text else f"{text}.0"

    return " ".join(one(*each) for each in values)
