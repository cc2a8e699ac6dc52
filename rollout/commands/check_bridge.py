"""Runs the conformance suite of bridges on a game and prints its report.

    gamut check-bridge gymnasium --set id=CartPole-v1 --steps 200

Exit status: 0 every check passed, 2 invalid input, 3 a check failed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from typing import Any

from rollout.cli import add_set, fail
from rollout.config import build_plugin, parse_set
from rollout.errors import DONE, ENDED_SHORT, ConfigError, ContractError, InputError
from rollout.host.interpreter import check_interpreter, interpreter_of
from rollout.named_code import search_current_folder
from rollout.registry import names
from rollout.signals import tell
from rollout.testing import check_bridge
from rollout.testing.isolated import IsolatedBridge


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    asked = _parser().parse_args(arguments)
    search_current_folder()
    try:
        bridge = build_plugin("bridges", asked.name, options(asked.set))
        _ = bridge.spec  # where many options show whether the game exists
        python = interpreter_of(asked.python, bridge)
        if python is not None:
            check_interpreter(python, bridge)
            bridge = IsolatedBridge(bridge, asked.python)
        report = check_bridge(
            bridge,
            steps=asked.steps,
            width=asked.width,
            seed=asked.seed,
            timeout_s=asked.timeout,
            only=asked.only,
        )
    except InputError as error:
        return fail(error)
    except ContractError as error:  # without a spec there is nothing to run the suite on
        return fail(error, ENDED_SHORT)
    tell(json.dumps(report.describe(), indent=2) if asked.json else report.table())
    return DONE if report.passed else ENDED_SHORT


def options(settings: Iterable[str]) -> dict[str, Any]:
    """Returns the options of the bridge; ``id=x`` and ``bridge.id=x`` mean the same.

    Raises:
        ConfigError: a setting is not KEY=VALUE, or its key lies deeper than an option.
    """
    out: dict[str, Any] = {}
    for text in settings:
        key, value = parse_set(text)
        name = key.removeprefix("bridge.")
        if "." in name or name in out:
            problem = "is given twice" if name in out else "is no option of a bridge"
            raise ConfigError(f"--set {text!r}: {name!r} {problem}; expected OPTION=VALUE once")
        out[name] = value
    return out


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", help=f"name of the bridge: {', '.join(names('bridges'))}")
    add_set(parser, "OPTION=VALUE", "options of the bridge")
    parser.add_argument("--python", help="interpreter of the games, as host.python of a run")
    parser.add_argument("--steps", type=int, default=100, help="steps of each trajectory (100)")
    parser.add_argument("--width", type=int, help="slots of an instance (up to 4)")
    parser.add_argument("--seed", type=int, default=0, help="seed of starts and actions (0)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per check (120)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CHECK",
        help="run only this check; can be given several times",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser
