import json
import logging
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from rollout.config import WandbConfig
from rollout.data.tables import write_table
from rollout.errors import DatasetError
from rollout.observe import wandb_mirror
from rollout.observe.metrics import Image, Metrics, Table, Video
from rollout.observe.wandb_mirror import (
    ALIASES,
    JobType,
    Settings,
    WandbMirror,
    has_api_key,
    mirror_settings,
    read_rows,
    wandb_values,
)


def records(path: Path) -> Iterator[bytes]:
    """The records of a .wandb file: LevelDB's log format behind a header of seven bytes."""
    data = path.read_bytes()
    assert data[:4] == b":W&B"
    position, parts = 7, []
    while position + 7 <= len(data):
        left = 32_768 - position % 32_768
        if left < 7:
            position += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, position)
        part = data[position + 7 : position + 7 + length]
        if kind == 0 or len(part) < length:
            return
        position += 7 + length
        parts.append(part)
        if kind in (1, 4):  # whole, or the last part
            yield b"".join(parts)
            parts = []


def parsed(file: Path, kind: str) -> Iterator[Any]:
    """The records of one kind in a .wandb file."""
    from wandb.proto import wandb_internal_pb2

    for data in records(file):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == kind:
            yield getattr(record, kind)


def values(items: Iterable[Any]) -> dict[str, Any]:
    return {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}


def steps(directory: Path) -> list[list[dict[str, Any]]]:
    """What each offline run under a run directory would send: its steps, in order."""
    return [
        [{**values(history.item), "_step": history.step.num} for history in parsed(file, "history")]
        for file in sorted(directory.glob("wandb/offline-run-*/run-*.wandb"))
    ]


def settings(
    directory: Path, *, job_type: JobType = "collect", resume_count: int = 0, **more: object
) -> Settings:
    found = mirror_settings(
        WandbConfig(mode="offline", **more),  # type: ignore[arg-type]
        directory,
        "run-1",
        job_type=job_type,
        config={"seed": 3},
        resume_count=resume_count,
    )
    assert found is not None
    return found


def write(metrics: Metrics, first: int, count: int) -> list[int]:
    # Not in order, and the same twice: W&B would drop these if they were its steps.
    numbers = [(7 * (first + i)) % 50 for i in range(count)]
    for i, number in enumerate(numbers):
        metrics.write(
            number,
            {
                "episode/return": float(first + i),
                "episode/length": 5,
                "rate/steps_per_s": 2.5,
                "nothing": float("nan"),
                "mode": "x",
            },
        )
    return numbers


