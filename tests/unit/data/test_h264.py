"""Columns of images as H.264: rows that follow one another are a video."""

import itertools
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_fragments import Player, check_episode, frames, make_manifest, make_spec

from rollout.data import Dataset, DatasetWriter, Layout, doctor, repair
from rollout.data.codec import Codec, decode, encode, parse_codec
from rollout.data.h264 import KEY_EVERY, decode_frames, encode_frames, is_key
from rollout.data.selecting import select
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy
SEEN = "observation/rgb"


def moving(count, *shape):
    """Pictures of a square that moves over noise."""
    images = np.empty((count, *shape), np.uint8)
    images[:] = np.random.default_rng(0).integers(0, 255, shape, np.uint8)
    for t, image in enumerate(images):
        image[t % 7 : t % 7 + 4, t % 11 : t % 11 + 4] = t % 255
    return images


def recorded(path, *, width=2, longest=150, length=100, fragments=4, crf=0, **options):
    spec = make_spec({"rgb": frames(16, 17, 3), "grey": frames(17, 16)})
    player = Player(spec, width=width, longest=longest, lost=False)
    with DatasetWriter(path, make_manifest(spec, codec=f"h264:{crf}"), **options) as writer:
        for _ in range(fragments):
            writer.append(player.play(length))
    return player


@pytest.mark.parametrize("shape", [(16, 16), (17, 19), (18, 17, 1), (64, 64, 3), (3, 5, 3)])
def test_images_come_back_without_loss(shape):
    images = moving(KEY_EVERY + 6, *shape) if min(shape[:2]) > 15 else moving(70, 20, 20, 3)
    images = np.ascontiguousarray(images[:, : shape[0], : shape[1]])
    begins = np.zeros(len(images), bool)
    begins[[5, 6]] = True
    data = encode_frames(images, 0, begins)
    keys = [row for row, each in enumerate(data) if is_key(each)]
    assert keys == [0, 5, 6, 6 + KEY_EVERY][: len(keys)]
    assert len(keys) >= 3
    np.testing.assert_array_equal(decode_frames(images.shape[1:], data), images)
    np.testing.assert_array_equal(decode_frames(images.shape[1:], data[5:]), images[5:])


def test_a_higher_factor_is_smaller_and_close():
    images = moving(40, 64, 64, 3) // 16 * 16
    sizes = []
    for crf in (15, 25, 40):
        data = encode_frames(images, crf)
        sizes.append(sum(map(len, data)))
        seen = decode_frames((64, 64, 3), data).astype(int)
        assert np.abs(seen - images).mean() < 60
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("shard_bytes", [1, 64 << 20])
def test_episodes_are_those_recorded(tmp_path, width, shard_bytes):
    player = recorded(tmp_path, width=width, shard_bytes=shard_bytes)
    with Dataset(tmp_path) as dataset:
        assert sorted((r.episode, r.attempt) for r in dataset.episodes()) == sorted(player.ended)
        for ref in dataset.episodes():
            check_episode(dataset, ref, player)
    assert doctor(tmp_path).findings == ()


@pytest.mark.parametrize("room", [1 << 30, 30_000])
def test_windows_begin_between_key_frames(tmp_path, monkeypatch, room):
    monkeypatch.setattr("rollout.data.shard.KEY_EVERY", 16)  # groups end within a video
    monkeypatch.setattr("rollout.data.shard._GROUP_BYTES", 16 * 900)
    player = recorded(tmp_path, longest=200, length=120, fragments=3)
    with Dataset(tmp_path, cache_bytes=room) as dataset:
        truth = {r.episode: player.truth(r.episode).columns[SEEN] for r in dataset.episodes()}
        for window in itertools.islice(dataset.windows(7, columns=[SEEN], seed=1), 100):
            part = truth[window.ref.episode][window.start : window.start + 7]
            np.testing.assert_array_equal(window.columns[SEEN], part)
    assert doctor(tmp_path).findings == ()


def test_journals_and_parts_of_datasets_are_read(tmp_path):
    spec = make_spec({"rgb": frames(16, 17, 3)})
    player = Player(spec, width=3, longest=90, lost=False)
    with DatasetWriter(tmp_path / "a", make_manifest(spec, codec="h264:0")) as writer:
        for _ in range(6):
            writer.append(player.play(50))
        with Dataset(tmp_path / "a") as dataset:
            for ref in dataset.episodes():
                check_episode(dataset, ref, player)
    with Dataset(tmp_path / "a") as dataset:
        select(dataset, {".": dataset.episodes()[::3]}, tmp_path / "b")
    with Dataset(tmp_path / "b") as dataset:
        assert dataset.episodes()
        for ref in dataset.episodes():
            check_episode(dataset, ref, player)


def test_a_damaged_frame_is_named_and_the_rest_is_kept(tmp_path):
    player = recorded(tmp_path / "d", width=1, longest=120, length=60, fragments=12)
    (shard,) = Layout(tmp_path / "d").folders["data"].iterdir()
    table = pq.read_table(shard)
    data = table[SEEN].to_pylist()
    row = next(r for r in range(100, len(data)) if not is_key(data[r]) and not is_key(data[r + 1]))
    data[row] = data[row][:5] + b"\xff" * (len(data[row]) - 5)
    after = next(r for r in range(row, len(data)) if is_key(data[r]))
    at = table.schema.get_field_index(SEEN)
    pq.write_table(table.set_column(at, table.schema.field(at), [pa.array(data)]), shard)
    shutil.rmtree(tmp_path / "d" / "seals")
    said = [f.what for f in doctor(tmp_path / "d").findings if SEEN in f.what]
    assert [text.split(":")[0] for text in said] == [f"row {r}" for r in range(row, after)]
    repair(tmp_path / "d")
    assert doctor(tmp_path / "d").findings == ()
    with Dataset(tmp_path / "d") as dataset:
        left = dataset.episodes()
        assert len(player.ended) - 2 <= len(left) < len(player.ended)
        for ref in left:
            check_episode(dataset, ref, player)


def test_frames_alone_or_of_another_size_are_errors():
    data = encode_frames(moving(5, 32, 32, 3), 0)
    with pytest.raises(DatasetError, match="frame 0"):
        decode_frames((32, 32, 3), data[1:])
    with pytest.raises(DatasetError, match="is an image"):
        decode_frames((32, 30, 3), data)
    with pytest.raises(DatasetError, match="expected gbrp"):
        decode_frames((32, 32, 3), encode_frames(moving(1, 32, 32), 0))
    with pytest.raises(DatasetError, match="frame 0"):
        decode_frames((32, 32, 3), encode_frames(moving(1, 640, 640, 3), 0))
    with pytest.raises(DatasetError, match="frame 1"):
        decode(Codec("h264"), "uint8", (32, 32, 3), pa.array([data[0], b""], pa.binary()))


def test_names_of_the_codec():
    assert str(parse_codec("h264")) == "h264:20"
    assert parse_codec("h264:20").is_lossy
    assert not parse_codec("h264:0").is_lossy
    assert encode(Codec("h264"), pa.binary(), np.zeros((0, 8, 8), np.uint8)).to_pylist() == []
    with pytest.raises(DatasetError, match="from 0, without loss, to 51"):
        parse_codec("h264:52")
    spec = make_spec({"rgb": frames(8, 8, 4)})
    with pytest.raises(DatasetError, match="cannot store"):
        make_manifest(spec, codecs={"rgb": "h264"})
