"""Games that fail: restart budgets, pauses, quarantine, recycling, spares, launch limits."""

import os
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.api import Limits, Splits, Start, Task
from rollout.config import HostConfig
from rollout.errors import BudgetExhausted
from rollout.host import (
    InProcessHandle,
    Player,
    PlayOptions,
    Pool,
    SubprocessHandle,
)
from rollout.host import (
    pool as pool_module,
)
from rollout.host.processes import start_time
from rollout.host.supervision import LONGEST_PAUSE_S, SETTLED_S, Health, LaunchLimit
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy


def starts(bridge: FakeBridge, count: int) -> list[Start]:
    states = Splits(bridge.spec.state_space).take("train", 50)
    return [Start(states[i % 50], 1000 + i, i, 0, states.name) for i in range(count)]


def play(pool: Pool, episodes: int, *, retries: int = 50):
    """Plays episodes to their end; returns the fragments."""
    task = Task("t", "", pool.bridge.spec.state_space, FakeEvaluator(), Limits(steps=12))
    player = Player(pool, task, FakePolicy().build(pool.spec, task, seed=0), PlayOptions(8, None))
    player.options = PlayOptions(8, None, retries=retries)
    player.offer(starts(pool.bridge, episodes))
    fragments = []
    try:
        while (fragment := player.next_fragment()) is not None:
            fragments.append(fragment)
    finally:
        player.close()
    return fragments


def finished(fragments) -> list[int]:
    return sorted(r.start.episode for f in fragments for r in f.results if r.end != "lost")


# -- host -----------------------------------------------------------------------------------------


def test_the_first_failure_costs_no_pause_and_those_in_a_row_longer_ones():
    health = Health(HostConfig(backoff_s=0.5), 10)
    pauses = [health.failed(t, 0.0) for t in range(9)]
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_PAUSE_S]
    assert health.failed(9.0, lived_s=SETTLED_S) == 0.0, "it had come up well: a new row"


@given(st.lists(st.floats(0.1, 100), max_size=60), st.integers(1, 6), st.floats(1, 200))
def test_never_more_restarts_than_the_budget_within_any_window(gaps, restarts, window):
    health = Health(HostConfig(restart_window_s=window), restarts)
    now, granted = 0.0, []
    for gap in gaps:
        now += gap
        if health.failed(now, 0.0) is not None:
            granted.append(now)
    for first in granted:
        assert sum(first <= t < first + window for t in granted) <= restarts


def test_failures_are_forgotten_and_a_budget_without_window_is_for_ever():
    health = Health(HostConfig(restart_window_s=10.0), 1)
    assert health.failed(0.0, 0.0) is not None
    assert health.failed(5.0, 0.0) is None
    assert health.failed(30.0, 0.0) is not None
    for_ever = Health(HostConfig(restart_window_s=None), 1)
    assert for_ever.failed(0.0, 0.0) is not None
    assert for_ever.failed(1e9, 0.0) is None


def test_failures_are_without_limit_while_many_steps_are_played_for_each():
    health = Health(HostConfig(failure_rate=0.05), restarts=2)
    for t in range(30):
        health.steps += 20
        assert health.failed(float(t), 0.0) == 0.0, "as many as the rate allows, and no row"
    pauses = []
    for t in range(30, 40):
        health.steps += 19
        pauses.append(health.failed(float(t), 0.0))
    assert pauses == [None] * 10, "above the rate, over the window"


def test_only_steps_within_the_window_count():
    health = Health(HostConfig(failure_rate=0.05, restart_window_s=10.0), restarts=1)
    health.steps += 100_000
    assert health.failed(0.0, 0.0) is not None
    assert health.failed(1.0, 0.0) is not None, "the steps before the first failure count"
    assert health.failed(12.0, 0.0) is not None
    assert health.failed(13.0, 0.0) is None, "these steps were long ago"


