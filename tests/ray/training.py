"""Small training runs for the tests beside this file."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import yaml

from rollout.config import StateSetConfig, load_config
from rollout.testing.fakes import FakeBridge
from rollout.train.checkpoint import find_checkpoint
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "train.py"

STEPS = 8

SMALL: dict[str, Any] = {
    "bridge": {"name": "fake"},
    "policy": {"name": "actor_critic", "hidden": [16], "columns": ["position"]},
    "width": 4,
    "fragment": {"steps": STEPS},
    "env_steps": 10**6,
    "learners": {"threads": 1},
    "algorithm": {
        "name": "ppo",
        "batch": 64,
        "minibatch": 32,
        "epochs": 2,
        "bptt": STEPS,
        "lr": 3e-3,
    },
}
"""Two fragments of 4 slots to an update."""


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``base`` with ``more`` in it, section by section."""
    out = dict(base)
    for key, value in more.items():
        section = isinstance(value, Mapping) and isinstance(out.get(key), Mapping)
        out[key] = merged(out[key], value) if section else value
    return out


def far_states(count: int) -> list[int]:
    """Returns training states of the fake game whose target is out of reach within ``STEPS``."""
    space = FakeBridge(side=16).spec.state_space
    states = StateSetConfig(size=2000).take(space)
    found = []
    for number in range(states.size):
        values = states[number].values
        begin, target = divmod(values["start"], 16), divmod(values["target"], 16)
        if sum(abs(a - b) for a, b in zip(begin, target, strict=True)) > STEPS:
            found.append(states[number].index)
    return found[:count]


def whole_episodes() -> dict[str, Any]:
    """Settings under which every episode begins and ends with a fragment, so none is cut."""
    return merged(
        SMALL,
        {
            "bridge": {"name": "fake", "side": 16, "slip": 0.0, "max_steps": STEPS},
            "state_set": {"states": far_states(24)},
        },
    )


def plan_of(settings: Mapping[str, Any], **more: Any) -> TrainPlan:
    """Returns the plan of settings, with more of them."""
    data = merged(settings, {"output": "/nowhere", **more})
    return TrainPlan.make(TrainConfig.model_validate(data))


def write_config(folder: Path, settings: Mapping[str, Any], **more: Any) -> Path:
    """Writes settings for ``scripts/train.py``; the run goes into ``folder/run``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(merged(settings, {"output": str(folder / "run"), **more})))
    return path


def config_of_file(path: Path) -> TrainConfig:
    """Returns the configuration in a file."""
    return load_config(TrainConfig, path, [])


def command(folder: Path, *arguments: str) -> list[str]:
    """Returns the command line of a run whose configuration ``write_config`` wrote."""
    return [sys.executable, str(SCRIPT), "--config", str(folder / "config.yaml"), *arguments]


def run(folder: Path, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess:
    """Runs ``scripts/train.py`` to its end."""
    return subprocess.run(
        command(folder, *arguments),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def summary(folder: Path) -> dict[str, Any]:
    """Returns what a run says at its end."""
    return json.loads((folder / "run" / "summary.json").read_text())


def about(folder: Path) -> dict[str, Any]:
    """Returns what the newest checkpoint of a run says of itself."""
    return dict(find_checkpoint(folder / "run").about)


def same_weights(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    """Whether two sets of weights agree in every bit."""
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def wait_for(condition, seconds: float = 600.0) -> bool:
    """Waits until a condition holds; returns whether it did in time."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return True
        pause.wait(0.02)
    return False
