"""Pictures whose pixels are no bytes: shown in films, to models, to judges and to people."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from gymnasium import spaces
from store_fragments import Player, make_spec
from test_round_trip import record

from policies.human import _picture_column
from policies.vlm.options import History, Picture
from policies.vlm.pictures import Pictures
from rollout.api import Limits, Task, is_picture, pixels
from rollout.data import Dataset, Mp4
from rollout.evaluate.videos import check_pictures
from rollout.judge.config import FramesConfig
from rollout.judge.sources import DatasetSource
from rollout.testing import FakeBridge, FakeEvaluator

FLOATS = spaces.Box(0.0, 1.0, (32, 40, 3), np.float32)
WORDS = spaces.Box(0, 255, (32, 40, 3), np.int64)
KINDS = pytest.mark.parametrize(("leaf", "scale"), [(FLOATS, 255), (WORDS, 1)])


def game(leaf):
    return make_spec({"rgb": leaf, "compass": spaces.Box(-1, 1, (3,), np.float32)})


@pytest.mark.parametrize(
    ("leaf", "shown"),
    [
        (FLOATS, True),
        (WORDS, True),
        (spaces.Box(0, 62, (9, 9), np.uint8), True),
        (spaces.Box(0, 255, (4, 84, 84), np.float32), True),
        (spaces.Box(0, 62, (9, 9), np.int16), False),
        (spaces.Box(0, 1, (9, 9), np.int16), False),
        (spaces.Box(-1, 1, (9, 9), np.float32), False),
        (spaces.Box(0, 255, (7, 9), np.uint8), False),
        (spaces.Box(0, 255, (99,), np.uint8), False),
        (spaces.MultiBinary((9, 9)), False),
    ],
)
def test_bounds_and_shape_say_what_a_picture_is(leaf, shown):
    assert is_picture(leaf) is shown


def test_pixels_are_bytes_of_the_newest_frame():
    stack = spaces.Box(0, 1, (4, 8, 9), np.float64)
    value = np.zeros(stack.shape)
    value[-1, 0, :3] = 0.5, 1.0, 7.0
    assert pixels(stack, value)[0, :4].tolist() == [128, 255, 255, 0]
    own = np.arange(64, dtype=np.uint8).reshape(8, 8)
    assert pixels(spaces.Box(0, 255, (8, 8), np.uint8), own) is own


def rounded(pixels_, values):
    """Whether pixels are values rounded to whole numbers; halves may be rounded up or down."""
    return np.abs(pixels_.astype(np.float64) - values).max() <= 0.5 + 1e-4


@KINDS
def test_a_film_is_made_of_them(tmp_path, leaf, scale):
    record(tmp_path / "d", Player(game(leaf), longest=3), 3)
    with Dataset(tmp_path / "d") as dataset:
        [ref, *_] = dataset.episodes()
        assert Mp4().write(dataset, [ref], tmp_path / "film.mp4") == ref.length + 1
        first = dataset.read(ref).columns["observation/rgb"][0]
    capture = cv2.VideoCapture(str(tmp_path / "film.mp4"))
    _, frame = capture.read()
    capture.release()
    large = (np.asarray(first, float) * scale).repeat(8, 0).repeat(8, 1)
    assert np.abs(frame[: len(large), :, ::-1] - large).mean() < 20  # the codec loses some


@KINDS
def test_a_judge_sees_them(tmp_path, leaf, scale):
    record(tmp_path / "d", Player(game(leaf), longest=3), 3)
    with Dataset(tmp_path / "d") as dataset:
        source = DatasetSource(dataset, FramesConfig())
        ref = source.clips[0].ref
        [(_, file), *_] = source.frames(source.clips[0])
        first = dataset.read(ref).columns["observation/rgb"][0]
        if ref.length == 1:
            first = dataset.read(ref).final_observations["rgb"]
    seen = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert rounded(seen, first * float(scale))


@KINDS
def test_a_model_sees_them(leaf, scale):
    spec = game(leaf)
    pictures = Pictures(spec, History(images=1), Picture(column="rgb"))
    value = spec.observation_space["rgb"].sample()
    file = np.frombuffer(pictures.encode("rgb", value), np.uint8)
    assert rounded(cv2.imdecode(file, cv2.IMREAD_COLOR_RGB), value * float(scale))


@KINDS
def test_a_person_may_play_by_them(leaf, scale):
    assert _picture_column(game(leaf), "") == "rgb"
    assert pixels(leaf, np.full(leaf.shape, leaf.high.max())).min() == 255


@KINDS
def test_videos_may_show_them(leaf, scale):
    spec = replace(FakeBridge().spec, observation_space=spaces.Dict({"rgb": leaf}))
    bridge = type("Shown", (FakeBridge,), {"spec": spec})()
    task = Task("t", "", spec.state_space, FakeEvaluator(), Limits(5))
    check_pictures(spec, bridge, task, "rgb")
