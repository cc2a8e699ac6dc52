"""Beating a zombie: what PPO learns in the embedded Minecraft, beside two baselines.

Trains ``configs/mineflayer/train_combat_zombie.yaml`` with several seeds, one after the other, then
evaluates the policies on states that none of them was trained on. Finished trainings are not
repeated; interrupted ones continue.

    python -m benchmarks.mineflayer_combat [--seeds 3] [--out runs/mineflayer_combat] [--save]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.report import header, save, table

NAME = "benchmarks.mineflayer_combat"
TRAIN = "configs/mineflayer/train_combat_zombie.yaml"
EVALUATE = "configs/mineflayer/evaluate_combat_zombie.yaml"
MARKS = (2_048, 10_240, 20_480, 30_720, 51_200, 75_776, 100_352)

ABOUT = """
Protocol-real, mechanics re-implemented: a world of ours after Minecraft 1.16.5, not Mojang's.

`combat_1_zombie`: bare hands, a flat place at midnight, the zombie 3, 5 or 8 blocks away. Reward
and score are the health that it loses, 20 in all; the agent's death, the zombie's or 300 steps of
5 ticks end an episode. All players have the same seven actions of the layout `compact`: turn by 60
or by 15 degrees, strike, strike forward or backward. MineLand trained DQN on this task for 3,000
to 5,000 steps (its script has four actions: none, forward, back, strike) and shows a rising curve
of reward without a table (section I, figure 9), so there is no number to set beside.

`seed_*` are trainings of the configuration, `fighter` is the scripted `bridges.mineflayer.fighter`,
`chance` draws its actions at random. The training states are 1,024, those of `test` none of them.

Measured once by hand, at commit 5f1fdef: a network that sees `entities`, `face_vector`, `look`
and `life` (numbers of any size, so with `activation: relu`) instead of `bearings` came to 10.2
[9.0, 11.5] on the states of `test` in the same steps; chance over all eight choices of `low_level`
to 0.15 [0.06, 0.25]. `configs/mineflayer/collect_combat_oracle.yaml` recorded 50 demonstrations of
the fighter, return 20 in each; `dataset.py doctor`: clean.

"""

LEARNED = """

## What was learned when

Mean return of the episodes that ended lately, by steps played, and the seconds of the training on
a machine that did other things beside.

"""


def call(script: str, config: str, output: Path, *settings: str) -> None:
    """Runs a script of this repository; continues an interrupted run."""
    command = [sys.executable, f"scripts/{script}.py", "--config", config, "--resume"]
    command += ["--set", f"output={output}", *settings]
    subprocess.run(command, check=True)


def curve(folder: Path) -> list[str]:
    """Returns the mean return at each of ``MARKS``, and the total seconds."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    cells = []
    for mark in MARKS:
        at = [line["episode/return"] for line in lines if line["env_steps"] <= mark]
        cells.append(f"{at[-1]:.1f}" if at else "-")
    summary = json.loads((folder / "summary.json").read_text())
    return [*cells, f"{summary['results']['seconds']:.0f}"]


def main() -> None:
    """Trains, evaluates, and prints the report or saves it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/mineflayer_combat"))
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    runs = {f"seed_{k}": args.out / f"seed_{k}" for k in range(args.seeds)}
    for number, folder in enumerate(runs.values()):
        call("train", TRAIN, folder, f"seed={number}")
    players = {name: {"name": "checkpoint", "path": str(folder)} for name, folder in runs.items()}
    players["fighter"] = {"name": "callable", "target": "bridges.mineflayer.fighter:fight"}
    players["chance"] = {"name": "random"}
    call(
        "evaluate", EVALUATE, args.out / "evaluation",
        f"players={json.dumps(players)}", f"groups={json.dumps({'ppo': list(runs)})}",
    )  # fmt: skip
    report = (args.out / "evaluation" / "report.md").read_text()
    text = header("Beating a zombie: PPO in the embedded Minecraft", f"python -m {NAME}") + ABOUT
    text += report[report.index("Score: ") :].rstrip() + LEARNED
    head = ["training", *(f"{mark:,}" for mark in MARKS), "s"]
    text += table(head, [[name, *curve(folder)] for name, folder in runs.items()])
    if args.save:
        save("mineflayer_combat", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
