"""Fragments written, episodes read."""

import time

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fragments import (
    Player,
    check_episode,
    frames,
    make_manifest,
    make_spec,
    plain_fragment,
)

from rollout.api import Loss, Outcome
from rollout.data import Dataset, DatasetWriter, doctor, part_of_set
from rollout.data.layout import Layout
from rollout.errors import DatasetError, UnknownNameError

pytestmark = pytest.mark.heavy


def record(path, player, fragments, length=13, *, manifest=None, close=True, **options):
    manifest = manifest or make_manifest(player.spec, details=player.details)
    writer = DatasetWriter(path, manifest, **options)
    for _ in range(fragments):
        writer.append(player.play(length))
    if close:
        writer.close()
    return writer


def check_all(path, player, **options):
    with Dataset(path) as dataset:
        refs = dataset.episodes(include_lost=True)
        assert sorted((r.episode, r.attempt) for r in refs) == sorted(player.ended)
        for ref in refs:
            check_episode(dataset, ref, player, **options)
        return dataset.counts


@pytest.mark.parametrize("width", [1, 7])
@pytest.mark.parametrize("shard_bytes", [1, 200_000, 64 << 20])
def test_written_is_read(tmp_path, width, shard_bytes):
    player = Player(width=width, idle=0.2, details=True)
    record(tmp_path, player, 5, shard_bytes=shard_bytes)
    counts = check_all(tmp_path, player)
    assert counts.lost > 0
    assert doctor(tmp_path).findings == ()


def test_a_shard_number_is_used_once_however_slow_the_disk_is(tmp_path, monkeypatch):
    """The files of a shard move from folder to folder while another journal begins."""
    listed = Layout.numbers

    def slowly(layout, folder):
        time.sleep(0.1 if folder == "journal" else 0)
        return listed(layout, folder)

    monkeypatch.setattr(Layout, "numbers", slowly)
    player = Player(width=2)
    record(tmp_path, player, 6, shard_bytes=1, fsync="never")
    check_all(tmp_path, player)


@given(
    width=st.integers(1, 4),
    length=st.integers(1, 30),
    idle=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1000),
    shard_bytes=st.sampled_from([1, 60_000]),
    journal=st.sampled_from(["lz4", "none"]),
)
@settings(max_examples=8)
def test_any_fragments_are_read_back(
    tmp_path_factory, width, length, idle, seed, shard_bytes, journal
):
    path = tmp_path_factory.mktemp("any")
    player = Player(width=width, seed=seed, idle=idle)
    record(path, player, 4, length, shard_bytes=shard_bytes, journal=journal)
    check_all(path, player)
    assert doctor(path).clean


@pytest.mark.parametrize(
    ("codec", "slack"), [("raw", 0), ("png", 0), ("webp", 0), ("jpeg:95", 8.0)]
)
def test_image_codecs_end_to_end(tmp_path, codec, slack):
    # Noise of a small range: JPEG spends its error on the colour of noise.
    colour, grey = (spaces.Box(100, 130, shape, np.uint8) for shape in ((24, 32, 3), (24, 32)))
    spec = make_spec({"observation": colour, "grey": grey})
    player = Player(spec)
    record(tmp_path, player, 4, manifest=make_manifest(spec, codec=codec))
    tolerance = {"observation": slack, "observation/grey": slack}
    check_all(tmp_path, player, tolerance=tolerance)
    assert doctor(tmp_path).clean


def test_every_kind_of_leaf(tmp_path):
    spec = make_spec(
        {
            "a.b": spaces.Box(-1, 1, (3,), np.float64),
            "a": spaces.Box(-1, 1, (), np.float16),
            "big": spaces.Box(-9, 9, (65,), np.int32),
            "deep/er": spaces.MultiBinary([2, 3]),
            "flags": spaces.MultiBinary(5),
            "many": spaces.MultiDiscrete([[2, 3], [4, 5]]),
            "yes": spaces.Box(0, 1, (2, 2), np.bool_),
        },
        {"say": spaces.Text(8, min_length=0, charset="abé ☃"), "move": spaces.Box(-1, 1, (2,))},
    )
    player = Player(spec, width=3, idle=0.1)
    record(tmp_path, player, 5)
    check_all(tmp_path, player)
    assert doctor(tmp_path).clean


def test_wide_instance_with_idle_rows_and_ends_anywhere(tmp_path):
    player = Player(width=64, idle=0.3, longest=6)
    record(tmp_path, player, 2, 7, shard_bytes=300_000)
    counts = check_all(tmp_path, player)
    assert counts.terminated > 30
    table = pq.read_table(tmp_path / "data")
    key = table.column("episode").to_numpy()
    assert (np.count_nonzero(np.diff(key)) + 1) < len(key) / 2, "chunks of an episode lie together"


