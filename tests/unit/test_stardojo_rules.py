"""StarDojo's evaluators: every rule of the table, `faithful` with its quirks, `strict` without."""

# ruff: noqa: E501 - one case a line

import copy
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.stardojo.evaluators import RULES
from bridges.stardojo.facts import CannotBeJudgedError, point
from bridges.stardojo.judging import begin, judge
from bridges.stardojo.task_row import TaskRow

DIRT = "StardewValley.TerrainFeatures.HoeDirt"
TREE = "StardewValley.TerrainFeatures.FruitTree"


def tile(x, y, object_at_tile="", terrain_at_tile=""):
    return {
        "position": [x, y],
        "object_at_tile": object_at_tile,
        "terrain_at_tile": terrain_at_tile,
    }


def seen(
    *, money=500, at="Farm", position=(64, 15), bag=None, slots=12, skills=None, professions=(),
    dating=(), spouse=(), tiles=(), crops=(), animals=(), pets=(), buildings=(), npcs=(), days=1,
    time=900, menu=None, kills=None, progression=None,
):  # fmt: skip
    """An observation as the mod gives it."""
    full = [{"Name": name, "Quantity": n} for name, n in (bag or {}).items()]
    full += [{"Name": None, "Quantity": None}] * (slots - len(full))
    found = {
        "Player": {
            "Money": money, "Location": at, "Position": {"X": position[0], "Y": position[1]},
            "Inventory": full, "Skills": skills or {}, "Professions": list(professions),
            "DatingPartners": list(dating), "Spouse": list(spouse),
        },
        "GameState": {"Time": time},
        "NPCs": list(npcs),
        "Farm": {"Animals": list(animals), "Pets": list(pets), "Buildings": list(buildings)},
        "CurrentMenuData": menu or {"type": "No Menu"},
        "Crops": list(crops),
        "CallBackData": {"OnDayStarted": days},
        "SurroundingsData": list(tiles),
        "MonsterKills": kills if kills is not None else {},
    }  # fmt: skip
    if progression is not None:
        found["Progression"] = progression
    return found


def crop(x, seed="472", *, wet=False, phase=0):
    return {"id": seed, "position": f"{x}, 20", "isWatered": wet, "current_phase": phase}


def animal(kind, name, **more):
    return {
        "Type": kind,
        "Name": name,
        "isTouched": False,
        "Friendship": 0,
        "Happiness": 10,
        **more,
    }


def house(kind, number=1, **more):
    return {"type": kind, "id": f"{kind}{number}", "position": "53, 12", "hayNumber": 0, **more}


def progress(**more):
    return {"Quests": [], "Bundles": [], "Repairs": [], "Museum": [], "JojaMembership": False,
            "MovieTheater": False, **more}  # fmt: skip


def quest(number, done=False):
    return {"id": number, "completed": done}


def npc(**more):
    return {"Name": "Alex", "isTalked": False, "GiftsToday": 0, "Friendship": 20, **more}


def task(category, evaluator, about="", quantity=100, tool=None):
    return TaskRow(category, "x", 0, about, quantity, tool, "save_new", (), evaluator, "easy")


WEEDS, EMPTY = [tile(1, 1, "Weeds"), tile(2, 1, "Twig")], [tile(1, 1), tile(2, 1)]
COOP = house("Deluxe Coop", isAnimalDoorOpen=False)
OPEN = {**COOP, "isAnimalDoorOpen": True}
BIN = house("Shipping Bin", position="65, 16")
PETTED = animal("Cat", "Cat_1", isTouched=True)

