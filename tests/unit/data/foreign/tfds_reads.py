"""Run by an environment with TensorFlow Datasets: opens a folder, writes what it saw."""

import sys

import numpy as np
import tensorflow_datasets as tfds


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def main(folder, out):
    builder, seen = tfds.builder_from_directory(folder), {}
    for split in builder.info.splits:
        episodes = tfds.as_numpy(builder.as_dataset(split=split, shuffle_files=False))
        for number, episode in enumerate(episodes):
            steps = [dict(flat(step)) for step in episode["steps"]]
            for name in steps[0]:
                values = [step[name] for step in steps]
                if isinstance(values[0], bytes):
                    values = [value.decode() for value in values]
                seen[f"{split}|{number}|{name}"] = np.array(values)
            for name, value in episode["episode_metadata"].items():
                plain = value.decode() if isinstance(value, bytes) else value
                seen[f"{split}|{number}|episode_metadata/{name}"] = np.asarray(plain)
    np.savez(out, **seen)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
