"""The commands of a start as text: what is accepted, what is refused, and in which words."""

import re
from functools import cache

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bridges.mineflayer import MineflayerBridge, snbt
from bridges.mineflayer.commands import CommandError, parse_command, parse_commands
from bridges.mineflayer.factors import start_message
from bridges.mineflayer.names import names
from bridges.mineflayer.reading import TABLE, forms
from bridges.mineflayer.regions import make_regions
from bridges.mineflayer.scene import make_scene
from rollout.api import Start
from rollout.config import BridgeConfig
from rollout.errors import ConfigError
from rollout.tasks import bridge_and_task

pytestmark = pytest.mark.heavy

LONGEST = 300
whole = st.integers(-2000, 2000)
numbers = whole | st.floats(-999, 999, width=16).map(lambda x: f"{x:.3f}")
words = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
ids = st.sampled_from(["", "minecraft:"])


def some(choices):
    return st.sampled_from(sorted(choices))


def named(choices):
    return st.tuples(ids, some(choices)).map("".join)


def joined(*parts, by=""):
    return st.tuples(*parts).map(lambda each: by.join(map(str, each)))


def coordinates(count, kinds=("", "~", "^"), number=numbers):
    def one(sign):
        spare = st.just("") if sign else st.nothing()
        return joined(st.just(sign), spare | number)

    return st.sampled_from(kinds).flatmap(
        lambda kind: joined(
            *[one(kind) if kind == "^" else one("") | one("~") for _ in range(count)], by=" "
        )
    )


TAGS = {
    "number": st.integers(-100, 100).map(str) | some(("0b", "12s", "3L", "1.5f", "-2.25d", "true")),
    "text": st.text("ab \"'\\{}:", max_size=6).map(snbt.quoted),
    "words": st.lists(words, max_size=2).map(lambda each: "[" + ",".join(each) + "]"),
    "item": some(('{id:"minecraft:bow",Count:1b}', "{}", "{id:stone,Count:3b,tag:{Damage:2}}")),
    "items": some(("[{id:bow,Count:1b},{}]", "[]", '[{Slot:1b,id:"minecraft:apple",Count:2b}]')),
    "effects": some(("[{Id:1b,Amplifier:2b,Duration:100}]", "[]")),
    "owner": some(('"Ann"', "[I;1,2,3,4]")),
    "compound": some(('{profession:"minecraft:cleric",level:2}', "{}", "{Recipes:[{xp:1}]}")),
    "loot": some(('"minecraft:chests/igloo_chest"', "simple_dungeon")),
}


@cache
def compound(table):
    pairs = some(TABLE[table]).flatmap(
        lambda key: joined(st.just(f"{key}:"), TAGS[TABLE[table][key]])
    )
    return st.lists(pairs, max_size=3).map(lambda each: "{" + ", ".join(each) + "}")


@cache
def conditions():
    values = {
        "kind": named(names().entities),
        "tag": words,
        "name": words | st.just('"two words"'),
        "mode": some(("survival", "creative")),
        "sort": some(("nearest", "random")),
        "count": st.just("1"),
        "range": some(("3", "..5", "2.5..", "-1..4")),
        "number": numbers,
    }
    not_ = dict.fromkeys(("kind", "name", "mode", "tag"), ("", "!"))
    one = some(TABLE["selectors"]).flatmap(
        lambda key: joined(
            st.just(f"{key}="),
            st.sampled_from(not_.get(TABLE["selectors"][key], ("",))),
            values[TABLE["selectors"][key]],
        )
    )
    return st.lists(one, max_size=3).map(lambda each: "[" + ",".join(each) + "]")


@cache
def block():
    def state(name):
        known = names().properties(name)
        pairs = [joined(st.just(f"{key}="), some(values)) for key, values in known.items()]
        inside = st.tuples(*pairs).map(lambda each: "[" + ",".join(each) + "]")
        tag = compound("block_tags") | st.just("")
        return joined(ids, st.just(name), inside if known else st.just(""), tag)

    return some(names().blocks).flatmap(state)


