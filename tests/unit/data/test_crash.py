"""Killed writers, interrupted rolls, full disks."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from store_fragments import Player, check_episode, make_manifest, stacked_spec

import rollout.data.roll as roll_module
from rollout.data import Dataset, DatasetWriter, DiskFullError, Layout, doctor
from rollout.data.journal import JournalReader
from rollout.errors import DatasetError, DatasetLockedError, OutOfTurnError

pytestmark = pytest.mark.heavy


class ForkServer:
    """Talks to ``store_child``."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("store_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self._line() == "ready"

    def _line(self):
        return self._process.stdout.readline().strip()

    def begin(self, *request):
        self._process.stdin.write(" ".join(map(str, request)) + "\n")
        return int(self._line().split()[1])

    def lines(self, *, until="dead"):
        """What the child says until a line begins so; that line too unless it is dead."""
        said = []
        while True:
            line = self._line()
            assert line, "the fork_server died"
            if line.startswith("dead"):
                return said
            said.append(line)
            if line.startswith(until):
                return said

    def close(self):
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def fork_server():
    fork_server = ForkServer()
    yield fork_server
    fork_server.close()


def finished(lines):
    return [int(e) for line in lines if line.startswith("done") for e in line.split()[1:]]


@pytest.mark.slow
def test_many_kills_lose_nothing_that_was_reported(tmp_path, fork_server):
    path, reported, rng = tmp_path / "d", [], random.Random(5)
    adopted = 0
    for kill in range(25):
        pid = fork_server.begin("kill", path, 1, kill * 10_000, rng.choice([1, 30_000, 10**6]))
        if kill % 2:  # half of the kills during opening, half during recording
            reported += finished(fork_server.lines(until="done"))
        killer = threading.Timer(rng.uniform(0.0, 0.15), os.kill, (pid, signal.SIGKILL))
        killer.start()
        reported += finished(fork_server.lines())
        killer.join()
        adopted += bool(Layout(path).numbers("journal"))
        if kill % 5 == 4:
            seen = Dataset(path).finished().episodes
            assert seen >= set(reported)
    assert adopted > 5, "the kills hit no writer at work"
    assert len(reported) > 15
    spec = stacked_spec()
    player = Player(spec, width=2, seed=1, longest=12, lost=False)
    with DatasetWriter(path, make_manifest(player.spec)) as writer:
        fresh = Player(spec, width=2, seed=1, longest=12, lost=False, first=900_000)
        writer.append(fresh.play(20))
    with Dataset(path) as dataset:
        refs = dataset.episodes()
        numbers = [r.episode for r in refs]
        assert len(numbers) == len(set(numbers))
        assert set(numbers) >= {*reported, *(e for e, _ in fresh.ended)}
        for ref in refs:
            check_episode(dataset, ref, player)
    assert doctor(path).findings == ()


@pytest.mark.process
@pytest.mark.parametrize("limit", [25_000, 40_000, 90_000])
def test_a_full_disk_is_named_and_loses_nothing(tmp_path, fork_server, limit):
    path = tmp_path / "d"
    fork_server.begin("full", path, 1, 0, limit)
    lines = fork_server.lines()
    reported = finished(lines)
    assert lines[-1].startswith("full no room on disk while")
    assert reported or limit < 30_000
    player = Player(width=2, seed=1, longest=12, lost=False)
    if reported:
        with Dataset(path) as dataset:
            assert {r.episode for r in dataset.episodes()} == set(reported)
    with DatasetWriter(path, make_manifest(player.spec)) as writer:
        fresh = Player(width=2, seed=1, longest=12, lost=False, first=900_000)
        writer.append(fresh.play(20))
    with Dataset(path) as dataset:
        assert {r.episode for r in dataset.episodes()} == {*reported, *(e for e, _ in fresh.ended)}
        for ref in dataset.episodes():
            check_episode(dataset, ref, player)
    assert doctor(path).clean


