"""Games in Ray actors: whatever is killed, nothing of ours is left within ten seconds."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import ray

from rollout.host.processes import marked_processes, start_time

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("local_ray"),
]

ROOT = Path(__file__).parents[2]
LIMIT_S = 10.0  # promised: nothing of ours is left after that
# A game that ignores TERM, its child, and a grandchild that has left the session.
FAMILY = "trap '' TERM; sleep 600 & setsid sh -c 'sleep 600 & exec sleep 600' & exec sleep 600"
SIZE = 4


# What an actor of the fleet does, as far as processes go. As text, for a driver of its own too.
HOST = f"""
import os, tempfile, time
import ray
from rollout.host.guarded import Guarded

@ray.remote(num_cpus=0.1)
class Host:
    def __init__(self):
        with tempfile.TemporaryFile() as log:
            self.game = Guarded(["sh", "-c", {FAMILY!r}], log)

    def facts(self):
        end = time.monotonic() + 600
        while self.game.pid is None and time.monotonic() < end:
            time.sleep(0.01)
        return os.getpid(), self.game.mark, self.game.guard_pid
"""


def make_host():
    names = {"__name__": "__main__"}  # so that Ray sends the class itself, not where to import it
    exec(HOST, names)
    return names["Host"].remote()


def until(true, limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def all_up(mark, guard):
    """Waits for the whole family and its guard, on a machine that may be busy."""
    assert until(lambda: left(mark, guard) == SIZE + 1, 600.0), (
        [each for each in marked_processes() if each.game == mark],
        start_time(guard),
    )


def left(mark, guard):
    alive = [each for each in marked_processes() if each.game == mark]
    return len(alive) + (start_time(guard) is not None)


@pytest.fixture
def host():
    """An actor with a running game; the process it is in, the game's mark, its guard."""
    actor = make_host()
    pid, mark, guard = ray.get(actor.facts.remote(), timeout=600)
    all_up(mark, guard)
    return actor, pid, mark, guard


def test_kill_9_of_the_worker(host):
    _, pid, mark, guard = host
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not left(mark, guard))


def test_ray_kill(host):
    actor, _, mark, guard = host
    ray.kill(actor)
    assert until(lambda: not left(mark, guard))


def test_a_handle_that_is_dropped():
    """Ray ends the actor in an orderly way then, and kills the children of its process first."""
    actor = make_host()
    _, mark, guard = ray.get(actor.facts.remote(), timeout=600)
    all_up(mark, guard)
    del actor
    assert until(lambda: not left(mark, guard))


DRIVER = f"""{HOST}
from rollout.host.session import ray_session
with ray_session(num_cpus=1):
    actor = Host.remote()
    print(*ray.get(actor.facts.remote(), timeout=600), flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_kill_9_of_the_driver(tmp_path):
    """A driver with a Ray of its own, on one machine with that of the other tests."""
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with driver:
        words = driver.stdout.readline().split()
        assert len(words) == 3, (tmp_path / "driver.log").read_text()
        mark, guard = words[1], int(words[2])
        all_up(mark, guard)
        its_ray = psutil.Process(driver.pid).children(recursive=True)
        try:
            driver.kill()
            assert until(lambda: not left(mark, guard))
        finally:
            for process in its_ray:
                if process.is_running():
                    process.kill()
