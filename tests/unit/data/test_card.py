"""The card of a dataset: Hugging Face reads the folder by it, and people its example."""

import json
import re

import datasets
import numpy as np
import pytest
from gymnasium import spaces
from store_fragments import Player, frames, make_manifest, make_spec
from test_round_trip import record

from rollout.commands import dataset as script
from rollout.data import Dataset, DatasetWriter, doctor, repair

pytestmark = pytest.mark.heavy


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def recorded(folder, observations, codec="raw", **more):
    player = Player(make_spec(observations))
    record(folder, player, 4, manifest=make_manifest(player.spec, codec=codec), **more)
    return player


def test_a_folder_is_loaded_by_hugging_face(tmp_path):
    recorded(tmp_path / "d", {"position": spaces.Box(-1, 1, (2,))}, shard_bytes=2000)
    dataset = Dataset(tmp_path / "d")
    steps = datasets.load_dataset(str(tmp_path / "d"), split="train")
    episodes = datasets.load_dataset(str(tmp_path / "d"), "episodes", split="train")
    assert len(steps) == dataset.counts.steps
    assert episodes.features["end"].dtype == "string"
    rewards = dict.fromkeys(episodes["episode"], 0.0)
    for episode, reward in zip(steps["episode"], steps["reward"], strict=True):
        if episode in rewards:
            rewards[episode] += reward
    assert list(rewards.values()) == pytest.approx(list(episodes["total_reward"]))
    assert sorted(episodes["episode"]) == sorted(dataset.index.column("episode").to_pylist())


@pytest.mark.parametrize(
    ("codec", "shape"),
    [
        ("png", (9, 8, 3)),
        ("png", (9, 8, 4)),
        ("png", (9, 8)),
        ("webp", (9, 8, 3)),
        ("webp", (9, 8)),
        ("raw", (9, 8, 3)),
        ("png", (2, 9, 8, 3)),
    ],
)
def test_its_example_decodes_a_picture(tmp_path, codec, shape):
    recorded(tmp_path / "d", {"rgb": frames(*shape)}, codec)
    code = re.findall(r"```python\n(.*?)```", (tmp_path / "d/README.md").read_text(), re.DOTALL)
    names = {"folder": str(tmp_path / "d")}
    for block in code:
        exec(block, names)
    row = names["step"]
    dataset = Dataset(tmp_path / "d")
    (ref,) = [r for r in dataset.episodes(include_lost=True) if r.episode == row["episode"]][:1]
    expected = dataset.read(ref).columns["observation/rgb"][row["step"]]
    np.testing.assert_array_equal(names.get("image", names.get("array")), expected)


def test_it_tells_people_what_there_is(tmp_path):
    recorded(tmp_path / "d", {"rgb": frames(9, 8, 3)}, "png")
    text = (tmp_path / "d/README.md").read_text()
    assert "# hunt in fake" in text
    assert "Hunt a cow." in text
    assert "| `extra/logp` | float32 | nats | log-probability |" in text
    assert "| `observation/rgb` | uint8[9, 8, 3], stored as png |" in text


def test_what_people_wrote_is_kept_and_no_damage(tmp_path):
    player = recorded(tmp_path, {"position": spaces.Box(-1, 1, (2,))})
    (tmp_path / "README.md").write_text("mine")
    with DatasetWriter(tmp_path, make_manifest(player.spec)):
        pass
    assert doctor(tmp_path).clean
    assert repair(tmp_path).done == ()
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize(("codec", "lossy"), [("jpeg:90", True), ("png", False)])
def test_loss_is_announced(tmp_path, caplog, capsys, codec, lossy):
    recorded(tmp_path / "d", {"rgb": frames(9, 8, 3)}, codec)
    warned = "observation/rgb is stored with loss, as jpeg:90"
    assert (warned in caplog.text) == lossy
    data = json.loads((tmp_path / "d/dataset.json").read_text())
    told = {c["name"] for c in data["columns"] if c["lossy"]}
    assert told == ({"observation/rgb", "final_observation/rgb"} if lossy else set())
    assert ("stored as jpeg:90 with loss" in (tmp_path / "d/README.md").read_text()) == lossy
    assert script.main(["info", str(tmp_path / "d")]) == 0
    assert ("before the action, stored with loss" in capsys.readouterr().out) == lossy
