"""The messages between MineStudio's Python code and its engine.

A message is its length, four bytes big-endian, and that many bytes. The client is MineStudio's
``simulator/minerl`` (MIT), version 1.1.6, which follows Malmo's and MineRL's.
"""

from __future__ import annotations

import socket
import struct
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

from rollout.errors import InputError

MOST = 1 << 22
"""Largest message of a client, in bytes; a mission has 2 kB."""

_LENGTH = struct.Struct("!I")
_OK = 1
_SPACE = "{http://ProjectMalmo.microsoft.com}"


class MessageError(InputError):
    """A client sent what is no message of this protocol."""


def send(link: socket.socket, *messages: bytes) -> None:
    """Sends messages, each with its length."""
    link.sendall(b"".join(_LENGTH.pack(len(each)) + each for each in messages))


def receive(link: socket.socket, timeout_s: float) -> bytes | None:
    """Returns the next message; None when the client has closed the connection.

    Raises:
        MessageError: it is too long, or did not arrive as a whole in that time.
    """
    deadline = time.monotonic() + timeout_s
    head = _exactly(link, _LENGTH.size, deadline)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > MOST:
        raise MessageError(f"expected a message of at most {MOST} bytes, got {size}")
    return _exactly(link, size, deadline)


def _exactly(link: socket.socket, size: int, deadline: float) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise MessageError(f"expected {size} bytes, got {len(data)} in time")
        link.settimeout(left)
        try:
            piece = link.recv(size - len(data))
        except TimeoutError:
            continue
        except OSError:
            return None
        if not piece:
            return None
        data += piece
    return bytes(data)


def whole_number(value: int) -> bytes:
    """Returns an answer that is a number."""
    return _LENGTH.pack(value)


ACCEPTED = whole_number(_OK)
"""The answer to a mission that begins."""


@dataclass(frozen=True)
class Mission:
    """What a client asks of an episode.

    Attributes:
        width: of the picture, in pixels.
        height: likewise.
        biome: where the agent begins; empty for anywhere.
        items: what it has: (slot, item, number), slots 0 to 40 as MineStudio counts them.
        seed: of the world; None for any.
    """

    width: int
    height: int
    biome: str = ""
    items: tuple[tuple[int, str, int], ...] = ()
    seed: int | None = None


def read_mission(xml: bytes, token: bytes) -> Mission:
    """Parses the mission and its token, ``uuid:role:0:agents:synchronous[:seed]``.

    Raises:
        MessageError: it is no such mission, or is for several agents.
    """
    try:
        # Of a client on this machine; expat limits what entities expand to.
        root = ET.fromstring(xml)  # noqa: S314
        video = root.find(f".//{_SPACE}VideoProducer")
        if video is None:
            raise MessageError("expected a mission with VideoProducer")
        width, height = (int(video.findtext(f"{_SPACE}{key}") or 0) for key in ("Width", "Height"))
        items = tuple(
            (int(item.get("slot", 0)), str(item.get("type")), int(item.get("quantity", 1)))
            for item in root.iter(f"{_SPACE}InventoryObject")
        )
        fields = token.decode().split(":")
        seed = int(fields[5]) if len(fields) > 5 else None
        agents = int(fields[3]) if len(fields) > 3 else 1
    except (ET.ParseError, UnicodeDecodeError, ValueError) as error:
        raise MessageError(f"expected a mission and its token: {error}") from error
    if agents != 1:
        raise MessageError(f"expected a mission of one agent, got {agents}")
    if not (0 < width <= 1024 and 0 < height <= 1024):
        raise MessageError(f"expected a picture of 1 to 1024 pixels a side, got {width}x{height}")
    biome = root.findtext(f".//{_SPACE}PreferredSpawnBiome") or ""
    return Mission(width, height, biome.strip(), items, seed)


@dataclass
class Step:
    """One step of a client.

    Attributes:
        keys: names of the keys that are held.
        camera: turn in degrees: down, right.
        chat: a command with its slash, or words; may be empty.
        voxels: box of the blocks to list, ``x0, x1, y0, y1, z0, z1``; None for none.
        mobs: box of the mobs to list, likewise.
    """

    keys: set[str] = field(default_factory=set)
    camera: tuple[float, float] = (0.0, 0.0)
    chat: str = ""
    voxels: list[int] | None = None
    mobs: list[int] | None = None


def read_step(text: str) -> Step:
    """Parses the lines ``key value`` of a step.

    Raises:
        MessageError: a line is none, or has no numbers where some belong.
    """
    step = Step()
    for line in filter(None, text.split("\n")):
        key, _, value = line.partition(" ")
        try:
            if key == "chat":
                step.chat = value.strip()
            elif key == "camera":
                down, right = map(float, value.split())
                step.camera = (down, right)
            elif key in ("voxels", "mobs"):
                box = [int(float(number)) for number in value.split(",")]
                if len(box) != 6:
                    raise ValueError(f"expected six numbers, got {len(box)}")
                setattr(step, key, box)
            elif float(value) > 0:
                step.keys.add(key)
        except ValueError as error:
            raise MessageError(f"a step has the line {line[:80]!r}: {error}") from error
    return step
