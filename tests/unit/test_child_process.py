"""A child process: its log, its socket, how it ended, and that nothing is left of it."""

import os
import sys
import textwrap
import threading
import time

import psutil
import pytest

from rollout.api.child_process import ChildProcess, ConnectedProcess, runs

pytestmark = pytest.mark.process

PATIENT_S = 60.0
SOCKET = "import os, signal, socket, sys, time\nend = socket.socket(fileno=int(sys.argv[-1]))\n"


def later(seconds=PATIENT_S):
    return time.monotonic() + seconds


@pytest.fixture
def start(tmp_path):
    """Starts programs, and checks that nothing is left of them."""
    started = []

    def start(text, kind=ChildProcess, **options):
        source = textwrap.dedent(text)
        command = [sys.executable, "-S", "-c", source]
        started.append(kind(command, log=tmp_path / "log", **options))
        return started[-1]

    descriptors = psutil.Process().num_fds()
    yield start
    for program in started:
        program.close(later())
        program.close(later())
        assert not psutil.pid_exists(program.pid)
        assert not runs(program.pid)
    until = later(10)  # threads of other tests open files for a moment, too
    while psutil.Process().num_fds() > descriptors and time.monotonic() < until:
        threading.Event().wait(0.05)
    assert psutil.Process().num_fds() <= descriptors


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("sys.exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
        ("os.kill(os.getpid(), 40)", "killed by signal 40"),
    ],
)
def test_how_it_ended_is_known_before_and_after_it_is_closed(start, end, how):
    program = start(f"import os, signal, sys; print('last words', flush=True); {end}")
    assert program.ended(later()) == how
    program.close(later())
    assert program.ended() == how
    assert program.last_output(5) == "words"


def test_a_program_that_another_reaped_is_reported(start):
    program = start("")
    os.waitpid(program.pid, 0)
    assert program.ended(later()) == "reaped by someone else"


def test_a_program_that_runs_has_not_ended(start):
    program = start("import time; time.sleep(600)")
    assert program.ended() is None
    assert program.ended(later(0.05)) is None
    program.close(later(), patience_s=PATIENT_S)
    assert program.ended() == "killed by SIGTERM"


def test_close_waits_for_its_patience_and_kills_the_group(start):
    program = start("""
        import os, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))
        subprocess.Popen(["sleep", "600"])
        print("ready", flush=True)
        while True:
            time.sleep(1)
    """)
    while "ready" not in program.last_output(100):
        time.sleep(0.01)
    program.close(later(), patience_s=0.2)
    assert program.ended() == "killed by SIGKILL"
    assert program.last_output(100).split() == ["ready", "told"]


def test_a_dead_program_leaves_its_group_to_close(start):
    program = start("""
        import subprocess
        print(subprocess.Popen(["sleep", "600"]).pid)
    """)
    assert program.ended(later()) == "exit code 0"
    assert runs(program.pid)
    program.close(later())
    child = int(program.last_output(100))
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


ECHO = """
import os, sys
read, write = (int(sys.argv[-1]),) * 2 if len(sys.argv) > 1 else (0, 1)
while data := os.read(read, 65536):
    os.write(write, data)
"""


@pytest.mark.parametrize("pipes", [False, True])
def test_bytes_cross_its_connection(start, pipes):
    program = start(ECHO, ConnectedProcess, pipes=pipes)
    program.send(b"four", later())
    assert program.receive(2, later()) == b"fo"
    assert program.receive(2, later()) == b"ur"
    with pytest.raises(TimeoutError):
        program.receive(1, later(0.05))
    with pytest.raises(TimeoutError):
        program.send(bytes(2**24), later(0.5))
    program.close(later())
    with pytest.raises(EOFError):
        program.send(b"more", later())


@pytest.mark.parametrize(
    "end",
    [
        "end.close(); time.sleep(600)",
        "os._exit(0)",
        "os.fork() or time.sleep(600)",  # a child of it keeps the socket open
    ],
)
def test_the_end_of_its_socket_is_noticed(start, end):
    program = start(f"{SOCKET}end.sendall(b'last'); {end}", ConnectedProcess)
    assert program.receive(4, later()) == b"last"
    with pytest.raises(EOFError):
        program.receive(1, later())


def test_a_program_that_is_not_there_leaves_no_descriptor(start, tmp_path):
    before = psutil.Process().num_fds()
    with pytest.raises(FileNotFoundError):
        ConnectedProcess(["/nowhere/game"], log=tmp_path / "log")
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/nowhere/game"], log=tmp_path / "log")
    with pytest.raises(FileNotFoundError):
        ChildProcess([sys.executable], log=tmp_path / "nowhere" / "log")
    assert psutil.Process().num_fds() <= before
