"""MineLand's tasks: ids and what they mean, documents, load-outs, blueprints."""

from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.blueprints import BLUEPRINTS, blueprint, materials, score
from bridges.mineflayer.factors import BIOMES, FOES
from bridges.mineflayer.loadouts import parse_loadout
from bridges.mineflayer.names import names
from bridges.mineflayer.scripts import SCRIPTS, VERBS
from bridges.mineflayer.task_documents import MinelandTasks
from bridges.mineflayer.task_ids import FAMILIES, generate, parse, regular_id
from rollout import registry
from rollout.config import BridgeConfig, build_plugin
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.tasks import bridge_and_task, load_task, task_names

pytestmark = pytest.mark.heavy

EVALUATORS = {
    "mineland_harvest": "bridges.mineflayer.evaluators:MinelandItems",
    "mineland_techtree": "bridges.mineflayer.evaluators:MinelandItems",
    "mineland_combat": "bridges.mineflayer.evaluators:MinelandCombat",
    "mineland_survival": "bridges.mineflayer.evaluators:MinelandSurvival",
    "mineland_construction": "bridges.mineflayer.evaluators:MinelandConstruction",
    "mineland_creative": "bridges.mineflayer.evaluators:MinelandCreative",
    "mineland_stage": "bridges.mineflayer.stage:MinelandStage",
}
BRIDGES = {"mineflayer": "bridges.mineflayer:MineflayerBridge"}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """What pyproject.toml names, whether or not it was installed again since."""

    @cache  # as the function it replaces, since this opens hundreds of files
    def points(group, _):
        ours = {"gamut.bridges": BRIDGES, "gamut.evaluators": EVALUATORS}.get(group, {})
        others = [point for point in entry_points(group=group) if point.name not in ours]
        mine = [EntryPoint(name, target, group) for name, target in ours.items()]
        return EntryPoints([*others, *mine])

    monkeypatch.setattr(registry, "_installed", points)


# Ids ---------------------------------------------------------------------------------------------


def test_there_are_as_many_as_in_mineland():
    counts = {family: len(list(generate(family, possible=False))) for family in FAMILIES}
    assert counts == {
        "harvest": 557,
        "techtree": 206,
        "combat": 936,
        "survival": 45,
        "construction": 13,
        "stage": 5,
        "creative": 0,
    }
    every = list(generate(possible=False))
    assert len(set(every)) == len(every) == 1762
    assert len(FOES) == 24


def test_every_id_is_understood_or_impossible():
    possible = set(generate())
    for task_id in generate(possible=False):
        if task_id in possible:
            task = parse(task_id)
            assert task.id == task_id
            parse_loadout(task.loadout)
        else:
            with pytest.raises(ConfigError, match=r"impossible in Minecraft 1\.16\.5") as caught:
                parse(task_id)
            nearest = str(caught.value).rpartition(": ")[2]
            assert parse(nearest).count == int(task_id.split("_")[1])
    # MineLand's 14 targets that are no item of its own version, and those with what is newer than
    # 1.16: three raw metals with four load-outs, and copper with two.
    assert 1762 - len(possible) == 14 + 3 * 4 * 2 + 2 * 2


def test_armour_of_chain_mail_is_a_task_that_villagers_make_possible():
    spec = MineflayerBridge().spec
    chain = [each for each in generate("techtree", possible=False) if "_chainmail_" in each]
    assert len(chain) == 16
    for task_id in chain:
        task = load_task(spec, "mineflayer", task_id)
        assert task.evaluator.target == parse(task_id).target


def test_ids_mean_what_they_say():
    task = parse("harvest_8_oak_log_with_1_iron_pickaxe")
    assert (task.family, task.target, task.count) == ("harvest", "oak_log", 8)
    assert (task.loadout, task.goal) == ("1_iron_pickaxe", "harvest 8 oak log with 1 iron pickaxe")
    assert parse("survival_0.5_days").days == 0.5
    assert parse("build_house").blueprint == 13
    assert parse("play_cook").goal.startswith(SCRIPTS["cook"].goal)
    creative = parse("creative_build_a_snow_man")
    assert (creative.family, creative.goal) == ("creative", "build a snow man")
    # More than MineLand lists, in its grammar.
    assert parse("harvest_3_birch_log_with_5_apple_and_1_stone_axe").loadout == (
        "5_apple_and_1_stone_axe"
    )