@cache
def argument(token):
    """Texts of an argument of a form."""
    single = joined(some(["@p", "@r", "@s"]), st.just("")) | some(("a0", "Ann"))
    many = single | joined(st.just("@a"), conditions() | st.just(""))
    every = many | joined(st.just("@e"), conditions() | st.just(""))
    kinds = {
        "angle": coordinates(1, ("", "~")),
        "block": block(),
        "block_pos": coordinates(3, number=whole),
        "bool": some(("true", "false")),
        "choice": st.sampled_from(token.parameters or ("",)),
        "column": coordinates(2, ("", "~")),
        "creature": named((*names().mobs, "item")),
        "creature_nbt": compound("creature_tags"),
        "effect": named(names().effects),
        "enchantment": named(names().enchantments),
        "entities": every,
        "entity": single | st.just("@e[type=cow,limit=1]"),
        "filter": block(),
        "flag_rule": some(TABLE["rules"]["flags"]),
        "number_rule": some(TABLE["rules"]["numbers"]),
        "float": st.integers(1, 50) | st.just("2.5"),
        "int": st.sampled_from(("1", "4", "5")),
        "item": joined(named(names().items), st.just("") | st.just("{Damage:3,Unbreakable:1b}")),
        "players": many,
        "position": coordinates(3),
        "rotation": coordinates(2, ("", "~")),
        "slot": some(("weapon.mainhand", "armor.head", "hotbar.8", "container.53")),
        "text": st.text("abc !?", min_size=1, max_size=8).filter(str.strip).map(str.strip),
        "time": some(("0", "13000", "10s", "1.5d")),
        "word": words,
    }
    return kinds[token.word]


@st.composite
def lines(draw, table="commands"):
    """A valid command in any of its forms, with any number of its optional arguments."""
    name = draw(some(TABLE[table]))
    parts = [name]
    for token in draw(st.sampled_from(forms(table, name))):
        if token.optional and draw(st.booleans()):
            break
        parts.append(str(draw(argument(token))) if token.name else token.word)
    return " ".join(parts)


@st.composite
def nested(draw):
    steps = draw(st.lists(lines("execute"), max_size=3))
    return " ".join(("/execute", *steps, "run", draw(lines())))


def cut(line):
    """The line with a piece left out, doubled or replaced."""
    ends = st.tuples(st.integers(0, len(line)), st.integers(0, len(line))).map(sorted)
    return st.tuples(ends, st.text("@[]{}~^:=,! \"'\\x1", max_size=3)).map(
        lambda drawn: line[: drawn[0][0]] + drawn[1] + line[drawn[0][1] :]
    )


@given(lines() | nested())
def test_every_accepted_command_round_trips(line):
    command = parse_command(line)
    text = command.text()
    assert parse_command(text) == command
    assert parse_command(text).text() == text


@given(st.text(max_size=60) | lines().flatmap(cut))
@example("/give @s stone{" + "a:{" * 2000)
@example("/execute " + "run execute " * 2000)
@example("/give @s stone{a:[B;1b,2b],b:[I;3],c:[L;4l],d:[[1],[2]],e:1e999d,f:99999999999}")
@example("/tp @s " + "9" * 400 + " 0 0")
@example("/kill @e[distance=" + "1" * 4000 + "]")
def test_any_text_gives_a_command_or_the_typed_error(line):
    try:
        command = parse_command(line)
    except CommandError as error:
        said = str(error)
    else:
        said = ""
        assert parse_command(command.text()) == command
    assert len(said) < LONGEST


@given(st.recursive(st.integers(-(2**63), 2**63 - 1), lambda inner: st.lists(inner, max_size=3)))
def test_data_of_items_is_read_as_it_was_written(value):
    text = f"{{a:{value!r},b:[L;{2**62}l,-1l],c:'it\\'s'}}"
    try:
        tag, end = snbt.parse(text)
    except snbt.SnbtError as error:
        assume("insert" not in str(error))  # lists are of one kind
        raise
    assert end == len(text)
    assert snbt.parse(snbt.write(tag))[0] == tag
    assert snbt.plain(tag)["b"] == [[1 << 30, 0], [-1, -1]]


