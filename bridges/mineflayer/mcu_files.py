"""Task files of MCU and MineStudio, of a user's own copy: what each asks, and which commands fail.

A file has ``custom_init_commands``, run in order after the reset, and ``text``, the instruction.
Its commands were written by a language model for a later version of Minecraft: some name items that
1.16.5 does not have, which Minecraft answers with an error in the chat and MCU does not notice.
Where the intended thing is plain, the command is repaired and marked; otherwise it is left out.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bridges.mineflayer.commands import CommandError, parse_command
from bridges.mineflayer.names import names
from rollout.api import TaskDraft, TaskProblem
from rollout.errors import ConfigError, UnknownNameError
from rollout.files import open_file
from rollout.yaml12 import load_yaml, read_yaml

log = logging.getLogger(__name__)

COMMANDS = "custom_init_commands"
KEYS = (COMMANDS, "text", "thinking", "defaults", "reference_video")
SETS = ("simple", "hard", "compositional")
TICKS = 600
"""Length of an episode in MCU's runs."""

_DATA = Path(__file__).parent / "data"
_SUFFIXES = (".yaml", ".yml")
_TRIES = 4  # repairs of one command
_ID = re.compile(r"[A-Za-z0-9_.:/\-]*")
_SUMMON = re.compile(r"(.*\bsummon )\S+((?: [~^]?-?[\d.]*){3})\s*$")


# repairs ------------------------------------------------------------------------------------------


@lru_cache
def _repairs() -> Mapping[str, Any]:
    data: Mapping[str, Any] = load_yaml(_DATA / "repairs.yaml", ours=True)
    return {**data, "patterns": [(re.compile(old), new) for old, new in data["patterns"]]}


def repair(line: str) -> str | None:
    """Returns the command that was meant by one that 1.16.5 does not have; None if unknown."""
    text = line.strip().removeprefix("/")
    for _ in range(_TRIES):
        try:
            parse_command(text)
        except CommandError as error:
            better = _better(text, error)
            if better is None:
                return None
            text = better
        else:
            return f"/{text}"
    return None


def _better(text: str, error: CommandError) -> str | None:
    """A command without one of its mistakes."""
    for pattern, new in _repairs()["patterns"]:
        changed = pattern.sub(new, text)
        if changed != text:
            return str(changed)
    match = re.match(r"Unknown (item|block type|entity:)", str(error))
    if match is None or not error.word:
        return None
    end = error.at + len(_ID.match(text, error.at)[0])  # type: ignore[index]
    word = error.word.removeprefix("minecraft:")
    if match[1] == "entity:":
        return _placed(text, word)
    name = _nearest(word, blocks=match[1] == "block type")
    if name is None:
        return None
    if "{" in name and text.startswith("{", end):
        name = name.partition("{")[0]
    return f"{text[: error.at]}minecraft:{name}{text[end:]}"


def _placed(text: str, word: str) -> str | None:
    """``/setblock`` for a ``/summon`` of a block."""
    match = _SUMMON.fullmatch(text)
    if match is None or word not in names().blocks:
        return None
    head = match[1].removesuffix("summon ")
    return f"{head}setblock{match[2]} minecraft:{word}"


def _nearest(word: str, *, blocks: bool) -> str | None:
    table, valid = _repairs(), names().blocks if blocks else names().items
    listed = table["blocks" if blocks else "items"].get(word)
    if listed is not None:
        return str(listed)
    raw = re.fullmatch(table["raw"], word)
    if raw is not None:
        word = raw[1]
    kinds = (kind.format(word) for kind in table["kinds"])
    return next((name for name in kinds if name in valid), None)


def _problem(line: str, number: int) -> TaskProblem | None:
    """What is wrong with a command, and its repair; None if it is executed as it is."""
    try:
        parse_command(line)
    except CommandError as error:
        since = _repairs()["newer"].get(error.word.removeprefix("minecraft:"))
        newer = f"; {error.word} came with Minecraft {since}" if since else ""
        return TaskProblem(f"{error}{newer}", line, number, repair(line) or "")
    return None


