"""State sets: parts that never overlap, sets that nest, digests that hold."""

import dataclasses
import json
import math
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rollout.api import Factor, Splits, StateSet, StateSpace
from rollout.errors import StateError, TestStateError, UnknownNameError

SPACE = StateSpace(
    (Factor("a", range(6)), Factor("b", tuple("wxyz")), Factor("c", range(0, 10, 2)))
)
PARTS = ("train", "validation", "test")


@st.composite
def splits(draw, most=300):
    sizes = draw(st.lists(st.integers(2, 7), min_size=1, max_size=3))
    assume(math.prod(sizes) <= most)
    factors = []
    for number, size in enumerate(sizes):
        values = draw(st.sampled_from([range(size), tuple("abcdefg"[:size])]))
        factors.append(Factor(f"f{number}", values))
    hold_out = {}
    for factor in factors:
        if draw(st.booleans()):
            some = draw(
                st.sets(st.integers(0, factor.size - 1), min_size=1, max_size=factor.size - 1)
            )
            hold_out[factor.name] = [factor.values[digit] for digit in some]
    amount = st.one_of(st.sampled_from([0, 0.1, 0.25, 0.4]), st.integers(0, 5))
    try:
        return Splits(
            StateSpace(tuple(factors)),
            draw(st.integers(0, 5)),
            validation=draw(amount),
            test=draw(amount),
            hold_out=hold_out,
        )
    except StateError:
        assume(False)


def indices(states):
    return [state.index for state in states]


def whole(splits, part):
    return set(indices(splits.take(part))) if splits.part_size(part) else set()


@given(splits=splits())
@settings(max_examples=30)
def test_parts_do_not_overlap_and_cover_the_space(splits):
    parts = {part: whole(splits, part) for part in splits.names}
    for part, states in parts.items():
        assert len(states) == splits.part_size(part)
    assert parts["all"] == set().union(*(parts[part] for part in PARTS))
    assert len(parts["all"]) == sum(len(parts[part]) for part in PARTS)
    held = set().union(*(states for part, states in parts.items() if "extrapolation" in part))
    assert not held & parts["all"]
    singles = [parts[f"extrapolation/{name}"] for name in splits.hold_out]
    assert sum(map(len, singles)) == len(set().union(*singles)) if singles else not held
    mixed = set(range(splits.space.size)) - parts["all"] - held
    assert all(splits.part_of(index) == "extrapolation" for index in mixed)
    if len(splits.hold_out) < 3:
        assert not mixed  # ordinary, one factor, or both: with two there is nothing in between


@given(splits=splits())
@settings(max_examples=30)
def test_part_of_and_require_trainable_agree_with_the_parts(splits):
    for part in splits.names:
        for index in whole(splits, part) if part != "all" else ():
            named = splits.part_of(index)
            alone = len(splits.hold_out) == 1 and "extrapolation" in part
            assert named == part or (alone and named.startswith("extrapolation/"))
            if part == "train":
                splits.require_trainable(index)
            else:
                with pytest.raises(TestStateError, match="must not be trained on"):
                    splits.require_trainable(index)


@given(splits=splits(), order=st.integers(0, 3), data=st.data())
@settings(max_examples=40)
def test_larger_sets_contain_smaller_ones_and_know_their_states(splits, order, data):
    part = data.draw(st.sampled_from([p for p in splits.names if splits.part_size(p)]))
    large = splits.take(part, order=order)
    size = data.draw(st.integers(1, large.size))
    small = splits.take(part, size, order=order)
    assert indices(small) == indices(large)[:size]
    assert len(set(indices(small))) == size
    held = set(indices(small))
    assert {index for index in range(splits.space.size) if index in small} == held
    assert splits.space.size not in small
    assert -1 not in small
    assert "train" not in small
    assert [small[k].index for k in range(size)] == indices(small)


