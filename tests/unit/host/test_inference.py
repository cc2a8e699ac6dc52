"""Inference actors without Ray: who shares a call, who gets which rows, who is asked."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.actor_critic import ActorCriticPolicy
from rollout.api import ColumnSpec, Decision, Limits, Splits, Start, Task
from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig, InferenceConfig
from rollout.errors import (
    BudgetExhausted,
    ConfigError,
    ContractError,
    PluginError,
    PolicyUnavailable,
)
from rollout.evaluate.legs import Leg, Legs, LegsPolicy
from rollout.host import PlayOptions, Pool
from rollout.host.hosting import HostPlan, LocalFleet
from rollout.host.inference import Batcher, PolicyServer, Unreachable
from rollout.host.policy_calls import PolicyInput
from rollout.host.routing import Gone, RemotePolicyRecipe, Router
from rollout.host.schedule import Schedule
from rollout.testing import check_policy
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

pytestmark = pytest.mark.heavy

BRIDGE = FakeBridge()
TASK = Task("t", "", BRIDGE.spec.state_space, FakeEvaluator(), Limits(steps=25))
STATES = Splits(TASK.state_space).take("train", 40)
LONG_S = 300.0  # reached only by a failing test


class Adder:
    """Returns each row's number plus one, and keeps what it was called with."""

    version = 7

    def __init__(self):
        self.extras = {"logp": ColumnSpec()}
        self.calls = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def initial_memory(self, starts):
        self.calls.append(("begin", len(starts)))
        return {"seed": np.array([s.seed for s in starts], np.uint64)}

    def act(self, observations, memory, *, details, explore):
        x = observations["x"]
        self.calls.append((explore, x.tolist(), details))
        self.entered.set()
        assert self.gate.wait(LONG_S)
        if (x < 0).any():
            raise ConfigError(f"cannot decide {x[x < 0].tolist()}")
        return Decision({"y": x + 1}, {"m": memory["m"] * 2}, {"logp": -x.astype(np.float32)})


def ask(*numbers, explore=True, details=None, start=None):
    x = np.array(numbers, np.int64)
    return PolicyInput({"x": x}, {"m": x + 100}, details, explore, start)


def start(episode=0, seed=5):
    return Start(STATES[episode % STATES.size], seed, episode)


@pytest.fixture
def policy():
    return Adder()


@pytest.fixture
def make(policy):
    made = []

    def batcher(batch=4, wait_s=LONG_S, of=policy):
        made.append(Batcher(of, batch=batch, wait_s=wait_s))
        return made[-1]

    yield batcher
    policy.gate.set()
    for each in made:
        each.close()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(32) as executor:
        yield executor


def submit(pool, batcher, question):
    """Asks in a thread, and returns once the question is in the line."""
    before = batcher.counters().queued, batcher.counters().requests
    future = pool.submit(batcher.act, question, timeout_s=LONG_S)
    wait_for(lambda: (batcher.counters().queued, batcher.counters().requests) != before)
    return future


def wait_for(condition):
    end = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.002)


def hold(policy, pool, batcher):
    """Makes the policy busy, so that questions pile up until ``policy.gate`` is set."""
    policy.gate.clear()
    policy.entered.clear()
    first = pool.submit(batcher.act, ask(*range(1000, 1000 + batcher._batch)), timeout_s=LONG_S)
    assert policy.entered.wait(LONG_S)
    return first


def test_a_batch_that_is_full_waits_for_no_one(policy, make, pool):
    batcher = make(batch=4, wait_s=LONG_S)
    one, two = submit(pool, batcher, ask(1, 2)), submit(pool, batcher, ask(3, 4))
    assert one.result(LONG_S).actions["y"].tolist() == [2, 3]
    assert two.result(LONG_S).actions["y"].tolist() == [4, 5]
    assert policy.calls == [(True, [1, 2, 3, 4], None)]
    counters = batcher.counters()
    assert (counters.requests, counters.rows, counters.batches) == (2, 4, 1)
    assert (counters.largest_batch, counters.queued, counters.longest_queue) == (4, 0, 4)