def test_the_whole_game_is_a_task_of_embedded_worlds():
    task = load_task(MineflayerBridge().spec, "mineflayer", "playthrough")
    assert task.metadata["family"] == "playthrough"
    with pytest.raises(ConfigError, match="embedded"):
        load_task(MineflayerBridge(mode="remote").spec, "mineflayer", "playthrough")


@pytest.mark.parametrize(
    ("irregular", "regular"),
    [
        ("harvest_1white_wool", "harvest_1_white_wool"),
        ("harvest_8white_bed_with_1_shears", "harvest_8_white_bed_with_1_shears"),
        ("harvest_8_glass_with_6_glass_with_1_furnace", "harvest_8_glass_with_1_furnace"),
        (
            "harvest_1_oak_planks_with_2_oak_log_with_1_wooden_axe_and_1_crafting_table",
            "harvest_1_oak_planks_with_1_wooden_axe_and_1_crafting_table",
        ),
        ("_techtree_8_shears_with_1_iron_pickaxe", "techtree_8_shears_with_1_iron_pickaxe"),
    ],
)
def test_irregular_ids_are_understood(irregular, regular):
    assert regular_id(irregular) == regular
    assert parse(irregular) == parse(regular)
    assert regular in set(generate())


@pytest.mark.parametrize(
    ("task_id", "error", "message"),
    [
        ("harvest_1_raw_iron", ConfigError, "raw_iron came with 1.17.*: harvest_1_iron_ore$"),
        ("harvest_8_milk", ConfigError, "no item milk.*: harvest_8_milk_bucket$"),
        ("harvest_1_mellon_slice", ConfigError, "harvest_1_melon_slice$"),
        (
            "harvest_1_stone_fence_with_1_iron_pickaxe",
            ConfigError,
            "harvest_1_cobblestone_wall_with_1_iron_pickaxe$",
        ),
        ("harvest_1_oak_lo", UnknownNameError, "'oak_lo'. Nearest: oak_log"),
        ("harvest_1_stick_with_1_iron_pickax", UnknownNameError, "Nearest: iron_pickaxe"),
        ("harvest_1_stick_with_iron_pickaxe", ConfigError, "'iron_pickaxe' is no number and item"),
        ("harvest_0_stick", ConfigError, "a number from 1 to 2304, got 0"),
        ("combat_1_zombi", UnknownNameError, "'zombi'. Nearest: zombie"),
        ("combat_2_zombie", ConfigError, "expected 1, 4, 8 mobs, got 2"),
        ("survival_0_days", ConfigError, "more than 0"),
        ("construction_task_14", ConfigError, "bridge.task_files"),
        ("build_a_house", UnknownNameError, "building 'a_house'. Nearest: house"),
        ("play_cooking", UnknownNameError, "Nearest: cook"),
        ("havest_1_stick", UnknownNameError, "task 'havest_1_stick'. Nearest: harvest_1_stick"),
    ],
)
def test_what_is_no_task_is_reported(task_id, error, message):
    with pytest.raises(error, match=message):
        parse(task_id)


def test_newer_versions_have_newer_items():
    assert parse("harvest_8_raw_iron", "1.19").target == "raw_iron"
    assert parse("harvest_8_raw_iron", "1.17").target == "raw_iron"
    with pytest.raises(ConfigError, match=r"impossible in Minecraft 1\.8\.9"):
        parse("harvest_8_raw_iron", "1.8.9")


def test_an_unknown_family_is_reported():
    with pytest.raises(UnknownNameError, match="Nearest: harvest"):
        list(generate("havest"))


@settings(max_examples=15)
@given(st.text(alphabet="abcdeklorst_0123456789.", max_size=60))
def test_any_text_is_a_task_or_an_input_error(text):
    for task_id in (text, f"harvest_{text}", f"combat_1_{text}", f"survival_{text}_days"):
        try:
            parse(task_id)
        except InputError:
            continue


# Documents ---------------------------------------------------------------------------------------


def test_names_of_tasks_make_tasks():
    spec = MineflayerBridge().spec
    task = load_task(spec, "mineflayer", "harvest_8_oak_log_with_1_iron_pickaxe")
    assert task.goal == "harvest 8 oak log with 1 iron pickaxe"
    assert (task.evaluator.target, task.evaluator.count) == ("oak_log", 8)
    assert task.state_space.factor("loadout").values == ("1_iron_pickaxe",)
    assert task.limits.steps == 24_000 // 5 + 1
    assert task.metadata == {"family": "harvest", "source": "MineLand"}
    assert load_task(spec, "mineflayer", "harvest_1white_wool").metadata["irregular_id"] is True