def test_a_long_episode_over_many_fragments_and_shards(tmp_path):
    player = Player(longest=1600)
    player._next = next(e for e in range(100) if player.plan(e, 0)[0] > 600)
    length = player.plan(player._next, 0)[0]
    record(tmp_path, player, length // 50 + 1, 50, shard_bytes=60_000)
    with Dataset(tmp_path) as dataset:
        ref = dataset.episodes(include_lost=True)[0]
        assert len(ref.pieces) == len({p.shard for p in ref.pieces}) >= 3
        check_episode(dataset, ref, player)
        streamed = list(dataset.stream(ref, ["step"], length=64))
        assert np.concatenate([w.columns["step"] for w in streamed]).tolist() == list(range(length))
    assert doctor(tmp_path).clean


def test_windows_are_slices_of_their_episodes(tmp_path):
    player = Player(width=3, longest=60)
    record(tmp_path, player, 30, 7, shard_bytes=40_000)
    dataset = Dataset(tmp_path)
    whole = {(r.episode, r.attempt): dataset.read(r).columns for r in dataset.episodes()}
    columns = ["observation/rgb", "reward", "step"]
    ordered = list(dataset.windows(9, columns=columns, stride=4))
    expected = [(r.episode, s) for r in dataset.episodes() for s in range(0, r.length - 8, 4)]
    assert [(w.ref.episode, w.start) for w in ordered] == expected
    drawn = dataset.windows(9, columns=columns, seed=3)
    random = [next(drawn) for _ in range(200)]
    for window in ordered + random:
        truth = whole[window.ref.episode, window.ref.attempt]
        assert list(window.columns) == columns
        for name in columns:
            part = truth[name][window.start : window.start + 9]
            np.testing.assert_array_equal(window.columns[name], part)
    again = dataset.windows(9, columns=columns, seed=3)
    assert [(w.ref.episode, w.start) for w in random] == [
        (w.ref.episode, w.start) for w in (next(again) for _ in range(200))
    ]
    assert len({(w.ref.episode, w.start) for w in random}) > 50
    with pytest.raises(DatasetError, match=r"none of the .* episodes has 900 steps"):
        next(dataset.windows(900, seed=1))
    with pytest.raises(UnknownNameError, match="reward"):
        next(dataset.windows(9, columns=["rewards"]))


def test_filters_counts_and_finished(tmp_path):
    player = Player(width=3)
    record(tmp_path, player, 20)
    dataset = Dataset(tmp_path)
    everything = dataset.episodes(include_lost=True)
    results = [r for r in everything if r.end != "lost"]
    assert dataset.episodes() == results
    assert dataset.episodes(end="lost") == [r for r in everything if r.end == "lost"]
    assert dataset.episodes(part="test") == [r for r in results if r.episode % 4 == 0]
    assert dataset.episodes(episode=results[3].episode) == [results[3]]
    assert dataset.episodes(task="other") == dataset.episodes(outcome=Outcome.SUCCESS) == []
    assert dataset.episodes(policy="random", outcome=0, task="hunt") == results
    done = dataset.finished()
    assert done.episodes == {r.episode for r in results}
    unfinished = {s[0].episode for s in player._now if s is not None}
    assert done.attempts.keys() == {r.episode for r in everything} | unfinished
    assert dataset.counts.unfinished == len(unfinished)
    assert dataset.counts.steps == 20 * 13 * 3 == dataset.table(["step"]).num_rows
    late = dataset.table(["episode", "observation/rgb"], pc.field("step") == 5)
    assert late.num_rows == pc.sum(pc.equal(dataset.table(["step"]).column(0), 5)).as_py()
    assert part_of_set("extrapolation/a-b-10-0123abcd") == "extrapolation/a-b"
    assert part_of_set("train-1000-ab12cd34") == "train"


def test_lost_attempts_without_a_step_are_counted(tmp_path):
    player = Player(lost=False)
    manifest = make_manifest(player.spec)
    with DatasetWriter(tmp_path, manifest) as writer:
        fragment = player.play(30)
        loss = Loss(player.start(500, 2), 0, 0, "reset", "it never came up", 0)
        fragment.losses = (loss,)
        # A fragment can hold a loss and nothing else.
        empty = player._empty(0)
        empty.losses = (Loss(player.start(501), 3, 1, "actor", "killed", 0),)
        # The second attempt's rows came before; the loss comes with a later fragment.
        running = player._now[0]
        assert running is not None
        late = player._empty(0)
        late.losses = (Loss(running[0], 0, 0, "step", "it hung", running[1]),)
        for each in (fragment, empty, late):
            writer.append(each)
        live = Dataset(tmp_path).episodes(end="lost")
    dataset = Dataset(tmp_path)
    lost = {r.episode: r for r in dataset.episodes(end="lost")}
    assert lost == {r.episode: r for r in live} or all(
        np.isnan(r.progress) for r in live if not r.length
    )
    assert (lost[500].attempt, lost[500].length, lost[500].phase) == (2, 0, "reset")
    assert lost[501].reason == "killed"
    assert lost[running[0].episode].length == running[1]
    assert dataset.read(lost[500], ["reward"]).columns["reward"].shape == (0,)
    assert dataset.read(lost[500]).final_observations == {}
    assert dataset.counts.unfinished == 0
    assert dataset.finished().attempts[500] == 2
    assert 500 not in dataset.finished().episodes
    assert doctor(tmp_path).clean


def test_times_and_identity(tmp_path):
    player = Player(instance=3)
    record(tmp_path, player, 4)
    dataset = Dataset(tmp_path)
    ref = dataset.episodes()[0]
    columns = dataset.read(ref).columns
    assert columns["wall_time"][0] == pytest.approx(1.7e9, abs=1e-6)
    assert ref.seconds == pytest.approx((ref.length - 1) * 0.25 + 0.125)
    assert ref.started.timestamp() == pytest.approx(columns["wall_time"][0] - 0.125)
    assert set(columns["instance"]) == {3}
    assert set(columns["state"]) == {str(ref.state)}
    assert set(columns["policy"]) == {"random"}
    assert ref.state > 2**64


def test_others_read_it_without_our_code(tmp_path):
    import datasets

    spec = make_spec(
        {"observation": frames(9, 7, 3), "map": frames(8, 8), "vector": spaces.Box(-1, 1, (3,))}
    )
    player = Player(spec, details=True)
    manifest = make_manifest(spec, codecs={"map": "png"}, details=True)
    record(tmp_path, player, 12, shard_bytes=60_000, manifest=manifest)
    truth = {e: player.truth(e) for e in {e for e, _ in player.ended}}

    def check(rows):
        assert len(rows) == 12 * 13
        for row in rows:
            if row["episode"] not in truth:
                continue
            expected = truth[row["episode"]].columns
            image = expected["observation"][row["step"]]
            assert np.array_equal(
                np.frombuffer(row["observation"], np.uint8).reshape(9, 7, 3), image
            )
            np.testing.assert_array_equal(
                np.array(row["observation/vector"], np.float32),
                expected["observation/vector"][row["step"]],
            )
            assert row["action"] == expected["action"][row["step"]]
            is_last = row["step"] == truth[row["episode"]].length - 1
            assert (row["final_observation"] is not None) == is_last

    check(pq.read_table(tmp_path / "data").to_pylist())
    check(pl.read_parquet(tmp_path / "data" / "*.parquet").to_dicts())
    files = [str(p) for p in sorted((tmp_path / "data").glob("*.parquet"))]
    loaded = datasets.load_dataset(
        "parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache")
    )
    check(list(loaded))
    pictures = loaded.cast_column("observation/map", datasets.Image())
    first = truth[pictures[0]["episode"]].columns["observation/map"][0]
    np.testing.assert_array_equal(np.asarray(pictures[0]["observation/map"]), first)
    index = pl.read_parquet(tmp_path / "episodes" / "*.parquet")
    assert sorted(index["episode"]) == sorted(e for e, _ in player.ended)
    schema = pq.read_schema(files[0])
    assert schema.field("observation").type == pa.binary(189)
    assert schema.field("observation").metadata[b"shape"] == b"[9, 7, 3]"


