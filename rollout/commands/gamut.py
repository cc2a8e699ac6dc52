"""The program ``gamut``: ``gamut train --config train.yaml`` runs a job."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from rollout.early import install


@dataclass(frozen=True)
class Command:
    """One command; nothing is imported before it is called.

    Attributes:
        doc: description of the command in one sentence.
        main: ``module:function`` that takes the arguments and returns the exit status; of a job,
            which also takes its configuration.
        config: ``module:class`` of the configuration of a job; empty for other commands.
        stops: the function handles signals itself.
        chosen: ``module:function`` that returns main and config instead of these for the name of an
            algorithm.
    """

    doc: str
    main: str
    config: str = ""
    stops: bool = False
    chosen: str = ""


COMMANDS: Mapping[str, Command] = {
    "collect": Command(
        "Runs episodes of a policy and records them as a dataset.",
        *("rollout.collect:collect", "rollout.config:CollectConfig"),
    ),
    "train": Command(
        "Trains a policy on one machine or a Ray cluster; with seeds=5 five times, side by side.",
        *("rollout.train.train:train", "rollout.train.config:TrainConfig"),
        chosen="rollout.sweep.jobs:job_of",
    ),
    "evaluate": Command(
        "Evaluates policies on sets of states and reports their scores.",
        *("rollout.evaluate.evaluate:evaluate", "rollout.evaluate.config:EvaluateConfig"),
        chosen="rollout.suite.jobs:job_of",
    ),
    "judge": Command(
        "Rates recorded episodes with a model and reports agreement with given ratings; with "
        "--again RUN_DIR judges them again by their evaluator.",
        *("rollout.judge.judge:judge", "rollout.judge.config:JudgeConfig"),
    ),
    "rate": Command(
        "Lets people rate recordings in a browser of this machine.", "rollout.commands.rate:main"
    ),
    "sweep": Command(
        "Trains on sets of growing size and reports the generalization gap.",
        *("rollout.sweep.sweep:sweep", "rollout.sweep.config:SweepConfig"),
    ),
    "tune": Command(
        "Searches for training settings by grid, random search or ASHA; gamut tune speed finds the "
        "fastest sizes.",
        *("rollout.train.search:search", "rollout.train.search_config:SearchConfig"),
    ),
    "profile": Command(
        "Shows where a training in one process spends its time, in a table and a flame graph.",
        *("rollout.train.profiling:profile", "rollout.train.config:TrainConfig"),
    ),
    "dataset": Command(
        "Describes, checks, repairs, exports and imports datasets, and replays episodes.",
        "rollout.commands.dataset:main",
    ),
    "export": Command(
        "Writes the network of a run as a folder for torch or ONNX, with a model card.",
        "rollout.commands.export:main",
    ),
    "play": Command(
        "Opens a game in a window for a person to play, and records it.",
        *("rollout.commands.play:play", "rollout.commands.play:PlayConfig"),
    ),
    "serve": Command(
        "Serves games to clients of OpenEnv: reset and step through a socket.",
        *("rollout.interop.serving:serve", "rollout.interop.serving:ServeConfig"),
    ),
    "mcp": Command(
        "Serves games to MCP clients: reset, act, observe and legal_actions as tools.",
        *("rollout.interop.mcp:mcp", "rollout.interop.mcp:McpConfig"),
    ),
    "watch": Command(
        "Shows the progress of a running or finished job.", "rollout.commands.watch:main"
    ),
    "plot": Command(
        "Draws learning curves of trainings, with bands over their seeds.",
        "rollout.commands.plot:main",
    ),
    "compare": Command(
        "Compares evaluations, or the validations of trainings, pair by pair.",
        "rollout.commands.compare:main",
    ),
    "board": Command(
        "Ranks evaluations of the same protocol, with intervals, comparisons and cost.",
        "rollout.commands.board:main",
    ),
    "view": Command(
        "Shows an evaluation, or recorded episodes, in a browser of this machine.",
        "rollout.commands.view:main",
    ),
    "submit": Command(
        "Submits a command to a Ray cluster as a job and follows its log.",
        "rollout.cluster.submit:run",
        stops=True,
    ),
    "check-bridge": Command(
        "Runs the conformance suite of bridges on a game.", "rollout.commands.check_bridge:main"
    ),
    "env": Command(
        "Makes the interpreter in which the games of a bridge run.", "rollout.commands.env:main"
    ),
    "states": Command(
        "Counts the distinguishable states of a task.", "rollout.commands.states:main"
    ),
    "tasks": Command("Lists, shows, checks and composes tasks.", "rollout.commands.tasks:main"),
    "new": Command(
        "Writes the skeleton of a plug-in: bridge, policy, evaluator or algorithm.",
        "rollout.commands.new:main",
    ),
    "clean": Command(
        "Ends processes and removes files that killed runs left behind; with --older removes runs.",
        "rollout.commands.clean:main",
    ),
}


FLAGS: Mapping[tuple[str, str], Command] = {
    ("judge", "--again"): Command(
        "Judges recorded episodes again by the evaluator of their task.",
        "rollout.commands.judge_again:main",
    ),
    ("tune", "speed"): Command(
        "Finds the sizes with which a training is fastest on this machine, and writes a "
        "configuration.",
        *("rollout.train.speed:tune", "rollout.train.config:TrainConfig"),
    ),
}
"""Commands that are chosen by a flag, or the first argument, of another one."""


RENAMED: Mapping[str, str] = {"clone": "train --set algorithm=bc"}
"""Commands of former versions, each with its new name."""


def main() -> NoReturn:
    """Runs ``gamut COMMAND ...`` and exits with its status."""
    install()  # signals, for as long as the imports below take
    from rollout.signals import leave, say  # noqa: PLC0415 - slow before the signals are handled

    given = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if given in {"-h", "--help"}:
        sys.stdout.write(_help())
        leave(0)
    if given == "--version":
        from importlib.metadata import version  # noqa: PLC0415 - likewise

        sys.stdout.write(f"gamut {version('gamut')}\n")
        leave(0)
    if given not in COMMANDS:
        from rollout.errors import UnknownNameError  # noqa: PLC0415 - likewise

        new = RENAMED.get(given)
        unknown = UnknownNameError("command", given, COMMANDS)
        say(f"error: {f'gamut {given} was renamed to gamut {new}' if new else unknown}")
        leave(2)
    sys.argv = [f"gamut {given}", *sys.argv[2:]]
    run(given)


def run(name: str) -> NoReturn:
    """Runs a command with the arguments of the process, and exits with its status.

    The caller has installed the handlers of ``rollout.early``.
    """
    flags = [flag.partition("=")[0] for flag in sys.argv[1:] if flag.startswith("-")]
    command = next((FLAGS[name, flag] for flag in flags if (name, flag) in FLAGS), COMMANDS[name])
    word = "".join(sys.argv[1:2])
    if (name, word) in FLAGS and word not in flags:
        command = FLAGS[name, sys.argv.pop(1)]
        sys.argv[0] += f" {word}"
    if command.config and not {"-h", "--help"} & set(sys.argv):
        # In the form of a log record; logging itself takes part of the time.
        _write(f"{time.strftime('%H:%M:%S')} INFO {name}: loading modules\n")
    from rollout.signals import interruptible, leave  # noqa: PLC0415 - see main

    function = _named(command.main)
    if command.config:
        from rollout.cli import main as run_job  # noqa: PLC0415 - only jobs need it

        chosen = _named(command.chosen) if command.chosen else None
        leave(run_job(function, _named(command.config), command.doc, chosen=chosen))
    leave(function() if command.stops else interruptible(function))


def _write(line: str) -> None:
    with contextlib.suppress(OSError):  # the terminal was closed
        os.write(2, line.encode())


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _help() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:{width}}{command.doc}" for name, command in COMMANDS.items()]
    return "\n".join(
        (
            "usage: gamut COMMAND ...",
            "",
            "Runs games at scale, records datasets, trains agents and measures generalization.",
            "",
            *lines,
            "",
            "gamut COMMAND --help describes a command; gamut --version prints the version.\n",
        )
    )
