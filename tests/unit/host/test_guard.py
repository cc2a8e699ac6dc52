"""Whatever dies, and however: nothing of a game is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rollout.api.child_process import ending
from rollout.errors import ConfigError
from rollout.host import guarded
from rollout.host.guard import KEPT_BYTES, OUTPUT_BYTES, children, cut_output, descendants
from rollout.host.guarded import Guarded, namespaces_allowed
from rollout.host.processes import marked_processes, start_time

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
LIMIT_S = 30.0  # it takes a second, but the machine may be busy
# A child, and a grandchild that has left the session and has a child of its own.
KIN = "sleep 600 & setsid sh -c 'sleep 600 & exec sleep 600' & "
FAMILY = KIN + "exec sleep 600"
SIZE = 4
STUBBORN = "trap '' TERM; " + FAMILY  # subprocesses inherit ignored signals
NAMESPACES = ["never", "auto"]  # where none is allowed, these are the same


def left(mark):
    return [each for each in marked_processes() if each.game == mark]


def until(true, limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def start(tmp_path):
    """Starts shell scripts under guards; nothing outlives the test."""
    games = []

    def start(script, size=SIZE, **options):
        with (tmp_path / "game.log").open("ab") as log:
            games.append(Guarded(["sh", "-c", script], log, **options))
        game = games[-1]
        # A game may be seen before its guard has told its number.
        assert until(lambda: len(left(game.mark)) >= size and (game.pid or not size))
        return game

    yield start
    for game in games:
        game.stop(at_once=True)


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_stop_leaves_nothing(start, at_once, namespace):
    game = start(FAMILY, namespace=namespace)
    guard = game.guard_pid
    assert game.stop(at_once=at_once)
    assert not left(game.mark)
    assert game.exit_code == (-signal.SIGKILL if at_once else -signal.SIGTERM)
    assert until(lambda: start_time(guard) is None)
    assert game.stop(at_once=True)  # repeating it is not an error


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_term_may_be_ignored_but_kill_comes(start, namespace):
    game = start(STUBBORN, namespace=namespace)
    assert game.stop(at_once=False)
    assert not left(game.mark)
    assert game.exit_code == -signal.SIGKILL


def test_a_polite_stop_leaves_time_to_save(start, tmp_path):
    script = (
        f"trap 'echo saved > {tmp_path}/save; exit 7' TERM; echo up; while :; do sleep .05; done"
    )
    game = start(script, size=1)
    assert until(lambda: "up" in (tmp_path / "game.log").read_text())
    assert game.stop(at_once=False)
    assert game.exit_code == 7
    assert (tmp_path / "save").exists()


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_what_a_dead_game_leaves_goes_by_itself(start, namespace):
    game = start(STUBBORN, namespace=namespace)
    os.kill(game.pid, signal.SIGKILL)
    assert game.wait(LIMIT_S)
    assert game.exit_code == -signal.SIGKILL
    assert until(lambda: not left(game.mark))


def test_a_game_that_ends_by_itself_takes_its_family_along(start):
    game = start(f"trap '' TERM; {KIN} sleep 1; exit 5")
    assert game.wait(LIMIT_S)
    assert game.exit_code == 5
    assert until(lambda: not left(game.mark))


def test_a_killed_guard_is_noticed_and_its_work_done(start):
    game = start(FAMILY)
    child = game.pid
    os.kill(game.guard_pid, signal.SIGKILL)
    assert game.wait(LIMIT_S)
    assert until(lambda: start_time(child) is None)  # at least the kernel ensures that
    assert game.guard_lost
    assert game.exit_code is None  # no process is left that knows it
    assert game.stop(at_once=True)
    assert not left(game.mark)


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_stopped_guard_is_named_and_a_stop_leaves_nothing(start, at_once, namespace):
    game = start(FAMILY, namespace=namespace)
    guard = game.guard_pid
    assert game.stopped() == ""
    os.kill(guard, signal.SIGSTOP)
    assert until(lambda: game.stopped() == f"its guard, process {guard}, is stopped")
    begun = time.monotonic()
    assert game.stop(at_once=at_once)
    assert time.monotonic() - begun < 2.0, "it waits for nothing that will not come"
    assert until(lambda: not left(game.mark))
    assert until(lambda: start_time(guard) is None)


def test_stopped_processes_are_named(start):
    game = start(FAMILY)
    below = next(pid for pid in descendants(game.guard_pid) if pid != game.pid)
    os.kill(below, signal.SIGSTOP)
    said = f"process {below} (sleep) is stopped"
    assert until(lambda: game.stopped_below() == said)
    assert game.stopped() == "", "a game may pause what it has started"
    os.kill(game.pid, signal.SIGSTOP)
    assert until(lambda: game.stopped() == f"process {game.pid} (sleep) is stopped")


@pytest.mark.skipif(not namespaces_allowed(), reason="PID namespaces are not allowed here")
def test_in_a_namespace_nobody_outlives_the_guard(start):
    game = start(STUBBORN, namespace="always")
    os.kill(game.guard_pid, signal.SIGKILL)
    assert until(lambda: not left(game.mark))


@pytest.mark.skipif(not namespaces_allowed(), reason="PID namespaces are not allowed here")
def test_in_a_namespace_numbers_and_proc_agree(start, tmp_path):
    game = start(
        "read pid rest < /proc/self/stat; echo $$ $pid; exec sleep 600", 1, namespace="always"
    )
    log = tmp_path / "game.log"
    assert until(lambda: log.read_text().strip())
    inside = [int(number) for number in log.read_text().split()]
    assert inside == [2, 2]
    assert game.pid in [each.pid for each in left(game.mark)]
    assert game.memory_mb() > 0


def test_a_namespace_that_cannot_be_had_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(guarded, "namespaces_allowed", lambda: False)
    with (tmp_path / "game.log").open("ab") as log, pytest.raises(ConfigError, match="'auto'"):
        Guarded(["true"], log, namespace="always")


HOST = """
import os, signal, subprocess, sys, time
from rollout.host.guarded import Guarded
game = Guarded(["sh", "-c", sys.argv[1]], open(sys.argv[2], "ab"), namespace=sys.argv[3])
while game.pid is None:
    time.sleep(0.01)
