"""A server of the protocol of StarDojo's mod: one valley behind a socket, in real time.

``python -m bridges.stardojo.server --port-id 10783 [--faults FILE]``; Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import random
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bridges.stardojo.commands import LONGEST, SAVES, arities, setup_values, table, whole
from bridges.stardojo.facts import point
from bridges.stardojo.faults import Faults, read
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.valley import Pending, Valley
from rollout.errors import InputError

END = b"<EOF>"
RECEIVED = "Message received"
TICKS_PER_SECOND = 60
POLL_TICKS = 6  # between two looks of the readiness gate: 100 ms
START_TICKS = 100  # from the start of a day until ``wait_game_start`` answers
SAFE_TICKS = 36  # a dialogue ignores choices so long after it opened: 600 ms
CRASHED = 134  # exit code of a game whose unhandled exception ended it
_FRAME_S = 1 / 60

Picture = Callable[[Valley, int, int], Any]
"""Draws the screen: the valley, width and height to an array (height, width, 3) of bytes."""


class ClosedError(Exception):
    """The connection is to be closed without another byte."""


class Game:
    """The process of the game: its clock, its saves, and the messages that reach it.

    Args:
        faults: its switches.
        picture: what draws the screenshot.
        crash: what a crash calls, with the exit code.
    """

    def __init__(
        self, faults: Faults, picture: Picture, *, crash: Callable[[int], Any] = os._exit
    ) -> None:
        self.valley: Valley | None = None
        self.paused = False
        self.tick = 0
        self._faults, self._picture, self._crash = faults, picture, crash
        self._random = random.Random(faults.seed)  # noqa: S311 - faults, not secrets
        self._loading: tuple[str, int] | None = None
        self._days_before = 0  # days started of the valley when the counter was set to 0
        self._messages = self._loads = 0
        self._menu: Any = None
        self._menu_tick = 0
        self._frames: list[bytes] = []
        self._next_tick = asyncio.Event()

    async def run(self) -> None:
        """Runs the clock until it is cancelled."""
        loop = asyncio.get_running_loop()
        then = loop.time()
        while True:
            await asyncio.sleep(_FRAME_S / max(1.0, min(self._faults.speed, 10.0)))
            now = loop.time()
            ticks = max(1, min(round((now - then) * TICKS_PER_SECOND * self._faults.speed), 600))
            then = now
            self.advance(ticks)

    def advance(self, ticks: int) -> None:
        """Advances updates of the game; the time of the valley only while it is not paused."""
        self.tick += ticks
        if self._loading is not None and self.tick >= self._loading[1]:
            save, self._loading = self._loading[0], None
            self._loads += 1
            self.valley = Valley(save, self._faults.seed + self._loads, faithful=True)
            self._days_before = self.valley.observe(0)["CallBackData"]["OnDayStarted"] - 1
        if self.valley is not None and not self.paused:
            self.valley.advance(ticks)
        menu = self.valley.world.menu if self.valley is not None else None
        if menu is not self._menu:
            self._menu, self._menu_tick = menu, self.tick
        ended, self._next_tick = self._next_tick, asyncio.Event()
        ended.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the messages of one connection until the client closes it.

        A message is what one read of at most 256 bytes returns. An action whose client is gone is
        played nevertheless.
        """
        try:
            while data := await reader.read(LONGEST):
                text = "".join(chr(byte) if byte < 128 else "?" for byte in data)
                reply = await self._answer(text)
                if reply is not None:
                    await self._send(writer, reply)
        except (ClosedError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _send(self, writer: asyncio.StreamWriter, reply: str) -> None:
        data = reply.encode("ascii", "replace") + END
        if self._drawn(self._faults.delayed):
            await self._pass(self._faults.delay_s)
        if self._drawn(self._faults.dropped):
            writer.write(data[: len(data) // 2])
            await writer.drain()
            raise ClosedError
        size = self._faults.chunk or len(data)
        for start in range(0, len(data), size):
            writer.write(data[start : start + size])
            await writer.drain()
            if self._faults.chunk:
                await asyncio.sleep(0)

    def _drawn(self, share: float) -> bool:
        return share > 0 and self._random.random() < share

    async def _pass(self, seconds: float) -> None:
        end = self.tick + seconds * TICKS_PER_SECOND
        await self._until(lambda: self.tick >= end)

    async def _until(self, so: Callable[[], bool]) -> None:
        while not so():
            await self._next_tick.wait()

    async def _answer(self, text: str) -> str | None:
        """Returns the reply to one message; None if it never gets one."""
        self._messages += 1
        if self._messages == self._faults.crash_on or self._drawn(self._faults.crashes):
            self._crash(CRASHED)
        if self._drawn(self._faults.silent):
            raise ClosedError
        name, *words = text.split("%")
        await self._next_tick.wait()
        if name not in table("commands")["ungated"]:
            if self._drawn(self._faults.held):
                await self._pass(self._faults.hold_s)
            await self._ready()
        if name not in arities() or len(words) != arities()[name]:
            return RECEIVED
        if name not in table("commands")["integers"]:
            return await self._do(name, words)
        numbers = [number for word in words if (number := whole(word)) is not None]
        if len(numbers) < len(words):
            return self._bad_integer(name)
        return await self._do(name, numbers)

    def _bad_integer(self, name: str) -> str | None:
        """An exception that the mod catches, or one that no one does."""
        if name not in table("commands")["asynchronous"]:
            return RECEIVED
        if self._faults.crash_on_bad_integer:
            self._crash(CRASHED)
        return None

    async def _do(self, name: str, values: Sequence[Any]) -> str | None:
        special = self._special().get(name)
        shows = special is not None and name.startswith(("observe", "get_"))
        if self._loading is not None and not self._faults.load_loses and (shows or not special):
            await self._until(lambda: self._loading is None)
            if not shows:
                await self._ready()
        if special is not None:
            return await special(*values)
        if self.valley is None or self._loading is not None:
            return RECEIVED  # meant for the farmer of the title screen
        if name in table("commands")["setup"]:
            return self._set_up(name, values)
        if name == "choose_option" and self._typing():
            return RECEIVED
        try:
            pending = self.valley.begin(name, tuple(values))
        except InputError:
            return RECEIVED
        walks = name in table("commands")["asynchronous"]
        return await self._walked(self.valley, pending) if walks else RECEIVED

    async def _ready(self) -> None:
        """Waits for what the mod waits for, with its polls of 100 ms."""
        while self.paused or (self.valley is not None and not self.valley.ready):
            due = self.tick + POLL_TICKS
            await self._until(lambda due=due: self.tick >= due)  # type: ignore[misc]

    def _special(self) -> dict[str, Callable[..., Awaitable[str | None]]]:
        return {
            "pause": self._pause,
            "resume": self._resume,
            "observe_v2": self._observe,
            "observe": self._mapped,
            "get_surroundings": self._surroundings,
            "get_tile_info": self._tile_info,
            "load_game_record": self._load,
            "load_game": self._load_by_number,
            "enter_load_menu": self._yes,
            "exit_title": self._exit_title,
            "wait_game_start": self._wait_game_start,
        }

    def _set_up(self, name: str, words: Sequence[str]) -> str:
        assert self.valley is not None
        try:
            found = self.valley.setup(name, setup_values(name, words))
        except InputError:
            return RECEIVED  # the mod writes the error to its log
        return str(found) if name == "get_monster_kills" else RECEIVED

    async def _walked(self, valley: Valley, pending: Pending) -> str | None:
        """The reply to a walk. One that another walk replaced ends with the next warp or menu."""
        if self._drawn(self._faults.lost):
            return None
        menu, place = valley.world.menu, valley.world.farmer.place
        while not pending.done:
            await self._next_tick.wait()
            if self.valley is not valley:
                return None
            if valley.world.menu is not menu or valley.world.farmer.place != place:
                return str(True)
        return str(bool(pending.reply))

    def _typing(self) -> bool:
        shown = self._menu is not None and self._menu.kind == "dialogue"
        return shown and self.tick - self._menu_tick < SAFE_TICKS

    async def _pause(self) -> str:
        self.paused = True
        return RECEIVED

    async def _resume(self) -> str:
        self.paused = False
        return RECEIVED

    async def _yes(self) -> str:
        return str(True)

    async def _mapped(self, size: int) -> str:
        return RECEIVED  # as if the mapped file could not be written: it is not offered

    async def _load(self, name: str) -> str:
        save = next((each for each, (known, _) in SAVES.items() if name.startswith(known)), None)
        if self.valley is not None:
            self._days_before += self._days()
        if save is not None:
            self._begin_load(save)
        return str(True)

    async def _load_by_number(self, index: int) -> str:
        if 0 <= index < len(SAVES):
            self._begin_load([*SAVES][index])
        return str(True)

    def _begin_load(self, save: str) -> None:
        self._loading = save, self.tick + round(self._faults.load_s * TICKS_PER_SECOND)

    async def _exit_title(self) -> str:
        self.valley = None
        return RECEIVED

    def _days(self) -> int:
        if self.valley is None:
            return 0
        return int(self.valley.world.days_started) - self._days_before

    async def _wait_game_start(self) -> str:
        loads, days = self._loads, self._days()
        await self._until(lambda: self._loads != loads or self._days() > days)
        end = self.tick + START_TICKS
        await self._until(lambda: self.tick >= end)
        return str(True)

    def _shown(self, size: int) -> dict[str, Any] | None:
        """The observation without its picture; None where the mod fails to make one."""
        if self.valley is None or self._loading is not None:
            return None
        seen = self.valley.observe(size)
        menu = seen["CurrentMenuData"]
        goods = [str(each.get("name")) for each in menu.get("shopMenuData") or ()]
        if self._faults.broken_shops and any(map(_breaks, goods)):
            return None
        if not self._faults.progression:
            seen.pop("Progression", None)
        seen["CallBackData"]["OnDayStarted"] = self._days()
        seen["MetaData"]["ViewportSize"] = list(self._faults.viewport)
        return _with_objects(seen) if self._faults.vectors_as_objects else seen

    async def _observe(self, size: int) -> str:
        seen = self._shown(size)
        if seen is None:
            return RECEIVED
        whole: dict[str, Any] = {}
        for name, value in seen.items():
            whole[name] = value
            if name == "CurrentMenuData":
                whole["ScreenShot"] = self._screenshot()
        return json.dumps(whole, indent=2, ensure_ascii=False)

    def _screenshot(self) -> str | None:
        if not self._faults.screenshot:
            return None
        assert self.valley is not None
        width, height = self._faults.viewport
        frame = np.full((height, width, 4), 255, np.uint8)
        frame[..., :3] = self._picture(self.valley, width, height)
        data = frame.tobytes()
        if self._drawn(self._faults.stale) and self._frames:
            data = self._frames[-1]
        if self._drawn(self._faults.black):
            data = bytes(len(data))
        self._frames = [data]
        return base64.b64encode(data).decode("ascii")

    async def _surroundings(self, size: int) -> str:
        seen = self._shown(size)
        if seen is None:
            return RECEIVED
        return json.dumps([json.dumps(_older(seen, each)) for each in seen["SurroundingsData"]])

    async def _tile_info(self, x: int, y: int) -> str:
        if self.valley is None:
            return RECEIVED
        here = self.valley.world.farmer.tile
        seen = self._shown(max(abs(x - here[0]), abs(y - here[1])))
        tiles = seen["SurroundingsData"] if seen else []
        found = next((each for each in tiles if each["position"] == [x, y]), None)
        return RECEIVED if seen is None or found is None else json.dumps(_older(seen, found))


def _breaks(name: str) -> bool:
    """Returns True for goods that the mod's list of a shop cannot hold, such as tools."""
    found = content().by_name.get(name)
    category = getattr(found, "category", "")
    return category in ("tool", "weapon", "scythe", "boots", "ring", "hat")


def _older(seen: dict[str, Any], tile: dict[str, Any]) -> dict[str, Any]:
    """A tile in the schema of ``get_surroundings``."""
    names = ("position", "object_at_tile", "terrain_at_tile", "building_info", "crop_at_tile",
             "debris_at_tile", "furniture_at_tile", "placeable")  # fmt: skip
    found = {name: tile[name] for name in names}
    crop = tile["crop_at_tile"]
    place = tuple(tile["position"])
    here = [each for each in seen["Crops"] if point(each["position"]) == place]
    grown: dict[str, Any] = here[0] if here else {}
    found["crop_at_tile"] = crop and {
        "seed_id": crop["seed_id"],
        "is_dead": grown.get("isDead", False),
        "forage_crop": grown.get("forage_crop", False),
        "fully_grown": grown.get("current_phase", 0) >= 4,
        "current_phase": grown.get("current_phase", 0),
        "index_harvest": crop["index_harvest"],
    }
    if crop is None:
        found["crop_at_tile"] = ""
    return found


def _with_objects(value: Any, name: str = "") -> Any:
    """An observation whose positions are objects where they are text."""
    if isinstance(value, dict):
        return {key: _with_objects(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_objects(inner) for inner in value]
    if isinstance(value, str) and name in ("position", "doorPosition"):
        place = point(value)
        return value if place is None else {"X": float(place[0]), "Y": float(place[1])}
    return value


PORT = 10783
HOST = "127.0.0.1"
MAPPED = 8 * 2**20
"""Bytes of the file that the mod maps."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the server; returns the exit status: 2 for wrong input, 0 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m bridges.stardojo.server", description=__doc__)
    parser.add_argument("--port-id", type=int, default=PORT, help="port on 127.0.0.1")
    parser.add_argument(
        "--faults", type=Path, help="YAML file of switches, see docs/stardojo-mod.md"
    )
    parser.add_argument("--sample-rate", type=int, default=100, help="accepted, as the mod does")
    asked = parser.parse_args(arguments)
    try:
        faults = read(asked.faults) if asked.faults else Faults()
        _mapped(asked.port_id)
        asyncio.run(_serve(asked.port_id, faults))
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except (OSError, OverflowError) as error:
        sys.stderr.write(
            f"error: port {asked.port_id} of {HOST} cannot be used ({error}); end the program that "
            f"has it, or choose another with --port-id\n"
        )
        return 2
    return 0


def _mapped(port: int) -> None:
    """Makes the file of the mod that the released client opens beside ``STARDEW_APP_PATH``.

    It is read only after ``observe``, which is not offered.
    """
    if game := os.environ.get("STARDEW_APP_PATH"):
        path = Path(game).expanduser().parent / f"shared_memory_{port}.bin"
        try:
            with path.open("ab") as file:
                file.truncate(MAPPED)
        except OSError as error:
            raise InputError(
                f"STARDEW_APP_PATH={game}: {path} cannot be written: {error}"
            ) from None


async def _serve(port: int, faults: Faults) -> None:
    from bridges.stardojo.pictures import draw  # noqa: PLC0415 - it loads OpenCV

    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    # By the port too, so that a game that is started again does not end at the same message.
    game = Game(replace(faults, seed=faults.seed + port), draw)
    server = None
    if not faults.port_in_use:
        server = await asyncio.start_server(game.serve, HOST, port)
        sys.stderr.write(f"the valley listens on {HOST}:{port}\n")
    clock = asyncio.create_task(game.run())
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait({clock, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    clock.cancel()
    if server is not None:
        server.close()
    with contextlib.suppress(asyncio.CancelledError):
        await clock


if __name__ == "__main__":
    sys.exit(main())
