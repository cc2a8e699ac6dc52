"""Fragments: each way of breaking the layout is caught and named."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.api import Fragment
from rollout.errors import ContractError
from rollout.testing import FakeBridge, make_fragments

WHOLE = make_fragments(3, length=24, lost_after=(1,))
IDLE = make_fragments(2, length=24, episodes=5)


@pytest.fixture
def fragment():
    return copy.deepcopy(WHOLE[1])


@pytest.mark.parametrize("whole", [*WHOLE, *IDLE])
def test_a_whole_fragment_passes(whole):
    whole.check()
    assert whole.length == 24
    assert whole.width == 4
    assert whole.env_steps == whole.valid.sum()
    assert whole.done.sum() == len(whole.results) == len(whole.final_index)


def test_the_fixtures_have_every_kind_of_end():
    assert sum(f.terminated.sum() for f in WHOLE)
    assert sum(f.truncated.sum() for f in WHOLE)
    assert WHOLE[1].lost.sum() == len(WHOLE[1].losses) > 0
    assert (~IDLE[1].valid).any()


COLUMNS = ("step", "reward", "progress", "outcome", "tick", "first", "terminated", "lost")


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("axis", [0, 1])
def test_a_column_of_another_length_or_width(fragment, name, axis):
    setattr(fragment, name, np.delete(getattr(fragment, name), 0, axis))
    with pytest.raises(ContractError, match=f"{name}: expected"):
        fragment.check()


@pytest.mark.parametrize("group", ["observations", "actions", "extras", "signals"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_keyed_column_of_another_length_or_width(fragment, group, axis):
    columns = getattr(fragment, group)
    key = next(iter(columns))
    columns[key] = np.delete(columns[key], 0, axis)
    with pytest.raises(ContractError, match=f"{group}/{key}: expected"):
        fragment.check()


def an_end(fragment: Fragment) -> tuple[int, int]:
    """An end that is neither in the first nor in the last row."""
    t, slot = next((t, b) for t, b in fragment.final_index if 0 < t < fragment.length - 1)
    return int(t), int(slot)


def test_two_ends_in_one_row(fragment):
    at = an_end(fragment)
    fragment.terminated[at] = fragment.truncated[at] = True
    with pytest.raises(ContractError, match="more than one way"):
        fragment.check()


def test_an_end_that_final_index_does_not_list(fragment):
    fragment.final_index = fragment.final_index[1:]
    with pytest.raises(ContractError, match="final_index must list every end"):
        fragment.check()


def test_ends_that_final_index_lists_in_another_order(fragment):
    assert len(fragment.final_index) > 1
    fragment.final_index = fragment.final_index[::-1]
    with pytest.raises(ContractError, match="final_index must list every end"):
        fragment.check()


def test_an_end_that_was_forgotten(fragment):
    at = an_end(fragment)
    for name in ("terminated", "truncated", "lost"):
        getattr(fragment, name)[at] = False
    fragment.final_index = np.argwhere(fragment.done)
    with pytest.raises(ContractError, match="consecutive within a slot"):
        fragment.check()


def test_an_end_that_was_made_up(fragment):
    t, slot = an_end(fragment)
    fragment.terminated[t - 1, slot] = True
    fragment.final_index = np.argwhere(fragment.done)
    with pytest.raises(ContractError, match="must be the first of the next episode"):
        fragment.check()


def test_a_first_that_is_missing(fragment):
    t, slot = an_end(fragment)
    assert fragment.first[t + 1, slot]
    fragment.first[t + 1, slot] = False
    with pytest.raises(ContractError, match="first must mark"):
        fragment.check()


def test_a_first_in_the_middle(fragment):
    t, slot = np.argwhere(fragment.valid & ~fragment.first)[0]
    fragment.first[t, slot] = True
    with pytest.raises(ContractError, match="first must mark"):
        fragment.check()


def test_a_step_that_is_skipped(fragment):
    t, slot = np.argwhere(fragment.valid[1:-1] & ~fragment.first[1:-1])[0] + (1, 0)
    fragment.step[t, slot] += 1
    with pytest.raises(ContractError, match="consecutive"):
        fragment.check()


def test_an_episode_that_changes_its_start(fragment):
    inner = ~fragment.first[1:] & fragment.valid[1:]
    t, slot = np.argwhere(inner)[0] + (1, 0)
    fragment.start_index[t, slot] = (fragment.start_index[t, slot] + 1) % len(fragment.starts)
    with pytest.raises(ContractError, match="consecutive"):
        fragment.check()


@pytest.mark.parametrize("name", ["first", "terminated", "lost", "truncated"])
def test_an_idle_row_with_a_mask(name):
    fragment = copy.deepcopy(IDLE[1])
    t, slot = np.argwhere(~fragment.valid)[-1]
    getattr(fragment, name)[t, slot] = True
    with pytest.raises(ContractError, match="idle row carries a mask"):
        fragment.check()


@pytest.mark.heavy
@given(
    seed=st.integers(0, 500),
    width=st.integers(1, 5),
    length=st.integers(1, 30),
    episodes=st.one_of(st.none(), st.integers(1, 8)),
    lost=st.sets(st.integers(0, 3)),
)
@settings(max_examples=12)
def test_regardless_of_the_reference_player_plays_is_whole(seed, width, length, episodes, lost):
    fragments = make_fragments(
        4,
        length=length,
        width=width,
        seed=seed,
        episodes=episodes,
        lost_after=tuple(lost),
        bridge=FakeBridge(side=4, max_steps=7, with_details=seed % 2 == 0),
    )
    for fragment in fragments:
        fragment.check()
        assert len(fragment.results) == fragment.done.sum()
        results = {
            (result.start.episode, result.start.attempt): result for result in fragment.results
        }
        for t, slot in fragment.final_index:
            start = fragment.starts[fragment.start_index[t, slot]]
            result = results[start.episode, start.attempt]
            assert getattr(fragment, result.end)[t, slot]
            assert result.slot == slot
            assert result.length == fragment.step[t, slot] + 1
            assert result.start == start


def without_first_key(columns):
    columns.pop(next(iter(columns)))


BREAKS = {
    "start_index: expected numbers below": lambda f: setattr(f, "starts", f.starts[:1]),
    "final_observations/.*: expected": lambda f: f.final_observations.update(
        {k: v[1:] for k, v in f.final_observations.items()}
    ),
    "final_observations: expected the keys": lambda f: without_first_key(f.final_observations),
    "next_observations: expected the keys": lambda f: without_first_key(f.next_observations),
    "next_observations/.*: expected": lambda f: f.next_observations.update(
        {k: v[1:] for k, v in f.next_observations.items()}
    ),
    "version: expected": lambda f: setattr(f, "version", f.version[1:]),
    "wall_time: expected": lambda f: setattr(f, "wall_time", f.wall_time[1:]),
    "memory/.*: expected": lambda f: setattr(f, "memory", {"h": np.zeros((99, 2))}),
    "details: expected": lambda f: setattr(f, "details", [[None] * 4]),
    "truncated: expected bool": lambda f: setattr(f, "truncated", f.truncated.astype(np.int8)),
    "results must list every end": lambda f: setattr(f, "results", f.results[1:]),
    "losses must list": lambda f: setattr(f, "losses", ()),
}


@pytest.mark.parametrize("message", BREAKS)
def test_what_lies_beside_the_rows(fragment, message):
    fragment.check()
    BREAKS[message](fragment)
    with pytest.raises(ContractError, match=message):
        fragment.check()


def test_an_idle_row_within_an_episode(fragment):
    going_on = fragment.valid[1:-1] & ~fragment.done[1:-1] & ~fragment.first[1:-1]
    t, slot = np.argwhere(going_on & ~fragment.done[:-2])[0] + (1, 0)
    fragment.start_index[t, slot] = -1
    with pytest.raises(ContractError, match="idle within an episode"):
        fragment.check()
