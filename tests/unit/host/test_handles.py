"""Games in processes of their own: their end, what is told of it, and their memory."""

import os
import signal
import threading
import time
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import pytest

from rollout.api import Start
from rollout.errors import ConfigError, GameCrashed, GameStartError
from rollout.host import SubprocessHandle
from rollout.host.handle import _describe_actions, await_result
from rollout.host.processes import marked_processes, owner_mark
from rollout.testing.fakes import FakeBridge

pytestmark = pytest.mark.process

LIMIT_S = 60.0
MOVE = {"move": np.full(1, 3)}


def ours():
    mark = owner_mark()
    return [each for each in marked_processes() if each.owner == mark]


def answer(handle):
    return await_result(handle, LIMIT_S)


@pytest.fixture
def launched(tmp_path):
    """Returns a handle whose game waits for its first step; closed at the end."""
    handles = []

    def launched(width=1, **options):
        bridge = FakeBridge(**options)
        handle = SubprocessHandle(bridge, tmp_path / str(len(handles)), [], width)
        handles.append(handle)
        assert handle.memory_mb() == 0
        assert handle.death_notice() == ""
        handle.launch(LIMIT_S)
        assert answer(handle) is None
        start = Start(bridge.spec.state_space.state(0), 0)
        handle.reset(list(range(width)), [start] * width, LIMIT_S)
        answer(handle)
        return handle

    yield launched
    for handle in handles:
        handle.close(0.0)
    assert not ours()


@pytest.mark.parametrize("timeout_s", [0.0, 30.0])
def test_a_close_leaves_nothing(launched, timeout_s):
    handle = launched(children=2, leave_children=True)
    end = time.monotonic() + LIMIT_S
    while len(ours()) != 3:  # one that is just being started shows no mark yet
        assert time.monotonic() < end
        time.sleep(0.01)
    handle.close(timeout_s)
    assert not ours()
    assert handle.memory_mb() == 0
    handle.close(timeout_s)
    with pytest.raises(GameCrashed):
        handle.step(MOVE, 1.0)


def test_a_game_that_does_not_close_is_ended(launched):
    handle = launched(children=1, hang_on_close=1.0)
    begun = time.monotonic()
    handle.close(0.2)
    assert time.monotonic() - begun < LIMIT_S  # a hang lasts an hour
    assert not ours()


def test_a_launch_can_be_called_off(tmp_path):
    handle = SubprocessHandle(FakeBridge(), tmp_path, [], 1)
    handle.close(0.0)
    handle.launch(LIMIT_S)
    handle.close(0.0)
    assert not ours()


def test_a_launch_with_no_room_for_its_folder_is_a_failed_start(tmp_path):
    """As on a temporary disk that is full or read-only; afterwards it may be launched again."""
    (tmp_path / "disk").write_text("in the way")
    handle = SubprocessHandle(FakeBridge(), tmp_path / "disk" / "game", [], 1)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(GameStartError, match=r"its process could not be started: .*Not a dir"):
        handle.launch(LIMIT_S)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    (tmp_path / "disk").unlink()
    handle.launch(LIMIT_S)
    assert answer(handle) is None
    handle.close(0.0)


def test_a_namespace_is_asked_for_by_option(tmp_path, monkeypatch):
    monkeypatch.setattr("rollout.host.guarded.namespaces_allowed", lambda: False)
    handle = SubprocessHandle(FakeBridge(), tmp_path, [], 1, namespace="always")
    with pytest.raises(ConfigError, match="namespace='always'"):
        handle.launch(LIMIT_S)
    handle.close(0.0)


def test_a_game_outlives_the_thread_that_launched_it(launched):
    handles = []
    thread = threading.Thread(target=lambda: handles.append(launched()))
    thread.start()
    thread.join(LIMIT_S)
    handles[0].step(MOVE, LIMIT_S)
    assert len(answer(handles[0]).tick) == 1


def test_memory_is_that_of_the_whole_tree(launched):
    alone, many = launched(), launched(children=3)
    assert alone.memory_mb() > 20  # an interpreter with numpy
    end = time.monotonic() + LIMIT_S
    while many.memory_mb() < alone.memory_mb() + 3 * 5:  # three interpreters without
        assert time.monotonic() < end, f"{many.memory_mb()} MB, {alone.memory_mb()} MB without"
        time.sleep(0.05)


def test_the_notice_of_a_game_that_ends_itself(launched):
    handle = launched(exit_on_step=2.0)
    pid = handle.pid
    handle.step(MOVE, LIMIT_S)
    answer(handle)
    handle.step({"move": np.full(1, 2)}, LIMIT_S)
    with pytest.raises(GameCrashed, match="process ended"):
        answer(handle)
    parts = handle.death_notice().split("; ")
    assert parts[0] == "exit code 3"
    assert parts[1] == f"pid {pid}"
    assert 0 < float(parts[2].removeprefix("age ").removesuffix(" s")) < 2 * LIMIT_S
    assert 20 < int(parts[3].removeprefix("peak memory ").removesuffix(" MB")) < 2000
    assert parts[4] == "last action move=2"
    assert parts[5].startswith("last output: the fake game ends its process on request")
    assert len(parts) == 6


def test_the_notice_of_a_game_that_is_killed(launched):
    handle = launched(children=1)
    os.kill(handle.pid, signal.SIGSEGV)
    with pytest.raises(GameCrashed, match="process ended"):
        answer(handle)
    assert handle.death_notice().startswith("killed by SIGSEGV; ")
    assert "last action" not in handle.death_notice()  # there was none in this episode


def test_the_notice_of_a_game_that_hangs(launched):
    handle = launched(hang_on_step=1.0)
    handle.step(MOVE, LIMIT_S)
    assert not wait([handle.waitable], 0.2)
    notice = handle.death_notice()
    assert notice.startswith("bridge process still running; pid ")
    assert "last action move=3" in notice


def test_the_notice_of_a_game_whose_guard_was_killed(launched):
    handle = launched(children=1, leave_children=True)
    guard = handle._guarded.guard_pid
    os.kill(guard, signal.SIGKILL)
    assert wait([handle.waitable], LIMIT_S)
    with pytest.raises(GameCrashed):
        handle.result()
    assert handle.death_notice().startswith("its guard was killed; ")
    handle.close(0.0)
    assert not ours()


def test_a_notice_is_one_line_of_bounded_length(launched, tmp_path):
    handle = launched(width=64)
    lines = "".join(f"line {number} {'x' * 50}\n\n" for number in range(100_000))
    (tmp_path / "0" / "game.log").write_text(lines)
    handle.step({"move": np.arange(64) % 5}, LIMIT_S)
    answer(handle)
    notice = handle.death_notice()
    assert "last action move=[0 1 ... 2 3]" in notice
    assert " | line 99999 x" in notice
    assert "\n" not in notice
    assert len(notice) < 1000


def test_actions_are_reported_in_a_few_words():
    text = np.array(["a long story " * 100], object)
    told = _describe_actions({"camera": np.array([[0.123456, 2.0]]), "say": text})
    assert told.startswith("camera=[0.1235 2. ] say=a long story")
    assert len(told) < 200
    many = _describe_actions({"camera": np.zeros((1000, 50)), "jump": np.ones(1000, bool)})
    assert len(many) < 200
    assert "\n" not in many