def test_a_request_that_has_waited_is_decided_alone(policy, make):
    batcher = make(batch=1000, wait_s=0.05)
    decision = batcher.act(ask(1), timeout_s=LONG_S)
    assert decision.actions["y"].tolist() == [2]
    assert decision.memory["m"].tolist() == [202]
    assert decision.extras["logp"].tolist() == [-1]
    assert policy.calls == [(True, [1], None)]


def test_what_arrives_while_the_policy_is_busy_is_decided_together(policy, make, pool):
    batcher = make(batch=4, wait_s=0.0)
    hold(policy, pool, batcher)
    futures = [submit(pool, batcher, ask(10 * k, 10 * k + 1)) for k in range(3)]
    assert batcher.counters().queued == 6
    assert batcher.busy_s() > 0
    policy.gate.set()
    assert [f.result(LONG_S).actions["y"].tolist() for f in futures] == [[1, 2], [11, 12], [21, 22]]
    # At most four rows in a call, in the order of arrival, and no request is split.
    assert [call[1] for call in policy.calls[1:]] == [[0, 1, 10, 11], [20, 21]]
    wait_for(lambda: batcher.busy_s() == 0)


def test_a_request_that_is_larger_than_a_batch_is_not_split(policy, make):
    make(batch=2).act(ask(1, 2, 3, 4, 5), timeout_s=LONG_S)
    assert policy.calls == [(True, [1, 2, 3, 4, 5], None)]


def test_sampling_and_best_actions_never_share_a_call(policy, make, pool):
    batcher = make(batch=8, wait_s=0.0)
    hold(policy, pool, batcher)
    futures = [submit(pool, batcher, ask(k, explore=k % 2 == 0)) for k in range(6)]
    policy.gate.set()
    assert [f.result(LONG_S).actions["y"].tolist() for f in futures] == [[k + 1] for k in range(6)]
    assert policy.calls[1:] == [(True, [0, 2, 4], None), (False, [1, 3, 5], None)]


def test_details_are_joined_and_never_made_up(policy, make, pool):
    batcher = make(batch=8, wait_s=0.0)
    hold(policy, pool, batcher)
    with_text = [[{"text": "a"}, {}], [{"text": "b", "seen": [1, 2]}]]
    futures = [
        submit(pool, batcher, ask(1, 2, details=with_text[0])),
        submit(pool, batcher, ask(3)),
        submit(pool, batcher, ask(4, details=with_text[1])),
    ]
    policy.gate.set()
    assert [len(f.result(LONG_S).actions["y"]) for f in futures] == [2, 1, 1]
    assert policy.calls[1:] == [
        (True, [1, 2, 4], [*with_text[0], *with_text[1]]),
        (True, [3], None),
    ]


def test_columns_of_another_shape_are_decided_apart(policy, make, pool):
    batcher = make(batch=8, wait_s=0.0)
    hold(policy, pool, batcher)
    wide = replace(ask(1), observations={"x": np.zeros((1, 2), np.int64)})
    futures = [submit(pool, batcher, q) for q in (ask(1), wide, ask(2))]
    policy.gate.set()
    assert [f.result(LONG_S).actions["y"].shape for f in futures] == [(1,), (1, 2), (1,)]
    assert len(policy.calls) == 3


def test_an_error_reaches_everyone_as_an_error_of_their_own(policy, make, pool):
    batcher = make(batch=8, wait_s=0.0)
    hold(policy, pool, batcher)
    futures = [submit(pool, batcher, ask(-k)) for k in (1, 2, 3)]
    policy.gate.set()
    errors = [f.exception(LONG_S) for f in futures]
    assert [str(e) for e in errors] == [f"cannot decide [-{k}]" for k in (1, 2, 3)]
    assert all(isinstance(e, ConfigError) for e in errors)
    assert len({id(e) for e in errors}) == 3
    assert batcher.act(ask(1, 2, 3, 4, 5, 6, 7, 8), timeout_s=LONG_S).actions["y"][0] == 2
    assert batcher.counters().failures == 4


def test_who_is_to_blame_spoils_nothing_for_others(policy, make, pool):
    batcher = make(batch=8, wait_s=0.0)
    hold(policy, pool, batcher)
    futures = [submit(pool, batcher, ask(k)) for k in (1, -2, 3)]
    policy.gate.set()
    assert futures[0].result(LONG_S).actions["y"].tolist() == [2]
    assert "cannot decide [-2]" in str(futures[1].exception(LONG_S))
    assert futures[2].result(LONG_S).actions["y"].tolist() == [4]


