"""Datasets of some episodes: links where whole shards qualify, the same bytes where not."""

import json
import shutil

import numpy as np
import pytest
from formats_data import make
from store_fragments import Player
from test_round_trip import record

from rollout.commands import dataset as script
from rollout.data import Dataset, doctor
from rollout.data.selecting import divide
from rollout.errors import DatasetError, UnknownNameError

pytestmark = pytest.mark.heavy


def files(root):
    return {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()}


def assert_holds(path, source, keys):
    """The dataset has exactly these episodes of the source, with the same values."""
    assert doctor(path).clean
    with Dataset(source) as a, Dataset(path) as b:
        refs = {(r.episode, r.attempt): r for r in b.episodes(include_lost=True)}
        assert refs.keys() == keys
        assert b.counts.unfinished == b.counts.damaged == 0
        assert b.manifest.schema.equals(a.manifest.schema)
        for ref in a.episodes(include_lost=True):
            if (ref.episode, ref.attempt) not in keys:
                continue
            same = refs[ref.episode, ref.attempt]
            for name in ("state", "length", "total_reward", "end", "reason", "seed"):
                assert getattr(same, name) == getattr(ref, name), name
            left, right = a.read(ref), b.read(same)
            for name, values in left.columns.items():
                np.testing.assert_array_equal(values, right.columns[name], name)
            for key, value in left.final_observations.items():
                np.testing.assert_array_equal(value, right.final_observations[key])


def keys_of(path, **more):
    with Dataset(path) as dataset:
        refs = dataset.episodes(include_lost=True, **more)
        return {(ref.episode, ref.attempt) for ref in refs}


@pytest.mark.parametrize("shard_bytes", [1, 1 << 20])
@pytest.mark.parametrize("condition", ["length > 3", "end == 'lost'", "end == 'terminated'"])
def test_a_filter_keeps_the_episodes_that_meet_it(tmp_path, capsys, condition, shard_bytes):
    record(tmp_path / "d", Player(instance=1), 9, shard_bytes=shard_bytes)
    before, keys = files(tmp_path / "d"), keys_of(tmp_path / "d", filter=condition)
    assert 0 < len(keys) < len(keys_of(tmp_path / "d"))
    command = ["filter", str(tmp_path / "d"), "--filter", condition, "--out", str(tmp_path / "n")]
    assert script.main(command) == 0
    assert f"{len(keys)} episodes" in capsys.readouterr().out
    assert files(tmp_path / "d") == before
    assert_holds(tmp_path / "n", tmp_path / "d", keys)
    assert script.main(command) == 2
    assert "overwrites nothing" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "d")
    assert doctor(tmp_path / "n").clean


def test_whole_shards_are_links_and_others_are_written_once(tmp_path, capsys):
    player = make(tmp_path / "d")
    with Dataset(tmp_path / "d") as dataset:
        assert dataset.counts.unfinished == 0 or player
    record(tmp_path / "e", Player(instance=1), 9, shard_bytes=1)
    with Dataset(tmp_path / "e") as dataset:
        shards = {n: set() for n in dataset.layout.numbers("data")}
        for ref in dataset.episodes(include_lost=True):
            for piece in ref.pieces:
                shards[piece.shard].add(ref.episode)
        inodes = {n: dataset.layout.data(n).stat().st_ino for n in shards}
    assert (
        script.main(
            [
                "filter",
                str(tmp_path / "e"),
                "--filter",
                "episode >= 0",
                "--out",
                str(tmp_path / "n"),
            ]
        )
        == 0
    )
    linked = {p.stat().st_ino for p in (tmp_path / "n/data").iterdir()} & set(inodes.values())
    assert f"{len(linked)} shards linked" in capsys.readouterr().out
    assert linked
    assert_holds(tmp_path / "n", tmp_path / "e", keys_of(tmp_path / "e"))


def test_a_split_by_state_shares_no_state(tmp_path, capsys):
    make(tmp_path / "d")
    command = ["split", str(tmp_path / "d"), "--shares", "train=0.5", "validation=0.5"]
    assert script.main([*command, "--out", str(tmp_path / "s")]) == 0
    capsys.readouterr()
    states, keys = [], set()
    for name in ("train", "validation"):
        found = keys_of(tmp_path / "s" / name)
        assert_holds(tmp_path / "s" / name, tmp_path / "d", found)
        with Dataset(tmp_path / "s" / name) as dataset:
            states.append({ref.state for ref in dataset.episodes(include_lost=True)})
        assert not keys & found
        keys |= found
    assert not states[0] & states[1]
    assert abs(len(states[0]) - len(states[1])) <= 1
    assert keys == keys_of(tmp_path / "d")


def test_a_split_by_the_recorded_split(tmp_path):
    make(tmp_path / "d")
    assert (
        script.main(["split", str(tmp_path / "d"), "--by", "split", "--out", str(tmp_path / "s")])
        == 0
    )
    for path in (tmp_path / "s").iterdir():
        assert keys_of(path) == keys_of(tmp_path / "d", part=path.name)
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"train", "test"}


