"""The states of the player's instances: their table, its drawing, and any order of events."""

import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.api import Frame, Limits, Splits, Start, Task
from rollout.config import HostConfig
from rollout.errors import BudgetExhausted, InternalError, PolicyUnavailable
from rollout.host import Player, PlayOptions
from rollout.host.instances import Event
from rollout.host.states import TRANSITIONS, InstanceState, InstanceStates
from rollout.testing.fakes import IMAGE, FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

DOC = Path(__file__).parents[3] / "docs/player.md"
BRIDGE = FakeBridge()
TASK = Task("t", "", BRIDGE.spec.state_space, FakeEvaluator(), Limits(steps=4))


def test_the_drawing_is_the_table():
    drawn = re.findall(r"^    (\w+) --> (\w+): (.+)$", DOC.read_text(), re.MULTILINE)
    assert drawn == [(a.name, b.name, why) for (a, b), why in TRANSITIONS.items()]


def test_every_state_is_reached_and_left():
    for state in InstanceState:
        assert any(b is state for _, b in TRANSITIONS)
        assert any(a is state for a, _ in TRANSITIONS)


def test_impossible_transitions_are_refused():
    for before in InstanceState:
        for after in InstanceState:
            states = InstanceStates(1)
            states._of[0] = before
            if (before, after) in TRANSITIONS:
                continue
            with pytest.raises(InternalError, match=f"from {before.name} to {after.name}"):
                states.enter(0, after)


class RandomPool:
    """Answers commands in any order, late, with ends, or with failures, as a generator says."""

    spec, host = BRIDGE.spec, HostConfig()

    def __init__(self, chance, instances, width, failures, worn):
        self.chance, self.instances, self.width = chance, instances, width
        self.failures, self.share_worn = failures, worn
        self.pending = {}  # command in flight, by instance
        self.playing = [set() for _ in range(instances)]
        self.left = [12] * instances  # failures it survives
        self.recycled = 0

    def launch(self):
        self.pending = dict.fromkeys(range(self.instances), ("start", None))

    def incarnation(self, number):
        return 12 - self.left[number]

    def command(self, number, kind, slots=None):
        assert number not in self.pending, "a command to an instance that has not answered"
        self.pending[number] = (kind, slots)

    def reset(self, number, slots, starts):
        assert slots
        assert len(slots) == len(starts) == len(set(slots))
        self.command(number, "reset", list(slots))

    def send(self, number, actions):
        self.command(number, "step")

    def due_for_recycling(self, number):
        return self.chance.random() < self.share_worn

    def recycle(self, number):
        self.recycled += 1
        self.command(number, "start")

    def played(self, number, episodes):
        pass

    @property
    def busy(self):
        return bool(self.pending)

    @property
    def alive(self):
        return sum(left > 0 for left in self.left)

    def recv(self, *, timeout_s=None):
        if timeout_s is not None and self.chance.random() < 0.3:
            return []  # all are slow
        count = self.chance.randint(1, len(self.pending))
        numbers = self.chance.sample(sorted(self.pending), count)
        return [self.answer(number) for number in numbers]

    def answer(self, number):
        kind, slots = self.pending.pop(number)
        if self.chance.random() < self.failures:
            self.playing[number].clear()
            self.left[number] -= 1
            if self.left[number]:
                self.pending[number] = ("start", None)
            return Event(number, "failed", phase=kind, reason="bad luck")
        if kind == "start":
            return Event(number, "launched")
        if kind == "reset":
            self.playing[number].update(slots)
            return Event(number, "reset", self.frame(len(slots), []))
        over = [s for s in self.playing[number] if self.chance.random() < 0.3]
        self.playing[number].difference_update(over)
        return Event(number, "step", self.frame(self.width, over))

    def frame(self, rows, over):
        ended = np.isin(np.arange(rows), over)
        cut = ended & (self.chance.random() < 0.5)
        return Frame(
            {
                "image": np.zeros((rows, IMAGE, IMAGE, 3), np.uint8),
                "position": np.zeros((rows, 2), np.float32),
            },
            {
                "reward": np.ones(rows, np.float32),
                "distance": np.ones(rows, np.float32),
                "reached": np.zeros(rows, bool),
            },
            ended & ~cut,
            cut,
            np.ones(rows, np.int64),
        )


class Unsure:
    """A policy that is sometimes not available."""

    def __init__(self, chance, share):
        self.inner = FakePolicy().build(BRIDGE.spec, TASK, seed=0)
        self.version, self.extras = self.inner.version, self.inner.extras
        self.chance, self.share = chance, share

    def initial_memory(self, starts):
        self.hesitate()
        return self.inner.initial_memory(starts)

    def act(self, observations, memory, **options):
        self.hesitate()
        return self.inner.act(observations, memory, **options)

    def hesitate(self):
        if self.chance.random() < self.share:
            raise PolicyUnavailable("nobody decides")


def check_member_sets(player):
    for number in range(player.pool.instances):
        state = player._states[number]
        track = player._tracks[number]
        playing = {slot for slot, start in enumerate(track.referee.starts) if start is not None}
        begun = {slot for slot, _ in track.resetting}
        assert (number in player._vacant) == bool(track.free)
        slots = sorted([*playing, *begun, *track.free])
        assert slots == list(range(player.pool.width)), "a slot is forgotten, or in two states"
        assert (number in player.pool.pending) == (
            state in (InstanceState.RESETTING, InstanceState.STEPPING)
            or (state is InstanceState.STARTING and player.pool.left[number] > 0)
        )
        assert bool(playing) <= (
            state in (InstanceState.RESETTING, InstanceState.READY, InstanceState.STEPPING)
        )


@pytest.mark.heavy
@given(
    seed=st.integers(0, 2**32),
    instances=st.integers(1, 4),
    width=st.integers(1, 4),
    failures=st.sampled_from([0.0, 0.05, 0.3]),
    unsure=st.sampled_from([0.0, 0.1]),
    worn=st.sampled_from([0.0, 0.2]),
    prompt=st.booleans(),
)
@settings(max_examples=60)
def test_any_order_of_events_keeps_every_episode(
    seed, instances, width, failures, unsure, worn, prompt
):
    chance = random.Random(seed)
    pool = RandomPool(chance, instances, width, failures, worn)
    options = PlayOptions(3, retries=2, prompt=prompt, gather_s=0.0)
    player = Player(pool, TASK, Unsure(chance, unsure), options)
    states = Splits(BRIDGE.spec.state_space).take("train", 50)
    starts = [Start(states[i], i, i) for i in range(12)]
    fragments, ended = [], False
    player.offer(starts[:8])
    try:
        while True:
            found = player.next_fragments()
            check_member_sets(player)
            if not found and ended:
                break
            if not ended:
                player.offer(starts[8:])
                ended = True
            fragments += found
    except BudgetExhausted:
        assert pool.alive == 0
    ends = Counter()
    for fragment in fragments:
        fragment.check()
        ends.update(r.start.episode for r in fragment.results if r.end != "lost")
        for loss in fragment.losses:
            assert loss.start.attempt <= 2
    given_up = Counter(start.episode for start in player.abandoned)
    waiting = Counter(start.episode for start in player.starts)
    offered = 12 if ended else 8
    assert ends + given_up + waiting == Counter(range(offered))
    assert pool.alive == 0 or not waiting
