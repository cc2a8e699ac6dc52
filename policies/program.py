"""Plays one JavaScript program, in games whose actions are programs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import Columns, ColumnSpec, Decision, Details, Start
from rollout.errors import ConfigError
from rollout.files import read_document

log = logging.getLogger(__name__)

KIND, CODE, RESUME, NEW = "kind", "code", 0, 1  # the columns of the action, and values of the first


class Program:
    """Starts a program at the beginning of every episode, then lets it continue.

    An error that ends the program is logged as a warning; the episode continues without it.

    Args:
        path: the file of the program.
        space: the flat action space: ``kind`` (0 continue, 1 new) and ``code``, text.

    Raises:
        ConfigError: the file cannot be read, or the game has no such actions or refuses the text.
    """

    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(self, path: Path, space: spaces.Dict) -> None:
        text = space.spaces.get(CODE)
        if set(space.spaces) != {KIND, CODE} or not isinstance(text, spaces.Text):
            raise ConfigError(
                f"actions: {path} is a program, which needs a game with the action columns {KIND} "
                f"and {CODE}, e.g. bridge.name=mineflayer bridge.actions=code; the actions of this "
                f"game are {list(space.spaces)}"
            )
        self._path, self._code = path, _read(path, text)

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns that no slot has started its program."""
        return {
            "started": np.zeros(len(starts), np.bool_),
            "episode": np.array([start.episode for start in starts], np.int64),
        }

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns NEW with the program in the first step of an episode, RESUME in all others."""
        started = memory["started"]
        for row in np.flatnonzero(started):
            error = _error(details[int(row)] if details else {})
            if error:
                log.warning(
                    "episode %d: %s ended with %s in line %s: %s",
                    memory["episode"][row],
                    self._path,
                    error.get("error_type"),
                    error.get("error_line"),
                    error.get("error_message"),
                )
        code = np.full(len(started), "", object)
        code[~started] = self._code
        kind = np.where(started, RESUME, NEW).astype(np.int64)
        begun = {"started": np.ones_like(started), "episode": memory["episode"]}
        return Decision({KIND: kind, CODE: code}, begun)


def _read(path: Path, space: spaces.Text) -> str:
    try:
        text = read_document(path.expanduser()).decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"actions: {path} cannot be read: {error}") from error
    if not text.strip() or len(text) > space.max_length:
        raise ConfigError(
            f"actions: {path}: expected a program of 1 to {space.max_length} characters, "
            f"got {len(text)}"
        )
    if space.contains(text):
        return text
    for number, line in enumerate(text.split("\n"), 1):
        for character in line:
            if character not in space.character_set:
                raise ConfigError(
                    f"actions: {path}, line {number}: expected the characters of the game, "
                    f"got {character!r}; write it as an escape sequence, or leave it out"
                )
    return text


def _error(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """The error that ended the program in the last step; empty if there was none."""
    error: Mapping[str, Any] = details.get("code_info", {}).get("code_error") or {}
    return error
