import json
import logging
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.data.tables import write_table
from rollout.observe.media import Image, Table, Video, media_as_json, media_from_json, read_rows

PARTS = st.text("ab .é", min_size=1, max_size=5).filter(lambda part: set(part) != {"."})
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: Path("/folder", *parts))
MEDIA = st.one_of(
    st.builds(
        Video,
        PATHS,
        st.none() | st.floats(1, 100) | st.integers(1, 100),
        st.text(max_size=5),
    ),
    st.builds(Image, PATHS, st.text(max_size=5)),
    st.builds(Table, PATHS),
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), MEDIA, max_size=3))
def test_media_come_back_from_json(media) -> None:
    described = json.loads(json.dumps(media_as_json(media, Path("/folder"))))
    assert media_from_json(described, Path("/folder"), "m:1") == media


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (3, "expected an object with a kind and a path, got 3"),
        ({"kind": "image"}, "expected an object with a kind and a path"),
        ({"kind": "image", "path": 3}, "expected an object with a kind and a path"),
        ({"kind": "vidio", "path": "a"}, "expected one of the kinds video, got 'vidio'"),
        ({"path": "a"}, "expected one of the kinds image, table, video, got None"),
        ({"kind": "image", "path": "/etc/passwd"}, "expected a path within .*'/etc/passwd'"),
        ({"kind": "image", "path": "a/../../b"}, "expected a path within .*'a/../../b'"),
        ({"kind": "image", "path": "link/b"}, "expected a path within .*'link/b'"),
        ({"kind": "image", "path": "circle"}, "circle"),
        ({"kind": "image", "path": "a\0"}, "null"),
        ({"kind": "image", "path": "a", "caption": 1}, "expected a text as caption"),
        ({"kind": "video", "path": "a", "fps": "x"}, "expected a number of frames per second"),
    ],
)
def test_media_of_a_line_that_cannot_be_used_are_left_out(
    tmp_path, caplog, described, message
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    data = {"bad": described, "good": {"kind": "image", "path": "b.png", "later": 1}}
    with caplog.at_level(logging.WARNING):
        assert media_from_json(data, folder, "m:7") == {"good": Image(folder / "b.png")}
    (said,) = caplog.messages
    assert said.startswith("m:7: media 'bad' is left out: ")
    assert re.search(message, said)


def test_rows_of_a_parquet_table_are_plain_values(tmp_path: Path) -> None:
    table = {
        "state": np.array(["7", "ü", "9"]),
        "score": np.array([0.5, np.nan, np.inf]),
        "won": np.array([True, False, True]),
        "length": np.array([1, 2, 3], np.int64),
        "seed": np.array([1, 2**53 + 1, 3], np.int64),
    }
    write_table(tmp_path / "t.parquet", table)
    rows = read_rows(tmp_path / "t.parquet", most=2)
    assert rows.columns == list(table)
    assert rows.data == [["7", 0.5, True, 1, "1"], ["ü", None, False, 2, "9007199254740993"]]
    assert rows.total == 3
    assert read_rows(tmp_path / "t.parquet").data[2] == ["9", None, True, 3, "3"]


def test_rows_of_json_lines_may_lack_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n{"b": [1], "a": 2}\n{"a": NaN}\n{"c": 1}\n')
    rows = read_rows(path, most=3)
    assert rows.columns == ["a", "b"]
    assert rows.data == [[1, None], [2, "[1]"], [None, None]]
    assert rows.total == 4
    assert read_rows(path).columns == ["a", "b", "c"]


def test_no_rows_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("")
    assert read_rows(tmp_path / "t.jsonl").data == []
    write_table(tmp_path / "t.parquet", {"a": np.zeros(0)})
    rows = read_rows(tmp_path / "t.parquet")
    assert (rows.columns, rows.data, rows.total) == (["a"], [], 0)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.csv", b"a,b", "expected a table in a .parquet or a .jsonl file, got t.csv"),
        ("t.jsonl", b"{}\n[1]\n", r"t.jsonl:2: expected a JSON object, got"),
        ("t.jsonl", b"{", "Expecting"),
        ("t.parquet", b"PAR1", "t.parquet"),
    ],
)
def test_what_is_no_table_is_said(tmp_path: Path, name, data, message) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_rows(tmp_path / name)
