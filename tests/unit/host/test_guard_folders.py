"""Folders of a host that was killed: the last guard of its games removes them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HOST = """
import sys, tempfile
from pathlib import Path
from rollout.host.guarded import Guarded
from rollout.host.processes import owned_workdir

folder = owned_workdir("gamut-host-9-", Path(sys.argv[1]))
with tempfile.TemporaryFile() as log:
    games = [Guarded(["sleep", "600"], log) for _ in range(3)]
    while not all(game.pid for game in games):
        pass
(folder / "game").mkdir()
(folder / "game" / "world").write_text("much")
print(folder, flush=True)
sys.stdin.readline()
"""

pytestmark = pytest.mark.process


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_the_folders_of_a_killed_host_go_with_its_last_game(tmp_path, signum):
    hosts = [
        subprocess.Popen(
            [sys.executable, "-c", HOST, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        killed, living = (Path(each.stdout.readline().strip()) for each in hosts)
        hosts[0].send_signal(signum)
        end = time.monotonic() + 10.0
        while killed.exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert not killed.exists()
        assert (living / "game" / "world").exists()
    finally:
        for each in hosts:
            each.kill()
            each.communicate(timeout=300)
