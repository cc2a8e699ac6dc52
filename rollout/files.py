"""Small files: atomic writes, whole lines, tolerant reads, and locks between processes."""

from __future__ import annotations

import argparse
import errno
import fcntl
import io
import itertools
import json
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from rollout.errors import OutOfTurnError, UnreadableError

_REMOTE = re.compile(
    r"(s3[an]?|gs|gcs|abfss?|adl|az|azure|wasbs?|hdfs|viewfs|webhdfs|dbfs|hf|oci|oss|cos|r2|b2|swift"
    r"|https?|file|ftps?|sftp|scp|ssh|smb|nfs|webdavs?|davs?):/",
    re.IGNORECASE,
)
_STORE = re.compile(
    r"(s3a?|gs|gcs|abfss?|adl|az|oci|oss|memory):/+(?=[^/])",
    re.IGNORECASE,
)
_BLOCK = 1 << 16  # bytes read at once
MOST_BYTES = 1 << 26
"""Size of the largest document, and of the longest line, that is read, in bytes."""
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


def store_address(path: Path | str) -> str:
    """Returns the address in a store, e.g. ``s3://bucket/runs``; empty for another path.

    A ``Path`` that was made of an address has one slash less.
    """
    found = _STORE.match(str(path))
    return "" if found is None else f"{found[1].lower()}://{str(path)[found.end() :].rstrip('/')}"


def remote(path: str) -> str:
    """Returns what is wrong with a path if it is a URL, else nothing.

    As a path, ``s3://bucket/runs`` would be a folder ``s3:`` beside the user's other ones.
    """
    found = _REMOTE.match(path)
    if found is None:
        return ""
    return (
        f"expected a path of this machine, got {path}; {found[1]} is not supported here: use a "
        f"local folder, or mount the remote one and give the path where it is mounted"
    )


def local_path(text: str) -> Path:
    """Returns the path in an argument, as the ``type`` of one.

    Raises:
        ArgumentTypeError: it is the URL of a file or a bucket.
    """
    if said := remote(text):
        raise argparse.ArgumentTypeError(said)
    return Path(text)


def parse_json(text: str | bytes) -> Any:
    """Returns the value of a JSON text.

    Raises:
        ValueError: it is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def open_file(path: Path) -> io.BufferedReader:
    """Opens a file for reading.

    Raises:
        FileNotFoundError, NotADirectoryError: there is none.
        UnreadableError: it cannot be opened, or is something else than a file: a folder, a device
            or a pipe, reading from which might never end.
    """
    try:
        # A pipe that no one writes to is opened without waiting.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise UnreadableError(error.errno, error.strerror, str(path)) from error
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise _no_file(path)


def _no_file(path: Path) -> UnreadableError:
    said = "expected a file, got a folder, a device or a pipe"
    return UnreadableError(errno.EINVAL, said, str(path))


def require_file(path: Path) -> None:
    """Checks that a file can be read, for libraries that open it by its name; see ``open_file``."""
    open_file(path).close()


def read_document(path: Path) -> bytes:
    """Returns the contents of a file that describes something, such as ``run.json``.

    Raises:
        OSError: as of ``open_file``; or it has more than ``MOST_BYTES``.
    """
    with open_file(path) as file:
        return _limited(file.read(MOST_BYTES + 1), "bytes", path)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file with their ends, which an incomplete last one lacks.

    Raises:
        OSError: as of ``open_file``; or a line has more than ``MOST_BYTES``.
    """
    with open_file(path) as file:
        while line := file.readline(MOST_BYTES + 1):
            yield _limited(line, "bytes in a line", path)


def _limited(data: bytes, what: str, path: Path) -> bytes:
    if len(data) <= MOST_BYTES:
        return data
    # Not EFBIG, which is how a full disk is told.
    said = f"expected at most {MOST_BYTES:,} {what}, got more"
    raise UnreadableError(errno.EINVAL, said, str(path))


def set_aside(path: Path, why: str = "damaged") -> Path:
    """Renames a file or folder so that it is not read any more; returns its new path."""
    names = (f"{path.name}.{why}{n or ''}" for n in itertools.count())
    return path.rename(next(t for name in names if not (t := path.with_name(name)).exists()))


