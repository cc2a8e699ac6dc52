"""One fault suite for all actors: hosts that collect or evaluate, runners, inference actors."""

import ast
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rollout.api import Deadlines, Limits, Splits, Task
from rollout.config import CollectConfig, HostConfig, InferenceConfig, make_config
from rollout.errors import BudgetExhausted, ConfigError
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.legs import Leg, Legs
from rollout.evaluate.playing import legs_plan
from rollout.host import actors as supervision
from rollout.host import inference_actors, ray_fleet
from rollout.host.actors import ARRIVAL_S, POLL_S, STALL_MARGIN_S, ActorLost, Pulse
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan
from rollout.train.rllib import runners

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).resolve().parents[3]
BRIDGE = FakeBridge(start_deadline_s=300.0, reset_deadline_s=40.0, step_deadline_s=20.0)
TASK = Task("t", "", BRIDGE.spec.state_space, FakeEvaluator(), Limits(steps=25))
STATES = Splits(TASK.state_space).take("train", 40)
JOBS = ("collection", "evaluation", "training", "inference")
RUN = {"output": "x", "bridge": "fake"}
HOST = HostConfig(actor_restarts=2, policy_s=90.0, machine_failures=2)
DEADLINE_S = 400.0  # for a decision of an inference actor


class FakeActor:
    """An actor that dies, hangs or plays as it is told."""

    def __init__(self, number, incarnation, machine):
        self.number, self.incarnation, self.machine = number, incarnation, machine
        self.dead = self.stopped = self.absent = False
        self.progress, self.deciding_s, self.result = 0, 0.0, None

    def __getattr__(self, method):
        if method.startswith("_"):
            raise AttributeError(method)
        return SimpleNamespace(remote=lambda *_: ("result", self, object()))


class FakeCluster:
    """Stands in for ``RayLauncher``: two machines and a clock that moves when it is told to."""

    def __init__(self):
        self.now, self.launched, self.alive = 0.0, [], ["a", "b"]

    def __call__(self, *_):
        return self

    def launch(self, number, incarnation, avoid):
        machine = "b" if "a" in avoid else "a"
        self.launched.append(FakeActor(number, incarnation, machine))
        return self.launched[-1]

    def request_pulse(self, handle):
        return ("sign", handle, object())

    def wait(self, references, timeout_s):
        ready = [r for r in references if self._is_ready(*r)]
        self.now += 0.0 if ready else timeout_s
        return ready

    def _is_ready(self, kind, actor, _):
        if actor.dead or actor.stopped or actor.absent:
            return actor.dead
        return kind == "sign" or actor.result is not None

    def get(self, reference):
        kind, actor, _ = reference
        if actor.dead:
            raise ActorLost("the actor was killed")
        if kind == "sign":
            return actor.machine, Pulse(actor.progress, actor.deciding_s)
        if isinstance(actor.result, Exception):
            raise actor.result
        return actor.result

    def kill(self, handle):
        handle.dead = True

    def machines(self):
        return self.alive

    def missing_resources(self):
        return "gamut_game: 1"


