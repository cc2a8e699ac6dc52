"""Counts the distinguishable states of a task and names its inert factors.

    gamut states --config hunt_sheep_demo.yaml
    gamut states --set bridge=crafter --states 20

The file is the configuration of any job; bridge, task and state_set.only are read. Needs no Ray.
Exit status: 0 done, 2 invalid input, 3 the game failed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rollout.api import StateSpace
from rollout.cli import add_set, fail
from rollout.config import (
    BridgeConfig,
    PolicyConfig,
    Section,
    StateSetConfig,
    key,
    parse_set,
)
from rollout.configuration import document
from rollout.configuration.document import Document, from_document
from rollout.distinguish import Distinguishable, distinguishable
from rollout.errors import DONE, ENDED_SHORT, ContractError, GameError, InputError
from rollout.files import local_path
from rollout.signals import tell
from rollout.tasks import bridge_and_task

_FROM_FILE = ("bridge", "task", "state_set")  # not the policy: it may be untrained


class StatesConfig(Section):
    """The game and the actions by which states are distinguished."""

    bridge: BridgeConfig = key(..., "The game and what it shows.")
    task: str = key("", "Task of the bridge, or path of a .yaml file; empty for every state.")
    policy: PolicyConfig | None = key(None, "What chooses the actions; null for random ones.")
    state_set: StateSetConfig = key(StateSetConfig, "Its key only restricts factors.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    given = _parser().parse_args(arguments)
    try:
        config = _config(given.config, given.set)
        _, bridge, task = bridge_and_task(config.bridge, config.task)
        only = config.state_set.only
        found = distinguishable(
            bridge,
            task,
            None if config.policy is None else config.policy.build(),
            only=only,
            tried=given.states,
            steps=given.steps,
            seed=given.seed,
        )
    except InputError as error:
        return fail(error)
    except (GameError, ContractError) as error:
        return fail(error, ENDED_SHORT)
    lines = _lines(found, task.state_space.restrict(only))
    tell(json.dumps(found.describe(), indent=2) if given.json else "\n".join(lines))
    return DONE


def _config(path: Path | None, settings: Sequence[str]) -> StatesConfig:
    source = Document({}) if path is None else document.read(path.expanduser())
    data = source.data if isinstance(source.data, dict) else {}
    data = data["train"] if isinstance(data.get("train"), dict) else data  # of a sweep, a search
    kept = replace(source, data={k: v for k, v in data.items() if k in _FROM_FILE}, lines={})
    return from_document(StatesConfig, kept.override([parse_set(text) for text in settings]))


def _lines(found: Distinguishable, space: StateSpace) -> Iterator[str]:
    width = max(len(factor.name) for factor in space)
    for factor in space:
        if factor.size > 1:
            acts = factor.name not in found.inert
            seen = (
                "" if acts else f"  inert: nothing changed in {found.tried} of {found.tried} states"
            )
            yield f"{factor.name:{width}}  {factor.size:>12,}{seen}"
    yield f"states: {found.all_states:,}"
    yield f"states without the inert factors: {found.states:,}"
    if found.inert:
        yield (
            f"Episodes of {found.steps} steps at most. With these actions, each inert factor acts "
            f"in less than {found.acts_at_most:.1%} of the states (95 % confidence)."
        )
        fixed = (f"state_set.only.{n}=[{space.factor(n).values[0]}]" for n in found.inert)
        yield f"To hold them fixed: --set {' '.join(fixed)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", metavar="FILE", type=local_path, help="YAML file of any job")
    about = "sets a key of bridge, task, policy or state_set, e.g. policy=oracle"
    add_set(parser, "KEY=VALUE", about)
    parser.add_argument("--states", type=int, default=60, help="states to play from (60)")
    parser.add_argument("--steps", type=int, help="most steps of an episode (those of the task)")
    parser.add_argument("--seed", type=int, default=0, help="of states, actions and policy (0)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser
