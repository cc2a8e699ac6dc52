"""The real game behind its mod, with the methods of a valley; or a server in its place."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bridges.stardojo import facts
from bridges.stardojo.client import Client, ClosedEarlyError, NoAnswerError, NoValueError
from bridges.stardojo.commands import SAVES, table
from rollout.api.child_process import ChildProcess
from rollout.errors import ConfigError, GameCrashed, GameStartError, GameTimeout

TICKS_PER_SECOND = 60
RETRIES = 5
RETRY_S = 0.15
_MOVES = ("move", "move_relative", "move_step", "navigate")
_STARTS_S = 0.5
_ADD = "add_item_by_name"
LOADS = 3

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ModOptions:
    """Options of the game and of its client.

    Attributes:
        game: path of ``StardewModdingAPI``; empty for the server of this bridge.
        saves: folder with the folders ``save_new`` and so on of StarDojo; with ``game`` only.
        faults: switches of the server; empty for none.
        action_s: longest wait for an action.
        move_s: longest wait for a move or an observation.
        settle_s: seconds of running game after each action; 0 waits only until the game is ready.
        real_time: whether the game runs while the policy decides.
    """

    game: str = ""
    saves: str = ""
    faults: str = ""
    action_s: float = 5.0
    move_s: float = 30.0
    settle_s: float = 0.0
    real_time: bool = False

    def check(self) -> None:
        """Checks what can be checked before anything is launched.

        Raises:
            ConfigError: a program, folder or file does not exist.
        """
        if not self.game:
            return
        if not Path(self.game).is_file():
            raise ConfigError(
                f"game: {self.game} does not exist; give the path of StardewModdingAPI"
            )
        if not shutil.which("xvfb-run"):
            raise ConfigError("game: xvfb-run was not found; install Xvfb, or leave game empty")
        for save in SAVES:
            self.save(save)

    def save(self, name: str) -> Path:
        """Returns the folder of a save in the user's copy.

        Raises:
            ConfigError: it is not there.
        """
        folder = Path(self.saves) / name
        inner = sorted(each for each in folder.glob("*") if each.is_dir())
        if not self.saves or not inner:
            raise ConfigError(
                f"saves: expected a save in {folder}; give StarDojo's env/tasks/saves"
            )
        return inner[0]

    def command(self, port: int) -> list[str]:
        """Returns the command that starts the game on a port."""
        if self.game:
            screen = ["xvfb-run", "-a", "-s", "-screen 0 1280x720x24"]
            return [*screen, self.game, "--port-id", str(port)]
        server = [sys.executable, "-m", "bridges.stardojo.server", "--port-id", str(port)]
        return [*server, *(["--faults", self.faults] if self.faults else [])]


class ModGame:
    """One game behind the mod's socket: its actions, commands and observations.

    An action is sent once: if its answer is lost, the game is waited for and what it did is seen,
    it is never sent again. What changes nothing is asked again.

    Args:
        options: how it is started.
        folder: of this game alone.
        port: a free port.
        timeout_s: seconds until it has to listen.

    Raises:
        GameStartError: it does not listen in time, or ends.
    """

    def __init__(self, options: ModOptions, folder: Path, port: int, *, timeout_s: float) -> None:
        self._options, self._folder, self._port = options, folder, port
        self.ACTIONS = tuple(table("commands")["actions"])
        self.features: frozenset[str] = frozenset()
        self.unanswered = self.restarts = 0
        self._doubtful = False
        self._vain = 0  # actions in a row that changed nothing
        self._last: Any = None
        self._start(time.monotonic() + timeout_s)

    def _start(self, deadline: float) -> None:
        here = str(Path(__file__).parents[2])
        command = self._options.command(self._port)
        self._process = GameProcess(
            command, self._folder / "game", self._port, {"PYTHONPATH": here}
        )
        self.client = Client(self._port, self._process.alive)
        self._doubtful = False
        try:
            self._begin(deadline)
        except BaseException:
            self.close()
            raise

    def _begin(self, deadline: float) -> None:
        while True:
            try:
                self.client.ask("resume", timeout_s=_STARTS_S)
            except GameCrashed as error:
                if not isinstance(error, ClosedEarlyError):
                    raise GameStartError(str(error)) from error
            except GameTimeout:
                pass
            else:
                return
            if not until(deadline):
                raise GameStartError(
                    f"the mod does not listen on port {self._port} in time; is the port in use, "
                    f"and is StardojoMod installed?"
                )

    def load(
        self, save: str, setup: Sequence[tuple[str, Sequence[Any]]], *, timeout_s: float
    ) -> dict[str, Any]:
        """Loads a save, sets it up, and returns the observation of a game that is ready.

        Raises:
            GameTimeout: the save is not loaded in time.
            GameCrashed: the game ended, or a command of the setup has no effect.
        """
        deadline = time.monotonic() + timeout_s
        if self._doubtful:
            self._restart(deadline)
        had: dict[str, int] = {}
        for _ in range(LOADS):
            seen = self._loaded(save, deadline)
            self.features = frozenset({"progression"} & {name.lower() for name in seen})
            had = {words[0]: facts.held(seen, {words[0]}) for name, words in setup if name == _ADD}
            for name, words in setup:
                seen = self._set_up(name, [str(each) for each in words], seen, deadline)
                if name == _ADD:
                    had[words[0]] += int(words[1])
            self._vain, self._last = 0, None
            seen = self.observe()
            if all(facts.held(seen, {name}) == count for name, count in had.items()):
                return seen  # a command whose answer was lost was not played twice
        raise GameCrashed(f"the setup of {save} did not give what it should: {had}")

    def _restart(self, deadline: float) -> None:
        """Starts the game again, as an action whose answer was lost may still be played."""
        self.restarts += 1
        self.close()
        shutil.rmtree(self._folder / "game", ignore_errors=True)
        self._start(deadline)

    def _surely(self, ask: Callable[[], Answer]) -> Answer:
        """Asks what may be asked twice, a few times until it is answered."""
        for _ in range(RETRIES):
            try:
                return ask()
            except (NoAnswerError, NoValueError, ClosedEarlyError):
                self.client.wait(RETRY_S)
        return ask()

    def _patiently(self, name: str, words: Sequence[Any], deadline: float) -> str:
        """Sends what may be sent twice, until it is answered."""
        while True:
            try:
                return self.client.ask(name, words, timeout_s=self._options.action_s)
            except (NoAnswerError, ClosedEarlyError):
                if not until(deadline):
                    raise

    def _loaded(self, save: str, deadline: float) -> dict[str, Any]:
        """Loads a save and polls until the day of its player has begun."""
        folder = SAVES[save][0]
        if self._options.game:
            folder = self._process.copy_save(self._options.save(save))
        self._patiently("exit_title", (), deadline)
        self._patiently("load_game_record", (folder,), deadline)
        while True:
            try:
                seen = self.client.observe(3, timeout_s=self._options.move_s)
                days = (seen.get("CallBackData") or {}).get("OnDayStarted") or 0
                if days >= 1 and seen["Player"].get("Name") == SAVES[save][1]:
                    self.client.wait_idle(timeout_s=self._options.action_s)
                    return seen
            except (NoValueError, NoAnswerError, ClosedEarlyError):
                pass
            if not until(deadline):
                raise GameTimeout(f"the save {save} was not loaded in time")

    def _set_up(
        self, name: str, words: list[str], before: Mapping[str, Any], deadline: float
    ) -> dict[str, Any]:
        """Sends a command of the setup, and again if its effect is missing."""
        for _ in range(RETRIES):
            lost = False
            try:
                self.client.ask(name, words, timeout_s=self._options.action_s)
            except (NoAnswerError, ClosedEarlyError):
                lost = self._doubtful = True
            self.client.recover(timeout_s=max(deadline - time.monotonic(), 1.0))
            seen = self._observed()
            done = _took_effect(name, words, before, seen)
            if done or (done is None and not lost):
                return seen
        raise GameCrashed(f"the command {name} of the setup has no effect: {words}")

    def act(self, name: str, args: Sequence[Any] = ()) -> bool | None:
        """Plays an action and waits until the game is ready for the next.

        Returns what a move answers; None for others, and if the answer was lost.
        """
        if self._vain > 1 and name != "exit_menu":
            self._vain = 0  # a menu that is not reported may block everything
            self.act("exit_menu")
        limit = self._options.move_s if name in _MOVES else self._options.action_s
        reply = None
        if self.client.paused:
            self._surely(lambda: self.client.resume(timeout_s=self._options.action_s))
        try:
            reply = self.client.act(name, [str(each) for each in args], timeout_s=limit)
        except (NoAnswerError, ClosedEarlyError):
            self.unanswered += 1
            self._doubtful = True
            self.client.recover(timeout_s=self._options.move_s)
        else:
            self._surely(lambda: self.client.wait_idle(timeout_s=self._options.action_s))
        if self._options.settle_s:
            self.client.wait(self._options.settle_s)
        return reply

    def setup(self, name: str, args: Sequence[Any] = ()) -> int | None:
        """Sends a command of the setup; returns the number of ``get_monster_kills``."""
        words = [str(each) for each in args]
        if name == "get_monster_kills":
            limit = self._options.action_s
            return self._surely(lambda: self.client.number(name, words, timeout_s=limit))
        self._set_up(name, words, self._observed(), time.monotonic() + self._options.move_s)
        return None

    def advance(self, ticks: int) -> None:
        """Resumes the game for some ticks."""
        self.client.resume(timeout_s=self._options.action_s)
        self.client.wait(ticks / TICKS_PER_SECOND)

    def observe(self, size: int = 3) -> dict[str, Any]:
        """Returns the observation; the game is paused from here to the next action.

        Raises:
            GameCrashed: the game shows none, even with its menus closed.
        """
        if not self._options.real_time:
            self._pause()
        seen = self._observed(size)
        effect = {**seen, "GameState": None, "ScreenShot": None, "NPCs": None}
        self._vain = self._vain + 1 if effect == self._last else 0
        self._last = effect
        return seen

    def _pause(self) -> None:
        self._surely(lambda: self.client.pause(timeout_s=self._options.action_s))

    def _observed(self, size: int = 3) -> dict[str, Any]:
        error: Exception | None = None
        for attempt in range(2 * RETRIES):
            try:
                return self.client.observe(size, timeout_s=self._options.move_s)
            except (NoValueError, NoAnswerError, ClosedEarlyError) as failed:
                error = failed
            self.client.wait(RETRY_S)
            if attempt == RETRIES and isinstance(error, NoValueError):
                # A shop whose goods the mod cannot list, most likely.
                self._close_menu()
        raise GameCrashed(f"the game shows no observation: {error}") from error

    def _close_menu(self) -> None:
        try:
            self.client.ask("exit_menu", timeout_s=self._options.action_s)
        except (NoAnswerError, ClosedEarlyError):
            self.client.wait(RETRY_S)
        if not self._options.real_time:
            self._pause()

    def close(self) -> None:
        """Ends the game. Idempotent; never raises."""
        self._process.close()


def _took_effect(
    name: str, words: Sequence[str], before: Mapping[str, Any], seen: Mapping[str, Any]
) -> bool | None:
    """Returns True if the effect of a command is observed; None if it has no visible one."""
    if name == _ADD:
        gained = facts.held(seen, {words[0]}) - facts.held(before, {words[0]})
        return gained >= int(words[1])
    if name == "set_time":
        return int(seen["GameState"].get("Time") or 0) >= int(words[0])
    if name.startswith("warp") and name != "warp_character":
        return _place(seen) != _place(before)
    if name == "set_money":
        return facts.money(seen) == int(words[0])
    return None


def _place(seen: Mapping[str, Any]) -> object:
    return facts.location(seen), facts.point(seen["Player"].get("Position"))


def screenshot(seen: Mapping[str, Any]) -> NDArray[np.uint8] | None:
    """Returns the picture of an observation, ``(height, width, 3)``.

    None if there is none, if its size does not fit, or if it is black, as before the first capture.
    """
    width, height = (seen.get("MetaData") or {}).get("ViewportSize") or (0, 0)
    try:
        data = base64.b64decode(seen.get("ScreenShot") or b"", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None
    if not data or len(data) != width * height * 4 or not any(data[:: max(1, len(data) // 4096)]):
        return None
    return np.frombuffer(data, np.uint8).reshape(height, width, 4)[..., :3].copy()


SAVES_FOLDER = Path(".config/StardewValley/Saves")
"""Folder of the saves below a home directory, on Linux."""
LOG_BYTES = 2**20
_SHOWN = 500  # characters of the log in an error
_POLL_S = 0.1
_GRACE_S = 2.0
_NEVER = threading.Event()


class GameProcess:
    """One game with everything it starts, in a process group of its own.

    The bridge runs in the game's own process of Gamut, below a guard that ends the whole tree if
    that dies for any reason (docs/processes.md); ``close`` ends the group.

    Args:
        command: program and arguments.
        folder: of this game alone; its home directory and its log are made in it.
        port: that the game was told to listen on.

    Raises:
        GameStartError: it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, port: int, environment: Mapping[str, str]
    ) -> None:
        self.port, self.home = port, folder / "home"
        self._log = folder / "game.log"
        self.home.mkdir(parents=True, exist_ok=True)
        own = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}
        try:
            env = {**os.environ, **environment, **own}
            self._child = ChildProcess(command, log=self._log, env=env)
        except OSError as error:
            raise GameStartError(f"the game {[*command]} cannot be started: {error}") from error

    def alive(self) -> None:
        """Raises an error if the game has ended, and keeps its log short.

        Raises:
            GameCrashed: it has.
        """
        if how := self._child.ended():
            self.close()
            said = " | ".join(self._child.last_output(_SHOWN).splitlines()) or "empty"
            raise GameCrashed(f"the game ended: {how}; its log: {said}")
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_BYTES:
                os.truncate(self._log, 0)

    def copy_save(self, source: Path) -> str:
        """Copies a save into the home of this game; returns the name of its folder.

        Args:
            source: the folder of a save; its main file has the name of the folder.
        """
        name = f"{source.name}_Port_{self.port}"
        target = self.home / SAVES_FOLDER / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        (target / source.name).rename(target / name)
        return name

    def close(self) -> None:
        """Ends the game and its process group. Idempotent; never raises."""
        self._child.close(time.monotonic() + 2 * _GRACE_S, patience_s=_GRACE_S)


def until(deadline: float) -> bool:
    """Waits a moment; returns whether the deadline, in monotonic seconds, is still to come."""
    _NEVER.wait(min(_POLL_S, max(deadline - time.monotonic(), 0.0)))
    return time.monotonic() < deadline