def wait_for(condition, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


@pytest.mark.process
def test_every_line_arrives_regardless_of_its_env_steps(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.jsonl")
    numbers = write(metrics, 0, 20)
    mirror = WandbMirror(metrics.path, settings(tmp_path))
    numbers += write(metrics, 20, 100)
    metrics.close()
    assert mirror.finish(deadline_s=60), (tmp_path / "wandb" / "mirror.log").read_text()
    assert not mirror.alive
    (rows,) = steps(tmp_path)
    assert [row["env_steps"] for row in rows] == numbers
    assert [row["_step"] for row in rows] == list(range(120))
    assert [row["charts/episodic_return"] for row in rows] == [float(i) for i in range(120)]
    assert rows[0]["charts/SPS"] == 2.5
    assert rows[0]["charts/episodic_length"] == 5
    assert "nothing" not in rows[0]


@pytest.mark.process
def test_the_newest_offline_run_of_a_resumed_run_has_all_of_it(tmp_path: Path) -> None:
    numbers: list[int] = []
    for session in range(2):
        with Metrics(tmp_path / "metrics.jsonl", constants={"resume_count": session}) as metrics:
            numbers += write(metrics, 10 * session, 10)
        sent = mirror_in_process(metrics.path, settings(tmp_path, resume_count=session))
        assert sent == 10 * (session + 1)
        wait_for(lambda: time.time() % 1 < 0.2)  # W&B names the folder after the second
    newest = max(steps(tmp_path), key=len)
    assert [row["env_steps"] for row in newest] == numbers
    assert [row["resume_count"] for row in newest] == [0] * 10 + [1] * 10
    names = [p.name for p in tmp_path.glob("wandb/offline-run-*/run-*.wandb")]
    assert names == ["run-run-1.wandb"] * 2


def mirror_in_process(path: Path, settings: Settings) -> int:
    """Mirrors in a process of its own: W&B leaves threads and open files behind."""
    program = (
        "import json, pathlib, sys, threading\n"
        "from rollout.observe.wandb_mirror import _mirror\n"
        "ended = threading.Event()\n"
        "ended.set()\n"
        "print(_mirror(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), ended))\n"
    )
    command = [sys.executable, "-c", program, str(path), json.dumps(settings)]
    run = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True)
    return int(run.stdout.split()[-1])


@pytest.mark.process
def test_a_mirror_that_hangs_is_killed_and_reported_once(tmp_path, caplog, monkeypatch) -> None:
    stand_in(tmp_path, monkeypatch, "import signal, time; time.sleep(600)")
    mirror = WandbMirror(tmp_path / "metrics.jsonl", settings(tmp_path))
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        assert not mirror.finish(deadline_s=0.5)
        assert not mirror.finish(deadline_s=0.5)
    assert time.monotonic() - began < 5
    assert not mirror.alive
    assert [m for m in caplog.messages if "did not finish within 0.5 s" in m] == caplog.messages
    assert len(caplog.messages) == 1
    assert "metrics.jsonl has everything" in caplog.text


@pytest.mark.process
def test_a_mirror_that_fails_is_reported_once_and_harms_nothing(
    tmp_path, caplog, monkeypatch
) -> None:
    stand_in(tmp_path, monkeypatch, "raise SystemExit('no W&B today')")
    with caplog.at_level(logging.WARNING), Metrics(tmp_path / "metrics.jsonl") as metrics:
        mirror = WandbMirror(metrics.path, settings(tmp_path))
        wait_for(lambda: caplog.messages)
        write(metrics, 0, 5)
        assert not mirror.finish()
    assert len(caplog.messages) == 1
    assert "ended with status 1" in caplog.text
    assert "no W&B today" in (tmp_path / "wandb" / "mirror.log").read_text()


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Puts another program in the mirror's place."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec {wandb_mirror.sys.executable} -c "{code}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(wandb_mirror.sys, "executable", str(program))


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path, caplog) -> None:
    (tmp_path / "wandb").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        mirror = WandbMirror(tmp_path / "metrics.jsonl", settings(tmp_path))
    assert not mirror.finish()
    assert len(caplog.messages) == 1


@pytest.mark.process
def test_a_mirror_whose_run_dies_finishes_by_itself(tmp_path: Path) -> None:
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        mirror = WandbMirror(metrics.path, settings(tmp_path))
        process = mirror._process
        assert process is not None
        assert process.stdin is not None
        wait_for(lambda: list(tmp_path.glob("wandb/offline-run-*/run-*.wandb")))
        os.kill(process.pid, signal.SIGTERM)  # as `ray job stop` does: it continues
        numbers = write(metrics, 0, 5)
        process.stdin.close()  # as when the run is killed
        assert process.wait(30) == 0
    (rows,) = steps(tmp_path)
    assert [row["env_steps"] for row in rows] == numbers


def test_following_waits_for_half_a_line_and_for_the_file(tmp_path: Path) -> None:
    path, ended, seen = tmp_path / "m.jsonl", threading.Event(), []
    thread = threading.Thread(target=lambda: seen.extend(wandb_mirror._follow(path, ended)))
    thread.start()
    path.write_bytes(b'{"a": 1}\n{"a"')
    with path.open("ab") as file:
        file.write(b': 2}\n{"a": 3')
    ended.set()
    thread.join(10)
    assert seen == [{"a": 1}, {"a": 2}]


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_bytes(b"{\n")
    ended = threading.Event()
    ended.set()
    with pytest.raises(DatasetError, match=r"m.jsonl:1"):
        list(wandb_mirror._follow(tmp_path / "m.jsonl", ended))


