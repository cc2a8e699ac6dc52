"""Rows on Minecraft, StarBench's window, StarDojo's protocol, and a run that asks a model."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.faults.check import Row, checked
from benchmarks.faults.processes import killed
from benchmarks.faults.runs import BASE, LONG_S, Run, pause, wait_until
from rollout.data import Dataset
from rollout.testing.chat_server import ChatServer, Request, Scripted, digest_of

_NODE, _WINDOW = "mineflayer/game/main.js", "-m bridges.starbench.window"
_AT_ONCE = 16  # games that ask a model
_WIRE_FAULTS = {
    "speed": 60,
    "viewport": [64, 36],
    "load_s": 4,
    "progression": True,
    "delayed": 0.02,
    "delay_s": 1,
    "held": 0.02,
    "hold_s": 8,
    "silent": 0.02,
    "dropped": 0.02,
    "lost": 0.03,
    "stale": 0.05,
    "crashes": 0.001,
}


def _written(folder: Path, name: str, content: Any) -> str:
    """Writes a YAML file; returns its path."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def _bridge(name: str, **options: Any) -> dict[str, Any]:
    """A bridge instead of that of ``BASE``."""
    return dict.fromkeys(BASE["bridge"]) | {"name": name, **options}


def _running(run: Run, program: str) -> list[psutil.Process]:
    """The processes of a run's games that run a program."""
    found = (each.pid for each in run.marked() if program in each.command)
    return [psutil.Process(pid) for pid in found if psutil.pid_exists(pid)]


def minecraft(folder: Path, episodes: int = 1000, times: int = 200) -> Row:
    """The Node processes of Minecraft, each with four worlds, that play 20 steps of each state."""
    task = {
        "goal": "Walk about.",
        "options": {"spawning": False},
        "state_space": {
            "site": "flat",
            "biome": "plains",
            "mob": "none",
            "mobs": 0,
            "blueprint": 0,
        },
        "evaluator": {"name": "mineland_creative"},
        "limits": {"steps": 20},
    }
    settings = {
        "bridge": _bridge("mineflayer", observe=["position", "look", "life"], view_distance=2),
        "task": _written(folder, "walk_about", task),
        "state_set": {"size": episodes},
        "episodes": episodes,
        "actors": 0,
        "instances": 8,
        "width": 4,
        "fragment": {"steps": 20},
        "host": {"restarts": 10**6, "retries": 100},
        "recording": {"fsync": "episode"},
    }
    return killed(
        folder,
        "a Node process of Minecraft",
        lambda run: _running(run, _NODE),
        cause="killed by SIGKILL",
        settings=settings,
        times=times,
        first=max(1, episodes // (times + 1)),
    )


def window(folder: Path, episodes: int = 1000, times: int = 70) -> Row:
    """The processes of StarBench's window under Xvfb: random clicks and keys in short battles."""
    task = {"goal": "Win.", "evaluator": {"name": "starbench"}, "bridge": "starbench"}
    settings = {
        "bridge": _bridge("starbench", client="window", view="dc", width_px=160, ocr=False),
        "task": _written(folder, "battle", {**task, "limits": {"steps": 3}}),
        "state_set": {"size": episodes},
        "episodes": episodes,
        "actors": 0,
        "instances": 2,
        "host": {"restarts": 10**6, "retries": 1000},
    }
    before = _servers()
    row = killed(
        folder,
        "a window of StarBench",
        lambda run: _running(run, _WINDOW),
        cause="SIGKILL|is gone|has ended|ended, killed",
        settings=settings,
        times=times,
        first=max(1, episodes // (times + 1)),
    )
    if left := _servers() - before:
        row.wrong.append(f"{len(left)} X servers left")
    return row


def _servers() -> set[int]:
    """Every X server without a screen on this machine."""
    return {each.pid for each in psutil.process_iter(["name"]) if each.info["name"] == "Xvfb"}


def wire(folder: Path, episodes: int = 1000) -> Row:
    """StarDojo's protocol: answers are cut, lost and late, games load slowly and crash."""
    task = {
        "name": "wire",
        "evaluator": {"name": "signal_goal", "signal": "task/share"},
        "state_space": {"task": ["go_to_bus_stop", "sow_5_dirt_with_cauliflower_seeds"]},
        "limits": {"steps": 4},
    }
    faults = _written(folder, "faults", _WIRE_FAULTS)
    settings = {
        "bridge": _bridge("stardojo", mode="mod", faults=faults),
        "task": _written(folder, "wire", task),
        "players": {"random": "random"},
        "sets": {"all": {"split": "all", "size": 2}},
        "episodes_per_state": episodes // 2,
        "metric": "progress",
        "policy": None,
        "episodes": None,
        "actors": 0,
        "instances": 8,
        "host": {"failure_rate": 0.5},
    }
    run = Run(folder, settings, script="evaluate")
    run.begin()
    run.end(LONG_S + 5.0 * episodes)
    injected = ", ".join(f"{key} {value}" for key, value in _WIRE_FAULTS.items())
    return checked(run, "StarDojo's protocol", injected, cause="")


def models(folder: Path, episodes: int = 200, times: int = 20) -> Row:
    """A run that asks a model, killed at random; only answers on their way may be paid again."""

    def answer(request: Request) -> Scripted:
        number = int(digest_of(request)[:8], 16) % 5
        return Scripted(f"<thought>{number}</thought><action>{number}</action>", delay_s=0.15)

    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 12}}
    policy = {"name": "vlm", "model": "tiny", "fallback": "random", "sampling": {"seed": True}}

    def run_of(name: str, server: ChatServer) -> Run:
        (place := folder / name).mkdir()
        settings = {
            "bridge": _bridge("fake"),
            "task": _written(place, "task", task),
            "policy": {**policy, "endpoint": {"url": server.url}},
            "episodes": episodes,
            "actors": 0,
            "instances": _AT_ONCE,
        }
        return Run(place, settings)

    rng, hit, unseen = random.Random(0), 0, set[str]()
    with ChatServer(answer) as server:
        run = run_of("killed", server)
        for _ in range(times):
            asked = len(server.requests)
            run.begin()
            wait_until(lambda: len(server.requests) > asked or not run.alive, "a request")  # noqa: B023
            pause(rng.uniform(0.0, 1.5))
            hit += run.alive
            run.kill_driver()
            pause(0.5)  # until the server has answered what it had begun
            unseen |= {digest_of(request) for request in server.requests[-_AT_ONCE:]}
        run.begin()
        run.end()
        twice = {digest for digest, count in server.paid.items() if count > 1}
        sent = len(server.requests)
    with ChatServer(answer) as server:
        whole = run_of("whole", server)
        whole.begin()
        whole.end()
        least = len(server.requests)
    note = (
        f"{sent} requests, {least} of the unbroken run; paid again: {len(twice & unseen)} "
        f"on their way at a kill, {len(twice - unseen)} that had been answered"
    )
    row = checked(run, "a run that asks a model", f"kill -9, {hit} times", cause="", note=note)
    if twice - unseen:
        row.wrong.append("answers were paid again")
    if _episodes(run) != _episodes(whole):
        row.wrong.append("other episodes than the unbroken run")
    return row


def _episodes(run: Run) -> list[tuple[int, int, float, str]]:
    with Dataset(run.output / "dataset") as dataset:
        return sorted((e.episode, e.length, e.total_reward, e.end) for e in dataset.episodes())
