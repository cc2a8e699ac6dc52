"""Shared by all scripts: arguments, exit status and orderly stops.

Exit status: 0 done; 2 invalid input, nothing was launched; 3 ended early, finished work is saved;
129, 130 and 143 stopped by SIGHUP, SIGINT and SIGTERM; 1 a bug, with its traceback, or in one line
an error in the code of a policy or an evaluator.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeVar

from pydantic import BaseModel

from rollout.at_address import run_at
from rollout.config import LogConfig, help_text, parse_set
from rollout.configuration import document
from rollout.configuration.document import from_document
from rollout.configuration.explain import EVERYTHING, plugins_named
from rollout.errors import (
    BROKEN,
    DONE,
    ENDED_SHORT,
    WRONG_INPUT,
    BudgetExhausted,
    ConfigError,
    GameError,
    InputError,
    PluginError,
    is_disk_full,
    no_exit,
)
from rollout.estimate import Estimate
from rollout.named_code import search_current_folder
from rollout.observe.logs import set_up_logging
from rollout.signals import Stop, Stopped, say, stopped, tell

log = logging.getLogger(__name__)

OTHER_CODE = "code of a plug-in"
"""Description of a plug-in's code for ``no_exit``, where it is not known which plug-in it is."""

_CONTINUE = "; continue with --resume"

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Session:
    """Arguments of a script beside its configuration.

    Attributes:
        resume: continue the run in the output directory.
        stop: tells when to stop.
        wait_s: longest wait for another process that works in the output directory, in seconds.
        estimate: if given, the job plays the first episode of each of its parts only, tells it what
            they cost and returns a sentence.
    """

    resume: bool
    stop: Stop
    wait_s: float = 0.0
    estimate: Estimate | None = None


def _records(model: type[BaseModel]) -> bool:
    """Returns whether a script has an output that a later call can continue."""
    return "output" in model.model_fields


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see --help")


def main(
    function: Callable[[M, Session], str | None],
    model: type[M],
    description: str,
    argv: Sequence[str] | None = None,
    *,
    chosen: Callable[[Any], tuple[Callable[[Any, Session], str | None], type[Any]]] | None = None,
) -> int:
    """Runs a script and returns its exit status.

    Args:
        function: the job. Returns None if everything was done; otherwise a sentence that says what
            is missing and what was saved, which is printed, and the status is 3.
        model: its configuration class.
        description: one sentence about it, for ``--help``.
        argv: its arguments; those of the process if None.
        chosen: returns the job and the class instead of these for a configuration as plain data.

    Raises:
        Exception: a bug, with its traceback; Python then exits with status 1.
    """
    search_current_folder()
    try:
        parser = _parser(model, description)
        arguments = parser.parse_args(argv)
        overrides = [parse_set(text) for text in arguments.set]
        if getattr(arguments, "player", None) is not None:
            overrides.insert(0, ("player", arguments.player))
        source = _source(arguments, overrides)
        if chosen is not None:
            function, model = chosen(source.data)
        if arguments.help is not None:
            plugins = plugins_named(model, source.data)
            keys = help_text(model, plugins, arguments.help)
            usage = f"{parser.format_help()}\n" if arguments.help in ("", EVERYTHING) else ""
            tell(f"{usage}{keys}")
            return DONE
        config = from_document(model, source)
    except InputError as error:
        return fail(error)
    logs = getattr(config, "log", None)
    set_up_logging(logs.level if isinstance(logs, LogConfig) else "info")
    if arguments.config is not None:
        document.log_packaged(arguments.config)
    with Stop() as stop:
        try:
            with no_exit(OTHER_CODE):
                job = partial(run_at, function)
                resume, asked = arguments.resume, getattr(arguments, "estimate", False)
                if asked and (status := _estimated(job, config, resume, stop)) is not None:
                    return status
                missing = job(config, Session(resume or asked, stop))
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            status = _status(error, stop, _CONTINUE if _records(model) else "")
            if status is None:
                raise
            return status
    if missing is not None:
        return _say(ENDED_SHORT, f"ended short: {' '.join(missing.split())}")
    return DONE


