"""Reads the same steps with the library of another format; ``datasets`` runs it, and sums up.

It needs that library and NumPy only, and nothing of Gamut: LeRobot has an environment of its own.
Prints a line of JSON: rates per second of processor time, and versions.

    python -P dataset_peers.py READER FOLDER SECONDS LENGTH
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from pathlib import Path

import numpy as np


class HuggingFace:
    """``datasets``: images as ``Image`` (PNG files), from Parquet."""

    packages = ("datasets",)
    frame = "observation"

    def __init__(self, folder):
        import datasets

        datasets.disable_progress_bars()
        cache = str(folder / ".cache")
        self.rows = datasets.load_dataset(str(folder), split="train", cache_dir=cache)
        self.lengths = np.bincount(np.unique(self.rows["episode"], return_inverse=True)[1])
        self.rows = self.rows.select_columns([self.frame, "action", "reward"]).with_format("numpy")

    def read(self, episode, start, row, length):
        """Frames, actions and rewards of some steps; ``row`` is the first one's number."""
        got = self.rows[row : row + length]
        return np.stack(got[self.frame]), got["action"], got["reward"]

    def epoch(self):
        """Yields the frames of every episode."""
        at = 0
        for length in self.lengths.tolist():
            yield self.read(0, 0, at, length)[0]
            at += length


class HuggingFaceArrays(HuggingFace):
    """``datasets``: images as ``Array3D``, from the Arrow files that the library writes itself."""

    def __init__(self, folder):
        import datasets

        datasets.disable_progress_bars()
        if not (folder / "made").exists():
            self._make(folder, datasets)
        self.rows = datasets.load_from_disk(str(folder / "made"))
        self.lengths = np.bincount(np.unique(self.rows["episode"], return_inverse=True)[1])
        self.rows = self.rows.select_columns([self.frame, "action", "reward"]).with_format("numpy")

    def _make(self, folder, datasets):
        steps = np.load(folder / "steps.npz")
        steps = {name: steps[name] for name in steps.files}
        features = datasets.Features(
            {
                self.frame: datasets.Array3D(steps[self.frame].shape[1:], "uint8"),
                "action": datasets.Value("int64"),
                "reward": datasets.Value("float32"),
                "episode": datasets.Value("int64"),
            }
        )

        def rows():
            for row in range(len(steps["reward"])):
                yield {name: values[row] for name, values in steps.items()}

        cache = str(folder / ".cache")
        made = datasets.Dataset.from_generator(rows, features=features, cache_dir=cache)
        made.save_to_disk(str(folder / "made"))


class Minari:
    """``minari``: a window is a part of an episode, which is read whole."""

    packages = ("minari",)

    def __init__(self, folder):
        import minari
        from minari.dataset.minari_storage import MinariStorage

        self.data = minari.MinariDataset(MinariStorage.read(folder / "data"))
        self.lengths = np.array([len(e.rewards) for e in self.data.iterate_episodes()])

    def read(self, episode, start, row, length):
        (found,) = self.data.iterate_episodes([episode])
        part = slice(start, start + length)
        frames = np.array(found.observations[part])
        return frames, np.array(found.actions[part]), np.array(found.rewards[part])

    def epoch(self):
        for episode in self.data.iterate_episodes():
            yield np.asarray(episode.observations[:-1])


class MinariSliced(Minari):
    """The HDF5 file of Minari, of which ``h5py`` reads the part."""

    packages = ("minari", "h5py")

    def __init__(self, folder):
        super().__init__(folder)
        import h5py

        self.file = h5py.File(folder / "data" / "main_data.hdf5")

    def read(self, episode, start, row, length):
        group, part = self.file[f"episode_{episode}"], slice(start, start + length)
        return tuple(group[name][part] for name in ("observations", "actions", "rewards"))


class LeRobot:
    """``lerobot``: windows by ``delta_timestamps``, images with ``dtype: image``."""

    packages = ("lerobot", "torch", "datasets")
    keys = ("observation.images.observation", "action", "next.reward")

    def __init__(self, folder):
        self.folder, self.open, self.data = folder, {}, self._opened(folder, 1)
        self.lengths = np.array(self.data.meta.episodes["length"])

    def _opened(self, folder, length):
        from lerobot.datasets.lerobot_dataset import LeRobotDataset, LeRobotDatasetMetadata

        fps = LeRobotDatasetMetadata("gamut/benchmark", root=folder).fps
        deltas = {key: [k / fps for k in range(length)] for key in self.keys}
        more = {} if length == 1 else {"delta_timestamps": deltas}
        return LeRobotDataset("gamut/benchmark", root=folder, **more)

    def read(self, episode, start, row, length):
        if length not in self.open:
            self.open[length] = self._opened(self.folder, length)
        found = self.open[length][row]
        return tuple(found[key] for key in self.keys)

    def epoch(self):
        for row in range(len(self.data)):
            yield self.data[row][self.keys[0]][None]


READERS = {
    "hf image": HuggingFace,
    "hf array": HuggingFaceArrays,
    "minari": Minari,
    "minari sliced": MinariSliced,
    "lerobot": LeRobot,
}


def rate(reader, seconds, length):
    """Returns the random windows per second of processor time."""
    rng = np.random.default_rng(0)
    begins = np.cumsum(reader.lengths) - reader.lengths
    starts = np.maximum(0, reader.lengths - length + 1)
    ends = np.cumsum(starts)
    count, began = -1, 0.0
    while count < 0 or time.process_time() - began < seconds:
        number = rng.integers(ends[-1])
        episode = int(np.searchsorted(ends, number, side="right"))
        start = int(number - (ends[episode] - starts[episode]))
        frames = reader.read(episode, start, int(begins[episode]) + start, length)[0]
        assert length == 1 or len(frames) == length
        count += 1
        if count == 0:  # the first one opens files
            began = time.process_time()
    return count / (time.process_time() - began)


def main() -> None:
    name, folder, seconds, length = sys.argv[1:]
    reader = READERS[name](Path(folder))
    found = {
        "windows": rate(reader, float(seconds), int(length)),
        "frames": rate(reader, float(seconds), 1),
    }
    began, steps = time.process_time(), 0
    for frames in reader.epoch():
        steps += len(frames)
    assert steps == int(reader.lengths.sum())
    found["epoch"] = steps / (time.process_time() - began)
    found["versions"] = {p: importlib.metadata.version(p) for p in reader.packages}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
