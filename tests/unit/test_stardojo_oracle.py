"""The oracle: it solves Lite tasks by the ten actions alone."""

import pytest

from bridges.stardojo.oracle import supplies, travel
from bridges.stardojo.oracle.hands import NOTHING, Hands
from bridges.stardojo.oracle.oracle import SCRIPTS, Oracle
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.task_table import lite
from rollout.errors import UnknownNameError
from tests.unit.stardojo_skills import perform, play

# The cheapest task of kinds that differ in what they need.
SOME = """clear_5_stone_with_pickaxe, sow_1_dirt_with_potato_seeds, harvest_5_parsnip, open_1_deluxe_coop,
fill_1_feeding_bench_with_hay, harvest_1_milk_with_milk_pail, craft_1_torch, produce_1_copper_bar_with_furnace,
cook_1_fried_egg_with_stove, go_to_bed, go_to_the_mines_2nd_floor, forage_1_clam, take_1_quest_reward,
kill_1_bug_with_rusty_sword, kill_1_rock_crab_with_rusty_sword, break_5_geode, upgrade_to_large_pack,
purchase_minecarts_development_project, sell_1_chicken, build_1_big_coop, move_1_coop, give_jas_1_fairy_rose,
upgrade_to_copper_pickaxe"""  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("name", SOME.replace("\n", " ").split(", "))
def test_the_oracle_solves(name):
    standing, steps = play(lite()[name.strip()], seed=11)
    assert standing.completed, f"{standing.current} after {steps} steps"


def test_the_oracle_does_not_act_before_the_released_baseline():
    standing, steps = play(lite()["purchase_5_beer"], 11, "faithful")
    assert standing.completed, f"{standing.current} after {steps} steps"


@pytest.mark.long
def test_the_oracle_solves_95_of_the_100():
    failed = [name for name, row in lite().items() if not play(row, seed=12)[0].completed]
    assert len(failed) <= 5, failed


def test_doing_nothing_solves_nothing():
    for name in ("harvest_5_parsnip", "go_to_coop", "talk_to_alex", "kill_1_bug_with_rusty_sword"):
        standing, _ = play(lite()[name], 0, chooser=lambda valley, row: lambda: NOTHING)
        assert not standing.completed, name


def test_where_no_animal_is_to_be_sold_the_oracle_waits():
    valley = Valley("save_farming", state={"animals": "none"})
    assert Oracle(valley, lite()["sell_1_chicken"]).skill() == NOTHING


def test_a_night_without_a_way_to_bed_takes_a_step(monkeypatch):
    hands = Hands(valley := Valley())
    for skill in travel.go(hands, "FarmHouse"):
        perform(valley, skill)
    assert hands.world.here.key == "FarmHouse"
    monkeypatch.setattr(Hands, "way", lambda self, tile: None)
    assert list(supplies.sleep(hands))[-1] == NOTHING


def test_every_lite_task_has_a_script():
    missing = [row.name for row in lite().values() if (row.category, row.evaluator) not in SCRIPTS]
    assert missing == []


def test_a_task_without_a_script_is_refused_by_name():
    row = lite()["go_to_coop"]
    with pytest.raises(UnknownNameError, match="exploration museum"):
        Oracle(Valley(), type(row)(**{**_fields(row), "evaluator": "museum"}))


def _fields(row):
    names = ("category", "key", "id", "object", "quantity", "tool", "save", "init_commands")
    return {name: getattr(row, name) for name in (*names, "evaluator", "difficulty")}


@pytest.mark.parametrize("goal", ["Mountain", "Beach", "AnimalShop", "SandyHouse"])
def test_a_journey_ends_where_it_should(goal):
    valley = Valley("save_new", 3)
    valley.setup("set_time", (1000,))
    hands = Hands(valley)
    if travel.path(valley.world, goal) is None:
        assert goal == "SandyHouse", "no bus goes to the desert before it is repaired"
        return
    for number, skill in enumerate(travel.go(hands, goal)):
        assert number < 40
        perform(valley, skill)
    assert valley.observe()["Player"]["Location"] == goal
