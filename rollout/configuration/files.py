"""Writing small files so that a crash leaves the old one or the new one, never half of one.

And keeping two processes from writing the same.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK_POLL_S = 0.2


def write_atomically(path: Path, text: str) -> None:
    """Replaces a text file in one step, and has it on the disk on return.

    The text is first written to a file ``.<name>.tmp`` beside it.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name is part of the folder, not of the file
    finally:
        os.close(folder)


@contextmanager
def locked(path: Path, wait_s: float) -> Iterator[None]:
    """Holds the lock that a file stands for; the kernel gives it back however its holder ends.

    Where a file system has no locks, nobody is kept out.

    Args:
        path: of the file. It stays: removing it would let two processes lock two files of one name.
        wait_s: how long its holder may take to give it back.

    Raises:
        BlockingIOError: another has it; ``strerror`` says who.
        OSError: the file cannot be opened or written.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if _taken(handle, wait_s):
            who = {"pid": os.getpid(), "host": socket.gethostname()}
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(who).encode(), 0)
        yield
    finally:
        os.close(handle)


def _taken(handle: int, wait_s: float) -> bool:
    deadline, pause = time.monotonic() + wait_s, threading.Event()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise BlockingIOError(errno.EWOULDBLOCK, _holder(handle)) from None
            pause.wait(_LOCK_POLL_S)
        except OSError:
            return False
        else:
            return True


def _holder(handle: int) -> str:
    try:
        who = json.loads(os.pread(handle, 4096, 0))
        return f"process {who['pid']} on {who['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