# -- pools -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "isolation"), [(1, "in_process"), (3, "in_process"), (2, "auto")]
)
def test_planned_restarts_lose_nothing(tmp_path, width, isolation):
    """Every second episode a fresh game, and nobody can tell by the results."""
    bridge = FakeBridge()
    host = HostConfig(recycle_episodes=2)
    pool = Pool(bridge, tmp_path / "a", 2, width, host.model_copy(update={"isolation": isolation}))
    fragments = play(pool, 24)
    plain = play(Pool(bridge, tmp_path / "b", 2, width, HostConfig(isolation=isolation)), 24)
    assert finished(fragments) == list(range(24))
    assert not any(f.losses for f in fragments)
    assert pool.counts["recycled"] > 0
    assert pool.counts["failed"] == 0
    totals = [
        {r.start.episode: round(r.total_reward, 4) for f in some for r in f.results}
        for some in (fragments, plain)
    ]
    assert totals[0] == totals[1]
    assert not list((tmp_path / "a").glob("instance-*"))


@pytest.mark.heavy
def test_a_seat_without_budget_rests_while_others_play(tmp_path):
    """The first game and its successor crash; the third in that seat comes after its rest."""
    good, bad = FakeBridge(), FakeBridge(crash_on_step=2.0)
    launched = []

    def launch(_, folder, ports, width):
        launched.append(folder)
        return InProcessHandle(bad if len(launched) in {1, 3} else good, folder, ports, width)

    host = HostConfig(restarts=1, backoff_s=0.0, quarantine_s=0.01)
    pool = Pool(good, tmp_path, 2, 1, host, launch)
    fragments = play(pool, 300)
    assert finished(fragments) == list(range(300))
    assert (pool.counts["failed"], pool.counts["quarantined"]) == (2, 1)
    assert len(launched) == 4
    came_back = [f for f in fragments if f.instance == 0 and f.incarnation == 2]
    assert finished(came_back), "it played again after its rest"


def test_when_all_rest_it_ends_instead_of_waiting(tmp_path):
    bridge = FakeBridge(crash_on_step=2.0)
    host = HostConfig(restarts=1, backoff_s=0.0, quarantine_s=3600.0)
    pool = Pool(bridge, tmp_path, 2, 1, host.model_copy(update={"isolation": "in_process"}))
    with pytest.raises(BudgetExhausted, match=r"crashes on request.*is in quarantine for 3600 s"):
        play(pool, 5)


@pytest.mark.heavy
def test_a_game_that_crashes_now_and_then_is_played_to_the_end_by_default(tmp_path):
    """One step in fifty: an instance fails far more often than ``restarts``."""
    bridge = FakeBridge(crash_on_step=0.02)
    host = HostConfig(isolation="in_process", backoff_s=0.0)
    pool = Pool(bridge, tmp_path, 2, 1, host)
    fragments = play(pool, 100, retries=host.retries)
    assert finished(fragments) == list(range(100))
    assert pool.counts["failed"] > 2 * (host.restarts + 1)


def test_a_game_that_cannot_start_ends_the_run_and_names_the_keys(tmp_path):
    host = HostConfig(isolation="in_process", backoff_s=0.0)
    pool = Pool(FakeBridge(fail_on_start=1.0), tmp_path, 1, 1, host)
    keys = r"more than 5 times within 3600 s \(host\.restarts\).*0\.05 of .*\(host\.failure_rate\)"
    with pytest.raises(BudgetExhausted, match=keys):
        play(pool, 5)
    assert pool.counts["failed"] == 6


def wait_for(pool: Pool, kind: str, instance: int = 0):
    """Receives until an instance says so; returns all that was said."""
    seen = []
    while not any(e.kind == kind and e.instance == instance for e in seen):
        events = pool.recv(timeout_s=60)
        assert events, "nothing was heard for a minute"
        seen += events
    return seen


def pool_with_a_spare(bridge, folder):
    """Returns a pool of one game, with a spare that is up."""
    host = HostConfig(restarts=50, spares=1)
    pool = Pool(bridge, folder, 1, 1, host.model_copy(update={"isolation": "subprocess"}))
    pool.launch()
    wait_for(pool, "launched")
    while pool._spare() is None:
        pool._next_events(float("inf"))
    return pool


@pytest.mark.process
def test_a_spare_takes_over_at_once(tmp_path):
    """While the successor is still coming up, a game that waits for it plays already."""
    bridge = FakeBridge(exit_on_step=1.0)
    pool = pool_with_a_spare(bridge, tmp_path)
    first = bridge.spec.action_space.sample()
    pool.reset(0, [0], starts(bridge, 1))
    wait_for(pool, "reset")
    pool.send(0, {key: value[None] for key, value in first.items()})
    seen = wait_for(pool, "failed")
    assert seen[-1].replaced
    assert pool.waiting(0), "it may be used before anybody was told"
    assert [e.kind for e in pool.recv(timeout_s=0)] == ["launched"]
    assert pool.counts["spared"] == 1
    pool.reset(0, [0], starts(bridge, 1))
    wait_for(pool, "reset")
    pool.close()


