"""Games for language models of other libraries: what they are told, and what they answer."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from rollout.errors import ConfigError
from rollout.interop.games import Game, Games
from rollout.interop.moments import Moment
from rollout.models.grammar import UnusableAnswerError
from rollout.models.observations import MISSION

ACT = "act"
"""Name of the tool that plays an action."""

MOST_UNUSABLE = 3
"""Answers in a row without an action after which an episode is given up."""

_OPEN_S = 60.0  # for a game that was just given back, or fails again and again
_BLOCK = re.compile(r"<action>(.*?)</action>", re.DOTALL)


def instructions(games: Games, moment: Moment, *, tools: bool) -> str:
    """Returns the goal of the episode and how a model answers, by tools or by text."""
    goal = moment.details.get(MISSION) or games.task.goal or "Play the game as well as you can."
    if tools:
        return f"{goal}\n\nCall the tool {ACT} once for every action, until the episode is over."
    return (
        f"{goal}\n\nEvery answer of yours is one action, until the episode is over. An action is "
        f"{games.grammar.description}\nAnswer with the action alone, or end your answer with it "
        f"between <action> and </action>."
    )


def image_urls(moment: Moment) -> list[str]:
    """Returns the pictures of an observation, lossless, as URLs that contain them."""
    files = (base64.b64encode(file).decode() for _, file in moment.pictures())
    return [f"data:image/png;base64,{file}" for file in files]


def shown(moment: Moment) -> str:
    """Returns the observation in words, and the end of the episode if it has ended."""
    over = f"The episode is over ({moment.end})." if moment.done else ""
    return "\n\n".join(filter(None, (moment.text(), over)))


def read_answer(text: str) -> str:
    """Returns the action in an answer: what is between its tags, or the whole answer.

    Raises:
        UnusableAnswerError: there is more than one.
    """
    blocks = _BLOCK.findall(text)
    if len(blocks) > 1:
        raise UnusableAnswerError("two_blocks", f"expected one action, got {len(blocks)}")
    return str(blocks[0] if blocks else text).strip()


class Waiting:
    """Gives games to coroutines of one event loop; those that come too early wait.

    Args:
        games: the games.
    """

    def __init__(self, games: Games) -> None:
        self.games, self._free = games, asyncio.Semaphore(games.size)

    @asynccontextmanager
    async def game(self) -> AsyncIterator[Game]:
        """Waits for a game that nobody uses, and gives it back at the end.

        Raises:
            CapacityError: none can be launched.
        """
        async with self._free:
            game = await asyncio.to_thread(self.games.open, _OPEN_S)
            try:
                yield game
            finally:
                game.close()


class ActTool:
    """The tool that plays an action: a parameter for each column, or one called ``action``.

    Args:
        games: the games.

    Attributes:
        description: what the tool does.
        parameters: a JSON schema for each parameter, with a description.
        required: names of the parameters that must be given.

    Raises:
        ConfigError: two columns have names that differ in special characters only.
    """

    description = "Plays one action and returns what is seen then."

    def __init__(self, games: Games) -> None:
        schema, texts = games.grammar.schema, games.grammar.descriptions
        if schema["type"] != "object":
            schema = {"properties": {"action": schema}, "required": ["action"]}
            texts = {"action": next(iter(texts.values()))}
            self._columns = None
        else:
            self._columns = {re.sub(r"\W", "_", key): key for key in schema["properties"]}
            if len(self._columns) < len(schema["properties"]):
                raise ConfigError(
                    f"action columns whose names are the same as parameters of a tool: "
                    f"{', '.join(schema['properties'])}"
                )
        self.parameters: dict[str, dict[str, Any]] = {
            re.sub(r"\W", "_", key): {**value, "description": f"{key}: {texts[key]}"}
            for key, value in schema["properties"].items()
        }
        self.required = [re.sub(r"\W", "_", key) for key in schema["required"]]

    def action(self, arguments: Mapping[str, Any]) -> Any:
        """Returns the action of the arguments of a call, as ``Game.step`` takes it.

        Raises:
            UnusableAnswerError: there is a parameter that the tool does not have, or one is
                missing.
        """
        given = {key: value for key, value in arguments.items() if value is not None}
        for name in given:
            if name not in self.parameters:
                expected = ", ".join(self.parameters)
                raise UnusableAnswerError("unknown", f"{name!r} is none of {expected}")
        for name in self.required:
            if name not in given:
                raise UnusableAnswerError("malformed", f"the argument {name!r} is missing")
        if self._columns is None:
            return given["action"]
        return {self._columns[name]: value for name, value in given.items()}
