"""StarDojo's tasks: the 100 of Lite, a user's own files, and the commands that set them up."""

from collections import Counter

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bridges.stardojo.commands import arities, message, parse_call, setup_values
from bridges.stardojo.rules.registry import DID
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.task_table import lite, load_files
from rollout.config import BridgeConfig
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.tasks import bridge_and_task

FIELDS = {"id": 0, "object": "Weeds", "quantity": 10, "tool": None, "save": "save_new",
          "init_commands": None, "evaluator": "clear", "difficulty": "easy"}  # fmt: skip


def test_lite_has_the_counts_of_the_paper():
    """Table 2, and the evaluators of the released files."""
    rows = lite().values()
    assert Counter(r.category for r in rows) == {
        "farming": 21, "crafting": 14, "exploration": 28, "combat": 12, "social": 25,
    }  # fmt: skip
    # The last row of the paper's table 2 (56, 23, 21) is not the sum of its cells, which these are.
    assert Counter(r.difficulty for r in rows) == {"easy": 56, "medium": 27, "hard": 17}
    assert Counter(r.save for r in rows) == {"save_new": 85, "save_farming": 13, "save_quests": 2}
    assert len(lite()) == 100
    for category in Counter(r.category for r in rows):
        ids = [r.id for r in rows if r.category == category]
        assert ids == list(range(len(ids)))
    assert Counter("progression" in r.features for r in rows)[True] == 7
    assert Counter("monster_kills" in r.features for r in rows)[True] == 12
    row = lite()["sell_5_parsnip_to_pierre"]
    assert (row.id, row.quantity) == (3, 5)
    assert row.setup == (("warp_shop", ("pierre",)), ("add_item_by_name", ("Parsnip", "5", "0")))
    assert lite()["complete_the_story_quest_introductions"].key.count('"') == 2
    assert [row.steps(each) for each in ("paper", "released", "none")] == [30, 31, None]
    assert lite()["upgrade_to_copper_pickaxe"].steps("released") == 201


def files(tmp_path, name, tasks):
    (tmp_path / name).write_text(yaml.safe_dump(tasks, sort_keys=False))
    return tmp_path


def test_a_users_files_are_read_and_their_defects_are_named(tmp_path):
    combat = {**FIELDS, "evaluator": "kill", "object": "Duggy", "quantity": 1, "id": 4}
    opened = {**FIELDS, "evaluator": "open", "quantity": 1}
    stone = {"id": 3, "quantity": 5, "object": "Stone", "tool": "Pickaxe"}
    files(
        tmp_path,
        "farming.yaml",
        {
            "clear_13_weeds_with_scythe": FIELDS,
            "open_1_coop_and_barn": {**opened, "id": 1, "object": "Coop, Barn"},
            "open_1_deluxe_coop": {**opened, "id": 2, "object": "Deluxe Coop"},
            "clear_5_stone_with_hoe": {**FIELDS, **stone},
            "till_5_tile": {**FIELDS, "id": 4, "quantity": 5, "evaluator": "till"},
            "open_1_coop_and_1_deluxe_coop": {**opened, "id": 5, "quantity": 2,
                "save": "save_farming", "object": "Deluxe Coop, Deluxe Barn"},
        },
    )  # fmt: skip
    number = {**FIELDS, "quantity": 1}
    files(
        tmp_path,
        "exploration.yaml",
        {
            "go_to_2_willow_lane": {**number, "evaluator": "location"},
            "complete_5000_bundle": {**number, "id": 1, "evaluator": "bundle"},
        },
    )
    files(tmp_path, "combat_lite.yaml", {"kill_3_duggy_with_silver_saber": combat})
    files(tmp_path, "notes.yaml", {"anything": 1})
    found = load_files(tmp_path)
    assert set(found.rows) == {
        "combat_lite/kill_3_duggy_with_silver_saber",
        *(f"farming/{k}" for k in ("clear_13_weeds_with_scythe", "open_1_coop_and_barn",
                                   "open_1_deluxe_coop", "clear_5_stone_with_hoe", "till_5_tile",
                                   "open_1_coop_and_1_deluxe_coop")),
        "exploration/go_to_2_willow_lane", "exploration/complete_5000_bundle",
    }  # fmt: skip
    told = "\n".join(found.defects)
    for part in ("name says 13", "its id is 4, its position 0", "name says 3", "'Coop, Barn'",
                 "open_1_deluxe_coop: its save has no Deluxe Coop", "name says hoe"):  # fmt: skip
        assert part in told
    for sound in ("till_5_tile", "1_coop_and_1_deluxe_coop", "willow", "bundle"):
        assert sound not in told


