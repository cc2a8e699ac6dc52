"""Run by an environment with lerobot: reads a folder with it and with Ray, writes what it saw."""

import sys

import numpy as np
from lerobot.datasets.compute_stats import get_feature_stats
from lerobot.datasets.lerobot_dataset import LeRobotDataset


def by_lerobot(root):
    dataset = LeRobotDataset("gamut/test", root=root)
    assert dataset.meta.stats["action"]["count"][0] == len(dataset)
    own = get_feature_stats(
        np.stack([row["observation.state"] for row in dataset.hf_dataset]), axis=0, keepdims=False
    )
    for name, values in dataset.meta.stats["observation.state"].items():
        # The library takes quantiles of histograms of 5000 bins.
        spread = np.ptp([own["min"], own["max"]], axis=0).max()
        np.testing.assert_allclose(values, own[name], atol=0.1 * spread, err_msg=name)
    rows = [dataset[i] for i in range(len(dataset))]
    seen = {}
    for name in ("rgb", "grey"):
        images = np.stack([row[f"observation.images.{name}"].numpy() for row in rows])
        seen[name] = np.rint(images * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    names = {"observation.state": "state", "action": "action", "next.reward": "reward"}
    for feature, name in names.items():
        seen[name] = np.stack([row[feature].numpy() for row in rows])
    seen["tasks"] = np.array([row["task"] for row in rows])
    episodes = dataset.meta.episodes
    for name in ("state", "end", "state_space"):
        seen[f"gamut/{name}"] = np.array(episodes[f"gamut/{name}"])
    return seen


def by_ray(root):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    rows = ray.data.read_lerobot(root).take_all()
    rows.sort(key=lambda row: row["index"])
    return {
        "ray/rgb": np.stack([row["observation.images.rgb"] for row in rows]),
        "ray/reward": np.array([row["next.reward"] for row in rows]),
    }


if __name__ == "__main__":
    np.savez(sys.argv[2], **by_lerobot(sys.argv[1]), **by_ray(sys.argv[1]))
