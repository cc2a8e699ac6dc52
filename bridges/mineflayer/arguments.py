"""The types of arguments of Minecraft's commands, by the names of the table of commands.

A selector such as ``@e[type=sheep,distance=..5]`` is ``{"select": letter, "where": [[key, value,
negated], ...]}``, or ``{"player": name}`` for a single name (Minecraft Wiki, "Target selectors").
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from bridges.mineflayer import snbt
from bridges.mineflayer.names import names
from bridges.mineflayer.reading import (
    LOOT_TABLES,
    MOST,
    TABLE,
    WORD,
    ArgumentError,
    ArgumentType,
    Read,
    Reader,
    decimal,
    lacking,
    read_choice,
    read_coordinates,
    read_flag,
    read_integer,
    read_known,
    read_real,
    read_rest,
    read_ticks,
    read_word,
    real,
    written_coordinates,
    written_position,
)
from rollout.errors import nearest

log = logging.getLogger(__name__)

# selectors ----------------------------------------------------------------------------------------

SELECTORS = ("p", "a", "r", "s", "e")
MODES = ("survival", "creative", "adventure", "spectator")
SORTS = ("nearest", "furthest", "random", "arbitrary")

_NAME = re.compile(r"[A-Za-z0-9_]{1,16}", re.ASCII)
_END = r"(-?(?:\d{1,15}(?:\.(?!\.)\d{0,40})?|\.(?!\.)\d{1,40}))?"
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
    low = None if first is None else real(first)
    high = low if not dots else None if last is None else real(last)
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


# types --------------------------------------------------------------------------------------------

SLOTS = (
    *("weapon", "weapon.mainhand", "weapon.offhand"),
    *("armor.head", "armor.chest", "armor.legs", "armor.feet"),
    *(f"hotbar.{k}" for k in range(9)),
    *(f"inventory.{k}" for k in range(27)),
    *(f"enderchest.{k}" for k in range(27)),
    *(f"container.{k}" for k in range(54)),
)


def _compound(text: str, at: int) -> Read:
    try:
        return snbt.parse(text, at)
    except snbt.SnbtError as error:
        raise ArgumentError(str(error), error.at) from error


def _tagged(text: str, at: int, tags: str) -> Read:
    """A compound without keys that the world lacks; ``tags`` names their table.

    Those that the game does not know either are ignored, as in the game.
    """
    value, end = _compound(text, at)
    known: Mapping[str, str] = TABLE[tags]
    for key, tag in value["value"].items():
        if key in TABLE["lacks"][tags]:
            raise lacking(f"{TABLE['lacks'][tags][key]} (tag {key})", at)
        if key in known:
            _check_tag(known[key], key, tag, at)
        else:
            _ignored(key, tags)
    return value, end


@lru_cache
def _ignored(key: str, tags: str) -> None:
    """Warns, once, of a tag that has no effect."""
    close = nearest(key, TABLE[tags])
    hint = f"; the nearest that it knows: {', '.join(close)}" if close else ""
    log.warning("Minecraft 1.16.5 ignores the tag %r%s", key[:40], hint)


def _check_tag(kind: str, key: str, tag: snbt.Tag, at: int) -> None:
    value = snbt.plain(tag)
    good = {
        "number": isinstance(value, int | float),
        "text": isinstance(value, str),
        "loot": isinstance(value, str),
        "words": isinstance(value, list) and all(isinstance(each, str) for each in value),
        "item": isinstance(value, dict),
        "owner": isinstance(value, str | list),
        "compound": isinstance(value, dict),
    }.get(kind, isinstance(value, list) and all(isinstance(each, dict) for each in value))
    if not good:
        raise ArgumentError(f"Tag {key}: expected {kind}", at)
    if kind == "loot":
        table = value.removeprefix("minecraft:").removeprefix("chests/")
        if table not in LOOT_TABLES:
            raise ArgumentError(f"Unknown loot table '{table[:40]}'", at, table, LOOT_TABLES)
    if kind in ("item", "items"):
        for item in [value] if kind == "item" else value:
            _check_item(item, key, at)
    if kind == "effects" and not all(isinstance(each.get("Id"), int) for each in value):
        raise ArgumentError(f"Tag {key}: expected the number of an effect as Id", at)


def _check_item(item: Mapping[str, Any], key: str, at: int) -> None:
    if not item:
        return  # nothing, as in HandItems:[{},{id:"bow",Count:1b}]
    name = str(item.get("id", "")).removeprefix("minecraft:")
    if name not in (*names().items, "air"):
        raise ArgumentError(f"Unknown item '{name[:40]}' in tag {key}", at, name, names().items)
    for each in ("Count", "Slot"):
        if not isinstance(item.get(each, 1), int):
            raise ArgumentError(f"Tag {key}: expected {each} as a whole number", at)
    _check_enchantments(item.get("tag", {}), at)


def _check_enchantments(data: Any, at: int) -> None:
    given = data.get("Enchantments", []) if isinstance(data, dict) else None
    if not isinstance(given, list):
        raise ArgumentError("Tag Enchantments: expected a list", at)
    valid = names().enchantments
    for each in given:
        name = str(each.get("id", "") if isinstance(each, dict) else each)
        plain = name.removeprefix("minecraft:")
        if plain not in valid:
            raise ArgumentError(f"Unknown enchantment: {name[:40]}", at, plain, valid)


@lru_cache
def _every_item() -> frozenset[str]:
    return frozenset((*names().items, "air"))


def _item(text: str, at: int, _: Sequence[str]) -> Read:
    if text.startswith("#", at):
        raise lacking("tags of items (#)", at)
    name, end = read_known("item", _every_item)(text, at, ())
    item = {"name": name}
    if text.startswith("{", end):
        item["nbt"], after = _compound(text, end)
        _check_enchantments(snbt.plain(item["nbt"]), end)
        end = after
    return item, end


def _block(text: str, at: int, _: Sequence[str]) -> Read:
    if text.startswith("#", at):
        raise lacking("tags of blocks (#)", at)
    name, end = read_known("block type", lambda: names().blocks)(text, at, ())
    block: dict[str, Any] = {"name": name}
    if text.startswith("[", end):
        block["properties"], end = _properties(text, end, name)
    if text.startswith("{", end):
        block["nbt"], end = _tagged(text, end, "block_tags")
    return block, end


def _properties(text: str, at: int, name: str) -> Read:
    close = text.find("]", at)
    if close < 0:
        raise ArgumentError("Expected closing ] for block state properties", at)
    known = names().properties(name)
    found: dict[str, str] = {}
    for part in filter(None, text[at + 1 : close].split(",")):
        key, sign, value = (each.strip() for each in part.partition("="))
        if key not in known:
            message = f"Block {name} does not have property '{key[:20]}'"
            raise ArgumentError(message, at, key, known)
        if not sign or value not in known[key]:
            message = f"Block {name} does not accept '{value[:20]}' for {key} property"
            raise ArgumentError(message, at, value, known[key])
        if key in found:
            raise ArgumentError(f"Property '{key}' can only be set once for block {name}", at)
        found[key] = value
    return found, close + 1


def _written_block(block: Mapping[str, Any]) -> str:
    text = str(block["name"])
    if "properties" in block:
        text += "[" + ",".join(f"{key}={value}" for key, value in block["properties"].items()) + "]"
    return text + (snbt.write(block["nbt"]) if "nbt" in block else "")


def _creature(text: str, at: int, _: Sequence[str]) -> Read:
    kind, end = read_known("entity:", lambda: names().entities)(text, at, ())
    if kind not in (*names().mobs, *TABLE["summoned"]):
        raise lacking(f"entities of the kind {kind}", at)
    return kind, end


def _rule(which: str) -> Reader:
    def read(text: str, at: int, _: Sequence[str]) -> Read:
        word, end = read_word(text, at, ())
        if word in TABLE["lacks"]["rules"]:
            raise lacking(f"game rule {word}", at)
        if word not in TABLE["rules"][which]:
            every = (*TABLE["rules"]["flags"], *TABLE["rules"]["numbers"])
            raise ArgumentError("Incorrect argument for command", at, word, every)
        return word, end

    return read


def _lower(flag: Any) -> str:
    return str(flag).lower()


_POINT = read_coordinates(3, whole=True)
TYPES: Mapping[str, ArgumentType] = {
    "angle": ArgumentType(read_coordinates(1, local=False), written_coordinates),
    "block": ArgumentType(_block, _written_block),
    "block_pos": ArgumentType(_POINT, written_coordinates),
    "bool": ArgumentType(read_flag, _lower),
    "choice": ArgumentType(read_choice),
    "column": ArgumentType(read_coordinates(2, local=False, centred=(0, 1)), written_position),
    "creature": ArgumentType(_creature),
    "creature_nbt": ArgumentType(
        lambda text, at, _: _tagged(text, at, "creature_tags"), snbt.write
    ),
    "effect": ArgumentType(read_known("effect:", lambda: names().effects)),
    "enchantment": ArgumentType(read_known("enchantment:", lambda: names().enchantments)),
    "entities": ArgumentType(targets(), written_selector),
    "entity": ArgumentType(targets(single=True), written_selector),
    "filter": ArgumentType(_block, _written_block),
    "flag_rule": ArgumentType(_rule("flags")),
    "float": ArgumentType(read_real, decimal),
    "int": ArgumentType(read_integer),
    "item": ArgumentType(_item, _written_block),
    "number_rule": ArgumentType(_rule("numbers")),
    "players": ArgumentType(targets(players=True), written_selector),
    "position": ArgumentType(read_coordinates(3, centred=(0, 2)), written_position),
    "rotation": ArgumentType(read_coordinates(2, local=False), written_coordinates),
    "slot": ArgumentType(read_known("slot", lambda: SLOTS)),
    "text": ArgumentType(read_rest),
    "time": ArgumentType(read_ticks),
    "word": ArgumentType(read_word),
}
"""The types of arguments by the names that the table of commands uses."""
