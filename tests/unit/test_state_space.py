"""State spaces: a number for every state, at any size."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.api import Factor, State, StateSpace, factor_from_data
from rollout.errors import StateError, UnknownNameError

VALUES = st.one_of(
    st.lists(st.text(max_size=5), min_size=1, max_size=6, unique=True),
    st.lists(st.integers(-9, 9), min_size=1, max_size=6, unique=True),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=6, unique=True),
    st.lists(
        st.sampled_from([True, False, 0, 1, "1"]), min_size=1, unique_by=lambda v: (type(v), v)
    ),
    st.builds(
        lambda start, count, step: range(start, start + count * step, step),
        st.integers(-100, 100),
        st.one_of(st.integers(1, 50), st.integers(1, 10**25)),
        st.sampled_from([1, 2, -1, -3, 7]),
    ),
)


@st.composite
def spaces(draw):
    names = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=5, unique=True))
    return StateSpace(tuple(Factor(name, draw(VALUES)) for name in names))


@given(space=spaces(), data=st.data())
@settings(max_examples=60)
def test_index_and_state_are_inverse(space, data):
    index = data.draw(st.integers(0, space.size - 1))
    state = space.state(index)
    assert state.index == index
    assert space.index(state.values) == index
    assert space.index(dict(reversed(state.values.items()))) == index  # by name, not by order
    assert list(state.values) == [factor.name for factor in space]
    digits = space.digits(index)
    assert space.index_of_digits(digits) == index
    assert [f.digit(state[f.name]) for f in space] == list(digits)


@given(space=spaces())
@settings(max_examples=40)
def test_the_size_is_the_product_and_the_ends_are_the_ends(space):
    assert space.size == math.prod(factor.size for factor in space)
    assert space.digits(0) == (0,) * len(space.factors)
    assert space.digits(space.size - 1) == tuple(factor.size - 1 for factor in space)
    for outside in (-1, space.size, -space.size):
        with pytest.raises(StateError, match="out of range"):
            space.state(outside)


@given(space=spaces())
@settings(max_examples=40)
def test_a_description_makes_the_same_space(space):
    data = json.loads(json.dumps(space.describe()))
    again = StateSpace(tuple(factor_from_data(each) for each in data))
    assert again == space
    assert again.digest == space.digest
    assert pickle.loads(pickle.dumps(space)).digest == space.digest


@given(space=spaces(), data=st.data())
@settings(max_examples=40)
def test_restricting_keeps_the_states_that_have_the_values(space, data):
    allowed = {}
    for factor in space.factors[: data.draw(st.integers(1, len(space.factors)))]:
        some = data.draw(st.sets(st.integers(0, factor.size - 1), min_size=1, max_size=4))
        allowed[factor.name] = [factor.values[digit] for digit in sorted(some)]
    part = space.restrict(allowed)
    expected = math.prod(len(allowed.get(f.name, ())) or f.size for f in space)
    assert part.size == expected
    index = data.draw(st.integers(0, part.size - 1))
    assert 0 <= space.index(part.state(index).values) < space.size


def test_small_spaces_list_every_state_once():
    space = StateSpace((Factor("a", range(4)), Factor("b", ("x", "y")), Factor("c", (1.5, 2.5))))
    states = [space.state(index) for index in range(space.size)]
    assert len({tuple(state.values.values()) for state in states}) == 16
    assert states[0] == State(0, {"a": 0, "b": "x", "c": 1.5})
    assert states[1] == State(1, {"a": 0, "b": "x", "c": 2.5})  # the last factor turns fastest
    assert states[4]["a"] == 1


def test_sizes_are_exact_beyond_every_machine_integer():
    space = StateSpace((Factor("seed", range(10**20)), Factor("map", range(10**20))))
    assert space.size == 10**40
    last = space.state(10**40 - 1)
    assert last.values == {"seed": 10**20 - 1, "map": 10**20 - 1}
    assert space.index(last.values) == 10**40 - 1
    assert space.restrict({"map": [3]}).size == 10**20
    assert space.restrict({"map": range(5, 10**19)}).size == 10**20 * (10**19 - 5)


def test_true_one_and_one_point_zero_are_three_values():
    factor = Factor("f", (True, 1, 1.0))
    assert [factor.digit(value) for value in (True, 1, 1.0)] == [0, 1, 2]
    with pytest.raises(StateError, match="no value False"):
        factor.digit(False)
    with pytest.raises(StateError, match="no value True"):
        Factor("r", range(3)).digit(True)


@pytest.mark.parametrize("value", ["d", None, 3, True, (1,)])
def test_unknown_values_are_refused_with_those_there_are(value):
    with pytest.raises(StateError, match="factor 'f' has no value"):
        Factor("f", ("a", "b", "c")).digit(value)


@pytest.mark.parametrize("value", [[1], {"a": 1}])
def test_values_that_cannot_be_values_are_refused_too(value):
    for factor in (Factor("f", ("a", "b")), Factor("r", range(3))):
        with pytest.raises(StateError, match="has no value"):
            factor.digit(value)


def test_messages_name_the_valid_values():
    with pytest.raises(StateError, match=r"Nearest: forest. Valid: desert, forest"):
        Factor("biome", ("forest", "desert")).digit("forrest")
    with pytest.raises(StateError, match="integers from 2 to 8 by 2"):
        Factor("n", range(2, 10, 2)).digit(3)
    space = StateSpace((Factor("biome", ("forest",)), Factor("n", range(3))))
    with pytest.raises(StateError, match=r"missing: \['n'\]"):
        space.index({"biome": "forest"})
    with pytest.raises(UnknownNameError, match="Nearest: biome"):
        space.index({"biom": "forest", "n": 1})
    with pytest.raises(UnknownNameError, match="Nearest: biome"):
        space.restrict({"biom": ["forest"]})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Factor("f", ()), "no values"),
        (lambda: Factor("f", range(0)), "no values"),
        (lambda: Factor("f", ("a", "a")), "twice"),
        (lambda: StateSpace(()), "at least one factor"),
        (lambda: StateSpace((Factor("f", (1,)), Factor("f", (2,)))), "twice"),
        (lambda: StateSpace((Factor("f", range(9)),)).restrict({"f": []}), "no values"),
        (lambda: StateSpace((Factor("f", range(9)),)).restrict({"f": range(10)}), "no value 9"),
        (
            lambda: StateSpace((Factor("f", range(0, 9, 2)),)).restrict({"f": range(9)}),
            "no value 1",
        ),
        (lambda: StateSpace((Factor("f", (1, 2)),)).restrict({"f": range(10**30)}), "has more"),
        (lambda: StateSpace((Factor("f", (1, 3)),)).restrict({"f": range(1, 3)}), "no value 2"),
    ],
)
def test_impossible_spaces_are_refused(build, message):
    with pytest.raises(StateError, match=message):
        build()


def test_equal_ranges_written_differently_are_one_space():
    one, two = (StateSpace((Factor("f", r),)) for r in (range(0, 5, 2), range(0, 6, 2)))
    assert one == two
    assert one.describe() == two.describe()
    assert one.digest == two.digest


def test_digests_tell_spaces_apart():
    variants = [
        (Factor("a", (0, 1)), Factor("b", (0, 1, 2))),
        (Factor("b", (0, 1, 2)), Factor("a", (0, 1))),
        (Factor("a", (1, 0)), Factor("b", (0, 1, 2))),
        (Factor("a", (0.0, 1.0)), Factor("b", (0, 1, 2))),
        (Factor("a", (False, True)), Factor("b", (0, 1, 2))),
        (Factor("a", ("0", "1")), Factor("b", (0, 1, 2))),
        (Factor("a", (0, 1)), Factor("c", (0, 1, 2))),
        (Factor("a", (0, 1)),),
    ]
    assert len({StateSpace(factors).digest for factors in variants}) == len(variants)


def test_words_about_a_factor_do_not_change_the_digest():
    plain, told = Factor("a", (0, 1)), Factor("a", (0, 1), "blocks", "how high")
    assert StateSpace((plain,)).digest == StateSpace((told,)).digest


def test_numpy_indices_are_indices():
    space = StateSpace((Factor("a", range(10)), Factor("b", range(10))))
    state = space.state(np.int64(42))
    assert state == space.state(42)
    assert type(state.index) is int


@given(data=st.data())
@settings(max_examples=50)
def test_digits_of_values_do_not_depend_on_how_they_are_written(data):
    start, count = data.draw(st.integers(-20, 20)), data.draw(st.integers(1, 30))
    step = data.draw(st.sampled_from([1, 2, 3, -1, -2]))
    factor = Factor("f", range(start, start + count * step, step))
    first = data.draw(st.integers(0, count - 1))
    every = data.draw(st.sampled_from([1, 2, 3, -1, -2]))
    some = factor.values[first::every]
    digits = factor.digits(some)
    assert list(digits) == sorted(factor.digit(value) for value in some)
    assert digits == factor.digits(list(some)) == factor.digits([*some, *some][::-1])
    assert factor.digits(tuple(some)[:1]) == range(first, first + 1)
    listed = Factor("f", tuple(factor.values))
    assert listed.digits(some) == digits


def test_errors_of_values_survive_pickling():
    with pytest.raises(StateError) as caught:
        Factor("f", ("a",)).digit("b")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
