"""Measures ``gamut serve``: its share of the player's steps, and its own cost of a step.

64 sessions whose agents think for a second play through the socket, and the same games are played
by our own player with a policy that takes a second. The cost is the processor time of the server's
process per step, with agents that do not think and games in processes of their own.

    python -m benchmarks.throughput.serve
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from websockets.asyncio.client import connect

from benchmarks.report import arguments, publish, spread, table
from benchmarks.throughput.playing import count, fragments, playing, starts
from rollout.api import Columns, ColumnSpec, Decision, allocate
from rollout.config import HostConfig
from rollout.host import PlayOptions
from rollout.interop.games import bridge_of

PICTURE = {"name": "blockworld", "observe": ["rgb"], "rgb_width": 640, "rgb_height": 360}
GAMES: Mapping[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "small (chaos)": (
        {"name": "chaos", "zero_cost": True},
        [{"action": "up"}, {"action": "down"}],
    ),
    "640x360 picture (blockworld)": (PICTURE, [{}, {}]),
}
"""Games by what they show: the bridge, and actions to play in turn."""

ENOUGH_S = 300.0  # for an answer


class Thinker:
    """A policy that takes a second for each decision, as a model behind an endpoint."""

    calls = 64
    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(self, actions: Columns, seconds: float) -> None:
        self._actions, self._seconds = actions, seconds

    def initial_memory(self, starts: Any) -> Columns:
        """Returns no memory."""
        del starts
        return {}

    def act(self, observations: Columns, memory: Columns, **_: Any) -> Decision:
        """Returns the action after a while."""
        del observations
        threading.Event().wait(self._seconds)
        return Decision(self._actions, memory)


@contextlib.contextmanager
def server(bridge: Mapping[str, Any], *keys: str) -> Iterator[tuple[psutil.Process, str]]:
    """Yields the process of a server and the address of its socket."""
    gamut = str(Path(sys.executable).with_name("gamut"))
    given = [f"bridge.{k}={json.dumps(v)}" for k, v in bridge.items()]
    command = [gamut, "serve", "--set", "port=0", *given, *keys]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().split()[0]
        yield psutil.Process(process.pid), f"{url.replace('http', 'ws', 1)}/ws"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(ENOUGH_S)


@dataclass
class Sessions:
    """Sessions that play at once, and the steps that they have made.

    Attributes:
        steps: since ``began``.
        began: when all had begun.
    """

    url: str
    number: int
    think_s: float
    seconds: float
    steps: int = 0
    began: float = 0.0

    async def play(self, actions: list[dict[str, Any]], process: psutil.Process) -> float:
        """Returns the processor seconds of the server while the steps were made."""
        self._ready, self._go = 0, asyncio.Event()
        tasks = [asyncio.create_task(self._one(k, actions)) for k in range(self.number)]
        while self._ready < self.number:
            await asyncio.sleep(0.05)
            for task in tasks:
                if task.done():
                    task.result()
        before = sum(process.cpu_times()[:2])
        self.began = time.perf_counter()
        self._go.set()
        await asyncio.gather(*tasks)
        return float(sum(process.cpu_times()[:2]) - before)

    async def _one(self, number: int, actions: list[dict[str, Any]]) -> None:
        async with connect(
            self.url, max_size=2**26, compression=None, open_timeout=ENOUGH_S, proxy=None
        ) as socket:

            async def ask(kind: str, data: dict[str, Any]) -> dict[str, Any]:
                await socket.send(json.dumps({"type": kind, "data": data}))
                answer = json.loads(await asyncio.wait_for(socket.recv(), ENOUGH_S))
                assert answer["type"] == "observation", answer
                found: dict[str, Any] = answer["data"]
                return found

            shown = await ask("reset", {"seed": number})
            self._ready += 1
            await self._go.wait()
            while time.perf_counter() < self.began + self.seconds:
                if shown["done"]:
                    shown = await ask("reset", {})
                    continue
                await asyncio.sleep(self.think_s)
                shown = await ask("step", actions[self.steps % len(actions)])
                self.steps += 1


def by_player(bridge: Mapping[str, Any], games: int, think_s: float, seconds: float) -> float:
    """Returns the steps per second of our own player."""
    recipe, task = bridge_of(bridge, "")
    idle = allocate(recipe.spec.action_space, 1)
    policy, begins = Thinker(idle, think_s), starts(recipe.spec.state_space, 10 * games)
    options, host = PlayOptions(steps=1), HostConfig()
    with playing(
        recipe, task, policy, (games, 1), host=host, play=options, begins=begins
    ) as player:
        return count(fragments(player), games, seconds).rate


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    shares, costs = [], []
    for name, (bridge, actions) in GAMES.items():
        player, socket, cost = [], [], []
        for _ in range(args.rounds):
            player.append(by_player(bridge, args.sessions, 1.0, args.seconds))
            with server(bridge, f"games={args.sessions}") as (process, url):
                sessions = Sessions(url, args.sessions, 1.0, args.seconds)
                asyncio.run(sessions.play(actions, process))
                socket.append(sessions.steps / (time.perf_counter() - sessions.began))
            with server(bridge, "games=4", "host.isolation=subprocess") as (process, url):
                few = Sessions(url, 4, 0.0, args.seconds / 3)
                used = asyncio.run(few.play(actions, process))
                cost.append(1e3 * used / few.steps)
            print(name, player[-1], socket[-1], cost[-1], flush=True)
        share = [100 * b / a for a, b in zip(player, socket, strict=True)]
        shares.append([name, spread(player, 1), spread(socket, 1), spread(share, 1)])
        costs.append([name, spread(cost, 2)])
    text = (
        f"{args.sessions} sessions with an agent of 1 s, {args.seconds:g} s in {args.rounds} "
        f"rounds, the player and the socket in turn; clients on the same machine.\n\n"
    )
    text += table(["observation", "player: steps/s", "socket: steps/s", "share, %"], shares)
    text += (
        "\nProcessor time of the server's process per step: 4 sessions without a pause, the games "
        "in their own processes.\n\n"
    )
    text += table(["observation", "ms a step"], costs)
    publish("serve", "The environment server", text, save=args.save)


if __name__ == "__main__":
    main()
