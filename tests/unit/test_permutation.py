"""The keyed permutation: a bijection at every size, uniform enough, and the same everywhere."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.api import Permutation
from rollout.errors import StateError

pytestmark = pytest.mark.heavy

KEYS = st.binary(max_size=64)


@given(size=st.integers(1, 2000), key=KEYS)
@settings(max_examples=25)
def test_every_small_size_is_a_bijection_with_its_inverse(size, key):
    permutation = Permutation(size, key)
    image = [permutation(k) for k in range(size)]
    assert sorted(image) == list(range(size))
    assert [permutation.position(element) for element in image] == list(range(size))


@given(
    size=st.one_of(
        st.integers(1, 10**40),
        st.sampled_from([2**n + d for n in (63, 64, 65, 127, 128, 129, 130) for d in (-1, 0, 1)]),
        st.sampled_from([10**20, 10**40, 10**200]),
    ),
    key=KEYS,
    share=st.floats(0, 1, exclude_max=True),
)
@settings(max_examples=80)
def test_huge_sizes_invert_and_stay_inside(size, key, share):
    permutation = Permutation(size, key)
    for position in {0, size - 1, int(share * size) % size, size // 3}:
        element = permutation(position)
        assert 0 <= element < size
        assert permutation.position(element) == position
        assert permutation(permutation.position(position)) == position


@pytest.mark.parametrize("size", [10, 1000, 10**20, 10**40, 10**80])
def test_the_key_changes_the_order(size):
    positions = range(min(size, 50))
    one, two = (Permutation(size, key) for key in (b"one", b"two"))
    assert [one(k) for k in positions] != [two(k) for k in positions]
    assert [one(k) for k in positions] == [Permutation(size, b"one")(k) for k in positions]


def test_it_travels():
    permutation = Permutation(10**30, b"key")
    again = pickle.loads(pickle.dumps(permutation))
    assert [again(k) for k in range(9)] == [permutation(k) for k in range(9)]


def test_numpy_positions_are_positions():
    for size in (1000, 10**18, 10**40):
        permutation = Permutation(size, b"key")
        assert permutation(np.int64(7)) == permutation(7)
        assert permutation.position(np.uint8(7)) == permutation.position(7)


@pytest.mark.parametrize("size", [5, 6, 12, 24])
def test_every_element_is_as_likely_at_every_position(size):
    keys = 1000
    counts = np.zeros((size, size))
    for k in range(keys):
        permutation = Permutation(size, b"%d" % k)
        counts[np.arange(size), [permutation(p) for p in range(size)]] += 1
    expected = keys / size
    chi2 = ((counts - expected) ** 2 / expected).sum()
    freedom = (size - 1) ** 2
    # The statistic has mean `freedom` and variance 2 `freedom`; six deviations never happen.
    assert abs(chi2 - freedom) < 6 * np.sqrt(2 * freedom)


def test_neighbours_are_scattered_in_a_huge_space():
    size = 10**40
    permutation = Permutation(size, b"key")
    shares = np.array([float(permutation(k)) / size for k in range(2000)])
    counts, _ = np.histogram(shares, bins=20, range=(0, 1))
    assert ((counts - 100) ** 2 / 100).sum() < 60  # 19 degrees of freedom
    assert abs(np.corrcoef(shares[:-1], shares[1:])[0, 1]) < 0.1


def test_a_size_of_one_is_the_identity():
    assert Permutation(1, b"")(0) == 0
    assert Permutation(1, b"").position(0) == 0


@pytest.mark.parametrize("size", [0, -1])
def test_no_elements_are_refused(size):
    with pytest.raises(StateError, match="at least one element"):
        Permutation(size, b"key")


@pytest.mark.parametrize("value", [-1, 10, 10**30])
def test_values_outside_are_refused(value):
    permutation = Permutation(10, b"key")
    with pytest.raises(StateError, match="expected 0 <= value < 10"):
        permutation(value)
    with pytest.raises(StateError, match="expected 0 <= value < 10"):
        permutation.position(value)


def test_another_process_gives_the_same_order():
    code = (
        "from rollout.api import Permutation\n"
        "print([Permutation(s, b'key')(k) for s in (7, 1000, 10**20, 10**40) for k in range(5)])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    here = [Permutation(s, b"key")(k) for s in (7, 1000, 10**20, 10**40) for k in range(5)]
    assert out.stdout.strip() == str(here)


def test_the_order_is_frozen():
    """Published state sets depend on these numbers: a change here makes them other sets."""
    assert [Permutation(10, b"gamut")(k) for k in range(10)] == [9, 8, 6, 3, 5, 1, 7, 2, 4, 0]
    assert [Permutation(10**20, b"gamut")(k) for k in range(2)] == [
        88934760187621704295,
        30093845036117005767,
    ]
