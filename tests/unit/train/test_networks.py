"""Networks: one step at a time, many at once, with memories that are blank where episodes begin."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.config import build_plugin
from rollout.errors import ConfigError
from rollout.testing import FakeBridge
from tests.unit.train.learning_tools import RichBridge, network_of, small

BRIDGE = FakeBridge(side=4)
MEMORIES = ("none", "lstm", "gru")


def steps_by_hand(network, seen, memory, first):
    """What ``unroll`` must give, one call of the network for each step."""
    logits, values, after = [], [], []
    for t in range(len(first)):
        memory = {k: torch.where(first[t, :, None], 0.0, v) for k, v in memory.items()}
        step = {k: v[t] for k, v in seen.items()}
        one, value, memory = network(step, memory)
        logits.append(one)
        values.append(value)
        after.append(memory)
    return (
        torch.stack(logits),
        torch.stack(values),
        {k: torch.stack([m[k] for m in after]) for k in network.memory_keys},
    )


def rows_of(network, steps, slots, seed=0):
    generator = torch.Generator().manual_seed(seed)
    seen = {"position": torch.rand(steps, slots, 2, generator=generator)}
    first = torch.rand(steps, slots, generator=generator) < 0.3
    memory = {
        k: torch.randn(slots, network.memory_size, generator=generator) for k in network.memory_keys
    }
    return seen, memory, first


@settings(max_examples=25)
@pytest.mark.heavy
@given(
    st.sampled_from(MEMORIES), st.booleans(), st.integers(1, 9), st.integers(1, 5),
    st.integers(0, 99),
)  # fmt: skip
def test_many_steps_at_once_are_the_steps_one_by_one(memory, shared, steps, slots, seed):
    network = network_of(BRIDGE, small(memory=memory, shared=shared), seed)
    seen, before, first = rows_of(network, steps, slots, seed)
    logits, values, after = network.unroll(seen, before, first)
    expected = steps_by_hand(network, seen, before, first)
    assert logits.shape == (steps, slots, network.layout.logits)
    torch.testing.assert_close(logits, expected[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(values, expected[1], atol=1e-5, rtol=1e-4)
    for key in network.memory_keys:
        torch.testing.assert_close(after[key], expected[2][key], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("memory", ["lstm", "gru"])
def test_gradients_flow_back_to_the_first_step_and_never_across_episodes(memory):
    network = network_of(BRIDGE, small(memory=memory))
    seen, before, first = rows_of(network, 6, 2)
    first[:] = False
    first[3, 1] = True  # a new episode in slot 1 only
    seen["position"].requires_grad_()
    before = {k: v.requires_grad_() for k, v in before.items()}
    logits, _, _ = network.unroll(seen, before, first)
    logits[-1].square().sum().backward()
    reached = seen["position"].grad.abs().sum(-1) > 0
    assert reached[:, 0].all()
    assert reached[3:, 1].all()
    assert not reached[:3, 1].any()
    for array in before.values():
        assert (array.grad[0] != 0).any()
        assert not (array.grad[1] != 0).any()


@pytest.mark.parametrize("memory", MEMORIES)
def test_gradients_of_many_steps_are_those_of_the_steps(memory):
    network = network_of(BRIDGE, small(memory=memory, shared=False))
    rows = rows_of(network, 5, 3)
    gradients = []
    for run in (network.unroll, lambda *a: steps_by_hand(network, *a)):
        network.zero_grad()
        logits, values, _ = run(*rows)
        (logits.square().sum() + values.sum()).backward()
        gradients.append({k: p.grad.clone() for k, p in network.named_parameters()})
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][key], atol=1e-3, rtol=1e-3)


def test_a_critic_of_its_own_shares_nothing_but_the_memory():
    network = network_of(BRIDGE, small(shared=False))
    seen = {"position": torch.rand(4, 2)}
    network(seen, {})[1].sum().backward()
    assert all(p.grad is None for p in network.actor.parameters())
    network(seen, {})[0].square().sum().backward()
    assert all(p.grad is not None for p in network.actor.parameters())


def test_new_networks_play_nearly_at_random_and_depend_on_their_seed():
    bridge = RichBridge()
    one, same, other = (network_of(bridge, small(), seed) for seed in (1, 1, 2))
    seen = {"position": torch.rand(50, 2)}
    logits = one(seen, {})[0]
    torch.testing.assert_close(logits, same(seen, {})[0])
    assert not torch.allclose(logits, other(seen, {})[0])
    assert logits.abs().max() < 0.1
    full = 20 * np.log(2) + 2 * np.log(11) + np.log(5)
    assert one.distribution(logits).entropy().mean().item() == pytest.approx(full, rel=1e-3)


def test_making_a_network_leaves_torchs_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    network_of(BRIDGE, small())
    torch.testing.assert_close(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hidden": []}, r"hidden must list widths of at least 1, got \[\]"),
        ({"hidden": [8, 0]}, r"got \[8, 0\]"),
        ({"memory_size": 0}, "memory_size: expected a number greater than 0"),
        ({"cnn_width": -1.0}, "cnn_width: expected a number greater than 0"),
        ({"embedding": -2}, "embedding: expected a number greater than or equal to 0"),
    ],
)
def test_sizes_that_make_no_network(options, said):
    with pytest.raises(ConfigError, match=said):
        build_plugin("policies", "actor_critic", options)
