"""Damage is found, and all that is whole is kept."""

import json
import os
import random
import shutil
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from store_fragments import Player, check_episode, make_manifest, make_spec, plain_fragment
from test_round_trip import record

import rollout.data.shard as shard_module
from rollout.data import Dataset, DatasetWriter, Layout, doctor, repair
from rollout.errors import DatasetError, DatasetLockedError

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Three shards of several row groups, and the player who made them."""
    path = tmp_path_factory.mktemp("template") / "d"
    spec = make_spec()
    player = Player(spec, width=2, longest=20, details=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_module, "_GROUP_ROWS", (64, 64))
        record(path, player, 3, 130, shard_bytes=1)
    assert Layout(path).numbers("data") == [0, 1, 2]
    return path, player


@pytest.fixture
def made(template, tmp_path):
    path = tmp_path / "d"
    shutil.copytree(template[0], path)
    return path, template[1]


def mended(path, player, *, lost=()):
    """Repairs, and asserts what must hold of every repaired dataset."""
    before = {p.name: p.stat().st_size for p in path.rglob("*") if p.is_file()}
    result = repair(path)
    assert doctor(path).findings == ()
    again = repair(path)
    assert (again.moved, again.done, again.damaged) == ((), (), result.damaged)
    with Dataset(path) as dataset:
        refs = whole_refs(dataset, player)
        for ref in refs[::2]:  # half of them, to be quick
            check_episode(dataset, ref, player)
        assert result.steps == dataset.table(["step"]).num_rows
    kept = {r.episode for r in refs}
    assert kept >= {e for e, _ in player.ended} - set(lost)
    assert before
    return result, kept


def whole_refs(dataset, player):
    """Every episode but lost ones whose steps are gone: a loss is known without its steps."""
    refs = dataset.episodes(include_lost=True)
    short = [r for r in refs if r.length < player.truth(r.episode, r.attempt).length]
    assert all(r.end == "lost" for r in short)
    return [r for r in refs if r not in short]


def rows_of_episodes(path, number):
    table = pq.read_table(Layout(path).data(number), columns=["episode"])
    return table.column(0).to_numpy()


def test_a_clean_dataset_has_no_findings_and_is_left_alone(made):
    path, player = made
    files = {
        p: p.stat().st_mtime_ns for p in path.rglob("*") if p.is_file() and p.suffix != ".lock"
    }
    report = doctor(path)
    assert report.clean
    assert (report.shards, report.steps, report.episodes) == (3, 780, len(player.ended))
    result = repair(path)
    assert (result.moved, result.done) == ((), ())
    assert files == {p: p.stat().st_mtime_ns for p in files}


@pytest.mark.parametrize("share", [0.0, 0.4, 0.99])
def test_truncated_shards(made, share):
    path, player = made
    shard = Layout(path).data(1)
    episodes = rows_of_episodes(path, 1)
    size = shard.stat().st_size
    about = pq.ParquetFile(shard).metadata
    os.truncate(shard, int(size * share))
    report = doctor(path)
    assert any(f.severity == "error" and "shard-000001" in f.file for f in report.findings)
    with Dataset(path) as dataset:
        hurt = dataset.episodes(episode=int(episodes[-1]), include_lost=True)[0]
        with pytest.raises(DatasetError, match="cannot read shard"):
            dataset.read(hurt)
    # Row groups before the cut are whole, although a truncated Parquet file has no footer.
    row, hit = 0, set()
    for g in range(about.num_row_groups):
        group = about.row_group(g)
        columns = [group.column(c) for c in range(group.num_columns)]
        end = max(c.data_page_offset + c.total_compressed_size for c in columns)
        if end > size * share:
            hit |= set(episodes[row : row + group.num_rows].tolist())
        row += group.num_rows
    assert len(hit) < len(set(episodes.tolist())) or share < 0.3
    _, kept = mended(path, player, lost=hit)
    assert not kept & (hit - set(rows_of_episodes(path, 0)) - set(rows_of_episodes(path, 2)) - kept)
    assert any("shard-000001" in p.name for p in (path / "quarantine").iterdir())


def test_any_flipped_bit_is_found_and_costs_a_row_group_at_most(made):
    path, player = made
    pristine = path.with_name("pristine")
    shutil.copytree(path, pristine)
    rng = random.Random(1)
    shard = Layout(path).data(1)
    episodes = rows_of_episodes(path, 1)
    about = pq.ParquetFile(shard).metadata
    assert about.num_row_groups >= 3
    sizes = np.cumsum([0, *(about.row_group(g).num_rows for g in range(about.num_row_groups))])
    for _ in range(4):
        shutil.rmtree(path)
        shutil.copytree(pristine, path)
        data = bytearray(shard.read_bytes())
        where = rng.randrange(len(data))
        data[where] ^= 1 << rng.randrange(8)
        shard.write_bytes(data)
        report = doctor(path)
        assert any(f.severity == "error" and "shard-000001" in f.file for f in report.findings), (
            where
        )
        result = repair(path)
        assert doctor(path).findings == (), where
        with Dataset(path) as dataset:
            refs = whole_refs(dataset, player)
            for ref in refs:
                check_episode(dataset, ref, player)
        kept = {r.episode for r in refs}
        gone = {e for e, _ in player.ended} - kept
        groups = [set(episodes[a:b].tolist()) for a, b in pairwise(sizes)]
        assert not gone or any(gone <= group for group in groups), where
        assert len(result.damaged) <= 4


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("folder", ["episodes", "seals"])
def test_damaged_indexes_and_seals_are_made_again(made, folder, share):
    path, player = made
    victim = next(p for p in Layout(path).folders[folder].iterdir() if "000001" in p.name)
    data = bytearray(victim.read_bytes())
    data[int(len(data) * share)] ^= 4
    victim.write_bytes(data)
    assert not doctor(path).clean
    assert {r.episode for r in Dataset(path).episodes()}
    result, _ = mended(path, player)
    assert result.damaged == ()


@pytest.mark.parametrize("change", ["missing", "garbage", "newer"])
def test_dataset_json_is_made_again_from_a_shard(made, change):
    path, player = made
    file = path / "dataset.json"
    if change == "missing":
        file.unlink()
    elif change == "garbage":
        file.write_bytes(b"\xff{")
    else:
        file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))
    with pytest.raises(DatasetError, match=r"dataset\.json"):
        Dataset(path)
    with pytest.raises(DatasetError, match=r"dataset\.json"):
        DatasetWriter(path, make_manifest(player.spec, details=True))
    assert any(f.file == "dataset.json" and f.severity == "error" for f in doctor(path).findings)
    mended(path, player)


def test_leftovers_and_orphans(made):
    path, player = made
    layout = Layout(path)
    (layout.journal(2)).write_bytes(b"")  # as a crash between the last two steps of a roll leaves
    (path / "data" / ".shard-000009.parquet.tmp").write_bytes(b"half")
    shutil.copy(layout.episodes(1), layout.episodes(9))
    what = {f.what for f in doctor(path).findings}
    assert what == {
        "is a half-written file of an interrupted write",
        next(w for w in what if w.startswith("its data shard is missing, with ")),
        "is left over: it has become a shard",
    }
    result, _ = mended(path, player)
    assert len(result.moved) == 2


def test_a_missing_shard_costs_its_episodes_alone(made):
    path, player = made
    layout = Layout(path)
    episodes = set(rows_of_episodes(path, 1).tolist())
    listed = pq.read_table(layout.episodes(1)).num_rows
    layout.data(1).unlink()
    findings = doctor(path).findings
    assert any(f"shard is missing, with {listed} episodes of" in f.what for f in findings)
    assert any("are missing" in f.what for f in findings)
    with pytest.raises(DatasetError, match=r"shard-000001\.parquet: missing, 1 shards in all"):
        Dataset(path)
    result, kept = mended(path, player, lost=episodes)
    assert result.damaged
    counts = Dataset(path).counts
    assert counts.damaged == len(result.damaged)
    assert not Dataset(path).finished().episodes & {e for e, _ in result.damaged}
    assert kept


def test_rows_that_are_there_twice(made):
    path, player = made
    layout = Layout(path)
    shutil.copy(layout.data(1), layout.data(7))
    numbers = [r.episode for r in Dataset(path).episodes(include_lost=True)]
    assert len(numbers) == len(set(numbers)), "a reader never sees an episode twice"
    findings = doctor(path).findings
    assert any("exists twice" in f.what or "is repeated" in f.what for f in findings)
    result, kept = mended(path, player)
    assert kept == {e for e, _ in player.ended}
    assert result.damaged == ()


def test_an_episode_that_was_begun_twice_under_one_attempt(tmp_path):
    player = Player(longest=40, lost=False)
    player._next = next(e for e in range(100) if player.plan(e, 0)[0] > 30)
    number = player._next
    manifest = make_manifest(player.spec)
    with DatasetWriter(tmp_path, manifest) as writer:
        writer.append(player.play(10))
        again = Player(longest=40, lost=False, first=number)
        while not again.ended:
            writer.append(again.play(20))
    assert any("is repeated" in f.what for f in doctor(tmp_path).findings)
    assert Dataset(tmp_path).counts.damaged == 1
    _, kept = mended(tmp_path, again)
    assert number in kept


def test_rows_after_the_end_and_missing_steps(tmp_path):
    spec = make_spec()
    manifest = make_manifest(spec)
    with DatasetWriter(tmp_path, manifest) as writer:
        first = plain_fragment(spec, 10)
        first.truncated[9, 0] = True
        first.final_index = np.array([[9, 0]])
        first.final_observations = {k: v[9] for k, v in first.observations.items()}
        writer.append(first)
        writer.append(plain_fragment(spec, 10, begin=10))
        late = plain_fragment(spec, 10, 2, begin=5)
        late.start_index[:, 0] = -1
        writer.append(late)
    what = " ".join(f.what for f in doctor(tmp_path).findings)
    assert "episode 0, attempt 0: steps from 10 on come after the episode's end" in what
    assert "episode 1, attempt 0: steps 0 to 4 are missing" in what
    result = repair(tmp_path)
    assert doctor(tmp_path).clean
    assert [r.length for r in Dataset(tmp_path).episodes()] == [10]
    assert result.damaged == ((1, 0),)
    assert repair(tmp_path).done == ()


def test_images_that_do_not_decode(tmp_path, monkeypatch):
    import rollout.data.codec as codec_module

    spec = make_spec()
    manifest = make_manifest(spec, codec="png")
    player = Player(spec, longest=12, lost=False)
    real, count = codec_module._encode_image, iter(range(10**6))

    def broken(codec, image):
        data = real(codec, image)
        return data[:20] if next(count) == 25 else data

    monkeypatch.setattr(codec_module, "_encode_image", broken)
    with DatasetWriter(tmp_path, manifest) as writer:
        writer.append(player.play(60))
    monkeypatch.undo()
    (finding,) = doctor(tmp_path).findings
    assert "row 25: observation/rgb: " in finding.what
    assert "does not decode" in finding.what
    lost = rows_of_episodes(tmp_path, 0)[25]
    result, _ = mended(tmp_path, player, lost={lost})
    assert result.damaged == ((lost, 0),)
    assert result.steps == 59


def test_a_shard_of_another_dataset(made, tmp_path):
    path, player = made
    other = Player(make_spec({"observation": make_spec().observation_space["health"]}))
    record(tmp_path / "other", other, 1)
    shutil.copy(Layout(tmp_path / "other").data(0), Layout(path).data(8))
    assert any("has other columns" in f.what for f in doctor(path).findings)
    result, _ = mended(path, player)
    assert result.damaged == ()
    assert any("data-shard-000008" in name for name in result.moved)


def test_journals_are_adopted(tmp_path):
    from test_crash import leave_journal

    player = Player(width=2)
    journal = leave_journal(tmp_path, player)
    os.truncate(journal, journal.stat().st_size - 10)
    kept = [r.episode for r in Dataset(tmp_path).episodes(include_lost=True)]
    (finding,) = doctor(tmp_path).findings
    assert "left by a writer that was killed" in finding.what
    assert finding.severity == "warning"
    result = repair(tmp_path)
    assert any("journal-shard" in name for name in result.moved), "the torn tail is not deleted"
    assert doctor(tmp_path).clean
    assert [r.episode for r in Dataset(tmp_path).episodes(include_lost=True)] == kept


def test_repair_refuses_what_is_being_written(tmp_path):
    player = Player()
    with DatasetWriter(tmp_path, make_manifest(player.spec)) as writer:
        writer.append(player.play(10))
        with pytest.raises(DatasetLockedError, match="is being written by process"):
            repair(tmp_path)
    for function in (doctor, repair):
        with pytest.raises(DatasetError, match="holds no dataset"):
            function(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
