"""Steps of PPO from a clone of an expert, beside those of PPO from new weights.

    python -m benchmarks.science.clone_then_ppo run FOLDER      # goes on where it was
    python -m benchmarks.science.clone_then_ppo report FOLDER

``clone_then_ppo.yaml`` is the protocol. The expert is recorded on training states, and cloned once
for each seed; a training ends when its score on validation states reaches the target.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gamut

from benchmarks.report import arguments, publish, table
from rollout.yaml12 import load_yaml

PROTOCOL = Path(__file__).with_suffix(".yaml")
QUIET = {"wandb.mode": "disabled", "log.level": "error"}
ARMS = ("new weights", "clone")


def recorded(case: dict[str, Any], folder: Path) -> Path:
    """Returns the run that recorded the expert."""
    out = folder / "expert"
    if not (out / "summary.json").exists():
        count = case["demonstrations"]
        shared = {key: case["train"][key] for key in ("bridge", "task", "state_set", "width")}
        keys = {"state_set.size": count, "episodes": count, "actors": 0, **case["expert"]}
        gamut.collect(shared, resume=out.exists(), output=str(out), **keys, **QUIET)
    return out


def cloned(protocol: dict[str, Any], case: dict[str, Any], folder: Path, seed: int) -> Path:
    """Returns the training that cloned the expert."""
    out = folder / f"clone-{seed}"
    if not (out / "summary.json").exists():
        keys = {"dataset": str(recorded(case, folder)), "policy": case["train"]["policy"]}
        config = {**protocol["clone"], **keys, "seed": seed, "output": str(out)}
        gamut.train(config, resume=out.exists(), **QUIET)
    return out


def trained(
    protocol: dict[str, Any], case: dict[str, Any], folder: Path, arm: str, seed: int
) -> dict[str, Any]:
    """Returns the steps to the target, and all validations."""
    out = folder / f"ppo-{arm.replace(' ', '-')}-{seed}"
    shutil.rmtree(out, ignore_errors=True)
    keys: dict[str, Any] = {"seed": seed, "output": str(out), "episodes.write": False, **QUIET}
    if arm == "clone":
        clone = str(cloned(protocol, case, folder, seed))
        keys |= {"initialize_from": clone, "algorithm.reference": clone}
        keys |= {f"algorithm.{key}": value for key, value in protocol["ppo"].items()}

    def reached(record: gamut.UpdateRecord) -> bool:
        return bool(record.metrics.get("validation/score", float("-inf")) >= case["target"])

    run = gamut.train(case["train"], on_update=reached, **keys)
    scores = [
        (line["env_steps"], round(line["validation/score"], 4))
        for line in run.metrics
        if "validation/score" in line
    ]
    steps = next((at for at, score in scores if score >= case["target"]), None)
    return {"steps": steps, "scores": scores, "seconds": run.summary["results"]["seconds"]}


def run(
    protocol: dict[str, Any], folder: Path, names: list[str], arms: Sequence[str] = ARMS
) -> None:
    """Makes all trainings that the folder does not have."""
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"
    done = {(x["case"], x["arm"], x["seed"]) for x in read(results)}
    for name in names or protocol["cases"]:
        for seed in protocol["seeds"]:
            for arm in arms:
                if (name, arm, seed) in done:
                    continue
                case, own = protocol["cases"][name], folder / re.sub(r"\W+", "-", name)
                found = trained(protocol, case, own, arm, seed)
                line = json.dumps({"case": name, "arm": arm, "seed": seed, **found})
                with results.open("a") as file:
                    file.write(line + "\n")
                print(line, flush=True)


def read(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of a file, none if there is none."""
    return [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []


def report(protocol: dict[str, Any], folder: Path) -> str:
    """Returns the table of the trainings in a folder."""
    lines, rows = read(folder / "results.jsonl"), []
    for name, case in protocol["cases"].items():
        own = {(x["arm"], x["seed"]): x for x in lines if x["case"] == name}
        budget = case["train"]["env_steps"]
        steps = {
            arm: [own[arm, s]["steps"] for s in protocol["seeds"] if (arm, s) in own]
            for arm in ARMS
        }
        if not all(steps.values()):
            continue
        sums = {arm: sum(x or budget for x in all_) for arm, all_ in steps.items()}
        with gamut.Run(folder / re.sub(r"\W+", "-", name) / "expert").dataset as dataset:
            shown = sum(ref.length for ref in dataset.episodes())
        cells = [", ".join(f"{x:,}" if x else f"> {budget:,}" for x in steps[arm]) for arm in ARMS]
        added = shown * len(steps["clone"])
        shares = [f"{x / sums['new weights']:.2f}" for x in (sums["clone"], sums["clone"] + added)]
        rows.append([name, f"{case['target']:g}", *cells, shares[0], f"{shown:,}", shares[1]])
    head = ["task", "target", "from new weights", "from the clone", "share", "demonstrated"]
    head += ["share with these"]
    about = "".join(x.lstrip("# ") for x in PROTOCOL.open() if x.startswith("# "))
    return f"{about}\n{table(head, rows)}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--case", action="append", default=[], help="only this one")
    parser.add_argument("--seed", type=int, action="append", help="for pilots")
    parser.add_argument("--arm", action="append", choices=ARMS, help="only this one")
    asked: argparse.Namespace = parser.parse_args()
    protocol = load_yaml(PROTOCOL)
    protocol["seeds"] = asked.seed or protocol["seeds"]
    if asked.what == "run":
        run(protocol, asked.folder.absolute(), asked.case, asked.arm or ARMS)
    else:
        text = report(protocol, asked.folder)
        publish("clone_then_ppo", "PPO from a clone", text, save=asked.save)


if __name__ == "__main__":
    main()