@pytest.mark.process
def test_a_spare_that_dies_while_it_waits_is_replaced(tmp_path):
    """Else it would be handed out dead, to a game that has just failed."""
    bridge = FakeBridge(exit_on_step=1.0)
    pool = pool_with_a_spare(bridge, tmp_path)
    dead = pool._spare().game
    os.kill(dead.handle.pid, signal.SIGKILL)
    assert dead.handle._guarded.wait(60)
    end = time.monotonic() + 60
    while pool._pooled[1].game is dead and time.monotonic() < end:
        pool._next_events(end)
    assert pool._pooled[1].game is not dead
    assert pool.counts["failed"] == 1
    while pool._spare() is None:
        pool._next_events(float("inf"))
    pool.reset(0, [0], starts(bridge, 1))
    wait_for(pool, "reset")
    pool.send(0, {k: v[None] for k, v in bridge.spec.action_space.sample().items()})
    wait_for(pool, "failed")
    wait_for(pool, "launched")
    pool.reset(0, [0], starts(bridge, 1))
    wait_for(pool, "reset")
    pool.close()


def test_spares_of_games_that_play_in_this_process(tmp_path):
    bridge = FakeBridge(crash_on_step=0.05)
    host = HostConfig(restarts=10**6, spares=1, backoff_s=0.0, recycle_episodes=2)
    pool = Pool(bridge, tmp_path, 2, 1, host.model_copy(update={"isolation": "in_process"}))
    fragments = play(pool, 24)
    assert finished(fragments) == list(range(24))
    assert pool.counts["spared"] > 0


@pytest.mark.parametrize("instances", [1, 2])
def test_a_game_whose_folder_cannot_be_made_has_failed_to_start(tmp_path, instances):
    """As on a temporary disk that is full: it is told, and costs the budget, not the program."""
    (tmp_path / "disk").write_text("in the way")
    host = HostConfig(restarts=1, backoff_s=0.0, quarantine_s=None)
    options = host.model_copy(update={"isolation": "subprocess"})
    pool = Pool(FakeBridge(), tmp_path / "disk", instances, 1, options)
    with pytest.raises(BudgetExhausted, match=r"process could not be started: .*Not a directory"):
        play(pool, 3)
    assert pool.counts["failed"] == 2 * instances


@pytest.mark.process
def test_a_game_over_its_memory_cap_is_killed_and_its_episode_played_again(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_module, "_INSPECT_S", 0.0)
    host = HostConfig(restarts=2, memory_mb=1.0, quarantine_s=None)
    pool = Pool(FakeBridge(), tmp_path, 1, 1, host.model_copy(update={"isolation": "subprocess"}))
    with pytest.raises(BudgetExhausted, match=r"\d+ MB of memory, over the limit of 1 MB"):
        play(pool, 3)
    assert pool.counts["failed"] == 3


@pytest.mark.process
def test_a_spare_that_outgrows_the_memory_cap_while_it_waits_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_module, "_INSPECT_S", 0.0)
    bridge, big = FakeBridge(), []
    monkeypatch.setattr(SubprocessHandle, "memory_mb", lambda h: 2000.0 if h in big else 1.0)
    host = HostConfig(restarts=50, spares=1, memory_mb=1000.0)
    pool = Pool(bridge, tmp_path, 1, 1, host.model_copy(update={"isolation": "subprocess"}))
    pool.launch()
    wait_for(pool, "launched")
    while pool._spare() is None:
        pool._next_events(float("inf"))
    spare = pool._spare().game
    big.append(spare.handle)
    pool.reset(0, [0], starts(bridge, 1))
    wait_for(pool, "reset")
    assert pool._pooled[1].game is not spare
    assert pool.counts["failed"] == 1
    pool.close()


