"""Tables of results as Parquet."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.data.tables import concatenate, read_table, rows_of, write_table
from rollout.errors import DatasetError

TABLE = {
    "arm": np.array(["random", "prefix", "só"]),
    "n": np.array([16, 64, 2**40]),
    "score": np.array([0.5, np.nan, -np.inf]),
    "kept": np.array([True, False, True]),
}


def assert_same(read, written):
    assert list(read) == list(written)
    for name, column in written.items():
        np.testing.assert_array_equal(read[name], column)
        assert read[name].dtype.kind == column.dtype.kind


def test_what_is_written_is_read(tmp_path):
    write_table(tmp_path / "t.parquet", TABLE, {"metric": "progress", "sizes": [16, 64]})
    assert_same(read_table(tmp_path / "t.parquet"), TABLE)
    about = json.loads(pq.read_schema(tmp_path / "t.parquet").metadata[b"gamut.table"])
    assert about == {"metric": "progress", "sizes": [16, 64]}
    assert not list(tmp_path.glob(".*"))


@settings(max_examples=15)  # disks are slow at times
@given(
    rows=st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(),
        )
    )
)
def test_any_rows_come_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    texts, numbers, floats = zip(*rows, strict=True) if rows else ((), (), ())
    table = {
        "state": np.array(texts, dtype=np.str_),
        "n": np.array(numbers, dtype=np.int64),
        "score": np.array(floats, dtype=np.float64),
    }
    write_table(path, table)
    assert_same(read_table(path), table)


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_table(tmp_path / name, TABLE, {"b": 1, "a": 2} if name == "a" else {"a": 2, "b": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_text_may_be_objects(tmp_path):
    write_table(tmp_path / "t", {"end": np.array(["lost", "terminated"], dtype=object)})
    assert read_table(tmp_path / "t")["end"].tolist() == ["lost", "terminated"]


def test_columns_say_what_they_are_to_other_readers(tmp_path):
    write_table(tmp_path / "t", TABLE, docs={"n": "number of training states"})
    schema = pq.read_schema(tmp_path / "t")
    assert schema.field("n").metadata == {b"doc": b"number of training states"}
    assert schema.field("n").type == pa.int64()
    assert schema.field("arm").type == pa.string()


def test_a_failed_write_keeps_what_was_there(tmp_path):
    write_table(tmp_path / "t", TABLE)
    with pytest.raises(ValueError, match=r"'x': expected numbers, truth values or text.*dict"):
        write_table(tmp_path / "t", {"x": np.array([{}], dtype=object)})
    with pytest.raises(OSError, match="nowhere"):
        write_table(tmp_path / "nowhere" / "t", TABLE)
    assert_same(read_table(tmp_path / "t"), TABLE)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": np.zeros(2), "b": np.zeros(3)}, r"one length, got \{'a': 2, 'b': 3\}"),
        ({"a": np.zeros((2, 2))}, r"'a': expected one dimension, got shape \(2, 2\)"),
        ({"a": np.zeros(1, complex)}, "complex128"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, table, message):
    with pytest.raises(ValueError, match=message):
        write_table(tmp_path / "t", table)


def test_reading_names_the_file_and_what_is_wrong(tmp_path):
    with pytest.raises(DatasetError, match=r"no table .*missing"):
        read_table(tmp_path / "missing")
    (tmp_path / "bad").write_bytes(b"PAR1 no")
    with pytest.raises(DatasetError, match="bad is not a table, or damaged"):
        read_table(tmp_path / "bad")
    write_table(tmp_path / "torn", TABLE)
    whole = bytearray((tmp_path / "torn").read_bytes())
    whole[4:40] = bytes(36)  # a page; the footer is whole
    (tmp_path / "torn").write_bytes(whole)
    with pytest.raises(DatasetError, match="torn is not a table, or damaged"):
        read_table(tmp_path / "torn")
    pq.write_table(pa.table({"n": pa.array([1, None])}), tmp_path / "null")
    with pytest.raises(DatasetError, match="'n' is int64 with 1 empty entries"):
        read_table(tmp_path / "null")
    pq.write_table(pa.table({"n": [[1]]}), tmp_path / "list")
    with pytest.raises(DatasetError, match="'n' is list"):
        read_table(tmp_path / "list")


def test_tables_are_put_together():
    both = concatenate([TABLE, TABLE])
    assert rows_of(both) == 6
    assert both["n"].tolist() == [16, 64, 2**40] * 2
    assert concatenate([]) == {}
    with pytest.raises(ValueError, match="expected the columns arm, n"):
        concatenate([TABLE, {"n": np.zeros(1)}])
