"""Scores a Crafter training run as its paper does, beside the published figures.

The score is the geometric mean of the success rates of the 22 achievements over **all** training
episodes of the budget, and the return is their mean (Hafner 2022, section 3.3).

    python -m benchmarks.science.crafter RUN_DIRECTORY
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import arguments, publish, table
from rollout.evaluate.statistics import geometric_mean_score
from rollout.train.episodes import read_episodes

PREFIX = "signal/achievement/"

PUBLISHED = [  # Hafner 2022, arXiv 2109.06780, table 1
    ["human experts (Hafner 2022)", "50.5 ± 6.8", "14.3 ± 2.3"],
    ["DreamerV2, 1 M steps (Hafner 2022)", "10.0 ± 1.2", "9.0 ± 1.7"],
    ["PPO, 1 M steps (Hafner 2022)", "4.6 ± 0.3", "4.2 ± 1.2"],
    ["Rainbow, 1 M steps (Hafner 2022)", "4.3 ± 0.2", "5.0 ± 1.3"],
    ["random (Hafner 2022)", "1.6 ± 0.0", "2.1 ± 1.3"],
]


def rates(episodes: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Returns the share of episodes in which each achievement was unlocked, in percent."""
    names = [key for key in episodes[0] if key.startswith(PREFIX)]
    return {
        name.removeprefix(PREFIX): 100 * float(np.mean([e[name] > 0 for e in episodes]))
        for name in names
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("run", type=Path)
    args = parser.parse_args()
    summary = json.loads((args.run / "summary.json").read_text())
    episodes = read_episodes(args.run / "episodes.jsonl")
    budget = summary["results"]["env_steps"]
    late = [e for e in episodes if e["env_steps"] > 0.9 * budget]
    rows = []
    for name, some in (("all training episodes", episodes), ("those of the last tenth", late)):
        returns = [e["return"] for e in some]
        score = geometric_mean_score(list(rates(some).values()))
        rows.append([f"ours, {name} ({len(some):,})", f"{score:.1f}", f"{np.mean(returns):.1f}"])
    whole, end = rates(episodes), rates(late)
    text = [
        f"PPO from pixels, {budget:,} steps, one seed, {summary['results']['seconds'] / 60:.0f} "
        "min beside other jobs on two cores (`configs/train_crafter.yaml`).\n",
        table(["who", "score, %", "return"], rows + PUBLISHED),
        "\n## Success rates, %\n",
        table(
            ["achievement", "all training episodes", "last tenth"],
            [[name, f"{whole[name]:.1f}", f"{end[name]:.1f}"] for name in sorted(whole)],
        ),
    ]
    publish("crafter", "Crafter from pixels", "\n".join(text), save=args.save)


if __name__ == "__main__":
    main()
