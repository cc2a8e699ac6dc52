"""The content of the valley: what its files say, and what the loader refuses."""

import itertools
import json
import shutil

import pytest

from benchmarks.science import stardojo_numbers
from bridges.stardojo.rules import items, residents, services
from bridges.stardojo.rules.content import FOLDER, content, load
from bridges.stardojo.rules.tables import TASTES
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.rules.world import SEASONS
from rollout.errors import ConfigError

pytestmark = pytest.mark.heavy

LITE_ITEMS = """
Basic Retaining Soil, Speed-Gro, Cauliflower Seeds, Potato Seeds, Parsnip, Garlic, Garlic
Seeds, Hay, Egg, Milk, Milk Pail, Cherry Bomb, Wood Fence, Sprinkler, Furnace, Copper Ore, Iron
Ore, Coal, Spring Seeds, Field Snack, Acorn, Maple Seed, Pine Cone, Torch, Chest, Scarecrow,
Wood, Fiber, Copper Bar, Refined Quartz, Fried Egg, Salad, Cookout Kit, Wild Horseradish,
Daffodil, Leek, Clam, Quartz, Cave Carrot, Amethyst, Beer, Muscle Remedy, Geode, Coconut, Fairy
Rose, Pancakes, Pomegranate, Copper Pickaxe, Rusty Sword, Axe, Hoe, Pickaxe, Scythe, Watering
Can, Stone, Dandelion
"""


def test_the_content_has_what_the_lite_tasks_name():
    names = [name.strip() for name in LITE_ITEMS.replace("\n", " ").split(",")]
    assert [name for name in names if name not in content().items] == []
    wanted = {"Green Slime", "Bug", "Fly", "Duggy", "Grub", "Rock Crab"}
    assert wanted <= content().monsters.keys()


@pytest.mark.parametrize(
    ("qualified", "name"),
    [
        ("(O)472", "Parsnip Seeds"),
        ("(O)388", "Wood"),
        ("(BC)130", "Chest"),
        ("(W)0", "Rusty Sword"),
    ],
)
def test_items_are_found_by_their_ids(qualified, name):
    assert content().by_id[qualified].name == name


def test_two_items_may_share_a_name():
    white, brown = content().items["Egg"], content().items["Egg (brown)"]
    assert (white.name, brown.name, white.id != brown.id) == ("Egg", "Egg", True)
    assert content().by_name["Egg"] == white


def test_days_of_growth_are_those_of_the_game():
    days = {seed: sum(crop.phases) for seed, crop in content().crops.items()}
    known = {"Parsnip Seeds": 4, "Cauliflower Seeds": 12, "Garlic Seeds": 4, "Melon Seeds": 12}
    known |= {"Pumpkin Seeds": 13, "Ancient Seeds": 28, "Rare Seed": 24, "Corn Seeds": 14}
    assert {seed: days[seed] for seed in known} == known


def test_every_resident_likes_at_most_once():
    for name, each in content().residents.items():
        listed = [item for taste in TASTES for item in getattr(each, taste)]
        assert len(listed) == len(set(listed)), name


def test_days_of_residents_are_in_order_and_begin_in_the_morning():
    for name, each in content().residents.items():
        for day, places in each.days.items():
            times = [place.time for place in places]
            assert times[0] == 600, (name, day)
            assert times == sorted(set(times)), (name, day)
            assert all(600 <= time < 2600 and time % 100 < 60 for time in times), (name, day)


def test_shops_sell_for_more_than_any_pays():
    wanted = {each for shop in content().shops.values() for each in shop.buys}
    for key, shop in content().shops.items():
        for item, offer in shop.stock.items():
            if any(items.matches(item, each) for each in wanted):
                assert offer.price >= content().items[item].price, (key, item)


def test_every_season_has_forage_crops_and_requests():
    for season in SEASONS:
        assert season in content().help.delivery
        assert all(seasons.get(season) for seasons in content().forage.values())
        assert season == "winter" or any(
            season in each.seasons for each in content().crops.values()
        )


def test_areas_of_the_mines_meet():
    floors = [area.floors for area in content().areas]
    assert floors[0][0] == 1
    assert all(one[1] + 1 == other[0] for one, other in itertools.pairwise(floors))


