"""Observations that say which actions are legal, and the policies that keep to them."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from policies.actor_critic import ActorCriticPolicy
from policies.random import Random
from rollout.api import ACTION, MASK
from rollout.api.spaces import check_masks
from rollout.errors import SpaceError

KEY = MASK + ACTION
ACTIONS = spaces.Dict({ACTION: spaces.Discrete(6), "other": spaces.Discrete(3)})
SEEN = spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float32), KEY: spaces.MultiBinary(6)})


def test_random_actions_are_drawn_uniformly_from_the_legal_ones():
    policy = Random(ACTIONS, np.random.default_rng(0), [KEY])
    legal = np.zeros((3000, 6), np.int8)
    legal[:, [1, 4]] = 1
    legal[0] = 0  # of a slot that does not play
    drawn = policy.act({KEY: legal}, {}, details=None, explore=True).actions
    assert set(drawn[ACTION][1:].tolist()) == {1, 4}
    assert (drawn[ACTION][1:] == 1).mean() == pytest.approx(0.5, abs=0.04)
    assert set(drawn["other"].tolist()) == {0, 1, 2}


def test_a_network_never_chooses_what_is_not_legal():
    network = ActorCriticPolicy(columns=("x",)).network(SEEN, ACTIONS, seed=0)
    legal = torch.zeros(512, 6, dtype=torch.int8)
    legal[:, [0, 5]] = 1
    legal[-1] = 0
    seen = {"x": torch.randn(512, 2), KEY: legal}
    outputs, _, _ = network(seen, {})
    chance = torch.softmax(outputs[:, network.layout.place(ACTION)], -1)
    assert chance[:-1, [0, 5]].sum(-1).min() > 1 - 1e-6
    assert chance[-1].max() < 0.5
    distribution = network.distribution(outputs)
    assert torch.isfinite(distribution.entropy()).all()
    assert torch.isfinite(distribution.kl(network.distribution(outputs + 0.1))).all()
    chosen = network.layout.encode({ACTION: np.zeros(512), "other": np.zeros(512)})
    distribution.log_prob(chosen).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


@pytest.mark.parametrize("size", [5, 7])
def test_a_mask_of_another_size_is_refused(size):
    with pytest.raises(SpaceError, match="as large as a Discrete action 'action'"):
        check_masks(spaces.Dict({KEY: spaces.MultiBinary(size)}), ACTIONS)


def test_a_mask_of_no_action_is_refused():
    with pytest.raises(SpaceError, match="mask/jump"):
        check_masks(spaces.Dict({MASK + "jump": spaces.MultiBinary(6)}), ACTIONS)