def supervisor_of(job, host, cluster, monkeypatch):
    """The supervisor that a job makes of its configuration, with a fake cluster below it."""
    for module in (ray_fleet, runners, inference_actors):
        monkeypatch.setattr(module, "RayLauncher", cluster)
    monkeypatch.setattr(ray_fleet, "require_resources", lambda *_: None)
    monkeypatch.setattr(ray_fleet, "actor_options", lambda *_, **__: {})
    monkeypatch.setattr(inference_actors, "read_nodes", list)
    monkeypatch.setattr(inference_actors, "require_room", lambda *_: None)
    monkeypatch.setattr(inference_actors, "_processors", lambda *_: 1.0)
    plan = HostPlan(BRIDGE, TASK, FakePolicy(), host=host)
    if job == "training":
        policy = {"name": "actor_critic", "columns": ["position"]}
        config = make_config(TrainConfig, {**RUN, "policy": policy, "env_steps": 9, "runners": 2})
        train = TrainPlan.make(config.model_copy(update={"host": host}))
        made = runners.RemoteRunners(replace(train, bridge=BRIDGE), {})
    elif job == "inference":
        options = InferenceConfig(actors=2, deadline_s=DEADLINE_S, restarts=2)
        made = inference_actors.InferenceActors(plan, options, hosts=1)
    else:
        if job == "evaluation":
            legs = Legs((Leg("player", FakePolicy(), "train", STATES),), TASK.state_space, 1)
            plan = legs_plan(BRIDGE, TASK, legs, host=host)
        made = ray_fleet.RayFleet(plan, 2)
        made._schedule = Schedule(STATES, seed=1, episodes=10)
    supervisor = made.supervisor
    supervisor.clock, supervisor._polled = (lambda: cluster.now), 0.0
    for actor in supervisor.actors:
        actor.last_progress = actor.launched = 0.0
    return supervisor


class Faults:
    """A job whose two actors work until one of them is told to fail."""

    def __init__(self, job, cluster, supervisor):
        self.job, self.cluster, self.supervisor = job, cluster, supervisor
        self.healthy = True

    @property
    def actors(self):
        return self.supervisor.actors

    def run(self, seconds, *, idle=False):
        """Lets time pass; every actor that can makes progress."""
        end = self.cluster.now + seconds
        while self.cluster.now < end:
            self.cluster.now += 1.0
            for actor in self.actors:
                if actor.handle is not None:
                    actor.handle.progress += actor.handle.deciding_s == 0.0
                    if not actor.requests and self.job != "inference" and not idle:
                        actor.requests.append(("result", actor.handle, object()))
            self.supervisor.poll()
            for actor in self.supervisor.actors:
                if actor.requests and actor.requests[0][1].dead:
                    self.supervisor.take(actor)

    def restarted(self):
        return [(a.number, a.incarnation) for a in self.cluster.launched[2:]]


@pytest.fixture(params=JOBS)
def job(request):
    return request.param


@pytest.fixture
def faults(job, monkeypatch):
    cluster = FakeCluster()
    made = Faults(job, cluster, supervisor_of(job, HOST, cluster, monkeypatch))
    made.run(10.0)
    return made


def test_healthy_actors_are_left_alone(faults):
    faults.run(1000.0)
    assert faults.restarted() == []


def test_a_killed_actor_is_replaced_at_once(faults):
    faults.cluster.launched[0].dead = True
    faults.run(3 * POLL_S)
    assert faults.restarted() == [(0, 1)]
    assert faults.actors[0].health.failures


def test_a_hung_actor_is_replaced_after_the_longest_deadline(faults):
    """The same time in collection, evaluation and training, whatever a fragment may take."""
    limit = DEADLINE_S / 2 if faults.job == "inference" else 300.0 + STALL_MARGIN_S
    faults.cluster.launched[1].stopped = True
    faults.run(limit - 10.0)
    assert faults.restarted() == []
    faults.run(10.0 + 3 * POLL_S)
    assert faults.restarted() == [(1, 1)]


def test_an_actor_whose_policy_hangs_is_replaced(faults):
    limit = DEADLINE_S / 2 if faults.job == "inference" else HOST.policy_s
    faults.cluster.launched[0].deciding_s = 1.0
    faults.run(limit - 10.0)
    assert faults.restarted() == []
    faults.run(10.0 + 3 * POLL_S)
    assert faults.restarted() == [(0, 1)]


def test_an_actor_that_never_appears_is_replaced(faults):
    faults.cluster.launched[0].dead = True
    faults.cluster.launch = lambda *a, launch=faults.cluster.launch: absent(launch(*a))
    faults.run(ARRIVAL_S - 10.0)
    assert faults.restarted() == [(0, 1)]
    faults.run(20.0 + 3 * POLL_S)
    assert faults.restarted() == [(0, 1), (0, 2)]


