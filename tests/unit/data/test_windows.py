"""Random windows: row groups are decoded once in a while, memory is bounded, starts are uniform."""

import itertools
from collections import Counter

import numpy as np
import pytest
from store_fragments import Player, frames, make_manifest, make_spec, plain_fragment

from rollout.data import Dataset, DatasetWriter
from rollout.data.shard import ShardReader
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy

COLUMNS = ["observation", "step", "reward"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """2,560 steps of 64x64 grey frames: 20 episodes of 128 steps, two at a time."""
    path = tmp_path_factory.mktemp("windows")
    spec = make_spec({"observation": frames(64, 64)})
    with DatasetWriter(path, make_manifest(spec), shard_bytes=200_000) as writer:
        for k in range(20):
            fragment = plain_fragment(spec, 64, 2, begin=64 * k, seed=k)
            writer.append(ended(fragment, k))
    return path


def ended(fragment, number):
    """Half of the 128 steps of an episode of each slot, which ends with the second half."""
    episodes = [2 * (number // 2) + slot for slot in range(fragment.width)]
    fragment.starts = tuple(
        type(start)(start.state, start.seed, episode, 0, start.state_set)
        for start, episode in zip(fragment.starts, episodes, strict=True)
    )
    fragment.step[:] = (64 * (number % 2) + np.arange(64))[:, None]
    fragment.first[:] = fragment.step == 0
    if number % 2:
        fragment.truncated[-1] = True
        fragment.final_index = np.array([[63, slot] for slot in range(fragment.width)])
        fragment.final_observations = {
            key: values[-1].copy() for key, values in fragment.observations.items()
        }
    return fragment


@pytest.mark.parametrize("room", [1 << 30, 600_000, 1])
def test_windows_are_the_steps_of_their_episodes_whatever_fits_in_memory(recorded, room):
    with Dataset(recorded, cache_bytes=room) as dataset:
        truth = {ref.episode: dataset.read(ref, COLUMNS).columns for ref in dataset.episodes()}
        assert len(truth) == 20
        for window in itertools.islice(dataset.windows(20, columns=COLUMNS, seed=1), 400):
            for name in COLUMNS:
                part = truth[window.ref.episode][name][window.start : window.start + 20]
                np.testing.assert_array_equal(window.columns[name], part)
                window.columns[name][:] = 0  # a copy: the next windows are not changed


@pytest.fixture
def reads(monkeypatch):
    """Rows that were read from shards."""
    counted, read = Counter(), ShardReader.read

    def counting(self, columns, start, stop):
        counted["rows"] += stop - start
        return read(self, columns, start, stop)

    monkeypatch.setattr(ShardReader, "read", counting)
    return counted


def test_row_groups_that_fit_are_decoded_once(recorded, reads):
    with Dataset(recorded) as dataset:
        windows = dataset.windows(20, columns=COLUMNS, seed=1)
        assert len(list(itertools.islice(windows, 2000))) == 2000
    assert reads["rows"] <= 2560


def test_windows_beyond_the_bound_decode_less_than_they_show_and_hold_no_more(recorded, reads):
    room = 2560 * 4096 // 4
    with Dataset(recorded, cache_bytes=room) as dataset:
        windows = dataset.windows(20, columns=COLUMNS, seed=1)
        for _ in itertools.islice(windows, 3000):
            assert dataset._cache.nbytes <= room
    assert reads["rows"] < 3000 * 20  # 13 times as many without a cache


@pytest.mark.parametrize(("length", "stride"), [(1, 1), (20, 1), (20, 7), (64, 3)])
def test_every_start_is_equally_likely_beyond_the_bound(recorded, length, stride):
    with Dataset(recorded, cache_bytes=3000) as dataset:  # 750 of the 2,560 numbers of a column
        refs = dataset.episodes()
        valid = [(ref.episode, at) for ref in refs for at in range(0, 129 - length, stride)]
        windows = dataset.windows(length, columns=["step"], seed=5, stride=stride)
        drawn = Counter((w.ref.episode, w.start) for w in itertools.islice(windows, 4 * len(valid)))
    assert set(drawn) <= set(valid)
    counts = np.array([drawn[start] for start in valid])
    if length == 1:  # without repetition in a pass
        assert (counts == 4).all()
    assert counts.var() < 1.3 * 4  # that of independent draws is 4
    by_episode = counts.reshape(20, -1).sum(1)
    assert by_episode.min() > 0.7 * by_episode.mean()


def test_the_order_depends_on_the_seed_alone(recorded):
    def first(seed):
        with Dataset(recorded, cache_bytes=3000) as dataset:
            windows = dataset.windows(20, columns=["step"], seed=seed)
            return [(w.ref.episode, w.start) for w in itertools.islice(windows, 50)]

    assert first(1) == first(1) != first(2)


def test_a_bound_below_one_byte_is_refused(recorded):
    with pytest.raises(DatasetError, match="cache_bytes of at least 1, got 0"):
        Dataset(recorded, cache_bytes=0)


def test_windows_of_a_journal_are_cached_too(tmp_path):
    player = Player(width=2, longest=40)
    with DatasetWriter(tmp_path, make_manifest(player.spec)) as writer:
        for _ in range(20):
            writer.append(player.play(7))
        with Dataset(tmp_path) as dataset:
            truth = {
                (r.episode, r.attempt): dataset.read(r, ["step", "reward"])
                for r in dataset.episodes()
            }
            for window in itertools.islice(dataset.windows(5, columns=["reward"], seed=0), 300):
                own = truth[window.ref.episode, window.ref.attempt].columns["reward"]
                np.testing.assert_array_equal(window.columns["reward"], own[window.start :][:5])
