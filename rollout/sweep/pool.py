"""Executes many runs: as concurrent Ray tasks, or one by one in this process.

A run is anything with a name, a run directory and the processes that it needs: one of a sweep, or
one training seed. ``work`` makes it, continuing where an earlier attempt stopped.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from rollout.errors import InputError
from rollout.observe.run_files import modified
from rollout.signals import Stop
from rollout.threads import set_threads

log = logging.getLogger(__name__)

_POLL_S = 0.5
_GRACE_S = 30.0  # time for runs to write a checkpoint when the sweep is told to stop
_OUTPUTS = ("metrics.jsonl", "evaluation-*/*.jsonl", "checkpoints")


class PoolRun(Protocol):
    """What is known of a run; picklable."""

    @property
    def name(self) -> str:
        """Unique among the runs."""

    @property
    def folder(self) -> Path:
        """Its run directory, absolute."""

    @property
    def processes(self) -> int:
        """Number of processes that it needs, its own among them."""

    @property
    def gpus(self) -> float:
        """GPUs of its own process."""


_R = TypeVar("_R", bound=PoolRun)

Work: TypeAlias = Callable[[_R, Stop], None]
"""Makes a run, or what is left of it; picklable. An ``InputError`` is not tried again."""


@dataclass(frozen=True)
class RunAttempt(Generic[_R]):
    """An attempt at a run that has ended.

    Attributes:
        run: the run.
        failure: reason of the failure; empty if it succeeded.
        again: it will be tried again.
        invalid: it failed by an ``InputError``.
    """

    run: _R
    failure: str = ""
    again: bool = False
    invalid: bool = False


@dataclass
class _Running(Generic[_R]):
    """A run that was submitted to the cluster.

    Attributes:
        run: the run.
        log_time: modification time of its log before it was submitted, by the wall clock.
        output: modification time of its newest file, by the wall clock. The clock may jump, so only
            changes of this value count.
        moved: time at which the last change was seen, in monotonic seconds.
    """

    run: _R
    log_time: float
    output: float
    moved: float


class _Queue(Generic[_R]):
    """The runs to execute and the number of attempts at each."""

    def __init__(self, runs: Sequence[_R], retries: int) -> None:
        self.waiting = deque(runs)
        self._failures: Counter[str] = Counter()
        self._retries = retries

    def end(self, run: _R, error: BaseException | str | None) -> RunAttempt[_R]:
        if error is None:
            return RunAttempt(run)
        self._failures[run.name] += 1
        # An input error would occur again in a second attempt.
        invalid = isinstance(error, InputError)
        again = self._failures[run.name] <= self._retries and not invalid
        if again:
            self.waiting.append(run)
        return RunAttempt(run, _reason(error), again, invalid)


def _reason(error: BaseException | str) -> str:
    if isinstance(error, str):
        return error
    # Ray's errors have the traceback in their text and what was raised as their cause.
    cause = getattr(error, "cause", None)
    error = cause if isinstance(cause, BaseException) else error
    text = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def run_here(
    runs: Sequence[_R], work: Work[_R], stop: Stop, *, retries: int
) -> Iterator[RunAttempt[_R]]:
    """Executes runs one by one in this process, and yields each as it ends.

    Args:
        runs: the runs.
        work: makes a run.
        stop: tells runs whether to stop.
        retries: retries of each run that fails.

    Raises:
        KeyboardInterrupt: a signal arrived.
    """
    queue = _Queue(runs, retries)
    while queue.waiting:
        run, failure = queue.waiting.popleft(), None
        try:
            work(run, stop)
        except Exception as error:
            log.debug("%s failed", run.name, exc_info=True)
            failure = error
        yield queue.end(run, failure)


def run_on_ray(
    runs: Sequence[_R],
    work: Work[_R],
    *,
    parallel: int | None,
    retries: int,
    stall_s: float | None,
    stopping: Callable[[], bool],
) -> Generator[RunAttempt[_R] | None]:
    """Executes runs as Ray tasks; yields each as it ends, and None from time to time.

    Ray must run.

    Args:
        runs: the runs.
        work: makes a run.
        parallel: maximum number of runs at once; None for as many as fit into the cluster.
        retries: retries of a run that failed.
        stall_s: seconds without output after which a run is stopped; None for no limit.
        stopping: called at least twice a second; if true, all runs are told to stop, and it ends.
    """
    import ray  # noqa: PLC0415 - only after the session has decided about authentication

    queue = _Queue(runs, retries)
    most = parallel or _room(runs)
    running: dict[Any, _Running[_R]] = {}
    try:
        while (queue.waiting or running) and not stopping():
            while queue.waiting and len(running) < most:
                run = queue.waiting.popleft()
                before = _Running(run, modified(_log_of(run)), _last_output(run), time.monotonic())
                running[_begin(run, work)] = before
            ready, _ = ray.wait(list(running), num_returns=1, timeout=_POLL_S)
            for ref in ready:
                yield queue.end(running.pop(ref).run, _error_of(ref))
            for ref in _stalled(running, stall_s, time.monotonic()):
                run = running.pop(ref).run
                with contextlib.suppress(ray.exceptions.RayError):  # it ended meanwhile
                    ray.cancel(ref, force=True)
                yield queue.end(run, f"no output for {stall_s:g} s; it was stopped")
            yield None
    finally:
        _stop_all(list(running))


def _begin(run: _R, work: Work[_R]) -> Any:
    import ray  # noqa: PLC0415 - as above

    # Workers are reused, so that each imports the modules of a run only once.
    remote = ray.remote(num_cpus=1, num_gpus=run.gpus, max_calls=0, max_retries=0)(_in_worker)
    return remote.options(name=run.name).remote(run, work)


def _room(runs: Sequence[PoolRun]) -> int:
    """Returns the number of runs that fit into the cluster, with all processes of each."""
    import ray  # noqa: PLC0415 - as above

    processes = max(run.processes for run in runs)
    return max(1, int(ray.cluster_resources().get("CPU", 1)) // processes)


def _error_of(ref: Any) -> BaseException | None:
    import ray  # noqa: PLC0415 - as above

    try:
        ray.get(ref, timeout=_GRACE_S)
    except Exception as error:  # noqa: BLE001 - a run can raise anything
        return error
    return None


def _stalled(running: Mapping[Any, _Running[Any]], stall_s: float | None, now: float) -> list[Any]:
    """Returns the runs that have started and have written nothing for too long."""
    stalled = []
    for ref, each in running.items():
        output = _last_output(each.run)
        # A run that waits for room in the cluster has not started, so its log is unchanged.
        if output != each.output or modified(_log_of(each.run)) == each.log_time:
            each.output, each.moved = output, now
        elif stall_s is not None and now - each.moved > stall_s:
            stalled.append(ref)
    return stalled


def _last_output(run: PoolRun) -> float:
    """Returns when a run last wrote something, in Unix time; 0 if it never did."""
    written = (path for pattern in _OUTPUTS for path in run.folder.glob(pattern))
    return max(map(modified, (_log_of(run), *written)))


def _log_of(run: PoolRun) -> Path:
    return run.folder.with_name(f"{run.folder.name}.log")


def _stop_all(refs: Sequence[Any]) -> None:
    import ray  # noqa: PLC0415 - as above

    if not refs:
        return
    for ref in refs:
        with contextlib.suppress(ray.exceptions.RayError):  # it ended meanwhile
            ray.cancel(ref, force=False)
    ray.wait(list(refs), num_returns=len(refs), timeout=_GRACE_S)


def _in_worker(run: _R, work: Work[_R]) -> None:
    """Executes a run in a Ray worker, on one thread and with its own log."""
    set_threads(1)
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_log_of(run).open("a", buffering=1, encoding="utf-8"))
        _log_of(run).touch()  # marks the start of the run
        stack.enter_context(contextlib.redirect_stdout(file))
        stack.enter_context(contextlib.redirect_stderr(file))
        # Ray interrupts a task to stop it, and the interrupt is deferred like a user's Ctrl-C.
        work(run, stack.enter_context(Stop()))
