"""The driver's work must not grow with the number of actors that have nothing to say."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from rollout.api import Splits, Start, Task
from rollout.config import HostConfig
from rollout.host import PlayOptions, ray_actors
from rollout.host.actors import ActorLost, Pulse, Supervisor
from rollout.host.hosting import HostPlan, HostReport
from rollout.host.ray_actors import RayLauncher
from rollout.host.ray_fleet import RayFleet
from rollout.host.schedule import Schedule
from rollout.observe.hosts import HostFigures
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

BRIDGE = FakeBridge()
TASK = Task("t", "", BRIDGE.spec.state_space, FakeEvaluator())
ACTORS = 200


@dataclass(eq=False)
class Reference:
    """To a reply."""

    kind: str
    number: int
    starts: Sequence[Start] = ()


class Cluster:
    """Launches actors of which one in a round has an answer; an answer ends its episodes."""

    def __init__(self):
        self.now, self.polls, self.rounds, self.dead = 0.0, 0, 0, set()
        self.started = Counter()

    def launch(self, number, incarnation, avoid):
        self.started[number] += 1

        def play(starts, *_):
            return Reference("play", number, starts)

        return SimpleNamespace(number=number, play=SimpleNamespace(remote=play))

    def request_pulse(self, handle):
        return Reference("pulse", handle.number)

    def wait(self, references, timeout_s):
        if references and references[0].kind == "pulse":
            return references
        self.now += 0.01 if references else timeout_s
        self.rounds += 1
        return [references[self.rounds % len(references)]] if references else []

    def get(self, reference):
        if reference.number in self.dead:
            self.dead.discard(reference.number)
            raise ActorLost("killed")
        if reference.kind == "pulse":
            return "machine", Pulse(0, 0.0)
        results = [SimpleNamespace(start=start, end="truncated") for start in reference.starts]
        fragment = SimpleNamespace(results=results, losses=())
        return HostReport(0, (), HostFigures(1, 1)), [fragment]

    def kill(self, handle):
        pass

    def machines(self):
        return ["machine"]

    def missing_resources(self):
        return ""


class Counting(Supervisor):
    """Counts how often all actors are looked at."""

    def poll(self):
        self.launcher.polls += 1
        super().poll()


def fleet_of(cluster):
    plan = HostPlan(BRIDGE, TASK, FakePolicy(), host=HostConfig(), play=PlayOptions(steps=8))
    keys = {"restarts": 5, "stall_s": 60.0, "policy_s": 60.0, "name": "host"}
    late = []  # the fleet is made of its supervisor

    def failed(*failure):
        late[0].failed(*failure)

    supervisor = Counting(
        cluster,
        ACTORS,
        plan.host,
        **keys,
        failed=failed,
        clock=lambda: cluster.now,
    )
    late.append(RayFleet(plan, supervisor=supervisor))
    return late[0]


def schedule(episodes):
    states = Splits(TASK.state_space).take("train", 40)
    return Schedule(states, seed=1, episodes=episodes)


def test_all_actors_are_looked_at_a_few_times_a_second():
    cluster = Cluster()
    fleet = fleet_of(cluster)
    ended = Counter(r.start.episode for f in fleet.play(schedule(3000)) for r in f.results)
    assert ended == Counter(range(3000))
    assert cluster.rounds > 1000
    assert cluster.polls <= cluster.now / 0.25 + 2


def test_episodes_of_actors_that_die_are_played_by_busy_ones():
    cluster = Cluster()
    fleet = fleet_of(cluster)
    ended = Counter()
    for number, fragment in enumerate(fleet.play(schedule(2000))):
        ended.update(result.start.episode for result in fragment.results)
        if number % 100 == 50:
            cluster.dead.add(number % ACTORS)
    assert ended == Counter(range(2000))
    assert sum(cluster.started.values()) - ACTORS == fleet.news.replaced > 0
    assert fleet.news.hosts.values()["queue/in_flight"] <= 2 * ACTORS


class Ray:
    """Ray's ``wait`` over numbers, of which those below ``ready`` are done."""

    def __init__(self, ready):
        self.ready, self.calls = ready, []

    def wait(self, references, num_returns, timeout):
        self.calls.append((num_returns, timeout))
        done = [each for each in references if each < self.ready][:num_returns]
        if timeout and len(done) < num_returns:
            self.ready += 3  # more come while it waits
        return done, []


@pytest.fixture
def ray(monkeypatch):
    def install(ready):
        fake = Ray(ready)
        monkeypatch.setattr(ray_actors, "ray", fake)
        monkeypatch.setattr(ray_actors, "require_ray", lambda: None)
        return fake

    return install


def waited(count, timeout_s):
    return RayLauncher(object, lambda *_: (), {}).wait(range(count), timeout_s)


def test_one_call_returns_all_that_is_ready_of_many(ray):
    fake = ray(ready=500)
    assert waited(1000, 2.0) == list(range(500))
    assert len(fake.calls) == 1


def test_few_of_many_are_gathered_for_a_moment(ray):
    fake = ray(ready=2)
    assert waited(1000, 2.0) == list(range(5))
    assert fake.calls == [(1000, 0), (1, 2.0), (62, 0.02), (1000, 0)]


def test_few_actors_are_not_made_to_wait_for_others(ray):
    fake = ray(ready=1)
    assert waited(8, 2.0) == [0]
    assert fake.calls == [(8, 0)]


def test_nothing_waits_where_no_time_is_given(ray):
    fake = ray(ready=0)
    assert waited(1, 0.0) == []
    assert fake.calls == [(1, 0)]
