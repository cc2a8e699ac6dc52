"""Minecraft's commands, as a start's scene has them: ``/give @s diamond_sword 1``.

One parser, driven by the table ``game/survival/commands.json``: a command that it accepts is one
that the embedded world has, with names that exist; the game gets it as data and has no parser of
its own. Errors come before anything is launched, in Minecraft's words, with the place of the
mistake and the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridges.mineflayer.arguments import TYPES
from bridges.mineflayer.reading import TABLE, ArgumentError, Token, forms, lacking
from rollout.errors import ConfigError, nearest

LONGEST = 32_500
"""Characters of a command; the game's own limit for command blocks."""

_TRAILING = "Expected whitespace to end one argument, but found trailing data"
_SHOWN = 12  # characters before the place of a mistake that a message shows, and after it
_MOST_NESTED = 32  # /execute run execute run ...


class CommandError(ConfigError):
    """A command that the embedded world cannot execute.

    Attributes:
        at: index in the command, without its slash, where it is wrong; -1 if it is not one place.
        word: the unknown name, if it is about one.
    """

    def __init__(self, message: str, at: int = -1, word: str = "") -> None:
        super().__init__(message)
        self.at, self.word = at, word


@dataclass(frozen=True)
class Command:
    """A parsed command.

    Attributes:
        name: its name in the table.
        form: number of its form.
        args: its arguments by their names, plain data; those not given are missing.
        steps: of ``/execute``: its steps, each a command of the table of steps.
        run: of ``/execute``: the command to run; None if it only tests a condition.
    """

    name: str
    form: int = 0
    args: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Command, ...] = ()
    run: Command | None = None

    def text(self) -> str:
        """Returns the command as text, without a slash; parsed, it gives this command again."""
        if self.name != "execute":
            return _written("commands", self)
        run = ("run", self.run.text()) if self.run else ()
        return " ".join(("execute", *(_written("execute", step) for step in self.steps), *run))

    def data(self) -> dict[str, Any]:
        """Returns the command in the form that the game gets."""
        plain: dict[str, Any] = {"name": self.name, "args": dict(self.args)}
        if self.name == "execute":
            plain["steps"] = [step.data() for step in self.steps]
            plain["run"] = self.run.data() if self.run else None
        return plain

    def players(self) -> Iterator[str]:
        """Yields the names of players in the command."""
        for value in self.args.values():
            if isinstance(value, dict) and "player" in value:
                yield str(value["player"])
        for inner in (*self.steps, *((self.run,) if self.run else ())):
            yield from inner.players()


def parse_command(line: str) -> Command:
    """Parses a command.

    Args:
        line: e.g. ``/summon sheep ~2 ~ ~ {Color:14}``; the slash may be missing.

    Raises:
        CommandError: it is not a command of the embedded world; at most 300 characters.
    """
    text = line.strip().removeprefix("/")
    try:
        if len(text) > LONGEST:
            raise ArgumentError(f"Expected at most {LONGEST} characters, got {len(text)}", 0)
        if any(not letter.isprintable() for letter in text):
            raise ArgumentError("Expected printable characters alone", 0)
        command, _ = _command(text, 0, 0)
    except ArgumentError as problem:
        raise CommandError(explained(text, problem), problem.at, problem.word) from None
    return command


def parse_commands(lines: Sequence[str], players: Sequence[str]) -> tuple[Command, ...]:
    """Parses the commands of a scene.

    Args:
        lines: the commands, in their order.
        players: names of all players of the world.

    Raises:
        CommandError: one is not a command of the embedded world, or names another player.
    """
    parsed = []
    for number, line in enumerate(lines):
        try:
            parsed.append(parse_command(line))
        except CommandError as error:
            raise CommandError(f"commands[{number}]: {error}") from None
        for name in parsed[-1].players():
            if name not in players:
                listed = ", ".join(nearest(name, players) or players[:3])
                raise CommandError(
                    f"commands[{number}]: No player was found: {name}. Nearest: {listed}"
                )
    return tuple(parsed)


