"""Trainings of several libraries on the same games: made, resumed, scored and drawn.

Every training writes its episodes to a file: how much it had trained by then, and the return.
"""

from __future__ import annotations

import atexit
import importlib
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from benchmarks.report import RESULTS, arguments, publish
from rollout.host.session import ray_session

SCORES = ("last fifth", "whole run")
Run = tuple[str, str, int]
"""Case, library, seed."""
QUIET: dict[str, Any] = {
    "learners": {"threads": 1},
    "episodes": {"write": False},
    "wandb": {"mode": "disabled"},
    "log": {"level": "error"},
}


class Catch(gym.Env[np.ndarray, int]):
    """Pixels: a ball falls through a 10 x 6 picture and is caught by a paddle, for 1 or -1."""

    observation_space = spaces.Box(0.0, 1.0, (60,), np.float32)
    action_space = spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._row, self._paddle = 0, 3
        self._column = int(self.np_random.integers(6))
        return self._picture(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._paddle = min(max(self._paddle + int(action) - 1, 0), 5)
        self._row += 1
        over = self._row == 9
        reward = (1.0 if self._column == self._paddle else -1.0) if over else 0.0
        return self._picture(), reward, over, False, {}

    def _picture(self) -> np.ndarray:
        picture = np.zeros((10, 6), np.float32)
        picture[self._row, self._column] = picture[9, self._paddle] = 1.0
        return picture.ravel()


class Counted(gym.Wrapper[Any, Any, Any, Any]):
    """Writes the return of each episode, and how many steps all environments had made by then."""

    steps = 0  # of all environments of the training of this process
    episodes = Path()  # file of its episodes

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        Counted.steps += 1
        self._total += float(reward)
        if terminated or truncated:
            write(Counted.steps, [self._total])
        return observation, reward, terminated, truncated, info

    def reset(self, **given: Any) -> Any:
        self._total = 0.0
        return self.env.reset(**given)


def folder() -> Path:
    """Returns the folder of the runs, of which this process makes one."""
    return Counted.episodes.parent


def write(at: int, totals: Iterable[float]) -> None:
    """Writes the returns of episodes of this training."""
    with Counted.episodes.open("a") as file:
        file.writelines(f"{at} {total}\n" for total in totals)


def train_gamut(config: Mapping[str, Any], on_update: Sequence[Callable[[Any], Any]] = ()) -> None:
    """Runs a training of ours, in a folder that is removed if none is given."""
    from rollout.cli import Session
    from rollout.config import make_config
    from rollout.signals import Stop
    from rollout.train.config import TrainConfig
    from rollout.train.train import train

    with tempfile.TemporaryDirectory() as folder:
        made = make_config(TrainConfig, {"output": f"{folder}/run", **QUIET, **config})
        train(made, Session(False, Stop()), on_update)


def rllib_model(hidden: Sequence[int], **more: Any) -> Any:
    """Returns RLlib's configuration of networks as ours: tanh, policy and values apart."""
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    options = {"fcnet_activation": "tanh", "vf_share_layers": False, **more}
    return DefaultModelConfig(fcnet_hiddens=list(hidden), **options)


def tenths(file: Path, steps: int) -> list[list[float]]:
    """Returns the returns of the episodes that ended in each tenth of a training."""
    found: list[list[float]] = [[] for _ in range(10)]
    for line in file.read_text().splitlines():
        at, total = line.split()
        if int(at) <= steps:
            found[(int(at) - 1) * 10 // steps].append(float(total))
    return found


def run(
    folder: Path, module: str, runs: Iterable[Run], steps: Callable[[str], int], parallel: int
) -> None:
    """Makes the runs that a folder does not have, each in one of some processes.

    Args:
        folder: where ``scores.jsonl`` is and the episodes are.
        module: the program, whose ``one(case, library, seed)`` trains.
        runs: all runs, in their order.
        steps: the length of a run of a case.
        parallel: number of processes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = {(each["game"], each["library"], each["seed"]) for each in read(folder)}
    os.environ["OMP_NUM_THREADS"] = "1"
    # One Ray for all, and few processes: starting them takes longer than a short training.
    with ray_session(num_cpus=16):
        os.environ["RAY_ADDRESS"] = sys.modules["ray"].get_runtime_context().gcs_address
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(parallel, spawn, initializer=_join) as pool:
            left = [each for each in runs if each not in done]
            for found in [
                pool.submit(_train, folder, module, each, steps(each[0])) for each in left
            ]:
                found.result()


def _join() -> None:
    session = ray_session()
    session.__enter__()  # until the process ends
    atexit.register(session.__exit__, None, None, None)


def _train(folder: Path, module: str, which: Run, steps: int) -> None:
    """Makes a run in this process, and adds its scores to those of the folder."""
    case, library, seed = which
    file = folder / f"{case}-{library}-{seed}.txt"
    file.unlink(missing_ok=True)
    Counted.steps, Counted.episodes = 0, file
    importlib.import_module(module).one(case, library, seed)
    found = tenths(file, steps)
    curve = [statistics.fmean(tenth) for tenth in found]
    scores = {"last fifth": statistics.fmean(found[8] + found[9])}
    scores |= {"whole run": statistics.fmean(curve)}
    line = {"game": case, "library": library, "seed": seed, **scores, "tenths": curve}
    with (folder / "scores.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def read(folder: Path) -> list[dict[str, Any]]:
    """Returns the scores of the runs in a folder."""
    file = folder / "scores.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the mean and the half width of its 95 % interval by Student's t."""
    from scipy import stats

    count = len(values)
    if count < 2:
        return float(np.mean(values)), float("nan")
    half = stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1) / count**0.5
    return float(np.mean(values)), float(half)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Returns the difference of two means, its standard error and Welch's degrees of freedom."""
    a, b = np.array(ours), np.array(theirs)
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    error = float(np.sqrt(va + vb)) or 1e-12
    degrees = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1) or 1e-12)
    return float(a.mean() - b.mean()), error, float(degrees)