def _estimated(
    function: Callable[[M, Session], str | None], config: M, resume: bool, stop: Stop
) -> int | None:
    """Prints what the calls of a job will cost; returns None to go on, else the exit status."""
    estimate = Estimate()
    missing = function(config, Session(resume, stop, estimate=estimate))
    if not estimate.parts and missing is not None:  # it ended before it could be estimated
        return _say(ENDED_SHORT, f"ended short: {' '.join(missing.split())}")
    if not estimate.parts:
        tell("nothing is left to do")
        return DONE
    others = "others" if estimate.kept else "whole run"
    kept = "The played episodes are part of the run; --resume plays the others."
    if not estimate.kept:
        kept = "Nothing is recorded: --resume plays, and pays, these episodes again."
    tell(f"\n{estimate.text()}\n{kept}")
    if not (_asks(sys.stdin) and _asks(sys.stdout)):
        return DONE
    tell(f"Play the {others} now? [y/N] ", end="")
    sys.stdout.flush()
    return None if sys.stdin.readline().strip().lower() in ("y", "yes") else DONE


def _asks(stream: TextIO | None) -> bool:
    """Returns whether a standard stream is a terminal; it is None if it was closed."""
    return stream is not None and stream.isatty()


def _status(error: BaseException, stop: Stop, then: str) -> int | None:
    """Prints in one line how an error ended the script, and ``then`` if it was a signal.

    Returns:
        The exit status; None for a bug.
    """
    if isinstance(error, InputError):
        return fail(error)
    if is_disk_full(error):
        how = "make room, then continue with --resume"
        return _say(ENDED_SHORT, f"ended short: {_one_line(error)}; {how}")
    # While Ray waits it raises a plain KeyboardInterrupt for any signal; its own handler of
    # SIGTERM, if it replaced ours, exits with the number of the signal.
    by_ray = isinstance(error, SystemExit) and error.code == signal.SIGTERM
    signum = stop.signum or (signal.SIGTERM if by_ray else signal.SIGINT)
    if isinstance(error, Stopped):
        signum = error.signum
    by_signal = by_ray or isinstance(error, KeyboardInterrupt)
    if by_signal or stop.requested:
        if not by_signal:  # it stopped, but not with the exception of the signal
            log.debug("the error while it stopped", exc_info=error)
        if stop.reason:
            return _say(ENDED_SHORT, f"ended short: {stop.reason}{then}")
        return stopped(signum, then)
    if isinstance(error, PluginError | GameError):
        logged = "; the whole traceback is in run.log" * getattr(error, "logged", False)
        return _say(BROKEN, f"error: {_one_line(error)}{logged}")
    short = isinstance(error, BudgetExhausted)
    return _say(ENDED_SHORT, f"ended short: {_one_line(error)}") if short else None


def _parser(model: type[BaseModel], description: str) -> _Parser:
    parser = _Parser(description=description, add_help=False, allow_abbrev=False)
    parser.add_argument("--config", metavar="FILE", type=Path, help="YAML file of keys")
    about = "sets a key, e.g. bridge.name=crafter; wins over the file, the last one over all"
    add_set(parser, "KEY=VALUE", about)
    if "player" in model.model_fields:
        parser.add_argument(
            "--player", metavar="RUN_DIR", help="evaluates this training run, on its own game"
        )
    parser.set_defaults(resume=False)
    if _records(model):
        parser.add_argument(
            "--resume", action="store_true", help="continue with the run in the output"
        )
    if getattr(model, "estimates", False):
        parser.add_argument(
            "--estimate",
            action="store_true",
            help="play the first episode of each part, and tell the calls of models, tokens and "
            "dollars of the whole run",
        )
    parser.add_argument(
        "-h",
        "--help",
        metavar="SECTION",
        nargs="?",
        const="",
        help=f"show the first keys, those of a section, or with {EVERYTHING!r} every key, and exit",
    )
    return parser


def add_set(parser: argparse.ArgumentParser, metavar: str, about: str) -> None:
    """Adds the argument ``--set``, which takes several values and may be repeated."""
    parser.add_argument(
        "--set", metavar=metavar, action="extend", nargs="+", default=[], help=about
    )


def _source(
    arguments: argparse.Namespace, overrides: Sequence[tuple[str, Any]]
) -> document.Document:
    """Returns the document of the configuration with the keys of ``--set``."""
    path: Path | None = arguments.config
    try:
        source = document.Document({}) if path is None else document.read(path.expanduser())
        return source.override(overrides)
    except InputError:
        if arguments.help is None:
            raise
        return document.Document({})  # then --help covers every plug-in


def _one_line(error: BaseException) -> str:
    # Ray raises an actor's error with the traceback in its text and the original as its cause.
    cause = getattr(error, "cause", None)
    return " ".join(str(cause if isinstance(cause, BaseException) else error).split())


def fail(error: Exception, status: int = WRONG_INPUT) -> int:
    """Prints an error in one line; returns the exit status."""
    return _say(status, f"error: {_one_line(error)}")


def _say(status: int, text: str) -> int:
    say(text)
    return status
