"""Evidence that tasks can be solved, and the programs that play them."""

import pytest

from bridges.mineflayer.atomic import atomic_tasks, make
from bridges.mineflayer.spaces import CODE, MOST_CODE
from bridges.mineflayer.task_compose import compose
from bridges.mineflayer.task_documents import MinelandTasks
from bridges.mineflayer.task_solve import solve

STEPS = {
    "craft_oak_boat": ("place crafting_table 1", "craft oak_boat"),
    "smelt_iron_ore": ("smelt iron_ore oak_planks",),
    "cut_stone_slab_from_stone": ("cut stone stone_slab",),
    "mine_obsidian": ("mine obsidian",),
    "eat_bread": ("eat bread",),
    "throw_egg": ("throw egg",),
    "hunt_pig": ("kill pig",),
    "find_melon": ("go melon",),
    "find_compass": ("take compass",),
    "put_on_iron_boots": ("wear iron_boots feet",),
    "tame_wolf": ("feed wolf bone",),
    "jump": ("press ['jump'] 240",),
    "build_a_garden": (),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_follow_from_the_goal_and_what_is_given(name):
    document = (
        make(f"atomic/{name}", 5) if name in atomic_tasks() else make("atomic/create_a_garden", 5)
    )
    found = solve(document)
    assert found.steps == STEPS[name]
    assert found.kind == ("oracle" if STEPS[name] else "")


def test_a_goal_without_its_means_is_not_shown():
    document = make("atomic/mine_obsidian", 5)
    commands = [line for line in document["options"]["commands"] if "pickaxe" not in line]
    assert solve({**document, "options": {"commands": commands}}).kind == ""
    assert solve({}).kind == ""


def test_what_no_program_plays_may_follow_from_the_rules():
    offer = 'Recipes:[{buy:{id:"emerald",Count:2b},sell:{id:"bread",Count:1b}}]'
    commands = ["/give @s emerald 4", f"/summon villager ~2 ~ ~ {{Offers:{{{offer}}}}}"]
    goal = {"name": "minecraft_reach", "kind": "item", "names": ["bread"]}
    found = solve({"evaluator": goal, "options": {"commands": commands}})
    assert (found.kind, found.steps) == ("plan", ("buy bread of a villager",))


def test_tasks_of_mineland_have_their_programs():
    make_one = MinelandTasks().document
    assert solve(make_one("harvest_1_oak_log")).steps == ("the program of harvest_1_oak_log",)
    assert solve(make_one("creative_a_house")).kind == ""


def test_composed_goals_are_played_one_after_the_other():
    parts = [make("atomic/eat_bread", 5), make("atomic/create_a_garden", 5), make("atomic/jump", 5)]
    assert solve(compose("and", [parts[0], parts[2]])).steps == ("eat bread", "press ['jump'] 240")
    assert solve(compose("or", [parts[2], parts[0]])).steps == ("press ['jump'] 240",)
    assert solve(compose("and", parts)).kind == ""


def test_programs_are_short_enough_for_the_actions():
    long = compose("then", [make(f"atomic/craft_{wood}_boat", 5) for wood in ("oak", "birch")] * 2)
    assert len(solve(long).actions[CODE][0]) < MOST_CODE


def test_most_tasks_with_a_goal_have_a_program():
    tasks = [task for task in list(atomic_tasks().values())[::9] if task.goal]
    shown = [task for task in tasks if solve(make(f"atomic/{task.name}", 5)).kind]
    assert len(shown) > 0.9 * len(tasks)
