"""Orphans are found by the marks of dead owners; what belongs to the living is left alone."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rollout.commands import clean
from rollout.host import processes
from rollout.host.guarded import Guarded
from rollout.host.processes import (
    GAME,
    OWNER,
    OWNER_FILE,
    RUN_ID,
    kill_marked,
    marked_processes,
    owned_workdir,
    owner_lives,
    owner_mark,
    remove_workdir,
    start_time,
    sweep_orphans,
)

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0

# An owner that dies and leaves everything: a game without a guard, a folder.
OWNER_THAT_DIES = """
import os, subprocess, sys
from pathlib import Path
from rollout.host.processes import OWNER, game_marks, owned_workdir
owner = {OWNER: sys.argv[2]} if len(sys.argv) > 2 else {}
game = subprocess.Popen(["sh", "-c", "setsid sleep 600 & exec sleep 600"],
    env={**os.environ, **game_marks(), **owner}, start_new_session=True,
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
folder = owned_workdir("gamut-host-0-", Path(sys.argv[1]))
(folder / "instance-0000-000").mkdir()
(folder / "instance-0000-000" / "game.log").write_text("hello")
print(game.pid, folder, flush=True)
os._exit(0)
"""


class Orphans:
    """What one dead owner has left; its processes bear the mark of ``owner``, if one is given."""

    def __init__(self, temporary, run, owner=None):
        output = subprocess.run(
            [sys.executable, "-c", OWNER_THAT_DIES, str(temporary), *([owner] if owner else [])],
            cwd=ROOT,
            env={**os.environ, RUN_ID: run},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        ).stdout.split()
        self.run, self.pid = run, int(output[0])
        self.folder = Path(output[1])

    @property
    def processes(self):
        return [each for each in marked_processes() if each.run == self.run]

    def remove(self):
        for each in self.processes:
            os.kill(each.pid, signal.SIGKILL)


@pytest.fixture
def orphans(tmp_path, monkeypatch):
    # The other tests that run on this machine begin by killing orphans too. Only this process
    # counts this owner as dead.
    run = f"test-clean-{os.getpid()}-{time.monotonic_ns()}"
    orphans = Orphans(tmp_path, run, owner=f"owner of {run}")
    monkeypatch.setattr(
        processes, "owner_lives", lambda mark: mark != f"owner of {run}" and owner_lives(mark)
    )
    # A process that is becoming another one has no marks for that moment.
    end = time.monotonic() + LIMIT_S
    while [p.command for p in orphans.processes] != ["sleep 600"] * 2 and time.monotonic() < end:
        time.sleep(0.01)
    yield orphans
    orphans.remove()


def test_a_dry_run_only_says_what_there_is(orphans, tmp_path):
    swept = sweep_orphans(dry_run=True, temporary=tmp_path)
    mine = [each for each in swept.processes if each.run == orphans.run]
    assert {each.pid for each in mine} >= {orphans.pid}
    assert len(mine) == 2
    assert swept.folders == (orphans.folder,)
    assert len(orphans.processes) == 2
    assert orphans.folder.exists()
    said = "\n".join(swept.lines())
    for part in (f"process {orphans.pid} of run {orphans.run}", "sleep 600", str(orphans.folder)):
        assert part in said


def test_a_sweep_ends_and_removes_it(orphans, tmp_path):
    swept = sweep_orphans(temporary=tmp_path)
    assert len([each for each in swept.processes if each.run == orphans.run]) == 2
    assert not orphans.processes
    assert not orphans.folder.exists()
    assert not swept.left
    again = sweep_orphans(temporary=tmp_path)
    assert not again.folders
    assert not [each for each in again.processes if each.run == orphans.run]


def test_what_the_living_own_is_left_alone(tmp_path):
    folder = owned_workdir("gamut-host-1-", tmp_path)
    with (tmp_path / "game.log").open("ab") as log:
        game = Guarded(["sleep", "600"], log)
    try:
        end = time.monotonic() + LIMIT_S
        while game.pid is None and time.monotonic() < end:
            time.sleep(0.01)
        swept = sweep_orphans(temporary=tmp_path)
        assert not swept.folders
        assert game.mark not in [each.game for each in swept.processes]
        assert start_time(game.pid) is not None
    finally:
        game.stop(at_once=True)
    remove_workdir(folder)
    assert not folder.exists()


def test_strange_folders_are_left_alone(tmp_path):
    (tmp_path / "gamut-host-new").mkdir()  # just being made: its owner is not written yet
    other = tmp_path / "other"
    other.mkdir()
    (other / OWNER_FILE).write_text("1:1:1")
    (tmp_path / "gamut-link").symlink_to(other)
    (tmp_path / "gamut-file").write_text("")
    assert not sweep_orphans(temporary=tmp_path).folders
    assert len(list(tmp_path.iterdir())) == 4
    assert other.exists()


def test_a_folder_is_locked_for_as_long_as_its_owner_lives(tmp_path):
    folder = owned_workdir("gamut-host-2-", tmp_path)
    assert (folder / OWNER_FILE).read_text() == owner_mark()
    with (folder / OWNER_FILE).open("r+") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        remove_workdir(owned_workdir("gamut-host-3-", tmp_path))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    remove_workdir(folder)


def test_who_lives():
    pid, started, namespace = owner_mark().split(":")
    assert owner_lives(owner_mark())
    assert owner_lives(f"{pid}:{started}")
    assert not owner_lives(f"{pid}:{int(started) - 1}:{namespace}")  # the number was used again
    assert not owner_lives(f"{2**22 + 1}:{started}:{namespace}")
    assert owner_lives(f"{2**22 + 1}:{started}:{int(namespace) + 1}")  # of another container
    for strange in ("", "x", "1", f"{pid}:{started}:{namespace}:1", f"{pid}:-3:{namespace}"):
        assert owner_lives(strange)


def test_a_game_is_ended_by_its_mark_alone(orphans):
    (game,) = {each.game for each in orphans.processes}
    assert len(kill_marked(game)) == 2
    assert not orphans.processes
    assert not kill_marked(game)


def test_the_marks_reach_a_game(tmp_path, monkeypatch):
    monkeypatch.setenv(RUN_ID, "run-9")
    with (tmp_path / "game.log").open("wb") as log:
        game = Guarded(["sh", "-c", f"echo ${RUN_ID} ${OWNER} ${GAME}"], log)
    assert game.wait(LIMIT_S)
    game.stop(at_once=True)
    assert (tmp_path / "game.log").read_text().split() == ["run-9", owner_mark(), game.mark]


def script(*arguments, temporary):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "clean.py"), *arguments],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_the_script_says_what_it_finds_and_cleans_up(tmp_path):
    orphans = Orphans(tmp_path, f"test-clean-{os.getpid()}-script")
    try:
        dry = script("--dry-run", temporary=tmp_path)
        assert dry.returncode == 0, dry.stderr
        if orphans.processes:  # another test on this machine may have killed them as orphans
            assert f"process {orphans.pid} of run {orphans.run}, owner " in dry.stdout
        assert f"folder {orphans.folder}, its owner is dead" in dry.stdout
        assert "would end and remove" in dry.stdout
        assert orphans.folder.exists()
        wet = script(temporary=tmp_path)
        assert wet.returncode == 0, wet.stderr
        assert "\nended and removed " in wet.stdout
        assert not orphans.processes
        assert not orphans.folder.exists()
    finally:
        orphans.remove()


def test_the_script_says_when_there_is_nothing(monkeypatch, capsys):
    monkeypatch.setattr("rollout.host.processes.marked_processes", list)
    monkeypatch.setattr("rollout.host.processes._sweep_folders", lambda *_, **__: [])
    assert clean.main([]) == 0
    assert capsys.readouterr().out == "nothing is left of dead runs\n"
