"""The status of a job, read from its run directory.

Only files of the run are read, and only the ends of long ones. So this is cheap, works for any run
at any time, and disturbs nothing.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import psutil  # type: ignore[import-untyped]

from rollout.errors import RunDirectoryError
from rollout.observe import run_files
from rollout.observe.metrics import Scalar
from rollout.observe.progress import share
from rollout.observe.run_files import LOG, METRICS, RUN, SUMMARY, modified, newest_lines

RESULT = "result.json"  # of one run of a sweep, see rollout.sweep.run
TRIALS = ("runs", "trials")
"""Folders of the runs that a job starts."""

State: TypeAlias = Literal[
    "running", "evaluating", "silent", "gone", "done", "interrupted", "ended short", "ended early"
]
"""``evaluating``: a run of a sweep, between its training and its score; ``silent``: no output for a
long time; ``gone``: its process no longer exists and the job has no end; all others except
``running`` are how it ended: ``ended early`` is a trial that its search stopped."""

_ENDED = ("done", "interrupted", "ended short", "ended early")

_SILENT_AFTER_S = 60.0  # after which a job counts as silent; longer if its lines are rare
_RARE_LINES_FACTOR = 5.0  # multiple of the usual pause between lines
_GONE_AFTER_S = 10.0  # minimum silence of a job whose process is gone, so that files are read first
_MOST_WARNINGS = 20
_WARNING = re.compile(r"(\S+) (WARNING|ERROR|CRITICAL) \S+ (.*)")
_PROGRESS = re.compile(r"\S+ INFO rollout\.observe\.progress \w+ (\d+)% (.*?)(?: \| .*)?")
_ABOUT = re.compile(r"(.*) \| (\w+=.*)")
_TIME_LEFT = re.compile(r"\bleft=(?!\?)(\S+)")

Values: TypeAlias = Mapping[str, Scalar]


@dataclass(frozen=True)
class LogWarning:
    """A warning in the log.

    Attributes:
        time: time in ISO 8601.
        text: the message.
        about: its subject, as ``key=value`` pairs without the run.
    """

    time: str
    text: str
    about: str = ""


@dataclass(frozen=True)
class TrialStatus:
    """The status of a run that the job started.

    Attributes:
        name: name of its folder.
        state: its state.
        done: fraction that is done, or None if unknown.
        values: the newest value of every metric.
        scores: its scores, by set.
    """

    name: str
    state: State
    done: float | None
    values: Values
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunStatus:
    """The current state of a job.

    Attributes:
        path: its run directory.
        kind: kind of the job, e.g. ``train``.
        run_id: its id.
        session: number of its session, from 0.
        state: its state.
        process: its process, as ``PID on HOST``.
        silent_s: seconds since its last output.
        up_s: seconds from the beginning of its session to now, or to its last output.
        values: the newest value of every metric.
        done: fraction that is done, 0 to 1; None if unknown.
        left: time left in words; empty if unknown, or if the job has ended.
        steps_per_s: mean over its session; None before there are two lines.
        checkpoint: name and age in seconds of its newest checkpoint.
        warnings: the last warnings in its log, oldest first.
        trials: runs that it started, sorted by name.
    """

    path: Path
    kind: str
    run_id: str
    session: int
    state: State
    process: str
    silent_s: float
    up_s: float
    values: Values = field(default_factory=dict)
    done: float | None = None
    left: str = ""
    steps_per_s: float | None = None
    checkpoint: tuple[str, float] | None = None
    warnings: tuple[LogWarning, ...] = ()
    trials: tuple[TrialStatus, ...] = ()

    @property
    def ended(self) -> bool:
        """True if the job has ended."""
        return self.state in _ENDED


def read_status(folder: Path, *, now: float | None = None) -> RunStatus:
    """Returns the state of the job in a run directory.

    Args:
        folder: the run directory.
        now: Unix time in seconds; the current time by default.

    Raises:
        RunDirectoryError: the folder contains no run.
    """
    about = run_files.read_about(folder)
    now = time.time() if now is None else now
    session = about["sessions"][-1]
    number = len(about["sessions"]) - 1
    lines, damaged = newest_lines(folder / METRICS)
    log = run_files.tail(folder / LOG)
    marks = [f"{name}/*/{file}" for name in TRIALS for file in (RUN, RESULT)]
    places = sorted({p.parent for mark in marks for p in folder.glob(mark)})
    trials = [trial for place in places if (trial := _read_trial(place, now)) is not None]
    checkpoint = run_files.newest_checkpoint(folder)
    began = datetime.fromisoformat(session["started"]).timestamp()
    last_output = max(
        began, _last_output(folder, lines), *(last_output for _, last_output in trials)
    )
    first = run_files.first_line_of_session(folder / METRICS, number)
    session_lines = [line for line in lines if line.get("resume_count", number) == number]
    state = _state(folder, about["sessions"], now - last_output, lines)
    done, left = _progress(folder, first, session_lines, log)
    alive = state in ("running", "silent")
    return RunStatus(
        path=folder.resolve(),
        kind=str(about.get("kind", "run")).removesuffix("Config").lower(),
        run_id=str(about["run_id"]),
        session=number,
        state=state,
        process=f"{session.get('pid', '?')} on {session.get('host', '?')}",
        silent_s=max(0.0, now - last_output),
        up_s=max(0.0, (now if alive else last_output) - began),
        values=run_files.newest_values(lines),
        done=1.0 if state == "done" else done,
        left=left if alive else "",
        steps_per_s=_rate(first, session_lines[-1] if session_lines else None, "env_steps"),
        checkpoint=None if checkpoint is None else (checkpoint[0], max(0.0, now - checkpoint[1])),
        warnings=_warnings(log, damaged),
        trials=tuple(trial for trial, _ in trials),
    )


def _rate(first: Any, last: Any, name: str) -> float | None:
    """Returns the increase of a value per second between two lines."""
    try:
        seconds = last["time"] - first["time"]
        return float((last[name] - first[name]) / seconds) if seconds > 0 else None
    except (TypeError, KeyError):  # there are no two lines that have it
        return None


def _last_output(folder: Path, lines: list[dict[str, Any]]) -> float:
    """Returns the time of a run's last output, Unix seconds."""
    newest = lines[-1].get("time") if lines else None
    written = max(modified(folder / name) for name in (METRICS, LOG, SUMMARY))
    return max(written, float(newest)) if isinstance(newest, int | float) else written


