"""Shards are copied to an address while they are recorded, and a dataset is read from there."""

import json
import threading
import uuid

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from store_fragments import Player, make_manifest
from test_round_trip import check_all

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig, make_config, resolved
from rollout.data import Dataset, DatasetWriter, doctor, uploading
from rollout.data.uploading import Uploader
from rollout.errors import ConfigError, DatasetError

pytestmark = pytest.mark.heavy


@pytest.fixture
def address():
    """An address that no other test uses, in the memory of this process."""
    return f"memory://bucket-{uuid.uuid4().hex}/data"


@pytest.fixture
def puts(monkeypatch):
    """The places that were written; while ``fail`` is set, nothing can be."""
    put_file = MemoryFileSystem.put_file

    class Puts(list):
        fail = threading.Event()

    made = Puts()

    def put(system, source, place, **options):
        if made.fail.is_set():
            raise ConnectionError("the store is down")
        made.append(str(place).rpartition("/")[2])
        return put_file(system, source, place, **options)

    monkeypatch.setattr(MemoryFileSystem, "put_file", put)
    monkeypatch.setattr(uploading, "_PAUSES_S", (0.01, 0.02))
    return made


def record(folder, address, player, fragments, length=13):
    """Records with an uploader; returns it and what is missing at the address."""
    with DatasetWriter(folder, make_manifest(), shard_bytes=1) as writer:
        uploader = Uploader(writer.layout, address)
        writer.rolled = uploader.wake
        for _ in range(fragments):
            writer.append(player.play(length))
    return uploader, uploader.finish()


def require_equal(folder, address):
    """Checks that the address has the files of a dataset, byte by byte, and no others."""
    system, base = fsspec.core.url_to_fs(address)
    there = {p.removeprefix(f"{base}/"): system.cat_file(p) for p in system.find(base)}
    here = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    here.pop("dataset.lock")
    assert there == here


def test_the_dataset_at_the_address_is_the_same_and_is_read(tmp_path, address, puts):
    player = Player(width=2)
    uploader, missing = record(tmp_path, address, player, 8)
    assert missing == ""
    assert uploader.describe() == {
        "address": address, "shards": 8, "missing": [], "failures": 0, "error": ""
    }  # fmt: skip
    require_equal(tmp_path, address)
    check_all(address, player)
    with Dataset(tmp_path) as one, Dataset(address) as other:
        assert one.table().equals(other.table())
        folder = other.layout.root
        assert folder.exists()
    assert not folder.exists()


def test_only_what_is_read_is_fetched_and_only_so_many_files_are_kept(
    tmp_path, address, monkeypatch
):
    player = Player(lost=False)
    record(tmp_path, address, player, 6)
    monkeypatch.setattr("rollout.data.remote._MOST_SHARDS", 2)
    with Dataset(address) as dataset:
        assert list((dataset.layout.root / "data").iterdir()) == []
        for ref in dataset.episodes():
            dataset.read(ref)
            assert len(list((dataset.layout.root / "data").iterdir())) <= 2
        assert dataset.table().num_rows == dataset.counts.steps


def test_a_store_that_fails_for_a_while_gets_everything(tmp_path, address, puts):
    player = Player()
    with DatasetWriter(tmp_path, make_manifest(), shard_bytes=1) as writer:
        uploader = Uploader(writer.layout, address)
        writer.rolled = uploader.wake
        puts.fail.set()
        for _ in range(4):
            writer.append(player.play(13))
    assert "the store is down" in uploader.finish()
    assert uploader.failures > 1
    assert uploader.missing
    assert doctor(tmp_path).clean  # nothing is lost here
    puts.fail.clear()
    _, missing = record(tmp_path, address, Player(first=1000), 2)  # the next session
    assert missing == ""
    require_equal(tmp_path, address)


def test_what_is_there_is_not_copied_again(tmp_path, address, puts):
    record(tmp_path, address, Player(), 3)
    before = len(puts)
    record(tmp_path, address, Player(first=1000), 1)
    assert sorted(puts[before:]) == sorted(
        [*["shard-000003.parquet"] * 2, "shard-000003.json", "dataset.json", "README.md"]
    )
    system, base = fsspec.core.url_to_fs(address)
    system.pipe_file(f"{base}/seals/shard-000001.json", b"another")
    before = len(puts)
    record(tmp_path, address, Player(first=2000), 1)
    assert puts[before:].count("shard-000001.parquet") == 2
    require_equal(tmp_path, address)


