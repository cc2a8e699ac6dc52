"""The frame of all jobs: run directory, logs, metrics, dashboards, Ray and an orderly end.

::

    with open_job("collect", config, session) as job:
        ...                                  # open what the job needs in its run directory
        job.report()                         # from here on metrics are written and shown
        with job.ray() as stack:             # a Ray session, if the job needs one
            ...                              # launch the games
            return job.finish(play, conclude)
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout.cli import OTHER_CODE, Session
from rollout.config import BridgeConfig, RunConfig, Section, resolved
from rollout.errors import (
    BudgetExhausted,
    GamutError,
    InputError,
    PluginError,
    RayUnavailable,
    no_exit,
    trace_of,
)
from rollout.host.interpreter import Interpreter, check_interpreter, interpreter_of
from rollout.host.ray_watch import conclude_if_lost, lost_after
from rollout.host.session import ray_session, require_session
from rollout.observe.exporter import RayExporter
from rollout.observe.lineage import Lineage
from rollout.observe.logs import about, log_trace, set_up_logging
from rollout.observe.metrics import Metrics
from rollout.observe.progress import Progress, show_progress
from rollout.observe.run_files import LINEAGE
from rollout.observe.tensorboard import TensorboardMirror
from rollout.observe.wandb_mirror import JobType, WandbMirror, mirror_settings, require_wandb
from rollout.room import Room
from rollout.run_directory import RunDirectory, versions
from rollout.signals import Stop

log = logging.getLogger(__name__)


@dataclass
class Job:
    """One session of a run. Made by ``open_job``.

    Attributes:
        kind: kind of the job.
        config: its configuration.
        run: its run directory.
        stop: tells whether to stop.
        stack: closes what the job has opened at its end, without interruption by signals.
        lineage: the datasets, checkpoints and results that it used and made.
        metrics: its metrics file; set by ``report``.
        progress: its progress display; set by ``report``.
    """

    kind: JobType
    config: Any  # a RunConfig with the sections ray, wandb and log
    run: RunDirectory
    stop: Stop
    stack: contextlib.ExitStack
    _needs_ray: bool
    lineage: Lineage = field(init=False)
    metrics: Metrics = field(init=False)
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.lineage = Lineage(self.run.path / LINEAGE)

    def report(
        self,
        *,
        mirrored: Mapping[str, Any] | None = None,
        group: str | None = None,
        until: int | None = None,
    ) -> None:
        """Starts the metrics, their mirrors and the progress display.

        Args:
            mirrored: values for W&B besides the configuration; None for no W&B.
            group: W&B's group of runs, unless the configuration sets one.
            until: for a job that continues from a checkpoint, as of ``Metrics``.
        """
        run = self.run
        constants = {"resume_count": run.resume_count}
        self.metrics = self.stack.enter_context(
            Metrics(run.metrics, constants=constants, until=until)
        )
        if mirrored is not None:
            wandb = self.config.wandb
            settings = mirror_settings(
                wandb.model_copy(update={"group": wandb.group or group}),
                run.path,
                run.run_id,
                job_type=self.kind,
                config={**resolved(self.config), **mirrored},
                resume_count=run.resume_count,
            )
            if settings is not None:
                self.stack.callback(WandbMirror(run.metrics, settings).finish)
        if self.config.log.tensorboard:
            # The lines of a sweep or a search are not in the order of their steps.
            by_lines = self.kind in ("sweep", "search")
            self.stack.enter_context(TensorboardMirror(self.metrics, by_lines=by_lines))
        every_s = self.config.log.every_s
        self.progress = self.stack.enter_context(show_progress(self.kind, every_s=every_s))

    @contextlib.contextmanager
    def ray(self) -> Iterator[contextlib.ExitStack]:
        """The Ray session of the job, if it needs one; metrics are exported to it.

        Yields:
            a stack, which is closed before the session, without interruption by signals.

        Raises:
            ConfigError: there is no cluster at the address, or it refuses the connection.
            RayUnavailable: Ray does not start, or has died.
        """
        # Held: interrupting Ray while it starts or stops may crash the interpreter.
        with self.stop.held(), contextlib.ExitStack() as stack:
            if self._needs_ray:
                session = ray_session(
                    self.config.ray.address,
                    stopping=lambda: self.stop.signum if self.stop.requested else 0,
                )
                stack.enter_context(session)
            self.metrics.listen(stack.enter_context(RayExporter(self.run.run_id, self.kind)))
            self.stop.install()  # who started Ray before us may have let it replace the handler
            stack.enter_context(conclude_if_lost(lambda: "no further step"))
            with self.stop.released():
                try:
                    yield stack
                except Exception as error:
                    what = "" if isinstance(error, GamutError) else lost_after(error)
                    if not what:
                        raise
                    raise RayUnavailable(f"{what}; continue with --resume") from error

    def finish(self, play: Callable[[], str | None], conclude: Callable[[str], str]) -> str | None:
        """Runs the loop of the job and writes its results, however it ends.

        Args:
            play: the loop. Returns None if everything is done, otherwise a sentence that says what
                is missing.
            conclude: called with the status (``done``, ``ended short`` or ``interrupted``); writes
                the results and returns a sentence on the progress. No signal interrupts it.

        Returns:
            the result of ``play``.

        Raises:
            KeyboardInterrupt: a signal arrived.
            Exception: ``play`` raised it; the results were written before, if they could be.
        """

        def end(status: str) -> str:
            with self.stop.held():
                state = conclude(status)
                log.info("%s: %s in %s", status, state, self.run.path)
            return state

        try:
            with conclude_if_lost(lambda: conclude("ended short")):
                missing = play()
        except KeyboardInterrupt:
            if not self.stop.reason:
                end("interrupted")
                raise
            return f"{self.stop.reason}. Saved: {end('ended short')}; continue with --resume"
        except BudgetExhausted as error:
            log_trace(log, error.trace)
            more = "; continue with --resume" if isinstance(error, RayUnavailable) else ""
            return f"{error}. Saved: {end('ended short')}{more}"
        except Exception as error:
            if what := "" if isinstance(error, GamutError) else lost_after(error):
                log.debug("the error that followed", exc_info=error)
                return f"{what}. Saved: {end('ended short')}; continue with --resume"
            if isinstance(error, InputError):  # nothing was launched
                raise
            try:
                end("ended short")
            except Exception:  # the first error is reported, and it may have caused this one
                log.debug("no results were written", exc_info=True)
            raise
        end("done" if missing is None else "ended short")
        return missing

    def write_summary(self, status: str, **parts: Any) -> dict[str, Any]:
        """Writes and returns ``summary.json``: identity of the run, its parts, and versions."""
        run = {"run_id": self.run.run_id, "resume_count": self.run.resume_count}
        summary = {"status": status, **run, **parts, "versions": versions()}
        self.run.write_summary(summary)
        return summary


@contextlib.contextmanager
def open_job(
    kind: JobType, config: RunConfig, session: Session, *, needs_ray: bool = True
) -> Iterator[Job]:
    """Opens the run directory of a job; on exit closes everything that the job has opened.

    The fields ``ray``, ``wandb`` and ``log`` of its configuration are used. If it needs Ray, access
    to the cluster is checked first, so that invalid input leaves no files behind.

    Raises:
        InputError: the output cannot be used, there is no cluster at the address, the package wandb
            is missing, or the interpreter of the games is missing or lacks something.
    """
    settings: Any = config
    require_wandb(settings.wandb)
    if needs_ray:
        require_session(settings.ray.address)
    games = [dataclasses.asdict(each) for each in _interpreters(config)]
    # Held: the directory is complete or does not exist; and everything opened is closed.
    with session.stop.held(), contextlib.ExitStack() as stack:
        opened = RunDirectory.opened(
            config.output, config, resume=session.resume, wait_s=session.wait_s, games=games
        )
        run = stack.enter_context(opened)
        set_up_logging(settings.log.level, run.log)
        stack.enter_context(about(run=run.run_id))
        log.info("%s run in %s", "resumed" if run.resume_count else "new", run.path)
        stack.enter_context(Room(run.path, config.disk_budget, session.stop))
        try:
            with session.stop.released(), no_exit(OTHER_CODE):
                yield Job(kind, settings, run, session.stop, stack, needs_ray)
        except Exception as error:
            log_trace(log, trace_of(error))
            if isinstance(error, PluginError):
                error.logged = True
            raise


def _interpreters(config: Section, python: str | None = None) -> Iterator[Interpreter]:
    """Checks and yields the interpreters of the games of a configuration that are not ours.

    Args:
        config: the configuration, or a section of it.
        python: ``host.python`` of what it is a section of.
    """
    python = getattr(getattr(config, "host", None), "python", python)
    for name in type(config).model_fields:
        section = getattr(config, name)
        if isinstance(section, BridgeConfig):
            bridge = section.build()
            if (path := interpreter_of(python, bridge)) is not None:
                yield check_interpreter(path, bridge)
        elif isinstance(section, Section):
            yield from _interpreters(section, python)
