"""Archives of transitions become datasets; what is wrong in them is named."""

import h5py
import numpy as np
import pytest

from rollout.data import Dataset
from rollout.data.formats import import_dataset
from rollout.data.formats.gymnasium import FromGymnasium
from rollout.errors import DatasetError


def transitions(**changes):
    rng = np.random.default_rng(0)
    values = rng.random((9, 4)).astype(np.float32)
    arrays = {
        "observations": values,
        "actions": np.array([0, 1, 1, 0, 1, 0, 0, 1, 1]),
        "rewards": np.ones(9),
        "terminals": np.isin(np.arange(9), (2,)),
        "timeouts": np.isin(np.arange(9), (5, 8)),
        "next_observations": values + 1,
    }
    return {name: v for name, v in (arrays | changes).items() if v is not None}


def imported(tmp_path, arrays, suffix=".npz", **options):
    path = tmp_path / f"walk{suffix}"
    if suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, values in arrays.items():
                file[name] = values
    return import_dataset(FromGymnasium(**options), path, tmp_path / "d", form="gymnasium")


@pytest.mark.parametrize("suffix", [".npz", ".hdf5"])
def test_an_archive_is_imported(tmp_path, suffix):
    arrays = transitions()
    done = imported(tmp_path, arrays, suffix, env_id="CartPole-v1")
    assert (done.episodes, done.steps, done.flaws) == (3, 9, ())
    with Dataset(tmp_path / "d") as dataset:
        refs = dataset.episodes()
        assert [ref.end for ref in refs] == ["terminated", "truncated", "truncated"]
        read = [dataset.read(ref) for ref in refs]
        for name, array in (("observation", "observations"), ("action", "actions")):
            together = np.concatenate([each.columns[name] for each in read])
            np.testing.assert_array_equal(together, arrays[array])
        last = read[0].final_observations["observation"]
        np.testing.assert_array_equal(last, arrays["next_observations"][2])
        assert str(dataset.manifest.action_space["action"]) == "Discrete(2)"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"actions": np.array([0, 1, 1, 0, 7, 0, 0, 1, 1])}, (1, 1, "outside Discrete(2)")),
        ({"rewards": np.where(np.arange(9) == 8, np.nan, 1.0)}, (2, 2, "the reward is nan")),
        ({"timeouts": np.arange(9) == 5}, (2, 2, "has no end")),
    ],
)
def test_faults_are_named_and_the_rest_is_kept(tmp_path, changes, fault):
    done = imported(tmp_path, transitions(**changes), env_id="CartPole-v1")
    (flaw,) = done.flaws
    assert (flaw.file, flaw.episode, flaw.step) == ("walk.npz", *fault[:2])
    assert fault[2] in flaw.problem
    assert done.episodes == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": None}, "lacks rewards; it has actions"),
        ({"rewards": np.ones(4)}, "arrays of one length"),
        ({"terminals": None, "timeouts": None}, "no episode has an end"),
        ({"actions": np.array([None] * 9)}, "cannot read"),
    ],
)
def test_an_archive_that_is_none_is_refused(tmp_path, changes, said):
    with pytest.raises(DatasetError, match=said):
        imported(tmp_path, transitions(**changes))
