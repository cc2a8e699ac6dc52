"""Prefix sets: training states from the first values of every factor, and nothing held out."""

import dataclasses
import json
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rollout.api import Factor, Permutation, Splits, StateSpace, subsets
from rollout.api.subsets import MOST, PrefixStates, take_prefix
from rollout.errors import StateError, UnknownNameError

pytestmark = pytest.mark.heavy

PAPER = StateSpace(
    (
        Factor("equipment", range(771)),
        Factor("sheep", range(441)),
        Factor("other", range(577)),
        Factor("task", ("hunt",)),
    )
)
SMALL = StateSpace((Factor("a", range(6)), Factor("b", tuple("wxyz")), Factor("c", range(5))))


@st.composite
def splits(draw):
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    assume(4 <= math.prod(sizes) <= 400)
    factors = [Factor(f"f{i}", range(3, 3 + size)) for i, size in enumerate(sizes)]
    hold_out, only = {}, {}
    for factor in factors:
        kind = draw(st.sampled_from(["whole", "whole", "hold_out", "only"]))
        if factor.size > 2 and kind != "whole":
            some = draw(st.sets(st.sampled_from(list(factor.values)), min_size=1, max_size=2))
            (hold_out if kind == "hold_out" else only)[factor.name] = sorted(some)
    amount = st.sampled_from([0, 0.1, 0.3, 2])
    try:
        return Splits(
            StateSpace(tuple(factors)),
            draw(st.integers(0, 3)),
            validation=draw(amount),
            test=draw(amount),
            hold_out=hold_out,
            only=only,
        )
    except StateError:
        assume(False)


def indices(states):
    return [state.index for state in states]


def left_to_train(splits, name):
    """Values of a factor in the order of the task, without what is held out or left out."""
    factor = splits.space.factor(name)
    only = splits.only.get(name, factor.values)
    return [v for v in factor.values if v in only and v not in splits.hold_out.get(name, ())]


@given(splits=splits(), order=st.integers(0, 2), data=st.data())
@settings(max_examples=60)
def test_states_are_train_states_of_the_first_values(splits, order, data):
    size = data.draw(st.integers(1, splits.part_size("train")))
    states = take_prefix(splits, size, order=order)
    listed = indices(states)
    assert len(set(listed)) == states.size == size
    assert {splits.part_of(index) for index in listed} == {"train"}
    states.require_trainable()
    first = {
        factor.name: left_to_train(splits, factor.name)[:kept]
        for factor, kept in zip(splits.space, states.lengths, strict=True)
    }
    for state in states:
        assert all(state[name] in values for name, values in first.items())
    assert [states[k].index for k in range(size)] == listed
    known = [index for index in range(-1, splits.space.size + 1) if index in states]
    assert known == sorted(listed)


@given(splits=splits(), data=st.data())
@settings(max_examples=60)
def test_lengths_follow_the_rule_and_are_the_least_that_hold_the_set(splits, data):
    sizes = [len(left_to_train(splits, factor.name)) for factor in splits.space]
    train = set(indices(splits.take("train")))

    def held(lengths):
        inside = splits.space.restrict(
            {
                f.name: left_to_train(splits, f.name)[:kept]
                for f, kept in zip(splits.space, lengths, strict=True)
            }
        )
        return sum(
            splits.space.index(state.values) in train
            for state in map(inside.state, range(inside.size))
        )

    size = data.draw(st.integers(1, len(train)))
    lengths = take_prefix(splits, size).lengths
    assert held(lengths) >= size
    # Every sub-product of the rule, by exponents far finer than its steps in so small a space.
    grid = [
        tuple(max(1, math.floor(s ** (i / 4000) + 0.5 + 1e-9)) for s in sizes) for i in range(4001)
    ]
    assert lengths in grid
    smaller = [each for each in dict.fromkeys(grid) if each < lengths and each != lengths]
    below = [each for each in smaller if all(a <= b for a, b in zip(each, lengths, strict=True))]
    assert all(held(each) < size for each in below)


