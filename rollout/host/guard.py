"""Guards one game: when its host ends for any reason, the game and all its subprocesses are ended.

Started by ``rollout.host.guarded``, by its path and with ``-S -I``. One is started per game and
every import costs time, so it imports little, and only from the standard library.

    guard.py CONTROL REPORT NAMESPACE DESCRIPTORS NAME=VALUE... -- COMMAND...

``CONTROL`` is a pipe whose other end only the host has. When it closes, the host has ended: the
tree gets TERM, and KILL a second later. A byte in it requests KILL at once. ``REPORT`` is a pipe to
the host, with one line per event: ``guard PID`` and ``game PID`` at the start, ``ended STATUS
PEAK_KB`` when the game has ended, ``done`` when no process is left.

It forks twice, so that it is not a child of the host: Ray kills a worker's children first. It is
the subreaper of its tree, so that a process which leaves its session or whose parent dies stays
below it, and "no child left" means that no process is left. The game gets PDEATHSIG from the
guard and not from the host, where the signal would come when the *thread* that launched the game
ends.

The output of the tree goes to the guard's own standard output, a file. The guard bounds its size.
"""

import ctypes
import os
import select
import signal
import stat
import sys
import time

GRACE_S = 1.0  # between TERM and KILL
GIVE_UP_S = (
    30.0  # a process that KILL does not end by then waits in the kernel; it dies when that ends
)
_PASS_S = 0.02  # between two rounds of KILL, or of cuts of an output that grows fast
OUTPUT_BYTES = 16 << 20  # above which the middle of the output is removed
KEPT_BYTES = 1 << 20  # of its begin, and of its end
_OUTPUT_S = 0.5  # between two looks at its size
_RELEASE_S = 5.0  # for an exiting host to release its folders
_EXITING = 4  # PF_EXITING in /proc/PID/stat

_SET_PDEATHSIG, _SET_SUBREAPER = 1, 36  # prctl
_NEWNS, _NEWUSER, _NEWPID = 0x00020000, 0x10000000, 0x20000000  # unshare
_NOSUID, _NODEV, _NOEXEC, _REC, _SLAVE = 2, 4, 8, 0x4000, 0x80000  # mount

_libc = ctypes.CDLL(None, use_errno=True)


def read(path: str) -> bytes:
    """Returns a small file of /proc; empty if the process has ended."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, 1 << 20)
    except OSError:  # the process has ended meanwhile
        return b""
    finally:
        os.close(file)


def children(pid: int) -> list[int]:
    """Returns the processes that any thread of ``pid`` is the parent of."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - pathlib is slow to import
    except OSError:
        return []
    files = [read(f"/proc/{pid}/task/{thread}/children") for thread in threads]
    return [int(number) for file in files for number in file.split()]


def descendants(pid: int) -> list[int]:
    """Returns every process below ``pid``, nearest first."""
    found = dict.fromkeys(children(pid))
    level = list(found)
    while level:
        level = [each for parent in level for each in children(parent) if each not in found]
        found.update(dict.fromkeys(level))
    return list(found)


