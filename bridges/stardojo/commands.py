"""The commands of the mod: names, arguments, and calls as the task files write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rollout.errors import InputError, UnknownNameError
from rollout.yaml12 import load_yaml

TABLES = Path(__file__).parent / "data"

LONGEST = 256
"""Bytes that the mod reads at once: a longer message becomes two."""

REQUIRED = "?"

SAVES = {
    "save_new": ("StarDojo_406041616", "Agent New"),
    "save_farming": ("StarDojo_396780002", "Agent Farming"),
    "save_quests": ("StarDojo_398533889", "Agent Quests"),
}
"""The saves of StarDojo: the folder of each, and the player, by whom a load is recognized."""


@cache
def table(name: str) -> Any:
    """Returns the contents of a table of this bridge; not to be changed."""
    return load_yaml(TABLES / f"{name}.yaml", ours=True)


@cache
def arities() -> Mapping[str, int]:
    """Returns the number of arguments of every command."""
    commands = table("commands")
    return {
        name: len(given) for name, given in {**commands["setup"], **commands["actions"]}.items()
    }


def message(name: str, arguments: Sequence[str | int]) -> bytes:
    """Returns the bytes of one request.

    Raises:
        UnknownNameError: the mod has no such command.
        InputError: the arguments cannot be sent: their number, a whole number that is none, a
            character that the protocol has no way to send, or more than 256 bytes in all.
    """
    known = arities()
    if name not in known:
        raise UnknownNameError("command of the mod", name, known)
    words = [str(each) for each in arguments]
    if len(words) != known[name]:
        raise InputError(f"{name}: expected {known[name]} arguments, got {words}")
    if name in table("commands")["integers"]:
        for word in words:
            if whole(word) is None:
                raise InputError(f"{name}: expected whole numbers, got {word!r} in {words}")
    text = "%".join([name, *words])
    if not text.isascii() or "\n" in text or "\r" in text or any("%" in word for word in words):
        raise InputError(
            f"{name}: arguments are ASCII without % and line ends, which the mod cannot read; "
            f"got {words}"
        )
    if len(text) > LONGEST:
        raise InputError(f"{name}: a message has at most {LONGEST} bytes, this has {len(text)}")
    return text.encode("ascii")


def parse_call(text: str) -> tuple[str, tuple[str, ...]]:
    """Returns a command of a task file and all its arguments as they are sent.

    Args:
        text: a call as in Python, such as ``add_item_by_name("Hay", 12)``. Its arguments are
            literals; nothing is executed.

    Raises:
        InputError: it is not such a call, or its arguments do not fit the command.
        UnknownNameError: the mod has no such command.
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise InputError(f"init command {text!r}: expected a call such as warp_mine(1)") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise InputError(f"init command {text!r}: expected a call such as warp_mine(1)")
    name, known = call.func.id, table("commands")["setup"]
    if name not in known:
        raise UnknownNameError(f"init command in {text!r}", name, known)
    given: Mapping[str, Any] = known[name]
    if len(call.args) > len(given):
        raise InputError(f"init command {text!r}: {name} has {len(given)} arguments: {[*given]}")
    values = dict(zip(given, (_literal(each, text) for each in call.args), strict=False))
    for keyword in call.keywords:
        argument = str(keyword.arg)
        if argument not in given or argument in values:
            raise UnknownNameError(f"argument of {name} in {text!r}", argument, given)
        values[argument] = _literal(keyword.value, text)
    missing = [each for each, value in given.items() if value == REQUIRED and each not in values]
    if missing:
        raise InputError(f"init command {text!r}: the argument {missing[0]} is missing")
    words = tuple(str(values.get(each, default)) for each, default in given.items())
    message(name, words)
    return name, words


def _literal(node: ast.expr, text: str) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError) as error:
        raise InputError(
            f"init command {text!r}: arguments are literals (text, numbers, None), got "
            f"{ast.unparse(node)}"
        ) from error
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InputError(f"init command {text!r}: expected text, a number or None, got {value!r}")
    return value


def whole(word: str) -> int | None:
    """Returns the whole number of 32 bits that a word is for the mod, None if it is none."""
    if re.fullmatch(r"\s*[+-]?[0-9]+\s*", word, re.ASCII) is None:
        return None
    number = int(word)
    return number if -(2**31) <= number < 2**31 else None


def setup_values(name: str, words: Sequence[str]) -> tuple[Any, ...]:
    """Returns the arguments of a command of the setup as a valley takes them.

    These are texts, whole numbers and None. A word that should be a number and is none stays text,
    which the valley refuses.
    """
    values: list[Any] = []
    for (argument, default), word in zip(
        table("commands")["setup"][name].items(), words, strict=True
    ):
        numeric = argument in table("commands")["whole"]
        number = whole(word) if numeric else None
        missing = word == "None" and (numeric or default is None)
        values.append(number if number is not None else None if missing else word)
    return tuple(values)
