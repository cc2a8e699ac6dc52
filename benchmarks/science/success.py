"""A table of success from evaluations: who wins how many states of which task.

    python -m benchmarks.science.success benchmarks/science/blockworld_tasks.yaml --save

The file has ``title``, ``config`` (the keys of ``gamut evaluate``, or the path of its file) and
``groups``, a table each, with ``cases`` (names of tasks, or a mapping from names to further keys)
and ``keys`` of all of them. ``$case`` in a key stands for the name of its case; a ``task`` may be
the content of a task file. Evaluations that exist in ``--out`` go on where they were.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gamut
import yaml

from benchmarks.report import arguments, publish, table
from rollout.evaluate.statistics import wilson
from rollout.yaml12 import load_yaml

QUIET = {"wandb.mode": "disabled", "log.level": "error"}


def cases_of(group: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the name of each case of a group, and its keys."""
    cases = group["cases"]
    named = cases if isinstance(cases, Mapping) else {key: {} for key in cases}
    for name, own in named.items():
        keys = json.dumps({**group.get("keys", {}), **own})
        yield name, json.loads(keys.replace("$case", name))


def evaluated(config: Any, keys: dict[str, Any], folder: Path) -> gamut.Run:
    """Returns the evaluation of a case; one that exists goes on where it was."""
    if isinstance(keys.get("task"), Mapping):
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = folder.with_suffix(".task.yaml")
        file.write_text(yaml.safe_dump(keys["task"]))
        keys["task"] = str(file)
    resume = (folder / "run.json").exists()
    return gamut.evaluate(config, resume=resume, output=str(folder), **QUIET, **keys)


def cells(episodes: list[dict[str, Any]]) -> list[str]:
    """Returns how many states were won, with Wilson's interval, and the steps of those."""
    won = [each["length"] for each in episodes if each["success"] == 1]
    found = wilson(len(won), len(episodes))
    share = f"{found.point:.1%} [{found.low:.1%}, {found.high:.1%}]"
    steps = f"{statistics.median(won):,.0f}" if won else "-"
    return [f"{len(won)} of {len(episodes)}, {share}", steps]


def table_of(config: Any, group: Mapping[str, Any], out: Path) -> str:
    """Returns the table of a group: a row for each case, and one for all of them."""
    played: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, keys in cases_of(group):
        episodes = evaluated(config, keys, out / name.replace("/", "-")).episodes
        players = dict.fromkeys(each["player"] for each in episodes)
        played[name] = {p: [each for each in episodes if each["player"] == p] for p in players}
        print(name, *(f"{p}: {cells(mine)[0]}" for p, mine in played[name].items()), flush=True)
    players = dict.fromkeys(player for of_case in played.values() for player in of_case)
    played["all"] = {p: [e for case in played.values() for e in case.get(p, ())] for p in players}
    rows = [
        [name, *(cell for p in players for cell in (cells(of_case[p]) if p in of_case else "--"))]
        for name, of_case in played.items()
    ]
    return table(["task", *(head for p in players for head in (p, "steps"))], rows)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("list", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/success"))
    parser.add_argument("--group", help="only this one")
    args = parser.parse_args()
    listed = load_yaml(args.list)
    text = listed.get("about", "")
    for name, group in listed["groups"].items():
        if args.group in (None, name):
            tables = table_of(listed["config"], group, args.out / args.list.stem / name)
            text += f"\n## {name}\n\n{tables}"
    publish(args.list.stem, listed["title"], text, save=args.save)


if __name__ == "__main__":
    main()