def test_actors_that_die_before_they_appear_use_up_their_restarts(faults):
    """Nobody knows on which machine they were."""
    launch = faults.cluster.launch
    faults.cluster.launch = lambda *a: died(launch(*a))
    faults.cluster.launched[0].dead = True
    faults.run(20 * POLL_S)
    assert faults.actors[0].handle is None
    assert faults.restarted() == [(0, 1), (0, 2)]


def test_a_wait_for_what_no_machine_has_is_told_soon_and_once(faults, caplog):
    """The only machine with ``gamut_game`` dies; its actor's replacement can be placed nowhere."""
    launch, faults.cluster.alive = faults.cluster.launch, []
    faults.cluster.launch = lambda *a: absent(launch(*a))
    faults.cluster.launched[0].dead = True
    faults.run(4 * POLL_S)
    said = "waiting for gamut_game: 1; no machine has it"
    assert sum(said in line for line in caplog.messages) == 1
    faults.run(60 * POLL_S)
    assert sum(said in line for line in caplog.messages) == 1
    faults.cluster.alive = ["a"]
    faults.run(2 * POLL_S)
    faults.cluster.alive = []
    faults.run(2 * POLL_S)
    assert sum(said in line for line in caplog.messages) == 2, "a second wait was not told"


def test_a_slow_launch_on_a_machine_that_has_all_is_no_such_wait(faults, caplog):
    launch = faults.cluster.launch
    faults.cluster.launch = lambda *a: absent(launch(*a))
    faults.cluster.launched[0].dead = True
    faults.run(60 * POLL_S)
    assert "no machine" not in caplog.text


def died(actor):
    actor.dead = True
    return actor


def absent(actor):
    actor.absent = True
    return actor


def test_an_actor_without_restarts_left_is_abandoned(faults):
    for _ in range(6):
        for actor in faults.actors:
            if actor.handle is not None:
                actor.handle.dead = True
        faults.run(3 * POLL_S)
    assert [actor.handle for actor in faults.actors] == [None, None]
    assert len(faults.restarted()) == 2 * 2
    with pytest.raises(BudgetExhausted, match=r"all 2 .*s failed more than 2 times .*was killed"):
        faults.supervisor.require_available()


def test_failures_outside_of_the_window_do_not_count(faults):
    for _ in range(6):
        faults.actors[0].handle.dead = True
        faults.run(HOST.restart_window_s)
    assert faults.restarted() == [(0, k) for k in range(1, 7)]


def test_a_machine_on_which_actors_keep_failing_gets_no_new_ones_for_a_while(faults):
    for number in (0, 0, 1):
        faults.actors[number].handle.dead = True
        faults.run(2 * POLL_S + 1.0)
    assert [a.machine for a in faults.cluster.launched] == ["a"] * 4 + ["b"]
    faults.run(HOST.restart_window_s + HOST.quarantine_s)
    faults.actors[0].handle.dead = True
    faults.run(3 * POLL_S)
    assert faults.cluster.launched[-1].machine == "a", "its quarantine never ended"


def test_actors_that_nobody_listened_to_have_not_hung(faults):
    faults.cluster.now += 5000.0
    faults.supervisor.poll()
    faults.run(10.0)
    assert faults.restarted() == []


@pytest.mark.parametrize("quarantine_s", [50.0, None])
def test_an_actor_whose_games_are_exhausted_goes_into_quarantine(job, monkeypatch, quarantine_s):
    if job == "inference":
        pytest.skip("inference actors have no games")
    cluster = FakeCluster()
    host = HOST.model_copy(update={"quarantine_s": quarantine_s, "machine_failures": None})
    faults = Faults(job, cluster, supervisor_of(job, host, cluster, monkeypatch))
    faults.run(10.0)
    cluster.launched[0].result = BudgetExhausted("every game failed")
    faults.supervisor.take(faults.actors[0])
    assert faults.actors[0].handle is None
    faults.supervisor.require_available()  # the other one plays
    faults.run(40.0)
    assert faults.restarted() == []
    faults.run(20.0)
    assert faults.restarted() == ([] if quarantine_s is None else [(0, 1)])


