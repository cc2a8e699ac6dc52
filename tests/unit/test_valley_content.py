"""People, creatures, mines, monsters, quests and services of the valley, by its public actions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.stardojo.oracle import explore, farm, people, supplies, travel
from bridges.stardojo.oracle.hands import Hands, entries
from bridges.stardojo.rules import mines, places, registry, residents
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.rules.world import SEASONS, Monster
from rollout.errors import InputError
from tests.unit.stardojo_skills import perform

pytestmark = pytest.mark.heavy

MORNING = ("set_time", (900,))


def valley(save="save_new", *setup, seed=0):
    made = Valley(save, seed)
    for name, args in setup:
        made.setup(name, args)
    return made, Hands(made)


def play(made, plan, most=400):
    for number, skill in enumerate(plan):
        assert number < most
        if skill[0] != "pause":
            perform(made, skill)


def give(made, name, count=1, quality=0):
    made.setup("add_item_by_name", (name, count, quality))


# Residents ----------------------------------------------------------------------------------------


def test_talk_counts_once_a_day_and_is_forgotten_overnight():
    made, hands = valley("save_new", MORNING)
    vincent = made.world.residents["Vincent"]
    play(made, people.meet(hands, "Vincent"))
    assert (vincent.talked, vincent.friendship) == (True, residents.TALK)
    perform(made, ("interact", (hands.face(vincent.tile),)))
    assert made.observe()["CurrentMenuData"]["type"] == "DialogueBox"
    assert vincent.friendship == residents.TALK
    play(made, hands.close())
    play(made, supplies.sleep(hands))
    assert (vincent.talked, vincent.friendship) == (False, residents.TALK)


@pytest.mark.parametrize(
    ("item", "quality", "points"),
    [("Grape", 0, 80), ("Grape", 4, 120), ("Daffodil", 0, 45), ("Egg", 0, -20), ("Clay", 0, -40)],
)
def test_gifts_are_worth_what_somebody_thinks_of_them(item, quality, points):
    made, hands = valley("save_new", ("npc_friendship", ("vincent", 500)), MORNING)
    give(made, item, 2, quality)
    vincent = made.world.residents["Vincent"]
    play(made, people.meet(hands, "Vincent", item))
    assert vincent.friendship == 500 + points
    assert (hands.count(item), vincent.gifts) == (1, 1)
    play(made, hands.close())
    perform(made, ("interact", (hands.face(vincent.tile),)))
    assert (hands.count(item), vincent.gifts) == (1, 1), "one gift a day"


def test_a_birthday_counts_eight_times():
    made, hands = valley("save_new", ("set_date", (1, "spring", 10)), MORNING)
    give(made, "Grape")
    play(made, people.meet(hands, "Vincent", "Grape"))
    assert made.world.residents["Vincent"].friendship == 8 * 80


def test_what_somebody_says_of_an_item_counts_before_what_everybody_thinks():
    assert residents.taste("Penny", "Rabbit's Foot") == "hates"
    assert residents.taste("Robin", "Rabbit's Foot") == "loves"
    assert residents.taste("Abigail", "Tomato") == "dislikes"
    assert residents.taste("Abigail", "Pumpkin") == "loves"
    assert residents.taste("Lewis", "Tomato") == "likes"


def test_a_bouquet_needs_eight_hearts_and_a_pendant_ten():
    made, hands = valley("save_new", ("npc_friendship", ("abigail", 1999)), MORNING)
    give(made, "Bouquet")
    abigail = made.world.residents["Abigail"]
    slot = hands.slot("Bouquet")

    def offer():
        perform(made, ("choose_item", (slot,)))
        perform(made, ("interact", (hands.face(abigail.tile),)))
        play(made, hands.close())

    play(made, people.meet(hands, "Abigail"))
    play(made, hands.close())
    made.setup("npc_friendship", ("abigail", 1999))
    offer()
    assert abigail.tie == ""
    made.setup("npc_friendship", ("abigail", 2000))
    offer()
    assert made.observe()["Player"]["DatingPartners"] == ["Abigail"]
    made.setup("upgrade_house", (1,))
    made.setup("npc_friendship", ("abigail", 2500))
    give(made, "Mermaid's Pendant")
    slot = hands.slot("Mermaid's Pendant")
    offer()
    assert made.observe()["Player"]["Spouse"] == ["Abigail"]


def test_nobody_is_called_so():
    made, _ = valley()
    with pytest.raises(InputError, match="nearest: Abigail"):
        made.setup("npc_friendship", ("abigale", 1))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 3), st.integers(1, 28), st.integers(0, 119), st.booleans())
def test_residents_stand_where_one_can_stand(season, day, tens, rain):
    made, _ = valley()
    world = made.world
    world.season, world.day = SEASONS[season], day
    world.weather = "rain" if rain else "sun"
    world.ticks = tens * 420
    residents.move(world)
    for each in world.residents.values():
        assert places.plan(places.get(world, each.place)).walkable(each.tile), each


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 100), st.integers(0, 119))
def test_arrangements_put_residents_where_they_go_on_some_day(number, tens):
    made = Valley("save_new", 1, state={"residents": number})
    usual = Valley("save_new", 1)
    for each in (made, usual):
        each.world.ticks = tens * 420
        residents.move(each.world)
    world, moved = made.world, 0
    keepers = {shop.keeper for shop in content().shops.values()}
    for name, each in world.residents.items():
        days = content().residents[name].days.values()
        assert each.place in {entry.map for day in days for entry in day}
        same = each.place == usual.world.residents[name].place
        assert same or name not in keepers
        moved += not same
        assert places.plan(places.get(world, each.place)).walkable(each.tile), each
    assert moved > 3
    again = Valley("save_new", 1)
    again.restore(made.snapshot())
    again.world.ticks = made.world.ticks
    residents.move(again.world)
    assert again.world.residents == world.residents


# Creatures ----------------------------------------------------------------------------------------


def test_animals_eat_hay_at_night_and_give_milk_in_the_morning():
    made, hands = valley("save_farming")
    cow = next(each for each in made.world.animals if each.kind == "White Cow")
    play(made, farm.milk(hands, "Milk", 1))
    assert (hands.count("Milk"), cow.produce) == (1, "")
    play(made, farm.from_chest(hands, "Hay", 24))
    barn = farm.house(hands, "Deluxe Barn")
    play(made, travel.go(hands, barn.inside))
    play(made, farm.lay_hay(hands, 4))
    happy, hay = cow.happiness, hands.count("Hay")
    play(made, supplies.sleep(hands))
    inside = made.world.places[barn.inside].things.values()
    assert sum(each.kind == "hay" for each in inside) == 0
    assert hay == 20
    assert cow.happiness > happy
    assert cow.produce == "Milk"


def test_hungry_animals_are_sad_and_give_nothing():
    made, hands = valley("save_farming")
    cow = next(each for each in made.world.animals if each.kind == "White Cow")
    cow.produce = ""
    play(made, supplies.sleep(hands))
    assert (cow.produce, cow.fed) == ("", False)
    assert cow.happiness == 50


def test_animals_go_out_through_an_open_gate_and_come_home():
    made, hands = valley("save_new")
    coop = farm.house(hands, "Coop")
    play(made, travel.go(hands, "Farm"))
    gate = places.gate(coop)
    play(made, hands.empty_hand())
    play(made, hands.interact(gate))
    assert coop.gate_open
    made.setup("set_time", (1000,))
    made.advance(421)
    (chicken,) = made.world.animals
    assert chicken.place == "Farm"
    made.setup("set_time", (1900,))
    made.advance(421)
    assert chicken.place == coop.inside


def test_an_egg_hatches_in_its_time():
    made, hands = valley("save_farming")
    coop = farm.house(hands, "Deluxe Coop")
    play(made, farm.eggs(hands, "Egg", 1))
    things = hands.world.here.things
    tile = next(tile for tile, each in things.items() if each.kind == "incubator")
    play(made, hands.approach(tile))
    play(made, hands.hold("Egg"))
    perform(made, ("interact", (hands.face(tile),)))
    assert hands.count("Egg") == 0
    before = len(made.world.animals)
    for _ in range(6):
        play(made, supplies.sleep(hands))
    assert len(made.world.animals) == before
    play(made, supplies.sleep(hands))
    chick = made.world.animals[-1]
    assert (len(made.world.animals), chick.kind, chick.home) == (
        before + 1,
        "White Chicken",
        coop.id,
    )
    assert not made.observe()["Farm"]["Animals"][-1]["IsAdult"]


# Mines and monsters -------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 130))
def test_floors_are_made_of_what_their_area_has(seed, level):
    made, _ = valley("save_new", ("warp_mine", (level,)), seed=seed)
    here, known = made.world.here, mines.area(level)
    assert made.observe()["Player"]["Location"] == f"UndergroundMine{level}"
    for tile, thing in here.things.items():
        assert places.plan(here).walkable(tile)
        assert thing.kind in ("node", "forage", "ladder", "treasure")
    for monster in here.monsters:
        assert known.monsters[monster.name] > 0
        assert level >= content().from_floor.get(monster.name, 0)
    if level % 10 == 0 and level <= 120:
        assert any(thing.kind == "ladder" for thing in here.things.values())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3000), st.sampled_from([2, 13, 25, 45, 85]))
def test_monsters_stay_on_the_floor_and_hurt_only_by_touch(seed, ticks, level):
    made, _ = valley("save_new", ("warp_mine", (level,)), seed=seed)
    world = made.world
    place = world.here
    made.advance(ticks)
    if world.here is not place:
        return  # fainted
    for monster in place.monsters:
        x, y = monster.tile
        plan = places.plan(place)
        flies = content().monsters[monster.name].moves == "fly"
        assert plan.inside((x, y)) if flies else plan.walkable((x, y)), monster
    assert 0 < world.farmer.health <= 100


def test_a_new_floor_deepens_the_mine_and_the_elevator_goes_there():
    made, hands = valley("save_quests", ("warp_mine", (9,)))
    assert made.world.mine_level == 9
    play(made, supplies.leave_floor(hands))
    assert made.observe()["Player"]["Location"] == "Mine"
    spots = places.plan(made.world.here).spots
    lift = next(tile for tile, words in spots.items() if words[0] == "elevator")
    play(made, hands.interact(lift))
    assert entries(made) == ["Floor 0", "Floor 5"]
    play(made, hands.choose(2))
    assert made.observe()["Player"]["Location"] == "UndergroundMine5"


def test_the_last_stone_hides_a_ladder():
    made, _ = valley("save_new", ("warp_mine", (3,)))
    here = made.world.here
    stones = [tile for tile, each in here.things.items() if each.kind == "node"]
    for tile in stones:
        if not mines.has_ladder(here):
            mines.shatter(made.world, here, tile, here.things[tile])
    assert mines.has_ladder(here)


def test_who_loses_all_health_wakes_up_in_the_clinic():
    made, _ = valley("save_new", ("warp_mine", (2,)), ("set_health", (1,)))
    made.world.here.monsters.clear()
    x, y = made.world.farmer.tile
    made.world.here.monsters.append(Monster("Green Slime", x, y, 24))
    made.advance(60)
    seen = made.observe()["Player"]
    assert (seen["Location"], seen["Health"]) == ("Hospital", 50)
    assert seen["Money"] < 50000


# Quests, letters, the town ------------------------------------------------------------------------


def test_a_quest_can_be_given_up_and_a_reward_taken():
    made, hands = valley("save_quests")
    money, count = made.world.farmer.money, len(made.world.quests)
    play(made, explore.reward(hands, None))
    assert (made.world.farmer.money, len(made.world.quests)) == (money + 90, count - 1)
    play(made, explore.quit_quest(hands, None))
    assert len(made.world.quests) == count - 2


def test_help_wanted_is_delivered_to_who_asked():
    made, hands = valley("save_new", ("start_help_quest", ("delivery",)), MORNING)
    quest = made.world.quests[-1]
    give(made, quest.what)
    play(made, people.meet(hands, quest.facts["who"], quest.what))
    assert quest.done
    assert hands.count(quest.what) == 0
    assert {"id": None, "completed": True} in made.observe()["Progression"]["Quests"]


def test_a_letter_teaches_the_furnace_after_the_first_copper():
    made, hands = valley("save_farming")
    give(made, "Copper Ore")
    made.world.mail.clear()
    play(made, supplies.sleep(hands))
    assert "ClintFurnace" in made.world.mail
    play(made, travel.go(hands, "Farm"))
    spots = places.plan(made.world.here).spots
    box = next(tile for tile, words in spots.items() if words[0] == "mailbox")
    for _ in range(len(made.world.mail)):
        play(made, hands.interact(box))
        assert made.observe()["CurrentMenuData"]["type"] == "Letter"
        play(made, hands.close())
    assert "Furnace" in made.world.farmer.recipes


def test_the_television_has_the_forecast():
    made, hands = valley()
    play(made, travel.go(hands, "FarmHouse"))
    television = next(each for each in made.world.here.furniture if "TV" in each.name)
    play(made, hands.interact(hands.reachable(places.covered(television.tile, television.size))))
    play(made, hands.pick("Weather"))
    assert "forecast" in made.observe()["CurrentMenuData"]["dialogues"][0]


def test_bundles_are_filled_and_repair_what_their_room_is_for():
    made, hands = valley(
        "save_new", ("set_money", (50000,)), ("warp", ("CommunityCenter", None, None))
    )
    spots = places.plan(made.world.here).spots
    note = next(t for t, words in spots.items() if words == ("bundles", "Vault"))
    play(made, hands.interact(note))
    for name in content().rooms["Vault"]:
        play(made, hands.pick(name))
        play(made, hands.choose(1))
    assert made.world.farmer.money == 50000 - 42500
    done = {each["project"]: each["completed"] for each in made.observe()["Progression"]["Repairs"]}
    assert done["Bus Repair"]
    assert not done["Greenhouse"]


def test_the_museum_takes_each_piece_once():
    made, hands = valley("save_new", ("warp", ("ArchaeologyHouse", None, None)))
    give(made, "Amethyst", 2)
    give(made, "Parsnip")
    spots = places.plan(made.world.here).spots
    desk = next(tile for tile, words in spots.items() if words[0] == "museum")
    play(made, hands.interact(desk))
    assert entries(made) == ["Amethyst"]
    play(made, hands.choose(1))
    assert made.world.menu is None
    assert [each["itemName"] for each in made.observe()["Progression"]["Museum"]] == ["Amethyst"]
    assert hands.count("Amethyst") == 1


# Services -----------------------------------------------------------------------------------------


def test_a_shop_needs_its_keeper_and_enough_money():
    made, hands = valley("save_new", ("warp_shop", ("gus",)), ("set_money", (900,)))
    play(made, supplies.ask(hands, "Saloon"))
    beer = entries(made).index("Beer") + 1
    perform(made, ("choose_option", (beer, 3, 0)))
    assert (hands.count("Beer"), made.world.farmer.money) == (0, 900)
    perform(made, ("choose_option", (beer, 2, 0)))
    assert (hands.count("Beer"), made.world.farmer.money) == (2, 100)
    play(made, hands.close())
    made.setup("warp_character", ("gus", "Town", 50, 60))
    perform(made, ("interact", ("up",)))
    assert made.observe()["CurrentMenuData"]["type"] == "DialogueBox"


def test_seeds_are_sold_in_their_season_only():
    made, hands = valley("save_new", ("warp_shop", ("pierre",)))
    play(made, supplies.ask(hands, "SeedShop"))
    spring = set(entries(made))
    made.setup("set_date", (2, "summer", 1))
    summer = set(entries(made))
    assert {"Parsnip Seeds", "Potato Seeds"} <= spring - summer
    assert {"Melon Seeds", "Red Cabbage Seeds"} <= summer - spring


def test_the_carpenter_builds_over_nights_for_gold_and_materials():
    made, hands = valley("save_new", ("warp_shop", ("robin",)))
    give(made, "Wood", 350)
    play(made, supplies.ask(hands, "ScienceHouse", "build"))
    play(made, hands.pick("Barn:"))
    assert "job" not in made.world.menu.facts, "150 stone are missing"
    give(made, "Stone", 150)
    play(made, hands.pick("Barn:"))
    play(made, hands.choose(1))
    assert (made.world.farmer.money, hands.count("Wood"), hands.count("Stone")) == (44000, 0, 0)
    barn = made.world.buildings[-1]
    for nights in (2, 1, 0):
        play(made, supplies.sleep(hands))
        assert (barn.kind, barn.days) == ("Barn", nights)
    play(made, travel.go(hands, "Barn"))
    assert made.observe()["Player"]["Location"] == "Barn"


def test_what_happens_is_the_same_after_a_snapshot():
    made, hands = valley("save_farming", MORNING)
    play(made, people.meet(hands, "Vincent"))
    other = Valley("save_farming", 5)
    other.restore(made.snapshot())
    for each in (made, other):
        play(each, Hands(each).close())
        play(each, supplies.sleep(Hands(each)))
        each.setup("warp_mine", (5,))
        each.advance(600)
    assert made.snapshot() == other.snapshot()


def test_rules_are_found_by_what_the_maps_name():
    for words in (
        "shop",
        "billboard",
        "mailbox",
        "elevator",
        "ladder",
        "exit",
        "bundles",
        "museum",
    ):
        assert registry.SPOT.get(words) is not None
