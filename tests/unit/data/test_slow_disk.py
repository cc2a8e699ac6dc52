"""On a slow disk collection slows down; memory and the number of waiting journals stay bounded."""

import json
import os
import time

import numpy as np
import pyarrow as pa
from gymnasium import spaces
from store_fragments import make_manifest, make_spec, plain_fragment

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset, DatasetWriter
from rollout.data import journal as journal_module
from rollout.data import roll as roll_module

_SPEC = make_spec({"rgb": spaces.Box(0, 255, (64, 64, 3), np.uint8)})
_STEPS = 32  # of a fragment, 393 kB


def test_memory_is_bounded_and_append_waits_for_slow_shards(tmp_path, monkeypatch):
    added = roll_module.ShardWriter.add

    def slowly(writer, batch):
        time.sleep(0.05)
        added(writer, batch)

    monkeypatch.setattr(roll_module.ShardWriter, "add", slowly)
    fragment = plain_fragment(_SPEC, _STEPS)
    before, most, journals, took = pa.total_allocated_bytes(), 0, 0, []
    with DatasetWriter(tmp_path, make_manifest(_SPEC), shard_bytes=1) as writer:
        for _ in range(24):
            began = time.monotonic()
            writer.append(fragment)
            took.append(time.monotonic() - began)
            most = max(most, pa.total_allocated_bytes() - before)
            journals = max(journals, len(writer.layout.numbers("journal")))
        figures = writer.figures()
    assert journals <= 3  # one that is being rolled, and two that wait
    assert most < 8 * fragment.observations["rgb"].nbytes < 24 * fragment.observations["rgb"].nbytes
    assert sum(took) > 0.05 * 20  # as slow as the shards
    assert figures["waits"] >= 15
    assert 0.05 * 15 < figures["wait_s"] < figures["write_s"] <= sum(took)
    with Dataset(tmp_path) as dataset:
        assert dataset.counts.steps == 24 * _STEPS


def test_a_collection_slows_down_and_says_so(tmp_path, monkeypatch):
    """Every write to a journal takes as long as on a disk of 1 MB/s, and writes half of it."""
    written = os.write

    def slowly(handle, data):
        part = memoryview(data).cast("B")[: max(1, len(data) // 2)]
        time.sleep(len(part) / 1e6)
        return written(handle, part)

    class Slow:
        write = staticmethod(slowly)

        def __getattr__(self, name):
            return getattr(os, name)

    monkeypatch.setattr(journal_module, "os", Slow())
    settings = {
        "output": tmp_path / "run",
        "bridge.name": "fake",
        "policy": "random",
        "actors": 0,
        "env_steps": 800,
    }
    given = [f"{k}={v}" for k, v in settings.items()]
    assert main(collect, CollectConfig, "", ["--set", *given]) == 0
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["recording"]["write_s"] > 0.1
    assert summary["recording"]["write_s"] <= summary["session"]["seconds"]
    text = (tmp_path / "run/metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[-1]["recording/write_s"] > 0.1
    assert lines[-1]["recording/bytes"] > 0
    with Dataset(tmp_path / "run") as dataset:
        assert dataset.counts.steps == summary["results"]["env_steps"] or dataset.counts.unfinished