def draw(
    path: Path,
    runs: Sequence[Mapping[str, Any]],
    cases: Mapping[str, tuple[str, str]],
    libraries: Sequence[str],
) -> None:
    """Draws the mean curve of each library with its 95 % interval, a panel for each case.

    Args:
        path: the PNG file.
        runs: lines of ``scores.jsonl`` with ``tenths``.
        cases: title of each case, and the name of its horizontal axis.
        libraries: names, in the order of their colours.
    """
    from matplotlib.figure import Figure

    rows = -(-len(cases) // 3)
    figure = Figure(figsize=(12, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, 3, squeeze=False).ravel()
    for axis, (case, (title, about)) in zip(axes, cases.items(), strict=False):
        for number, library in enumerate(libraries):
            own = [r["tenths"] for r in runs if (r["game"], r["library"]) == (case, library)]
            if not own:
                continue
            points = [interval(column) for column in zip(*own, strict=True)]
            mean, half = np.array(points).T
            at = np.arange(5, 100, 10)
            axis.plot(at, mean, color=f"C{number}", label=f"{library} ({len(own)})")
            axis.fill_between(at, mean - half, mean + half, color=f"C{number}", alpha=0.2, lw=0)
        axis.set(title=title, xlabel=f"% of {about}", ylabel="return")
        axis.legend(fontsize="small")
        axis.grid(alpha=0.3)
    for axis in axes[len(cases) :]:
        axis.remove()
    figure.savefig(path, dpi=90)


def main(
    about: str | None,
    name: str,
    title: str,
    *,
    make: Callable[[Path, int], None],
    report: Callable[[Path], str],
    picture: Callable[[Path, Path], None] | None = None,
) -> None:
    """Runs a program that compares trainings.

    Args:
        about: its docstring.
        name: of its table and its data in ``benchmarks/results/``.
        title: of the table.
        make: makes the runs that a folder does not have.
        report: returns the report of the runs in a folder.
        picture: draws the runs in a folder into a file.
    """
    parser = arguments(about)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("folder", type=lambda name: Path(name).absolute())
    parser.add_argument("--parallel", type=int, default=os.cpu_count(), help="runs at once")
    asked = parser.parse_args()
    folder = asked.folder
    if asked.what == "run":
        make(folder, asked.parallel)
        return
    publish(name, title, report(folder), save=asked.save)
    if picture is not None and asked.save:
        picture(folder, RESULTS / f"{name}.png")
