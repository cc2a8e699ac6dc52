"""SNBT, the notation of item and entity data in commands, ``{Color:14,Tags:["a"]}``.

A tag is ``{"type": T, "value": V}`` as prismarine-nbt has it: numbers (``byte short int float
double``), ``string``, ``compound`` (tags by key), ``list`` (``{"type": T, "value": [V, ...]}``) and
``byteArray intArray longArray``; a ``long`` is its upper and lower 32 bits. The grammar is that of
Minecraft 1.16 (Minecraft Wiki, "NBT format").
"""

from __future__ import annotations

import math
import re
import struct
from typing import Any, TypeAlias

Tag: TypeAlias = dict[str, Any]

MOST_DEPTH = 64
"""Levels of nesting that are read; the game reads 512."""

_BARE = re.compile(r"[A-Za-z0-9_\-.+]+")
_WHOLE = re.compile(r"([-+]?(?:0|[1-9]\d*))([bslBSL]?)", re.ASCII)
_REAL = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)([fdFD])", re.ASCII)
_POINT = re.compile(r"[-+]?(?:\d+\.\d*|\d*\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_WHOLES = {"b": ("byte", 8), "s": ("short", 16), "": ("int", 32), "l": ("long", 64)}
_SUFFIX = {"byte": "b", "short": "s", "int": "", "float": "f", "double": "d"}
_ARRAYS = {"B": ("byteArray", 8, "b"), "I": ("intArray", 32, ""), "L": ("longArray", 64, "l")}
_LARGEST = 3.4028234663852886e38  # finite number that a float can be


class SnbtError(ValueError):
    """Text that is not SNBT.

    Attributes:
        at: index of the character where it is wrong.
    """

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def parse(text: str, at: int = 0) -> tuple[Tag, int]:
    """Returns the compound that begins at an index, and the index after it.

    Raises:
        SnbtError: there is none.
    """
    if not text.startswith("{", at):
        raise SnbtError("Expected '{'", at)
    return _Reader(text).value(at, 0)


def write(tag: Tag) -> str:
    """Returns a tag as text; ``parse`` gives the same tag again."""
    kind, value = tag["type"], tag["value"]
    if kind == "compound":
        return "{" + ",".join(f"{_key(key)}:{write(each)}" for key, each in value.items()) + "}"
    if kind == "list":
        inner = value["type"]
        return (
            "[" + ",".join(write({"type": inner, "value": each}) for each in value["value"]) + "]"
        )
    if kind == "string":
        return quoted(value)
    if kind == "long":
        return f"{_joined(value)}l"
    for letter, (name, _, suffix) in _ARRAYS.items():
        if kind == name:
            numbers = [_joined(each) if kind == "longArray" else each for each in value]
            return f"[{letter};" + ",".join(f"{each}{suffix}" for each in numbers) + "]"
    return f"{value!r}{_SUFFIX[kind]}"


def quoted(text: str) -> str:
    """Returns a text in quotation marks."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def plain(tag: Tag) -> Any:
    """Returns the value of a tag without the types of numbers."""
    kind, value = tag["type"], tag["value"]
    if kind == "compound":
        return {key: plain(each) for key, each in value.items()}
    if kind == "list":
        return [plain({"type": value["type"], "value": each}) for each in value["value"]]
    return _joined(value) if kind == "long" else value


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else quoted(key)


def _joined(halves: list[int]) -> int:
    return (halves[0] << 32) | (halves[1] & 0xFFFFFFFF)


def _halves(number: int) -> list[int]:
    low = number & 0xFFFFFFFF
    return [number >> 32, low - (1 << 32) if low >> 31 else low]


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def space(self, at: int) -> int:
        while at < len(self.text) and self.text[at] in " \t\n\r":
            at += 1
        return at

    def value(self, at: int, depth: int) -> tuple[Tag, int]:
        at = self.space(at)
        if depth > MOST_DEPTH:
            raise SnbtError(f"Expected at most {MOST_DEPTH} levels of nesting", at)
        first = self.text[at : at + 1]
        if first == "{":
            return self.compound(at, depth)
        if first == "[":
            if self.text[at + 2 : at + 3] == ";":
                return self.array(at)
            return self.list(at, depth)
        if first in ("'", '"') and first:
            text, at = self.string(at)
            return {"type": "string", "value": text}, at
        found = _BARE.match(self.text, at)
        if not found:
            raise SnbtError("Expected value", at)
        return _scalar(found[0]), found.end()

    def string(self, at: int) -> tuple[str, int]:
        """A key or a text, with or without quotation marks."""
        mark = self.text[at : at + 1]
        if not mark or mark not in "'\"":
            found = _BARE.match(self.text, at)
            if not found:
                raise SnbtError("Expected key", at)
            return found[0], found.end()
        out: list[str] = []
        here = at + 1
        while here < len(self.text):
            letter = self.text[here]
            if letter == mark:
                return "".join(out), here + 1
            if letter == "\\":
                here += 1
                letter = self.text[here : here + 1]
                if letter not in ("\\", mark):
                    raise SnbtError(f"Invalid escape sequence '\\{letter}' in quoted string", here)
            out.append(letter)
            here += 1
        raise SnbtError("Unclosed quoted string", at)

    def items(self, at: int, close: str) -> Any:
        """Yields the index of each element; is sent the index after it; returns that after all."""
        at = self.space(at + 1)
        while not self.text.startswith(close, at):
            at = self.space((yield at))
            if self.text.startswith(",", at):
                at = self.space(at + 1)
            elif not self.text.startswith(close, at):
                raise SnbtError(f"Expected '{close}'", at)
        return at + 1

    def gather(self, at: int, close: str, element: Any) -> int:
        walk = self.items(at, close)
        try:
            at = next(walk)
            while True:
                at = walk.send(element(at))
        except StopIteration as end:
            return int(end.value)

    def compound(self, at: int, depth: int) -> tuple[Tag, int]:
        tags: dict[str, Tag] = {}

        def element(here: int) -> int:
            key, here = self.string(here)
            if not key:
                raise SnbtError("Expected key", here)
            here = self.space(here)
            if not self.text.startswith(":", here):
                raise SnbtError("Expected ':'", here)
            tags[key], here = self.value(here + 1, depth + 1)
            return here

        end = self.gather(at, "}", element)
        return {"type": "compound", "value": tags}, end

    def list(self, at: int, depth: int) -> tuple[Tag, int]:
        values: list[Tag] = []

        def element(here: int) -> int:
            tag, after = self.value(here, depth + 1)
            if values and tag["type"] != values[0]["type"]:
                raise SnbtError(
                    f"Can't insert {tag['type']} into list of {values[0]['type']}", here
                )
            values.append(tag)
            return after

        end = self.gather(at, "]", element)
        kind = values[0]["type"] if values else "end"
        return {"type": "list", "value": {"type": kind, "value": [v["value"] for v in values]}}, end

    def array(self, at: int) -> tuple[Tag, int]:
        letter = self.text[at + 1]
        if letter not in _ARRAYS:
            raise SnbtError(f"Invalid array type '{letter}'", at + 1)
        name, _, suffix = _ARRAYS[letter]
        wanted = {"b": "byte", "": "int", "l": "long"}[suffix]
        values: list[Any] = []

        def element(here: int) -> int:
            tag, after = self.value(here, MOST_DEPTH)
            if tag["type"] != wanted:
                raise SnbtError(f"Can't insert {tag['type']} into {name}", here)
            values.append(tag["value"])
            return after

        end = self.gather(at + 2, "]", element)
        return {"type": name, "value": values}, end


def _scalar(word: str) -> Tag:
    """A number or a text without quotation marks; out of its range a number is a text."""
    if word in ("true", "false"):
        return {"type": "byte", "value": int(word == "true")}
    if match := _WHOLE.fullmatch(word):
        name, bits = _WHOLES[match[2].lower()]
        number = int(match[1])
        if -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            return {"type": name, "value": _halves(number) if name == "long" else number}
    elif match := _REAL.fullmatch(word):
        real = float(match[1])
        if match[2] in "fF" and abs(real) <= _LARGEST:
            return {"type": "float", "value": struct.unpack("<f", struct.pack("<f", real))[0]}
        if match[2] in "dD" and math.isfinite(real):
            return {"type": "double", "value": real}
    elif _POINT.fullmatch(word) and math.isfinite(float(word)):
        return {"type": "double", "value": float(word)}
    return {"type": "string", "value": word}
