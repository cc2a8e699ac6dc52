"""The scene of a start: blocks, commands and scripted players beside the world's state.

Scripted players are people that ask, answer, give, walk and follow. They are real clients, seen and
heard by the agents as any player, and play a script that the task gives; MineNPC-Task's fixture has
one who makes requests and answers questions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridges.mineflayer.arguments import TYPES
from bridges.mineflayer.commands import Command, CommandError, explained, parse_commands
from bridges.mineflayer.loadouts import Item, given
from bridges.mineflayer.reading import ArgumentError
from bridges.mineflayer.regions import Region, make_regions
from rollout.errors import ConfigError, UnknownNameError, named

# scripted players ---------------------------------------------------------------------------------

KEYS = ("at", "facing", "items", "script", "answers", "ask")
STEPS = ("say", "wait", "wait_chat", "wait_item", "go", "look", "give", "hit", "follow", "stay")
FACINGS = ("north", "east", "south", "west")
ASKS = ("once", "often")
LONGEST_SAY = 256  # characters of a chat message
LONGEST_WAIT = 24_000  # ticks
LIMIT = 600  # ticks of wait_chat and wait_item without their own, as of other steps

_NAME = re.compile(r"[A-Za-z0-9_]{1,16}", re.ASCII)


@dataclass(frozen=True)
class Player:
    """One scripted player.

    Attributes:
        name: of the player.
        at: where it stands at first, relative to the first agent.
        items: what it carries.
        script: its steps, in order, each ``{kind: value}``.
        answers: what it says when a message matches, ``(regular expression, text)``.
        once: whether it gives each answer only once.
        facing: where it looks at first; empty for the direction of any new player.
    """

    name: str
    at: tuple[int, int, int]
    items: tuple[Item, ...]
    script: tuple[Mapping[str, Any], ...]
    answers: tuple[tuple[str, str], ...]
    once: bool = False
    facing: str = ""

    def data(self) -> dict[str, Any]:
        """Returns the player in the form that the game gets."""
        return {
            "name": self.name,
            "at": list(self.at),
            "items": [item.as_data() for item in self.items],
            "script": [dict(step) for step in self.script],
            "answers": [list(answer) for answer in self.answers],
            "ask": ASKS[0] if self.once else ASKS[1],
            "facing": self.facing,
        }


def make_cast(players: Mapping[str, Any], agents: Sequence[str]) -> tuple[Player, ...]:
    """Returns the scripted players of a world.

    Args:
        players: by name, ``{"Ada": {"at": "2 0 0", "script": [{"say": "Hello."}]}}``.
        agents: names of the agents.

    Raises:
        ConfigError: a player, a step or an answer is not valid; it says which.
    """
    everyone = (*agents, *players)
    cast = []
    for name, asked in players.items():
        if not _NAME.fullmatch(name) or name in agents:
            raise ConfigError(
                f"players: expected names of 1 to 16 letters, digits or underscores that no agent "
                f"has, got {name!r}"
            )
        with named(f"players.{name}"):
            cast.append(_player(name, asked, everyone))
    return tuple(cast)


def _player(name: str, asked: Any, everyone: Sequence[str]) -> Player:
    if not isinstance(asked, Mapping):
        raise ConfigError(f"expected a mapping with {', '.join(KEYS)}, got {str(asked)[:60]!r}")
    for key in asked:
        if key not in KEYS:
            raise UnknownNameError("key", str(key), KEYS)
    script, answers = asked.get("script", []), asked.get("answers", {})
    if not isinstance(script, Sequence) or isinstance(script, str):
        raise ConfigError(f"script: expected a list of steps, got {str(script)[:60]!r}")
    if not isinstance(answers, Mapping):
        raise ConfigError(f"answers: expected {{pattern: text}}, got {str(answers)[:60]!r}")
    for pattern, text in answers.items():
        _say(text)
        _pattern("answers", pattern)
    ask, facing = asked.get("ask", ASKS[1]), asked.get("facing", "")
    if ask not in ASKS:
        raise UnknownNameError("ask", str(ask), ASKS)
    if facing and facing not in FACINGS:
        raise UnknownNameError("facing", str(facing), FACINGS)
    steps = tuple(_step(number, step, everyone) for number, step in enumerate(script))
    (items,) = given(_counts(asked.get("items", {})), [name])
    said = tuple((str(pattern), str(text)) for pattern, text in answers.items())
    at = _position(asked.get("at", "2 0 0"))
    return Player(name, at, items, steps, said, ask == ASKS[0], facing)


def _pattern(key: str, pattern: Any) -> str:
    if not re.fullmatch(r"[\w ,.?!'|*+()\[\]-]{1,80}", str(pattern)):
        raise ConfigError(
            f"{key}: expected a pattern of words with | * + ? ( ) [ ] . alone, got {pattern!r}"
        )
    try:
        re.compile(str(pattern))
    except re.error as error:
        raise ConfigError(f"{key}: {pattern!r} is no pattern: {error}") from error
    return str(pattern)


def _ticks(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LONGEST_WAIT:
        raise ConfigError(f"{key}: expected 1 to {LONGEST_WAIT} ticks, got {value!r}")
    return value


def _step(number: int, step: Any, everyone: Sequence[str]) -> Mapping[str, Any]:
    with named(f"script[{number}]"):
        if not isinstance(step, Mapping) or len(step) != 1:
            raise ConfigError(f"expected one of {', '.join(STEPS)}, got {str(step)[:60]!r}")
        ((kind, value),) = step.items()
        if kind not in STEPS:
            raise UnknownNameError("step", str(kind), STEPS)
        if kind == "say":
            _say(value)
        elif kind == "wait":
            _ticks(kind, value)
        elif kind == "wait_chat":
            _keys(kind, value, ("pattern",), ("ticks",))
            ticks = _ticks("ticks", value.get("ticks", LIMIT))
            value = {"pattern": _pattern("pattern", value["pattern"]), "ticks": ticks}
        elif kind == "wait_item":
            _keys(kind, value, ("item",), ("count", "ticks"))
            item = _stack(value)
            ticks = _ticks("ticks", value.get("ticks", LIMIT))
            value = {"item": item.name, "count": item.count, "ticks": ticks}
        elif kind == "go" or (kind == "look" and value not in everyone):
            value = list(_position(value))
        elif kind in ("follow", "hit"):
            _known(value, everyone)
        elif kind == "give":
            value = _gift(value, everyone)
        return {kind: value}


def _gift(value: Any, everyone: Sequence[str]) -> dict[str, Any]:
    _keys("give", value, ("item",), ("count", "to"))
    to = _known(value.get("to", everyone[0]), everyone)
    item = _stack(value)
    return {"item": item.name, "count": item.count, "to": to}


def _keys(step: str, value: Any, needed: Sequence[str], more: Sequence[str]) -> None:
    keys = set(value) if isinstance(value, Mapping) else set()
    if not set(needed) <= keys or keys - {*needed, *more}:
        listed = ", ".join((*needed, *more))
        raise ConfigError(f"{step}: expected {{{listed}}}, got {str(value)[:60]!r}")


def _stack(value: Mapping[str, Any]) -> Item:
    ((item,),) = given(_counts({value["item"]: value.get("count", 1)}), [""])
    return item


def _counts(items: Any) -> dict[str, int]:
    if not isinstance(items, Mapping) or not all(
        isinstance(count, int) and not isinstance(count, bool) for count in items.values()
    ):
        raise ConfigError(f"items: expected {{item: n}}, got {str(items)[:60]!r}")
    return {str(name): count for name, count in items.items()}


def _known(name: Any, everyone: Sequence[str]) -> str:
    if name not in everyone:
        raise UnknownNameError("player", str(name), everyone)
    return str(name)


def _say(text: Any) -> None:
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_SAY or text.startswith("/"):
        raise ConfigError(
            f"say: expected a text of 1 to {LONGEST_SAY} characters that is no command, got "
            f"{str(text)[:40]!r}"
        )


def _position(text: Any) -> tuple[int, int, int]:
    parts = str(text).split()
    if len(parts) != 3 or not all(re.fullmatch(r"-?\d{1,3}", part, re.ASCII) for part in parts):
        raise ConfigError(
            f"expected a place relative to the first agent such as '2 0 -1', got {str(text)[:40]!r}"
        )
    x, y, z = (int(part) for part in parts)
    return x, y, z


# scenes -------------------------------------------------------------------------------------------

FARTHEST = 512
"""Blocks from the spawn at which a block of a scene may be."""


@dataclass(frozen=True)
class Scene:
    """Initial blocks, commands and players of a world, and its regions.

    Attributes:
        blocks: block by place, relative to where the first agent stands.
        commands: run in their order by the first agent, once all players have joined.
        cast: the scripted players.
        regions: places that the trace and judges refer to.
    """

    blocks: Mapping[tuple[int, int, int], Mapping[str, Any]]
    commands: tuple[Command, ...] = ()
    cast: tuple[Player, ...] = ()
    regions: tuple[Region, ...] = ()

    def message(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the scene in the form that the game gets."""
        return {
            "blocks": [
                {"x": x, "y": y, "z": z, **block} for (x, y, z), block in self.blocks.items()
            ],
            "players": [player.data() for player in self.cast],
            "commands": [{**each.data(), "text": each.text()} for each in self.commands],
            "regions": [region.data() for region in self.regions],
        }


NO_SCENE = Scene({})
"""A scene that adds nothing."""


def make_scene(
    blocks: Mapping[str, str],
    commands: Sequence[str],
    players: Mapping[str, Any],
    agents: Sequence[str],
    regions: Mapping[str, Any] | None = None,
) -> Scene:
    """Returns a scene from a user's text.

    Args:
        blocks: block by place, ``{"2 0 0": "chest[facing=west]"}``.
        commands: with or without slash.
        players: scripted players by name, see ``cast``.
        agents: names of the agents.
        regions: by name, see ``make_regions``; None for none.

    Raises:
        CommandError: a block or a command is not one of the embedded world.
        ConfigError: a scripted player or a region is not valid.
    """
    if isinstance(commands, str):
        raise CommandError(f"commands: expected a list of commands, got the text {commands[:40]!r}")
    placed = {_place(place): _block(place, text) for place, text in blocks.items()}
    cast = make_cast(players, agents)
    parsed = parse_commands(commands, (*agents, *players))
    return Scene(placed, parsed, cast, make_regions(regions or {}))


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
