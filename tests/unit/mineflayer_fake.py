"""A stand-in for the game process of the Mineflayer bridge: it speaks the wire and plays a toy.

Each slot is a counter that its actions and its chance move. Run as ``python mineflayer_fake.py
FAULT``; ``FAULT`` is ``OP=WHAT`` or nothing. It is deliberately careless about slots that are over
or were never reset: it steps them on, and the bridge has to keep their rows as they were.
"""

import json
import os
import random
import signal
import socket
import struct
import sys
import time
from math import prod
from pathlib import Path

import msgpack

ROOT = Path(__file__).parents[2]
LAYOUT = json.loads((ROOT / "bridges/mineflayer/game/observe/layout.json").read_text())
LETTERS = {"float32": "f", "int64": "q", "int32": "i", "int16": "h", "uint8": "B", "bool": "?"}
LIFE = 30  # steps after which a slot is over at the latest


class Slot:
    def __init__(self, start):
        state = json.dumps(start["state"], sort_keys=True)
        self.chance = random.Random(f"{start['seed']} {state}")
        self.start, self.at, self.tick, self.acted = start, 0.0, 0, 0
        self.length = self.chance.randrange(LIFE // 2, LIFE)

    def step(self, ticks, acted):
        self.tick += ticks
        self.acted = acted
        self.at += self.chance.random() + acted % 7

    def save(self):
        return json.dumps(
            [self.start, self.at, self.tick, self.acted, self.length, self.chance.getstate()]
        ).encode()

    @classmethod
    def load(cls, data):
        start, *rest, state = json.loads(data)
        slot = cls(start)
        slot.at, slot.tick, slot.acted, slot.length = rest
        slot.chance.setstate((state[0], tuple(state[1]), state[2]))
        return slot

    def values(self, ticks):
        return {
            "tick": [self.tick],
            "position": [self.at, 64.0, float(self.acted % 100)],
            "distance": [self.at],
            "health": [20.0],
            "survived_ticks": [self.tick],
            "game_over": [self.tick >= ticks * self.length],
        }

    def details(self, number, rgb):
        said = {
            "name": f"a{number}",
            "tick": self.tick,
            "event": [],
            "start": self.start,
            "inventory": {"name": ["stick"] + [None] * 35, "quantity": [2] + [None] * 35},
        }
        return said | ({"scene": {"shade": self.tick % 256}} if rgb else {})


class Game:
    def __init__(self, connection, fault):
        self.connection = connection
        self.op, _, self.what = fault.partition("=")
        self.config, self.slots = {}, []

    def serve(self):
        while True:
            head = self.read(4)
            if not head:
                return
            request = msgpack.unpackb(self.read(struct.unpack("<I", head)[0]))
            op = request["op"]
            body = self.faulty(op)
            if body is None:
                try:
                    body = {"ok": True, **getattr(self, op)(request)}
                except LookupError as error:
                    body = {"ok": False, "error": {"kind": "state", "message": str(error)}}
            self.send({"id": request["id"], **body})
            if op == "close":
                return

    def faulty(self, op):
        """Commits the fault that was ordered for a request; returns the answer it is, if it is."""
        if op != self.op:
            return None
        kind, _, text = self.what.partition(":")
        if kind == "exit":
            os.write(1, b"last words of the game\n")
            os._exit(int(text))
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind in ("hang", "deaf"):
            if kind == "deaf":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        if kind == "garbage":
            self.connection.sendall(struct.pack("<I", 3) + b"\xc1\xc1\xc1")
            time.sleep(600)
        if kind == "huge":
            self.connection.sendall(struct.pack("<I", 2**31))
            time.sleep(600)
        if kind == "other":
            return {"id": -1, "ok": True}
        if kind == "short":
            return {"ok": True, "columns": b"123", "details": []}
        if kind == "layout":
            return {"ok": True, "layout": LAYOUT[1:] + LAYOUT[:1]}
        return {"ok": False, "error": {"kind": kind, "message": text}}

    def hello(self, request):
        self.config = request["config"]
        self.slots = [None] * self.config["width"]
        self.close_grandchild = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "600")
        return {
            "node": "v0",
            "packages": {},
            "layout": LAYOUT,
            "said": {
                "fds": sorted(int(p.name) for p in Path("/proc/self/fd").iterdir()),
                "tz": os.environ.get("TZ"),
                "node": os.environ.get("NODE_OPTIONS"),
                "group": os.getpgid(0),
                "grandchild": self.close_grandchild,
            },
        }

    def reset(self, request):
        for number, start in zip(request["slots"], request["starts"], strict=True):
            self.slots[number] = Slot(start)
        return self.frame(request["slots"])

    def step(self, request):
        acted = self.acted(request["actions"])
        self.slots = [slot or Slot({"seed": 1, "state": {}}) for slot in self.slots]
        for slot, how in zip(self.slots, acted, strict=True):
            slot.step(self.config["ticks_per_step"], how)
        return self.frame(range(len(self.slots)))

    def acted(self, actions):
        count = len(self.slots)
        totals = [0] * count
        for column in actions.values():
            for number in range(count):
                if isinstance(column, list):
                    totals[number] += len(column[number])
                else:
                    size = len(column) // count
                    totals[number] += sum(column[number * size : (number + 1) * size])
        return totals

    def snapshot(self, request):
        return {"snapshot": self.slots[request["slot"]].save()}

    def restore(self, request):
        self.slots[request["slot"]] = Slot.load(request["snapshot"])
        return self.frame([request["slot"]])

    def close(self, request):
        return {}

    def frame(self, numbers):
        rows = [self.slots[number].values(self.config["ticks_per_step"]) for number in numbers]
        columns = b""
        for entry in LAYOUT:
            count = prod(entry["shape"])
            for row in rows:
                values = row.get(entry["key"], [0] * count)
                columns += struct.pack(f"<{count}{LETTERS[entry['dtype']]}", *values)
        rgb = self.config["rgb"]
        return {"columns": columns, "details": [self.slots[n].details(n, rgb) for n in numbers]}

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.connection.recv(size - len(data))
            if not more:
                return b""
            data += more
        return data

    def send(self, message):
        body = msgpack.packb(message)
        self.connection.sendall(struct.pack("<I", len(body)) + body)


if __name__ == "__main__":
    Game(socket.socket(fileno=int(sys.argv[-1])), sys.argv[1] if len(sys.argv) > 2 else "").serve()
