"""Decisions that take long: instances play on while others wait for theirs."""

import threading
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from rollout.api import Decision, Limits, Splits, Start, Task
from rollout.config import HostConfig
from rollout.errors import BudgetExhausted, PluginError, PolicyUnavailable
from rollout.evaluate.legs import Leg, Legs, LegsPlayer, LegsPolicy
from rollout.host import Player, PlayOptions, Pool
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

pytestmark = pytest.mark.heavy


@dataclass
class Slow:
    """A policy whose calls are counted; ``before`` is called in the thread of every decision."""

    policy: object
    before: object
    calls: int = 16
    running: int = 0
    most: int = 0
    lock: object = field(default_factory=threading.Lock)

    version = 0

    @property
    def extras(self):
        return self.policy.extras

    def initial_memory(self, starts):
        memory = self.policy.initial_memory(starts)
        return {**memory, "episode": np.array([start.episode for start in starts])}

    def act(self, observations, memory, *, details, explore):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            self.before(memory["episode"])
            own = {key: rows for key, rows in memory.items() if key != "episode"}
            decision = self.policy.act(observations, own, details=details, explore=explore)
        finally:
            with self.lock:
                self.running -= 1
        return Decision(
            decision.actions, {**decision.memory, "episode": memory["episode"]}, decision.extras
        )


def make(folder, before, *, instances=4, width=1, isolation="in_process", calls=16, policy_s=60.0):
    bridge = FakeBridge()
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=12))
    host = HostConfig(isolation=isolation, backoff_s=0, policy_s=policy_s)
    policy = Slow(FakePolicy().build(bridge.spec, task, seed=0), before, calls)
    pool = Pool(bridge, folder, instances, width, host)
    player = Player(pool, task, policy, PlayOptions(8, None, retries=1))
    states = Splits(bridge.spec.state_space).take("train", 50)
    player.offer([Start(states[i], 1000 + i, i, 0, states.name) for i in range(10)])
    return player, policy


def meet(many):
    """A function whose first calls wait until as many of them run at once."""
    barrier, left = threading.Barrier(many), iter(range(many))

    def wait(_):
        if next(left, None) is not None:
            barrier.wait(60)

    return wait


def play(player):
    fragments = []
    try:
        while (fragment := player.next_fragment()) is not None:
            fragment.check()
            fragments.append(fragment)
    finally:
        player.close()
    return fragments


def results_of(fragments):
    results = [r for f in fragments for r in f.results if r.end != "lost"]
    return {r.start.episode: (r.length, r.total_reward) for r in results}


@pytest.mark.parametrize(
    ("instances", "width", "isolation"),
    [(4, 1, "in_process"), (2, 3, "in_process"), (3, 2, "subprocess")],
)
def test_the_same_episodes_as_one_after_another(tmp_path, instances, width, isolation):
    def wait(episode):
        threading.Event().wait(0.002 * (1 + episode[0] % 3))

    expected = results_of(play(make(tmp_path / "a", wait, calls=1)[0]))
    player, policy = make(
        tmp_path / "b", wait, instances=instances, width=width, isolation=isolation
    )
    assert results_of(play(player)) == expected
    assert len(expected) == 10
    assert policy.most <= instances


def test_no_more_calls_at_once_than_the_policy_allows(tmp_path):
    player, policy = make(tmp_path, meet(2), calls=2)
    assert len(results_of(play(player))) == 10
    assert policy.most == 2


def test_a_decision_that_hangs_delays_nobody_else(tmp_path):
    """Nine episodes end while the decision of one hangs; then it is lost, and retried."""
    release, ended = threading.Event(), []
    first = iter([True])

    def hang_once(episode):
        if episode[0] == 0 and next(first, False):
            release.wait(60)

    player, _ = make(tmp_path, hang_once, policy_s=1.0)
    try:
        fragments = []
        while (fragment := player.next_fragment()) is not None:
            fragments.append(fragment)
            ended += [r.start.episode for r in fragment.results if r.end != "lost"]
    finally:
        player.close()
        release.set()
    (loss,) = [loss for f in fragments for loss in f.losses]
    assert (loss.phase, loss.start.episode) == ("policy", 0)
    assert "did not decide within 1 s" in loss.reason
    assert sorted(ended) == list(range(10))
    assert ended.index(0) >= 6
    assert player.progress > 10  # a host that waits properly does not count as hung
    assert player.deciding_since is None


def test_a_policy_that_is_not_available_loses_the_episodes_of_one_instance(tmp_path):
    seen = Counter()

    def fail(episode):
        seen[int(episode[0])] += 1
        if episode[0] == 3:
            raise PolicyUnavailable("no server answered")

    player, _ = make(tmp_path, fail)
    fragments = play(player)
    assert [loss.phase for f in fragments for loss in f.losses] == ["policy"] * 2  # and a retry
    assert sorted(results_of(fragments)) == [0, 1, 2, *range(4, 10)]
    assert [start.episode for start in player.abandoned] == [3]


def test_the_end_of_a_budget_ends_the_play_and_keeps_what_was_played(tmp_path):
    def spent(episode):
        if episode[0] == 7:
            raise BudgetExhausted("policy.limits.usd: 5 of 5 USD are spent")

    player, _ = make(tmp_path, spent)
    fragments = []

    def play_all():
        while (fragment := player.next_fragment()) is not None:
            fragments.append(fragment)

    with pytest.raises(BudgetExhausted, match="5 of 5 USD"):
        play_all()
    player.close()
    assert len(results_of(fragments)) >= 3


def test_an_error_of_the_policy_is_raised_where_the_answer_is_needed(tmp_path):
    def wrong(episode):
        if episode[0] == 5:
            raise KeyError("goal")

    player, _ = make(tmp_path, wrong)
    with pytest.raises(PluginError, match="goal"):
        play(player)


def test_an_end_in_the_middle_waits_for_no_decision(tmp_path):
    release = threading.Event()
    player, policy = make(tmp_path, lambda _: release.wait(60))
    while policy.running < 4:
        player._assign_idle()
        player._act()
        player._receive(0.05)
    player.close()
    assert policy.running == 4
    release.set()


def test_ordinary_players_of_an_evaluation_are_called_one_at_a_time(tmp_path):
    bridge = FakeBridge()
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=12))
    states = Splits(bridge.spec.state_space).take("train", 4)
    both = (Leg("slow", FakePolicy(), "a", states), Leg("usual", FakePolicy(), "a", states))
    legs = Legs(both, task.state_space)
    joint = LegsPolicy.of(legs).build(bridge.spec, task, seed=0)
    assert joint.calls == 1
    policies = [
        Slow(joint._policies[0], meet(2)),
        Slow(joint._policies[1], lambda _: threading.Event().wait(0.003)),
    ]
    policies[1].calls = 1
    players = dict(zip(("slow", "usual"), policies, strict=True))
    joint = LegsPlayer(players, [(0, True), (1, True)], legs.offsets)
    assert joint.calls == 16
    pool = Pool(bridge, tmp_path, 4, 1, HostConfig(isolation="in_process", backoff_s=0))
    player = Player(pool, task, joint, PlayOptions(8, None))
    player.offer([legs.start(episode) for episode in range(8)])
    assert len(results_of(play(player))) == 8
    assert policies[0].most > 1
    assert policies[1].most == 1
