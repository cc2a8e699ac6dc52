"""Observations that say which actions are legal, and the policies that keep to them."""

import dataclasses

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.actor_critic import ActorCriticPolicy, QNetworkPolicy
from policies.random import RandomPolicy
from rollout.api import ACTION, MASK, Start, Task, flatten_space
from rollout.api.masks import (
    MaskCheck,
    MaskReader,
    check_masks,
    choices_of,
    legal_values,
    mask_like,
    mask_spaces,
    sample_mask,
)
from rollout.errors import SpaceError
from rollout.evaluators import GameReward
from rollout.models.grammar import UnusableAnswerError
from rollout.models.legal import LegalActions
from rollout.testing.fakes import FakeBridge

KEY = MASK + ACTION
ROWS = 64
LEAVES = {
    "one": spaces.Discrete(5),
    "shifted": spaces.Discrete(4, start=-2),
    "many": spaces.MultiDiscrete([3, 2, 4]),
    "grid": spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, 5], [-3, 1]]),
    "keys": spaces.MultiBinary(4),
    "free": spaces.Box(-1, 1, (2,), np.float32),
}
FREE = "free"


def spec_of(names):
    actions = spaces.Dict({name: LEAVES[name] for name in names})
    masks = {MASK + key: space for key, space in mask_spaces(actions).items()}
    seen = spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float32), **masks})
    return dataclasses.replace(
        FakeBridge().spec, observation_space=seen, action_space=actions, action_labels={}
    )


def drawn(spec, rng):
    """Random masks that allow a value of each choice."""
    seen = {"x": rng.normal(size=(ROWS, 2)).astype(np.float32)}
    for key, leaf in spec.action_space.spaces.items():
        sizes = choices_of(leaf)
        if sizes:
            share = rng.choice([0.1, 0.5, 0.9])
            parts = [rng.random((ROWS, n)) < share for n in sizes]
            for part in parts:
                part[np.arange(ROWS), rng.integers(part.shape[1], size=ROWS)] = True
            seen[MASK + key] = np.concatenate(parts, 1).astype(np.int8)
    return seen


def assert_legal(spec, seen, actions):
    for key, leaf in spec.action_space.spaces.items():
        sizes = choices_of(leaf)
        if not sizes:
            continue
        start = np.ravel(getattr(leaf, "start", 0))
        chosen = actions[key].reshape(ROWS, -1) - start
        firsts = np.cumsum([0, *sizes[:-1]])
        assert ((chosen >= 0) & (chosen < np.array(sizes))).all()
        assert np.take_along_axis(seen[MASK + key], chosen.astype(int) + firsts, 1).all(), key
        assert actions[key].dtype == leaf.dtype
        assert actions[key].shape == (ROWS, *leaf.shape)


POLICIES = {
    "random": RandomPolicy(),
    "by hand": ActorCriticPolicy(hidden=(8,)),
    "autograd": ActorCriticPolicy(hidden=(8,), activation="silu"),
    "memory": ActorCriticPolicy(hidden=(8,), memory="gru", memory_size=4),
    "values": QNetworkPolicy(hidden=(8,)),
}


@pytest.mark.parametrize("policy", POLICIES)
@given(
    names=st.sets(st.sampled_from(sorted(LEAVES)), min_size=1).map(sorted),
    explore=st.booleans(),
    seed=st.integers(0, 999),
)
@settings(max_examples=12, deadline=None)
def test_no_policy_plays_what_is_not_legal(policy, names, explore, seed):
    if policy == "values":
        names = [name for name in names if name != FREE] or ["one"]
    spec, rng = spec_of(names), np.random.default_rng(seed)
    task = Task("t", "", spec.state_space, GameReward())
    player = POLICIES[policy].build(spec, task, seed=seed)
    network = getattr(player, "network", None)
    if network is not None:  # preferences that differ, so that those that are legal do not win
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in network.policy_head.parameters():
                parameter.add_(3 * torch.randn(parameter.shape, generator=generator))
    state = spec.state_space.state(0)
    memory = player.initial_memory([Start(state, seed + n) for n in range(ROWS)])
    for _ in range(3):
        seen = drawn(spec, rng)
        decision = player.act(seen, memory, details=None, explore=explore)
        memory = decision.memory
        assert_legal(spec, seen, decision.actions)