forked = os.fork() if sys.argv[4] == "fork" else 0
if forked == 0 and sys.argv[4] == "fork":
    time.sleep(600)
print(game.mark, game.guard_pid, forked, flush=True)
if sys.argv[4] == "exit":
    sys.stdin.read(1)
    sys.exit(0)
time.sleep(600)
"""


def host(tmp_path, script, *, namespace="never", way=""):
    """Starts a host of its own; returns it, the mark of its game, its guard and its forked copy."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, script, str(tmp_path / "game.log"), namespace, way],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    mark, guard, forked = process.stdout.readline().split()
    assert until(lambda: len(left(mark)) == SIZE)
    return process, mark, int(guard), int(forked)


def bury(process):
    with process:
        process.wait(LIMIT_S)


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_host_is_killed_nothing_is_left(tmp_path, number, namespace):
    process, mark, guard, _ = host(tmp_path, STUBBORN, namespace=namespace)
    process.send_signal(number)
    bury(process)
    assert until(lambda: not left(mark))
    assert until(lambda: start_time(guard) is None)


def test_when_the_host_forgets_its_game_nothing_is_left(tmp_path):
    process, mark, guard, _ = host(tmp_path, FAMILY, way="exit")
    process.stdin.write("x")
    process.stdin.flush()
    bury(process)
    assert process.returncode == 0
    assert until(lambda: not left(mark))
    assert until(lambda: start_time(guard) is None)


