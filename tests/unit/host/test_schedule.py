"""Which episode comes next, and what a resumed run plays."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.api import EpisodeResult, Factor, Loss, Outcome, Splits, StateSpace
from rollout.host.schedule import Ledger, Schedule, episode_seed

STATES = Splits(StateSpace((Factor("n", range(1000)),))).take("train", 30)


def all_of(schedule: Schedule, count: int):
    out = []
    while batch := schedule.take(count):
        out += batch
    return out


@given(episodes=st.integers(0, 100), chunk=st.integers(1, 40), seed=st.integers(0, 2**63))
@settings(max_examples=30)
def test_every_episode_once_whatever_the_chunks(episodes, chunk, seed):
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
