"""Measures the policy ``vlm`` against a scripted server in another process.

*Games in flight*: 64 games whose answers take 1.0 s on average (log-normal, deviation 0.5 s), one
in 200 of them 30 s. The ideal is 64 divided by the mean latency. Beside it the same games in
lock-step, as 64 slots of one instance. *Own cost*: the time of a decision with a picture of 60 KiB
that the server answers at once, beside our client alone and a bare ``http.client``.

    python -m benchmarks.throughput.vlm
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from gymnasium import spaces

from benchmarks.report import arguments, publish, table
from benchmarks.throughput.playing import count, fragments, playing
from policies.vlm import VlmPolicy
from policies.vlm.options import History, Picture
from policies.vlm.pictures import Pictures
from rollout.api import BridgeSpec, Splits, Start, Task
from rollout.config import HostConfig
from rollout.evaluators import GameReward
from rollout.host import PlayOptions
from rollout.models.sections import Endpoint
from rollout.models.transport import HttpClient
from rollout.testing.chat_server import ChatServer, Scripted
from rollout.testing.fakes import FakeBridge

MEAN_S, DEVIATION_S, TAIL, TAIL_S = 1.0, 0.5, 200, 30.0
IDEAL_LATENCY_S = MEAN_S * (1 - 1 / TAIL) + TAIL_S / TAIL


def serve(slow: bool) -> None:
    """Runs the server and prints its URL; ends with its standard input."""
    rng = np.random.default_rng(0)
    sigma = np.sqrt(np.log1p((DEVIATION_S / MEAN_S) ** 2))

    def script(_: Any) -> Scripted:
        delay = rng.lognormal(np.log(MEAN_S) - sigma**2 / 2, sigma) if slow else 0.0
        if slow and rng.integers(TAIL) == 0:
            delay = TAIL_S
        return Scripted("<thought>t</thought><action>1</action>", delay_s=float(delay))

    with ChatServer(script) as server:
        print(server.url, flush=True)
        sys.stdin.read()


@contextlib.contextmanager
def server(*, slow: bool) -> Iterator[str]:
    """Runs the server in a process of its own; yields its URL."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.throughput.vlm",
        "--serve",
        "slow" if slow else "fast",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdin
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(timeout=30)


