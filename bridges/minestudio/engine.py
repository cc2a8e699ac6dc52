"""MineStudio's engine on the embedded Minecraft: ``python -m bridges.minestudio.engine``.

MineStudio's own code starts it (see ``install``), connects, and sends a mission and then steps,
each a tick.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import select
import socket
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import numpy as np

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.commands import CommandError, parse_command
from bridges.mineflayer.factors import WORLDS
from bridges.mineflayer.instance import MineflayerInstance
from bridges.mineflayer.spaces import CAMERA, FARTHEST, KEYS_COLUMN, MOUSE_KEYS, RGB
from bridges.minestudio import wire
from bridges.minestudio.wire import MessageError, Mission, Step
from rollout.api import Columns, Frame, Start
from rollout.errors import GameError

READY = "CLIENT enter state: DORMANT"
"""The line that MineStudio waits for."""

PORT_LINE = "***** Start MalmoEnvServer on port {}"
"""The line from which it takes the port."""

SIZE = (640, 360)
"""Width and height of MineStudio's pictures, in pixels, unless a mission has others."""

_SETTLING = 20  # ticks before a mission is answered, as the Java engine plays them
_LAUNCH_S, _RESET_S, _STEP_S = 120.0, 90.0, 60.0
_MESSAGE_S = 60.0  # for a message to arrive as a whole
_LONGEST_POLL_MS = 60_000
_STILL = Step()
_HELLO, _MISSION = b"<MalmoEnv", b"<MissionInit"
_STEP = re.compile(rb"<StepClient(\d+)>(.*)</StepClient\d+\s*>", re.DOTALL)
_ECHO = re.compile(rb"<Echo>(.*?)</Echo>", re.DOTALL)
_NOTHING = (b"<StepServer", b"<Disconnect", _HELLO)
_SLOTS = (
    *(f"hotbar.{n}" for n in range(9)),
    *(f"inventory.{n}" for n in range(27)),
    *("armor.feet", "armor.legs", "armor.chest", "armor.head", "weapon.offhand"),
)


class World:
    """The game that plays the missions.

    Args:
        folder: for the logs of the game.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._game: MineflayerInstance | None = None
        self._size = (0, 0)
        self._frame: Frame | None = None
        self._boxes: dict[str, list[int] | None] = {"voxels": None, "mobs": None}

    def launch(self, size: tuple[int, int]) -> MineflayerInstance:
        """Returns a running game with pictures of that width and height."""
        if self._game is not None and size == self._size:
            return self._game
        self.close()
        self._bridge = MineflayerBridge(
            actions="mouse",
            observe=(RGB,),
            hud=True,
            ticks_per_step=1,
            rgb_width=size[0],
            rgb_height=size[1],
            respawn=True,
        )
        game = self._bridge.launch(self._folder, (), width=1, timeout_s=_LAUNCH_S)
        self._game, self._size = cast(MineflayerInstance, game), size
        return self._game

    def begin(self, mission: Mission) -> None:
        """Makes the world of a mission and plays its first second."""
        game = self.launch((mission.width, mission.height))
        space = self._bridge.spec.state_space
        seed = int.from_bytes(os.urandom(6), "big") if mission.seed is None else mission.seed
        # Index 0 has the first value of every factor: wild ground, by day, a rested agent.
        values = {**space.state(0).values, "world": seed % WORLDS, "biome": "any"}
        state = space.state(space.index({**values, "difficulty": "hard"}))
        start = Start(state, seed % 2**53)
        self._frame = game.reset([0], [start], timeout_s=_RESET_S)
        self._boxes = {"voxels": None, "mobs": None}
        self.command("/time set 0")
        if mission.biome:
            self.command(f"/teleportbiome @s {mission.biome.removeprefix('minecraft:')}")
        for slot, item, number in mission.items:
            where = _SLOTS[slot] if 0 <= slot < len(_SLOTS) else str(slot)
            self.command(f"/replaceitem entity @s {where} {item} {number}")
        for _ in range(_SETTLING):
            self.step(_STILL)

    def step(self, step: Step) -> None:
        """Runs a step's command, then plays a tick of its keys."""
        if step.chat.startswith("/"):
            self.command(step.chat)
        elif step.chat:
            self.command(f"/say {step.chat}")
        keys = np.array([[key in step.keys for key in MOUSE_KEYS]], np.int8)
        camera = np.clip(np.array([step.camera], np.float32), -FARTHEST, FARTHEST)
        actions: Columns = {KEYS_COLUMN: keys, CAMERA: np.nan_to_num(camera)}
        self._frame = self._playing.step(actions, timeout_s=_STEP_S)
        self._boxes = {"voxels": step.voxels, "mobs": step.mobs}

    def command(self, line: str) -> None:
        """Runs a command in the world as its player; what is refused goes to the log."""
        try:
            done, said = self._playing.command(0, parse_command(line), timeout_s=_STEP_S)
        except CommandError as error:
            done, said = False, str(error)
        if not done:
            _say(f"{line[:200]}: {said}")

    def picture(self) -> bytes:
        """Returns the picture, its lowest row first."""
        if self._frame is None:
            return b""
        return np.ascontiguousarray(self._frame.observations[RGB][0, ::-1]).tobytes()

    def state(self) -> bytes:
        """Returns what is known of the player, as JSON."""
        state: dict[str, Any] = self._playing.state(
            0, voxels=self._boxes["voxels"], mobs=self._boxes["mobs"], timeout_s=_STEP_S
        )
        return json.dumps(state).encode()

    def close(self) -> None:
        """Ends the game. Idempotent."""
        game, self._game = self._game, None
        if game is not None:
            game.close()

    @property
    def _playing(self) -> MineflayerInstance:
        if self._game is None or self._frame is None:
            raise MessageError("expected a mission before the first step")
        return self._game


