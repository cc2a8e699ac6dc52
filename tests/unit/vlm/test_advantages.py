"""Advantages against tables made by hand."""

import numpy as np
import pytest

from rollout.train.language.advantages import answer_weights, episode_advantages, step_advantages


@pytest.mark.parametrize(
    ("name", "scale", "expected"),
    [
        ("grpo", False, [-1.0, -1.0, 2.0]),
        ("grpo", True, [-0.70710678, -0.70710678, 1.41421356]),
        # Each is compared with the mean of the other two.
        ("rloo", True, [-1.5, -1.5, 3.0]),
    ],
)
def test_episodes_are_compared_with_their_group(name, scale, expected):
    returns = np.array([0.0, 0.0, 3.0])
    assert episode_advantages(returns, name, scale=scale) == pytest.approx(expected)


@pytest.mark.parametrize("returns", [[5.0], [2.0, 2.0, 2.0], [0.1 + 0.2, 0.3]])
@pytest.mark.parametrize("name", ["grpo", "rloo", "gigpo"])
def test_what_cannot_be_compared_teaches_nothing(name, returns):
    assert np.abs(episode_advantages(np.array(returns), name, scale=True)).max() < 1e-9


def test_steps_are_compared_with_steps_from_the_same_state():
    # Both see a, then one goes by b and the other by c; gamma = 0.5.
    rewards = [np.array([0.0, 4.0]), np.array([0.0, 0.0, 2.0])]
    states = [["a", "b"], ["a", "c", "a"]]
    # Returns to go: 2, 4 and 0.5, 1, 2; the mean of a is (2 + 0.5 + 2) / 3 = 1.5.
    found = step_advantages(rewards, states, 0.5)
    assert found[0] == pytest.approx([0.5, 0.0])
    assert found[1] == pytest.approx([-1.0, 0.0, 0.5])


def test_long_episodes_weigh_as_much_as_short_ones():
    # 1 + 3 + 0 answers in two episodes that have some: 2 for each of them.
    assert answer_weights([1, 3, 0], "grpo")[:2] == pytest.approx([2.0, 2 / 3])
    assert answer_weights([1, 3, 0], "rloo") == pytest.approx([1.0, 1.0, 1.0])
    assert answer_weights([0, 0], "gigpo") == pytest.approx([1.0, 1.0])
