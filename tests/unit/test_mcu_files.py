"""Task files of MCU's and MineStudio's form: what is read, repaired, left out and judged."""

from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.commands import parse_command
from bridges.mineflayer.goals import MinecraftCount, MinecraftReach
from bridges.mineflayer.mcu_files import known, known_names, missing, read_file, repair
from bridges.mineflayer.names import names
from rollout import registry
from rollout.api import Frame, Outcome, Start
from rollout.commands.tasks import main
from rollout.config import BridgeConfig, build_plugin
from rollout.errors import ConfigError, UnknownNameError
from rollout.tasks import bridge_and_task
from rollout.testing.evaluator_checks import check_evaluator

SPEC = MineflayerBridge().spec
GOALS = {"minecraft_count": "MinecraftCount", "minecraft_reach": "MinecraftReach"}
BRIDGES = {"mineflayer": "bridges.mineflayer:MineflayerBridge"}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """What pyproject.toml names, whether or not it was installed again since."""

    @cache
    def points(group, _):
        goals = {name: f"bridges.mineflayer.goals:{each}" for name, each in GOALS.items()}
        ours = {"gamut.bridges": BRIDGES, "gamut.evaluators": goals}.get(group, {})
        others = [point for point in entry_points(group=group) if point.name not in ours]
        return EntryPoints([*others, *(EntryPoint(n, t, group) for n, t in ours.items())])

    monkeypatch.setattr(registry, "_installed", points)


@pytest.fixture
def folder(tmp_path):
    """Files in MCU's form, in our own words."""
    files = {
        "simple/lay_carpet": "custom_init_commands:\n- /give @s minecraft:carpet 9\n"
        "- /give @s\n  minecraft:stick 3\ntext: 'lay it\n  down'\ndefaults:\n- base\n- _self_\n",
        "simple/look_at_the_sky": "text: look up\ncustom_init_commands:\n- /give @s spyglass\n"
        "- /time set day\nthinking: '- In order to look, we need eyes'\n",
        "compositional/craft_diorite_and_find_melon_or_find_lava": "custom_init_commands: "
        "['/setblock ~2 ~ ~ melon']\ntext: do it\nreference_video: none\n",
        "hard/broken": "custom_init_commands: [\n",
    }
    for name, text in files.items():
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


# Repairs -----------------------------------------------------------------------------------------

REPAIRED = {
    "/give @s minecraft:wool 20": "/give @s minecraft:white_wool 20",
    "/give @p planks 5": "/give @p minecraft:oak_planks 5",
    "/give @s minecraft:raw_beef 15": "/give @s minecraft:beef 15",
    "/give @s water_bottle 3": '/give @s minecraft:potion{Potion:"minecraft:water"} 3',
    '/give @s shovel{Enchantments:[{id:"efficiency",lvl:1}]} 1': (
        '/give @s minecraft:iron_shovel{Enchantments:[{id:"efficiency",lvl:1}]} 1'
    ),
    "/give @p minecraft:minecraft:potion": "/give @p minecraft:potion",
    "/replaceitem entity @s weapon.mainhand hoe": (
        "/replaceitem entity @s weapon.mainhand minecraft:iron_hoe"
    ),
    "/execute as @p at @s run fill ~2 ~ ~2 ~2 ~ ~2 lava 0 replace air": (
        "/execute as @p at @s run fill ~2 ~ ~2 ~2 ~ ~2 lava replace air"
    ),
    "/execute at @s run summon water ~2 ~ ~3": (
        "/execute at @s run setblock ~2 ~ ~3 minecraft:water"
    ),
    "/time set dusk": "/time set 13000",
}


@pytest.mark.parametrize("line", REPAIRED)
def test_what_was_meant_is_played(line):
    assert repair(line) == REPAIRED[line]
    parse_command(REPAIRED[line])


@pytest.mark.parametrize("line", ["/give @s deepslate", "/summon goat", "/advancement", "/give"])
def test_what_has_no_equivalent_is_not_guessed(line):
    assert repair(line) is None


# Files -------------------------------------------------------------------------------------------


def test_files_are_read_as_yaml_with_the_lines_of_their_commands(folder):
    task = read_file(folder / "simple" / "lay_carpet.yaml")
    assert task.commands == ("/give @s minecraft:white_carpet 9", "/give @s minecraft:stick 3")
    assert task.text == "lay it down"
    (problem,) = task.problems
    assert (problem.line, problem.repair) == (2, task.commands[0])
    assert "Unknown item 'minecraft:carpet'" in problem.problem


