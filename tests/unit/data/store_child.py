"""A process to be killed: for every request on stdin it forks a child that records and reports.

Forking costs milliseconds where starting Python costs a second, so a test can afford many kills.
Requests: ``MODE PATH SEED FIRST LIMIT``. The child writes ``pid N`` and, after ``append`` has
returned, ``done EPISODE ATTEMPT ...``; the parent writes ``dead STATUS`` once it is gone.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3])]

from store_fragments import Player, make_manifest, stacked_spec  # noqa: E402 - needs the path above

from rollout.data import DatasetWriter, DiskFullError  # noqa: E402


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def child(mode: str, path: str, seed: int, first: int, limit: int) -> None:
    say(f"pid {os.getpid()}")
    spec = stacked_spec() if mode == "kill" else None
    player = Player(spec, width=2, seed=seed, first=first, longest=12, lost=False)
    if mode == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    shard_bytes = limit if mode == "kill" else 1 << 30
    try:
        writer = DatasetWriter(path, make_manifest(player.spec), shard_bytes=shard_bytes)
        while True:
            before = len(player.ended)
            writer.append(player.play(5))
            done = " ".join(f"{e}" for e, _ in player.ended[before:])
            say(f"done {done}")
    except DiskFullError as error:
        say(f"full {error}")
        writer.close()
        os._exit(0)


def main() -> None:
    say("ready")
    for line in sys.stdin:
        mode, path, *numbers = line.split()
        pid = os.fork()
        if pid == 0:
            child(mode, path, *(int(n) for n in numbers))
        _, status = os.waitpid(pid, 0)
        say(f"dead {status}")


if __name__ == "__main__":
    main()
