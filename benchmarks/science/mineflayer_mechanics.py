"""How many tasks of four lists the embedded Minecraft can express, and what the others lack.

The lists: MCU's atomic tasks and its configurations, MineLand's ids, MineNPC-Task's tasks. Files
are the user's, by path; without one, MineLand's regular ids come from our grammar, and the numbers
of the atomic and MineNPC tasks from ``mineflayer_mechanics.yaml``. A task can be expressed if its
commands are accepted and neither its items nor its words need a mechanic of ``lacking.yaml``; that
is no proof that it can be won. Run from the root of the repository:

    .venv/bin/python -m benchmarks.science.mineflayer_mechanics --configs task_configs --save
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import arguments, publish, table
from bridges.mineflayer.commands import CommandError, parse_command
from bridges.mineflayer.names import names
from bridges.mineflayer.task_counts import report
from bridges.mineflayer.task_documents import lacking_for_goal, lacking_for_item, mechanics
from bridges.mineflayer.task_ids import generate, parse
from rollout.errors import InputError
from rollout.yaml12 import load_yaml

TITLE = "Mineflayer: tasks of four lists that the embedded world can express"
NUMBERS = Path(__file__).with_name("mineflayer_mechanics.yaml")
REGULAR = ("harvest", "techtree", "combat", "survival")
BY_TEXT = "its text"
NO_ITEM = "an item or entity of 1.16.5 by that name"


@dataclass
class Family:
    """Tasks of one family.

    Attributes:
        name: the list and the family.
        tasks: how many there are.
        fine: how many can be expressed.
        unknown: how many are not decided, because their texts are not at hand.
        lacks: how many need each mechanic that is missing.
    """

    name: str
    tasks: int = 0
    fine: int = 0
    unknown: int = 0
    lacks: Counter[str] = field(default_factory=Counter)

    def add(self, missing: Iterable[str]) -> None:
        """Counts one task, which lacks these mechanics."""
        found = set(missing)
        self.tasks += 1
        self.fine += not found
        self.lacks.update(found)


def by_regular_ids() -> list[Family]:
    """Returns the families of MineLand's ids that its grammar generates."""
    return [
        _counted(f"MineLand, {each}", generate(each, possible=False), _of_id) for each in REGULAR
    ]


def _counted(name: str, tasks: Iterable[str], missing: Callable[[str], Iterable[str]]) -> Family:
    family = Family(name)
    for each in tasks:
        family.add(missing(each))
    return family


def _of_id(task_id: str) -> list[str]:
    try:
        found = parse(task_id)
    except InputError:
        return [NO_ITEM]
    if found.family not in ("harvest", "techtree") or found.target in found.loadout:
        return []
    mechanic = lacking_for_item(found.target)
    return [mechanic] if mechanic else []


def by_files(folder: str) -> list[Family]:
    """Returns the families of a copy of MineLand's task files."""
    return [
        Family(f"MineLand, {row.family}", row.ids, row.load - row.warned, 0, Counter(row.lacks))
        for row in report(folder)
    ]


def configurations(folder: Path) -> list[Family]:
    """Returns the sets of a folder of MCU's configurations."""
    sets = [each for each in ("simple", "hard", "compositional") if (folder / each).is_dir()]
    found = []
    for each in sets:
        family = Family(f"MCU, configurations, {each}")
        for path in sorted((folder / each).glob("*.yaml")):
            document = load_yaml(path)
            goal = f"{path.stem.replace('_', ' ')}. {document.get('text', '')}"
            family.add({*lacking_for_goal(goal), *_of_commands(document["custom_init_commands"])})
        found.append(family)
    return found


def _of_commands(lines: Iterable[object]) -> Iterable[str]:
    for line in lines:
        try:
            parse_command(str(line))
        except CommandError as error:
            match = re.search(r"the embedded world has no (.*?)(?: \(tag| at position)", str(error))
            yield match[1] if match else NO_ITEM