# category, evaluator, object, tool, at the reset, after a step, counted by faithful, by strict
CASES = [
    ("farming", "clear", "Weeds", None, {"tiles": WEEDS}, {"tiles": EMPTY}, 1, 1),
    ("farming", "clear", "Debris", None, {"tiles": WEEDS}, {"tiles": EMPTY}, 2, 2),
    ("farming", "clear", "Weeds", None, {"tiles": WEEDS}, {"tiles": EMPTY, "at": "Town"}, 1, 0),
    ("farming", "clear", "Weeds", None, {"tiles": WEEDS}, {"tiles": [tile(9, 9)]}, 0, 0),
    ("farming", "clear", "Stone", None, {"tiles": [tile(1, 1, "Stone")]}, {"tiles": [tile(1, 1)]}, 0, 1),
    ("farming", "clear", "Stone", None, {}, {"bag": {"Stone": 3}}, 3, 0),
    ("farming", "till", "Tile", "Hoe", {"tiles": [tile(1, 1)]}, {"tiles": [tile(1, 1, "", DIRT)]}, 1, 1),
    ("farming", "sow", "Dirt", "Parsnip Seeds", {}, {"crops": [crop(1), crop(2, "474")]}, 1, 1),
    ("farming", "sow", "Dirt", "Parsnip Seeds", {"at": "Town"}, {"crops": [crop(1)]}, 1, 0),
    ("farming", "sow", "Dirt", "Parsnip Seeds", {"crops": [crop(1)]}, {"crops": [crop(1, phase=1)]}, 0, 0),
    ("farming", "sow", "Tile", "Cherry Sapling", {"tiles": [tile(1, 1)]}, {"tiles": [tile(1, 1, "", TREE)]}, 1, 1),
    ("farming", "water", "Crop", None, {"crops": [crop(1)]}, {"crops": [crop(1, wet=True)]}, 1, 1),
    ("farming", "water", "Kale Seeds", None, {"crops": [crop(1)]}, {"crops": [crop(1, wet=True)]}, 0, 0),
    ("farming", "water", "Crop", None, {"crops": [crop(1)]}, {"crops": [crop(1, wet=True)], "days": 2}, 1, 0),
    ("farming", "water", "Crop", None, {"at": "Town"}, {"crops": [crop(1, wet=True)]}, 1, 0),
    ("farming", "fertilize", "Dirt", "Speed-Gro", {"bag": {"Speed-Gro": 2}, "tiles": [tile(64, 16, "", DIRT)]}, {"tiles": [tile(64, 16, "", DIRT)]}, 2, 1),
    ("farming", "fertilize", "Dirt", "Speed-Gro", {"bag": {"Speed-Gro": 1}}, {"money": 520}, 1, 0),
    ("farming", "harvest", "Egg", None, {}, {"bag": {"Egg": 2, "Large Egg": 1}}, 2, 2),
    ("farming", "harvest", "Egg", None, {}, {"bag": {"Egg": 2}, "money": 400}, 2, 0),
    ("farming", "skill", "Farming Skill", None, {"skills": {"Farming": 1}}, {"skills": {"Farming": 3}}, 2, 2),
    ("farming", "skill", "Farming Skill", None, {"skills": {"Farming": 1}}, {"skills": {}}, -1, 0),
    ("farming", "open", "Deluxe Coop", None, {"buildings": [COOP]}, {"buildings": [OPEN]}, 1, 1),
    ("farming", "open", "Coop, Barn", None, {"buildings": [house("Coop", isAnimalDoorOpen=False)]}, {"buildings": [house("Coop", isAnimalDoorOpen=True)]}, 0, 1),
    ("farming", "open", "Deluxe Coop, Deluxe Barn", None, {"buildings": [COOP]}, {"buildings": [OPEN]}, 1, 1),
    ("farming", "close", "Deluxe Coop", None, {"buildings": [OPEN]}, {"buildings": [COOP]}, 1, 1),
    ("farming", "pet", "Animal", None, {"animals": [animal("Duck", "D")]}, {"animals": [animal("Duck", "D", isTouched=True)], "pets": [PETTED]}, 2, 2),
    ("farming", "pet", "Cat", None, {"pets": [animal("Cat", "Cat_1")]}, {"pets": [PETTED]}, 1, 1),
    ("farming", "fill", "Feeding Bench", "Hay", {"buildings": [COOP]}, {"buildings": [{**COOP, "hayNumber": 12}]}, 1, 1),
    ("farming", "fill", "Feeding Bench", "Hay", {"buildings": [COOP]}, {"buildings": [{**COOP, "hayNumber": 11}]}, 0, 0),
    ("farming", "fill", "Pet Bowl", None, {"buildings": [house("Pet Bowl", isBowlFull=False)]}, {"buildings": [house("Pet Bowl", isBowlFull=True)]}, 1, 1),
    ("farming", "incubate", "Chicken", None, {}, {"animals": [animal("Brown Chicken", "B")]}, 1, 1),
    ("farming", "incubate", "Chicken", None, {}, {"animals": [animal("Brown Chicken", "B")], "money": 0}, 1, 0),
    ("farming", "friendship", "Cat", None, {"pets": [animal("Cat", "C", Friendship=30)]}, {"pets": [animal("Cat", "C", Friendship=42)]}, 42, 12),
    ("farming", "friendship", "Animal", None, {}, {"animals": [animal("Duck", "D", Friendship=100)], "pets": [animal("Cat", "C", Friendship=99)]}, 1, 1),
    ("farming", "mood", "Animal", None, {}, {"animals": [animal("Duck", "D", Happiness=255)]}, 1, 1),
    ("farming", "profession", "Tiller", None, {}, {"professions": ["Tiller"]}, 1, 1),
    ("crafting", "craft", "Chest", None, {"bag": {"Chest": 1}}, {"bag": {"Chest": 2}}, 2, 1),
    ("crafting", "craft", "Salad", None, {}, {"bag": {"Salad": 1}, "money": 280}, 1, 0),
    ("combat", "kill", "Bug", None, {"kills": {"Bug": 2}}, {"kills": {"Bug": 4}}, 2, 2),
    ("combat", "skill", "Combat Skill", None, {}, {"skills": {"Combat": 1}}, 1, 1),
    ("combat", "profession", "Fighter", None, {}, {"professions": ["Unknown_24"]}, 0, 1),
    ("exploration", "harvest", "Wood", None, {}, {"bag": {"Wood": 5}}, 5, 5),
    ("exploration", "exchange", "Bomb", None, {}, {"bag": {"Bomb": 1}}, 1, 1),
    ("exploration", "silo", "Hay", None, {"buildings": [house("Silo")]}, {"buildings": [house("Silo", hayNumber=3)]}, 3, 3),
    ("exploration", "silo", "Hay", None, {"buildings": [house("Silo")], "bag": {"Hay": 3}}, {"buildings": [house("Silo", hayNumber=3)]}, 3, 0),
    ("exploration", "skill", "Foraging Skill", None, {}, {"skills": {"Foraging": 1, "Fishing": 4}}, 1, 1),
    ("exploration", "skill", "Mining Skill", None, {}, {"skills": {"Mining": 1, "Fishing": 4}}, 1, 1),
    ("exploration", "skill", "Fishing Skill", None, {}, {"skills": {"Fishing": 4}}, 4, 4),
    ("exploration", "profession", "Geologist", None, {}, {"professions": ["Geologist"]}, 1, 1),
    ("exploration", "location", "Coop", None, {}, {"at": "Coop"}, 1, 1),
    ("exploration", "location", "Coop", None, {}, {"at": "Deluxe Coop"}, 0, 0),
    ("exploration", "sleep", "Bed", None, {}, {"days": 2, "at": "FarmHouse"}, 1, 1),
    ("exploration", "sleep", "Bed", None, {"time": 2600}, {"days": 2, "at": "FarmHouse"}, 1, 0),
    ("exploration", "bundle", "Animal", None, {"progression": progress(Bundles=[{"name": "Animal", "completed": False}])}, {"progression": progress(Bundles=[{"name": "Animal", "completed": True}])}, 1, 1),
    ("exploration", "museum", "Item", None, {"progression": progress()}, {"progression": progress(Museum=[{"itemName": "Quartz"}])}, 1, 1),
    ("exploration", "museum", "Quartz", None, {"progression": progress()}, {"progression": progress(Museum=[{"itemName": "Quartz"}])}, 1, 1),
    ("exploration", "museum", "Quartz", None, {"progression": progress(Museum=[{"itemName": "Quartz"}])}, {"progression": progress()}, 0, 0),
    ("exploration", "museum", "Item", None, {"progression": progress(Museum=[{"itemName": "Quartz"}])}, {"progression": progress()}, -1, 0),
    ("exploration", "repair", "Greenhouse", None, {"progression": progress()}, {"progression": progress(Repairs=[{"project": "Greenhouse", "completed": True}])}, 1, 1),
    ("exploration", "accept", "", None, {"progression": progress()}, {"progression": progress(Quests=[quest(None)])}, 1, 1),
    ("exploration", "quit", "Quest", None, {"progression": progress(Quests=[quest("9"), quest("26")])}, {"progression": progress(Quests=[quest("9")])}, 1, 1),
    ("exploration", "quit", "Quest", None, {"progression": progress(Quests=[quest("9")])}, {"progression": progress(Quests=[quest("9"), quest("11")])}, -1, 0),
    ("exploration", "quit", "Quest", None, {"progression": progress(Quests=[quest("9", True)])}, {"progression": progress()}, 1, 0),
    ("exploration", "reward", "", None, {"progression": progress(Quests=[quest("9", True)])}, {"progression": progress()}, 1, 1),
    ("exploration", "complete_help", "", None, {"progression": progress(Quests=[quest(None)])}, {"progression": progress(Quests=[quest(None, True)])}, 1, 1),
    ("exploration", "complete_help", "", None, {"progression": progress(Quests=[quest("9")])}, {"progression": progress(Quests=[quest("9", True)])}, 1, 0),
    ("exploration", "complete_story", "9", None, {"progression": progress(Quests=[quest("9")])}, {"progression": progress(Quests=[quest("9", True)])}, 1, 1),
    ("exploration", "complete_story", "9", None, {"progression": progress(Quests=[quest("6")])}, {"progression": progress()}, 0, 0),
    ("exploration", "watch", "", None, {}, {"menu": {"type": "DialogueBox", "dialogues": ["the forecast for tomorrow"]}}, 1, 1),
    ("exploration", "read", "", None, {}, {"menu": {"type": "Letter", "message": "Dear"}}, 1, 1),
    ("social", "sell", "Parsnip", None, {"bag": {"Parsnip": 5}}, {"money": 675}, 5, 5),
    ("social", "sell", "Parsnip", None, {"bag": {"Parsnip": 5}}, {"bag": {"Parsnip": 4}}, 1, 0),
    ("social", "sell", "Parsnip", "Shipping Bin", {"bag": {"Parsnip": 1}, "buildings": [BIN]}, {"buildings": [BIN]}, 1, 1),
    ("social", "sell", "Parsnip", "Shipping Bin", {"bag": {"Parsnip": 1}, "buildings": [BIN]}, {"buildings": [BIN], "position": (5, 5)}, 1, 0),
    ("social", "break", "Geode", None, {"bag": {"Geode": 5}}, {"bag": {"Geode": 4}, "money": 475}, 1, 1),
    ("social", "break", "Geode", None, {"bag": {"Geode": 5}}, {"money": 700}, 5, 0),
    ("social", "retrieve", "Egg", None, {}, {"bag": {"Egg": 1}}, 1, 1),
    ("social", "harvest", "Egg", None, {}, {"bag": {"Egg": 1}}, 1, 1),
    ("social", "purchase", "Beer", None, {}, {"bag": {"Beer": 2}, "money": 0}, 2, 2),
    ("social", "purchase", "Beer", None, {}, {"bag": {"Beer": 2}}, 2, 0),
    ("social", "upgrade_tool", "Copper Pickaxe", None, {}, {"bag": {"Copper Pickaxe": 1}}, 1, 1),
    ("social", "jojamart", "Joja Membership", None, {"progression": progress()}, {"progression": progress(JojaMembership=True)}, 1, 1),
    ("social", "jojamart", "Movie Theater", None, {"progression": progress()}, {"progression": progress(MovieTheater=True)}, 1, 1),
    ("social", "jojamart", "Bus Repair", None, {"progression": progress()}, {"progression": progress(Repairs=[{"project": "Bus Repair", "completed": True}])}, 1, 1),
    ("social", "jojamart", "Joja Community Development Form", None, {"progression": progress()}, {"progression": progress(Repairs=[{"project": "Bus Repair", "completed": True}])}, 0, 0),
    ("social", "backpack", "Large Pack", None, {}, {"slots": 24}, 12, 1),
    ("social", "purchase_animal", "Cow", None, {}, {"animals": [animal("White Cow", "C")], "money": 0}, 1, 1),
    ("social", "purchase_animal", "Cow", None, {}, {"animals": [animal("White Cow", "C")]}, 1, 0),
    ("social", "sell_animal", "Chicken", None, {"animals": [animal("White Chicken", "C")]}, {"money": 900}, 1, 1),
    ("social", "sell_animal", "Chicken", None, {"animals": [animal("White Chicken", "C")]}, {}, 1, 0),
    ("social", "build", "Big Coop", None, {"buildings": [house("Coop")]}, {"buildings": [house("Big Coop")]}, 1, 1),
    ("social", "demolish", "Shipping Bin", None, {"buildings": [BIN]}, {}, 1, 1),
    ("social", "move", "Coop", None, {"buildings": [house("Coop")]}, {"buildings": [house("Coop", position="40, 12")]}, 1, 1),
    ("social", "move", "Coop", None, {"buildings": [house("Coop")]}, {"buildings": [house("Coop", position={"X": 53.0, "Y": 12.0})]}, 0, 0),
    ("social", "upgrade_farmhouse", "Farmhouse", None, {"buildings": [house("Farmhouse", upgradeLevel=0)]}, {"buildings": [house("Farmhouse", upgradeLevel=1)]}, 1, 1),
    ("social", "talk", "Alex", None, {"npcs": [npc()]}, {"npcs": [npc(isTalked=True)]}, 1, 1),
    ("social", "gift", "Alex", None, {"npcs": [npc()]}, {"npcs": [npc(GiftsToday=1)]}, 1, 1),
    ("social", "gift", "Alex", "Amethyst", {"npcs": [npc()], "bag": {"Amethyst": 1}}, {"npcs": [npc(GiftsToday=1)]}, 1, 1),
    ("social", "gift", "Alex", "Amethyst", {"npcs": [npc()], "bag": {"Amethyst": 1}}, {"npcs": [npc(GiftsToday=1)], "bag": {"Amethyst": 1}}, 1, 0),
    ("social", "date", "Alex", None, {}, {"dating": ["Alex"]}, 1, 1),
    ("social", "breakup", "Alex", None, {"dating": ["Alex"]}, {}, 1, 1),
    ("social", "propose", "Alex", None, {}, {"spouse": ["Alex"]}, 1, 1),
    ("social", "friendship", "Alex", None, {"npcs": [npc()]}, {"npcs": [npc(Friendship=100)]}, 100, 80),
    ("open", "human", "", None, {}, {"money": 9000}, 0, 0),
]  # fmt: skip