def test_aliases_stand_beside_our_names() -> None:
    assert wandb_values({"episode/return": 1.0, "x": None}) == {
        "episode/return": 1.0,
        "charts/episodic_return": 1.0,
    }
    assert wandb_values({"episode/return": None}) == {}
    ours = [name for name in ALIASES if name.startswith("train/")]
    ours += ["train/reference_kl", "train/update", "train/staleness"]
    losses = "value_loss policy_loss entropy approx_kl old_approx_kl clipfrac explained_variance"
    assert wandb_values(dict.fromkeys(ours, 0.5)) == dict.fromkeys(
        [*ours, "charts/learning_rate", *(f"losses/{name}" for name in losses.split())], 0.5
    )
    assert ALIASES["train/clip_fraction"] == "losses/clipfrac"
    assert all(
        alias.split("/")[1] == name.split("/")[1]
        for name, alias in ALIASES.items()
        if name.startswith("train/") and name != "train/clip_fraction"
    )


def media_in(directory: Path) -> dict[str, Video | Image | Table]:
    """A small video, picture and table in a run directory, by name."""
    frames = np.random.default_rng(0).integers(0, 255, (5, 32, 32, 3), np.uint8)
    video = cv2.VideoWriter(
        str(directory / "best.mp4"), cv2.VideoWriter.fourcc(*"mp4v"), 20, (32, 32)
    )
    for frame in frames:
        video.write(frame)
    video.release()
    cv2.imwrite(str(directory / "picture.png"), frames[0])
    numbers = np.arange(10_003)
    write_table(directory / "rows.parquet", {"n": numbers, "x": np.full(len(numbers), np.nan)})
    return {
        "videos/best": Video(directory / "best.mp4", fps=20, caption="the best"),
        "figures/gap": Image(directory / "picture.png"),
        "tables/rows": Table(directory / "rows.parquet"),
    }


def test_rows_are_plain_values(tmp_path: Path) -> None:
    table = {
        "state": np.array(["7", "ü", "9"]),
        "score": np.array([0.5, np.nan, np.inf]),
        "won": np.array([True, False, True]),
        "length": np.array([1, 2, 3], np.int64),
        "seed": np.array([1, 2**53 + 1, 3], np.int64),
        "low": np.array([1, 2, -(2**63)], np.int64),
    }
    write_table(tmp_path / "t.parquet", table)
    rows, total = read_rows(tmp_path / "t.parquet", most=2)
    assert list(zip(*rows.values(), strict=True)) == [
        ("7", 0.5, True, 1, "1", 1), ("ü", None, False, 2, "9007199254740993", 2),
    ]  # fmt: skip
    assert (list(rows), total) == (list(table), 3)
    whole, _ = read_rows(tmp_path / "t.parquet")
    assert [column[2] for column in whole.values()] == ["9", None, True, 3, "3", str(-(2**63))]
    write_table(tmp_path / "none.parquet", {"a": np.zeros(0)})
    assert read_rows(tmp_path / "none.parquet") == ({"a": []}, 0)


