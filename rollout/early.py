"""Handles signals in the first seconds of a script, while it imports its modules.

This module imports only what Python has already loaded, so that scripts can import it first.
"""

import _signal  # type: ignore[import-not-found] # `signal` itself takes milliseconds to import
import os

HANDLED = {2: "SIGINT", 15: "SIGTERM", 1: "SIGHUP"}

_came: list[int] = []


def exit_at_once(signum: int, _: object) -> None:
    """Prints the signal and exits with status 128 + its number, without cleaning up.

    Nothing was made yet, and an exception in the middle of an import may leave a native library
    half initialised, which crashes at exit.
    """
    if _came:  # a second one, while the first is handled
        return
    _came.append(signum)
    try:
        os.write(2, f"stopped by {HANDLED[signum]}\n".encode())
    finally:
        os._exit(128 + signum)


def install() -> None:
    """Makes signals end the process at once. An ignored SIGHUP, as by ``nohup``, stays ignored."""
    for signum in HANDLED:
        if signum != 1 or _signal.getsignal(1) != _signal.SIG_IGN:
            _signal.signal(signum, exit_at_once)
