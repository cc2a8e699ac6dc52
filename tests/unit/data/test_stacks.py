"""Stacks of frames: each frame is stored once, and every stack is read as it was written."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from gymnasium import spaces
from store_fragments import (
    Player,
    check_episode,
    frames,
    make_manifest,
    make_spec,
    plain_fragment,
    stacked_spec,
)

from rollout.data import Dataset, DatasetWriter, Layout, Manifest, doctor
from rollout.errors import DatasetError, SpaceError

pytestmark = pytest.mark.heavy
SHOWN = ["observation/first", "observation/last", "observation/floats", "observation/health"]


def record(path, player, *, length=13, fragments=8, **options):
    with DatasetWriter(path, make_manifest(player.spec), fsync="never", **options) as writer:
        for _ in range(fragments):
            writer.append(player.play(length))


@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("shard_bytes", [1, 64 << 20])
@pytest.mark.parametrize("length", [1, 13])
def test_episodes_and_final_observations_are_those_recorded(tmp_path, width, shard_bytes, length):
    player = Player(stacked_spec(), width=width, longest=40, idle=0.2)
    record(tmp_path, player, length=length, shard_bytes=shard_bytes, fragments=52 // length)
    with Dataset(tmp_path) as dataset:
        refs = dataset.episodes(include_lost=True)
        assert sorted((r.episode, r.attempt) for r in refs) == sorted(player.ended)
        for ref in refs:
            check_episode(dataset, ref, player)
    assert doctor(tmp_path).findings == ()


@pytest.mark.parametrize("room", [1 << 30, 30_000, 1])
def test_windows_are_slices_of_their_episodes(tmp_path, monkeypatch, room):
    monkeypatch.setattr("rollout.data.shard._GROUP_BYTES", 16 * 600)  # groups end within stretches
    player = Player(stacked_spec(), width=2, longest=90, lost=False)
    record(tmp_path, player, length=64, shard_bytes=30_000)
    with Dataset(tmp_path, cache_bytes=room) as dataset:
        edges = [dataset._bounds(number) for number in dataset._numbers]
        assert max(map(len, edges)) > 3
        truth = {r.episode: player.truth(r.episode).columns for r in dataset.episodes()}
        for length in (1, 5):
            windows = dataset.windows(length, columns=SHOWN, seed=1)
            for window in itertools.islice(windows, 150):
                for name in SHOWN:
                    part = truth[window.ref.episode][name][window.start : window.start + length]
                    np.testing.assert_array_equal(window.columns[name], part)
                    assert window.columns[name].dtype == part.dtype
                    window.columns[name][:] = 0  # a copy: the next windows are not changed


def test_a_live_journal_is_read_too(tmp_path):
    player = Player(stacked_spec(), width=2, longest=40)
    with DatasetWriter(tmp_path, make_manifest(player.spec)) as writer:
        for _ in range(10):
            writer.append(player.play(7))
        with Dataset(tmp_path) as dataset:
            assert dataset.episodes()
            for ref in dataset.episodes(include_lost=True):
                check_episode(dataset, ref, player)


@pytest.mark.parametrize("codec", ["png", "webp"])
def test_frames_have_codecs_of_images(tmp_path, codec):
    spec = make_spec({"observation": frames(4, 12, 10)}, stacks={"observation": 0})
    player = Player(spec, width=2)
    with DatasetWriter(tmp_path, make_manifest(spec, codec=codec)) as writer:
        for _ in range(5):
            writer.append(player.play(13))
    with Dataset(tmp_path) as dataset:
        for ref in dataset.episodes(include_lost=True):
            check_episode(dataset, ref, player)
        window = next(dataset.windows(2, columns=["observation"], seed=0))
        truth = player.truth(window.ref.episode).columns["observation"]
        part = truth[window.start : window.start + 2]
        np.testing.assert_array_equal(window.columns["observation"], part)


def test_each_frame_is_stored_once(tmp_path):
    spec = make_spec({"observation": frames(4, 12, 10)}, stacks={"observation": 0})
    noise = np.random.default_rng(0).integers(0, 255, (67, 12, 10), np.uint8)
    fragment = plain_fragment(spec, 64)
    fragment.observations["observation"][:, 0] = np.lib.stride_tricks.sliding_window_view(
        noise, 4, axis=0
    ).transpose(0, 3, 1, 2)
    with DatasetWriter(tmp_path, make_manifest(spec)) as writer:
        writer.append(fragment)
    (shard,) = Layout(tmp_path).folders["data"].iterdir()
    table = pq.read_table(shard)
    assert table["observation"].to_pylist() == [frame.tobytes() for frame in noise[3:]]
    older = table["older_frames"].to_pylist()
    assert older == [noise[:3].tobytes()] + [None] * 63
    about = table.field("observation").metadata
    assert json.loads(about[b"shape"]) == [12, 10]
    assert json.loads(about[b"stack"]) == {"axis": 0, "frames": 4}


def test_small_vectors_stay_whole(tmp_path):
    leaf = spaces.Box(-1, 1, (4, 3), np.float32)
    manifest = make_manifest(make_spec({"observation": leaf}, stacks={"observation": 0}))
    assert manifest.stack_axes == {}
    assert json.loads(manifest.to_json())["format"] == 1


def test_a_dataset_of_whole_stacks_is_read_and_continued(tmp_path):
    """As versions recorded it that knew no stacks."""
    spec = stacked_spec()
    old = make_manifest(replace(spec, stacks={}))
    player = Player(spec, width=2, longest=30)
    for manifest in (old, make_manifest(spec)):
        with DatasetWriter(tmp_path, manifest) as writer:
            for _ in range(4):
                writer.append(player.play(13))
    with Dataset(tmp_path) as dataset:
        assert "older_frames/first" not in dataset.manifest.schema.names
        assert json.loads(dataset.manifest.to_json())["format"] == 1
        for ref in dataset.episodes(include_lost=True):
            check_episode(dataset, ref, player)


def test_missing_older_frames_are_an_error_not_another_picture(tmp_path):
    player = Player(stacked_spec(), longest=30)
    record(tmp_path, player)
    with Dataset(tmp_path) as dataset:
        stack = dataset.manifest.frame_stacks["observation/first"]
        table = dataset.table([stack.newest.name, stack.older.name])
        newest = np.zeros((6, 9, 10), np.uint8)
        nothing = table[stack.older.name].slice(1, 3)
        assert nothing.null_count == 3
        with pytest.raises(DatasetError, match="frames before a step are missing"):
            stack.join(newest[:3], [nothing], 0)


def test_the_manifest_says_what_is_a_stack():
    manifest = make_manifest(stacked_spec())
    data = json.loads(manifest.to_json())
    assert data["format"] == 2
    assert data["stack_axes"] == {"first": 0, "last": 2, "floats": 0}
    again = Manifest.from_json(manifest.to_json())
    assert again.stored == manifest.stored
    assert [c.shape for c in again.columns] == [c.shape for c in manifest.columns]


@pytest.mark.parametrize(("key", "axis"), [("rgb", 3), ("rgb", -1), ("health", 0), ("none", 0)])
def test_what_is_no_stack_is_refused(key, axis):
    with pytest.raises(SpaceError, match=f"'{key}' is no stack of frames along axis {axis}"):
        make_spec(stacks={key: axis})
