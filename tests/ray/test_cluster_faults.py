"""Two Ray nodes, and what becomes of a run when one dies, all die, or the network is cut."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from benchmarks.faults.cluster import Networks, TwoNodes, kill_all, tree_of
from rollout.data import Dataset, doctor
from rollout.errors import DatasetError
from rollout.host.processes import marked_processes

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 10.0  # promised: nothing of ours is left after that
EPISODES = 160
CUT_S = 8.0

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def nodes():
    """Two nodes; where it can be, with a network between them that can be cut."""
    with contextlib.ExitStack() as stack:
        why_not = Networks.why_not()
        networks = None if why_not else stack.enter_context(Networks())
        cluster = TwoNodes(networks=networks, resources='{"gamut_game": 1}')
        yield stack.enter_context(cluster), networks, why_not


@pytest.fixture
def cluster(nodes):
    nodes[0].mend()
    return nodes[0]


class Run:
    """A collection by ``scripts/collect.py`` with real games, on whichever cluster."""

    def __init__(self, folder: Path) -> None:
        self.output, self.said = folder / "run", folder / "said.txt"
        self.config = folder / "config.yaml"
        self.config.write_text(
            yaml.safe_dump(
                {
                    "output": str(self.output),
                    "bridge": {"name": "chaos", "mean_steps": 30, "step_latency": 0.02},
                    "policy": "random",
                    "episodes": EPISODES,
                    "actors": 2,
                    "width": 8,
                    "fragment": {"steps": 16},
                    "host": {"retries": 20},
                    "wandb": {"mode": "disabled"},
                }
            )
        )

    def begin(self, cluster: TwoNodes | None, *more: str) -> subprocess.Popen:
        address = "null" if cluster is None else cluster.address
        inside, env = ([], {**os.environ}) if cluster is None else (cluster.inside, {**cluster.env})
        command = [*inside, sys.executable, "scripts/collect.py", "--config", str(self.config)]
        command += ["--resume", "--set", f"ray.address={address}", *more]
        with self.said.open("ab") as said:
            self.driver = subprocess.Popen(command, cwd=ROOT, env=env, stdout=said, stderr=said)
        return self.driver

    def finished(self) -> list[int]:
        try:
            with Dataset(self.output / "dataset") as dataset:
                return sorted(ref.episode for ref in dataset.episodes())
        except DatasetError:
            return []

    def until(self, condition, seconds=600.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.said.read_text()
            assert self.driver.poll() is None, self.said.read_text()
            time.sleep(0.1)

    def end(self, seconds=600.0) -> int:
        try:
            return self.driver.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.said.read_text()) from None
        finally:
            kill_all(tree_of(self.driver.pid))

    def processes(self) -> list[str]:
        run = json.loads((self.output / "run.json").read_text())["run_id"]
        return [each.command for each in marked_processes() if each.run == run]

    def assert_nobody_left(self):
        end = time.monotonic() + LIMIT_S
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.1)
        assert not left

    def assert_whole(self):
        """Every episode once, as reported; nothing to repair; nobody left."""
        assert self.finished() == list(range(EPISODES))
        summary = json.loads((self.output / "summary.json").read_text())
        assert summary["status"] == "done"
        assert summary["results"]["episodes"] == EPISODES
        assert doctor(self.output / "dataset").clean
        self.assert_nobody_left()


def plays_on_both(cluster: TwoNodes) -> bool:
    return all(node.workers("OneThreadHost") for node in (cluster.head, cluster.second))


@pytest.mark.long
def test_a_network_that_is_cut_for_a_while(cluster, nodes, tmp_path):
    """Nobody is declared dead that soon: what was under way goes on when packets come again."""
    _, networks, why_not = nodes
    if networks is None:
        pytest.skip(why_not)
    run = Run(tmp_path)
    run.begin(cluster)
    run.until(lambda: plays_on_both(cluster) and len(run.finished()) >= 10)
    networks.cut()
    time.sleep(CUT_S)
    networks.heal()
    assert run.end() == 0, run.said.read_text()
    run.assert_whole()


# A driver that holds fragments back until the node that they lie on has died. There is room for one
# actor on each node, so that no actor can replace the one that dies with it.
HOLDING = """
import json, sys
from collections import Counter
from pathlib import Path
from bridges.chaos import ChaosBridge
from rollout.api import Splits, Task
from rollout.config import build_plugin
from rollout.evaluators import GameReward
from rollout.config import HostConfig
from rollout.host import PlayOptions, ray_fleet
from rollout.host.ray_fleet import RayFleet
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule
from rollout.host.session import ray_session

