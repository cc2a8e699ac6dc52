"""Spaces: taken apart into columns and put together again without loss."""

import warnings

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollout.api import (
    allocate,
    check_columns,
    flatten_space,
    is_fixed,
    leaf_dtype,
    leaf_shape,
    sample,
)
from rollout.errors import SpaceError
from rollout.testing.compare import inside, same

SHAPES = st.lists(st.integers(1, 3), max_size=3).map(tuple)
FLOATS = st.sampled_from([np.float16, np.float32, np.float64])
INTEGERS = st.sampled_from(
    [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]
)


@st.composite
def float_boxes(draw):
    dtype = draw(FLOATS)
    shape = draw(SHAPES)
    width = np.finfo(dtype).bits
    edges = st.floats(-1000, 1000, width=width)
    low, high = sorted((draw(edges), draw(edges)))
    if low == high:
        high = low + 1
    low = draw(st.sampled_from([low, -np.inf]))
    high = draw(st.sampled_from([high, np.inf]))
    return spaces.Box(dtype(low), dtype(high), shape, dtype)


@st.composite
def integer_boxes(draw):
    dtype = draw(INTEGERS)
    info = np.iinfo(dtype)
    edges = st.one_of(
        st.integers(int(info.min), int(info.max)), st.sampled_from([int(info.min), int(info.max)])
    )
    low, high = sorted((draw(edges), draw(edges)))
    return spaces.Box(dtype(low), dtype(high), draw(SHAPES), dtype)


LEAVES = st.one_of(
    float_boxes(),
    integer_boxes(),
    st.builds(
        lambda n, start, dtype: spaces.Discrete(n, start=start, dtype=dtype),
        st.integers(1, 20),
        st.integers(-5, 5),
        st.sampled_from([np.int64, np.int32, np.int8]),
    ),
    st.builds(
        lambda nvec, dtype: spaces.MultiDiscrete(nvec, dtype=dtype),
        st.one_of(
            st.lists(st.integers(1, 9), min_size=1, max_size=4),
            st.just(np.array([[2, 3], [4, 5]])),
        ),
        st.sampled_from([np.int64, np.int32]),
    ),
    st.builds(
        lambda nvec, start: spaces.MultiDiscrete(nvec, start=start),
        st.just([2, 3]),
        st.lists(st.integers(-3, 3), min_size=2, max_size=2),
    ),
    st.builds(spaces.MultiBinary, st.one_of(st.integers(1, 5), st.just([2, 3]))),
)
NAMES = st.text("abcxyz_01", min_size=1, max_size=3)
NESTED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(spaces.Dict),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: spaces.Tuple(tuple(parts))),
    ),
    max_leaves=6,
)
PROPERTY = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(autouse=True)
def _quiet_gymnasium():
    with warnings.catch_warnings():
        # Gymnasium warns of its own precision when a bound is as large as the type holds.
        warnings.filterwarnings("ignore", message=".*precision lowered.*")
        yield