def test_orders_reorder_a_part_and_keep_it():
    splits = Splits(SPACE, hold_out={"b": ["y"]})
    for part in splits.names:
        orders = [indices(splits.take(part, order=order)) for order in range(4)]
        assert len({frozenset(order) for order in orders}) == 1
        if splits.part_size(part) > 5:
            assert len({tuple(order) for order in orders}) == 4


def test_the_first_states_of_all_come_from_every_part():
    space = StateSpace((Factor("a", range(10_000)),))
    splits = Splits(space, validation=0.25, test=0.25)
    counts = dict.fromkeys(PARTS, 0)
    for state in splits.take("all", 400):
        counts[splits.part_of(state.index)] += 1
    assert 150 < counts["train"] < 250
    assert 60 < counts["test"] < 140


def test_a_part_is_a_random_sample_of_the_space():
    space = StateSpace((Factor("a", range(40)), Factor("b", range(40))))
    test = Splits(space, test=0.25).take("test")
    counts = np.bincount([state["a"] for state in test], minlength=40)
    assert ((counts - 10) ** 2 / 10).sum() < 90  # 39 degrees of freedom, less for lack of repeats


def test_sizes_of_parts_are_exact_in_a_space_of_any_size():
    space = StateSpace((Factor("seed", range(10**20)), Factor("map", range(10**20))))
    splits = Splits(space, validation=0.1, test=1000, hold_out={"map": [0]})
    ordinary = 10**20 * (10**20 - 1)
    assert splits.part_size("test") == 1000
    assert splits.part_size("validation") == ordinary // 10
    assert splits.part_size("train") == ordinary - ordinary // 10 - 1000
    assert splits.part_size("extrapolation/map") == 10**20
    train = splits.take("train", 10**30)
    for k in (0, 1, 10**29, 10**30 - 1):
        index = train[k].index
        assert index in train
        assert splits.part_of(index) == "train"
        assert index not in splits.take("test")
        assert train[k]["map"] != 0


def test_ten_million_states_take_no_memory():
    space = StateSpace((Factor("seed", range(10**20)), Factor("map", ("a", "b"))))
    tracemalloc.start()
    try:
        states = Splits(space, hold_out={"map": ["b"]}).take("train", 10**7, order=1)
        for k in range(0, 10**7, 10**5):
            assert states[k].index in states
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


def test_draws_are_uniform_and_inside():
    states = Splits(SPACE).take("train", 20)
    rng = np.random.default_rng(0)
    where = {state.index: k for k, state in enumerate(states)}
    counts = np.bincount([where[states.draw(rng).index] for _ in range(4000)], minlength=20)
    assert ((counts - 200) ** 2 / 200).sum() < 60  # 19 degrees of freedom
    huge = Splits(StateSpace((Factor("seed", range(10**30)),))).take("train")
    assert all(huge.draw(rng).index in huge for _ in range(20))


def test_sets_come_back_by_pickle_and_by_description():
    splits = Splits(SPACE, seed=3, hold_out={"b": ["y", "x"], "c": [4]})
    states = splits.take("train", 5, order=2)
    assert states[0].index in states  # whatever was cached by use must not stop it
    again = pickle.loads(pickle.dumps(states))
    assert again == states
    assert again.digest == states.digest
    assert indices(again) == indices(states)
    data = json.loads(json.dumps(states.describe()))
    plain = data["splits"]
    rebuilt = Splits(
        SPACE, plain["seed"], plain["validation"], plain["test"], plain["hold_out"]
    ).take(data["part"], int(data["size"]), order=data["order"])
    assert rebuilt.digest == data["digest"]
    assert indices(rebuilt) == indices(states)
    assert plain["space"] == SPACE.digest


