"""Compares the throughput of two checkouts: the same jobs, alternating A B B A, in one run.

Each turn is a run of a script with the checkout's own ``.venv``, ended by SIGINT after some seconds
of steady work. Its rate is the steps between the first and the last line of ``metrics.jsonl`` in
these seconds, so start-up does not count; its processor time is that of the script and of all its
processes but games, which depends less on what else the machine does. Ratios are of consecutive
turns; each checkout is first in every other round, as the first leaves the second files to write
back to disk.

    python -m benchmarks.throughput.compare OTHER_CHECKOUT
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from benchmarks.report import arguments, publish, spread, table

HERE = Path(__file__).resolve().parents[2]
START_S = 300.0  # longest wait for the first line of metrics
RAYS = ["bridge.name=blockworld", "bridge.observe=[semantic_rays]", "task=hunt_sheep"]
JOBS = {
    "collect, blockworld, 2 actors": [
        "collect", *RAYS, "policy=random", "actors=2", "width=64", "episodes=1000000",
        "recording.enabled=false",
    ],
    "collect and record, CartPole, 1 actor": [
        "collect", "bridge.name=gymnasium", "bridge.id=CartPole-v1", "policy=random", "actors=1",
        "width=64", "episodes=100000000",
    ],
    "train, CartPole, one process": [
        "train", "bridge.name=gymnasium", "bridge.id=CartPole-v1", "width=64",
        "env_steps=1000000000", "policy.name=actor_critic", "policy.hidden=[64,64]",
    ],
    "train, blockworld, 2 runners": [
        "train", *RAYS, "env_steps=1000000000", "runners=2", "width=64",
        "policy.name=actor_critic", "policy.hidden=[128,128]",
    ],
    "collect, uneven games that hang and crash, 2 actors": [
        "collect", "bridge.name=chaos", "bridge.step_latency=lognormal(0.02, 1.0, 2)",
        "bridge.step_hang=0.0002", "bridge.step_crash=0.0001", "bridge.step_deadline_s=3.0",
        "policy=random", "actors=2", "instances=16", "episodes=1000000",
    ],
}  # fmt: skip


def lines(path: Path) -> list[tuple[float, float]]:
    """Returns wall time and steps of every line of metrics that counts steps."""
    if not path.exists():
        return []
    text = path.read_text().splitlines()
    rows = [json.loads(line) for line in text if line.endswith("}")]
    return [(r["wall_s"], r["env_steps"]) for r in rows if r.get("env_steps")]


def busy(root: int) -> float:
    """Returns the seconds of processor time of a process and all its descendants."""
    total = 0.0
    for each in [psutil.Process(root), *psutil.Process(root).children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            total += sum(each.cpu_times()[:2])
    return total


def rate(checkout: Path, job: list[str], seconds: float) -> tuple[float, float]:
    """Returns steps per second of a job in a checkout, once it runs, and microseconds per step."""
    script, *settings = job
    with tempfile.TemporaryDirectory(prefix="gamut-compare-") as folder:
        output = Path(folder, "run")
        settings = [*settings, f"output={output}", "wandb.mode=disabled", "log.level=error"]
        command = [".venv/bin/python", f"scripts/{script}.py", "--set", *settings]
        with Path(folder, "log").open("wb") as log:
            env = {**os.environ, "RAY_AUTH_MODE": "disabled"}
            run = subprocess.Popen(command, cwd=checkout, stdout=log, stderr=log, env=env)
            try:
                rows, used = watch(run, output / "metrics.jsonl", seconds)
            finally:
                run.send_signal(signal.SIGINT)
                run.wait(120)
        if len(rows) < 2:
            said = Path(folder, "log").read_text(errors="replace")[-2000:]
            sys.exit(f"{checkout}: {' '.join(job)} wrote no metrics:\n{said}")
        (first, before), (last, after) = rows[0], rows[-1]
        return (after - before) / (last - first), 1e6 * used / (after - before)


def watch(
    run: subprocess.Popen[bytes], metrics: Path, seconds: float
) -> tuple[list[tuple[float, float]], float]:
    """Returns the lines of metrics of a window of time, and the processor time within it.

    The window begins with the first line; the time is scaled to that from its first to its last.
    """
    pause, end = threading.Event(), time.monotonic() + START_S
    while time.monotonic() < end and not lines(metrics) and run.poll() is None:
        pause.wait(0.5)
    if run.poll() is not None:
        return [], 0.0
    skipped, before, began = max(0, len(lines(metrics)) - 1), busy(run.pid), time.monotonic()
    pause.wait(seconds)
    used, took = busy(run.pid) - before, time.monotonic() - began
    rows = lines(metrics)[skipped:]
    return rows, used * (rows[-1][0] - rows[0][0]) / took


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--only", nargs="*", default=[])
    asked = parser.parse_args()
    chosen = {k: v for k, v in JOBS.items() if not asked.only or any(o in k for o in asked.only)}
    other = asked.other.resolve()
    rates: dict[str, tuple[list[tuple[float, float]], ...]] = {name: ([], []) for name in chosen}
    for number in range(asked.rounds):
        for name, job in chosen.items():
            turns = list(zip(rates[name], (other, HERE), strict=True))
            for each, checkout in turns if number % 2 == 0 else turns[::-1]:
                each.append(rate(checkout, job, asked.seconds))
            shown = [f"{r:,.0f} steps/s, {us:.3g} us/step" for (*_, (r, us)) in rates[name]]
            print(f"round {number}, {name}: {'; '.join(shown)}", flush=True)
    rows = []
    for name, (old, new) in rates.items():
        speeds, costs = (
            [here[each] / there[each] for there, here in zip(old, new, strict=True)]
            for each in (0, 1)
        )
        values = [spread([r for r, _ in old]), spread([r for r, _ in new]), spread(speeds, 3)]
        rows.append([name, *values, spread(costs, 3)])
    revision = ["git", "-C", str(other), "rev-parse", "HEAD"]
    before = subprocess.run(revision, capture_output=True, text=True, check=True).stdout.strip()
    columns = [
        *("job", f"steps/s at {before[:8]}: median (range)", "steps/s here", "here / there"),
        "processor time per step, here / there",
    ]
    text = f"{asked.rounds} rounds of {asked.seconds:g} s each.\n\n{table(columns, rows)}"
    publish("compare", f"Throughput against commit {before}", text, save=asked.save)


if __name__ == "__main__":
    main()
