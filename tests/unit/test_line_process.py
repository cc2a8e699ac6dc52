"""A program that speaks lines of JSON: its death, its silence, its nonsense, and its end."""

import sys
import textwrap
import threading
import time

import numpy as np
import psutil
import pytest

from rollout.api import LineProcess
from rollout.errors import GameCrashed, GameStartError, GameTimeout

pytestmark = pytest.mark.process

ECHO = """
    for line in sys.stdin:
        print(line, end="", flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """Starts programs, and checks that nothing is left of them."""
    started = []

    def start(text):
        source = "import json, os, signal, subprocess, sys, time\n" + textwrap.dedent(text)
        command = [sys.executable, "-S", "-c", source]
        started.append(LineProcess(command, cwd=tmp_path))
        return started[-1]

    descriptors = psutil.Process().num_fds()
    threads = threading.active_count()
    yield start
    for program in started:
        program.close(1.0)
        assert not psutil.pid_exists(program.pid)
    # Not equal: what another test left may be closed meanwhile.
    assert threading.active_count() <= threads
    assert psutil.Process().num_fds() <= descriptors


def ask(program, request, timeout_s=20.0):
    return program.ask(request, timeout_s=timeout_s)


def test_each_request_gets_its_answer(start, tmp_path):
    program = start(ECHO)
    for request in ({"step": [1, 2]}, [], "text", None, "ü\n\u2028"):
        assert ask(program, request) == request
    assert ask(program, {"move": np.arange(3), "x": np.float32(0.5)}) == {
        "move": [0, 1, 2],
        "x": 0.5,
    }
    where = start("sys.stdin.readline(); print(json.dumps(os.getcwd()), flush=True)")
    assert ask(where, "where") == str(tmp_path)


def test_a_request_that_is_no_data_is_refused_and_not_sent(start):
    program = start(ECHO)
    with pytest.raises(TypeError, match="expected JSON-able data in a request, got set"):
        ask(program, {1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        ask(program, float("nan"))
    assert ask(program, 1) == 1


def test_lines_may_be_longer_than_a_pipe(start):
    program = start(ECHO)
    long = "x" * 5_000_000  # both sides write at the same time
    assert ask(program, long) == long
    assert ask(program, 1) == 1


def test_an_answer_may_come_in_parts(start):
    program = start("""
        sys.stdin.readline()
        for part in ('{"a"', ': 1', '}'):
            sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.05)
        print(flush=True)
        sys.stdin.readline()
    """)
    assert ask(program, {}) == {"a": 1}


def test_a_program_that_does_not_exist(tmp_path):
    with pytest.raises(GameStartError, match=r"no-such-game.*cannot be started: .*No such file"):
        LineProcess(["no-such-game", "--fast"], cwd=tmp_path)


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("sys.exit(3)", "ended, with exit code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "ended, killed by SIGSEGV"),
        ("os.kill(os.getpid(), 40)", "ended, killed by signal 40"),
        ("sys.stdout.write('[1, 2'); sys.stdout.flush(); os._exit(0)", r"code 0 after '\[1, 2'"),
        ("raise KeyError('lamp')", r"exit code 1; its last lines on stderr: .* KeyError: 'lamp'"),
    ],
)
def test_death_is_reported_with_its_cause(start, end, how):
    program = start(f"""
        print(sys.stdin.readline(), end="", flush=True)
        sys.stdin.readline()
        {end}
    """)
    ask(program, 1)
    with pytest.raises(GameCrashed, match=how):
        ask(program, 2)
    with pytest.raises(GameCrashed, match="has failed; launch another"):
        ask(program, 3)


def test_an_answer_of_a_program_that_ends_after_it_counts(start):
    program = start("print(sys.stdin.readline(), end='', flush=True)")
    assert ask(program, 1) == 1
    program._child.ended(time.monotonic() + 20)
    with pytest.raises(GameCrashed, match="ended, with exit code 0"):
        ask(program, 2)


def test_until_the_first_answer_it_has_not_started(start):
    with pytest.raises(GameStartError, match="No module named 'no_such_library'"):
        ask(start("import no_such_library"), {})


def test_death_is_noticed_although_a_child_keeps_the_pipes(start):
    program = start("""
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        sys.stdin.readline()
        print(child.pid, flush=True)
        sys.stdin.readline()
        os._exit(4)
    """)
    child = ask(program, {})
    with pytest.raises(GameCrashed, match="exit code 4"):
        ask(program, {})
    # Where nothing reaps orphans, a zombie is left of it.
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_silence_ends_at_the_deadline(start):
    program = start("print(sys.stdin.readline(), end='', flush=True); time.sleep(600)")
    ask(program, 1)
    began = time.monotonic()
    with pytest.raises(GameTimeout, match=r"gave no answer within 0\.2 s; .*must flush its stdout"):
        ask(program, 2, timeout_s=0.2)
    assert time.monotonic() - began < 15
    assert not psutil.pid_exists(program.pid)  # it is not left hanging


def test_half_an_answer_is_shown(start):
    program = start("""
        print(sys.stdin.readline(), end="", flush=True)
        sys.stdin.readline()
        sys.stdout.write('{"over": '); sys.stdout.flush()
        time.sleep(600)
    """)
    ask(program, 1)
    with pytest.raises(GameTimeout, match=r"within 0\.5 s, only '{\"over\":'; "):
        ask(program, 2, timeout_s=0.5)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("'Loading the world'", "answered 'Loading the world', which is not JSON; it must write"),
        ("'x' * 1000", "answered 'x{79}…', which is not JSON"),
        ("'[' * 100_000", "which is not JSON"),
        ("'1\\n2'", "wrote '2' after its answer; it must write one line"),
        ("''", "answered '', which is not JSON"),
    ],
)
def test_nonsense_is_shown(start, written, why):
    program = start(f"""
        print(sys.stdin.readline(), end="", flush=True)
        sys.stdin.readline()
        print({written}, flush=True)
        sys.stdin.readline()
    """)
    ask(program, 1)
    with pytest.raises(GameCrashed, match=why):
        ask(program, 2)


def test_bytes_that_are_not_text_are_nonsense(start):
    program = start("""
        sys.stdin.readline()
        sys.stdout.buffer.write(bytes([255, 10])); sys.stdout.flush()
        sys.stdin.readline()
    """)
    with pytest.raises(GameStartError, match="which is not JSON"):
        ask(program, 1)


def test_a_line_that_comes_unasked_is_found(start):
    program = start("""
        print(sys.stdin.readline(), end="", flush=True)
        time.sleep(0.2)
        print("saved", flush=True)
        print("done", file=sys.stderr, flush=True)
        time.sleep(600)
    """)
    ask(program, 1)
    while b"done" not in program._err:
        program._pump(10.0)
    with pytest.raises(GameCrashed, match="wrote 'saved' before it was asked"):
        ask(program, 2)


def test_an_answer_without_end_does_not_fill_the_memory(start, monkeypatch):
    monkeypatch.setattr("rollout.api.line_process._LONGEST", 2**20)
    program = start("""
        sys.stdin.readline()
        while True:
            sys.stdout.write("x" * 65536)
    """)
    with pytest.raises(GameStartError, match=r"wrote \d+ bytes without ending the line"):
        ask(program, 1)


def test_a_flood_on_stderr_delays_nothing(start):
    program = start("""
        for line in sys.stdin:
            sys.stderr.write("noise " * 500_000 + "\\nlast words\\n")
            print(line, end="", flush=True)
    """)
    for number in range(3):
        assert ask(program, number) == number
    assert len(program._err) <= 2**14


def test_a_program_that_only_floods_stderr_ends_at_the_deadline(start):
    program = start("""
        while True:
            sys.stderr.write("noise\\n" * 10_000)
    """)
    while not program._err:
        program._pump(10.0)
    with pytest.raises(GameStartError, match=r"no answer within 0\.3 s.*stderr: noise \| noise"):
        ask(program, 1, timeout_s=0.3)


def test_a_program_that_closes_its_stdout_and_continues(start, monkeypatch):
    monkeypatch.setattr("rollout.api.line_process.REAP_S", 0.1)
    program = start("sys.stdin.readline(); os.close(1); time.sleep(600)")
    with pytest.raises(GameStartError, match="closed its stdout and continues"):
        ask(program, 1)


def test_close_lets_it_end_by_itself(start, tmp_path):
    program = start("""
        print(sys.stdin.readline(), end="", flush=True)
        assert not sys.stdin.read()
        open("saved", "w").close()
    """)
    ask(program, 1)
    program.close(20.0)
    program.close()
    assert (tmp_path / "saved").exists()
    with pytest.raises(GameCrashed, match="is closed; launch another"):
        ask(program, 2)


@pytest.mark.parametrize(
    "stubborn",
    [
        "signal.signal(signal.SIGTERM, lambda *_: (open('told', 'w').close(), os._exit(0)))",
        "signal.signal(signal.SIGTERM, lambda *_: open('told', 'w').close())",
    ],
)
def test_close_ends_what_does_not_end(start, tmp_path, stubborn):
    program = start(f"""
        {stubborn}
        print(sys.stdin.readline(), end="", flush=True)
        sys.stdin.read()
        while True:
            sys.stdout.write("x" * 1000)
            sys.stderr.write("x" * 1000)
    """)
    ask(program, 1)
    program.close(1.0)
    assert not psutil.pid_exists(program.pid)
    assert (tmp_path / "told").exists()
