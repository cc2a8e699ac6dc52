"""Runs of a sweep side by side: independent Ray tasks, or one after the other in this process."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.cli import Stop
from rollout.errors import InputError
from rollout.evaluate.experiment_job import Trainer, work
from rollout.evaluate.experiment_plan import Job

log = logging.getLogger(__name__)

_POLL_S = 0.5
_GRACE_S = 30.0  # that runs may take to write a checkpoint when the sweep is told to stop
_SIGNS = ("metrics.jsonl", "evaluation-*/*.jsonl", "checkpoints")


@dataclass(frozen=True)
class Ended:
    """A run that is over, for now.

    Attributes:
        job: the run.
        failure: why it came to nothing; empty if it is done.
        again: whether it will be tried again.
    """

    job: Job
    failure: str = ""
    again: bool = False


@dataclass
class _Running:
    """A run that was handed to the cluster.

    Attributes:
        job: the run.
        log_time: when its log was last written before, by the wall clock.
        sign: when it last wrote something, by the wall clock, which may jump: only that it
            changes counts.
        moved: when that was last seen to change, monotonic seconds.
    """

    job: Job
    log_time: float
    sign: float
    moved: float


class _Queue:
    """What is to be run, and how often each was tried."""

    def __init__(self, jobs: Sequence[Job], retries: int) -> None:
        self.waiting = deque(jobs)
        self._failures: Counter[str] = Counter()
        self._retries = retries

    def end(self, job: Job, error: BaseException | str | None) -> Ended:
        if error is None:
            return Ended(job)
        self._failures[job.name] += 1
        # What does not fit fits no better the second time.
        hopeless = isinstance(error, InputError)
        again = not hopeless and self._failures[job.name] <= self._retries
        if again:
            self.waiting.append(job)
        return Ended(job, _reason(error), again)


def _reason(error: BaseException | str) -> str:
    if isinstance(error, str):
        return error
    # Ray's errors have the traceback in their text and what was raised as their cause.
    cause = getattr(error, "cause", None)
    error = cause if isinstance(cause, BaseException) else error
    text = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def run_here(jobs: Sequence[Job], trainer: Trainer, stop: Stop, *, retries: int) -> Iterator[Ended]:
    """Runs one after the other in this process, and yields each as it ends.

    Args:
        jobs: the runs.
        trainer: how they are trained.
        stop: how they notice that they should stop.
        retries: how often a run that failed is tried again.

    Raises:
        KeyboardInterrupt: it was told to stop.
    """
    queue = _Queue(jobs, retries)
    while queue.waiting:
        job = queue.waiting.popleft()
        try:
            work(job, trainer, stop)
        except Exception as error:
            log.debug("%s failed", job.name, exc_info=True)
            yield queue.end(job, error)
        else:
            yield queue.end(job, None)


def run_on_ray(
    jobs: Sequence[Job],
    trainer: Trainer,
    *,
    parallel: int | None,
    retries: int,
    stall_s: float | None,
    stopping: Callable[[], bool],
) -> Generator[Ended | None]:
    """Runs as Ray tasks and yields each as it ends, and None now and then. Ray must run.

    Args:
        jobs: the runs.
        trainer: how they are trained.
        parallel: runs at once; None for as many as the cluster has room for.
        retries: how often a run that failed is tried again.
        stall_s: a run that writes nothing for so long is broken off; None for never.
        stopping: asked at least twice a second; then all runs are told to stop, and it ends.
    """
    import ray  # noqa: PLC0415 - only after the session has decided about authentication

    queue = _Queue(jobs, retries)
    most = parallel or _room(jobs)
    running: dict[Any, _Running] = {}
    try:
        while (queue.waiting or running) and not stopping():
            while queue.waiting and len(running) < most:
                job = queue.waiting.popleft()
                before = _Running(job, _log_time(job), _last_sign(job), time.monotonic())
                running[_begin(job, trainer)] = before
            ready, _ = ray.wait(list(running), num_returns=1, timeout=_POLL_S)
            for ref in ready:
                yield queue.end(running.pop(ref).job, _error_of(ref))
            for ref in _stalled(running, stall_s, time.monotonic()):
                job = running.pop(ref).job
                with contextlib.suppress(ray.exceptions.RayError):  # it ended in this moment
                    ray.cancel(ref, force=True)
                yield queue.end(job, f"no sign of life for {stall_s:g} s; it was broken off")
            yield None
    finally:
        _stop_all(list(running))


def _begin(job: Job, trainer: Trainer) -> Any:
    import ray  # noqa: PLC0415 - as above

    learners = job.config.learners
    # Workers are used again, so that what a run imports is imported once in each of them.
    remote = ray.remote(
        num_cpus=1, num_gpus=0 if learners.count else learners.gpus, max_calls=0, max_retries=0
    )(_in_worker)
    return remote.options(name=job.name).remote(job, trainer)


def _room(jobs: Sequence[Job]) -> int:
    """How many runs fit into the cluster, with the processes that each of them starts."""
    import ray  # noqa: PLC0415 - as above

    processes = max(1 + job.config.runners + job.config.learners.count for job in jobs)
    return max(1, int(ray.cluster_resources().get("CPU", 1)) // processes)


def _error_of(ref: Any) -> BaseException | None:
    import ray  # noqa: PLC0415 - as above

    try:
        ray.get(ref, timeout=_GRACE_S)
    except Exception as error:  # noqa: BLE001 - what a run raises can be anything
        return error
    return None


def _stalled(running: Mapping[Any, _Running], stall_s: float | None, now: float) -> list[Any]:
    """The runs that have begun, and have written nothing for too long."""
    stalled = []
    for ref, run in running.items():
        sign = _last_sign(run.job)
        # What the cluster has no room for yet has not begun, and so has not touched its log.
        if sign != run.sign or _log_time(run.job) == run.log_time:
            run.sign, run.moved = sign, now
        elif stall_s is not None and now - run.moved > stall_s:
            stalled.append(ref)
    return stalled


def _last_sign(job: Job) -> float:
    """When a run last wrote something, Unix time; 0 if it never did."""
    times = [_log_time(job)]
    for pattern in _SIGNS:
        for path in job.folder.glob(pattern):
            with contextlib.suppress(OSError):  # it was there a moment ago
                times.append(path.stat().st_mtime)
    return max(times)


def _log_of(job: Job) -> Path:
    return job.folder.with_name(f"{job.folder.name}.log")


def _log_time(job: Job) -> float:
    try:
        return _log_of(job).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _stop_all(refs: Sequence[Any]) -> None:
    import ray  # noqa: PLC0415 - as above

    if not refs:
        return
    for ref in refs:
        with contextlib.suppress(ray.exceptions.RayError):  # it ended in this moment
            ray.cancel(ref, force=False)
    ray.wait(list(refs), num_returns=len(refs), timeout=_GRACE_S)


def _in_worker(job: Job, trainer: Trainer) -> None:
    """A run in a worker of Ray: on one thread, and with a log of its own."""
    import torch  # noqa: PLC0415 - slow to import, and only who plays needs it

    torch.set_num_threads(1)
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_log_of(job).open("a", buffering=1, encoding="utf-8"))
        _log_of(job).touch()  # it has begun
        stack.enter_context(contextlib.redirect_stdout(file))
        stack.enter_context(contextlib.redirect_stderr(file))
        # Ray tells a task to stop by an interrupt, which then is deferred as one of a user is.
        work(job, trainer, stack.enter_context(Stop()))