def status_field(pid: int, name: str) -> list[int]:
    """Returns the numbers in a line of /proc/PID/status; none if the process has ended."""
    for line in read(f"/proc/{pid}/status").decode(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return [int(each) for each in value.split() if each.isdigit()]
    return []


def peak_kb(pids: list[int]) -> int:
    """Returns the highest peak of resident memory among the processes, in KiB."""
    return max((each for pid in pids for each in status_field(pid, "VmHWM")), default=0)


def enter_namespaces() -> None:
    """Makes the next fork the first process of a PID namespace; all others in it die with it.

    Raises:
        OSError: not permitted, even in a new user namespace.
    """
    uid, gid = os.getuid(), os.getgid()
    if _libc.unshare(_NEWPID | _NEWNS) == 0:
        return
    _check(_libc.unshare(_NEWUSER | _NEWPID | _NEWNS), "unshare")
    # The game keeps its user. The kernel requires that groups are given up first.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(file, text.encode())
        os.close(file)


def mount_proc() -> None:
    """Mounts /proc for the PID namespace, with the process numbers inside it.

    Raises:
        OSError: not permitted, as in most containers.
    """
    _check(_libc.mount(b"none", b"/", None, _REC | _SLAVE, None), "make mounts private")
    _check(_libc.mount(b"proc", b"/proc", b"proc", _NOSUID | _NODEV | _NOEXEC, None), "mount /proc")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def cut_output(descriptor: int) -> bool:
    """Removes the middle of a file that is larger than ``OUTPUT_BYTES``; returns whether it did.

    Its begin and its end stay, with a line between them that says what is missing. What is written
    between the last read and the cut is lost. Nothing is done to what is not a file.

    Args:
        descriptor: open for appending, as all others that write to the file.
    """
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size <= OUTPUT_BYTES:
            return False
        reader = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            end = os.pread(reader, KEPT_BYTES, about.st_size - KEPT_BYTES)
            end += os.pread(reader, KEPT_BYTES, about.st_size)  # what was written meanwhile
        finally:
            os.close(reader)
        os.ftruncate(descriptor, KEPT_BYTES)
        limit = OUTPUT_BYTES >> 20
        notice = f"\n[Gamut removed the middle of this output, which exceeded {limit} MiB]\n"
        os.write(descriptor, notice.encode() + end)
    except OSError:  # a full disk, or no /proc; the game continues
        return False
    return True


def _report(report: int, line: str) -> None:
    try:
        os.write(report, line.encode() + b"\n")
    except OSError:  # the host has ended, which the control pipe shows too
        return


class _Guard:
    """The game, its tree, and the two pipes to the host."""

    def __init__(self, control: int, report: int) -> None:
        self.control, self.report = control, report
        self.game, self.ended, self.peak = 0, False, 0
        # Wakes up whenever a process of the tree ends; Python requires a handler.
        self.wakeup, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        """Launches the game in its own session."""
        guard = os.getpid()
        self.game = os.fork()
        if self.game:
            return
        try:
            os.setsid()
            for number in (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == guard:  # otherwise it died before, and no signal comes
                os.execvpe(command[0], command, environment)  # noqa: S606 - what the user configured
        except OSError as error:
            os.write(2, f"{command[0]} cannot be started: {error}\n".encode())
        finally:
            os._exit(127)

    def reap(self) -> bool:
        """Reaps ended processes of the tree; returns whether any is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.peak = max(self.peak, usage.ru_maxrss)
            if pid == self.game:
                self.ended = True
                self.peak = max(self.peak, peak_kb(descendants(os.getpid())))
                _report(self.report, f"ended {status} {self.peak}")

    def watch(self) -> float:
        """Waits for the end of the game or of the host; returns the grace time for the tree."""
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        poller.register(self.wakeup, select.POLLIN)
        while self.reap() and not self.ended:
            pause_s = _PASS_S if cut_output(_OUTPUT) else _OUTPUT_S
            ready = [descriptor for descriptor, _ in poller.poll(1000 * pause_s)]
            if self.wakeup in ready:
                os.read(self.wakeup, 512)
            if self.control in ready:
                return 0.0 if os.read(self.control, 1) else GRACE_S
        return 0.0  # no one uses what a dead game leaves running

    def end(self, grace_s: float) -> None:
        """Ends the tree."""
        poller = select.poll()
        poller.register(self.wakeup, select.POLLIN)
        kill_at = time.monotonic() + grace_s
        if grace_s > 0:
            _signal_all(signal.SIGTERM)
        while self.reap():
            left = kill_at - time.monotonic()
            if left < -GIVE_UP_S:
                return
            if left <= 0:
                _signal_all(signal.SIGKILL)
            if poller.poll(1000 * (left if left > 0 else _PASS_S)):
                os.read(self.wakeup, 512)
        cut_output(_OUTPUT)
        _report(self.report, "done")


_OUTPUT = 1  # standard output
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _signal_all(number: int) -> None:
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue  # it has ended meanwhile, or changed its user and may not be signalled


def remove_folders(folders: str, owner: str) -> None:
    """Removes the folders of a dead host, if this was its last game.

    Args:
        folders: their paths, separated by ``:``.
        owner: mark of the host.
    """
    mark = f"GAMUT_OWNER={owner}".encode()
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to import
        if name.isdigit() and mark in read(f"/proc/{name}/environ").split(b"\0"):
            return
    import fcntl  # noqa: PLC0415 - most guards need neither
    import shutil  # noqa: PLC0415

    for folder in filter(None, folders.split(":")):
        try:
            lock = os.open(f"{folder}/.gamut-owner", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # another process has removed it
            continue
        try:
            end = time.monotonic() + _RELEASE_S * _is_exiting(owner.partition(":")[0])
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= end:
                        raise
                    select.select([], [], [], _PASS_S)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its host is alive, or another guard removes it
            continue
        finally:
            os.close(lock)


def _is_exiting(pid: str) -> bool:
    """True if a process is exiting; the kernel may close its pipes before its locked files."""
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(fields) and (fields[0] == b"Z" or bool(int(fields[6]) & _EXITING))


def _closed(control: int) -> bool:
    poller = select.poll()
    poller.register(control, select.POLLIN)
    return bool(poller.poll(0))


def _probe() -> int:
    """Returns 0 if a namespace can be created; tries it, since permissions have many sources."""
    enter_namespaces()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    mount_proc()
    return 0


def main(arguments: list[str]) -> int:
    """Returns the exit status, once no process is left."""
    if arguments == ["probe"]:
        return _probe()
    control, report = int(arguments[0]), int(arguments[1])
    namespace = arguments[2] == "namespace"
    descriptors = [int(each) for each in arguments[3].split(",") if each]
    at = arguments.index("--")
    marks = dict(each.split("=", 1) for each in arguments[4:at])
    for descriptor in (control, report):
        os.set_inheritable(descriptor, False)
    if namespace:
        enter_namespaces()
    pid = os.fork()
    if pid:
        _report(report, f"guard {pid}")
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # some hosts start guards with signals blocked
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    _libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    if namespace:
        mount_proc()
    guard = _Guard(control, report)
    if _closed(control):  # the host has cancelled the launch, or has died
        _report(report, "done")
        return 0
    guard.start(arguments[at + 1 :], os.environ | marks)
    grace_s = 0.0
    try:
        _report(report, f"game {guard.game}")
        for descriptor in descriptors:  # the host must see them close when the game ends
            os.close(descriptor)
        grace_s = guard.watch()
    finally:
        guard.end(grace_s)
        if grace_s > 0:  # the host has ended
            remove_folders(marks.get("GAMUT_FOLDERS", ""), marks.get("GAMUT_OWNER", ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
