"""List sets: MCU's own rule, E x S x O entries of three lists, on train states only."""

import json
import math
import pickle

import numpy as np
import pytest

from rollout.api import Factor, Splits, StateSpace
from rollout.api.subsets import LIST_NAMES, LIST_RUNS, take_lists
from rollout.config import build_plugin
from rollout.errors import StateError, UnknownNameError
from rollout.tasks import load_task

PAPER = StateSpace(
    (
        Factor("terrain", range(4096)),
        Factor("main_hand", range(257)),
        Factor("hand", ("main", "off", "given")),
        Factor("other", range(577)),
        Factor("x", range(21)),
        Factor("z", range(21)),
    )
)
LISTS = {"equipment": ["hand", "main_hand"], "sheep": ["x", "z"], "other": ["other"]}
SPLITS = Splits(PAPER, hold_out={"terrain": [5]}, only={"terrain": range(1000)})


def indices(states, count=None):
    return [states[k].index for k in range(count or states.size)]


@pytest.mark.parametrize(
    ("size", "lengths"),
    [
        (10_000, (100, 10, 10)),  # the "10k" run of the branch
        (1_000_000, (100, 100, 100)),  # its "1million" run
        (math.prod(LIST_RUNS[-1]), LIST_RUNS[-1]),  # the whole lists
        (100_000, (100, 32, 32)),
        (100, (12, 3, 3)),
        (1, (1, 1, 1)),
    ],
)
def test_the_lengths_are_those_of_the_branch_and_between_them(size, lengths):
    assert take_lists(SPLITS, size, LISTS).lengths == lengths


@pytest.mark.heavy
def test_a_set_holds_every_combination_of_first_entries_once_in_a_train_state():
    states = take_lists(SPLITS, 10_000, LISTS)
    rows = list(states)
    # E = 100 uses main-hand items only, S = 10 has every sheep in one column.
    assert {state["hand"] for state in rows} == {"main"}
    assert {state["x"] for state in rows} == {0}
    combinations = {(state["main_hand"], state["z"], state["other"]) for state in rows}
    assert combinations == {(e, s, o) for e in range(100) for s in range(10) for o in range(10)}
    assert {SPLITS.part_of(state.index) for state in rows} == {"train"}
    terrains = {state["terrain"] for state in rows}
    assert len(terrains) > 900  # what no list decides is random
    assert terrains <= set(range(1000)) - {5}
    assert not {state.index for state in SPLITS.take("test", 500)} & {s.index for s in rows}


