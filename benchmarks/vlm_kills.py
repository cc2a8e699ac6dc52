"""Kills a run whose policy asks a model at random moments, and counts what was paid twice.

A collection of 200 episodes is killed with SIGKILL 20 times and resumed each time; then it is
compared with an unbroken one. A request whose answer was on its way at a kill may be paid again:
nobody has seen its answer. No other one may.

    python -m benchmarks.vlm_kills [--kills 20] [--episodes 200] [--save]
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import yaml

from benchmarks.report import RESULTS, header, save, table
from rollout.data import Dataset
from rollout.testing.chat_server import ChatServer, Request, Scripted, digest_of

ROOT = RESULTS.parent.parent
_INSTANCES = 16


def script(request: Request) -> Scripted:
    number = int(digest_of(request)[:8], 16) % 5
    return Scripted(f"<thought>{number}</thought><action>{number}</action>", delay_s=0.15)


def write(folder: Path, url: str, episodes: int) -> list[str]:
    """Writes the configuration of a collection; returns its command."""
    folder.mkdir()
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 12}}
    (folder / "task.yaml").write_text(yaml.safe_dump(task))
    config = {
        "output": str(folder / "run"),
        "bridge": {"name": "fake"},
        "task": str(folder / "task.yaml"),
        "policy": {
            "name": "vlm",
            "endpoint": {"url": url},
            "model": "tiny",
            "fallback": "random",
            "sampling": {"seed": True},
        },
        "instances": _INSTANCES,
        "actors": 0,
        "episodes": episodes,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    program = str(ROOT / "scripts" / "collect.py")
    return [sys.executable, program, "--config", str(folder / "config.yaml")]


def episodes_of(run: Path) -> list[tuple[int, int, float, str]]:
    with Dataset(run / "dataset") as dataset:
        found = [(e.episode, e.length, e.total_reward, e.end) for e in dataset.episodes()]
    return sorted(found)


def killed(folder: Path, kills: int, episodes: int) -> tuple[int, int, int, int]:
    """Returns kills that hit, requests, and those paid twice: known answers, unseen ones."""
    rng, hit = random.Random(0), 0
    unseen: set[str] = set()
    with ChatServer(script) as server:
        command = write(folder, server.url, episodes)
        for _ in range(kills):
            asked = len(server.requests)
            process = subprocess.Popen(
                [*command, "--resume"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:  # 1 s passes before the first request
                process.wait(1.2 + rng.uniform(0.0, 1.5))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                hit += len(server.requests) > asked
            threading.Event().wait(0.5)  # until the server has answered what it had begun
            unseen |= {digest_of(request) for request in server.requests[-_INSTANCES:]}
        subprocess.run([*command, "--resume"], check=True, capture_output=True)
        twice = {digest for digest, count in server.paid.items() if count > 1}
        return hit, len(server.requests), len(twice - unseen), len(twice & unseen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hit, requests, twice, unseen = killed(folder / "killed", args.kills, args.episodes)
        with ChatServer(script) as server:
            command = write(folder / "whole", server.url, args.episodes)
            subprocess.run(command, check=True, capture_output=True)
            whole = len(server.requests)
        same = episodes_of(folder / "killed" / "run") == episodes_of(folder / "whole" / "run")
    text = header("Calls of models under SIGKILL", "python -m benchmarks.vlm_kills --save")
    text += f"\n{args.episodes} episodes, {_INSTANCES} at once, {args.kills} kills.\n\n"
    rows = [
        ["kills that hit a run which had sent requests", str(hit)],
        ["requests of the unbroken run", str(whole)],
        ["requests of the killed run", str(requests)],
        ["paid again although the answer had come", str(twice)],
        ["paid again, of those on their way at a kill", str(unseen)],
        ["the same episodes as the unbroken run", "yes" if same else "NO"],
    ]
    text += table(["", ""], rows)
    if args.save:
        save("vlm_kills", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
