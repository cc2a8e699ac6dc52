"""Measures the driver of a collection with the messages of 1,000 actors, on one machine.

The job is `gamut collect` as it is: fleet, supervisor, schedule, recorder, logs, metrics, W&B's
mirror (offline) and Ray. Only the actors are not: two processes of Ray answer for all of them, with
fragments of the fake game that were played once, and with the episodes that the driver handed out.
So the driver sends and receives what 1,000 actors would, through Ray and its object store.

Each actor has ten games. Where no steps a second are named, actors answer at once: what the driver
can take. Otherwise they answer as games of so many steps a second would, and in the last setup one
of a hundred actors dies every minute.

    python -m benchmarks.throughput.scale
    python -m benchmarks.throughput.scale --against CHECKOUT     # the same driver, older, in turns
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_AUTH_MODE", "disabled")

import psutil
import ray
from ray.exceptions import RayTaskError

from benchmarks.report import arguments, publish, spread, table
from rollout.api import Fragment, Start
from rollout.cli import Session
from rollout.collect import collect
from rollout.config import CollectConfig, make_config
from rollout.data import Dataset, DatasetWriter
from rollout.host.actors import ActorLost, Pulse, Supervisor
from rollout.host.hosting import HostPlan, HostReport
from rollout.host.ray_actors import RayLauncher
from rollout.host.ray_fleet import RayFleet
from rollout.host.schedule import Schedule
from rollout.monitor import Monitor
from rollout.observe.hosts import HostFigures
from rollout.observe.metrics import Metrics
from rollout.observe.wandb_mirror import WandbMirror
from rollout.signals import Stop
from rollout.testing.fragments import make_fragments

HERE = Path(__file__).resolve().parents[2]
GAMES, LENGTH = 10, 512  # of an actor; steps of an episode
GATHER_S = 0.5  # as of a real host
LAUNCH_S = 5.0  # of an actor that replaces another
STAGES = 2  # processes that answer
SMALL = 16  # side of the fake game's grid, so large that a random walk misses its target


class Stage:
    """Answers for many actors, as a host with ``GAMES`` games would; one process of Ray."""

    def __init__(self, plan: HostPlan, *, pace: float, dying: float) -> None:
        self._pace, self._dying, self._steps = pace, dying, plan.play.steps
        self._templates = [_episode(plan, seed) for seed in (1, 2, 3, 4)]
        self._puppets: dict[tuple[int, int], _Puppet] = {}

    def _puppet(self, number: int, incarnation: int) -> _Puppet:
        key = number, incarnation
        if key not in self._puppets:
            args = number, incarnation, self._templates
            how = {"pace": self._pace, "steps": self._steps, "dying": self._dying}
            self._puppets[key] = _Puppet(*args, **how)
        return self._puppets[key]

    async def play(
        self, number: int, incarnation: int, starts: Sequence[Start]
    ) -> tuple[HostReport, list[Fragment]]:
        """Answers a request for fragments of an actor."""
        return await self._puppet(number, incarnation).play(starts)

    async def pulse(self, number: int, incarnation: int) -> tuple[str, Pulse]:
        """Answers a request for a sign of life."""
        puppet = self._puppet(number, incarnation)
        await puppet.until(puppet.born)
        return ray.get_runtime_context().get_node_id(), Pulse(puppet.progress, 0.0)

    async def close(self) -> None:
        """Takes the place of the end of an actor's games."""


