"""What a recording will take, and that a disk budget ends it with whole episodes."""

import json
import shutil
from types import SimpleNamespace

import pytest
from store_fragments import Player, make_manifest

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset, DatasetWriter, doctor, sizes
from rollout.data.sizes import SizeEstimate, dataset_bytes, in_units

pytestmark = pytest.mark.heavy


def of(folder, **options):
    options = {"episodes": 10, "env_steps": None, "limit_steps": 99, **options}
    return SizeEstimate.of(make_manifest(), folder, **options)


def test_an_estimate_follows_from_columns_and_bounds(tmp_path):
    size = of(tmp_path / "none")
    assert size.steps == 10 * 100  # a final observation counts as a step
    assert not size.measured
    assert size.bytes_per_step < size.raw_bytes_per_step == make_manifest().row_bytes
    assert size.expected_bytes == pytest.approx(1000 * size.bytes_per_step, rel=0.01)
    assert of(tmp_path, env_steps=50).steps == 60
    unknown = of(tmp_path, limit_steps=None)
    assert (unknown.steps, unknown.expected_bytes) == (None, None)
    assert "unknown length" in str(unknown)
    assert of(tmp_path, limit_steps=None, budget_bytes=5000).expected_bytes == 5000


def test_a_continued_recording_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "_MEASURED", 1)
    player = Player(lost=False)
    with DatasetWriter(tmp_path, make_manifest()) as writer:
        for _ in range(20):
            writer.append(player.play(16))
        assert writer.nbytes == dataset_bytes(writer.layout)
    assert writer.nbytes == dataset_bytes(writer.layout)
    with Dataset(tmp_path) as dataset:
        steps, ended = dataset.counts.steps, len(dataset.finished().episodes)
    size = of(tmp_path, episodes=ended + 3)
    assert size.measured
    assert size.steps == 3 * 100
    assert size.bytes_per_step == pytest.approx(writer.nbytes / steps, rel=0.01)


def test_sizes_have_units():
    assert [in_units(n) for n in (0, 999, 1000, 2_500_000, 10**9)] == [
        *("0 B", "999 B", "1 kB", "2.5 MB", "1 GB")
    ]


@pytest.fixture
def call(tmp_path, capsys):
    def run(*sets, resume=False):
        settings = {
            "output": tmp_path / "run",
            "bridge.name": "fake",
            "bridge.max_steps": 40,
            "policy": "random",
            "actors": 0,
            "episodes": 200,
            "fragment.steps": 16,
        }
        given = [f"{k}={v}" for k, v in settings.items()]
        more = ["--resume"] if resume else []
        status = main(collect, CollectConfig, "Plays.", [*more, "--set", *given, *sets])
        return status, capsys.readouterr().err

    return run


def test_what_does_not_fit_on_the_disk_is_refused_before_anything_is_written(
    call, tmp_path, monkeypatch
):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    status, said = call("env_steps=1_000_000")
    assert status == 2
    assert "no room for a recording of at most 1,000,200 steps" in said
    assert "1 kB are free" in said
    assert "recording.disk_budget_gb" in said
    assert not (tmp_path / "run").exists()


def test_a_disk_budget_ends_a_run_with_whole_episodes_and_is_raised(call, tmp_path):
    budget = 300_000  # a shard has 50 kB of footers
    status, said = call(f"recording.disk_budget_gb={budget / 1e9}")
    assert status == 3, said
    assert "a recording of unknown length: about 300 kB, 159 B a step (estimated" in said
    assert "the disk budget is used up" in said
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["status"] == "ended short"
    assert "disk budget" in summary["recording"]["ended"]
    assert summary["recording"]["estimate"]["bytes_per_step"] > 0
    with Dataset(tmp_path / "run") as dataset:
        before = dataset.finished().episodes
    assert 0 < len(before) < 200
    assert doctor(tmp_path / "run").clean
    assert (
        0.9 * budget < summary["recording"]["bytes"] < 1.3 * budget
    )  # a shard has 50 kB of footers
    status, said = call(f"recording.disk_budget_gb={50 * budget / 1e9}", resume=True)
    assert status == 0, said
    with Dataset(tmp_path / "run") as dataset:
        assert dataset.finished().episodes == frozenset(range(200))
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["recording"]["ended"] is None
