"""Players in Ray actors: first ready first, and what becomes of episodes when an actor dies."""

import os
import signal
import time
from collections import Counter
from dataclasses import replace

import pytest
import ray

from rollout.api import Limits, Splits, Task
from rollout.config import HostConfig
from rollout.errors import BudgetExhausted, PluginError
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan, LocalFleet
from rollout.host.ray_fleet import RayFleet
from rollout.host.schedule import Schedule
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("local_ray"),
]


def make_plan(*, instances=1, width=2, retries=3, restarts=5, **options) -> HostPlan:
    bridge = FakeBridge(**options)
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=25))
    return HostPlan(
        bridge,
        task,
        FakePolicy(),
        seed=1,
        instances=instances,
        width=width,
        host=HostConfig(restarts=restarts, actor_restarts=min(restarts, 5)),
        play=PlayOptions(steps=8, retries=retries),
    )


def make_schedule(plan: HostPlan, episodes: int) -> Schedule:
    states = Splits(plan.task.state_space).take("train", 40)
    return Schedule(states, seed=1, episodes=episodes)


def pid_of(fleet: RayFleet, number: int) -> int:
    handle = fleet.supervisor.actors[number].handle
    return ray.get(handle.__ray_call__.remote(lambda _: os.getpid()), timeout=600)


def ended(fragments):
    return Counter(r.start.episode for f in fragments for r in f.results if r.end != "lost")


def test_every_episode_is_played_once():
    plan = make_plan()
    fleet = RayFleet(plan, 3)
    fragments = list(fleet.play(make_schedule(plan, 30)))
    fleet.close()
    for f in fragments:
        f.check()
    assert ended(fragments) == Counter(range(30))
    assert len({f.instance for f in fragments}) == 3


def test_one_process_and_many_give_the_same_results():
    """FakePolicy decides by observation, memory and seed; with one seed for all, results agree."""
    plan = make_plan(width=1)
    local = LocalFleet(plan)
    here = [r for f in local.play(make_schedule(plan, 12)) for r in f.results]
    local.close()
    fleet = RayFleet(plan, 1)
    there = [r for f in fleet.play(make_schedule(plan, 12)) for r in f.results]
    fleet.close()

    def facts(results):
        return {r.start.episode: (r.length, r.total_reward, r.end) for r in results}

    assert facts(here) == facts(there)


def test_a_killed_actor_is_replaced_and_its_episodes_are_played_again():
    plan = make_plan(step_s=0.005)
    fleet = RayFleet(plan, 2)
    fragments = []
    for number, fragment in enumerate(fleet.play(make_schedule(plan, 24))):
        fragments.append(fragment)
        if number == 4:
            os.kill(pid_of(fleet, 0), signal.SIGKILL)
    fleet.close()
    assert ended(fragments) == Counter(range(24))
    assert fleet.news.replaced == 1
    assert {loss.phase for loss in fleet.news.losses} == {"actor"}
    again = {loss.start.episode for loss in fleet.news.losses}
    attempts = {
        r.start.episode: r.start.attempt for f in fragments for r in f.results if r.end != "lost"
    }
    assert again
    assert all(attempts[e] >= 1 for e in again)


def test_a_hung_actor_is_found_and_replaced():
    """SIGSTOP: nothing in the actor answers, and nobody is told."""
    plan = make_plan(step_s=0.005, start_deadline_s=1.0, reset_deadline_s=1.0, step_deadline_s=1.0)
    fleet = RayFleet(plan, 2)
    fleet.supervisor.stall_s = 4.0  # instead of the longest deadline and a margin
    fragments = []
    for number, fragment in enumerate(fleet.play(make_schedule(plan, 24))):
        fragments.append(fragment)
        if number == 4:
            os.kill(pid_of(fleet, 0), signal.SIGSTOP)
    fleet.close()
    assert ended(fragments) == Counter(range(24))
    assert any("nothing moved" in loss.reason for loss in fleet.news.losses)


@pytest.mark.long
def test_a_policy_that_never_decides_is_replaced_with_its_actor(tmp_path):
    once = tmp_path / "once"

    class SlowPolicy:
        def build(self, spec, task, *, seed):
            policy = FakePolicy().build(spec, task, seed=seed)
            decide = policy.act

            def act(*args, **kwargs):
                if not once.exists():
                    once.touch()
                    time.sleep(3600)
                return decide(*args, **kwargs)

            policy.act = act
            return policy

    plan = make_plan()
    plan = replace(plan, policy=SlowPolicy(), host=HostConfig(policy_s=4.0))
    fleet = RayFleet(plan, 2)
    fragments = list(fleet.play(make_schedule(plan, 12)))
    fleet.close()
    assert ended(fragments) == Counter(range(12))
    hung = [loss for loss in fleet.news.losses if loss.phase == "policy"]
    assert hung
    assert all("its policy has not decided for 4 s" in loss.reason for loss in hung)


def test_crashing_games_cost_attempts_not_episodes():
    plan = make_plan(crash_on_step=0.01, retries=50, restarts=500)
    fleet = RayFleet(plan, 2)
    fragments = list(fleet.play(make_schedule(plan, 20)))
    fleet.close()
    assert ended(fragments) == Counter(range(20))
    assert sum(len(f.losses) for f in fragments) > 0


def test_games_that_never_come_up_end_the_run():
    plan = make_plan(fail_on_start=1.0, restarts=1)
    fleet = RayFleet(plan, 2)
    with pytest.raises(BudgetExhausted, match="all 2 hosts"):
        list(fleet.play(make_schedule(plan, 4)))
    fleet.close()


def test_a_slow_consumer_slows_the_games():
    """Back-pressure: no more fragments exist than were taken plus those in flight."""
    plan = make_plan(width=1)
    fleet = RayFleet(plan, 2)
    schedule = make_schedule(plan, 500)
    stream = fleet.play(schedule)
    taken = [next(stream) for _ in range(3)]
    asked = sum(len(a.requests) for a in fleet.supervisor.actors)
    assert asked <= 4
    held = sum(len(h.ledger.held) for h in fleet._hosts)
    assert held < 40, "episodes are hoarded"
    assert taken
    fleet.close()


def test_a_broken_policy_is_reported_with_its_own_error():
    class Broken:
        def build(self, spec, task, *, seed):
            policy = FakePolicy().build(spec, task, seed=seed)

            def act(*args, **kwargs):
                raise ZeroDivisionError("the policy divides by zero")

            policy.act = act
            return policy

    plan = make_plan()
    plan = HostPlan(plan.bridge, plan.task, Broken(), play=plan.play)
    fleet = RayFleet(plan, 1)
    with pytest.raises(PluginError, match=r"ZeroDivisionError: .* by zero \(.*test_fleet\.py"):
        list(fleet.play(make_schedule(plan, 4)))
    fleet.close()


@pytest.mark.long
def test_an_actor_whose_games_are_exhausted_comes_back_while_others_play(tmp_path):
    """Its only game used up its restarts: a quarantine, as that of one game of many."""
    plan = make_plan(width=1, crash_on_step=0.05, once_file=str(tmp_path / "crashed"))
    fleet = RayFleet(replace(plan, host=HostConfig(restarts=0, quarantine_s=0.5)), 2)
    states = Splits(plan.task.state_space).take("train", 40)
    end, failed, back = time.monotonic() + 600, None, False
    for fragment in fleet.play(Schedule(states, seed=1, episodes=None)):
        back = fragment.instance == failed and bool(ended([fragment]))
        if fragment.losses:
            failed = fragment.instance
        if back or time.monotonic() > end:
            break
    fleet.close()
    assert failed is not None
    assert back