WRONG = {
    "/gove @s stone": r"^Unknown or incomplete command at position 0: .*Nearest: give$",
    "/give @s dimond": r"^Unknown item 'dimond' at position 8: .*<--\[HERE\]dimond. Nearest: dia",
    "/give @s minecraft:planks 20": r"Unknown item 'minecraft:planks'.*oak_planks",
    "/give @s": r"^Unknown or incomplete command at position 7",
    "/give @s stone 0": r"Integer must not be less than 1, found 0",
    "/give @s stone 3 3": r"Incorrect argument for command at position 16",
    "/give @e stone": r"Only players may be affected by this command",
    "/give @s stone{": r"Expected key|Expected '}'",
    "/give @s bow{Enchantments:[{id:infinty,lvl:1}]}": r"Unknown enchantment: infinty.*infinity",
    "/tp @s ^1 ~ ~": r"Cannot mix world & local coordinates",
    "/tp @s @e": r"Expected a coordinate|Only one entity",
    "/setblock ~ ~ ~ oak_stairs[facing=up]": r"oak_stairs does not accept 'up' for facing property",
    "/setblock ~ ~ ~ oak_stairs[faceing=east]": r"does not have property 'faceing'.*facing",
    "/setblock ~ ~0.5 ~ ston": r"Unknown block type 'ston'.*stone",
    "/setblock 1.5 2 3 stone": r"Expected integer",
    "/summon cheep": r"Unknown entity: 'cheep'.*sheep",
    "/summon wolf ~ ~ ~ {AngerTime:1}": r"no angry creatures \(tag AngerTime\)",
    "/effect give @s sped": r"Unknown effect: 'sped'.*speed",
    "/effect give @s speed 0": r"must not be less than 1",
    "/replaceitem entity @s weapon.main stone": r"Unknown slot 'weapon.main'.*weapon.mainhand",
    "/kill @e[kind=cow]": r"Unknown option 'kind'",
    "/kill @x": r"Unknown selector type '@x'",
    "/gamerule keepinventory true": r"Nearest: keepInventory",
    "/gamerule keepInventory 1": r"Invalid boolean, expected true or false but found '1'",
    "/time set dusk": r"Incorrect argument for command|Expected a time",
    "/execute as @a give @s stone": r"Unknown or incomplete command at position 14",
    "/execute as @a": r"Unknown or incomplete command",
    "/setblock ~ ~ ~ chest{LootTable:igloo}": r"Unknown loot table 'igloo'.*igloo_chest",
    "/weather sunny": r"Expected one of clear, rain, thunder|Nearest",
}
LACKING = {
    "/summon armor_stand": "the embedded world has no entities of the kind armor_stand",
    "/summon horse ~ ~ ~ {Attributes:[]}": "the embedded world has no attributes of creatures",
    "/setblock ~ ~ ~ chest{Lock:x}": "the embedded world has no locked containers",
    "/scoreboard players set @s a 1": "the embedded world has no command /scoreboard",
    "/gamerule doInsomnia false": "the embedded world has no game rule doInsomnia",
    "/kill @e[nbt={}]": "the embedded world has no selectors by nbt",
    "/execute store result score a b run kill": "the embedded world has no /execute store",
    "/clear @s #logs": "the embedded world has no tags of items",
}


@pytest.mark.parametrize(("line", "said"), {**WRONG, **LACKING}.items(), ids=str)
def test_what_is_wrong_is_said_in_the_words_of_the_game(line, said):
    with pytest.raises(CommandError) as caught:
        parse_command(line)
    assert re.search(said, str(caught.value)), caught.value
    assert len(str(caught.value)) < LONGEST


def test_tags_that_the_game_does_not_know_are_ignored_with_a_warning(caplog):
    line = "/summon wolf ~4 ~ ~2 {Angry:1,Coulor:2}"
    command = parse_command(line)
    assert parse_command(command.text()) == command
    assert "ignores the tag 'Angry'" in caplog.text
    assert "ignores the tag 'Coulor'; the nearest that it knows: Color" in caplog.text


