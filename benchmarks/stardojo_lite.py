"""StarDojo-Lite as the paper reports it: three runs of the oracle and of random actions.

The runs are those of ``configs/stardojo/lite_oracle.yaml`` and ``lite_random.yaml``; one that
exists is not played again.

    python -m benchmarks.stardojo_lite [--save]
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import gamut

from benchmarks.report import header, save, table

PLAYERS = ("oracle", "random")
CONFIGS = Path("configs/stardojo")


def played(player: str) -> gamut.Run:
    """Returns the runs of a player."""
    place = Path(f"runs/stardojo_lite_{player}")
    resume = (place / "run.json").exists()
    return gamut.evaluate(
        CONFIGS / f"lite_{player}.yaml", resume=resume, **{"wandb.mode": "disabled"}
    )


def told(player: str, run: gamut.Run) -> str:
    """Returns the table of a player, by category and difficulty."""
    (found,) = run.summary["findings"]["grouped"]
    cells = found["cells"]
    rows = [
        [
            row,
            *(f"{c['mean']:.1f} ± {c['deviation']:.1f} ({c['states']})" for c in columns.values()),
        ]
        for row, columns in cells.items()
    ]
    won = Counter(each["repeat"] for each in run.episodes if each["success"] == 1)
    each_run = ", ".join(str(won[number]) for number in range(found["runs"]))
    return f"\n## {player}\n\nSolved in each run: {each_run} of 100.\n\n" + table(
        ["", *next(iter(cells.values()))], rows
    )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    text = header("StarDojo-Lite in the valley, three runs", "python -m benchmarks.stardojo_lite")
    text += (
        "\nSuccess in percent, judged strictly: mean over three runs, plus or minus the sample "
        "standard deviation; in brackets the number of tasks. The best agent of the paper's "
        "table 3 (GPT-4.1, in the real game) has 12.7 ± 0.6.\n"
    )
    for player in PLAYERS:
        text += told(player, played(player))
    if asked.save:
        save("stardojo_lite", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