def final(row, judging, *observations):
    standing = begin(row, observations[0], judging)
    for each in observations[1:]:
        standing = judge(row, standing, each, judging)
    return standing


@pytest.mark.parametrize(
    ("category", "evaluator", "about", "tool", "before", "after", "faithful", "strict"),
    CASES,
    ids=[f"{n}-{case[1]}" for n, case in enumerate(CASES)],
)
def test_each_rule(category, evaluator, about, tool, before, after, faithful, strict):
    row = task(category, evaluator, about, tool=tool)
    first, then = seen(**before), seen(**after)
    kept = copy.deepcopy((first, then))
    # Faithful takes its baseline after the first step.
    assert final(row, "faithful", first, first, then).current == faithful
    assert final(row, "strict", first, then).current == strict
    assert final(row, "strict", first, first, then).current == strict
    assert (first, then) == kept, "rules are pure"


def test_every_rule_has_a_case_and_both_forms():
    assert {case[:2] for case in CASES} == set(RULES)


def test_the_first_step_counts_in_strict_only():
    row = task("social", "talk", "Alex", quantity=1)
    first, then = seen(npcs=[npc()]), seen(npcs=[npc(isTalked=True)])
    assert not final(row, "faithful", first, then, then).completed
    assert final(row, "strict", first, then).completed
    for category, evaluator, about, now in (
        ("crafting", "craft", "Chest", seen(bag={"Chest": 1})),
        ("exploration", "location", "Town", seen(at="Town")),
    ):
        state = task(category, evaluator, about, quantity=1)
        early = final(state, "faithful", seen(), now).completed
        assert early is (category == "crafting")
        assert final(state, "faithful", seen(), now, now).completed