# files --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class McuTask:
    """A task file.

    Attributes:
        name: folder and stem of the file, ``simple/hunt_pigs``.
        text: the instruction.
        commands: those that are executed, repaired where that was needed.
        problems: the others, with their repairs.
    """

    name: str
    text: str
    commands: tuple[str, ...]
    problems: tuple[TaskProblem, ...]


def find_files(folder: str) -> Mapping[str, Path]:
    """Returns the task files of a copy by the names of their tasks; empty if there are none.

    Args:
        folder: ``task_configs``, one of its folders, or one file.
    """
    if not folder:
        return {}
    place = Path(folder).expanduser()
    inside = [place] if place.is_file() else [*place.glob("*"), *place.glob("*/*")]
    found = sorted(path for path in inside if path.suffix in _SUFFIXES and path.is_file())
    return {_name(path): path for path in found if _is_mcu(path)}


def _is_mcu(path: Path) -> bool:
    with open_file(path) as file:
        return COMMANDS.encode() in file.read(1 << 16)


def _name(path: Path) -> str:
    return f"{path.resolve().parent.name}/{path.stem}"


def read_file(path: Path) -> McuTask:
    """Returns the task of a file.

    Raises:
        ConfigError: it is not a task file of MCU or MineStudio; the message has the line.
    """
    return _read(str(path), path.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _read(name: str, stamp: int) -> McuTask:
    del stamp
    path = Path(name)
    data, lines = read_yaml(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping, got {type(data).__name__}")
    for key in data:
        if key not in KEYS:
            line = lines.get((key,), 0)
            raise UnknownNameError(f"key in {path}:{line}", str(key), KEYS)
    asked, text = data.get(COMMANDS), data.get("text", "")
    if not isinstance(asked, list) or not isinstance(text, str):
        raise ConfigError(f"{path}: expected a list {COMMANDS} and a text `text`")
    commands: list[str] = []
    problems: list[TaskProblem] = []
    for number, each in enumerate(asked):
        line = lines.get((COMMANDS, number), 0)
        if not isinstance(each, str):
            problems.append(TaskProblem("expected a command", str(each)[:60], line))
            continue
        problem = _problem(each, line)
        problems += [problem] if problem else []
        playable = problem.repair if problem else each
        commands += [playable] if playable else []
    return McuTask(_name(path), " ".join(text.split()), tuple(commands), tuple(problems))


def read_draft(path: Path, ticks_per_step: int) -> TaskDraft | None:
    """Returns a file's task and its problems; None if it is a file of another kind."""
    if path.suffix not in _SUFFIXES or not path.is_file() or not _is_mcu(path):
        return None
    task = read_file(path)
    return TaskDraft(task.name, document(task, ticks_per_step), task.problems)


# tasks --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """What is known of a task by its name; see ``data/mcu.yaml``.

    Attributes:
        category: of MCU's README.
        needs: mechanics, and ``windows``.
        goal: an evaluator with its options; None if a model judges the recording.
        blockworld: task of blockworld with the same goal; empty for none.
        parts: names of the parts of a compositional task.
    """

    category: str
    needs: tuple[str, ...] = ()
    goal: Mapping[str, Any] | None = None
    blockworld: str = ""
    parts: tuple[str, ...] = ()


@lru_cache
def _table() -> Mapping[str, Any]:
    data: Mapping[str, Any] = load_yaml(_DATA / "mcu.yaml", ours=True)
    return data


def missing(interface: str) -> frozenset[str]:
    """Returns the needs that agents lack who play by ``code``, or by ``keys`` and pictures."""
    world = frozenset(_table()["missing_in_world"])
    return world if interface == "code" else world | frozenset(_table()["missing_by_keys"])


def known_names() -> tuple[str, ...]:
    """Returns the names of the atomic tasks of MCU and MineStudio."""
    return tuple(_table()["tasks"])


@lru_cache
def known(name: str) -> Known | None:
    """Returns what is known of a task; of a compositional one from its parts; else None."""
    rows: Mapping[str, Mapping[str, Any]] = _table()["tasks"]
    if name in rows:
        row = rows[name]
        goal = evaluator_of(row["goal"]) if "goal" in row else None
        needs = tuple(row.get("needs", ()))
        return Known(str(row["category"]), needs, goal, row.get("blockworld", ""))
    split = _split(name, rows)
    if split is None:
        return None
    parts = [part for group in split for part in group]
    found = [known(part) for part in parts]
    needs = tuple(dict.fromkeys(need for each in found if each for need in each.needs))
    goals = [[each.goal if (each := known(part)) else None for part in group] for group in split]
    whole: Mapping[str, Any] | None = None
    if all(goal is not None for group in goals for goal in group):
        whole = _composed("or", [_composed("and", group) for group in goals])
    return Known("compositional", needs, whole, "", tuple(parts))


def _composed(operator: str, goals: Sequence[Any]) -> dict[str, Any]:
    return dict(goals[0]) if len(goals) == 1 else {"name": operator, "parts": list(goals)}


def _split(name: str, rows: Mapping[str, Any]) -> list[list[str]] | None:
    """Groups of parts: ``a and b or c`` is (a and b) or c, as in MCU's appendix G.5."""
    for part in sorted(rows, key=len, reverse=True):
        if name == part:
            return [[part]]
        for word in ("_and_", "_or_"):
            rest = name.removeprefix(part + word)
            if rest == name:
                continue
            groups = _split(rest, rows)
            if groups is not None:
                return [[part, *groups[0]], *groups[1:]] if word == "_and_" else [[part], *groups]
    return None


def evaluator_of(goal: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the evaluator of a goal in the short form of the tables."""
    if "count" in goal:
        short = {"name": "minecraft_count", "statistic": goal["count"], "count": goal.get("n", 1)}
        return {**short, "names": list(goal["of"])} if "of" in goal else short
    short = {"name": "minecraft_reach", "kind": goal["reach"], "names": list(goal["of"])}
    return {**short, "distance": float(goal["distance"])} if "distance" in goal else short


def document(task: McuTask, ticks_per_step: int) -> dict[str, Any]:
    """Returns the contents of the task file of a task."""
    difficulty, _, stem = task.name.partition("/")
    about = known(stem)
    goal = about.goal if about else None
    if goal is None:
        goal = {"name": "mineland_creative", "goal": task.text}
    metadata: dict[str, Any] = {"source": "MCU or MineStudio", "family": "mcu"}
    if about:
        metadata["category"] = about.category
        metadata |= {"needs": list(about.needs)} if about.needs else {}
    repaired = [each.describe() for each in task.problems if each.repair]
    left_out = [each.describe() for each in task.problems if not each.repair]
    metadata |= {"repaired": repaired} if repaired else {}
    metadata |= {"left_out": left_out} if left_out else {}
    return {
        "name": task.name,
        "goal": task.text,
        "state_space": start_states(),
        "options": {"commands": list(task.commands)},
        "evaluator": dict(goal),
        "limits": {"steps": math.ceil(TICKS / ticks_per_step)},
        "difficulty": difficulty if difficulty in SETS else "",
        "metadata": metadata,
    }


def start_states(**values: Any) -> dict[str, Any]:
    """Returns the factors of a task whose start is its commands: plains by day, of any seed."""
    return {
        "biome": "plains",
        "time": "day",
        "weather": "clear",
        "loadout": "none",
        "mob": "none",
        "mobs": 0,
        "distance": 5,
        "difficulty": "easy",
        "site": "wild",
        "blueprint": 0,
        "health": 20,
        "food": 20,
        "experience": 0,
        "effect": "none",
        **values,
    }


@lru_cache
def _warn(path: Path, problems: tuple[TaskProblem, ...]) -> None:
    """Warns of a file's problems, once."""
    for problem in problems:
        doing = f"{problem.repair} is played" if problem.repair else "it is left out"
        log.warning("%s:%d: %s: %s; %s", path, problem.line, problem.given, problem.problem, doing)


def make(files: str, name: str, ticks_per_step: int) -> dict[str, Any] | None:
    """Returns the document of a task of a copy; None if the copy has no task of that name.

    Raises:
        ConfigError: its file is not valid.
    """
    path = find_files(files).get(name)
    if path is None:
        return None
    task = read_file(path)
    _warn(path, task.problems)
    return document(task, ticks_per_step)
