"""Counts what becomes of episodes whose games fail, behind OpenEnv's server and behind ours.

OpenEnv's own client plays the same episodes of the chaos game on both: the same steps crash, hang
and take long. What must come of each is computed without a server. Then both servers are killed
while clients play, and both play while the disk of their temporary files is full (needs root).

    python -m benchmarks.faults.invariants --save
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks.report import arguments, publish, table
from bridges.chaos.bridge import ChaosBridge
from bridges.chaos.game import DIFFICULTIES, ROW, Layout, Walk
from bridges.chaos.plan import EpisodeKey
from rollout.api import Environment, environment_folder
from rollout.commands.env import make_environment
from rollout.host.instances import free_ports

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("invariants_openenv.py")
OPENENV = Environment(
    "openenv-client", ROOT / "tests" / "contract" / "openenv_requirements.txt", "3.11"
)
SESSIONS, EPISODES = 8, 30  # clients at once, and episodes of each
LIMIT_S = 20.0  # a client leaves after waiting as long for one answer
STRAGGLER_S, DEADLINE_S = 3.0, 6.0
PATIENCE_S = 90.0  # how long a client tries to connect to a server that is gone
START_S, PLAY_S, SETTLE_S = 120.0, 400.0, 10.0
CALM: Mapping[str, Any] = {"mean_steps": 10, "step_deadline_s": DEADLINE_S, "grandchild": "none"}
FAULTS: Mapping[str, Any] = {
    **CALM,
    "step_crash": 0.01,
    "step_hang": 0.005,
    "step_latency": f"lognormal(0.01 2.214 {STRAGGLER_S:g})",  # 0.5 % reach the cap
}
SLOW: Mapping[str, Any] = {**CALM, "step_latency": 0.05}


@dataclass(frozen=True)
class Expected:
    """What an episode is without a server.

    Attributes:
        rewards: of its steps, were there no faults.
        strikes: seconds and fault of each step.
    """

    rewards: list[float]
    strikes: list[tuple[float, str]]

    @property
    def fault(self) -> str:
        """Returns the first fault; empty for none."""
        return next((fault for _, fault in self.strikes if fault), "")


def expected(options: Mapping[str, Any], seed: int) -> Expected:
    """Returns what an episode is in which the walker always goes up."""
    bridge = ChaosBridge(**options)
    walk, plan = Walk(1, bridge.mean_steps, bridge.slip), bridge.plan()
    key = EpisodeKey(seed, 0, Layout(seed, 0, bridge.mean_steps).distance)
    walk.reset(0, seed, seed, list(DIFFICULTIES).index("easy"), 0.0)
    rewards: list[float] = []
    strikes: list[tuple[float, str]] = []
    over = False
    while not over:
        strike = plan.of_episode("step", key, len(rewards) + 1)
        walk.step(b"\1", 0.0)
        row = ROW.unpack(bytes(walk.rows))
        rewards.append(row[5])
        strikes.append((strike.seconds, strike.fault))
        over = row[-1]
    return Expected(rewards, strikes)


class Server:
    """A server that hosts the chaos game.

    Args:
        name: ``openenv`` or ``gamut``.
        python: interpreter with OpenEnv.
        folder: for its files; temporary ones go to ``folder / "tmp"``.
        options: of the bridge.
        truths: the episodes by seed.
    """

    def __init__(
        self,
        name: str,
        python: Path,
        folder: Path,
        options: Mapping[str, Any],
        truths: Mapping[int, Expected],
    ) -> None:
        self.port = free_ports(1)[0]
        self._python, self._folder = python, folder
        (folder / "tmp").mkdir(exist_ok=True)
        if name == "openenv":
            settings = {"width": 1, "latency": 0.0, "fault": "", **_game_settings(options)}
            file = folder / "faults.json"
            faults = {seed: truth.strikes for seed, truth in truths.items()}
            file.write_text(json.dumps({"settings": settings, "faults": faults}))
            self._command = [str(python), str(PROGRAM), "serve", str(self.port), str(file)]
            self._command += [str(SESSIONS)]
        else:
            keys = [f"bridge.{key}={json.dumps(value)}" for key, value in options.items()]
            gamut = str(Path(sys.executable).with_name("gamut"))
            self._command = [gamut, "serve", "--set", f"port={self.port}", "bridge=chaos"]
            self._command += [f"games={SESSIONS}", *keys]

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        environment = {**os.environ, "TMPDIR": str(self._folder / "tmp")}
        with (self._folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=environment, cwd=self._folder
            )
        end = time.monotonic() + START_S
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                raise TimeoutError((self._folder / "server.log").read_text()[-2000:])
            pause(0.2)

    def answers(self) -> bool:
        """Returns whether it accepts connections."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 2):
            return True
        return False

    def games(self) -> list[psutil.Process]:
        """Returns the processes of games that it, or a killed one in its place, has started."""
        mine = str(self._folder / "tmp")
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                plays = any(part.endswith("chaos/game.py") for part in process.cmdline())
                if plays and process.environ().get("TMPDIR", "").startswith(mine):
                    found.append(process)
        return found

    def clients(self, seeds: list[list[int]]) -> subprocess.Popen[str]:
        """Starts the clients: a line when an episode has ended, then what became of each."""
        jobs = {"seeds": seeds, "limit_s": LIMIT_S, "patience_s": PATIENCE_S}
        url = f"http://127.0.0.1:{self.port}"
        command = [str(self._python), str(PROGRAM), "play", url, json.dumps(jobs)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def stop(self) -> str:
        """Ends it by SIGTERM; returns in how many seconds, or that it had to be killed."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
            return f"{time.monotonic() - began:.0f} s"
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
            return "killed after 60 s"
        finally:
            for game in self.games():
                with contextlib.suppress(psutil.Error):
                    game.kill()


def pause(seconds: float) -> None:
    """Waits."""
    threading.Event().wait(seconds)


def _game_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    bridge = ChaosBridge(**options)
    names = (
        *("mean_steps", "slip", "grandchild", "orphan_s", "ignore_sigterm", "ignore_eof"),
        *("exit_code", "last_words", "leak_bytes", "memory_cap_mb", "show_memory"),
    )
    return {name: getattr(bridge, name) for name in names}


def seeds_of(count: int) -> list[list[int]]:
    """Returns the seeds of each client."""
    return [[1 + k * count + j for j in range(count)] for k in range(SESSIONS)]


def verdicts(found: list[dict[str, Any]], truths: Mapping[int, Expected]) -> dict[str, str]:
    """Returns the counts of one system; an episode is in one of the first six rows."""
    counts: Counter[str] = Counter()
    disturbed, longest = 0, 0.0
    for each in found:
        truth, kind = truths[each["seed"]], each["kind"]
        if kind == "result":
            if truth.fault:
                kind = "made up"
            elif len(each["rewards"]) > len(truth.rewards):
                kind = "doubled"
            elif [round(x, 4) for x in each["rewards"]] != [round(x, 4) for x in truth.rewards]:
                kind = "wrong"
        counts[kind] += 1
        if not truth.fault:
            disturbed += kind != "result"
            if max(seconds for seconds, _ in truth.strikes) < 1.0:
                longest = max(longest, each["longest"])
    answered = Counter(each["seed"] for each in found)
    return {
        "episodes": str(len(truths)),
        "right results": str(counts["result"]),
        "lost, and told by an error": str(counts["told"]),
        "stuck: left by the client's limit": str(counts["stuck"]),
        "made-up rewards (a result although the game failed)": str(counts["made up"]),
        "doubled (steps twice, or two answers)": str(
            counts["doubled"] + sum(n - 1 for n in answered.values())
        ),
        "results that differ from the game's": str(counts["wrong"]),
        "lost silently (no answer)": str(len(set(truths) - set(answered))),
        "disturbed (no fault of their own, no right result)": str(disturbed),
        "longest step of an episode without fault or straggler": f"{longest:.1f} s",
    }


def under_faults(name: str, python: Path, folder: Path) -> dict[str, str]:
    """Plays all episodes with crashes, hangs and stragglers."""
    seeds = seeds_of(EPISODES)
    truths = {seed: expected(FAULTS, seed) for some in seeds for seed in some}
    server = Server(name, python, folder, FAULTS, truths)
    server.start()
    began = time.monotonic()
    out = server.clients(seeds).communicate(timeout=PLAY_S)[0].partition("\n")[2]
    rows = verdicts(json.loads(out), truths)
    rows["duration"] = f"{time.monotonic() - began:.0f} s"
    pause(SETTLE_S)
    left = len(server.games()) - (SESSIONS if name == "gamut" else 0)  # one waits for each session
    hung = sum(one.fault == "hang" for one in truths.values())
    crashed = sum(bool(one.fault) for one in truths.values()) - hung
    rows[f"games left {SETTLE_S:g} s after all clients had gone"] = str(max(0, left))
    rows["end by SIGTERM"] = server.stop()
    rows["episodes whose game crashes, hangs by the plan"] = f"{crashed}, {hung}"
    return rows


def killed(name: str, python: Path, folder: Path) -> dict[str, str]:
    """Kills the server while clients play, and starts it again."""
    seeds = seeds_of(12)
    truths = {seed: expected(SLOW, seed) for some in seeds for seed in some}
    server = Server(name, python, folder, SLOW, truths)
    server.start()
    clients = server.clients(seeds)
    assert clients.stdout is not None
    clients.stdout.readline()  # an episode has ended
    pause(1.0)
    server.process.kill()
    server.process.wait(10)
    pause(SETTLE_S)
    left, back = len(server.games()), server.answers()
    server.start()
    out, _ = clients.communicate(timeout=PLAY_S)
    server.stop()
    found = json.loads(out)
    rows = verdicts(found, truths)
    last = {some[-1] for some in seeds}
    went_on = sum(each["seed"] in last and each["kind"] == "result" for each in found)
    return {
        "kill -9 of the server: " + key: rows[key]
        for key in list(rows)[:8]
        if key != "results that differ from the game's"
    } | {
        f"kill -9 of the server: processes of games left after {SETTLE_S:g} s": str(left),
        "kill -9 of the server: came back by itself": "yes" if back else "no",
        "kill -9 of the server: clients that played to the end after it was started again": (
            f"{went_on} of {SESSIONS}"
        ),
    }


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Yields a folder on a disk of its own."""
    disk = folder / "tmp"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False, capture_output=True)


