"""Tasks from ids, MineLand's and ours, and what embedded worlds lack for them.

A task is made as the contents that the file of its id would have.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bridges.mineflayer import mcu_files
from bridges.mineflayer.atomic import make as make_atomic
from bridges.mineflayer.atomic import names as atomic_names
from bridges.mineflayer.factors import CONDITION
from bridges.mineflayer.loadouts import LOADOUTS, NONE, parse_loadout
from bridges.mineflayer.minenpc.documents import make as make_npc
from bridges.mineflayer.minenpc.documents import task_names as npc_names
from bridges.mineflayer.names import VERSION
from bridges.mineflayer.scripts import SCRIPTS
from bridges.mineflayer.task_files import Row, load_files
from bridges.mineflayer.task_ids import (
    PLAYGROUND,
    PLAYTHROUGH,
    MinelandTask,
    generate,
    parse,
    regular_id,
)
from rollout.errors import ConfigError, UnknownNameError
from rollout.yaml12 import load_yaml

# what embedded worlds lack ------------------------------------------------------------------------

log = logging.getLogger(__name__)
_DATA = Path(__file__).parent / "data"
_TABLE = _DATA / "lacking.yaml"
_ITEMS = _DATA / "obtainable.json"


@lru_cache
def _table() -> Mapping[str, Mapping[str, re.Pattern[str]]]:
    data: Mapping[str, Mapping[str, Any]] = load_yaml(_TABLE, ours=True)
    return {
        mechanic: {key: re.compile(text, re.IGNORECASE) for key, text in patterns.items()}
        for mechanic, patterns in data.items()
    }


def mechanics() -> tuple[str, ...]:
    """Returns the names of the mechanics that embedded worlds lack."""
    return tuple(_table())


@lru_cache
def obtainable() -> frozenset[str]:
    """Returns the items that agents can come by in embedded worlds; see game/obtainable.js."""
    return frozenset(json.loads(_ITEMS.read_text()))


def lacking_for_item(item: str) -> str | None:
    """Returns the mechanic that an item needs and embedded worlds lack; None if it can be had."""
    if item in obtainable():
        return None
    found = (name for name, of in _table().items() if "items" in of and of["items"].search(item))
    return next(found, "a way to come by it")


def lacking_for_goal(goal: str) -> list[str]:
    """Returns the mechanics that the words of a goal ask for and embedded worlds lack."""
    return [name for name, of in _table().items() if "words" in of and of["words"].search(goal)]


def check_item(task_id: str, item: str, given: bool) -> None:
    """Checks that an item can be had in embedded worlds.

    Args:
        task_id: for the message.
        item: what is to be had.
        given: whether the agents have some at the start.

    Raises:
        ConfigError: it cannot; the message names the mechanic that is missing.
    """
    mechanic = None if given else lacking_for_item(item)
    if mechanic is not None:
        raise ConfigError(
            f"task {task_id!r}: {item} needs {mechanic}, which embedded worlds lack; play it on a "
            f"server that has it (bridge.mode=remote), or choose another item"
        )


@lru_cache
def warn(task_id: str, mechanics: tuple[str, ...]) -> None:
    """Warns, once, that a task asks for something that embedded worlds lack."""
    log.warning(
        "task %s: its goal seems to need %s, which embedded worlds lack (bridge.mode=remote)",
        task_id,
        ", ".join(mechanics),
    )


# documents ----------------------------------------------------------------------------------------

DAY = 24_000
"""Ticks of a day."""

TIME = {
    "harvest": DAY,
    "techtree": DAY,
    "combat": 2400,
    "construction": DAY,
    "stage": DAY // 2,
    "creative": DAY // 2,
    "playthrough": 20 * DAY,
}
"""Ticks of game time of a task; survival has the days in its name. MineLand has no limits."""

_OURS = ("construction", "stage", "creative")
"""Families whose tasks are ours, if they do not come from a copy of MineLand's files."""

_GROWS = _DATA / "grows.yaml"

_HEADS = ("harvest_", "techtree_", "_techtree_", "combat_", "survival_", "creative_",
          "construction_task_", "stage_performance_", "build_", "play_")  # fmt: skip