def test_a_roll_that_finds_no_room_surfaces_and_keeps_the_journal(tmp_path, monkeypatch):
    player = Player(longest=5)
    writer = DatasetWriter(tmp_path, make_manifest(player.spec), shard_bytes=1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(roll_module.ShardWriter, "finish", full)
    writer.append(player.play(10))
    writer._roller._pending[0].exception(timeout=10)
    ended = {e for e, _ in player.ended}
    with pytest.raises(DiskFullError, match="free some space and open the dataset again"):
        writer.append(player.play(10))
    with pytest.raises(OutOfTurnError, match="failed before"):
        writer.append(player.play(10))
    writer.close()
    monkeypatch.undo()
    assert not Layout(tmp_path).strays()
    assert {r.episode for r in Dataset(tmp_path).episodes(include_lost=True)} == ended
    DatasetWriter(tmp_path, make_manifest(player.spec)).close()
    assert {r.episode for r in Dataset(tmp_path).episodes(include_lost=True)} == ended
    assert doctor(tmp_path).clean


class Crash(BaseException):
    """Stands for the death of the process: nothing of ours catches it."""


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (roll_module.ShardWriter, "finish"),
        (roll_module.Seal, "write"),
        (roll_module, "write_index"),
        (roll_module, "put_in_place"),
        (roll_module, "_settle"),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_roll_interrupted_anywhere_neither_loses_nor_doubles(
    tmp_path, monkeypatch, owner, name, when
):
    player = Player(width=2)
    manifest = make_manifest(player.spec)
    leave_journal(tmp_path, player)
    real = getattr(owner, name)

    def interrupted(*args, **options):
        if when == "after":
            real(*args, **options)
        raise Crash

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(Crash):
        DatasetWriter(tmp_path, manifest)
    monkeypatch.undo()

    def check():
        with Dataset(tmp_path) as dataset:
            refs = dataset.episodes(include_lost=True)
            assert sorted(r.episode for r in refs) == sorted(e for e, _ in player.ended)
            for ref in refs:
                check_episode(dataset, ref, player)

    check()
    DatasetWriter(tmp_path, manifest).close()
    check()
    assert Layout(tmp_path).numbers("journal") == []
    assert doctor(tmp_path).clean


def leave_journal(path, player, fragments=3):
    """Leaves a dataset as a killed writer does: with a journal and no lock."""
    writer = DatasetWriter(path, make_manifest(player.spec))
    for _ in range(fragments):
        writer.append(player.play(15))
    writer._failed = OSError("killed")  # close() then leaves the journal alone
    writer.close()
    (number,) = Layout(path).numbers("journal")
    return Layout(path).journal(number)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_torn_journal_is_read_up_to_the_tear(tmp_path, share):
    player = Player(stacked_spec(), width=2)
    journal = leave_journal(tmp_path, player)
    whole = JournalReader(journal)
    rows = [b.num_rows for b in whole.scan()]
    cut = int(journal.stat().st_size * share)
    os.truncate(journal, cut)
    torn = JournalReader(journal)
    kept = [b.num_rows for b in torn.scan()]
    assert kept == rows[: len(kept)]
    assert len(kept) == sum(end <= cut for end in [*whole.offsets[1:], whole.whole])
    assert torn.torn or torn.whole == cut
    assert not torn.damaged
    before = Dataset(tmp_path).episodes(include_lost=True)
    DatasetWriter(tmp_path, make_manifest(player.spec)).close()
    with Dataset(tmp_path) as dataset:
        after = dataset.episodes(include_lost=True)
        assert [r.episode for r in after] == [r.episode for r in before]
        for ref in after:
            check_episode(dataset, ref, player)
    assert doctor(tmp_path).clean


def test_a_journal_damaged_in_the_middle_is_set_aside_not_deleted(tmp_path):
    player = Player(stacked_spec(), width=2)
    journal = leave_journal(tmp_path, player)
    whole = JournalReader(journal)
    assert len(list(whole.scan())) == 3
    data = bytearray(journal.read_bytes())
    data[whole.offsets[1] : whole.offsets[1] + 8] = b"\x01" * 8
    journal.write_bytes(data)
    report = doctor(tmp_path)
    lost = whole.starts[2] - whole.starts[1]
    errors = [f.what for f in report.findings if f.severity == "error"]
    assert any(f"lost are {lost} steps" in what for what in errors)
    DatasetWriter(tmp_path, make_manifest(player.spec)).close()
    (aside,) = (tmp_path / "quarantine").iterdir()
    assert aside.read_bytes() == data
    assert Dataset(tmp_path).counts.steps == whole.rows - lost


def test_a_journal_that_is_a_dead_link_is_named_and_kept(tmp_path):
    journal = leave_journal(tmp_path, Player(width=2))
    moved = journal.rename(tmp_path.parent / "elsewhere")
    journal.symlink_to("nowhere")
    for open_it in (Dataset, lambda path: DatasetWriter(path, make_manifest(Player().spec))):
        with pytest.raises(DatasetError, match=re.escape(f"cannot read the journal {journal}")):
            open_it(tmp_path)
    assert journal.is_symlink()
    journal.unlink()
    moved.rename(journal)
    assert Dataset(tmp_path).counts.steps


@pytest.mark.process
def test_a_live_dataset_is_read_while_it_is_written(tmp_path):
    player = Player(width=3)
    with DatasetWriter(tmp_path, make_manifest(player.spec), shard_bytes=60_000) as writer:
        reader = None
        for n in range(25):
            writer.append(player.play(6))
            assert n % 4 or doctor(tmp_path).findings == (), "rolls are under way meanwhile"
            # The first snapshot is kept: its journals become shards meanwhile.
            reader = reader or Dataset(tmp_path)
            live = Dataset(tmp_path)
            assert live.finished().attempts.keys() >= {e for e, _ in player.ended}
        old = reader.episodes(include_lost=True)
        for ref in [*old, *live.episodes(include_lost=True)]:
            check_episode(reader if ref in old else live, ref, player)
        assert doctor(tmp_path).findings == ()
        assert len(Dataset(tmp_path).episodes(include_lost=True)) == len(player.ended)


def test_two_writers_are_refused(tmp_path):
    manifest = make_manifest()
    with DatasetWriter(tmp_path, manifest):
        with pytest.raises(DatasetLockedError, match=f"process {os.getpid()} on .*run test"):
            DatasetWriter(tmp_path, manifest)
        assert doctor(tmp_path).writer is not None
    DatasetWriter(tmp_path, manifest).close()
    assert doctor(tmp_path).writer is None


def test_a_closed_writer_says_so(tmp_path):
    writer = DatasetWriter(tmp_path, make_manifest())
    writer.close()
    writer.close()
    with pytest.raises(OutOfTurnError, match="was closed"):
        writer.append(Player().play(3))
    with pytest.raises(OutOfTurnError, match="was closed"):
        writer.flush()


@pytest.mark.parametrize("fsync", ["never", "episode", "shard"])
def test_flush_and_fsync(tmp_path, monkeypatch, fsync):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    player = Player(longest=3)
    writer = DatasetWriter(tmp_path, make_manifest(player.spec), fsync=fsync)
    begun = len(synced)
    writer.append(player.play(9))
    assert (len(synced) > begun) == (fsync == "episode")
    writer.flush()
    assert len(synced) > begun
    flushed = len(synced)
    writer.close()
    assert (len(synced) > flushed) == (fsync != "never")
    assert np.array_equal(Dataset(tmp_path).table(["step"]).column(0).to_numpy().shape, (9,))


def test_a_foreign_directory_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(DatasetError, match=r"other files than a dataset.s \(thesis\.txt\)"):
        DatasetWriter(tmp_path, make_manifest())
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(DatasetError, match="is a file"):
        DatasetWriter(tmp_path / "thesis.txt", make_manifest())
    with pytest.raises(DatasetError, match="holds no dataset"):
        Dataset(tmp_path)
    assert pa.__version__
