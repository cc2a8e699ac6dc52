"""The client of StarDojo's mod: one request at a time, with a deadline and errors by type."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bridges.stardojo.commands import message, table
from rollout.errors import GameCrashed, GameTimeout

END = b"<EOF>"
RECEIVED = "Message received"
IDLE_PROBE = ("get_monster_kills", ("Bug",))
"""A command that waits until the game is ready, changes nothing and answers with a number."""
STABLE_S = 0.25  # between two observations that have to agree
CHUNK = 2**20


class NoAnswerError(GameTimeout):
    """The game did not answer in time. The action may still be played: see ``Client.recover``."""


class ClosedEarlyError(GameCrashed):
    """The connection was refused, or closed before the answer was complete."""


class NoValueError(GameCrashed):
    """The answer has no value where one was expected: the command failed in the game."""


class Client:
    """Talks to the mod.

    Every request has a connection of its own and is one ``send``. A command that waits for the game
    to be ready is never sent while the game is paused, where it would hang. Not thread-safe: there
    is one request at a time.

    Args:
        port: on 127.0.0.1.
        alive: raises an error if the process of the game has ended.
    """

    def __init__(self, port: int, alive: Callable[[], None] = lambda: None) -> None:
        self._address, self._alive = ("127.0.0.1", port), alive
        self._paused = False
        self._pause = threading.Event()  # never set: a pause that ends by its timeout
        self.requests = 0

    @property
    def paused(self) -> bool:
        """True if this client paused the game."""
        return self._paused

    def wait(self, seconds: float) -> None:
        """Waits; raises an error if the game has ended meanwhile."""
        self._pause.wait(max(0.0, seconds))
        self._alive()

    def ask(self, name: str, arguments: Sequence[str | int] = (), *, timeout_s: float) -> str:
        """Returns the text of the answer.

        Raises:
            InputError: the request cannot be sent, see ``commands.message``.
            NoAnswerError: no complete answer within ``timeout_s``.
            ClosedEarlyError: the connection was refused or closed too early.
            GameCrashed: the process of the game has ended.
        """
        data = message(name, arguments)
        if self._paused and name not in table("commands")["ungated"]:
            self.resume(timeout_s=timeout_s)
        self.requests += 1
        deadline = time.monotonic() + timeout_s
        answer = bytearray()
        try:
            with socket.create_connection(self._address, timeout=max(timeout_s, 0.01)) as link:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link.sendall(data)
                while answer[-len(END) :] != END:
                    link.settimeout(max(deadline - time.monotonic(), 0.001))
                    more = link.recv(CHUNK)
                    if not more:
                        raise self._closed(name, answer)
                    answer += more
        except TimeoutError as error:
            self._alive()
            raise NoAnswerError(f"{name}: no complete answer within {timeout_s:g} s") from error
        except OSError as error:
            self._alive()
            raise ClosedEarlyError(f"{name}: {error}") from error
        return answer[: -len(END)].decode("ascii", "replace")

    def _closed(self, name: str, answer: bytes | bytearray) -> ClosedEarlyError:
        self._alive()
        return ClosedEarlyError(f"{name}: the connection closed after {len(answer)} bytes")

    def act(
        self, name: str, arguments: Sequence[str | int] = (), *, timeout_s: float
    ) -> bool | None:
        """Plays an action; returns what a move answers, None for others."""
        answer = self.ask(name, arguments, timeout_s=timeout_s)
        return {"True": True, "False": False}.get(answer)

    def number(self, name: str, arguments: Sequence[str | int] = (), *, timeout_s: float) -> int:
        """Returns the number that a command answers.

        Raises:
            NoValueError: it answers something else.
        """
        answer = self.ask(name, arguments, timeout_s=timeout_s)
        if not answer.removeprefix("-").isdecimal():
            raise NoValueError(f"{name}: expected a number, got {answer[:80]!r}")
        return int(answer)

    def pause(self, *, timeout_s: float) -> None:
        """Pauses the game."""
        self._paused = True  # before the answer, which may be lost
        self.ask("pause", timeout_s=timeout_s)

    def resume(self, *, timeout_s: float) -> None:
        """Resumes the game."""
        self.ask("resume", timeout_s=timeout_s)
        self._paused = False  # after the answer: a request that was not heard leaves it paused

    def observe(self, size: int, *, timeout_s: float) -> dict[str, Any]:
        """Returns the observation, as the mod names it.

        Raises:
            NoValueError: the answer is no JSON object, as while a save is loaded or in some shops.
        """
        answer = self.ask("observe_v2", (size,), timeout_s=timeout_s)
        try:
            found = None if answer == RECEIVED else json.loads(answer)
        except ValueError as error:
            raise NoValueError(f"observe_v2: not JSON: {answer[:80]!r}") from error
        if not isinstance(found, dict) or not isinstance(found.get("Player"), dict):
            raise NoValueError(f"observe_v2: expected an observation, got {answer[:80]!r}")
        return found

    def wait_idle(self, *, timeout_s: float) -> None:
        """Waits until the game is ready for an action, as its answer to a harmless one shows."""
        self.number(*IDLE_PROBE, timeout_s=timeout_s)

    def recover(self, *, timeout_s: float) -> None:
        """Waits, after a timeout, until the action that may still be played is through.

        Raises:
            NoAnswerError: the player does not come to rest within ``timeout_s``.
        """
        deadline = time.monotonic() + timeout_s
        before: object = None
        while (left := deadline - time.monotonic()) > 0:
            try:
                self.resume(timeout_s=left)
                self.wait_idle(timeout_s=left)
                seen = _at_rest(self.observe(1, timeout_s=left))
            except (NoValueError, ClosedEarlyError):
                seen = None
            if seen is not None and seen == before:
                return
            before = seen
            self.wait(min(STABLE_S, max(left, 0.0)))
        raise NoAnswerError(f"the player did not come to rest within {timeout_s:g} s")


def _at_rest(seen: Mapping[str, Any]) -> object:
    """Returns the parts of an observation that a lost action may still change."""
    player, menu = seen["Player"], seen.get("CurrentMenuData") or {}
    names = ("Location", "Position", "Inventory", "CurrentInventory", "FacingDirection", "Money")
    return [*(player.get(name) for name in names), menu.get("type"), menu.get("responses")]
