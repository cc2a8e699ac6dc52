"""Processes that tests start."""

from contextlib import contextmanager


@contextmanager
def killed_at_end(process):
    """Yields a process; kills it and closes its pipes at the end.

    A pipe that a failed test left open would fail another test, the one in which it is collected
    as garbage.
    """
    with process:
        try:
            yield process
        finally:
            process.kill()
