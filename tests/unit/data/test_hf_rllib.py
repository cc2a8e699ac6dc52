"""Exports for Hugging Face's datasets and for RLlib, opened with those libraries."""

import numpy as np
import pytest
from formats_data import PLAIN, STACKED, make
from gymnasium import spaces

from rollout.data import Dataset
from rollout.data.formats.hugging_face import HuggingFace
from rollout.data.formats.rllib import Rllib
from rollout.errors import DatasetError, UnknownNameError
from rollout.host.session import ray_session


def exported(exporter, path, out):
    with Dataset(path) as dataset:
        return exporter.write(dataset, dataset.episodes(include_lost=True), out)


@pytest.mark.parametrize("observations", [PLAIN, STACKED])
def test_datasets_loads_an_export(tmp_path, observations):
    from datasets import load_dataset

    make(tmp_path / "d", observations, details=True)
    count = exported(HuggingFace(), tmp_path / "d", tmp_path / "hf")
    options = {"cache_dir": str(tmp_path / "cache")}
    steps = load_dataset(str(tmp_path / "hf"), **options)
    episodes = load_dataset(str(tmp_path / "hf"), "episodes", **options)
    assert sum(len(split) for split in episodes.values()) == count
    with Dataset(tmp_path / "d") as dataset:
        assert set(steps) == set(episodes) == {"train", "test"}
        for part, rows in steps.items():
            refs = dataset.episodes(part=part)
            facts = episodes[part]
            assert facts["state"][:] == [str(ref.state) for ref in refs]
            assert facts["end"][:] == [ref.end for ref in refs]
            assert set(facts["state_space"]) == {dataset.manifest.state_space.digest}
            read = [dataset.read(ref).columns for ref in refs]
            for key in observations:
                name = f"observation/{key}"
                want = np.concatenate([columns[name] for columns in read])
                got = np.stack([np.asarray(value) for value in rows[name]])
                np.testing.assert_array_equal(got, want, name)
            want = np.concatenate([columns["reward"] for columns in read])
            np.testing.assert_array_equal(np.array(rows["reward"][:], np.float32), want)


def test_rllib_needs_one_observation(tmp_path):
    make(tmp_path / "d")
    with pytest.raises(DatasetError, match="--set column=NAME"):
        exported(Rllib(), tmp_path / "d", tmp_path / "out")
    with pytest.raises(UnknownNameError, match="observation/rgb"):
        exported(Rllib("rgb"), tmp_path / "d", tmp_path / "out")


# RLlib 2.60 sets options that Ray Data retired.
@pytest.mark.filterwarnings("ignore:.use_[a-z0-9_]+. is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The minimum number of concurrent actors:UserWarning")
@pytest.mark.ray
@pytest.mark.long
@pytest.mark.parametrize("key", ["position", "rgb"])
def test_rllib_clones_a_policy_from_an_export(tmp_path, key):
    import ray
    from ray.rllib.algorithms.bc import BCConfig

    make(tmp_path / "d", {key: spaces.Box(-1, 1, (3,)) if key == "position" else PLAIN["rgb"]})
    count = exported(Rllib(), tmp_path / "d", tmp_path / "out")
    # RLlib reads by two actors beside its tasks; with fewer CPUs it waits for ever.
    with ray_session(num_cpus=8):
        rows = ray.data.read_parquet(str(tmp_path / "out/data")).take_all()
        assert len(rows) == count
        with Dataset(tmp_path / "d") as dataset:
            refs = dataset.episodes()
            name = f"observation/{key}"
            want = np.concatenate([dataset.read(ref, [name]).columns[name] for ref in refs])
            space = dataset.manifest.observation_space[key]
            action = dataset.manifest.action_space["action"]
        rows.sort(
            key=lambda row: (
                [f"{r.episode}-{r.attempt}" for r in refs].index(row["eps_id"]),
                row["t"],
            )
        )
        np.testing.assert_array_equal(np.stack([row["obs"] for row in rows]), want)
        assert {row["infos"]["end"] for row in rows} == {"terminated", "truncated"}
        if key == "position":
            config = BCConfig().environment(observation_space=space, action_space=action)
            config.offline_data(
                input_=[str(tmp_path / "out/data")], dataset_num_iters_per_learner=1
            )
            config.training(train_batch_size_per_learner=32)
            algorithm = config.build_algo()
            assert algorithm.train()["learners"]
            algorithm.stop()
