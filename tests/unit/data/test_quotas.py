"""Quotas: a recording has so many episodes of each kind, and the steps of others are dropped."""

import json

import pytest
from store_fragments import Player, check_episode, make_manifest

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset, DatasetWriter, doctor
from rollout.data.quotas import QuotaRecorder, Quotas, read_dropped
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy


def record(folder, player, wanted, fragments, length=13):
    """Records fragments; returns the quotas."""
    quotas = Quotas(wanted)
    with (
        DatasetWriter(folder / "d", make_manifest(), shard_bytes=20_000) as writer,
        QuotaRecorder(writer, quotas, folder / "dropped.jsonl") as recorder,
    ):
        for _ in range(fragments):
            recorder.append(player.play(length))
    return quotas


@pytest.mark.parametrize("width", [1, 5])
def test_what_quotas_need_is_recorded_and_the_rest_is_dropped(tmp_path, width):
    player = Player(width=width, seed=1)
    wanted = {"split == 'test'": 3, "end == 'truncated' and split == 'train'": 4}
    quotas = record(tmp_path, player, wanted, 30)
    assert quotas.unmet() == ""
    assert quotas.progress == (7, 7)
    assert doctor(tmp_path / "d").clean
    dropped = read_dropped(tmp_path / "dropped.jsonl")
    with Dataset(tmp_path / "d") as dataset:
        refs = dataset.episodes(include_lost=True)
        for ref in refs:
            check_episode(dataset, ref, player)
        results = dataset.episodes()
        assert sum(r.state_set.startswith("test") for r in results) == 3
        assert sum(r.end == "truncated" for r in results if "train" in r.state_set) == 4
        assert dataset.counts.unfinished == 0
        rows = dataset.table(["episode"]).num_rows
        assert rows == sum(r.length for r in refs)  # nothing else takes room
    both = [(r.episode, r.attempt) for r in (*refs, *dropped)]
    assert sorted(both) == sorted(player.ended)  # nothing that ended is missing, nothing twice
    for ref in dropped:
        assert (ref.length, ref.end) == (player.plan(ref.episode, ref.attempt))


def test_a_needed_episode_is_on_disk_when_append_returns(tmp_path):
    player = Player(lost=False)
    writer = DatasetWriter(tmp_path / "d", make_manifest())
    recorder = QuotaRecorder(writer, Quotas({"length > 0": 10**6}), tmp_path / "dropped.jsonl")
    for _ in range(8):
        recorder.append(player.play(11))
        with Dataset(tmp_path / "d") as dataset:
            assert len(dataset.episodes()) == len(player.ended)
    writer.close()


def test_steps_in_memory_are_bounded(tmp_path):
    player = Player(width=4, longest=400, lost=False, seed=3)
    quotas = Quotas({"length > 1e9": 1})  # nothing is needed
    with DatasetWriter(tmp_path / "d", make_manifest()) as writer:
        recorder = QuotaRecorder(writer, quotas, tmp_path / "dropped.jsonl", most_bytes=20_000)
        for _ in range(60):
            recorder.append(player.play(16))
            held = sum(b.nbytes for s in recorder._playing.values() for b in s.batches)
            assert held <= 20_000
        recorder.close()
    dropped = {r.episode for r in read_dropped(tmp_path / "dropped.jsonl")}
    with Dataset(tmp_path / "d") as dataset:
        long = dataset.episodes()
        assert long  # too long to wait for their end: recorded, and whole
        assert dropped
        assert not dropped & {r.episode for r in long}
        for ref in long:
            check_episode(dataset, ref, player)


@pytest.mark.parametrize(
    ("quota", "said"),
    [("succes", "success"), ("return >", "expected a condition"), ("return", "true or false")],
)
def test_a_condition_that_is_none_is_refused(quota, said):
    with pytest.raises(Exception, match=said):
        Quotas({quota: 1})


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "dropped.jsonl"
    path.write_text('{"episode": 3}\n')
    with pytest.raises(DatasetError, match="line 1"):
        read_dropped(path)


@pytest.fixture
def call(tmp_path, capsys):
    def run(*sets, resume=False):
        settings = {
            "output": tmp_path / "run",
            "bridge.name": "fake",
            "bridge.max_steps": 40,
            "policy": "random",
            "actors": 0,
            "fragment.steps": 16,
        }
        given = [f"{k}={v}" for k, v in settings.items()]
        more = ["--resume"] if resume else []
        status = main(collect, CollectConfig, "Plays.", [*more, "--set", *given, *sets])
        return status, capsys.readouterr().err

    return run


def summary(tmp_path):
    return json.loads((tmp_path / "run/summary.json").read_text())


def test_a_run_goes_on_until_its_quotas_are_met_and_counts_what_is_there(call, tmp_path):
    quotas = "quotas={length <= 30: 4}"
    status, said = call("episodes=3", quotas)
    assert status == 3, said
    assert "before every quota is met: there are" in said
    first = summary(tmp_path)
    assert first["status"] == "ended short"
    assert "quota" in first["recording"]["ended"]
    status, said = call("episodes=200", quotas, resume=True)
    assert status == 0, said
    now = summary(tmp_path)
    dropped = read_dropped(tmp_path / "run/dropped.jsonl")
    with Dataset(tmp_path / "run") as dataset:
        lengths = [ref.length for ref in dataset.episodes()]
        played = {ref.episode for ref in (*dataset.episodes(), *dropped)}
    assert len(lengths) == 4
    assert max(lengths) <= 30
    assert played == set(range(len(played)))  # the second session repeated nothing
    assert len(played) == len(lengths) + len(dropped) == now["results"]["episodes"]
    assert now["recording"]["quotas"] == {"length <= 30": 4}
    assert now["recording"]["dropped"] == len(dropped) > 0


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["quotas={success: 3}"], "quotas may never be met"),
        (["episodes=3", "quotas={success: 0}"], "quotas"),
        (["episodes=3", "quotas={sucess: 1}"], "Nearest: success"),
        (["episodes=3", "quotas={success: 1}", "recording.enabled=false"], "recorded episodes"),
    ],
)
def test_wrong_quotas_are_refused_before_anything_is_written(call, tmp_path, sets, said):
    status, err = call(*sets)
    assert status == 2
    assert said in err
    assert not (tmp_path / "run").exists()
