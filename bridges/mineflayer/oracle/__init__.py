"""Programs that solve MineLand's tasks by the ``code`` actions, as policies.

``program("harvest_8_cobblestone")`` returns the program of a task. Each consists of the task's
constants (what its goal says) and the files in this folder of its family, the last of which is its
own. It knows recipes, tools and mechanics of the game, and nothing of any world. In a play, all
actors run the same program, each with its own part. There are two ways to play it:

* ``policy.name=callable policy.function=bridges.mineflayer.oracle:harvest_8_cobblestone`` (see
  ``attribute`` for ids with a point) restarts it whenever it ends before its task;
* ``ScriptedPolicy(actions=script(task_id), after="noop")`` starts it once.

The baseline is ``policy.function=bridges.mineflayer.oracle:idle``: an agent whose program only
waits. All need ``bridge.actions=code``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bridges.mineflayer.blueprints import blueprint
from bridges.mineflayer.scripts import SCRIPTS
from bridges.mineflayer.spaces import CODE, KIND, MOST_CODE, NEW, RESUME
from bridges.mineflayer.task_ids import MinelandTask, parse
from rollout.api import Array, Columns
from rollout.errors import ConfigError, InputError

__all__ = [
    "PROGRAMS",
    "WAITING",
    "Act",
    "attribute",
    "idle",
    "player",
    "program",
    "read_part",
    "script",
]

PROGRAMS = Path(__file__).parent
_FAMILIES = {
    "harvest": ("walk", "library", "gather"),
    "techtree": ("walk", "library", "gather"),
    "combat": ("walk", "fight"),
    "survival": ("walk", "survive"),
    "construction": ("walk", "build"),
    "stage": ("walk", "act"),
}
"""The files of a program by the family of its task."""

_POINT = "__dot__"

WAITING = "while (true) await bot.waitForTicks(1200);\n"
"""The program of an agent that does nothing."""

Act = Callable[[Columns, Any, bool], Columns]


def program(task_id: str) -> str:
    """Returns the program that solves a task of MineLand.

    Raises:
        InputError: there is no such task.
        ConfigError: no program solves its family.
    """
    task = parse(task_id)
    if task.family not in _FAMILIES:
        raise ConfigError(
            f"no oracle plays {task.family} tasks such as {task_id!r}; expected one of the "
            f"families {', '.join(_FAMILIES)}"
        )
    text = _constants(task) + "".join(map(read_part, _FAMILIES[task.family]))
    if len(text) > MOST_CODE:
        raise ConfigError(f"the program of {task_id!r} has {len(text)} of {MOST_CODE} characters")
    return text


def script(task_id: str) -> dict[str, Array]:
    """Returns the actions of a script, ``{column: (T, ...)}``, that starts the program once."""
    return {
        KIND: np.array([NEW], np.int64),
        CODE: np.array([program(task_id)], object),
    }


def player(task_id: str) -> Act:
    """Returns a function for the policy ``callable`` that plays a task; raises like ``program``."""
    text = program(task_id)

    def act(observations: Columns, details: Any, explore: bool) -> Columns:
        """Starts the program in rows where none runs, else lets it continue."""
        return _begun(text, observations)

    return act


def idle(observations: Columns, details: Any, explore: bool) -> Columns:
    """Plays an agent that does nothing, for the policy ``callable``.

    Args:
        observations: with ``code_state``, ``(B, 3)``.
        details: not used.
        explore: not used.

    Returns:
        the actions, ``(B,)`` each.

    Raises:
        ConfigError: ``code_state`` is not observed.
    """
    return _begun(WAITING, observations)


def _begun(text: str, observations: Columns) -> Columns:
    """The actions that start a program in rows where none runs, and else let it continue."""
    if "code_state" not in observations:
        raise ConfigError("the oracle needs the observation code_state; add it to observe")
    ended = observations["code_state"][:, 0] == 0
    code = np.full(len(ended), "", object)
    code[ended] = text
    return {KIND: np.where(ended, NEW, RESUME).astype(np.int64), CODE: code}


def attribute(task_id: str) -> str:
    """Returns the name of a task's player in this module, with points spelt out."""
    return task_id.replace(".", _POINT)


def __getattr__(name: str) -> Act:
    """Returns the player of the task with that id, so that a policy can name it as a function."""
    if not name.startswith("_"):
        try:
            return player(name.replace(_POINT, "."))
        except InputError as error:
            raise AttributeError(f"module {__name__!r} plays no task {name!r}: {error}") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _constants(task: MinelandTask) -> str:
    named: Mapping[str, Any] = {"TARGET": task.target, "COUNT": task.count}
    if task.family == "construction":
        named = {"PLAN": [[*place, name] for place, name in blueprint(task.blueprint).plan.items()]}
    if task.family == "stage":
        script = SCRIPTS[task.target]
        held: dict[str, list[str]] = {actor: [] for actor in script.actors}
        for owned in script.give:
            actor, _, item = owned.partition(".")
            held[actor].append(item)
        named = {"ACTS": script.acts, "HELD": held}
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in named.items())


@lru_cache
def read_part(name: str) -> str:
    """Returns a program's text without comments, indentation and some spaces, to keep it short."""
    lines = (PROGRAMS / f"{name}.js").read_text(encoding="ascii").splitlines()
    bare = (line.strip() for line in lines)
    kept = (line for line in bare if not line.startswith(("//", "/**", "* ", "*/")))
    return "\n".join(line.replace(" => ", "=>") for line in kept) + "\n"