@pytest.mark.process
def test_the_digest_is_the_same_in_another_process():
    code = (
        "from rollout.api import *\n"
        "space = StateSpace((Factor('a', range(10**20)), Factor('b', ('x', 'y', 'z'))))\n"
        "s = Splits(space, seed=7, test=0.2, hold_out={'b': ['z']}).take('train', 50, order=1)\n"
        "print(s.digest, [state.index for state in s][:3])\n"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    space = StateSpace((Factor("a", range(10**20)), Factor("b", ("x", "y", "z"))))
    states = Splits(space, seed=7, test=0.2, hold_out={"b": ["z"]}).take("train", 50, order=1)
    assert runs == {f"{states.digest} {indices(states)[:3]}\n"}


def test_the_digest_changes_with_everything_that_changes_the_states():
    base = Splits(SPACE, hold_out={"b": ["y"]})
    other = StateSpace((*SPACE.factors[:2], Factor("c", range(1, 11, 2))))
    variants = [
        base.take("train", 5),
        base.take("train", 6),
        base.take("train", 5, order=1),
        base.take("test", 5),
        base.take("extrapolation/b", 5),
        dataclasses.replace(base, seed=1).take("train", 5),
        dataclasses.replace(base, test=0.2).take("train", 5),
        dataclasses.replace(base, validation=0.2).take("train", 5),
        dataclasses.replace(base, hold_out={"b": ["z"]}).take("train", 5),
        dataclasses.replace(base, hold_out={"b": ["y", "z"]}).take("train", 5),
        dataclasses.replace(base, hold_out={}).take("train", 5),
        dataclasses.replace(base, space=other).take("train", 5),
    ]
    assert len({states.digest for states in variants}) == len(variants)
    # Moving states from validation to test leaves train what it was; nothing else does.
    assert len({tuple(indices(s)) for s in variants}) == len(variants) - 1


def test_the_same_division_written_differently_has_one_digest():
    one = Splits(SPACE, validation=0.1, test=12, hold_out={"b": ["y", "x"], "c": (4,)})
    two = Splits(SPACE, validation=0.1, test=12.0, hold_out={"c": [4], "b": ("x", "y")})
    three = dataclasses.replace(one, hold_out={"b": ["x", "y", "x"], "c": range(4, 6, 2)})
    for each in (two, three):
        assert each.take("train").digest == one.take("train").digest
        assert indices(each.take("train")) == indices(one.take("train"))
        for name in ("extrapolation", "extrapolation/b"):
            assert indices(each.take(name)) == indices(one.take(name))


def test_the_order_of_held_out_factors_does_not_change_a_set():
    one = Splits(SPACE, hold_out={"b": ["y"], "c": [4]})
    two = Splits(SPACE, hold_out={"c": [4], "b": ["y"]})
    for part in one.names:
        assert indices(one.take(part)) == indices(two.take(part))
    assert [one.part_of(k) for k in range(SPACE.size)] == [
        two.part_of(k) for k in range(SPACE.size)
    ]


def test_the_frozen_set_is_still_the_same():
    """Published results name sets by digest: a change here breaks every one of them."""
    states = Splits(SPACE, seed=1, hold_out={"b": ["y"]}).take("train", 8)
    assert (states.digest, indices(states)) == (
        "48eee69293e348fe",
        [79, 23, 4, 118, 65, 116, 82, 9],
    )


def test_half_of_a_huge_factor_can_be_held_out():
    space = StateSpace((Factor("map", range(3)), Factor("seed", range(0, 10**30, 3))))
    high = range(10**30 - 1, 5 * 10**29, -6)  # every other seed from the top
    splits = Splits(space, hold_out={"seed": high})
    held = splits.take("extrapolation/seed")
    assert held.size == 3 * ((10**30 - 2 - 5 * 10**29) // 6 + 1)
    assert held.size + splits.part_size("all") == space.size
    for part in ("train", "test", "extrapolation/seed"):
        for k in (0, 1, splits.part_size(part) - 1):
            state = splits.take(part)[k]
            assert (state["seed"] in high) == part.startswith("extrapolation")
            assert state.index in splits.take(part)
            assert splits.part_of(state.index) == part
    json.dumps(splits.describe())
    assert len(pickle.dumps(held)) < 5000


def test_training_on_anything_but_train_is_refused():
    splits = Splits(SPACE, hold_out={"b": ["y"]})
    splits.take("train", 3).require_trainable()
    for part in splits.names:
        if part != "train":
            with pytest.raises(TestStateError, match="must not be trained on"):
                splits.take(part, 3).require_trainable()


@pytest.mark.parametrize("size", [0, -1, 97])
def test_a_size_that_a_part_does_not_have_is_refused(size):
    with pytest.raises(StateError, match=rf"set of {size} states was asked for.*ask for 1 to 96"):
        Splits(SPACE).take("train", size)


def test_states_beyond_the_size_are_refused():
    states = Splits(SPACE).take("train", 4)
    for k in (-1, 4):
        with pytest.raises(StateError, match="has states 0 to 3"):
            states[k]


def test_unknown_parts_are_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Nearest: train"):
        Splits(SPACE).take("trian")
    with pytest.raises(UnknownNameError, match="extrapolation"):
        Splits(SPACE, hold_out={"b": ["y"]}).take("extrapolation/c")
    with pytest.raises(UnknownNameError):
        Splits(SPACE).take("extrapolation")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": 0.5, "validation": 0.5}, "leave no state to train on"),
        ({"test": 60, "validation": 60}, "leave no state to train on"),
        ({"test": 121}, "only 120 ordinary states"),
        ({"test": -0.1}, "expected a fraction"),
        ({"test": 1.5}, "expected a fraction"),
        ({"validation": True}, "expected a fraction"),
        ({"test": math.nan}, "expected a fraction"),
        ({"test": math.inf}, "expected a fraction"),
        ({"hold_out": {"b": []}}, "must hold out some values and leave some"),
        ({"hold_out": {"b": list("wxyz")}}, "must hold out some values and leave some"),
        ({"hold_out": {"b": ["q"]}}, "no value 'q'"),
        ({"hold_out": {"q": [1]}}, "unknown factor 'q'"),
    ],
)
def test_impossible_divisions_are_refused(options, message):
    with pytest.raises(StateError if "unknown" not in message else UnknownNameError, match=message):
        Splits(SPACE, **options)


def test_fractions_are_exact_decimals():
    space = StateSpace((Factor("a", range(10**18)),))
    assert Splits(space, test=0.1).part_size("test") == 10**17
    assert Splits(space, test=0.29).part_size("test") == 29 * 10**16
    assert Splits(space, test=1e-18, validation=0).part_size("test") == 1


def test_parts_may_be_empty():
    splits = Splits(SPACE, validation=0, test=0)
    assert splits.part_size("test") == 0
    assert whole(splits, "train") == set(range(SPACE.size))
    with pytest.raises(StateError, match="part has 0"):
        splits.take("test")


def test_numpy_integers_are_indices_too():
    states = Splits(SPACE).take("train")
    index = states[0].index
    assert np.int64(index) in states
    assert True not in states or 1 in states


@pytest.mark.parametrize("index", [-1, 120, 10**30])
def test_states_that_do_not_exist_have_no_part(index):
    with pytest.raises(StateError, match="out of range"):
        Splits(SPACE).part_of(index)


def test_sets_are_values():
    splits = Splits(SPACE)
    assert splits.take("train", 4) == StateSet(splits, "train", 4)
    assert splits.take("train", 4) != splits.take("train", 5)


# --- only: factors held to some of their values -------------------------------------------------


@given(splits=splits(), data=st.data())
@settings(max_examples=40)
def test_only_divides_what_is_left_and_keeps_the_index_of_a_state(splits, data):
    only = {}
    for factor in splits.space:
        if data.draw(st.booleans()):
            digits = st.sets(st.integers(0, factor.size - 1), min_size=1)
            only[factor.name] = [factor.values[digit] for digit in data.draw(digits)]
    try:
        some = dataclasses.replace(splits, only=only)
    except StateError:
        assume(False)
    inside = splits.space.restrict(only)
    parts = {part: whole(some, part) for part in some.names}
    ordinary = [
        splits.space.index(state.values)
        for state in map(inside.state, range(inside.size))
        if not any(state[name] in held for name, held in splits.hold_out.items())
    ]
    assert parts["all"] == set(ordinary)
    assert parts["all"] == set().union(*(parts[part] for part in PARTS))
    assert len(parts["all"]) == sum(len(parts[part]) for part in PARTS)
    for index in range(splits.space.size):
        values = splits.space.state(index).values
        left = all(values[name] in allowed for name, allowed in only.items())
        assert (some.part_of(index) == "outside") == (not left)
        if not left:
            with pytest.raises(TestStateError, match="belongs to the 'outside' part"):
                some.require_trainable(index)
    for part in some.names:
        if parts[part]:
            states = some.take(part)
            held = {index for index in range(splits.space.size) if index in states}
            assert held == parts[part]
            assert states[0] == splits.space.state(states[0].index)


def test_only_is_part_of_the_digest_unless_it_leaves_everything():
    base = Splits(SPACE)
    whole_factor = dataclasses.replace(base, only={"b": list("zwyx"), "a": range(6)})
    assert whole_factor.take("train").digest == base.take("train").digest
    assert indices(whole_factor.take("train")) == indices(base.take("train"))
    one = dataclasses.replace(base, only={"b": ["x", "w"]})
    two = dataclasses.replace(base, only={"b": ("w", "x")})
    other = dataclasses.replace(base, only={"b": ["w", "z"]})
    assert one.take("train").digest == two.take("train").digest
    assert indices(one.take("train")) == indices(two.take("train"))
    assert len({s.take("train", 5).digest for s in (base, one, other)}) == 3
    data = json.loads(json.dumps(one.describe()))
    assert data["only"] == {"b": ["x", "w"]}
    again = Splits(
        SPACE, data["seed"], data["validation"], data["test"], data["hold_out"], data["only"]
    )
    assert indices(again.take("test")) == indices(one.take("test"))
    assert pickle.loads(pickle.dumps(one)).take("test").digest == one.take("test").digest


def test_a_huge_factor_can_be_restricted_and_held_out_at_once():
    space = StateSpace((Factor("map", range(3)), Factor("seed", range(0, 10**30, 3))))
    splits = Splits(
        space,
        hold_out={"seed": range(6 * 10**12, 6 * 10**20, 6)},
        only={"seed": range(0, 10**29, 6), "map": [2]},
    )
    assert splits.part_size("extrapolation/seed") == 10**20 - 10**12
    for part in ("train", "test", "extrapolation/seed"):
        for k in (0, 1, splits.part_size(part) - 1):
            state = splits.take(part)[k]
            assert state["seed"] % 6 == 0
            assert state["seed"] < 10**29
            assert state["map"] == 2
            assert state == space.state(state.index)
            assert state.index in splits.take(part)
            assert splits.part_of(state.index) == part
    json.dumps(splits.describe())
    assert len(pickle.dumps(splits.take("train"))) < 5000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": {"b": []}}, "only.b lists no value"),
        ({"only": {"b": ["q"]}}, "no value 'q'"),
        ({"only": {"q": [1]}}, "unknown factor 'q'"),
        ({"only": {"b": ["w"]}, "hold_out": {"b": ["x"]}}, "no value 'x'"),
        ({"only": {"b": ["w"]}, "hold_out": {"b": ["w"]}}, "holds out 1 of 1"),
        ({"only": {"a": [1], "b": ["w"]}, "test": 6}, "only 5 ordinary states"),
    ],
)
def test_impossible_restrictions_are_refused(options, message):
    with pytest.raises(StateError if "unknown" not in message else UnknownNameError, match=message):
        Splits(SPACE, **options)