def full_disk(name: str, python: Path, folder: Path) -> dict[str, str]:
    """Plays with the faults' crashes while the disk of temporary files is full."""
    options = {**CALM, "step_crash": 0.01}
    seeds = seeds_of(8)
    truths = {seed: expected(options, seed) for some in seeds for seed in some}
    with small_disk(folder) as disk:
        server = Server(name, python, folder, options, truths)
        server.start()
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while file.write(b"\0" * 65536):
                pass
        out = server.clients(seeds).communicate(timeout=PLAY_S)[0].partition("\n")[2]
        server.stop()
    rows = verdicts(json.loads(out), truths)
    crashed = sum(bool(one.fault) for one in truths.values())
    return {f"disk full: {key}": rows[key] for key in list(rows)[:6]} | {
        "disk full: episodes whose game crashes by the plan": str(crashed)
    }


ABOUT = f"""OpenEnv's own client (0.10.0) plays the same {SESSIONS * EPISODES} episodes by
{SESSIONS} sessions at once, each once, on OpenEnv's server and on `gamut serve`. OpenEnv hosts the
program of the chaos game in an `Environment` subclass, as its users write one, without timeouts
(`benchmarks/faults/invariants_openenv.py`). The shares are of steps: 1 % crash, 0.5 % hang for ever
and 0.5 % take {STRAGGLER_S:g} s, which stands for the 30 s of the issue; `gamut serve` gives a step
{DEADLINE_S:g} s, and clients wait {LIMIT_S:g} s for an answer (OpenEnv's default is 60 s). The
same steps of the same episodes fail on both; what must come of each is computed without a server.

"""