@given(
    names=st.sets(st.sampled_from(sorted(LEAVES)), min_size=1).map(sorted),
    seed=st.integers(0, 999),
)
@settings(max_examples=40, deadline=None)
def test_a_model_may_choose_what_is_legal_and_nothing_else(names, seed):
    spec, rng = spec_of(names), np.random.default_rng(seed)
    seen, legal = drawn(spec, rng), LegalActions(spec)
    nearest = []
    for row in range(ROWS):
        action = {key: leaf.sample() for key, leaf in spec.action_space.spaces.items()}
        near = legal.nearest(action, seen, row, rng)
        legal.require(near, seen, row)
        nearest.append(near)
        same = all(np.array_equal(action[key], near[key]) for key in action)
        if same:
            legal.require(action, seen, row)
        else:
            with pytest.raises(UnusableAnswerError, match="is not legal now; legal: "):
                legal.require(action, seen, row)
    columns = {key: np.stack([np.asarray(n[key]) for n in nearest]) for key in nearest[0]}
    for key, leaf in spec.action_space.spaces.items():
        columns[key] = columns[key].astype(leaf.dtype)
    assert_legal(spec, seen, columns)


def test_random_actions_are_drawn_uniformly_from_the_legal_ones():
    spec = spec_of(["many", "one"])
    player = RandomPolicy().build(spec, Task("t", "", spec.state_space, GameReward()), seed=0)
    legal = {KEY: np.zeros((3000, 5), np.int8), "many": np.ones((3000, 9), np.int8)}
    legal[KEY][:, [1, 4]] = 1
    legal[KEY][0] = 0  # of a slot that does not play
    legal["many"][:, 0] = 0
    seen = {MASK + "one": legal[KEY], MASK + "many": legal["many"]}
    actions = player.act(seen, {}, details=None, explore=True).actions
    assert set(actions["one"][1:].tolist()) == {1, 4}
    assert (actions["one"][1:] == 1).mean() == pytest.approx(0.5, abs=0.04)
    assert (actions["many"][:, 0] == 1).mean() == pytest.approx(0.5, abs=0.04)
    assert (actions["many"][:, 2] == 1).mean() == pytest.approx(0.25, abs=0.04)


def test_a_choice_without_a_legal_value_is_not_restricted():
    spec = spec_of(["many"])
    network = ActorCriticPolicy(columns=("x",)).network(
        spec.observation_space, spec.action_space, seed=0
    )
    mask = torch.zeros(2, 9, dtype=torch.int8)
    mask[:, [0, 3]] = 1
    outputs, _, _ = network({"x": torch.randn(2, 2), MASK + "many": mask}, {})
    chance = [torch.softmax(part, -1) for part in outputs.split([3, 2, 4], -1)]
    assert chance[0][:, 0].min() > 1 - 1e-6
    assert chance[1][:, 0].min() > 1 - 1e-6
    assert chance[2].max() < 0.5
    assert legal_values(mask.numpy(), (3, 2, 4))[0].tolist() == [1, 0, 0, 1, 0, 1, 1, 1, 1]
    distribution = network.distribution(outputs)
    assert torch.isfinite(distribution.entropy()).all()
    assert torch.isfinite(distribution.kl(network.distribution(outputs + 0.1))).all()
    distribution.log_prob(torch.tensor([[0, 0, 1], [0, 0, 3]])).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", [name for name in LEAVES if name != FREE])
def test_masks_of_gymnasium_become_columns_and_come_back(name):
    leaf, rng = LEAVES[name], np.random.default_rng(0)
    flat = flatten_space(leaf, ACTION)
    sizes = choices_of(leaf)
    mask = (rng.random(sum(sizes)) < 0.5).astype(np.int8)
    mask[np.cumsum([0, *sizes[:-1]])] = 1
    given_to_sample = sample_mask(flat.columns, {KEY: mask})[ACTION]
    np.testing.assert_array_equal(MaskReader(flat).read(given_to_sample)[ACTION], mask)
    np.testing.assert_array_equal(MaskReader(flat).read(mask.astype(bool).tolist())[ACTION], mask)
    leaf.seed(0)
    drawn_by_gymnasium = np.stack([leaf.sample(given_to_sample) for _ in range(50)])
    chosen = drawn_by_gymnasium.reshape(50, -1) - np.ravel(getattr(leaf, "start", 0))
    assert mask[(chosen + np.cumsum([0, *sizes[:-1]])).astype(int)].all()