def test_the_tasks_of_a_users_files_are_chosen_by_name(tmp_path):
    shop = {"evaluator": "location", "object": "SeedShop", "quantity": 1}
    files(tmp_path, "farming.yaml", {"clear_10_weeds": FIELDS})
    files(tmp_path, "exploration.yaml", {"go_to_pierre's_general_store": {**FIELDS, **shop}})
    config = BridgeConfig(name="stardojo", task_files=str(tmp_path))
    for name in ("exploration/go_to_pierre's_general_store", "farming/clear_10_weeds_wide"):
        task = bridge_and_task(config, name)[2]
        (member,) = task.state_space.factor("task").values
        assert task.name.removesuffix("_wide") == member
        assert member == name.replace("'", "").removesuffix("_wide")
    assert bridge_and_task(config, "farming")[2].limits.steps == 60
    with pytest.raises(UnknownNameError, match="Nearest: farming/clear_10_weeds"):
        bridge_and_task(config, "farming/clear_10_weed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"evaluator": "claer"}, "clear"),
        ({"evaluator": "kill"}, "evaluator of a farming task"),
        ({"save": "save_old"}, "save_new"),
        ({"difficulty": "simple"}, "easy"),
        ({"quantity": "10"}, "quantity"),
        ({"quantity": True}, "quantity"),
        ({"extra": 1}, "expected the fields"),
        ({"init_commands": ["warp_mina(1)"]}, "warp_mine"),
        ({"init_commands": ["__import__('os').remove('x')"]}, "expected a call"),
        ({"init_commands": ["warp(open('x'))"]}, "literals"),
        ({"init_commands": ["warp()"]}, "location is missing"),
        ({"init_commands": ["warp_mine(1, 2)"]}, "1 arguments"),
        ({"init_commands": ["set_time(hour=9)"]}, "hour"),
        ({"init_commands": ["warp('50%')"]}, "without %"),
        ({"init_commands": ["warp('" + "x" * 260 + "')"]}, "256"),
        ({"init_commands": [["warp", 1]]}, "list of calls"),
    ],
)
def test_wrong_tasks_are_refused_by_name(tmp_path, change, message):
    files(tmp_path, "farming.yaml", {"clear_10_weeds": {**FIELDS, **change}})
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        load_files(tmp_path)


@pytest.mark.parametrize("text", ["[1", "- 1", "", "\x00"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path, text):
    (tmp_path / "farming.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"farming\.yaml"):
        load_files(tmp_path)


def test_a_folder_without_tasks_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"farming\.yaml"):
        load_files(tmp_path)


@pytest.mark.parametrize(
    ("call", "name"),
    [("warp('community center')", "CommunityCenter"), ("warp('joja', 11, 25)", "JojaMart")],
)
def test_places_are_named_as_the_files_name_them(call, name):
    valley = Valley("save_new", 1)
    command, words = parse_call(call)
    valley.setup(command, setup_values(command, words))
    assert valley.observe()["Player"]["Location"] == name


MARINER = ["dating('Abigail')", "npc_friendship('abigail', 2500)", "upgrade_house(1)", "rain()"]


@pytest.mark.parametrize(
    ("item", "tile", "way", "calls"),
    [
        ("Good Ol' Cap", (36, 93), 3, ["warp('forest', 34, 96)"]),
        ("Mermaid's Pendant", (55, 13), 1, [*MARINER, "warp('beach')"]),
        ("Joja Cola", (37, 19), 0, ["warp('saloon')"]),
        ("Energy Tonic", (6, 17), 0, ["warp_character('harvey', 'hospital', 6, 15)",
                                      "warp('hospital', 6, 17)"]),
    ],
)  # fmt: skip
def test_what_tasks_ask_to_buy_is_sold(item, tile, way, calls):
    valley = Valley("save_new", 1)
    for command, words in map(parse_call, calls):
        valley.setup(command, setup_values(command, words))
    for name, args in (("move", tile), ("turn", (way,)), ("interact", ()),
                       ("choose_option", (1, 1, 0))):  # fmt: skip
        valley.act(name, args)
    assert item in {each["Name"] for each in valley.observe()["Player"]["Inventory"]}


@pytest.mark.parametrize(
    ("number", "ends"),
    [("8", ("craft", "Scarecrow")), ("11", ("craft", "Furnace")), ("12", ("forge", "Copper Bar")),
     ("24", ("donate", "Quartz"))],
)  # fmt: skip
def test_stories_that_tasks_start_have_an_end(number, ends):
    valley = Valley("save_farming", 1)
    valley.setup("start_quest", (number,))
    assert number in {each.id for each in valley.world.quests}
    DID.call(valley.world, *ends, 1)
    assert not any(each.id == number and not each.done for each in valley.world.quests)


@given(st.text(max_size=40))
def test_any_text_is_a_call_or_an_error(text):
    try:
        name, words = parse_call(text)
    except InputError:
        return
    assert len(words) == arities()[name]


WORDS = st.lists(st.text(max_size=20), max_size=4)


@given(st.sampled_from(sorted(arities())), WORDS)
def test_a_message_reads_back_or_is_refused(name, words):
    try:
        sent = message(name, words)
    except InputError:
        return
    assert len(sent) <= 256
    assert sent.decode("ascii").split("%") == [name, *words]
    assert len(words) == arities()[name]


def test_commands_of_the_protocol():
    assert message("observe_v2", [3]) == bytes.fromhex("6f 62 73 65 72 76 65 5f 76 32 25 33")
    assert message("move_relative", [3, -1]) == b"move_relative%3%-1"
    with pytest.raises(InputError, match="whole numbers"):
        message("move_relative", ["1.5", 0])
