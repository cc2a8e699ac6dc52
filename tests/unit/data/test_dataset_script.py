"""The command line of datasets."""

import os
import subprocess
import sys

import cv2
import pytest
from gymnasium import spaces
from store_fragments import Player, frames, make_spec
from test_round_trip import record

from rollout.commands import dataset as script
from rollout.data import Dataset, Layout

pytestmark = pytest.mark.heavy


@pytest.fixture
def images(tmp_path):
    player = Player(make_spec({"observation": frames(32, 40, 3)}))
    record(tmp_path / "d", player, 4)
    return tmp_path / "d"


def test_info(images, capsys):
    assert script.main(["info", str(images)]) == 0
    text = capsys.readouterr().out
    for part in (
        "fake, task hunt",
        "terminated",
        "bytes/step",
        "uint8[32, 40, 3]",
        "[nats] log-prob",
    ):
        assert part in text


@pytest.mark.process
def test_a_reader_that_stops_early_is_no_error(images):
    command = [sys.executable, "-m", "scripts.dataset", "info", str(images)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        reading.stdout.close()  # as head does
        assert reading.stderr.read() == b""
    assert reading.returncode == 0


def test_doctor_and_repair(images, capsys):
    assert script.main(["doctor", str(images)]) == 0
    assert "clean; 1 shards, 52 steps" in capsys.readouterr().out
    os.truncate(Layout(images).data(0), 100)
    assert script.main(["doctor", str(images)]) == 3
    assert "error: data/shard-000000.parquet" in capsys.readouterr().out
    assert script.main(["repair", str(images)]) == 0
    assert "moved 3 files to quarantine" in capsys.readouterr().out
    assert script.main(["doctor", str(images)]) == 0


def test_play(images, capsys, tmp_path):
    ref = Dataset(images).episodes()[0]
    out = tmp_path / "e.mp4"
    assert script.main(["play", str(images), str(ref.episode), "--out", str(out)]) == 0
    assert f"{ref.length + 1} frames" in capsys.readouterr().out
    video = cv2.VideoCapture(str(out))
    assert int(video.get(cv2.CAP_PROP_FRAME_COUNT)) == ref.length + 1
    assert video.read()[1].shape[:2] == (256 + 108, 320)  # goal, twice action, reward
    video.release()


@pytest.mark.parametrize("shape", [(4, 20, 24), (2, 20, 24, 3)])
def test_of_a_stack_of_frames_the_newest_is_played(tmp_path, capsys, shape):
    player = Player(make_spec({"observation": frames(*shape)}))
    record(tmp_path / "d", player, 4)
    with Dataset(tmp_path / "d") as dataset:
        ref = dataset.episodes()[0]
        newest = dataset.read(ref).columns["observation"][0][-1]
    out = tmp_path / "e.mp4"
    assert script.main(["play", str(tmp_path / "d"), str(ref.episode), "--out", str(out)]) == 0
    video = cv2.VideoCapture(str(out))
    shown = video.read()[1][: 20 * 13, : 24 * 13].astype(float)
    video.release()
    # The codec is lossy and enlarging is exact: compare cell by cell, on average.
    cells = shown.reshape(20, 13, 24, 13, 3).mean((1, 3, 4))
    expected = newest.astype(float) if newest.ndim == 2 else newest.astype(float).mean(2)
    assert abs(cells - expected).mean() < 12


@pytest.fixture
def numbers(tmp_path):
    player = Player(make_spec({"position": spaces.Box(-1, 1, (2,))}))
    record(tmp_path / "run" / "dataset", player, 4)
    return tmp_path / "run" / "dataset"


def test_play_without_a_file_is_text(numbers, capsys):
    ref = Dataset(numbers).episodes()[0]
    assert script.main(["play", str(numbers), str(ref.episode)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == ref.length + 1
    assert lines[0].startswith("step 0: observation/position=[")


def test_a_video_of_a_dataset_without_images_is_refused(numbers, capsys, tmp_path):
    out = tmp_path / "x.mp4"
    assert script.main(["play", str(numbers), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "no images to make a video of; its observations are observation/position" in error
    assert "without --out" in error
    assert not out.exists()


@pytest.mark.parametrize("command", ["info", "doctor", "repair", "play"])
def test_the_dataset_of_a_run_directory_is_found(numbers, capsys, command):
    said = []
    for path in (numbers, numbers.parent):
        assert script.main([command, str(path)]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""
    assert sorted(p.name for p in numbers.parent.iterdir()) == ["dataset"]


def test_a_filter_selects_episodes(numbers, capsys, tmp_path):
    with Dataset(numbers) as dataset:
        long = [ref for ref in dataset.episodes() if ref.length > 9]
    out = tmp_path / "a.npz"
    assert script.main(["info", str(numbers), "--filter", "length > 9"]) == 0
    assert f", of which {len(long)} are results" in capsys.readouterr().out
    arguments = ["actions", str(numbers), "--filter", "length > 9", "--out", str(out)]
    assert script.main(arguments) == 0
    assert f"actions of {len(long)} episodes" in capsys.readouterr().out
    assert script.main(["info", str(numbers), "--filter", "lenght > 9"]) == 2
    assert "Nearest: length" in capsys.readouterr().err


def test_actions_of_a_run_directory_are_exported(numbers, tmp_path):
    for path, name in ((numbers, "a.npz"), (numbers.parent, "b.npz")):
        assert script.main(["actions", str(path), "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "{tmp}/nowhere"], "holds no dataset"),
        (["doctor", "{tmp}/nowhere"], "holds no dataset"),
        (["repair", "{tmp}/nowhere"], "holds no dataset"),
        (["play", "{tmp}/d", "999"], "no episode 999 has ended"),
        (
            ["play", "{tmp}/d", "{first}", "--column", "x", "--out", "{tmp}/x.mp4"],
            "image column 'x'",
        ),
        (["play", "{tmp}/d", "{first}", "--out", "{tmp}/no/x.mp4"], "cannot write a video"),
    ],
)
def test_bad_input_is_one_line_and_status_2(images, capsys, arguments, message):
    first = Dataset(images).episodes()[0].episode
    filled = [a.format(tmp=images.parent, first=first) for a in arguments]
    assert script.main(filled) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_episode_that_has_ended_is_not_called_running(numbers, capsys):
    assert script.main(["info", str(numbers)]) == 0
    assert script.main(["play", str(numbers)]) == 0
    said = capsys.readouterr().out
    assert "undecided" in said
    assert "running" not in said.replace("0 running, 1 success", "")