_OF_FILES = ("construction_task_", "stage_performance_", "creative_")
_BURNING = ("zombie", "skeleton", "stray", "phantom")
"""Mobs that daylight kills, so that in MineLand's permanent morning no agent had to fight them."""


@lru_cache
def _grows() -> Sequence[tuple[re.Pattern[str], Mapping[str, Any]]]:
    rows: Sequence[Mapping[str, Any]] = load_yaml(_GROWS, ours=True)
    return [(re.compile(row["targets"]), row) for row in rows]


def biomes_for(target: str) -> list[str]:
    """Returns the biomes in which a target is common; none if it is in all of them."""
    row = next(row for pattern, row in _grows() if pattern.search(target))
    return list(row.get("biomes", ()))


def usual_states(**values: Any) -> dict[str, Any]:
    """Returns the factors of a task: those given, and what is usual for the others."""
    return {
        "time": "day",
        "weather": "clear",
        "loadout": NONE,
        "mob": NONE,
        "mobs": 0,
        "distance": 5,
        "difficulty": "peaceful",
        "site": "wild",
        "blueprint": 0,
        **CONDITION,
        **values,
    }


@dataclass(frozen=True)
class MinelandTasks:
    """Makes tasks from MineLand's ids; see ``rollout.api.bridge.TaskMaker``.

    Attributes:
        ticks_per_step: of the bridge, for limits in steps.
        agents: agents of a world, which are judged together.
        competitive: whether they compete.
        version: version of Minecraft.
        files: folder of a user's copy of MineLand's task files; empty for none.
        embedded: whether it is played in embedded worlds, which lack some mechanics.
    """

    ticks_per_step: int = 5
    agents: int = 1
    competitive: bool = False
    version: str = VERSION
    files: str = ""
    embedded: bool = True

    def names(self) -> Iterable[str]:
        """Returns those ids of MineLand's lists that are possible, and ours."""
        files = (*load_files(self.files), *mcu_files.find_files(self.files))
        return (*generate(), *files, *atomic_names(), *npc_names())

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Returns the contents of a task's file; see ``rollout.api.bridge.TaskMaker``."""
        rows = load_files(self.files)
        if name in rows:
            return self._of_row(rows[name])
        asked = mcu_files.make(self.files, name, self.ticks_per_step)
        asked = asked or make_atomic(name, self.ticks_per_step)
        asked = asked or make_npc(name, self.ticks_per_step)
        if asked is not None:
            return asked
        if rows and name.startswith(_OF_FILES):
            raise UnknownNameError("task", name, rows)
        if not name.startswith(_HEADS) and name not in (PLAYGROUND, PLAYTHROUGH):
            return None
        try:
            task = parse(name, self.version)
        except UnknownNameError as error:
            if error.kind == "task":  # not an id of this form: files may have similar names
                return None
            raise
        if task.family == "playthrough" and not self.embedded:
            raise ConfigError("task 'playthrough' counts the dragon of an embedded world")
        if self.embedded and task.family in ("harvest", "techtree"):
            given = {item.name for item in parse_loadout(task.loadout)}
            check_item(task.id, task.target, task.target in given)
        return self._document(task, irregular=regular_id(name) != name)

    def _document(self, task: MinelandTask, *, irregular: bool) -> dict[str, Any]:
        evaluator, options, states = self._asked(task)
        known = task.loadout in LOADOUTS
        if not known:
            counts = {item.name: item.count for item in parse_loadout(task.loadout)}
            options = {**options, "give": counts}
        ticks = task.days * DAY if task.family == "survival" else TIME[task.family]
        whole: dict[str, Any] = {
            "name": task.id,
            "goal": task.goal,
            "state_space": usual_states(loadout=task.loadout if known else NONE, **states),
            "evaluator": evaluator,
            "limits": self._limits(ticks),
            "metadata": {
                "family": task.family,
                "source": "Gamut" if task.family in _OURS else "MineLand",
            },
        }
        if options:
            whole["options"] = options
        if irregular:
            whole["metadata"]["irregular_id"] = True
        return whole

    def _limits(self, ticks: float) -> dict[str, int]:
        return {"steps": math.ceil(ticks / self.ticks_per_step) + 1}

    def _of_row(self, row: Row) -> dict[str, Any]:
        """The document of an id of the user's files."""
        metadata: dict[str, Any] = {"family": row.family, "source": "MineLand"}
        lacks = lacking_for_goal(f"{row.goal} {row.guidance}") if self.embedded else []
        if lacks:
            metadata["lacks"] = lacks
            warn(row.id, tuple(lacks))
        if row.left_out:
            metadata["left_out"] = list(row.left_out)
        if row.guidance or row.actors:
            metadata |= {"asked": row.goal, "guidance": row.guidance}
        if row.personalities:
            metadata["personalities"] = dict(row.personalities)
        options: dict[str, Any] = {"give": dict(row.give)} if row.give else {}
        goal = row.goal or "Build what the blueprint shows."
        evaluator: dict[str, Any] = {"name": "mineland_creative", "goal": goal}
        states, family = usual_states(), "creative"
        if row.picture:
            options["blueprint_file"] = metadata["reference"] = row.picture
        if row.baseline:
            metadata["baseline"] = row.baseline
        if row.family == "construction":
            family = "construction"
        if row.family == "stage_performance":
            family = "stage"
            who = ", ".join(
                f"{actor} ({row.personalities[actor]})" if actor in row.personalities else actor
                for actor in row.actors
            )
            goal = f"{goal} The actors: {who}."
            evaluator = {"name": "mineland_stage", "acts": [list(act) for act in row.acts]}
            evaluator["agents"] = len(row.actors)
            options |= {"agents": len(row.actors), "names": list(row.actors), "spawning": False}
            if row.commands:
                options["commands"] = list(row.commands)
            # Not peaceful, where no agent ever gets hungry enough to eat.
            states = usual_states(site="flat", difficulty="easy")
        return {
            "name": row.id,
            "goal": f"{goal}\n{row.guidance}" if row.guidance else goal,
            "state_space": states,
            "evaluator": evaluator,
            "limits": self._limits(TIME[family]),
            "metadata": metadata,
            **({"options": options} if options else {}),
        }

    def _asked(self, task: MinelandTask) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Evaluator, options of the bridge, and factors of a task."""
        judged: dict[str, Any] = {"agents": self.agents}
        competing = {**judged, "competitive": self.competitive}
        if task.family in ("harvest", "techtree"):
            asked = {"target": task.target, "count": task.count}
            biomes = biomes_for(task.target)
            where = {"biome": biomes} if biomes else {}
            return {"name": f"mineland_{task.family}", **asked, **competing}, {}, where
        if task.family == "combat":
            asked = {"target": task.target, "count": task.count}
            evaluator = {"name": "mineland_combat", **asked, **judged}
            states = {
                "mob": task.target,
                "mobs": task.count,
                "difficulty": "normal",
                "site": "flat",
                "time": "midnight" if task.target in _BURNING else "day",
            }
            # No mobs but the targets, and permanent night, or daylight would kill the targets.
            return evaluator, {"spawning": False, "daylight": False}, states
        if task.family == "survival":
            evaluator = {"name": "mineland_survival", "days": task.days, **competing}
            return evaluator, {}, {"difficulty": "normal"}
        if task.family == "construction":
            evaluator = {"name": "mineland_construction", **judged}
            return evaluator, {}, {"site": "flat", "blueprint": task.blueprint}
        if task.family == "stage":
            script = SCRIPTS[task.target]
            evaluator = {"name": "mineland_stage", "script": task.target}
            cast = {"agents": len(script.actors), "names": list(script.actors)}
            mob = {"mob": script.mob, "mobs": 1} if script.mob else {}
            # Not peaceful, where no agent ever gets hungry enough to eat; but no other mobs come.
            states = {"site": "flat", "difficulty": "easy", **mob}
            return evaluator, {**cast, "give": dict(script.give), "spawning": False}, states
        states = {}
        evaluator = {"name": "mineland_creative", "goal": task.goal}
        if task.family == "playthrough":
            # The dragon of the End is the only target.
            asked = {"target": task.target, "placed": False}
            evaluator = {"name": "mineland_combat", **asked, **judged}
            states = {"difficulty": "normal"}
        return evaluator, {}, states
