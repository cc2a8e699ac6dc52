"""The folder of a Ray cluster of our own, on this machine."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path

from rollout.host.processes import RAY_TMPDIR, owned_workdir, remove_workdir

log = logging.getLogger(__name__)

_PREFIX = "gamut-ray-"
_SESSION = "r"  # short, since it is part of the paths of sockets
_LONGEST = 107  # bytes in the path of a socket, see unix(7)
# What comes after the folder of temporary files in the longest such path.
_AFTER = (
    f"/{_PREFIX}12345678/{_SESSION}/session_2026-01-01_00-00-00_123456_1234567/sockets/plasma_store"
)
_REMOVE_S = 5.0  # for Ray's processes to end, which write their logs until then
_AGAIN_S = 0.1


def private_folder() -> Path:
    """Returns a new folder of mode 0700 for the files of a cluster; removed with this process.

    Ray gives every folder it makes mode 0777, so another user could replace the socket of its
    raylet, and would get the connections of its processes.
    """
    wanted = Path(os.environ.get(RAY_TMPDIR) or tempfile.gettempdir())
    room = _LONGEST - len(_AFTER)
    place = wanted
    if len(os.fsencode(wanted)) > room:
        place = Path("/tmp")  # noqa: S108 - the folder in it is private
        log.warning(
            "Ray's files are in %s, because the path of %s is too long for its sockets; set %s to "
            "a folder whose path has at most %d bytes to have them elsewhere",
            *(place, wanted, RAY_TMPDIR, room),
        )
    folder = owned_workdir(_PREFIX, place)
    atexit.register(remove_workdir, folder)
    return folder


def session_folder(private: Path) -> Path:
    """Returns the path of Ray's own files in a private folder."""
    return private / _SESSION


def remove_session(private: Path) -> None:
    """Removes Ray's own files, after Ray was shut down; leaves its token. Never raises."""
    folder = session_folder(private)
    for _ in range(int(_REMOVE_S / _AGAIN_S)):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        threading.Event().wait(_AGAIN_S)
