"""The chaos game: a walk on a ring, and the program that plays it and fails on request.

Run as ``python -S -I game.py``: requests on stdin, replies on stdout, its last messages on stderr.
It uses only a small part of the standard library, so that it starts in about ten milliseconds. It
decides nothing: every request contains its duration and its fault, so that the same requests
reproduce the same behaviour.

A message is a length, a little-endian uint32, and that many bytes. The first request is JSON, the
settings; later ones are ``HEADER`` and its payload: nothing (close), one byte per slot (step: the
actions), or one ``BEGIN`` per slot (reset). The first reply is ``OK`` and JSON, later ones are
``OK`` and one ``ROW`` for every slot. A close has no reply; the process ends.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import struct

LENGTH = struct.Struct("<I")
HEADER = struct.Struct("<cdB")  # request, seconds that it takes, fault that it causes
BEGIN = struct.Struct("<HQQB")  # slot, seed of the episode, seed of the layout, difficulty
ROW = struct.Struct("<q8f?7x")  # see ``Walk.rows``
STEP, RESET, CLOSE, OK = b"s", b"r", b"c", b"k"

HANG = "hang"
CRASHES = ("exit", "kill", "abort", "segfault", "memory")
GARBAGE = ("bytes", "length", "nan")
FAULTS = ("", HANG, *CRASHES, *GARBAGE)
"""All faults; the number of a fault on the wire is its index here."""

NO_GRANDCHILD, CHILD, SETSID, ORPHAN = "none", "child", "setsid", "orphan"
GRANDCHILDREN = (NO_GRANDCHILD, CHILD, SETSID, ORPHAN)
MEMORY_STATUS = errno.ENOMEM
HELPER_STATUS = errno.ECHILD  # exit status of a game whose grandchild was killed

DIFFICULTIES = {"easy": 0.2, "normal": 0.4, "hard": 0.6}
"""The smallest share of its time limit that an episode needs, by difficulty."""

_MOVES = (0, 1, -1)
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_HEADROOM = 64 << 20  # bytes that a game without a cap allocates before it is out of memory
_MASK = 2**64 - 1


def mix(value: int) -> int:
    """Returns SplitMix64's output function of a value: a good 64-bit hash (Steele, 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def unit(bits: int) -> float:
    """Returns 64 random bits as a number in [0, 1)."""
    return (bits >> 11) / 2**53


class Layout:
    """The layout of an episode; a function of the state.

    Attributes:
        length: steps after which the episode is truncated.
        cells: number of cells of the ring.
        start: initial cell of the walker.
        distance: steps to the target on the shortest way, the fewest an episode can have.
        target: cell to reach.
    """

    __slots__ = ("cells", "distance", "length", "start", "target")

    def __init__(self, seed: int, difficulty: int, mean_steps: int) -> None:
        bits = mix(seed)
        self.length = max(2, round(mean_steps * (0.5 + unit(bits))))
        self.cells = 2 * self.length
        share = tuple(DIFFICULTIES.values())[difficulty]
        self.distance = max(1, int(self.length * share))
        self.start = mix(bits) % self.cells
        side = 1 if mix(bits + 1) & 1 else -1
        self.target = (self.start + side * self.distance) % self.cells


class _Slot:
    __slots__ = ("cell", "layout", "live", "seed", "tick")

    def __init__(self, layout: Layout, seed: int) -> None:
        self.layout, self.seed = layout, seed
        self.cell, self.tick, self.live = layout.start, 0, True


