"""The same state, seed and actions give the same bytes, whatever the width and the threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.blockworld_repeat import starts_of, trace

pytestmark = pytest.mark.heavy
LAYOUTS = {"human": ("hunt_sheep", "combat_skeleton"), "compact": ("smelt_beef", "mine_log")}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_width_and_threads_change_nothing(layout):
    starts = [start for task in LAYOUTS[layout] for start in starts_of(task, 1)]
    expected = trace(starts, 1, 1, 300, layout=layout)
    assert len(set(expected)) == len(expected), "different worlds look the same"
    for width, threads in ((7, 1), (40, 2)):
        assert trace(starts, width, threads, 300, layout=layout) == expected, (width, threads)


@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from(sorted(LAYOUTS)))
@settings(max_examples=10)
def test_any_state_and_seed_repeats_beside_others(number, width, layout):
    starts = starts_of("hunt_sheep", 1, number % 3000)
    narrow = trace(starts, 1, 1, 40, seed=number, layout=layout)
    assert trace(starts, width, 1, 40, seed=number, layout=layout) == narrow


def test_other_actions_give_other_bytes():
    starts = starts_of("hunt_sheep", 1)
    assert trace(starts, 1, 1, 40, layout="human") != trace(
        starts, 1, 1, 40, seed=1, layout="human"
    )


def test_another_seed_of_the_episode_shows_the_same_at_first_and_not_for_ever():
    from pathlib import Path

    from bridges.blockworld import BlockworldBridge
    from rollout.api import Start

    start = starts_of("hunt_sheep", 1)[0]
    instance = BlockworldBridge().launch(Path(), (), width=2, timeout_s=600)
    frame = instance.reset([0, 1], [start, Start(start.state, start.seed + 1)], timeout_s=60)
    assert np.array_equal(frame.observations["rgb"][0], frame.observations["rgb"][1])
    still = {"keys": np.zeros((2, 20), np.int8), "camera": np.full((2, 2), 5)}
    positions = []
    for _ in range(200):
        frame = instance.step(still, timeout_s=60)
        positions.append(instance._worlds["c_x"].copy())
    assert any(not np.array_equal(p[0], p[1]) for p in positions)
