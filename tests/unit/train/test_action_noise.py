"""The noise that actions are drawn with: the right probabilities, whoever shares the batch."""

import numpy as np
import pytest
import scipy
import torch
from hypothesis import given
from hypothesis import strategies as st

from policies.actor_critic.policy import gumbel_and_normal, uniform
from rollout.api import Splits, Start
from rollout.testing import FakeBridge
from tests.unit.train.learning_tools import RichBridge, small

SEEDS = st.integers(0, 2**64 - 1)


@given(
    st.lists(st.tuples(SEEDS, st.integers(0, 10**6)), min_size=1, max_size=20), st.integers(1, 60)
)
def test_a_row_depends_on_its_seed_and_step_alone(rows, count):
    seeds = np.array([seed for seed, _ in rows], np.uint64)
    steps = np.array([step for _, step in rows], np.int64)
    whole = uniform(seeds, steps, count)
    assert whole.shape == (len(rows), count)
    assert whole.dtype == np.float32
    assert ((whole > 0) & (whole < 1)).all()
    for i in range(len(rows)):
        np.testing.assert_array_equal(
            uniform(seeds[i : i + 1], steps[i : i + 1], count)[0], whole[i]
        )
    # More numbers do not change the first ones.
    np.testing.assert_array_equal(uniform(seeds, steps, count + 3)[:, :count], whole)


def test_no_number_is_rounded_up_to_one():
    """These seeds give words of which all leading bits are set."""
    seeds, steps = np.array([3607154, 2037251], np.uint64), np.array([0, 1])
    extreme = uniform(seeds, steps, 5)[[0, 1], [1, 3]]
    assert (extreme > 0.9999998).all()
    assert (extreme < 1).all()
    assert np.isfinite(gumbel_and_normal(seeds, steps, 5, 5)).all()


def test_numbers_are_uniform_and_unrelated():
    """Over steps of one episode, over episodes, and over the columns of a row."""
    n = 50_000
    over_steps = uniform(np.full(n, 7, np.uint64), np.arange(n), 4)
    over_seeds = uniform(np.arange(n, dtype=np.uint64), np.zeros(n, np.int64), 4)
    for numbers in (over_steps, over_seeds):
        for column in numbers.T:
            assert scipy.stats.kstest(column, "uniform").pvalue > 1e-3
        correlation = np.corrcoef(np.concatenate([numbers[:-1].T, numbers[1:].T]))
        assert np.abs(correlation - np.eye(8)).max() < 0.025


def test_samples_have_the_probabilities_of_the_logits():
    logits = np.array([0.0, 1.0, -1.5, 2.0])
    n = 40_000
    noise = gumbel_and_normal(np.arange(n, dtype=np.uint64), np.full(n, 3), 4, 0)
    counts = np.bincount((logits + noise).argmax(1), minlength=4)
    expected = n * np.exp(logits) / np.exp(logits).sum()
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3
    wrong = n * np.exp(logits[::-1]) / np.exp(logits).sum()
    assert scipy.stats.chisquare(counts, wrong).pvalue < 1e-6


def starts_of(bridge, count):
    states = Splits(bridge.spec.state_space).take("train", 70)
    return [Start(states[i], 900 + i, i, 0, states.name) for i in range(count)]


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_the_same_actions_at_every_width_and_in_every_order(memory):
    bridge = RichBridge()
    player = small(memory=memory).build(bridge.spec, None, seed=0)
    with torch.no_grad():  # logits so plain that rounding decides nothing
        player.network.policy_head.weight.zero_()
    starts = starts_of(bridge, 64)
    rng = np.random.default_rng(0)
    seen = [{"position": rng.random((64, 2), np.float32)} for _ in range(4)]

    def play(rows):
        memory = player.initial_memory([starts[i] for i in rows])
        out = []
        for step in seen:
            own = {k: v[rows] for k, v in step.items()}
            decision = player.act(own, memory, details=None, explore=True)
            memory = decision.memory
            out.append(decision.actions)
        return {k: np.stack([actions[k] for actions in out], 1) for k in out[0]}

    whole = play(list(range(64)))
    assert len(np.unique(whole["move"])) == 5
    order = rng.permutation(64)
    parts = [[7], [1, 63, 5, 30, 2, 0, 33], list(order)]
    for rows in parts:
        for key, column in play(rows).items():
            np.testing.assert_array_equal(column, whole[key][rows])


def test_the_best_action_needs_no_noise():
    bridge = FakeBridge()
    player = small().build(bridge.spec, None, seed=0)
    starts = starts_of(bridge, 2)
    other = [Start(s.state, s.seed + 1, s.episode, 0, s.state_set) for s in starts]
    seen = {"position": np.full((2, 2), 0.3, np.float32)}
    best = [
        player.act(seen, player.initial_memory(s), details=None, explore=False)
        for s in (starts, other)
    ]
    np.testing.assert_array_equal(best[0].actions["move"], best[1].actions["move"])
    with torch.no_grad():
        logits, _, _ = player.network({"position": torch.from_numpy(seen["position"])}, {})
    np.testing.assert_array_equal(best[0].actions["move"], logits.argmax(-1).numpy())


def test_each_step_of_an_episode_draws_again():
    """One slot that sees the same all the time still makes every move, about equally often."""
    bridge = FakeBridge()
    player = small().build(bridge.spec, None, seed=0)
    seen = {"position": np.zeros((1, 2), np.float32)}
    memory, moves = player.initial_memory(starts_of(bridge, 1)), []
    for _ in range(400):
        decision = player.act(seen, memory, details=None, explore=True)
        memory = decision.memory
        moves.append(int(decision.actions["move"][0]))
    assert scipy.stats.chisquare(np.bincount(moves, minlength=5)).pvalue > 1e-3
