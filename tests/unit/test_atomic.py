"""Atomic tasks from the game's data, and the check of tasks against the game's rules."""

import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.atomic import atomic_tasks, counts, make, names
from bridges.mineflayer.atomic_rows import SOURCES, tables
from bridges.mineflayer.task_check import check
from bridges.mineflayer.task_plan import Supplies, plan, supplies
from rollout.commands.tasks import main
from rollout.config import build_plugin
from rollout.errors import UnknownNameError

SEVENTH = list(atomic_tasks())[::7]


def test_there_are_thousands_in_the_categories_of_mcu():
    found = counts()
    assert len(found) == 11
    assert len(tables()["rules"]) == sum(len(kinds) for kinds in found.values()) == 41
    assert len(atomic_tasks()) > 3500
    assert len(list(names())) == 2 * len(atomic_tasks())
    assert {rule["each"] for rule in tables()["rules"].values()} == set(SOURCES)


def test_nonsense_is_left_out():
    nonsense = {"craft_air", "craft_bedrock", "mine_bedrock", "find_spawner", "combat_wither"}
    assert nonsense.isdisjoint(atomic_tasks())
    with pytest.raises(UnknownNameError, match="craft_bread"):
        make("atomic/craft_bred", 5)


@pytest.mark.parametrize("hard", ["", "/hard"])
def test_they_pass_the_check(hard):
    problems = {n: check(make(f"atomic/{n}{hard}", 5)) for n in SEVENTH}
    assert {n: each for n, each in problems.items() if each} == {}


def test_each_rule_makes_tasks_that_load():
    spec = MineflayerBridge().spec
    for task in {task.kind: task for task in atomic_tasks().values()}.values():
        made = spec.task_maker.document(f"atomic/{task.name}/hard")
        options = dict(made["evaluator"])
        build_plugin("evaluators", options.pop("name"), options)
        MineflayerBridge(**made["options"])
        spec.state_space.restrict(
            {k: v if isinstance(v, list) else [v] for k, v in made["state_space"].items()}
        )


def test_the_hard_form_is_the_same_goal_elsewhere_with_distractions():
    simple, hard = make("atomic/craft_bread", 5), make("atomic/craft_bread/hard", 5)
    assert hard["evaluator"] == simple["evaluator"]
    ours = simple["options"]["commands"]
    theirs = hard["options"]["commands"]
    assert theirs[: len(ours)] == ours
    assert any(line.startswith("/weather") for line in theirs)
    assert any(line.startswith("/summon") for line in theirs)
    assert simple["state_space"]["site"] == "flat" != hard["state_space"]["site"]
    assert hard == make("atomic/craft_bread/hard", 5)


# The check ---------------------------------------------------------------------------------------

CRAFT = {"name": "minecraft_count", "statistic": "craft_item", "names": ["bread"]}
MINE = {"name": "minecraft_count", "statistic": "mine_block", "names": ["obsidian"]}
FAULTS = {
    "the product itself": ({"evaluator": CRAFT}, ["/give @s bread"]),
    "Unknown item 'wool'": ({}, ["/give @s wool 3"]),
    "slots, and an inventory has 36": ({}, ["/give @s iron_sword 40"]),
    "fills the place of the agent with stone": ({}, ["/fill ~-1 ~ ~-1 ~1 ~2 ~1 stone"]),
    "cannot be made of what the start gives": (
        {"evaluator": {**CRAFT, "names": ["beacon"]}},
        ["/give @s glass 5"],
    ),
    "needs a pickaxe of diamond": (
        {"evaluator": MINE},
        ["/setblock ~2 ~ ~ obsidian", "/give @s iron_pickaxe"],
    ),
    "neither placed nor part of any world": (
        {"evaluator": {**MINE, "names": ["beacon"]}},
        ["/give @s diamond_pickaxe"],
    ),
    "neither given nor to be had": (
        {"evaluator": {**CRAFT, "statistic": "use_item", "names": ["elytra"]}},
        [],
    ),
    "neither summoned nor lives": (
        {"evaluator": {**CRAFT, "statistic": "kill_entity", "names": ["giant"]}},
        [],
    ),
    "peaceful removes zombie": ({"state_space": {"difficulty": "peaceful"}}, ["/summon zombie"]),
}


@pytest.mark.parametrize("said", FAULTS)
def test_the_check_names_what_is_wrong(said):
    document, commands = FAULTS[said]
    (problem,) = check({**document, "options": {"commands": commands}})
    assert said in problem.problem


def test_a_sound_task_has_no_problems():
    start = ["/give @s wheat 3", "/give @s crafting_table", "/fill ~2 ~ ~2 ~4 ~2 ~4 stone"]
    assert check({"evaluator": CRAFT, "options": {"commands": start}}) == []
    assert check({}) == []


def test_a_plan_goes_back_to_what_there_is():
    have = supplies(["/give @s oak_log 4", "/execute at @s run setblock ~2 ~ ~ stone"])
    assert plan("wooden_pickaxe", 1, have) == [
        "craft 4 oak_planks of 1 oak_log by hand",
        "craft 1 crafting_table of 4 oak_planks by hand",
        "place crafting_table",
        "craft 4 oak_planks of 1 oak_log by hand",
        "craft 4 oak_planks of 1 oak_log by hand",
        "craft 4 stick of 2 oak_planks by hand",
        "craft 1 wooden_pickaxe of 3 oak_planks, 2 stick at a crafting table",
    ]
    assert plan("oak_log", 4, have) == []
    assert plan("iron_pickaxe", 1, have) is None
    assert plan("bread", 1, Supplies()) is None


def test_names_are_listed_and_checked_by_patterns(capsys):
    assert main(["list", "atomic/craft_*_pickaxe", "--bridge", "mineflayer"]) == 0
    assert "atomic/craft_stone_pickaxe" in capsys.readouterr().out.split("\n")
    assert main(["check", "atomic/craft_*_pickaxe", "--bridge", "mineflayer"]) == 0
    assert "5 tasks: 5 without a problem" in capsys.readouterr().out