@pytest.mark.parametrize("size", [100, 10_000, 100_000, 1_000_000, 10_000_000])
def test_the_hunt_has_sets_from_a_hundred_to_ten_million_states(size):
    bridge = build_plugin("bridges", "blockworld", {})
    task = load_task(bridge.spec, "blockworld", "hunt_sheep")
    lists = {
        "equipment": ["clutter", "off_hand", "armour", "main_hand"],
        "sheep": ["coat", "distance", "bearing"],
        "other": ["biome", "others"],
    }
    splits = Splits(task.state_space)
    states = take_lists(splits, size, lists)
    assert size <= math.prod(states.lengths) <= 1.1 * size
    some = [states[k] for k in (0, 1, size // 2, size - 1)]
    assert {splits.part_of(state.index) for state in some} == {"train"}
    assert all(state.index in states for state in some)
    assert states[size - 1].index not in take_lists(splits, size - 1, lists)


def test_membership_is_exact():
    states = take_lists(SPLITS, 90, LISTS)
    listed = set(indices(states))
    assert len(listed) == 90
    assert all(index in states for index in listed)
    assert not any(i in states for index in listed for i in (index - 1, index + 1) if i >= 0)
    assert not any(state.index in states for state in SPLITS.take("test", 200))
    assert -1 not in states
    assert np.int64(states[0].index) in states
    left_out = PAPER.index({**states[0].values, "terrain": 5})
    assert left_out not in states


def test_sets_with_all_of_their_combinations_are_nested():
    small = set(indices(take_lists(SPLITS, 10_000, LISTS), 500))
    large = take_lists(SPLITS, 1_000_000, LISTS)
    assert all(index in large for index in small)
    other = take_lists(SPLITS, 1_000_000, LISTS, order=1)
    assert sum(index in other for index in small) < 5


def test_a_set_is_a_value_that_its_digest_names():
    states = take_lists(SPLITS, 50, LISTS)
    again = pickle.loads(pickle.dumps(states))
    assert again == states
    assert indices(again) == indices(states)
    data = json.loads(json.dumps(states.describe()))
    assert (data["subset"], data["lists"]) == ("lists", LISTS)
    assert data["lengths"] == dict(zip(LIST_NAMES, map(str, states.lengths), strict=True))
    assert states.name == f"train-lists-50-{states.digest[:8]}"
    others = [
        SPLITS.take("train", 50),
        take_lists(SPLITS, 51, LISTS),
        take_lists(SPLITS, 50, LISTS, order=1),
        take_lists(SPLITS, 50, {**LISTS, "sheep": ["z", "x"]}),
        take_lists(Splits(PAPER, seed=1), 50, LISTS),
    ]
    assert len({states.digest, *(each.digest for each in others)}) == 6


def entries_of(states):
    """The entries of each list that the states of a set have."""
    rows = list(states)
    return [{tuple(state[name] for name in LISTS[each]) for state in rows} for each in LIST_NAMES]


def test_the_entries_of_shuffled_lists_are_others_for_each_order_and_nested():
    sets = [take_lists(SPLITS, 10_000, LISTS, order=order, shuffled=True) for order in (0, 1)]
    first, second = map(entries_of, sets)
    assert list(map(len, first)) == list(map(len, second)) == [100, 10, 10]
    assert first != second
    assert len({hand for hand, _ in first[0]}) == 3  # not only the main hand's
    few = take_lists(SPLITS, 100, LISTS, shuffled=True)
    assert all(a <= b for a, b in zip(entries_of(few), first, strict=True))
    listed = set(indices(sets[0]))
    assert len(listed) == 10_000
    assert all(index in sets[0] for index in list(listed)[:300])
    assert sum(index in sets[1] for index in listed) < 5
    assert sets[0].digest != take_lists(SPLITS, 10_000, LISTS).digest
    assert sets[0].describe()["shuffled"] is True


@pytest.mark.parametrize("shuffled", [False, True])
def test_one_list_alone_may_be_cut(shuffled):
    states = take_lists(SPLITS, 1000, LISTS, order=2, shuffled=shuffled, cut=["sheep"])
    equipment, sheep, other = entries_of(states)
    assert sheep == entries_of(take_lists(SPLITS, 1000, LISTS, order=2, shuffled=shuffled))[1]
    assert (len(sheep), len(equipment) > 400, len(other) > 400) == (6, True, True)
    listed = indices(states)
    assert {SPLITS.part_of(index) for index in listed} == {"train"}
    assert all(index in states for index in listed[:20])
    assert not any(index + 1 in states for index in listed[:20] if index + 1 not in listed)
    assert entries_of(states.of_part("test", 10**4))[1] == sheep
    assert states.describe()["cut"] == ["sheep"]
    digests = {take_lists(SPLITS, 1000, LISTS, order=2, cut=cut).digest for cut in CUTS}
    assert len(digests) == len(CUTS)


CUTS = (LIST_NAMES, ["sheep"], ["other"], ["sheep", "other"])


@pytest.mark.parametrize("shuffled", [False, True])
def test_states_of_another_part_have_the_same_entries(shuffled):
    states = take_lists(SPLITS, 100, LISTS, order=3, shuffled=shuffled)
    inside = states.of_part("test", 500)
    assert inside.size == math.prod(states.lengths)
    assert entries_of(inside) == entries_of(states.of_part("validation", 500))
    assert all(a >= b for a, b in zip(entries_of(inside), entries_of(states), strict=True))
    assert {SPLITS.part_of(index) for index in indices(inside)} == {"test"}
    assert all(index in inside for index in indices(inside))
    assert not any(index in states for index in indices(inside))
    assert inside.digest != states.digest


def test_a_part_that_is_too_small_for_every_combination_is_refused():
    states = take_lists(Splits(PAPER, test=1000), 100, LISTS)
    with pytest.raises(StateError, match=r"find a test state for each of 108 .* make test larger"):
        states.of_part("test", 512)


def test_the_frozen_set_is_still_the_same():
    """Results name sets by digest: a change here breaks every one of them."""
    states = take_lists(SPLITS, 50, LISTS)
    assert (states.digest, indices(states, 3)) == (
        "47ac230552aa8db8",
        [170878308239, 48066418827, 195599315585],
    )


@pytest.mark.parametrize(
    ("size", "change", "message"),
    [
        (0, {}, "a 'train' set of 0 states was asked for"),
        (10, {"sheep": []}, "every factor in one list at most"),
        (10, {"sheep": ["x", "other"]}, "every factor in one list at most"),
        (10_000_000, {"equipment": ["hand"]}, r"have 763371 combinations \(equipment 3, sheep 441"),
        (10, {"sheep": ["x", "z", "terrain"]}, "take factors out of state_set.lists"),
    ],
)
def test_what_lists_cannot_hold(size, change, message):
    with pytest.raises(StateError, match=message):
        take_lists(SPLITS, size, {**LISTS, **change})


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Nearest: main_hand"):
        take_lists(SPLITS, 5, {**LISTS, "equipment": ["main_hands"]})
    with pytest.raises(UnknownNameError, match="Nearest: other"):
        take_lists(SPLITS, 5, {**LISTS, "others": ["terrain"]})