@pytest.mark.process
def test_a_game_near_its_memory_cap_is_replaced_between_two_episodes(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_module, "_INSPECT_S", 0.0)
    monkeypatch.setattr(SubprocessHandle, "memory_mb", lambda _: 950.0)
    host = HostConfig(memory_mb=1000.0)
    pool = Pool(FakeBridge(), tmp_path, 1, 1, host.model_copy(update={"isolation": "subprocess"}))
    fragments = play(pool, 3)
    assert finished(fragments) == [0, 1, 2]
    assert pool.counts["recycled"] >= 2
    assert pool.counts["failed"] == 0


@pytest.mark.process
@pytest.mark.parametrize("which", ["guard", "game"])
def test_a_game_that_is_stopped_is_ended_soon_and_named(tmp_path, monkeypatch, which):
    monkeypatch.setattr(pool_module, "_INSPECT_S", 0.1)
    bridge = FakeBridge(hang_on_step=1.0)
    host = HostConfig(isolation="subprocess", quarantine_s=None)
    pool = Pool(bridge, tmp_path, 1, 1, host)
    pool.launch()
    wait_for(pool, "launched")
    pool.reset(0, [0], starts(bridge, 1))
    wait_for(pool, "reset")
    game = pool._pooled[0].game.handle._guarded
    pid = {"guard": game.guard_pid, "game": game.pid}[which]
    os.kill(pid, signal.SIGSTOP)
    pool.send(0, {"move": np.full(1, 3)})
    event = wait_for(pool, "failed")[-1]
    assert event.seconds < bridge.spec.deadlines.step_s
    assert re.match(rf"(its guard, )?process {pid}\b.* is stopped \(SIGSTOP\)", event.reason)
    pool.close()
    assert start_time(pid) is None


class Silent:
    """A game that never answers."""

    def __init__(self, *_):
        self.waitable, self._other = os.pipe()

    def launch(self, timeout_s):
        pass

    def death_notice(self):
        return "silent"

    def close(self, timeout_s):
        os.close(self.waitable)
        os.close(self._other)


def test_who_did_not_run_gives_games_the_whole_time_that_was_left(tmp_path, monkeypatch):
    """Stopped half a second after a command for twenty, its game with it, and then both go on."""
    now, asleep = 100.0, (100.5, 120.5)
    pool = Pool(FakeBridge(start_deadline_s=10.0), tmp_path, make_handle=Silent)

    class Selector:
        def select(self, pause_s):
            nonlocal now
            assert pause_s is not None
            before, now = now, now + pause_s
            if before <= asleep[0] < now:
                now = max(now, asleep[1])
            return []

        def __getattr__(self, name):
            return getattr(selector, name)

    selector, pool._selector = pool._selector, Selector()
    monkeypatch.setattr(pool_module, "time", SimpleNamespace(monotonic=lambda: now))
    pool.launch()
    (failed,) = pool.recv()
    assert failed.reason.startswith("no answer to start")
    assert 129 < now < 131
    pool.close()


# -- launch limits ---------------------------------------------------------------------------------


def test_places_to_come_up_are_few_and_come_back(tmp_path):
    one, other = LaunchLimit(2, "a game", tmp_path), LaunchLimit(2, "a game", tmp_path)
    first, second = one.acquire(), other.acquire()
    assert first is not None
    assert second is not None
    assert one.acquire() is None
    assert other.acquire() is None
    assert LaunchLimit(2, "another", tmp_path).acquire() is not None, "another game does not wait"
    first.release()
    third = other.acquire()
    assert third is not None
    assert other.acquire() is None


def test_a_place_is_free_again_when_its_holder_dies(tmp_path):
    child = os.fork()
    if child == 0:
        LaunchLimit(1, "game", tmp_path).acquire()
        os._exit(0)
    os.waitpid(child, 0)
    assert LaunchLimit(1, "game", tmp_path).acquire() is not None


@pytest.mark.process
def test_games_come_up_one_after_another(tmp_path: Path):
    bridge = FakeBridge()
    host = HostConfig(concurrent_launches=1)
    pool = Pool(bridge, tmp_path, 3, 1, host.model_copy(update={"isolation": "subprocess"}))
    pool._limit = LaunchLimit(1, "test", tmp_path / "launches")
    pool.launch()
    up = 0
    while up < 3:
        coming = sum(s.game is not None and not s.game.up for s in pool._pooled)
        assert coming <= 1
        up += sum(e.kind == "launched" for e in pool.recv(timeout_s=60))
    pool.close()