def test_a_forked_copy_of_the_host_keeps_no_game_alive(tmp_path):
    process, mark, _, forked = host(tmp_path, FAMILY, way="fork")
    try:
        process.kill()
        process.wait(LIMIT_S)
        assert until(lambda: not left(mark))
        assert start_time(forked) is not None
    finally:
        os.kill(forked, signal.SIGKILL)
        bury(process)


def test_the_guard_stands_above_polite_signals(start):
    game = start(FAMILY)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(game.guard_pid, number)
    assert not game.wait(0.3)
    assert len(left(game.mark)) == SIZE


def test_the_end_of_the_thread_that_starts_a_game_is_not_its_end(start):
    """PDEATHSIG comes when the parent's thread ends; so the parent must not be the host."""
    games = []
    thread = threading.Thread(target=lambda: games.append(start(FAMILY)))
    thread.start()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert not games[0].wait(0.5)
    assert len(left(games[0].mark)) == SIZE


def test_a_stop_before_the_start_is_over(tmp_path):
    for _ in range(5):
        with (tmp_path / "game.log").open("ab") as log:
            game = Guarded(["sh", "-c", FAMILY], log)
        game.stop(at_once=True)
        assert not left(game.mark)


def test_a_guard_is_no_child_of_the_host(start):
    game = start(FAMILY)
    assert game.guard_pid not in children(os.getpid())
    assert set(descendants(game.guard_pid)) == {each.pid for each in left(game.mark)}


@pytest.mark.parametrize(
    ("script", "code"), [("exit 3", 3), ("kill -SEGV $$", -11), ("exec no-such-command", 127)]
)
def test_how_it_ended_is_reported(start, script, code):
    game = start(script, size=0)
    assert game.wait(LIMIT_S)
    assert game.exit_code == code


def test_a_command_that_does_not_exist(tmp_path):
    log = tmp_path / "game.log"
    with log.open("ab") as output:
        game = Guarded(["no-such-program"], output)
    assert game.wait(LIMIT_S)
    assert game.exit_code == 127
    assert "no-such-program cannot be started: " in log.read_text()
    game.stop(at_once=True)


def test_ends_have_names():
    assert ending(0) == "exit code 0"
    assert ending(-9) == "killed by SIGKILL"
    assert ending(-40) == "killed by signal 40"


def test_memory_of_the_whole_tree_and_its_peak(start):
    grow = f"{sys.executable} -S -c 'import time; x = bytearray(60 << 20); time.sleep(600)'"
    game = start(f"{grow} & {grow} & wait", size=3)
    assert until(lambda: game.memory_mb() > 120)
    assert game.memory_mb() < 400
    os.kill(game.pid, signal.SIGKILL)
    assert game.wait(LIMIT_S)
    assert until(lambda: game.memory_mb() == 0)
    assert game.peak_mb() > 120


@pytest.mark.parametrize(
    "script",
    ["GROW; exit 1", "GROW & while [ ! -e UP ]; do sleep .05; done; exit 1"],
    ids=["waited for", "running on"],
)
def test_the_peak_is_known_of_a_game_that_was_never_measured(start, tmp_path, script):
    """That of what it has waited for, and of what runs on when it ends."""
    up = tmp_path / "up"
    code = f'x = bytearray(60 << 20); open("{up}", "w").close()'
    if "&" in script:
        code += "; import time; time.sleep(600)"
    grow = f"{sys.executable} -S -c '{code}'"
    game = start(script.replace("GROW", grow).replace("UP", str(up)), size=0)
    assert game.wait(LIMIT_S)
    assert game.exit_code == 1
    game.stop(at_once=True)
    assert game.peak_mb() > 60


SEEN = """
import json, os, signal, sys
print(json.dumps({
    "input": sys.stdin.read(),
    "cwd": os.getcwd(),
    "environment": [os.environ["OF_THE_HOST"], os.environ["GAMUT_RUN_ID"]],
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd"))),
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "status": open("/proc/self/status").read(),
}), flush=True)
"""


