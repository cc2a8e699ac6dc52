"""Calls a function in a new process with a deadline, for properties known only from a running game.

The constructor of a game may hang, exit or crash. ``probe_in_subprocess`` calls it in
``python -m rollout.api.probing DESCRIPTOR SECONDS``, which ends in any case.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe
from typing import Any, TypeVar

from rollout.api.child_process import REAP_S, ChildProcess
from rollout.errors import GameStartError, GamutError, located, trace_of

log = logging.getLogger(__name__)

T = TypeVar("T")

DEADLINE_S = 300.0
_SAY_S = 10.0  # after which a slow game is mentioned
_CLOSE_S = 5.0

supervised = False
"""True in the process of a single game, which may hang or end, since its host watches it."""


class NotImportable(Exception):  # noqa: N818 - reads as what happened
    """The function cannot be imported in another process, e.g. since it is in the main script."""


def probe_in_subprocess(game: str, function: Callable[..., Iterator[T]], *arguments: Any) -> T:
    """Returns the first value that a generator function yields in a new process.

    What follows the ``yield``, the end of the game, is given a few seconds and may fail. Function,
    arguments and value must be picklable.

    Args:
        game: name of the game, for messages.
        function: the generator function; of a module that can be imported.
        arguments: its arguments.

    Raises:
        NotImportable: it cannot be sent to another process; call it here.
        GameStartError: it raised an error, ended its process, or yielded nothing in time.
        GamutError: it raised this.
    """
    ours, theirs = Pipe()
    with ours:
        with theirs:
            number = theirs.fileno()
            seconds = str(int(DEADLINE_S + _CLOSE_S))
            child = ChildProcess(
                [sys.executable, "-m", __name__, str(number), seconds],
                stdout=2,  # what a game prints is no output of ours
                pass_fds=[number],
            )
        how = None
        try:
            kind, value = _call(ours, game, function, arguments)
            if kind == "value":
                ours.poll(_CLOSE_S)  # until it has ended
            elif kind == "ended":
                how = child.ended(time.monotonic() + REAP_S) or "it closed its connection"
        finally:
            child.close(time.monotonic() + _CLOSE_S)
    if kind == "value":
        found: T = value
        return found
    if kind == "error":
        raise value
    if kind == "ended":
        value = f"its process ended while it was made ({how})", ""
    failed = GameStartError(f"{game} did not come up: {value[0]}")
    failed.trace = value[1]
    raise failed


def _call(
    connection: Connection, game: str, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[str, Any]:
    """Returns the kind and the value of the answer."""
    try:
        connection.send(sys.path)
        connection.send((function, arguments))
    except (OSError, EOFError):
        return "ended", None
    except Exception as error:  # of an object that cannot be pickled
        raise NotImportable(str(error)) from error
    if not connection.poll(min(_SAY_S, DEADLINE_S)):
        log.warning(
            "%s is made to learn its spaces, which takes longer than %g s; waiting up to %g s",
            game,
            _SAY_S,
            DEADLINE_S,
        )
        if not connection.poll(max(0.0, DEADLINE_S - _SAY_S)):
            return "raised", (
                f"it was not made within {DEADLINE_S:g} s; does its constructor wait?",
                "",
            )
    try:
        kind, value = connection.recv()
    except (OSError, EOFError):
        return "ended", None
    if kind == "unknown":
        raise NotImportable(value)
    return kind, value


def _serve(connection: Connection) -> None:
    """Answers one call."""
    sys.path[:] = connection.recv()
    try:
        function, arguments = connection.recv()
    except Exception as error:  # noqa: BLE001 - modules may raise anything when they are imported
        connection.send(("unknown", f"{type(error).__name__}: {error}"))
        return
    calls: Iterator[Any] = iter(())
    try:
        calls = function(*arguments)
        answer = "value", next(calls)
    except GamutError as error:
        answer = "error", error
    except BaseException as error:  # noqa: BLE001 - also exits; told to the caller
        answer = "raised", (located(type(error).__name__, str(error), error), trace_of(error))
    try:
        connection.send(answer)
    except Exception as error:  # noqa: BLE001 - of an object that cannot be pickled
        connection.send(("unknown", f"{type(error).__name__}: {error}"))
    if answer[0] == "value":
        next(calls, None)


def main() -> None:
    """Serves one call."""
    # By its default a signal ends the process, whatever the game does.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(sys.argv[2]))
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)  # ours alone, so that the caller sees our end
    _serve(Connection(descriptor))


if __name__ == "__main__":
    main()
