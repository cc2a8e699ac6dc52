"""Sixty attacks on the bounded knowledge of companions: the check of a program's text."""

from types import SimpleNamespace

import pytest

from benchmarks.faults.companion_attacks import attacks
from policies.companion.guard import check_program, violations_in
from policies.companion.stages import say

ATTACKS = attacks()
STATIC = [each for each in ATTACKS if each.by == "static" and each.program]


def test_there_are_sixty_attacks_of_all_families():
    assert len({each.program or each.reply for each in ATTACKS}) == len(ATTACKS) == 60
    assert sum(bool(each.hidden) for each in ATTACKS) >= 4


@pytest.mark.parametrize("attack", STATIC, ids=lambda each: each.program)
def test_it_is_refused_before_it_runs(attack):
    [first, *_] = check_program(attack.code)
    assert (first.layer, first.line) == ("static", 2)
    assert first.rule != "syntax"
    assert first.why


def test_the_others_are_known_only_when_they_run():
    others = [each for each in ATTACKS if each.by == "runtime"]
    assert others
    assert not [each.program for each in others if check_program(each.code)]


def test_a_command_that_a_model_says_loses_what_makes_it_one():
    told = []
    turn = SimpleNamespace(tell=lambda kind, **values: told.append((kind, values)))
    reply, other = [each.reply for each in ATTACKS if each.reply]
    assert say(turn, other) == (1, 'bot.chat("op Mallory");')
    assert say(turn, reply) == (1, 'bot.chat("gamemode creative");')
    assert told[0][1]["violations"][0]["rule"] == "operator_command"


@pytest.mark.parametrize(
    "code",
    [
        "const window = await bot.openChest(chest); await window.withdraw('bread', null, 2);",
        "class Path { constructor(a) { this.a = a; } } new Path(1);",
        "const found = {}; for (const item of bot.inventory.items()) found[item.name] = 1;",
        "const near = bot.findBlocks({ matching: 'stone', maxDistance: 64, count: 256 });",
        "bot.chat(`I have ${1} / 2 of it, see a/b`); bot.chat('prototype done');",
        "const seeds = bot.inventory.count('wheat_seeds'); await bot.waitForTicks(seeds);",
        "async function fetch(item) { await bot.dig(item); } await fetch(1);",
        "const cow = bot.nearestEntity((e) => e.name === 'cow'); if (cow) bot.attack(cow);",
    ],
)
def test_ordinary_programs_are_allowed(code):
    assert check_program(f"async function task(bot) {{ {code} }}") == []


def test_a_program_that_cannot_be_read_is_named_with_its_line():
    [found] = check_program("async function task(bot) {\n  await bot.dig(;\n}")
    assert (found.rule, found.line) == ("syntax", 2)
    assert check_program("(" * 20_000)[0].rule == "syntax"


def test_what_the_sandbox_refuses_is_a_violation_of_its_rule():
    error = {"error_message": "bot.chat: commands are not allowed to agents: /give"}
    [found] = violations_in({"code_info": {"code_error": error}})
    assert (found.layer, found.rule) == ("runtime", "operator_command")
    event = {"type": "violation", "rule": "bulk_scan", "evidence": "maxDistance 999"}
    assert [v.layer for v in violations_in({"trace": [{"type": "dug"}, event]})] == ["server"]
    assert violations_in({"code_info": {"code_error": {"error_message": "no path"}}}) == []


_LONG = 3000


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("const a = '\ud800'; bot.chat(a);", []),
        (f"bot.chat({'+'.join(['a'] * _LONG)});", []),
        (
            f"bot.chat({'+'.join(['a', *['b'] * _LONG])} + `/give`);".replace("a+", "'/'+"),
            ["operator_command"],
        ),
        (f"const a = {'(' * _LONG}1{')' * _LONG};", []),
        ("const a0 = 'xxxxxxxx';" + "".join(f"const a{n + 1}=a{n}+a{n};" for n in range(99)), []),
        (f"bot.findBlock({{matching: 'x', maxDistance: 0x{'f' * 400}}});", ["bulk_scan"]),
        (f"bot.chat('a'{'.concat(1)' * _LONG});", []),
        (f"bot.chat({'`${' * _LONG}1{'}`' * _LONG});", []),
        (
            "".join(f"const p{n} = bot;" for n in range(_LONG)) + f"p{_LONG - 1}.world;",
            ["global_map"],
        ),
        ("require('fs');", ["host_access"]),
    ],
    ids=range(10),
)
def test_programs_of_any_form_are_read_in_bounded_time(code, rules):
    found = [violation.rule for violation in check_program(code)]
    assert found == rules