def test_a_game_gets_what_it_should_and_no_more(tmp_path, monkeypatch):
    """The pipes of the guard stay with it; input is empty; marks and environment arrive."""
    monkeypatch.setenv("GAMUT_RUN_ID", "run-7")
    monkeypatch.setenv("OF_THE_HOST", "yes")
    log = tmp_path / "game.log"
    read, write = os.pipe()
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        with log.open("wb") as output:
            game = Guarded([sys.executable, "-S", "-c", SEEN], output, descriptors=[write])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        os.close(read)
        os.close(write)
    assert game.wait(LIMIT_S)
    game.stop(at_once=True)
    seen = json.loads(log.read_text())
    assert seen["input"] == ""
    assert Path(seen["cwd"]) == Path.cwd()
    assert seen["environment"] == ["yes", "run-7"]
    listing = 3 if write != 3 else 4  # of the folder itself
    assert set(seen["descriptors"]) == {0, 1, 2, write, listing}
    assert seen["blocked"] == []
    (ignored,) = (int(line[8:], 16) for line in seen["status"].splitlines() if "SigIgn" in line)
    unwanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    assert not [number for number in unwanted if ignored >> (number - 1) & 1]


def test_output_is_bounded_while_a_game_plays_and_after_its_end(start, tmp_path):
    log, up = tmp_path / "game.log", tmp_path / "up"
    many = f"head -c {OUTPUT_BYTES + 1} /dev/zero; echo"
    game = start(
        f"echo first; {many}; until [ -e {up} ]; do sleep .02; done; echo then; {many}; echo last",
        size=0,
    )
    assert until(lambda: b"[Gamut" in log.read_bytes())
    assert game.exit_code is None
    os.kill(game.guard_pid, signal.SIGSTOP)  # what is written during a cut may be lost
    up.touch()
    assert until(lambda: log.read_bytes().endswith(b"last\n"))
    os.kill(game.guard_pid, signal.SIGCONT)
    assert game.wait(LIMIT_S)
    game.stop(at_once=True)
    text = log.read_bytes()
    assert len(text) < 3 * KEPT_BYTES
    assert text.startswith(b"first\n")
    assert text.count(b"[Gamut removed the middle of this output, which exceeded 16 MiB]\n") == 1
    assert text.endswith(b"\0\nlast\n")


def test_a_cut_keeps_what_is_written_while_it_reads(tmp_path, monkeypatch):
    log, pread = tmp_path / "game.log", os.pread
    log.write_bytes(bytes(OUTPUT_BYTES + 1))

    def pread_before_a_write(*arguments):
        monkeypatch.undo()
        end = pread(*arguments)
        with log.open("ab") as game:
            game.write(b"last\n")
        return end

    with log.open("ab") as output:
        monkeypatch.setattr(os, "pread", pread_before_a_write)
        assert cut_output(output.fileno())
    assert log.read_bytes().endswith(b"\0last\n")


def test_the_host_sees_the_game_let_go_of_its_descriptors(tmp_path):
    read, write = os.pipe()
    code = f"import os, time; os.close({write}); time.sleep(600)"
    with (tmp_path / "game.log").open("wb") as output:
        game = Guarded([sys.executable, "-S", "-c", code], output, descriptors=[write])
    os.close(write)
    assert os.read(read, 1) == b""  # would wait forever if the guard held it too
    assert game.exit_code is None
    game.stop(at_once=True)
    os.close(read)


def test_start_times_of_processes_with_odd_names(tmp_path):
    odd = tmp_path / "a) R 1 (b"
    shutil.copy(shutil.which("sleep"), odd)
    with subprocess.Popen([odd, "600"]) as process:
        try:
            assert until(lambda: (start_time(process.pid) or 0) >= start_time(os.getpid()))
        finally:
            process.kill()
            assert until(lambda: start_time(process.pid) is None)  # a zombie is dead