def test_numbers_and_names_mean_what_the_game_takes_them_for():
    assert parse_command("tp @s 3 4 -5").args["at"] == [["", 3.5], ["", 4.0], ["", -4.5]]
    assert parse_command("tp @s 3.0 4 -5").args["at"][0] == ["", 3.0]
    assert parse_command("setblock 3 4 5 stone").args["at"][0] == ["", 3.0]
    assert parse_command("/time set 1.5d").args == {"action": "set", "ticks": 36_000}
    assert parse_command("teleport @s @p").name == "tp"
    assert parse_command("/give @s minecraft:stone").args["item"] == {"name": "stone"}
    run = parse_command("/execute if entity @e[type=!sheep]")
    assert run.run is None
    assert run.steps[0].args["targets"]["where"] == [["type", "sheep", True]]


def test_players_are_those_of_the_world():
    parse_commands(["/give Ann stone", "/tp Ann Ben"], ["Ann", "Ben"])
    with pytest.raises(
        CommandError, match=r"^commands\[1\]: No player was found: Bem. Nearest: Ben$"
    ):
        parse_commands(["/give Ann stone", "/execute as Ann run tp @s Bem"], ["Ann", "Ben"])


def test_blocks_of_a_scene_are_relative_and_checked():
    scene = make_scene({"2 0 -1": "chest[facing=west]"}, ["/say hi"], {}, ["a0"])
    assert scene.message() == {
        "blocks": [{"x": 2, "y": 0, "z": -1, "name": "chest", "properties": {"facing": "west"}}],
        "players": [],
        "commands": [{"name": "say", "args": {"message": "hi"}, "text": "say hi"}],
        "regions": [],
    }
    for place in ("2 0", "a b c", "2 0 9999", "1.5 0 0"):
        with pytest.raises(CommandError, match="expected a place relative to the first agent"):
            make_scene({place: "stone"}, (), {}, ())
    with pytest.raises(CommandError, match=r"^blocks\[0 0 1\]: Unknown block type 'stome'.*stone"):
        make_scene({"0 0 1": "stome"}, (), {}, ())
    with pytest.raises(CommandError, match="expected a list of commands"):
        make_scene({}, "/say hi", {}, ())


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ({"at": "1 2 3"}, "radius: expected more than 0"),
        ({"at": "1 2", "radius": 3}, "expected a place relative to the first agent"),
        ({"box": ["0 0 0", "1.5 0 0"]}, "expected a place relative to the first agent"),
        ({"box": ["0 0 0"]}, "box: expected two places"),
        ({"box": [[0, 0, 0], [99, 99, 99]], "watch": True}, "1000000 blocks, at most 100000"),
        ({"at": "1 2 3", "radius": 3, "wach": True}, "wach.*watch"),
        ({}, "expected {at, radius} or {box}"),
    ],
)
def test_a_wrong_region_is_named_before_launch(region, message):
    with pytest.raises(ConfigError, match=rf"^regions.*{message}"):
        MineflayerBridge(regions={"hill": region})


def test_regions_are_boxes_and_balls():
    hill, spot = make_regions(
        {
            "hill": {"box": ["3 4 5", [1, 4, 9]], "watch": True},
            "a spot": {"at": "0 0 0", "radius": 1.5},
        }
    )
    assert (hill.low, hill.high, hill.blocks) == ((1, 4, 5), (3, 4, 9), 15)
    assert (spot.low, spot.high, spot.radius) == ((-2, -2, -2), (2, 2, 2), 1.5)


TASK = """
goal: Hunt the red sheep.
bridge: mineflayer
options:
  commands:
    - /summon sheep ~3 ~ ~ {Color:14}
    - /give @s iron_sword
  blocks: {"2 0 0": crafting_table}
state_space: {site: flat}
"""


