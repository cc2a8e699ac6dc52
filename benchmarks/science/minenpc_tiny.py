"""What a small language model learns from the traces of MineNPC-Task's experts.

    python -m benchmarks.science.minenpc_tiny FOLDER --save                   # goes on where it was
    python -m benchmarks.science.minenpc_tiny FOLDER --part validation --seed 100 # a pilot

``minenpc_tiny.yaml`` is the protocol: the expert is recorded, a model is trained for each seed, and
all players are judged by the world on pairs of a number and an item that no training has.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import gamut
import yaml

from benchmarks.report import arguments, publish, table
from benchmarks.science.success import QUIET, cells
from rollout.config import BridgeConfig, make_config
from rollout.tasks import bridge_and_task
from rollout.yaml12 import load_yaml

PROTOCOL = Path(__file__).with_suffix(".yaml")
PAIRS = 6  # of the parts for validation and testing, in the order of their states


def states(protocol: dict[str, Any], task: Path, part: str, layouts: range) -> list[int]:
    """Returns the states of the pairs of a part, a layout of all pairs after the other."""
    space = bridge_and_task(make_config(BridgeConfig, protocol["bridge"]), str(task))[2].state_space
    kept = {tuple(pair): name for name, pairs in protocol["parts"].items() for pair in pairs}
    pairs = [each for each in product(range(4), range(3)) if kept.get(each, "train") == part]
    base: dict[str, Any] = {factor.name: factor.values[0] for factor in space}
    found = []
    for layout, (number, (npc, (count, material))) in product(
        layouts, enumerate(product(("R10", "R11"), pairs))
    ):
        place = (7 * number + 5 * layout) % 32
        own: dict[str, Any] = {"npc": npc, "count": count, "material": material}
        own |= {"turn": 90 * (place % 4), "stand": place // 4}
        found.append(space.index({**base, **own}))
    return found


def made(folder: Path, run: Any, config: dict[str, Any]) -> gamut.Run:
    """Returns a run; one that exists goes on where it was."""
    if (folder / "summary.json").exists():
        return gamut.Run(folder)
    return run(config, resume=(folder / "run.json").exists(), output=str(folder), **QUIET)


def commonest(recorded: gamut.Run, file: Path) -> Path:
    """Writes the program that is right for most of the recorded states into a file."""
    with recorded.dataset as dataset:
        firsts = [dataset.read(ref, ["action/code"]).columns for ref in dataset.episodes()]
    programs = Counter(each["action/code"][0] for each in firsts)
    file.write_text(programs.most_common(1)[0][0])
    return file


def run(protocol: dict[str, Any], folder: Path, part: str) -> gamut.Run:
    """Records, trains, and returns the evaluation of all players on a part."""
    folder.mkdir(parents=True, exist_ok=True)
    task = folder / f"{protocol['task']['name']}.yaml"
    task.write_text(yaml.safe_dump(protocol["task"]))
    game = {"bridge": protocol["bridge"], "task": str(task), **protocol["host"]}
    known = range(protocol["layouts"])
    learned = states(protocol, task, "train", known)
    config = {**game, "policy": protocol["expert"], "episodes": len(learned)}
    config["state_set"] = {"states": learned}
    recorded = made(folder / "expert", gamut.collect, config)

    def model(path: str) -> dict[str, Any]:
        return {**protocol["model"], "local": {"model": path}}

    players = {"expert": protocol["expert"]}
    players["constant program"] = {"name": "scripted"}
    players["constant program"]["actions"] = str(commonest(recorded, folder / "constant.js"))
    for seed in protocol["seeds"]:
        own = folder / f"sft-{seed}"
        config = {**protocol["train"], "dataset": str(folder / "expert"), "task": str(task)}
        made(own, gamut.train, {**config, "policy": model("new"), "seed": seed})
        players[f"sft {seed}"] = model(str(own))
    players["before training"] = model(str(folder / f"sft-{protocol['seeds'][0]}" / "base"))
    new = range(known.stop, known.stop + protocol["states"])
    sets = {"pairs": {"states": states(protocol, task, part, new)}}
    sets["layouts"] = {"states": states(protocol, task, "train", range(new.start, new.start + 1))}
    named = {name.replace(" ", "-"): each for name, each in players.items()}
    config = {**game, "players": named, "sets": sets, "metric": "success"}
    return made(folder / "-".join([part, *map(str, protocol["seeds"])]), gamut.evaluate, config)


def report(protocol: dict[str, Any], evaluation: gamut.Run, part: str) -> str:
    """Returns the table of an evaluation."""
    episodes = evaluation.episodes
    rows = []
    for player in dict.fromkeys(each["player"] for each in episodes):
        mine = [each for each in episodes if each["player"] == player]
        mine.sort(key=lambda each: each["position"])
        of = [[each for each in mine if each["set"] == name] for name in ("pairs", "layouts")]
        whole = Counter[int]()
        for position, each in enumerate(of[0]):
            whole[position % PAIRS] += each["success"] == 1
        rows.append([player.replace("-", " "), *(cells(each)[0] for each in of)])
        layouts = len(of[0]) // PAIRS
        rows[-1].append(f"{sum(won == layouts for won in whole.values())} of {PAIRS}")
    about = "".join(x.lstrip("# ") for x in PROTOCOL.open() if x.startswith("# "))
    head = ["player", f"{part} pairs", "training pairs, other layouts"]
    head.append(f"{part} pairs, on every layout")
    return f"{about}\n{table(head, rows)}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=("validation", "test"), default="test")
    parser.add_argument("--seed", type=int, action="append", help="for pilots")
    asked = parser.parse_args()
    protocol = load_yaml(PROTOCOL)
    protocol["seeds"] = asked.seed or protocol["seeds"]
    found = run(protocol, asked.folder.absolute(), asked.part)
    text = report(protocol, found, asked.part)
    title = "MineNPC-Task: a small language model learns from the experts' traces"
    publish("minenpc_tiny", title, text, save=asked.save)


if __name__ == "__main__":
    main()