SHOWN_BY = {
    "1 shared retry loops end by default": "not measured: each client plays an episode once",
    "2 what may have been delivered is not repeated": 'the rows "doubled"',
    "3 results, failures, unresolved work stay apart": '"lost, and told", "stuck", "lost silently"',
    "4 a failure is no sample of reward zero": '"made-up rewards"',
    "5 masked rewards stay out of training": "not measured: nothing trains here",
    "6 a resume checks identity and keeps attempts": "not measured: servers keep no run",
    "7 remote sessions are released within bounds": '"games left" after the clients had gone',
    "8 cancel and shutdown free what they own": '"end by SIGTERM", "processes of games left"',
}
INVARIANTS = f"""
## The eight invariants of NVIDIA-NeMo/Gym#2750

{table(["invariant", "shown by"], [list(row) for row in SHOWN_BY.items()])}
verifiers 0.4.0 has no column: its environment server plays whole episodes, for each of which it
starts a program that asks a model. Hosting the game there in the same plain way was not finished,
so nothing is claimed about it. Each figure is of one run. A server that is killed comes back only
if something outside starts it again, on both sides. OpenEnv's server itself writes no files.
"""


def main() -> None:
    """Measures both servers and writes the table."""
    parser = arguments(__doc__)
    given = parser.parse_args()
    make_environment(OPENENV, environment_folder(OPENENV.name))
    python = environment_folder(OPENENV.name) / "bin" / "python"
    columns: dict[str, dict[str, str]] = {}
    for name in ("openenv", "gamut"):
        columns[name] = {}
        for measure in (under_faults, killed, full_disk):
            with tempfile.TemporaryDirectory(prefix="invariants-") as folder:
                try:
                    columns[name] |= measure(name, python, Path(folder))
                except subprocess.CalledProcessError as error:  # no right to mount
                    print(f"{name}, {measure.__name__}: not measured: {error}", flush=True)
    rows = [
        [key, *(columns[name].get(key, "not measured") for name in columns)]
        for key in columns["gamut"]
    ]
    body = ABOUT + table(["", "OpenEnv 0.10.0", "gamut serve"], rows) + INVARIANTS
    publish("invariants", "Failing games behind environment servers", body, save=given.save)


if __name__ == "__main__":
    main()
