"""Files that lie: refused, or set aside by episode and step, without reading elsewhere."""

import io
import json
import zipfile
from dataclasses import dataclass, replace

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from formats_data import make
from test_from_gymnasium import transitions

from rollout.api import ColumnSpec
from rollout.data import Dataset
from rollout.data.formats import import_dataset
from rollout.data.formats.gymnasium import FromGymnasium
from rollout.data.formats.lerobot import LeRobot
from rollout.data.formats.lerobot_import import FromLeRobot
from rollout.errors import DatasetError
from rollout.testing import FakeImporter

pytestmark = pytest.mark.heavy

DATA, EPISODES = "data/chunk-000/file-000.parquet", "meta/episodes/chunk-000/file-000.parquet"


class Hostile:
    """What must never be called."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('executed')",))


def header(shape, dtype="<f4", data=b""):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"shape": shape, "fortran_order": False, "descr": dtype}
    )
    return file.getvalue() + data


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (header((10**9, 10**6)), "expected 4000000000000000 bytes"),
        (header((9,), data=b"1234"), "expected 36 bytes"),
        (header((9,), dtype="|O"), "Python objects"),
        (b"\x93NUMPY\x09\x00", "version"),
        (b"", "cannot read"),
    ],
)
def test_arrays_that_are_not_what_they_claim_are_refused(tmp_path, member, said):
    np.savez(tmp_path / "a.npz", **transitions(rewards=None))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("rewards.npy", member)
    with pytest.raises(DatasetError, match=said):
        import_dataset(FromGymnasium(), tmp_path / "a.npz", tmp_path / "d", form="gymnasium")
    assert {path.name for path in tmp_path.iterdir()} == {"a.npz"}


def test_an_archive_larger_than_memory_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", **transitions(rewards=np.zeros(1 << 20)))
    from rollout.data.formats import gymnasium

    monkeypatch.setattr(gymnasium.os, "sysconf", lambda _: 1 << 11)
    with pytest.raises(DatasetError, match="half the memory"):
        import_dataset(FromGymnasium(), tmp_path / "a.npz", tmp_path / "d", form="gymnasium")


def test_pickles_in_an_archive_are_not_executed(tmp_path):
    arrays = transitions(actions=np.array([Hostile()] * 9, object))
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DatasetError, match="Python objects"):
        import_dataset(FromGymnasium(), tmp_path / "a.npz", tmp_path / "d", form="gymnasium")


def linked(file, name, other):
    file[name] = h5py.ExternalLink(str(other), name)


def virtual(file, name, other):
    layout = h5py.VirtualLayout((9,), "f8")
    layout[:] = h5py.VirtualSource(str(other), name, (9,))
    file.create_virtual_dataset(name, layout)


def huge(file, name, _):
    file.create_dataset(name, (10**9, 10**6), "f8", chunks=(1, 1000))


def objects(file, name, _):
    file.create_dataset(name, data=["a"] * 9, dtype=h5py.string_dtype())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (linked, "is a link"),
        (virtual, "in another file"),
        (huge, "half the memory"),
        (objects, "expected an array of numbers"),
    ],
)
def test_hdf5_is_read_within_the_file_and_memory(tmp_path, how, said):
    arrays = transitions()
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["rewards"] = arrays["rewards"]
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for name, values in arrays.items():
            if name != "rewards":
                file[name] = values
        how(file, "rewards", tmp_path / "other.hdf5")
    with pytest.raises(DatasetError, match=said):
        import_dataset(FromGymnasium(), tmp_path / "a.hdf5", tmp_path / "d", form="gymnasium")


@pytest.fixture
def folder(tmp_path):
    make(tmp_path / "d")
    with Dataset(tmp_path / "d") as dataset:
        LeRobot().write(dataset, dataset.episodes(), tmp_path / "lr")
    return tmp_path / "lr"


def with_info(folder, **changes):
    info = json.loads((folder / "meta/info.json").read_text())
    (folder / "meta/info.json").write_text(json.dumps(info | changes))


@pytest.mark.parametrize(
    "template",
    [
        "/etc/{chunk_index}/{file_index}",
        "../d/{chunk_index}-{file_index}.parquet",
        "data/{file_index.__class__}",
        "data/{file_index:999999999d}",
        "data/{secret}",
        "data/{",
    ],
)
def test_metadata_names_no_files_elsewhere(folder, tmp_path, template):
    with_info(folder, data_path=template)
    with pytest.raises(DatasetError, match=r"no episode of .* is whole: .*info\.json"):
        import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")


def test_huge_shapes_are_refused_before_memory_is_taken(folder, tmp_path):
    (folder / "meta/gamut.json").unlink()
    info = json.loads((folder / "meta/info.json").read_text())
    info["features"]["observation.images.rgb"]["shape"] = [10**6, 10**6, 3]
    with_info(folder, features=info["features"])
    with pytest.raises(DatasetError, match=r"observation\.images\.rgb.*at most 67,108,864"):
        import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("observation.images.rgb", {"bytes": None, "path": "/etc/passwd"}),
        ("observation.images.rgb", None),
        ("next.reward", None),
    ],
)
def test_what_is_missing_is_named_by_its_step(folder, tmp_path, name, value):
    table = pq.read_table(folder / DATA)
    values, at = table[name].to_pylist(), table.schema.get_field_index(name)
    values[1] = value
    field = table.field(at)
    pq.write_table(table.set_column(at, field, pa.array(values, field.type)), folder / DATA)
    done = import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    (flaw,) = done.flaws
    assert (flaw.file, flaw.episode, flaw.step) == (DATA, 0, 1)
    assert "missing" in flaw.problem


def test_a_table_of_episodes_without_its_columns_is_refused(folder, tmp_path):
    table = pq.read_table(folder / EPISODES)
    pq.write_table(table.drop_columns(["length"]), folder / EPISODES)
    with pytest.raises(DatasetError, match="lacks the columns length"):
        import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")


def test_an_episode_without_a_number_is_set_aside(folder, tmp_path):
    table = pq.read_table(folder / EPISODES)
    at = table.schema.get_field_index("episode_index")
    numbers = table["episode_index"].to_pylist()
    table = table.set_column(at, "episode_index", pa.array([None, *numbers[1:]], pa.int64()))
    pq.write_table(table, folder / EPISODES)
    done = import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    assert done.episodes == len(numbers) - 1
    assert [flaw.episode for flaw in done.flaws] == [None]


@dataclass(frozen=True)
class Gappy(FakeImporter):
    """An importer whose data have no value in a step."""

    def describe(self, source):
        return replace(super().describe(source), extras={"note": ColumnSpec("object")})

    def episodes(self, source):
        for each in super().episodes(source):
            notes = np.array([{}] * len(each.columns["reward"]), object)
            notes[1] = None if each.number == 0 else "said"
            yield replace(each, columns={**each.columns, "extra/note": notes})


def test_missing_data_are_named_by_their_step(tmp_path):
    line = json.dumps({"rewards": [1.0, 2.0], "end": "terminated"}) + "\n"
    (tmp_path / "a.jsonl").write_text(line * 2)
    done = import_dataset(Gappy(), tmp_path / "a.jsonl", tmp_path / "d", form="fake")
    (flaw,) = done.flaws
    assert (flaw.episode, flaw.step, done.episodes) == (0, 1, 1)
    assert "extra/note: expected a value" in flaw.problem