def test_masks_of_nested_actions_are_read_by_part_or_joined():
    nested = spaces.Dict(
        {
            "hand": spaces.Tuple([spaces.Discrete(2), spaces.MultiDiscrete([2, 3])]),
            "turn": spaces.Box(-1, 1, (1,), np.float32),
            "walk": spaces.Discrete(3),
        }
    )
    reader = MaskReader(flatten_space(nested, ACTION))
    parts = {
        "hand": (np.array([1, 0]), (np.array([0, 1]), np.array([1, 1, 0]))),
        "turn": None,
        "walk": None,
    }
    found = reader.read(parts)
    assert {key: column.tolist() for key, column in found.items()} == {
        "hand/0": [1, 0],
        "hand/1": [0, 1, 1, 1, 0],
        "walk": [1, 1, 1],
    }
    joined = np.array([1, 0, 0, 1, 1, 1, 0, 1, 1, 1])
    again = reader.read(np.stack([joined, joined]), (2,))
    for key, column in found.items():
        np.testing.assert_array_equal(again[key], np.stack([column, column]))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.ones(4), r"expected an array of shape \[5\], one element for each value, got .*\[4\]"),
        (np.full(5, 0.5), "expected 0 for a value that is not legal and 1"),
        ("jump", r"expected an array of shape \[5\].*got str"),
    ],
)
def test_masks_of_another_form_are_refused(value, said):
    with pytest.raises(SpaceError, match=said):
        MaskReader(flatten_space(LEAVES["one"], ACTION)).read(value)


def test_a_tuple_of_masks_of_other_lengths_is_refused():
    with pytest.raises(SpaceError, match=r"tuple of arrays of \[3, 2, 4\] numbers"):
        MaskReader(flatten_space(LEAVES["many"], ACTION)).read((np.ones(3), np.ones(2), np.ones(3)))


@pytest.mark.parametrize("size", [5, 7])
def test_a_mask_of_another_size_is_refused(size):
    actions = spaces.Dict({ACTION: spaces.MultiDiscrete([2, 4])})
    with pytest.raises(SpaceError, match=r"'mask/action' is the mask of .*MultiBinary\(6\)"):
        check_masks(spaces.Dict({KEY: spaces.MultiBinary(size)}), actions)


def test_a_mask_of_no_action_is_refused():
    actions = spaces.Dict({ACTION: spaces.Discrete(6), "free": LEAVES[FREE]})
    for name in ("jump", "free"):
        with pytest.raises(SpaceError, match=f"mask/{name}.*expected the name.*action"):
            check_masks(spaces.Dict({MASK + name: spaces.MultiBinary(6)}), actions)


@pytest.mark.parametrize(
    ("name", "size", "found"),
    [
        ("action_mask", 6, True),
        ("legal_moves", 6, True),
        ("valid_actions", 6, True),
        ("mask", 6, True),
        ("mask", 7, False),
        ("inventory", 6, False),
        (KEY, 6, False),
    ],
)
def test_what_looks_like_a_mask_and_is_none_is_found(name, size, found):
    actions = spaces.Dict({ACTION: spaces.Discrete(6)})
    seen = spaces.Dict({name: spaces.MultiBinary(size), "x": spaces.Discrete(6)})
    assert mask_like(seen, actions) == ({name: ACTION} if found else {})


def test_a_slot_that_plays_and_may_choose_nothing_is_found():
    spec = spec_of(["many", "one"])
    check = MaskCheck(spec.observation_space, spec.action_space)
    seen = {MASK + "many": np.ones((3, 9), np.int8), MASK + "one": np.ones((3, 5), np.int8)}
    everyone = np.ones(3, bool)
    assert check(seen, everyone) is None
    seen[MASK + "many"][1, 3:5] = 0
    assert check(seen, everyone) == (
        1,
        "the mask 'mask/many' allows none of 2 values in choice 1 of 3",
    )
    assert check(seen, np.array([True, False, True])) is None