def equal(space, left, right):
    if isinstance(space, spaces.Dict):
        return all(equal(part, left[key], right[key]) for key, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return all(map(equal, space.spaces, left, right))
    return same(np.asarray(left), np.asarray(right))


@given(space=NESTED, seed=st.integers(0, 1000))
@PROPERTY
def test_any_nested_value_comes_back_from_its_columns(space, seed):
    flat = flatten_space(space)
    assert not flat.loose
    # Values of our own: Gymnasium's sample() leaves Box(126, 126, dtype=int8), among others.
    drawn = sample(flat.columns, 3, np.random.default_rng(seed))
    values = [flat.read(drawn, row) for row in range(3)]
    columns = allocate(flat.columns, 3)
    for row, value in enumerate(values):
        assert space.contains(value)
        flat.write(value, columns, row)
    check_columns(flat.columns, columns, (3,))
    assert all(same(drawn[key], columns[key]) for key in drawn)
    assert all(equal(space, value, flat.read(columns, row)) for row, value in enumerate(values))


@given(space=NESTED, seed=st.integers(0, 1000))
@PROPERTY
def test_what_was_read_does_not_change_with_the_buffer(space, seed):
    flat = flatten_space(space)
    columns = sample(flat.columns, 1, np.random.default_rng(seed))
    value, again = flat.read(columns, 0), flat.read(columns, 0)
    for column in columns.values():
        column[...] = 1
    assert equal(space, value, again)


def test_what_gymnasium_draws_comes_back():
    space = spaces.Dict(
        {
            "a": spaces.Tuple((spaces.Discrete(5), spaces.Box(-1, 1, (2, 2)))),
            "b": spaces.Dict({"c": spaces.MultiBinary(3), "d": spaces.MultiDiscrete([3, 4])}),
            "e": spaces.Box(0, 255, (4,), np.uint8),
        }
    )
    flat = flatten_space(space)
    columns = allocate(flat.columns, 1)
    for _ in range(20):
        value = space.sample()
        flat.write(value, columns, 0)
        assert equal(space, value, flat.read(columns, 0))


@given(space=NESTED, seed=st.integers(0, 1000))
@PROPERTY
def test_samples_lie_in_their_space(space, seed):
    flat = flatten_space(space)
    columns = sample(flat.columns, 7, np.random.default_rng(seed))
    check_columns(flat.columns, columns, (7,))
    for key, leaf in flat.columns.spaces.items():
        assert all(inside(leaf, value) for value in columns[key])
    assert all(space.contains(flat.read(columns, row)) for row in range(7))


@given(space=NESTED, seed=st.integers(0, 1000))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_samples_depend_on_the_generator_alone(space, seed):
    flat = flatten_space(space).columns
    one, two = (sample(flat, 5, np.random.default_rng(seed)) for _ in range(2))
    assert all(same(one[key], two[key]) for key in one)


def test_samples_reach_both_ends_and_are_even():
    rng = np.random.default_rng(0)
    flat = spaces.Dict(
        {
            "discrete": spaces.Discrete(4, start=-2),
            "byte": spaces.Box(250, 255, (), np.uint8),
            "many": spaces.MultiDiscrete([2, 3]),
            "bits": spaces.MultiBinary(2),
            "real": spaces.Box(-1.0, 3.0, (), np.float32),
        }
    )
    columns = sample(flat, 4000, rng)
    assert np.bincount(columns["discrete"] + 2, minlength=4).min() > 880
    assert np.bincount(columns["byte"] - 250, minlength=6).min() > 550
    assert np.bincount(columns["many"][:, 1], minlength=3).min() > 1200
    assert 0.45 < columns["bits"].mean() < 0.55
    assert abs(columns["real"].mean() - 1) < 0.1
    assert columns["real"].min() < -0.95
    assert columns["real"].max() > 2.95


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.uint8])
def test_integer_boxes_as_wide_as_their_type(dtype):
    info = np.iinfo(dtype)
    space = spaces.Dict({"x": spaces.Box(info.min, info.max, (3,), dtype)})
    column = sample(space, 2000, np.random.default_rng(0))["x"]
    assert column.dtype == dtype
    assert column.max() > info.max - (int(info.max) - int(info.min)) // 100
    assert column.min() < int(info.min) + (int(info.max) - int(info.min)) // 100


def test_boxes_of_booleans_are_even():
    space = spaces.Dict({"x": spaces.Box(np.array([0, 0, 1]), np.array([1, 0, 1]), dtype=np.bool_)})
    column = sample(space, 400, np.random.default_rng(0))["x"]
    assert column.dtype == np.bool_
    assert 0.4 < column[:, 0].mean() < 0.6
    assert not column[:, 1].any()
    assert column[:, 2].all()


def test_bounds_at_the_end_of_a_small_float_stay_finite():
    space = spaces.Dict({"x": spaces.Box(np.float16(65000), np.float16(np.inf), (50,), np.float16)})
    assert np.isfinite(sample(space, 9, np.random.default_rng(0))["x"]).all()


def test_float_boxes_as_wide_as_their_type():
    info = np.finfo(np.float64)
    space = spaces.Dict({"x": spaces.Box(info.min, info.max, (3,), np.float64)})
    column = sample(space, 100, np.random.default_rng(0))["x"]
    assert np.isfinite(column).all()
    assert (np.sign(column) == 1).any()
    assert (np.sign(column) == -1).any()


