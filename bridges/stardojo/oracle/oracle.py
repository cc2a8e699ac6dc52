"""The oracle: the script of each kind of task, and how it is played step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

from bridges.stardojo.oracle import explore, farm, made, people, supplies
from bridges.stardojo.oracle.hands import NOTHING, Hands, Plan, Skill
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.task_row import TaskRow
from rollout.errors import UnknownNameError

PAUSE = "pause"  # ends a step early, so that it is observed

SCRIPTS: Mapping[tuple[str, str], Callable[[Hands, TaskRow], Plan]] = {
    ("farming", "clear"): farm.clear,
    ("farming", "till"): farm.till,
    ("farming", "fertilize"): farm.fertilize,
    ("farming", "sow"): farm.sow,
    ("farming", "water"): farm.water,
    ("farming", "harvest"): farm.harvest,
    ("farming", "pet"): farm.pet,
    ("farming", "open"): farm.open_gate,
    ("farming", "close"): farm.open_gate,
    ("farming", "fill"): farm.fill,
    ("farming", "incubate"): farm.incubate,
    ("farming", "friendship"): farm.befriend_pet,
    ("crafting", "craft"): made.craft,
    ("exploration", "sleep"): lambda hands, row: supplies.sleep(hands),
    ("exploration", "location"): explore.location,
    ("exploration", "harvest"): explore.harvest,
    ("exploration", "silo"): explore.hay,
    ("exploration", "quit"): explore.quit_quest,
    ("exploration", "reward"): explore.reward,
    ("exploration", "complete_help"): explore.help_wanted,
    ("exploration", "complete_story"): explore.story,
    ("combat", "kill"): lambda hands, row: supplies.fight(hands, row.object, row.quantity),
    ("social", "sell"): people.sell,
    ("social", "purchase"): lambda hands, row: supplies.buy(hands, row.object, row.quantity),
    ("social", "upgrade_tool"): people.upgrade_tool,
    ("social", "break"): people.crack,
    ("social", "jojamart"): people.joja,
    ("social", "backpack"): people.backpack,
    ("social", "purchase_animal"): people.buy_animal,
    ("social", "sell_animal"): people.sell_animal,
    ("social", "build"): people.build,
    ("social", "move"): people.move,
    ("social", "demolish"): people.demolish,
    ("social", "upgrade_farmhouse"): people.upgrade_house,
    ("social", "talk"): lambda hands, row: people.meet(hands, row.object),
    ("social", "gift"): lambda hands, row: people.meet(hands, row.object, row.tool),
    ("social", "friendship"): people.befriend,
}


class Oracle:
    """Solves one task in one valley, skill by skill.

    Args:
        valley: in which.
        row: the task.
        idle: whether to do nothing in the first step, which the released evaluators never count.

    Raises:
        UnknownNameError: there is no script for such a task.
    """

    def __init__(self, valley: Valley, row: TaskRow, *, idle: bool = False) -> None:
        script = SCRIPTS.get((row.category, row.evaluator))
        if script is None:
            known = [f"{category} {name}" for category, name in SCRIPTS]
            raise UnknownNameError("script", f"{row.category} {row.evaluator}", known)
        first = [NOTHING, (PAUSE, ())] if idle else []
        self._plan = chain(first, script(Hands(valley), row))

    def skill(self) -> Skill:
        """Returns the next skill; waits when the script is over.

        The one before must have been carried out.
        """
        return next(self._plan, NOTHING)
