"""The sizes at which a training is fastest on this machine: slots, runners, steps of a fragment.

``choose`` measures for seconds what a step costs to play, at growing numbers of slots, and to learn
from, and computes the rate of every combination. ``tune`` also trains the best of them for a while.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rollout.api import Algorithm, Columns, Progress
from rollout.cli import Session
from rollout.config import write_config
from rollout.errors import BudgetExhausted, ConfigError
from rollout.host.session import ray_session
from rollout.run_directory import folder_of, require_local
from rollout.signals import tell
from rollout.threads import set_threads
from rollout.train.batch import join
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan
from rollout.train.trainers import trainer

log = logging.getLogger(__name__)

_SHORT, _LONG = 16, 128  # steps of a fragment
_MOST_SLOTS = 512
_PATIENCE = 5  # no larger size is measured after one that took so many times as long as asked
_LAUNCH_S = 5.0  # of runners
_GAIN = 1.05  # a larger number must be faster by this factor
_TUNE_S, _CANDIDATES = 30.0, 4


@dataclass(frozen=True)
class Sizes:
    """Sizes of a training that change its speed.

    Attributes:
        runners: as in the configuration, like all others.
        instances: of each runner.
        width: slots of each instance.
        steps: of a fragment.
        rate: steps per second over the whole run, as computed.
    """

    runners: int
    instances: int
    width: int
    steps: int
    rate: float = 0.0

    def of(self, config: TrainConfig) -> TrainConfig:
        """Returns a configuration with these sizes."""
        fragment = config.fragment.model_copy(update={"steps": self.steps})
        sizes = {"runners": self.runners, "instances": self.instances, "width": self.width}
        return config.model_copy(update={**sizes, "fragment": fragment, "measure": None})

    def __str__(self) -> str:
        return (
            f"runners={self.runners} instances={self.instances} width={self.width} "
            f"fragment.steps={self.steps}"
        )


def choose(config: TrainConfig) -> TrainConfig:
    """Returns a configuration with the sizes at which it is fastest, and logs them.

    Raises:
        InputError: something in the configuration does not exist or does not fit.
        BudgetExhausted: the game could not be launched.
    """
    best = ranked(config, config.measured_s or 0.0)[0]
    log.info("measure chose %s, for about %s steps/s", best, f"{best.rate:,.0f}")
    return best.of(config)


def ranked(config: TrainConfig, seconds: float) -> list[Sizes]:
    """Returns sizes, the fastest first; of similar ones the smallest.

    Args:
        config: the configuration; its batch, minibatch and epochs are kept, as they change what is
            learned.
        seconds: duration of the measurement, beside launching games and compiling.
    """
    plan = TrainPlan.make(config.model_copy(update={"runners": 0}))
    set_threads(config.learners.threads)
    cores = len(os.sched_getaffinity(0))
    batch, learn_s, found = plan.algorithm.batch, 0.0, list[Sizes]()
    slots = list(_slots(plan, batch, cores))
    fastest = 0.0
    for number, (instances, width) in enumerate(slots):
        began = time.monotonic()
        play_s, rows = _playing(Sizes(0, instances, width, _SHORT).of(config), seconds / 8)
        learn_s = learn_s or _learning(plan, rows, batch, seconds / 4)
        for runners in range(cores + 1):
            steps = round(batch / (instances * width * max(1, runners)))
            run_s = config.env_steps / _rate(runners, play_s, learn_s, cores)
            rate = config.env_steps / (run_s + (_LAUNCH_S if runners else 0.0))
            steps = _accepted(plan.algorithm, min(max(steps, _SHORT), _LONG))
            found.append(Sizes(runners, instances, width, steps, rate))
        log.debug("%d slots: %.2f us to play a step", instances * width, 1e6 * play_s)
        slower = 1.0 / play_s < 0.8 * fastest
        fastest = max(fastest, 1.0 / play_s)
        # The first may have compiled.
        if slower or (number and time.monotonic() - began > _PATIENCE * seconds):
            break
    log.info(
        "measured %s us to play a step at best, %s us to learn from it, %d cores",
        *(f"{1e6 / fastest:.1f}", f"{1e6 * learn_s:.1f}", cores),
    )
    return _in_order(found)


def _accepted(algorithm: Algorithm, most: int) -> int:
    """Returns the largest number of steps of a fragment that an algorithm accepts."""
    for steps in range(most, 1, -1):
        with contextlib.suppress(ConfigError):
            algorithm.check(steps)
            return steps
    return 1


def _in_order(found: list[Sizes]) -> list[Sizes]:
    """Returns the fastest first, but before it the smallest that is at most 5 % slower."""
    order = sorted(found, key=lambda each: (each.runners, each.instances * each.width))
    chosen: list[Sizes] = []
    while order:
        fastest = max(each.rate for each in order)
        best = next(each for each in order if _GAIN * each.rate >= fastest)
        chosen.append(best)
        order.remove(best)
    return chosen


def _slots(plan: TrainPlan, batch: int, cores: int) -> Iterator[tuple[int, int]]:
    """Yields numbers of instances and of their slots, growing."""
    spec, needs = plan.bridge.spec, plan.needs
    most = max(1, min(_MOST_SLOTS, batch // _SHORT))
    if spec.max_width == 1:  # games with costs of their own
        fits = int(cores / needs.cpus) if needs.cpus else cores
        yield from ((n, 1) for n in _doubled(1, max(1, min(fits, most))))
        return
    least = spec.width_step
    largest = min(spec.max_width, most) // least * least
    yield from ((1, n) for n in _doubled(max(least, 8 // least * least), max(least, largest)))


def _doubled(first: int, last: int) -> Iterator[int]:
    while first < last:
        yield first
        first *= 2
    yield last


def _rate(runners: int, play_s: float, learn_s: float, cores: int) -> float:
    """Returns steps per second of a training with some costs of a step."""
    both = play_s + learn_s
    if not runners:
        return 1.0 / both
    return min(runners / play_s, 1.0 / learn_s, cores / both)


def _playing(config: TrainConfig, seconds: float) -> tuple[float, Columns]:
    """Returns the seconds that a step takes to play, and a batch."""
    sampler = TrainPlan.make(config).sampler(0)
    try:
        sampler.sample()  # launches the games, and compiles
        began, steps = time.monotonic(), 0
        while True:
            sample = sampler.sample()
            steps += sample.env_steps
            elapsed = time.monotonic() - began
            if steps and elapsed >= seconds:
                return elapsed / steps, sample.batch
    finally:
        sampler.close()


def _learning(plan: TrainPlan, rows: Columns, batch: int, seconds: float) -> float:
    """Returns the seconds that a step takes in an update."""
    import torch  # noqa: PLC0415 - slow to import

    device = "cuda" if plan.config.learners.gpus and torch.cuda.is_available() else "cpu"
    learner: Any = plan.algorithm.learner(
        plan.network().to(device), references=plan.references(device), reduce_gradients=None
    )
    count = max(1, round(batch / int(rows["valid"].sum())))
    whole = join([rows] * count)
    steps, began, updates = int(whole["valid"].sum()), time.monotonic(), 0
    progress = Progress(0, 0, plan.config.env_steps, plan.config.seed)
    learner.update(whole, progress)  # compiles
    if time.monotonic() - began < seconds:
        began = time.monotonic()
        while not updates or time.monotonic() - began < seconds:
            learner.update(whole, progress)
            updates += 1
    return (time.monotonic() - began) / max(1, updates) / steps


def tune(config: TrainConfig, session: Session) -> str | None:
    """The job of ``gamut tune speed``: measures, trains for a while, and writes a configuration.

    The file is beside the run directory, ``OUTPUT.speed.yaml``.

    Returns:
        None.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
    """
    if session.resume:
        raise ConfigError("gamut tune speed measures from scratch; leave --resume out")
    require_local(config.output, "gamut tune speed")
    seconds = config.measure if isinstance(config.measure, float) else _TUNE_S
    best = ranked(config, seconds / 3)[:_CANDIDATES]
    rates = {}
    with ray_session(config.ray.address):
        for sizes in best:
            try:
                rates[sizes] = _training(TrainPlan.make(sizes.of(config)), seconds / 6)
            except BudgetExhausted as error:
                log.warning("%s: %s", sizes, error)
                continue
            tell(f"{sizes}: {rates[sizes]:,.0f} steps/s, {sizes.rate:,.0f} computed")
    if not rates:
        return "no combination could be trained"
    chosen = max(rates, key=lambda sizes: rates[sizes])
    file = folder_of(config.output).with_suffix(".speed.yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_config(chosen.of(config), file)
    tell(f"fastest: {chosen}; next: gamut train --config {file}")
    return None


def _training(plan: TrainPlan, seconds: float) -> float:
    """Returns the steps per second of a training, without its files."""
    algorithm = trainer(plan)
    try:
        algorithm.train()
        began, steps = time.monotonic(), 0
        while True:
            algorithm.train()
            steps += algorithm.last.fresh_steps
            elapsed = time.monotonic() - began
            if elapsed >= seconds:
                return float(steps / elapsed)
    finally:
        algorithm.stop()