class Walk:
    """``width`` walkers, each on a ring of its own.

    Attributes:
        rows: the state of every slot, ``width`` times ``ROW``: tick; position, target and remaining
            distance as shares of the ring and the time used as a share of the limit, float32;
            reward; cell; steps to the target; memory in MB; whether it is over. Zeros for a slot
            never reset.
    """

    def __init__(self, width: int, mean_steps: int, slip: float) -> None:
        self.rows = bytearray(width * ROW.size)
        self._mean_steps, self._slip = mean_steps, slip
        self._slots: list[_Slot | None] = [None] * width

    def reset(self, slot: int, seed: int, layout_seed: int, difficulty: int, mb: float) -> None:
        """Begins an episode in a slot."""
        walker = _Slot(Layout(layout_seed, difficulty, self._mean_steps), seed)
        self._slots[slot] = walker
        self._show(slot, walker, 0.0, mb)

    def step(self, actions: bytes, mb: float) -> None:
        """Moves every active slot: 0 stays, 1 goes up, 2 goes down; some moves slip."""
        for slot, walker in enumerate(self._slots):
            if walker is None or not walker.live:
                continue
            noise = mix(walker.seed ^ mix(walker.tick))
            action = noise % 3 if unit(noise) < self._slip else actions[slot]
            walker.cell = (walker.cell + _MOVES[action]) % walker.layout.cells
            walker.tick += 1
            reached = walker.cell == walker.layout.target
            walker.live = not reached and walker.tick < walker.layout.length
            self._show(slot, walker, 1.0 if reached else -0.01, mb)

    def _show(self, slot: int, walker: _Slot, reward: float, mb: float) -> None:
        layout = walker.layout
        half = layout.length
        gap = (layout.target - walker.cell + half) % layout.cells - half
        ROW.pack_into(
            self.rows,
            slot * ROW.size,
            walker.tick,
            walker.cell / layout.cells,
            layout.target / layout.cells,
            gap / half,
            walker.tick / half,
            reward,
            walker.cell,
            abs(gap),
            mb,
            not walker.live,
        )