@pytest.mark.parametrize(
    ("task_id", "biomes"),
    [
        ("harvest_1_oak_sapling", {"plains", "forest", "savanna"}),
        ("harvest_8_oak_fence_gate", {"plains", "forest", "savanna"}),
        ("harvest_1_mutton", {"plains", "forest", "savanna", "taiga"}),
        ("harvest_1_cooked_rabbit", {"taiga", "snowy"}),
        ("techtree_1_stone_pickaxe", {"plains", "forest", "savanna", "taiga", "snowy"}),
        ("harvest_8_sand", set(BIOMES)),
    ],
)
def test_tasks_begin_where_there_is_what_they_ask_for(task_id, biomes):
    factor = load_task(MineflayerBridge().spec, "mineflayer", task_id).state_space.factor("biome")
    assert set(factor.values) == biomes


@pytest.mark.heavy
def test_every_kind_of_task_can_be_loaded():
    every = list(generate())
    for family in FAMILIES:
        ids = list(generate(family))
        for task_id in ids[:: 1 + len(ids) // 8]:
            config = BridgeConfig(name="mineflayer")
            _, bridge, task = bridge_and_task(config, task_id)
            assert task.name == task_id
            assert task.goal
            task.evaluator.build(bridge.agents)
    assert len(every) > 1700
    _, _, free = bridge_and_task(BridgeConfig(name="mineflayer"), "playground")
    assert free.evaluator.goal == ""


def test_combat_leaves_nothing_but_the_targets():
    _, bridge, task = bridge_and_task(BridgeConfig(name="mineflayer"), "combat_4_skeleton")
    assert (bridge.spawning, bridge.daylight) == (False, False)
    only = {factor.name: factor.values for factor in task.state_space if factor.size == 1}
    assert (only["mob"], only["mobs"], only["time"]) == (("skeleton",), (4,), ("midnight",))
    assert only["difficulty"] == ("normal",)


def test_limits_are_in_steps_of_the_bridge():
    config = BridgeConfig(name="mineflayer", ticks_per_step=20)
    _, _, task = bridge_and_task(config, "survival_0.01_days")
    assert task.limits.steps == 240 // 20 + 1
    assert task.evaluator.days == 0.01


def test_agents_are_judged_together():
    config = BridgeConfig(name="mineflayer", agents=3, competitive=True)
    _, _, task = bridge_and_task(config, "techtree_1_stone_axe")
    assert (task.evaluator.agents, task.evaluator.competitive) == (3, True)


def test_a_play_brings_its_actors():
    config = BridgeConfig(name="mineflayer")
    _, bridge, task = bridge_and_task(config, "play_exchange_items")
    assert bridge.agent_names() == ("Ida", "Otto")
    assert bridge.give == {"Ida.diamond": 1, "Otto.emerald": 4}
    assert task.evaluator.build(2).agents == 2


@pytest.mark.parametrize(("name", "mob", "mobs"), [("argue", "none", 0), ("cook", "cow", 1)])
def test_a_play_with_a_meal_can_be_played(name, mob, mobs):
    _, bridge, task = bridge_and_task(BridgeConfig(name="mineflayer"), f"play_{name}")
    # On peaceful food never falls below 20, and who is full eats nothing.
    assert task.state_space.factor("difficulty").values == ("easy",)
    assert not bridge.spawning
    assert task.state_space.factor("mob").values == (mob,)
    assert task.state_space.factor("mobs").values == (mobs,)


def test_a_play_of_ones_own_is_an_option():
    acts = [["Ann", "get", "apple"], ["Ann", "eat", "apple"]]
    recipe = build_plugin("evaluators", "mineland_stage", {"acts": acts, "likeness": 1})
    assert recipe.wanted() == (("Ann", "get", "apple"), ("Ann", "eat", "apple"))
    with pytest.raises(ConfigError, match="acts"):
        build_plugin("evaluators", "mineland_stage", {"acts": [["Ann", "get"]]})


def test_items_that_no_state_has_are_given():
    config = BridgeConfig(name="mineflayer")
    _, bridge, task = bridge_and_task(config, "harvest_1_cake_with_3_milk_bucket_and_1_egg")
    assert bridge.give == {"milk_bucket": 3, "egg": 1}
    assert task.state_space.factor("loadout").values == ("none",)


def test_names_of_no_task_have_the_nearest():
    spec = MineflayerBridge().spec
    with pytest.raises(UnknownNameError, match="Nearest: harvest_1_stick"):
        load_task(spec, "mineflayer", "havest_1_stick")
    with pytest.raises(UnknownNameError, match="Nearest: harvest_"):
        load_task(spec, "mineflayer", "harvest_oak_log")
    with pytest.raises(ConfigError, match=r"impossible in Minecraft 1\.16\.5"):
        load_task(spec, "mineflayer", "harvest_1_raw_gold")
    assert MinelandTasks().document("dance_on_a_table") is None


def test_the_files_of_tasks_are_tasks():
    listed = task_names(MineflayerBridge().spec)
    assert len(listed) >= 6
    for name in listed:
        _, bridge, task = bridge_and_task(BridgeConfig(name="mineflayer"), name)
        assert task.goal
        assert task.limits.steps
        task.evaluator.build(bridge.agents)


# Scripts and blueprints --------------------------------------------------------------------------


def test_plays_can_be_played():
    for script in SCRIPTS.values():
        assert {actor for actor, _, _ in script.acts} <= set(script.actors)
        for _, verb, what in script.acts:
            assert verb in VERBS
            assert verb == "chat" or what in names().items
        for key in script.give:
            actor, _, item = key.partition(".")
            assert actor in script.actors
            assert item in names().items


def test_blueprints_stand_on_the_ground_and_their_blocks_are_items():
    assert len({each.name for each in BLUEPRINTS}) == 13
    for number, each in enumerate(BLUEPRINTS, 1):
        assert min(y for _, y, _ in each.plan) == 0
        assert set(each.plan.values()) <= set(names().blocks) & set(names().items)
        assert sum(item.count for item in materials(number)) == len(each.plan)
        assert all(item.count <= 36 * 64 for item in materials(number))


@pytest.mark.parametrize("number", range(1, 14))
def test_a_blueprint_is_right_anywhere_and_turned(number):
    plan = blueprint(number).plan
    moved = [((10 - z, y + 70, x - 300), name) for (x, y, z), name in plan.items()]
    rubbish = [((500, 60, k), "dirt") for k in range(9)]
    assert score([*moved, *rubbish], number) == 1.0
    assert score(moved[1:], number) == pytest.approx(1 - 1 / len(plan))
    assert score([], number) == 0.0


def test_a_mirror_image_and_wrong_blocks_are_not_right():
    stairs = next(n for n, b in enumerate(BLUEPRINTS, 1) if "stairs" in b.name)
    upside_down = [((x, -y, z), name) for (x, y, z), name in blueprint(stairs).plan.items()]
    assert score(upside_down, stairs) < 1.0
    assert score([((0, y, 0), "dirt") for y in range(5)], 1) == 0.0
    assert score([((0, y, 0), "cobblestone") for y in range(3)], 1) == pytest.approx(0.6)
    apart = [((0, 2 * y, 0), "cobblestone") for y in range(5)]
    assert score(apart, 1) == pytest.approx(0.6)  # three of five are two apart


def test_an_unknown_blueprint_is_reported():
    with pytest.raises(ConfigError, match="expected 1 to 13, got 14"):
        blueprint(14)


@pytest.mark.parametrize("name", ["foo", "survival_x", "harvest_1_dimond", "combat_1_zombi"])
def test_an_unknown_id_is_answered_in_few_words(name):
    with pytest.raises(UnknownNameError) as caught:
        load_task(MineflayerBridge().spec, "mineflayer", name)
    assert len(str(caught.value)) < 300


def test_no_misspelt_item_or_mob_makes_a_long_message():
    spec, longest = MineflayerBridge().spec, ""
    for item in sorted(names().items, key=len)[-40:]:
        for task_id in (f"techtree_1_{item}x", f"harvest_1_stick_with_1_{item}x"):
            with pytest.raises(UnknownNameError) as caught:
                load_task(spec, "mineflayer", task_id)
            longest = max(longest, str(caught.value), key=len)
    assert len(longest) < 300, longest