def test_what_comes_back_counts_again_in_faithful_only():
    row = task("farming", "pet", "Cat")
    there, away = seen(pets=[PETTED]), seen()
    path = [seen(pets=[animal("Cat", "Cat_1")]), there, away, there, away, there]
    assert final(row, "faithful", path[0], *path).current == 3
    assert final(row, "strict", *path).current == 1
    chest = task("farming", "harvest", "Egg")
    path = [seen(), *[seen(bag={"Egg": 1}), seen()] * 3]
    assert final(chest, "faithful", path[0], *path).current == 3
    assert final(chest, "strict", *path).current == 0
    shipped = [seen(), seen(bag={"Egg": 1}), seen(money=550), seen(bag={"Egg": 1}, money=550)]
    assert final(chest, "strict", *shipped).current == 2, "what was sold stays harvested"


def test_completion_and_share_stay():
    row = task("farming", "harvest", "Egg", quantity=2)
    some = final(row, "strict", seen(), seen(bag={"Egg": 1}))
    assert (some.share, some.completed, some.change) == (0.5, False, 1)
    done = final(row, "strict", seen(), seen(bag={"Egg": 2}), seen())
    assert (done.share, done.completed) == (1.0, True)


@pytest.mark.parametrize("judging", ["strict", "faithful"])
@pytest.mark.parametrize(
    ("category", "evaluator", "lacks"),
    [
        ("exploration", "quit", "Quests"),
        ("social", "jojamart", "Repairs"),
        ("combat", "kill", "Bug"),
    ],
)
def test_what_the_game_does_not_report_cannot_be_judged(category, evaluator, lacks, judging):
    with pytest.raises(CannotBeJudgedError, match=lacks):
        begin(task(category, evaluator, "Bug"), seen(), judging)


