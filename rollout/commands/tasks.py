"""Lists, shows, checks, composes and generates the tasks of a bridge.

    gamut tasks list 'harvest_*' --bridge mineflayer
    gamut tasks show combat_1_zombie --bridge mineflayer
    gamut tasks check MCU_benchmark/task_configs --bridge mineflayer
    gamut tasks compose and atomic/hunt_pig atomic/mine_stone --bridge mineflayer --out both.yaml
    gamut tasks generate 'Trade for a bell.' --bridge mineflayer --out new --url URL --model NAME

Tasks are names, patterns of names, files, or folders of files, also of other projects' formats that
the bridge reads; `show` prints them as task files of Gamut. `check` launches nothing, unless
--begin or --play ask for it; it says what shows that a task can be solved.
Exit status: 0 done, 2 invalid input, 3 the check found problems without a repair.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.api import Bridge, Solution, TaskDraft, TaskProblem, TaskTools
from rollout.cli import add_set, fail
from rollout.commands.check_bridge import options
from rollout.config import BridgeConfig, Section, key
from rollout.configuration.document import Document, from_document
from rollout.errors import (
    DONE,
    ENDED_SHORT,
    BudgetExhausted,
    ConfigError,
    GameError,
    InputError,
    UnknownNameError,
)
from rollout.files import local_path, write_atomically
from rollout.models.client import ModelClient
from rollout.models.sections import Endpoint, RunLimits, Sampling
from rollout.models.transport import check_endpoint
from rollout.registry import names
from rollout.signals import tell
from rollout.task_generation import Generated, generate, shares
from rollout.task_trial import try_task
from rollout.tasks import bridge_and_task, read_task, task_names
from rollout.yaml12 import dump_yaml

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Checked:
    """A task that was checked.

    Attributes:
        name: its name, or the path of its file.
        problems: what is wrong; empty if nothing is.
        shown: evidence that it can be solved: ``plan``, ``oracle``, ``won``, ``lost``; empty for
            none.
    """

    name: str
    problems: tuple[TaskProblem, ...]
    shown: str = ""

    @property
    def playable(self) -> bool:
        """Whether everything that is wrong is repaired."""
        return all(each.repair for each in self.problems)

    def describe(self) -> dict[str, Any]:
        """Returns it as plain data."""
        problems = [each.describe() for each in self.problems]
        return {"task": self.name, "problems": problems, "solvable": self.shown or "not shown"}


class _TasksConfig(Section):
    bridge: BridgeConfig = key(..., "The game.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    given = _parser().parse_args(arguments)
    try:
        asked = {"bridge": {"name": given.bridge, **options(given.set)}}
        config = from_document(_TasksConfig, Document(asked)).bridge
        return int(given.run(config, given))
    except InputError as error:
        return fail(error)
    except (GameError, BudgetExhausted) as error:
        return fail(error, ENDED_SHORT)


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


def _generate(config: BridgeConfig, given: argparse.Namespace) -> int:
    """Writes a task file for each usable task, and ``generated.json`` with all results."""
    bridge = config.build()
    tools, folder = _tools(bridge), given.out
    goals = [_goal_of(config, bridge, each) for each in given.goals]
    endpoint = Endpoint(url=given.url, key_env=given.key_env)
    check_endpoint(endpoint)
    limits = RunLimits(calls=given.calls, usd=given.usd)
    folder.mkdir(parents=True, exist_ok=True)
    client = ModelClient(
        endpoint, given.model, limits=limits, prices="", replies=folder / "replies"
    )
    sampling = Sampling(temperature=given.temperature, max_tokens=given.max_tokens)
    found: list[Generated] = []
    for each in generate(
        config, tools, client, goals, difficulty=given.difficulty, tries=given.tries,
        sampling=sampling, play=given.play,
    ):  # fmt: skip
        found.append(each)
        if each.usable and each.document is not None:
            document = {**each.document, "bridge": config.name}
            document["metadata"] = {
                **document["metadata"],
                "model": given.model,
                "solvable": each.solvable or "not shown",
            }
            write_atomically(folder / f"{document['name']}.yaml", dump_yaml(document))
        why = "" if each.usable or not each.problems else f": {each.problems[0].problem}"
        tell(f"{each.goal}: {', '.join(each.passed) or 'nothing passed'}{why}")
        about = {"model": given.model, "shares": shares(found), "spent": client.spent.price_text()}
        whole = {**about, "tasks": [done.describe() for done in found]}
        write_atomically(folder / "generated.json", json.dumps(whole, indent=2) + "\n")
    tell("\n".join(f"{stage}: {row['last']:.0%} (first answer {row['first']:.0%})"
                   for stage, row in shares(found).items()))  # fmt: skip
    return DONE if all(each.usable for each in found) else ENDED_SHORT


def _goal_of(config: BridgeConfig, bridge: Bridge, text: str) -> str:
    """The words of a goal: those of a task of that name, else the text itself."""
    if " " in text.strip():
        return text.strip()
    return str(_read(config, bridge, text).get("goal", ""))


def _tools(bridge: Bridge) -> TaskTools:
    tools = bridge.spec.task_tools
    if tools is None:
        raise ConfigError(
            f"bridge {bridge.spec.name!r} has no tools to make tasks; its tasks can be listed, "
            f"shown and checked"
        )
    return tools


def _check(config: BridgeConfig, given: argparse.Namespace) -> int:
    bridge = config.build()
    checked = []
    for each in _targets(bridge, given.tasks):
        begin = given.begin or given.play
        checked.append(check_task(config, bridge, each, begin=begin, play=given.play))
        if not given.json:
            for line in _lines(checked[-1]):
                tell(line)
    described = [each.describe() for each in checked]
    tell(json.dumps(described, indent=2) if given.json else _summary(checked))
    return DONE if all(each.playable for each in checked) else ENDED_SHORT


def check_task(
    config: BridgeConfig, bridge: Bridge, task: str, *, begin: bool = False, play: bool = False
) -> Checked:
    """Returns what is wrong with a task, and what shows that it can be solved.

    Args:
        config: of the bridge.
        bridge: built from it.
        task: a name, or the path of a file.
        begin: whether a game begins an episode of it.
        play: whether the solution that the bridge knows is played.
    """
    tools = bridge.spec.task_tools
    try:
        draft = _draft(tools, task)
        problems = list(draft.problems) if draft else []
        document = draft.document if draft else read_task(bridge.spec, config.name, task)
        if document is None:
            return Checked(task, tuple(problems))
        return check_document(config, tools, document, task, problems, begin=begin, play=play)
    except InputError as error:
        return Checked(task, (TaskProblem(" ".join(str(error).split())),))


def check_document(
    config: BridgeConfig,
    tools: TaskTools | None,
    document: Mapping[str, Any],
    name: str,
    known: Sequence[TaskProblem] = (),
    *,
    begin: bool = False,
    play: bool = False,
) -> Checked:
    """Returns what is wrong with the contents of a task file, beside what is known.

    Raises:
        InputError: the task cannot be loaded.
    """
    bridge_and_task(config, document)
    problems = [*known, *(tools.check(document) if tools else ())]
    solution = tools.solve(document) if tools else Solution()
    shown = solution.kind
    if begin and all(each.repair for each in problems):
        trial = try_task(config, document, solution if play else None)
        problems += [TaskProblem(f"in the game: {trial.error}")] if trial.error else []
        shown = shown if trial.won is None else "won" if trial.won else "lost"
    return Checked(name, tuple(problems), shown)


def _draft(tools: TaskTools | None, task: str) -> TaskDraft | None:
    path = Path(task).expanduser()
    return tools.read(path) if tools and path.suffix in _SUFFIXES else None


def _read(config: BridgeConfig, bridge: Bridge, task: str) -> Mapping[str, Any]:
    draft = _draft(bridge.spec.task_tools, task)
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
                raise ConfigError(f"{each}: expected YAML files of tasks in this folder, got none")
            yield from map(str, inside)
        elif "*" in each:
            yield from _matching(bridge, each)
        else:
            yield each


def _lines(checked: Checked) -> Iterator[str]:
    for problem in checked.problems:
        place = f"{checked.name}:{problem.line}" if problem.line else checked.name
        said = problem.problem.removeprefix(f"{checked.name}: ")
        yield ": ".join(filter(None, (place, problem.given, said)))
        if problem.repair:
            yield f"    repaired: {problem.repair}"
    if checked.shown == "lost":
        yield f"{checked.name}: the program of the bridge did not win"


def _summary(checked: Sequence[Checked]) -> str:
    fine = sum(not each.problems for each in checked)
    repaired = sum(bool(each.problems) and each.playable for each in checked)
    shown = Counter(each.shown or "not shown" for each in checked)
    return (
        f"{len(checked)} tasks: {fine} without a problem, {repaired} repaired, "
        f"{len(checked) - fine - repaired} with problems that have no repair\n"
        f"can be solved: " + ", ".join(f"{count} {how}" for how, count in shown.most_common())
    )


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text}")
    return number


def _amount(text: str) -> float:
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number from 0, got {text}")
    return number


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
    generating = add("generate", _generate, "Lets a language model write tasks, and tries them.")
    generating.add_argument("goals", nargs="+", metavar="GOAL", help="what is asked, or a task")
    generating.add_argument("--out", metavar="DIR", type=local_path, required=True, help="folder")
    generating.add_argument("--model", required=True, help="name of the model at the endpoint")
    generating.add_argument("--url", required=True, help="its address, e.g. http://127.0.0.1/v1")
    generating.add_argument("--key-env", default="", help="environment variable of the key")
    generating.add_argument("--difficulty", choices=("simple", "hard"), default="simple")
    generating.add_argument("--tries", type=_count, default=3, help="most answers for a goal (3)")
    generating.add_argument("--temperature", type=_amount, default=0.7, help="of the model (0.7)")
    generating.add_argument("--max-tokens", type=_count, default=2048, help="of an answer (2048)")
    generating.add_argument("--calls", type=_count, help="most calls of all")
    generating.add_argument("--usd", type=_amount, help="most US dollars of all")
    generating.add_argument("--play", action="store_true", help="play the known solutions")
    checking = add("check", _check, "Checks tasks: names, commands, items, goals.")
    checking.add_argument("tasks", nargs="+", metavar="TASK", help="name, pattern, file or folder")
    checking.add_argument("--begin", action="store_true", help="begin an episode of each")
    checking.add_argument("--play", action="store_true", help="play the known solution of each")
    return parser
