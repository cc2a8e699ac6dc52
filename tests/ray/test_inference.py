"""Inference actors on Ray: the same episodes whoever decides, and whoever dies."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from rollout.api import Limits, Splits, Task
from rollout.cluster.resources import Node
from rollout.config import InferenceConfig
from rollout.data import Dataset
from rollout.errors import BudgetExhausted, ConfigError
from rollout.host import PlayOptions
from rollout.host.fleets import open_fleet
from rollout.host.hosting import HostPlan, LocalFleet
from rollout.host.inference_actors import require_room
from rollout.host.schedule import Schedule
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.ray]
on_ray = pytest.mark.usefixtures("local_ray")


def make_plan(policy=None, **options) -> HostPlan:
    bridge = FakeBridge(**options)
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=25))
    play = PlayOptions(steps=8)
    return HostPlan(bridge, task, policy or FakePolicy(3), seed=1, instances=2, width=2, play=play)


def make_schedule(plan: HostPlan, episodes: int) -> Schedule:
    states = Splits(plan.task.state_space).take("train", 40)
    return Schedule(states, seed=1, episodes=episodes)


def facts(fragments):
    results = [r for f in fragments for r in f.results if r.end != "lost"]
    assert len({r.start.episode for r in results}) == len(results), "an episode was finished twice"
    return {r.start.episode: (r.end, r.length, r.total_reward) for r in results}


def decided_here(plan, episodes):
    fleet = LocalFleet(plan)
    fragments = list(fleet.play(make_schedule(plan, episodes)))
    fleet.close()
    return facts(fragments)


def options(actors=2, **given):
    return InferenceConfig(**{"actors": actors, "wait_ms": 2.0, "cpus": 0.5, **given})


@pytest.fixture
def play():
    """Plays with three hosts, and tells a function after every fragment."""

    def run(plan, chosen, episodes=24, told=lambda actors, number: None, hosts=3):
        with open_fleet(plan, actors=hosts, inference=chosen) as (fleet, actors):
            fragments = []
            for number, fragment in enumerate(fleet.play(make_schedule(plan, episodes))):
                fragments.append(fragment)
                told(actors, number)
            summary = actors.summary()
        return fragments, summary, fleet.news

    return run


def pids(actors):
    return [actor.pulse.pid for actor in actors.supervisor.actors]


@on_ray
@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.long), 2])
def test_three_hosts_ask_and_every_episode_is_as_if_decided_in_one_host(play, count):
    plan = make_plan()
    here = decided_here(plan, 24)
    fragments, summary, news = play(plan, options(count))
    assert facts(fragments) == here
    assert not news.losses
    assert {v for f in fragments for v in f.version.tolist()} == {3}
    assert summary["actors"] == count
    assert summary["restarts"] == summary["failures"] == summary["queued"] == 0
    assert len(summary["requests_per_actor"]) == count
    assert min(summary["requests_per_actor"]) > 0, "an actor was never asked"
    assert summary["rows"] >= sum(f.env_steps for f in fragments)
    assert 0 < summary["mean_batch_rows"] <= summary["largest_batch"]


@on_ray
def test_a_killed_inference_actor_costs_no_episode(play):
    plan = make_plan(step_s=0.01)
    here = decided_here(plan, 40)
    killed = []

    def kill(actors, number):
        if number == 4:
            killed.append(pids(actors)[0])
            os.kill(killed[0], signal.SIGKILL)

    fragments, summary, news = play(plan, options(), episodes=40, told=kill)
    assert killed
    assert facts(fragments) == here
    assert not news.losses
    assert not [loss for f in fragments for loss in f.losses]
    assert not psutil.pid_exists(killed[0])
    assert summary["requests_per_actor"][1] > 0


@pytest.mark.long
@on_ray
def test_the_only_one_is_restarted_and_one_that_hangs_is_too(play):
    """SIGKILL, and later SIGSTOP, which nobody notices but who looks after it."""
    plan = make_plan(step_s=0.01)
    here = decided_here(plan, 60)
    stopped = []

    def trouble(actors, number):
        if number == 3:
            os.kill(pids(actors)[0], signal.SIGKILL)
        if number > 12 and not stopped and actors.summary()["restarts"] == 1:
            stopped.append(pids(actors)[0])
            os.kill(stopped[0], signal.SIGSTOP)

    chosen = options(1, deadline_s=24.0)
    fragments, summary, news = play(plan, chosen, episodes=60, told=trouble)
    assert stopped, "it was over before the second trouble"
    assert facts(fragments) == here
    assert not news.losses
    assert summary["restarts"] >= 2


@pytest.mark.long
@on_ray
def test_without_restarts_left_the_run_ends_early(play):
    plan = make_plan(step_s=0.01)

    def kill(actors, number):
        if number in {2, 6}:
            end = time.monotonic() + 600
            while actors.summary()["restarts"] < number // 4 and time.monotonic() < end:
                time.sleep(0.2)
            os.kill(pids(actors)[0], signal.SIGKILL)

    with pytest.raises(BudgetExhausted):
        play(plan, options(1, restarts=1), episodes=400, told=kill)


@pytest.mark.long
@on_ray
def test_a_policy_that_does_not_end_is_restarted_and_another_decides(play, tmp_path):
    marker = tmp_path / "hung"

    # Classes within a function travel by value: an actor does not find the modules of tests.
    class Hanging:
        def build(self, spec, task, *, seed):
            player = FakePolicy(3).build(spec, task, seed=seed)
            decide = player.act

            def act(*arguments, **options):
                with contextlib.suppress(FileExistsError):
                    marker.touch(exist_ok=False)
                    time.sleep(600)
                return decide(*arguments, **options)

            player.act = act
            return player

    here = decided_here(make_plan(), 12)
    seen = []

    def until_restarted(actors, number):
        end = time.monotonic() + 600
        while not seen and time.monotonic() < end:
            seen.extend([True] * actors.summary()["restarts"])
            time.sleep(0.5)

    fragments, _, news = play(
        make_plan(Hanging()), options(deadline_s=20.0), episodes=12, told=until_restarted
    )
    assert marker.exists()
    assert seen, "it was not restarted"
    assert facts(fragments) == here
    assert not news.losses


@on_ray
@pytest.mark.parametrize(
    ("error", "told"), [(ConfigError, ConfigError), (RuntimeError, BudgetExhausted)]
)
def test_a_policy_that_cannot_be_built_there_ends_it_before_any_game(error, told):
    class Missing:
        def build(self, spec, task, *, seed):
            raise error("no checkpoint at /nowhere")

    expected = pytest.raises(told, match=r"inference actor.*no checkpoint at /nowhere")
    with expected, open_fleet(make_plan(Missing()), actors=1, inference=options(1)):
        pytest.fail("it came up")


def test_what_actors_need_is_compared_with_what_machines_have():
    def nodes(*gpus, group=""):
        return [Node(f"n{k}", {"CPU": 8.0, "GPU": g}, group) for k, g in enumerate(gpus)]

    need = InferenceConfig(actors=4, gpus=0.5)
    require_room(need, 0, nodes(1, 1))
    with pytest.raises(ConfigError, match=r"need 2 GPUs beside the 1 of the games, .* has 2"):
        require_room(need, 1, nodes(1, 1))
    require_room(need, 1, nodes(1, 1, group="workers"))
    with pytest.raises(ConfigError, match=r"inference\.gpus\) needs 2 GPU, .* n0, has 1 GPU"):
        require_room(need.model_copy(update={"gpus": 2.0}), 0, nodes(1, 1))
    with pytest.raises(ConfigError, match=r"inference\.cpus.* needs 16 CPU, .* has 8 CPU"):
        require_room(need.model_copy(update={"cpus": 16.0}), 0, nodes(1))
    require_room(need.model_copy(update={"gpus": 0.0}), 2, nodes(0))


AGENT = """
import numpy as np

