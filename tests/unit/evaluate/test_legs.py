"""Legs: numbers, paired seeds, and one policy that is many."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.api import Decision, Factor, Limits, Splits, StateSpace, Task
from rollout.errors import ConfigError, ContractError
from rollout.evaluate.legs import (
    Leg,
    Legs,
    LegsPolicy,
    Place,
    paired_seed,
)
from rollout.evaluate.scoreboard import LegSchedule
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

pytestmark = pytest.mark.heavy

BRIDGE = FakeBridge()
SPACE = BRIDGE.spec.state_space
TASK = Task("t", "", SPACE, FakeEvaluator(), Limits(steps=10))
SPLITS = Splits(SPACE)


def leg(player="a", set_name="train", size=3, *, recipe=None, **about):
    states = SPLITS.take("test" if set_name == "test" else "train", size)
    return Leg(player, recipe or FakePolicy(), set_name, states, **about)


@st.composite
def some_legs(draw):
    sizes = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=5))
    made = [leg(f"p{i}", size=s, repeats=r) for i, (s, r) in enumerate(sizes)]
    return Legs(tuple(made), SPACE)


@given(some_legs())
def test_every_number_is_one_episode_leg_by_leg(legs):
    places = [legs.place(episode) for episode in range(legs.episodes)]
    assert places == sorted(places)
    assert [legs.number(place) for place in places] == list(range(legs.episodes))
    for number, one in enumerate(legs.legs):
        mine = [p for p in places if p.leg == number]
        assert len(set(mine)) == len(mine) == one.states.size * one.repeats


def test_all_players_meet_the_same_states_with_the_same_seeds():
    legs = Legs((leg("a", repeats=2), leg("b", repeats=2), leg("b", "test", repeats=2)), SPACE, 7)
    starts = [legs.start(e) for e in range(legs.episodes)]
    a, b, test = starts[:6], starts[6:12], starts[12:]
    assert [(s.state.index, s.seed) for s in a] == [(s.state.index, s.seed) for s in b]
    assert len({s.seed for s in a + test}) == 12  # another state or repeat, another seed
    assert [s.episode for s in starts] == list(range(18))
    again = Legs(legs.legs, SPACE, 8)
    assert not {s.seed for s in starts} & {again.start(e).seed for e in range(18)}
    assert all(0 <= s.seed < 2**63 for s in starts)


def test_a_state_has_its_seed_in_regardless_of_set_it_is():
    """A space that is restricted numbers its states anew; the seed goes by the state itself."""
    small = SPACE.restrict({"colour": ["teal"]})
    inside = Leg("a", FakePolicy(), "teal", Splits(small).take("all", 5))
    legs = Legs((inside,), SPACE)
    for episode in range(5):
        start = legs.start(episode)
        index = SPACE.index(start.state.values)
        assert index != start.state.index
        assert start.seed == paired_seed(0, index, 0)


def test_seeds_of_states_beyond_64_bits():
    space = StateSpace((Factor("huge", range(10**30)),))
    states = Splits(space).take("test", 4)
    legs = Legs((Leg("a", FakePolicy(), "test", states),), space)
    assert len({legs.start(e).seed for e in range(4)}) == 4
    assert paired_seed(0, 10**29, 0) != paired_seed(0, 10**29 + 2**64, 0)


def test_the_schedule_leaves_out_what_is_done_and_hands_lost_ones_out_first():
    legs = Legs((leg("a"), leg("b")), SPACE)
    schedule = LegSchedule(legs, finished={0, 4})
    first = schedule.take(2)
    assert [s.episode for s in first] == [1, 2]
    schedule.give_back([replace(first[0], attempt=1)])
    assert [(s.episode, s.attempt) for s in schedule.take(10)] == [(1, 1), (3, 0), (5, 0)]
    assert schedule.exhausted


def test_what_makes_no_legs_is_refused():
    with pytest.raises(ConfigError, match="a/train/sampled twice"):
        Legs((leg(), leg()), SPACE)
    with pytest.raises(ConfigError, match="got none"):
        Legs((), SPACE)
    with pytest.raises(ConfigError, match="1 repeat or more"):
        leg(repeats=0)
    with pytest.raises(ConfigError, match="sampled or deterministic"):
        leg(actions="greedy")
    other = leg("a", "test", recipe=FakePolicy(version=3))
    with pytest.raises(ConfigError, match="player 'a' have different recipes"):
        LegsPolicy.of(Legs((leg(), other), SPACE))


def observed(rows, seed=0):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (rows, 16, 16, 3)).astype(np.uint8)
    return {"image": image, "position": rng.random((rows, 2), np.float32)}


def players_of(legs, seed=5):
    """The players as the joint policy builds them, each on its own."""
    joint = LegsPolicy.of(legs).build(BRIDGE.spec, TASK, seed=seed)
    return joint, dict(zip(joint._names, joint._policies, strict=True))


@given(st.lists(st.integers(0, 23), min_size=1, max_size=12), st.integers(0, 3))
def test_a_mixed_batch_is_decided_as_by_each_player_alone(episodes, steps):
    legs = Legs(
        (
            leg("a", recipe=FakePolicy(1), repeats=2),
            leg("a", "test", recipe=FakePolicy(1), repeats=2, actions="deterministic"),
            leg("b", recipe=FakePolicy(2), repeats=2),
            leg("c", recipe=FakePolicy(3), repeats=2, actions="deterministic"),
        ),
        SPACE,
    )
    joint, alone = players_of(legs)
    starts = [legs.start(e) for e in episodes]
    memory = joint.initial_memory(starts)
    own = [
        alone[legs.legs[legs.leg_of(e)].player].initial_memory([legs.start(e)]) for e in episodes
    ]
    for step in range(steps + 1):
        seen = observed(len(episodes), step)
        decision = joint.act(seen, memory, details=None, explore=False)
        assert dict(decision.extras) == {}
        for row, episode in enumerate(episodes):
            of = legs.legs[legs.leg_of(episode)]
            one = alone[of.player].act(
                {k: v[row : row + 1] for k, v in seen.items()},
                own[row],
                details=None,
                explore=of.actions == "sampled",
            )
            own[row] = one.memory
            assert decision.actions["move"][row] == one.actions["move"][0]
        memory = decision.memory
    # Players of one kind share the columns of their memory.
    assert sorted(memory) == ["count:<i8:", "group", "seed:<u8:"]


@dataclass(frozen=True)
class Spy:
    """A policy that keeps what it was given."""

    def build(self, spec, task, *, seed):
        return SpyPlayer()


class SpyPlayer:
    version, extras = 0, {}

    def __init__(self):
        self.seen, self.leaks = [], False

    def initial_memory(self, starts):
        return {"h": np.ones((len(starts), 4), np.float32)}

    def act(self, observations, memory, *, details, explore):
        self.seen.append((observations, memory, details, explore))
        rows = len(next(iter(observations.values())))
        extra = {"other": memory["h"]} if self.leaks else {}
        return Decision({"move": np.ones(rows, np.int64)}, {"h": memory["h"] + 1, **extra})


def test_a_batch_of_one_kind_is_passed_on_without_a_copy():
    legs = Legs((leg("a", recipe=Spy()), leg("a", "test", recipe=Spy()), leg("b")), SPACE)
    joint, alone = players_of(legs)
    memory = joint.initial_memory([legs.start(0), legs.start(4)])  # two sets, one player
    seen = observed(2)
    decision = joint.act(seen, memory, details=[{"x": 1}, {}], explore=False)
    ((observations, given, details, explore),) = alone["a"].seen
    assert observations is seen
    assert given["h"] is memory["h:<f4:4"]
    assert details == [{"x": 1}, {}]
    assert explore is True
    assert (decision.memory["h:<f4:4"] == 2).all()
    assert decision.memory["seed:<u8:"] is memory["seed:<u8:"]


def test_slots_that_never_played_split_no_batch():
    legs = Legs((leg("a", recipe=Spy()), leg("b", recipe=Spy(), actions="deterministic")), SPACE)
    joint, alone = players_of(legs)
    begun = joint.initial_memory([legs.start(4)])
    memory = {k: np.concatenate([np.zeros_like(v), v]) for k, v in begun.items()}
    joint.act(observed(2), memory, details=None, explore=True)
    assert not alone["a"].seen
    assert [s[3] for s in alone["b"].seen] == [False]
    assert len(alone["b"].seen[0][0]["image"]) == 2
    # In a mixed batch they are passed to any player.
    mixed = joint.initial_memory([legs.start(0), legs.start(4)])
    memory = {k: np.concatenate([np.zeros_like(v[:1]), v]) for k, v in mixed.items()}
    decision = joint.act(observed(3), memory, details=[{"row": i} for i in range(3)], explore=True)
    assert [d for *_, d, _ in alone["a"].seen] == [[{"row": 1}]]
    assert alone["b"].seen[-1][2] == [{"row": 0}, {"row": 2}]
    assert decision.actions["move"].tolist() == [1, 1, 1]
    assert decision.memory["group"].tolist() == [0, 1, 2]


def test_a_player_that_does_not_fit_is_named():
    text = replace(BRIDGE.spec, action_space=_text_space())
    legs = Legs((leg("good", recipe=Spy()), leg("bad")), SPACE)
    with pytest.raises(ConfigError, match="player 'bad': FakePolicy plays no text"):
        LegsPolicy.of(legs).build(text, TASK, seed=0)


def _text_space():
    from gymnasium import spaces

    return spaces.Dict({"say": spaces.Text(8)})


def test_a_memory_that_changes_its_columns_is_reported():
    legs = Legs((leg("a", recipe=Spy()),), SPACE)
    joint, alone = players_of(legs)
    memory = joint.initial_memory([legs.start(0)])
    alone["a"].leaks = True
    with pytest.raises(ContractError, match=r"player 'a'.*\['h'\].*\['h', 'other'\]"):
        joint.act(observed(1), memory, details=None, explore=True)


def test_players_draw_chance_of_their_own():
    """Two players of one recipe, and one player in two hosts, do not play the same chance."""
    legs = Legs((leg("a"), leg("b")), SPACE)
    _, here = players_of(legs, seed=1)
    _, there = players_of(legs, seed=2)
    assert len({p._seed for p in (*here.values(), *there.values())}) == 4


def test_places_read_as_what_they_are():
    assert Place(1, 2, 3) == (1, 2, 3)
    assert leg("a", "test", actions="deterministic").name == "a/test/deterministic"
