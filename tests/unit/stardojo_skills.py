"""Plays StarDojo's tasks by skills of the oracle, in a valley without a host."""

from bridges.stardojo.commands import setup_values
from bridges.stardojo.judging import begin, judge
from bridges.stardojo.oracle.hands import NOTHING
from bridges.stardojo.oracle.oracle import PAUSE, Oracle
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.skills import DIRECTIONS

IDLE = 120  # ticks of a step without a skill
SKILLS_A_STEP = 2


def perform(valley, skill):
    """Carries one skill out, as the wrapper of the released code sends it."""
    name, args = skill
    if skill == NOTHING and valley.world.menu is None:
        valley.advance(IDLE)
    elif name == "move":
        valley.act("move_relative", args)
    elif name in ("use", "interact"):
        valley.act("turn", (DIRECTIONS.index(str(args[0])),))
        valley.act(name)
    elif name == "menu":
        valley.act({"close": "exit_menu"}.get(str(args[0]), f"open_{args[1]}"))
    else:
        valley.act(name, args)


def play(row, seed, judging="strict", chooser=None):
    """Returns the standing at the end of an episode, and how many steps it took.

    A step is two skills at most (section 4.1 of the paper); its limit is that of the paper.

    Args:
        row: the task.
        seed: of the valley.
        judging: ``strict`` or ``faithful``.
        chooser: from the valley and the task to what chooses each skill; None for the oracle.
    """
    valley = Valley(row.save, seed)
    for name, words in row.setup:
        valley.setup(name, setup_values(name, words))
    oracle = Oracle(valley, row, idle=judging == "faithful")
    choose = chooser(valley, row) if chooser else oracle.skill
    standing = begin(row, _observe(valley, row), judging)
    limit = row.steps("paper") or 0
    for step in range(1, limit + 1):
        for _ in range(SKILLS_A_STEP):
            skill = choose()
            if skill[0] == PAUSE:
                break
            perform(valley, skill)
        standing = judge(row, standing, _observe(valley, row), judging)
        if standing.completed:
            return standing, step
    return standing, limit


def _observe(valley, row):
    seen = valley.observe()
    if row.evaluator == "kill":
        seen["MonsterKills"] = {row.object: valley.world.farmer.kills.get(row.object, 0)}
    return seen