def act(observations, details, explore):
    x, y = (observations["position"] * 7).round().astype(int).T
    return (3 * x + 5 * y + explore) % 5
"""


def run(script: str, folder: Path, config: dict, *arguments: str) -> subprocess.CompletedProcess:
    """Runs a script as a user does."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "asked_agent.py").write_text(AGENT)
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({"output": str(folder / "run"), **config}))
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), "--config", str(file), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder.parent)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


COLLECT = {
    "bridge": {"name": "fake", "max_steps": 30},
    "policy": {"name": "callable", "function": "asked_agent:act"},
    "episodes": 18,
    "actors": 3,
    "fragment": {"steps": 8},
    "host": {"retries": 3},
}


def episodes_of(folder: Path) -> dict:
    out = {}
    with Dataset(folder / "run" / "dataset") as dataset:
        for ref in dataset.episodes():
            assert ref.episode not in out, f"episode {ref.episode} is there twice"
            columns = dataset.read(ref, ["action/move", "reward"]).columns
            moves, rewards = columns["action/move"].tolist(), columns["reward"].tolist()
            out[ref.episode] = (ref.state, ref.seed, moves, rewards)
    return out


def summary_of(folder: Path) -> dict:
    return json.loads((folder / "run" / "summary.json").read_text())


@pytest.mark.long
def test_a_collection_is_the_same_with_two_inference_actors_and_without(tmp_path):
    without = run("collect.py", tmp_path / "without", {**COLLECT, "actors": 0})
    assert without.returncode == 0, without.stderr
    asked = {**COLLECT, "inference": {"actors": 2, "wait_ms": 2.0, "cpus": 0.5}}
    done = run("collect.py", tmp_path / "with", asked)
    assert done.returncode == 0, done.stderr
    episodes = episodes_of(tmp_path / "without")
    assert sorted(episodes) == list(range(18))
    assert episodes_of(tmp_path / "with") == episodes
    assert "inference" not in summary_of(tmp_path / "without")
    told = summary_of(tmp_path / "with")["inference"]
    assert told["actors"] == 2
    assert told["requests"] > 0