@given(splits=splits(), data=st.data())
@settings(max_examples=40)
def test_sets_nest_exactly_when_the_module_says_so(splits, data):
    large = data.draw(st.integers(1, splits.part_size("train")))
    small = data.draw(st.integers(1, large))
    one, two = take_prefix(splits, small), take_prefix(splits, large)
    assert all(a <= b for a, b in zip(one.lengths, two.lengths, strict=True))
    if one.lengths == two.lengths:
        assert indices(two)[:small] == indices(one)
    names = [factor.name for factor in splits.space]
    lengths = dict(zip(names, two.lengths, strict=True))
    fixed = take_prefix(splits, small, lengths)
    assert indices(two)[:small] == indices(fixed)


@given(splits=splits(), data=st.data())
@settings(max_examples=30)
def test_the_digest_names_the_set(splits, data):
    size = data.draw(st.integers(1, splits.part_size("train")))
    states = take_prefix(splits, size)
    again = take_prefix(dataclasses.replace(splits), size)
    assert (again.digest, again.name, indices(again)) == (
        states.digest,
        states.name,
        indices(states),
    )
    assert states.digest != splits.take("train", size).digest
    reordered = take_prefix(splits, size, order=1)
    assert reordered.digest != states.digest
    moved = dataclasses.replace(splits, seed=splits.seed + 1)
    assert take_prefix(moved, size).digest != states.digest


def test_the_test_set_does_not_know_of_it():
    one = Splits(PAPER, test=200)
    before = one.take("test").digest, indices(one.take("test"))
    states = take_prefix(one, 500)
    assert (one.take("test").digest, indices(one.take("test"))) == before
    assert not any(index in states for index in before[1])


def test_the_lengths_of_the_paper():
    one = Splits(PAPER)
    lengths = {"equipment": 100, "sheep": 10, "other": 10}
    states = take_prefix(one, 7000, lengths)
    assert states.lengths == (100, 10, 10, 1)
    assert max(state["equipment"] for state in states) == 99
    assert {state["sheep"] for state in states} == set(range(10))
    grown = take_prefix(one, 7000, {"equipment": 100})
    assert grown.lengths[0] == 100
    assert grown.lengths[1] > 1
    assert grown.describe()["prefix"]["equipment"] == "100"


def test_factors_grow_together_and_early():
    lengths = [take_prefix(Splits(PAPER), n).lengths for n in (1, 16, 256, 4096, 16_384)]
    assert lengths[0] == (1, 1, 1, 1) or math.prod(lengths[0]) <= 16
    for n, kept in zip((16, 256, 4096, 16_384), lengths[1:], strict=True):
        assert n <= math.prod(kept) <= 3 * n
        assert max(kept) <= 2 * min(kept[:3])
        assert kept[3] == 1
    assert take_prefix(Splits(SMALL, test=0, validation=0), 120).lengths == (6, 4, 5)


def test_the_frozen_set_is_still_the_same():
    """Published results name sets by digest: a change here breaks every one of them."""
    states = take_prefix(Splits(SMALL, seed=1, hold_out={"b": ["y"]}), 8)
    assert states.lengths == (3, 2, 2)
    assert states.digest == "7aa496934fcd8c5f"
    assert indices(states) == [1, 5, 0, 46, 21, 20, 25, 40]


def test_a_subset_of_a_huge_space_costs_what_the_subset_costs():
    space = StateSpace((Factor("seed", range(10**20)), Factor("map", range(0, 70, 7))))
    huge = Splits(space, hold_out={"map": [0]}, only={"seed": range(5, 10**20, 5)})
    tracemalloc.start()
    try:
        states = take_prefix(huge, 300)
        for k in range(0, 300, 30):
            assert states[k].index in states
            assert huge.part_of(states[k].index) == "train"
            assert states[k]["seed"] <= 5 * states.lengths[0]
            assert states[k]["map"] != 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    # Far more values than states: nothing lists the sub-product.
    wide = take_prefix(huge, 50, {"seed": 10**18, "map": 9})
    assert math.prod(wide.lengths) == 9 * 10**18
    assert all(index in wide for index in indices(wide))