def atomic(lines: Iterable[str], verbs: Mapping[str, Mapping[str, Any]]) -> list[Family]:
    """Returns the tasks of MCU's list by their verbs."""
    found: dict[str, Family] = {}
    for line in lines:
        words = line.split()
        if not words:
            continue
        verb = words[0].lower()
        name = verb if verb in verbs else "other verbs"
        family = found.setdefault(name, Family(f"MCU, atomic tasks, {name}"))
        family.add(_of_line(words[1:], verbs.get(verb, {}).get("needs"), line))
    return sorted(found.values(), key=lambda each: -each.tasks)


def _of_line(words: list[str], needs: str | None, line: str) -> set[str]:
    missing = set(lacking_for_goal(line.replace("_", " ")))
    if needs == BY_TEXT:
        items = [each for each in words if each in names().items]
        missing = {mechanic for each in items if (mechanic := lacking_for_item(each))} or missing
    elif needs in mechanics():
        missing.add(needs)
    return missing


def by_numbers(name: str, listed: Mapping[str, Any]) -> list[Family]:
    """Returns the families of a list of which only numbers are known."""
    found = []
    for verb, row in listed["verbs"].items():
        tasks, needs, lacks = row["tasks"], row.get("needs"), Counter(row.get("lacks", {}))
        if needs in mechanics():
            lacks[needs] = tasks
        unknown = tasks if needs == BY_TEXT else 0
        fine = max(0, tasks - unknown - sum(lacks.values()))
        found.append(Family(f"{name}, {verb}", tasks, fine, unknown, lacks))
    rest = listed["tasks"] - sum(each.tasks for each in found)
    if rest:
        found.append(Family(f"{name}, other verbs", rest, 0, rest))
    return found


def described(families: Iterable[Family]) -> str:
    """Returns the tables of a report."""
    listed = list(families)
    rows = [
        [each.name, str(each.tasks), str(each.fine), str(each.unknown), _most(each.lacks)]
        for each in [*listed, _sum(listed)]
    ]
    head = ["list, family", "tasks", "can be expressed", "texts not at hand", "lack"]
    asked = _sum(listed).lacks.most_common()
    return (
        table(head, rows)
        + "\nTasks that ask for each mechanic that is missing:\n\n"
        + table(["mechanic", "tasks"], [[name, str(n)] for name, n in asked])
    )


def _sum(families: Iterable[Family]) -> Family:
    total = Family("all")
    for each in families:
        total.tasks, total.fine = total.tasks + each.tasks, total.fine + each.fine
        total.unknown += each.unknown
        total.lacks.update(each.lacks)
    return total


def _most(lacks: Counter[str]) -> str:
    return ", ".join(f"{name} {n}" for name, n in lacks.most_common(4))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--mineland", help="folder of MineLand's task files")
    parser.add_argument("--configs", type=Path, help="MCU's folder with simple, hard ...")
    parser.add_argument("--atomic", type=Path, help="MCU's atomic_task_list.txt")
    parser.add_argument("--source", default="a user's copy", help="whose configurations they are")
    args = parser.parse_args()
    numbers = load_yaml(NUMBERS)
    mcu, npc = numbers["MCU, atomic tasks"], numbers["MineNPC-Task"]
    families = by_files(args.mineland) if args.mineland else by_regular_ids()
    families += configurations(args.configs) if args.configs else []
    lines = args.atomic.read_text().splitlines() if args.atomic else []
    name = "MCU, atomic tasks"
    families += atomic(lines, mcu["verbs"]) if args.atomic else by_numbers(name, mcu)
    families += by_numbers("MineNPC-Task", npc)
    text = f"\nMCU's configurations: {args.source if args.configs else 'not given'}. "
    text += "MCU's atomic tasks: " + ("a copy. " if args.atomic else f"{mcu['source']}. ")
    text += f"MineNPC: {npc['source']}. "
    text += "" if args.mineland else "MineLand's creative ids, construction and plays need a copy. "
    text += "Numbers say what can be set up, not what was won.\n\n" + described(families)
    publish("mineflayer_mechanics", TITLE, text, save=args.save)


if __name__ == "__main__":
    main()
