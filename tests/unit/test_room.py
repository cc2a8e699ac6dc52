"""A run ends in order before its disk is full, or at its budget."""

import json
import shutil
import threading
import time
from typing import NamedTuple

import pytest

from rollout import room
from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset, doctor
from rollout.room import Room
from rollout.signals import Stop


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(room, "_EVERY_S", 0.01)


def disk(monkeypatch, free, total=100_000_000_000):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(total, total - free, free))


def watched(folder, budget=None, seconds=5.0):
    """Watches until a stop is asked for; returns the reason, empty for none in this time."""
    stop, end = Stop(), time.monotonic() + seconds
    with Room(folder, budget, stop):
        while not stop.requested and time.monotonic() < end:
            threading.Event().wait(0.005)
    return stop.reason


def test_a_disk_that_fills_up_is_told_before_the_run_ends(tmp_path, monkeypatch, caplog):
    disk(monkeypatch, 2_000_000_000)
    assert watched(tmp_path, seconds=0.1) == ""
    assert not caplog.records
    disk(monkeypatch, 900_000_000)
    assert watched(tmp_path, seconds=0.1) == ""
    assert [r.message for r in caplog.records] == [
        f"900 MB are free on the disk of {tmp_path}; the run ends at 256 MB"
    ]
    disk(monkeypatch, 200_000_000)
    assert "200 MB are free" in watched(tmp_path)
    disk(monkeypatch, 2_000_000, total=3_000_000)  # a small disk has a small reserve
    assert watched(tmp_path, seconds=0.1) == ""


def test_a_budget_is_told_at_four_fifths(tmp_path, caplog):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(bytes(850))
    assert watched(tmp_path, 1100, seconds=0.1) == ""
    assert not caplog.records
    assert watched(tmp_path, 1000, seconds=0.1) == ""
    assert "takes 850 B of its 1 kB" in caplog.records[0].message
    assert "raise disk_budget_gb" in watched(tmp_path, 850)


def test_a_collection_saves_what_it_has_and_continues(tmp_path, capsys, monkeypatch):
    def call(*sets):
        given = [f"output={tmp_path / 'run'}", "bridge=fake", "policy=random", "actors=0"]
        return main(collect, CollectConfig, "Plays.", ["--resume", "--set", *given, *sets])

    monkeypatch.setattr(room, "_SHARE", 1.0)
    assert call("episodes=3000", "disk_budget_gb=0.0002") == 3
    said = capsys.readouterr().err
    assert "raise disk_budget_gb. Saved: " in said
    assert "--resume" in said
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["status"] == "ended short"
    kept = summary["results"]["episodes"]
    assert 0 < kept < 3000
    assert doctor(tmp_path / "run/dataset").clean
    assert call(f"episodes={kept + 3}", "disk_budget_gb=1") == 2  # a smaller number of episodes
    monkeypatch.setattr(room, "_SHARE", 0.01)
    with Dataset(tmp_path / "run/dataset") as dataset:
        assert len(dataset.finished().episodes) == kept