def test_a_deadline_ends_the_waiting_and_the_request(policy, make, pool):
    batcher = make(batch=1, wait_s=0.0)
    busy = hold(policy, pool, batcher)
    with pytest.raises(Unreachable, match=r"within 0\.05 s"):
        batcher.act(ask(8), timeout_s=0.05)
    policy.gate.set()
    busy.result(LONG_S)
    assert batcher.act(ask(9), timeout_s=LONG_S).actions["y"].tolist() == [10]
    assert [call[1] for call in policy.calls] == [[1000], [9]], "it was decided for nobody"
    assert batcher.counters().queued == 0


def test_a_policys_own_timeout_is_reported_from_ours(make):
    class Slow(Adder):
        def act(self, *_, **__):
            raise TimeoutError("the model's server did not answer")

    with pytest.raises(PluginError, match=r"raised TimeoutError: the model's server .*, in act"):
        make(of=Slow(), wait_s=0.0).act(ask(1), timeout_s=LONG_S)


def test_the_wrong_number_of_rows_is_the_policys_fault(make):
    class Short(Adder):
        def act(self, observations, memory, *, details, explore):
            return Decision({"y": observations["x"][:-1]}, memory)

    with pytest.raises(ContractError, match=r"actions 'y' of shape \[1\]; expected one row .* 2"):
        make(of=Short(), wait_s=0.0).act(ask(1, 2), timeout_s=LONG_S)


def test_closing_tells_those_who_wait(policy, make, pool):
    batcher = make(batch=1000, wait_s=LONG_S)
    waiting = submit(pool, batcher, ask(1))
    batcher.close()
    assert "closed" in str(waiting.exception(LONG_S))
    with pytest.raises(Unreachable, match="closed"):
        batcher.act(ask(1), timeout_s=LONG_S)


def test_what_was_answered_does_not_change_with_the_next_call(make):
    class Reusing(Adder):
        buffer = np.zeros(1, np.int64)

        def act(self, observations, memory, *, details, explore):
            self.buffer[:] = observations["x"]
            return Decision({"y": self.buffer}, {}, {})

    batcher = make(of=Reusing(), wait_s=0.0)
    first = batcher.act(ask(1), timeout_s=LONG_S)
    batcher.act(ask(2), timeout_s=LONG_S)
    assert first.actions["y"].tolist() == [1]


def test_a_policy_may_write_into_what_came_read_only(make):
    class Writing(Adder):
        def act(self, observations, memory, *, details, explore):
            memory["m"] += 1
            return Decision({"y": observations["x"]}, memory)

    question = ask(1)
    question.memory["m"].flags.writeable = False
    decision = make(of=Writing(), wait_s=0.0).act(question, timeout_s=LONG_S)
    assert decision.memory["m"].tolist() == [102]
    assert question.memory["m"].tolist() == [101]