class _Puppet:
    """What a host with its games knows: its episodes, and when their fragments are complete."""

    def __init__(
        self,
        number: int,
        incarnation: int,
        templates: list[list[Fragment]],
        *,
        pace: float,
        steps: int,
        dying: float,
    ) -> None:
        self._random = random.Random(f"{number} {incarnation}")
        self._number, self._incarnation, self._templates = number, incarnation, templates
        self._fragment_s = steps / pace if pace else 0.0
        self.born = time.monotonic() + (LAUNCH_S if incarnation else 0.0)
        lives = self._random.expovariate(dying / 60.0) if dying else float("inf")
        self._dies = self.born + lives
        self._queue: deque[Start] = deque()
        self._games: list[tuple[float, int, Start, int] | None] = [None] * GAMES
        self._lock, self.progress = asyncio.Lock(), 0

    async def until(self, moment: float) -> None:
        """Waits until a moment.

        Raises:
            ActorLost: the actor died before.
        """
        await asyncio.sleep(max(0.0, min(moment, self._dies) - time.monotonic()))
        if time.monotonic() >= self._dies:
            raise ActorLost("it died, as the benchmark has it")

    async def play(self, starts: Sequence[Start]) -> tuple[HostReport, list[Fragment]]:
        """Returns the next fragments, as ``Player.next_fragments`` gathers them."""
        self._queue.extend(starts)
        async with self._lock:
            await self.until(self.born)
            found, end = list[Fragment](), float("inf")
            while len(found) < GAMES:
                self._begin()
                playing = [each for each in self._games if each is not None]
                due, game = min(((e[0], e[1]) for e in playing), default=(float("inf"), 0))
                if due > end or not playing:
                    break
                await self.until(due)
                found.append(self._fragment(game))
                end = min(end, time.monotonic() + GATHER_S)
            self.progress += 1
            waiting = len(self._queue)
            figures = HostFigures(GAMES, GAMES, waiting, games_s=1.0, own_s=0.1)
            return HostReport(waiting, (), figures), found

    def _begin(self) -> None:
        """Begins an episode in every idle game, each at a time of its own."""
        for game, playing in enumerate(self._games):
            if playing is None and self._queue:
                due = time.monotonic() + self._fragment_s * self._random.uniform(0.1, 1.0)
                self._games[game] = due, game, self._queue.popleft(), 0

    def _fragment(self, game: int) -> Fragment:
        """Returns the fragment of a game that is complete now."""
        playing = self._games[game]
        assert playing is not None
        due, _, start, part = playing
        parts = self._templates[start.episode % len(self._templates)]
        own = self._number * GAMES + game
        fragment = parts[part]
        later = due + self._fragment_s * self._random.uniform(0.9, 1.1)
        self._games[game] = None if fragment.results else (later, game, start, part + 1)
        return replace(
            fragment,
            instance=own,
            incarnation=self._incarnation,
            starts=(start,),
            results=tuple(replace(r, start=start, instance=own) for r in fragment.results),
        )


def _episode(plan: HostPlan, seed: int) -> list[Fragment]:
    """Returns the fragments of a whole episode of ``LENGTH`` steps of one game."""
    task, steps = plan.task, plan.play.steps
    count = LENGTH // steps
    for number in range(100):  # until the random walk misses its target
        made = make_fragments(
            count,
            length=steps,
            width=1,
            seed=100 * seed + number,
            episodes=1,
            bridge=plan.bridge,
            policy=plan.policy,
            evaluator=task.evaluator,
        )
        if made[-1].results and int(made[-1].env_steps) == steps:
            return made
    raise AssertionError("every walk reached its target; enlarge the grid")


class Remote:
    """A method of an actor that a stage answers for."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.remote = call


class Puppeteer(RayLauncher):
    """Launches actors that a stage answers for; everything else is Ray's, as usual."""

    def __init__(self, stages: Sequence[Any]) -> None:
        super().__init__(Stage, lambda *_: (), {})  # type: ignore[arg-type]
        self._stages = stages
        self.launched = 0

    def launch(self, number: int, incarnation: int, avoid: Sequence[str]) -> Any:
        self.launched += 1
        stage = self._stages[number % len(self._stages)]

        class Handle:
            play = Remote(lambda starts, *_: stage.play.remote(number, incarnation, starts))
            pulse = Remote(lambda: stage.pulse.remote(number, incarnation))
            close = stage.close

        return Handle

    @staticmethod
    def request_pulse(handle: Any) -> Any:
        return handle.pulse.remote()

    def get(self, reference: Any) -> Any:
        try:
            return super().get(reference)
        except (RayTaskError, ActorLost) as error:
            cause = getattr(error, "cause", error)
            raise (cause if isinstance(cause, ActorLost) else error) from None

    def kill(self, handle: Any) -> None:
        """Does nothing: the stage answers for others, too."""


