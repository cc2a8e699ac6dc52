"""Datasets are copied to folders and to addresses; what is there is never overwritten."""

import fsspec
import pytest
from formats_data import make

from rollout.commands import dataset as script
from rollout.data import Dataset, doctor


def test_a_dataset_is_pushed_to_a_folder(tmp_path, capsys):
    make(tmp_path / "d")
    command = ["push", str(tmp_path / "d"), str(tmp_path / "there/d")]
    assert script.main(command) == 0
    assert "files" in capsys.readouterr().out
    assert doctor(tmp_path / "there/d").clean
    with Dataset(tmp_path / "d") as one, Dataset(tmp_path / "there/d") as other:
        assert one.index.equals(other.index)
    assert script.main(command) == 2
    assert "overwrites nothing" in capsys.readouterr().err


def test_a_dataset_is_pushed_to_an_address(tmp_path):
    make(tmp_path / "d")
    assert script.main(["push", str(tmp_path / "d"), "memory://bucket/d"]) == 0
    system = fsspec.filesystem("memory")
    for path in (tmp_path / "d").rglob("*.parquet"):
        place = f"/bucket/d/{path.relative_to(tmp_path / 'd')}"
        assert system.cat_file(place) == path.read_bytes()
    assert system.exists("/bucket/d/dataset.json")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["{tmp}/none", "{tmp}/x"], "expected a dataset"), (["{tmp}/d", "nonsense://x"], "nonsense")],
)
def test_what_cannot_be_pushed_is_said(tmp_path, capsys, arguments, said):
    make(tmp_path / "d")
    assert script.main(["push", *(a.format(tmp=tmp_path) for a in arguments)]) == 2
    assert said in capsys.readouterr().err
