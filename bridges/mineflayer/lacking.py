"""Which mechanics of Minecraft embedded worlds lack, and what therefore cannot be done in them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rollout.errors import ConfigError
from rollout.yaml12 import load_yaml

log = logging.getLogger(__name__)
_TABLE = Path(__file__).with_name("lacking.yaml")
_ITEMS = Path(__file__).with_name("obtainable.json")


@lru_cache
def _table() -> Mapping[str, Mapping[str, re.Pattern[str]]]:
    data: Mapping[str, Mapping[str, Any]] = load_yaml(_TABLE, ours=True)
    return {
        mechanic: {key: re.compile(text, re.IGNORECASE) for key, text in patterns.items()}
        for mechanic, patterns in data.items()
    }


def mechanics() -> tuple[str, ...]:
    """Returns the names of the mechanics that embedded worlds lack."""
    return tuple(_table())


@lru_cache
def obtainable() -> frozenset[str]:
    """Returns the items that agents can come by in embedded worlds; see game/obtainable.js."""
    return frozenset(json.loads(_ITEMS.read_text()))


def lacking_for_item(item: str) -> str | None:
    """Returns the mechanic that an item needs and embedded worlds lack; None if it can be had."""
    if item in obtainable():
        return None
    found = (name for name, of in _table().items() if "items" in of and of["items"].search(item))
    return next(found, "a way to come by it")


def lacking_for_goal(goal: str) -> list[str]:
    """Returns the mechanics that the words of a goal ask for and embedded worlds lack."""
    return [name for name, of in _table().items() if "words" in of and of["words"].search(goal)]


def check_item(task_id: str, item: str, given: bool) -> None:
    """Checks that an item can be had in embedded worlds.

    Args:
        task_id: for the message.
        item: what is to be had.
        given: whether the agents have some at the start.

    Raises:
        ConfigError: it cannot; the message names the mechanic that is missing.
    """
    mechanic = None if given else lacking_for_item(item)
    if mechanic is not None:
        raise ConfigError(
            f"task {task_id!r}: {item} needs {mechanic}, which embedded worlds lack; play it on a "
            f"server that has it (bridge.mode=remote), or choose another item"
        )


@lru_cache
def warn(task_id: str, mechanics: tuple[str, ...]) -> None:
    """Says, once, that a task asks for what embedded worlds lack."""
    log.warning(
        "task %s: its goal seems to need %s, which embedded worlds lack (bridge.mode=remote)",
        task_id,
        ", ".join(mechanics),
    )
