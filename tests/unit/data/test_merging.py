"""Datasets are put together by links; what does not fit is refused before anything is written."""

import shutil

import pytest
from gymnasium import spaces
from store_fragments import Player, make_spec
from test_round_trip import check_all, record

from rollout.cli import main
from rollout.collect import collect
from rollout.commands import dataset as script
from rollout.config import CollectConfig
from rollout.data import Dataset, Layout, doctor
from rollout.data.merging import merge
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy


def two(tmp_path):
    players = [Player(instance=number) for number in (1, 2)]
    for number, player in enumerate(players):
        record(tmp_path / f"d{number}", player, 5, shard_bytes=1)
    return players, [tmp_path / "d0", tmp_path / "d1"]


def test_a_merge_has_all_steps_and_copies_none(tmp_path, capsys):
    players, sources = two(tmp_path)
    before = {p: p.stat().st_mtime_ns for s in sources for p in s.rglob("*") if p.is_file()}
    assert script.main(["merge", *map(str, sources), "--out", str(tmp_path / "m")]) == 0
    shards = [p for s in sources for p in sorted((s / "data").iterdir())]
    linked = sorted((tmp_path / "m/data").iterdir())
    assert [p.stat().st_ino for p in linked] == [p.stat().st_ino for p in shards]
    assert f"{len(shards)} shards" in capsys.readouterr().out
    assert {p: p.stat().st_mtime_ns for p in before} == before
    for source in sources:
        shutil.rmtree(source)
    assert doctor(tmp_path / "m").clean
    both = Player(instance=1)
    both.ended = players[0].ended + players[1].ended
    check_all(tmp_path / "m", both)
    with Dataset(tmp_path / "m") as dataset:
        assert len(dataset.manifest.sessions) == 2


def test_what_does_not_fit_is_refused(tmp_path):
    _, sources = two(tmp_path)
    other = Player(make_spec({"position": spaces.Box(-1, 1, (2,))}), instance=3)
    record(tmp_path / "other", other, 2)
    shutil.copytree(sources[0], tmp_path / "copy")
    record(tmp_path / "open", Player(instance=4), 2, close=False)
    for added, said in (
        ("other", "does not fit .* column"),
        ("d0", "one twice"),
        ("copy", "same number .* 1000000, "),
        ("open", "being written|journals"),
    ):
        with pytest.raises(DatasetError, match=said):
            merge([sources[0], tmp_path / added], tmp_path / "m")
    with pytest.raises(DatasetError, match="overwrites nothing"):
        merge(sources, tmp_path / "copy")
    shard = Layout(sources[1]).data(0)
    shard.write_bytes(shard.read_bytes()[:-9])
    with pytest.raises(DatasetError, match="damaged or not sealed"):
        merge(sources, tmp_path / "m")
    assert not list(tmp_path.glob("*m*"))


def play(folder, *sets):
    settings = {
        "output": folder,
        "bridge.name": "fake",
        "policy": "random",
        "actors": 0,
        "episodes": 7,
        "bridge.max_steps": 20,
    }
    given = [f"{k}={v}" for k, v in settings.items()]
    return main(collect, CollectConfig, "Plays.", ["--set", *given, *sets])


def test_parts_of_a_run_are_merged_into_the_whole_run(tmp_path, capsys):
    assert play(tmp_path / "whole") == 0
    parts = [tmp_path / f"part{k}" for k in (1, 2, 3)]
    for number, folder in enumerate(parts, 1):
        assert play(folder, f"part={number}/3") == 0
    assert script.main(["merge", *map(str, parts), "--out", str(tmp_path / "m")]) == 0
    assert doctor(tmp_path / "m").clean
    linked = {p.stat().st_ino for p in (tmp_path / "m/data").iterdir()}
    assert linked == {p.stat().st_ino for each in parts for p in each.glob("dataset/data/*")}
    with Dataset(tmp_path / "m") as merged, Dataset(tmp_path / "whole") as whole:
        own, other = ({r.episode: r for r in d.episodes()} for d in (merged, whole))
        assert own.keys() == other.keys() == set(range(7))
        for number, ref in own.items():
            names = (
                "state",
                "seed",
                "state_set",
            )  # the random policy goes on from episode to episode
            assert all(getattr(ref, n) == getattr(other[number], n) for n in names)
    with Dataset(parts[1]) as dataset:
        assert dataset.finished().episodes == {1, 4}
    assert script.main(["merge", str(parts[0]), str(tmp_path / "whole"), "--out", "x"]) == 2
    assert "part=1/2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "said"),
    [("4/3", "1/3 to 3/3"), ("0/3", "part"), ("a", "part"), ("9/9", "at most 7 parts")],
)
def test_a_wrong_part_is_refused(tmp_path, capsys, part, said):
    assert play(tmp_path / "run", f"part={part}") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
