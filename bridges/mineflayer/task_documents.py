"""Makes tasks from MineLand's ids: the contents that the file of each would have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bridges.mineflayer.factors import CONDITION
from bridges.mineflayer.loadouts import LOADOUTS, NONE, parse_loadout
from bridges.mineflayer.names import VERSION
from bridges.mineflayer.scripts import SCRIPTS
from bridges.mineflayer.task_ids import (
    PLAYGROUND,
    MinelandTask,
    generate,
    parse,
    regular_id,
)
from rollout.errors import UnknownNameError

DAY = 24_000
"""Ticks of a day."""

TIME = {
    "harvest": DAY,
    "techtree": DAY,
    "combat": 2400,
    "construction": DAY,
    "stage": DAY // 2,
    "creative": DAY // 2,
}
"""Ticks of game time of a task; survival has the days in its name. MineLand has no limits."""

SOURCES = dict.fromkeys(("construction", "stage"), "Gamut; only the id is MineLand's")
"""Where tasks come from whose contents are not MineLand's, by family."""

_HEADS = ("harvest_", "techtree_", "_techtree_", "combat_", "survival_", "creative_",
          "construction_task_", "stage_performance_")  # fmt: skip
_BURNING = ("zombie", "skeleton", "stray", "phantom")
"""Mobs that daylight kills, so that in MineLand's permanent morning no agent had to fight them."""


@dataclass(frozen=True)
class MinelandTasks:
    """Makes tasks from MineLand's ids; see ``rollout.api.bridge.TaskMaker``.

    Attributes:
        ticks_per_step: of the bridge, for limits in steps.
        agents: agents of a world, which are judged together.
        competitive: whether they compete.
        version: version of Minecraft.
    """

    ticks_per_step: int = 5
    agents: int = 1
    competitive: bool = False
    version: str = VERSION

    def names(self) -> Iterable[str]:
        """Returns those ids of MineLand's lists that are possible."""
        return generate()

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Returns the contents of a task's file; see ``rollout.api.bridge.TaskMaker``."""
        if not name.startswith(_HEADS) and name not in (PLAYGROUND, "playthrough"):
            return None
        try:
            task = parse(name, self.version)
        except UnknownNameError as error:
            if error.kind == "task":  # not an id of this form: files may have similar names
                return None
            raise
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
            "state_space": {
                "time": "day",
                "weather": "clear",
                "loadout": task.loadout if known else NONE,
                "mob": NONE,
                "mobs": 0,
                "distance": 5,
                "difficulty": "peaceful",
                "site": "wild",
                "blueprint": 0,
                **CONDITION,
                **states,
            },
            "evaluator": evaluator,
            "limits": {"steps": math.ceil(ticks / self.ticks_per_step) + 1},
            "metadata": {"family": task.family, "source": SOURCES.get(task.family, "MineLand")},
        }
        if options:
            whole["options"] = options
        if irregular:
            whole["metadata"]["irregular_id"] = True
        return whole

    def _asked(self, task: MinelandTask) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Evaluator, options of the bridge, and factors of a task."""
        judged: dict[str, Any] = {"agents": self.agents}
        competing = {**judged, "competitive": self.competitive}
        if task.family in ("harvest", "techtree"):
            asked = {"target": task.target, "count": task.count}
            return {"name": f"mineland_{task.family}", **asked, **competing}, {}, {}
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
        return {"name": "mineland_creative", "goal": task.goal}, {}, {}
