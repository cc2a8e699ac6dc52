"""Ownership of processes and folders: marks, locks and the removal of orphans.

A game and all its subprocesses have marks in their environment: the run, the process that launched
them, and the game. A process id alone is ambiguous, since ids are reused. Together with the start
time it identifies a process of this machine. The PID namespace tells who can check that: processes
of another container are never touched.

Folders are marked by a lock instead: the owner holds it while it lives, and the kernel releases it
however the owner ends. It is a plain flock, not a FileLock: it is held before its file has its
name, it is requested on a descriptor that follows no link, and guards request it too, which import
little.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rollout.host.guard import read

RUN_ID, OWNER, GAME = "GAMUT_RUN_ID", "GAMUT_OWNER", "GAMUT_GAME"
FOLDERS = "GAMUT_FOLDERS"  # of the process that launched it, for the guard to remove
OWNER_FILE = ".gamut-owner"
RAY_TMPDIR = "RAY_TMPDIR"  # where the user wants Ray's files
_PREFIX = "gamut-"
_DIE_S = 2.0  # longest wait of a sweep for processes it has killed
_SHOWN = 200  # characters of a command line
_ROUNDS = 10  # rounds of killing processes that the killed ones had just started

_locks: dict[Path, int] = {}  # folders of this process and the descriptors that hold their locks


@dataclass(frozen=True)
class MarkedProcess:
    """A process that carries the marks of a game.

    Attributes:
        pid: its process id.
        started: its start time in clock ticks since boot, which distinguishes it from a later
            process with the same id.
        run: the run to which it belongs.
        owner: mark of the process that launched the game; see ``owner_mark``.
        game: which game of that owner.
        command: its command line, for human readers.
    """

    pid: int
    started: int
    run: str
    owner: str
    game: str
    command: str


@dataclass(frozen=True)
class Swept:
    """Processes and folders that a sweep removed; after a dry run, those it would remove.

    Attributes:
        processes: games whose owner is dead, and their subprocesses.
        folders: temporary folders whose owner is dead.
        left: processes and folders that could not be removed, with the reason.
    """

    processes: tuple[MarkedProcess, ...] = ()
    folders: tuple[Path, ...] = ()
    left: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.processes or self.folders)

    def lines(self) -> list[str]:
        """Returns one line of text per finding."""
        found = [
            f"process {p.pid} of run {p.run}, owner {p.owner} is dead: {p.command}"
            for p in self.processes
        ]
        found += [f"folder {path}, its owner is dead" for path in self.folders]
        return found + [f"left: {text}" for text in self.left]


def start_time(pid: int) -> int | None:
    """Returns when a process started, in clock ticks since boot; None if it is dead."""
    _, _, rest = read(f"/proc/{pid}/stat").rpartition(b")")  # its name may hold anything
    fields = rest.split()
    if not fields or fields[0] in b"ZX":  # a zombie has ended, and only waits to be reaped
        return None
    return int(fields[19])


def is_stopped(pid: int) -> bool:
    """Returns whether a process is stopped, as by SIGSTOP; one that a debugger holds is not."""
    _, _, rest = read(f"/proc/{pid}/stat").rpartition(b")")
    return rest.split()[:1] == [b"T"]


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def owner_mark() -> str:
    """Returns the mark of this process, ``<pid>:<start time>:<PID namespace>``."""
    return f"{os.getpid()}:{start_time(os.getpid())}:{_namespace()}"


def owner_lives(mark: str) -> bool:
    """Returns False if the owner of a mark is dead; True if it lives or is in another namespace."""
    parts = mark.split(":")
    if len(parts) not in {2, 3} or not all(part.isdigit() for part in parts):
        return True  # not of our making
    if len(parts) == 3 and int(parts[2]) != _namespace():
        return True
    return start_time(int(parts[0])) == int(parts[1])


def game_marks() -> dict[str, str]:
    """Returns the marks for the environment of a game that this process launches.

    The run comes from this process's own ``GAMUT_RUN_ID``; the game gets a name of its own.
    """
    run = os.environ.get(RUN_ID, "unnamed")
    folders = ":".join(str(folder) for folder in list(_locks))
    return {RUN_ID: run, OWNER: owner_mark(), GAME: uuid.uuid4().hex, FOLDERS: folders}


def marked_processes() -> list[MarkedProcess]:
    """Returns every living process of this user that carries the marks of a game."""
    return [
        marked
        for name in os.listdir("/proc")  # noqa: PTH208 - names are all that is wanted
        if name.isdigit() and (marked := _marked(int(name))) is not None
    ]


def _marked(pid: int) -> MarkedProcess | None:
    try:
        if Path(f"/proc/{pid}").stat().st_uid != os.getuid():
            return None
    except OSError:  # it has ended
        return None
    environment = read(f"/proc/{pid}/environ")
    if b"GAMUT_" not in environment:
        return None
    pairs = (each.partition("=") for each in environment.decode(errors="replace").split("\0"))
    marks = {key: value for key, _, value in pairs if key.startswith("GAMUT_")}
    started = start_time(pid)
    if OWNER not in marks or started is None:
        return None
    words = read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
    run, game = marks.get(RUN_ID, "unnamed"), marks.get(GAME, "")
    return MarkedProcess(pid, started, run, marks[OWNER], game, words[:_SHOWN])


def kill_marked(game: str) -> list[MarkedProcess]:
    """Kills every process of the game with that mark; for when its guard has been killed.

    Returns:
        those that were killed.
    """
    return _kill_all(lambda each: each.game == game)


def _kill_all(chosen: Callable[[MarkedProcess], bool]) -> list[MarkedProcess]:
    """Kills until no process is chosen any more, since the dying may still have started others."""
    deadline = time.monotonic() + _DIE_S
    killed: dict[int, MarkedProcess] = {}
    for _ in range(_ROUNDS):
        found = [each for each in marked_processes() if chosen(each)]
        killed |= {each.pid: each for each in found}
        dying = [descriptor for each in found if (descriptor := _kill(each)) is not None]
        for descriptor in dying:
            select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            os.close(descriptor)
        if not dying:
            break
    return list(killed.values())


def _kill(process: MarkedProcess) -> int | None:
    """Kills one process, never a later one of its number; returns a descriptor of its end."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    try:
        if start_time(process.pid) == process.started:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            return descriptor
    except OSError:  # it has ended, or has become another user
        pass
    os.close(descriptor)
    return None


