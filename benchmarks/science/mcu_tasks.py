"""MCU's tasks in the embedded Minecraft: its files, what plays them, and atomic tasks of our own.

Writes two reports. ``mcu_playable``: for each task of MCU and MineStudio, whether it plays by code,
by keys and pictures, or in blockworld, and what it lacks. ``mcu_tasks``: problems of the files by
name, the atomic tasks by category beside MCU's list, and how many of them pass the check, begin in
the game, and are won by the program that the bridge knows, beside a player who does nothing. The
files are the user's, by path; of MCU's, which have no licence, only names and numbers are written.
Needs Node; run from the root of the repository:

    .venv/bin/python -m benchmarks.science.mcu_tasks --mcu MCU/MCU_benchmark/task_configs --save
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import arguments, publish, table
from bridges.mineflayer import MineflayerBridge, atomic
from bridges.mineflayer import mcu_files as mcu
from bridges.mineflayer.atomic import atomic_tasks
from bridges.mineflayer.atomic_rows import tables
from bridges.mineflayer.instance import MineflayerInstance
from bridges.mineflayer.oracle import WAITING
from bridges.mineflayer.scene import make_scene
from bridges.mineflayer.spaces import CODE, KIND, NEW, RESUME
from bridges.mineflayer.task_check import check
from bridges.mineflayer.task_solve import solve
from rollout.api import Outcome, Start, TaskProblem
from rollout.config import build_plugin
from rollout.errors import GameError, InputError
from rollout.yaml12 import load_yaml

PLAYABLE = "Mineflayer: what plays the tasks of MCU and MineStudio"
TASKS = "Mineflayer: MCU's files, and atomic tasks in its categories"
VERBS = Path(__file__).with_name("mineflayer_mechanics.yaml")
TICKS = 20  # of a step
TIMEOUT_S = 120.0
_ITEM = re.compile(r"Unknown item '([^']*)'")


# files --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copy:
    """A user's copy of task files.

    Attributes:
        source: whose.
        tasks: by their names, ``simple/hunt_pigs``.
    """

    source: str
    tasks: Mapping[str, mcu.McuTask]

    def sets(self) -> dict[str, list[mcu.McuTask]]:
        """Returns the tasks by their folders."""
        found: dict[str, list[mcu.McuTask]] = defaultdict(list)
        for name, task in self.tasks.items():
            found[name.partition("/")[0]].append(task)
        return dict(sorted(found.items(), key=lambda each: mcu.SETS.index(each[0])))


def read(source: str, folder: Path | None) -> Copy:
    """Returns a copy; without a folder an empty one."""
    paths = mcu.find_files(str(folder)) if folder else {}
    if folder and not paths:
        raise SystemExit(f"no task file of {source} in {folder}")
    return Copy(source, {name: mcu.read_file(path) for name, path in paths.items()})


def of_files(copies: list[Copy]) -> str:
    """Returns the part of the report about files."""
    rows, wrong = [], []
    for copy in copies:
        for name, tasks in copy.sets().items():
            problems = [each for task in tasks for each in task.problems]
            ids = [match[1] for each in problems if (match := _ITEM.match(each.problem))]
            known = sum(mcu.known(task.name.partition("/")[2]) is not None for task in tasks)
            commands = sum(len(task.commands) + _left_out(task) for task in tasks)
            rule = sum(bool(_by_rules(task)) for task in tasks)
            repaired = sum(bool(each.repair) for each in problems)
            row = [len(tasks), known, commands, len(problems), len(ids), repaired, rule]
            rows.append([f"{copy.source}, {name}", *map(str, row)])
            wrong += [
                [task.name, str(each.line), f"`{match[1]}`", _repaired_to(each)]
                for task in tasks
                for each in task.problems
                if (match := _ITEM.match(each.problem))
            ]
    head = ["set", "files", "known names", "commands", "refused", "of unknown items", "repaired",
            "tasks against the rules"]  # fmt: skip
    faults = Counter(
        re.sub(r"\b(with|gives|is|needs) .*", "", each.problem).strip() or each.problem
        for copy in copies
        for task in copy.tasks.values()
        for each in _by_rules(task)
    )
    said = ", ".join(f"{what} {count}" for what, count in faults.most_common(8))
    return (
        "\n## Files\n\n"
        + table(head, rows)
        + f"\nAgainst the rules, by what is wrong: {said or 'nothing'}.\n"
        + "\nUnknown items, each found by file, line and name before anything is launched:\n\n"
        + table(["task", "line", "item", "is played as"], wrong)
    )


def _left_out(task: mcu.McuTask) -> int:
    return sum(not each.repair for each in task.problems)


def _repaired_to(problem: TaskProblem) -> str:
    match = re.search(r"minecraft:([^ ]+)", problem.repair)
    return f"`{match[1].partition('{Ench')[0]}`" if match else "left out"


def _by_rules(task: mcu.McuTask) -> list[TaskProblem]:
    return list(check(mcu.document(task, TICKS)))


# what plays them ----------------------------------------------------------------------------------


def playable(copies: list[Copy]) -> str:
    """Returns the report on what plays each task."""
    code, keys = mcu.missing("code"), mcu.missing("keys")
    where: dict[str, list[str]] = defaultdict(list)
    for copy in copies:
        for name in copy.tasks:
            folder, _, stem = name.partition("/")
            where[stem].append(f"{copy.source} {folder}")
    names = list(dict.fromkeys((*mcu.known_names(), *where)))
    rows, counts = [], Counter[tuple[str, str]]()
    for name in names:
        about = mcu.known(name)
        if about is None:
            continue
        lacks = [need for need in about.needs if need in keys]
        by = {
            "code": not code & set(about.needs),
            "keys": not keys & set(about.needs),
            "blockworld": bool(about.blockworld),
            "machine": about.goal is not None,
        }
        for group in where[name]:
            counts.update((group, kind) for kind, plays in by.items() if plays)
            counts[group, "tasks"] += 1
        rows.append(
            [name, about.category, _mark(by["code"]), _mark(by["keys"]), about.blockworld,
             "machine" if by["machine"] else "a judge", ", ".join(lacks)]
        )  # fmt: skip
    kinds = ("tasks", "code", "keys", "blockworld", "machine")
    groups = list(dict.fromkeys(group for group, _ in counts))
    sums = [[group, *(str(counts[group, kind]) for kind in kinds)] for group in groups]
    head = ["set", "tasks", "by code", "by keys and pictures", "in blockworld", "machine goal"]
    return (
        f"\nMissing in the world: {', '.join(sorted(code)) or 'nothing'}; missing by keys alone: "
        f"{', '.join(sorted(keys - code)) or 'nothing'}. A task plays if it needs none of these; "
        f"that is no proof that it is won. The needs are those of "
        f"[mcu.yaml](../../bridges/mineflayer/data/mcu.yaml).\n\n"
        + table(head, sums)
        + "\n"
        + table(
            ["task", "category", "by code", "by keys", "blockworld", "judged by", "lacks"], rows
        )
    )


def _mark(plays: bool) -> str:
    return "yes" if plays else "no"


# atomic tasks -------------------------------------------------------------------------------------


@dataclass
class Player:
    """Plays starts of tasks in one game process, whose scene is replaced."""

    game: MineflayerInstance
    bridge: MineflayerBridge

    def begin(self, document: Mapping[str, Any], seed: int) -> tuple[Start, Any]:
        """Begins an episode.

        Raises:
            GameError, InputError: it does not begin.
        """
        space = self.bridge.spec.state_space
        first = {factor.name: factor.values[0] for factor in space}
        asked = {k: v[0] if isinstance(v, list) else v for k, v in document["state_space"].items()}
        start = Start(space.state(space.index({**first, **asked, "world": seed})), seed)
        scene = make_scene({}, document["options"]["commands"], {}, ["a0"])
        self.game._shape = replace(self.game._shape, scene=scene)
        return start, self.game.reset([0], [start], timeout_s=TIMEOUT_S)

    def wins(self, document: Mapping[str, Any], program: str, seed: int) -> bool:
        """Plays a program until the goal, the limit or its end; returns whether it won."""
        start, frame = self.begin(document, seed)
        options = dict(document["evaluator"])
        evaluator = build_plugin("evaluators", options.pop("name"), options).build(1)
        evaluator.reset([0], [start], frame)
        for step in range(document["limits"]["steps"]):
            kind, code = (NEW, program) if step == 0 else (RESUME, "")
            actions = {KIND: np.array([kind]), CODE: np.array([code], object)}
            frame = self.game.step(actions, timeout_s=TIMEOUT_S)
            outcome = int(evaluator.judge(actions, frame).outcome[0])
            if outcome or frame.game_over[0]:
                return outcome == Outcome.SUCCESS
            if not frame.details[0]["code_info"]["is_running"]:
                return False
        return False


@contextmanager
def player() -> Iterator[Player]:
    """A player in a game of its own."""
    bridge = MineflayerBridge(
        view_distance=2, observe=("life",), actions="code", ticks_per_step=TICKS, spawning=False
    )
    with tempfile.TemporaryDirectory() as folder:
        game = bridge.launch(Path(folder), (), width=1, timeout_s=TIMEOUT_S)
        assert isinstance(game, MineflayerInstance)
        try:
            yield Player(game, bridge)
        finally:
            game.close()


def of_won(copies: list[Copy], seeds: int) -> str:
    """Returns the part of the report about simple tasks of the files that programs win."""
    rows, tasks = [], []
    with player() as games:
        for copy in copies:
            group = copy.sets().get("simple", [])
            documents = [mcu.document(task, TICKS) for task in group]
            solved = [(each, s) for each in documents if (s := solve(each)).kind]
            wins = [_times(games, each, s.actions[CODE][0], seeds) for each, s in solved]
            row = [len(group), len(solved), sum(won > 0 for won in wins)]
            rows.append([f"{copy.source}, simple", *map(str, row)])
            tasks += [
                [copy.source, each["name"], " then ".join(s.steps), f"{won} of {seeds}"]
                for (each, s), won in zip(solved, wins, strict=True)
            ]
    return (
        f"\n## Simple tasks of the files that programs win\n\nOf each task with a machine goal for "
        f"which the bridge knows a program: episodes of 600 ticks in {seeds} worlds.\n\n"
        + table(["set", "tasks", "with a program", "won"], rows)
        + "\n"
        + table(["set", "task", "steps", "won"], tasks)
    )


def _times(games: Player, document: Mapping[str, Any], program: str, seeds: int) -> int:
    """How many episodes a program wins; one that does not begin is none."""
    won = 0
    for seed in range(1, seeds + 1):
        try:
            won += games.wins(document, program, seed)
        except (GameError, InputError):
            continue
    return won


def of_atomic(begin: int, play: int, idle: int) -> str:
    """Returns the part of the report about atomic tasks.

    Args:
        begin: how many are begun, simple and hard in turns.
        play: how many of each sub-category are played by their programs.
        idle: how many of these are also played by an agent that does nothing.
    """
    order = list(atomic_tasks())
    random.Random(0).shuffle(order)
    passed: dict[str, int] = {}
    for form in ("", "/hard"):
        passed[form] = sum(not check(make(f"{name}{form}")) for name in order)
    with player() as games:
        errors = _begun(games, order[:begin])
        rows = _played(games, order, play, idle)
    said = "".join(f"- `{name}`: {error}\n" for name, error in errors.items())
    total = len(order)
    return (
        f"\n## Atomic tasks\n\n"
        f"{total} tasks in {len({t.category for t in atomic_tasks().values()})} categories and "
        f"{len(rows) - 1} sub-categories (MCU's paper: 3,452 in 11 and 41, without their names; "
        f"its list has 3,408 lines, counted here by their verbs). The check is passed by "
        f"{passed['']} simple and {passed['/hard']} hard forms. Of {begin} begun in the game, "
        f"simple and hard in turns, {begin - len(errors)} began without an error.\n\n"
        f"*oracle*: the bridge knows a program for so many; *played*, *won*: of a random sample of "
        f"these; *idle*: won by an agent that does nothing, of the first of the sample.\n\n"
        + table(
            [
                "category",
                "sub-category",
                "tasks",
                "MCU's lines",
                "machine goal",
                "oracle",
                "played",
                "won",
                "idle",
            ],
            rows,
        )
        + (f"\nStarts with errors:\n\n{said}" if said else "")
    )


def make(name: str) -> dict[str, Any]:
    """Returns the document of an atomic task, ``NAME`` or ``NAME/hard``."""
    document = atomic.make(f"{atomic.PREFIX}{name}", TICKS)
    assert document is not None
    return document


def _begun(games: Player, names: list[str]) -> dict[str, str]:
    errors = {}
    for number, name in enumerate(names):
        form = f"{name}{'/hard' * (number % 2)}"
        try:
            games.begin(make(form), number)
        except (GameError, InputError) as error:
            errors[form] = str(error)[:200]
    return errors


def _played(games: Player, order: list[str], play: int, idle: int) -> list[list[str]]:
    verbs = load_yaml(VERBS)["MCU, atomic tasks"]["verbs"]
    told: set[str] = set()
    rows, sums = [], Counter[str]()
    for kind, rule in tables()["rules"].items():
        mine = [name for name in order if atomic_tasks()[name].kind == kind]
        documents = [make(name) for name in mine]
        solved = [(each, s) for each in documents if (s := solve(each)).kind]
        sample = solved[:play]
        won = sum(games.wins(each, s.actions[CODE][0], 5) for each, s in sample)
        waits = [games.wins(each, WAITING, 5) for each, _ in sample[:idle]]
        lines = sum(
            verbs[verb]["tasks"] for verb in rule["mcu"] if verb in verbs and verb not in told
        )
        told |= set(rule["mcu"])
        row = {
            "tasks": len(mine),
            "lines": lines,
            "goal": sum(atomic_tasks()[name].goal is not None for name in mine),
            "oracle": len(solved),
            "played": len(sample),
            "won": won,
        }
        sums.update({**row, "idle": sum(waits), "waits": len(waits)})
        idled = f"{sum(waits)} of {len(waits)}"
        rows.append([rule["category"], kind, *map(str, row.values()), idled])
    kinds = ("tasks", "lines", "goal", "oracle", "played", "won")
    total = [str(sums[each]) for each in kinds]
    return [*rows, ["all", "", *total, f"{sums['idle']} of {sums['waits']}"]]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--mcu", type=Path, help="MCU's folder task_configs")
    parser.add_argument("--minestudio", type=Path, help="MineStudio's folder task_configs")
    parser.add_argument("--seeds", type=int, default=1, help="worlds of each file's task (1)")
    parser.add_argument("--begin", type=int, default=1000, help="atomic tasks to begin (1000)")
    parser.add_argument("--play", type=int, default=20, help="of each sub-category to play (20)")
    parser.add_argument("--idle", type=int, default=3, help="of these to play by waiting (3)")
    args = parser.parse_args()
    copies = [read("MCU", args.mcu), read("MineStudio", args.minestudio)]
    publish("mcu_playable", PLAYABLE, playable(copies), save=args.save)
    copies = [copy for copy in copies if copy.tasks]
    text = of_files(copies) + of_won(copies, args.seeds)
    text += of_atomic(args.begin, args.play, args.idle)
    publish("mcu_tasks", TASKS, text, save=args.save)


if __name__ == "__main__":
    main()