@pytest.mark.parametrize("value", ["53, 12", {"X": 53.0, "Y": 12}, [53, 12], "53,12", (53.2, 12.0)])
def test_positions_come_in_several_forms(value):
    assert point(value) == (53, 12)


@pytest.mark.parametrize("value", [None, "", "5", {"X": None}, [1, 2, 3], 7])
def test_a_position_may_be_missing(value):
    assert point(value) is None


VIEWS = st.lists(st.sampled_from(range(len(CASES))), min_size=2, max_size=8)


@given(of=st.sampled_from(range(len(CASES))), path=VIEWS)
def test_any_path_is_judged_and_strict_never_counts_more_than_it_saw(of, path):
    """Whatever observations follow one another: results are numbers, shares lie within 0 and 1."""
    category, evaluator, about, tool = CASES[of][:4]
    row = task(category, evaluator, about, 1, tool)
    views = [
        seen(**{"progression": progress(), "kills": {about: 0}, **CASES[n][4 + n % 2]})
        for n in path
    ]
    for judging in ("strict", "faithful"):
        standing, completed = begin(row, views[0], judging), False
        for each in views[1:]:
            standing = judge(row, standing, each, judging)
            assert 0 <= standing.share <= 1
            assert standing.completed >= completed
            completed = standing.completed
        json.dumps([standing.current, standing.change])


def test_identities_count_once_whatever_the_order():
    row = task("farming", "clear", "Weeds", quantity=2)
    with_weeds, without = seen(tiles=WEEDS), seen(tiles=EMPTY)
    for path in itertools.product([with_weeds, without], repeat=4):
        assert final(row, "strict", *path).current <= 1