def test_row_groups_are_small_for_images_and_not_tiny_for_numbers(tmp_path):
    images = make_spec({"observation": frames(64, 64, 3)})
    with DatasetWriter(tmp_path / "a", make_manifest(images)) as writer:
        for k in range(10):
            writer.append(plain_fragment(images, 64, begin=64 * k))
        writer.append(plain_fragment(images, 1000, begin=640))
    sizes = _group_sizes(tmp_path / "a")
    assert all(64 <= n <= 256 for n in sizes[:-1])
    assert sum(sizes) == 1640
    numbers = make_spec({"observation": spaces.Discrete(3)})
    with DatasetWriter(tmp_path / "b", make_manifest(numbers)) as writer:
        for k in range(10):
            writer.append(plain_fragment(numbers, 64, 32, begin=64 * k))
    assert _group_sizes(tmp_path / "b")[0] > 4000
    about = pq.ParquetFile(tmp_path / "a" / "data" / "shard-000000.parquet").metadata.row_group(0)
    has = {
        about.column(i).path_in_schema: about.column(i).is_stats_set
        for i in range(about.num_columns)
    }
    assert has["reward"]
    assert not has["observation"]


def _group_sizes(path):
    about = pq.ParquetFile(path / "data" / "shard-000000.parquet").metadata
    return [about.row_group(i).num_rows for i in range(about.num_row_groups)]