def test_batches_give_what_one_by_one_gives(monkeypatch):
    whole = indices(take_prefix(Splits(PAPER), 200))
    monkeypatch.setattr(subsets, "_BATCH", 7)
    assert indices(take_prefix(Splits(PAPER), 200)) == whole
    monkeypatch.setattr(subsets, "_LARGEST_INT64", 0)
    assert indices(take_prefix(Splits(PAPER), 200)) == whole


@given(size=st.integers(1, 2**62), key=st.binary(max_size=8), data=st.data())
@settings(max_examples=60)
def test_many_values_are_permuted_as_one_by_one(size, key, data):
    order = Permutation(size, key)
    values = data.draw(st.lists(st.integers(0, size - 1), max_size=20))
    for kind in (np.int64, np.object_):
        out = order.many(np.array(values, kind))
        assert out.tolist() == [order(value) for value in values]
        assert order.many(out, inverse=True).tolist() == values


def test_sets_travel_and_are_values():
    states = take_prefix(Splits(SMALL, hold_out={"b": ["y"]}), 12, {"a": 3})
    again = pickle.loads(pickle.dumps(states))
    assert again == states
    assert indices(again) == indices(states)
    data = json.loads(json.dumps(states.describe()))
    assert data["subset"] == "prefix"
    kept = {name: int(k) for name, k in data["prefix"].items()}
    assert take_prefix(states.splits, 12, kept).digest == data["digest"]
    # One that is built from its fields finds its states by itself.
    fresh = PrefixStates(states.splits, "train", 12, 0, states.lengths)
    assert indices(fresh) == indices(states)
    assert states.draw(np.random.default_rng(0)).index in states
    with pytest.raises(StateError, match="has states 0 to 11, got 12"):
        states[12]
    assert "train" not in states
    assert np.int64(states[0].index) in states


@pytest.mark.parametrize(
    ("size", "lengths", "message"),
    [
        (0, {}, "a 'train' set of 0 states was asked for"),
        (10**9, {}, "ask for 1 to"),
        (MOST + 1, {}, f"{MOST} at most"),
        (5, {"sheep": 442}, "prefix.sheep=442: expected 1 to 441"),
        (5, {"sheep": 0}, "prefix.sheep=0: expected 1 to 441"),
        (101, {"equipment": 10, "sheep": 5, "other": 2}, r"has 100 states, \d\d of them in"),
        (98, {"equipment": 10, "sheep": 5, "other": 2}, r"ask for 1 to \d\d, or give a factor"),
    ],
)
def test_what_a_prefix_cannot_hold(size, lengths, message):
    with pytest.raises(StateError, match=message):
        take_prefix(Splits(PAPER), size, lengths)


def test_the_number_in_the_message_is_the_largest_that_works():
    lengths = {"equipment": 10, "sheep": 5, "other": 2}
    with pytest.raises(StateError) as error:
        take_prefix(Splits(PAPER), 99, lengths)
    most = int(str(error.value).split("ask for 1 to ")[1].split(",")[0])
    assert take_prefix(Splits(PAPER), most, lengths).size == most
    with pytest.raises(StateError):
        take_prefix(Splits(PAPER), most + 1, lengths)


def test_unknown_factors_are_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Nearest: sheep"):
        take_prefix(Splits(PAPER), 5, {"sheeps": 3})
    held = Splits(SMALL, hold_out={"b": ["y"]})
    with pytest.raises(StateError, match=r"prefix\.b=4: expected 1 to 3"):
        take_prefix(held, 5, {"b": 4})