def test_a_task_brings_its_scene(tmp_path):
    path = tmp_path / "hunt.yaml"
    path.write_text(TASK)
    _, bridge, task = bridge_and_task(BridgeConfig(name="mineflayer"), str(path))
    told = start_message(task.state_space, Start(task.state_space.state(0), 1), (), bridge.scene)
    assert [each["name"] for each in told["commands"]] == ["summon", "give"]
    assert told["blocks"] == [{"x": 2, "y": 0, "z": 0, "name": "crafting_table"}]
    path.write_text(TASK.replace("iron_sword", "iron_swrod"))
    with pytest.raises(
        ConfigError, match=r"hunt.yaml: options: .*commands\[1\]: Unknown item.*iron_sword"
    ) as caught:
        bridge_and_task(BridgeConfig(name="mineflayer"), str(path))
    assert len(str(caught.value).replace(str(tmp_path), "")) < LONGEST
    assert yaml.safe_load(TASK)["options"]["commands"]


CAST = {
    "a0": r"names of 1 to 16 letters.*got 'a0'",
    "Ada": {
        "{at: 1 2}": r"^players.Ada: expected a place relative to the first agent .* got '1 2'",
        "{items: {bred: 1}}": r"^players.Ada: unknown item .*'bred'.*bread",
        "{script: [{shout: hi}]}": r"^players.Ada: script\[0\]: unknown step 'shout'.*say",
        "{script: [{wait: 0}]}": r"wait: expected 1 to 24000 ticks, got 0",
        "{script: [{follow: Bob}]}": r"unknown player 'Bob'.*Ada",
        "{script: [{give: {item: bread, to: Bob}}]}": r"unknown player 'Bob'",
        "{script: [{say: /op me}]}": r"a text .* that is no command",
        "{answers: {'(a': well}}": r"'\(a' is no pattern",
        "{script: [{wait_chat: {ticks: 9}}]}": r"wait_chat: expected {pattern, ticks}",
        "{script: [{wait_chat: {pattern: '(a', ticks: 9}}]}": r"pattern: '\(a' is no pattern",
        "{script: [{wait_item: {item: bred}}]}": r"script\[0\]: unknown item .*'bred'.*bread",
        "{script: [{wait_item: {item: bread, ticks: 0}}]}": r"ticks: expected 1 to 24000 ticks",
        "{script: [{look: Bob}]}": r"script\[0\]: expected a place",
        "{script: [{hit: Bob}]}": r"unknown player 'Bob'",
        "{facing: up}": r"unknown facing 'up'.*east, north",
        "{ask: twice}": r"unknown ask 'twice'",
        "{speak: []}": r"unknown key 'speak'",
        "[]": r"expected a mapping with at, facing, items",
    },
}


@pytest.mark.parametrize(("text", "said"), CAST["Ada"].items(), ids=str)
def test_a_scripted_player_is_checked_before_launch(text, said):
    with pytest.raises(ConfigError, match=said):
        MineflayerBridge(players={"Ada": yaml.safe_load(text)})


def test_a_scripted_player_has_a_name_of_its_own():
    with pytest.raises(ConfigError, match=CAST["a0"]):
        MineflayerBridge(players={"a0": {}})
    bridge = MineflayerBridge(players={"Ada": {}}, commands=("/give Ada stone",))
    assert bridge.scene.message()["players"][0]["at"] == [2, 0, 0]


def test_a_server_of_others_takes_no_commands():
    with pytest.raises(ConfigError, match="need mode=embedded"):
        MineflayerBridge(mode="remote", commands=("/say hi",))


@pytest.mark.parametrize(
    "line",
    [
        # MineStudio writes such numbers: those that Python prints for draws of a generator.
        "execute as @p at @p run summon minecraft:cow ~3.7777227898059795 ~3 ~5.371542142389388",
        "tp @s 0.30000000000000004 64 ~-.12345678901234567",
        "kill @e[distance=0.1234567890123456789..2.00000000000000001]",
        "time set 1.0000000000000000001s",
    ],
)
def test_numbers_may_have_as_many_places_as_others_write(line):
    command = parse_command(line)
    assert parse_command(command.text()) == command