def owned_workdir(prefix: str, parent: Path | None = None) -> Path:
    """Returns a new temporary folder that a sweep removes once this process has died.

    Args:
        prefix: of its name, which must begin with ``gamut-``.
        parent: where; by default where temporary files go.
    """
    assert prefix.startswith(_PREFIX), f"expected a prefix that begins with {_PREFIX}: {prefix!r}"
    for gone in [path for path in list(_locks) if not path.exists()]:
        _unlock(gone)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    # Under another name until it is locked: a sweep must never find it without its lock.
    draft = folder / f"{OWNER_FILE}.new"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, owner_mark().encode())
    draft.rename(folder / OWNER_FILE)
    _locks[folder] = descriptor
    return folder


def remove_workdir(folder: Path) -> None:
    """Removes a folder of ``owned_workdir`` and all that is in it. Never raises."""
    shutil.rmtree(folder, ignore_errors=True)
    _unlock(folder)


def _unlock(folder: Path) -> None:
    descriptor = _locks.pop(folder, None)  # one step, since threads may do the same
    if descriptor is not None:
        os.close(descriptor)


def sweep_orphans(*, dry_run: bool = False, temporary: Path | None = None) -> Swept:
    """Kills and removes what dead owners have left behind on this machine.

    Games whose owner lives are left alone, as is everything of other users and other containers.
    Takes a few milliseconds, so every run begins with it.

    Args:
        dry_run: whether nothing is killed or removed.
        temporary: where our temporary folders are; by default where temporary files go, and where
            those of Ray do.
    """
    left: list[str] = []
    processes = _sweep_processes(left, dry_run=dry_run)  # first: they may be writing the folders
    ray = os.environ.get(RAY_TMPDIR) or "/tmp"  # noqa: S108 - ours are private
    places = {temporary} if temporary else {Path(each) for each in (tempfile.gettempdir(), ray)}
    folders = [f for place in sorted(places) for f in _sweep_folders(place, left, dry_run=dry_run)]
    return Swept(tuple(processes), tuple(folders), tuple(left))


def _sweep_processes(left: list[str], *, dry_run: bool) -> list[MarkedProcess]:
    def orphaned(each: MarkedProcess) -> bool:
        return each.pid != os.getpid() and not owner_lives(each.owner)

    if dry_run:
        return [each for each in marked_processes() if orphaned(each)]
    killed = _kill_all(orphaned)
    left += [
        f"process {each.pid} was killed and has not ended yet: {each.command}"
        for each in killed
        if start_time(each.pid) == each.started
    ]
    return killed


def _sweep_folders(temporary: Path, left: list[str], *, dry_run: bool) -> list[Path]:
    found = []
    for folder in sorted(temporary.glob(f"{_PREFIX}*/")):
        lock = _lock_of_orphan(folder)
        if lock is None:
            continue
        found.append(folder)
        if not dry_run:
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                left.append(f"folder {folder} cannot be removed: check whose its files are")
        os.close(lock)
    return found


def _lock_of_orphan(folder: Path) -> int | None:
    """Returns a descriptor that holds the lock of a folder whose owner is dead; else None."""
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return None
        descriptor = os.open(folder / OWNER_FILE, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # no owner was ever named, or it is just being removed
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
