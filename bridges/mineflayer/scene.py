"""The scene of a start: blocks and commands that a world begins with, beside its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridges.mineflayer.arguments import TYPES
from bridges.mineflayer.cast import Player, make_cast
from bridges.mineflayer.commands import Command, CommandError, explained, parse_commands
from bridges.mineflayer.reading import ArgumentError

FARTHEST = 512
"""Blocks from the spawn at which a block of a scene may be."""


@dataclass(frozen=True)
class Scene:
    """What a world begins with.

    Attributes:
        blocks: block by place, relative to where the first agent stands.
        commands: run in their order by the first agent, once all players have joined.
        cast: the scripted players.
    """

    blocks: Mapping[tuple[int, int, int], Mapping[str, Any]]
    commands: tuple[Command, ...] = ()
    cast: tuple[Player, ...] = ()

    def message(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the scene in the form that the game gets."""
        return {
            "blocks": [
                {"x": x, "y": y, "z": z, **block} for (x, y, z), block in self.blocks.items()
            ],
            "players": [player.data() for player in self.cast],
            "commands": [{**each.data(), "text": each.text()} for each in self.commands],
        }


NO_SCENE = Scene({})
"""A scene that adds nothing."""


def make_scene(
    blocks: Mapping[str, str],
    commands: Sequence[str],
    players: Mapping[str, Any],
    agents: Sequence[str],
) -> Scene:
    """Returns a scene from a user's text.

    Args:
        blocks: block by place, ``{"2 0 0": "chest[facing=west]"}``.
        commands: with or without slash.
        players: scripted players by name, see ``cast``.
        agents: names of the agents.

    Raises:
        CommandError: a block or a command is not one of the embedded world.
        ConfigError: a scripted player is not valid.
    """
    if isinstance(commands, str):
        raise CommandError(f"commands: expected a list of commands, got the text {commands[:40]!r}")
    placed = {_place(place): _block(place, text) for place, text in blocks.items()}
    cast = make_cast(players, agents)
    return Scene(placed, parse_commands(commands, (*agents, *players)), cast)


def _place(text: str) -> tuple[int, int, int]:
    try:
        x, y, z = (int(each) for each in text.split())
    except ValueError:
        x = y = z = FARTHEST + 1
    if max(abs(x), abs(y), abs(z)) > FARTHEST:
        raise CommandError(
            f"blocks: expected a place relative to the first agent, three whole numbers up to "
            f"{FARTHEST} such as '2 0 -1', got {text[:40]!r}"
        )
    return x, y, z


def _block(place: str, text: str) -> Mapping[str, Any]:
    try:
        block, end = TYPES["block"].read(text, 0, ())
        if end < len(text):
            raise ArgumentError("Incorrect argument for command", end)
    except ArgumentError as problem:
        raise CommandError(f"blocks[{place}]: {explained(text, problem)}") from None
    found: Mapping[str, Any] = block
    return found