# -- every key of host.* acts, or is refused -------------------------------------------------------

GAMES = ("rollout/host/pool.py", "rollout/host/instances.py", "rollout/host/supervision.py")
ACTORS = ("rollout/host/actors.py", "rollout/host/supervision.py")
OWN = ("rollout/configuration/sections.py",)
DEADLINES = [each.name for each in fields(Deadlines)]
READ_BY = {
    "isolation": OWN,  # as plays_in_process()
    "python": GAMES,
    "restarts": GAMES,
    "failure_rate": GAMES,
    "actor_restarts": ("rollout/host/ray_fleet.py", "rollout/train/rllib/runners.py"),
    "restart_window_s": ACTORS,
    "backoff_s": ACTORS,
    "quarantine_s": ACTORS,
    "machine_failures": ACTORS,
    "recycle_episodes": GAMES,
    "recycle_minutes": OWN,  # as recycle_s
    "memory_mb": GAMES,
    "spares": GAMES,
    "concurrent_launches": GAMES,
    "resources": OWN,  # as needs()
    "retries": ("rollout/collect.py", "rollout/evaluate/evaluate.py", "rollout/train/plan.py"),
    **dict.fromkeys(DEADLINES, OWN),  # as deadlines()
    "policy_s": ("rollout/host/ray_fleet.py", "rollout/train/rllib/runners.py"),
    "max_in_flight": ("rollout/host/ray_fleet.py",),
}
"""Where each key is read. All jobs give the same object to their pools and to their supervisor."""

NOT_FOR = {
    ("max_in_flight", "training"): "refused: runners are asked for one fragment at a time",
    ("actor_restarts", "inference"): "inference.restarts is the budget of inference actors",
    ("policy_s", "inference"): "inference.deadline_s is the deadline of their decisions",
    **{
        (key, "inference"): "of games; inference actors have none"
        for key, readers in READ_BY.items()
        if readers in (GAMES, OWN) or key in ("retries", "max_in_flight")
    },
}
"""What a key does not do, and why."""


@pytest.mark.parametrize("key", HostConfig.model_fields)
def test_every_key_is_read_where_it_is_reported_to_act(key):
    reads = [
        node.attr
        for file in READ_BY[key]
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.Attribute)
    ]
    assert key in reads or key in DEADLINES, (
        f"host.{key} is accepted and read nowhere in {READ_BY[key]}"
    )


def test_every_job_hands_its_own_host_section_on(job, monkeypatch):
    host = HostConfig(actor_restarts=4, policy_s=77.0, step_s=500.0)
    supervisor = supervisor_of(job, host, FakeCluster(), monkeypatch)
    assert supervisor.host is host
    assert supervisor._machines._host is host
    assert supervisor.actors[0].health.host is host
    if job != "inference":
        limits = (supervisor.restarts, supervisor.policy_s, supervisor.stall_s)
        assert limits == (4, 77.0, 500.0 + STALL_MARGIN_S)


def test_what_a_training_cannot_obey_is_refused_before_it_begins():
    data = {**RUN, "env_steps": 100, "host": {"max_in_flight": 3}}
    assert ("max_in_flight", "training") in NOT_FOR
    with pytest.raises(ConfigError, match=r"host: max_in_flight: runners are asked for one"):
        make_config(TrainConfig, data)


@pytest.mark.parametrize("model", [CollectConfig, EvaluateConfig, TrainConfig])
def test_the_old_name_of_a_key_gives_the_new_one(model):
    with pytest.raises(ConfigError, match=r"host\.boots: was renamed to host\.concurrent_launches"):
        make_config(model, {**RUN, "host": {"boots": 2}})


def test_the_constants_are_those_of_the_documentation():
    text = (ROOT / "docs" / "reliability.md").read_text()
    assert f"{STALL_MARGIN_S:g} s" in text
    assert f"{supervision.ARRIVAL_S / 60:g} minutes" in text
