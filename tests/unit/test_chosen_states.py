import numpy as np
import pytest

from rollout.api import Factor, Splits, StateSpace
from rollout.api.subsets import choose
from rollout.errors import StateError, TestStateError

SPACE = StateSpace((Factor("a", range(10)), Factor("b", ("x", "y"))))
SPLITS = Splits(SPACE, test=0.5)


def test_it_holds_exactly_the_states_that_were_named():
    chosen = choose(SPLITS, [13, 0, 7])
    assert [state.index for state in chosen] == [13, 0, 7]
    assert chosen.size == 3
    assert 13 in chosen
    assert np.int64(7) in chosen
    assert 1 not in chosen
    assert chosen.draw(np.random.default_rng(0)).index in (13, 0, 7)
    with pytest.raises(StateError, match="states 0 to 2, got 3"):
        chosen[3]


def test_order_and_states_make_its_name():
    names = {choose(SPLITS, indices).name for indices in ([1, 2], [2, 1], [1, 3], [1, 2])}
    assert len(names) == 3
    assert all(name.startswith("chosen-2-") for name in names)
    assert choose(SPLITS, [4, 2]).describe()["indices"] == ["4", "2"]


def test_held_out_states_are_not_trained_on():
    train, test = SPLITS.take("train"), SPLITS.take("test")
    choose(SPLITS, [train[0].index, train[1].index]).require_trainable()
    with pytest.raises(TestStateError):
        choose(SPLITS, [train[0].index, test[0].index]).require_trainable()


@pytest.mark.parametrize("indices", [[], [1, 1], [20], [-1]])
def test_what_is_no_set_of_states(indices):
    with pytest.raises(StateError):
        choose(SPLITS, indices)
