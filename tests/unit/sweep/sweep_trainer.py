"""A trainer that learns nothing, at once: for tests of sweeps. What it is to do wrong, it is told
by files in the folder that the environment variable SWEEP_FAULTS names.

``<run>.fail`` holds how many more times it fails, ``<run>.stop`` and ``<run>.wrong`` likewise;
``<run>.hang`` hangs and ``<run>.die`` kills the process. ``trained`` has a line for
each run that was trained to its end.
"""

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np

from rollout.api import EpisodeResult, Outcome
from rollout.config import PolicyConfig
from rollout.errors import BudgetExhausted, ConfigError
from rollout.host.schedule import Schedule, Visits
from rollout.run_directory import RunDirectory
from rollout.signals import Stopped
from rollout.sweep.run import Trainer
from rollout.tasks import bridge_and_task


def by_place(observations, details, explore):
    """An agent whose choices depend on where it is, and on whether it samples."""
    x, y = (observations["position"] * 7).round().astype(int).T
    return np.where((x + y + explore) % 3 == 0, 4, (3 * x + 5 * y) % 5)


def told(name, kind):
    """Whether to go wrong in this way, once more."""
    file = Path(os.environ["SWEEP_FAULTS"]) / f"{name}.{kind}"
    if not file.exists():
        return False
    left = int(file.read_text())
    file.write_text(str(left - 1)) if left > 1 else file.unlink()
    return True


def check(config):
    if config.algorithm.gamma == 0.5:
        raise ConfigError("algorithm.gamma=0.5 is what this trainer refuses")


def train(config, session):
    bridge_config, _, task = bridge_and_task(config.bridge, config.task)
    states = config.state_set.take(task.state_space)
    run = RunDirectory.create(
        config.output, config.model_copy(update={"bridge": bridge_config}), resume=session.resume
    )
    if run.summary_file.exists():
        return
    name, faults = config.output.name, Path(os.environ["SWEEP_FAULTS"])
    wait = faults / "wait"
    for step in range(int(wait.read_text()) if wait.exists() else 1):
        threading.Event().wait(0.05)
        with run.metrics.open("a") as file:
            file.write(json.dumps({"env_steps": step}) + "\n")
    if told(name, "fail"):
        raise BudgetExhausted("no game is left")
    if told(name, "wrong"):
        raise ConfigError("it does not fit")
    if told(name, "stop"):
        raise Stopped(signal.SIGTERM)
    if told(name, "hang"):
        threading.Event().wait(3600)
    if told(name, "die"):
        os.kill(os.getpid(), signal.SIGKILL)
    visits = Visits(states)
    starts = Schedule(states, seed=config.seed, episodes=20).take(20)
    ended = (0, 0, "terminated", Outcome.SUCCESS, 5, 1.0, 1.0, 0.1)
    visits.add([EpisodeResult(start, *ended) for start in starts])
    results = {
        "env_steps": config.env_steps,
        "episodes": 20,
        "seconds": 0.1,
        "visits": visits.summary(),
    }
    run.write_summary({"status": "done", "results": results})
    with (faults / "trained").open("a") as file:
        file.write(f"{name}\n")
    return


def player(folder):
    assert (folder / "summary.json").exists()
    return PolicyConfig(name="callable", function="sweep_agents:by_place")


TRAINER = Trainer(check, train, player)