def test_an_unknown_key_is_named_with_its_line(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("custom_init_commands: []\ntexd: a\n")
    with pytest.raises(UnknownNameError, match=r"x.yaml:2.*texd.*text"):
        read_file(path)


def test_tasks_of_a_copy_are_played_by_their_names(folder, caplog):
    config = BridgeConfig.model_validate({"name": "mineflayer", "task_files": str(folder)})
    _, bridge, task = bridge_and_task(config, "simple/look_at_the_sky")
    assert (task.goal, task.difficulty, bridge.commands) == (
        "look up",
        "simple",
        ("/time set day",),
    )
    assert task.limits.steps == 120
    (left_out,) = task.metadata["left_out"]
    assert left_out["line"] == 3
    assert "spyglass came with Minecraft 1.17" in left_out["problem"]
    assert "left out" in caplog.text
    _, _, task = bridge_and_task(config, "compositional/craft_diorite_and_find_melon_or_find_lava")
    assert type(task.evaluator).__name__ == "Any_"
    assert task.metadata["needs"] == ["windows"]
    with pytest.raises(ConfigError, match=r"broken.yaml:\d"):
        bridge_and_task(config, "hard/broken")


def test_a_folder_is_checked_by_file_and_line_and_the_rest_goes_on(folder, capsys):
    assert main(["check", str(folder), "--bridge", "mineflayer"]) == 3
    said = capsys.readouterr().out
    assert "lay_carpet.yaml:2: /give @s minecraft:carpet 9: Unknown item" in said
    assert "repaired: /give @s minecraft:white_carpet 9" in said
    assert "broken.yaml:" in said
    assert "4 tasks: 1 without a problem, 1 repaired, 2 with problems that have no repair" in said
    (folder / "hard/broken.yaml").unlink()
    (folder / "simple/look_at_the_sky.yaml").unlink()
    assert main(["check", str(folder), "--bridge", "mineflayer"]) == 0


def test_a_shown_task_is_a_task_file_of_ours(folder, capsys):
    path = folder / "simple" / "lay_carpet.yaml"
    assert main(["show", str(path), "--bridge", "mineflayer"]) == 0
    path.write_text(capsys.readouterr().out)
    assert main(["check", str(path), "--bridge", "mineflayer"]) == 0
    assert main(["show", "build_pilar", "--bridge", "mineflayer"]) == 2
    assert "Nearest: pillar" in capsys.readouterr().err
    for wrong, said in (
        ("blockworlds", "Nearest: blockworld"),
        ("mineflayer", "Nearest: bridge.task_files"),
    ):
        settings = ["--set", "task_file=x"] if wrong == "mineflayer" else []
        assert main(["list", "--bridge", wrong, *settings]) == 2
        assert said in capsys.readouterr().err


# The table ---------------------------------------------------------------------------------------


def test_every_goal_of_the_table_is_one_of_the_game():
    groups = {"mine_block": "blocks", "kill_entity": "entities", "entity": "entities"}
    groups |= {"block": "blocks", "craft_item": "items", "use_item": "items", "pickup": "items"}
    for name in known_names():
        goal = known(name).goal
        if goal is None:
            continue
        build_plugin("evaluators", goal["name"], {k: v for k, v in goal.items() if k != "name"})
        group = groups.get(goal.get("statistic", goal.get("kind")))
        assert group is None or set(goal.get("names", ())) <= set(getattr(names(), group)), name
    assert missing("code") <= missing("keys")


def test_the_parts_of_a_compositional_name_are_grouped_as_in_mcu():
    parts = known("craft_diorite_and_find_melon_or_find_lava").goal["parts"]
    assert [part["name"] for part in parts] == ["and", "minecraft_reach"]
    assert known("dig_three_down_and_fill_one_up").parts == ()
    assert known("find_melon_and_nothing") is None


# Goals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", [MinecraftCount(), MinecraftReach(names=("cow",))], ids=repr)
def test_the_conformance_suite_passes(recipe):
    check_evaluator(recipe, SPEC).raise_if_failed()


def judged(recipe, *details):
    """Outcomes of one slot whose frames have these details, the first at its reset."""
    state = SPEC.state_space.state(0)
    evaluator, no = recipe.build(1), np.zeros(1, bool)
    frames = [Frame({}, {}, no, no, np.zeros(1, np.int64), [each]) for each in details]
    evaluator.reset([0], [Start(state, 0)], frames[0])
    return [int(evaluator.judge({}, frame).outcome[0]) for frame in frames[1:]]


def counts(**group):
    return {"statistics": {"mine_block": group}}


def test_only_what_was_added_since_the_start_counts():
    recipe = MinecraftCount(names=("dirt", "sand"), count=2)
    frames = [counts(dirt=5), counts(dirt=5, stone=9), counts(dirt=6), counts(dirt=6, sand=1)]
    assert judged(recipe, *frames) == [0, 0, int(Outcome.SUCCESS)]
    assert judged(MinecraftCount(count=9), {}, counts(stone=9)) == [int(Outcome.SUCCESS)]


@pytest.mark.parametrize(
    ("recipe", "far", "there"),
    [
        (
            MinecraftReach(names=("cow",)),
            {"entities": [{"kind": "cow", "distance": 9.0}]},
            {"entities": [{"kind": "cow", "distance": 2.0}]},
        ),
        (
            MinecraftReach(kind="block", names=("sand",)),
            {"voxels": {"block_name": [[["dirt"]]]}},
            {"voxels": {"block_name": [[["sand"]]]}},
        ),
        (
            MinecraftReach(kind="biome", names=("forest",)),
            {"location_stats": {"biome": "plains"}},
            {"location_stats": {"biome": "forest"}},
        ),
        (
            MinecraftReach(kind="item", names=("egg",)),
            {"inventory": {"name": ["stick"], "quantity": [1]}},
            {"inventory": {"name": ["egg"], "quantity": [1]}},
        ),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_place_is_reached_when_it_is_near(recipe, far, there):
    assert judged(recipe, far, far, there) == [0, int(Outcome.SUCCESS)]


def test_a_goal_of_another_kind_is_refused():
    with pytest.raises(UnknownNameError, match="mine_block"):
        MinecraftCount(statistic="mine_blocks")
    with pytest.raises(ConfigError, match="names"):
        MinecraftReach()
