import json
import logging
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.errors import DatasetError, OutOfTurnError
from rollout.observe.metrics import Image, Metrics, Table, Video, flatten, parse_line, read_metrics


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
        ({"env_steps": 1}, ValueError, "env_steps: a line has its own"),
        ({"time": 1}, ValueError, "time: a line has its own"),
        ({"media": 1}, ValueError, "media: a line has its own"),
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
def test_damage_before_the_last_line_is_reported(tmp_path: Path, bad: bytes) -> None:
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
    real = metrics._file._file

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

    monkeypatch.setattr(metrics._file, "_file", Full())
    with pytest.raises(OSError, match="No space"):
        metrics.write(2, {})
    monkeypatch.setattr(metrics._file, "_file", real)
    metrics.write(3, {})
    metrics.close()
    assert [line["env_steps"] for line in read_metrics(metrics.path)] == [1, 3]
    assert all(json.loads(line) for line in metrics.path.read_text().splitlines())


def put(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return [folder / name for name in names]


def test_a_line_names_its_media_and_the_folder_can_be_moved(tmp_path: Path, monkeypatch) -> None:
    video, image, table = put(tmp_path / "run", "videos/7.mp4", "gap.png", "rows.parquet")
    monkeypatch.chdir(tmp_path)  # paths are as the caller's process understands them
    with Metrics(tmp_path / "run" / "metrics.jsonl") as metrics:
        media = {
            "videos/best": Video(video.relative_to(tmp_path), fps=20, caption="best"),
            "figures/gap": Image(image),
            "tables/rows": Table(table),
        }
        metrics.write(7, {"a": 1}, media=media)
        metrics.write(8, {"a": 2})
    first, second = (json.loads(line) for line in metrics.path.read_text().splitlines())
    assert first["media"] == {
        "videos/best": {"kind": "video", "path": "videos/7.mp4", "fps": 20, "caption": "best"},
        "figures/gap": {"kind": "image", "path": "gap.png"},
        "tables/rows": {"kind": "table", "path": "rows.parquet"},
    }
    assert "media" not in second

    moved = (tmp_path / "run").rename(tmp_path / "elsewhere")
    lines = list(read_metrics(moved / "metrics.jsonl"))
    assert lines[0].media == {
        "videos/best": Video(moved / "videos/7.mp4", 20, "best"),
        "figures/gap": Image(moved / "gap.png"),
        "tables/rows": Table(moved / "rows.parquet"),
    }
    assert all(item.path.is_file() for item in lines[0].media.values())
    assert [line["a"] for line in lines] == [1, 2]
    assert not lines[1].media
    assert all(set(line) == {"time", "wall_s", "env_steps", "a"} for line in lines)


def test_a_value_called_media_in_an_older_line_is_a_value(tmp_path: Path) -> None:
    line = parse_line(b'{"media": 3, "b": 1}', "m:1", tmp_path)
    assert line == {"media": 3, "b": 1}
    assert line.media == {}


@pytest.mark.parametrize(
    ("media", "error", "message"),
    [
        ({"v": "a.mp4"}, TypeError, "media 'v': expected a Video, an Image or a Table, got str"),
        ({"": Image(Path("a.png"))}, ValueError, "expected a name for the media"),
        ({"a": Image(Path("a.png"))}, ValueError, "a: a value has this name"),
        ({"resume_count": Image(Path("a.png"))}, ValueError, "resume_count: a value has this name"),
        ({"v": Image(Path("../a.png"))}, ValueError, "'v': expected a file in .*/run, .*/a.png"),
    ],
)
def test_wrong_media_are_refused_and_leave_no_line(
    tmp_path, monkeypatch, media, error, message
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    with (
        Metrics(tmp_path / "run" / "m.jsonl", constants={"resume_count": 0}) as metrics,
        pytest.raises(error, match=message),
    ):
        metrics.write(0, {"a": 1}, media=media)
    assert metrics.path.read_bytes() == b""


def test_media_that_are_not_there_are_a_warning(tmp_path: Path, caplog) -> None:
    with caplog.at_level(logging.WARNING), Metrics(tmp_path / "m.jsonl") as metrics:
        metrics.write(1, {}, media={"v": Video(tmp_path / "v.mp4")})
    assert f"media 'v': there is no file {tmp_path / 'v.mp4'}" in caplog.text
    (line,) = read_metrics(metrics.path)
    assert line.media == {"v": Video(tmp_path / "v.mp4")}


def test_the_working_time_continues_in_the_next_session_without_the_pause(tmp_path):
    for session, times in enumerate([(100.0, 107.0), (500.0, 503.0)]):
        clock = iter(times)
        with Metrics(
            tmp_path / "m.jsonl",
            constants={"resume_count": session},
            clock=lambda: next(clock),  # noqa: B023 - used up before the next one
        ) as metrics:
            metrics.write(session, {})
    assert [line["wall_s"] for line in read_metrics(tmp_path / "m.jsonl")] == [7.0, 10.0]


@pytest.mark.parametrize(
    ("until", "kept"),
    [
        (None, [0, 16, 32, 32, 48]),
        (-1, []),
        (0, [0]),
        (31, [0, 16]),
        (32, [0, 16, 32, 32]),
        (48, [0, 16, 32, 32, 48]),
    ],
)
def test_steps_after_the_checkpoint_have_one_line_when_they_are_made_again(tmp_path, until, kept):
    path, times = tmp_path / "m.jsonl", iter(range(100))
    with Metrics(path, clock=lambda: next(times)) as metrics:
        for steps in (0, 16, 32, 32, 48):  # a validation has a line of its own
            metrics.write(steps, {})
    with Metrics(path, clock=lambda: next(times), until=until) as metrics:
        metrics.write(64, {})
    lines = list(read_metrics(path))
    assert [line["env_steps"] for line in lines] == [*kept, 64]
    assert lines[-1]["wall_s"] == 6.0  # removed lines count as work: they took their time


def test_a_damaged_line_does_not_keep_the_steps_behind_it(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"env_steps": 1}\n\xff\n[2]\n{"env_steps": "x"}\n{"env_steps": 3}\n')
    Metrics(path, until=2).close()
    assert path.read_bytes() == b'{"env_steps": 1}\n\xff\n[2]\n{"env_steps": "x"}\n'