def test_text_actions_become_columns_of_strings_and_other_text_travels_loose():
    space = spaces.Dict(
        {"say": spaces.Text(5, min_length=2, charset="ab"), "move": spaces.Discrete(2)}
    )
    actions = flatten_space(space, "action", text_columns=True)
    assert not actions.loose
    columns = allocate(actions.columns, 2)
    assert columns["say"].tolist() == ["", ""]
    actions.write({"say": "abba", "move": 1}, columns, 1)
    assert actions.read(columns, 1) == {"say": "abba", "move": 1}
    drawn = sample(actions.columns, 50, np.random.default_rng(0))
    check_columns(actions.columns, drawn, (50,))
    assert all(space["say"].contains(word) for word in drawn["say"])
    assert {len(word) for word in drawn["say"]} == {2, 3, 4, 5}

    flat = flatten_space(space)
    assert list(flat.columns.spaces) == ["move"]
    assert list(flat.loose) == ["say"]
    assert flat.details({"say": "ab", "move": 0}) == {"say": "ab"}
    assert flat.read(allocate(flat.columns, 1), 0) == {"move": 0}


@pytest.mark.parametrize(
    "loose",
    [
        spaces.Text(5),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Discrete(2), None),
        spaces.OneOf((spaces.Discrete(2), spaces.Discrete(3))),
    ],
)
def test_what_has_no_fixed_shape_travels_in_details(loose):
    assert not is_fixed(loose)
    flat = flatten_space(spaces.Dict({"a": spaces.Dict({"b": loose}), "c": spaces.Discrete(2)}))
    assert list(flat.loose) == ["a/b"]
    assert list(flat.columns.spaces) == ["c"]
    if not isinstance(loose, spaces.Text):
        with pytest.raises(SpaceError, match="expected a space of fixed shape"):
            leaf_shape(loose)
        with pytest.raises(SpaceError, match="expected a space of fixed shape"):
            leaf_dtype(loose)
        with pytest.raises(SpaceError, match="expected a leaf space"):
            sample(spaces.Dict({"x": loose}), 1, np.random.default_rng(0))


def test_a_leaf_gets_its_role_as_key():
    assert list(flatten_space(spaces.Discrete(2)).columns.spaces) == ["observation"]
    assert list(flatten_space(spaces.Discrete(2), "action").columns.spaces) == ["action"]


def test_keys_are_joined_with_slashes():
    inner = spaces.Tuple((spaces.Discrete(2), spaces.Dict({"x": spaces.Discrete(3)})))
    flat = flatten_space(spaces.Dict({"a": inner, "b": spaces.Discrete(4)}))
    assert set(flat.columns.spaces) == {"a/0", "a/1/x", "b"}


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"a/b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}),
        spaces.Dict({"": spaces.Discrete(2)}),
        spaces.Dict({"a": spaces.Dict({"0": spaces.Discrete(2)}), "a/0": spaces.Text(3)}),
    ],
)
def test_keys_that_collide_or_are_empty_are_refused(space):
    with pytest.raises(SpaceError, match="is empty or names two parts"):
        flatten_space(space)


SMALL = spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "n": spaces.Discrete(3)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("n"), r"missing: \['n'\], unknown: \[\]"),
        (lambda c: c.update(extra=np.zeros(3)), r"missing: \[\], unknown: \['extra'\]"),
        (lambda c: c.update(n=np.zeros(3, np.int32)), r"'n': expected int64\[3\].*got int32\[3\]"),
        (lambda c: c.update(n=np.zeros((3, 1), np.int64)), r"got int64\[3, 1\]"),
        (lambda c: c.update(image=np.zeros((4, 2, 2), np.uint8)), r"expected uint8\[3, 2, 2\]"),
        (lambda c: c.update(n=[0, 1, 2]), None),  # a list becomes the right array
    ],
)
def test_columns_are_checked_against_their_space(change, message):
    columns = allocate(SMALL, 3)
    check_columns(SMALL, columns, (3,))
    change(columns)
    if message is None:
        check_columns(SMALL, columns, (3,))
        return
    with pytest.raises(SpaceError, match=message):
        check_columns(SMALL, columns, (3,))


def test_allocate_takes_any_leading_shape():
    columns = allocate(SMALL, 5, 3)
    check_columns(SMALL, columns, (5, 3))
    assert columns["image"].shape == (5, 3, 2, 2)
    assert not columns["image"].any()
