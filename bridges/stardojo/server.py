"""The program of the server: a valley that speaks the protocol of StarDojo's mod.

``python -m bridges.stardojo.server --port-id 10783 [--faults FILE]``; Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bridges.stardojo.faults import Faults, read
from bridges.stardojo.serving import Game
from rollout.errors import InputError

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