@pytest.mark.long
def test_a_collection_continues_with_other_inference_actors(tmp_path):
    """They decide how it is carried out, not what comes out."""
    asked = {**COLLECT, "actors": 1, "episodes": 4, "inference": {"actors": 2, "cpus": 0.5}}
    for name in ("whole", "broken"):
        episodes = 4 if name == "whole" else 2
        done = run("collect.py", tmp_path / name, {**asked, "episodes": episodes})
        assert done.returncode == 0, done.stderr
    more = {**asked, "inference": {"actors": 1}}
    again = run("collect.py", tmp_path / "broken", more, "--resume")
    assert again.returncode == 0, again.stderr
    assert episodes_of(tmp_path / "broken") == episodes_of(tmp_path / "whole")


@pytest.mark.usefixtures("joined_ray")
def test_more_gpus_than_there_are_is_wrong_input(tmp_path):
    asked = {**COLLECT, "actors": 1, "inference": {"actors": 1, "gpus": 64.0}}
    done = run("collect.py", tmp_path / "gpus", asked)
    assert done.returncode == 2, done.stderr
    assert "inference.gpus) needs 64 GPU, and no machine of the cluster has any" in done.stderr


@pytest.mark.long
def test_an_evaluation_is_the_same_with_two_inference_actors_and_without(tmp_path):
    """Players of several kinds in one fleet, one with memory; and played here, without hosts."""
    net = {"name": "actor_critic", "hidden": [16], "memory": "gru", "memory_size": 8}
    config = {
        "bridge": "fake",
        "players": {
            "agent": COLLECT["policy"],
            "net": {**net, "columns": ["position"]},
        },
        "sets": {"train": {"size": 3}, "test": {"split": "test", "size": 2}},
        "actions": ["sampled", "deterministic"],
        "task": str(tmp_path / "task.yaml"),
        "width": 2,
        "actors": 0,
    }
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 12}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    tables = []
    for name, inference in (("without", {}), ("with", {"actors": 2, "cpus": 0.5})):
        done = run("evaluate.py", tmp_path / name, {**config, "inference": inference})
        assert done.returncode == 0, done.stderr
        tables.append((tmp_path / name / "run" / "episodes.parquet").read_bytes())
    assert tables[0] == tables[1]
    told = summary_of(tmp_path / "with")["inference"]
    assert sum(told["requests_per_actor"]) == told["requests"] > 0
    assert told["failures"] == 0
