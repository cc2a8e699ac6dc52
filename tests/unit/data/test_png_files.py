"""Images that a dataset stores as PNG are copied into exports as they are."""

import pyarrow.parquet as pq
import pytest
from formats_data import PLAIN, make

from rollout.data import Dataset
from rollout.data import codec as codecs
from rollout.data.formats.hugging_face import HuggingFace
from rollout.data.formats.lerobot import LeRobot
from rollout.data.formats.rlds import Rlds
from rollout.data.formats.tfrecord import checksum
from rollout.errors import DatasetError


def has_checksum():
    try:
        return bool(checksum())
    except DatasetError:
        return False


def parquet(root):
    tables = [pq.read_table(path) for path in sorted((root / "data").rglob("*.parquet"))]
    names = [
        n for n in tables[0].column_names if n.split(".")[-1].split("/")[-1] in ("rgb", "grey")
    ]
    assert len(names) == 2
    return [table[name].to_pylist() for table in tables for name in names]


def records(root):
    return [path.read_bytes() for path in sorted(root.glob("*.tfrecord*"))]


needs_checksum = pytest.mark.skipif(not has_checksum(), reason="needs the extra formats")


@pytest.mark.parametrize(
    ("exporter", "images", "encoded"),
    [
        (LeRobot(), parquet, 1),  # the observations after the last actions
        (HuggingFace(), parquet, 0),
        pytest.param(Rlds(), records, 1, marks=needs_checksum),
    ],
)
def test_files_are_copied(tmp_path, monkeypatch, exporter, images, encoded):
    found, counts, encode = [], [], codecs._encode_image
    for codec in ("raw", "png"):
        make(tmp_path / codec, PLAIN, codec=codec)
        calls = []

        def counted(*arguments, calls=calls):
            calls.append(arguments)
            return encode(*arguments)

        with Dataset(tmp_path / codec) as dataset, monkeypatch.context() as patch:
            patch.setattr(codecs, "_encode_image", counted)
            exporter.write(dataset, dataset.episodes(), tmp_path / f"{codec}-out")
            episodes = len(dataset.episodes())
        found.append(images(tmp_path / f"{codec}-out"))
        counts.append(len(calls))
    assert found[0] == found[1]
    assert counts[1] == 2 * episodes * encoded < counts[0]
