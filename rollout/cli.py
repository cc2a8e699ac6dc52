"""What every script shares: its arguments, its exit status, and how it is stopped.

Exit status: 0 done; 2 the input is wrong, nothing was launched; 3 ended short, what was done is
saved; 130 interrupted; 143 terminated; 1 a bug, with its traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Self, TypeVar

from pydantic import BaseModel

from rollout.config import LogConfig, help_text, load_config, parse_set
from rollout.configuration import document
from rollout.configuration.explain import plugins_named
from rollout.errors import BudgetExhausted, ConfigError, InputError, is_disk_full
from rollout.observe.logs import set_up_logging

DONE, FAILED, WRONG_INPUT, ENDED_SHORT = 0, 1, 2, 3

M = TypeVar("M", bound=BaseModel)


class Stopped(KeyboardInterrupt):
    """The user, or the cluster, asked the program to stop.

    Attributes:
        signum: the signal that asked.
    """

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(signal.Signals(signum).name)

    def __reduce__(self) -> tuple[type[Stopped], tuple[int]]:
        return type(self), (self.signum,)


class Stop:
    """Turns SIGTERM and SIGINT into an orderly stop of the main thread.

    A signal raises ``Stopped`` wherever the program is, so that ``finally`` and ``with`` clean
    up. A loop that can stop at a better place says so, and looks at ``requested`` itself::

        with stop.deferred():
            while not stop.requested:
                ...
        # Stopped is raised here, between two rounds and not in the middle of one

    A second signal is never deferred. As a context manager it restores the handlers it found.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._signum = 0
        self._deferred = 0
        self._previous: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether a signal came."""
        return self._asked.is_set()

    @property
    def signum(self) -> int:
        """The newest signal that came; 0 if none did."""
        return self._signum

    def wait(self, timeout_s: float) -> bool:
        """Waits until a signal comes; returns whether one did."""
        return self._asked.wait(timeout_s)

    def install(self) -> None:
        """Puts the handlers in place; again after ``ray.init``, which replaces that of SIGTERM.

        Outside the main thread Python offers no handlers, and nothing is done.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for signum in (signal.SIGTERM, signal.SIGINT):
            previous = signal.signal(signum, self._handle)
            self._previous.setdefault(signum, previous)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """While it is entered, the first signal sets ``requested`` and is raised at the end."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1
        if self.requested and not self._deferred:
            raise Stopped(self._signum)

    def __enter__(self) -> Self:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        for signum, previous in self._previous.items():
            signal.signal(signum, previous)
        self._previous.clear()

    def _handle(self, signum: int, _: FrameType | None) -> None:
        again = self.requested
        self._signum = signum
        self._asked.set()
        if again or not self._deferred:
            raise Stopped(signum)


@dataclass(frozen=True)
class Session:
    """How a script was called, beyond its configuration.

    Attributes:
        resume: whether to go on with the run that is in the output directory.
        stop: how to notice that it should stop.
        wait_s: how long another process that works in the output directory may take to end.
    """

    resume: bool
    stop: Stop
    wait_s: float = 0.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see --help")


def main(
    function: Callable[[M, Session], str | None],
    model: type[M],
    description: str,
    argv: Sequence[str] | None = None,
) -> int:
    """Runs a script and returns its exit status.

    Args:
        function: what it does. Returns None when all was done; else a sentence that says what is
            missing and what was saved, which is printed, and the status is 3.
        model: its configuration.
        description: what it does, in a sentence, for ``--help``.
        argv: its arguments; those of the process when None.

    Raises:
        Exception: a bug, with its traceback; Python then exits with status 1.
    """
    # As with `python -m`: what the user named, a policy of theirs say, may lie where they are.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        arguments = _parser(description).parse_args(argv)
        overrides = [parse_set(text) for text in arguments.set]
        if arguments.help:
            chosen = _chosen(model, arguments.config, overrides)
            _parser(description).print_help()
            sys.stdout.write(f"\n{help_text(model, chosen)}\n")
            return DONE
        config = load_config(model, arguments.config, overrides)
    except InputError as error:
        return _wrong(error)
    log = getattr(config, "log", None)
    set_up_logging(log.level if isinstance(log, LogConfig) else "info")
    with Stop() as stop:
        return _run(function, config, Session(arguments.resume, stop))


def _run(function: Callable[[M, Session], str | None], config: M, session: Session) -> int:
    try:
        missing = function(config, session)
    except InputError as error:
        return _wrong(error)
    except (BudgetExhausted, OSError) as error:
        if not isinstance(error, BudgetExhausted) and not is_disk_full(error):
            raise
        how = "; make room, then go on with --resume" if is_disk_full(error) else ""
        return _say(ENDED_SHORT, f"ended short: {_one_line(error)}{how}")
    except KeyboardInterrupt as error:
        # Ray raises a plain one, also for SIGTERM, where a signal comes while it waits.
        came = session.stop.signum or signal.SIGINT
        return _stopped(error.signum if isinstance(error, Stopped) else came)
    except SystemExit as error:
        # Ray's own handler of SIGTERM, if it replaced ours, exits with the signal's number.
        if error.code == signal.SIGTERM:
            return _stopped(signal.SIGTERM)
        raise
    if missing is not None:
        return _say(ENDED_SHORT, f"ended short: {' '.join(missing.split())}")
    return DONE


def _parser(description: str) -> _Parser:
    parser = _Parser(description=description, add_help=False, allow_abbrev=False)
    parser.add_argument("--config", metavar="FILE", type=Path, help="YAML file of keys")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="extend",
        nargs="+",
        default=[],
        help="sets a key, e.g. bridge.name=crafter; wins over the file, the last one over all",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in the output")
    parser.add_argument("-h", "--help", action="store_true", help="show every key, and exit")
    return parser


def _chosen(
    model: type[BaseModel], path: Path | None, overrides: Sequence[tuple[str, Any]]
) -> dict[str, str]:
    """The plug-ins that are known already, so that help can be about them."""
    # Whoever asks for help may have a wrong file; then the help is about every plug-in.
    with contextlib.suppress(InputError):
        source = document.Document({}) if path is None else document.read(path)
        return plugins_named(model, source.override(overrides).data)
    return {}


def _wrong(error: InputError) -> int:
    return _say(WRONG_INPUT, f"error: {_one_line(error)}")


def _stopped(signum: int) -> int:
    name = signal.Signals(signum).name
    return _say(128 + signum, f"stopped by {name}; go on with --resume")


def _one_line(error: BaseException) -> str:
    # Ray raises the error of an actor as one whose text has the traceback and whose cause is it.
    cause = getattr(error, "cause", None)
    return " ".join(str(cause if isinstance(cause, BaseException) else error).split())


def _say(status: int, text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return status