class Server:
    """Answers the messages of one client at a time, on one port of this machine.

    Args:
        world: plays its missions.
        port: to listen on; 0, or one that is taken, for a free one.
    """

    def __init__(self, world: World, port: int) -> None:
        self._world = world
        try:
            self._listener = socket.create_server(("127.0.0.1", port))
        except OSError:  # taken since MineStudio looked; it reads the port that is said
            self._listener = socket.create_server(("127.0.0.1", 0))
        self._links: dict[int, socket.socket] = {}
        self._missions: dict[int, bytes] = {}
        self.port: int = self._listener.getsockname()[1]

    def serve(self, parent: int | None = None) -> None:
        """Answers until a client says that this is the end.

        Args:
            parent: file descriptor of a pipe; when its reader is gone, so is who started this.
        """
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        if parent is not None:
            poll.register(parent, 0)
        while True:
            for number, event in poll.poll(_LONGEST_POLL_MS):
                if number == parent and event:
                    return
                if number == self._listener.fileno():
                    link, _ = self._listener.accept()
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._links[link.fileno()] = link
                    poll.register(link, select.POLLIN)
                    continue
                if number not in self._links:
                    continue
                goes_on = self._hear(number)
                if goes_on is None:
                    return
                if not goes_on:
                    poll.unregister(number)
                    self._missions.pop(number, None)
                    self._links.pop(number).close()

    def _hear(self, number: int) -> bool | None:
        """Answers one message; returns whether its connection goes on, None at the end."""
        link = self._links[number]
        try:
            message = wire.receive(link, _MESSAGE_S)
            if message is None:
                return False
            if message.startswith(b"<Exit>"):
                wire.send(link, wire.ACCEPTED)
                return None
            answers = self._answer(number, message)
            if answers:
                wire.send(link, *answers)
        except MessageError as error:
            _say(f"closed a connection: {error}")
            return False
        except OSError:  # the client is gone
            return False
        return not message.startswith(b"<Disconnect")

    def _answer(self, number: int, message: bytes) -> list[bytes]:
        world, answers = self._world, list[bytes]()
        if mission := self._missions.pop(number, None):
            world.begin(wire.read_mission(mission, message))
            answers = [wire.ACCEPTED]
        elif message.startswith(_MISSION):
            self._missions[number] = message  # its token comes next
        elif found := _STEP.match(message):
            world.step(wire.read_step(found[2].decode(errors="replace")))
            answers = [world.picture(), struct.pack("!dbb", 0.0, 0, 1), world.state()]
        elif message.startswith(b"<Peek"):
            answers = [world.picture(), world.state(), struct.pack("!b", 0)]
        elif message.startswith(b"<Quit"):
            answers = [wire.ACCEPTED]
        elif echo := _ECHO.search(message):
            answers = [echo[1]]
        elif not message.startswith(_NOTHING):
            raise MessageError(f"expected a message of MineStudio 1.1.6, got {message[:60]!r}")
        return answers

    def close(self) -> None:
        """Closes all connections."""
        for link in (*self._links.values(), self._listener):
            link.close()


def _say(line: str) -> None:
    """Writes a line to MineStudio's log of this engine, as long as anybody reads it."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def main() -> None:
    """Runs the engine until its client ends it or is gone."""
    parser = argparse.ArgumentParser(prog="python -m bridges.minestudio.engine")
    parser.add_argument("--envPort", type=int, default=0, help="port to listen on; 0 for any")
    args, _ = parser.parse_known_args()  # the rest are options of Java
    # MineStudio kills its engine and then removes the folder in which it has started it.
    place = Path.cwd() if "MINESTUDIO_DIR" in os.environ else None
    with tempfile.TemporaryDirectory(prefix="gamut-engine-", dir=place) as folder:
        world = World(Path(folder))
        with contextlib.closing(world), contextlib.closing(Server(world, args.envPort)) as server:
            try:
                world.launch(SIZE)
                _say(PORT_LINE.format(server.port))
                _say(READY)
                server.serve(sys.stdout.fileno())
            except GameError as error:
                raise SystemExit(f"the game failed: {error}") from error


if __name__ == "__main__":
    main()
