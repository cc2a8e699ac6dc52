"""Minari's format, in both storages: its library reads an export, and its datasets are imported."""

import json

import numpy as np
import pytest
from formats_data import ACTIONS, PLAIN, STACKED, assert_same, make
from gymnasium import spaces

from rollout.api import AnyText
from rollout.data import Dataset
from rollout.data.formats import import_dataset
from rollout.data.formats.minari import FromMinari, ToMinari
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy

minari = pytest.importorskip("minari", reason="needs the extra formats")
TEXT = {"a/b": spaces.Box(-1, 1, (2,), np.float64), "words": AnyText(100)}


def exported(path, out, storage):
    with Dataset(path) as dataset:
        exporter = ToMinari(storage)
        return exporter.write(dataset, dataset.episodes(include_lost=True), out)


@pytest.mark.parametrize("storage", ["arrow", "hdf5"])
@pytest.mark.parametrize(
    ("observations", "actions", "options"),
    [
        (PLAIN, ACTIONS, {"details": True}),
        (STACKED, None, {"codec": "png"}),
        ({"observation": spaces.MultiBinary(5)}, TEXT, {}),
    ],
)
def test_an_export_becomes_the_same_dataset_again(
    tmp_path, storage, observations, actions, options
):
    make(tmp_path / "d", observations, actions, **options)
    count = exported(tmp_path / "d", tmp_path / "m-v0", storage)
    done = import_dataset(FromMinari(), tmp_path / "m-v0", tmp_path / "e", form="minari")
    assert (done.episodes, done.flaws) == (count, ())
    assert_same(tmp_path / "d", tmp_path / "e")


@pytest.mark.parametrize("storage", ["arrow", "hdf5"])
def test_minari_reads_an_export(tmp_path, storage, monkeypatch):
    make(tmp_path / "d", PLAIN, ACTIONS)
    exported(tmp_path / "d", tmp_path / "hunt-v3", storage)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    found = minari.load_dataset("hunt-v3")
    with Dataset(tmp_path / "d") as dataset:
        refs = dataset.episodes()
        assert found.total_steps == sum(ref.length for ref in refs)
        facts = list(found.storage.get_episode_metadata(range(len(refs))))
        assert [each["gamut_state"] for each in facts] == [str(ref.state) for ref in refs]
        for ref, episode in zip(refs, found.iterate_episodes(), strict=True):
            read = dataset.read(ref)
            rgb = episode.observations["rgb"]
            np.testing.assert_array_equal(rgb[:-1], read.columns["observation/rgb"])
            np.testing.assert_array_equal(rgb[-1], read.final_observations["rgb"])
            np.testing.assert_array_equal(episode.actions["keys"], read.columns["action/keys"])
            np.testing.assert_array_equal(episode.rewards, read.columns["reward"])
            ends = (bool(episode.terminations[-1]), bool(episode.truncations[-1]))
            assert ends == (ref.end == "terminated", ref.end == "truncated")


def test_the_folder_is_named_as_minari_names_datasets(tmp_path):
    make(tmp_path / "d")
    with pytest.raises(DatasetError, match=r"NAME-vN, got out; e\.g\. out-v0"):
        exported(tmp_path / "d", tmp_path / "out", "arrow")


def buffers(space, rewards):
    """Episodes as users of Minari make them."""
    from minari.data_collector import EpisodeBuffer

    rng = np.random.default_rng(0)
    for number, values in enumerate(rewards):
        count = len(values)
        yield EpisodeBuffer(
            id=number,
            seed=number,
            observations={
                "position": rng.random((count + 1, 2)).astype(np.float32),
                "nested": {"level": rng.integers(0, 5, count + 1)},
            },
            actions=rng.integers(0, 3, count),
            rewards=values,
            terminations=[False] * (count - 1) + [number != 2],
            truncations=[False] * count,
            infos={},
        )


@pytest.mark.filterwarnings("ignore::UserWarning")  # by Minari, of metadata
@pytest.mark.parametrize("storage", ["arrow", "hdf5"])
def test_datasets_of_others_are_imported_and_faults_are_named(tmp_path, storage, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    space = spaces.Dict(
        {"position": spaces.Box(0, 1, (2,)), "nested": spaces.Dict({"level": spaces.Discrete(5)})}
    )
    rewards = [[1.0, 0.5], [0.0, float("nan"), 1.0], [1.0], [2.0, 3.0, 4.0]]
    minari.create_dataset_from_buffers(
        "toy/walk-v0",
        list(buffers(space, rewards)),
        observation_space=space,
        action_space=spaces.Discrete(3),
        data_format=storage,
    )
    source = tmp_path / "toy/walk-v0"
    done = import_dataset(FromMinari(), source, tmp_path / "e", form="minari")
    assert [(flaw.episode, flaw.step) for flaw in done.flaws] == [(1, 1), (2, 0)]
    assert [f.problem.split(":")[0] for f in done.flaws] == ["the reward is nan", "has no end"]
    with Dataset(tmp_path / "e") as dataset:
        names = {"observation/position", "observation/nested/level", "action"}
        assert names <= set(dataset.columns)
        refs = dataset.episodes()
        assert [(ref.state, ref.seed) for ref in refs] == [(0, 0), (1, 3)]
        read = dataset.read(refs[1])
        assert read.columns["reward"].tolist() == [2.0, 3.0, 4.0]
        assert read.final_observations["position"].shape == (2,)


def test_damage_is_named(tmp_path):
    make(tmp_path / "d")
    exported(tmp_path / "d", tmp_path / "m-v0", "arrow")
    (part,) = (tmp_path / "m-v0/data/1").glob("*.arrow")
    part.write_bytes(b"nothing")
    done = import_dataset(FromMinari(), tmp_path / "m-v0", tmp_path / "e", form="minari")
    assert [flaw.episode for flaw in done.flaws] == [1]
    (tmp_path / "m-v0/data/metadata.json").write_text(json.dumps({}))
    with pytest.raises(DatasetError, match="no dataset of Minari"):
        import_dataset(FromMinari(), tmp_path / "m-v0", tmp_path / "f", form="minari")
