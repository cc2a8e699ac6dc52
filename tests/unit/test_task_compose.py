"""Tasks composed of others: merged starts, conflicts by name, composed goals."""

import pytest

from bridges.mineflayer.atomic import make
from bridges.mineflayer.task_compose import compose
from rollout.commands.tasks import main
from rollout.errors import ConfigError, UnknownNameError


def task(name, *commands, limits=100, states=None, **goal):
    goal = goal or {"statistic": "custom", "names": ["jump"]}
    return {
        "name": name,
        "goal": f"Do {name}.",
        "options": {"commands": list(commands)},
        "state_space": {"time": "day", "site": "flat", **(states or {})},
        "evaluator": {"name": "minecraft_count", **goal},
        "limits": {"steps": limits},
    }


def starts(whole):
    return whole["options"]["commands"]


def test_all_items_of_and_but_the_larger_need_of_or():
    parts = [task("A", "/give @s stick 3"), task("B", "/give @p minecraft:stick 5", limits=50)]
    both, either = compose("and", parts), compose("or", parts)
    assert starts(both) == ["/give @s stick 8"]
    assert starts(either) == ["/give @s stick 5"]
    assert (both["limits"]["steps"], either["limits"]["steps"]) == (150, 100)
    assert (both["goal"], either["goal"]) == ("Do A, and do B.", "Do A, or do B.")
    assert [part["name"] for part in both["evaluator"]["parts"]] == ["minecraft_count"] * 2


def test_what_an_earlier_part_makes_is_not_given():
    parts = [make("atomic/craft_bread", 5), make("atomic/eat_bread", 5)]
    assert not any("bread" in line for line in starts(compose("then", parts)))
    with pytest.raises(ConfigError, match="gives bread, the product itself"):
        compose("and", parts)


def test_scenes_at_the_same_place_are_moved_apart():
    parts = [task("A", "/setblock ~3 ~ ~2 stone"), task("B", "/fill ~2 ~ ~1 ~4 ~1 ~3 oak_log")]
    assert starts(compose("and", parts)) == [
        "/setblock ~3 ~ ~2 stone",
        "/fill ~2 ~ ~9 ~4 ~1 ~11 oak_log",
    ]


def test_what_cannot_hold_at_once_is_named_with_both_values():
    at_night = task("B", states={"time": "midnight"})
    assert compose("and", [task("A"), at_night])["state_space"]["time"] == "midnight"
    with pytest.raises(ConfigError, match=r"time: A needs 'noon', and B needs 'midnight'"):
        compose("and", [task("A", states={"time": "noon"}), at_night])
    with pytest.raises(ConfigError, match="/weather clear and rain at once, of B"):
        compose("and", [task("A", "/weather rain"), task("B", "/weather clear")])
    full = task("A", "/give @s iron_sword 30")
    with pytest.raises(ConfigError, match="60 slots, and an inventory has 36"):
        compose("and", [full, {**full, "name": "B"}])
    with pytest.raises(UnknownNameError):
        compose("xor", [task("A"), task("B")])
    with pytest.raises(ConfigError, match="at least two"):
        compose("or", [task("A")])


def test_a_goal_without_a_machine_leaves_the_whole_to_a_judge():
    parts = [make("atomic/sleep_in_a_bed", 5), make("atomic/create_a_garden", 5)]
    whole = compose("then", parts)
    assert whole["evaluator"] == {"name": "mineland_creative", "goal": whole["goal"]}


def test_a_composed_task_is_a_task_file(tmp_path, capsys):
    path = tmp_path / "both.yaml"
    names = ["atomic/hunt_pig", "atomic/mine_stone/hard"]
    assert main(["compose", "and", *names, "--bridge", "mineflayer", "--out", str(path)]) == 0
    assert main(["check", str(path), "--bridge", "mineflayer"]) == 0
    assert main(["compose", "and", *names, "--bridge", "chaos"]) == 2
    assert "error" in capsys.readouterr().err