def test_shares_are_exact_and_depend_on_the_seed_and_the_values_alone(tmp_path):
    make(tmp_path / "d")
    with Dataset(tmp_path / "d") as dataset:
        (ref, *_) = dataset.episodes()
    from dataclasses import replace

    refs = [replace(ref, episode=n, state=n % 10) for n in range(40)]
    shares = {"a": 0.34, "b": 0.33, "c": 0.33}
    parts = divide(refs, "state", shares, seed=1)
    assert [len({r.state for r in each}) for each in parts.values()] == [4, 3, 3]
    again = divide(refs[::-1], "state", shares, seed=1)
    assert {n: {r.state for r in p} for n, p in parts.items()} == {
        n: {r.state for r in p} for n, p in again.items()
    }
    assert divide(refs, "state", shares, seed=2) != parts


@pytest.mark.parametrize(
    ("by", "shares", "error", "said"),
    [
        ("stat", {}, UnknownNameError, "state"),
        ("state", {"a": 0.9}, DatasetError, "sum to 1, got 0.9"),
        ("state", {"a": 1.5, "b": -0.5}, DatasetError, "between 0 and 1"),
        ("state", {"../a": 0.5, "b": 0.5}, DatasetError, "names of letters"),
        ("state", {"a": 0.999, "b": 0.001}, DatasetError, "b would get none"),
    ],
)
def test_shares_that_cannot_be_are_refused(tmp_path, by, shares, error, said):
    make(tmp_path / "d")
    with Dataset(tmp_path / "d") as dataset, pytest.raises(error, match=said):
        divide(dataset.episodes(), by, shares)


def test_nothing_is_made_of_nothing_or_of_an_open_dataset(tmp_path, capsys):
    make(tmp_path / "d")
    out = ["--out", str(tmp_path / "n")]
    for more, said in (
        (["filter", str(tmp_path / "d"), "--filter", "return > 1e9", *out], "at least one episode"),
        (["filter", str(tmp_path / "d"), "--filter", "retrun > 1", *out], "return"),
        (["filter", str(tmp_path / "d"), "--filter", "length > 0", "--out", str(tmp_path / "d/x")],
         "apart from"),
        (["split", str(tmp_path / "d"), "--shares", "a=0.5", "b=0.6", *out], "sum to 1"),
    ):  # fmt: skip
        assert script.main(more) == 2
        assert said in capsys.readouterr().err
    record(tmp_path / "open", Player(instance=4), 2, close=False)
    assert script.main(["filter", str(tmp_path / "open"), "--filter", "length > 0", *out]) == 2
    assert "journals" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"d", "open"}


def test_statistics_are_those_of_the_data(tmp_path, capsys):
    make(tmp_path / "d")
    assert script.main(["stats", str(tmp_path / "d"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    with Dataset(tmp_path / "d") as dataset:
        refs = dataset.episodes()
        read = [dataset.read(ref).columns for ref in refs]
    assert found["episodes"] == len(refs)
    assert sum(g["episodes"] for g in found["groups"]) == len(refs)
    shares = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
    for name, shape in (("reward", (-1, 1)), ("observation/position", (-1, 3)),
                        ("observation/rgb", (-1, 3)), ("observation/grey", (-1, 1))):  # fmt: skip
        rows = np.concatenate([columns[name] for columns in read]).reshape(shape).astype(float)
        got = found["columns"][name]
        for key, want in (("min", rows.min(0)), ("max", rows.max(0)), ("mean", rows.mean(0)),
                          ("std", rows.std(0))):  # fmt: skip
            np.testing.assert_allclose(
                got[key], want, rtol=1e-5, atol=1e-9, err_msg=f"{name} {key}"
            )
        for key, share in shares.items():
            np.testing.assert_allclose(got[key], np.quantile(rows, share, axis=0), rtol=1e-6)
    train = next(g for g in found["groups"] if g["split"] == "train")
    lengths = [ref.length for ref in refs if ref.state_set.startswith("train")]
    assert train["length"]["mean"] == pytest.approx(np.mean(lengths))
    assert train["success"] is None or 0 <= train["success"]["low"] <= train["success"]["point"]
    assert script.main(["stats", str(tmp_path / "d"), "--filter", "length > 3"]) == 0
    assert "| `observation/position` 0 |" in capsys.readouterr().out


def test_a_card_keeps_what_people_wrote(tmp_path, capsys):
    make(tmp_path / "d")
    card = tmp_path / "d/README.md"
    command = ["card", str(tmp_path / "d")]
    card.write_text(card.read_text() + "\nMy notes.\n")
    assert script.main(command) == 0
    first = card.read_text()
    assert "My notes." in first
    assert "| `reward` |" in first
    assert script.main(command) == 0
    assert card.read_text() == first
    card.write_text("Before.\n" + first + "After.\n")
    assert script.main(command) == 0
    assert card.read_text() == "Before.\n" + first + "After.\n"
    edited = card.read_text().replace("| `reward` |", "| `reward` (mine) |")
    card.write_text(edited)
    assert script.main(command) == 2
    assert "were edited" in capsys.readouterr().err
    assert card.read_text() == edited
    card.unlink()
    assert script.main(command) == 0
    assert "# hunt in fake" in card.read_text()
    assert doctor(tmp_path / "d").clean
