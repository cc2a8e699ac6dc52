"""MineStudio on our engine: its callbacks, MCU's tasks, and engines that are killed or fall silent.

Four parts, each of which keeps its figures in ``results/minestudio.json``; the report has all:

callbacks: what each callback of the unchanged wheel does, as ``tests/contract/minestudio_wheel.py``
    sees it.
faults: what its own code does when its engine dies or does not answer.
tasks: a thousand steps of ten of its task files by MCU's loop, in two processes.
kills: episodes of the bridge while its engines are killed or stopped in mid-step.

Needs Node and ``gamut env make minestudio``; run from the root of the repository:

    .venv/bin/python -m benchmarks.faults.minestudio callbacks faults tasks kills --save
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.faults import minestudio_strikes as strikes
from benchmarks.report import RESULTS, arguments, publish, table
from bridges.minestudio.install import install
from rollout.cli import main as run_job
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data.reader import Dataset
from rollout.host.interpreter import environment_folder
from rollout.host.processes import marked_processes

TITLE = "MineStudio's simulator on our engine"
ROOT = Path(__file__).parents[2]
CALLBACKS = ROOT / "tests" / "contract" / "minestudio_wheel.py"
TASKS = Path(__file__).with_name("minestudio_wheel.py")
FIGURES = RESULTS / "minestudio.json"
EPISODES, STEPS, INSTANCES = 200, 12, 2


def kills() -> dict[str, Any]:
    """Plays episodes under strikes; returns what became of them."""
    with tempfile.TemporaryDirectory(prefix="ms-kills-") as name:
        folder, temporary = Path(name), Path(name) / "tmp"
        temporary.mkdir()
        tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
        (folder / "short.yaml").write_text(f"text: Walk.\ntime_limit: {STEPS}\n")
        given = {
            "bridge.name": "minestudio",
            "bridge.task_files": folder,
            "task": "short",
            **{f"bridge.{picture}_width": 64 for picture in ("rgb", "render")},
            **{f"bridge.{picture}_height": 36 for picture in ("rgb", "render")},
            "policy.name": "callable",
            "policy.function": f"{strikes.__name__}:striking",
            "instances": INSTANCES,
            "actors": 0,
            "episodes": EPISODES,
            "host.step_s": 20,
            "host.restarts": 100_000,
            "host.backoff_s": 0,
            "output": folder / "run",
        }
        settings = [f"{key}={value}" for key, value in given.items()]
        status = run_job(collect, CollectConfig, "", ["--set", *settings])
        with Dataset(folder / "run" / "dataset") as dataset:
            finished, steps = len(dataset.finished()[0]), dataset.counts.steps
            attempts = Counter(str(ref.attempt) for ref in dataset.episodes())
        own = f"{os.getpid()}:"
        return {
            "status": status,
            "finished": finished,
            "steps": steps,
            "struck": dict(strikes.struck),
            "attempts": dict(sorted(attempts.items())),
            "processes_left": [m.command for m in marked_processes() if m.owner.startswith(own)],
            "folders_left": sorted(path.name for path in temporary.iterdir()),
        }


def in_wheel(script: Path, *given: str, timeout_s: float) -> Iterator[dict[str, Any]]:
    """Runs a script in MineStudio's interpreter; yields the lines of JSON that it prints."""
    with tempfile.TemporaryDirectory(prefix="ms-wheel-") as name:
        folder = Path(name)
        found = install(folder / "minestudio")
        path = f"{found['PATH_FIRST']}{os.pathsep}{os.environ['PATH']}"
        output = folder / "output.txt"
        python = environment_folder("minestudio") / "bin" / "python"
        with output.open("w") as file:  # no pipe: MineStudio's daemon would keep it open
            done = subprocess.run(
                [python, "-P", script, folder, *given],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False,
                timeout=timeout_s,
                env={**os.environ, "MINESTUDIO_DIR": found["MINESTUDIO_DIR"], "PATH": path,
                     "TMPDIR": name},
            )  # fmt: skip
        lines = output.read_text().splitlines()
    if done.returncode:
        raise SystemExit("\n".join(lines[-40:]))
    yield from (json.loads(line) for line in lines if line.startswith('{"'))


def callbacks() -> list[dict[str, Any]]:
    """Returns what was seen of each callback."""
    return [*in_wheel(CALLBACKS, timeout_s=2400)]


def faults() -> list[dict[str, Any]]:
    """Returns what MineStudio's own code does at the end of an engine, and without a terminal."""
    return [*in_wheel(TASKS, "faults", timeout_s=1200)]


def tasks() -> list[dict[str, Any]]:
    """Returns the digests of the tasks in two processes, which play at the same time."""
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(lambda: [*in_wheel(TASKS, "tasks", timeout_s=3000)]) for _ in "ab"]
        first, again = (run.result() for run in runs)
    return [{**one, "again": two["digest"]} for one, two in zip(first, again, strict=True)]


def report(figures: dict[str, Any]) -> str:
    """Returns the text of the report."""
    text = ""
    if found := [*figures.get("callbacks", []), *figures.get("faults", [])]:
        rows = [[each["callback"], each["effect"], "yes" if each["seen"] else "**no**"]
                for each in found]  # fmt: skip
        text += "\n## Callbacks of the unchanged wheel 1.1.6\n\n"
        text += table(["callback", "effect", "seen"], rows)
    if found := figures.get("tasks"):
        same = sum(each["digest"] == each["again"] for each in found)
        text += (
            f"\n## {sum(each['steps'] for each in found):,} steps of {len(found)} of its task files"
            f"\n\nMCU's loop: `Commands`, "
            f"`JudgeReset`, random actions of the agent space; pictures of 128 x 72. "
            f"{same} of {len(found)} had the same bytes (pictures, inventory, position) in another "
            f"process. Seconds include the load of the machine.\n\n"
        )
        rows = [[each["task"], str(each["steps"]), f"{each['seconds']:.0f}",
                 each["digest"][:12], "yes" if each["digest"] == each["again"] else "**no**"]
                for each in found]  # fmt: skip
        text += table(["task", "steps", "s", "digest", "the same again"], rows)
    if found := figures.get("kills"):
        hits = found["struck"]
        text += (
            f"\n## Engines killed or stopped in mid-step\n\n{EPISODES} episodes of {STEPS} steps "
            f"by the bridge, {INSTANCES} games at a time, while its engines were killed "
            f"({hits.get('SIGKILL', 0)} times) or stopped without an answer "
            f"({hits.get('SIGSTOP', 0)} times): {found['finished']} episodes finished, "
            f"{EPISODES - found['finished']} lost for good. Attempts recorded, by the number of "
            f"earlier ones: {found['attempts']}. Left behind: {len(found['processes_left'])} "
            f"processes, {len(found['folders_left'])} files or folders.\n"
        )
    return text


def main() -> None:
    """Runs the chosen parts and writes the report."""
    parser = arguments(__doc__)
    parts = {"callbacks": callbacks, "faults": faults, "tasks": tasks, "kills": kills}
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="what to measure")
    asked = parser.parse_args()
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    for part in asked.parts:
        figures[part] = parts[part]()
        if asked.save:
            FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    publish("minestudio", TITLE, report(figures), save=asked.save)


if __name__ == "__main__":
    main()
