"""Folders of datasets made to hang a reader, take all memory or control a terminal."""

import contextlib
import hashlib
import json
import os
import shutil
import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_fragments import Player, make_spec
from test_round_trip import record

from rollout.commands.dataset import main
from rollout.data import Dataset
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy

DATA, INDEX = "data/shard-000001.parquet", "episodes/shard-000001.parquet"
SEAL, JOURNAL = "seals/shard-000001.json", "journal/shard-000003.arrows"
NAMED = (DATA, INDEX, SEAL, JOURNAL, "dataset.json", "dataset.lock")
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
LIMIT_S = 120  # of all commands on one folder, on a busy machine


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "d"
    player = Player(make_spec(), width=2, longest=20, details=True)
    record(path, player, 3, 60, shard_bytes=1)
    return path


def clear(place):
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


KINDS = {
    "pipe": os.mkfifo,
    "zero": lambda p: p.symlink_to("/dev/zero"),
    "loop": lambda p: p.symlink_to(p.name),
    "folder": lambda p: p.mkdir(),
    "file": lambda p: p.write_bytes(b"x"),
}


def is_a(name, kind):
    def spoil(root):
        clear(root / name)
        KINDS[kind](root / name)

    return spoil


def described(**changes):
    def spoil(root):
        about = json.loads((root / "dataset.json").read_text())
        for key, value in changes.items():
            about[key] = {**about[key], **value} if isinstance(about[key], dict) else value
        (root / "dataset.json").write_text(json.dumps(about))

    return spoil


def large(root):
    os.truncate(root / "dataset.json", 1 << 30)


def columns(change):
    def spoil(root):
        pq.write_table(change(pq.read_table(root / DATA)), root / DATA)

    return spoil


def text_for_numbers(table):
    at = table.schema.get_field_index("reward")
    return table.set_column(at, "reward", pa.array([ESCAPE] * len(table)))


def indexed(**changes):
    def spoil(root):
        with pq.ParquetFile(root / INDEX) as file:
            table, kept = file.read(), file.metadata.metadata[b"gamut.open"]
        for name, value in changes.items():
            field = table.schema.field(name)
            values = pa.array([value] * len(table), field.type)
            table = table.set_column(table.schema.get_field_index(name), field, values)
        with pq.ParquetWriter(root / INDEX, table.schema) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"gamut.open": kept})

    return spoil


def sealed(**changes):
    def spoil(root):
        text = json.dumps(json.loads(json.loads((root / SEAL).read_text())["seal"]) | changes)
        own = hashlib.sha256(text.encode()).hexdigest()
        (root / SEAL).write_text(json.dumps({"seal": text, "seal_sha256": own}))

    return spoil


def stray(root):
    os.mkfifo(root / "data/.shard-000009.parquet.tmp")
    os.mkfifo(root / "data/shard-99999999999999999999.parquet")


def one_column_less(root):
    columns(lambda table: table.drop_columns(["reward"]))(root)


BOX = {"dtype": "float32", "shape": [10**10], "unit": "", "doc": ""}
PIECE = {"shard": 1, "row_start": 0, "rows": 10**12}
FOLDERS = {
    **{f"{name} {kind}": is_a(name, kind) for name in NAMED for kind in list(KINDS)[:4]},
    **{
        f"{name} {kind}": is_a(name, kind)
        for name in ("data", "episodes", "seals", "journal")
        for kind in ("pipe", "zero", "loop", "file")
    },
    "strays": stray,
    "large": large,
    "shape": described(extras={"x": BOX}),
    "task": described(task={"name": ESCAPE + "\nerror: x", "goal": ESCAPE}, bridge=ESCAPE),
    "renamed": columns(
        lambda table: table.rename_columns([ESCAPE + n for n in table.schema.names])
    ),
    "one less": one_column_less,
    "others": columns(lambda table: pa.table({"a": [1, 2]})),
    "text": columns(text_for_numbers),
    "text, no index": lambda root: (columns(text_for_numbers)(root), (root / INDEX).unlink()),
    "another shard": indexed(pieces=[PIECE | {"shard": 77, "rows": 1}], length=1),
    "more steps": indexed(length=10**12),
    "more rows": indexed(pieces=[PIECE], length=10**12),
    "negative": indexed(pieces=[PIECE | {"row_start": -5, "rows": -5}], length=-5),
    "nothing": indexed(length=None, outcome=None),
    "outcome": indexed(outcome=100),
    "state": indexed(state=ESCAPE, task=ESCAPE),
    "sealed size": sealed(bytes=10**15),
    "negative size": sealed(bytes=-5),
    "sealed footer": sealed(footer_bytes=10**13),
    "sealed text": sealed(bytes="x"),
}


def recorded(root):
    """What must never be lost: data shards, journals and whatever lies in their place."""
    found = []
    for place in root.rglob("*"):
        mode = place.lstat().st_mode
        kind = stat.S_IFMT(mode)
        if stat.S_ISREG(mode) and place.parent.name in ("data", "journal", "quarantine"):
            with place.open("rb") as file:  # the large one is of zeros
                found.append((kind, place.lstat().st_size, file.read(1 << 20)))
        elif stat.S_ISLNK(mode) or stat.S_ISFIFO(mode):
            found.append((kind, place.readlink() if stat.S_ISLNK(mode) else b""))
    return found


def read_all(root):
    with Dataset(root) as dataset:
        for ref in dataset.episodes(include_lost=True):
            dataset.read(ref)
        dataset.table()


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", FOLDERS)
def test_each_is_told_in_one_line_and_nothing_is_lost(template, tmp_path, capsys, name):
    root = tmp_path / "d"
    shutil.copytree(template, root)
    FOLDERS[name](root)
    before = recorded(root)
    for command in ("info", "play", "doctor", "repair", "doctor"):
        status = main([command, str(root)])
        told = capsys.readouterr()
        assert "\x1b" not in told.out + told.err
        assert status in (0, 2, 3)
        assert told.err.count("\n") == (status == 2)
        if command == "info":
            with contextlib.suppress(DatasetError):
                read_all(root)
            capsys.readouterr()
        after = recorded(root)
        assert not [each for each in before if each not in after]