def memory_mb() -> float:
    """Returns the memory in use by this process, in MB; 0 where the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return int(file.read().split()[1]) * _PAGE_MB
    except OSError:
        return 0.0


def _wait(seconds: float) -> None:
    if seconds > 0:
        select.select([], [], [], seconds)


def _forever() -> None:
    while True:
        _wait(3600.0)


def _read(count: int) -> bytes:
    """Returns that many bytes of stdin, fewer at its end."""
    data = b""
    while len(data) < count and (more := os.read(0, count - len(data))):
        data += more
    return data


def _receive() -> bytes:
    """Returns a message; empty when the other side has closed the pipe."""
    head = _read(LENGTH.size)
    return _read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


class Program:
    """The game as a process: serves requests, and has its grandchild.

    Args:
        settings: ``width``, ``mean_steps`` and ``slip`` of the walk; ``grandchild``, one of
            ``GRANDCHILDREN``, and ``orphan_s``, how long an orphan lives; ``ignore_sigterm`` and
            ``ignore_eof``; ``exit_code``; ``last_words``, whether it logs why it dies;
            ``leak_bytes`` that every step leaks, ``memory_cap_mb`` and ``show_memory``.
    """

    def __init__(self, settings: dict[str, object]) -> None:
        self._settings = settings
        self._hoard: list[bytes] = []
        self._doing = "start"
        width, mean_steps = self._number("width"), self._number("mean_steps")
        self._walk = Walk(int(width), int(mean_steps), self._number("slip"))
        if settings["ignore_sigterm"]:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._limit(int(self._number("memory_cap_mb")) << 20)
        self._grandchild = self._start_grandchild(str(settings["grandchild"]))

    def _number(self, name: str) -> float:
        value = self._settings[name]
        if not isinstance(value, int | float):
            raise TypeError(f"setting {name}: expected a number, got {value!r}")
        return value

    def _limit(self, memory: int) -> None:
        import resource  # noqa: PLC0415 - half of them never need it

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # crashes often: no core files
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    def _start_grandchild(self, kind: str) -> int:
        if kind == NO_GRANDCHILD:
            return 0
        source, sink = os.pipe()
        child = os.fork()
        if child == 0:
            self._run_as_grandchild(kind, sink)
        os.close(sink)
        own = int(os.read(source, 32))
        os.close(source)
        if kind == ORPHAN:
            os.waitpid(child, 0)
        else:  # like a game whose display server ends: the game cannot run without it
            signal.signal(signal.SIGCHLD, self._end_without_helper)
        return own

    def _run_as_grandchild(self, kind: str, sink: int) -> None:
        if kind != CHILD:
            os.setsid()
        if kind == ORPHAN and os.fork():
            os._exit(0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for pipe in (0, 1):  # otherwise no one would see the game's own end of them close
            os.dup2(nothing, pipe)
        os.write(sink, str(os.getpid()).encode())
        os.close(sink)
        if kind == ORPHAN:
            _wait(self._number("orphan_s"))
            os._exit(0)
        _forever()

    def _end_without_helper(self, signum: int, frame: object) -> None:
        del signum, frame
        self._say(f"its helper process {self._grandchild} ended")
        os._exit(HELPER_STATUS)

    def _say(self, words: str) -> None:
        if self._settings["last_words"]:
            os.write(2, f"chaos game {os.getpid()}: {words}\n".encode())

    def serve(self) -> bool:
        """Serves requests; returns True after a request to close, False if the pipe was closed."""
        seconds, fault = self._number("latency"), str(self._settings["fault"])
        hello = {"pid": os.getpid(), "grandchild": self._grandchild}
        self._answer(json.dumps(hello).encode(), seconds, fault)
        while request := _receive():
            what, seconds, number = HEADER.unpack_from(request)
            body, fault = request[HEADER.size :], FAULTS[number]
            if what == CLOSE:
                self._doing = "close"
                self._take(seconds, fault)
                return True
            mb = memory_mb() if self._settings["show_memory"] else 0.0
            if what == RESET:
                self._doing = "reset"
                for slot, seed, layout, difficulty in BEGIN.iter_unpack(body):
                    self._walk.reset(slot, seed, layout, difficulty, mb)
            else:
                self._doing = "step"
                self._leak(int(self._number("leak_bytes")))
                self._walk.step(body, mb)
            self._answer(bytes(self._walk.rows), seconds, fault)
        return False

    def end(self, *, asked: bool) -> None:
        """Ends the grandchild, unless it is an orphan.

        Args:
            asked: whether it was asked to close; a game may not notice that its host is gone.
        """
        if not asked and self._settings["ignore_eof"]:
            _forever()
        if self._grandchild and self._settings["grandchild"] != ORPHAN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                os.kill(self._grandchild, signal.SIGKILL)
                os.waitpid(self._grandchild, 0)
            except OSError:
                return  # it had ended by itself

    def out_of_memory(self) -> None:
        """Dies like a game that runs out of memory."""
        self._hoard.clear()
        self._say(f"MemoryError in {self._doing}")
        os._exit(MEMORY_STATUS)

    def _leak(self, count: int) -> None:
        if count:
            self._hoard.append(b"\1" * count)  # not zeros: pages of zeros would not be allocated

    def _take(self, seconds: float, fault: str) -> None:
        """Waits, then causes a fault that does not concern the reply."""
        _wait(seconds)
        if fault == HANG:
            self._say(f"hangs in {self._doing} as ordered")
            _forever()
        elif fault in CRASHES:
            self._say(f"dies in {self._doing} as ordered: {fault}")
            self._crash(fault)

    def _crash(self, fault: str) -> None:
        if fault == "exit":
            os._exit(int(self._number("exit_code")))
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "abort":
            os.abort()
        if fault == "segfault":
            import ctypes  # noqa: PLC0415 - takes longer to import than all the rest

            ctypes.string_at(0)
        if not self._settings["memory_cap_mb"]:
            with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - as above
                pages = int(file.read().split()[0])
            self._limit(int(pages * _PAGE_MB * 2**20) + _HEADROOM)
        while True:
            self._leak(1 << 20)

    def _answer(self, body: bytes, seconds: float, fault: str) -> None:
        self._take(seconds, fault)
        if fault == "length":
            _write(LENGTH.pack(2**31) + b"\0\0\0")
        elif fault == "bytes" or (fault == "nan" and self._doing == "start"):
            _write(LENGTH.pack(len(body) + 1) + b"\xff" * (len(body) + 1))
        else:
            if fault == "nan":
                tick, *_, over = ROW.unpack_from(body)
                body = ROW.pack(tick, *[float("nan")] * 8, over) * (len(body) // ROW.size)
            _write(LENGTH.pack(len(body) + 1) + OK + body)


def main() -> None:
    """Plays until it is asked to close."""
    settings = _receive()
    if not settings:
        return
    program = Program(json.loads(settings))
    try:
        asked = program.serve()
    except MemoryError:
        program.out_of_memory()
        return
    except BrokenPipeError:
        asked = False
    program.end(asked=asked)


if __name__ == "__main__":
    main()
