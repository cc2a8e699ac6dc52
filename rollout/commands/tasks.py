"""Lists, shows, checks and composes the tasks of a bridge.

    gamut tasks list 'harvest_*' --bridge mineflayer
    gamut tasks show combat_1_zombie --bridge mineflayer
    gamut tasks check MCU_benchmark/task_configs --bridge mineflayer
    gamut tasks compose and atomic/hunt_pig atomic/mine_stone --bridge mineflayer --out both.yaml

Tasks are names, patterns of names, files, or folders of files, also of other projects' formats that
the bridge reads; `show` prints them as task files of Gamut. Launches nothing.
Exit status: 0 done, 2 invalid input, 3 the check found problems without a repair.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.api import Bridge, TaskProblem, TaskTools
from rollout.cli import DONE, ENDED_SHORT, add_set, fail
from rollout.commands.check_bridge import options
from rollout.config import BridgeConfig
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.files import local_path, write_atomically
from rollout.registry import names
from rollout.signals import tell
from rollout.tasks import bridge_and_task, read_task, task_names
from rollout.yaml12 import dump_yaml

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Checked:
    """A task that was checked.

    Attributes:
        name: its name, or the path of its file.
        problems: what is wrong; empty if nothing is.
    """

    name: str
    problems: tuple[TaskProblem, ...]

    @property
    def playable(self) -> bool:
        """Whether everything that is wrong is repaired."""
        return all(each.repair for each in self.problems)

    def describe(self) -> dict[str, Any]:
        """Returns it as plain data."""
        return {"task": self.name, "problems": [each.describe() for each in self.problems]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    given = _parser().parse_args(arguments)
    try:
        config = BridgeConfig.model_validate({"name": given.bridge, **options(given.set)})
        return int(given.run(config, given))
    except InputError as error:
        return fail(error)


def _list(config: BridgeConfig, given: argparse.Namespace) -> int:
    found = _matching(config.build(), given.pattern)
    tell(json.dumps(found, indent=2) if given.json else "\n".join(found))
    return DONE


def _show(config: BridgeConfig, given: argparse.Namespace) -> int:
    documents = [dict(_read(config, config.build(), each)) for each in given.tasks]
    if given.json:
        tell(json.dumps(documents, indent=2))
    else:
        tell("---\n".join(dump_yaml({**each, "bridge": config.name}) for each in documents))
    return DONE


def _compose(config: BridgeConfig, given: argparse.Namespace) -> int:
    bridge = config.build()
    documents = [_read(config, bridge, each) for each in given.tasks]
    whole = {**_tools(bridge).compose(given.operator, documents), "bridge": config.name}
    bridge_and_task(config, whole)
    if given.out is None:
        tell(json.dumps(whole, indent=2) if given.json else dump_yaml(whole))
        return DONE
    write_atomically(given.out, dump_yaml(whole))
    tell(str(given.out))
    return DONE


def _tools(bridge: Bridge) -> TaskTools:
    tools = bridge.spec.task_tools
    if tools is None:
        raise ConfigError(f"bridge {bridge.spec.name!r} cannot compose tasks, only load them")
    return tools


def _check(config: BridgeConfig, given: argparse.Namespace) -> int:
    bridge = config.build()
    checked = [check_task(config, bridge, each) for each in _targets(bridge, given.tasks)]
    if given.json:
        tell(json.dumps([each.describe() for each in checked], indent=2))
    else:
        tell("\n".join(_lines(checked)))
    return DONE if all(each.playable for each in checked) else ENDED_SHORT


def check_task(config: BridgeConfig, bridge: Bridge, task: str) -> Checked:
    """Returns what is wrong with a task, without launching anything.

    Args:
        config: of the bridge.
        bridge: built from it.
        task: a name, or the path of a file.
    """
    tools = bridge.spec.task_tools
    try:
        path = Path(task).expanduser()
        draft = tools.read(path) if tools and path.suffix in _SUFFIXES else None
        if draft is not None and draft.document is not None:
            document, problems = draft.document, list(draft.problems)
        else:
            document, problems = read_task(bridge.spec, config.name, task), []
        bridge_and_task(config, document)
        problems += tools.check(document) if tools else ()
    except InputError as error:
        return Checked(task, (TaskProblem(" ".join(str(error).split())),))
    return Checked(task, tuple(problems))


def _read(config: BridgeConfig, bridge: Bridge, task: str) -> Mapping[str, Any]:
    tools, path = bridge.spec.task_tools, Path(task).expanduser()
    draft = tools.read(path) if tools and path.suffix in _SUFFIXES else None
    if draft is not None and draft.document is not None:
        return draft.document
    return read_task(bridge.spec, config.name, task)


def _matching(bridge: Bridge, pattern: str) -> list[str]:
    maker = bridge.spec.task_maker
    every = list(dict.fromkeys((*task_names(bridge.spec), *(maker.names() if maker else ()))))
    found = fnmatch.filter(every, pattern)
    if not found:
        raise UnknownNameError("task", pattern, every)
    return found


def _targets(bridge: Bridge, given: Iterable[str]) -> Iterator[str]:
    """The names and files to check: those given, of folders those inside."""
    for each in given:
        path = Path(each).expanduser()
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES)
            if not inside:
                raise UnknownNameError("folder with task files", each, ())
            yield from map(str, inside)
        elif "*" in each:
            yield from _matching(bridge, each)
        else:
            yield each


def _lines(checked: Sequence[Checked]) -> Iterator[str]:
    for each in checked:
        for problem in each.problems:
            place = f"{each.name}:{problem.line}" if problem.line else each.name
            yield ": ".join(filter(None, (place, problem.given, problem.problem)))
            if problem.repair:
                yield f"    repaired: {problem.repair}"
    fine = sum(not each.problems for each in checked)
    repaired = sum(bool(each.problems) and each.playable for each in checked)
    yield (
        f"{len(checked)} tasks: {fine} without a problem, {repaired} repaired, "
        f"{len(checked) - fine - repaired} with problems that have no repair"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Any, about: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=about, description=about)
        command.set_defaults(run=run)
        command.add_argument(
            "--bridge", required=True, help=f"name of the bridge: {', '.join(names('bridges'))}"
        )
        add_set(command, "OPTION=VALUE", "options of the bridge, e.g. task_files=FOLDER")
        command.add_argument("--json", action="store_true", help="print JSON")
        return command

    listing = add("list", _list, "Lists the names of tasks.")
    listing.add_argument("pattern", nargs="?", default="*", help="pattern of names (all)")
    showing = add("show", _show, "Prints tasks as task files.")
    showing.add_argument("tasks", nargs="+", metavar="TASK", help="name, or file")
    composing = add("compose", _compose, "Prints or writes a task composed of others.")
    composing.add_argument("operator", choices=("and", "or", "then"), help="how")
    composing.add_argument("tasks", nargs="+", metavar="TASK", help="name, or file")
    composing.add_argument("--out", metavar="FILE", type=local_path, help="task file to write")
    checking = add("check", _check, "Checks tasks: names, commands, items, goals.")
    checking.add_argument("tasks", nargs="+", metavar="TASK", help="name, pattern, file or folder")
    return parser
