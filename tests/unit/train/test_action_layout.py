"""Distributions over mixed actions, against torch's own; and what is written down of them."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Categorical, kl_divergence

from policies.actor_critic.distributions import ActionLayout, Choices, JointCategorical
from rollout.api import check_columns, sample
from rollout.errors import ConfigError
from tests.unit.train.learning_tools import HUMAN

pytestmark = pytest.mark.heavy

MIXED = spaces.Dict(
    {
        **HUMAN.spaces,
        "move": spaces.Discrete(5, start=-2),
        "slots": spaces.MultiDiscrete([[3, 9], [2, 3]], start=[[-1, 2], [0, 7]]),
        "small": spaces.MultiDiscrete([4], dtype=np.uint8),
    }
)
SPACES = {
    "one": spaces.Dict({"move": spaces.Discrete(6)}),
    "started": spaces.Dict({"move": spaces.Discrete(3, start=10)}),
    "keys": spaces.Dict({"keys": spaces.MultiBinary((2, 3))}),
    "human": HUMAN,
    "mixed": MIXED,
}


@pytest.fixture(params=SPACES.values(), ids=SPACES)
def space(request):
    return request.param


def sizes_of(space):
    """Options of each choice, in the order of the columns."""
    out = []
    for leaf in space.spaces.values():
        if isinstance(leaf, spaces.Discrete):
            out.append(int(leaf.n))
        elif isinstance(leaf, spaces.MultiDiscrete):
            out += [int(n) for n in leaf.nvec.ravel()]
        else:
            out += [2] * int(np.prod(leaf.shape))
    return out


def separate(space, logits):
    """One torch distribution for each choice."""
    return [Categorical(logits=part) for part in logits.split(sizes_of(space), -1)]


def logits_for(layout, *leading, seed=0, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*leading, layout.logits, generator=generator)


@pytest.mark.parametrize("leading", [(7,), (3, 4)])
def test_log_probabilities_entropies_and_divergences(space, leading):
    layout = Choices(space.spaces)
    assert layout.choices == len(sizes_of(space))
    assert layout.logits == sum(sizes_of(space))
    logits, others = logits_for(layout, *leading), logits_for(layout, *leading, seed=1)
    own, other = JointCategorical(layout, logits), JointCategorical(layout, others)
    ours, theirs = separate(space, logits), separate(space, others)
    choices = torch.stack([d.sample() for d in ours], -1)
    expected = {
        "log_prob": sum(d.log_prob(c) for d, c in zip(ours, choices.unbind(-1), strict=True)),
        "entropy": sum(d.entropy() for d in ours),
        "kl": sum(kl_divergence(p, q) for p, q in zip(ours, theirs, strict=True)),
    }
    got = {"log_prob": own.log_prob(choices), "entropy": own.entropy(), "kl": own.kl(other)}
    for name, values in got.items():
        assert values.shape == leading
        torch.testing.assert_close(values, expected[name], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(own.kl(own), torch.zeros(leading))


def test_choices_survive_being_written_down(space):
    layout = Choices(space.spaces)
    actions = sample(space, 50, np.random.default_rng(0))
    choices = layout.encode(actions)
    assert choices.dtype == torch.int64
    assert choices.min() >= 0
    assert (choices < torch.tensor(sizes_of(space))).all()
    back = layout.decode(choices)
    check_columns(space, back, (50,))
    for key, column in actions.items():
        np.testing.assert_array_equal(back[key], column)
        assert back[key].dtype == column.dtype
    timed = {k: v.reshape(5, 10, *v.shape[1:]) for k, v in actions.items()}
    torch.testing.assert_close(layout.encode(timed), choices.reshape(5, 10, -1))


def test_every_choice_has_its_own_logits(space):
    """Raising one logit makes exactly that option of that choice the best."""
    layout, sizes = Choices(space.spaces), sizes_of(space)
    at = 0
    for choice, size in enumerate(sizes):
        for one in range(size):
            scores = torch.zeros(1, layout.logits)
            scores[0, at + one] = 1
            expected = torch.zeros(1, len(sizes), dtype=torch.int64)
            expected[0, choice] = one
            torch.testing.assert_close(layout.best(scores), expected)
        at += size


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.floats(0.1, 300))
def test_extreme_logits_stay_finite(seed, scale):
    layout = Choices(HUMAN.spaces)
    own = JointCategorical(layout, logits_for(layout, 4, seed=seed, scale=scale).requires_grad_())
    other = JointCategorical(layout, logits_for(layout, 4, seed=seed + 1, scale=scale))
    entropy, kl = own.entropy(), own.kl(other)
    assert entropy.isfinite().all()
    assert kl.isfinite().all()
    assert (entropy >= -1e-4).all()
    assert (kl >= -1e-3).all()


def test_whole_numbers_without_options_are_refused():
    turn = spaces.Box(-1, 1, (2,), np.int8)
    space = spaces.Dict({"move": spaces.Discrete(2), "turn": turn})
    with pytest.raises(ConfigError, match=r"the action 'turn' is Box.*use another action layout"):
        ActionLayout(space)