@pytest.mark.process
def test_media_arrive_in_their_step_and_those_that_cannot_harm_nothing(tmp_path: Path) -> None:
    good = media_in(tmp_path)
    (tmp_path / "gap.svg").write_text("<svg/>")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    bad = {
        "figures/svg": Image(tmp_path / "gap.svg"),
        "tables/torn": Table(tmp_path / "torn.parquet"),
        "videos/text": Video(tmp_path / "rows.parquet"),
        "videos/none": Video(tmp_path / "none.mp4"),
    }
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        metrics.write(1, {"a": 1})
        metrics.write(2, {"a": 2}, media={**bad, **good})
        metrics.write(3, {"a": 3})
    mirror = WandbMirror(metrics.path, settings(tmp_path))
    log = tmp_path / "wandb" / "mirror.log"
    assert mirror.finish(deadline_s=60), log.read_text()

    (rows,) = steps(tmp_path)
    assert [(row["_step"], row["a"], row["env_steps"]) for row in rows] == [
        (0, 1, 1), (1, 2, 2), (2, 3, 3),
    ]  # fmt: skip
    of_media = [name for row in rows for name in row if name.startswith(("videos", "fig", "tab"))]
    assert {name.rsplit("/", 1)[0] for name in of_media} == good.keys()
    assert {name: rows[1][f"{name}/_type"] for name in good} == {
        "videos/best": "video-file",
        "figures/gap": "image-file",
        "tables/rows": "table-file",
    }
    assert rows[1]["videos/best/caption"] == "the best"
    (run,) = tmp_path.glob("wandb/offline-run-*")
    files = {name: run / "files" / rows[1][f"{name}/path"] for name in good}
    assert files["videos/best"].read_bytes() == (tmp_path / "best.mp4").read_bytes()
    assert files["figures/gap"].read_bytes() == (tmp_path / "picture.png").read_bytes()
    table = json.loads(files["tables/rows"].read_text())
    assert table["columns"] == ["n", "x"]
    assert table["data"] == [[n, None] for n in range(10_000)]

    said = log.read_text()
    for name, media in bad.items():
        assert said.count(f"W&B does not show {name}, {media.path}: ") == 1
    assert "there is no such file" in said
    assert "W&B shows the first 10000 of the 10003 rows of tables/rows" in said
    (file,) = run.glob("*.wandb")
    summary = [values(record.update) for record in parsed(file, "summary")]
    assert {"tables/rows/rows_left_out": 3} in summary


@pytest.mark.process
def test_a_sweep_is_drawn_over_the_number_of_states(tmp_path: Path) -> None:
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        metrics.write(1, {"train/value_loss": 0.5, "train/update": 1})
        for n in (16, 64):
            line = {"sweep": {"n": n, "train": 0.9, "test": 0.5, "arm": "random"}}
            metrics.write(1, line)
    assert mirror_in_process(metrics.path, settings(tmp_path, job_type="sweep", group="g")) == 3
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    defined = list(parsed(file, "metric"))
    axes = {metric.name or metric.glob_name: metric.step_metric for metric in defined}
    assert axes["*"] == "env_steps"
    for name in ("train", "test", "arm"):
        assert axes[f"sweep/{name}"] == "sweep/n"
    assert not axes["sweep/n"]
    assert not axes["train/update"]
    # Of two matching patterns, one would be chosen at random.
    assert [metric.glob_name for metric in defined if metric.glob_name] == ["*"]
    (run,) = parsed(file, "run")
    assert (run.job_type, run.run_group) == ("sweep", "g")


def test_who_asks_for_no_mirror_gets_none(tmp_path: Path, monkeypatch, caplog) -> None:
    def made(mode: str) -> str | None:
        config = WandbConfig(mode=mode)  # type: ignore[arg-type]
        found = mirror_settings(config, tmp_path, "r", job_type="collect", config={})
        return found and found["mode"]

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("NETRC", raising=False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert made("disabled") is None
    assert made("offline") == "offline"
    assert made("auto") == "offline"
    assert not caplog.messages
    assert made("online") == "offline"
    assert "no API key" in caplog.text
    monkeypatch.setenv("WANDB_API_KEY", "x" * 40)
    assert made("online") == "online"
    assert made("auto") == "online"
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert made("auto") is None
    assert made("offline") == "offline"


def test_a_key_may_lie_in_netrc(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert not has_api_key()
    (tmp_path / "netrc").write_text("machine api.wandb.ai login user password abc\n")
    (tmp_path / "netrc").chmod(0o600)
    assert has_api_key()
    (tmp_path / "netrc").write_text("machine\n")
    assert not has_api_key()
