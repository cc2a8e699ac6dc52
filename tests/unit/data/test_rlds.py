"""RLDS: TensorFlow Datasets opens an export, and sees the same bytes."""

import json
import struct

import numpy as np
import pytest
from formats_data import ACTIONS, PLAIN, make, python_with, run_with
from google.protobuf.internal import decoder
from gymnasium import spaces

from rollout.api import AnyText
from rollout.data import Dataset
from rollout.data.formats.rlds import Rlds
from rollout.data.formats.tfrecord import example, varints
from rollout.errors import DatasetError

crc32c = pytest.importorskip("google_crc32c", reason="needs the extra formats")
MIXED = PLAIN | {
    "stack": spaces.Box(0, 255, (4, 16, 16), np.uint8),
    "deep/exact": spaces.Box(-1, 1, (2,), np.float64),
    "flags": spaces.MultiBinary(5),
    "words": AnyText(100),
}


def exported(path, out, **options):
    with Dataset(path) as dataset:
        return Rlds(**options).write(dataset, dataset.episodes(include_lost=True), out)


def records(path):
    """The messages of a file, whose checksums must be right."""
    data = path.read_bytes()
    while data:
        (length,), (crc,) = struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        message, end = data[12 : 12 + length], data[12 + length : 16 + length]
        for part, given in ((data[:8], crc), (message, struct.unpack("<I", end)[0])):
            own = crc32c.value(part)
            assert given == ((own >> 15 | own << 17) + 0xA282EAD8) & 0xFFFFFFFF
        yield message
        data = data[16 + length :]


def test_files_and_splits_are_described(tmp_path):
    make(tmp_path / "d", MIXED, ACTIONS, details=True)
    count = exported(tmp_path / "d", tmp_path / "r", shard_mb=1)
    info = json.loads((tmp_path / "r/dataset_info.json").read_text())
    assert {split["name"] for split in info["splits"]} == {"train", "test"}
    found = 0
    for split in info["splits"]:
        files = sorted((tmp_path / "r").glob(f"{info['name']}-{split['name']}.tfrecord-*"))
        lengths = [len(list(records(path))) for path in files]
        assert [str(n) for n in lengths] == split["shardLengths"]
        assert sum(path.stat().st_size for path in files) == int(split["numBytes"])
        assert files[0].name.endswith(f"-00000-of-{len(files):05d}")
        found += sum(lengths)
    assert found == count
    features = json.loads((tmp_path / "r/features.json").read_text())["featuresDict"]["features"]
    steps = features["steps"]["sequence"]["feature"]["featuresDict"]["features"]
    assert {"observation", "action", "reward", "discount", "is_first", "is_last"} <= set(steps)


@pytest.mark.parametrize("numbers", [[0, 1, 127], [128], [-1, 300, 2**62, -(2**63)], []])
def test_varints_are_those_of_protocol_buffers(numbers):
    data, at, read = varints(np.array(numbers, np.int64)), 0, []
    while at < len(data):
        value, at = decoder._DecodeVarint(data, at)
        read.append(value - 2**64 if value >= 2**63 else value)
    assert read == numbers


def test_an_example_has_bytes_floats_and_whole_numbers():
    message = example({"a": [b"x", b""], "b": np.array([1.5], np.float32), "c": np.array([3, -1])})
    for part in (b"\n\x01x\n\x00", struct.pack("<f", 1.5), b"\x03" + b"\xff" * 9 + b"\x01"):
        assert part in message


def test_what_cannot_be_is_refused(tmp_path, monkeypatch):
    make(tmp_path / "d", {"a/b": spaces.Box(0, 1, (2,)), "a.b": spaces.Box(0, 1, (2,))})
    with pytest.raises(DatasetError, match=r"both be observation/a\.b"):
        exported(tmp_path / "d", tmp_path / "r")
    make(tmp_path / "e")
    monkeypatch.setattr("rollout.data.formats.rlds.MOST_BYTES", 1000)
    with pytest.raises(DatasetError, match=r"episode .* at most 1,000"):
        exported(tmp_path / "e", tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.long
def test_tensorflow_datasets_reads_an_export(tmp_path):
    python = python_with("tensorflow-cpu==2.20.0", "tensorflow-datasets==4.9.10")
    make(tmp_path / "d", MIXED, ACTIONS, details=True)
    exported(tmp_path / "d", tmp_path / "r")
    run_with(python, "tfds_reads.py", tmp_path / "r", tmp_path / "seen.npz")
    with Dataset(tmp_path / "d") as dataset, np.load(tmp_path / "seen.npz") as seen:
        for part in ("train", "test"):
            for number, ref in enumerate(dataset.episodes(part=part)):
                read, own = dataset.read(ref), f"{part}|{number}|"
                assert seen[own + "episode_metadata/state"] == str(ref.state)
                assert seen[own + "episode_metadata/end"] == ref.end
                assert seen[own + "episode_metadata/total_reward"] == ref.total_reward
                for key, last in read.final_observations.items():
                    values = read.columns[f"observation/{key}"]
                    got = seen[own + f"observation/{key.replace('/', '.')}"]
                    want = np.concatenate([values, np.array([last], values.dtype)])
                    np.testing.assert_array_equal(got.reshape(want.shape), want, key)
                for name in ("action/keys", "action/camera", "reward", "tick", "wall_time"):
                    got = seen[own + name][: ref.length]
                    np.testing.assert_array_equal(got, read.columns[name], name)
                    if read.columns[name].dtype.kind == "f":
                        assert got.dtype == read.columns[name].dtype
                terminated = ref.end == "terminated"
                ends = [seen[own + n].tolist() for n in ("is_last", "is_terminal")]
                assert ends == [[False] * ref.length + [flag] for flag in (True, terminated)]
                assert seen[own + "is_first"].tolist() == [True] + [False] * ref.length
                assert seen[own + "discount"][ref.length - 1] == (0.0 if terminated else 1.0)
                details = [json.loads(text or "null") for text in seen[own + "details"].tolist()]
                assert details == [*read.columns["details"], read.final_details]