def explained(text: str, problem: ArgumentError) -> str:
    """Returns the words for what is wrong with a text, and where; at most 270 characters."""
    at = min(problem.at, len(text))
    before, after = text[max(0, at - _SHOWN) : at], text[at : at + _SHOWN]
    place = f"{'...' * (at > _SHOWN)}{before}<--[HERE]{after}"
    close = nearest(problem.word, problem.valid) if problem.word else []
    hint = f". Nearest: {', '.join(close)}" if close else ""
    if not close and 0 < len(problem.valid) <= 12:
        hint = f". Expected one of {', '.join(problem.valid)}"
    return f"{problem} at position {at}: {place}{hint}"[:270]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] == " ":
        at += 1
    return at


def _head(text: str, at: int) -> tuple[str, int]:
    end = text.find(" ", at)
    end = len(text) if end < 0 else end
    return text[at:end], end


def _command(text: str, at: int, depth: int) -> tuple[Command, int]:
    at = _skip(text, at)
    name, end = _head(text, at)
    name = TABLE["aliases"].get(name, name)
    if name == "execute":
        return _execute(text, end, depth)
    if name in TABLE["lacks"]["commands"]:
        raise lacking(f"command /{name}", at)
    if name not in TABLE["commands"]:
        valid = (*TABLE["commands"], *TABLE["aliases"], "execute")
        raise ArgumentError("Unknown or incomplete command", at, name, valid)
    number, args, end = _any_form("commands", name, text, end, whole=True)
    return Command(name, number, args), end


def _execute(text: str, at: int, depth: int) -> tuple[Command, int]:
    if depth >= _MOST_NESTED:
        raise ArgumentError(f"Expected at most {_MOST_NESTED} nested commands", at)
    steps: list[Command] = []
    while True:
        at = _skip(text, at)
        name, end = _head(text, at)
        if name == "run":
            run, end = _command(text, end, depth + 1)
            return Command("execute", steps=tuple(steps), run=run), end
        if not name and steps and steps[-1].name in ("if", "unless"):
            return Command("execute", steps=tuple(steps)), at
        if name in TABLE["lacks"]["execute"]:
            raise lacking(f"/execute {name}", at)
        if name not in TABLE["execute"]:
            valid = (*TABLE["execute"], "run")
            raise ArgumentError("Unknown or incomplete command", at, name, valid)
        number, args, at = _any_form("execute", name, text, end, whole=False)
        steps.append(Command(name, number, args))


def _any_form(
    table: str, name: str, text: str, at: int, *, whole: bool
) -> tuple[int, dict[str, Any], int]:
    """The first form that fits; if none does, the problem of the one that got farthest."""
    worst: ArgumentError | None = None
    for number, tokens in enumerate(forms(table, name)):
        try:
            args, end = _form(tokens, text, at)
            if whole and _skip(text, end) < len(text):
                raise ArgumentError("Incorrect argument for command", _skip(text, end))
            return number, args, end
        except ArgumentError as problem:
            if worst is None or problem.at > worst.at:
                worst = problem
            elif problem.at == worst.at and problem.valid:
                valid = tuple(dict.fromkeys((*worst.valid, *problem.valid)))
                worst = ArgumentError(str(worst), worst.at, worst.word or problem.word, valid)
    assert worst is not None  # every command has a form
    raise worst


def _form(tokens: Sequence[Token], text: str, at: int) -> tuple[dict[str, Any], int]:
    args: dict[str, Any] = {}
    for token in tokens:
        here = _skip(text, at)
        if here == len(text):
            if token.optional:
                return args, at
            raise ArgumentError("Unknown or incomplete command", here)
        if here == at:
            raise ArgumentError(_TRAILING, here)
        if not token.name:
            word, at = _head(text, here)
            if word != token.word:
                raise ArgumentError("Incorrect argument for command", here, word, (token.word,))
            continue
        args[token.name], at = TYPES[token.word].read(text, here, token.parameters)
        if at < len(text) and text[at] != " ":
            raise ArgumentError(_TRAILING, at)
    return args, at


def _written(table: str, command: Command) -> str:
    parts = [command.name]
    for token in forms(table, command.name)[command.form]:
        if not token.name:
            parts.append(token.word)
        elif token.name in command.args:
            parts.append(TYPES[token.word].write(command.args[token.name]))
    return " ".join(parts)