def temporary(path: Path) -> Path:
    """Returns the name that a file has until it is complete."""
    return path.with_name(f".{path.name}.tmp")


def sync_file(path: Path) -> None:
    """Forces a file, or the names in a folder, onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_in_place(path: Path, *, fsync: bool = True) -> None:
    """Gives a complete temporary file its name; a crash leaves the old file or the new one."""
    if fsync:
        sync_file(temporary(path))
    temporary(path).replace(path)
    if fsync:
        sync_file(path.parent)  # the new name is stored in the folder, not in the file


@contextmanager
def replacing(path: Path, *, fsync: bool = True) -> Iterator[Path]:
    """Gives the name under which a new file is written; it replaces the old one at the end.

    Raises:
        OSError: it cannot be written; the previous file is unchanged.
    """
    try:
        yield temporary(path)
        put_in_place(path, fsync=fsync)
    except BaseException:  # a signal, too
        temporary(path).unlink(missing_ok=True)
        raise


def write_atomically(path: Path, text: str, *, fsync: bool = True) -> None:
    """Replaces a text file atomically; with ``fsync``, it is on disk on return.

    Raises:
        OSError: it cannot be written; the previous file is unchanged.
    """
    with replacing(path, fsync=fsync) as new:
        new.write_text(text, encoding="utf-8")


def cut_last_line(file: BinaryIO) -> int:
    """Removes an incomplete last line of a file; returns the number of bytes removed."""
    end = size = file.seek(0, os.SEEK_END)
    found = -1
    while end and found < 0:
        begin = max(0, end - _BLOCK)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        end = begin + found + 1
    if end < size:
        file.truncate(end)
    return size - end


class LineFile:
    """A file to which whole lines are appended; a crash leaves at most an incomplete last one.

    Args:
        path: the file; created if missing.

    Raises:
        OSError: it cannot be opened, or is a device or a pipe.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Unbuffered, so that the kernel has a line as soon as write() returns.
        self._file = path.open("a+b", buffering=0)
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self._file.close()
            raise _no_file(path)

    def cut(self) -> int:
        """Removes an incomplete last line; returns the number of bytes removed."""
        return cut_last_line(self._file)

    def append(self, text: str) -> None:
        """Appends complete lines.

        Raises:
            OutOfTurnError: the file is closed.
            OSError: writing failed; no part of a line remains. Also if the file was removed or
                moved, where no one would find the line.
        """
        if self._file.closed:
            raise OutOfTurnError(f"{self.path} was closed; a line came too late")
        self.path.stat()
        data = text.encode()
        end = self._file.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            self._file.truncate(end)  # an incomplete line would damage the next one too
            raise

    def close(self) -> None:
        """Closes the file. Idempotent."""
        self._file.close()


@contextmanager
def locked(path: Path, wait_s: float, purpose: str = "") -> Iterator[None]:
    """Holds a file lock; the kernel releases it when the process ends, for whatever reason.

    On a file system without locks, it excludes no one.

    Args:
        path: the lock file; it names the holder and is never removed.
        wait_s: seconds to wait for another process to release it.
        purpose: purpose of the lock, for messages of other processes.

    Raises:
        BlockingIOError: another process holds it; ``strerror`` says which.
        OSError: the file cannot be opened or written.
    """

    def sign(handle: int) -> None:
        who = {"pid": os.getpid(), "host": socket.gethostname(), "purpose": purpose}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(who).encode(), 0)

    lock = FileLock(
        path, timeout=wait_s, thread_local=False, fallback_to_soft=False, on_acquired=sign
    )
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(errno.EWOULDBLOCK, holder_of(path)) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        yield
    finally:
        lock.release()


def live_holder_of(path: Path) -> str | None:
    """Returns the process that holds the lock of a file now, or None.

    Raises:
        OSError: the file cannot be opened.
    """
    try:
        with open_file(path) as file:
            # Shared, which FileLock does not offer: readers that ask do not shut each other out,
            # need no permission to write, and leave the file as it is.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return holder_of(path)
    return None


def holder_of(path: Path) -> str:
    """Returns the process that holds the lock of a file, or held it last."""
    try:
        who = parse_json(read_document(path))
        purpose = f" ({who['purpose']})" if who["purpose"] else ""
        return f"process {who['pid']} on {who['host']}{purpose}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
