"""Replies of models on disk: what was paid once is never paid again.

Every reply is appended to a file in the folder of the run before it is used. A run that is resumed
finds the replies of the episodes that it plays again, since an episode that begins with the same
seed sends the same requests.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from pathlib import Path

from rollout.api import NO_USAGE, Call
from rollout.errors import ConfigError, DiskFullError, is_disk_full
from rollout.files import open_file, read_lines, remote
from rollout.models.responses import parsed
from rollout.models.spending import charged

_REFUSED = "refused.jsonl"


class Replies:
    """Replies by the digest of their request; thread-safe. Other processes may add to the folder.

    Args:
        folder: where they are; None keeps none.

    Attributes:
        usage: what the replies of the folder count for limits.
        reported: by the name that was asked for, the models that earlier sessions say answered.
        refused: by the name that was asked for, another model that answered later; what it
            answered is in ``refused.jsonl`` of the folder and is never used.

    Raises:
        ConfigError: the folder cannot be read, or is a URL.
    """

    def __init__(self, folder: Path | None) -> None:
        self.usage = NO_USAGE
        self.reported: dict[str, set[str]] = {}
        self.refused: dict[str, str] = {}
        self._folder, self._file = folder, -1
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int, int]] = {}  # file, offset and length, by digest
        self._handles: list[int] = []
        self._end = 0
        if folder is None:
            return
        if said := remote(str(folder)):
            raise ConfigError(f"replies: {said}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in sorted(folder.glob("*.jsonl")):
                self._read(path)
        except OSError as error:
            raise ConfigError(f"the replies in {folder} cannot be read: {error}") from error

    def __len__(self) -> int:
        return len(self._places)

    def _read(self, path: Path) -> None:
        with open_file(path) as file:
            self._handles.append(os.dup(file.fileno()))
        offset = 0
        for line in read_lines(path):
            if not line.endswith(b"\n"):
                return  # a crash cut it
            begin, offset = offset, offset + len(line)
            with contextlib.suppress(
                ValueError, LookupError, TypeError, AttributeError
            ):  # a damaged line is no reply
                data = parsed(line)
                reply = Call.from_json(data["reply"])
                if _is_failure(reply):
                    continue  # another call is made
                self.usage += charged(reply)
                if path.name == _REFUSED:
                    self.refused[reply.asked] = reply.reported
                    continue
                self._places[data["request"]] = (len(self._handles) - 1, begin, len(line))
                if reply.asked and reply.reported:
                    self.reported.setdefault(reply.asked, set()).add(reply.reported)

    def get(self, request: str) -> Call | None:
        """Returns the reply to a request that has this digest, or None."""
        with self._lock:
            place = self._places.get(request)
            if place is None:
                return None
            number, offset, length = place
            return Call.from_json(parsed(os.pread(self._handles[number], length, offset))["reply"])

    def refuse(self, request: str, reply: Call) -> None:
        """Keeps a reply of another model than in earlier sessions, which is not to be used.

        Raises:
            OSError: it cannot be written.
        """
        self.refused[reply.asked] = reply.reported
        if self._folder is not None:
            with self._lock, (self._folder / _REFUSED).open("ab", buffering=0) as file:
                file.write(_line(request, reply))

    def add(self, request: str, reply: Call) -> None:
        """Adds a reply; once it returns, the reply survives the death of the process.

        Raises:
            DiskFullError: the disk is full.
            OSError: it cannot be written.
        """
        if self._folder is None:
            return
        data = _line(request, reply)
        with self._lock:
            try:
                if self._file < 0:
                    self._begin(self._folder)
                if os.write(self._file, data) < len(data):
                    os.ftruncate(self._file, self._end)
                    raise DiskFullError("a reply could not be written completely")
            except OSError as error:
                if is_disk_full(error):
                    raise DiskFullError(f"replies of models: {error}") from error
                raise
            self._places[request] = (len(self._handles) - 1, self._end, len(data))
            self._end += len(data)

    def _begin(self, folder: Path) -> None:
        path = folder / f"{os.getpid()}-{time.time_ns()}.jsonl"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._handles.append(self._file)


def _is_failure(reply: Call) -> bool:
    """Whether a server failed, in the replies of runs that took that for an empty answer."""
    answered = reply.answer or reply.reasoning or reply.tools or reply.output_tokens
    return not answered and reply.finish in ("", "error")


def _line(request: str, reply: Call) -> bytes:
    data = {"request": request, "reply": reply.as_json()}
    return (json.dumps(data, ensure_ascii=True) + "\n").encode()
