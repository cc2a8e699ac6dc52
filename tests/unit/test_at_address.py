"""Runs whose output is an address, in a store in the memory of this process."""

import json
import os
import shutil
import signal
import threading
import time
import uuid
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from rollout import at_address, run_directory
from rollout import claim as claims
from rollout.at_address import run_at
from rollout.claim import OBJECT, Claim
from rollout.cli import Session, main
from rollout.collect import collect
from rollout.config import CollectConfig, make_config, resolved
from rollout.data import Dataset, uploading
from rollout.data.uploading import Uploader, scan
from rollout.errors import InputError, RunDirectoryError
from rollout.files import store_address
from rollout.signals import Stop

pytestmark = pytest.mark.heavy


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """Short waits, and a cache of its own."""
    monkeypatch.setenv("GAMUT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(uploading, "_PAUSES_S", (0.01, 0.02))
    monkeypatch.setattr(uploading, "_EVERY_S", 0.02)
    monkeypatch.setattr(claims, "_SETTLE_S", 0.0)
    monkeypatch.setattr(claims, "BEAT_S", 0.05)
    monkeypatch.setattr(claims, "DEAD_S", 0.4)


@pytest.fixture
def address():
    return f"memory://bucket-{uuid.uuid4().hex}/runs/first"


@pytest.fixture
def call(tmp_path, capsys, address):
    def run(*sets, resume=False):
        settings = {
            "output": address,
            "bridge.name": "fake",
            "bridge.max_steps": 40,
            "policy": "random",
            "actors": 0,
            "episodes": 6,
            "wandb.mode": "disabled",
        }
        given = [f"{k}={v}" for k, v in settings.items()]
        more = ["--resume"] if resume else []
        status = main(collect, CollectConfig, "Plays.", [*more, "--set", *given, *sets])
        return status, capsys.readouterr().err

    return run


def files_at(address):
    system, base = fsspec.core.url_to_fs(address)
    return {p.removeprefix(f"{base}/"): system.cat_file(p) for p in system.find(base)}


def files_in(folder):
    found = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {path: data for path, data in found.items() if uploading.belongs(path)}


def require_episodes(address, count):
    with Dataset(address) as dataset:
        assert sorted(ref.episode for ref in dataset.episodes()) == list(range(count))


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def elsewhere(monkeypatch, tmp_path, name="other"):
    """From now on there is an empty cache, as on another machine."""
    monkeypatch.setenv("GAMUT_CACHE", str(tmp_path / name))


def test_the_address_has_the_files_of_the_run_and_names_itself(call, address):
    status, said = call()
    assert status == 0, said
    there = files_at(address)
    claim = json.loads(there.pop(OBJECT))
    assert claim["released"]
    assert there == files_in(run_directory.folder_of(address))
    assert f"output: {address}\n" in there["config.yaml"].decode()
    require_episodes(address, 6)
    status, said = call()
    assert status == 2
    assert "--resume" in said
    assert files_at(address).keys() == {*there, OBJECT}


def test_another_machine_continues_the_run_and_the_first_one_notices(
    call, address, monkeypatch, tmp_path
):
    first = run_directory.folder_of(address)
    assert call()[0] == 0
    elsewhere(monkeypatch, tmp_path)
    status, said = call("episodes=9", resume=True)
    assert status == 0, said
    require_episodes(address, 9)
    monkeypatch.setenv("GAMUT_CACHE", str(tmp_path / "cache"))
    assert run_directory.folder_of(address) == first
    status, said = call("episodes=12", resume=True)
    assert status == 0, said
    assert "another machine has continued the run" in said
    assert len(list(first.parent.glob("*.older"))) == 1  # set aside, not lost
    require_episodes(address, 12)
    about = json.loads(files_at(address)["run.json"])
    assert len(about["sessions"]) == 3


def test_the_same_machine_continues_in_its_folder(call, address, monkeypatch):
    assert call()[0] == 0
    monkeypatch.setattr("rollout.at_address._fetch", None)  # nothing is fetched
    assert call("episodes=8", resume=True)[0] == 0
    require_episodes(address, 8)


def test_a_run_whose_files_were_removed_from_the_cache_is_fetched(call, address):
    assert call()[0] == 0
    shutil.rmtree(run_directory.folder_of(address))
    assert call("episodes=8", resume=True)[0] == 0
    require_episodes(address, 8)


def test_a_store_that_fails_ends_the_run_with_three_and_loses_nothing(call, address, monkeypatch):
    put_file, fails = MemoryFileSystem.put_file, threading.Event()

    def put(system, *given, **options):
        if fails.is_set():
            raise ConnectionError("the store is down")
        return put_file(system, *given, **options)

    monkeypatch.setattr(MemoryFileSystem, "put_file", put)
    fails.set()
    status, said = call()
    assert status == 3, said
    folder = run_directory.folder_of(address)
    assert f"are not at {address}" in said
    assert str(folder) in said
    assert "--resume copies the rest" in said
    fails.clear()
    status, said = call(resume=True)
    assert status == 0, said
    require_episodes(address, 6)


def test_a_run_with_wrong_input_leaves_nothing(call, address):
    status, _ = call("bridge.fail_launches=-3")
    assert status == 2
    assert files_at(address) == {}
    status, said = call()
    assert status == 0, said


def test_a_run_that_is_refused_at_launch_is_taken_back(address):
    config = make_config(
        CollectConfig, {"output": address, "bridge": "fake", "policy": "random", "episodes": 1}
    )

    def job(config, session):
        folder = run_directory.folder_of(config.output)
        folder.mkdir()
        (folder / "run.json").write_text("{}")
        wait_until(lambda: "run.json" in files_at(address))
        shutil.rmtree(folder)
        raise InputError("the game is not installed")

    with Stop() as stop, pytest.raises(InputError, match="not installed"):
        run_at(job, config, Session(resume=False, stop=stop))
    assert files_at(address) == {}


def test_the_last_copies_are_made_after_a_signal_and_ended_by_another(address, monkeypatch):
    config = make_config(
        CollectConfig, {"output": address, "bridge": "fake", "policy": "random", "episodes": 1}
    )

    def job(config, session):
        folder = run_directory.folder_of(config.output)
        folder.mkdir(exist_ok=True)
        (folder / "run.json").write_text('{"run_id": "x"}')
        (folder / "summary.json").write_text("{}")
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(10)

    with Stop() as stop, pytest.raises(KeyboardInterrupt):
        run_at(job, config, Session(resume=False, stop=stop))
    assert files_at(address).keys() == {"run.json", "summary.json", OBJECT}
    put_file = MemoryFileSystem.put_file

    def put(system, source, place, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return put_file(system, source, place, **options)

    with Stop() as stop:
        output = at_address._Output(f"{address}2", run_directory.folder_of(f"{address}2"), stop)
        monkeypatch.setattr(at_address.Uploader, "_run", lambda _: None)
        output.begin(resume=False, wait_s=0.0)
        output._folder.mkdir()
        for name in ("run.json", "summary.json"):
            (output._folder / name).write_text("{}")
        monkeypatch.setattr(MemoryFileSystem, "put_file", put)
        with stop.held():
            assert "another signal ended the last copies" in output.finish()
            stop._raised = True  # as after a first signal
        output.close()
    assert files_at(f"{address}2").keys() == {"run.json", OBJECT}


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("s3://user:word@bucket/x", "a user or a password"),
        ("ftp://host/x", "ftp is not supported"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused(call, place, why):
    status, said = call(f"output={place}")
    assert status == 2
    assert why in said
    assert "word" not in said.replace("password", "")


@pytest.mark.parametrize("end", ["/..", "/../other"])
def test_an_address_is_no_way_out_of_the_cache(call, address, end):
    status, said = call(f"output={address}{end}")
    assert status == 2
    assert "without . and .." in said


def test_an_address_survives_being_a_path():
    for text in ("s3://bucket/a/b", "gs://bucket/a", "memory://x"):
        assert store_address(text) == store_address(Path(text)) == text
    for text in ("runs/s3", "file:///tmp/x", "s3://", "/s3:/x", "https://host/x"):
        assert store_address(text) == ""


def test_files_of_others_are_left_alone(call, address):
    system, base = fsspec.core.url_to_fs(address)
    system.pipe_file(f"{base}/notes.txt", b"mine")
    status, said = call()
    assert status == 2
    assert "notes.txt" in said
    assert files_at(address) == {"notes.txt": b"mine"}


def test_a_living_holder_is_named_and_a_dead_one_replaced(address):
    system, base = fsspec.core.url_to_fs(address)
    first, second = (Claim(system, base, address) for _ in range(2))
    first.take()
    with pytest.raises(RunDirectoryError, match="is working on the run"):
        second.take()
    first._ended.set()  # no beat any more, as after kill -9 on another machine
    first._thread.join()
    about = {**first.read(), "machine": "another"}
    system.pipe_file(f"{base}/{OBJECT}", json.dumps(about).encode())
    second.take()
    assert second.read()["token"] == second.token
    second.release()
    third = Claim(system, base, address)
    third.take()  # at once
    third.release()


def test_a_claim_that_is_taken_over_stops_the_copies(address, tmp_path):
    system, base = fsspec.core.url_to_fs(address)
    claim = Claim(system, base, address)
    claim.take()
    system.pipe_file(f"{base}/{OBJECT}", json.dumps({"token": "x", "pid": 1, "host": "h"}).encode())
    claim._thread.join(5)
    assert "process 1 on h works on the run" in claim.lost
    (tmp_path / "run.json").write_text("{}")
    uploader = Uploader(tmp_path, address, lost=lambda: claim.lost)
    assert "process 1 on h" in uploader.finish()
    assert files_at(address).keys() == {OBJECT}
    claim.release()
    assert claim.read()["token"] == "x"


def test_an_address_that_is_emptied_gets_everything_again(address, tmp_path):
    system, base = fsspec.core.url_to_fs(address)
    (tmp_path / "run.json").write_text("{}")
    claim = Claim(system, base, address)
    claim.take()
    uploader = Uploader(tmp_path, address)
    claim.gone = uploader.forget

    def there():
        return files_at(address).keys() == {"run.json", OBJECT}

    wait_until(there)
    system.rm(base, recursive=True)
    wait_until(there)  # the copies go on by themselves
    uploader.close()
    system.rm_file(f"{base}/run.json")
    assert uploader.finish() == ""  # and are compared with a listing at the end
    claim.release()
    assert there()


def test_nothing_is_there_before_what_it_refers_to(tmp_path, address, monkeypatch):
    order = []
    put_file = MemoryFileSystem.put_file

    def put(system, source, place, **options):
        order.append(str(place).partition("/first/")[2])
        return put_file(system, source, place, **options)

    monkeypatch.setattr(MemoryFileSystem, "put_file", put)
    for path in (
        *("summary.json", "view.html", "run.json", "metrics.jsonl", "lineage.jsonl"),
        *("checkpoints/00000002/weights.pt", "checkpoints/00000002/checkpoint.json"),
        *("checkpoints/00000003/weights.pt", "checkpoints/.00000004.1.tmp/checkpoint.json"),
        *("dataset/journal/shard-000003.arrows", "dataset/data/shard-000003.parquet", ".run.lock"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("whole\npart")
    assert Uploader(tmp_path, address).finish() == ""
    assert order == [
        *("run.json", "checkpoints/00000002/weights.pt", "metrics.jsonl"),
        *("checkpoints/00000002/checkpoint.json", "lineage.jsonl", "view.html", "summary.json"),
    ]
    assert files_at(address)["metrics.jsonl"] == b"whole\n"
    (tmp_path / "checkpoints/00000003/checkpoint.json").write_text("3")
    shutil.rmtree(tmp_path / "checkpoints/00000002")
    assert Uploader(tmp_path, address, there=files_at(address)).finish() == ""
    kept = [path for path in files_at(address) if path.startswith("checkpoints")]
    assert kept == ["checkpoints/00000003/checkpoint.json", "checkpoints/00000003/weights.pt"]
    run = tmp_path / "run.json"
    moved = run.rename(tmp_path / "moved")
    (tmp_path / "view.html").unlink()
    assert Uploader(tmp_path, address, there=files_at(address)).finish() == ""
    assert "view.html" in files_at(address)  # without its run.json the folder is no run
    moved.rename(run)
    assert Uploader(tmp_path, address, there=files_at(address)).finish() == ""
    assert not files_at(address).keys() & {"view.html", "moved"}
    assert not scan(tmp_path).groups.keys() - {"checkpoints/00000003/checkpoint.json"}


def test_half_a_shard_at_the_address_is_not_fetched_and_makes_room(
    call, address, monkeypatch, tmp_path
):
    assert call()[0] == 0
    system, base = fsspec.core.url_to_fs(address)
    system.pipe_file(f"{base}/dataset/seals/shard-000002.json", b"half")
    require_episodes(address, 6)  # readers do not find it
    system.pipe_file(f"{base}/dataset/data/shard-000001.parquet", b"half")
    elsewhere(monkeypatch, tmp_path)
    status, said = call("episodes=9", resume=True)
    assert status == 0, said
    require_episodes(address, 9)


def test_trainings_on_other_machines_need_a_shared_folder(monkeypatch):
    class Spread(CollectConfig):
        spreads = True

    keys = {"output": "s3://b/x", "bridge": "fake", "policy": "random", "episodes": 1}
    config = make_config(Spread, keys)
    assert resolved(config)["output"] == "s3://b/x"
    monkeypatch.setenv(run_directory.IN_RAY_JOB, "{}")
    with Stop() as stop, pytest.raises(RunDirectoryError, match="all of them share"):
        run_at(lambda *_: None, config, Session(resume=False, stop=stop))
