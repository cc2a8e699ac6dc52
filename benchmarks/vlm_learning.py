"""Reports what small vision-language models learned, from their evaluations on test states.

The runs are those of configs/vlm/: collect_babyai, sft_minigrid, grpo_minigrid with three seeds,
and collect_find_hut, sft_find_hut, each evaluated once on test states. Every player plays the same
states with the same seeds; differences are paired by state.

    python -m benchmarks.vlm_learning EVALUATION... [--curves RUN...] [--save]
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import RESULTS, header, save, table
from rollout.data.tables import read_table
from rollout.evaluate.statistics import Intervals, one_player

START = "sft"


def estimate(values: NDArray[np.float64]) -> str:
    """Mean and 95 % interval over states."""
    found = one_player(values.reshape(-1, 1), Intervals())
    text = f"{found.point:.3f}"
    return text if found.low is None else f"{text} [{found.low:.3f}, {found.high:.3f}]"


def rows_of(folder: Path) -> list[list[str]]:
    """A row for each player: success, return, and return less that of the start."""
    columns = read_table(folder / "episodes.parquet")
    order = np.argsort(columns["position"], kind="stable")
    players = {
        str(name): order[columns["player"][order] == name] for name in np.unique(columns["player"])
    }
    found = []
    for name, rows in players.items():
        success, total = columns["success"][rows], columns["total_reward"][rows]
        more = "-"
        if START in players and name != START:
            more = estimate(total - columns["total_reward"][players[START]])
        found.append([name, estimate(success), estimate(total), more])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("evaluations", nargs="+", type=Path)
    parser.add_argument("--curves", nargs="*", type=Path, default=[])
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    text = header("What small vision-language models learn", "python -m benchmarks.vlm_learning")
    for folder in args.evaluations:
        summary = json.loads((folder / "summary.json").read_text())
        text += (
            f"\n## {summary['protocol']['task']}\n\nTest states, an episode each, 95 % intervals "
        )
        text += " over states for these models as they are:\n\n"
        head = ["player", "success", "return", f"return less that of {START}"]
        text += table(head, rows_of(folder))
    for run in args.curves:
        name = f"vlm_learning_{run.name}.png"
        text += f"\n![{run.name}]({name})\n"
        if args.save:
            shutil.copy(run / "curve.png", RESULTS / name)
    if args.save:
        save("vlm_learning", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
