"""The same state, seed and actions give the same bytes, whatever the width and the threads."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.blockworld import BlockworldBridge
from rollout.api import Splits, Start, sample
from rollout.tasks import load_task

pytestmark = pytest.mark.heavy
LAYOUTS = {"human": ("hunt_sheep", "combat_skeleton"), "compact": ("smelt_beef", "mine_log")}
OBSERVE = ("rgb", "semantic_rays", "semantic_grid", "entities", "vitals", "inventory", "compass")
AGAIN = 600  # steps after which every world is reset, over or not


def starts_of(task: str, count: int, offset: int = 0) -> list[Start]:
    bridge = BlockworldBridge()
    space = load_task(bridge.spec, "blockworld", task).state_space
    states = Splits(space).take("train", offset + count)
    return [Start(states[offset + i], 1000 + offset + i) for i in range(count)]


def trace(
    starts: list[Start], width: int, threads: int, steps: int, *, seed: int = 0, layout: str
) -> list[str]:
    """Plays in the last slots of an instance; returns a digest of all observations per world."""
    bridge = BlockworldBridge(
        observe=OBSERVE, actions=layout, threads=threads, rgb_width=12, rgb_height=8
    )
    instance = bridge.launch(Path(), (), width=width, timeout_s=600)
    others = starts_of("hunt_sheep", width, 5000)
    digests = [hashlib.sha256() for _ in starts]
    # Worlds play in the last slots, a few at a time if the instance is narrow.
    for first in range(0, len(starts), width):
        group = starts[first : first + width]
        rows = list(range(width - len(group), width))
        everyone = [*others[: width - len(group)], *group]
        rng = [np.random.default_rng([seed, first + n]) for n in range(len(group))]
        noise = np.random.default_rng([seed, width, threads])
        for step in range(steps):
            if step % AGAIN == 0:
                frame = instance.reset(range(width), everyone, timeout_s=60)
                note(instance, frame, rows, digests[first:])
            actions = sample(bridge.spec.action_space, width, noise)
            for row, generator in zip(rows, rng, strict=True):
                one = sample(bridge.spec.action_space, 1, generator)
                for key, column in one.items():
                    actions[key][row] = column[0]
            frame = instance.step(actions, timeout_s=60)
            note(instance, frame, rows, digests[first:], whole=step % 20 == 19)
    instance.close()
    return [digest.hexdigest() for digest in digests]


def note(instance, frame, rows, digests, whole=True):
    columns = {**frame.observations, **frame.signals, "over": frame.game_over}
    for row, digest in zip(rows, digests, strict=False):
        for column in columns.values():
            digest.update(np.ascontiguousarray(column[row]).tobytes())
        if whole:
            digest.update(instance.snapshot(row))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_width_and_threads_change_nothing(layout):
    starts = [start for task in LAYOUTS[layout] for start in starts_of(task, 1)]
    expected = trace(starts, 1, 1, 200, layout=layout)
    assert len(set(expected)) == len(expected), "different worlds look the same"
    for width, threads in ((7, 1), (40, 2)):
        assert trace(starts, width, threads, 200, layout=layout) == expected, (width, threads)


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
