"""An episode played again: the words below its pictures."""

import itertools
import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from gymnasium import spaces
from store_fragments import Player, frames, make_manifest, make_spec
from test_round_trip import record

from rollout.data import Dataset, Layout, Mp4, play_text
from rollout.data.manifest import Manifest
from rollout.data.replay import _captioned, _cut, _rows, _wrapped
from rollout.errors import DatasetError

KEYS = ("attack", "back", "forward")
LABELS = {"keys": KEYS, "camera": ("pitch", "yaw")}
ACTIONS = {"keys": spaces.MultiBinary(3), "camera": spaces.MultiDiscrete([11, 11])}
WHITE = (255, 255, 255)


def labelled(height=32, width=40):
    spec = make_spec({"rgb": frames(height, width, 3)}, ACTIONS)
    return replace(spec, action_labels=LABELS)


@pytest.fixture
def dataset(tmp_path):
    record(tmp_path / "d", Player(labelled(360, 640), longest=5), 3)
    with Dataset(tmp_path / "d") as opened:
        yield opened


def bands(video, height):
    """What is below each picture, brightness only."""
    capture, found = cv2.VideoCapture(str(video)), []
    while True:
        there, frame = capture.read()
        if not there:
            capture.release()
            return found
        found.append(frame[height:].astype(int).mean(2))


@pytest.mark.heavy
def test_labels_travel_with_the_dataset(dataset):
    assert dataset.manifest.action_labels == LABELS
    assert Manifest.from_json(dataset.manifest.to_json()).action_labels == LABELS


def test_a_dataset_from_before_there_were_labels_opens(tmp_path):
    record(tmp_path / "d", Player(make_spec({"rgb": frames(32, 40, 3)})), 2)
    path = Layout(tmp_path / "d").manifest
    data = json.loads(path.read_text())
    del data["action_labels"]
    path.write_text(json.dumps(data))
    with Dataset(tmp_path / "d") as opened:
        assert opened.manifest.action_labels == {}
        assert list(play_text(opened, opened.episodes()[0]))


def test_labels_that_do_not_fit_are_no_dataset():
    data = json.loads(make_manifest(labelled()).to_json())
    data["action_labels"]["keys"] = ["attack"]
    with pytest.raises(DatasetError, match="expected 3 names"):
        Manifest.from_json(json.dumps(data))


@pytest.mark.heavy
def test_text_has_the_action_in_words(dataset):
    ref = dataset.episodes()[0]
    bits = dataset.read(ref).columns["action/keys"][0]
    held = "+".join(name for name, on in zip(KEYS, bits, strict=True) if on) or "nothing"
    first = next(iter(play_text(dataset, ref)))
    assert f"action={held}  pitch " in first


@pytest.mark.heavy
def test_captions_follow_the_steps(dataset, tmp_path):
    ref = dataset.episodes()[0]
    out = tmp_path / "e.mp4"
    assert Mp4().write(dataset, [ref], out) == ref.length + 1
    shown = bands(out, 360)
    assert len(shown) == ref.length + 1
    assert shown[0].shape == (3 * 20 + 8, 640)  # goal, action, reward; the picture is not enlarged
    goal, action, told = (slice(top, top + 20) for top in (4, 24, 44))
    for before, after in itertools.pairwise(shown):
        assert abs(before[goal] - after[goal]).mean() < 2  # it stays, the codec is lossy
        assert abs(before[told] - after[told]).max() > 60  # the number of the step is another
    keys = dataset.read(ref).columns["action/keys"]
    changed = np.flatnonzero((keys[1:] != keys[:-1]).any(1))
    assert changed.size
    for t in changed.tolist():
        assert abs(shown[t][action] - shown[t + 1][action]).max() > 60


def test_the_caption_says_what_it_is_given():
    image = np.zeros((32, 40, 3), np.uint8)
    blank = _captioned(image, "", ("", WHITE), ("", WHITE))
    assert blank.shape == (256 + 88, 320, 3)
    said = _captioned(image, "", ("forward", WHITE), ("", WHITE))
    other = _captioned(image, "", ("back", WHITE), ("", WHITE))
    assert (said != blank).any()
    assert (said != other).any()
    assert (said[:256] == blank[:256]).all()
    assert _captioned(image, "Hunt a cow. " * 9, ("", WHITE)).shape[0] > 256 + 3 * 20


@pytest.mark.parametrize(("height", "width"), [(64, 64), (128, 128), (72, 128), (360, 640)])
def test_captions_are_whole_and_keep_their_size(height, width):
    image = np.zeros((height, width, 3), np.uint8)
    said = "step=1234  reward=-0.125  sum=123.875"
    held = "back+forward+sneak+attack  pitch -0.615 yaw 14.25"
    frame = _captioned(image, "Hunt a cow.", (held, WHITE), (said, WHITE))
    assert frame.shape == _captioned(image, "Hunt a cow.", ("", WHITE), ("", WHITE)).shape
    assert not frame[:, -4:].any()
    for text in (held, said):
        rows = _rows(text, frame.shape[1], 2)
        assert len(rows) == 2
        assert " ".join(rows).replace("+ ", "+").split() == text.split()


def test_characters_of_numbers_do_not_touch():
    frame = _captioned(np.zeros((256, 640, 3), np.uint8), "", ("-3.25", WHITE))
    parts, _ = cv2.connectedComponents((frame[256:, :, 0] > 60).astype(np.uint8), connectivity=4)
    assert parts - 1 == len("-3.25")


def test_what_is_too_long_for_its_lines_is_cut():
    rows = _rows("forward+" * 40, 256, 2)
    assert rows[0].endswith("forward+")
    assert rows[1].endswith("...")
    assert _rows("short", 256, 2) == ["short", ""]


def test_long_lines_are_cut_and_goals_wrapped():
    assert _cut("forward", 320) == "forward"
    cut = _cut("forward+" * 40, 320)
    assert cut.endswith("...")
    assert 10 < len(cut) < 60
    words = "Collect a diamond. You need an iron pickaxe for it, and so wood and a furnace first."
    lines = _wrapped(words, 320)
    assert len(lines) > 1
    assert " ".join(lines) == words
