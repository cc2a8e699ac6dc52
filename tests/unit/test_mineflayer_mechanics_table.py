"""The count of tasks that embedded worlds can express, on small lists of our own."""

import yaml

from benchmarks.science import mineflayer_mechanics as counted
from bridges.mineflayer.task_documents import lacking_for_item, mechanics

VERBS = {
    "enlarge": {"tasks": 2, "needs": "fireworks"},
    "craft": {"tasks": 3, "needs": counted.BY_TEXT},
}


def test_lines_need_the_mechanic_of_their_verb_or_their_item():
    lines = ["craft to oak_planks", "craft to elytra", "enlarge a cat", "Dance"]
    found = {each.name: each for each in counted.atomic(lines, VERBS)}
    craft = found["MCU, atomic tasks, craft"]
    assert (craft.tasks, craft.fine) == (2, 1)
    assert craft.lacks == {lacking_for_item("elytra"): 1}
    assert found["MCU, atomic tasks, enlarge"].lacks == {"fireworks": 1}
    assert found["MCU, atomic tasks, other verbs"].fine == 1


def test_numbers_alone_decide_what_they_can():
    listed = {"tasks": 6, "verbs": VERBS}
    enlarge, craft, rest = counted.by_numbers("a list", listed)
    assert (enlarge.fine, enlarge.lacks) == (0, {"fireworks": 2})
    assert (craft.fine, craft.unknown) == (0, 3)
    assert (rest.tasks, rest.unknown) == (1, 1)


def test_a_configuration_lacks_what_its_commands_and_its_words_ask_for(tmp_path):
    (tmp_path / "simple").mkdir()
    fine = {"custom_init_commands": ["/give @s minecraft:bread 3"], "text": "Eat."}
    flawed = {"custom_init_commands": ["/give @s minecraft:raw_beef"], "text": "Row a boat."}
    (tmp_path / "simple" / "eat.yaml").write_text(yaml.safe_dump(fine))
    (tmp_path / "simple" / "launch_fireworks.yaml").write_text(yaml.safe_dump(flawed))
    (family,) = counted.configurations(tmp_path)
    assert (family.tasks, family.fine) == (2, 1)
    assert {counted.NO_ITEM, "fireworks"} <= set(family.lacks)
    assert "fireworks | 1" in counted.described([family])


def test_every_number_adds_up_and_names_a_verb_once():
    for listed in yaml.safe_load(counted.NUMBERS.read_text()).values():
        assert sum(row["tasks"] for row in listed["verbs"].values()) <= listed["tasks"]
    assert "fireworks" in mechanics()
