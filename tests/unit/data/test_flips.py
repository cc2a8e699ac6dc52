"""Flipped bits in an open journal: noticed, told with numbers, and no other batch is lost."""

import os
import random

import pyarrow as pa
import pytest
from store_fragments import Player, check_episode, make_manifest
from test_crash import leave_journal

from rollout.data import Dataset, DatasetWriter, Layout, doctor, repair
from rollout.data.journal import JournalReader

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A journal of 20 batches that a killed writer left, its player and its bytes."""
    player = Player(width=2, longest=6)
    journal = leave_journal(tmp_path_factory.mktemp("left"), player, fragments=20)
    return journal, player, journal.read_bytes()


def flip(data, where, rng):
    damaged = bytearray(data)
    damaged[where] ^= 1 << rng.randrange(8)
    return damaged


def test_any_of_200_flipped_bits_is_noticed_and_costs_one_batch(left, tmp_path):
    journal, player, data = left
    rng, schema = random.Random(3), make_manifest(player.spec).schema
    whole = JournalReader(journal)
    batches = list(whole.scan())
    assert len(batches) == 20
    edges = [0, *whole.offsets, len(data)]
    places = [rng.randrange(len(data)) for _ in range(170)]
    places += range(10)  # the first message, each begin of a message, and the last
    places += [begin + 5 for begin in whole.offsets[::4]]
    places += [whole.offsets[-1] + n for n in range(0, 600, 40)]
    copy = tmp_path / "journal.arrows"
    for where in places:
        copy.write_bytes(flip(data, where, rng))
        reader = JournalReader(copy, schema)
        kept = list(reader.scan())
        hit = sum(edge <= where for edge in edges) - 2  # -1 in the schema
        assert kept == [batch for k, batch in enumerate(batches) if k != hit], where
        (gap,) = reader.gaps
        assert gap.offset == edges[hit + 1]
        lost = 0 if hit < 0 else batches[hit].num_rows
        assert gap.steps == lost or (gap.steps is None and hit == 19), where
        narrow = JournalReader(copy, schema)
        assert sum(batch.num_rows for batch in narrow.scan(["episode"])) == reader.rows


def test_doctor_and_repair_tell_what_a_flipped_bit_costs(left, tmp_path):
    journal, player, data = left
    whole = JournalReader(journal)
    batches = list(whole.scan())
    ends = {name: batches[8].column(name).to_pylist() for name in ("terminated", "truncated")}
    finished = sum(map(sum, ends.values()))
    assert finished
    damaged = bytearray(data)
    damaged[whole.offsets[9] - 40] ^= 8  # the end of batch 8: a column that no index needs
    DatasetWriter(tmp_path, make_manifest(player.spec)).close()
    Layout(tmp_path).journal(0).write_bytes(damaged)
    hit = set(batches[8].column("episode").to_pylist())
    lost = f"lost are {batches[8].num_rows} steps, in which {finished} episodes finished"
    errors = [f for f in doctor(tmp_path).findings if f.severity == "error"]
    assert [f.file for f in errors if lost in f.what] == ["journal/shard-000000.arrows"]
    kept = {ref.episode for ref in Dataset(tmp_path).episodes(include_lost=True)}
    assert kept >= {episode for episode, _ in player.ended} - hit
    result = repair(tmp_path)
    assert any(lost in line for line in result.done)
    assert result.moved == ("quarantine/journal-shard-000000.arrows",)
    assert (tmp_path / result.moved[0]).read_bytes() == damaged
    with Dataset(tmp_path) as dataset:
        refs = dataset.episodes(include_lost=True)
        assert {ref.episode for ref in refs} == kept
        for ref in refs:
            check_episode(dataset, ref, player)
    assert doctor(tmp_path).clean


def test_a_writer_that_opens_a_damaged_journal_says_what_is_lost(left, tmp_path, caplog):
    _, player, data = left
    DatasetWriter(tmp_path, make_manifest(player.spec)).close()
    Layout(tmp_path).journal(0).write_bytes(flip(data, len(data) // 2, random.Random(1)))
    Dataset(tmp_path).close()
    DatasetWriter(tmp_path, make_manifest(player.spec)).close()
    for said in ("steps, in which", "other 570 steps are kept"):
        assert any(said in record.getMessage() for record in caplog.records)


def older(journal, data):
    """The journal as versions without checksums wrote it."""
    journal.write_bytes(data)
    reader = JournalReader(journal)
    batches = list(reader.scan())
    journal.unlink()
    with pa.OSFile(str(journal), "wb") as sink:
        stream = pa.ipc.new_stream(sink, reader.schema)
        for batch in batches:
            stream.write_batch(batch, custom_metadata={"losses": "[]"})
        nbytes = sink.tell()
    os.truncate(journal, nbytes)
    return batches


def test_journals_without_checksums_are_read(left, tmp_path):
    _, player, data = left
    DatasetWriter(tmp_path, make_manifest(player.spec)).close()
    journal = Layout(tmp_path).journal(0)
    batches = older(journal, data)
    reader = JournalReader(journal)
    assert list(reader.scan()) == batches
    assert (reader.gaps, reader.torn, reader.read(["step"], 40, 50).num_rows) == ([], False, 10)
    raw = bytearray(journal.read_bytes())
    raw[reader.offsets[5] : reader.offsets[5] + 64] = bytes(64)
    journal.write_bytes(raw)
    hurt = JournalReader(journal)
    assert list(hurt.scan(["step"])) == [b.select(["step"]) for b in batches[:5] + batches[6:]]
    assert [(gap.offset, gap.steps) for gap in hurt.gaps] == [(reader.offsets[5], None)]
    journal.write_bytes(raw[: reader.offsets[19] + 100])
    torn = JournalReader(journal)
    assert (len(list(torn.scan())), len(torn.gaps), torn.torn) == (18, 1, True)
    assert repair(tmp_path).moved
    assert Dataset(tmp_path).counts.steps == torn.rows
