"""The totals of a run: how much memory they take."""

import tracemalloc
from types import SimpleNamespace

import pytest

from rollout.api import EpisodeResult, Outcome, Start, State
from rollout.tally import Tally

pytestmark = pytest.mark.heavy

EPISODES = 20_000


def bytes_kept(tally):
    """Memory that the tally takes for episodes of one step."""
    tracemalloc.start()
    for first in range(0, EPISODES, 1000):
        results = [
            EpisodeResult(
                Start(State(n, {}), 0, n), 0, 0, "terminated", Outcome.RUNNING, 1, n / 7, 1.0, 0.1
            )
            for n in range(first, first + 1000)
        ]
        tally.add(SimpleNamespace(env_steps=1000, results=results, losses=(), extras={}))
    del results
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept


def test_episodes_that_are_recorded_take_no_memory():
    assert bytes_kept(Tally()) < 3 * EPISODES


def test_without_a_recording_their_results_are_kept():
    tally = Tally(keeps=True)
    assert bytes_kept(tally) > 50 * EPISODES
    assert tally.results()["episodes"] == EPISODES
