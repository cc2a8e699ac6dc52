"""Measures the policy ``companion`` in the embedded Minecraft against a scripted model.

*Own cost*: the harness's own time in each step, all but the model: prompts, checks of programs,
memory, telemetry. *Rate*: calls a second of a companion alone and of each of 16 that play at once,
with a model whose answers take 3 s (log-normal, deviation 1.5 s). The model plays all roles and
runs in another process. Needs Node; run from the root of the repository:

    .venv/bin/python -m benchmarks.throughput.companion --save
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import arguments, publish, table
from rollout.api import Outcome
from rollout.cli import Session
from rollout.collect import collect
from rollout.config import CollectConfig, load_config, parse_set
from rollout.data import Dataset
from rollout.signals import Stop
from rollout.testing.chat_server import ChatServer, Scripted

TITLE = "Companions: own cost, and many at once"
CONFIG = Path(__file__).parents[2] / "configs/mineflayer/companion.yaml"
MEAN_S, DEVIATION_S = 3.0, 1.5
MANY, ALONE, ROUNDS = 16, 3, 2
"""Companions at once; episodes of the single one; episodes of each of the many."""
MOST_MS, LEAST_SHARE = 20.0, 0.9
STEPS = ("dig", "walk", "toss")
PROGRAMS = {
    "dig": "await mineBlock('dirt', 2);",
    "walk": "const place = bot.players.Ada.entity.position;\n"
    "await bot.pathfinder.goto(new GoalNear(place.x, place.y, place.z, 2));\n"
    "await bot.lookAt(place.offset(0, 1.2, 0));",
    "toss": "await bot.toss('dirt', null, 2);",
}


def answer(request: Mapping[str, Any]) -> str:
    """Returns what a model says in the role that the last message asks for."""
    said = str(request["messages"][-1]["content"])
    found: Any = {"is_task_completed": True, "confidence_score": 9}
    if "What does the player want?" in said:
        found = {"intent": "task", "confidence": 1.0, "slots": {"count": None}}
    elif "Plan it in 3 to 5 subtasks" in said:
        plan: list[dict[str, Any]] = [
            {"index": n, "subtask": name, "success_criteria": name}
            for n, name in enumerate(STEPS, 1)
        ]
        plan[0]["clarifying_questions"] = ["How many?"]
        found = {"task_plan": plan, "unbound": "count"}
    elif "Write the program" in said:
        name = next(name for n, name in enumerate(STEPS, 1) if f"subtask {n}," in said)
        found = {"code": f"async function task(bot) {{\n{PROGRAMS[name]}\n}}"}
    elif "Review this program" in said:
        found = {"valid": True, "confidence": 1.0}
    return json.dumps(found)


def serve() -> None:
    """Runs the model and prints its URL; ends with its standard input."""
    rng = np.random.default_rng(0)
    sigma = np.sqrt(np.log1p((DEVIATION_S / MEAN_S) ** 2))

    def script(request: Any) -> Scripted:
        delay = rng.lognormal(np.log(MEAN_S) - sigma**2 / 2, sigma)
        return Scripted(answer(request), delay_s=float(delay))

    with ChatServer(script) as server:
        print(server.url, flush=True)
        sys.stdin.read()


@contextlib.contextmanager
def model() -> Iterator[str]:
    """Runs the model in a process of its own; yields its URL."""
    command = [sys.executable, "-m", "benchmarks.throughput.companion", "--serve"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdin
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(30)


def play(folder: Path, url: str, instances: int, episodes: int) -> dict[str, Any]:
    """Returns what a run of some companions at once was like."""
    chosen = [
        f"policy.endpoint={{url: {url}}}",
        "policy.model=m",
        *("actors=0", f"instances={instances}", f"episodes={episodes}", "wandb.mode=disabled"),
        f"output={folder}",
    ]
    config = load_config(CollectConfig, CONFIG, [parse_set(text) for text in chosen])
    with Stop() as stop:
        problem = collect(config, Session(resume=False, stop=stop))
    if problem is not None:
        raise RuntimeError(f"the run of {instances} companions failed: {problem}")
    seconds, calls, asked, own, won = 0.0, 0, 0.0, list[float](), 0
    with Dataset(folder) as dataset:
        for ref in dataset.episodes():
            columns = dataset.read(ref, ["extra/calls", "extra/companion/telemetry"]).columns
            made = columns["extra/calls"]
            told = columns["extra/companion/telemetry"]
            own += [each["own_ms"] for each, some in zip(told, made, strict=True) if len(some)]
            if ref.outcome != Outcome.SUCCESS:
                continue  # it waits until its limit
            won += 1
            seconds += ref.seconds
            calls += sum(map(len, made))
            asked += sum(each["seconds"] for some in made for each in some)
    return {
        "episodes": episodes,
        "won": won,
        "calls": calls,
        "latency_s": asked / calls,
        "rate": calls / seconds,
        "own_ms": own,
    }


def report(alone: Mapping[str, Any], many: Mapping[str, Any]) -> str:
    """Returns the tables."""
    rows = []
    for count, run in ((1, alone), (MANY, many)):
        own = run["own_ms"]
        rows.append(
            [
                str(count),
                f"{run['won']} of {run['episodes']}",
                str(run["calls"]),
                f"{run['latency_s']:.2f}",
                f"{run['rate']:.3f}",
                f"{run['rate'] * run['latency_s']:.1%}",
                f"{np.median(own):.1f}",
                f"{np.percentile(own, 95):.1f}",
                f"{max(own):.1f}",
            ]
        )
    # The latencies differ by chance: the shares of time that companions wait for the model do not.
    share = many["rate"] * many["latency_s"] / (alone["rate"] * alone["latency_s"])
    own = [*alone["own_ms"], *many["own_ms"]]
    heads = ["companions", "requests done", "calls", "latency of a call, s"]
    heads += ["calls a second of each", "time spent waiting for the model"]
    heads += ["own ms of a step, median", "95 %", "longest"]
    return "\n\n".join(
        [
            f"Each of {MANY} companions keeps {share:.1%} of the rate of one alone, at equal "
            f"latency (goal: {LEAST_SHARE:.0%}). The mean step costs the harness itself "
            f"{np.mean(own):.1f} ms (goal: {MOST_MS:g} ms).",
            table(heads, rows),
            "Of own ms: steps in which the model was asked. Rates: of the episodes that were done; "
            "steps in which the game works count, too, and 16 games share the cores.",
        ]
    )


def main() -> None:
    """Measures and writes the report."""
    parser = arguments(__doc__)
    parser.add_argument("--serve", action="store_true", help="run the model; for the benchmark")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    with tempfile.TemporaryDirectory() as folder, model() as url:
        alone = play(Path(folder, "alone"), url, 1, ALONE)
        many = play(Path(folder, "many"), url, MANY, MANY * ROUNDS)
    publish("companion", TITLE, report(alone, many), save=options.save)


if __name__ == "__main__":
    main()