with ray_session(sys.argv[1]):
    import ray
    bridge = ChaosBridge(zero_cost=True, mean_steps=200)
    task = Task("walk", "", bridge.spec.state_space, GameReward())
    policy = build_plugin("policies", "random", {})
    # More than 100 KB each, so that Ray leaves them in the memory of the node that made them.
    play = PlayOptions(steps=128, retries=5)
    host = HostConfig(resources={"cpus": 0.01, "memory_mb": 10, "gamut_game": 1})
    plan = HostPlan(bridge, task, policy, width=64, host=host, play=play)
    fleet = RayFleet(plan, 2)
    states = Splits(task.state_space).take("train", 400)
    ended, later = Counter(), Counter()
    for number, fragment in enumerate(fleet.play(Schedule(states, seed=1, episodes=600))):
        ended.update(r.start.episode for r in fragment.results if r.end != "lost")
        if number == 3:
            waiting = [ref for actor in fleet.supervisor.actors for ref in actor.requests]
            ray.wait(waiting, num_returns=len(waiting), timeout=600, fetch_local=False)
            Path(sys.argv[2]).touch()
            sys.stdin.readline()
    assert ray_fleet._LATE_S  # it is read there by this name
    ray_fleet._LATE_S = 3.0
    for fragment in fleet.play(Schedule(states, seed=2, episodes=150)):
        later.update(r.start.episode for r in fragment.results if r.end != "lost")
    reasons = sorted({loss.reason.split(":")[0] for loss in fleet.news.losses})
    counts = [len(ended), max(ended.values()), len(later), max(later.values())]
    Path(sys.argv[2]).write_text(json.dumps([*counts, fleet.news.replaced, reasons]))
    fleet.close()
"""


@pytest.mark.long
def test_what_a_node_holds_when_it_dies_is_played_by_others(cluster, tmp_path):
    """Fragments that were ready, and episodes that wait for an actor that has no room any more."""
    told, said = tmp_path / "told.json", tmp_path / "said.txt"
    with said.open("w") as log:
        driver = subprocess.Popen(
            [*cluster.inside, sys.executable, "-c", HOLDING, cluster.address, str(told)],
            cwd=ROOT,
            env=cluster.env,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    with driver:  # closes its stdin whatever happens
        try:
            end = time.monotonic() + 600
            while not told.exists():
                assert time.monotonic() < end, said.read_text()
                assert driver.poll() is None, said.read_text()
                time.sleep(0.1)
            cluster.second.raylet.kill()
            cluster.second.process.wait(timeout=600)
            driver.communicate(b"\n", timeout=600)
        finally:
            kill_all(tree_of(driver.pid))
    assert driver.returncode == 0, said.read_text()
    *counts, reasons = json.loads(told.read_text())
    assert counts == [600, 1, 150, 1, 1]
    assert len(reasons) == 1, "only what was lost with the node is an attempt"
    assert "has not appeared; others play its" in said.read_text()


def test_a_node_dies_while_games_play_on_both(cluster, tmp_path):
    run = Run(tmp_path)
    run.begin(cluster)
    run.until(lambda: plays_on_both(cluster) and len(run.finished()) >= 10)
    cluster.second.raylet.kill()
    assert run.end() == 0, run.said.read_text()
    run.assert_whole()
    log = (run.output / "run.log").read_text()
    assert " failed: " in log
    assert "episode lost in actor" in log


# Games that cannot be launched on the machine of the first attempt.
PICKY = """
import json, sys
from dataclasses import dataclass
from pathlib import Path
from bridges.chaos import ChaosBridge
from rollout.api import Splits, Task
from rollout.config import build_plugin
from rollout.errors import GameStartError
from rollout.evaluators import GameReward
from rollout.config import HostConfig
from rollout.host import PlayOptions
from rollout.host.ray_fleet import RayFleet
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule
from rollout.host.session import ray_session

@dataclass(frozen=True)
class Picky(ChaosBridge):
    told: str = ""

    def launch(self, workdir, ports, *, width, timeout_s):
        import ray
        here = ray.get_runtime_context().get_node_id()
        try:
            with open(self.told, "x") as file:
                file.write(here)
        except FileExistsError:
            pass
        if Path(self.told).read_text() in ("", here):
            raise GameStartError("no display on this machine")
        return super().launch(workdir, ports, width=width, timeout_s=timeout_s)

with ray_session(sys.argv[1]):
    bridge = Picky(zero_cost=True, told=sys.argv[2])
    task = Task("walk", "", bridge.spec.state_space, GameReward())
    policy = build_plugin("policies", "random", {})
    needs = {"cpus": 0.01, "memory_mb": 10}
    host = HostConfig(restarts=1, backoff_s=0.0, quarantine_s=None, resources=needs)
    plan = HostPlan(bridge, task, policy, width=4, host=host, play=PlayOptions(steps=64))
    fleet = RayFleet(plan, 2)
    states = Splits(task.state_space).take("train", 40)
    ended = [r.start.episode for f in fleet.play(Schedule(states, seed=1, episodes=40))
             for r in f.results if r.end != "lost"]
    fleet.close()
print(json.dumps(sorted(ended)), flush=True)
"""


@pytest.mark.long
def test_a_machine_on_which_no_game_comes_up_rests_and_others_play(cluster, tmp_path):
    done = subprocess.run(
        [*cluster.inside, sys.executable, "-c", PICKY, cluster.address, str(tmp_path / "told")],
        cwd=ROOT,
        env=cluster.env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == list(range(40))
    assert "gets no new actors for a while" in done.stderr


@pytest.mark.long
def test_all_at_once(cluster, tmp_path):
    """kill -9 of the driver and of every process of both nodes; then ``--resume``, without Ray."""
    run = Run(tmp_path)
    run.begin(cluster)
    run.until(lambda: len(run.finished()) >= 10)
    assert run.processes()
    kill_all([*tree_of(run.driver.pid), *cluster.tree()])
    assert run.end() == -9
    run.assert_nobody_left()
    kept = set(run.finished())
    assert 10 <= len(kept) < EPISODES, "it was over, so this shows nothing"
    run.begin(None, "actors=0")
    assert run.end() == 0, run.said.read_text()
    run.assert_whole()