@settings(max_examples=25)
@given(
    requests=st.lists(
        st.tuples(st.integers(1, 5), st.booleans(), st.booleans()), min_size=1, max_size=12
    ),
    batch=st.integers(1, 12),
    wait_s=st.sampled_from((0.0, 0.001, 0.01)),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_interleaving_gives_everyone_their_own_rows(requests, batch, wait_s, seed):
    """FakePolicy's actions are a hash of all that a row holds: another's row is never the same."""
    rng = np.random.default_rng(seed)
    player = FakePolicy().build(BRIDGE.spec, TASK, seed=3)
    questions = []
    for rows, explore, text in requests:
        observations = {
            "image": rng.integers(0, 256, (rows, 16, 16, 3), np.uint8),
            "position": rng.random((rows, 2), np.float32),
        }
        memory = {
            "count": rng.integers(0, 9, rows),
            "seed": rng.integers(0, 2**63, rows).astype(np.uint64),
        }
        details = [{"row": k} for k in range(rows)] if text else None
        questions.append(PolicyInput(observations, memory, details, explore, start()))
    alone = [
        player.act(q.observations, q.memory, details=q.details, explore=q.explore)
        for q in questions
    ]
    batcher = Batcher(player, batch=batch, wait_s=wait_s)
    try:
        with ThreadPoolExecutor(4) as pool:
            order = rng.permutation(len(questions)).tolist()
            futures = {k: pool.submit(batcher.act, questions[k], timeout_s=LONG_S) for k in order}
            together = [futures[k].result(LONG_S) for k in range(len(questions))]
    finally:
        batcher.close()
    for own, got in zip(alone, together, strict=True):
        for part in ("actions", "memory", "extras"):
            for key, column in getattr(own, part).items():
                np.testing.assert_array_equal(getattr(got, part)[key], column)
    assert batcher.counters().requests == len(requests)


@dataclass
class DirectLink:
    """A way to a server in this process, which may be cut."""

    server: PolicyServer
    trouble: Exception | None = None
    asked: list = field(default_factory=list)

    def ask(self, method, *arguments, timeout_s):
        self.asked.append(method)
        if self.trouble is not None:
            raise self.trouble
        return getattr(self.server, method)(*arguments, timeout_s)

    def pulse(self, timeout_s):
        if isinstance(self.trouble, Gone):
            raise self.trouble
        return None if self.trouble is not None else self.server.pulse()


FAKE = FakePolicy()


def servers(count, recipe=FAKE, seed=1, **options):
    given = InferenceConfig(actors=count, wait_ms=0.0, deadline_s=2 * LONG_S, **options)
    return tuple(
        DirectLink(PolicyServer(recipe, BRIDGE.spec, TASK, seed, given)) for _ in range(count)
    )


def remote(links, deadline_s=2 * LONG_S):
    return RemotePolicyRecipe(links, InferenceConfig(actors=len(links), deadline_s=deadline_s))


def router(links, client=0, deadline_s=2 * LONG_S, patience_s=LONG_S):
    made = Router(links, deadline_s, patience_s)
    made.set_client(client)
    return made


def begin(links_router):
    return links_router.ask("begin", [start()])


def test_a_remote_policy_keeps_the_contract_of_policies():
    report = check_policy(remote(servers(2)), BRIDGE.spec, TASK)
    assert report.passed, str(report)


def test_clients_spread_evenly():
    links = servers(2)
    recipe = remote(links)
    policies = [recipe.build(BRIDGE.spec, TASK, seed=k) for k in range(4)]
    assert policies[0].extras.keys() == {"logp", "value"}
    for link in links:
        link.asked.clear()
    for policy in policies:
        policy.initial_memory([start()])
    assert [link.asked for link in links] == [["begin", "begin"]] * 2


def test_where_one_is_away_another_is_asked_until_it_is_back():
    links = servers(3)
    asking = router(links, client=1)
    links[1].trouble = Unreachable("it was killed")
    for _ in range(3):
        begin(asking)
    assert links[1].asked == ["begin"], "it was asked again although it was away"
    assert links[0].asked == ["begin"] * 3
    links[1].trouble = None
    begin(asking)
    assert links[1].asked == ["begin"] * 2


def test_of_the_others_the_least_busy_is_asked():
    links = servers(3)
    asking = router(links, client=1)
    links[1].trouble = Unreachable("it was killed")
    asking._queued[0] = 12
    begin(asking)
    assert [len(link.asked) for link in links] == [0, 1, 1]


def test_clients_of_a_dead_server_do_not_all_ask_the_same():
    links = servers(3)
    links[0].trouble = Unreachable("it was killed")
    for client in (0, 3, 6, 9):
        begin(router(links, client=client))
    assert min(len(links[k].asked) for k in (1, 2)) >= 1


def test_one_that_hangs_is_not_asked_although_it_shows_life():
    links = servers(2)
    asking = router(links, patience_s=5.0)
    links[0].trouble = Unreachable("did not answer")
    begin(asking)
    links[0].trouble, links[0].server._batcher.busy_s = None, lambda: 6.0
    begin(asking)
    assert links[0].asked == ["begin"]


def test_without_any_it_waits_until_one_is_back():
    links = servers(1)
    links[0].trouble = Unreachable("it was killed")
    timer = threading.Timer(0.5, lambda: setattr(links[0], "trouble", None))
    timer.start()
    assert begin(router(links)).version == 0
    timer.join()


def test_nobody_answers_within_the_deadline():
    links = servers(2)
    for link in links:
        link.trouble = Unreachable("it was killed")
    with pytest.raises(PolicyUnavailable, match=r"within 0\.3 s; .* actor 1: it was killed"):
        begin(router(links, deadline_s=0.3))


def test_nobody_is_left():
    links = servers(2)
    for link in links:
        link.trouble = Gone("it died of a bug")
    with pytest.raises(
        BudgetExhausted, match=r"all 2 inference actors .* it died of a bug"
    ) as told:
        begin(router(links))
    assert not isinstance(told.value, PolicyUnavailable)


def test_an_error_of_the_policy_is_no_ones_death():
    links = servers(2)
    links[0].trouble = ConfigError("there is no script for episode 3")
    with pytest.raises(ConfigError, match="no script for episode 3"):
        begin(router(links))
    assert links[1].asked == []


def test_a_policy_that_cannot_be_built_there_says_so_to_everyone():
    @dataclass(frozen=True)
    class Missing:
        def build(self, spec, task, *, seed):
            raise ConfigError("no checkpoint at /nowhere")

    (link,) = servers(1, Missing())
    for method, arguments in (("hello", (1.0,)), ("begin", ([start()], 1.0))):
        with pytest.raises(ConfigError, match="no checkpoint at /nowhere"):
            getattr(link.server, method)(*arguments)
    assert "no checkpoint at /nowhere" in str(link.server.pulse().error)


def legs():
    one, two = (Splits(TASK.state_space).take("train", n) for n in (3, 5))
    net = ActorCriticPolicy(hidden=(16,), columns=("position",), memory="lstm", memory_size=8)
    return Legs(
        (
            Leg("fake", FakePolicy(), "train", one),
            Leg("net", net, "train", one, "deterministic"),
            Leg("net", net, "more", two),
        ),
        TASK.state_space,
        seed=4,
    )


def test_another_continues_with_the_episodes_of_several_players():
    """A policy of legs learns its layout from the first start; who takes over has seen none."""
    links = servers(2, LegsPolicy.of(legs()), seed=9)
    local = LegsPolicy.of(legs()).build(BRIDGE.spec, TASK, seed=9)
    asking = remote(links).build(BRIDGE.spec, TASK, seed=0)
    starts = [legs().start(episode) for episode in (0, 3, 4, 6, 8)]
    rng = np.random.default_rng(0)
    mine, theirs = local.initial_memory(starts), asking.initial_memory(starts)
    for step in range(6):
        observations = {
            "image": rng.integers(0, 256, (5, 16, 16, 3), np.uint8),
            "position": rng.random((5, 2), np.float32),
        }
        links[step % 2].trouble = Unreachable("it was killed")
        links[1 - step % 2].trouble = None
        here = local.act(observations, mine, details=None, explore=True)
        there = asking.act(observations, theirs, details=None, explore=True)
        np.testing.assert_array_equal(there.actions["move"], here.actions["move"])
        assert there.memory.keys() == here.memory.keys()
        mine, theirs = here.memory, there.memory
    assert all("act" in link.asked for link in links)


def plan_for(policy, width=1):
    play = PlayOptions(steps=8)
    return HostPlan(BRIDGE, TASK, policy, seed=1, instances=2, width=width, play=play)


def play(fleet, episodes=12):
    fragments = list(fleet.play(Schedule(STATES, seed=1, episodes=episodes)))
    for fragment in fragments:
        fragment.check()
    return {
        r.start.episode: (r.end, r.length, r.total_reward) for f in fragments for r in f.results
    }


SEEDS = []


@dataclass(frozen=True)
class RecordingPolicy:
    """Recipe that keeps the seed it is given."""

    def build(self, spec, task, *, seed):
        SEEDS.append(seed)
        return FakePolicy().build(spec, task, seed=seed)


@pytest.mark.parametrize("count", [1, 2])
def test_episodes_are_the_same_however_many_decide(count, pool):
    local = LocalFleet(plan_for(RecordingPolicy()))
    here = play(local)
    assert len(here) == 12
    links = servers(count, seed=SEEDS[-1], batch=3)
    fleets = [LocalFleet(plan_for(remote(links), width=width)) for width in (1, 2, 3)]
    for there in pool.map(play, fleets):  # at the same time: their rows share calls
        assert there == here
    for fleet in (local, *fleets):
        fleet.close()
    assert all(link.asked for link in links)


@pytest.mark.parametrize("method", ["act", "initial_memory"])
@pytest.mark.parametrize("width", [1, 3])
def test_a_decision_that_nobody_makes_costs_its_episodes_and_nothing_else(method, width):
    """Every ninth question is answered by nobody."""

    class Absent:
        def build(self, spec, task, *, seed):
            player = FakePolicy().build(spec, task, seed=seed)
            decide, asked = getattr(player, method), []

            def sometimes(*arguments, **options):
                asked.append(None)
                if len(asked) % 9 == 0:
                    raise PolicyUnavailable("nobody decided")
                return decide(*arguments, **options)

            setattr(player, method, sometimes)
            return player

    bridge = replace(BRIDGE, max_steps=6)
    play_options = PlayOptions(steps=8, retries=50)
    whole = HostPlan(
        bridge, TASK, FakePolicy(), seed=1, instances=2, width=width, play=play_options
    )
    results, losses = {}, []
    for plan in (whole, replace(whole, policy=Absent())):
        fleet = LocalFleet(plan)
        fragments = list(fleet.play(Schedule(STATES, seed=1, episodes=40)))
        fleet.close()
        for fragment in fragments:
            fragment.check()
        ended = [r for f in fragments for r in f.results if r.end != "lost"]
        assert sorted(r.start.episode for r in ended) == list(range(40))
        results[plan.policy] = {r.start.episode: (r.length, r.total_reward) for r in ended}
        losses = [loss for f in fragments for loss in f.losses]
    assert losses
    assert {(loss.phase, loss.reason) for loss in losses} == {("policy", "nobody decided")}
    here, there = results.values()
    assert there == here


@pytest.mark.parametrize("method", ["act", "initial_memory"])
@pytest.mark.parametrize(("instances", "width"), [(1, 1), (2, 1), (2, 3)])
@pytest.mark.parametrize("after", [7, 20, 41])
def test_when_nobody_decides_any_more_all_that_was_played_is_given_first(
    monkeypatch, method, instances, width, after
):
    ended, played = [], Pool.played
    monkeypatch.setattr(
        Pool, "played", lambda pool, n, count: (ended.append(count), played(pool, n, count))
    )
    asked = []

    class Vanishing:
        def build(self, spec, task, *, seed):
            player = FakePolicy().build(spec, task, seed=seed)
            decide = getattr(player, method)

            def once(*arguments, **options):
                asked.append(None)
                if len(asked) > after:
                    raise BudgetExhausted("all inference actors died")
                return decide(*arguments, **options)

            setattr(player, method, once)
            return player

    bridge = replace(BRIDGE, max_steps=6)
    options = PlayOptions(steps=32, prompt=False, gather_s=600.0)
    fleet = LocalFleet(
        HostPlan(bridge, TASK, Vanishing(), seed=1, instances=instances, width=width, play=options)
    )
    fragments = []
    with pytest.raises(BudgetExhausted, match="all inference actors died"):
        fragments.extend(fleet.play(Schedule(STATES, seed=1, episodes=10**6)))
    fleet.close()
    for fragment in fragments:
        fragment.check()
    assert sum(len(f.results) for f in fragments) == sum(ended)
    assert not [loss for f in fragments for loss in f.losses]


BAD = {
    "inference.actors=-1": "inference.actors",
    "inference.batch=0": "inference.batch",
    "inference.wait_ms=-1": "inference.wait_ms",
    "inference.cpus=-1": "inference.cpus",
    "inference.gpus=1.5": "a fraction of one GPU or whole GPUs, got 1.5",
    "inference.deadline_s=0": "inference.deadline_s",
    "inference.restarts=-1": "inference.restarts",
    "inference.actor=1": "actors",
}


@pytest.mark.parametrize("setting", BAD)
def test_bad_input_is_one_clear_line(setting, tmp_path, capsys):
    config = tmp_path / "config.yaml"
    given = {"output": str(tmp_path / "run"), "bridge": "fake", "policy": "random", "episodes": 2}
    config.write_text(yaml.safe_dump(given))
    status = main(collect, CollectConfig, "Plays.", ["--config", str(config), "--set", setting])
    error = capsys.readouterr().err
    assert status == 2
    assert BAD[setting] in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "run").exists()