def _state(
    folder: Path, sessions: list[Mapping[str, Any]], silent_s: float, lines: list[dict[str, Any]]
) -> State:
    summary = run_files.read_json(folder / SUMMARY)
    status: State = summary.get("status", "")
    if status in _ENDED and summary.get("resume_count") == len(sessions) - 1:
        return status  # otherwise it is of an earlier session
    if silent_s > _GONE_AFTER_S and _is_gone(sessions[-1]):
        return "gone"
    times = [line["time"] for line in lines if isinstance(line.get("time"), int | float)]
    pause = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0
    return "silent" if silent_s > max(_SILENT_AFTER_S, _RARE_LINES_FACTOR * pause) else "running"


def _is_gone(session: Mapping[str, Any]) -> bool:
    """Returns whether the process of a session ran on this machine and no longer exists."""
    if session.get("host") != socket.gethostname() or not isinstance(session.get("pid"), int):
        return False  # processes on other machines cannot be checked from here
    try:
        # Another process with the same number is taken for it, and its silence is noticed. The
        # process's start time is not compared, since clocks may jump.
        return bool(psutil.Process(session["pid"]).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False


def _progress(
    folder: Path, first: Values | None, lines: list[dict[str, Any]], log: list[bytes]
) -> tuple[float | None, str]:
    """Returns the fraction done and the time left in words, as far as known."""
    logged, logged_left = _last_progress(log)
    if logged_left:
        return logged, logged_left  # a sweep knows more: it sees all its runs
    if not lines or first is None:
        return logged, ""
    begin, end = _fraction_done(folder, first), _fraction_done(folder, lines[-1])
    if begin is None or end is None:
        return logged if end is None else end, ""
    speed = _rate({**first, "done": begin}, {**lines[-1], "done": end}, "done")
    return end, duration((1.0 - end) / speed) if speed else ""


def _last_progress(log: list[bytes]) -> tuple[float | None, str]:
    """Returns fraction and time left of the last progress line; progress bars leave none."""
    for raw in reversed(log):
        line = _PROGRESS.fullmatch(raw.decode(errors="replace"))
        if line is not None:
            left = _TIME_LEFT.search(line[2])
            return int(line[1]) / 100, left[1] if left else ""
    return None, ""


def _fraction_done(folder: Path, line: Values) -> float | None:
    """Returns the fraction done at a line: its own value, or by the configured budget."""
    own = line.get("done")
    if isinstance(own, int | float):
        return min(1.0, float(own))
    path = folder / "config.yaml"
    bounds = run_files.budgets(str(path), modified(path))
    parts = [(float(line[k] or 0), bound) for k, bound in bounds.items() if k in line]
    return share(*parts) if parts else None


def _warnings(log: list[bytes], damaged: int) -> tuple[LogWarning, ...]:
    found = []
    for raw in log:
        logged = _WARNING.fullmatch(raw.decode(errors="replace"))
        if logged is not None:
            parts = _ABOUT.fullmatch(logged[3])
            text, about = parts.groups() if parts is not None else (logged[3], "")
            own = [pair for pair in about.split(" ") if not pair.startswith("run=")]
            found.append(LogWarning(logged[1], text, " ".join(own)))
    if damaged:
        found.append(LogWarning("", f"{damaged} of the last lines of {METRICS} are damaged"))
    return tuple(found[-_MOST_WARNINGS:])


def _read_trial(folder: Path, now: float) -> tuple[TrialStatus, float] | None:
    """Returns a run that the job started and its last output time; None if it is no run."""
    result, sessions = run_files.read_json(folder / RESULT), []
    try:
        sessions = run_files.read_about(folder)["sessions"]
    except RunDirectoryError:
        if not result:  # a run that shares the training of another has nothing else
            return None
    lines, _ = newest_lines(folder / METRICS)
    evaluation = [modified(path) for path in folder.glob("evaluation-*/*")]
    last_output = max(_last_output(folder, lines), *evaluation, 0.0)
    state: State
    if result:
        state = "done"  # written last
    elif evaluation:  # the folder is removed when the evaluation is complete
        state = "silent" if now - last_output > _SILENT_AFTER_S else "evaluating"
    else:
        state = _state(folder, sessions, now - last_output, lines)
    scores: dict[str, float] = {}
    for name, by_actions in _items(result.get("scores")):
        known = [v for _, v in _items(by_actions) if isinstance(v, int | float)]
        scores |= {str(name): float(known[0])} if known else {}
    done = 1.0 if state == "done" else _fraction_done(folder, lines[-1]) if lines else None
    return TrialStatus(
        folder.name, state, done, run_files.newest_values(lines), scores
    ), last_output


def _items(found: object) -> list[tuple[str, Any]]:
    """Returns the items of a JSON object; none of other values, as in a damaged file."""
    return list(found.items()) if isinstance(found, dict) else []


def duration(seconds: float) -> str:
    """Returns a time span in words, e.g. ``1h05m``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
