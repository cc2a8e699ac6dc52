"""The types of arguments of Minecraft's commands, by the names of the table of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from bridges.mineflayer import snbt
from bridges.mineflayer.command_table import LOOT_TABLES, TABLE
from bridges.mineflayer.names import names
from bridges.mineflayer.reading import (
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
    written_coordinates,
    written_position,
)
from bridges.mineflayer.selectors import targets, written_selector

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
    """A compound whose keys are those that the world knows; ``tags`` names their table."""
    value, end = _compound(text, at)
    known: Mapping[str, str] = TABLE[tags]
    for key, tag in value["value"].items():
        if key in TABLE["lacks"][tags]:
            raise lacking(f"{TABLE['lacks'][tags][key]} (tag {key})", at)
        if key not in known:
            raise ArgumentError(f"Unknown tag '{key[:40]}'", at, key, known)
        _check_tag(known[key], key, tag, at)
    return value, end


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