class Times:
    """Processor time of the main thread, by part, without that of the parts within it."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._stack: list[list[float]] = []

    def wrap(self, owner: Any, method: str, part: str) -> None:
        inner = vars(owner)[method] if isinstance(owner, type) else getattr(owner, method)

        @functools.wraps(inner)
        def timed(*args: Any, **kwargs: Any) -> Any:
            before = [time.thread_time(), 0.0]
            self._stack.append(before)
            try:
                return inner(*args, **kwargs)
            finally:
                self._stack.pop()
                whole = time.thread_time() - before[0]
                self.spent[part] += whole - before[1]
                self.calls[part] += 1
                if self._stack:
                    self._stack[-1][1] += whole

        setattr(owner, method, timed)


PARTS = [
    (Supervisor, "poll", "supervisor"),
    (Supervisor, "wait", "supervisor"),
    (RayLauncher, "wait", "ray.wait"),
    (Puppeteer, "get", "ray.get"),
    (RayFleet, "_request", "requests to actors"),
    (RayFleet, "_fill_requests", "fleet"),
    (RayFleet, "_take", "fleet"),
    (Schedule, "take", "schedule"),
    (DatasetWriter, "append", "recorder"),
    (Monitor, "observe", "counts and logs"),
    (Monitor, "show", "metrics"),
    (Metrics, "write", "metrics"),
]


class Window:
    """The time that is measured: after every actor has answered, until it is over.

    Args:
        actors: number of actors.
        seconds: its length.
    """

    def __init__(self, actors: int, seconds: float) -> None:
        self._actors, self._seconds, self._times = actors, seconds, Times()
        self._seen, self._began = set[int](), 0.0
        self._before: tuple[float, float, dict[str, float]] = (0.0, 0.0, {})
        self._steps = self._replies = 0
        self.found: dict[str, Any] = {}
        self.launchers: list[Puppeteer] = []
        self.mirrors: list[int] = []
        for owner, method, part in PARTS:
            self._times.wrap(owner, method, part)

    def watch(self, fragment: Fragment) -> None:
        """Counts a fragment; interrupts the job when the time is over."""
        now = time.perf_counter()
        if not self._began:
            self._seen.add(fragment.instance // GAMES)
            if len(self._seen) == self._actors:
                self._times.spent.clear()
                self._times.calls.clear()
                self._before = _cpu(os.getpid()), time.thread_time(), self._others()
                self._began = now
            return
        self._steps += fragment.env_steps
        if now - self._began > self._seconds and not self.found:
            cpu, main, others = self._before
            self.found = {
                "seconds": now - self._began,
                "steps": self._steps,
                "main": time.thread_time() - main,
                "cpu": _cpu(os.getpid()) - cpu,
                "parts": dict(self._times.spent),
                "replies": self._times.calls["ray.get"],
                "rounds": self._times.calls["ray.wait"],
                "others": {k: v - others.get(k, 0.0) for k, v in self._others().items()},
                "mb": psutil.Process().memory_info().rss / 2**20,
            }
            os.kill(os.getpid(), signal.SIGINT)

    def _others(self) -> dict[str, float]:
        """Returns the processor time of the other processes of the job, by kind."""
        kinds: defaultdict[str, float] = defaultdict(float)
        for each in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                kinds[self._kind(each)] += sum(each.cpu_times()[:2])
        return dict(kinds)

    def _kind(self, process: psutil.Process) -> str:
        name = " ".join(process.cmdline())
        if any(p.pid in self.mirrors for p in (process, *process.parents())):
            return "W&B"
        kinds = (("Stage", "stages"), ("gcs_server", "GCS"), ("raylet/raylet", "raylet"))
        return next((kind for part, kind in kinds if part in name), "rest")

    def install(self, *, pace: float, dying: float) -> None:
        """Has the fleet launch actors that stages answer for."""
        launchers, mirrors = self.launchers, self.mirrors

        def launch(fleet: RayFleet, plan: HostPlan, count: int) -> Supervisor:
            stage: Any = ray.remote(num_cpus=0, max_concurrency=4 * count)(Stage)
            stages = [stage.remote(plan, pace=pace, dying=dying) for _ in range(STAGES)]
            ray.get([each.close.remote() for each in stages], timeout=120)
            launchers.append(Puppeteer(stages))
            keys: dict[str, Any] = {"restarts": plan.host.actor_restarts, "stall_s": plan.stall_s}
            keys |= {"policy_s": plan.host.policy_s, "name": "host", "failed": fleet.failed}
            return Supervisor(launchers[0], count, plan.host, **keys)

        RayFleet._launch = launch  # type: ignore[method-assign]
        start = WandbMirror.__init__

        def mirror(own: WandbMirror, *args: Any, **kwargs: Any) -> None:
            start(own, *args, **kwargs)
            mirrors.append(own._process.pid)  # type: ignore[union-attr]

        WandbMirror.__init__ = mirror  # type: ignore[method-assign]


def measure(actors: int, seconds: float, steps: int, pace: float, dying: float) -> dict[str, Any]:
    """Returns what the driver of one collection takes, after every actor has answered."""
    window = Window(actors, seconds)
    window.install(pace=pace, dying=dying)
    with tempfile.TemporaryDirectory(prefix="gamut-scale-") as folder:
        output = Path(folder) / "run"
        given = {
            "bridge": {"name": "fake", "side": SMALL, "max_steps": LENGTH},
            "policy": "random",
            "actors": actors,
            "instances": GAMES,
            "fragment": {"steps": steps},
            "episodes": 10**9,
            "output": str(output),
            "wandb": {"mode": "offline"},
            "log": {"level": "warning"},
        }
        with Stop() as stop, contextlib.suppress(KeyboardInterrupt):
            config = make_config(CollectConfig, given)
            collect(config, Session(resume=False, stop=stop), watch=window.watch)
        with Dataset(output / "dataset") as dataset:
            ended = Counter(episode.episode for episode in dataset.episodes())
        files = {name: (output / name).stat().st_size for name in ("run.log", "metrics.jsonl")}
        return {
            **window.found,
            **files,
            "twice": sum(count - 1 for count in ended.values()),
            "episodes": len(ended),
            "bytes": sum(path.stat().st_size for path in (output / "dataset/data").iterdir()),
            "deaths": window.launchers[0].launched - actors,
        }


def _cpu(pid: int) -> float:
    return float(sum(psutil.Process(pid).cpu_times()[:2]))


def run(checkout: Path, options: Sequence[str]) -> dict[str, Any]:
    """Returns what ``measure`` finds with the driver of a checkout, in a process of its own."""
    code = f"import runpy; runpy.run_path({str(Path(__file__).resolve())!r}, run_name='__main__')"
    command = [sys.executable, "-c", code, *options]
    env = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, check=False)
    lines = [x for x in done.stdout.decode().splitlines() if x.startswith("{")]
    if not lines:
        sys.exit(f"{' '.join(options)}:\n{done.stderr.decode()[-4000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


SETUPS = [  # actors, steps of a fragment, steps a second of a game, share that dies a minute
    (64, 64, 0.0, 0.0),
    (256, 64, 0.0, 0.0),
    (1000, 64, 0.0, 0.0),
    (1000, 256, 0.0, 0.0),
    (64, 64, 20.0, 0.0),
    (1000, 64, 2.0, 0.0),
    (1000, 64, 2.0, 0.01),
]


def name_of(setup: tuple[int, int, float, float]) -> str:
    actors, steps, pace, dying = setup
    name = f"{actors:,} actors, fragments of {steps}"
    name += f", {pace:g} steps/s a game" if pace else ""
    return f"{name}, {dying:.0%} die a minute" if dying else name


def rows_of(found: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """Returns the rows of the table of whole costs."""
    rows = []
    for name, runs in found.items():
        us = spread([1e6 * r["cpu"] / r["steps"] for r in runs], 1)
        main = spread([100 * r["main"] / r["seconds"] for r in runs])
        whole = spread([100 * r["cpu"] / r["seconds"] for r in runs])
        rate = spread([r["steps"] / r["seconds"] for r in runs])
        replies = spread([r["replies"] / r["seconds"] for r in runs])
        memory = spread([r["mb"] for r in runs])
        ends = f"{sum(r['deaths'] for r in runs)}; {sum(r['twice'] for r in runs)}"
        rows.append([name, rate, replies, us, main, whole, memory, ends])
    return rows


def parts_of(found: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """Returns the rows of the table of parts, in microseconds a step."""
    names = list(dict.fromkeys(part for *_, part in PARTS))
    rows = []
    for name, runs in found.items():
        cells = [
            spread([1e6 * r["parts"].get(part, 0.0) / r["steps"] for r in runs], 2)
            for part in names
        ]
        rest = [1e6 * (r["cpu"] - r["main"]) / r["steps"] for r in runs]
        mirror = [1e6 * r["others"].get("W&B", 0.0) / r["steps"] for r in runs]
        rows.append([name, *cells, spread(rest, 2), spread(mirror, 2)])
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", type=int, nargs="*", default=list(range(len(SETUPS))))
    parser.add_argument("--against", type=Path, help="another checkout, in turns with this one")
    parser.add_argument("--one", type=json.loads, help="one setup in this process, as JSON")
    args = parser.parse_args()
    if args.one:
        actors, *how = args.one
        print(json.dumps(measure(actors, args.seconds, *how)))
        return
    checkouts = {"": HERE} | ({"before: ": args.against.resolve()} if args.against else {})
    found: dict[str, list[dict[str, Any]]] = {}
    for number in range(args.rounds):
        for setup in (SETUPS[n] for n in args.only):
            turns = list(checkouts.items())
            for prefix, checkout in turns if number % 2 == 0 else turns[::-1]:
                options = ["--seconds", f"{args.seconds:g}", "--one", json.dumps(setup)]
                result, name = run(checkout, options), prefix + name_of(setup)
                found.setdefault(name, []).append(result)
                print(number, name, json.dumps(result), flush=True)
    head = [
        "setup", "steps/s", "replies/s", "driver, us of processor a step",
        "main thread, % of a core", "driver, % of a core", "MB", "deaths; episodes recorded twice",
    ]  # fmt: skip
    parts = ["setup", *dict.fromkeys(part for *_, part in PARTS), "Ray's and Arrow's threads"]
    text = table(head, rows_of(found))
    text += "\n## Processor time of the parts, us a step\n\n"
    text += table([*parts, "W&B's mirror (a process)"], parts_of(found))
    publish("scale", "The driver of 1,000 actors", text, save=args.save)


if __name__ == "__main__":
    main()