def steps_per_second(url: str, games: int, width: int, seconds: float) -> float:
    """Plays for some seconds after every game has begun."""
    bridge = FakeBridge()
    task = Task("walk", "Walk.", bridge.spec.state_space, GameReward())
    recipe = VlmPolicy(endpoint=Endpoint(url=url, calls=games), model="m", fallback="random")
    policy = recipe.build(bridge.spec, task, seed=0)
    state = Splits(bridge.spec.state_space).take("train", 1)[0]
    begins = [Start(state, number, number) for number in range(100 * games)]
    shape, setup = (games // width, width), {"host": HostConfig(), "play": PlayOptions(4)}
    with playing(bridge, task, policy, shape, begins=begins, **setup) as player:
        return count(fragments(player), games // width, seconds).rate


def picture_game() -> tuple[BridgeSpec, Task]:
    """A game with a picture whose PNG file has about 60 KiB."""
    states = FakeBridge().spec.state_space
    spec = BridgeSpec(
        name="picture",
        version="1",
        observation_space=spaces.Dict({"image": spaces.Box(0, 255, (160, 128, 3), np.uint8)}),
        action_space=spaces.Dict({"action": spaces.Discrete(5)}),
        state_space=states,
    )
    return spec, Task("look", "Look.", states, GameReward())


@dataclass(frozen=True)
class Cost:
    """Milliseconds of each call, and of processor time per call, of this side alone."""

    ms: list[float]
    cpu_ms: float

    def row(self, name: str) -> list[str]:
        """The row of the table."""
        cuts = statistics.quantiles(self.ms, n=100)
        figures = (statistics.median(self.ms), cuts[98], self.cpu_ms)
        return [name, *(f"{figure:.2f}" for figure in figures)]


def timed(calls: int, functions: Mapping[str, Callable[[], object]]) -> dict[str, Cost]:
    """The cost of some calls of each function, in turns, so that all have the same neighbours."""
    ms: dict[str, list[float]] = {name: [] for name in functions}
    used = dict.fromkeys(functions, 0.0)
    for number in range(20 + calls):  # 20 that are not counted
        for name, function in functions.items():
            began, before = time.perf_counter(), time.process_time()
            function()
            if number >= 20:
                used[name] += time.process_time() - before
                ms[name].append(1e3 * (time.perf_counter() - began))
    return {name: Cost(ms[name], 1e3 * used[name] / calls) for name in functions}


def own_cost(url: str, calls: int) -> tuple[dict[str, Cost], int]:
    """The cost of a call by library, and the bytes of the picture."""
    spec, task = picture_game()
    history = History(texts=0, images=1)
    recipe = VlmPolicy(endpoint=Endpoint(url=url), model="m", fallback="random", history=history)
    image = np.random.default_rng(0).integers(0, 256, (1, 160, 128, 3), np.uint8)
    pictures = Pictures(spec, history, Picture())
    encoded = pictures.encode(pictures.column, image[0])
    data = f"data:image/png;base64,{base64.b64encode(encoded).decode()}"
    part = {"type": "image_url", "image_url": {"url": data}}
    messages: Any = [{"role": "user", "content": [part, {"type": "text", "text": "Look."}]}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    client, place = HttpClient(Endpoint(url=url)), urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)

    def bare() -> None:
        connection.request("POST", f"{place.path}/chat/completions", body)
        json.loads(connection.getresponse().read())

    with tempfile.TemporaryDirectory() as folder:
        policy = recipe.in_run(Path(folder)).build(spec, task, seed=0)
        memory = policy.initial_memory([Start(Splits(spec.state_space).take("train", 1)[0], 1)])

        def ours() -> None:
            nonlocal memory
            memory = policy.act({"image": image}, memory, details=None, explore=True).memory

        functions: dict[str, Callable[[], object]] = {
            "ours, prompt, PNG and record included": ours,
            "our client alone, a body made before": lambda: client.post(body),
            "http.client, a body made before": bare,
        }
        found = timed(calls, functions)
    return found, len(encoded)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--serve", choices=("slow", "fast"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve == "slow")
        return
    ideal = args.games / IDEAL_LATENCY_S
    rows = []
    with server(slow=True) as url:
        for name, width in (("each game by itself", 1), ("lock-step", args.games)):
            rate = steps_per_second(url, args.games, width, args.seconds)
            rows.append([name, f"{rate:.1f}", f"{rate / ideal:.1%}"])
    with server(slow=False) as url:
        costs, size = own_cost(url, args.calls)
    text = (
        f"{args.games} games, answers of 1.0 +- 0.5 s, one in 200 of 30 s, {args.seconds:g} s each."
        f" Ideal: {args.games} / {IDEAL_LATENCY_S:.3f} s = {ideal:.1f} steps/s.\n\n"
    )
    text += table(["games", "steps/s", "of the ideal"], rows)
    text += f"\nOne call with a picture of {size / 1024:.0f} KiB, answered at once, in ms:\n\n"
    rows = [cost.row(name) for name, cost in costs.items()]
    text += table(["client", "median", "99 %", "its processor time"], rows)
    ours, alone, bare = (statistics.median(cost.ms) for cost in list(costs.values())[:3])
    text += (
        f"\nOf the median of http.client: ours {ours / bare:.2f}, our client {alone / bare:.2f}. "
        f"The picture is noise, of {size:,} bytes as a PNG file.\n"
    )
    publish("vlm", "Language models as policies", text, save=args.save)


if __name__ == "__main__":
    main()
