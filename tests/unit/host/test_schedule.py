"""Which episode comes next, and what a resumed run plays."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.api import EpisodeResult, Factor, Loss, Outcome, Splits, StateSpace
from rollout.errors import ConfigError
from rollout.host import schedule as schedule_module
from rollout.host.schedule import Ledger, Schedule, Visits, episode_seed

STATES = Splits(StateSpace((Factor("n", range(1000)),))).take("train", 30)


def all_of(schedule: Schedule, count: int):
    out = []
    while batch := schedule.take(count):
        out += batch
    return out


@given(episodes=st.integers(0, 100), chunk=st.integers(1, 40), seed=st.integers(0, 2**63))
@settings(max_examples=30)
def test_every_episode_once_regardless_of_the_chunks(episodes, chunk, seed):
    one = all_of(Schedule(STATES, seed=seed, episodes=episodes), chunk)
    assert [s.episode for s in one] == list(range(episodes))
    assert one == all_of(Schedule(STATES, seed=seed, episodes=episodes), 1)
    assert all(s.state == STATES[s.episode % 30] for s in one)
    assert all(0 <= s.seed < 2**63 for s in one)


@given(done=st.sets(st.integers(0, 59)))
@settings(max_examples=30)
def test_a_resumed_run_plays_exactly_what_is_missing(done):
    whole = all_of(Schedule(STATES, seed=4, episodes=60), 7)
    attempts = {3: 2, 5: 1}
    rest = all_of(Schedule(STATES, seed=4, episodes=60, finished=done, attempts=attempts), 7)
    expected = [replace(s, attempt=attempts.get(s.episode, 0)) for s in whole]
    assert rest == [s for s in expected if s.episode not in done]


def test_episodes_given_back_come_first():
    schedule = Schedule(STATES, seed=0, episodes=10)
    taken = schedule.take(4)
    schedule.give_back(taken[1:3])
    assert [s.episode for s in schedule.take(10)] == [1, 2, 4, 5, 6, 7, 8, 9]
    assert schedule.exhausted
    schedule.give_back(taken[:1])
    assert not schedule.exhausted
    schedule.stop()
    assert schedule.exhausted
    assert schedule.take(1) == []


def test_episode_seeds_differ_by_run_and_episode():
    seeds = {episode_seed(run, episode) for run in range(20) for episode in range(50)}
    assert len(seeds) == 1000
    assert episode_seed(7, 3) == episode_seed(7, 3)


def result(start, end):
    return EpisodeResult(start, 0, 0, end, Outcome.RUNNING, 1, 0.0, 0.0, 0.0)


def loss(start, steps):
    return Loss(start, 0, 0, "step", "crashed", steps)


def test_the_ledger_keeps_what_is_unfinished_and_its_newest_attempt():
    ledger = Ledger(retries=2)
    a, b, c, d = Schedule(STATES, seed=0, episodes=4).take(4)
    ledger.give([a, b, c, d])
    ledger.settle([result(a, "terminated"), result(b, "lost")], [loss(b, 3)], abandoned=[d])
    assert {e: s.attempt for e, s in ledger.held.items()} == {1: 1, 2: 0}
    ledger.settle([], [loss(c, 0)])  # lost before its first step: there is no result
    ledger.settle([result(replace(b, attempt=1), "lost")], [loss(replace(b, attempt=1), 9)])
    assert {e: s.attempt for e, s in ledger.held.items()} == {1: 2, 2: 1}
    again, given_up = ledger.lose()
    assert [(s.episode, s.attempt) for s in again] == [(2, 2)]
    assert [s.episode for s in given_up] == [1]
    assert not ledger.held


# --- runners that share a schedule, and training that goes on -----------------------------------


@given(runners=st.integers(1, 5), episodes=st.integers(0, 60), chunk=st.integers(1, 9))
@settings(max_examples=30)
def test_runners_share_the_episodes_without_talking(runners, episodes, chunk):
    alone = all_of(Schedule(STATES, seed=3, episodes=episodes), 7)
    shares = [
        all_of(Schedule(STATES, seed=3, episodes=episodes, stride=runners, offset=r), chunk)
        for r in range(runners)
    ]
    together = sorted((s for share in shares for s in share), key=lambda s: s.episode)
    assert together == alone
    for r, share in enumerate(shares):
        assert all(s.episode % runners == r for s in share)


@pytest.mark.parametrize(("stride", "offset"), [(1, 1), (4, -1), (0, 0)])
def test_a_runner_that_does_not_exist_is_refused(stride, offset):
    with pytest.raises(ConfigError, match=f"one of {stride} runners"):
        Schedule(STATES, seed=0, episodes=None, stride=stride, offset=offset)


@pytest.mark.heavy
@given(st.data())
@settings(max_examples=60)
def test_a_restored_schedule_plays_what_an_unbroken_one_would_have(data):
    """Episodes are handed out, end, are lost and given back, in any order; then all is killed."""
    stride = data.draw(st.integers(1, 3))
    offset = data.draw(st.integers(0, stride - 1))

    def fresh():
        return Schedule(STATES, seed=9, episodes=80, stride=stride, offset=offset)

    def left(schedule):
        copy = fresh()
        copy.restore(schedule.state())
        return {s.episode: s.attempt for s in all_of(copy, 5)}

    schedule, ledger, done = fresh(), Ledger(retries=100), []
    for _ in range(data.draw(st.integers(0, 8))):
        ledger.give(schedule.take(data.draw(st.integers(0, 5))))
        held = list(ledger.held.values())
        ends = data.draw(st.lists(st.sampled_from(held), unique_by=id)) if held else []
        ledger.settle([result(s, "terminated") for s in ends])
        done += [s.episode for s in ends]
        if data.draw(st.booleans()):
            schedule.give_back(ledger.lose()[0])
    playing = dict(ledger.held)
    saved = json.loads(json.dumps(schedule.state(ledger.held.values())))
    waiting = left(schedule)
    again = fresh()
    again.restore(saved)
    assert again.state() == {**saved, "playing": [], "again": again.state()["again"]}
    rest = all_of(again, 4)
    assert sorted(done + [s.episode for s in rest]) == list(range(offset, 80, stride))
    for start in rest:
        assert replace(start, attempt=0) == fresh().start(start.episode)
        before = playing[start.episode].attempt + 1 if start.episode in playing else None
        assert start.attempt == (before if before is not None else waiting[start.episode])
    assert [s.episode for s in rest[: len(playing)]] == sorted(playing)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 5},
        {"states": Splits(StateSpace((Factor("n", range(1000)),))).take("train", 31)},
        {"stride": 3},
        {"offset": 0},
    ],
)
def test_the_state_of_other_episodes_is_refused(other):
    base = {"states": STATES, "seed": 4, "episodes": None, "stride": 2, "offset": 1}
    saved = Schedule(**base).state()
    given_ = {**base, **other}
    with pytest.raises(ConfigError, match="they play different episodes"):
        Schedule(given_.pop("states"), **given_).restore(saved)


def test_a_longer_run_may_continue_from_a_shorter_one():
    short = Schedule(STATES, seed=4, episodes=5)
    short.take(5)
    long = Schedule(STATES, seed=4, episodes=8)
    long.restore(short.state())
    assert [s.episode for s in all_of(long, 3)] == [5, 6, 7]


# --- visits -------------------------------------------------------------------------------------


def ended(schedule, count, end="terminated"):
    return [result(s, end) for s in schedule.take(count)]


@given(
    size=st.integers(1, 12),
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=3),
    lost=st.integers(0, 5),
)
@settings(max_examples=60)
def test_visits_count_every_state_and_merge(size, counts, lost):
    states = Splits(StateSpace((Factor("n", range(1000)),))).take("train", size)
    total, expected = Visits(states), np.zeros(size, int)
    for r, count in enumerate(counts):
        one = Visits(states)
        schedule = Schedule(states, seed=0, episodes=None, stride=len(counts), offset=r)
        results = ended(schedule, count, ("terminated", "truncated")[r % 2])
        one.add(results[: count // 2])
        one.add(results[count // 2 :])
        one.add(ended(schedule, lost, "lost"))
        for each in results:
            expected[each.start.episode % size] += 1
        total.merge(one if r % 2 else json.loads(json.dumps(one.state())))
    assert total.counts().tolist() == expected.tolist()
    assert total.summary() == {
        "states": size,
        "episodes": expected.sum(),
        "min": expected.min(),
        "median": np.median(expected),
        "max": expected.max(),
        "never": np.mean(expected == 0),
    }


@given(size=st.integers(1, 12), episodes=st.integers(0, 40))
@settings(max_examples=60)
def test_visits_of_large_sets_are_known_by_arithmetic(size, episodes):
    states = Splits(StateSpace((Factor("n", range(1000)),))).take("train", size)
    results = ended(Schedule(states, seed=0, episodes=None), episodes)
    counted = Visits(states)
    counted.add(results)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule_module, "COUNTED", 0)
        large = Visits(states)
        large.merge(Visits(states))
        large.add(results)
        large.merge(json.loads(json.dumps(Visits(states).state())))
        with pytest.raises(ConfigError, match="not counted state by state"):
            large.counts()
    assert large.summary() == counted.summary()


def test_visits_of_another_set_are_refused():
    other = Splits(StateSpace((Factor("n", range(1000)),)), seed=1).take("train", 30)
    with pytest.raises(ConfigError, match="visits of different sets have no sum"):
        Visits(STATES).merge(Visits(other))


@pytest.mark.parametrize("counts", ["", "x", "AAAA", "eJwDAAAAAAE=", "\u00e9"])
def test_visits_that_are_damaged_are_refused(counts):
    state = {**Visits(STATES).state(), "counts": counts}
    with pytest.raises(ConfigError, match="expected the packed visits of"):
        Visits(STATES).merge(state)


def test_the_state_of_many_visits_is_small():
    states = Splits(StateSpace((Factor("n", range(10**7)),))).take("train", 10**6)
    visits = Visits(states)
    visits.add(ended(Schedule(states, seed=0, episodes=None), 2000))
    assert len(json.dumps(visits.state())) < 100_000  # a list of a million numbers would take 3 MB
    assert visits.summary()["never"] == 0.998
