"""V-trace against its definition (Espeholt et al., 2018, section 4.1)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rollout.train.gae import CUT, RUNNING, TERMINATED, advantages, vtrace

pytestmark = pytest.mark.heavy

GAMMA = 0.9


def case(draw_shape):
    numbers = hnp.arrays(np.float32, draw_shape, elements=st.floats(-2, 2, width=32))
    ends = hnp.arrays(np.int8, draw_shape, elements=st.sampled_from([RUNNING, TERMINATED, CUT]))
    ratios = hnp.arrays(np.float32, draw_shape, elements=st.floats(0, 3, width=32))
    return st.tuples(numbers, numbers, numbers, ends, ratios)


def closed(end):
    end = end.copy()
    end[:, -1] = np.where(end[:, -1] == RUNNING, CUT, end[:, -1])
    return end


def defined(reward, value, next_value, end, ratio, lambda_):
    """The sums of the definition, one step at a time."""
    n, t = reward.shape
    target, advantage = np.zeros((n, t)), np.zeros((n, t))
    for row in range(n):
        for s in reversed(range(t)):
            running = end[row, s] == RUNNING
            after = value[row, s + 1] if running else next_value[row, s] * (end[row, s] == CUT)
            after_target = target[row, s + 1] if running else after
            rho = min(1.0, ratio[row, s])
            delta = rho * (reward[row, s] + GAMMA * after - value[row, s])
            more = GAMMA * lambda_ * rho * (after_target - after) if running else 0.0
            target[row, s] = value[row, s] + delta + more
            advantage[row, s] = rho * (reward[row, s] + GAMMA * after_target - value[row, s])
    return advantage, target


@settings(max_examples=40)
@given(case((2, 6)), st.sampled_from([1.0, 0.7]))
def test_it_is_the_definition(columns, lambda_):
    reward, value, next_value, end, ratio = columns
    end = closed(end)
    found = vtrace(reward, value, next_value, end, ratio, gamma=GAMMA, lambda_=lambda_)
    for one, other in zip(found, defined(*columns[:3], end, ratio, lambda_), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@settings(max_examples=40)
@given(case((2, 6)))
def test_steps_of_the_newest_weights_have_the_targets_of_gae(columns):
    reward, value, next_value, end, _ = columns
    end, ones = closed(end), np.ones_like(reward)
    _, expected = advantages(reward, value, next_value, end, gamma=GAMMA, lambda_=0.95)
    _, target = vtrace(reward, value, next_value, end, ones, gamma=GAMMA, lambda_=0.95)
    np.testing.assert_allclose(target, expected, atol=1e-5)