def test_nothing_of_others_is_overwritten(tmp_path, address):
    record(tmp_path / "one", address, Player(), 1)
    other = make_manifest(run="another")
    with DatasetWriter(tmp_path / "two", other) as writer:
        with pytest.raises(DatasetError, match="another run"):
            Uploader(writer.layout, address)
        fsspec.filesystem("memory").pipe_file(f"{address}2/x", b"mine")
        with pytest.raises(DatasetError, match="other files"):
            Uploader(writer.layout, f"{address}2")
        with pytest.raises(DatasetError, match="nonsense"):
            Uploader(writer.layout, "nonsense://x")


def test_damage_at_the_address_is_noticed_and_its_absence_said(tmp_path, address):
    record(tmp_path, address, Player(), 2)
    system, base = fsspec.core.url_to_fs(address)
    place = f"{base}/data/shard-000001.parquet"
    raw = bytearray(system.cat_file(place))
    raw[len(raw) // 3] ^= 1
    system.pipe_file(place, bytes(raw))
    with Dataset(address) as dataset, pytest.raises(DatasetError, match="does not match its seal"):
        dataset.table()
    with pytest.raises(DatasetError, match="holds no dataset"):
        Dataset(f"{address}-none")


def test_a_journal_becomes_a_shard_when_it_is_old(tmp_path):
    player = Player()
    with DatasetWriter(tmp_path / "old", make_manifest(), shard_s=0.0) as writer:
        for _ in range(3):
            writer.append(player.play(13))
    assert writer.layout.numbers("data") == [0, 1, 2]
    with DatasetWriter(tmp_path / "young", make_manifest(), shard_s=1e6) as writer:
        for _ in range(3):
            writer.append(player.play(13))
    assert writer.layout.numbers("data") == [0]


def test_a_damaged_shard_is_not_copied(tmp_path, address):
    with DatasetWriter(tmp_path, make_manifest(), shard_bytes=1) as writer:
        for _ in range(2):
            writer.append(Player().play(13))
    path = writer.layout.data(0)
    path.write_bytes(path.read_bytes()[:-9])
    uploader = Uploader(writer.layout, address)
    assert "doctor" in uploader.finish()
    assert uploader.missing == [0]


@pytest.mark.parametrize("place", ["s3://bucket/name", "gs://bucket/name", "memory://x"])
def test_only_these_keys_take_addresses_of_stores(place):
    keys = {"output": "run", "bridge": "fake", "policy": "random", "episodes": 1}
    config = make_config(CollectConfig, {**keys, "recording": {"upload": place}})
    assert config.recording.upload == place
    assert resolved(make_config(CollectConfig, {**keys, "output": place}))["output"] == place
    if not place.startswith("memory"):
        with pytest.raises(ConfigError, match="expected a path"):
            make_config(CollectConfig, {**keys, "task": place})


@pytest.fixture
def call(tmp_path, capsys, address):
    def run(*sets, resume=False):
        settings = {
            "output": tmp_path / "run",
            "bridge.name": "fake",
            "bridge.max_steps": 40,
            "policy": "random",
            "actors": 0,
            "episodes": 4,
            "recording.upload": address,
        }
        given = [f"{k}={v}" for k, v in settings.items()]
        more = ["--resume"] if resume else []
        status = main(collect, CollectConfig, "Plays.", [*more, "--set", *given, *sets])
        return status, capsys.readouterr().err

    return run


def test_a_run_says_what_is_missing_and_a_resumed_one_copies_it(call, tmp_path, address, puts):
    puts.fail.set()
    status, said = call()
    assert status == 3, said
    assert "--resume copies the rest" in said
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["results"]["episodes"] == 4
    assert summary["recording"]["upload"]["missing"] == [0]
    assert "the store is down" in summary["recording"]["upload"]["error"]
    puts.fail.clear()
    status, said = call(resume=True)
    assert status == 0, said
    assert "nothing is left to do" in said
    require_equal(tmp_path / "run/dataset", address)
    with Dataset(address) as dataset:
        assert len(dataset.finished().episodes) == 4


def test_an_address_that_cannot_be_used_is_refused_before_a_game_starts(call, tmp_path):
    for place, why in (("nonsense://x", "nonsense"), ("dask://x", "dask")):
        status, said = call(f"recording.upload={place}")
        assert status == 2
        assert why in said
    assert not (tmp_path / "run").exists()
