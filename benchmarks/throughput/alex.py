"""Measures the memory of a run in which many agents of the policy ``alex`` share a world.

The model is a stub in this process. Every agent sees a picture, plans, speaks, walks, judges; the
memory is that of the run with all its processes: RSS, which counts shared pages in each of
them, and PSS, which counts them once.

    python -m benchmarks.throughput.alex
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil

from benchmarks.report import arguments, publish, table
from rollout.testing.chat_server import ChatServer, Request, Scripted

_MARK = "GAMUT_BENCHMARK"
_STUB = Path(__file__).resolve().parents[2] / "examples" / "alex_model.py"
WALK = """\
bot.chat(`${bot.username} walks, a${Math.floor(Math.random() * 64)} too.`);
const to = bot.entity.position.offset(Math.random() * 20 - 10, 0, Math.random() * 20 - 10);
await bot.pathfinder.goto(new GoalNearXZ(to.x, to.z, 2));
"""


def run(agents: int, calls: int, *, vision: bool) -> list[str]:
    """Returns the row of a run: agents, pictures, steps, calls and its memory."""
    spec = importlib.util.spec_from_file_location("alex_model", _STUB)
    assert spec is not None
    assert spec.loader is not None
    stub = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stub)
    stub.ANSWERS["code"] = {"explain": "Walk.", "plan": "Walk.", "code": WALK}

    def answer(request: Request) -> Scripted:
        found: Scripted = stub.answer(request)
        return found

    with ChatServer(answer) as server, tempfile.TemporaryDirectory() as folder:
        keys = {
            "output": f"{folder}/run",
            "bridge": json.dumps(
                {
                    "name": "mineflayer",
                    "actions": "code",
                    "agents": agents,
                    "ticks_per_step": 100,
                    "observe": ["code_state", *(["rgb"] if vision else [])],
                    "rgb_width": 160,
                    "rgb_height": 90,
                }
            ),
            "task": "build_monument",
            "policy.name": "alex",
            "policy.endpoint.url": server.url,
            "policy.model": "stub",
            "policy.vision": str(vision).lower(),
            "policy.limits.episode_calls": calls,
            "width": agents,
            "episodes": agents,
            "actors": 0,
            "fragment.steps": 16,
            "wandb.mode": "disabled",
        }
        sets = [f"{name}={value}" for name, value in keys.items()]
        command = [sys.executable, "scripts/collect.py", "--set", *sets]
        with (Path(folder) / "log").open("w") as log:
            env = {**os.environ, _MARK: folder}
            process = subprocess.Popen(command, stdout=log, stderr=log, env=env)
        most = {"rss": 0, "pss": 0, "processes": 0}
        while process.poll() is None:
            for name, value in memory(folder).items():
                most[name] = max(most[name], value)
            threading.Event().wait(0.5)
        said = (Path(folder) / "log").read_text()
        assert process.returncode == 0, said[-2000:]
        done = next(line for line in reversed(said.splitlines()) if "done:" in line)
        steps = done.split("episodes, ")[1].split()[0]
        gb = [f"{most[name] / 1e9:.2f}" for name in ("rss", "pss")]
        seen, asked = "yes" if vision else "no", f"{len(server.requests):,}"
        return [str(agents), seen, steps, asked, str(most["processes"]), *gb]


def memory(mark: str) -> dict[str, int]:
    """Returns RSS and PSS of all processes of a run, in bytes.

    Games run under a guard, which is no child of the run; the environment tells whose they are.
    """
    found = {"rss": 0, "pss": 0, "processes": 0}
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if each.environ().get(_MARK) == mark:
                info = each.memory_full_info()
                found["rss"] += info.rss
                found["pss"] += info.pss
                found["processes"] += 1
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--calls", type=int, default=40, help="calls of an agent")
    given = parser.parse_args()
    rows = [run(n, given.calls, vision=vision) for n in given.agents for vision in (False, True)]
    head = ["agents in a world", "pictures", "steps", "calls", "processes", "RSS, GB", "PSS, GB"]
    body = (
        "The largest memory of the whole run: driver, policy, recorder, server and agents.\n"
        "Asked: 64 agents within 2 GB.\n\n"
    )
    publish("alex", "Alex: memory of many agents", body + table(head, rows), save=given.save)


if __name__ == "__main__":
    main()