PARSNIP = "  Parsnip: [24, 35, 10]"
TORCH = "Torch: [{Wood: 1, Sap: 2}, %s]"
BROKEN = [
    ("items.yaml", PARSNIP, "  Parsnip: [24, cheap, 10]", "Parsnip: price"),
    ("items.yaml", PARSNIP, "  Parsnip: [24]", "Parsnip: expected"),
    ("items.yaml", PARSNIP, "  Parsnips: [24, 35, 10]", "no 'Parsnip'; nearest: Parsnips"),
    ("items.yaml", PARSNIP, "  Parsnip: [188, 35, 10]", "same id"),
    ("items.yaml", PARSNIP, "  Garlic: [24, 35, 10]", "key 'Garlic' is given twice"),
    ("crops.yaml", "{regrow: 3, trellis: true}", "{regrows: 3}", "did you mean regrow"),
    ("crops.yaml", "{regrow: 3, trellis: true}", "{harvest: Corn}", "harvest is there twice"),
    ("crops.yaml", "[1, 1, 1, 1], [spring]]", "[1, 1, 1, 1], [autumn]]", "no 'autumn'"),
    ("shops.yaml", "keeper: Gus", "keeper: Gustav", "no 'Gustav'"),
    ("shops.yaml", "    stock: {Beer: 400", "    stok: {Beer: 400", "did you mean stock"),
    ("residents.yaml", "600 SeedShop 3 6,", "600 SeedShop 3,", "expected time, map, x, y"),
    ("recipes.yaml", TORCH % "starter", TORCH % "stater", "no 'stater'"),
    ("recipes.yaml", "<egg>: 1}, starter", "<eggs>: 1}, starter", "no 'eggs'; nearest: egg"),
    ("recipes.yaml", "Coal: 1}, mining 1]", "Coal: 1}, mining]", "no 'mining'"),
    ("residents.yaml", "default:", "defaults:", "no 'default'"),
    ("animals.yaml", "Milk Pail", "Milk Bucket", "no 'Milk Bucket'"),
    ("mines.yaml", "geode_price: 25", "geode_cost: 25", "no table geode_cost"),
    ("mines.yaml", "geode_price: 25", "", "tables geode_price are missing"),
    ("mines.yaml", "geode_price: 25", "geode_price: [", "not valid YAML"),
    ("progress.yaml", '["25"]', '["250"]', "no '250'"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), BROKEN)
def test_malformed_content_is_refused_by_name(tmp_path, file, old, new, message):
    folder = shutil.copytree(FOLDER, tmp_path / "data")
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        load(folder)


def test_numbers_are_compared_with_a_copy_of_the_game(tmp_path, capsys):
    costs = {
        "Dwarf": [("(O)286", 450, None), ("(O)287", 999, None)],
        "Blacksmith": [("(O)378", 75, "!YEAR 2"), ("(O)378", 151, "YEAR 2")],
    }
    empty = {"Price": 0, "Condition": None, "IsRecipe": False, "TradeItemId": None,
             "PriceModifiers": None, "IgnoreShopPriceModifiers": False,
             "AvailableStock": -1}  # fmt: skip
    shops = {theirs: {"Items": []} for theirs in stardojo_numbers.SHOPS.values()}
    for shop, rows in costs.items():
        shops[shop]["Items"] = [
            {**empty, "ItemId": number, "Price": price, "Condition": when}
            for number, price, when in rows
        ]
    (tmp_path / "Shops.json").write_text(json.dumps({"content": shops}))
    assert stardojo_numbers.main(tmp_path) == 1
    told = capsys.readouterr().out
    assert "shop Dwarf: Bomb: ours 1000, the game's [(999, '', None)]" in told
    assert "shop Blacksmith: Copper Ore: later: ours 150, the game's 151" in told
    assert "Dwarf: Cherry Bomb" not in told
    assert "skipped" in told


def test_tastes_are_compared_by_the_rule_of_the_game(tmp_path, capsys):
    row = {"Name": "", "Category": -4, "Price": 100, "Edibility": 10, "Type": "Fish",
           "ContextTags": None, "CanBeGivenAsGift": True, "ArtifactSpotChances": None}  # fmt: skip
    fish = {content().items[name].id: row | {"Name": name} for name in ("Bream", "Carp", "Eel")}
    tastes = {f"Universal_{word}": "" for word in ("Love", "Like", "Neutral")}
    tastes |= {"Universal_Dislike": "-4", "Universal_Hate": "142", "Robin": "words/132////////"}
    (tmp_path / "Objects.json").write_text(json.dumps(fish))
    (tmp_path / "NPCGiftTastes.json").write_text(json.dumps(tastes))
    stardojo_numbers.main(tmp_path)
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("taste")]
    assert told == ["taste Robin: Bream: ours dislikes, the game's loves"]


@pytest.mark.parametrize(
    ("who", "item", "liking"),
    [
        ("Robin", "Bream", "dislikes"),  # as all fish
        ("Robin", "Carp", "hates"),  # as everybody
        ("Robin", "Apple", "likes"),
        ("Leah", "Strawberry", "likes"),
        ("Alex", "Torch", "hates"),
        ("Alex", "Arrowhead", "dislikes"),
        ("Penny", "Arrowhead", "likes"),
        ("Willy", "Sturgeon", "loves"),
    ],
)
def test_residents_like_what_they_like_in_the_game(who, item, liking):
    assert residents.taste(who, item) == liking


def test_ores_and_wood_cost_more_from_the_second_year_on():
    valley = Valley("save_new", 1)
    names = ("Copper Ore", "Iron Ore", "Coal", "Gold Ore")
    for year, prices in ((1, [75, 150, 150, 400]), (2, [150, 250, 250, 750])):
        valley.world.year = year
        stock = dict(services.stock(valley.world, "Blacksmith"))
        assert [stock[name].price for name in names] == prices


def test_dim_floors_have_golems_and_no_slimes():
    (dim,) = [each for each in content().areas if each.floors == (31, 39)]
    assert set(dim.monsters) == {"Rock Golem", "Bug", "Bat"}
