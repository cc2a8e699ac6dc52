import json
import logging
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.errors import DatasetError, OutOfTurnError
from rollout.observe.metrics import Metrics, flatten, read_metrics


def test_a_line_has_time_steps_and_values(tmp_path: Path) -> None:
    now = iter([100.0, 101.5, 103.0])
    with Metrics(
        tmp_path / "a" / "m.jsonl", constants={"resume_count": 2}, clock=lambda: next(now)
    ) as m:
        m.write(7, {"losses/value": 0.5, "episode": {"return": 1, "mode": "x"}, "done": True})
        m.write(5, {})
    assert list(read_metrics(m.path)) == [
        {
            "time": 101.5, "wall_s": 1.5, "env_steps": 7, "resume_count": 2, "losses/value": 0.5,
            "episode/return": 1, "episode/mode": "x", "done": True,
        },
        {"time": 103.0, "wall_s": 3.0, "env_steps": 5, "resume_count": 2},
    ]  # fmt: skip


def test_a_line_is_in_the_file_once_write_returned(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "m.jsonl")
    metrics.write(1, {"a": 1})
    assert len(list(read_metrics(metrics.path))) == 1
    metrics.close()
    metrics.close()
    with pytest.raises(OutOfTurnError, match="was closed"):
        metrics.write(2, {})


def test_what_json_cannot_hold_is_null(tmp_path: Path) -> None:
    with Metrics(tmp_path / "m.jsonl") as metrics:
        metrics.write(
            np.int64(3), {"a": math.nan, "b": -math.inf, "c": np.float32("nan"), "d": None}
        )
    text = metrics.path.read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    (line,) = read_metrics(metrics.path)
    assert [line[k] for k in "abcd"] == [None] * 4


def test_scalars_of_numpy_become_numbers() -> None:
    values = {"a": np.float32(0.5), "b": np.int8(3), "c": np.bool_(True), "d": np.array(2.0)}
    flat = flatten(values)
    assert flat == {"a": 0.5, "b": 3, "c": True, "d": 2.0}
    assert [type(v) for v in flat.values()] == [float, int, bool, float]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"a": [1]}, TypeError, "metric 'a': expected a number.*got list; reduce it"),
        ({"a": {"b": np.zeros(2)}}, TypeError, "metric 'a/b'.*got ndarray"),
        ({"": 1}, ValueError, "expected a name"),
        ({3: 1}, ValueError, "expected a name"),
        ({"env_steps": 1}, ValueError, "env_steps already"),
        ({"time": 1}, ValueError, "time already"),
    ],
)
def test_wrong_values_are_refused_and_leave_no_line(tmp_path, values, error, message) -> None:
    with Metrics(tmp_path / "m.jsonl") as metrics, pytest.raises(error, match=message):
        metrics.write(0, values)
    assert metrics.path.read_bytes() == b""


def test_opening_again_appends(tmp_path: Path) -> None:
    for step in range(3):
        with Metrics(tmp_path / "m.jsonl") as metrics:
            metrics.write(step, {})
    assert [line["env_steps"] for line in read_metrics(tmp_path / "m.jsonl")] == [0, 1, 2]


@settings(deadline=None)
@given(
    lines=st.lists(st.text(max_size=30), max_size=5),
    cut=st.floats(0, 1),
    padding=st.sampled_from([0, 65_520, 200_000]),
)
def test_wherever_a_crash_cuts_all_whole_lines_stay(tmp_path_factory, lines, cut, padding) -> None:
    path = tmp_path_factory.mktemp("m") / "m.jsonl"
    texts = [*lines, "x" * padding]
    with Metrics(path) as metrics:
        for i, text in enumerate(texts):
            metrics.write(i, {"text": text})
    data = path.read_bytes()
    whole = data[: int(cut * len(data))]
    path.write_bytes(whole)
    kept = whole.count(b"\n")
    assert len(list(read_metrics(path))) == kept
    with Metrics(path) as metrics:
        metrics.write(99, {"text": "after"})
    found = list(read_metrics(path))
    assert [line["text"] for line in found] == [*texts[:kept], "after"]


def test_a_cut_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a"')
    with caplog.at_level(logging.WARNING):
        Metrics(path).close()
    assert "cut off 4 bytes" in caplog.text


@pytest.mark.parametrize("bad", [b"{\n", b"[1]\n", b"\0\0\n", b"\xff\n"])
def test_damage_before_the_last_line_is_said(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"a": 1}\n' + bad + b'{"a": 2}\n')
    lines = read_metrics(path)
    assert next(lines) == {"a": 1}
    with pytest.raises(DatasetError, match=r"m.jsonl:2: expected a JSON object"):
        next(lines)


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    with Metrics(tmp_path / "m.jsonl") as metrics:

        def work(thread: int) -> None:
            for i in range(200):
                metrics.write(i, {"thread": thread, "text": "x" * thread * 50})

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = list(read_metrics(metrics.path))
    for thread in range(8):
        assert [x["env_steps"] for x in lines if x["thread"] == thread] == list(range(200))


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch) -> None:
    metrics = Metrics(tmp_path / "m.jsonl")
    metrics.write(1, {})
    real = metrics._file

    class Full:
        closed = False
        seek, truncate, close = real.seek, real.truncate, real.close
        room = 10

        def write(self, data: bytes) -> int:
            if not self.room:
                raise OSError(28, "No space left on device")
            written = real.write(data[: self.room])
            self.room = 0
            return written

    monkeypatch.setattr(metrics, "_file", Full())
    with pytest.raises(OSError, match="No space"):
        metrics.write(2, {})
    monkeypatch.setattr(metrics, "_file", real)
    metrics.write(3, {})
    metrics.close()
    assert [line["env_steps"] for line in read_metrics(metrics.path)] == [1, 3]
    assert all(json.loads(line) for line in metrics.path.read_text().splitlines())
