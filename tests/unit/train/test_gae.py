"""Advantages: against a reference that walks through one episode at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rollout.train.gae import CUT, RUNNING, TERMINATED, advantages

ENDS = st.sampled_from([RUNNING, RUNNING, RUNNING, TERMINATED, CUT])
NUMBERS = st.floats(-10, 10, width=32)


def walked(reward, value, next_value, end, gamma, lambda_):
    """The definition: discounted sums of one-step errors, row by row, in double precision."""
    slots, steps = reward.shape
    out = np.zeros((slots, steps))
    for n in range(slots):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                after = {
                    RUNNING: value[n, k + 1] if k + 1 < steps else None,
                    CUT: next_value[n, k],
                    TERMINATED: 0.0,
                }[int(end[n, k])]
                out[n, t] += weight * (reward[n, k] + gamma * after - value[n, k])
                weight *= gamma * lambda_
                if end[n, k] != RUNNING:
                    break
    return out


@st.composite
def sequences(draw):
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 12)))
    reward, value, next_value = (
        draw(hnp.arrays(np.float32, shape, elements=NUMBERS)) for _ in range(3)
    )
    end = draw(hnp.arrays(np.int8, shape, elements=ENDS))
    end[:, -1] = np.where(end[:, -1] == RUNNING, CUT, end[:, -1])
    idle = draw(hnp.arrays(bool, shape))
    idle[:, 1:] &= end[:, :-1] != RUNNING  # a slot falls idle at the end of an episode only
    for column in (reward, value, next_value):
        column[idle] = 0
    end[idle] = TERMINATED
    return reward, value, next_value, end


@settings(max_examples=50)
@given(sequences(), st.floats(0, 1), st.floats(0, 1))
def test_advantages_are_those_of_each_episode_by_itself(rows, gamma, lambda_):
    reward, value, next_value, end = rows
    got, target = advantages(reward, value, next_value, end, gamma=gamma, lambda_=lambda_)
    expected = walked(reward, value, next_value, end, gamma, lambda_)
    np.testing.assert_allclose(got, expected, atol=2e-3, rtol=1e-4)
    np.testing.assert_array_equal(target, got + value)
    assert got.dtype == target.dtype == np.float32


def one_row(kinds, final):
    """Rewards of 1, values of 5, one sequence with these ends; ``final`` follows every cut."""
    shape = (1, len(kinds))
    end = np.array([kinds], np.int8)
    return (
        np.ones(shape, np.float32),
        np.full(shape, 5, np.float32),
        np.full(shape, final, np.float32),
        end,
    )


def test_a_limit_a_crash_and_a_border_are_worth_what_follows_them():
    """Monte Carlo returns that go on with the value of the true next observation, never with 0."""
    cut = [RUNNING, RUNNING, CUT, RUNNING, CUT]
    got, target = advantages(*one_row(cut, final=7), gamma=0.5, lambda_=1.0)
    n_step = [1 + 0.5 + 0.25 + 0.125 * 7, 1 + 0.5 + 0.25 * 7, 1 + 0.5 * 7]
    np.testing.assert_allclose(target, [[*n_step, *n_step[1:]]])
    np.testing.assert_allclose(got, target - 5)


def test_the_end_of_the_game_is_worth_nothing():
    ended = [RUNNING, RUNNING, TERMINATED, RUNNING, CUT]
    _, target = advantages(*one_row(ended, final=7), gamma=0.5, lambda_=1.0)
    np.testing.assert_allclose(target[0, :3], [1.75, 1.5, 1.0])
    np.testing.assert_allclose(target[0, 3:], [1 + 0.5 + 0.25 * 7, 1 + 0.5 * 7])


@pytest.mark.parametrize("kind", [TERMINATED, CUT])
def test_nothing_crosses_the_border_between_two_episodes(kind):
    reward, value, next_value, end = one_row([RUNNING, kind, RUNNING, CUT], final=2)
    before, _ = advantages(reward, value, next_value, end, gamma=0.9, lambda_=0.9)
    reward[0, 2:], value[0, 2:] = 1000, -1000
    after, _ = advantages(reward, value, next_value, end, gamma=0.9, lambda_=0.9)
    np.testing.assert_array_equal(before[0, :2], after[0, :2])
    assert (before[0, 2:] != after[0, 2:]).all()


def test_a_cut_is_unbiased_where_an_end_is_not():
    """With true values, cutting long episodes anywhere leaves every advantage at 0 on average."""
    gamma, steps = 0.9, 400
    reward = np.random.default_rng(0).normal(1.0, 1.0, (64, steps)).astype(np.float32)
    worth = np.full(reward.shape, 1.0 / (1 - gamma), np.float32)
    end = np.full(reward.shape, RUNNING, np.int8)
    end[:, 9::10] = CUT
    cut, _ = advantages(reward, worth, worth, end, gamma=gamma, lambda_=0.95)
    assert abs(cut.mean()) < 0.05
    end[:, 9::10] = TERMINATED
    ended, _ = advantages(reward, worth, worth, end, gamma=gamma, lambda_=0.95)
    assert ended.mean() < -3
